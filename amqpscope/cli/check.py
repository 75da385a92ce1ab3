"""`amqpscope check`: who broke which rule, where, in which state, with proof."""

from typing import Annotated

import typer

from amqpscope.cli.inputs import DialectOption, KeyLogOption, Merge, Paths, Via, inputs
from amqpscope.cli.judging import (
    POLICY_PANEL,
    AllowEmpty,
    BaselineOption,
    ConfigOption,
    FailOnOption,
    FailOnPossible,
    IgnoreOption,
    NoConfig,
    ProfileOption,
    SelectOption,
    SpecOption,
    StrictOption,
    configuration_of,
    given_of,
    today,
)
from amqpscope.cli.output import progress, say
from amqpscope.cli.reports import Reports, in_folder
from amqpscope.cli.status import Status, of_outcome, worst
from amqpscope.errors import FilterError
from amqpscope.policy.baseline import may_be_written, write_baseline
from amqpscope.policy.configuration import nearest_word
from amqpscope.policy.judging import CaptureOutcome, judge
from amqpscope.policy.policy import Policy
from amqpscope.report.forms import DEFAULT, NAMES, declared, suffixes
from amqpscope.report.summary_text import count

__all__ = ["EPILOG", "check"]

EPILOG = """\b
A finding is certain when the capture proves the fault, whatever the peer had
read by then. Otherwise the finding is possible, and the report says what it
depends on.
Only certain findings decide the exit status, unless --fail-on-possible is
given. Notes report problems of the capture itself (lost packets, a truncated
file). Notes accuse no peer and never change the exit status.

\b
`amqpscope rules explain RULE` explains a rule.

\b
Examples:
  amqpscope check traffic.pcap
  amqpscope check --strict recorded/*.pcapng
  amqpscope check --merge rotated/
  amqpscope check --fail-on warning --fail-on-possible traffic.pcap
  amqpscope check --format github --output amqp.sarif recorded/
  amqpscope check --output amqp.xml --output amqp.sarif recorded/
  amqpscope check --write-baseline known.json recorded/
  amqpscope check --baseline known.json recorded/
  amqpscope check --ignore note,amqp10/M-* traffic.pcap
  amqpscope check --format ndjson traffic.pcap | jq -r .rule | sort | uniq -c
  tcpdump -w - port 5672 | amqpscope check --format ndjson -

\b
Exit status: 0 fine, 1 findings that count, 2 a failure (unreadable file,
unknown option), 3 no AMQP 1.0 or 0-9-1 to check, or only encrypted,
130 interrupted. With several captures, all captures are reported. The first
of 2, 1, 3, 0 that applies to any capture is the exit status.
"""


_HOW = "How findings are shown"

_FORMS = "; ".join(f"{name}: {declared(name).purpose}" for name in NAMES)

_MOST = 3


def check(
    paths: Paths,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="|".join(NAMES),
            show_default=False,
            rich_help_panel=_HOW,
            help=f"Set the format of standard output. {_FORMS}. Default: text.",
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="[FORMAT:]FILE",
            rich_help_panel=_HOW,
            help="Also write the report to this file. The suffix of the file decides the format "
            f"({', '.join(suffixes())}), unless FORMAT: stands before it. The option may be repeated.",
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--max-per-rule",
            metavar="N",
            rich_help_panel=_HOW,
            show_default=False,
            help="Show at most N findings of each rule for each peer of a connection, and"
            " count the others (default: 3). The limit applies to text and Markdown "
            "only.",
        ),
    ] = None,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    baseline: BaselineOption = None,
    write: Annotated[
        str | None,
        typer.Option(
            "--write-baseline",
            metavar="FILE",
            rich_help_panel=POLICY_PANEL,
            show_default=False,
            help="Write the current findings to this file as the new baseline. Findings "
            "that are allowed or ignored are left out.",
        ),
    ] = None,
    config: ConfigOption = None,
    no_config: NoConfig = False,
    spec: SpecOption = None,
    profile: ProfileOption = None,
    fail_on: FailOnOption = None,
    fail_on_possible: FailOnPossible = None,
    strict: StrictOption = None,
    allow_empty: AllowEmpty = None,
    merge: Merge = False,
    via: Via = None,
    dialect: DialectOption = None,
    tls_keylog: KeyLogOption = None,
) -> int:
    """Show which peer broke which rule of the specification, in which packet and state."""
    if most is not None and most < 1:
        raise FilterError(f"--max-per-rule {most}: must be at least 1")
    configuration = configuration_of(config, no_config)
    given = given_of(
        select=select,
        ignore=ignore,
        fail_on=fail_on,
        possible=fail_on_possible,
        strict=strict,
        allow_empty=allow_empty,
        spec=spec,
        profile=profile,
        baseline=baseline,
    )
    if write is not None and baseline is not None:
        raise FilterError("--write-baseline: cannot be combined with --baseline")
    if write in ("", "-"):
        raise FilterError(f"--write-baseline {write}: must name a file")
    policy = Policy(configuration, given, today(), write)
    values = configuration.values
    if form is None:
        form = str(values.get("format", DEFAULT))
    elif form not in NAMES:
        raise FilterError(f"--format {form}: {nearest_word(form, NAMES, 'format')}")
    if most is None:
        most = values.get("max-per-rule", _MOST)
    outputs = output or [in_folder(configuration, one) for one in values.get("output", [])]
    captures = inputs(paths, merge, via, dialect, tls_keylog)
    reports = Reports(form, outputs, most, captures, policy)
    if write is not None:
        may_be_written(write)
    with reports as writer:
        run = judge(
            captures,
            policy,
            hearer=writer,
            gather=False,
            meter=lambda capture: progress(capture, writer.streaming),
        )
    if policy.gathered is not None:
        if any(one.outcome is CaptureOutcome.failure for one in run.captures):
            say(f"{write}: not written, because some captures could not be read")
        else:
            write_baseline(policy.gathered)
            say(f"{write}: {count(len(policy.gathered.known), 'finding')} from now on known")
    statuses = [of_outcome(one.outcome) for one in run.captures]
    return worst([*statuses, Status.FINDINGS] if run.remarked else statuses)

"""`amqpscope check`: who broke which rule, where, in which state, with proof."""

from typing import Annotated

import typer

from amqpscope.cli.help import later
from amqpscope.cli.inputs import InputOptions, JobsOption, Paths
from amqpscope.cli.judging import (
    POLICY_PANEL,
    DiagnosisOptions,
    NewFindingOptions,
    RuleOptions,
    StatusOptions,
    given_of,
    today,
)
from amqpscope.cli.option_groups import with_options
from amqpscope.cli.output import progress, say
from amqpscope.cli.place_options import (
    address_option,
    connection_option,
    first_option,
    last_option,
    link_option,
)
from amqpscope.cli.reports import Reports, in_folder
from amqpscope.cli.selection import Selection, parse_bound
from amqpscope.cli.status import Status, of_outcome, worst
from amqpscope.errors import FilterError
from amqpscope.input.jobs import jobs_of
from amqpscope.policy.configuration import nearest_word
from amqpscope.policy.judging import CaptureOutcome, judge
from amqpscope.policy.policy import Policy
from amqpscope.report.finding_counts import Detail
from amqpscope.report.forms import DEFAULT, NAMES, declared, suffixes
from dissectors.wording import count

__all__ = ["EPILOG", "check"]

EPILOG = """\b
A finding has the grade `certain` if the capture proves the fault. All other
findings have the grade `possible`: the peer may not have read all frames of
the other peer that matter, and the report says in which case there is no
fault. Without --fail-on-possible, only findings of the grade `certain` change
the exit status. The text report shows errors and warnings of the grade
`certain`, and all findings that change the exit status. The text report only
counts the other findings, unless --possible or --notes is given. If
--connection, --link, --address, --from, --to or --certain leaves out a
finding, the finding appears in no report and does not change the exit status.

\b
Notes about the capture report problems of the capture itself (lost packets, a
truncated file). Notes about the capture accuse no peer and never change the
exit status.

\b
`amqpscope rules explain RULE` explains a rule.

\b
Examples:
  amqpscope check traffic.pcap
  amqpscope check --connection 62 traffic.pcap
  amqpscope check --quiet --certain traffic.pcap
  amqpscope check --strict recorded/*.pcapng
  amqpscope check --merge rotated/
  amqpscope check --fail-on warning --fail-on-possible traffic.pcap
  amqpscope check --format github --output amqp.sarif recorded/
  amqpscope check --output amqp.xml --output amqp.sarif recorded/
  amqpscope check --annotate - traffic.pcap | wireshark -k -i -
  amqpscope check --write-baseline known.json recorded/
  amqpscope check --baseline known.json recorded/
  amqpscope check --ignore note,amqp10/M-* traffic.pcap
  amqpscope check --format ndjson traffic.pcap | jq -r .rule | sort | uniq -c
  tcpdump -w - port 5672 | amqpscope check --format ndjson -

\b
Exit status: 0 fine, 1 findings that make the command fail (see --fail-on), 2
a failure (unreadable file, unknown option), 3 no AMQP 1.0 or 0-9-1 to check,
or only encrypted AMQP, 130 interrupted. With several captures, all captures
are reported. The exit status is then the first of 2, 1, 3 and 0 that applies
to any capture.
"""


_WHICH = "Which findings are reported"

_HOW = "How findings are shown"

_MOST = 3


def _purposes() -> str:
    """What each form of report is for."""
    return "; ".join(f"{name}: {declared(name).purpose}" for name in NAMES)


def _suffixes() -> str:
    """The suffixes of files that name a form of report."""
    return ", ".join(suffixes())


@with_options
def check(
    *,
    paths: Paths,
    connection: Annotated[str | None, connection_option("Check only", _WHICH)] = None,
    link: Annotated[str | None, link_option("Check only", _WHICH)] = None,
    address: Annotated[str | None, address_option("Check only", _WHICH, "an exchange or a queue")] = None,
    first: Annotated[str | None, first_option("Check only frames", _WHICH)] = None,
    last: Annotated[str | None, last_option("Check only frames", _WHICH)] = None,
    certain: Annotated[
        bool,
        typer.Option(
            "--certain",
            rich_help_panel=_WHICH,
            help=(
                "Report only findings that the capture proves. Findings that are graded `possible` are "
                "left out."
            ),
        ),
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="|".join(NAMES),
            show_default=False,
            rich_help_panel=_HOW,
            help=f"Set the format of standard output. {later(_purposes)}. [default: text]",
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
            f"({later(_suffixes)}). A format before the name, such as ndjson:, overrides the suffix. "
            "The option may be repeated.",
        ),
    ] = None,
    annotate: Annotated[
        str | None,
        typer.Option(
            "--annotate",
            metavar="OUT.pcapng",
            rich_help_panel=_HOW,
            help=(
                "Also write a copy of the capture to this file. In the copy, each finding is a packet "
                "comment. Wireshark shows these comments (filter: frame.comment). Give - to write the copy "
                "to standard output, and the report to standard error."
            ),
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--max-per-rule",
            metavar="N",
            rich_help_panel=_HOW,
            show_default=False,
            help=(
                "If a peer of a connection breaks the same rule more than N times, show only the first N "
                "findings and the number of the other findings. By default, N is 3. The option changes "
                "only reports in the formats `text` and `markdown`. If you set N, the text report shows "
                "all details, as with --full."
            ),
        ),
    ] = None,
    possible: Annotated[
        bool,
        typer.Option(
            "--possible",
            rich_help_panel=_HOW,
            help="Show the findings that are graded `possible`, too. Without this option, the text report "
            "shows only how many findings have this grade.",
        ),
    ] = False,
    notes: Annotated[
        bool,
        typer.Option(
            "--notes",
            rich_help_panel=_HOW,
            help=(
                "Show the findings of the severity `note`, too. Without this option, the text report shows "
                "only how many findings have this severity."
            ),
        ),
    ] = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            rich_help_panel=_HOW,
            help="Show the rule, the protocol state and the surrounding frames of every finding, even if "
            "there are many findings. The option changes only the text report.",
        ),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet",
            "-q",
            rich_help_panel=_HOW,
            help=(
                "Show only how many findings there are of each severity. The option changes only the "
                "text report."
            ),
        ),
    ] = False,
    findings: NewFindingOptions,
    write: Annotated[
        str | None,
        typer.Option(
            "--write-baseline",
            metavar="FILE",
            rich_help_panel=POLICY_PANEL,
            show_default=False,
            help=(
                "Write the current findings to this file as the new baseline. Findings that the "
                "configuration allows (key `allow`) or ignores (key `ignore`) are not written to the "
                "baseline."
            ),
        ),
    ] = None,
    rules: RuleOptions,
    status: StatusOptions,
    diagnoses: DiagnosisOptions,
    jobs: JobsOption = None,
    reading: InputOptions,
) -> int:
    """Show which peer broke which rule of the specification, in which packet and state."""
    if most is not None and most < 1:
        raise FilterError(f"--max-per-rule {most}: must be at least 1")
    selection = Selection(
        connection,
        link=link,
        address=address,
        first=parse_bound("--from", first),
        last=parse_bound("--to", last),
        certain=certain,
    )
    wanted = None if selection.everything else selection
    if write is not None and wanted is not None:
        raise FilterError(f"--write-baseline: cannot be combined with {selection.words.split()[0]}")
    configuration = rules.configuration()
    given = given_of(findings, rules, status, diagnoses)
    if write is not None and findings.baseline is not None:
        raise FilterError("--write-baseline: cannot be combined with --baseline")
    if write in ("", "-"):
        raise FilterError(f"--write-baseline {write}: must name a file")
    values = configuration.values
    processes = jobs_of(jobs) if jobs is not None else values.get("jobs", 1)
    policy = Policy(configuration, given, today(), write)
    if form is None:
        form = str(values.get("format", DEFAULT))
    elif form not in NAMES:
        raise FilterError(f"--format {form}: {nearest_word(form, NAMES, 'format')}")
    # Who asks for more of what repeats wants to read all of it.
    full = full or most is not None
    if most is None:
        most = values.get("max-per-rule", _MOST)
    outputs = output or [in_folder(configuration, one) for one in values.get("output", [])]
    captures = reading.captures(paths, configuration)
    detail = Detail(possible, notes, full, quiet)
    # A criterion that nothing meets would let any capture pass.
    matched = None
    if selection.links or selection.bounded:
        from amqpscope.cli.matched import MatchedFrames  # brings what follows links

        matched = MatchedFrames(selection)
    reports = Reports(form, outputs, most, captures, policy, detail, wanted, annotate, matched)
    if write is not None:
        from amqpscope.policy.baseline import may_be_written

        may_be_written(write)
    with reports as writer:
        run = judge(
            captures,
            policy,
            hearer=writer,
            gather=False,
            wanted=wanted,
            meter=lambda capture: progress(capture, writer.streaming),
            jobs=processes,
        )
    if policy.gathered is not None:
        if any(one.outcome is CaptureOutcome.failure for one in run.captures):
            say(f"{write}: not written, because some captures could not be read")
        else:
            from amqpscope.policy.baseline import write_baseline

            write_baseline(policy.gathered)
            say(f"{write}: {count(len(policy.gathered.known), 'finding')} from now on known")
    statuses = [of_outcome(one.outcome) for one in run.captures]
    named = selection.connection
    missing = ""
    if named is not None and not named.met:
        missing = named.missing() or f"no connection {connection}"
    elif matched is not None and not matched.met:
        missing = f"no frame of {matched.seen} matches {selection.words}"
    if missing and Status.FINE in statuses:
        where = captures[0].name if len(captures) == 1 else f"{len(captures)} captures"
        say(f"{where}: {missing}")
        return Status.FAILURE
    return worst([*statuses, Status.FINDINGS] if run.remarked else statuses)

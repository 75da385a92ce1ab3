"""`amqpscope check`: who broke which rule, where, in which state, with proof."""

from collections.abc import Iterator
from typing import Annotated

import typer

from amqpscope.cli.inputs import Input, Merge, Via, inputs
from amqpscope.cli.judging import (
    AllowEmpty,
    FailOn,
    FailOnOption,
    FailOnPossible,
    ProfileOption,
    Spec,
    SpecOption,
    StrictOption,
    terms_of,
)
from amqpscope.cli.output import progress, say
from amqpscope.cli.reports import FORMATS, Format, Reports
from amqpscope.cli.status import Status, worst
from amqpscope.errors import CaptureError, FilterError
from amqpscope.finding import Finding
from amqpscope.reading import Capture
from amqpscope.report.outcome import nothing_to
from amqpscope.report.terms import Terms
from amqpscope.report.writer import Writer
from amqpscope.rules.profiles import AUTO, valid

__all__ = ["EPILOG", "check"]

EPILOG = """\b
A finding is certain when the capture proves it, whatever the peer had read
by then; else it is possible, and the report says what it depends on. Only
certain findings count for the exit status, without --fail-on-possible. What
is wrong with the capture itself (packets lost, a file cut short) is told in
notes: they accuse no peer and never count.

\b
`amqpscope rules explain RULE` tells what a rule is about.

\b
Examples:
  amqpscope check traffic.pcap
  amqpscope check --strict recorded/*.pcapng
  amqpscope check --merge rotated/
  amqpscope check --fail-on warning --fail-on-possible traffic.pcap
  amqpscope check --format github --output amqp.sarif recorded/
  amqpscope check --output amqp.xml --output amqp.sarif recorded/
  amqpscope check --format ndjson traffic.pcap | jq -r .rule | sort | uniq -c
  tcpdump -w - port 5672 | amqpscope check --format ndjson -

\b
Exit status: 0 fine, 1 findings that count, 2 a failure (unreadable file,
unknown option), 3 no AMQP 1.0 or 0-9-1 to check, or only encrypted,
130 interrupted.
Of several captures: 2 before 1 before 3 before 0; all of them are reported.
"""


_HOW = "How findings are shown"


def check(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH",
            help="Captures, pcap or pcapng, also in gzip or zstd; directories of them; - is standard input.",
        ),
    ],
    form: Annotated[
        Format,
        typer.Option(
            "--format",
            metavar=FORMATS,
            show_default=False,
            rich_help_panel=_HOW,
            help="On standard output: text; markdown: for a job's summary or a comment; ndjson: one JSON "
            "object a line and finding; json: one object with all; junit: for CI servers; sarif: for code "
            "scanning; github: annotations of a run of its Actions.",
        ),
    ] = Format.text,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            metavar="[FORMAT:]FILE",
            rich_help_panel=_HOW,
            help="Also into a file, in a format by its name (.txt, .md, .json, .ndjson, .xml, .sarif) or the "
            "one before the colon. May be given again.",
        ),
    ] = None,
    most: Annotated[
        int,
        typer.Option(
            "--max-per-rule",
            metavar="N",
            rich_help_panel=_HOW,
            help="In text and Markdown: so many of one rule by one peer of a connection, the others counted.",
        ),
    ] = 3,
    spec: SpecOption = Spec.final,
    fail_on: FailOnOption = FailOn.error,
    fail_on_possible: FailOnPossible = False,
    strict: StrictOption = False,
    allow_empty: AllowEmpty = False,
    profile: ProfileOption = AUTO,
    merge: Merge = False,
    via: Via = None,
) -> int:
    """Show who broke which rule of the specification, where, and in which state."""
    if most < 1:
        raise FilterError(f"--max-per-rule {most}: must be at least 1")
    terms = terms_of(fail_on, fail_on_possible, strict, allow_empty)
    valid(profile)
    captures = inputs(paths, merge, via)
    with Reports(form, output or [], most, terms, captures) as writer:
        statuses = [_check_one(one, writer, terms, profile, spec) for one in captures]
        writer.end()
    return worst(statuses)


def _check_one(one: Input, writer: Writer, terms: Terms, profile: str, spec: str) -> Status:
    """One capture, to its end or as far as it can be read. Gives its status."""
    writer.begin(one.name)
    try:
        with one.open(
            keep=writer.connections,
            records=False,
            judge=True,
            context=writer.context,
            profile=profile,
            spec=spec,
        ) as capture:
            writer.opened(capture)
            failed = False
            try:
                with progress(capture, writer.streaming) as meter:
                    for findings in _judged(capture):
                        writer.take(findings)
                        for finding in findings:
                            failed = failed or terms.counts(finding)
                        meter.update()
            except KeyboardInterrupt:
                # What was found so far is worth having, above all of a live capture.
                writer.fail("interrupted")
                writer.end()
                raise
            nothing = nothing_to(capture, "check")
            writer.finish(capture, nothing)
            if nothing:
                say(f"{capture.name}: {nothing}")
            if failed:
                return Status.FINDINGS
            return Status.NO_AMQP if nothing and not terms.allow_empty else Status.FINE
    except CaptureError as error:
        writer.fail(str(error))
        say(str(error))
        return Status.FAILURE


def _judged(capture: Capture) -> Iterator[list[Finding]]:
    """The findings that are complete by the end of each block of the capture."""
    try:
        for _ in capture.blocks():
            yield capture.take_findings()
    except (KeyboardInterrupt, CaptureError):
        capture.stop()
        yield capture.take_findings()
        raise

"""`amqpscope diff`: where two runs of one scenario part, in what the peers say and in what is found."""

import json
from typing import Annotated

import typer

from amqpscope.cli.inputs import DecodingOptions, JobsOption, refuse_repeated
from amqpscope.cli.judging import FindingOptions, RuleOptions, StatusOptions, given_of, today
from amqpscope.cli.option_groups import with_options
from amqpscope.cli.output import ObjectFormat, TextOrJson, meter, notes_to_stderr, read_or_not, say
from amqpscope.cli.painted import print_lines
from amqpscope.cli.status import Status
from amqpscope.diff.comparison import Comparison, compare
from amqpscope.diff.excerpts import ComparedFrames, wanted_of
from amqpscope.diff.json_form import comparison_object
from amqpscope.diff.text import comparison_lines
from amqpscope.input.jobs import jobs_of
from amqpscope.input.replay import ReplayableCapture
from amqpscope.policy.policy import Policy

__all__ = ["EPILOG", "diff"]

EPILOG = """\b
For each connection, session, link, channel and consumer, `diff` compares what
each peer sends, in the order of sending. `diff` compares frames and their
fields, deliveries and messages, and the outcome of each delivery. It makes no
difference whether outcomes are reported one by one or together. `diff`
ignores times, ports, packets and TCP segments. `diff` also ignores how a
message is split into frames, and all ids, tags and names that are generated
for each run. Finally, `diff` ignores heartbeats, product names, flow frames
that only renew credit or windows, and whether a frame of one peer comes
before or after a frame of the other peer.

\b
`diff` pairs connections that have the same protocol, the same client and the
same addresses. `diff` pairs the remaining connections by their order.
Findings are paired by their fingerprint. A finding that appears in only one
of the captures can make the exit status 1. As in `check`, options such as
--fail-on decide this.

\b
`diff` reads each capture twice, so it first copies standard input, or a
pipe, to a temporary file. With --jobs 2, two processes read the two captures.

\b
Examples:
  amqpscope diff before.pcap after.pcap
  amqpscope diff --all rabbitmq.pcapng artemis.pcapng
  amqpscope diff --format json a.pcap b.pcap | jq '.connections[].first'

\b
Exit status: 0 the captures are the same, 1 the captures differ, 2 a failure
(unreadable file), 3 one of the captures has no AMQP 1.0 or 0-9-1 to compare,
130 interrupted.
"""


@with_options
def diff(
    *,
    one: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="Read this file as the first capture (pcap or pcapng, also compressed with gzip or zstd). "
            "Give - to read standard input.",
        ),
    ],
    other: Annotated[
        str,
        typer.Argument(
            metavar="B", help=("Read this file as the second capture. Give - to read standard input.")
        ),
    ],
    whole: Annotated[
        bool,
        typer.Option(
            "--all",
            help="Show all differences of each connection, not only the first difference. Also list "
            "connections without differences.",
        ),
    ] = False,
    form: ObjectFormat = TextOrJson.text,
    jobs: JobsOption = None,
    findings: FindingOptions,
    rules: RuleOptions,
    status: StatusOptions,
    decoding: DecodingOptions,
) -> int:
    """Show the first differences between two captures of one scenario, in frames and in findings."""
    processes = jobs_of(jobs)
    configuration = rules.configuration()
    refuse_repeated([one, other, *decoding.files(configuration)])
    policy = Policy(configuration, given_of(findings, rules, status), today())
    secrets = decoding.secrets(configuration)
    dialect = decoding.dialect or ""
    with (
        ReplayableCapture(one, policy.profile, policy.spec, "", dialect, secrets, meter) as a,
        ReplayableCapture(other, policy.profile, policy.spec, "", dialect, secrets, meter) as b,
    ):
        comparison = compare(a, b, policy, processes)
        for run in (comparison.a, comparison.b):
            notes_to_stderr(run.name, run.notes)
        as_data = form is TextOrJson.json
        scenes = [
            ComparedFrames.of(material, _wanted(comparison, first, whole or as_data), as_data)
            for material, first in ((a, True), (b, False))
        ]
    with read_or_not():
        if as_data:
            print(json.dumps(comparison_object(comparison, *scenes)))
        else:
            print_lines(comparison_lines(comparison, scenes[0], scenes[1], whole))
    if a.mishaps or b.mishaps:
        return Status.FAILURE
    return _status(comparison, policy.terms.allow_empty)


def _wanted(comparison: Comparison, in_a: bool, whole: bool) -> dict[int, set[int]]:
    """The frames that are shown of one run, by connection."""
    wanted: dict[int, set[int]] = {}
    for meeting in comparison.meetings:
        story = meeting.a if in_a else meeting.b
        if story is None or not meeting.differences:
            continue
        first = meeting.first
        shown = meeting.differences if whole else [*meeting.negotiated, *([first] if first else [])]
        wanted[int(story.connection.stream)] = wanted_of(shown, first, in_a)
    return wanted


def _status(comparison: Comparison, allow_empty: bool) -> Status:
    empty = [run for run in (comparison.a, comparison.b) if not run.stories]
    for run in empty:
        how = "it is encrypted" if run.protocols.get("tls") else "there is none"
        say(f"{run.name}: no AMQP 1.0 or 0-9-1 to compare: {how}")
    if empty and not allow_empty:
        return Status.NO_AMQP
    return Status.FINE if comparison.same else Status.FINDINGS

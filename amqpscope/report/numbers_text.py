"""The numbers of a connection for people: how much, how fast, who waited for whom, and how long answers took.

longest silence: client 4.014 s after packet 34 (limit 8 s), server 4.012 s after packet 33 (limit 8 s)
TCP round trip from here: server 0.018 ms, client at most 3.219 ms
messages      count  outcomes    granted  median  largest  per s
link rx-jobs      5  5 accepted        5      31       31   1345
who waited                    seconds  longest  from packet
server: no credit on rx-jobs   24.094   24.040           27
answers to (s)      count       p50       p95       p99   longest  packets
settlement rx-jobs      5  0.005693  0.005693  0.005693  0.005693    27-28
"""

from typing import Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.numbers import Answered, Deliveries, Traffic, Waited
from amqpscope.model.records import CLIENT, SERVER
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.report.line import Line
from amqpscope.report.summary import round_trip
from amqpscope.report.table import TableColumn, table
from amqpscope.report.value_text import text_word

__all__ = ["number_lines"]

_INDENT: Final = "  "
_NAME: Final = 48

_ROWS: Final = 8
"""Rows of each table: the JSON output has all."""

_WAITED: Final = 10_000_000
"""Nanoseconds that a peer waited before the wait is shown."""

_SILENT: Final = 1_000_000_000
"""Nanoseconds that a peer was silent before the silence is shown."""

_FLOWS: Final = (
    TableColumn("messages", least=22),
    TableColumn("count", right=True),
    TableColumn("outcomes", least=14),
    TableColumn("granted", right=True, optional=True),
    TableColumn("unsettled", right=True),
    TableColumn("redelivered", right=True),
    TableColumn("median", right=True, optional=True),
    TableColumn("largest", right=True, optional=True),
    TableColumn("per s", right=True, optional=True),
)

_WAITS: Final = (
    TableColumn("who waited", least=24),
    TableColumn("seconds", right=True),
    TableColumn("longest", right=True),
    TableColumn("from packet", right=True, optional=True),
)

_ANSWERS: Final = (
    TableColumn("answers to (s)", least=22),
    TableColumn("count", right=True),
    TableColumn("p50", right=True),
    TableColumn("p95", right=True, optional=True),
    TableColumn("p99", right=True),
    TableColumn("longest", right=True),
    TableColumn("packets", right=True, optional=True),
)


def number_lines(analysis: ConnectionAnalysis, known: ConnectionOverview, width: int | None) -> list[Line]:
    """All numbers of one connection. width: columns of the output, None for any."""
    numbers = known.numbers
    lines = [*_silences(known), *_round_trip(analysis, known)]
    if numbers is None:
        return lines
    room = None if width is None else width - len(_INDENT)
    flows = [one for one in numbers.flows() if one.deliveries.volume.messages]
    flows.sort(key=lambda one: -one.deliveries.volume.messages)
    waits = [one for one in numbers.waits() if one.wait.total >= _WAITED]
    waits.sort(key=lambda one: -one.wait.total)
    timed = analysis.connection.began > 0  # else nothing says how long an answer took
    answers = [one for one in numbers.answers() if one.latency.count and timed]
    answers.sort(key=lambda one: -one.latency.largest)
    for columns, rows in (
        (_FLOWS, [_flow(one) for one in flows]),
        (_WAITS, [_wait(one) for one in waits]),
        (_ANSWERS, [_answer(one) for one in answers]),
    ):
        if rows:
            lines += [[("", _INDENT), *line] for line in table(columns, rows[:_ROWS], room)]
        if len(rows) > _ROWS:
            lines.append([("dim", f"{_INDENT}{len(rows) - _ROWS} more in --format json")])
    return lines


def _named(what: str, name: str) -> str:
    return f"{what} {text_word(name, _NAME)}" if name else what


def _flow(flow: Traffic) -> list[tuple[str, str]]:
    deliveries = flow.deliveries
    volume = deliveries.volume
    rate = volume.rate(volume.messages)
    outcomes = ", ".join(f"{number} {name}" for name, number in sorted(deliveries.outcomes.items()))
    return [
        ("", _named(flow.what, flow.name)),
        ("", str(volume.messages)),
        ("", outcomes),
        ("", str(flow.granted or "")),
        ("note" if deliveries.left else "", _unsettled(deliveries)),
        ("note" if deliveries.redelivered else "", str(deliveries.redelivered or "")),
        ("", str(volume.sizes.quantile(0.5))),
        ("", str(volume.sizes.largest)),
        ("", "" if rate is None else f"{rate:.3g}" if rate < 100 else f"{rate:.0f}"),
    ]


def _unsettled(deliveries: Deliveries) -> str:
    """How many were never settled; `+` where there may be more."""
    return f"{deliveries.left or ''}{'+' if deliveries.not_followed else ''}"


def _wait(waited: Waited) -> list[tuple[str, str]]:
    wait = waited.wait
    return [
        ("", _named(waited.what, waited.name)),
        ("", f"{wait.total / 1e9:.3f}"),
        ("", f"{wait.longest / 1e9:.3f}"),
        ("", str(wait.longest_packet or "")),
    ]


def _answer(answered: Answered) -> list[tuple[str, str]]:
    latency = answered.latency
    times = [latency.percentile(part) for part in (0.5, 0.95, 0.99)]
    return [
        ("", _named(answered.what, answered.name)),
        ("", str(latency.count)),
        *(("", f"{time:.6f}") for time in (*times, latency.largest / 1e9)),
        ("dim", f"{latency.from_packet}-{latency.to_packet}"),
    ]


def _silences(known: ConnectionOverview) -> list[Line]:
    """The longest silence of each peer, and what it has to keep to."""
    words = []
    for peer in (CLIENT, SERVER):
        silence = known.of(peer)
        if silence.longest >= _SILENT:
            limit = f" (limit {silence.limit / 1e9:g} s)" if silence.limit else ""
            words.append(f"{peer} {silence.longest / 1e9:.3f} s after packet {silence.longest_packet}{limit}")
    return [[("", f"{_INDENT}longest silence: {', '.join(words)}")]] if words else []


def _round_trip(analysis: ConnectionAnalysis, known: ConnectionOverview) -> list[Line]:
    client = max(int(analysis.connection.client), 0)
    facts = {CLIENT: analysis.tcp.facts(client), SERVER: analysis.tcp.facts(1 - client)}
    times = round_trip(facts, known)
    words = []
    if times[SERVER] is not None:
        words.append(f"server {times[SERVER] / 1e6:.3f} ms")
    if times[CLIENT] is not None:
        words.append(f"client at most {times[CLIENT] / 1e6:.3f} ms")
    return [[("", f"{_INDENT}TCP round trip from here: {', '.join(words)}")]] if words else []

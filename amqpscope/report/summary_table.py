"""The connections of a capture as a table: who, what goes where, what was found, how each ended.

conn  client             traffic   amqp   findings  packet  ended
  62  till (Pika 1.4.4)  → crates  0-9-1  4 errors    3251  server closed: 505:unexpected-frame, packet 3266
"""

from typing import Any, Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER
from amqpscope.protocols import PROTOCOLS
from amqpscope.report.connection_summary import ConnectionOverview, ErrorSummary
from amqpscope.report.diagnosis_text import is_trouble, worst_first
from amqpscope.report.finding_counts import STYLES, FindingCounts, kind, urgency
from amqpscope.report.line import Line
from amqpscope.report.printable import cut, printable
from amqpscope.report.summary import tcp_end
from amqpscope.report.table import TableColumn, table
from amqpscope.report.value_text import text_word
from amqpscope.report.who import short_name, who
from amqpscope.rules.profiles import weight
from dissectors.wording import count

__all__ = ["FINE", "ConnectionFindings", "SummaryRow", "table_lines"]

FINE: Final = 9
"""The rank of a connection with which nothing went wrong."""

_COLUMNS = (
    TableColumn("conn", right=True),
    TableColumn("client", least=14),
    TableColumn("traffic", least=10, optional=True),
    TableColumn("amqp", optional=True),
    TableColumn("findings"),
    TableColumn("packet", right=True),
    TableColumn("ended", least=16),
)

_NAME = 24
_NAMES = 3
"""Addresses that the table names."""

_BAD_ENDS = ("close", "end", "detach", "connection.close", "channel.close")
"""Frames that end something, with an error if all is not well. The outcome of a message may be an error, too:
that is between applications."""

_CONNECTION_ENDS = ("close", "connection.close")


class ConnectionFindings:
    """The findings of one connection: how many, and the most urgent."""

    def __init__(self) -> None:
        self.counts = FindingCounts()
        self.worst: Finding | None = None

    def add(self, finding: Finding) -> None:
        """One more finding."""
        self.counts.add(finding)
        if self.worst is None or urgency(finding) < urgency(self.worst):
            self.worst = finding

    @property
    def short(self) -> tuple[str, str]:
        """The style and the words for a table: what is certain, else what is possible; notes are left out."""
        numbers = self.counts.counts
        possible = numbers.get("possible error", 0) + numbers.get("possible warning", 0)
        for word, style in (("error", "problem"), ("warning", "note")):
            if numbers.get(word):
                return style, count(numbers[word], word)
        return "dim", f"{possible} possible" if possible else ""

    def lines(self, file: str) -> list[Line]:
        """What was found, and the next command. file: as a command names the capture, "" if none can."""
        worst = self.worst
        if worst is None or weight(worst) == "note":
            return []
        several = sum(self.counts.counts.values()) > 1
        lines: list[Line] = [
            [
                ("", f"  {self.counts.text()}, look first at " if several else "  "),
                (STYLES[weight(worst)], f"{kind(worst)} {worst.rule}"),
                ("", f" by the {worst.peer} in packet {worst.packet}"),
            ]
        ]
        if file:
            lines.append([("key", "  next: "), ("", f"amqpscope why {file} {worst.packet}")])
        return lines


class SummaryRow:
    """One connection. order: how many began before it. rank: how bad it is, `FINE` if it is not.

    ended: how it ended, in words; ended_badly: whether that shows that something went wrong. error: the error
    that ended it or a part of it, None if no frame has one.
    """

    def __init__(
        self,
        analysis: ConnectionAnalysis,
        known: ConnectionOverview | None,
        findings: ConnectionFindings,
        diagnoses: list[Diagnosis],
    ) -> None:
        connection = analysis.connection
        self.order = int(analysis.order)
        self.findings = findings
        self.stream = int(connection.stream)
        self.client = who(connection, CLIENT) or short_name(connection, CLIENT)
        protocol = PROTOCOLS.get(connection.protocol)
        self.version = "" if protocol is None else protocol.version
        self.traffic = "" if known is None else _traffic(known)
        # The code and the packet of the worst diagnosis that is trouble.
        worst = next((one for one in worst_first(diagnoses) if is_trouble(one)), None)
        self._trouble = None if worst is None else (worst.code, int(worst.packet))
        self.error = None if known is None else _error(known)
        self.ended, self.ended_badly = _ended(analysis, known, self.error, diagnoses)

    @property
    def rank(self) -> int:
        """How bad it is: findings that are certain errors come first, then how it ended, then warnings."""
        numbers = self.findings.counts.counts
        if numbers.get("error"):
            return 0
        if self.ended_badly:
            return 1
        return 2 if numbers.get("warning") or self._trouble else FINE

    def _found(self) -> tuple[str, str]:
        """What was found; of a connection without findings, its worst diagnosis."""
        style, text = self.findings.short
        if text or self._trouble is None:
            return style, text
        return "note", self._trouble[0].removeprefix("diag/")

    def _packet(self) -> int:
        """The packet to look at first: that of the worst finding, else of the worst diagnosis; 0 for none."""
        worst = self.findings.worst
        if worst is not None and weight(worst) != "note" and (worst.certain or self._trouble is None):
            return int(worst.packet)
        return 0 if self._trouble is None else self._trouble[1]

    def dump(self) -> tuple[object, ...]:
        """What the table shows of it, as plain values, without its findings."""
        shown = (self.order, self.stream, self.client, self.version, self.traffic)
        return (*shown, self._trouble, self.ended, self.ended_badly)

    @staticmethod
    def load(state: tuple[Any, ...], findings: ConnectionFindings) -> "SummaryRow":
        """The object of what `dump` returned, with these findings. It has no `error`."""
        row = SummaryRow.__new__(SummaryRow)
        row.findings, row.error = findings, None
        row.order, row.stream, row.client, row.version, row.traffic, *rest = state
        row._trouble, row.ended, row.ended_badly = rest
        return row

    def cells(self) -> list[tuple[str, str]]:
        """The texts of the row with their styles."""
        return [
            ("", str(self.stream)),
            ("client", self.client),
            ("", self.traffic),
            ("dim", self.version),
            self._found(),
            ("", str(self._packet() or "")),
            ("error" if self.ended_badly else "", self.ended),
        ]


def table_lines(rows: list[SummaryRow], width: int | None) -> list[Line]:
    """The table, the worst connection first. width: columns of the output, None for any."""
    ordered = sorted(rows, key=lambda row: (row.rank, row.order))
    return table(_COLUMNS, [row.cells() for row in ordered], width)


def _traffic(known: ConnectionOverview) -> str:
    """`→ coins  ← orders`: where the client sends messages, and from where it takes them."""
    targets = dict(known.targets)
    sources = dict(known.sources)
    for link in known.links.values():
        by_client = link.link.sender == CLIENT
        address = link.target if by_client else link.source
        (targets if by_client else sources)[address or link.link.name] = None
    words = [
        f"{way} {', '.join(text_word(name, _NAME) for name in list(names)[:_NAMES])}"
        + (f" +{len(names) - _NAMES}" if len(names) > _NAMES else "")
        for way, names in (("→", targets), ("←", sources))
        if names
    ]
    return "  ".join(words)


def _error(known: ConnectionOverview) -> ErrorSummary | None:
    """The first error with which a connection was closed, else a part of it; None if there is none."""
    failed = [error for error in known.errors.values() if error.what in _BAD_ENDS]
    return min(failed, key=lambda error: error.what not in _CONNECTION_ENDS, default=None)


def _ended(
    analysis: ConnectionAnalysis,
    known: ConnectionOverview | None,
    error: ErrorSummary | None,
    diagnoses: list[Diagnosis],
) -> tuple[str, bool]:
    """How a connection ended, and whether that shows that something went wrong."""
    client = max(int(analysis.connection.client), 0)
    ends = {CLIENT: tcp_end(analysis, client), SERVER: tcp_end(analysis, 1 - client)}
    over = _first_to_end(analysis)
    if known is None:
        if diagnoses:
            return printable(diagnoses[0].message), True
        return ends[over] if over else "still open", False
    if known.sasl_outcome not in ("", "ok"):
        outcome = known.sasl_outcome
        return "login refused" + ("" if outcome == "refused" else f": {printable(outcome)}"), True
    closed = [(one.closed, peer) for peer, one in known.peers if one.closed]
    if error is not None:
        condition = cut(printable(error.condition or "an error"), 60)
        what = "closed" if error.what in _CONNECTION_ENDS else f"sent {error.what}"
        return f"{error.peer} {what}: {condition}, packet {error.packet}", True
    if closed:
        return f"{min(closed)[1]} closed", False
    if not over:
        return "still open", False
    side = analysis.first if analysis.connection.peer(0) == over else analysis.second
    return f"{over} sent {ends[over]}, no close, packet {side.end_packet}", True


def _first_to_end(analysis: ConnectionAnalysis) -> str:
    """The peer whose stream ended first, by FIN or RST; "" if neither did before the capture."""
    sides = ((0, analysis.first), (1, analysis.second))
    over = [(side.end_time, place) for place, side in sides if analysis.tcp.facts(place).ended]
    return analysis.connection.peer(min(over)[1]) if over else ""

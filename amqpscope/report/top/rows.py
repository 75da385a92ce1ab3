"""A connection as the full-screen view has it: one row, what is remembered of it, and the orders of rows."""

from collections.abc import Callable
from typing import Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, Connection
from amqpscope.report.findings import message_of
from amqpscope.report.printable import printable
from amqpscope.report.top.frame_history import FrameHistory
from amqpscope.report.top.health import DOUBT, HealthIssue
from amqpscope.report.top.last_snapshot import LastSnapshot
from amqpscope.report.top.traffic import LiveTraffic
from amqpscope.report.verdict import answer
from amqpscope.report.who import who
from amqpscope.rules.profiles import weight

__all__ = ["SORTS", "FaultCounts", "ReportedFinding", "Row", "fits"]

MAX_FINDINGS_OF_ONE: Final = 50
"""Findings of one connection that can be looked at."""


class ReportedFinding:
    """A finding as it is shown: without the frames around it.

    reaction: what the other peer did about it, "" as long as nothing is known of that.
    """

    def __init__(self, finding: Finding, row: "Row") -> None:
        self.row = row
        self.time = int(finding.time)
        self.packet = int(finding.packet)
        self.rule = finding.rule
        self.weight = weight(finding)
        self.certain = finding.certain
        self.peer = finding.peer
        self.message = printable(message_of(finding))
        self.reaction = answer(finding) if finding.reaction.frame else ""

    def settle(self, finding: Finding) -> None:
        """Nothing more is awaited about it."""
        self.weight = weight(finding)
        self.reaction = answer(finding)


class FaultCounts:
    """How many findings there are, of a connection or of all, and the rule that was broken last."""

    __slots__ = ("errors", "last_error", "last_possible", "last_warning", "notes", "possible", "warnings")

    def __init__(self) -> None:
        # Certain errors.
        self.errors = 0
        # The rule of the last of them.
        self.last_error = ""
        # Certain warnings.
        self.warnings = 0
        # The rule of the last of them.
        self.last_warning = ""
        # Errors and warnings that are only possible.
        self.possible = 0
        # The rule of the last of them.
        self.last_possible = ""
        # Notes.
        self.notes = 0

    def count(self, reported: ReportedFinding, by: int) -> None:
        """Count a finding, or with -1 take it back."""
        if reported.weight == "note":
            self.notes += by
        elif not reported.certain:
            self.possible += by
            self.last_possible = reported.rule
        elif reported.weight == "error":
            self.errors += by
            self.last_error = reported.rule
        else:
            self.warnings += by
            self.last_warning = reported.rule

    @property
    def wrong(self) -> int:
        """Findings that are more than notes."""
        return self.errors + self.warnings + self.possible


class Row:
    """A connection. There may be thousands, so what most of them never have takes no room."""

    __slots__ = (
        "analysis",
        "changed",
        "connection",
        "faults",
        "health_issues",
        "history",
        "last",
        "name",
        "named",
        "over_since",
        "rank",
        "reported",
        "traffic",
    )

    def __init__(self, connection: Connection, now: int) -> None:
        self.connection = connection
        # None when the connection is over.
        self.analysis: ConnectionAnalysis | None = None
        self.last = LastSnapshot()
        self.traffic = LiveTraffic()
        self.history = FrameHistory()
        # What is shown of its id; and that this is final, since its client is known.
        self.name = printable(connection.id)
        self.named = False
        # When (ns) the number of its frames changed last.
        self.changed = now
        # Since when (ns) it is over, 0 if it is not.
        self.over_since = 0
        self.faults = FaultCounts()
        # Its last findings.
        self.reported: list[ReportedFinding] = []
        # What hurts on it, the worst first, and the rank of that, 0 if nothing does.
        self.health_issues: list[HealthIssue] = []
        self.rank = 0

    def hear(self, reported: ReportedFinding) -> None:
        """A finding."""
        self.reported.append(reported)
        if len(self.reported) > MAX_FINDINGS_OF_ONE:
            del self.reported[0]

    def end(self, now: int) -> None:
        """The connection is over."""
        self.over_since = now
        self.traffic.end(int(self.connection.frames))
        self.name = printable(self.connection.id)
        self.analysis = None

    @property
    def snapshot_due(self) -> bool:
        """Whether frames came since the last snapshot."""
        return self.last.frames != self.traffic.frames

    @property
    def who(self) -> str:
        """What the client calls itself, "" as long as it has not said so."""
        return who(self.connection, CLIENT)

    @property
    def state(self) -> str:
        """In a word: that of both ends, or of the one that has got less far; or that it is over."""
        if self.over_since:
            return "over"
        snapshot = self.last.snapshot
        if snapshot is None:
            return "new"
        client, server = snapshot.client, snapshot.server
        return (client.state if client.last_time <= server.last_time else server.state).lower()

    def rate(self, number: int, name: str, sender: str) -> float:
        """How many deliveries a second there are now on a link or channel, see `LastSnapshot.rate`."""
        return self.last.rate(number, name, sender) if self.traffic.frame_rate else 0.0

    @property
    def began(self) -> int:
        """When its first frame came."""
        return int(self.connection.began)


def _by_health(row: Row) -> tuple[object, ...]:
    # What stands still now comes before the errors of a connection that is over. By the magnitude only, so
    # that rows do not change places every second.
    return (
        -(min(row.rank, DOUBT) if row.over_since else row.rank),
        -row.faults.errors,
        row.over_since > 0,
        -len(row.health_issues),
        -row.last.unsettled.bit_length(),
        -int(row.traffic.frame_rate).bit_length(),
        row.began,
    )


def _by_rate(row: Row) -> tuple[object, ...]:
    return (-row.traffic.frame_rate, row.began)


def _by_unsettled(row: Row) -> tuple[object, ...]:
    return (-row.last.unsettled, row.began)


def _by_age(row: Row) -> tuple[object, ...]:
    return (-row.began, row.name)


def _by_name(row: Row) -> tuple[object, ...]:
    return (row.name, row.began)


SORTS: Final[dict[str, Callable[[Row], tuple[object, ...]]]] = {
    "what hurts": _by_health,
    "frames/s": _by_rate,
    "unsettled": _by_unsettled,
    "newest": _by_age,
    "name": _by_name,
}


def fits(row: Row, wanted: str) -> bool:
    """Whether a filter, in small letters, is found in what a row says of itself."""
    if any(wanted in text.lower() for text in (row.name, row.who, row.connection.protocol, row.state)):
        return True
    if any(wanted in issue.text.lower() for issue in row.health_issues) or any(
        wanted in one.rule.lower() for one in row.reported
    ):
        return True
    snapshot = row.last.snapshot
    if snapshot is None:
        return False
    for end in (snapshot.client, snapshot.server):
        if any(wanted in text.lower() for text in end.said.values()):
            return True
    for session in snapshot.sessions:
        for link in session.links:
            if wanted in link.name.lower() or wanted in link.source.lower() or wanted in link.target.lower():
                return True
    for channel in snapshot.channels:
        for consumer in channel.consumers:
            if wanted in consumer.tag.lower() or wanted in consumer.queue.lower():
                return True
    return False

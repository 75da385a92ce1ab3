"""A connection as the full-screen view has it: one row, what is remembered of it, and the orders of rows."""

from collections.abc import Callable
from typing import Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.report.findings import message_of
from amqpscope.report.line import Line
from amqpscope.report.printable import printable
from amqpscope.report.timeline import Timeline
from amqpscope.report.top.health import HealthIssue
from amqpscope.report.verdict import answer
from amqpscope.rules.profiles import weight
from amqpscope.tracking.amqp10.identity import Link
from amqpscope.tracking.snapshot import ConnectionSnapshot

__all__ = ["MAX_LINES", "MAX_LINES_OF_OTHERS", "SORTS", "ReportedFinding", "Row", "Which", "fits"]

Which = tuple[int, str, str]
"""A link, by its session, name and sender; or a channel, and who publishes or delivers."""

MAX_FINDINGS_OF_ONE: Final = 50
"""Findings of one connection that can be looked at."""

MAX_LINES: Final = 500
"""Lines of the timeline of the connection that is looked at."""

MAX_LINES_OF_OTHERS: Final = 40
"""And of any other: enough to see how it came to what it is when it is picked."""

_RECENT = 30
"""Frames of such a one between two updates of which lines are made."""

_TREND = 30
"""Seconds of which a row knows how many frames each had."""


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
    """A connection. There may be thousands, so what most of them never have takes no room.

    analysis: None when it is over. snapshot: the last, None if there was none. trend: how many frames each of
    the last seconds had. timeline: the last of so many `written` lines. recent: the last records since lines
    were made of them, and how many `came`. counts, rates: deliveries, and how many a second.
    """

    __slots__ = (
        "_frames",
        "_octets",
        "_ticked",
        "analysis",
        "came",
        "changed",
        "connection",
        "counts",
        "faults",
        "frame_rate",
        "frames",
        "health_issues",
        "looked_at",
        "name",
        "named",
        "octet_rate",
        "octets",
        "over_since",
        "rank",
        "rates",
        "recent",
        "reported",
        "snapshot",
        "snapshot_frames",
        "snapshot_time",
        "timeline",
        "trend",
        "unsettled",
        "writer",
        "written",
    )

    def __init__(self, connection: Connection, now: int) -> None:
        self.connection = connection
        self.analysis: ConnectionAnalysis | None = None
        self.snapshot: ConnectionSnapshot | None = None
        self.health_issues: list[HealthIssue] = []
        self.name = printable(connection.id)
        self.named = False
        self.frames = 0
        self.octets = 0
        self._frames = 0
        self._octets = 0
        self._ticked = 0
        self.frame_rate = 0.0
        self.octet_rate = 0.0
        self.trend: list[int] = []
        self.changed = now
        self.over_since = 0
        self.faults = FaultCounts()
        self.reported: list[ReportedFinding] = []
        self.timeline: list[Line] = []
        self.written = 0
        self.unsettled = 0
        self.rank = 0
        self.looked_at = False
        self.recent: list[tuple[FrameRecord, Link | None]] = []
        self.came = 0
        # At how many frames, and when, the snapshot was made.
        self.snapshot_frames = -1
        self.snapshot_time = 0
        self.counts: dict[Which, int] = {}
        self.rates: dict[Which, float] = {}
        self.writer: Timeline | None = None

    def saw(self, record: FrameRecord, link: Link | None) -> None:
        """One more frame, of this link."""
        recent = self.recent
        recent.append((record, link))
        self.came += 1
        if len(recent) >= 2 * _RECENT and (not self.looked_at or len(recent) >= 2 * MAX_LINES):
            del recent[: len(recent) // 2]

    def hear(self, reported: ReportedFinding) -> None:
        """A finding."""
        self.reported.append(reported)
        if len(self.reported) > MAX_FINDINGS_OF_ONE:
            del self.reported[0]

    def measure(self, passed: float) -> None:
        """So many seconds have passed since it was last measured."""
        self.frame_rate = (self.frames - self._frames) / passed
        self.octet_rate = max(self.octets - self._octets, 0) / passed
        self._frames = self.frames
        self._octets = self.octets

    def tick(self) -> None:
        """A second has passed."""
        self.trend.append(self.frames - self._ticked)
        if len(self.trend) > _TREND:
            del self.trend[0]
        self._ticked = self.frames

    def end(self, now: int) -> None:
        """The connection is over."""
        self.over_since = now
        self.frames = max(self.frames, int(self.connection.frames))
        self.name = printable(self.connection.id)
        self.analysis = None
        self.frame_rate = self.octet_rate = 0.0

    def write(self, line: Line) -> None:
        """One more line of its timeline."""
        self.timeline.append(line)
        self.written += 1

    def trim(self) -> None:
        """Let go of its oldest lines."""
        excess = len(self.timeline) - (MAX_LINES if self.looked_at else MAX_LINES_OF_OTHERS)
        if excess > 0:
            del self.timeline[:excess]

    def most_recent(self) -> int:
        """Of how many of the frames that came lines are worth to be made."""
        return min(len(self.recent), MAX_LINES if self.looked_at else _RECENT)

    @property
    def state(self) -> str:
        """In a word: that of both ends, or of the one that has got less far; or that it is over."""
        if self.over_since:
            return "over"
        if self.snapshot is None:
            return ""
        client, server = self.snapshot.client, self.snapshot.server
        return (client.state if client.last_time <= server.last_time else server.state).lower()

    def rate(self, which: Which) -> float:
        """How many deliveries a second there are on a link or channel."""
        return self.rates.get(which, 0.0) if self.frame_rate else 0.0

    @property
    def began(self) -> int:
        """When its first frame came."""
        return int(self.connection.began)


def _by_health(row: Row) -> tuple[object, ...]:
    # By the magnitude only, so that rows do not change places every second.
    return (
        -row.rank,
        -row.faults.errors,
        row.over_since > 0,
        -len(row.health_issues),
        -row.unsettled.bit_length(),
        -int(row.frame_rate).bit_length(),
        row.began,
    )


def _by_rate(row: Row) -> tuple[object, ...]:
    return (-row.frame_rate, row.began)


def _by_unsettled(row: Row) -> tuple[object, ...]:
    return (-row.unsettled, row.began)


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
    if any(wanted in text.lower() for text in (row.name, row.connection.protocol, row.state)):
        return True
    if any(wanted in issue.text.lower() for issue in row.health_issues) or any(
        wanted in one.rule.lower() for one in row.reported
    ):
        return True
    snapshot = row.snapshot
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

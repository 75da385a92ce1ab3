"""What the full-screen view shows: a row a connection, its portrait, its last frames, the last findings.

Theory of operation. Records and findings come as they are made (`saw`, `found`); of the records only the
last few of each connection are kept until the next `update`, which turns them into lines and lets them go: a
record lies in the buffer it was read from. `update` comes about once a second with all connections that are
open. A portrait is made anew only where frames came since the last one, and as many as there is time for:
first of those that are looked at, then of the others in turn. A connection that is over stays for a while,
longer if something was wrong with it.

All of it is bounded; the bounds are those of this screen and stand here.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final

from amqpscope.analysis import ConnectionAnalysis
from amqpscope.finding import Finding
from amqpscope.model import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.report.findings import message_of
from amqpscope.report.line import Line
from amqpscope.report.links import LinkNames, LinkOf
from amqpscope.report.printable import printable
from amqpscope.report.timeline import Clock, Timeline
from amqpscope.report.top.pains import BLOCKED, DOUBT, FAULT, OVERDUE, Pain, pains
from amqpscope.report.verdict import answer
from amqpscope.rules.profiles import weight
from amqpscope.tracking.portrait import ConnectionPortrait

__all__ = ["SORTS", "Row", "Told", "TopModel"]

Which = tuple[int, str, str]
"""A link, by its session, name and sender; or a channel, and who publishes or delivers."""

_SECOND = 1_000_000_000

MAX_FINDINGS: Final = 1000
"""Findings that can be looked at; the counts are of all."""

MAX_FINDINGS_OF_ONE: Final = 50
"""Of them, of one connection."""

MAX_LINES: Final = 500
"""Lines of the timeline of the connection that is looked at."""

MAX_LINES_OF_OTHERS: Final = 40
"""And of any other: enough to see how it came to what it is when it is picked."""

_RECENT = 30
"""Frames of such a one between two updates of which lines are made."""

MAX_LINES_OF_ALL: Final = 20_000
"""Lines of all connections, some 10 MiB. Beyond it those of the ones that were silent longest go."""

MAX_LINES_MADE: Final = 400
"""Lines made in one update, besides those of the connection that is looked at: some 20 milliseconds."""

PORTRAIT_SECONDS: Final = 0.05
"""What the portraits of one update may take: one takes some 30 microseconds, or some milliseconds where
thousands of frames are under way, and packets wait meanwhile. There is one at least."""

MAX_OVER: Final = 500
"""Connections that are over and still shown."""

_KEPT_OVER = 15 * _SECOND
_KEPT_WITH_FINDINGS = 600 * _SECOND

_MEASURED = _SECOND // 5
"""Rates are not told anew for less time than this."""

_TREND = 30
"""Seconds of which a row knows how many frames each had."""


class Told:
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
        self.reaction = answer(finding) if finding.reaction else ""

    def settle(self, finding: Finding) -> None:
        """Nothing more is awaited about it."""
        self.weight = weight(finding)
        self.reaction = answer(finding)


class Row:
    """A connection. analysis: None when it is over. portrait: the last, None if there was none."""

    def __init__(self, connection: Connection, now: int) -> None:
        self.connection = connection
        self.analysis: ConnectionAnalysis | None = None
        self.portrait: ConnectionPortrait | None = None
        self.pains: list[Pain] = []
        self.name = printable(connection.id)
        self.named = False
        self.frames = 0
        self.octets = 0
        self._frames = 0
        self._octets = 0
        self._ticked = 0
        self.frame_rate = 0.0
        self.octet_rate = 0.0
        self.trend: deque[int] = deque(maxlen=_TREND)
        self.changed = now
        self.over_since = 0
        self.errors = 0
        self.warnings = 0
        self.possible = 0
        # The rules broken last.
        self.last_error = ""
        self.last_warning = ""
        self.last_possible = ""
        self.told: deque[Told] = deque(maxlen=MAX_FINDINGS_OF_ONE)
        # written: how many lines there were so far, the last of which `timeline` has.
        self.timeline: deque[Line] = deque(maxlen=MAX_LINES)
        self.written = 0
        self.unsettled = 0
        self.rank = 0
        # Since the last update: the last records, and how many there were.
        self.recent: deque[tuple[FrameRecord, LinkOf | None]] = deque(maxlen=_RECENT)
        self.came = 0
        self.portrayed = -1
        self.portrayed_at = 0
        # How many deliveries there were on each link or channel, and how many a second.
        self.counts: dict[Which, int] = {}
        self.rates: dict[Which, float] = {}
        self.writer: Timeline | None = None

    def measure(self, passed: float) -> None:
        """So many seconds have passed since it was last measured."""
        new = self.frames - self._frames
        self.frame_rate = new / passed
        self.octet_rate = max(self.octets - self._octets, 0) / passed
        self._frames = self.frames
        self._octets = self.octets

    def tick(self) -> None:
        """A second has passed."""
        self.trend.append(self.frames - self._ticked)
        self._ticked = self.frames

    def write(self, line: Line) -> None:
        """One more line of its timeline."""
        self.timeline.append(line)
        self.written += 1

    @property
    def state(self) -> str:
        """In a word: that of the client's end, unless it is over."""
        if self.over_since:
            return "over"
        if self.portrait is None:
            return ""
        client, server = self.portrait.client.state, self.portrait.server.state
        if client == server:
            return client.lower()
        # The end that has got less far says where it hangs.
        return (
            client if self.portrait.client.last_time <= self.portrait.server.last_time else server
        ).lower()

    def rate(self, which: Which) -> float:
        """How many deliveries a second there are on a link or channel."""
        return self.rates.get(which, 0.0) if self.frame_rate else 0.0

    @property
    def began(self) -> int:
        """When its first frame came."""
        return int(self.connection.began)

    @property
    def wrong(self) -> int:
        """Findings that are more than notes."""
        return self.errors + self.warnings + self.possible


def _by_pain(row: Row) -> tuple[object, ...]:
    # By the magnitude only, so that rows do not change places every second.
    return (
        -row.rank,
        -row.errors,
        row.over_since > 0,
        -len(row.pains),
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
    "what hurts": _by_pain,
    "frames/s": _by_rate,
    "unsettled": _by_unsettled,
    "newest": _by_age,
    "name": _by_name,
}


class TopModel:
    """All rows, and what is told of the whole capture.

    names: has been asked, or will be here, for the link of every record. packets, dropped: of the capture so
    far. open, over: connections with AMQP. others: connections without.
    """

    def __init__(self, names: LinkNames | None = None) -> None:
        self.names = LinkNames() if names is None else names
        self.rows: dict[Connection, Row] = {}
        self.told: deque[Told] = deque(maxlen=MAX_FINDINGS)
        self.began = 0
        self.now = 0
        self.measured = 0
        self._ticked = 0
        self.packets = 0
        self.dropped = 0
        self.packet_rate = 0.0
        self.octet_rate = 0.0
        self.frame_rate = 0.0
        self.open = 0
        self.over = 0
        self.others = 0
        self.errors = 0
        self.warnings = 0
        self.possible = 0
        self.notes = 0
        self._lines = 0
        # Findings whose reaction may come, by their identity.
        self._awaited: dict[int, tuple[Finding, Told]] = {}

    # What comes

    def saw(self, records: Iterable[FrameRecord]) -> None:
        """Frames, in the order of the analysis."""
        of = self.names.of
        rows = self.rows
        for record in records:
            link = of(record)
            row = rows.get(record.connection)
            if row is None:
                row = self._row(record.connection)
            row.recent.append((record, link))
            row.came += 1

    def found(self, findings: Iterable[Finding]) -> None:
        """Findings, each once."""
        for finding in findings:
            row = self.rows.get(finding.connection)
            if row is None:
                row = self._row(finding.connection)
            told = Told(finding, row)
            self._count(told, 1)
            row.told.append(told)
            self.told.append(told)
            if not told.reaction:
                self._awaited[id(finding)] = (finding, told)
                if len(self._awaited) > MAX_FINDINGS:
                    del self._awaited[next(iter(self._awaited))]

    def amended(self, findings: Iterable[Finding]) -> None:
        """Findings that were told before, to which the other peer has reacted now."""
        for finding in findings:
            _, told = self._awaited.pop(id(finding), (finding, None))
            if told is not None:
                self._count(told, -1)
                told.settle(finding)
                self._count(told, 1)

    def _count(self, told: Told, by: int) -> None:
        """Count a finding for its connection and for all, or take it back."""
        row = told.row
        if told.weight == "note":
            self.notes += by
        elif not told.certain:
            row.possible += by
            row.last_possible = told.rule
            self.possible += by
        elif told.weight == "error":
            row.errors += by
            row.last_error = told.rule
            self.errors += by
        else:
            row.warnings += by
            row.last_warning = told.rule
            self.warnings += by

    def update(
        self,
        now: int,
        analyses: Iterable[ConnectionAnalysis],
        packets: int,
        dropped: int,
        looked_at: list[Row],
    ) -> None:
        """Once a second or so: how things stand at `now` (ns), with all connections that are open.

        looked_at: rows that are on the screen, the picked one first.
        """
        if now < self.now:
            # The time before was that of a clock, and this is that of packets captured long ago.
            self.began = self.measured = self._ticked = 0
        passed = (now - self.measured) / _SECOND if self.measured else 1.0
        if not self.began:
            self.began = now
        self.now = now
        measure = not self.measured or now - self.measured >= _MEASURED
        if measure:
            self.measured = now
            self.packet_rate = max(packets - self.packets, 0) / passed
            self.packets = packets
        self.dropped = dropped
        self._end(self._measure(analyses, passed if measure else 0.0))
        self._portray(looked_at)
        self._write(looked_at[0] if looked_at else None)
        for row in self.rows.values():
            self._judge(row)

    def let_go(self) -> None:
        """Nothing is shown for now: of the frames since the last update only their number is kept."""
        for row in self.rows.values():
            row.recent.clear()

    def _row(self, connection: Connection) -> Row:
        row = Row(connection, self.now)
        self.rows[connection] = row
        return row

    def _measure(self, analyses: Iterable[ConnectionAnalysis], passed: float) -> set[Connection]:
        """How much came on each connection in so many seconds (0: too few to tell); which are open."""
        still: set[Connection] = set()
        self.others = 0
        for analysis in analyses:
            connection = analysis.connection
            row = self.rows.get(connection)
            if row is None:
                if not connection.frames:
                    self.others += 1
                    continue
                row = self._row(connection)
            if not row.named:
                row.name = printable(connection.id)
                row.named = connection.client >= 0
            if analysis.concluded:
                continue
            still.add(connection)
            row.analysis = analysis
            frames = int(connection.frames)
            if frames != row.frames:
                row.frames = frames
                row.changed = self.now
            row.octets = int(analysis.tcp.delivered())
            if passed:
                row.measure(passed)
        # Trends are of whole seconds.
        if self.now - self._ticked >= _SECOND - _MEASURED // 2:
            self._ticked = self.now
            for connection in still:
                self.rows[connection].tick()
        if passed:
            self.frame_rate = sum(row.frame_rate for row in self.rows.values())
            self.octet_rate = sum(row.octet_rate for row in self.rows.values())
        return still

    def _end(self, still: set[Connection]) -> None:
        """Connections that are over, and those that have been for so long that they go."""
        now = self.now
        gone: list[Row] = []
        over: list[Row] = []
        for connection, row in self.rows.items():
            if connection in still:
                continue
            if not row.over_since:
                row.over_since = now
                row.frames = max(row.frames, int(connection.frames))
                row.name = printable(connection.id)
                row.analysis = None
                row.frame_rate = row.octet_rate = 0.0
                self.over += 1
            if now - row.over_since > (_KEPT_WITH_FINDINGS if row.wrong else _KEPT_OVER):
                gone.append(row)
            else:
                over.append(row)
        if len(over) > MAX_OVER:
            over.sort(key=_worth_keeping)
            gone += over[: len(over) - MAX_OVER]
        for row in gone:
            self._forget(row)
        self.open = len(still)

    def _forget(self, row: Row) -> None:
        self._lines -= len(row.timeline)
        del self.rows[row.connection]
        self.names.forget(row.connection)

    def _portray(self, looked_at: list[Row]) -> None:
        """Portraits of those that changed: of the picked one, the others on the screen, then of all.

        If not all can be made, those that waited longest come first.
        """
        until = time.perf_counter() + PORTRAIT_SECONDS
        first = [row for row in looked_at[1:] if row.portrayed != row.frames]
        others = [row for row in self.rows.values() if row.analysis and row.portrayed != row.frames]
        first.sort(key=_last_portrayed)
        others.sort(key=_last_portrayed)
        for row in (*looked_at[:1], *first, *others):
            if self._portray_one(row) and time.perf_counter() > until:
                return

    def _portray_one(self, row: Row) -> bool:
        """Make a portrait if the last is not of this moment; whether one was made."""
        analysis = row.analysis
        if analysis is None or row.portrayed == row.frames or analysis.judge is None:
            return False
        row.portrait = analysis.judge.portrait()
        row.portrayed = row.frames
        row.unsettled = unsettled_of(row.portrait)
        counts = counts_of(row.portrait)
        passed = (self.now - row.portrayed_at) / _SECOND
        if row.portrayed_at and passed > 0:
            row.rates = {
                which: max(count - row.counts.get(which, 0), 0) / passed for which, count in counts.items()
            }
        row.counts = counts
        row.portrayed_at = self.now
        return True

    def _write(self, picked: Row | None) -> None:
        """Turn what came since the last time into lines, and let go of it."""
        left = MAX_LINES_MADE
        for row in self.rows.values():
            if not row.came:
                continue
            before = len(row.timeline)
            take = len(row.recent)
            if row is not picked:
                take = min(take, left)
                left -= take
            hidden = row.came - take
            if hidden:
                row.write([("dim", f"      … {hidden} frame{'s' if hidden > 1 else ''} …")])
            if take:
                self._write_row(row, take)
            most = MAX_LINES if row is picked else MAX_LINES_OF_OTHERS
            while len(row.timeline) > most and (row is not picked):
                row.timeline.popleft()
            self._lines += len(row.timeline) - before
            row.recent.clear()
            row.came = 0
        if picked is not None and picked.recent.maxlen != MAX_LINES:
            picked.recent = deque(maxlen=MAX_LINES)
        if self._lines > MAX_LINES_OF_ALL:
            for row in sorted(self.rows.values(), key=_last_changed):
                if row is not picked:
                    self._lines -= len(row.timeline)
                    row.timeline.clear()
                if self._lines <= MAX_LINES_OF_ALL // 2:
                    break

    def _write_row(self, row: Row, take: int) -> None:
        """The last `take` of its records as lines of a timeline."""
        writer = row.writer
        first = writer is None
        if writer is None:
            writer = row.writer = Timeline(Clock("a"), 0, self.names)
        records = list(row.recent)
        for record, link in records[len(records) - take :]:
            lines = writer.lines(record, link)
            if first:
                lines = lines[1:]  # which connection it is stands above it
                first = False
            for line, _ in lines:
                row.write(line)

    def _judge(self, row: Row) -> None:
        """What hurts on it now."""
        found: list[Pain] = []
        if row.portrait is not None and not row.over_since:
            found += pains(row.connection.protocol, row.portrait, self.now)
        for count, what, rule, rank in (
            (row.errors, "error", row.last_error, FAULT),
            (row.warnings, "warning", row.last_warning, DOUBT),
            (row.possible, "possible fault", row.last_possible, DOUBT),
        ):
            if count:
                name = rule.partition("/")[2]
                found.append(Pain(rank, f"{what} {name}" if count == 1 else f"{count} {what}s, last {name}"))
        found.sort(key=_negative_rank)
        row.pains = found
        row.rank = found[0].rank if found else 0

    # What is shown

    def sorted(self, sort: str, fits: str) -> list[Row]:
        """The rows that fit a filter, in one of the orders of `SORTS`."""
        rows = [row for row in self.rows.values() if not fits or _fits(row, fits)]
        rows.sort(key=SORTS[sort])
        return rows

    def hurting(self) -> tuple[int, int]:
        """How many open connections have something overdue, and something blocked."""
        overdue = blocked = 0
        for row in self.rows.values():
            if not row.over_since:
                ranks = {pain.rank for pain in row.pains}
                overdue += OVERDUE in ranks
                blocked += BLOCKED in ranks
        return overdue, blocked


def unsettled_of(portrait: ConnectionPortrait) -> int:
    """Deliveries (and publishes) of a connection that nobody has settled yet."""
    total = 0
    for session in portrait.sessions:
        for end in (session.client, session.server):
            if end is not None:
                total += end.unsettled
    for channel in portrait.channels:
        total += channel.unacknowledged + channel.unconfirmed
    return total


def counts_of(portrait: ConnectionPortrait) -> dict[Which, int]:
    """How many deliveries there were on each link so far, or deliveries and publishes on each channel."""
    counts: dict[Which, int] = {}
    for session in portrait.sessions:
        for link in session.links:
            counts[int(session.number), link.name, link.sender] = int(link.deliveries)
    for channel in portrait.channels:
        counts[int(channel.number), "", SERVER] = channel.deliveries
        counts[int(channel.number), "", CLIENT] = channel.published
    return counts


def _fits(row: Row, fits: str) -> bool:
    """Whether a filter, in small letters, is found in what a row says of itself."""
    if any(fits in text.lower() for text in (row.name, row.connection.protocol, row.state)):
        return True
    if any(fits in pain.text.lower() for pain in row.pains) or any(
        fits in one.rule.lower() for one in row.told
    ):
        return True
    portrait = row.portrait
    if portrait is None:
        return False
    for end in (portrait.client, portrait.server):
        if any(fits in text.lower() for text in end.said.values()):
            return True
    for session in portrait.sessions:
        for link in session.links:
            if fits in link.name.lower() or fits in link.source.lower() or fits in link.target.lower():
                return True
    for channel in portrait.channels:
        for consumer in channel.consumers:
            if fits in consumer.tag.lower() or fits in consumer.queue.lower():
                return True
    return False


def _worth_keeping(row: Row) -> tuple[object, ...]:
    return (row.wrong > 0, row.over_since)


def _last_portrayed(row: Row) -> int:
    return row.portrayed_at


def _last_changed(row: Row) -> int:
    return row.changed


def _negative_rank(pain: Pain) -> int:
    return -pain.rank

"""What the full-screen view shows: a row a connection, its snapshot, its last frames, the last findings.

Theory of operation. Records and findings come as they are made (`saw`, `found`); of the records only the
last few of each connection are kept until the next `update`, which turns them into lines and lets them go: a
record lies in the buffer it was read from. `update` comes about once a second with all connections that are
open. A snapshot is made anew only where frames came since the last one, and as many as there is time for:
first of those that are looked at, then of the others in turn. A connection that is over stays for a while,
longer if something was wrong with it.

All of it is bounded; the bounds are those of this screen and stand here.
"""

import time
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.report.diagnosis_text import worst_first
from amqpscope.report.links import LinkNames
from amqpscope.report.printable import printable
from amqpscope.report.top.health import BLOCKED, DOUBT, FAULT, OVERDUE, HealthIssue, health_issues
from amqpscope.report.top.rows import SORTS, FaultCounts, ReportedFinding, Row, fits

__all__ = ["TopModel"]

_SECOND = 1_000_000_000

MAX_FINDINGS: Final = 1000
"""Findings that can be looked at; the counts are of all."""

MAX_LINES_OF_ALL: Final = 20_000
"""Lines of all connections, some 10 MiB. Beyond it those of the ones that were silent longest go."""

MAX_LINES_MADE: Final = 400
"""Lines made in one update, besides those of the connection that is looked at: some 20 milliseconds."""

SNAPSHOT_SECONDS: Final = 0.05
"""What the snapshots of one update may take, besides that of the picked connection: one takes some 30
microseconds, or some milliseconds where thousands of frames are under way, and packets wait meanwhile. One is
made anyway."""

MAX_OVER: Final = 500
"""Connections that are over and still shown."""

_KEPT_OVER = 15 * _SECOND
_KEPT_WITH_FINDINGS = 600 * _SECOND

_MEASURED = _SECOND // 5
"""Rates are not updated for less time than this."""


class TopModel:
    """All rows, and what is shown about the whole capture.

    names: has been asked, or will be here, for the link of every record. packets, dropped: of the capture so
    far. open, over: connections with AMQP. others: connections without.
    """

    def __init__(self, names: LinkNames | None = None) -> None:
        self.names = LinkNames() if names is None else names
        self.rows: dict[Connection, Row] = {}
        self.reported: deque[ReportedFinding] = deque(maxlen=MAX_FINDINGS)
        self.began = 0
        self.now = 0
        self.measured = 0
        self._ticked = 0
        self.packets = 0
        self.dropped = 0
        self.octet_rate = 0.0
        self.frame_rate = 0.0
        self.open = 0
        self.over = 0
        self.others = 0
        self.faults = FaultCounts()
        # Open connections with something overdue, and blocked.
        self.overdue = 0
        self.blocked = 0
        self._lines = 0
        # Findings whose reaction may come, by their identity.
        self._awaited: dict[int, tuple[Finding, ReportedFinding]] = {}

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
            row.history.saw(record, link)

    def found(self, findings: Iterable[Finding]) -> None:
        """Findings, each once."""
        for finding in findings:
            row = self.rows.get(finding.connection)
            if row is None:
                row = self._row(finding.connection)
            reported = ReportedFinding(finding, row)
            self._count(reported, 1)
            row.hear(reported)
            self.reported.append(reported)
            if not reported.reaction:
                self._awaited[id(finding)] = (finding, reported)
                if len(self._awaited) > MAX_FINDINGS:
                    del self._awaited[next(iter(self._awaited))]

    def amended(self, findings: Iterable[Finding]) -> None:
        """Findings that were reported before, to which the other peer has reacted now."""
        for finding in findings:
            _, reported = self._awaited.pop(id(finding), (finding, None))
            if reported is not None:
                self._count(reported, -1)
                reported.settle(finding)
                self._count(reported, 1)

    def _count(self, reported: ReportedFinding, by: int) -> None:
        """Count a finding for its connection and for all, or take it back."""
        reported.row.faults.count(reported, by)
        self.faults.count(reported, by)

    def update(
        self,
        now: int,
        analyses: Iterable[ConnectionAnalysis],
        packets: int,
        dropped: int,
        looked_at: list[Row],
        lasting: Mapping[Connection, list[Diagnosis]],
    ) -> None:
        """Once a second or so: how things stand at `now` (ns), with all connections that are open.

        looked_at: rows that are on the screen, the picked one first. lasting: the waits that last.
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
            self.packets = packets
        self.dropped = dropped
        self._end(self._measure(analyses, passed if measure else 0.0))
        self._snapshot(looked_at)
        self._write(looked_at[0] if looked_at else None)
        self.overdue = self.blocked = 0
        for row in self.rows.values():
            self._judge(row, lasting.get(row.connection, []))

    def let_go(self) -> None:
        """Nothing is shown for now: of the frames since the last update only their number is kept."""
        for row in self.rows.values():
            row.history.drop_records()

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
                if analysis.concluded:
                    continue  # its row has been forgotten
                row = self._row(connection)
            if not row.named:
                row.name = printable(connection.id)
                row.named = connection.client >= 0
            if analysis.concluded:
                continue
            still.add(connection)
            row.analysis = analysis
            frames = int(connection.frames)
            traffic = row.traffic
            if frames != traffic.frames:
                traffic.frames = frames
                row.changed = self.now
            traffic.octets = int(analysis.tcp.delivered())
            if passed:
                traffic.measure(passed)
        # Trends are of whole seconds.
        if self.now - self._ticked >= _SECOND - _MEASURED // 2:
            self._ticked = self.now
            for connection in still:
                self.rows[connection].traffic.tick()
        if passed:
            self.frame_rate = sum(row.traffic.frame_rate for row in self.rows.values())
            self.octet_rate = sum(row.traffic.octet_rate for row in self.rows.values())
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
                row.end(now)
                self.over += 1
            if now - row.over_since > (_KEPT_WITH_FINDINGS if row.faults.wrong else _KEPT_OVER):
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
        self._lines -= len(row.history.lines)
        del self.rows[row.connection]
        self.names.forget(row.connection)

    def _snapshot(self, looked_at: list[Row]) -> None:
        """Snapshots of those that changed: of the picked one, the others on the screen, then of all.

        If not all can be made, those that waited longest come first.
        """
        if looked_at:
            self._snapshot_one(looked_at[0])
        until = time.perf_counter() + SNAPSHOT_SECONDS
        first = [row for row in looked_at[1:] if row.snapshot_due]
        others = [row for row in self.rows.values() if row.analysis and row.snapshot_due]
        first.sort(key=_last_snapshot)
        others.sort(key=_last_snapshot)
        for row in (*first, *others):
            if self._snapshot_one(row) and time.perf_counter() > until:
                return

    def _snapshot_one(self, row: Row) -> bool:
        """Make a snapshot if the last is not of this moment; whether one was made."""
        analysis = row.analysis
        if analysis is None or not row.snapshot_due or analysis.judge is None:
            return False
        row.last.take(analysis.judge.snapshot(), row.traffic.frames, self.now)
        return True

    def _write(self, picked: Row | None) -> None:
        """Turn what came since the last time into lines, and let go of it."""
        left = MAX_LINES_MADE
        for row in self.rows.values():
            history = row.history
            history.looked_at = row is picked
            if not history.waits:
                continue
            before = len(history.lines)
            if row is picked:
                history.write(self.names, None)
            else:
                left -= history.write(self.names, left)
            self._lines += len(history.lines) - before
        if self._lines > MAX_LINES_OF_ALL:
            for row in sorted(self.rows.values(), key=_last_changed):
                if row is not picked:
                    self._lines -= len(row.history.lines)
                    row.history.drop_lines()
                if self._lines <= MAX_LINES_OF_ALL // 2:
                    break

    def _judge(self, row: Row, lasting: list[Diagnosis]) -> None:
        """What hurts on it now. lasting: the waits that last on it."""
        found: list[HealthIssue] = []
        snapshot = row.last.snapshot
        if snapshot is not None and not row.over_since:
            found += health_issues(row.connection.protocol, snapshot, self.now)
        found += [HealthIssue(BLOCKED, printable(one.message)) for one in worst_first(lasting)]
        faults = row.faults
        for count, what, rule, rank in (
            (faults.errors, "error", faults.last_error, FAULT),
            (faults.warnings, "warning", faults.last_warning, DOUBT),
            (faults.possible, "possible fault", faults.last_possible, DOUBT),
        ):
            if count:
                name = rule.partition("/")[2]
                found.append(
                    HealthIssue(rank, f"{what} {name}" if count == 1 else f"{count} {what}s, last {name}")
                )
        found.sort(key=_negative_rank)
        if not row.over_since:
            self.overdue += any(issue.rank == OVERDUE for issue in found)
            self.blocked += any(issue.rank == BLOCKED for issue in found)
        row.health_issues = found
        row.rank = found[0].rank if found else 0

    # What is shown

    def sorted(self, sort: str, wanted: str) -> list[Row]:
        """The rows that fit a filter, in one of the orders of `SORTS`."""
        rows = [row for row in self.rows.values() if not wanted or fits(row, wanted)]
        rows.sort(key=SORTS[sort])
        return rows


def _worth_keeping(row: Row) -> tuple[object, ...]:
    return (row.faults.wrong > 0, row.over_since)


def _last_snapshot(row: Row) -> int:
    return row.last.time


def _last_changed(row: Row) -> int:
    return row.changed


def _negative_rank(issue: HealthIssue) -> int:
    return -issue.rank

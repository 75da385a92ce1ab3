"""Watching a capture while it is made: what a live source takes, judged as it comes.

    source = open_source(["lo"])
    with LiveWatch(source) as watch:
        while not watch.over:
            batch = watch.step(0.5)
            for finding in batch.found:
                print(finding.rule, finding.peer, finding.message)

`Capture` (in `amqpscope.input.capture`) reads a file as fast as it can; here the source says when there is
something. What is the same: the packets go the same way, so frames and findings are those that a file of
these packets gives. What is more: findings are given as soon as they are made, and again when the other
peer has reacted; peers that are silent for too long are reported while they are; packets that the capturing
machine lost are counted.

Time. Packets say what time it is. Between them it goes on by the machine's own clock: `now` is the newest
packet's time and what has passed since it was taken. So a pipe of old packets is as good as an interface.
"""

import time
from collections.abc import Mapping
from types import TracebackType

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.live.source import LiveSource
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.recorder import PacketRecorder
from amqpscope.diagnoses.capture import CaptureDiagnoses
from amqpscope.input.capture import CaptureOptions
from amqpscope.layers.secrets import Secrets
from amqpscope.limits import LIVE_TICK, MAX_DIAGNOSED, MAX_LOOKED_AT, MAX_OVERDUE
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.note import Note
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.rules.editions import following, known
from amqpscope.rules.overdue import Overdue
from amqpscope.rules.profiles import under, valid

__all__ = ["Batch", "LiveWatch"]


class Batch:
    """What one step of a watch has brought.

    records: the frames completed. found: findings, each once, as soon as they were made. amended: those found
    before to which the other peer has reacted; so their reaction, and sometimes their weight, is new.
    complete: findings about which nothing more is awaited, each once. overdue: peers that have begun to be
    silent for too long. diagnosed: diagnoses, each once, when what they are about is over: a wait, a
    connection or the run. notes: about the capture. events: what happened to the interfaces. remarks: what
    the source says of packets, by their numbers. ended: connections that are over. packets: how many came.
    dropped: how many were lost meanwhile.
    """

    def __init__(self) -> None:
        self.records: list[FrameRecord] = []
        self.found: list[Finding] = []
        self.amended: list[Finding] = []
        self.complete: list[Finding] = []
        self.overdue: list[Overdue] = []
        self.diagnosed: list[Diagnosis] = []
        self.lasting: list[Diagnosis] = []
        self.notes: list[Note] = []
        self.events: list[str] = []
        self.remarks: list[tuple[int, str]] = []
        self.ended: list[ConnectionAnalysis] = []
        self.packets = 0
        self.dropped = 0


class LiveWatch:
    """What a source brings, step by step.

    options: what is wanted of it; it always judges, and remembers no connection that is over. recorder: gets
    every packet. limits: the configured ones of diagnoses, None for no diagnoses. The source is closed with
    the watch.
    """

    def __init__(
        self,
        source: LiveSource,
        options: CaptureOptions | None = None,
        *,
        recorder: PacketRecorder | None = None,
        limits: Mapping[str, float] | None = None,
    ) -> None:
        options = options or CaptureOptions()
        self._profile = valid(options.profile)
        self._spec = known(options.spec)
        self.source = source
        output = AnalysisOutput(records=options.records, judge=True, context=options.context, live=True)
        output.dialect = options.dialect
        output.secrets = Secrets(options.secrets)
        # What watches for diagnoses, and how many of each open connection were given.
        self._watches = None if limits is None else CaptureDiagnoses(limits)
        self._diagnosed: dict[Connection, int] = {}
        # The waits that last, by open connection; those that were given; which connection is looked at next.
        self.lasting: dict[Connection, list[Diagnosis]] = {}
        self._begun: dict[Connection, set[tuple[str, str, int]]] = {}
        self._turn = 0
        output.watch = self._watches
        kept = KeptConnections(every=False, ended=True, few_others=False)
        self.table = ConnectionTable(source.name, output, kept)
        self._decoder = PacketDecoder(self.table)
        self._decoder.recorder = recorder
        self.packets = 0
        self.dropped = 0
        # Of them those without a note, and when the last note was.
        self._lost = 0
        self._lost_reported = 0
        self.over = False
        # The time (ns) of the newest packet.
        self.newest = 0
        self._newest_at = time.monotonic_ns()
        self._ticked = 0
        # Who was reported to be silent, and since when.
        self._silent: dict[tuple[int, str], int] = {}

    @property
    def now(self) -> int:
        """The time (ns since 1970) by the clock of the packets; 0 before the first."""
        if not self.newest:
            return 0
        return self.newest + time.monotonic_ns() - self._newest_at

    def step(self, seconds: float) -> Batch:
        """Wait for packets, at most so long, and take what there is: about a megabyte an interface.

        Raises CaptureError when the source fails.
        """
        batch = Batch()
        self.source.wait(seconds)
        batch.packets = self.source.take(self._decoder)
        self.packets += batch.packets
        if batch.packets:
            self.newest = int(self._decoder.newest)
            self._newest_at = time.monotonic_ns()
        self._count_dropped(batch)
        now = self.now
        if now - self._ticked >= LIVE_TICK:
            self._ticked = now
            self._tick(now, batch)
            if self._watches is not None:
                self._look(batch, self._watches)
                self._look_at_waits(now, batch, self._watches)
        if self.source.ended():
            self._end()
        self._gather(batch)
        batch.events = self.source.take_events()
        batch.remarks = self.source.take_remarks()
        return batch

    def finish(self) -> Batch:
        """Nothing more is taken: what is open ends here. A second call brings nothing."""
        batch = Batch()
        self._count_dropped(batch)
        self._end()
        self._gather(batch)
        if self._watches is not None:
            batch.diagnosed += self._watches.finish()
        self.source.report_rest()
        batch.events = self.source.take_events()
        return batch

    def close(self) -> None:
        """Close the source."""
        self.source.close()

    def __enter__(self) -> "LiveWatch":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _end(self) -> None:
        if not self.over:
            self.over = True
            if self._lost:
                self._note_lost()
            self._decoder.finish()
            self.table.finish()

    def _gather(self, batch: Batch) -> None:
        table = self.table
        batch.records = table.output.take_records()
        batch.found = self._judged(table.output.take_fresh())
        batch.amended = self._judged(table.output.take_amended())
        batch.complete = self._judged(table.output.take_findings())
        batch.found += [finding for finding in batch.complete if not finding.reported]
        batch.notes += table.take_notes()
        batch.ended = table.kept.take_ended()
        if self._watches is not None:
            self._watches.judge(batch.complete)
            for analysis in batch.ended:
                self._conclude(analysis, batch, self._watches)

    def _look(self, batch: Batch, watches: CaptureDiagnoses) -> None:
        """The diagnoses of waits that are over, on connections that are open."""
        for connection, watched in watches.watched.items():
            found = watched.notebook.found
            given = self._diagnosed.get(connection, 0)
            if len(found) > given:
                self._diagnosed[connection] = len(found)
                batch.diagnosed += found[given:]

    def _look_at_waits(self, now: int, batch: Batch, watches: CaptureDiagnoses) -> None:
        """The waits that last on open connections, each given once. Of very many connections only some."""
        analyses = self.table.open_connections()
        start = self._turn if self._turn < len(analyses) else 0
        self._turn = start + MAX_LOOKED_AT
        for analysis in analyses[start : self._turn]:
            connection = analysis.connection
            watched = watches.watched.get(connection)
            self.lasting.pop(connection, None)
            try:
                found = [] if watched is None else watched.lasting(analysis, now)
            except Exception as error:
                self.table.fail(connection, error, 0, now)
                continue
            if not found:
                continue
            self.lasting[connection] = found
            given = self._begun.setdefault(connection, set())
            for one in found:
                key = (one.code, one.subject, one.packet)
                if key not in given and len(given) < MAX_DIAGNOSED:
                    given.add(key)
                    batch.lasting.append(one)

    def _conclude(self, analysis: ConnectionAnalysis, batch: Batch, watches: CaptureDiagnoses) -> None:
        """A connection is over: the diagnoses that were not given yet."""
        connection = analysis.connection
        given = self._diagnosed.pop(connection, 0)
        self.lasting.pop(connection, None)
        self._begun.pop(connection, None)
        watched = watches.watched.get(connection)
        before = [] if watched is None else watched.notebook.found[:given]
        try:
            found = watches.end(analysis)
        except Exception as error:
            self.table.fail(connection, error, 0, 0)
            batch.notes += self.table.take_notes()
            return
        batch.diagnosed += [one for one in found if all(one is not other for other in before)]

    def _judged(self, findings: list[Finding]) -> list[Finding]:
        return under(following(findings, self._spec), self._profile) if findings else findings

    def _count_dropped(self, batch: Batch) -> None:
        dropped = self.source.dropped()
        if dropped > self.dropped:
            batch.dropped = dropped - self.dropped
            self.dropped = dropped
            self._lost += batch.dropped
            self.table.dropped(int(self._decoder.packets) + 1, self.newest, batch.dropped)
        if self._lost and time.monotonic_ns() - self._lost_reported >= LIVE_TICK:
            self._note_lost()

    def _note_lost(self) -> None:
        """Where too much comes, losses do too, hundreds in a second: those of a second are one note."""
        number = int(self._decoder.packets) + 1
        text = f"packets lost before this packet, as the capture reports: {self._lost}"
        self.table.note("capture/dropped", number, self.newest, text)
        self._lost = 0
        self._lost_reported = time.monotonic_ns()

    def _tick(self, now: int, batch: Batch) -> None:
        """What time alone brings."""
        still: dict[tuple[int, str], int] = {}
        for overdue in self.table.tick(now):
            which = (int(overdue.connection.stream), overdue.peer)
            since = int(overdue.since)
            if len(still) < MAX_OVERDUE:
                still[which] = since
                if self._silent.get(which) != since:
                    batch.overdue.append(overdue)
        self._silent = still

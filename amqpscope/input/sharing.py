"""One capture, analysed by several processes, with the results of one process.

Theory of operation. One process begins. When enough is known it is forked: each worker reads on, follows the
TCP of all connections, and analyses those of its share (`amqpscope.analysis.share`). What comes up in a
worker is written down with the number of the step in which it came up: findings, notes, connections that are
over, and what the command makes of frames (`amqpscope.input.shared_work`). When all workers are done, the
first process takes the results of all of them, block by block and in the order of the steps, as if it had
made them itself. So no process has more in memory than what one block of the capture gives; the rest waits in
temporary files. What only several connections show, the first process finds itself at the end, from what the
workers kept of each connection.

What connections have in common, and how all processes agree on it:

* Numbers, ports that are used again, connections that are given up, and the order in which connections end
  depend on TCP alone, which all workers follow.
* Of notes and of connections without AMQP, a capture may have so many. The first process counts them, in
  order.
* `CorrelationBudget` says how much may be kept for other connections. The fork waits until the budget is used
  up, or is likely to last. If all workers together keep more than there is room for, their results are
  dropped, and the first process reads on alone from where it was forked.
* The same is done where TLS secrets or traced messages of a broker are found, a link is stolen or resumed, an
  error of amqpscope itself comes up, the file cannot be read, or frames around a finding are wanted and
  nothing makes plain values of them.
"""

from collections.abc import Callable, Iterator
from heapq import merge
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.share import Share
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.source import CaptureSource
from amqpscope.input.shared_work import SharedWork
from amqpscope.input.workers import NotShared, Worker, Workers, may_fork
from amqpscope.limits import MIN_SHARED_OCTETS, SHARE_PROBE
from amqpscope.model.finding import Finding
from amqpscope.model.note import Note
from amqpscope.model.records import Connection

if TYPE_CHECKING:
    from amqpscope.input.capture import Capture

__all__ = ["Sharing"]

_Name = tuple[int, int]
"""What names a connection in results: `stream` and `instance`."""


class _Block(NamedTuple):
    """What a worker found in one block of the capture: each thing with its step, and its connection's name.

    frames: what the command makes of each frame, if anything. ended: with the order and the state of the
    connection, and what the command makes of it. connections: the state of each connection that is named.
    began: the time of the first frame so far, or 0.
    """

    frames: list[tuple[int, _Name, object]]
    findings: list[tuple[int, _Name, tuple[object, ...], tuple[tuple[str, str], ...], object]]
    notes: list[tuple[int, _Name | None, tuple[str, int, int, str]]]
    ended: list[tuple[int, _Name, int, tuple[object, ...], object]]
    connections: dict[_Name, tuple[object, ...]]
    began: int


class Sharing:
    """Decides when the connections of a capture are shared out, and does it.

    jobs: gives how many processes there may be just now. sources: the files. work: what the command does
    with what comes up. Made before the first block.
    """

    def __init__(
        self,
        jobs: Callable[[], int],
        table: ConnectionTable,
        sources: list[CaptureSource],
        work: SharedWork,
    ) -> None:
        self._jobs = jobs
        self._work = work
        self._table = table
        self._sources = sources
        self._workers: Workers | None = None
        # At the last look: octets read, and what was left of the budget.
        self._looked = 0
        self._left = _left(table)
        # The connection that is meant by the one in what is kept for other connections.
        self._same: dict[Connection, Connection] = {}
        # The time of the first frame, as far as the results were taken.
        self.began = 0

    @property
    def octets_read(self) -> int | None:
        """Octets that all workers have read; None while there are none."""
        return None if self._workers is None else self._workers.octets_read

    def due(self, octets_read: int, size: int) -> bool:
        """Whether to share out now. To be asked between two blocks; octets_read, size: of the capture."""
        if octets_read - self._looked < SHARE_PROBE:
            return False
        left = _left(self._table)
        used = [before - after for before, after in zip(self._left, left, strict=True)]
        rest = size - octets_read
        lasts = all(
            one <= 0 or used_now * rest < one * (octets_read - self._looked) // 2
            for one, used_now in zip(left, used, strict=True)
        )
        self._looked, self._left = octets_read, left
        shareable = self._work.ready and not self._table.output.traced
        return lasts and rest >= MIN_SHARED_OCTETS and shareable and self._jobs() > 1 and may_fork()

    @property
    def readers(self) -> int:
        """How many processes read the capture: this one, or the workers that have not ended yet."""
        return 1 if self._workers is None else self._workers.running

    def start(self, capture: "Capture", rest: Iterator[None]) -> None:
        """Let the workers begin; `share` takes what they find. As `share` otherwise."""
        self._workers = Workers(self._jobs(), lambda worker: self._analyse(worker, capture, rest))

    def share(self, capture: "Capture", rest: Iterator[None]) -> Iterator[None]:
        """Share out what is left of the capture; gives way while workers read, and after each block.

        rest: reads the next block of the capture, each time it is asked. Raises NotShared, with nothing
        changed, if one process has to read on; CaptureError if a worker was killed.
        """
        if self._workers is None:
            self.start(capture, rest)
        assert self._workers is not None
        try:
            yield from self._workers.wait()
            if not self._workers.agree():
                raise NotShared  # the file has changed meanwhile
            yield from self._take()
        finally:
            self._workers.close()
            self._workers = None

    def close(self) -> None:
        """End the workers, if there are any."""
        if self._workers is not None:
            self._workers.close()

    # In a worker

    def _analyse(self, worker: Worker, capture: "Capture", rest: Iterator[None]) -> None:
        """Analyse a share of the connections to the end of the capture."""
        table = self._table
        output = table.output
        for source in self._sources:
            source.separate()
        share = Share(worker.number, worker.of)
        table.take_share(share)
        work = self._work
        work.share()
        budget = _left(table)
        blocks = 0
        for _ in rest:
            blocks += 1
            worker.put(_block(table, share, capture, work))
            kept = [max(before - after, 0) for before, after in zip(budget, _left(table), strict=True)]
            of_all = worker.report(capture.octets_read, (blocks, int(share.step)), kept)
            if (
                any(0 < room <= taken for room, taken in zip(budget, of_all, strict=True))
                or table.totals.failed
                or output.secrets.given
                or output.traced
                or work.incomplete
            ):
                raise NotShared
        worker.put((bool(table.correlation.whole), work.rest()))

    # In the first process

    def _take(self) -> Iterator[None]:
        """Take the results of all workers, block by block."""
        assert self._workers is not None
        table = self._table
        known = {_name(one.connection): one.connection for one in table.open_connections()}
        table.hand_over()
        first = True
        for parts in zip(*self._workers.results(), strict=True):
            if not isinstance(parts[0], _Block):
                table.correlation.whole = parts[0][0]
                self._work.take_rest([rest for _, rest in parts])
                break
            if not first:
                yield
            first = False
            for part in parts:
                for name, state in part.connections.items():
                    connection = known.get(name)
                    if connection is None:
                        known[name] = Connection.load(state)
                    else:
                        connection.restore(state)
            self._take_block(parts, known)
        # What only several connections show comes with the last block.
        table.finish()
        for finding in table.output.findings or []:
            finding.connection = self._same.get(finding.connection, finding.connection)
        yield

    def _take_block(self, parts: tuple[_Block, ...], known: dict[_Name, Connection]) -> None:
        output = self._table.output
        frames = sorted((one for part in parts for one in part.frames), key=itemgetter(0))
        if frames:
            self._work.take_frames([(known[name], value) for _, name, value in frames])
        findings = output.findings
        if findings is None:
            findings = []  # nothing is judged
        for _, name, state, said, around in merge(*(part.findings for part in parts), key=_step):
            finding = Finding.load(state, known[name])
            if said:
                finding.said = dict(said)
            finding.around_made = around
            findings.append(finding)
        for _, where, (code, packet, time, detail) in merge(*(part.notes for part in parts), key=_step):
            connection = None if where is None else known[where]
            output.notes.append(Note(code, packet, time, detail, connection))
        for _, name, order, dumped, made in merge(*(part.ended for part in parts), key=_step):
            self._end(known.pop(name), order, dumped, made)
        times = [part.began for part in parts if part.began]
        self.began = min(times, default=0)

    def _end(
        self,
        connection: Connection,
        order: int,
        dumped: tuple[object, ...],
        made: object,
    ) -> None:
        """A connection is over: bring in what its worker left of it. made: by the command's work."""
        output = self._table.output
        analysis = ConnectionAnalysis.load(dumped, output)
        connection.stalls = analysis.connection.stalls
        analysis.connection = connection
        analysis.order = order
        if analysis.left is not None:
            self._same[analysis.left.connection] = connection
        self._table.over(analysis)
        if not analysis.forgotten:
            self._work.take_over(connection, made)


def _block(table: ConnectionTable, share: Share, capture: "Capture", work: SharedWork) -> _Block:
    """What came up in a worker since the last block."""
    steps, records = share.take_record_steps(), table.output.take_records()
    values = work.frames(records) if records else ()
    frames = []
    if values:
        names = [_name(record.connection) for record in records]
        frames = list(zip(steps, names, values, strict=True))
    findings = capture.take_findings_with(share.take_finding_steps())
    work.judge([finding for _, finding in findings])
    around = capture.around
    if around is None and any(finding.around for _, finding in findings):
        raise NotShared  # frames stay in the process that has decoded them
    notes = list(zip(share.take_note_steps(), table.take_notes(), strict=True))
    ended = []
    named = {_name(finding.connection): finding.connection for _, finding in findings}
    named |= {_name(note.connection): note.connection for _, note in notes if note.connection is not None}
    if values:
        named |= {_name(record.connection): record.connection for record in records}
    for step, analysis in share.take_ended():
        connection = analysis.connection
        named[_name(connection)] = connection
        if analysis.left is not None and analysis.left.has_excerpts:
            if around is None:
                raise NotShared  # as above
            analysis.left.make_excerpts(around)
        made = work.over(analysis, capture.ending)
        ended.append((int(step), _name(connection), int(analysis.order), analysis.dump(), made))
    return _Block(
        frames,
        [
            (
                step,
                _name(one.connection),
                one.dump(),
                tuple(one.said.items()),
                None if around is None or not one.around else around(one.spot, one.around, one.around_links),
            )
            for step, one in findings
        ],
        [
            (
                step,
                None if note.connection is None else _name(note.connection),
                (note.code, int(note.packet), int(note.time), note.detail),
            )
            for step, note in notes
        ],
        ended,
        {name: connection.dump() for name, connection in named.items()},
        table.began(),
    )


def _name(connection: Connection) -> _Name:
    return connection.stream, connection.instance


def _step(one: tuple[Any, ...]) -> int:
    """In which step something came up."""
    step: int = one[0]
    return step


def _left(table: ConnectionTable) -> list[int]:
    """What is left of the budgets that all connections share."""
    return table.output.allowance.rest()

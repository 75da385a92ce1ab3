"""Reading a capture file: blocks of octets in, frame records out.

    for record in amqpscope.read("traffic.pcap"):
        print(record.packet, record.peer, record.frame.name)

    for finding in amqpscope.check("traffic.pcap"):
        print(finding.rule, finding.peer, finding.packet, finding.message)

The file is read once, front to back, a block at a time; so a pipe is as good as a file, and memory
does not grow with it. A list of files is one capture: their packets in the order of time, as of a capture
that was rotated. `Capture` also has the connections and the notes about the capture itself.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.merging import Merge
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.source import CaptureSource
from amqpscope.capture.traced import TracedMessage
from amqpscope.errors import CaptureError
from amqpscope.input.key_log import LaterBlocks, tls_secrets
from amqpscope.layers.secrets import Secrets
from amqpscope.model.finding import Finding
from amqpscope.model.note import INTERNAL, Note
from amqpscope.model.records import Connection, Counter, FrameRecord, FrameWatch, MakeExcerpt
from amqpscope.rules.editions import FINAL, following, known
from amqpscope.rules.profiles import AUTO, under, valid

if TYPE_CHECKING:
    from amqpscope.input.shared_work import SharedWork
    from amqpscope.input.sharing import Sharing

__all__ = ["Capture", "CaptureOptions", "check", "read", "together"]

File = str | Path | BinaryIO

BLOCK = 256 * 1024
"""Octets read at a time. What a block completes is kept until its end: frames, and whole connections."""


class CaptureOptions(NamedTuple):
    """What is wanted of a capture."""

    messages: bool = True
    """Put messages together over their transfers."""
    keep: bool = True
    """Remember all connections for `Capture.connections`, also those that ended."""
    ended: bool = False
    """Give those that are over by `Capture.take_ended`, so that none needs to be remembered."""
    records: bool = True
    """Gather frame records; else only count frames."""
    judge: bool = False
    """Make findings (needs messages), which `Capture.take_findings` gives."""
    context: bool = False
    """Give findings the frames around them."""
    around: MakeExcerpt | None = None
    """Makes the plain values of `Finding.around_made`. Without it, one process reads a capture whose findings
    have frames around them."""
    profile: str = AUTO
    """Which products' habits are notes only: `auto`, `none` or names (`amqpscope.rules.profiles.under`)."""
    spec: str = FINAL
    """The edition of the specification whose text findings follow: `final`, `csd01` or `csprd02`."""
    dialect: str = ""
    """The dialect of AMQP 1.0 that all peers speak: `final` or `draft2011`; "" to find out by the frames."""
    secrets: Secrets | None = None
    """What TLS is decrypted with."""
    counter: Counter | None = None
    """Takes the frames instead of records, but for the first ones of a connection."""
    jobs: int = 1
    """Processes that analyse connections, where that gives the same findings (`amqpscope.input.sharing`)."""


class Capture:
    """One capture. Iterate over it, once, for its frame records in the order they were completed.

    source: a path, `-` for standard input, or an open binary file, which stays open; or several of these,
    which are read as one (see `amqpscope.capture.merging`). options: what is wanted of it; FilterError when
    there is no profile or edition of a name. name: what records call it, if not its path. via: `tshark`,
    which takes packets apart then. Raises CaptureError when it cannot be opened; of several that comes with
    the first block.
    """

    def __init__(
        self,
        source: File | Sequence[File],
        options: CaptureOptions | None = None,
        *,
        name: str | None = None,
        via: str = "",
    ) -> None:
        options = options or CaptureOptions()
        self._profile = valid(options.profile)
        self._spec = known(options.spec)
        self._via = via
        if isinstance(source, Sequence) and not isinstance(source, str):
            self._sources = [CaptureSource(one) for one in source]
            if not self._sources:
                raise CaptureError("no files to read")
            self.name = name or together([one.name for one in self._sources])
        else:
            self._sources = [CaptureSource(source, name)]
            self._sources[0].open()
            self.name = self._sources[0].name
        self.notes: list[Note] = []
        output = AnalysisOutput(options.messages, options.records, options.judge, options.context)
        output.counter = options.counter
        output.dialect = options.dialect
        output.secrets = Secrets(options.secrets)
        files = [one.path for one in self._sources if one.again]
        output.secrets.sources += [LaterBlocks(path) for path in files]
        kept = KeptConnections(options.keep, options.ended, options.keep or options.ended)
        self._table = ConnectionTable(self.name, output, kept)
        # Connections that were still open when the reading was broken off in the middle of a block.
        self._cut_off: list[ConnectionAnalysis] = []
        self._jobs = options.jobs
        # How many processes may read it just now. Whoever has others read meanwhile may say so.
        self.room: Callable[[], int] = lambda: self._jobs
        self.around = options.around
        # What is done with the frames and connections, where several processes do it.
        self._work: SharedWork | None = None
        # Shares out the connections, if several processes are wanted and can be used.
        self._sharing: Sharing | None = None
        # Reads the next block, each time it is asked; None until reading begins.
        self._reading: Iterator[None] | None = None
        # All was read, and the last connections are brought to their end.
        self.ending = False
        self._begun = False
        self._closed = False
        # In the middle of a block, where nothing can be said to be complete.
        self._feeding = False
        self._merge: Merge | None = None
        # Takes the packets apart, if somebody looks at them on their way.
        self._decoder: PacketDecoder | None = None

    @property
    def path(self) -> str:
        """Where it is, if it is one file that can be read again; else ""."""
        return self._sources[0].path if len(self._sources) == 1 and self._sources[0].again else ""

    @property
    def size(self) -> int | None:
        """Octets of the file, or of all files, as far as they are open; None if one has no size (a pipe)."""
        sizes = [source.size for source in self._sources]
        return None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def octets_read(self) -> int:
        """Octets of it read so far: of a compressed one, compressed octets."""
        if self._sharing is not None and self._sharing.octets_read is not None:
            return self._sharing.octets_read
        return sum(source.octets_read for source in self._sources)

    @property
    def connections(self) -> list[ConnectionAnalysis]:
        """Every TCP connection seen, in the order in which they began. Empty unless they are kept.

        Of very many without AMQP only the first: `connections_not_kept` says how many are missing.
        """
        return self._table.kept.connections

    def take_ended(self) -> list[ConnectionAnalysis]:
        """The connections that are over since the last call, if that was asked for; `order` of each says
        how many began before it. All have come once all was read, and none has a frame after that.

        Of very many without AMQP only the first: `connections_not_kept` says how many are missing.
        """
        taken = self._table.kept.take_ended() + self._cut_off
        self._cut_off = []
        return taken

    def open_connections(self) -> list[ConnectionAnalysis]:
        """The TCP connections that are not over yet, in the order in which they began."""
        return self._table.open_connections()

    @property
    def connections_not_kept(self) -> int:
        """How many TCP connections without AMQP are not among `connections`, there being too many."""
        return int(self._table.kept.not_kept)

    @property
    def protocols(self) -> dict[str, int]:
        """How many TCP connections that are over spoke each protocol; all of them once all was read."""
        return self._table.totals.protocols

    @property
    def spoken(self) -> int:
        """How many TCP connections had frames so far."""
        return self._table.spoken()

    @property
    def frames(self) -> int:
        """How many frames there were so far."""
        return self._table.frames()

    @property
    def began(self) -> int:
        """The time (ns since 1970) of the first frame so far, 0 while there is none."""
        times = (self._table.began(), self._sharing.began if self._sharing is not None else 0)
        return min((time for time in times if time), default=0)

    @property
    def failed(self) -> int:
        """How often an error of amqpscope itself ended the reading of a connection: see its note."""
        return int(self._table.totals.failed)

    @property
    def mishaps(self) -> list[Note]:
        """The notes that tell of it."""
        return [note for note in self.notes if note.code == INTERNAL]

    def watch(self, watch: FrameWatch) -> None:
        """Have something take each record when it is given out. To be called before the first block."""
        self._table.output.watch = watch

    def share(self, work: "SharedWork") -> None:
        """Have several processes do this work, if options ask for them; without it, one process makes frame
        records. To be called before the first block.
        """
        self._work = work

    def tap(self, make: Callable[[ConnectionTable], PacketDecoder]) -> None:
        """Have the packets of one file pass through a decoder whose sink hands the segments on to the table.

        To be called before the first block.
        """
        self._decoder = make(self._table)

    def each(self, records: Iterable[FrameRecord], take: Callable[[FrameRecord], None]) -> None:
        """Hand records on, one by one. An error of amqpscope itself in `take` is reported in a note, once of
        each connection; one for want of memory is raised.
        """
        for record in records:
            try:
                take(record)
            except Exception as error:
                self.fail(record.connection, error, record.packet, record.time)

    def fail(self, connection: Connection, error: Exception, packet: int = 0, time: int = 0) -> None:
        """An error of amqpscope itself came up with a connection, at a packet and time (ns) or at its end.

        To be called where `error` is caught, as `each` does.
        """
        self._table.fail(connection, error, packet, time)
        self.notes += self._table.take_notes()

    def trace(self, taker: Callable[[TracedMessage], None]) -> None:
        """Have the messages given to `taker` that a broker has traced, if the file is a log of these."""
        self._table.output.trace = taker

    @property
    def traced(self) -> int:
        """How many messages a broker has traced, in its log, up to here."""
        return int(self._table.output.traced)

    def take_findings(self) -> list[Finding]:
        """The findings since the last call that are complete: the peer reacted, or its connection is over.

        Of one connection they come in the order in which they were made. All have come once all was read.
        """
        findings = self._table.output.take_findings()
        return self._shown(findings) if findings else findings

    def _shown(self, findings: list[Finding]) -> list[Finding]:
        """Those that are findings under the edition that is followed, judged with the profiles."""
        return under(following(findings, self._spec), self._profile)

    def take_findings_with(self, values: list[int]) -> list[tuple[int, Finding]]:
        """As `take_findings`. values: one for each finding, which stays with it."""
        taken = zip(values, self._table.output.take_findings(), strict=True)
        return [(value, finding) for value, one in taken for finding in self._shown([one])]

    def read_ahead(self) -> bool:
        """Have another process read all of it, beginning now; `blocks` gives what it finds.

        False if that cannot be done. To be called before the first block, and behind `watch` and `share`.
        """
        from amqpscope.input.workers import NotShared, may_fork

        sharing = self._may_share(lambda: 1) if may_fork() else None
        if sharing is None:
            return False
        self._reading = self._parts()
        try:
            sharing.start(self, self._reading)
        except NotShared:
            return False  # the system allows no more processes
        self._sharing = sharing
        return True

    @property
    def readers(self) -> int:
        """How many processes read it: this one, or its workers that are not done yet."""
        return 1 if self._sharing is None else self._sharing.readers

    def blocks(self) -> Iterator[list[FrameRecord]]:
        """The frame records that each block of the file completes; the last come when it ends.

        Raises CaptureError when the file is no capture, cannot be read, or was read before.
        """
        if self._begun:
            raise CaptureError(f"{self.name}: can be read only once")
        if self._closed:
            raise CaptureError(f"{self.name}: is closed")
        self._begun = True
        ahead = self._reading is not None and self._sharing is not None
        reading = self._reading or self._parts()
        if ahead and (yield from self._shared(reading)):
            return
        if not ahead:
            self._sharing = None if self._jobs == 1 else self._may_share(lambda: self.room())
        for _ in reading:
            yield self._complete()
            if self._sharing is not None and self._sharing.due(self.octets_read, self.size or 0):
                if (yield from self._shared(reading)):
                    return

    def _parts(self) -> Iterator[None]:
        """Read the capture; gives way after each part of it."""
        if self._via:
            return self._through_tshark()
        return self._one() if len(self._sources) == 1 else self._merged()

    def _complete(self) -> list[FrameRecord]:
        """What the last block completed: its notes are taken, and its frames given."""
        self.notes += self._table.take_notes()
        return self._table.output.take_records()

    def _may_share(self, jobs: Callable[[], int]) -> "Sharing | None":
        """What shares out the connections to so many processes, if that is possible."""
        watch = self._table.output.watch
        files = all(source.again and source.size is not None for source in self._sources)
        if self._via or not files or self._decoder is not None or self._table.output.secrets.given:
            return None
        from amqpscope.diagnoses.capture import CaptureDiagnoses
        from amqpscope.input.diagnoses_work import DiagnosesWork
        from amqpscope.input.shared_work import SharedWork
        from amqpscope.input.sharing import Sharing

        work = self._work
        if work is None:
            if self._table.output.records is not None or self._table.output.counter is not None:
                return None  # frames would stay in the processes that decode them
            if watch is not None and not isinstance(watch, CaptureDiagnoses):
                return None
            work = SharedWork() if watch is None else DiagnosesWork(watch)
        return Sharing(jobs, self._table, self._sources, work)

    def _shared(self, reading: Iterator[None]) -> Generator[list[FrameRecord], None, bool]:
        """`blocks` of what is left, by several processes. False: it is to be read by this one."""
        from amqpscope.input.workers import NotShared

        assert self._sharing is not None
        try:
            for _ in self._sharing.share(self, reading):
                yield self._complete()
        except NotShared:
            self._sharing = None
            return False
        except CaptureError as error:
            raise CaptureError(f"{self.name}: {error}") from error
        return True

    def _one(self) -> Iterator[None]:
        """Read one file; gives way after each block."""
        table = self._table
        source = self._sources[0]
        decoder = self._decoder
        reader = source.reader(table) if decoder is None else source.start(decoder.sink, decoder)
        while block := source.read(BLOCK):
            self._feeding = True
            reader.feed(block)
            self._feeding = False
            yield
        reader.finish()
        if source.growing:
            table.note("capture/growing", reader.number, 0, source.growing)
        if source.damage:
            table.note(source.damage_code, reader.number, 0, source.damage)
        yield from self._end()

    def _through_tshark(self) -> Iterator[None]:
        """Read a file that tshark takes apart; gives way now and then."""
        from amqpscope.capture.tshark import segments_through_tshark  # brings asyncio, which takes its time

        if self._via != "tshark" or len(self._sources) != 1 or not self._sources[0].again:
            raise CaptureError(f"{self.name}: --via works only with tshark and one file")
        if self.size == 0:
            raise CaptureError(f"{self.name}: the file is empty")
        for _ in segments_through_tshark(self._sources[0].path, self.name, self._table):
            yield
        yield from self._end()

    def _end(self) -> Iterator[None]:
        """All was read: bring what is open to its end; gives way after each part of it."""
        while self._table.finish_some():
            yield
        self.ending = True
        self._table.finish()
        yield

    def _merged(self) -> Iterator[None]:
        """Read several files as one; gives way after each block."""
        self._merge = Merge(self._sources, self._table)
        self._merge.begin()
        while self._merge.advance():
            yield
        yield from self._end()

    def stop(self) -> None:
        """The capture is not read to its end: what is open ends here, and all its findings are complete."""
        if self._feeding or (self._merge is not None and self._merge.delivering):
            # Nothing that is in the middle of a packet can be brought to its end.
            if self._table.kept.ended:
                self._cut_off = self._table.open_connections()
            return
        self._table.finish()
        self.notes += self._table.take_notes()

    def __iter__(self) -> Iterator[FrameRecord]:
        for records in self.blocks():
            yield from records

    def close(self) -> None:
        """Close the files that were opened here."""
        self._closed = True
        if self._sharing is not None:
            self._sharing.close()
        for source in self._sources:
            source.close()

    def __enter__(self) -> "Capture":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read(
    source: File | Sequence[File],
    *,
    messages: bool = True,
    tls_keylog: Sequence[str] = (),
    tls_key: Sequence[str] = (),
) -> Iterator[FrameRecord]:
    """The frame records of a capture: path, `-`, or an open binary file; or several of these, read as one.

    tls_keylog: paths of files with the secrets of its TLS, in the format of SSLKEYLOGFILE. tls_key: paths of
    files with the private keys of its servers, in PEM.

    Raises CaptureError at once when it cannot be opened, and on the first record when it is no capture.
    """
    secrets = tls_secrets(tls_keylog, tls_key)
    return _records(Capture(source, CaptureOptions(messages=messages, keep=False, secrets=secrets)))


def check(
    source: File | Sequence[File],
    *,
    profile: str = AUTO,
    spec: str = FINAL,
    tls_keylog: Sequence[str] = (),
    tls_key: Sequence[str] = (),
) -> Iterator[Finding]:
    """The findings of a capture: path, `-`, or an open binary file; or several of these, read as one.

    profile: `auto`, `none`, or names of products, whose habits are notes only. spec: the edition of the
    specification that they follow, `final`, `csd01` or `csprd02` (see `Capture`). tls_keylog, tls_key: as of
    `read`.

    Raises CaptureError at once when it cannot be opened, and on the first finding when it is no capture.
    """
    options = CaptureOptions(
        keep=False,
        records=False,
        judge=True,
        profile=profile,
        spec=spec,
        secrets=tls_secrets(tls_keylog, tls_key),
    )
    return _findings(Capture(source, options))


def _findings(capture: Capture) -> Iterator[Finding]:
    with capture:
        for _ in capture.blocks():
            yield from capture.take_findings()


def _records(capture: Capture) -> Iterator[FrameRecord]:
    with capture:
        yield from capture


def together(names: list[str]) -> str:
    """What several files are called together."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

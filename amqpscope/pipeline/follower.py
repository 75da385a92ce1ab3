"""The process that follows one capture set while its files are written: see `following`.

It keeps the analysis of the set from batch to batch, so each batch reads only what is new. Its rows are of
two kinds. Those of what is over are *final*: they are written once. What is not over, such as a connection
under way, has *open* rows: a fork of this process ends the analysis as if the captures ended here, writes the
rows that this gives, and exits. This process itself knows nothing of that end. It goes on with the next
batch, whose open rows take the place of the earlier ones.

Final and open rows together are those of one run over all that was read.

The process takes pickled tuples from its standard input: `FollowerTerms`, then a `Step` for each batch, or
`KEEP` behind one. To a step it answers with a `Done`, to `KEEP` with the octets of its state, or to either
with the text of an error, on its standard output. It ends with its input. Between two batches, it takes any
number of `ReadOn`, and answers none of them. It reads what each one names, and keeps the rows for the next
batch.

What it keeps in memory is its *state* (see `states`). One that begins with a state goes on where the process
was that gave it: it says at once whether it can.
"""

import os
import pickle
import signal
import sys
import warnings
from collections import Counter
from typing import Any, BinaryIO, Final, NamedTuple

import pyarrow as pa

from amqpscope import __version__
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.pcapng import PcapngReader
from amqpscope.input.garbage import calm_collector
from amqpscope.layers.secrets import Secrets, SecretsSource
from amqpscope.pipeline.capture_set import CaptureSet
from amqpscope.pipeline.chain import read_set, table_for
from amqpscope.pipeline.discretion import Discreet
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.files import FileResult, Range, RangeReader, file_row, whole
from amqpscope.pipeline.inputs import CaptureFile, Trouble, has_identity
from amqpscope.pipeline.object_classes import NotKept, NotLoaded
from amqpscope.pipeline.object_reader import loaded
from amqpscope.pipeline.object_writer import dumped
from amqpscope.pipeline.parts import LakeFile, PartWriter
from amqpscope.pipeline.rows import Recorder, Rows, RowTerms
from amqpscope.pipeline.series import add_missing
from amqpscope.pipeline.tags import Tags
from amqpscope.reassembly.recent import NOT_KNOWN

__all__ = ["KEEP", "MAX_STATE", "Done", "FollowerTerms", "ReadOn", "Step", "main"]

KEEP: Final = "keep"
"""Asks for the state."""

MAX_STATE: Final = 256 * 1024 * 1024
"""Octets of the largest state that is kept, before compression. A set has more only if very many connections
are open: then it takes less time to read its files again than to be surprised by the memory."""


MAX_AHEAD: Final = 256 * 1024 * 1024
"""About how many octets of rows may wait for the next batch. The batch itself reads what comes after them."""

_WORTH_IT: Final = 24
"""The fewest octets that are read ahead of a longer file: fewer do not show which format the file has."""


class FollowerTerms(NamedTuple):
    """How a capture set is followed. name: of the set. state: where it goes on. The others: see
    `tasks.StagedFiles`.
    """

    name: str
    tables: tuple[str, ...]
    terms: RowTerms
    tags: Tags
    state: bytes = b""


class Step(NamedTuple):
    """What a batch reads. files: of the set, in order, those that are read first at the same places as in
    the batch before, and none of them shorter. empty: files of the set that have no packet yet, with their
    places. staging, stem: of `PartWriter`. complete: all files could be read again from their beginnings.
    """

    files: tuple[tuple[int, CaptureFile], ...]
    empty: tuple[tuple[int, CaptureFile], ...]
    staging: str
    stem: str
    complete: bool = True


class ReadOn(NamedTuple):
    """What the next batch will read, as far as it is there by now. start: how many files of the set come
    before `files`, the first of which was the last one so far. inodes: of the files, since another file may
    get the name.
    """

    start: int
    files: tuple[CaptureFile, ...]
    inodes: tuple[int, ...]


class Done(NamedTuple):
    """What a batch has written. final, open: see above. counts: as of `Rows`; of what is open, too. earlier:
    the counts of what was final before. over: the set was read as a whole, and cannot be followed.
    """

    final: list[LakeFile]
    open: list[LakeFile]
    counts: Counter[tuple[str, ...]]
    earlier: Counter[tuple[str, ...]]
    over: bool = False


class _Asked(SecretsSource):
    """Remembers that a secret of TLS is missing."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = False

    def look_further(self, secrets: Secrets, random: bytes) -> bool:
        self.asked = True
        return False


class _SecretsCameLate(PipelineError):
    """A connection that was read may have needed them."""


_LATE_SECRETS: Final = "a file has secrets of TLS that an earlier connection may have needed"


class _Waiting:
    """Rows that wait for a batch."""

    def __init__(self) -> None:
        self.octets = 0
        self._batches: list[tuple[str, pa.RecordBatch]] = []

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """As of `PartWriter`."""
        self._batches.append((table, batch))
        self.octets += batch.nbytes

    def pass_on(self, writer: PartWriter) -> None:
        """The batch has begun."""
        for table, batch in self._batches:
            writer.write(table, batch)
        self._batches.clear()
        self.octets = 0


class _FollowedSet:
    """The analysis of a capture set that is not over."""

    def __init__(self, terms: FollowerTerms) -> None:
        self._terms = terms
        self._captures: list[str] = []
        self._own: list[str] = []  # names of the files where they are
        self._rows = Rows(terms.tables, terms.terms)
        self._recorder = Recorder(self._rows, terms.name, self._captures, own=self._own)
        self._secrets = Secrets()
        self._missing = _Asked()
        self._secrets.sources.append(self._missing)
        self._table = table_for(self._recorder, self._rows, terms.name, self._secrets)
        self._fates: list[list[FileResult]] = []
        self._octets = 0  # of the file read last
        self._state: tuple[Any, ...] | None = None  # of its reader
        self._parent = os.getppid()
        self._counted: Counter[tuple[str, ...]] = Counter()  # of what is final
        self._unable = False  # it was read as a whole, and cannot be followed
        self._complete = True  # as of `Step`
        self._waiting = _Waiting()
        self._ahead = False  # it has read on since the last step

    def keep(self) -> bytes:
        """The state. NotKept: there can be none."""
        if self._ahead:
            raise NotKept("the files were read on since the last batch")
        if self._secrets.given or self._unable:
            raise NotKept("the files have secrets of TLS")
        fates = [[tuple(fate) for fate in fates] for fates in self._fates]
        read = (self._captures, self._own, fates, self._octets, self._state)
        analysis = (self._recorder, self._table, self._secrets, self._missing.asked)
        counted = (dict(self._counted), sorted(self._rows.rulings.used))
        kept = dumped((read, analysis, counted), self._outside(), MAX_STATE, Discreet())
        return len(kept).to_bytes(8, "big") + bytes(pa.compress(kept, codec="zstd", asbytes=True))

    def load(self, state: bytes) -> None:
        """Go on where another one was when it gave this state. NotLoaded: it is none."""
        size = int.from_bytes(state[:8], "big")
        if not 0 < size <= MAX_STATE:
            raise NotLoaded("has no size")
        try:
            octets = pa.decompress(state[8:], size, codec="zstd", asbytes=True)
        except (OSError, pa.ArrowException) as error:
            raise NotLoaded("is damaged") from error
        found = loaded(octets, self._outside())
        try:
            (captures, own, fates, octets_read, reader), analysis, (counted, used) = found
            recorder, table, secrets, asked = analysis
            right = isinstance(recorder, Recorder) and isinstance(table, ConnectionTable)
            right = right and isinstance(captures, list) and isinstance(own, list)
            if not right or not isinstance(secrets, Secrets):
                raise TypeError
            self._fates = [[_fate(one) for one in file] for file in fates]
            self._octets, self._state = int(octets_read), reader
            self._counted = Counter(counted)
            self._rows.rulings.used.update(used)
            self._missing.asked = bool(asked)
        except (TypeError, ValueError) as error:
            raise NotLoaded("is damaged") from error
        self._captures, self._own = captures, own  # the recorder has the same lists
        self._recorder, self._table, self._secrets = recorder, table, secrets

    def _outside(self) -> dict[tuple[str, str], Any]:
        """What the objects of the state hold that is not theirs: the rows, and how they are made."""
        rows, terms = self._rows, self._rows.terms
        things: list[Any] = [rows, terms, terms.policy, terms.policy.limits, rows.rulings, rows.counts]
        things += [rows.frames, rows.deliveries, self._missing]
        return {("", str(number)): thing for number, thing in enumerate(things)}

    def step(self, step: Step) -> Done:
        """Read what is new, and write its rows. Raises PipelineError if the set cannot be followed on."""
        if self._unable:
            raise PipelineError(_LATE_SECRETS)
        self._complete = step.complete
        final = PartWriter(step.staging, step.stem, self._terms.tags)
        self._waiting.pass_on(final)
        self._ahead = False
        files = [file for _, file in step.files]
        first = not self._fates
        try:
            for position in range(max(len(self._fates) - 1, 0), len(files)):
                # The last file may still grow.
                self._read(files[position], position, position < len(files) - 1, final)
        except _SecretsCameLate:
            final.close()  # what is in its files is read once more
            if first:
                return self._as_a_whole(step)
            raise
        self._write(final, True)
        parts = final.close()
        counts = Counter(self._rows.counts)
        earlier = Counter(self._counted)
        self._counted.update(counts)
        self._rows.counts.clear()
        done: Done = pickle.loads(_in_a_fork(lambda: self._end(step)))  # noqa: S301  made by the fork
        counts.update(done.counts)
        return done._replace(final=parts, counts=counts, earlier=earlier)

    def read_on(self, asked: ReadOn) -> None:
        """Read what is new, until too many rows wait. PipelineError: the set cannot be followed on."""
        here = len(self._fates) - 1
        if self._unable or asked.start != here:
            return  # what comes before is left for the batch
        for position, (file, inode) in enumerate(zip(asked.files, asked.inodes, strict=True), here):
            start = self._octets if position == here else 0
            # Rows take up to twice the octets of the file.
            end = min(file.size, start + (MAX_AHEAD - self._waiting.octets) // 2)
            if end < min(file.size, start + _WORTH_IT) or not _is(file, inode):
                return
            self._ahead = True
            last = end == file.size and file is not asked.files[-1]
            self._read(file._replace(size=end), position, last, self._waiting, inode)
            # What overwrites a file begins at its beginning.
            if _is(file, inode) and not has_identity(file, file.identity):
                raise PipelineError(f"{file.capture}: was overwritten when it was read")
            if end < file.size:
                return

    def _as_a_whole(self, step: Step) -> Done:
        """All rows of the set, as of one that is not followed: it cannot be, from here on."""
        self._unable = True
        for _ in self._rows.batches(True):
            pass  # what they are of is read once more
        files = sorted([*step.files, *step.empty], key=lambda placed: placed[0])
        rows = Rows(self._terms.tables, self._terms.terms)
        writer = PartWriter(step.staging, f"{step.stem}-whole", self._terms.tags)
        one = CaptureSet(self._terms.name, tuple(file for _, file in files))
        for batches in (read_set(one, rows), rows.batches(True)):
            for table, batch in batches:
                writer.write(table, batch)
        for number in rows.rulings.used:
            rows.counts["allowed", str(number)] += 1
        return Done([], writer.close(), rows.counts, Counter(), True)

    def _read(
        self, file: CaptureFile, position: int, last: bool, writer: PartWriter | _Waiting, inode: int = 0
    ) -> None:
        """Read what is new in a file. last, inode: as of `_range`."""
        if position == len(self._fates):
            self._captures.append(file.capture)
            self._own.append(file.name)
            self._fates.append([])
            self._octets, self._state = 0, None
        self._range(file, position, last, writer, inode)

    def _range(
        self, file: CaptureFile, position: int, last: bool, writer: PartWriter | _Waiting, inode: int = 0
    ) -> None:
        """Read a file from where it was read up to. last: that is all of it. inode: of the file, if another
        one may have got its name just now.
        """
        if file.size < self._octets:
            raise PipelineError(f"{file.capture}: has fewer octets than were read of it")
        part = Range(self._octets, file.size, self._state, last)
        reader = RangeReader(file, position, part, self._table)
        for _ in reader:
            if os.getppid() != self._parent:
                os._exit(1)  # nobody waits for the rows any more
            if inode and not _is(file, inode):
                raise PipelineError(f"{file.capture}: was replaced when it was read")
            inode = 0  # it has been opened by now
            self._take()
            self._write(writer, False)
        self._take()
        fate = reader.fate(self._recorder.take_file_notes())
        if reader.reader is None or (fate.trouble is not None and fate.trouble.reason != "growing"):
            why = "nothing of it can be read" if fate.trouble is None else fate.trouble.detail
            raise PipelineError(f"{file.capture}: {why}")
        if reader.fed < part.end - part.start:
            raise PipelineError(f"{file.capture}: had fewer octets than were to be read")
        if self._missing.asked and self._secrets.given:
            raise _SecretsCameLate(_LATE_SECRETS)
        self._fates[position] = _together(self._fates[position], fate)
        self._octets = file.size
        kind = "pcapng" if isinstance(reader.reader, PcapngReader) else "pcap"
        self._state = None if last else (kind, reader.reader.dump())

    def _take(self) -> None:
        """All that has come out since the last time. PipelineError: the state does not have what it takes,
        but the files do. If some are gone, octets that came again are taken for the same.
        """
        notes = self._table.output.notes
        unsure = [note for note in notes if note.code == NOT_KNOWN]
        if unsure and self._complete:
            raise PipelineError(
                "octets came again that were sent before the last run, which kept none of them"
            )
        if unsure:
            notes[:] = [note for note in notes if note.code != NOT_KNOWN]
        self._recorder.take(self._table)

    def _end(self, step: Step) -> bytes:
        """In a fork: what the rest would be if the captures ended here."""
        self._parent = os.getppid()
        writer = PartWriter(step.staging, f"{step.stem}-open", self._terms.tags)
        name, rows, recorder = self._terms.name, self._rows, self._recorder
        file = step.files[-1][1]
        self._range(file, len(step.files) - 1, True, writer)
        for (place, file), fates in zip(step.files, self._fates, strict=True):
            rows.add_file(file_row(name, file, place, fates))
        for place, file in step.empty:
            self._captures.append(file.capture)
            self._own.append(file.name)
            reader = RangeReader(file, len(self._captures) - 1, whole(file), self._table)
            for _ in reader:
                recorder.take(self._table)
            rows.add_file(file_row(name, file, place, [reader.fate(recorder.take_file_notes())]))
        add_missing(name, [file for _, file in (*step.files, *step.empty)], True, rows)
        self._table.finish()
        self._take()
        recorder.finish()
        self._write(writer, True)
        for number in rows.rulings.used:
            rows.counts["allowed", str(number)] += 1
        return pickle.dumps(Done([], writer.close(), rows.counts, Counter()))

    def _write(self, writer: PartWriter | _Waiting, everything: bool) -> None:
        for table, batch in self._rows.batches(everything):
            writer.write(table, batch)


def _fate(state: tuple[Any, ...]) -> FileResult:
    """What a file's row is made of, from plain values."""
    trouble, packets, segments, notes = state
    return FileResult(
        None if trouble is None else Trouble(*trouble), int(packets), int(segments), list(notes)
    )


def _together(fates: list[FileResult], fate: FileResult) -> list[FileResult]:
    """The results of a file's ranges, with one more: one of all, as far as nothing was wrong."""
    if not fates or fates[-1].trouble is not None or fate.trouble is not None:
        return [*fates, fate]
    before = fates[-1]
    packets, segments = max(before.packets, fate.packets), max(before.segments, fate.segments)
    return [*fates[:-1], FileResult(None, packets, segments, before.notes + fate.notes)]


def _is(file: CaptureFile, inode: int) -> bool:
    """Whether a name is still that of this file."""
    try:
        return os.stat(file.path).st_ino == inode
    except OSError:
        return False


def _in_a_fork(work: Any) -> bytes:
    """What `work` gives in a fork of this process, which ends with it. Raises PipelineError if it fails."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of pyarrow's threads, which pyarrow starts anew in the fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(reading)
            try:
                answer = b"\0" + work()
            except Exception as error:
                answer = b"\1" + _reason(error).encode("utf-8", "backslashreplace")
            with open(writing, "wb") as stream:
                stream.write(answer)
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    with open(reading, "rb") as stream:
        answer = stream.read()
    os.waitpid(pid, 0)
    if answer[:1] != b"\0":
        raise PipelineError(answer[1:].decode() or "a process was killed, perhaps for want of memory")
    return answer[1:]


def _reason(error: BaseException) -> str:
    """An error on one line."""
    line = (str(error).splitlines() or [""])[0]
    return line if isinstance(error, PipelineError) and line else f"{type(error).__name__}: {line}"


def _serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Answer the watch until it asks no more."""

    def answer(value: object) -> None:
        pickle.dump(value, answers)
        answers.flush()

    answer(__version__)
    terms: FollowerTerms = pickle.load(questions)  # noqa: S301  made by the watch
    followed = _FollowedSet(terms)
    if terms.state:
        try:
            followed.load(terms.state)
        except NotLoaded as error:
            answer(str(error))
            return
        answer(None)
    failed = ""
    while True:
        try:
            step = pickle.load(questions)  # noqa: S301
        except EOFError:
            return
        if isinstance(step, ReadOn):
            try:
                if not failed:
                    followed.read_on(step)
            except Exception as error:
                failed = _reason(error)
            continue
        if failed:
            answer(failed)
            return
        if step == KEEP:
            try:
                answer(followed.keep())
            except NotKept as error:
                answer(str(error))
            continue
        try:
            answer(followed.step(step))
        except Exception as error:
            answer(_reason(error))
            return


def main() -> None:
    """The whole life of the process."""
    # The watch is asked to end, and ends this process behind a batch.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    calm_collector()
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever is printed is no answer
    try:
        _serve(questions, answers)
    except (BrokenPipeError, EOFError):
        sys.exit(1)

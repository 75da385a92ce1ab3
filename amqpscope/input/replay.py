"""A capture that is read several times: a file, several that are one, or what came through a pipe."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from amqpscope.capture.merging import Merge
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.source import CaptureSource
from amqpscope.errors import CaptureError
from amqpscope.input.capture import BLOCK, Capture, CaptureOptions, together
from amqpscope.input.meter import Metering, unmeasured
from amqpscope.layers.secrets import Secrets
from amqpscope.model.note import DAMAGE, Note
from amqpscope.model.records import FrameRecord
from amqpscope.rules.editions import FINAL
from amqpscope.rules.profiles import AUTO

__all__ = ["ReplayableCapture", "SegmentProbe"]


class SegmentProbe(SegmentSink):
    """Takes the segments of a capture. merge: what puts the files together, if it is several."""

    def __init__(self) -> None:
        super().__init__()
        self.merge: Merge | None = None


class _MeteredCapture(Capture):
    """A capture of which somebody sees how far it has been read."""

    meter: Metering

    def blocks(self) -> Iterator[list[FrameRecord]]:
        with self.meter(self) as meter:
            for records in super().blocks():
                meter.update()
                yield records


class ReplayableCapture:
    """One capture. path: of the file; `-` is standard input, which is copied to a temporary file first.

    Several paths are one capture, in the order of time. profile, spec, via, dialect, secrets: as of
    `Capture`. meter: shows how far it has been read, each time that it is read.
    """

    def __init__(
        self,
        path: str | Sequence[str],
        profile: str = AUTO,
        spec: str = FINAL,
        via: str = "",
        dialect: str = "",
        secrets: Secrets | None = None,
        meter: Metering = unmeasured,
    ) -> None:
        self._paths = [path] if isinstance(path, str) else list(path)
        self._copy: BinaryIO | None = None
        self._captures: list[Capture] = []
        self._profile = profile
        self._spec = spec
        self._via = via
        self._dialect = dialect
        self._secrets = secrets
        self.meter = meter

    @property
    def name(self) -> str:
        """What it is called."""
        return together([_name(path) for path in self._paths])

    @property
    def size(self) -> int | None:
        """Octets of its files; None if one of them has no size, or came through a pipe."""
        try:
            return None if "-" in self._paths else sum(os.path.getsize(path) for path in self._paths)
        except OSError:
            return None

    @property
    def path(self) -> str:
        """Where it is, if it is one file that can be read again; else ""."""
        return self._paths[0] if len(self._paths) == 1 and self._paths[0] != "-" else ""

    def _file(self, path: str) -> str | BinaryIO:
        if path != "-":
            return path
        if self._copy is None:
            if sys.stdin is None:
                raise CaptureError("standard input: is closed")
            copy = tempfile.TemporaryFile()  # noqa: SIM115  open as long as questions may come
            try:
                shutil.copyfileobj(sys.stdin.buffer, copy)
            except OSError as error:
                raise CaptureError(f"standard input: {error.strerror or error}") from error
            self._copy = copy
        self._copy.seek(0)
        return self._copy

    def segments(self, tap: SegmentProbe) -> Iterator[int]:
        """Its TCP segments, from the beginning, to `tap`; yields how many packets there were by then."""
        if self._via:
            yield from self._through_tshark(tap)
            return
        sources = [CaptureSource(self._file(path), _name(path)) for path in self._paths]
        try:
            if len(sources) > 1:
                yield from _merged(sources, tap)
                return
            reader = sources[0].reader(tap)
            while block := sources[0].read(BLOCK):
                reader.feed(block)
                yield int(reader.number)
            reader.finish()
            yield int(reader.number)
        finally:
            for source in sources:
                source.close()

    def _through_tshark(self, tap: SegmentProbe) -> Iterator[int]:
        """`segments` of a file that tshark takes apart. How many packets there were it does not say."""
        from amqpscope.capture.tshark import segments_through_tshark  # brings asyncio, which takes its time

        for _ in segments_through_tshark(self._paths[0], self.name, tap):
            yield 0

    def capture(self, judge: bool, ended: bool = False) -> Capture:
        """Its frames, from the beginning, judged or not. ended: with the connections that are over."""
        files = [self._file(path) for path in self._paths]
        capture = _MeteredCapture(
            files[0] if len(files) == 1 else files,
            CaptureOptions(
                judge=judge,
                keep=False,
                ended=ended,
                profile=self._profile,
                spec=self._spec,
                dialect=self._dialect,
                secrets=self._secrets,
            ),
            name=self.name,
            via=self._via,
        )
        capture.meter = self.meter
        self._captures.append(capture)
        return capture

    @property
    def mishaps(self) -> list[Note]:
        """The notes on connections that amqpscope failed to read or to understand: one of each."""
        found = [note for capture in self._captures for note in capture.mishaps]
        return list({note.connection and note.connection.id: note for note in reversed(found)}.values())[::-1]

    @property
    def damage(self) -> list[Note]:
        """The notes that say what of its files is missing or damaged: one of each."""
        found = [note for capture in self._captures for note in capture.notes if note.code in DAMAGE]
        return list({(note.code, int(note.packet), note.detail): note for note in found}.values())

    def close(self) -> None:
        """No more is asked."""
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def __enter__(self) -> "ReplayableCapture":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _name(path: str) -> str:
    return "standard input" if path == "-" else path


def _merged(sources: list[CaptureSource], tap: SegmentProbe) -> Iterator[int]:
    """Their segments in the order of time."""
    merge = tap.merge = Merge(sources, tap)
    merge.begin()
    while merge.advance():
        yield int(merge.number)
    yield int(merge.number)

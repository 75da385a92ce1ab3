"""A capture that is read several times: a file, several that are one, or what came through a pipe."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, BinaryIO

from amqpscope.capture.merging import Merge
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.source import CaptureSource, called, only_once
from amqpscope.errors import CaptureError
from amqpscope.input.capture import BLOCK, Capture, CaptureOptions, together
from amqpscope.input.meter import Metering, unmeasured
from amqpscope.layers.secrets import Secrets
from amqpscope.model.note import DAMAGE, Note
from amqpscope.model.records import FrameRecord
from amqpscope.rules.editions import FINAL
from amqpscope.rules.profiles import AUTO

__all__ = ["ReplayableCapture", "SegmentProbe", "copy_octets"]


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
    """One capture. path: of the file; `-` is standard input, which is copied to a temporary file first, as
    any pipe is.

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
        # Of what can be read only once, by its path.
        self._copies: dict[str, BinaryIO] = {}
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
        return together([called(path) for path in self._paths])

    @property
    def size(self) -> int | None:
        """Octets of its files; None if one of them has no size, or came through a pipe."""
        try:
            if any(map(only_once, self._paths)):
                return None
            return sum(os.path.getsize(path) for path in self._paths)
        except OSError:
            return None

    @property
    def path(self) -> str:
        """Where it is, if it is one file that can be read again; else ""."""
        return self._paths[0] if len(self._paths) == 1 and not only_once(self._paths[0]) else ""

    def _file(self, path: str) -> str | BinaryIO:
        if path not in self._copies:
            if not only_once(path):
                return path
            copy = tempfile.TemporaryFile()  # noqa: SIM115  open as long as questions may come
            copy_octets(path, copy)
            self._copies[path] = copy
        self._copies[path].seek(0)
        return self._copies[path]

    def segments(self, tap: SegmentProbe) -> Iterator[int]:
        """Its TCP segments, from the beginning, to `tap`; yields how many packets there were by then."""
        if self._via:
            yield from self._through_tshark(tap)
            return
        sources = [CaptureSource(self._file(path), called(path)) for path in self._paths]
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
        for copy in self._copies.values():
            copy.close()
        self._copies.clear()

    def __enter__(self) -> "ReplayableCapture":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def copy_octets(path: str, copy: IO[bytes]) -> None:
    """Copy all of what can be read only once. Raises CaptureError."""
    if path == "-" and sys.stdin is None:
        raise CaptureError("standard input: is closed")
    try:
        if path == "-":
            shutil.copyfileobj(sys.stdin.buffer, copy)
        else:
            with open(path, "rb") as pipe:
                shutil.copyfileobj(pipe, copy)
        copy.flush()
    except OSError as error:
        raise CaptureError(f"{called(path)}: {error.strerror or error}") from error


def _merged(sources: list[CaptureSource], tap: SegmentProbe) -> Iterator[int]:
    """Their segments in the order of time."""
    merge = tap.merge = Merge(sources, tap)
    merge.begin()
    while merge.advance():
        yield int(merge.number)
    yield int(merge.number)

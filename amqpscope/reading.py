"""Reading a capture file: blocks of octets in, frame records out.

    for record in amqpscope.read("traffic.pcap"):
        print(record.packet, record.peer, record.frame.name)

    for finding in amqpscope.check("traffic.pcap"):
        print(finding.rule, finding.peer, finding.packet, finding.message)

The file is read once, front to back, a block at a time; so a pipe is as good as a file, and memory
does not grow with it. `Capture` also has the connections and the notes about the capture itself.
"""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from amqpscope.analysis import ConnectionAnalysis, Note
from amqpscope.capture.decompression import Unpacked
from amqpscope.capture.reader import for_magic
from amqpscope.connections import ConnectionTable
from amqpscope.errors import CaptureError
from amqpscope.finding import Finding
from amqpscope.model import FrameRecord

__all__ = ["Capture", "check", "read"]

BLOCK = 1024 * 1024
"""Octets read at a time: large enough to be fast, small enough to cost nothing."""


class Capture:
    """One capture. Iterate over it, once, for its frame records in the order they were completed.

    source: a path, `-` for standard input, or an open binary file, which stays open. messages: put messages
    together over their transfers. keep: remember all connections for `connections`, also those that ended.
    records: gather them; else only count frames. judge: make findings (needs messages), which `take_findings`
    gives; context: with the frames around them.
    name: what records call it, if not its path. Raises CaptureError when it cannot be opened.
    """

    def __init__(
        self,
        source: str | Path | BinaryIO,
        *,
        messages: bool = True,
        keep: bool = True,
        records: bool = True,
        judge: bool = False,
        context: bool = False,
        name: str | None = None,
    ) -> None:
        if isinstance(source, (str, Path)):
            self._own = str(source) != "-"
            self._file = _open(str(source))
            self.name = name or (str(source) if self._own else "standard input")
        else:
            self._own = False
            self._file = source
            self.name = name or _name(source)
        self.size: int | None = _size(self._file)
        """Octets of the file, None if it has no size (a pipe)."""
        self._unpacked = Unpacked(self._read_file)
        self.notes: list[Note] = []
        self._table = ConnectionTable(self.name, messages, keep, records, judge, context)
        self._begun = False
        # In the middle of a block, where nothing can be said to be complete.
        self._feeding = False

    @property
    def octets_read(self) -> int:
        """Octets of the file read so far: of a compressed one, compressed octets."""
        return self._unpacked.octets_taken

    @property
    def connections(self) -> list[ConnectionAnalysis]:
        """Every TCP connection seen, in the order in which they began. Empty unless they are kept."""
        return self._table.connections

    @property
    def protocols(self) -> dict[str, int]:
        """How many TCP connections that are over spoke each protocol; all of them once all was read."""
        return self._table.protocols

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
        return self._table.began()

    def take_findings(self) -> list[Finding]:
        """The findings since the last call that are complete: the peer reacted, or its connection is over.

        Of one connection they come in the order in which they were made. All have come once all was read.
        """
        return self._table.take_findings()

    def blocks(self) -> Iterator[list[FrameRecord]]:
        """The frame records that each block of the file completes; the last come when it ends.

        Raises CaptureError when the file is no capture, cannot be read, or was read before.
        """
        if self._begun:
            raise CaptureError(f"{self.name}: was read before")
        self._begun = True
        table = self._table
        first = self._read(4)
        while len(first) < 4:
            more = self._read(4 - len(first))
            if not more:
                raise CaptureError(f"{self.name}: {self._too_short(first)}")
            first += more
        reader = for_magic(first, table)
        if reader is None:
            raise CaptureError(f"{self.name}: {_what_it_is(first, self._unpacked.form)}")
        block = first + self._read(BLOCK - 4)
        while block:
            self._feeding = True
            reader.feed(block)
            self._feeding = False
            self.notes += table.take_notes()
            yield table.take_records()
            block = self._read(BLOCK)
        reader.finish()
        if self._unpacked.damage:
            table.note(self._unpacked.damage_code, reader.number, 0, self._unpacked.damage)
        table.finish()
        self.notes += table.take_notes()
        yield table.take_records()

    def stop(self) -> None:
        """The capture is not read to its end: what is open ends here, and all its findings are complete."""
        if not self._feeding:
            self._table.finish()
            self.notes += self._table.take_notes()

    def __iter__(self) -> Iterator[FrameRecord]:
        for records in self.blocks():
            yield from records

    def _read(self, octets: int) -> bytes:
        """The next octets of the capture; none at its end."""
        try:
            return self._unpacked.read1(octets)
        except OSError as error:
            raise CaptureError(f"{self.name}: {error.strerror or error}") from error
        except (ValueError, CaptureError) as error:  # a file closed, or opened for writing
            raise CaptureError(f"{self.name}: {error}") from error

    def _read_file(self, octets: int) -> bytes:
        # A pipe gives what it has: frames are to be shown as they come.
        block = self._file.read1(octets) if hasattr(self._file, "read1") else self._file.read(octets)
        if isinstance(block, str):
            raise CaptureError("opened as text, not as a binary file")
        return bytes(block or b"")

    def _too_short(self, first: bytes) -> str:
        """Why a file that ends within its first octets is no capture."""
        if self._unpacked.damage:
            return self._unpacked.damage
        if self._unpacked.form:
            return f"compressed with {self._unpacked.form}, and {'no capture' if first else 'nothing'} in it"
        return "not a capture file" if first else "the file is empty"

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self._own:
            self._file.close()

    def __enter__(self) -> "Capture":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read(source: str | Path | BinaryIO, *, messages: bool = True) -> Iterator[FrameRecord]:
    """The frame records of a capture: path, `-`, or an open binary file.

    Raises CaptureError at once when it cannot be opened, and on the first record when it is no capture.
    """
    return _records(Capture(source, messages=messages, keep=False))


def check(source: str | Path | BinaryIO) -> Iterator[Finding]:
    """The findings of a capture: path, `-`, or an open binary file.

    Raises CaptureError at once when it cannot be opened, and on the first finding when it is no capture.
    """
    return _findings(Capture(source, keep=False, records=False, judge=True))


def _findings(capture: Capture) -> Iterator[Finding]:
    with capture:
        for _ in capture.blocks():
            yield from capture.take_findings()


def _records(capture: Capture) -> Iterator[FrameRecord]:
    with capture:
        yield from capture


def _open(path: str) -> BinaryIO:
    if path == "-":
        if sys.stdin is None:
            raise CaptureError("standard input: is closed")
        return sys.stdin.buffer
    try:
        if os.path.isdir(path):
            raise CaptureError(f"{path}: is a directory, not a capture file")
        return open(path, "rb")
    except OSError as error:
        raise CaptureError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:  # a zero octet in the name
        raise CaptureError(f"{path!r}: {error}") from error


def _name(file: BinaryIO) -> str:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else "stream"


def _size(file: BinaryIO) -> int | None:
    try:
        status = os.fstat(file.fileno())
    except (OSError, AttributeError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


# Files that are no captures but often hold one. The first two are read, but not within one another.
_COMPRESSED = ((b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\xfd7zX", "xz"), (b"BZh", "bzip2"))


def _what_it_is(first: bytes, form: str) -> str:
    """What a file is that starts with these octets after `form` (gzip, zstd or none) was undone."""
    for magic, name in _COMPRESSED:
        if first.startswith(magic):
            return f"compressed with {name}{f' and with {form}' if form else ''}; decompress it first"
    inside = f", inside {form}" if form else ""
    return f"not a capture file (neither pcap nor pcapng{inside})"

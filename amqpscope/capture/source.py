"""Where a capture's octets come from: a file, standard input, or what is open already; compressed or not."""

import os
import stat
import sys
from typing import Any, Final

from amqpscope.capture.decompression import Unpacked
from amqpscope.capture.file_reader import FileReader
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.reader import CaptureReader, for_magic
from amqpscope.capture.sink import SegmentSink
from amqpscope.errors import CaptureError
from amqpscope.limits import MAX_LOG_SAMPLE

__all__ = ["CaptureSource", "called", "is_capture", "only_once", "shown_name"]

# Files that are no captures but often hold one. The first two are read, but not within one another.
_COMPRESSED: Final = (
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\xfd7zX", "xz"),
    (b"BZh", "bzip2"),
)


class CaptureSource:
    """One file: its octets, and the reader that they are for.

    file: a path, `-` for standard input, or an open binary file, which stays open. `name`: what messages call
    it; `size`: octets of the file, None if it has no size (a pipe). `unknown`: it could not be read as far as
    it takes to know what it is. Whatever goes wrong is a CaptureError that begins with the name.
    """

    def __init__(self, file: Any, name: str | None = None) -> None:
        self._own = False
        self._path = ""
        self._file: Any = None
        self.size: int | None = None
        self.unknown = False  # reading failed, so that nobody knows what is in it
        self._first = b""
        self._unpacked = Unpacked(self._read_file)
        if isinstance(file, (str, os.PathLike)):
            self._path = str(file)
            self._own = self._path != "-"
            self.name = name or called(self._path)
            self.size = _path_size(self._path) if self._own else None
        else:
            self._file = file
            self.name = name or _name(file)
            self.size = _size(file)

    @property
    def octets_read(self) -> int:
        """Octets of the file read so far: of a compressed one, compressed octets."""
        return self._unpacked.octets_taken

    @property
    def growing(self) -> str:
        """Once it was read to its end: what to say of it if others are writing to it, "" if nobody does."""
        if self.size is None or self._file is None or (_size(self._file) or 0) <= self.size:
            return ""
        return "the file is still being written: octets that are written later are not read"

    @property
    def path(self) -> str:
        """Where the file is, "" if it is not known by a path."""
        return self._path

    @property
    def again(self) -> bool:
        """Whether it can be closed and opened again."""
        return self._own and not only_once(self._path)

    @property
    def damage(self) -> str:
        """What ended a compressed file's octets early, "" if nothing did."""
        return self._unpacked.damage

    @property
    def damage_code(self) -> str:
        """The code of the note for that."""
        return self._unpacked.damage_code

    def open(self) -> None:
        """Open the file if it is not open. Raises CaptureError."""
        if self._file is None:
            self._file = _open(self._path)
            self._unpacked = Unpacked(self._read_file)
            self.size = _size(self._file)

    def start(self, sink: SegmentSink, decoder: PacketDecoder | None = None) -> CaptureReader:
        """The reader for the file's octets, all of which are yet to come. See `for_magic`."""
        self.open()
        first = self._read(4)
        while len(first) < 4:
            more = self._read(4 - len(first))
            if not more:
                raise CaptureError(f"{self.name}: {self._too_short(first)}")
            first += more
        self._first = first
        reader = for_magic(first, sink, decoder)
        if reader is None:
            raise CaptureError(f"{self.name}: {_what_it_is(first, self._unpacked.form)}")
        return reader

    def reader(self, sink: SegmentSink) -> FileReader:
        """As `start`, also for the log of a client library: found by its lines."""
        try:
            return self.start(sink)
        except CaptureError:
            if self.unknown or not self._first:
                raise
            from amqpscope.capture.logs.reader import log_reader  # hardly ever needed

            while len(self._first) < MAX_LOG_SAMPLE:
                more = self._read(MAX_LOG_SAMPLE - len(self._first))
                if not more:
                    break
                self._first += more
            log = log_reader(self._first, sink)
            if log is not None:
                return log
            from amqpscope.capture.logs.firehose import trace_reader  # hardly ever needed

            traces = trace_reader(self._first, sink)
            if traces is None:
                raise
            return traces

    def read(self, octets: int) -> bytes:
        """The next octets of the capture, up to so many (more than 4) and as soon as there are any."""
        first = self._first
        if first:
            self._first = first[octets:]
            if len(first) >= octets:
                return first[:octets]
            return first + self._read(octets - len(first))
        return self._read(octets)

    def close(self) -> None:
        """Close the file, if it was opened here. It can be opened again, and starts anew then."""
        self._first = b""
        if self._own and self._file is not None:
            self._file.close()
            self._file = None

    def separate(self) -> None:
        """In a fork of the process that opened the file: read on from a position that no other process moves.

        Raises OSError if the file cannot be opened again, or another file has its name now.
        """
        if self._file is None:
            return
        own = self._file.fileno()
        again = os.open(self._path, os.O_RDONLY)
        try:
            if not os.path.samestat(os.fstat(again), os.fstat(own)):
                raise OSError(f"{self._path}: is another file now")
            os.lseek(again, os.lseek(own, 0, os.SEEK_CUR), os.SEEK_SET)
            os.dup2(again, own)
        finally:
            os.close(again)

    def _read(self, octets: int) -> bytes:
        try:
            return self._unpacked.read1(octets)
        except OSError as error:
            self.unknown = True
            raise CaptureError(f"{self.name}: {error.strerror or error}") from error
        except (ValueError, CaptureError) as error:  # a file closed, or opened for writing; no zstd
            self.unknown = True
            raise CaptureError(f"{self.name}: {error}") from error

    def _read_file(self, octets: int) -> bytes:
        # A pipe gives what it has: frames are to be shown as they come.
        file = self._file
        block = file.read1(octets) if hasattr(file, "read1") else file.read(octets)
        if isinstance(block, str):
            raise CaptureError("opened as text, not as a binary file")
        return bytes(block or b"")

    def _too_short(self, first: bytes) -> str:
        """Why a file that ends within its first octets is no capture."""
        if self._unpacked.damage:
            return self._unpacked.damage
        if self._unpacked.form:
            return (
                f"compressed with {self._unpacked.form}, but the file contains "
                f"{'no capture' if first else 'nothing'}"
            )
        return "not a capture file" if first else "the file is empty"


def only_once(path: str) -> bool:
    """Whether what is at a path can be read only once: `-` is standard input; a pipe has a path, too."""
    if path == "-":
        return True
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def called(path: str) -> str:
    """What messages call the file at a path."""
    return "standard input" if path == "-" else shown_name(path) or "''"


def shown_name(path: str) -> str:
    """The name of a file as all outputs have it: where it is no UTF-8, the octet FF stands as `\\udcff`.

    The tables of the pipeline show it so, too. Python keeps such an octet as a lone surrogate, which strict
    readers of JSON refuse.
    """
    return path.encode("utf-8", "backslashreplace").decode()


def is_capture(path: str) -> bool:
    """Whether the file at `path` looks like a capture, by its first octets.

    Also if that cannot be determined, so that whoever reads it is given why.
    """
    source = CaptureSource(path)
    try:
        source.open()
    except CaptureError:
        return True
    try:
        source.start(SegmentSink())
    except CaptureError:
        return source.unknown
    finally:
        source.close()
    return True


def _open(path: str) -> Any:
    if path == "-":
        if sys.stdin is None:
            raise CaptureError("standard input: is closed")
        return sys.stdin.buffer
    try:
        if os.path.isdir(path):
            raise CaptureError(f"{called(path)}: is a directory, not a capture file")
        return open(path, "rb")
    except OSError as error:
        raise CaptureError(f"{called(path)}: {error.strerror or error}") from error
    except ValueError as error:  # a zero octet in the name
        raise CaptureError(f"{path!r}: {error}") from error


def _name(file: Any) -> str:
    name = getattr(file, "name", None)
    return name if isinstance(name, str) else "stream"


def _path_size(path: str) -> int | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _size(file: Any) -> int | None:
    try:
        status = os.fstat(file.fileno())
    except (OSError, AttributeError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _what_it_is(first: bytes, form: str) -> str:
    """What a file is that starts with these octets after `form` (gzip, zstd or none) was undone."""
    for magic, name in _COMPRESSED:
        if first.startswith(magic):
            return f"compressed with {name}{f' and with {form}' if form else ''}; decompress it first"
    inside = f", inside {form}" if form else ""
    return f"not a capture file (neither pcap nor pcapng{inside})"

"""Captures that were compressed: gzip and zstd, undone a piece at a time.

Theory of operation. `Unpacked` stands between whoever reads a file and the file: it looks at the first
octets and passes the rest through as it is, or decompressed. What it gives at a time is bounded by what is
asked for, whatever the compressed octets expand to: a file of a megabyte that holds a terabyte of zeros
takes its time and no memory. Several compressed streams end to end are one, as gzip and zstd have it.

Damage ends the octets like the end of the file does; what was whole before it has been given. `damage` says
then what it was. Decompressors tell of damage only by refusing a whole piece of input, so gzip's is asked
again, for less, from the state before (zlib can copy it); zstd's is fed in pieces so small that hardly
anything is lost with one.

gzip: RFC 1952. zstd: RFC 8878; it is in Python's own library from 3.14 on, and in the package backports.zstd.
"""

import importlib
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final

from amqpscope.errors import CaptureError
from amqpscope.limits import MAX_ZSTD_WINDOW

__all__ = ["Unpacked", "compression"]

_READ: Final = 64 * 1024  # compressed octets at a time
_ZSTD_PIECE: Final = 1024  # of them given to zstd at a time
_ZSTD_HEAD: Final = 18  # the most octets of a frame's header
_MOST_WINDOW: Final = 1 << MAX_ZSTD_WINDOW - 20  # in MiB
_GZIP: Final = 31  # zlib's window bits for the largest window and gzip's header

_ZSTD_MODULES: Final = ("compression.zstd", "backports.zstd")


def compression(first: bytes) -> str:
    """What a file that starts with these octets (4 are enough) is compressed with: `gzip`, `zstd`, or ""."""
    if first[:2] == b"\x1f\x8b":
        return "gzip"
    if first[:4] == b"\x28\xb5\x2f\xfd" or (first[1:4] == b"\x2a\x4d\x18" and first[0] & 0xF0 == 0x50):
        return "zstd"  # a frame, or one to be skipped, which parallel compressors begin with
    return ""


class Stream(ABC):
    """Compressed octets in, by `give`; octets out, by `take`, as many as are asked for at most.

    `damage` is what ended it early, "" while nothing did; `damage_code` the note for that.
    """

    def __init__(self) -> None:
        self.damage = ""
        self.damage_code = ""
        self.given_out = 0

    @abstractmethod
    def give(self, block: bytes) -> None:
        """The next compressed octets. Only when `take` has given nothing."""

    @abstractmethod
    def take(self, most: int) -> bytes:
        """The next octets, up to `most`; none if there is need for more compressed ones, or no way on."""

    @abstractmethod
    def finish(self) -> None:
        """There are no more compressed octets."""

    def _break(self, code: str, what: str) -> None:
        self.damage_code = code
        self.damage = (
            f"{what} after {self.given_out} decompressed octets; the data after this point are not read"
        )


class GzipStream(Stream):
    """gzip: members end to end, behind which there may be zeros."""

    def __init__(self) -> None:
        super().__init__()
        self._member: Any = zlib.decompressobj(_GZIP)
        self._members = 0
        self._input = b""
        self._inside = False  # the member has begun
        self._full = False  # as much was given as was asked for: there may be more without further input

    def give(self, block: bytes) -> None:
        self._input = block

    def take(self, most: int) -> bytes:
        while not self.damage and (self._input or self._full):
            if not self._inside and not self._begin():
                break
            before = self._member.copy()
            try:
                out: bytes = self._member.decompress(self._input, most)
            except zlib.error:
                out = _before_damage(before, self._input, most)
                self.given_out += len(out)
                self._break("capture/corrupt", "the gzip data are damaged")
                return out
            self._full = len(out) == most
            self._input = self._member.unconsumed_tail
            if self._member.eof:
                self._input = self._member.unused_data
                self._inside = False
                self._full = False
            self.given_out += len(out)
            if out:
                return out
        return b""

    def _begin(self) -> bool:
        """Begin a member at the input, if there is one."""
        if self._members:
            self._input = self._input.lstrip(b"\0")
            if not self._input:
                return False
            if self._input[0] != 0x1F:
                self._break("capture/corrupt", "octets that are not gzip data follow")
                return False
            self._member = zlib.decompressobj(_GZIP)
        self._members += 1
        self._inside = True
        return True

    def finish(self) -> None:
        if not self.damage and self._inside:
            self._break("capture/truncated", "the gzip data are cut short")


def _before_damage(member: Any, damaged: bytes, most: int) -> bytes:
    """What a decompressor gives before it fails. most: octets of output that it fails at when asked for.

    It says nothing of what it had when it failed, so the most that it gives without is searched for. At that
    it may have one octet more in hand: it looks ahead while it has input.
    """
    out = b""
    reached = member
    least = 0
    while most - least > 1:
        middle = (least + most) // 2
        attempt = member.copy()
        try:
            out = attempt.decompress(damaged, middle)
        except zlib.error:
            most = middle
        else:
            least = middle
            reached = attempt
    try:
        return bytes(out + reached.decompress(b"", 1))
    except zlib.error:
        return out


class ZstdStream(Stream):
    """zstd: frames end to end. Raises CaptureError where there is nothing that can decompress it."""

    def __init__(self) -> None:
        super().__init__()
        self._zstd = _zstd()
        self._frame: Any = None
        self._head = b""  # the first octets of the frame
        self._input = b""
        self._at = 0

    def give(self, block: bytes) -> None:
        self._input = block
        self._at = 0

    def take(self, most: int) -> bytes:
        while not self.damage:
            frame = self._frame
            piece = b""
            if frame is None or frame.needs_input:
                piece = self._input[self._at : self._at + _ZSTD_PIECE]
                self._at += len(piece)
                if not piece:
                    break
            if frame is None:
                options = {self._zstd.DecompressionParameter.window_log_max: MAX_ZSTD_WINDOW}
                self._frame = frame = self._zstd.ZstdDecompressor(options=options)
                self._head = b""
            self._head += piece[: _ZSTD_HEAD - len(self._head)]
            try:
                out: bytes = frame.decompress(piece, most)
            except self._zstd.ZstdError:
                window = _window(self._head)
                if window > 1 << MAX_ZSTD_WINDOW:
                    self._break(
                        "capture/compression",
                        f"the zstd data need a window of {window >> 20} MiB, but amqpscope uses at most "
                        f"{_MOST_WINDOW} MiB (to decompress the data: zstd -dc "
                        f"--long={(window - 1).bit_length()})",
                    )
                else:
                    self._break("capture/corrupt", "the zstd data are damaged")
                break
            if frame.eof:
                self._at -= len(frame.unused_data)
                self._frame = None
            self.given_out += len(out)
            if out:
                return out
        return b""

    def finish(self) -> None:
        if not self.damage and self._frame is not None:
            self._break("capture/truncated", "the zstd data are cut short")


def _window(head: bytes) -> int:
    """Octets of the window that a zstd frame with this head asks for; 0 if that cannot be determined.

    RFC 8878, section 3.1.1.1: a frame in one segment asks for its whole size.
    """
    if len(head) < 6:
        return 0
    descriptor = head[4]
    if not descriptor & 0x20:
        base = 1 << (10 + (head[5] >> 3))
        return base + (base >> 3) * (head[5] & 7)
    start = 5 + (0, 1, 2, 4)[descriptor & 3]
    octets = (1, 2, 4, 8)[descriptor >> 6]
    return int.from_bytes(head[start : start + octets], "little")


def _zstd() -> Any:
    """The module that has zstd in it."""
    for name in _ZSTD_MODULES:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise CaptureError("compressed with zstd; to read it: pip install 'amqpscope[zstd]'")


class Unpacked:
    """The octets of a file, decompressed if they are compressed.

    read: gives up to so many octets of the file, none at its end. `form`: `gzip`, `zstd` or "", once
    something was read; `octets_taken`: of the file. `damage`, `damage_code`: see `Stream`.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._first = b""
        self._begun = False
        self._ended = False
        self._stream: Stream | None = None
        self.form = ""
        self.octets_taken = 0

    @property
    def damage(self) -> str:
        """What ended the octets before the file ended, or ""."""
        return "" if self._stream is None else self._stream.damage

    @property
    def damage_code(self) -> str:
        """The code of the note that tells of it."""
        return "" if self._stream is None else self._stream.damage_code

    def read1(self, octets: int) -> bytes:
        """The next octets, up to so many and as soon as there are any; none at the end."""
        if not self._begun:
            self._begin()
        stream = self._stream
        if stream is None:
            if self._first:
                block = self._first[:octets]
                self._first = self._first[octets:]
                return block
            return self._raw(octets)
        while True:
            out = stream.take(octets)
            if out or self._ended or stream.damage:
                return out
            block = self._first or self._raw(_READ)
            self._first = b""
            if block:
                stream.give(block)
            else:
                self._ended = True
                stream.finish()

    def _begin(self) -> None:
        self._begun = True
        while len(self._first) < 4:
            more = self._raw(4 - len(self._first))
            if not more:
                break
            self._first += more
        self.form = compression(self._first)
        if self.form == "gzip":
            self._stream = GzipStream()
        elif self.form == "zstd":
            self._stream = ZstdStream()

    def _raw(self, octets: int) -> bytes:
        block = self._read(octets)
        self.octets_taken += len(block)
        return block

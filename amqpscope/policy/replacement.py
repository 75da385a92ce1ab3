"""Files that are written whole or not at all: beside where they are to be, until all is written."""

from __future__ import annotations

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from typing import TYPE_CHECKING, TextIO

from amqpscope.errors import CaptureError, OutputError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

__all__ = ["Replacement", "replace_text"]


class Replacement:
    """A text file that takes the place of the one at `path` when it is `complete`.

    Until then what was there stays, whatever ends the program; `abandon` leaves it for good. A link is
    followed. What is no regular file (a pipe, a device), is one of the program's own standard streams, or
    stands in a folder where no other file can be made, is written in place: what it held is gone at once.

    Nothing is created before `open` or `reserve`, so that whoever ends the program at a signal can know the
    file before it exists. Raises OutputError with the path for whatever goes wrong; so does writing to the
    opened text.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._target = os.path.realpath(path)
        # Where it is written meanwhile; "" in place.
        self._unfinished = ""
        self._text: TextIO | None = None

    def open(self) -> TextIO:
        """Create the file that is written meanwhile. Call this once; the text takes what is to be written."""
        before = _status(self._target)
        self._create(0o666)
        if self._unfinished and before is not None:
            with contextlib.suppress(OSError):
                os.chmod(self._unfinished, stat.S_IMODE(before.st_mode))
        try:
            raw = _NamedFile(self._unfinished or self._path, "w", self._path)
        except OSError as error:
            raise _failed(self._path, error) from error
        written = io.BufferedWriter(raw)
        self._text = io.TextIOWrapper(written, encoding="utf-8", errors="backslashreplace", newline="\n")
        return self._text

    def reserve(self) -> str:
        """The path that is written meanwhile, for somebody who opens it, and not by `open`.

        The file is created at once, and only the user may read it.
        """
        self._create(0o600)
        return self._unfinished or self._path

    def named(self, message: str) -> str:
        """A message that calls the file as the user does, and not by the path that is written meanwhile."""
        return message.replace(self._unfinished, self._path) if self._unfinished else message

    @contextlib.contextmanager
    def reserved(self) -> Iterator[str]:
        """The path of `reserve`. Whoever fails to write it abandons it; a CaptureError then names `path`."""
        try:
            yield self.reserve()
        except CaptureError as error:
            why = self.named(str(error))
            self.abandon()
            raise CaptureError(why) from error
        except BaseException:
            self.abandon()
            raise

    def _create(self, mode: int) -> None:
        """Create the file that is written meanwhile, if there is to be one and it can be made."""
        before = _status(self._target)
        if before is not None and not _may_be_replaced(self._target, before):
            return
        folder, name = os.path.split(self._target)
        # A run that was killed leaves its own one, maybe with the same process id: in a container that is
        # always the same.
        self._unfinished = os.path.join(folder, f".{name}.{os.getpid()}.{os.urandom(4).hex()}.part")
        try:
            os.close(os.open(self._unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        except OSError:
            # It may be possible to write the file itself.
            self._unfinished = ""

    def complete(self) -> None:
        """All is written: this is the file from now on."""
        try:
            self._close()
            if self._unfinished:
                os.replace(self._unfinished, self._target)
        except OSError as error:
            self.abandon()
            raise _failed(self._path, error) from error
        except OutputError:
            self.abandon()
            raise

    def abandon(self) -> None:
        """It will not be complete: what was there before stays."""
        with contextlib.suppress(OSError, OutputError):
            self._close()
        self.remove()
        self._unfinished = ""

    def _close(self) -> None:
        if self._text is not None:
            self._text.close()

    def remove(self) -> None:
        """Remove what was written so far, and nothing else: the program is about to end."""
        if self._unfinished:
            with contextlib.suppress(OSError):
                os.unlink(self._unfinished)


def replace_text(path: str, text: str) -> None:
    """Write a whole text to the file at `path`. Raises OutputError; what was there before stays then."""
    file = Replacement(path)
    try:
        file.open().write(text)
    except BaseException:
        file.abandon()
        raise
    file.complete()


class _NamedFile(io.FileIO):
    """A file that says which one it is when it cannot be written. path: what the user calls it."""

    def __init__(self, file: str, mode: str, path: str) -> None:
        super().__init__(file, mode)
        self._path = path

    def write(self, octets: Buffer) -> int:
        try:
            return super().write(octets)
        except OSError as error:
            raise _failed(self._path, error) from error


def _failed(path: str, error: OSError) -> OutputError:
    return OutputError(f"{path}: {error.strerror or error}")


def _status(path: str) -> os.stat_result | None:
    """What is at a path; None if nothing is, or it cannot be determined."""
    try:
        return os.stat(path)
    except OSError:
        return None


def _may_be_replaced(path: str, status: os.stat_result) -> bool:
    """Whether another file may take its place: the user may write it, and it is of no other use."""
    return stat.S_ISREG(status.st_mode) and os.access(path, os.W_OK) and not _is_standard_stream(status)


def _is_standard_stream(status: os.stat_result) -> bool:
    """Whether a file is what the program reads or writes by itself, as with `-o json:/dev/stdout`."""
    for descriptor in range(3):
        with contextlib.suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), status):
                return True
    return False

"""The files that packets are recorded in: one, standard output, or a set in which new ones replace old ones.

A file is written without a buffer of its own, so that what was written is there whatever becomes of the
program. If the disk is full the file is cut back to what was whole. Files are for their owner alone: AMQP's
passwords cross the wire as they are.
"""

import os
import select
import stat
import sys
import time as clock
from typing import Any

from amqpscope.errors import CaptureError

__all__ = ["OutputFiles", "Rotation"]


class Rotation:
    """When the next file of a set begins, and how many of the newest are kept; 0: that does not count.

    size: octets of a file at most; duration: nanoseconds from its first packet on; packets in it.
    """

    def __init__(self, size: int = 0, duration: int = 0, packets: int = 0, files: int = 0) -> None:
        self.size = size
        self.duration = duration
        self.packets = packets
        self.files = files


class OutputFiles:
    """Where recorded octets go. Raises CaptureError, one clear line that begins with the file's name.

    path: of the file, `-` for standard output. Of a rotating set the names are made of it as dumpcap does:
    `NAME_00001_20261122021600.pcapng`, number and local time of the first packet. `names`: of the files
    that were written and are there. `pipe`: what was written is read at once, and cannot be found again.
    """

    def __init__(self, path: str, rotation: Rotation | None = None, later: bool = False) -> None:
        self.names: list[str] = []
        self.pipe = path == "-"
        self._path = path
        self._rotation = rotation
        self._count = 0
        self._descriptor = -1
        self._whole = -1  # octets of a regular file that were written whole
        if self.pipe:
            if rotation is not None:
                raise CaptureError("standard output: cannot be split into several files; name a file")
            if sys.stdout is None:
                raise CaptureError("standard output: is closed")
            if sys.stdout.isatty():
                raise CaptureError(
                    "standard output: is a terminal; name a file, or give it to a program by |"
                )
            if not later:
                self.begin(0)
        elif rotation is not None or later:
            _check(path)
        else:
            self.begin(0)

    def begin(self, time: int) -> None:
        """Open the next file, whose first packet is of that time. Not to be called twice for a single one."""
        self.end()
        if self.pipe:
            self._path = "standard output"
            try:
                sys.stdout.flush()
                self._descriptor = sys.stdout.fileno()
            except (OSError, ValueError) as error:
                raise _failed(self._path, error) from error
            return
        name = self._path
        rotation = self._rotation
        if rotation is not None:
            self._count += 1
            stem, suffix = os.path.splitext(self._path)
            moment = clock.strftime("%Y%m%d%H%M%S", clock.localtime(time // 1_000_000_000))
            name = f"{stem}_{self._count:05}_{moment}{suffix}"
        try:
            self._descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            regular = stat.S_ISREG(os.fstat(self._descriptor).st_mode)
        except (OSError, ValueError) as error:
            raise _failed(name, error) from error
        self._whole = 0 if regular else -1
        self.names.append(name)
        if rotation is not None and rotation.files:
            while len(self.names) > rotation.files:
                _remove(self.names.pop(0))

    def write(self, octets: Any) -> None:
        """All of these octets (bytes, or a view of them), or, if that fails, none that could be read back."""
        rest = memoryview(octets)
        while len(rest):
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
            except OSError as error:
                self._cut_back()
                raise _failed(self.names[-1] if self.names else self._path, error) from error
        if self._whole >= 0:
            self._whole += len(octets)

    def end(self) -> None:
        """Close the file that is open, if one is."""
        if self._descriptor >= 0 and not self.pipe:
            try:
                os.close(self._descriptor)
            except OSError as error:
                raise _failed(self.names[-1], error) from error
            finally:
                self._descriptor = -1

    def _cut_back(self) -> None:
        if self._whole >= 0:
            try:
                os.ftruncate(self._descriptor, self._whole)
            except OSError:
                return  # the error that brought us here is reported


def _check(path: str) -> None:
    """That a file which is opened later can be written, as far as can be seen now."""
    try:
        if os.path.isdir(path):
            raise CaptureError(f"{path}: is a directory")
        folder = os.path.dirname(path) or "."
        if not os.path.isdir(folder):
            raise CaptureError(f"{path}: there is no directory {folder}")
        if os.path.exists(path):
            writable = os.access(path, os.W_OK)
        else:
            writable = os.access(folder, os.W_OK | os.X_OK)
    except ValueError as error:  # a zero octet in the name
        raise _failed(path, error) from error
    if not writable:
        raise CaptureError(f"{path}: Permission denied")


def _remove(name: str) -> None:
    try:
        os.remove(name)
    except FileNotFoundError:
        return
    except OSError as error:
        raise _failed(name, error) from error


def _failed(name: str, error: Exception) -> CaptureError:
    what = error.strerror if isinstance(error, OSError) else None
    return CaptureError(f"{name!r}: {error}" if isinstance(error, ValueError) else f"{name}: {what or error}")

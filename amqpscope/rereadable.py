"""A capture that is read several times: a file, or what came through a pipe."""

import shutil
import sys
import tempfile
from typing import BinaryIO

from amqpscope.capture.source import Source
from amqpscope.errors import CaptureError
from amqpscope.reading import Capture
from amqpscope.rules.editions import FINAL
from amqpscope.rules.profiles import AUTO

__all__ = ["Rereadable"]


class Rereadable:
    """One capture. path: of the file; `-` is standard input, which is copied to a temporary file first.

    profile, spec: as of `Capture`.
    """

    def __init__(self, path: str, profile: str = AUTO, spec: str = FINAL) -> None:
        self._path = path
        self._copy: BinaryIO | None = None
        self._profile = profile
        self._spec = spec

    @property
    def name(self) -> str:
        """What it is called."""
        return "standard input" if self._path == "-" else self._path

    def _file(self) -> str | BinaryIO:
        if self._path != "-":
            return self._path
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

    def source(self) -> Source:
        """Its octets, from the beginning."""
        return Source(self._file(), self.name)

    def capture(self, judge: bool, keep: bool = False) -> Capture:
        """Its frames, from the beginning, judged or not. keep: with its connections."""
        return Capture(
            self._file(), judge=judge, keep=keep, name=self.name, profile=self._profile, spec=self._spec
        )

    def close(self) -> None:
        """No more is asked."""
        if self._copy is not None:
            self._copy.close()
            self._copy = None

    def __enter__(self) -> "Rereadable":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

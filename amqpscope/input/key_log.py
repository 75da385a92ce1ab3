"""Key logs: files with TLS secrets in the format of SSLKEYLOGFILE, which may grow while they are read."""

import importlib.util
from collections.abc import Sequence
from typing import Final

from amqpscope.errors import FilterError
from amqpscope.layers.secrets import Secrets

__all__ = ["KeyLogs"]

_BLOCK: Final = 1024 * 1024
"""Octets read at a time. A line without an end in so many is none."""


class KeyLogs(Secrets):
    """The secrets of key logs. growing: lines may be added, and a file may still be empty.

    Raises FilterError when one cannot be read or has no secrets, or when the package for decryption is
    missing.
    """

    def __init__(self, paths: Sequence[str], growing: bool = False) -> None:
        super().__init__()
        if importlib.util.find_spec("cryptography") is None:
            raise FilterError('--tls-keylog: needs the package cryptography (pip install "amqpscope[tls]")')
        self.given = True
        # Of each file, how many octets of it were taken.
        self._read = dict.fromkeys(paths, 0)
        for path in self._read:
            try:
                taken = self._take_new(path)
            except OSError as error:
                raise FilterError(f"--tls-keylog {path}: {error.strerror or error}") from error
            if not taken and not growing:
                raise FilterError(
                    f"--tls-keylog {path}: has no TLS secrets (lines such as CLIENT_RANDOM ... ...)"
                )

    def look_further(self) -> bool:
        try:
            return sum(self._take_new(path) for path in self._read) > 0
        except OSError:
            return False  # the file was there and is gone: what it had is known

    def _take_new(self, path: str) -> int:
        """Take the whole lines that a file has more than before. Returns how many secrets they had."""
        taken = 0
        with open(path, "rb") as file:
            file.seek(self._read[path])
            rest = b""
            while block := file.read(_BLOCK):
                lines, _, rest = (rest + block).rpartition(b"\n")
                taken += self.take(lines)
                rest = rest if len(rest) < _BLOCK else b""
            at = file.tell()
        if rest and self.take(rest):
            return taken + 1  # the last line has no end, and is whole
        self._read[path] = at - len(rest)
        return taken

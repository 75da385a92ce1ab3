"""Where TLS secrets come from: key logs in the format of SSLKEYLOGFILE, which may grow while they are read,
private keys of servers, and what a capture file has behind the packets that it is for.
"""

import importlib.util
import os
import struct
from collections.abc import Callable, Sequence
from typing import Final

from amqpscope.capture.pcapng import is_pcapng
from amqpscope.capture.pcapng_blocks import DECRYPTION_SECRETS, SECTION_HEADER, TLS_KEY_LOG
from amqpscope.capture.source import CaptureSource, only_once
from amqpscope.errors import CaptureError, FilterError
from amqpscope.layers.secrets import Secrets, SecretsSource
from amqpscope.limits import MAX_BLOCK

__all__ = ["LaterBlocks", "take_blocks", "tls_secrets"]

_BLOCK: Final = 1024 * 1024
"""Octets read at a time. A line of a key log without an end in so many is none."""


def tls_secrets(logs: Sequence[str], keys: Sequence[str] = (), growing: bool = False) -> Secrets | None:
    """The secrets of key logs and of files with private keys (PEM); None if there are no such files. growing:
    lines may be added to the logs, and a log may still be missing or empty.

    Raises FilterError when a file cannot be read or has no secrets, or when the package for decryption is
    missing.
    """
    if not logs and not keys:
        return None
    if importlib.util.find_spec("cryptography") is None:
        option = "--tls-keylog" if logs else "--tls-key"
        raise FilterError(f'{option}: needs the package cryptography (pip install "amqpscope[tls]")')
    secrets = Secrets()
    secrets.given = True
    secrets.growing = growing and bool(logs)
    if keys:
        from amqpscope.input.server_keys import server_key  # brings cryptography, which takes its time

        secrets.server_keys += [server_key(path) for path in keys]
    for path in logs:
        log = KeyLog(path)
        try:
            taken = log.take_new(secrets)
        except OSError as error:
            if not (growing and isinstance(error, FileNotFoundError)):
                raise FilterError(f"--tls-keylog {path}: {error.strerror or error}") from error
            taken = 0
        if not taken and not growing:
            raise FilterError(
                f"--tls-keylog {path}: has no TLS secrets (lines such as CLIENT_RANDOM ... ...)"
            )
        secrets.sources.append(log)
    return secrets


_HEADER: Final = 12
"""Octets of a block that tell how long it is, and of that of a section its byte order."""


class KeyLog(SecretsSource):
    """One file."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        # How many octets of it were taken, in whole lines, and how many it had then.
        self._read = 0
        self._size = 0

    def look_further(self, secrets: Secrets, random: bytes) -> bool:
        if only_once(self._path):
            return False
        try:
            return os.stat(self._path).st_size != self._size and self.take_new(secrets) > 0
        except OSError:
            return False  # the file is not there yet, or is gone: what it had is known

    def take_new(self, secrets: Secrets) -> int:
        """Take the lines that the file has more than before. Returns how many secrets they had."""
        taken = 0
        with open(self._path, "rb") as file:
            if self._read:  # a pipe, which is read once, has no places
                file.seek(self._read)
            size = self._read
            rest = b""
            while block := file.read(_BLOCK):
                size += len(block)
                lines, _, rest = (rest + block).rpartition(b"\n")
                taken += secrets.take(lines)
                rest = rest if len(rest) < _BLOCK else b""
            self._size = size
            self._read = self._size - len(rest)
        # The last line may be whole and have no end. If it is not whole it is taken again.
        return taken + secrets.take(rest)


class LaterBlocks(SecretsSource):
    """The decryption secrets blocks of a pcapng file, looked for at once in the whole file when one is
    missing.
    """

    def __init__(self, path: str) -> None:
        super().__init__()
        self._path = path
        self._looked = False

    def look_further(self, secrets: Secrets, random: bytes) -> bool:
        if self._looked:
            return False
        self._looked = True
        source = CaptureSource(self._path)
        try:
            source.open()
            return take_blocks(source.read, secrets)
        except CaptureError:
            return False  # whoever reads its packets reports that
        finally:
            source.close()


def take_blocks(read: Callable[[int], bytes], secrets: Secrets) -> bool:
    """Give `secrets` those of each block of a pcapng file, up to where its blocks make no sense.

    read: gives the next octets of the file, so many at most, none at its end.
    """
    taken = 0
    held = b""
    at = 0  # of the next block, in what is held and not yet read
    order = ""
    while octets := read(_BLOCK):
        held += octets
        if len(held) < _HEADER:
            continue
        if not order and not is_pcapng(held):
            return False
        while len(held) - at >= _HEADER:
            if struct.unpack_from("<I", held, at)[0] == SECTION_HEADER:
                order = "<" if held[at + 8] == 0x4D else ">"
            kind, length = struct.unpack_from(f"{order}II", held, at)
            if not 12 <= length <= MAX_BLOCK:
                return taken > 0
            if kind == DECRYPTION_SECRETS:
                if len(held) - at < length:
                    break
                form, size = struct.unpack_from(f"{order}II", held, at + 8) if length >= 20 else (0, 0)
                if form == TLS_KEY_LOG and size <= length - 20:
                    taken += secrets.take(held[at + 16 : at + 16 + size])
            at += (length + 3) & ~3
        passed = min(at, len(held))
        held = held[passed:]
        at -= passed
    return taken > 0

"""The fuzz entries of where TLS secrets come from: key logs, private keys, and blocks of pcapng files."""

from __future__ import annotations

import importlib.util
import io
import os
import tempfile
import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

from fuzz.layer_entry import KNOWN_LINES, RANDOM, read_with, tls_turns
from support.capture_files import Recorder

from amqpscope.capture.pcapng import PcapngReader
from amqpscope.errors import FilterError
from amqpscope.input.key_log import KeyLog, LaterBlocks, take_blocks, tls_secrets
from amqpscope.layers.secrets import LABELS, Secrets
from amqpscope.limits import MAX_TLS_SECRETS

__all__ = ["blocks", "keylogs", "server_keys"]

_LONGEST = 64


def keylogs(octets: bytes) -> None:
    """A key log: read at once or while it grows it gives the same secrets, and no frame is made up of any."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "keys.txt")
        path.write_bytes(octets)
        whole = Secrets()
        taken = KeyLog(str(path)).take_new(whole)
        _given(tls_or_refusal([str(path)], [], octets), taken)
        chance = zlib.crc32(octets)
        ends = [at + 1 for at, octet in enumerate(octets) if octet == 0x0A]
        cuts = sorted({ends[chance * number % len(ends)] for number in (1, 7919, 104729)}) if ends else []
        path.write_bytes(b"")
        grown, log = Secrets(), KeyLog(str(path))
        for begin, end in pairwise([0, *cuts, len(octets)]):
            with path.open("ab") as file:
                file.write(octets[begin:end])
            log.look_further(grown, RANDOM)
        assert known(grown) == known(whole)
    found = known(whole)
    assert len(found) <= min(taken, MAX_TLS_SECRETS)
    for (random, label), secret in found.items():
        assert len(random) == 32 and label in LABELS and len(secret) <= _LONGEST
    if importlib.util.find_spec("cryptography"):
        right = {one[:3] for one in read_with(tls_turns(), KNOWN_LINES)}
        assert len(right) == 6
        read = {one[:3] for one in read_with(tls_turns(), octets)}
        assert {one for one in read if one[1] not in ("tls", "skipped")} <= right


def known(secrets: Secrets) -> dict[tuple[bytes, str], bytes]:
    """All secrets, by client random and label."""
    return {
        (random, label): secret
        for random, of in secrets.newest(MAX_TLS_SECRETS)
        for label, secret in of.items()
    }


def tls_or_refusal(logs: list[str], keys: list[str], octets: bytes) -> Secrets | None:
    """What the options give; None where they are refused, in words that show nothing of the file."""
    try:
        return tls_secrets(logs, keys)
    except FilterError as error:
        said = str(error)
        assert said.isprintable(), said
        for line in octets.split():
            assert len(line) < 16 or line.decode("latin-1") not in said
        return None


def _given(secrets: Secrets | None, taken: int) -> None:
    if importlib.util.find_spec("cryptography"):
        assert (secrets is not None) == (taken > 0)


def server_keys(octets: bytes) -> None:
    """A file with a private key: it is one, or it is refused. A key decrypts any octets to some."""
    if not importlib.util.find_spec("cryptography"):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "key.pem")
        path.write_bytes(octets)
        passphrase = os.environ.pop("AMQPSCOPE_TLS_KEY_PASSPHRASE", None)
        try:
            secrets = tls_or_refusal([], [str(path)], octets)
        finally:
            if passphrase is not None:
                os.environ["AMQPSCOPE_TLS_KEY_PASSPHRASE"] = passphrase
    if secrets is None:
        return
    for key in secrets.server_keys:
        assert not key.fits(octets)
        for size in (0, 1, 128, 256, 257):
            assert isinstance(key.decrypt((octets * 257)[:size]), bytes)


def blocks(octets: bytes) -> None:
    """A pcapng file: the blocks with secrets are the same in any pieces, and those that a reader finds."""
    at_once = _secrets_in(octets, len(octets) or 1)
    assert _secrets_in(octets, 1 + zlib.crc32(octets) % 40) == at_once
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.pcapng")
        path.write_bytes(octets)
        later = Secrets()
        source = LaterBlocks(str(path))
        assert source.look_further(later, b"") == bool(known(later))
        assert not source.look_further(later, b"")
    recorder = _Secrets()
    if octets[:4] == b"\x0a\x0d\x0d\x0a":
        reader = PcapngReader(recorder)
        reader.feed(octets)
        reader.finish()
        if not recorder.notes:
            assert known(recorder.taken) == at_once


class _Secrets(Recorder):
    """Takes the secrets of a file."""

    def __init__(self) -> None:
        super().__init__()
        self.taken = Secrets()

    def secrets(self, octets: bytes) -> None:
        self.taken.take(octets)


def _secrets_in(octets: bytes, piece: int) -> dict[Any, bytes]:
    secrets, file = Secrets(), io.BytesIO(octets)
    take_blocks(lambda most: file.read(min(most, piece)), secrets)
    return known(secrets)

"""One segment lost at 100 places: what TLS carries is judged as the same conversation in the clear is."""

from __future__ import annotations

import pytest
from support.dialogue import Dialogue
from support.tls import Ends

from .test_tls import Read, Turn, recorded

pytest.importorskip("cryptography")

PLACES = 100
SUITES = [
    ("1.3", "TLS_AES_128_GCM_SHA256"),
    ("1.2", "AES128-SHA256"),
]


def talk() -> list[Turn]:
    """A conversation of more segments than are lost."""
    d = Dialogue()
    d.linked(credit=60)
    for _ in range(48):
        d.client.transfer()
        d.server.disposition()
    d.goodbye()
    return [Turn(0 if said.peer is d.client else 1, said.octets) for said in d.said if said.octets]


def frames(read: Read) -> set[tuple[object, ...]]:
    """Direction, name and packets of each frame."""
    return {(one[0], one[1], one[4], one[5]) for one in read.frames if one[1] != "skipped"}


@pytest.mark.parametrize(("version", "suite"), SUITES)
def test_a_loss_costs_what_it_costs_in_the_clear(version: str, suite: str) -> None:
    turns = talk()
    recording = recorded(turns, Ends.make(version, suite))
    whole = frames(Read(turns))
    assert len(turns) >= PLACES
    for lost in range(PLACES):
        clear = Read(turns, lost=lost)
        read = Read(
            recording.turns, recording.keylog, shift=recording.handshake, lost=recording.handshake + lost
        )
        assert frames(read) == frames(clear), lost
        assert frames(clear) != whole
        certain = {one[:4] for one in clear.findings if one[1]}
        assert {one[:4] for one in read.findings if one[1]} == certain, lost

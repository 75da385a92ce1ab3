"""Octets that were not distinguished are hidden if the name of a secret stands in them, wherever."""

from __future__ import annotations

import pytest

from amqpscope.report.secrets import hides_octets

PIECE = 256 * 1024


@pytest.mark.parametrize("name", [b"password", b"PassWord", b"p\0a\0s\0s\0w\0o\0r\0d\0", b"put-token"])
@pytest.mark.parametrize("size", [0, 100, 2 * PIECE + 7])
def test_the_name_of_a_secret_anywhere(name: bytes, size: int) -> None:
    assert not hides_octets(b"x" * size)
    places = {0, size, size // 2}
    for border in range(PIECE, size, PIECE):
        places |= set(range(border - len(name) - 1, border + 2))
    for at in places:
        assert hides_octets(b"x" * at + name + b"x" * (size - at)), at
    assert not hides_octets(b"x" * size + name[: len(name) // 2])

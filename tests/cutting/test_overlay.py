"""The masked octets of streams, by their place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from amqpscope.cutting.overlay import Overlay


@pytest.fixture
def overlay() -> Iterator[Overlay]:
    made = Overlay()
    yield made
    made.close()


@pytest.mark.parametrize(
    "pieces",
    [
        [(0, b"abcdef"), (5, b"-"), (6, b"ghi")],
        [(6, b"ghi"), (0, b"abcdef"), (5, b"-")],
        [(0, b"abcdefghi"), (2, b"--"), (3, b"----")],
        [(0, b"abcd"), (2, b"--efg"), (3, b"-"), (7, b"hi")],
    ],
    ids=["keep-alive", "out of order", "within", "beyond"],
)
def test_what_came_before_stays_where_pieces_overlap(
    overlay: Overlay, pieces: list[tuple[int, bytes]]
) -> None:
    for offset, octets in pieces:
        overlay.put(1, 0, offset, octets)
    assert overlay.extent(1, 0) == 9
    for begin in range(9):
        for end in range(begin + 1, 10):
            assert overlay.get(1, 0, begin, bytes(end - begin)) == b"abcdefghi"[begin:end]
    assert overlay.unread == 0


def test_octets_without_a_piece_are_counted_where_pieces_overlap(overlay: Overlay) -> None:
    for offset, octets in ((0, b"abcd"), (1, b"--"), (6, b"gh")):
        overlay.put(1, 0, offset, octets)
    assert overlay.get(1, 0, 0, b"........") == b"abcd..gh"
    assert overlay.unread == 2
    assert overlay.extent(1, 0) == 4

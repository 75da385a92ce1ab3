"""How much is tried: a share in `make test`, three times as much in CI, all of it in `make properties`.

Hypothesis' profile says which: `default`, `ci` or `fuzz` (`pytest --hypothesis-profile=ci`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar
from zlib import crc32

from hypothesis import settings

T = TypeVar("T")

_FEWER: Final = 3
"""`make test` tries one example where CI tries so many."""


def thorough() -> bool:
    """Whether everything is to be tried, however long it takes."""
    return settings.get_current_profile_name() == "fuzz"


def in_ci() -> bool:
    """Whether this is CI, or more than it tries."""
    return _fewer() == 1


def examples(number: int) -> int:
    """How many examples are tried, if CI tries so many."""
    return max(1, number // _fewer())


def share(things: Sequence[T], of: int, seed: str) -> Sequence[T]:
    """One in so many of the things, at least one: the same ones for a seed, others for another seed.

    `make test` takes fewer; with `thorough` all are taken.
    """
    if thorough() or not things:
        return things
    step = min(len(things), of * _fewer())
    return things[crc32(seed.encode()) % step :: step]


def _fewer() -> int:
    return _FEWER if settings.get_current_profile_name() == "default" else 1

"""How much is tried: a share in every run, all of it with `--hypothesis-profile=fuzz` (`make properties`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from zlib import crc32

from hypothesis import settings

T = TypeVar("T")


def thorough() -> bool:
    """Whether everything is to be tried, however long it takes."""
    return settings.get_current_profile_name() == "fuzz"


def share(things: Sequence[T], of: int, seed: str) -> Sequence[T]:
    """One in so many of them, always the same ones for a seed, others for another. All if thorough."""
    return things if thorough() else things[crc32(seed.encode()) % of :: of]

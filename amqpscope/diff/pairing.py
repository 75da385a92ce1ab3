"""What of one run belongs to what of the other: connections, sessions, links, channels, consumers.

Each has keys, the surest first: by which node it uses, say, then by its order. Two belong together that have
one in common, in their order; those that are left are tried by the next key.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, TypeVar

__all__ = ["Paired", "paired"]

One = TypeVar("One")


class Paired(NamedTuple):
    """Indexes into both lists: pairs in the order of the first, then what is in one only."""

    both: list[tuple[int, int]]
    only_a: list[int]
    only_b: list[int]


def paired(a: Sequence[One], b: Sequence[One], keys: Callable[[One], Sequence[Hashable]]) -> Paired:
    """What belongs together. keys: of one, as many for all; those without a partner in the last have none."""
    keys_a, keys_b = [keys(one) for one in a], [keys(one) for one in b]
    left_a, left_b = list(range(len(a))), list(range(len(b)))
    both: list[tuple[int, int]] = []
    levels = max((len(one) for one in (*keys_a, *keys_b)), default=0)
    for level in range(levels):
        by_key: dict[Hashable, list[int]] = {}
        for index in reversed(left_b):
            by_key.setdefault(keys_b[index][level], []).append(index)
        found = []
        for index in left_a:
            partners = by_key.get(keys_a[index][level])
            if partners:
                found.append((index, partners.pop()))
        both += found
        taken_a, taken_b = {one for one, _ in found}, {other for _, other in found}
        left_a = [index for index in left_a if index not in taken_a]
        left_b = [index for index in left_b if index not in taken_b]
    return Paired(sorted(both), left_a, left_b)

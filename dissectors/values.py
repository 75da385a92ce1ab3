"""What values of any protocol have in common, for who shows them: octets that are none, moments, pairs.

Not compiled, as the values of the protocols, which derive from these and from `int` and `str`.
"""

from collections.abc import Container, Iterator

__all__ = ["Moment", "Pairs", "Raw"]


class Raw:
    """Octets that do not decode, or were not decoded for a bound; where types have codes, the code first."""

    __slots__ = ("octets",)

    def __init__(self, octets: bytes) -> None:
        self.octets = octets

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Raw) and self.octets == other.octets

    def __hash__(self) -> int:
        return hash(self.octets)

    def __repr__(self) -> str:
        return f"Raw({self.octets!r})"


class Moment(int):
    """A point in time, in the protocol's unit since 1970-01-01T00:00Z."""

    def iso(self) -> str:
        """ISO 8601 in UTC; the bare number with its unit where there is no date for it."""
        raise NotImplementedError


class Pairs:
    """Keys and values in the order of the wire, with repeated keys kept."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: list[tuple[object, object]]) -> None:
        self.pairs = pairs

    def get(self, key: object, default: object = None) -> object:
        """The value of the first pair with this key."""
        for name, value in self.pairs:
            if name == key:
                return value
        return default

    def without(self, names: Container[str]) -> list[tuple[object, object]]:
        """The pairs whose key is none of these names. A key may be any value, also one that has no hash."""
        return [(key, value) for key, value in self.pairs if not (isinstance(key, str) and key in names)]

    def __iter__(self) -> Iterator[tuple[object, object]]:
        return iter(self.pairs)

    def __len__(self) -> int:
        return len(self.pairs)

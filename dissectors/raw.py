"""Octets of any protocol that stand where a value should be.

Not compiled, as the values beside which they stand.
"""

__all__ = ["Raw"]


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

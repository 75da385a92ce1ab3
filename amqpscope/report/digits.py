"""Numbers as text, for places that write millions of them."""

from typing import Final

from dissectors.wire import i64

__all__ = ["digits"]

_KNOWN: Final[list[str]] = [str(number) for number in range(4096)]


def digits(number: i64) -> str:
    """A number in decimal. Small ones, as sizes, channels and handles are, are not written anew."""
    if 0 <= number < 4096:
        return _KNOWN[number]
    return str(number)

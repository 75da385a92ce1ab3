"""Numbers as text, for places that write millions of them."""

from typing import Final

from dissectors.wire import i64

__all__ = ["THREE_DIGITS", "digits"]

THREE_DIGITS: Final[list[str]] = [f"{number:03d}" for number in range(1000)]
"""Numbers below 1000 with their zeros, as decimals are put together of."""

_KNOWN: Final[list[str]] = [str(number) for number in range(4096)]


def digits(number: i64) -> str:
    """A number in decimal. Small ones, as sizes, channels and handles are, are not written anew."""
    if 0 <= number < 4096:
        return _KNOWN[number]
    return str(number)

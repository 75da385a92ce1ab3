"""Fixed-width integers in network byte order, read straight from `bytes`.

Every reader takes the buffer and an index and gives back an `i64`. The caller guarantees that the
octets are there: these are the innermost calls of the program, and a reader that checked again what
its caller just checked would be paid for millions of times a second.

They are written as byte indexing because mypyc turns that into plain loads; interpreted, the same
lines give the same numbers. Nothing here yields more than 63 bits: an `i64` wraps silently when
compiled and does not when interpreted, so whatever could need the 64th bit comes as a
Python `int`, or bounded, to be counted with.
"""

from typing import Final

from mypy_extensions import i64

__all__ = ["COUNTABLE", "countable", "countable_u64", "i64", "u16", "u16le", "u32", "u32le", "u64"]


def u16(buf: bytes, at: i64) -> i64:
    """Two octets at index `at`, big-endian."""
    high: i64 = buf[at]
    low: i64 = buf[at + 1]
    return (high << 8) | low


def u32(buf: bytes, at: i64) -> i64:
    """Four octets at index `at`, big-endian."""
    a: i64 = buf[at]
    b: i64 = buf[at + 1]
    c: i64 = buf[at + 2]
    d: i64 = buf[at + 3]
    return (a << 24) | (b << 16) | (c << 8) | d


def u16le(buf: bytes, at: i64) -> i64:
    """Two octets at index `at`, little-endian."""
    low: i64 = buf[at]
    high: i64 = buf[at + 1]
    return (high << 8) | low


def u32le(buf: bytes, at: i64) -> i64:
    """Four octets at index `at`, little-endian."""
    d: i64 = buf[at]
    c: i64 = buf[at + 1]
    b: i64 = buf[at + 2]
    a: i64 = buf[at + 3]
    return (a << 24) | (b << 16) | (c << 8) | d


def u64(buf: bytes, at: i64) -> int:
    """Eight octets at index `at`, big-endian, unsigned: a Python int, for it may need 64 bits."""
    high: int = u32(buf, at)
    low: int = u32(buf, at + 4)
    return (high << 32) | low


COUNTABLE: Final = (1 << 46) - 1
"""The largest number of 64 bits that is counted with: no conversation has so many octets, and 2^16 of them
together still fit into an i64."""


def countable(number: int) -> i64:
    """An unsigned number of the wire, to be counted with: COUNTABLE stands for all beyond.

    Whoever shows the number, or looks something up by it, takes it as it was sent: an i64 holds only 63 bits,
    and where an `int` meets one in an expression, compiled code takes it for an i64, too.
    """
    return COUNTABLE if number > COUNTABLE else number


def countable_u64(buf: bytes, at: i64) -> i64:
    """Eight octets at index `at`, big-endian, unsigned, to be counted with (`countable`)."""
    high = u32(buf, at)
    if high > COUNTABLE >> 32:
        return COUNTABLE
    return (high << 32) | u32(buf, at + 4)

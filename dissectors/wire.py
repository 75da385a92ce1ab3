"""Fixed-width integers in network byte order, read straight from `bytes`.

Every reader takes the buffer and an index and gives back an `i64`. The caller guarantees that the
octets are there: these are the innermost calls of the program, and a reader that checked again what
its caller just checked would be paid for millions of times a second.

They are written as byte indexing because mypyc turns that into plain loads; interpreted, the same
lines give the same numbers. Nothing here yields more than 63 bits: an `i64` wraps silently when
compiled and does not when interpreted, so whatever could need the 64th bit comes as a Python `int`.
"""

from mypy_extensions import i64

__all__ = ["i64", "u16", "u16le", "u32", "u32le", "u64"]


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

"""What is read of the options of a TCP header: the window scale of a SYN (RFC 7323, sections 2.2 and 2.3)."""

from typing import Final

from dissectors.wire import i64

__all__ = ["window_scale"]

# The largest shift count, and a SYN without the option.
_MOST_SCALE: Final = 14
_NO_SCALE: Final = 16


def window_scale(buf: bytes, at: i64, end: i64, cut: bool) -> i64:
    """The window scale option among those in buf[at:end], as `Segment.window` has it.

    cut: more of them were not captured.
    """
    while at < end:
        kind: i64 = buf[at]
        if kind == 0:
            return _NO_SCALE
        if kind == 1:
            at += 1
            continue
        if at + 2 > end:
            break
        size: i64 = buf[at + 1]
        if kind == 3 and size == 3 and at + 3 <= end:
            shift: i64 = buf[at + 2]
            return min(shift, _MOST_SCALE) + 1
        at += max(size, 2)
    return 0 if cut else _NO_SCALE

"""How AMQP 1.0 begins where it has no protocol header, as far as no decoder is needed to tell."""

from typing import Final

from dissectors.wire import i64

__all__ = ["NO_HEADER", "may_begin"]

NO_HEADER: Final = "C-HDR-FORM"
"""The code of the problem that a stream begins with neither a protocol header nor a frame."""


def may_begin(buf: bytes) -> bool:
    """Whether a frame may begin with these octets: its data offset is 2. `credible_frame` knows more."""
    size: i64 = len(buf)
    return size < 5 or buf[4] == 2

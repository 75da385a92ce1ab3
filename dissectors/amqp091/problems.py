"""What follows from a problem in a frame, by the code of the problem."""

from typing import Final

__all__ = [
    "INTERLEAVED",
    "MISREAD",
    "NO_BODY",
    "NO_HEADER",
    "OUT_OF_ORDER",
    "UNREADABLE",
    "UNSETTLED",
    "WRONG_FRAME_END",
]

NO_HEADER: Final = "F-PROTO-HDR"
"""A stream begins with neither a protocol header nor a frame."""

# A frame does not end with the octet 0xCE.
WRONG_FRAME_END: Final = "F-FRAME-END"

# Faults that show that the arguments of a method are not where they were looked for.
MISREAD: Final = ("F-METHOD-ARGS", "F-METHOD-TRAILING", "T-LENGTH-BOUNDS", WRONG_FRAME_END)

# Faults after which it is not known what a method says.
UNREADABLE: Final = (*MISREAD, "F-METHOD-KNOWN", "F-METHOD-CH-NONZERO", "F-FRAME-TYPE", "cut", "limit")

# Faults after which it is not known which message a content header belongs to, if any.
UNSETTLED: Final = ("cut", "F-CONTENT-CH-NONZERO")

# Faults after which it is not known whether a frame is a body, or where it ends.
NO_BODY: Final = ("F-BODY-OVERRUN", WRONG_FRAME_END, "F-CONTENT-CH-NONZERO")

# Faults after which it is not known which messages the receiver takes.
OUT_OF_ORDER: Final = (
    WRONG_FRAME_END,
    "F-CONTENT-HEADER-NEXT",
    "F-CONTENT-NO-METHOD",
    "F-CONTENT-ONE-HEADER",
    "F-HEADER-ORPHAN",
    "F-HEADER-CLASS",
    "F-BODY-ORPHAN",
    "F-BODY-OVERRUN",
    "F-BODY-ZERO",
)

# Faults that show that two contents are sent on one channel at the same time.
INTERLEAVED: Final = ("F-CONTENT-HEADER-NEXT", "F-CONTENT-NO-METHOD", "F-CONTENT-ONE-HEADER")

"""Which rules rest on the octets of frames, so that they are silent where only fields are known.

A log of frames has their fields as a library printed them: no encodings, no sizes and no messages. Rules of
the encoding, of framing and of messages rest on these, and so do some rules of other layers, named here.
"""

from typing import Final

__all__ = ["rests_on_octets"]

# How the ids of rules begin: of types, of framing, of mandatory fields, of messages.
_LETTERS: Final = ("T-", "F-", "P-", "M-")

_NAMED: Final = frozenset(
    (
        # The size of a frame or of a message.
        "C-MAXFRAME",
        "C-MAXFRAME-REACT",
        "C-OPEN-SIZE",
        "C-PIPE-SIZE",
        "SA-FRAME-512",
        "L-MAXMSG",
        "L-MAXMSG-REACT",
        # The header of a frame, or the form of a value.
        "C-HDR-FORM",
        "C-HDR-VERMATCH",
        "C-DIALECT-1239",
        "C-ERR-SYMBOL",
        "C-LOCALE-TAG",
        "L-UNSETTLED-NULLKEY",
        "L-UNSETTLED-TYPES",
        "SA-FRAME-BODY",
        "SA-FRAME-BYTES67",
        "SA-FRAME-DOFF",
        "SA-FRAME-EMPTY",
        "SA-FRAME-TYPE",
        "TX-GLOBALID",
        "TX-ID-TYPE",
        # What is in a message, or whether a message is whole.
        "D-ABORT-DISCARD",
        "D-RESUME-OMIT",
        "TX-CTRL-NOWORK",
        "TX-DECLARE-BODY",
        "TX-DISCHARGE-BODY",
        "TX-DISCHARGE-KNOWN",
    )
)


def rests_on_octets(rule: str) -> bool:
    """Whether the rule of this id, as `amqp10/L-CREDIT`, needs the octets of frames."""
    name = rule.rpartition("/")[2]
    return name.startswith(_LETTERS) or name in _NAMED

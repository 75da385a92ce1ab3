"""PROXY headers: stand-ins for the addresses in them."""

import re
from typing import Final

from amqpscope.cutting.stand_ins import StandIns

__all__ = ["masked_header"]

_FIXED: Final = 16  # octets of version 2 before the addresses
_WIDTHS: Final = {1: 4, 2: 16}
_ENDS: Final = re.compile(rb"(?<=TCP[46] )(\S+)(?: (\S+))?")


def masked_header(octets: bytes, stand_ins: StandIns) -> bytes:
    """A PROXY header, or its first octets, with other addresses, of the same size.

    Of version 2 the fields behind the addresses are zeros.
    """
    if octets.startswith(b"PROX"):
        return _ENDS.sub(
            lambda ends: b" ".join(_written(end, stand_ins) for end in ends.groups() if end), octets
        )
    width = _WIDTHS.get(octets[13] >> 4, 0) if len(octets) > _FIXED else 0
    if width == 0 or len(octets) < _FIXED + 2 * width + 4:
        return octets[:_FIXED] + bytes(len(octets[_FIXED:]))
    ends = [octets[at : at + width] for at in (_FIXED, _FIXED + width)]
    ports = octets[_FIXED + 2 * width : _FIXED + 2 * width + 4]
    header = octets[:_FIXED] + b"".join(stand_ins.address(end) for end in ends) + ports
    return header + bytes(len(octets) - len(header))


def _written(address: bytes, stand_ins: StandIns) -> bytes:
    """An address in as many digits."""
    if b":" in address:
        return re.sub(rb"[0-9a-fA-F]+", lambda part: _hexadecimal(part[0], stand_ins), address)
    return re.sub(rb"[0-9]+", lambda part: _decimal(part[0], stand_ins), address)


def _hexadecimal(digits: bytes, stand_ins: StandIns) -> bytes:
    size = len(digits)
    return b"%0*x" % (size, stand_ins.place(int(digits, 16), 16**size))


def _decimal(digits: bytes, stand_ins: StandIns) -> bytes:
    """One of the four numbers: its first one has as many digits, too."""
    first, number = {1: (0, 10), 2: (10, 90)}.get(len(digits), (100, 156))
    value = int(digits) - first
    return b"%d" % (first + stand_ins.place(value, number)) if 0 <= value < number else digits

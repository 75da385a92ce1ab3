"""IEEE 754-2008 decimals in the binary integer (BID) form, which AMQP 1.0 uses (types.xml, decimal32 ff.).

The octets hold, from the top: a sign bit, a biased exponent, and the significand as a plain binary
integer. If the two bits under the sign are 11 the exponent stands two bits lower and the significand
has an implied 100 in front; 1111 is infinity (a 0 follows) or NaN (a 1 follows; the next bit marks a
signalling one), whose lowest bits are a payload. A significand, or a payload, above the type's digits
is non-canonical and stands for zero.

Whoever needs a decimal imports this module then: few captures have any, and Python's `decimal` takes longer
to load than all other values together.
"""

import decimal
from typing import Final

__all__ = ["DECIMALS", "Decimal32", "Decimal64", "Decimal128", "read_decimal"]


class _Decimal(decimal.Decimal):
    """Python compares no signalling NaN and hashes none; what a peer sent has to stand both."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if self.is_snan() or (isinstance(other, decimal.Decimal) and other.is_snan()):
            return False
        return super().__eq__(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.as_tuple()) if self.is_snan() else super().__hash__()


class Decimal32(_Decimal):
    """decimal32, IEEE 754-2008 with a binary integer significand."""


class Decimal64(_Decimal):
    """decimal64, IEEE 754-2008 with a binary integer significand."""


class Decimal128(_Decimal):
    """decimal128, IEEE 754-2008 with a binary integer significand."""


DECIMALS: Final[dict[str, type[Decimal32] | type[Decimal64] | type[Decimal128]]] = {
    "decimal32": Decimal32,
    "decimal64": Decimal64,
    "decimal128": Decimal128,
}
"""The types of decimals by their names."""


def _read(bits: int, width: int, exponent_bits: int, bias: int, digits: int) -> decimal.Decimal:
    sign = bits >> (width - 1)
    combination = (bits >> (width - 6)) & 0b11111
    if combination == 0b11110:
        return decimal.Decimal("-Infinity" if sign else "Infinity")
    if combination == 0b11111:
        signalling = (bits >> (width - 7)) & 1
        payload = bits & ((1 << (width - 4 - exponent_bits)) - 1)
        shown = payload if 0 < payload < 10 ** (digits - 1) else ""
        return decimal.Decimal(("-" if sign else "") + ("sNaN" if signalling else "NaN") + str(shown))
    mask = (1 << exponent_bits) - 1
    if combination >> 3 == 0b11:
        tail = width - 3 - exponent_bits
        exponent = (bits >> tail) & mask
        significand = (0b100 << tail) | (bits & ((1 << tail) - 1))
    else:
        tail = width - 1 - exponent_bits
        exponent = (bits >> tail) & mask
        significand = bits & ((1 << tail) - 1)
    if significand >= 10**digits:
        significand = 0
    figures = tuple(int(figure) for figure in str(significand))
    return decimal.Decimal((sign, figures, exponent - bias))


def read_decimal(octets: bytes) -> decimal.Decimal:
    """The decimal in 4, 8 or 16 octets, as the subclass of `decimal.Decimal` for its width."""
    bits = int.from_bytes(octets, "big")
    if len(octets) == 4:
        return Decimal32(_read(bits, 32, 8, 101, 7))
    if len(octets) == 8:
        return Decimal64(_read(bits, 64, 10, 398, 16))
    return Decimal128(_read(bits, 128, 14, 6176, 34))

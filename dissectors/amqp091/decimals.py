"""Decimals of field tables (AMQP 0-9-1, section 4.2.1, decimal-value).

Whoever needs a decimal imports this module then: few captures have any, and Python's `decimal` takes longer
to load than all other values together.

Not compiled: native classes cannot derive from Python's decimals.
"""

import decimal

__all__ = ["Decimal"]


class Decimal(decimal.Decimal):
    """An integer of 32 bits and the number of its decimal places, tag D: as exact as it was sent."""

    __slots__ = ()

    @staticmethod
    def of(scale: int, unscaled: int) -> "Decimal":
        """unscaled / 10**scale, with all its places."""
        figures = tuple(int(figure) for figure in str(abs(unscaled)))
        return Decimal((1 if unscaled < 0 else 0, figures, -scale))

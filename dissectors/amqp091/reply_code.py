"""Reply codes in sentences."""

from dissectors.amqp091.registry import REPLY_CODES

__all__ = ["reply_code"]


def reply_code(code: int) -> str:
    """A reply code with its name, such as `404 (not-found)`; an unknown code has no name."""
    known = REPLY_CODES.get(code)
    return str(code) if known is None else f"{code} ({known[0]})"

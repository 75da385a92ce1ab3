"""Names of exchanges, queues and consumers that may not be readable."""

from typing import Final

__all__ = ["UNREADABLE", "readable"]

UNREADABLE: Final = "\ufffd"
"""Stands for a name that is missing or not UTF-8. It differs from an empty name: nobody knows which name was
meant.
"""


def readable(name: str | None) -> str:
    """A name as it was decoded, UNREADABLE if it could not be."""
    return UNREADABLE if name is None else name

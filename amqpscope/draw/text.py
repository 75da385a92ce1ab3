"""A ladder as a file of text."""

from amqpscope.report.ladder import ladder_lines
from amqpscope.report.ladder_model import Ladder

__all__ = ["ladder_text"]

_WIDTH = 100
"""Columns of the file."""


def ladder_text(ladder: Ladder) -> str:
    """The ladder as lines of text."""
    lines = ladder_lines(ladder, _WIDTH)
    return "".join("".join(text for _, text in line).rstrip() + "\n" for line in lines)

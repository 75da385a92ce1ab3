"""What a command shows when it is over: lines as a terminal has them, or one object of JSON."""

import json
from collections.abc import Iterable
from typing import Any

from amqpscope.report.line import Line
from amqpscope.report.painter import painter

__all__ = ["print_json", "print_lines"]


def print_lines(lines: Iterable[tuple[Line, int]]) -> None:
    """Print lines in colour where that is wanted. With each line: where it goes on if it is too long."""
    paint, _ = painter()
    for line, hang in lines:
        print(paint.paint(line, hang))


def print_json(whole: dict[str, Any]) -> None:
    """Print one object, for people to read, too."""
    print(json.dumps(whole, indent=1))

"""Notes about a capture as lines of text, folded by code."""

from collections.abc import Callable
from typing import Final

from amqpscope.model.note import Note
from amqpscope.model.records import Connection

__all__ = ["NoteLine", "any_connection", "note_lines", "notes_about"]

_SHOWN = 3

_HARMLESS: Final = ("capture/duplicate", "capture/joined", "capture/proxy")
"""Notes that take nothing from the findings: one line about all of them is enough."""


class NoteLine:
    """A line about the capture. style: how it is painted. hang: see `Painter.paint`."""

    def __init__(self, text: str, style: str = "note", hang: int = 6) -> None:
        self.text = text
        self.style = style
        self.hang = hang


def any_connection(_: Connection) -> bool:
    """For `notes_about`, where no connection was chosen."""
    return True


def notes_about(notes: list[Note], about: Callable[[Connection], bool]) -> list[Note]:
    """The notes about the connections that were chosen, and those about the capture as a whole."""
    return [note for note in notes if note.connection is None or about(note.connection)]


def note_lines(notes: list[Note]) -> list[NoteLine]:
    """Notes as lines: of each code the first few, of a harmless one only the first."""
    counts: dict[str, int] = {}
    kept: list[tuple[Note, bool]] = []
    for note in notes:
        counts[note.code] = counts.get(note.code, 0) + 1
        harmless = note.code in _HARMLESS
        if counts[note.code] <= (1 if harmless else _SHOWN):
            kept.append((note, harmless))
    lines = [_line(note, harmless, counts[note.code]) for note, harmless in kept]
    for code, count in counts.items():
        if code not in _HARMLESS and count > _SHOWN:
            lines.append(NoteLine(f"{code}: {count - _SHOWN} more"))
    return lines


def _line(note: Note, harmless: bool, count: int) -> NoteLine:
    """A note, the first of so many if it is harmless."""
    where = f"packet {note.packet}: " if note.packet else ""
    which = "" if note.connection is None else f"connection {note.connection.stream}: "
    text = f"{note.code}: {where}{which}{note.detail}"
    if not harmless:
        return NoteLine(text)
    return NoteLine(f"{text} (and {count - 1} more)" if count > 1 else text, "dim", -1)

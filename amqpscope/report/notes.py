"""Notes about a capture as lines of text, folded by code."""

from amqpscope.model.note import Note

__all__ = ["note_lines"]

_SHOWN = 3


def note_lines(notes: list[Note]) -> list[str]:
    """Notes as lines, of each code the first few."""
    shown: dict[str, int] = {}
    lines = []
    for note in notes:
        shown[note.code] = shown.get(note.code, 0) + 1
        if shown[note.code] <= _SHOWN:
            where = f"packet {note.packet}: " if note.packet else ""
            which = "" if note.connection is None else f"connection {note.connection.stream}: "
            lines.append(f"{note.code}: {where}{which}{note.detail}")
    for code, count in shown.items():
        if count > _SHOWN:
            lines.append(f"{code}: {count - _SHOWN} more")
    return lines

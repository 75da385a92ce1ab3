"""Lines for people before they are painted: parts of text, each with its style.

`painter` turns a line into what the output can show. Text from the wire enters a line only through
`printable`.
"""

__all__ = ["INDENT", "Line", "Pen", "flag", "key", "margin", "number"]

Line = list[tuple[str, str]]
"""(style, text) parts."""

INDENT = 6
"""Columns before what stands below a frame's line."""

_STEP = 2


class Pen:
    """Takes the parts of a line one after the other. plain: only their text matters, so no style is kept."""

    def __init__(self, plain: bool) -> None:
        self._texts: list[str] = []
        self._styles: list[str] | None = None if plain else []

    def put(self, style: str, text: str) -> None:
        """The next part."""
        self._texts.append(text)
        styles = self._styles
        if styles is not None:
            styles.append(style)

    def put_field(self, name: str, text: str) -> None:
        """The next two parts: the name of a field with its `=`, and the text of its value."""
        self._texts.append(name)
        self._texts.append(text)
        styles = self._styles
        if styles is not None:
            styles.append("key")
            styles.append("")

    def put_line(self, line: Line) -> None:
        """The next parts."""
        for style, text in line:
            self.put(style, text)

    def take_text(self) -> str:
        """The text of all parts. The next part begins a new line."""
        text = "".join(self._texts)
        self._texts.clear()
        if self._styles is not None:
            self._styles.clear()
        return text

    def take_line(self) -> Line:
        """All parts, of a pen that is not plain. The next part begins a new line."""
        styles = self._styles
        assert styles is not None
        line = list(zip(styles, self._texts, strict=True))
        self._texts.clear()
        styles.clear()
        return line


def margin(depth: int) -> tuple[str, str]:
    """The space before a line below a frame's line. depth: how many levels of fields it stands in."""
    return ("", " " * (INDENT + _STEP * depth))


def key(name: str, text: str) -> Line:
    """A field and its value."""
    return [("key", f"{name}="), ("", f"{text} ")]


def flag(value: bool | None, name: str) -> Line:
    """A word that is shown only if the flag is true."""
    return [("", f"{name} ")] if value else []


def number(name: str, value: int | None) -> Line:
    """A number, if it is present."""
    return [] if value is None else [("key", f"{name}="), ("", f"{value} ")]

"""The head of an HTTP request or response (RFC 9112), as far as layers that begin with one need it."""

from typing import Final

__all__ = ["NO_HEAD", "HttpHead", "head_of"]

_END: Final = b"\r\n\r\n"


class HttpHead:
    """A head. size: its octets, the empty line included. line: the first line. fields: by lower-case names;
    the values of a name that comes more than once are joined by commas.
    """

    def __init__(self, size: int, line: str, fields: dict[str, str]) -> None:
        self.size: int = size
        self.line: str = line
        self.fields: dict[str, str] = fields

    def words(self, name: str) -> list[str]:
        """The words of a field that is a list."""
        return [word.strip() for word in self.fields.get(name, "").split(",") if word.strip()]

    @property
    def status(self) -> int:
        """The status code of a response; 0 if it has none."""
        words = self.line.split(" ", 2)
        return int(words[1]) if len(words) > 1 and words[1].isascii() and words[1].isdecimal() else 0

    @property
    def reason(self) -> str:
        """The reason phrase of a response."""
        words = self.line.split(" ", 2)
        return words[2] if len(words) > 2 else ""


# mypyc: null object, of a head that was lost. Nothing writes to it.
NO_HEAD: Final = HttpHead(0, "", {})


def head_of(octets: bytes) -> HttpHead | None:
    """The head that these octets begin with; None if it is not whole."""
    end = octets.find(_END)
    if end < 0:
        return None
    lines = octets[:end].decode("latin-1").split("\r\n")
    fields: dict[str, str] = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        name = name.strip().lower()
        fields[name] = f"{fields[name]}, {value.strip()}" if name in fields else value.strip()
    return HttpHead(end + len(_END), lines[0], fields)

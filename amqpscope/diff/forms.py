"""What a frame says, without what differs from run to run: its form. Two frames of one form say the same.

A form is a name and entries, each a path (`source.address`), the text of the value as it is shown, and a key
where the text does not tell all of it (bodies of messages, which are never shown). The two captures of a
comparison share one table of forms, in which each has a number; so a million frames of few forms cost little.
"""

import hashlib
from typing import NamedTuple

from amqpscope.limits import MAX_COMPARED_FORMS

__all__ = ["CanonicalFrame", "CanonicalFrameTable", "Change", "FormEntry", "changes", "digest"]


class FormEntry(NamedTuple):
    """One value. text: printable. key: whatever else has to be equal."""

    path: str
    text: str
    key: str = ""


class CanonicalFrame(NamedTuple):
    """name: the frame's, in the specification's word. entries: in their order, of distinct paths."""

    name: str
    entries: tuple[FormEntry, ...] = ()


class Change(NamedTuple):
    """An entry that two forms of one name do not have in common. None: it is not there."""

    path: str
    a: str | None
    b: str | None


def digest(octets: bytes) -> str:
    """A short key of octets."""
    return hashlib.blake2b(octets, digest_size=12).hexdigest()


def changes(a: CanonicalFrame, b: CanonicalFrame) -> list[Change]:
    """In which entries two forms differ."""
    of_a = {entry.path: entry for entry in a.entries}
    of_b = {entry.path: entry for entry in b.entries}
    found = []
    for path in dict.fromkeys((*of_a, *of_b)):
        one, other = of_a.get(path), of_b.get(path)
        if one is None or other is None:
            found.append(Change(path, one and one.text, other and other.text))
        elif one != other:
            same = one.text == other.text
            found.append(Change(path, one.text, f"{other.text} (another one)" if same else other.text))
    return found


class CanonicalFrameTable:
    """Numbers for forms, from 1 on; 0 is nothing. full: of those since then only the names are
    distinguished."""

    def __init__(self) -> None:
        self.full = False
        self._numbers: dict[CanonicalFrame, int] = {}
        self._forms: list[CanonicalFrame] = [CanonicalFrame("")]

    def number(self, form: CanonicalFrame) -> int:
        """The number of a form."""
        known = self._numbers.get(form)
        if known is not None:
            return known
        if len(self._forms) > MAX_COMPARED_FORMS and form.entries:
            self.full = True
            return self.number(CanonicalFrame(form.name))
        self._forms.append(form)
        self._numbers[form] = len(self._forms) - 1
        return len(self._forms) - 1

    @property
    def forms(self) -> list[CanonicalFrame]:
        """Those with a number, in the order of their numbers."""
        return self._forms[1:]

    def form(self, number: int) -> CanonicalFrame:
        """The form with a number."""
        return self._forms[number]

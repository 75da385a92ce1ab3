"""Values as entries of forms: maps and composites by path, strings without what is made up for each run."""

import uuid
from collections.abc import Iterable

from amqpscope.diff.forms import FormEntry, digest
from amqpscope.diff.transcript import Names
from amqpscope.limits import MAX_COMPARED_ENTRIES, MAX_COMPARED_TEXT
from amqpscope.model.passwords import without_password
from amqpscope.model.volatile import mask_numbers
from amqpscope.report.printable import printable, word
from amqpscope.report.secrets import is_secret_key
from amqpscope.report.value_text import ValueText
from dissectors.values import Moment, Pairs, Raw
from dissectors.wording import count

__all__ = ["ABSENT", "HIDDEN", "SET", "Collector", "text_of"]

HIDDEN = "(hidden)"
SET = "(set)"
"""What stands for a value that differs from run to run: only that it is there counts."""
ABSENT = "not set"

_DEEPEST = 6

_LARGE = 100_000_000
"""Numbers in free places, as properties, from here on are times and ids."""

_KEY = 60


class Collector:
    """Gathers the entries of one form. text: how its protocol's values are reported."""

    def __init__(self, text: ValueText, names: Names) -> None:
        self.text = text
        self.names = names
        self.entries: list[FormEntry] = []

    def add(self, path: str, text: str, key: str = "") -> None:
        """An entry as it is, printable."""
        if len(self.entries) < MAX_COMPARED_ENTRIES:
            if len(text) > MAX_COMPARED_TEXT:
                key += digest(text.encode("utf-8", "backslashreplace"))
                text = text[: MAX_COMPARED_TEXT - 1] + "…"
            self.entries.append(FormEntry(path, text, key))

    def name(self, path: str, name: str) -> None:
        """A name of a node, queue or the like."""
        self.add(path, word(without_password(self.names.of(name))))

    def names_of(self, path: str, items: Iterable[object]) -> None:
        """Words whose order says nothing."""
        self.add(path, ", ".join(sorted(text_of(self.text, item) for item in items)) or "(none)")

    def value(
        self, path: str, value: object, label: bool = False, volatile: bool = False, depth: int = 0
    ) -> None:
        """Any value. label: strings are mere labels. volatile: what it says in numbers changes by itself."""
        value = self.text.opened(value)
        if depth > _DEEPEST:
            return
        if isinstance(value, Pairs):
            self._pairs(path, value, label, volatile, depth)
        elif isinstance(items := getattr(value, "items", value), list):
            for index, item in enumerate(items[:MAX_COMPARED_ENTRIES]):
                self.value(f"{path}[{index}]", item, label, volatile, depth + 1)
            self.add(path, count(len(items), "value"))
        else:
            self.add(path, self._plain(value, label, volatile))

    def _pairs(self, path: str, value: Pairs, label: bool, volatile: bool, depth: int) -> None:
        for key, item in value.pairs[:MAX_COMPARED_ENTRIES]:
            named = printable(key[:_KEY]) if isinstance(key, str) else self.text.value(key, _KEY)
            inner = f"{path}.{named}"
            if is_secret_key(key):
                self.add(inner, HIDDEN)
            else:
                self.value(inner, item, label, volatile, depth + 1)

    def _plain(self, value: object, label: bool, volatile: bool) -> str:
        if isinstance(value, (Moment, uuid.UUID)):
            return SET
        if isinstance(value, bool) or value is None:
            return self.text.value(value)
        if isinstance(value, (int, float)):
            return SET if volatile or isinstance(value, float) or abs(value) >= _LARGE else str(int(value))
        if isinstance(value, str):
            text = without_password(value)
            return word(mask_numbers(text) if label or volatile else self.names.of(text))
        if isinstance(value, Raw):
            return "undecodable"
        if isinstance(value, (bytes, bytearray)):
            return count(len(value), "octet")
        return mask_numbers(self.text.value(value)) if label or volatile else self.text.value(value)


def text_of(text: ValueText, value: object) -> str:
    """A value that is a word, mostly."""
    return word(value) if isinstance(value, str) else text.value(value)

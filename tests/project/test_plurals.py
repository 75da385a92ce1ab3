"""One delivery is called `1 delivery`: sentences take numbers of things from `count`."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from dissectors.wording import are, count, were

PROGRAM = Path(__file__).resolve().parents[2] / "amqpscope"

OFTEN_ONE = ("deliveries", "messages", "publishes", "frames", "transfers", "packets", "links", "consumers")
"""Things of which a sentence often has one."""

NEVER_ONE = {
    "cli/place_options.py": "what a command does, and no number",
    "diagnoses/several.py": "a limit of many connections",
    "diagnoses/amqp091/numbers.py": "the name of a channel, and no number",
    "diagnoses/amqp091/habits.py": "a limit of many channels",
    "diagnoses/amqp10/settlement.py": "more than the credit; more transfers than messages",
    "report/top/pages.py": "frames of the head and of one connection, shortened such as 12k",
    "rules/amqp10/session.py": "the number may be a range",
    "why/state.py": "the number may be a range",
}
"""Files whose other numbers are never 1, or that shorten numbers, and why."""


def numbers_before_plurals(path: Path) -> list[str]:
    """Each text with a number that stands straight before a plural."""
    pattern = re.compile(rf" (?:[a-z-]+ )?({'|'.join(OFTEN_ONE)})\b")
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            for value, text in zip(node.values, node.values[1:], strict=False):
                if isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant):
                    named = ast.unparse(value.value)
                    if pattern.match(str(text.value)) and not named.rpartition(".")[2].isupper():
                        found.append(f"{{{named}}}{text.value}")
    return found


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (1, "delivery", "1 delivery"),
        (2, "earlier delivery", "2 earlier deliveries"),
        (0, "publish", "0 publishes"),
        (3, "more attach", "3 more attaches"),
        (2, "query", "2 queries"),
        (2, "key", "2 keys"),
        (1, "octet", "1 octet"),
    ],
)
def test_a_number_of_things(number: int, noun: str, text: str) -> None:
    assert count(number, noun) == text


def test_the_verb_follows_the_number() -> None:
    assert [are(1), are(2), were(1), were(0)] == ["is", "are", "was", "were"]


def test_no_sentence_says_one_deliveries() -> None:
    found = {
        path.relative_to(PROGRAM).as_posix(): numbers_before_plurals(path) for path in PROGRAM.rglob("*.py")
    }
    assert {path: texts for path, texts in found.items() if texts and path not in NEVER_ONE} == {}

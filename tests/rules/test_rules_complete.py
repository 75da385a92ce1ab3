"""Each rule has its row in the catalogue, its function, its words and its pair; each guard a dialogue."""

from __future__ import annotations

import importlib
import re
from collections import Counter
from pathlib import Path

import pytest
from scenarios.pairs import scenarios

import amqpscope.rules
import dissectors
from amqpscope.rules.catalogue import LAYERS, USUAL_SEVERITY, catalogue, guards
from amqpscope.rules.explanation import explanation
from amqpscope.rules.registry import SUBJECTS, checked

SCENARIOS = scenarios()

RULES_FOLDER = Path(amqpscope.rules.__file__).parent
FILES = [
    path for namespace in ("amqp10", "amqp091") for path in sorted((RULES_FOLDER / namespace).glob("*.py"))
]
TABLES = {
    name: importlib.import_module(f"amqpscope.rules.{name.replace('/', '.')}").RULES for name in SUBJECTS
}
CHECKED = sorted(rule for table in TABLES.values() for rule in table)


def test_each_file_of_rules_is_in_the_registry() -> None:
    files = {
        f"{path.parent.name}/{path.stem}"
        for path in FILES
        if re.search(r"^RULES\b", path.read_text("utf-8"), re.M)
    }
    assert files == set(SUBJECTS)
    assert sorted(checked()) == CHECKED
    assert all(rule in TABLES[subject] for rule, subject in checked().items())


def test_each_rule_is_in_one_table() -> None:
    assert [rule for rule, count in Counter(CHECKED).items() if count > 1] == []


def test_each_rule_is_in_the_catalogue() -> None:
    assert [rule for rule in CHECKED if rule not in catalogue()] == []


def test_whatever_is_reported_is_in_a_table() -> None:
    reported = set()
    for path in FILES:
        reported |= set(re.findall(r'"(amqp(?:10|091)/[A-Z0-9-]+)"', path.read_text(encoding="utf-8")))
    assert reported - {"amqp091/"} == set(CHECKED)


def test_whatever_the_dissector_proves_is_in_a_table() -> None:
    codes = set()
    for path in (Path(dissectors.__file__).parent / "amqp10").glob("*.py"):
        codes |= set(re.findall(r'"([A-Z]{1,2}-[A-Z][A-Z0-9-]*)"', path.read_text(encoding="utf-8")))
    assert {f"amqp10/{code}" for code in codes} - set(CHECKED) == set()


@pytest.mark.parametrize("subject", SUBJECTS)
def test_each_function_is_one_rule_and_tells_it(subject: str) -> None:
    """The words are read from the source: compiled functions have none."""
    table = TABLES[subject]
    assert len(set(table.values())) == len(table)
    for rule, function in table.items():
        words = explanation(rule)
        assert words is not None, rule
        assert (words.file, words.function) == (f"{subject}.py", function.__name__)
        for part in (words.fault, words.matters, words.silent, words.mend):
            assert part.endswith(".") and "\n" not in part, rule
        assert not re.search("Why it matters|Silent when", "".join(words[:3])), rule


def told_of(kind: str) -> set[str]:
    return {f"{s.namespace}/{rule}" for s in SCENARIOS if s.kind == kind for rule in s.rules}


def test_each_rule_has_a_pair() -> None:
    told = told_of("pair")
    assert set(CHECKED) - told == set()


def test_each_guard_has_a_dialogue() -> None:
    told = told_of("legal")
    assert len(guards()) > 20
    assert set(guards()) - told == set()


def test_the_layers_are_those_of_the_catalogue() -> None:
    assert {row.layer for row in catalogue().values()} == set(LAYERS)


def test_names_of_dialogues_are_unique() -> None:
    names = Counter((scenario.namespace, scenario.name) for scenario in SCENARIOS)
    assert [name for name, count in names.items() if count > 1] == []


def test_a_severity_other_than_the_usual_one_has_its_reason() -> None:
    for name, row in catalogue().items():
        assert row.severity in ("error", "warning", "note"), name
        assert (row.severity == USUAL_SEVERITY.get(row.requirement)) == (not row.severity_reason), name


def test_a_named_answer_is_an_answer() -> None:
    assert [name for name, row in catalogue().items() if row.answer_named and not row.answer] == []

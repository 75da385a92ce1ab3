"""Each rule is declared once, with its words, and has a pair; each guard has a dialogue."""

from __future__ import annotations

import ast
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import TypeGuard

import pytest
from scenarios.pairs import scenarios

import amqpscope
import dissectors.amqp10.types
import dissectors.amqp10_draft2011.reader
from amqpscope.rules.catalogue import catalogue, guards
from amqpscope.rules.declaration import LAYERS, SUBJECTS, USUAL_SEVERITY
from amqpscope.rules.explanation import explanation
from amqpscope.rules.registry import checked

SCENARIOS = scenarios()
CHECKED = checked()
PRODUCT = Path(amqpscope.__file__).parent


@pytest.mark.parametrize("subject", SUBJECTS)
def test_each_rule_has_a_constant_of_its_name_and_words_behind_it(subject: str) -> None:
    """The words are read from the source: compiled functions have none."""
    module = import_module(f"amqpscope.rules.{subject.replace('/', '.')}")
    assert module.RULES is SUBJECTS[subject]
    for rule in SUBJECTS[subject].ids:
        assert CHECKED[rule].subject == subject
        words = explanation(rule)
        assert words is not None, rule
        if not CHECKED[rule].same_as:
            assert getattr(module, rule.partition("/")[2].replace("-", "_")) == rule
            assert words.file == f"{subject}.py"
            assert not words.function or callable(getattr(module, words.function)), rule
        for part in (words.fault, words.demand, words.matters, words.silent, words.mend):
            assert part.endswith(".") and "\n" not in part, rule
        assert words.source and words.evidence, rule
        assert not re.search("Why it matters|Silent when", "".join(words)), rule
        assert not (words.possible and words.only_possible), rule
        # What a peer had read excuses no octets: such a rule says itself why they may be legal.
        assert words.excuse() or CHECKED[rule].proved in ("", "certain"), rule


def test_each_file_is_named_as_it_says() -> None:
    assert {rule.subject for rule in CHECKED.values()} == set(SUBJECTS)
    assert sorted(rule for rules in SUBJECTS.values() for rule in rules.ids) == sorted(CHECKED)


def test_nobody_but_the_declaration_names_an_id() -> None:
    """What is reported is a constant that a declaration gave, and so is declared.

    The habits of products, and what the drafts changed, name rules too: beside the rules, and as data.
    """
    names = {*CHECKED, *(rule.partition("/")[2] for rule in CHECKED)}
    named = set()
    for path in PRODUCT.rglob("*.py"):
        place, source = path.relative_to(PRODUCT), path.read_text("utf-8")
        if names.isdisjoint(re.findall(r"[A-Z]+-[A-Z0-9-]+", source)):
            continue
        texts = {node.value for node in ast.walk(ast.parse(source)) if is_text(node)}
        wrong = texts & (set(CHECKED) if place.parts[0] == "rules" else names)
        named |= {(str(place), name) for name in wrong}
    assert {place for place, _ in named} == {"rules/profiles.py", "rules/editions.py"}


def is_text(node: ast.AST) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_the_table_has_only_what_is_not_checked() -> None:
    for name in ("amqp10", "amqp091"):
        table = (PRODUCT / f"rules/data/{name}.tsv").read_text(encoding="utf-8")
        listed = {f"{name}/{line.partition(chr(9))[0]}" for line in table.splitlines()[1:]}
        assert listed and not listed & set(CHECKED)


def test_whatever_the_dissector_proves_is_declared() -> None:
    codes = set()
    for path in Path(dissectors.amqp10.types.__file__).parent.glob("*.py"):
        codes |= set(re.findall(r'"([A-Z]{1,2}-[A-Z][A-Z0-9-]*)"', path.read_text(encoding="utf-8")))
    assert len(codes) > 40
    assert {f"amqp10/{code}" for code in codes} - set(CHECKED) == set()
    folder = Path(dissectors.amqp10_draft2011.reader.__file__).parent
    in_draft = set(re.findall(r'"([A-Z]{1,2}-[A-Z][A-Z0-9-]*)"', (folder / "reader.py").read_text("utf-8")))
    assert len(in_draft) > 4
    assert {f"amqp10-draft2011/{code}" for code in in_draft} - set(CHECKED) == set()


def reported_of(kind: str) -> set[str]:
    return {f"{s.namespace}/{rule}" for s in SCENARIOS if s.kind == kind for rule in s.rules}


def test_each_rule_has_a_pair() -> None:
    reported = reported_of("pair")
    assert set(CHECKED) - reported == set()


def test_each_guard_has_a_dialogue() -> None:
    reported = reported_of("legal")
    assert len(guards()) > 20
    assert set(guards()) - reported == set()


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

"""The table of what the draft of April 2011 defines has a row for each element."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest
from support.commands import amqpscope

from amqpscope.conformance.elements import DECODING, draft_elements
from amqpscope.rules.catalogue import catalogue
from dissectors.amqp10_draft2011.registry import COMPOSITES, ERROR_CONDITIONS


def test_every_field_and_condition_has_a_row() -> None:
    rows = {(one.kind, one.name): one for one in draft_elements()}
    for composite in COMPOSITES:
        assert ("type", composite.name) in rows
        assert ("descriptor", f"{composite.symbol} 0x{composite.code:02x}") in rows
        for field in composite.fields:
            assert ("field", f"{composite.name}.{field.name}") in rows
    for condition, kind in ERROR_CONDITIONS.items():
        assert ("choice", f"{kind}.{condition}") in rows
    assert rows["encoding", "string 0xa2"].status == "as defined"
    assert rows["field", "open.outgoing-locales"].status == "from 2011-02"
    assert rows["field", "begin.handle-max"].agrees == "final"
    assert rows["field", "discharge.field-1"].status == "generically"
    assert rows["constant", "MIN-MAX-FRAME-SIZE"].section == "3.8.22"
    assert {one.status for one in rows.values()} <= set(DECODING)


def test_every_rule_of_the_final_has_one_row() -> None:
    rules = Counter(one.name for one in draft_elements() if one.kind == "rule")
    assert max(rules.values()) == 1
    final = {name.partition("/")[2] for name in catalogue() if name.startswith("amqp10/")}
    own = {name.partition("/")[2] for name in catalogue() if name.startswith("amqp10-draft2011/")}
    assert set(rules) == final | own


def test_a_rule_that_is_not_checked_has_a_reason() -> None:
    rows = {one.name: one for one in draft_elements() if one.kind == "rule"}
    for one in rows.values():
        assert (one.reason == "") == (one.status in ("rule checked", "rule before")), one
        if one.status == "rule covered":
            assert rows[re.split("[, ]", one.reason)[0]].status == "rule checked"
    assert rows["L-CREDIT"].section == "3.6.7"
    assert rows["D-RESUME-OMIT"].section == "3.6.13"
    assert rows["TX-RES-ID"].status == "rule checked"
    assert rows["T-DEC-BID"].reason.startswith("Every bit pattern is a valid decimal")


def test_the_command_shows_all(capsys: pytest.CaptureFixture[str]) -> None:
    text = amqpscope(capsys, "rules", "coverage", "--dialect", "draft2011")
    whole = json.loads(
        amqpscope(capsys, "rules", "coverage", "--dialect", "draft2011", "--format", "json").out
    )
    assert text.status == 0
    assert len(text.lines) == len(whole["elements"]) + len(DECODING)
    assert sum(whole["counts"].values()) == len(whole["elements"])

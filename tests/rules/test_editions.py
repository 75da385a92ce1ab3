"""Which text a verdict follows: the final one of 2011, csd01 or csprd02."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from support import amqp10_encode as amqp
from support.commands import amqpscope as run
from support.dialogue import RECEIVER, Dialogue
from support.network import Tap, captured, converse

import amqpscope
from amqpscope.errors import FilterError
from amqpscope.model.finding import Finding
from amqpscope.rules.catalogue import catalogue, editions, rule, severity
from amqpscope.rules.editions import EDITIONS, following

REJECTED = amqp.delivery_annotations({"rejected": amqp.string("no more")}) + amqp.data(b"x")
WRAPPED = amqp.properties(content_type="message/x-amqp+map") + amqp.amqp_value("x")
TYPED = amqp.properties(content_type="text/plain") + amqp.amqp_value("x")


def said(*messages: bytes) -> Dialogue:
    d = Dialogue()
    d.linked()
    for message in messages:
        d.client.transfer(message)
    d.goodbye()
    return d


def found(d: Dialogue, spec: str) -> list[Finding]:
    return list(amqpscope.check(io.BytesIO(d.pcap()), spec=spec))


def verdicts(d: Dialogue, spec: str) -> list[tuple[str, bool, str, str]]:
    return [
        (
            one.rule.removeprefix("amqp10/"),
            one.certain,
            one.assessment.edition,
            severity(one.rule, one.assessment.edition),
        )
        for one in found(d, spec)
    ]


def test_the_annotation_rejected_is_the_drafts() -> None:
    assert verdicts(said(REJECTED), "final") == []
    for spec in ("csd01", "csprd02"):
        assert verdicts(said(REJECTED), spec) == [("M-DA-REJECTED-TYPE", True, spec, "error")]


def test_content_types_of_values() -> None:
    note = ("M-CT-NONDATA", True)
    assert verdicts(said(WRAPPED, TYPED), "final") == [(*note, "final", "note")]
    for spec in ("csd01", "csprd02"):
        assert verdicts(said(WRAPPED, TYPED), spec) == [(*note, spec, "note")] * 2
    assert rule("amqp10/M-CT-NONDATA").requirement == "SHOULD"
    assert rule("amqp10/M-CT-NONDATA", "csd01").requirement == "SHOULD NOT"


@pytest.mark.parametrize("spec", EDITIONS)
def test_lifetime_policies(spec: str) -> None:
    d = Dialogue()
    d.begun()
    for handle, policy in enumerate((amqp.described("x:daily", amqp.list_([])), amqp.accepted())):
        wish = {"lifetime-policy": policy}
        source = amqp.source(dynamic=True, dynamic_node_properties=wish)
        d.client.attach(RECEIVER, handle=handle, name=f"q{handle}", source=source)
    assert [(one.rule, one.certain, one.assessment.edition) for one in found(d, spec)] == [
        ("amqp10/M-LIFETIME-VALUE", spec == "final", spec),
        ("amqp10/M-LIFETIME-VALUE", True, spec),
    ]


@pytest.mark.parametrize("spec", EDITIONS)
def test_what_the_drafts_do_not_have_is_final(spec: str) -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer(handle=5)
    d.goodbye()
    (one,) = found(d, spec)
    assert (one.rule, one.assessment.edition) == ("amqp10/L-UNATTACHED-TRANSFER", "final")


def test_rules_that_only_the_final_text_has() -> None:
    (one,) = found(said(TYPED), "final")
    one.rule = "amqp10/M-REJ-ANNOTATE"
    assert following([one], "final") == [one]
    assert following([one], "csd01") == following([one], "csprd02") == []


def test_resuming_a_part_is_only_advised_by_csprd02() -> None:
    name = "amqp10/M-RES-START"
    assert [(rule(name, spec).requirement, severity(name, spec)) for spec in EDITIONS] == [
        ("MUST", "error"),
        ("MUST", "error"),
        ("SHOULD", "warning"),
    ]


def test_the_table_of_the_drafts() -> None:
    of_messages = {name for name, row in catalogue().items() if row.source.startswith("messaging.xml")}
    for spec in EDITIONS[1:]:
        rows = {name: row for (name, edition), row in editions().items() if edition == spec}
        assert len(rows) > 80
        # What is in none of the drafts, or was in lists that their texts lost.
        assert {name.partition("/")[2] for name in of_messages - set(rows)} == {
            *("M-SECT-ONCE", "M-BODY-PRESENT", "M-BODY-NOMIX", "M-BODY-ONEVALUE", "M-PAYLOAD-WHOLE"),
            "M-REJ-ANNOTATE",
        }
        for row in rows.values():
            assert row.source.startswith(f"AMQP 1.0 Part 3: Messaging, OASIS {spec}, section 3.")
            assert row.requirement in ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY-limits")
    # Written in small letters in the final text, in capitals in csprd02.
    assert rule("amqp10/M-FILTER-KEY", "csd01").basis == "lower-case"
    assert rule("amqp10/M-FILTER-KEY", "csprd02").basis == "keyword"


def test_another_edition_there_is_not() -> None:
    with pytest.raises(FilterError, match="csd02"):
        amqpscope.Capture(io.BytesIO(said().pcap()), amqpscope.CaptureOptions(spec="csd02"))


@pytest.fixture
def capture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "a.pcap").write_bytes(said(REJECTED, TYPED).pcap())
    monkeypatch.chdir(tmp_path)
    return "a.pcap"


def test_check_with_spec(capture: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, "check", "--format", "ndjson", capture)
    (one,) = [json.loads(line) for line in result.lines]
    assert result.status == 0
    assert (one["rule"], one["edition"], one["requirement"]) == ("amqp10/M-CT-NONDATA", "final", "SHOULD")
    assert one["spec"] == "AMQP 1.0, Part 3: Messaging, 3.2.4 properties, content-type"
    result = run(capsys, "check", "--format", "ndjson", "--spec", "csprd02", capture)
    assert result.status == 1
    one, two = [json.loads(line) for line in result.lines]
    assert (one["rule"], one["edition"], one["severity"]) == ("amqp10/M-DA-REJECTED-TYPE", "csprd02", "error")
    assert (two["rule"], two["edition"], two["requirement"]) == (
        "amqp10/M-CT-NONDATA",
        "csprd02",
        "SHOULD NOT",
    )
    assert two["spec"] == "AMQP 1.0 Part 3: Messaging, OASIS csprd02, section 3.2.4"
    result = run(capsys, "check", "--notes", "--spec", "csd01", capture)
    assert result.status == 1
    assert "error amqp10/M-DA-REJECTED-TYPE" in result.out
    assert "OASIS csd01, section 3.2.2" in result.out
    assert "should set no content-type" in result.out and "(SHOULD NOT)" in result.out
    assert run(capsys, "check", "--spec", "draft", capture).status == 2


def test_explain_tells_what_the_drafts_have_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "rules", "explain", "M-DA-REJECTED-TYPE").out
    assert "does not have this rule" in text
    assert "══" in text.partition("Not broken")[0]
    assert "══" not in text.partition("Not broken")[2]
    text = run(capsys, "rules", "explain", "M-CT-NONDATA").out
    assert "csprd02" in text and "is not a data section. (SHOULD NOT; section 3.2.4)" in " ".join(
        text.split()
    )
    assert "csprd02" not in run(capsys, "rules", "explain", "M-AP-KEY").out
    text = run(capsys, "rules", "explain", "M-FILTER-KEY").out
    assert (
        "writes the word MUST in capital letters. The other editions write this word in small letters."
        in " ".join(text.split())
    )


def test_random_legal_conversations_are_not_accused_by_the_drafts() -> None:
    for n in range(30):
        octets = captured(converse(f"editions {n}", lossy=False), Tap()).octets
        kept = {
            spec: [
                (one.rule, one.certain, one.peer, one.packet)
                for one in amqpscope.check(io.BytesIO(octets), spec=spec)
                if severity(one.rule, one.assessment.edition) != "note"
            ]
            for spec in EDITIONS
        }
        assert kept["csd01"] == kept["csprd02"] == kept["final"], n
        assert not [one for one in kept["csprd02"] if severity(one[0]) == "error" and one[1]], n

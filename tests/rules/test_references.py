"""Where the specification says it: each rule's source becomes places in public documents."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.commands import amqpscope

from amqpscope.rules.catalogue import catalogue, editions, guards, rule
from amqpscope.rules.references import Reference, references

TRANSPORT = "https://docs.oasis-open.org/amqp/core/v1.0/os/amqp-core-transport-v1.0-os.html"
METHODS = "https://www.rabbitmq.com/amqp-0-9-1-reference.html"


@pytest.mark.parametrize(
    ("source", "text", "address"),
    [
        # Numbers as the OASIS standard has them.
        (
            "transport.xml section links > Flow Control (drain)",
            "AMQP 1.0, Part 2: Transport, 2.6.7 Flow Control",
            f"{TRANSPORT}#doc-flow-control",
        ),
        (
            "transport.xml section connections > Idle Time-out",
            "AMQP 1.0, Part 2: Transport, 2.4.5 Idle Time-out of a Connection",
            f"{TRANSPORT}#doc-doc-idle-time-out",
        ),
        (
            "transport.xml section performatives > attach.handle",
            "AMQP 1.0, Part 2: Transport, 2.7.3 attach, handle",
            f"{TRANSPORT}#type-attach",
        ),
        (
            "transport.xml section definitions > session-error window-violation",
            "AMQP 1.0, Part 2: Transport, 2.8.17 session-error, window-violation",
            f"{TRANSPORT}#type-session-error",
        ),
        (
            "transport.xml section definitions > MIN-MAX-FRAME-SIZE",
            "AMQP 1.0, Part 2: Transport, 2.8 Definitions",
            f"{TRANSPORT}#section-definitions",
        ),
        ("XML:basic.ack.multiple.exists", "AMQP 0-9-1, basic.ack", f"{METHODS}#basic.ack"),
        (
            "XML domain delivery-tag (doc)",
            "AMQP 0-9-1, domain delivery-tag",
            f"{METHODS}#domain.delivery-tag",
        ),
        (
            "AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 3.4.3, 3.7.9",
            "AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 3.4.3, 3.7.9",
            "",
        ),
        ("RMQX:confirm.all queues", "AMQP 0-9-1, class confirm", f"{METHODS}#class.confirm"),
    ],
)
def test_a_source_is_a_place_with_an_address(source: str, text: str, address: str) -> None:
    assert references(source) == [Reference(text, address)]


def test_several_sources_are_several_places_each_once() -> None:
    found = references(
        "messaging.xml section addressing > source.outcomes, default-outcome; "
        "messaging.xml section delivery-state; messaging.xml section addressing > source.outcomes"
    )
    assert [one.text.rpartition("Messaging, ")[2] for one in found] == [
        "3.5.3 source, outcomes",
        "3.4 Delivery State",
    ]


def test_every_rule_has_a_place_in_the_words_of_its_document() -> None:
    rows = [*catalogue().values(), *guards().values(), *editions().values()]
    assert len(rows) > 700
    for row in rows:
        for one in references(row.source):
            assert not re.search(r"\.xml|section [a-z-]+ >|^(GS|RMQ|RMQX|ERR|G|XML):", one.text), row.id
            assert re.fullmatch(r"(https://[a-z./A-Z0-9_#-]+)?", one.address), row.id
    # The final text does not have these; the drafts that have them do say where.
    assert {row.id for row in rows if not references(row.source)} == {
        name for name, row in catalogue().items() if row.source.startswith("(")
    }
    assert all(references(row.source) for row in editions().values())


SHORTHAND = re.compile(
    r"\w\.xml\b|\b(?:GS|XML|RMQX?|ERR|G):|section [a-z-]+ >|in-flight-race|\b\d{3} (?:ch|conn)\b"
)


@pytest.mark.parametrize("form", ["text", "json", "ndjson", "markdown", "junit", "sarif", "github"])
@pytest.mark.parametrize("name", ["rhea-transfer-before-attach", "pika-two-threads"])
def test_no_form_shows_the_shorthand_of_the_catalogue(
    name: str, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = Path(__file__).resolve().parents[2] / "captures" / f"{name}.pcap"
    result = amqpscope(capsys, "check", "--format", form, capture)
    assert result.status == 1
    assert SHORTHAND.findall(result.out.replace(str(capture), "")) == []
    if form != "github":
        assert re.search(r"https://(docs\.oasis-open\.org|www\.rabbitmq\.com)/", result.out.replace("\\", ""))


def test_an_explanation_names_sources_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "explain", "L-CREDIT", "F-HEADER-ORPHAN")
    assert "AMQP 1.0, Part 2: Transport, 2.6.7 Flow Control <https://docs.oasis-open.org/" in result.out
    assert SHORTHAND.findall(result.out) == []
    page = amqpscope(capsys, "rules", "explain", "--format", "markdown", "L-CREDIT").out
    assert "2.6.7 Flow Control](https://docs.oasis-open.org/" in page


def test_sarif_leads_to_the_text_of_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    capture = Path(__file__).resolve().parents[2] / "captures" / "rhea-transfer-before-attach.pcap"
    log = json.loads(amqpscope(capsys, "check", "--format", "sarif", capture).out)
    rules = log["runs"][0]["tool"]["driver"]["rules"]
    assert rules
    for one in rules:
        assert one["helpUri"] == references(rule(one["id"]).source)[0].address

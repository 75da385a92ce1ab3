"""The timeline reaches any output whole: one that takes octets, and one that takes only text."""

from __future__ import annotations

import io
import sys

import pytest
from support import amqp091_encode as amqp
from support.rendered import records

from amqpscope.report.held_timeline import HeldTimeline
from amqpscope.report.links import LinkNames
from amqpscope.report.settlements import SettlementLog

PUBLISHED = (
    amqp.say("channel.open", 1)
    + amqp.say("basic.publish", 1, routing_key="Grüße →")
    + amqp.frame(2, 1, amqp.content_header(0, message_id="é"))
)


def written(monkeypatch: pytest.MonkeyPatch, output: io.TextIOBase) -> None:
    monkeypatch.setattr(sys, "stdout", output)
    timeline = HeldTimeline("r", 0, judges=True, holds=True)
    names = LinkNames()
    timeline.begin(names, SettlementLog(names, {}))
    timeline.block(records(PUBLISHED))
    timeline.write_all()


def test_outputs_of_octets_and_of_text_get_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    octets = io.BytesIO()
    text = io.StringIO()
    wide = io.BytesIO()
    written(monkeypatch, io.TextIOWrapper(octets, encoding="utf-8"))
    written(monkeypatch, text)
    written(monkeypatch, io.TextIOWrapper(wide, encoding="utf-16-le"))
    assert "C→" in text.getvalue()
    assert "Grüße" in text.getvalue()
    assert octets.getvalue().decode("utf-8") == text.getvalue()
    assert wide.getvalue().decode("utf-16-le") == text.getvalue()


def test_what_was_written_as_text_before_stands_before(monkeypatch: pytest.MonkeyPatch) -> None:
    octets = io.BytesIO()
    output = io.TextIOWrapper(octets, encoding="utf-8")
    output.write("first\n")
    written(monkeypatch, output)
    assert octets.getvalue().startswith(b"first\n")

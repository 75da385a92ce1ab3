"""What counts as the answer to a finding: an error that is for it, as far as it says what it is for."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091

import amqpscope
from amqpscope.finding import Finding
from amqpscope.report.verdict import answer


def found(dialogue: Conversation, rule: str) -> list[Finding]:
    with amqpscope.Capture(io.BytesIO(dialogue.pcap()), judge=True) as capture:
        findings = [finding for _ in capture.blocks() for finding in capture.take_findings()]
    found = [finding for finding in findings if finding.rule == rule]
    assert found
    return found


def acknowledged(*channels: int) -> Dialogue091:
    """Acknowledgements of what was never delivered, on these channels, of which each is open."""
    d = Dialogue091()
    d.opened()
    for channel in channels:
        d.client.open_channel(channel)
        d.server.channel_open_ok(channel)
    for channel in channels:
        d.client.ack(7, channel=channel)
    return d


def test_a_close_of_a_channel_is_not_for_another_channel() -> None:
    d = acknowledged(1, 2)
    d.server.close_channel(406, "unknown delivery tag", "basic.ack", channel=2)
    first, second = found(d, "amqp091/B-ACK-KNOWN")
    assert (first.reaction, first.other_error) == ("", True)
    assert answer(first).startswith("the server gave no error for this")
    assert (second.reaction, second.reaction_condition) == ("channel.close", "406")


CLOSES: list[tuple[Callable[[Dialogue091], object], str]] = [
    (lambda d: d.server.close_channel(406, "unknown tag", "basic.ack"), "channel.close"),
    (lambda d: d.server.close_channel(404, "no queue", "queue.bind"), ""),
    (lambda d: d.server.close_channel(406, "time-out"), "channel.close"),
    (lambda d: d.server.close_connection(504, "channel error", "basic.ack"), "connection.close"),
    (lambda d: d.server.close_connection(530, "not allowed", "queue.bind"), ""),
    (lambda d: d.server.close_connection(505, "no content header", "basic.publish"), "connection.close"),
    (lambda d: d.server.close_connection(541, "internal error"), "connection.close"),
]


@pytest.mark.parametrize(("close", "reaction"), CLOSES)
def test_a_close_that_names_a_method_is_for_that_one(
    close: Callable[[Dialogue091], object], reaction: str
) -> None:
    d = acknowledged(1)
    close(d)
    (finding,) = found(d, "amqp091/B-ACK-KNOWN")
    assert (finding.reaction, finding.other_error) == (reaction, not reaction)


@pytest.mark.parametrize(
    ("cause", "reaction"), [("connection.start-ok", "connection.close"), ("basic.publish", ""), ("", "")]
)
def test_a_note_is_answered_only_by_what_names_its_frame(cause: str, reaction: str) -> None:
    d = Dialogue091()
    d.opened(start_ok={"properties": {"copyright": None, "information": None}})
    d.client.open_channel()
    d.server.channel_open_ok()
    d.server.close_connection(505, "not expected", cause)
    (finding,) = found(d, "amqp091/C-STARTOK-CLIENT-PROPS")
    assert finding.reaction == reaction


def overrun() -> Dialogue:
    """Two links on one session, a delivery without credit on the first of them."""
    d = Dialogue()
    d.linked(credit=0)
    d.server.flow(handle=0, link_credit=0)
    d.client.attach(name="other", handle=1, role=False)
    d.server.attach(name="other", handle=1, role=True)
    d.client.begin(channel=1)
    d.server.begin(channel=1, remote_channel=1)
    d.client.transfer()
    return d


ENDINGS: list[tuple[Callable[[Dialogue], object], str]] = [
    (lambda d: d.server.detach(handle=0, error="amqp:link:transfer-limit-exceeded"), "detach"),
    (lambda d: d.server.detach(handle=1, error="amqp:resource-deleted"), ""),
    (lambda d: d.server.end_session(channel=0, error="amqp:session:window-violation"), "end"),
    (lambda d: d.server.end_session(channel=1, error="amqp:session:window-violation"), ""),
    (lambda d: d.server.close(error="amqp:not-allowed"), "close"),
]


@pytest.mark.parametrize(("ending", "reaction"), ENDINGS)
def test_an_error_is_for_its_link_or_session(ending: Callable[[Dialogue], object], reaction: str) -> None:
    d = overrun()
    ending(d)
    (finding,) = found(d, "amqp10/L-CREDIT")
    assert (finding.reaction, finding.other_error) == (reaction, not reaction)


def test_a_detach_is_for_what_was_said_of_no_link() -> None:
    d = overrun()
    d.client.transfer(handle=5)
    d.server.detach(handle=1, error="amqp:session:unattached-handle")
    (finding,) = found(d, "amqp10/L-UNATTACHED-TRANSFER")
    assert finding.reaction == "detach"

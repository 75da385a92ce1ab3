"""Breaches of AMQP 0-9-1 that something beside them once hid, or that got another's name."""

from __future__ import annotations

import pytest
from support.dialogue091 import Dialogue091
from support.judged import judged

SECOND = 1_000_000_000


def found(d: Dialogue091, certain: bool = True) -> list[tuple[str, str]]:
    """Rule and peer of each finding that is certain (or of each that is not), but for recommendations."""
    while_read, at_end = judged(d.pcap())
    return [
        (one.rule.partition("/")[2], one.peer)
        for one in while_read + at_end
        if not one.rule.endswith("-PROPS") and one.certain == certain
    ]


def channel_closed_in_vain() -> Dialogue091:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.client.close_channel()
    d.capture.clock += 45 * SECOND
    return d


def test_the_answer_to_the_close_of_the_connection_shows_that_a_channels_close_was_read() -> None:
    d = channel_closed_in_vain()
    d.client.close_connection()
    d.server.connection_close_ok()
    assert found(d) == [("CH-CLOSE-REPLY", "server")]


def test_an_answer_on_another_channel_shows_it_and_the_end_of_the_capture_leaves_it_possible() -> None:
    d = channel_closed_in_vain()
    d.channel(2)
    assert found(d) == []
    assert found(d, certain=False) == [("CH-CLOSE-REPLY", "server")]


def test_another_channel_leaves_it_possible_though_the_connection_ends() -> None:
    d = channel_closed_in_vain()
    d.channel(2)
    d.server.close_connection(320, "shutdown")
    d.client.connection_close_ok()
    assert found(d) == []
    assert found(d, certain=False) == [("CH-CLOSE-REPLY", "server")]


def test_who_has_said_nothing_since_may_be_about_to_answer() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.client.close_channel()
    d.channel(2)
    d.capture.clock += 45 * SECOND
    d.client.heartbeat()
    assert found(d) == []


def test_a_second_answer_is_to_nothing_though_the_server_itself_asked_with_no_wait() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q", consumer_tag="c")
    d.client.method("basic.cancel", consumer_tag="c")
    d.server.method("basic.cancel", consumer_tag="c", no_wait=True)
    d.server.method("basic.cancel-ok", consumer_tag="c")
    d.server.method("basic.cancel-ok", consumer_tag="c")
    d.goodbye()
    assert found(d) == [("CH-SYNC-UNSOLICITED", "server")]


@pytest.mark.parametrize("header", [(1, 1, 0, 9), (0, 0, 9, 0), (1, 1, 9, 0)])
def test_a_client_that_asks_for_0_9_is_judged(header: tuple[int, int, int, int]) -> None:
    """It speaks 0-9-1, as does the server that answers."""
    d = Dialogue091()
    d.client.header(*header)
    d.server.start()
    d.client.open_connection()
    d.server.connection_open_ok()
    d.channel(1)
    d.client.method("basic.get", queue="")
    d.goodbye()
    assert found(d) == [("C-HS-ORDER-CLIENT", "client"), ("B-GET-QKNOWN", "client")]


@pytest.mark.parametrize("beginning", [True, False])
def test_a_refusal_that_crosses_the_clients_close_tells_what_is_refused(beginning: bool) -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    first = len(d.capture.packets)
    d.client.publish(exchange="nowhere")
    d.client.close_channel()
    # Its host has the client's close by then, its program need not have read it.
    d.server.close_channel(404, "NOT_FOUND - no exchange 'nowhere' in vhost '/'", cause="basic.publish")
    d.client.channel_close_ok()
    d.server.channel_close_ok()
    d.goodbye()
    if not beginning:
        del d.capture.packets[:first]
    while_read, at_end = judged(d.pcap())
    assert "amqp091/B-PUBLISH-XEXIST" in [one.rule for one in while_read + at_end]

"""Ports that are used again at once, in a capture of packets with data only: no SYN, FIN or RST."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091

import amqpscope
from amqpscope.limits import NEW_CONNECTION_HEADER

CLIENT = "10.0.0.1:51034"
ISN = 2**31 + 1000


def failed_login() -> Dialogue:
    d = Dialogue(client=CLIENT, client_isn=ISN, server_isn=ISN)
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms()
    d.client.init()
    d.server.outcome(1)
    return d


def half_a_conversation() -> Dialogue091:
    d = Dialogue091(client=CLIENT, client_isn=ISN, server_isn=ISN)
    d.opened()
    d.channel()
    d.client.publish()
    return d


def another(first: Conversation, client: int, server: int, name: str = CLIENT) -> None:
    """A conversation behind it, by default on the same ports. client, server: how far its initial sequence
    numbers are from where the first one's streams were.
    """
    first.wait(seconds=1)
    d = first.again(
        client=name,
        client_isn=(ISN + first.client.end.sent + client) % 2**32,
        server_isn=(ISN + first.server.end.sent + server) % 2**32,
    )
    d.opened()
    d.goodbye()


def read(d: Conversation) -> tuple[int, int, list[str]]:
    """Of the packets with data: how many connections, how many frames, and the certain findings."""
    d.capture.packets = [one for one in d.capture.packets if len(one.data) > 14 + 20 + 20]
    with amqpscope.Capture(io.BytesIO(d.pcap()), amqpscope.CaptureOptions(judge=True)) as capture:
        frames = sum(record.frame.kind != "skipped" for block in capture.blocks() for record in block)
        findings = capture.take_findings()
        connections = sum(one.connection.frames > 0 for one in capture.connections)
    return connections, frames, [finding.rule for finding in findings if finding.certain]


FAR = [NEW_CONNECTION_HEADER + 1000, 10**6, 2**30 + 5, 2**31 - 10, -(10**6), -(2**30) - 5]
NEAR = [-500, -8, 1, 100, 5000, 60_000]


@pytest.mark.parametrize("begin", [failed_login, half_a_conversation])
@pytest.mark.parametrize("client", FAR)
@pytest.mark.parametrize("server", [*FAR[::2], *NEAR[::2]])
def test_a_header_far_from_the_old_stream_begins_another_connection(
    begin: Callable[[], Conversation], client: int, server: int
) -> None:
    reported_apart = begin()
    another(reported_apart, client, server, "10.0.0.1:51035")
    d = begin()
    another(d, client, server)
    assert read(d) == read(reported_apart)
    assert read(d)[::2] == (2, [])


@pytest.mark.parametrize("begin", [failed_login, half_a_conversation])
@pytest.mark.parametrize("client", NEAR)
@pytest.mark.parametrize("server", [*FAR[::2], *NEAR[::2]])
def test_a_header_near_the_old_stream_accuses_nobody_certainly(
    begin: Callable[[], Conversation], client: int, server: int
) -> None:
    d = begin()
    another(d, client, server)
    assert read(d)[2] == []

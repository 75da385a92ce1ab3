"""Brokers give each channel a process of its own: an answer on one does not show what was read on another."""

from __future__ import annotations

from support.dialogue091 import Dialogue091
from support.judged import judged

REACTION = "amqp091/T-TABLE-NAME-REACT"


def asked() -> Dialogue091:
    """A queue is declared on channel 1 with a name that a server should refuse; then channel 2 is opened."""
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.client.method("queue.declare", 1, queue="q", arguments={"-x": True})
    d.client.open_channel(2)
    return d


def reactions(d: Dialogue091) -> list[int]:
    while_read, at_end = judged(d.pcap())
    return [one.packet for one in while_read + at_end if one.rule == REACTION and one.certain]


def test_an_answer_on_another_channel_proves_nothing() -> None:
    d = asked()
    d.server.channel_open_ok(2)
    assert reactions(d) == []


def test_an_answer_on_the_channel_does() -> None:
    d = asked()
    d.server.channel_open_ok(2)
    d.server.method("queue.declare-ok", 1, queue="q")
    assert reactions(d) == [len(d.capture.packets)]


def test_a_heartbeat_on_a_channel_is_read_by_the_connection() -> None:
    """Channel 7 is not open, and never answers; frames are read in their order all the same."""
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.client.heartbeat(channel=7)
    d.declare()
    d.declare()
    while_read, at_end = judged(d.pcap())
    assert [one.rule for one in while_read + at_end if one.certain] == [
        "amqp091/F-CH0-HEARTBEAT",
        "amqp091/F-CH0-REACT",
    ]

"""Publishes of AMQP 0-9-1 that may still be refused."""

from __future__ import annotations

from amqpscope.limits import MAX_PENDING_EXCHANGES
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Roster
from dissectors.amqp091.methods import BasicPublish


def test_they_are_bounded_and_the_newest_stay() -> None:
    channel = Channel(1, Roster())
    for number in range(MAX_PENDING_EXCHANGES + 7):
        publish = BasicPublish()
        publish.exchange = f"exchange {number}"
        channel.apply(True, publish, number, number, 0)
    pending = channel.publishes.pending
    assert [int(name.split()[1]) for name in pending] == list(range(7, MAX_PENDING_EXCHANGES + 7))
    assert Channel.load(channel.dump(), Roster()).publishes.pending == pending

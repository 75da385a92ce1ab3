"""Two AMQP 0-9-1 peers that say, at random, what they have a right to say, and nothing else.

The client is in `support.client091`, the broker in `support.broker091`, what they have in common in
`support.peer091`. Written from the specification's text, the XML and what RabbitMQ documents of itself; they
share no table, no name and no line with the product. Each knows what it has heard so far and what it has
said; each call of `act` says something that is legal then. When that is sent, captured and heard is no matter
of the peers: `support.network` carries it, as it does for `support.legal`, whose shape this has.

The broker is RabbitMQ; or LavinMQ, where a new prefetch holds for consumers that there are; or another one,
which obeys prefetch in the specification's sense and in RabbitMQ's, may stop a channel's flow, waits for the
answer to its basic.cancel, and takes immediate messages.
Where the text leaves open whether something is legal, the peers do not do it.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from support.broker091 import Broker
from support.client091 import Client
from support.legal import Said
from support.peer091 import LAVINMQ, OTHER, RABBITMQ

__all__ = ["Talk091"]


class Talk091:
    """Both peers, and what they have said: `said[side]` is the side's stream as frames."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.product = random.choice([RABBITMQ, RABBITMQ, RABBITMQ, RABBITMQ, LAVINMQ, OTHER, OTHER])
        self.said: tuple[list[Said], list[Said]] = ([], [])
        self.closing = False
        self.polite = False
        # Now and then a peer may do something else first; then it says nothing legal in that turn.
        self.mischief: Callable[[Any], Said | None] | None = None
        client = Client(self)
        self.broker = Broker(self)
        self.peers = (client, self.broker)

    @property
    def restless(self) -> bool:
        """Somebody owes an answer that does not wait: nobody pauses."""
        for channel in self.broker.channels.values():
            if channel.unconfirmed or (channel.closing and not channel.answered):
                return True
        return any(peer.close_sent or peer.close_heard or peer.cut_off for peer in self.peers)

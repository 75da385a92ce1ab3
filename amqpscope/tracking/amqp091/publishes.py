"""The messages that the client has published on a channel: which are unconfirmed, and which may be returned.

Theory of operation. In confirm mode every published message is counted, from 1 with the first one after
confirm.select. The server reports once for each number that it has accepted the message (basic.ack) or could
not (basic.nack); with `multiple`, for all unconfirmed numbers up to it. A message published with mandatory or
immediate may come back by basic.return, which repeats the message but has no number.

Source: RabbitMQ, "Consumer Acknowledgements and Publisher Confirms"; basic.publish, basic.return.
"""

from typing import Any, Final

from amqpscope.limits import MAX_FLAGGED, MAX_PENDING_EXCHANGES, MAX_UNCONFIRMED
from amqpscope.tracking.amqp091.names import UNREADABLE, readable
from amqpscope.tracking.numbered import Numbered
from amqpscope.tracking.spans import Spans
from dissectors.amqp091.methods import BasicPublish
from dissectors.wire import i64

__all__ = ["NO_CONSUMERS", "NO_PUBLISH", "NO_ROUTE", "LastPublish", "Publish", "Publishes"]

NO_ROUTE: Final = 312
NO_CONSUMERS: Final = 313
"""Reply-codes of basic.return: of a message with mandatory, and of one with immediate."""


_ALL: Final = 1 << 62
"""A number above all that messages have."""

_SPARES: Final = 256
"""Objects of confirmed publishes of a channel: as many as one confirm often names."""

_REFUSAL_PATIENCE: Final = 1_000_000_000
"""Nanoseconds in which a server refuses a publish, if it does."""


class LastPublish:
    """The last basic.publish on a channel, from its method on."""

    def __init__(self) -> None:
        # Its exchange.
        self.exchange: str = ""
        # The offset behind the method, -1 if there was none, its packet, and when it was complete (ns).
        self.end: i64 = -1
        self.packet: i64 = 0
        self.time: i64 = 0
        # Its content is not there yet.
        self.incomplete: bool = False
        # It or one before it was to another than the default exchange.
        self.elsewhere: bool = False

    def begin(self, exchange: str, end: i64, packet: i64, time: i64) -> None:
        """The client says a basic.publish."""
        self.exchange = exchange
        self.end = end
        self.packet = packet
        self.time = time
        self.incomplete = True
        if exchange:
            self.elsewhere = True

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        place = (int(self.end), int(self.packet), int(self.time))
        return (self.exchange, *place, self.incomplete, self.elsewhere)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "LastPublish":
        """The object of what `dump` returned."""
        if state[1] < 0:
            return NO_PUBLISH
        last = LastPublish()
        last.exchange, last.end, last.packet, last.time, last.incomplete, last.elsewhere = state
        return last


# mypyc: null object, of all channels on which the client has published nothing. Nothing writes to it.
NO_PUBLISH: Final = LastPublish()


class Publish:
    """A complete message that the client has published."""

    def __init__(self, method: BasicPublish, size: int, end: i64, packet: i64, time: i64) -> None:
        # Its number since confirm.select, from 1; 0 outside confirm mode.
        self.number: int = 0
        # The exchange, the routing key and the flags that basic.publish has.
        self.exchange: str = readable(method.exchange)
        self.routing_key: str = readable(method.routing_key)
        self.mandatory: bool = method.mandatory
        self.immediate: bool = method.immediate
        # Octets of its body.
        self.size: int = size
        # Offset behind its last frame in the client's stream.
        self.end: i64 = end
        # The packet of its method.
        self.packet: i64 = packet
        # When its last octet was sent (ns).
        self.time: i64 = time
        # Of a confirmed one whose object may stand for another publish, the next such object.
        self.spare: Publish | None = None

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        flags = (self.mandatory, self.immediate)
        places = (self.size, int(self.end), int(self.packet), int(self.time))
        return (self.number, self.exchange, self.routing_key, flags, places)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Publish":
        """The object of what `dump` returned."""
        number, exchange, routing_key, flags, places = state
        publish = Publish(BasicPublish(), *places)
        publish.number, publish.exchange, publish.routing_key = number, exchange, routing_key
        publish.mandatory, publish.immediate = flags
        return publish


class Publishes:
    """The messages published on one channel since it was opened.

    confirming: the channel is in confirm mode. count: how many were published in confirm mode. unconfirmed:
    by number. acked, nacked: the numbers of acked and nacked messages.
    flagged: messages with mandatory or immediate that were not returned, in order; forgotten: some of them
    are not kept, or some returned messages are unknown. whole: no message is missing.
    """

    def __init__(self) -> None:
        # The channel is in confirm mode.
        self.confirming: bool = False
        # Numbers above this one are in doubt: something is missing since confirm.select.
        self.sure_to: i64 = 0
        # No publish is missing.
        self.whole: bool = True
        # How many were published in confirm mode.
        self.count: int = 0
        # Those not confirmed, by number.
        self.unconfirmed: Numbered = Numbered()
        # The numbers that were confirmed, and those that the server could not deal with.
        self.acked: Spans = Spans()
        self.nacked: Spans = Spans()
        # Those with mandatory or immediate that were not returned, in order.
        self.flagged: list[Publish] = []
        # Some of these are not here, or some of those that were returned are not known.
        self.forgotten: bool = False
        # By exchange, the first basic.publish of late that the server has not shown to have taken: the offset
        # behind it, its packet and time.
        self.pending: dict[str, tuple[int, int, int]] = {}
        # The return whose content header is due: exchange, routing key and reply-code.
        self.due_return: tuple[str, str, int] | None = None
        # How many basic.publish a conversation has seen on the channel. It is not dumped.
        self.begun: i64 = 0
        # The first of the objects that may stand for other publishes, and how many these are.
        self.spare: Publish | None = None
        self.spares: i64 = 0

    def select(self) -> None:
        """confirm.select: messages are counted from now on, if they were not counted before."""
        if not self.confirming:
            self.confirming = True
            self.sure_to = _ALL

    def lost(self) -> None:
        """Something is missing: the client may have published more messages."""
        self.whole = False
        self.sure_to = min(self.sure_to, self.count)

    def begin(self, exchange: str, end: i64, packet: i64, time: i64) -> None:
        """A basic.publish to an exchange, which the server may refuse.

        The first is kept, but for one that would have been refused by now.
        """
        first = self.pending.get(exchange)
        if first is None:
            if len(self.pending) >= MAX_PENDING_EXCHANGES:
                del self.pending[next(iter(self.pending))]
        elif time - first[2] < _REFUSAL_PATIENCE:
            return
        self.pending[exchange] = (int(end), int(packet), int(time))

    def took(self, end: i64) -> None:
        """The server has dealt with what the client said up to this offset."""
        if self.pending:
            for exchange, first in list(self.pending.items()):
                if first[0] <= end:
                    del self.pending[exchange]

    def complete(self, method: BasicPublish, size: int, end: i64, packet: i64, time: i64) -> Publish:
        """An object for a publish that is complete."""
        one = self.spare
        if one is None or method.mandatory or method.immediate:
            return Publish(method, size, end, packet, time)
        self.spare = one.spare
        self.spares -= 1
        one.spare = None
        one.number = 0
        one.exchange = readable(method.exchange)
        one.routing_key = readable(method.routing_key)
        one.size = size
        one.end = end
        one.packet = packet
        one.time = time
        return one

    def reuse(self, publishes: list[Publish]) -> None:
        """Nobody keeps these confirmed publishes: their objects may stand for other ones."""
        for publish in publishes:
            if self.spares < _SPARES and not publish.mandatory and not publish.immediate:
                publish.spare = self.spare
                self.spare = publish
                self.spares += 1

    def add(self, publish: Publish) -> None:
        """The last frame of a message."""
        if self.confirming:
            self.count += 1
            publish.number = self.count
            if self.unconfirmed.count() >= MAX_UNCONFIRMED:
                self.whole = False
                oldest: Publish = self.unconfirmed.oldest()
                self.unconfirmed.take(oldest.number)
            self.unconfirmed.put(self.count, publish)
        if publish.mandatory or publish.immediate:
            if publish.exchange == UNREADABLE or publish.routing_key == UNREADABLE:
                self.forgotten = True
                return
            if len(self.flagged) >= MAX_FLAGGED:
                del self.flagged[0]
                self.forgotten = True
            self.flagged.append(publish)

    def covered(self, tag: int, multiple: bool) -> list[Publish]:
        """The unconfirmed messages that a confirm names, the oldest first."""
        if multiple:
            return self.unconfirmed.up_to(tag)
        one = self.unconfirmed.get(tag)
        return [] if one is None else [one]

    def oldest(self) -> Publish | None:
        """The unconfirmed message with the smallest number, None if there is none."""
        oldest: Publish | None = self.unconfirmed.oldest()
        return oldest

    def confirm(self, tag: int, multiple: bool, positive: bool) -> list[Publish]:
        """The server confirms or nacks messages. Returns those that it names, the oldest first."""
        spans = self.acked if positive else self.nacked
        known = self.unconfirmed
        if not multiple:
            publish: Publish | None = known.take(tag)
            if publish is None:
                return []
            spans.add(tag, tag)
            self.took(publish.end)
            return [publish]
        if not 0 < tag <= self.count:
            # How many it is meant to confirm is not known.
            self.lost()
        publishes: list[Publish] = known.take_up_to(tag)
        size: i64 = len(publishes)
        if size == 0:
            return publishes
        first: int = publishes[0].number
        newest = publishes[size - 1]
        if newest.number - first == size - 1:
            spans.add(first, newest.number)
        else:
            for one in publishes:
                spans.add(one.number, one.number)
        self.took(newest.end)
        return publishes

    def returnable(self, exchange: str, routing_key: str) -> list[Publish]:
        """The messages that a basic.return may refer to, the oldest first."""
        return [
            publish
            for publish in self.flagged
            if publish.exchange == exchange and publish.routing_key == routing_key
        ]

    def returned(self, size: int) -> None:
        """A message with a body of this size was returned: the oldest possible one, preferably an unconfirmed
        one.
        """
        if self.due_return is None:
            return
        exchange, routing_key, code = self.due_return
        self.due_return = None
        if exchange == UNREADABLE or routing_key == UNREADABLE:
            self.forgotten = True
            return
        fitting = [publish for publish in self.returnable(exchange, routing_key) if publish.size == size]
        for_this = [
            publish
            for publish in fitting
            if (code == NO_ROUTE and publish.mandatory) or (code == NO_CONSUMERS and publish.immediate)
        ]
        if for_this:
            fitting = for_this
        if not fitting:
            return
        chosen = fitting[0]
        for publish in fitting:
            if publish.mandatory != chosen.mandatory or publish.immediate != chosen.immediate:
                # Which of them is left matters, and is not known.
                self.forgotten = True
        for publish in fitting:
            if publish.number in self.unconfirmed:
                chosen = publish
                break
        self.flagged.remove(chosen)

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (self.confirming, int(self.sure_to)),
            self.whole,
            self.count,
            tuple(publish.dump() for publish in self.unconfirmed.entries()),
            self.acked.dump(),
            self.nacked.dump(),
            tuple(publish.dump() for publish in self.flagged),
            self.forgotten,
            (tuple(self.pending.items()), self.due_return),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Publishes":
        """The object of what `dump` returned."""
        confirming, whole, count, unconfirmed, acked, nacked, flagged, forgotten, due = state
        publishes = Publishes()
        publishes.confirming, publishes.sure_to = confirming
        publishes.whole, publishes.count = whole, count
        for one in unconfirmed:
            publish = Publish.load(one)
            publishes.unconfirmed.put(publish.number, publish)
        publishes.acked, publishes.nacked = Spans.load(acked), Spans.load(nacked)
        publishes.flagged = [Publish.load(one) for one in flagged]
        publishes.forgotten = forgotten
        pending, publishes.due_return = due
        publishes.pending = dict(pending)
        return publishes

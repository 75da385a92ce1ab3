"""Which messages an acknowledgement, disposition or confirm answers, for showing frames.

A `SettlementLog` follows the connections of a capture. It knows the packet in which each open message began,
and for the last frame what it answers.
"""

import json
from collections import OrderedDict
from typing import Final

from amqpscope.limits import MAX_LINKED_MESSAGES, MAX_NAMED_DELIVERIES
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.protocols import protocol_of
from amqpscope.report.links import LinkNames
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import Listener091, SentContent
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from dissectors.amqp091.arguments import Method
from dissectors.amqp10.messaging import Received
from dissectors.amqp10.performatives import Disposition, Transfer
from dissectors.wire import i64

__all__ = ["AnsweredMessages", "Place", "SettledBy", "SettlementLog", "SettlementReader", "settled_text"]

_NAMED: Final = 16
"""Packets that a frame names of the messages that it answers."""

Place = tuple[int, int, int]
"""A frame of a capture: the number of its connection, its direction, and its offset there."""


class _Begun:
    """The frame with which a message began: its connection's number, direction, offset, packet and time (ns).

    number: of the message among those of its connection, from 1 on.
    """

    def __init__(self, record: FrameRecord, number: i64) -> None:
        self._stream: int = record.connection.stream
        self._direction: i64 = record.direction
        self._offset: i64 = record.frame.offset
        self.number: i64 = number
        self.packet: i64 = record.packet
        self.time: i64 = record.time

    @property
    def place(self) -> Place:
        """Where it stands."""
        return (self._stream, int(self._direction), int(self._offset))


_AFTER: Final[list[list[str]]] = [[""] * 1000 for _ in range(5)]
"""Times of less than a second that were shown, by their size and their three digits."""


def _after(time: i64) -> str:
    """A time (ns) for people: `0.273 ms`, `5.02 s`, `118 s`."""
    if 10_000 <= time < 999_000_000:
        unit: i64 = 100
        size = 0
        while time >= 1000 * unit:
            unit *= 10
            size += 1
        number: i64 = time // unit
        rest: i64 = time % unit
        # What is exactly between two texts is rounded as its float is.
        if rest * 2 != unit and number < 999:
            if rest * 2 > unit:
                number += 1
            text = _AFTER[size][number]
            if not text:
                text = _AFTER[size][number] = f"{int(number * unit) / 1e6:.3g} ms"
            return text
    seconds = int(time) / 1e9
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def settled_text(packet: int, time: i64) -> str:
    """What settles a message, for people, behind its line: a packet, and how long (ns) that took."""
    return f"settled in {packet} after {_after(time)}"


class SettledBy:
    """The packet that answered a message, and how long (ns) that took."""

    def __init__(self, packet: int, time: int) -> None:
        self.packet: int = packet
        self.time: int = time

    @property
    def text(self) -> str:
        """For people, behind a line."""
        return settled_text(self.packet, self.time)

    @property
    def json(self) -> str:
        """As a member of the JSON outputs."""
        return f'"settled_by": {json.dumps({"packet": self.packet, "seconds": self.time / 1e9})}'


class AnsweredMessages:
    """What a frame answers: messages, the oldest first. packet, time (ns): of the frame."""

    def __init__(self, begun: list[_Begun], packet: int, time: i64) -> None:
        self._begun: list[_Begun] = begun
        self.packet: int = packet
        self._time: i64 = time

    def _waited(self, begun: _Begun) -> i64:
        waited: i64 = self._time - begun.time
        return waited if waited > 0 else 0

    @property
    def places(self) -> list[tuple[Place, int]]:
        """Of each message the place of its first frame, and how long (ns) it was open."""
        return [(one.place, int(self._waited(one))) for one in self._begun]

    @property
    def numbers(self) -> list[tuple[int, int]]:
        """Of each message its number (`SettlementLog.begun`), and how long (ns) it was open."""
        return [(int(one.number), int(self._waited(one))) for one in self._begun]

    @property
    def text(self) -> str:
        """For people, behind a line."""
        first, last, count = self._begun[0].packet, self._begun[-1].packet, len(self._begun)
        which = f"{first}" if count == 1 else f"{first} to {last} ({count})"
        return f"answers {which} after {_after(self._waited(self._begun[0]))}"

    @property
    def json(self) -> str:
        """As a member of the JSON outputs."""
        packets = [int(one.packet) for one in self._begun[:_NAMED]]
        seconds = int(self._waited(self._begun[0])) / 1e9
        fields = {"packets": packets, "count": len(self._begun), "seconds": seconds}
        return f'"answers": {json.dumps(fields)}'


class _Followed:
    """One connection: its open messages, and what its last frame begins and answers."""

    def __init__(self) -> None:
        self.open: OrderedDict[object, _Begun] = OrderedDict()
        self.answered: AnsweredMessages | None = None
        # The number of the message that the last frame begins, 0 if it begins none; and how many have begun.
        self.begun: i64 = 0
        self._messages: i64 = 0

    def next_frame(self) -> None:
        """Another frame comes, which begins and answers nothing yet."""
        self.answered = None
        self.begun = 0

    def message(self, record: FrameRecord) -> _Begun:
        """A message begins with the last frame."""
        self._messages += 1
        self.begun = self._messages
        return _Begun(record, self._messages)

    def begin(self, key: object, begun: _Begun) -> None:
        self.open[key] = begun
        if len(self.open) > MAX_NAMED_DELIVERIES:
            self.open.popitem(last=False)

    def answer(self, record: FrameRecord, keys: list[object]) -> None:
        begun = [one for one in [self.open.pop(key, None) for key in keys] if one is not None]
        if begun:
            self.answered = AnsweredMessages(begun, int(record.packet), record.time)


def place_of(record: FrameRecord) -> Place:
    """Where a frame stands. It is the same whenever the capture is read."""
    return (int(record.connection.stream), int(record.direction), int(record.frame.offset))


class _Events10(Listener10):
    """Follows a connection of AMQP 1.0."""

    def __init__(self, followed: _Followed) -> None:
        super().__init__()
        self.followed = followed

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        if not delivery.settled and delivery.id is not None:
            self.followed.begin(delivery, self.followed.message(record))

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        if body.settled is True or (body.state is not None and not isinstance(body.state, Received)):
            self.followed.answer(record, [*deliveries])


class _Events091(Listener091):
    """Follows a connection of AMQP 0-9-1."""

    def __init__(self, followed: _Followed) -> None:
        super().__init__()
        self.followed = followed
        # The methods whose contents are under way.
        self.contents: dict[SentContent, _Begun] = {}

    def content_started(self, record: FrameRecord, method: Method, content: SentContent) -> None:
        if content.delivery is None:
            self.contents[content] = self.followed.message(record)
        elif not content.delivery.no_ack:
            self.followed.begin(content.delivery, self.followed.message(record))

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        begun = self.contents.pop(content, None)
        if begun is not None and content.publish is not None and content.number:
            self.followed.begin(content.publish, begun)

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        self.followed.answer(record, [*deliveries])

    def confirmed(self, record: FrameRecord, method: Method, publishes: list[Publish]) -> None:
        self.followed.answer(record, [*publishes])


class SettlementLog:
    """Follows the connections of a capture. names: are asked here for the link of each frame.

    settled: of messages, what settles them, by the places of their first frames: read before; else empty.
    """

    def __init__(self, names: LinkNames, settled: dict[Place, SettledBy]) -> None:
        self._names = names
        self._settled = settled
        self._followed: dict[Connection, tuple[_Followed, Conversation091 | None]] = {}
        self.answered: AnsweredMessages | None = None
        # The number of the message that the last frame begins, among those of its connection; 0 for none.
        self.begun: i64 = 0
        # The connection of the last frame: nearly always the next one's too.
        self._last: Connection | None = None
        self._known: tuple[_Followed, Conversation091 | None] = (_Followed(), None)

    def of(self, record: FrameRecord) -> Link | None:
        """The link of a frame, which is the next one. `begun` and `answered` then say more of this frame."""
        connection = record.connection
        if connection is not self._last:
            self._known = self._followed.get(connection) or self._follow(connection)
            self._last = connection
        followed, conversation = self._known
        followed.next_frame()
        link = self._names.of(record)
        if conversation is not None:
            conversation.take(record)
        self.answered = followed.answered
        self.begun = followed.begun
        return link

    def _follow(self, connection: Connection) -> tuple[_Followed, Conversation091 | None]:
        followed = _Followed()
        spoken = protocol_of(connection.protocol).conversation()
        conversation: Conversation091 | None = None
        if isinstance(spoken, Conversation091):
            conversation = spoken
            conversation.subscribe(_Events091(followed))
        else:
            self._names.conversation(connection).subscribe(_Events10(followed))
        known = self._followed[connection] = (followed, conversation)
        return known

    def settled_by(self, record: FrameRecord) -> SettledBy | None:
        """What settles the message that a frame begins, if that was read before."""
        return self._settled.get(place_of(record)) if self._settled else None

    def forget(self, connection: Connection) -> None:
        """No more frames of this connection will come."""
        self._followed.pop(connection, None)
        if self._last is connection:
            self._last = None


class SettlementReader:
    """Reads a capture for what settles its messages. full: there were too many of them to be kept."""

    def __init__(self) -> None:
        self.settled: dict[Place, SettledBy] = {}
        self.full = False
        self._names = LinkNames()
        self._log = SettlementLog(self._names, {})

    def take(self, record: FrameRecord) -> None:
        """The next frame of the capture."""
        self._log.of(record)
        answered = self._log.answered
        if answered is None:
            return
        for place, waited in answered.places:
            if len(self.settled) >= MAX_LINKED_MESSAGES:
                self.full = True
                return
            self.settled[place] = SettledBy(answered.packet, waited)

    def forget(self, connection: Connection) -> None:
        """No more frames of this connection will come."""
        self._names.forget(connection)
        self._log.forget(connection)

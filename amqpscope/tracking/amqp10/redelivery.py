"""The outcome of a message that an endpoint sent, in case it sends the message again on the same connection.

A distribution node sends a message to one receiver. The receiver's outcome decides whether the node sends it
to another receiver, or never again. For the first messages that a server sent with an id (see
`message_digest`), the outcome is kept, and a message with the same id and the same bare message is compared
with it. Clients are not distribution nodes: they may send a message again on purpose.

Sources: messaging.xml, "Message States", "delivery-state"; "addressing", source.
"""

from typing import Any

from amqpscope.model.records import FrameRef
from amqpscope.tracking.amqp10.message_digest import MessageDigest
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Header
from dissectors.amqp10.portable import dump_value, load_value
from dissectors.amqp10.values import Map
from dissectors.wire import i64

__all__ = ["Fate", "Head", "delivery_count", "head_of"]


def delivery_count(header: bytes) -> int:
    """The delivery-count of an encoded header section, 0 if it says none."""
    if not header:
        return 0
    for section in Message(0, [header], len(header), True).sections():
        value = section.value
        if isinstance(value, Header) and value.delivery_count is not None:
            return int(value.delivery_count)
    return 0


class Head:
    """What a message says in the parts that may change on its way: its header and its annotations.

    count: its delivery-count. first: it says that no other link acquired it before. annotations: its
    message-annotations by key. rejection: it has the error of an earlier rejection.
    """

    def __init__(self, count: int) -> None:
        self.count: int = count
        self.first: bool = False
        self.annotations: dict[str, object] = {}
        self.rejection: bool = False


def head_of(message: Message) -> Head:
    """The head of a message whose sections are sound."""
    head = Head(0)
    for section in message.sections():
        value = section.value
        if isinstance(value, Header):
            head.count = int(value.delivery_count or 0)
            head.first = value.first_acquirer is True
        elif section.name == "message-annotations" and isinstance(value, Map):
            head.annotations = {str(key): one for key, one in value.pairs}
        elif section.name == "delivery-annotations" and isinstance(value, Map):
            head.rejection = value.get("rejected") is not None
    return head


class Fate:
    """A message that was sent, on one link of one session.

    number: of its delivery, as a count. count: its delivery-count. state: that its receiver stated, once
    received. settled: by either end. gone: its link was left before.
    """

    def __init__(
        self, passed: MessageDigest, session: i64, number: i64, address: object, settled: bool, count: int
    ) -> None:
        self.message_id: bytes = passed.message_id
        self.sections: bytes = passed.sections
        self.sums: tuple[int, ...] = passed.sums
        self.link: str = passed.link
        self.packet: i64 = passed.spot.packet
        self.count: i64 = count
        self.session: i64 = session
        self.number: i64 = number
        self.address: object = address
        self.state: object = None
        self.settled: bool = settled
        self.presettled: bool = settled
        self.gone: bool = False

    def is_of(self, passed: MessageDigest) -> bool:
        """Whether a message that is sent now is the same one."""
        return self.sections == passed.sections and self.sums == passed.sums

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (self.message_id, self.sections, self.sums, self.link, int(self.packet), int(self.count)),
            (int(self.session), int(self.number), dump_value(self.address)),
            (dump_value(self.state), self.settled, self.presettled, self.gone),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Fate":
        """The object of what `dump` returned."""
        about, where, reported = state
        fate = Fate(
            MessageDigest(FrameRef(0, 0, 0, 0, "", -1), b"", b"", b"", b"", (), ""), 0, 0, None, False, 0
        )
        fate.message_id, fate.sections, fate.sums, fate.link, fate.packet, fate.count = about
        fate.session, fate.number = where[:2]
        fate.address = load_value(where[2])
        fate.state = load_value(reported[0])
        fate.settled, fate.presettled, fate.gone = reported[1:]
        return fate

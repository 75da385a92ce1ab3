"""Deliveries that are sent again as new ones after a reconnect, though the other peer has them."""

from typing import Final

from amqpscope.diagnoses.amqp10.redelivery import message_id_of
from amqpscope.diagnoses.declaration import declare
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.diagnoses.several import Several
from amqpscope.diagnoses.watch import Watch10
from amqpscope.limits import MAX_UNANSWERED
from amqpscope.model.passwords import without_password
from amqpscope.model.records import CLIENT, FrameRecord
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session, side_of
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Accepted, Source, Target
from dissectors.amqp10.performatives import Attach, Disposition, Transfer
from dissectors.amqp10.values import Map
from dissectors.wire import i64
from dissectors.wording import count

__all__ = ["RESUME_DOUBLED", "ResumeWatch"]

RESUME_DOUBLED: Final = declare(
    "resume-doubled",
    ("1.0",),
    """After a reconnect, a client sends deliveries again as new ones, although the other peer has accepted
    them.

    What it means: The attach of the other peer lists the delivery-tags as accepted. Without resume, the
    receiver gets these messages twice.
    Usual causes: A library sends all unsettled deliveries again without reading the unsettled map.
    Who has to act: The sender.
    Client: Resume or forget the deliveries that the other peer lists. Let the receiver recognize repeated
    message-ids.
    Server: Recognize repeated messages where possible.
    Not reported when: the deliveries are resumed or have other message-ids, or the link is not durable.
    Threads: minghuaw/fe2o3-amqp#396, Azure/azure-amqp#230
    """,
)


class _Doubled:
    """A link that is attached again. accepted: the message-ids that the other peer has accepted."""

    def __init__(self, before: int, accepted: set[str]) -> None:
        self.before = before
        self.accepted = accepted
        self.count = 0
        self.packet = 0


class ResumeWatch(Watch10):
    """Watches what a client sends on links that it may resume."""

    def __init__(self, notebook: Notebook, several: Several, conversation: Conversation10) -> None:
        super().__init__(notebook)
        self.several: Several = several
        self.conversation: Conversation10 = conversation
        # Links that may be resumed: what is unsettled on them, and what was so before.
        self.sent: dict[Link, dict[bytes, str]] = {}
        self.before: dict[Link, dict[bytes, str]] = {}
        self.doubled: dict[Link, _Doubled] = {}
        self.tags: dict[OpenDelivery, tuple[Link, bytes]] = {}

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        container = self.conversation.client_container
        if link.sender != CLIENT or not container:
            return
        if side_of(record) == 0 and _durable(body):
            self.before[link] = self.several.left(container, link.name)
            self.sent[link] = self.several.sent(container, link.name)
        elif link in self.before and isinstance(body.unsettled, Map):
            before = self.before[link]
            accepted = {
                before[bytes(tag)]
                for tag, state in body.unsettled
                if isinstance(tag, bytes) and isinstance(state, Accepted) and bytes(tag) in before
            }
            if accepted:
                self.doubled[link] = _Doubled(len(before), accepted)

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        link = delivery.link
        if not self.sent or link is None or link not in self.sent or body.resume or body.delivery_tag is None:
            return
        message = Message.of(record.message)
        if message is None or not message.complete:
            return
        message_id = message_id_of(message.front(1024))
        if not message_id:
            return
        doubled = self.doubled.get(link)
        if doubled is not None and message_id in doubled.accepted:
            doubled.count += 1
            doubled.packet = doubled.packet or record.packet
        sent = self.sent[link]
        if not body.settled and len(sent) < MAX_UNANSWERED:
            sent[bytes(body.delivery_tag)] = message_id
            self.tags[delivery] = (link, bytes(body.delivery_tag))

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        if body.settled is not True or not self.tags:
            return
        for delivery in deliveries:
            known = self.tags.pop(delivery, None)
            if known is not None:
                self.sent[known[0]].pop(known[1], None)

    def lost(self, until: i64) -> None:
        for link, sent in self.sent.items():
            sent.clear()
            self.before[link] = {}
        self.sent = {}
        self.tags = {}
        self.doubled = {}

    def finish(self, accused: set[str]) -> None:
        for link, doubled in self.doubled.items():
            if not doubled.count:
                continue
            name = without_password(link.name)
            self.notebook.add(
                RESUME_DOUBLED,
                name,
                CLIENT,
                doubled.packet,
                f"after the reconnect, the client sent {count(doubled.count, 'delivery')} of link "
                f"{name} again "
                "as new deliveries with the same message-ids, although the server lists them as accepted",
                {
                    "unsettled_before": doubled.before,
                    "accepted_by_peer": len(doubled.accepted),
                    "sent_again": doubled.count,
                    "resumed": 0,
                },
            )


def _durable(attach: Attach) -> bool:
    """Whether an attach says that its link can be resumed."""
    source, target = attach.source, attach.target
    if isinstance(source, Source) and (source.durable or source.expiry_policy == "never"):
        return True
    return isinstance(target, Target) and bool(target.durable or target.expiry_policy == "never")

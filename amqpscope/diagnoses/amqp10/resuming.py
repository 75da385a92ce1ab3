"""Deliveries that are sent again as new ones after a reconnect, though the other peer has them."""

from typing import Final

from amqpscope.diagnoses.amqp10.redelivery import message_id_of
from amqpscope.diagnoses.amqp10.watch import Watch10
from amqpscope.diagnoses.declaration import declare
from amqpscope.diagnoses.notebook import Notebook, diagnosis
from amqpscope.diagnoses.several import Resumption, Several
from amqpscope.limits import MAX_UNANSWERED
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.passwords import without_password
from amqpscope.model.records import CLIENT, FrameRecord, side_of
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Accepted, Source, Target
from dissectors.amqp10.performatives import Attach, Disposition, Transfer
from dissectors.amqp10.values import Map
from dissectors.wire import i64
from dissectors.wording import count

__all__ = ["RESUME_DOUBLED", "ResumeWatch", "doubled"]

RESUME_DOUBLED: Final = declare(
    "resume-doubled",
    ("1.0",),
    """After a reconnect, a client sends deliveries again as new deliveries, although the other peer has
    already accepted these deliveries.

    What it means: The unsettled map in the other peer's attach contains the delivery-tags with the outcome
    `accepted`. The client sends the messages without resume=true, so the receiver gets these messages twice.
    Usual causes: A library sends all unsettled deliveries again without reading the unsettled map.
    Who has to act: The sender.
    Client: Compare the unsettled map of the other peer's attach with the client's own unsettled deliveries.
    Resume or forget the deliveries that are in the map.
    Server: If possible, recognize repeated messages by their message-ids.
    Not reported when: the deliveries are resumed or have other message-ids, or the link is not durable.
    Discussions: minghuaw/fe2o3-amqp#396, Azure/azure-amqp#230
    """,
)


class _Resumable:
    """A link on which the client may resume deliveries. packet: of its attach. Messages are named by ids."""

    def __init__(
        self, container: str, name: str, packet: int, before: dict[bytes, str], left: dict[bytes, str]
    ) -> None:
        self.container = container
        self.name = name
        self.packet = packet
        # By tag: what was unsettled on it before, and what is so now.
        self.before = before
        self.left = left
        # The tags that the answering attach lists as accepted, and what was sent as new then, and where.
        self.accepted: tuple[bytes, ...] = ()
        self.sent: list[tuple[str, int]] = []


class ResumeWatch(Watch10):
    """Watches what a client sends on links that it may resume."""

    def __init__(self, notebook: Notebook, several: Several, conversation: Conversation10) -> None:
        super().__init__(notebook, later=True)
        self.several: Several = several
        self.conversation: Conversation10 = conversation
        # The links that may be resumed: those that are followed, and all.
        self.links: dict[Link, _Resumable] = {}
        self.attached: list[_Resumable] = []
        # What is not settled of that, by delivery.
        self.tags: dict[OpenDelivery, tuple[_Resumable, bytes]] = {}

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        container = self.conversation.client_container
        if link.sender != CLIENT or not container:
            return
        if side_of(record) == 0 and _durable(body):
            before = self.several.left(container, link.name)
            left = self.several.sent(container, link.name)
            known = self.links[link] = _Resumable(container, link.name, int(record.packet), before, left)
            self.attached.append(known)
            self.attend(self.conversation)
        elif link in self.links and isinstance(body.unsettled, Map):
            self.links[link].accepted = tuple(
                bytes(tag)
                for tag, state in body.unsettled
                if isinstance(tag, bytes) and isinstance(state, Accepted)
            )

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        link = delivery.link
        if not self.links or link is None or body.resume or body.delivery_tag is None:
            return
        known = self.links.get(link)
        message = None if known is None else Message.of(record.message)
        if known is None or message is None or not message.complete:
            return
        message_id = message_id_of(message.front(1024))
        if not message_id:
            return
        if known.accepted and len(known.sent) < MAX_UNANSWERED:
            known.sent.append((message_id, int(record.packet)))
        if not body.settled and len(known.left) < MAX_UNANSWERED:
            known.left[bytes(body.delivery_tag)] = message_id
            self.tags[delivery] = (known, bytes(body.delivery_tag))

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        if body.settled is not True or not self.tags:
            return
        for delivery in deliveries:
            known = self.tags.pop(delivery, None)
            if known is not None:
                known[0].left.pop(known[1], None)

    def lost(self, until: i64) -> None:
        for known in self.links.values():
            known.left.clear()
            known.before = {}
            known.accepted = ()
        self.links = {}
        self.tags = {}

    def finish(self, accused: set[str]) -> None:
        name = self.notebook.connection.id
        for known in self.attached:
            resumption = Resumption(
                name, known.container, known.name, known.packet, known.accepted, tuple(known.sent), known.left
            )
            if self.several.postpone(resumption):
                continue
            found = doubled(resumption, known.before)
            if found is not None:
                self.notebook.take(found)


def doubled(resumption: Resumption, before: dict[bytes, str]) -> Diagnosis | None:
    """The diagnosis of a link on which the client sent again what the server had, None if it did not.

    before: the message-ids by tag of what was not settled on the link before.
    """
    accepted = {before[tag] for tag in resumption.accepted if tag in before}
    again = [packet for message_id, packet in resumption.sent if message_id in accepted]
    if not again:
        return None
    name = without_password(resumption.link)
    how, which = "as new deliveries with the same message-ids", "the earlier deliveries"
    if len(again) == 1:
        how, which = "as a new delivery with the same message-id", "the earlier delivery"
    return diagnosis(
        RESUME_DOUBLED,
        resumption.connection,
        name,
        CLIENT,
        again[0],
        f"after the reconnect, the client sent {count(len(again), 'message')} "
        f'of link "{name}" again '
        f"{how}, although the server lists {which} as accepted",
        {
            "unsettled_before": len(before),
            "accepted_by_peer": len(accepted),
            "sent_again": len(again),
            "resumed": 0,
        },
    )


def _durable(attach: Attach) -> bool:
    """Whether an attach says that its link can be resumed."""
    source, target = attach.source, attach.target
    if isinstance(source, Source) and (source.durable or source.expiry_policy == "never"):
        return True
    return isinstance(target, Target) and bool(target.durable or target.expiry_policy == "never")

"""AMQP 1.0: which later performatives answer one, or come of it."""

from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from amqpscope.tracking.amqp10_draft2011.spoken import body_of
from amqpscope.why.watch import AnswerWatch
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Transfer,
)

__all__ = ["AnswerWatch10"]


class AnswerWatch10(AnswerWatch, Listener10):
    """Looks for what answers a performative, from either peer.

    record: of the frame in question, which the conversation takes next.
    """

    def __init__(self, record: FrameRecord, conversation: Conversation10) -> None:
        super().__init__()
        self._record = record
        self._body = body_of(record.frame)
        self._conversation = conversation
        self._session: Session | None = None
        self._link: Link | None = None
        self._delivery: OpenDelivery | None = None
        # A peer has ended the session, or closed the connection.
        self._ended = False
        conversation.subscribe(self)

    def _own(self, record: FrameRecord) -> bool:
        """Whether the sender of the frame in question goes on."""
        return record.direction == self._record.direction

    def _answers(self, record: FrameRecord) -> bool:
        """Whether a frame is a later one of the other peer's."""
        return not self.over and not self._own(record)

    def _on(self, record: FrameRecord, session: Session, link: Link | None = None) -> bool:
        """Whether a later frame is on the session of the frame in question."""
        if record is self._record:
            self._link = link
        if self._session is None and not isinstance(self._body, (Open, Close)):
            half = self._conversation.half_of(self._record)
            self._session = None if half is None else half.session
        return record is not self._record and not self.over and session is self._session

    def _closed(self, what: str, error: Error | None, record: FrameRecord) -> None:
        """A close, or an end: the other peer may send one with an error before it has the sender's own."""
        if not self._ended or error is not None:
            self.add(what + (" with an error" if error is not None else ""), record)
        self._ended = True
        self.over = self.over or not self._own(record)

    # The connection

    def header(self, record: FrameRecord, body: ProtocolHeader) -> None:
        if self._answers(record) and self._record.frame.kind in ("header", "sasl"):
            self.add("the answer", record, last=True)

    def sasl(self, record: FrameRecord) -> None:
        if self._answers(record) and self._record.frame.kind == "sasl":
            self.add("the answer", record, last=True)

    def opened(self, record: FrameRecord, body: Open) -> None:
        if self._answers(record) and isinstance(self._body, Open):
            self.add("the answer", record, last=True)

    def closed(self, record: FrameRecord, body: Close) -> None:
        if not self.over and record is not self._record:
            self._closed("the connection is closed", body.error, record)

    # Sessions

    def session_begun(self, record: FrameRecord, body: Begin, session: Session) -> None:
        if self._on(record, session) and isinstance(self._body, Begin) and not self._own(record):
            self.add("the answer", record, last=True)

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        if not self._on(record, session):
            return
        if not self._own(record):
            what = "the answer" if isinstance(self._body, End) else "the session is ended"
            self._closed(what, body.error, record)
        elif not self._ended and not isinstance(self._body, End):
            self.add("the same peer ends the session", record)
            self._ended = True

    # Links

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        if not self._on(record, session, link):
            return
        if not self._own(record):
            if link is self._link and isinstance(self._body, Attach):
                self.add("the answer", record)
        elif self._link is None and not self._ended and self._conversation.link_of(self._record) is link:
            self._link = link
            self.add("the same peer attaches a link with this handle only now", record)

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        if record is self._record:
            self._link = link
        elif self._answers(record) and link is self._link:
            what = "the answer" if isinstance(self._body, Detach) else "the link is detached"
            self.add(what + (" with an error" if body.error is not None else ""), record, last=True)

    def flow(self, record: FrameRecord, body: Flow, session: Session, link: Link | None) -> None:
        mine = self._body
        if self._on(record, session, link) and not self._own(record) and isinstance(mine, Flow):
            if (mine.echo or mine.drain) and (mine.handle is None or link is self._link is not None):
                self.add("the flow that answers this flow", record, last=True)

    # Deliveries

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        mine = self._body
        if record is self._record:
            self._delivery = delivery
        if self._on(record, delivery.session, delivery.link) and not self._own(record):
            if isinstance(mine, Flow) and mine.link_credit and delivery.link is self._link is not None:
                self.add("the first transfer on the link after this flow", record, last=True)

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self.delivery_started(record, body, delivery)
        if record is not self._record and delivery is self._delivery and not self.over and not self._ended:
            if delivery.complete or delivery.aborted:
                self.add("ends the delivery", record)

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        if not self._on(record, session) or self._delivery not in deliveries:
            return
        if not self._own(record):
            what = (
                "settles the delivery" if body.settled else "the receiver reports the state of the delivery"
            )
            self.add(what, record, bool(body.settled))
        elif not self._ended:
            self.add("the same peer reports the state of the delivery", record, bool(body.settled))

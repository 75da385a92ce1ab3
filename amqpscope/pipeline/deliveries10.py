"""Deliveries of AMQP 1.0: what transfers and dispositions say of them.

A transfer of a delivery whose beginning was not captured makes none.
"""

from collections import OrderedDict

from amqpscope.model.records import FrameRecord
from amqpscope.pipeline import deliveries
from amqpscope.pipeline.deliveries import DeliveryLog, DeliveryRow, give_out
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from amqpscope.tracking.amqp10_draft2011.spoken import carried_by
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.messaging import Accepted
from dissectors.amqp10.performatives import Disposition, End, Error, Transfer

__all__ = ["Amqp10Log"]


class Amqp10Log(DeliveryLog):
    """The deliveries of a connection that speaks AMQP 1.0, by the events of a conversation."""

    def __init__(self, conversation: Conversation10) -> None:
        self._events: _Events = _Events()
        conversation.subscribe(self._events)

    def take(self, record: FrameRecord, link: Link | None) -> list[DeliveryRow]:
        over = self._events.over
        if over:
            self._events.over = []
        return over

    def finish(self) -> list[DeliveryRow]:
        return give_out(list(self._events.rows.values()))


class _Events(Listener10):
    """Makes the rows. rows: those that are not over, in order of age. over: those that are."""

    def __init__(self) -> None:
        self.over: list[DeliveryRow] = []
        self.rows: OrderedDict[OpenDelivery, DeliveryRow] = OrderedDict()
        self._of_session: dict[Session, dict[OpenDelivery, None]] = {}

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        if delivery.id is None:
            return
        row = DeliveryRow(record, delivery.link)
        row.id = delivery.id
        row.tag = body.delivery_tag
        self.rows[delivery] = row
        self._of_session.setdefault(delivery.session, {})[delivery] = None
        self._transfer(record, body, delivery, row)
        if len(self.rows) > deliveries.MAX_UNSETTLED:
            self._give_out(next(iter(self.rows)))

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        row = self.rows.get(delivery)
        if row is not None:
            self._transfer(record, body, delivery, row)

    def _transfer(
        self, record: FrameRecord, body: Transfer, delivery: OpenDelivery, row: DeliveryRow
    ) -> None:
        row.transfers += 1
        row.payload += carried_by(record.frame)
        if body.state is not None:
            _state(row, body.state)
        row.settled = delivery.settled
        row.aborted = delivery.aborted
        row.complete = delivery.complete
        if row.settled and (row.complete or row.aborted):
            row.settle(record)
            self._give_out(delivery)
        elif row.aborted:
            self._give_out(delivery)

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        for delivery in deliveries:
            row = self.rows.get(delivery)
            if row is None:
                continue
            if body.state is not None:
                _state(row, body.state)
            if body.settled is True:
                row.settle(record)
                self._give_out(delivery)

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        for delivery in self._of_session.pop(session, {}):
            self.over.append(self.rows.pop(delivery))

    def _give_out(self, delivery: OpenDelivery) -> None:
        """A delivery is over."""
        self.over.append(self.rows.pop(delivery))
        of_session = self._of_session[delivery.session]
        del of_session[delivery]
        if not of_session:
            del self._of_session[delivery.session]


def _state(delivery: DeliveryRow, state: object) -> None:
    """What a transfer or disposition says has become of a delivery."""
    if isinstance(state, Accepted):
        delivery.outcome = "accepted"
        return
    outcome = getattr(state, "outcome", None) or state
    if isinstance(outcome, Composite):
        name = outcome.definition().name
        if name != "received":
            delivery.outcome = name
            error = getattr(outcome, "error", None)
            if isinstance(error, Error):
                delivery.condition = error.condition or ""

"""Deliveries of AMQP 1.0: what transfers and dispositions say of them.

A transfer of a delivery whose beginning was not captured makes none.
"""

from amqpscope.model.records import FrameRecord
from amqpscope.pipeline.deliveries import DeliveryLog, DeliveryRow, OpenDeliveries
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from amqpscope.tracking.amqp10.outcomes import error_in, outcome_in
from amqpscope.tracking.amqp10_draft2011.spoken import carried_by
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.messaging import Accepted
from dissectors.amqp10.performatives import Disposition, End, Transfer

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
        return self._events.open.all_rows()


class _Events(Listener10):
    """Makes the rows. open: those that are not over. over: those that are."""

    def __init__(self) -> None:
        self.over: list[DeliveryRow] = []
        self.open: OpenDeliveries = OpenDeliveries()

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        if delivery.id is None:
            return
        row = DeliveryRow(record, delivery.link)
        row.id = delivery.id
        row.tag = body.delivery_tag
        self.open.add(delivery.session, delivery, row)
        self._transfer(record, body, delivery, row)
        self.over += self.open.surplus()

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        row = self.open.find(delivery.session, delivery)
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
            self._give_out(delivery, row)
        elif row.aborted:
            self._give_out(delivery, row)

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        for delivery in deliveries:
            row = self.open.find(delivery.session, delivery)
            if row is None:
                continue
            if body.state is not None:
                _state(row, body.state)
            if body.settled is True:
                row.settle(record)
                self._give_out(delivery, row)

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        self.over += self.open.drop(session)

    def _give_out(self, delivery: OpenDelivery, row: DeliveryRow) -> None:
        """A delivery is over."""
        self.over.append(row)
        self.open.remove(delivery.session, delivery)


def _state(delivery: DeliveryRow, state: object) -> None:
    """What a transfer or disposition says has become of a delivery."""
    if isinstance(state, Accepted):
        delivery.outcome = "accepted"
        return
    outcome = outcome_in(state) or state
    if isinstance(outcome, Composite):
        name = outcome.definition().name
        if name != "received":
            delivery.outcome = name
            error = error_in(outcome)
            if error is not None:
                delivery.condition = error.condition or ""

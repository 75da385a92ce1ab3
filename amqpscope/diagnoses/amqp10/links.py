"""Watches the links of a connection: credit, windows, and what is settled."""

from typing import Final

from amqpscope.diagnoses.amqp10.credit import WindowBook, credit_ended
from amqpscope.diagnoses.amqp10.link_state import UNSAID, LinkState, Miscount, ahead
from amqpscope.diagnoses.amqp10.settlement import SETTLEMENT_SLOW, pile_ended, settlement_ended
from amqpscope.diagnoses.amqp10.watch import Watch10
from amqpscope.diagnoses.notebook import SECOND, Notebook
from amqpscope.limits import MAX_NAMED_DELIVERIES, MAX_UNATTESTED
from amqpscope.model.records import FrameRecord, side_of
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from dissectors.amqp10.messaging import Accepted, Modified, Received, Rejected, Released
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Transfer,
)
from dissectors.amqp10.transactions import TransactionalState
from dissectors.wire import i64

__all__ = ["LinkWatch"]

_OUTCOMES: Final = (Accepted, Rejected, Released, Modified)


class LinkWatch(Watch10):
    """Watches the links of one connection. A link is watched if its attaches were captured."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__(notebook)
        self.links: dict[Link, LinkState] = {}
        # The one of them that a delivery was on last.
        self.last: LinkState | None = None
        # The same by session.
        self.of_session: dict[Session, dict[Link, LinkState]] = {}
        self.windows: WindowBook = WindowBook(notebook, self.links)
        # The number of the next link, from 1.
        self.marked: i64 = 1
        # How many deliveries are held that are not settled.
        self.held: i64 = 0
        # From when on settling is slow, in ns.
        self.slow: i64 = int(notebook.limit(SETTLEMENT_SLOW) * SECOND)

    @property
    def token_credit(self) -> bool:
        """Whether the server may send an answer about a token."""
        ones = self.links.values()
        return any(one.link.tokens and one.sender == 1 and one.credit.left() > 0 for one in ones)

    # Sessions and links

    def session_begun(self, record: FrameRecord, body: Begin, session: Session) -> None:
        self.windows.begun(side_of(record), record.frame.channel, body, session)

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        self.windows.ended(session, record.packet, record.time)
        for state in list(self.of_session.pop(session, {}).values()):
            self._leave(state, record.packet, record.time)

    def closed(self, record: FrameRecord, body: Close) -> None:
        self._conclude(record.packet, record.time)

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        side = side_of(record)
        state = self.links.get(link)
        if state is None:
            if self.windows.find(session, side) is None:
                return  # octets are missing since its begin: it may be another session
            state = self.links[link] = LinkState(link, session, self.slow, 2 * self.marked)
            self.marked += 1
            self.of_session.setdefault(session, {})[link] = state
        state.attach(side, record.packet, record.time)
        if side == state.sender:
            credit = state.credit
            credit.initial = body.initial_delivery_count or 0
            credit.count = credit.initial
            state.refused = state.refused or body.source is None
            if credit.up_to != UNSAID:
                credit.up_to += credit.initial
        else:
            state.refused = state.refused or body.target is None
        self._look(state, record)

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        state = self.links.get(link)
        if state is not None:
            self._leave(state, record.packet, record.time)

    def _leave(self, state: LinkState, ended: i64, until: i64) -> None:
        if state.over:
            return
        self._stop(state, ended, until)
        state.over = True
        self.held -= state.held.unsettled
        self.last = None
        self.links.pop(state.link, None)
        others = self.of_session.get(state.session)
        if others is not None:
            others.pop(state.link, None)

    def _stop(self, state: LinkState, ended: i64, until: i64) -> None:
        """A link is over, or what is known of it."""
        piled = settlement_ended(self.notebook, state, ended, until)
        if state.credit.wait_packet:
            if not piled:
                credit_ended(self.notebook, state, ended, until)
            state.credit.wait_packet = 0

    # Credit

    def flow(self, record: FrameRecord, body: Flow, session: Session, link: Link | None) -> None:
        side = side_of(record)
        self.windows.flow(record, side, body, session)
        state = None if link is None else self.links.get(link)
        if state is None:
            return
        if side == state.sender:
            self._sender_flow(state, record, body)
        elif body.link_credit is not None:
            self._grant(state, record, body, body.link_credit)
        self._look(state, record)

    def _sender_flow(self, state: LinkState, record: FrameRecord, body: Flow) -> None:
        credit = state.credit
        if body.available is not None:
            if credit.available == 0 and body.available > 0 and credit.wait_packet == 0:
                credit.wait_packet, credit.wait_time = record.packet, record.time
            credit.available = body.available
        if body.delivery_count is not None:
            self._counted(state, record, state.sender, body.delivery_count)
            credit.drained = credit.drained or credit.drain
            credit.count = body.delivery_count

    def _grant(self, state: LinkState, record: FrameRecord, body: Flow, granted: i64) -> None:
        credit, held = state.credit, state.held
        start: i64 = credit.initial if body.delivery_count is None else body.delivery_count
        before = credit.up_to
        if body.delivery_count is not None:
            self._counted(state, record, state.receiver, start)
        credit.up_to = start + granted
        raised = before == UNSAID or ahead(credit.up_to, before) > 0
        if raised and credit.largest and not credit.renewed_packet and granted and held.unsettled > 0:
            if not held.settled or held.unsettled >= credit.largest:
                credit.renewed_packet = record.packet
        credit.granted = granted
        credit.largest = max(credit.largest, granted)
        credit.drain = body.drain is True
        credit.drained = credit.drained or credit.drain
        credit.flow_packet = record.packet

    def _counted(self, state: LinkState, record: FrameRecord, side: i64, count: i64) -> None:
        """A peer says a delivery-count: it may have counted transfers."""
        risen = ahead(count, state.credit.initial)
        if (
            state.miscount is not None
            or state.credit.drained
            or state.aborted
            or not state.completed()
            or risen != state.transfers
            or state.transfers < state.deliveries + 2  # one may be chance: a drain that was not captured
        ):
            return
        figures = {
            "transfers": int(state.transfers),
            "deliveries": int(state.deliveries),
            "delivery_count": int(count),
            "expected": int(state.credit.initial + state.deliveries),
        }
        state.miscount = Miscount(side, record.packet, record.time, figures)

    def _look(self, state: LinkState, record: FrameRecord) -> None:
        """See whether the sender waits for credit now."""
        credit = state.credit
        starved = state.starved()
        if starved and credit.wait_packet == 0:
            if credit.largest:
                credit.wait_packet, credit.wait_time = record.packet, record.time
            else:
                credit.wait_packet, credit.wait_time = state.attach_since()
        elif not starved and credit.wait_packet:
            credit_ended(self.notebook, state, record.packet, record.time)
            credit.wait_packet = 0

    # Deliveries

    def _find(self, link: Link | None) -> LinkState | None:
        """What is known of a link."""
        if link is None:
            return None
        last = self.last
        if last is not None and last.link is link:
            return last
        state = self.links.get(link)
        if state is not None:
            self.last = state
        return state

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self.windows.transfer(record, side_of(record), delivery.session)
        state = self._find(delivery.link)
        if state is None:
            return
        state.transfers += 1
        state.deliveries += 1
        credit = state.credit
        credit.count += 1
        if not state.first_packet:
            state.first_packet = record.packet
        if delivery.aborted:
            state.aborted += 1
        if isinstance(body.state, TransactionalState):
            state.transactional = True
        if not body.settled:
            self._hold(state, delivery)
        if credit.available > 0:
            credit.available -= 1
        if credit.up_to != UNSAID and ahead(credit.count, credit.up_to) >= 0:
            self._look(state, record)

    def _hold(self, state: LinkState, delivery: OpenDelivery) -> None:
        if self.held >= MAX_NAMED_DELIVERIES or not state.joined():
            state.held.untracked = True
            return
        state.held.hold(delivery)
        self.held += 1

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self.windows.transfer(record, side_of(record), delivery.session)
        state = self._find(delivery.link)
        if state is None:
            return
        state.transfers += 1
        if delivery.aborted or body.settled:
            if delivery.aborted:
                state.aborted += 1
            if state.held.holds(delivery):
                self.held -= 1
                state.held.free(delivery)

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        outcome = body.state
        settles = body.settled is True
        transactional = isinstance(outcome, TransactionalState)
        answers = body.role is True and (
            (settles and not isinstance(outcome, Received)) or isinstance(outcome, _OUTCOMES)
        )
        state: LinkState | None = None
        for delivery in deliveries:
            link = delivery.link
            if link is None:
                continue
            if state is None or state.link is not link:
                state = self._find(link)
                if state is None:
                    continue
            held = state.held
            if not held.holds(delivery):
                continue
            if transactional:
                state.transactional = True
            if answers and held.awaits(delivery):
                held.settled += 1
                took = record.time - delivery.time
                if took > MAX_UNATTESTED:
                    took = self.notebook.passed(delivery.time, record.time)
                held.settling.add(took, delivery.packet, record.packet)
                if not settles:
                    held.answer(delivery, record.packet, record.time)
            if settles:
                self.held -= 1
                held.free(delivery)

    # The end

    def _conclude(self, ended: i64, until: i64) -> None:
        self.windows.conclude(ended, until)
        for state in list(self.links.values()):
            self._leave(state, ended, until)

    def lasting(self, until: i64) -> None:
        self.windows.lasting(until)
        for state in self.links.values():
            piled = pile_ended(self.notebook, state, 0, until)
            if state.credit.wait_packet and not piled:
                credit_ended(self.notebook, state, 0, until)

    def lost(self, until: i64) -> None:
        self._conclude(0, until)

    def finish(self, accused: set[str]) -> None:
        self._conclude(self.notebook.end_packet, self.notebook.end_time)

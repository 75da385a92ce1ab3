"""The charts of AMQP 1.0: credit and unsettled deliveries of each link, and the windows of each session."""

from amqpscope.draw.flow import FlowCharts, ahead
from amqpscope.draw.follower import Walk
from amqpscope.draw.words import wire_name
from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from dissectors.amqp10.performatives import Attach, Begin, Disposition, Flow, Transfer

__all__ = ["FlowCharts10"]


class FlowCharts10(FlowCharts):
    """Follows one connection."""

    def follow(self, walk: Walk) -> None:
        walk.names.conversation(walk.connection).subscribe(_Events(self))


class _Credit:
    """The credit of a link. count: the sender's delivery-count. limit: the count at which the credit ends."""

    def __init__(self) -> None:
        self.count = 0
        self.limit = -1


class _Window:
    """What a peer may send on a session. next: its next transfer-id. limit: the id at which it must stop."""

    def __init__(self) -> None:
        self.next = 0
        self.limit = -1


class _Events(Listener10):
    """Turns events into steps of charts."""

    def __init__(self, charts: FlowCharts10) -> None:
        self._charts = charts
        self._credits: dict[Link, _Credit] = {}
        self._windows: dict[tuple[Session, str], _Window] = {}
        self._sessions: dict[Session, int] = {}

    def session_begun(self, record: FrameRecord, body: Begin, session: Session) -> None:
        self._sessions.setdefault(session, len(self._sessions))
        self._window(session, record.peer).next = int(body.next_outgoing_id or 0)
        if body.incoming_window is not None:
            other = self._window(session, _other(record.peer))
            other.limit = other.next + int(body.incoming_window)
            self._draw_window(record, session, _other(record.peer))

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        if record.peer == link.sender:
            self._credit(link).count = int(body.initial_delivery_count or 0)

    def flow(self, record: FrameRecord, body: Flow, session: Session, link: Link | None) -> None:
        peer, other = record.peer, _other(record.peer)
        window = self._window(session, other)
        if body.incoming_window is not None:
            base = window.next if body.next_incoming_id is None else int(body.next_incoming_id)
            window.limit = base + int(body.incoming_window)
            self._draw_window(record, session, other)
        if link is None:
            return
        credit = self._credit(link)
        if peer == link.sender:
            if body.delivery_count is not None:
                credit.count = int(body.delivery_count)
        elif body.link_credit is not None:
            base = credit.count if body.delivery_count is None else int(body.delivery_count)
            credit.limit = base + int(body.link_credit)
        self._draw_credit(record, link)

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self.delivery_continued(record, body, delivery)
        link = delivery.link
        if link is None:
            return
        self._credit(link).count += 1
        self._draw_credit(record, link)
        if not delivery.settled:
            self._unsettled(record, link, 1)

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self._window(delivery.session, record.peer).next += 1
        self._draw_window(record, delivery.session, record.peer)

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        if not body.settled:
            return
        for delivery in deliveries:
            self._charts.settle(int(delivery.time), int(record.time))
            if delivery.link is not None:
                self._unsettled(record, delivery.link, -1)

    def _credit(self, link: Link) -> _Credit:
        return self._credits.setdefault(link, _Credit())

    def _window(self, session: Session, peer: str) -> _Window:
        return self._windows.setdefault((session, peer), _Window())

    def _draw_credit(self, record: FrameRecord, link: Link) -> None:
        credit = self._credit(link)
        if credit.limit >= 0:
            title = f"credit of link {wire_name(link.name)}, which the {link.sender} may send on"
            chart = self._charts.chart(("credit", link), title, wire_name(link.name))
            chart.step(int(record.time), ahead(credit.limit, credit.count))

    def _draw_window(self, record: FrameRecord, session: Session, peer: str) -> None:
        window = self._window(session, peer)
        if window.limit >= 0:
            number = self._sessions.setdefault(session, len(self._sessions))
            title = f"how many more transfer frames the {peer} may send in session {number}"
            chart = self._charts.chart(("window", session, peer), title, f"session {number}")
            chart.step(int(record.time), ahead(window.limit, window.next))

    def _unsettled(self, record: FrameRecord, link: Link, change: int) -> None:
        title = f"unsettled deliveries of link {wire_name(link.name)}"
        chart = self._charts.chart(("unsettled", link), title, wire_name(link.name))
        chart.add(int(record.time), change)


def _other(peer: str) -> str:
    return "server" if peer == "client" else "client"

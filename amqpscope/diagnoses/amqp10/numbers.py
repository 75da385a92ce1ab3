"""Numbers of a connection of AMQP 1.0: of its links, its sessions, and its requests."""

from typing import Any, Final

from amqpscope.diagnoses.amqp10.credit import Window
from amqpscope.diagnoses.amqp10.link_state import UNSAID, LinkState, ahead
from amqpscope.diagnoses.amqp10.links import LinkWatch
from amqpscope.diagnoses.amqp10.requests import RequestWatch
from amqpscope.diagnoses.amqp10.services import ServiceWatch
from amqpscope.diagnoses.amqp10.watch import Watch10
from amqpscope.diagnoses.latency import Latency
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.diagnoses.numbers import Answered, Deliveries, Traffic, Wait, Waited
from amqpscope.limits import MAX_SUMMARY_LINKS
from amqpscope.model.passwords import without_password
from amqpscope.model.records import PEERS, FrameRecord
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from amqpscope.tracking.amqp10.outcomes import outcome_in
from amqpscope.tracking.amqp10_draft2011.spoken import carried_by
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Accepted, Header, Received
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
from dissectors.wire import i64

__all__ = ["LinkNumbers", "Numbers10", "SessionNumbers"]

_HEADER: Final = (b"\x00\x53\x70", b"\x00\x80\x00\x00\x00\x00\x00\x00\x00\x70")
"""How the header of a message begins, in the two encodings of its descriptor."""

_FRONT: Final = 64
"""Octets of a message in which its header ends."""

_SETTLED: Final = "settled-by-sender"
"""The outcome of deliveries that are sent settled."""


class LinkNumbers:
    """One link. state: what the watch of links knows of it, None where octets were missing before."""

    def __init__(self) -> None:
        self.state: LinkState | None = None
        self.deliveries = Deliveries()
        self.without_credit = Wait()
        # Deliveries that the receiver has allowed since the attach.
        self.granted = 0
        # Octets of the delivery under way.
        self.partial = 0

    def look(self, packet: int, now: int) -> None:
        """See whether the sender waits for credit, behind each frame about the link."""
        state = self.state
        if state is None:
            return
        credit = state.credit
        if credit.up_to != UNSAID:
            self.granted = max(self.granted, int(ahead(credit.up_to, credit.initial)))
        self.without_credit.look(credit.wait_packet > 0, credit.wait_time, credit.wait_packet, now)

    def json(self, skewed: bool) -> dict[str, Any]:
        """As an object of the JSON outputs."""
        state = self.state
        return {
            "credit": None
            if state is None
            else {
                "granted": self.granted,
                "used": state.deliveries,
                "largest": state.credit.largest,
                "waited": self.without_credit.json(),
                "peak_unsettled": state.held.peak,
            },
            "deliveries": self.deliveries.json(skewed),
        }


class SessionNumbers:
    """One session: the windows of its two peers, by the side that sends."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.windows: list[Window | None] = [None, None]
        self.waits = [Wait(), Wait()]

    def look(self, side: int, now: int) -> None:
        """See whether a side may send transfers, behind each frame about the session."""
        window = self.windows[side]
        if window is not None:
            self.waits[side].look(window.wait_packet > 0, window.wait_time, window.wait_packet, now)

    def json(self) -> dict[str, Any]:
        """As an object of the JSON outputs."""
        halves = (self.session.client, self.session.server)
        return {
            "channels": {
                peer: None if half is None else int(half.channel)
                for peer, half in zip(PEERS, halves, strict=True)
            },
            "window_closed": {peer: wait.json() for peer, wait in zip(PEERS, self.waits, strict=True)},
        }


# mypyc: null objects, of connections without a session. Nothing writes to them.
_NO_LINKS: Final[dict[Link, LinkNumbers]] = {}
_NO_SESSIONS: Final[dict[Session, SessionNumbers]] = {}
_NONE: Final[dict[Session, list[LinkNumbers]]] = {}


class Numbers10(Watch10):
    """Counts and measures on one connection. It listens behind the watches, which know more than it does."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__(notebook)
        self.links: dict[Link, LinkNumbers] = _NO_LINKS
        self.sessions: dict[Session, SessionNumbers] = _NO_SESSIONS
        # The links of each session.
        self.of_session: dict[Session, list[LinkNumbers]] = _NONE
        # Who knows more, from the first frame on that they listen to.
        self.link_watch: LinkWatch | None = None
        self.request_watch: RequestWatch | None = None
        self.service_watch: ServiceWatch | None = None

    def listen_behind(self, watches: list[Watch10]) -> None:
        """These watches take each event first, from the first one on."""
        self.links = {}
        self.sessions = {}
        self.of_session = {}
        for watch in watches:
            if isinstance(watch, LinkWatch):
                self.link_watch = watch
            elif isinstance(watch, RequestWatch):
                self.request_watch = watch
            elif isinstance(watch, ServiceWatch):
                self.service_watch = watch

    # Sessions and links

    def session_begun(self, record: FrameRecord, body: Begin, session: Session) -> None:
        numbers = self.sessions.get(session)
        if numbers is None:
            if len(self.sessions) >= MAX_SUMMARY_LINKS:
                return
            numbers = self.sessions[session] = SessionNumbers(session)
        if self.link_watch is not None:
            for side in (0, 1):
                numbers.windows[side] = self.link_watch.windows.find(session, side)

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        for numbers in self.of_session.pop(session, []):
            self._stop_link(numbers, record.packet, record.time)
        self._windows(record, session)

    def closed(self, record: FrameRecord, body: Close) -> None:
        self._stop(record.packet, record.time)

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        numbers = self._numbers(link)
        if numbers is not None:
            if numbers.state is None:
                self.of_session.setdefault(session, []).append(numbers)
            if self.link_watch is not None:
                numbers.state = self.link_watch.links.get(link) or numbers.state
            numbers.look(record.packet, record.time)

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        numbers = self.links.get(link)
        if numbers is not None:
            numbers.look(record.packet, record.time)
            numbers.deliveries.leave(record.time)

    def _numbers(self, link: Link | None) -> LinkNumbers | None:
        if link is None:
            return None
        numbers = self.links.get(link)
        if numbers is None and len(self.links) < MAX_SUMMARY_LINKS:
            numbers = self.links[link] = LinkNumbers()
        return numbers

    def flow(self, record: FrameRecord, body: Flow, session: Session, link: Link | None) -> None:
        self._windows(record, session)
        numbers = None if link is None else self.links.get(link)
        if numbers is not None:
            numbers.look(record.packet, record.time)

    def _windows(self, record: FrameRecord, session: Session) -> None:
        numbers = self.sessions.get(session)
        if numbers is not None:
            numbers.look(0, record.time)
            numbers.look(1, record.time)

    # Deliveries

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self._windows(record, delivery.session)
        numbers = self._numbers(delivery.link)
        if numbers is not None:
            numbers.partial = 0
            if not delivery.settled and delivery.id is not None:
                numbers.deliveries.sent(delivery, record.packet, record.time)
            self._transfer(record, delivery, numbers)

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self._windows(record, delivery.session)
        numbers = None if delivery.link is None else self.links.get(delivery.link)
        if numbers is not None:
            self._transfer(record, delivery, numbers)

    def _transfer(self, record: FrameRecord, delivery: OpenDelivery, numbers: LinkNumbers) -> None:
        deliveries = numbers.deliveries
        numbers.partial += int(carried_by(record.frame))
        if delivery.aborted:
            deliveries.unsettled.pop(delivery, None)
        elif delivery.complete:
            deliveries.volume.add(numbers.partial, record.packet, record.time)
            deliveries.redelivered += _redelivered(Message.of(record.message))
            if delivery.settled:
                deliveries.unsettled.pop(delivery, None)
                deliveries.ended(_SETTLED)
        numbers.look(record.packet, record.time)

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        outcome = _outcome(body.state)
        if not outcome and body.settled is not True:
            return
        for delivery in deliveries:
            numbers = None if delivery.link is None else self.links.get(delivery.link)
            if numbers is not None:
                numbers.deliveries.settled(delivery, outcome or "none", record.packet, record.time)

    # The end

    def _stop(self, packet: int, until: int) -> None:
        """Of what is over or unknown from here on, end the waits, and the hope for a settlement."""
        for numbers in self.links.values():
            self._stop_link(numbers, packet, until)
        for session in self.sessions.values():
            session.look(0, until)
            session.look(1, until)

    def _stop_link(self, numbers: LinkNumbers, packet: int, until: int) -> None:
        numbers.look(packet, until)
        if numbers.state is not None and numbers.state.over:
            numbers.deliveries.leave(until)

    def lost(self, until: i64) -> None:
        self._stop(0, until)

    def finish(self, accused: set[str]) -> None:
        until = self.notebook.end_time
        self._stop(0, until)
        for numbers in self.links.values():
            numbers.deliveries.leave(until)

    def link(self, link: Link) -> dict[str, Any]:
        """The fields of a link in the JSON outputs."""
        return self.links.get(link, LinkNumbers()).json(self.notebook.skewed)

    def flows(self) -> list[Traffic]:
        """What went over the links."""
        return [
            Traffic("link", without_password(link.name), one.granted, one.deliveries)
            for link, one in self.links.items()
        ]

    def waits(self) -> list[Waited]:
        """For what senders waited."""
        found = [
            Waited(f"{link.sender}: no credit on", without_password(link.name), one.without_credit)
            for link, one in self.links.items()
        ]
        for session in self.sessions.values():
            for peer, wait in zip(PEERS, session.waits, strict=True):
                half = session.session.half_of(peer)
                channel = "" if half is None else f" on channel {half.channel}"
                found.append(Waited(f"{peer}: window closed{channel}", "", wait))
        return found

    def answers(self) -> list[Answered]:
        """How long settlements took, and the answers to requests; nothing where the clocks differ."""
        if self.notebook.skewed:
            return []
        found = [
            Answered("settlement", without_password(link.name), one.deliveries.latency)
            for link, one in self.links.items()
        ]
        return [*found, *(Answered(name, "", one) for name, one in sorted(self._requests().items()))]

    def _requests(self) -> dict[str, Latency]:
        found: dict[str, Latency] = {}
        if self.request_watch is not None:
            found |= self.request_watch.latencies
        if self.service_watch is not None:
            found |= self.service_watch.latencies
        return {name: latency for name, latency in found.items() if latency.count}

    def json(self) -> dict[str, Any]:
        """As fields of the JSON outputs, but for those of links."""
        requests = {name: latency.json() for name, latency in sorted(self._requests().items())}
        return {
            "windows": [one.json() for one in self.sessions.values()],
            "requests": {} if self.notebook.skewed else requests,
        }


def _outcome(state: object) -> str:
    """The outcome that a disposition gives, "" for none."""
    if isinstance(state, Accepted):
        return "accepted"
    outcome = outcome_in(state) or state
    if isinstance(outcome, Received) or not isinstance(outcome, Composite):
        return ""
    name: str = outcome.definition().name
    return "" if name == "transactional-state" else name


def _redelivered(message: Message | None) -> bool:
    """Whether the header of a message says that it was delivered before."""
    if message is None:
        return False
    if message.is_sound():
        return message.delivery_count() > 0
    if not message.octets.startswith(_HEADER):
        return False
    for section in Message(0, [message.octets[:_FRONT]], _FRONT, True).sections():
        value = section.value
        return isinstance(value, Header) and (value.delivery_count or 0) > 0
    return False

"""Credit and windows: who may not send, because the other peer grants nothing.

Theory of operation. The sender of a link may start deliveries up to the delivery-count and link-credit of the
receiver's last flow. The sender of a session may send transfers up to the next-incoming-id and
incoming-window of the other side's last flow, or of its begin. Both are absolute numbers, so it does not
matter what was under way when the flow was sent.
"""

from typing import Any, Final

from amqpscope.diagnoses.amqp10.link_state import UNSAID, LinkState, ahead
from amqpscope.diagnoses.declaration import MAY_END, Kind, Limit, declare
from amqpscope.diagnoses.notebook import SECOND, Notebook, duration
from amqpscope.model.records import PEERS, FrameRecord
from amqpscope.tracking.amqp10.identity import Link, Session
from dissectors.amqp10.performatives import Begin, Flow
from dissectors.wire import i64
from dissectors.wording import are, count

__all__ = ["CREDIT_NONE", "CREDIT_STARVED", "WINDOW_CLOSED", "Window", "WindowBook", "credit_ended"]

_WAITING = Limit(
    "waiting-seconds",
    5,
    "the sender reports waiting messages (available above 0), but the receiver grants no credit",
)

CREDIT_NONE: Final = declare(
    "credit-none",
    ("1.0",),
    """A sender waits for credit, but the receiver has granted no credit since the attach.

    What it means: The link is attached, but its receiver has sent no flow with link-credit. AMQP 1.0 forbids
    the sender to send before such a flow.
    Usual causes: A client library lets the application grant the credit (credit_window 0, or manual credit),
    and the application never asks for messages. Or a broker withholds credit from a publisher because of an
    alarm.
    Who has to act: The receiver.
    Client: If the client is the receiver, grant credit after the attach, or configure the library to grant
    credit (prefetch). If the client is the sender, check whether the broker has an alarm or a full queue.
    Server: If a publisher gets no credit, log the reason, or send the reason in a detach.
    Not reported when: the last flow of the sender has available=0, the link is being detached, or the attach
    has a null terminus. The diagnosis is also not made if the capture lacks octets.
    Discussions: Azure/azure-sdk-for-java#11820, Azure/azure-sdk-for-java#31757, apache/activemq-artemis#4627
    """,
    Limit("seconds", 10, "clients grant credit at once, or when the application first asks for a message"),
    _WAITING,
    explains=(MAY_END,),
)

CREDIT_STARVED: Final = declare(
    "credit-starved",
    ("1.0",),
    """The credit of a link is used up, and the receiver grants no new credit.

    What it means: The sender has sent as many deliveries as the credit allowed, and waits.
    Usual causes: The receiver grants credit only once, or counts credit in another way than the sender. Or
    the receiver waits for deliveries to be settled, but neither peer settles them.
    Who has to act: The receiver.
    Client: If the client is the receiver, renew the credit while messages are processed. If the library
    renews credit on settlement, settle the received deliveries.
    Server: If the server is the receiver, check for a full queue, a memory alarm or a policy that slows
    publishers down.
    Not reported when: the last flow of the sender has available=0, or the receiver has drained the link. If
    many deliveries of the link are unsettled, another diagnosis (unsettled-pile) reports this cause.
    Discussions: noodlefrenzy/node-amqp10#337, vcabbage/amqp#85
    """,
    Limit(
        "seconds",
        10,
        ("renewing credit takes one round trip, and processing a slow batch takes some seconds"),
    ),
    _WAITING,
    explains=(MAY_END,),
)

WINDOW_CLOSED: Final = declare(
    "window-closed",
    ("1.0",),
    """The incoming-window of a session is used up and stays closed, although a link of the session has
    credit or an unfinished delivery.

    What it means: The window limits the transfers of all links of a session together. The window counts
    frames, not messages. While the window is 0, no link of the session may send, even if the link has credit.
    Usual causes: A library opens the window only when deliveries are settled, forgets to send a flow, or
    counts transfers wrongly after many transfers.
    Who has to act: The receiver.
    Client: Send a flow with a new incoming-window whenever a part of the window is used up. Update the
    library.
    Server: When clients publish messages, send a flow with a new incoming-window whenever a part of the
    window is used up.
    Not reported when: no link has credit or an unfinished delivery, all senders have sent available=0, or
    missing octets may contain a flow.
    Discussions: rabbitmq/rabbitmq-server#13574, noodlefrenzy/node-amqp10#337
    """,
    Limit("seconds", 10, "a window that is closed for less than a second is normal flow control"),
    Limit(
        "waiting-seconds",
        5,
        "the sender reports waiting messages (available above 0) or has sent only a part of a delivery, "
        "but the window stays closed",
    ),
    explains=(MAY_END,),
)


def _patience(notebook: Notebook, kind: Kind, available: i64) -> float:
    return notebook.limit(kind, "waiting-seconds" if available > 0 else "seconds")


def _waiting(available: i64) -> str:
    return (
        f"; {count(available, 'message')} {'waits' if available == 1 else 'wait'} at the sender"
        if available > 0
        else ""
    )


def credit_ended(notebook: Notebook, state: LinkState, ended: i64, until: i64) -> None:
    """The wait of a link's sender for credit is over, or so is what is known of it."""
    credit = state.credit
    none = credit.up_to == UNSAID or credit.largest == 0
    packet, time = state.attach_since()
    if state.deliveries == 0 and credit.wait_packet == packet and credit.wait_time == time:
        # The first credit comes now.
        none = True
    kind = CREDIT_NONE if none else CREDIT_STARVED
    if state.link.tokens or not notebook.idle(
        state.receiver, credit.wait_time, until, _patience(notebook, kind, credit.available)
    ):
        return
    sender, receiver = PEERS[state.sender], PEERS[state.receiver]
    seconds = (until - credit.wait_time) / SECOND
    open_ones = state.held.unsettled
    figures: dict[str, Any] = {
        "credit": 0,
        "granted": 0 if none else int(credit.granted),
        "deliveries": state.deliveries,
    }
    if credit.available >= 0:
        figures["available"] = credit.available
    what = f'link "{state.subject}"'
    if kind is CREDIT_NONE:
        message = (
            f"the {sender} has waited {duration(seconds)} for credit on {what}: the {receiver} "
            f"{'granted' if ended else 'has granted'} no credit since the attach"
        )
    else:
        figures["unsettled"] = open_ones
        message = (
            f"{what}: the credit of {credit.granted} is used up, and the {receiver} "
            f"{'granted' if ended else 'has granted'} no more credit for {duration(seconds)}; "
            f"{count(open_ones, 'delivery')} {are(open_ones)} unsettled"
        )
    message += _waiting(credit.available)
    notebook.add(
        kind,
        state.subject,
        receiver,
        credit.wait_packet,
        message,
        figures,
        seconds=seconds,
        ended=ended,
        packets=(int(credit.flow_packet),),
    )


class Window:
    """What one side may send in a session. A number is UNSAID while it is not known."""

    def __init__(self, session: Session | None, sender: i64) -> None:
        self.session: Session | None = session
        self.sender: i64 = sender
        # The id of its first transfer, and of its next one.
        self.first: i64 = UNSAID
        self.next: i64 = 0
        # The receiver's window, and the first id beyond it.
        self.size: i64 = UNSAID
        self.up_to: i64 = UNSAID
        self.transfers: i64 = 0
        self.channel: i64 = -1
        # Since when nothing may be sent; 0 if something may.
        self.wait_packet: i64 = 0
        self.wait_time: i64 = 0

    def said(self, size: int | None, incoming: int | None) -> None:
        """The receiver says its window."""
        if size is None:
            return
        self.size = size
        start: i64 = self.first if incoming is None else incoming
        self.up_to = UNSAID if start == UNSAID else start + self.size

    def closed(self) -> bool:
        """Whether nothing may be sent."""
        return self.first != UNSAID and self.up_to != UNSAID and ahead(self.next, self.up_to) >= 0


# mypyc: null object, of those that have used no window yet. Nothing writes to it.
_NONE: Final = Window(None, 0)


class WindowBook:
    """The windows of the sessions of one connection."""

    def __init__(self, notebook: Notebook, links: dict[Link, LinkState]) -> None:
        self.notebook: Notebook = notebook
        self.links: dict[Link, LinkState] = links
        # How long a window is closed at least, in ns, before anybody complains.
        shortest = min(notebook.limit(WINDOW_CLOSED), notebook.limit(WINDOW_CLOSED, "waiting-seconds"))
        self.least: i64 = int(shortest * SECOND)
        # Of what the client may send, and of what the server may.
        self.client: dict[Session, Window] = {}
        self.server: dict[Session, Window] = {}
        # The one that was used last.
        self.last: Window = _NONE

    def find(self, session: Session, sender: i64) -> Window | None:
        """What a side may send in a session, None if its begin was not captured."""
        last = self.last
        if last.session is session and last.sender == sender:
            return last
        window = (self.client if sender == 0 else self.server).get(session)
        if window is not None:
            self.last = window
        return window

    def _begin(self, session: Session, sender: i64) -> Window:
        windows = self.client if sender == 0 else self.server
        window = windows.get(session)
        if window is None:
            window = windows[session] = Window(session, sender)
        return window

    def begun(self, side: i64, channel: i64, body: Begin, session: Session) -> None:
        """A side begins its half of a session."""
        own = self._begin(session, side)
        own.first = UNSAID if body.next_outgoing_id is None else body.next_outgoing_id
        own.next = max(own.first, 0)
        if own.size != UNSAID and own.first != UNSAID:
            own.up_to = own.first + own.size
        other = self._begin(session, 1 - side)
        other.said(body.incoming_window, None)
        for window in (own, other):
            window.channel = channel if side == 0 or window.channel < 0 else window.channel

    def flow(self, record: FrameRecord, side: i64, body: Flow, session: Session) -> None:
        """A side says its window."""
        window = self.find(session, 1 - side)
        if window is not None:
            window.said(body.incoming_window, body.next_incoming_id)
            self.look(window, record.packet, record.time)

    def transfer(self, record: FrameRecord, side: i64, session: Session) -> None:
        """A side sends a transfer."""
        window = self.find(session, side)
        if window is None:
            return
        window.next += 1
        window.transfers += 1
        if window.up_to != UNSAID and ahead(window.next, window.up_to) >= 0:
            self.look(window, record.packet, record.time)

    def look(self, window: Window, packet: i64, time: i64) -> None:
        """See whether the window is closed now."""
        closed = window.closed()
        if closed and window.wait_packet == 0:
            window.wait_packet = packet
            window.wait_time = time
        elif not closed and window.wait_packet:
            self.opened(window, packet, time)

    def opened(self, window: Window, ended: i64, until: i64) -> None:
        """A window is opened, or nothing more is known of it."""
        since, packet = window.wait_time, window.wait_packet
        window.wait_packet = 0
        if not packet:
            return
        if until - since < self.least:
            return  # as nearly always: no link has to be looked at
        unfinished = _unfinished(window)
        candidates = [
            state
            for state in self.links.values()
            if state.session is window.session and state.sender == window.sender and state.live()
        ]
        begun = [state for state in candidates if state.link in unfinished]
        waiting = begun or [
            state for state in candidates if state.credit.left() > 0 and state.credit.available != 0
        ]
        if not waiting:
            return
        link = max(waiting, key=_available)
        receiver = 1 - window.sender
        expected: i64 = 1 if begun else link.credit.available
        if not self.notebook.idle(receiver, since, until, _patience(self.notebook, WINDOW_CLOSED, expected)):
            return
        seconds = (until - since) / SECOND
        unsettled = sum(
            int(state.held.unsettled) for state in self.links.values() if state.session is window.session
        )
        figures: dict[str, Any] = {
            "incoming_window": None if window.size == UNSAID else window.size,
            "transfers": window.transfers,
            "window_left": 0,
            "credit": link.credit.left(),
            "link": link.subject,
            "unsettled": unsettled,
        }
        if link.credit.available >= 0:
            figures["available"] = link.credit.available
        if begun:
            first = unfinished[link.link]
            figures["unfinished_delivery"] = first
            stuck = f'the delivery that began in packet {first} on link "{link.subject}" is unfinished'
        else:
            stuck = f'link "{link.subject}" has a credit of {link.credit.left()}'
        pinned = f"; {count(unsettled, 'delivery')} {are(unsettled)} unsettled" if unsettled else ""
        message = (
            f"channel {window.channel}: for {duration(seconds)}, the incoming-window of the "
            f"{PEERS[receiver]} is 0, so the {PEERS[window.sender]} may send no transfer; "
            f"{stuck}{pinned}{_waiting(link.credit.available)}"
        )
        self.notebook.add(
            WINDOW_CLOSED,
            f"channel {window.channel}",
            PEERS[receiver],
            packet,
            message,
            figures,
            seconds=seconds,
            ended=ended,
        )

    def ended(self, session: Session, ended: i64, until: i64) -> None:
        """A session is over."""
        self.last = _NONE
        for windows in (self.client, self.server):
            window = windows.pop(session, None)
            if window is not None:
                self.opened(window, ended, until)

    def lasting(self, until: i64) -> None:
        """Diagnose the windows that are closed at this time."""
        for windows in (self.client, self.server):
            for window in windows.values():
                packet = window.wait_packet
                self.opened(window, 0, until)
                window.wait_packet = packet

    def conclude(self, ended: i64, until: i64) -> None:
        """Nothing more is known."""
        self.last = _NONE
        for windows in (self.client, self.server):
            for window in windows.values():
                self.opened(window, ended, until)
            windows.clear()


def _unfinished(window: Window) -> dict[Link, int]:
    """The links on which the sender of a window has sent a part of a delivery, and the delivery's packet."""
    half = None if window.session is None else window.session.half(window.sender)
    if half is None:
        return {}
    return {
        end.link: int(end.open.packet)
        for end in half.handles.values()
        if end.link is not None and end.open is not None and not end.detached
    }


def _available(state: LinkState) -> int:
    return int(state.credit.available)

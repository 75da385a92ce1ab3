"""What a peer refuses: legal frames, links, filters, and links that another connection takes over."""

from typing import Any, Final

from amqpscope.diagnoses.amqp10.watch import Watch10
from amqpscope.diagnoses.declaration import ENDS, REFUSES, Limit, declare
from amqpscope.diagnoses.notebook import SECOND, Notebook, diagnosis, side_of_peer
from amqpscope.diagnoses.several import Several, Theft
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.passwords import without_password
from amqpscope.model.records import CLIENT, PEERS, SERVER, FrameRecord, side_of
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from dissectors.amqp10.messaging import Source
from dissectors.amqp10.performatives import Attach, Close, Detach, End, Error, Transfer
from dissectors.amqp10.values import Described
from dissectors.wire import i64

__all__ = ["FILTER_IGNORED", "LEGAL_REFUSED", "LINK_REFUSED", "LINK_STOLEN", "RefusalWatch", "stolen"]

LEGAL_REFUSED: Final = declare(
    "legal-refused",
    ("1.0",),
    """A peer ends a link, session or connection because of frames that break no rule.

    What it means: According to the error, the frames cannot be decoded or are not allowed, but the
    specification allows these frames. The peer is stricter than the specification, or misreads the frames.
    Usual causes: The peer treats optional fields as mandatory, for example the delivery-id of continuation
    transfers.
    Who has to act: The peer that refuses the frames.
    Client: Send the optional field until the other peer is corrected.
    Server: Accept all frames that the specification allows.
    Not reported when: amqpscope reports a certain or possible finding against the refused peer. The diagnosis
    is also not made if the error comes from the application of the refusing peer.
    Discussions: rabbitmq/rabbitmq-amqp1.0-client#11, Azure/amqpnetlite#231, noodlefrenzy/node-amqp10#178
    """,
    explains=(ENDS,),
)

LINK_REFUSED: Final = declare(
    "link-refused",
    ("1.0",),
    """A peer refuses a link.

    What it means: The peer answers the attach by a null terminus and a detach with an error, or by the end of
    the session.
    Usual causes: The address does not exist or has another form (RabbitMQ 4 requires /queues/NAME), or the
    user lacks a permission.
    Who has to act: The peer that asks for the link.
    Client: Check the address and the permissions. Declare the queue first.
    Server: Name the correct address in the error.
    Not reported when: the link was attached for longer than the limit, or deliveries were sent on the link.
    Discussions: rabbitmq/rabbitmq-tutorials#793, vcabbage/amqp#158
    """,
    Limit("within-seconds", 1, "a refusal follows the attach at once, and a later end has another cause"),
    explains=(REFUSES,),
)

LINK_STOLEN: Final = declare(
    "link-stolen",
    ("1.0",),
    """Another connection takes over a link by attaching a link of the same name.

    What it means: The server allows one link of each name per container, and detaches the older link.
    Usual causes: Two processes use the same container-id and link name, or an old connection was not closed.
    Who has to act: The client.
    Client: Give each process its own container-id, or let the library choose one.
    Server: The server needs no change.
    Not reported when: the first link had already been detached in the normal way.
    Discussions: vcabbage/amqp#43, Azure/azure-sdk-for-java#12483, Azure/azure-event-hubs-go#181
    """,
    explains=(ENDS,),
)

FILTER_IGNORED: Final = declare(
    "filter-ignored",
    ("1.0",),
    """A server does not apply a filter that the client asks for.

    What it means: The attach of the server contains the filters that the server applies, and a requested
    filter is not among them. Messages that do not match this filter also arrive.
    Usual causes: The server does not know this kind of filter, or supports it only for another kind of queue.
    Who has to act: The server. The client has to check which filters the attach of the server contains.
    Client: Compare the filter in the server's attach with the requested filter. Filter the received messages
    in the application, too.
    Server: Support the filter, or refuse links that ask for the filter.
    Not reported when: no filter was requested, the link is refused, or the server's attach has the same
    filter under another name.
    Discussions: rabbitmq/rabbitmq-server#2592, apache/artemis#827
    """,
)

_LATER: Final = (
    "amqp:link:detach-forced",
    "amqp:link:redirect",
    "amqp:resource-deleted",
    "amqp:link:message-size-exceeded",
    "amqp:frame-size-too-small",
)
"""Conditions that end a link that was there. Only after a null terminus do they refuse one."""

_COMPLAINTS: Final = (
    "amqp:decode-error",
    "amqp:connection:framing-error",
    "amqp:invalid-field",
    "amqp:not-allowed",
    "amqp:illegal-state",
    "amqp:session:errant-link",
    "amqp:session:unattached-handle",
    "amqp:session:handle-in-use",
    "amqp:session:window-violation",
    "amqp:link:transfer-limit-exceeded",
)
"""Conditions that say that the other peer has broken a rule."""


class _Attached:
    """A link that was asked for. null: the answer has a null terminus. asked: the filters, see `_filters`."""

    def __init__(self, link: Link, session: Session, record: FrameRecord) -> None:
        self.link = link
        self.session = session
        self.side = side_of(record)
        self.packet = record.packet
        self.time = record.time
        # How many deliveries were started on it before.
        self.before: i64 = link.deliveries
        self.null = False
        self.asked: dict[object, str] = {}

    def used(self) -> bool:
        """Whether a delivery was started on it."""
        return self.link.deliveries > self.before


class _Last:
    """The last of a side's frames. end: the offset behind it."""

    def __init__(self) -> None:
        self.packet: i64 = 0
        self.name: str = ""
        self.end: i64 = 0


class RefusalWatch(Watch10):
    """Watches what is refused on one connection."""

    def __init__(self, notebook: Notebook, several: Several, conversation: Conversation10) -> None:
        super().__init__(notebook)
        self.conversation: Conversation10 = conversation
        self.links: dict[Link, _Attached] = {}
        # The same by session.
        self.of_session: dict[Session, dict[Link, _Attached]] = {}
        # Of each direction, the last of its frames that may be refused.
        self.first: _Last = _Last()
        self.second: _Last = _Last()
        # What may have been legal: the side that refuses, the packet, the condition, the refused frame.
        self.complaints: list[tuple[int, int, str, str, int, str]] = []
        # For other connections: the links that are attached here.
        self.several = several
        self.token_refused = False

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        self._said(record)
        side = side_of(record)
        known = self.links.get(link)
        if side == 0:
            container = self.conversation.client_container
            self.several.attached(container, link.name, self.notebook.connection.id, record.packet)
        if known is None:
            known = self.links[link] = _Attached(link, session, record)
            self.of_session.setdefault(session, {})[link] = known
            known.asked = _filters(body)
        elif side != known.side:
            own = body.source if side == side_of_peer(link.sender) else body.target
            known.null = own is None
            if own is not None and side == 1:
                self._compare(record, known, _filters(body), body)

    def _compare(self, record: FrameRecord, known: _Attached, given: dict[object, str], body: Attach) -> None:
        if known.link.sender != SERVER or not isinstance(body.source, Source):
            return
        missing = [name for key, name in known.asked.items() if key not in given]
        if not missing:
            return
        in_force = ", ".join(given.values())
        asked = ", ".join(known.asked.values())
        name = without_password(known.link.name)
        left_out = f"the filter{'' if len(missing) == 1 else 's'} {', '.join(missing)}"
        self.notebook.add(
            FILTER_IGNORED,
            name,
            SERVER,
            record.packet,
            f'the server does not apply {left_out} of link "{name}", so messages that do not match the '
            f"filter may arrive; {'only ' + in_force if in_force else 'no filter'} is in force",
            {"asked": asked, "in_force": in_force or None},
            packets=(known.packet,),
        )

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        side = side_of(record)
        known = self._forget(link)
        if known is not None and body.error is not None:
            condition = str(body.error.condition)
            if condition == "amqp:link:stolen" and link.detached != 3:
                self._stolen(record, link, condition)
            elif side != known.side and self._refused(record, known, body.error):
                self._said(record)
                return
        if body.error is not None:
            self._complain(record, body.error)
        self._said(record)

    def _stolen(self, record: FrameRecord, link: Link, condition: str) -> None:
        theft = Theft(
            self.notebook.connection.id,
            self.conversation.client_container,
            link.name,
            link.address,
            condition,
            int(record.packet),
        )
        if not self.several.postpone(theft):
            thief = self.several.thief(theft.container, theft.link, theft.connection, theft.packet)
            self.notebook.take(stolen(theft, thief))

    def _refused(self, record: FrameRecord, known: _Attached, error: Error) -> bool:
        within = self.notebook.limit(LINK_REFUSED, "within-seconds") * SECOND
        later = not known.null and str(error.condition) in _LATER
        if later or known.used() or record.time - known.time > int(within):
            return False
        if self.token_refused and "unauthorized" in str(error.condition):
            return True
        who, asker = PEERS[1 - known.side], PEERS[known.side]
        name, address = without_password(known.link.name), known.link.address
        text = f' "{error.description}"' if error.description else ""
        to = f' to address "{without_password(address)}"' if address else ""
        self.notebook.add(
            LINK_REFUSED,
            name,
            asker,
            known.packet,
            f'the {who} refuses link "{name}"{to} with {error.condition}{text}',
            {
                "condition": str(error.condition),
                "address": None if address is None else without_password(address),
                "role": "sender" if known.link.sender == asker else "receiver",
            },
            packets=(record.packet,),
        )
        return True

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        side = side_of(record)
        links = self.of_session.pop(session, {})
        if body.error is not None:
            newest = [one for one in links.values() if one.side != side and not one.used()]
            if (
                not newest
                or self._last(1 - record.direction).name not in ("attach", "flow")
                or not self._refused(record, newest[-1], body.error)
            ):
                self._complain(record, body.error)
        for link in links:
            self.links.pop(link, None)
        self._said(record)

    def _forget(self, link: Link) -> _Attached | None:
        known = self.links.pop(link, None)
        if known is not None:
            others = self.of_session.get(known.session)
            if others is not None:
                others.pop(link, None)
        return known

    def closed(self, record: FrameRecord, body: Close) -> None:
        if body.error is not None:
            self._complain(record, body.error)
        self._said(record)

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self._said(record)

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self._said(record)

    def _said(self, record: FrameRecord) -> None:
        frame = record.frame
        last = self._last(record.direction)
        last.packet = record.packet
        last.name = frame.name
        last.end = frame.offset + frame.size

    def _last(self, direction: i64) -> _Last:
        return self.first if direction == 0 else self.second

    def _complain(self, record: FrameRecord, error: Error) -> None:
        """A peer says that the other one has broken a rule."""
        side = side_of(record)
        last = self._last(1 - record.direction)
        name = last.name
        condition = str(error.condition)
        if (
            condition not in _COMPLAINTS
            or not last.packet
            or record.acknowledged < last.end
            or self.notebook.lossy
        ):
            return
        if condition == "amqp:not-allowed" and name == "attach":
            return
        self.complaints.append(
            (side, record.packet, condition, name, int(last.packet), error.description or "")
        )

    # The end

    def lost(self, until: i64) -> None:
        self.links = {}
        self.of_session = {}

    def finish(self, accused: set[str]) -> None:
        for side, packet, condition, name, refused, text in self.complaints[:1]:
            # Behind a fault of either peer, rules may be silent about what was refused.
            if self.notebook.lossy or accused:
                continue
            reason = f'; the error says "{text}"' if text else ""
            self.notebook.add(
                LEGAL_REFUSED,
                name,
                PEERS[side],
                packet,
                f"the {PEERS[side]} answers the {name} in packet {refused} with the error "
                f"{condition}, although the "
                f"{name} breaks no rule{reason}",
                {"condition": condition, "refused": name},
                packets=(refused,),
            )


def stolen(theft: Theft, thief: tuple[str, int] | None) -> Diagnosis:
    """The diagnosis of a link that another connection has taken over. thief: its id, and the packet there."""
    name = without_password(theft.link)
    by = "another connection, which was not captured"
    if thief is not None:
        by = f"connection {thief[0]}, which attached the link in packet {thief[1]}"
    return diagnosis(
        LINK_STOLEN,
        theft.connection,
        name,
        CLIENT,
        theft.packet,
        f'link "{name}" of container "{theft.container}" was taken over by {by} ({theft.condition})',
        {
            "condition": theft.condition,
            "thief_container": None if thief is None else theft.container,
            "thief_link": None if thief is None else name,
            "thief_connection": None if thief is None else thief[0],
            "address": None if theft.address is None else without_password(theft.address),
        },
        packets=() if thief is None else (thief[1],),
    )


def _filters(attach: Attach) -> dict[object, str]:
    """The names of the filters of an attach, by descriptor, or by name where there is none."""
    source: Any = attach.source
    if not isinstance(source, Source) or source.filter is None:
        return {}
    found: dict[object, str] = {}
    for key, value in source.filter:
        if value is None:
            continue
        descriptor = value.descriptor if isinstance(value, Described) else None
        found[str(key) if descriptor is None else str(descriptor)] = str(key)
    return found

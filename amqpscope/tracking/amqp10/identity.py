"""Sessions, links and deliveries of AMQP 1.0: what the frames of a connection belong to.

A `Conversation` creates these objects and keeps them up to date. All others get them from events: each object
stays the same for its whole life, and for both peers.

A *side* is 0 for the client and 1 for the server.
"""

from typing import Final

from amqpscope.limits import MAX_NAMED_DELIVERIES
from amqpscope.model.records import CLIENT, PEERS, SERVER
from amqpscope.tracking.events import Rememberable
from dissectors.amqp10.messaging import Source, Target
from dissectors.amqp10.performatives import Attach
from dissectors.amqp10.transactions import Coordinator
from dissectors.wire import i64

__all__ = [
    "Link",
    "LinkHalf",
    "OpenDelivery",
    "Session",
    "SessionHalf",
    "SpareDeliveries",
    "carries_tokens",
    "sender_of",
]

_IDS: Final = 1 << 32
_MASK: Final = _IDS - 1
"""How many delivery-ids there are: they are serial numbers of 32 bits (RFC 1982)."""

_FEW: Final = 64
"""Places of settled deliveries that may stand in a list."""

_SPARE: Final = 1024
"""Objects of deliveries that are over, of one connection: as many as are settled at a time."""

_MOSTLY_SETTLED: Final = 4096
"""Places from which on a list is given up if three quarters of them are settled."""


def sender_of(side: i64, attach: Attach) -> str:
    """The peer that sends on a link that this one attaches."""
    return PEERS[1 - side if attach.role is True else side]


def carries_tokens(address: str) -> bool:
    """Whether an address is that of the node that takes security tokens (claims-based security)."""
    return address.rstrip("/").lower().endswith("$cbs")


def carries_requests(address: str) -> bool:
    """Whether an address is that of a node that manages the server."""
    return address.rstrip("/").endswith(("$management", "/management"))


class Session:
    """A session: one half for each peer that has begun it.

    begun_by: the peer whose begin the other one answers, "" if no begin was captured.
    """

    def __init__(self, begun_by: str) -> None:
        self.begun_by: str = begun_by
        self.client: SessionHalf | None = None
        self.server: SessionHalf | None = None
        # By sender and name: the links that only one peer has attached so far, the oldest first.
        self.unanswered: dict[tuple[str, str], list[Link]] = {}

    def half(self, side: i64) -> "SessionHalf | None":
        """The half of one peer, None while it is not known."""
        return self.client if side == 0 else self.server

    def half_of(self, peer: str) -> "SessionHalf | None":
        """The half of `client` or `server`, None while it is not known."""
        return self.client if peer == CLIENT else self.server

    def ended_by(self, peer: str) -> bool:
        """Whether a peer has ended its half."""
        half = self.half_of(peer)
        return half is not None and half.ended


class SessionHalf:
    """What one peer has of a session: what its channel, its handles and its delivery-ids stand for.

    assumed: its begin was not captured, or never sent; expected: it was answered. former: the half that had
    the channel before an assumed one. handles: by handle, with those that are detached, until the handle is
    used again. names: the newest of each name, by name and sender.
    """

    def __init__(self, session: Session, side: i64, channel: i64) -> None:
        self.session: Session = session
        self.side: i64 = side
        self.channel: i64 = channel
        self.assumed: bool = False
        self.expected: bool = False
        self.ended: bool = False
        self.former: SessionHalf | None = None
        self.handles: dict[int, LinkHalf] = {}
        # The one of them that a transfer named last, None for none.
        self.last_handle: i64 = -1
        self.last_on: LinkHalf | None = None
        self.names: dict[tuple[str, str], LinkHalf] = {}
        # Settled deliveries of this peer, by delivery-id: the newer ones and the older ones.
        self.newer: dict[int, OpenDelivery] = {}
        self.older: dict[int, OpenDelivery] = {}
        # Those of them that the other peer has not settled. Kept for subscribers only.
        self.unsettled: UnsettledDeliveries = _NONE_UNSETTLED
        # In the draft: deliveries by the ids of their further transfers.
        self.continued: dict[int, OpenDelivery] = _NO_IDS

    def on(self, handle: i64) -> "LinkHalf | None":
        """What the handle of a transfer stands for, None if it stands for nothing."""
        if self.last_on is not None and self.last_handle == handle:
            return self.last_on
        self.last_handle = handle
        self.last_on = self.handles.get(int(handle))
        return self.last_on

    def put_on(self, handle: int, on: "LinkHalf") -> None:
        """A handle stands for this from now on."""
        self.last_on = None
        self.handles[handle] = on

    def other(self) -> "SessionHalf | None":
        """The half of the other peer, None while it is not known."""
        return self.session.half(1 - self.side)

    def forget_links(self, every: bool) -> None:
        """Forget the links that are over, or (every) all of them."""
        self.last_on = None
        self.handles = {} if every else {key: on for key, on in self.handles.items() if not on.detached}
        self.names = {} if every else {key: on for key, on in self.names.items() if not on.detached}
        waiting = self.session.unanswered
        for name in list(waiting):
            waiting[name] = [link for link in waiting[name] if not every and not link.detached]
            if not waiting[name]:
                del waiting[name]

    def wait(self, number: i64, delivery: "OpenDelivery") -> None:
        """A delivery is not settled by the other peer."""
        if self.unsettled is _NONE_UNSETTLED:
            self.unsettled = UnsettledDeliveries()
        self.unsettled.put(number, delivery)

    def delivery(self, number: int) -> "OpenDelivery | None":
        """The delivery of this peer with a delivery-id, None if it is not known (any more)."""
        found = self.unsettled.get(number)
        if found is None:
            found = self.newer.get(number)
        if found is None:
            found = self.older.get(number)
        return self.continued.get(number) if found is None else found

    def named(self, first: int, last: int | None) -> "list[OpenDelivery]":
        """The unsettled deliveries that a disposition names, in the order of their ids."""
        unsettled = self.unsettled
        size = ((first if last is None else last) - first) % _IDS + 1
        if size > _IDS // 2:
            return []  # the last is before the first
        if self.continued:
            ids = sorted(self._ids_among(first, size), key=lambda number: (number - first + _IDS // 2) % _IDS)
            ones = [unsettled.get(number) for number in ids]
            return [one for one in ones if one is not None]
        if size == 1:
            one = unsettled.get(first)
            return [] if one is None else [one]
        return unsettled.among(first, size)

    def _ids_among(self, first: int, size: int) -> list[int]:
        """In the draft: the first ids of unsettled deliveries of which an id is among these.

        Of very many ids only those of the first and of the newest transfer of each delivery are looked at.
        """
        unsettled = self.unsettled
        if size > len(self.continued):
            found = []
            for number in unsettled.ids():
                one = unsettled.get(number)
                last = -1 if one is None else one.last
                if (number - first) % _IDS < size or (last >= 0 and (last - first) % _IDS < size):
                    found.append(number)
            return found
        ids: dict[int, None] = {}
        for step in range(size):
            number = (first + step) % _IDS
            known = self.delivery(number) or unsettled.get(number)
            if known is not None and known.id is not None and unsettled.get(known.id) is not None:
                ids[known.id] = None
        return list(ids)

    def continue_by(self, number: int, delivery: "OpenDelivery") -> None:
        """In the draft: a further transfer of a delivery has an id of its own."""
        if self.continued is _NO_IDS or len(self.continued) >= MAX_NAMED_DELIVERIES:
            self.continued = {}
        self.continued[number] = delivery
        delivery.last = number


class Link:
    """A link, whichever of its ends speaks.

    name: as attached. sender: the peer that sends on it. source, target: the last addresses that an attach
    gave. tokens: security tokens are sent on it. requests: it goes to or from a node of the server that
    answers requests, that for tokens among them. deliveries: how many were started on it.
    """

    def __init__(self, name: str, sender: str) -> None:
        self.name: str = name
        self.sender: str = sender
        # Bits of the sides that have attached it, and of those that have detached it since.
        self.attached: i64 = 0
        self.detached: i64 = 0
        self.source: str | None = None
        self.target: str | None = None
        self.coordinator: bool = False
        self.tokens: bool = False
        self.requests: bool = False
        self.deliveries: i64 = 0
        self._of_source: bool = False

    def detached_by(self, peer: str) -> bool:
        """Whether a peer has detached it."""
        return self.detached & (1 if peer == CLIENT else 2) != 0

    @property
    def address(self) -> str | None:
        """The address that says most: that of the server's end, where its end has one."""
        if self.coordinator:
            return "coordinator"
        return self.source if self.target is None or self._of_source else self.target

    @property
    def anonymous(self) -> bool:
        """The server's end has no address: messages say themselves where they go (and it may be anywhere)."""
        if self.coordinator:
            return False
        return (self.target if self.sender == CLIENT else self.source) is None

    def learn(self, attach: Attach) -> None:
        """Take the addresses of one side's attach."""
        source = attach.source
        if isinstance(source, Source) and isinstance(source.address, str):
            self.source = source.address
            self._serve(source.address)
        target = attach.target
        if isinstance(target, Target) and isinstance(target.address, str):
            self.target = target.address
            self._serve(target.address)
        elif isinstance(target, Coordinator):
            self.coordinator = True
        # A client that receives consumes from the source; its own target is mostly a mere label.
        self._of_source = self.source is not None and (self.target is None or self.sender == SERVER)

    def _serve(self, address: str) -> None:
        """One of its ends has this address."""
        self.tokens = self.tokens or carries_tokens(address)
        self.requests = self.requests or self.tokens or carries_requests(address)


class LinkHalf:
    """What one peer has of a link. link: None if no attach was captured of this handle.

    detached: by this peer. former: of one without a link, what the handle stood for before. open: the
    delivery whose last transfer has not come. tag: in the draft, the delivery-tag of the newest transfer.
    """

    def __init__(self, link: Link | None) -> None:
        self.link: Link | None = link
        self.detached: bool = False
        self.former: LinkHalf | None = None
        self.open: OpenDelivery | None = None
        self.tag: bytes | None = None

    def going_on(self, tag: bytes | None) -> "OpenDelivery | None":
        """In the draft: the delivery under way, if a transfer with this delivery-tag goes on with it."""
        if tag is not None and self.tag != tag:
            self.open = None
        return self.open


class OpenDelivery(Rememberable):
    """A delivery. link: None if it is not known. id: its delivery-id, None if no transfer gave it.

    settled: by its sender. settled_by_receiver: by a disposition of the other peer. aborted, complete: how
    its last transfer was; neither is set before that one. last: in the draft, the id of its newest transfer,
    -1 if that is its first one. packet, time (ns): of its first transfer.
    """

    def __init__(
        self, session: Session, link: Link | None, delivery_id: int | None, packet: i64 = 0, time: i64 = 0
    ) -> None:
        super().__init__(packet, time)
        self.session: Session = session
        self.link: Link | None = link
        self.id: int | None = delivery_id
        self.settled: bool = False
        self.settled_by_receiver: bool = False
        self.aborted: bool = False
        self.complete: bool = False
        self.last: int = -1
        # What the watch of its link holds of it, see `amqpscope.diagnoses.amqp10.link_state`.
        self.held: i64 = 0
        # The next one among `SpareDeliveries`.
        self.spare: OpenDelivery | None = None


class SpareDeliveries:
    """Objects of deliveries that are over, which stand for other deliveries. Nobody else has them.

    A new object for each delivery would cost more than to follow the delivery.
    """

    def __init__(self) -> None:
        self.first: OpenDelivery | None = None
        self.count: i64 = 0

    def put(self, delivery: OpenDelivery) -> None:
        """A delivery is over."""
        if self.count < _SPARE:
            delivery.spare = self.first
            self.first = delivery
            self.count += 1

    def begin(
        self, session: Session, link: Link | None, delivery_id: int | None, packet: i64, time: i64
    ) -> OpenDelivery:
        """A delivery begins: an object that stands for it."""
        one = self.first
        if one is None:
            return OpenDelivery(session, link, delivery_id, packet, time)
        self.first = one.spare
        self.count -= 1
        one.spare = None
        one.packet = packet
        one.time = time
        one.remembered = None
        one.session = session
        one.link = link
        one.id = delivery_id
        one.settled = False
        one.settled_by_receiver = False
        one.aborted = False
        one.complete = False
        one.held = 0
        return one


# mypyc: null object, of all that have none. Nothing writes to it.
_NO_IDS: Final[dict[int, OpenDelivery]] = {}


class UnsettledDeliveries:
    """Deliveries of one half of a session that are not settled, by delivery-id.

    Ids go up by one with nearly every delivery. So the deliveries stand in a list, where their places follow
    from their ids. A settled one leaves None there. Those whose ids are far from the others are in a
    dictionary, and so are the few that stay unsettled while very many behind them are settled.
    """

    def __init__(self) -> None:
        # How many there are.
        self.count: i64 = 0
        # The list, the id of its first place, and the place before which all are settled.
        self.row: list[OpenDelivery | None] = []
        self.base: i64 = 0
        self.start: i64 = 0
        # The others.
        self.far: dict[int, OpenDelivery] = _NO_IDS

    def put(self, number: i64, delivery: OpenDelivery) -> None:
        """A delivery begins with this id."""
        row = self.row
        size: i64 = len(row)
        if size > _FEW:
            if self.start > _FEW and 2 * self.start > size:
                del row[: self.start]
                self.base = (self.base + self.start) & _MASK
                self.start = 0
                size = len(row)
            elif size > _MOSTLY_SETTLED and 4 * (self.count - len(self.far)) < size:
                self._spread()
                size = 0
        if self.count == 0 and size > 0:
            row.clear()
            self.start = 0
            size = 0
        if size == 0:
            self.base = number
        at = (number - self.base) & _MASK
        if at == size:
            row.append(delivery)
            self.count += 1
            if self.far:
                self._leave_far(number)
        elif self.start <= at < size:
            if row[at] is None:
                self.count += 1
            row[at] = delivery
        elif size < at < size + _FEW and not self.far:
            if self.start == size:
                self.start = at
            while size < at:
                row.append(None)
                size += 1
            row.append(delivery)
            self.count += 1
        else:
            if self.far is _NO_IDS:
                self.far = {}
            if int(number) not in self.far:
                self.count += 1
            self.far[int(number)] = delivery

    def _spread(self) -> None:
        """Few of the list are left, and the first of them holds the place of all behind it: move these."""
        if self.far is _NO_IDS:
            self.far = {}
        for at, one in enumerate(self.row):
            if one is not None:
                self.far[int((self.base + at) & _MASK)] = one
        self.row.clear()
        self.start = 0

    def _leave_far(self, number: i64) -> None:
        if int(number) in self.far:
            del self.far[int(number)]
            self.count -= 1

    def get(self, number: i64) -> OpenDelivery | None:
        """The delivery with an id, None if there is none."""
        at = (number - self.base) & _MASK
        size: i64 = len(self.row)
        if at < size:
            one = self.row[at]
            if one is not None:
                return one
        return self.far.get(int(number)) if self.far else None

    def remove(self, number: i64) -> None:
        """The delivery with this id is settled."""
        row = self.row
        at = (number - self.base) & _MASK
        size: i64 = len(row)
        if at < size and row[at] is not None:
            row[at] = None
            self.count -= 1
            if at == self.start:
                while self.start < size and row[self.start] is None:
                    self.start += 1
        elif self.far and int(number) in self.far:
            del self.far[int(number)]
            self.count -= 1

    def among(self, first: i64, size: i64) -> list[OpenDelivery]:
        """Those whose ids are among so many from this one on, in the order of their ids."""
        found: list[OpenDelivery] = []
        here = ((first - self.base + _IDS // 2) & _MASK) - _IDS // 2
        end: i64 = min(here + size, len(self.row))
        at: i64 = max(here, self.start)
        while at < end:
            one = self.row[at]
            if one is not None:
                found.append(one)
            at += 1
        if not self.far:
            return found
        far = self.far
        steps = {(int(one.id or 0) - int(first)) % _IDS: one for one in found}
        if size < len(far):
            for step in range(size):
                number = int((first + step) & _MASK)
                if number in far:
                    steps[int(step)] = far[number]
        else:
            for number, one in far.items():
                step = (number - int(first)) % _IDS
                if step < size:
                    steps[step] = one
        return [steps[step] for step in sorted(steps)]

    def entries(self) -> list[OpenDelivery]:
        """All, those of the list last: most of the others are older."""
        return [*self.far.values(), *[one for one in self.row if one is not None]]

    def ids(self) -> list[int]:
        """All ids, those of the list last: most of the others are older."""
        found = [int((self.base + at) & _MASK) for at, one in enumerate(self.row) if one is not None]
        return [*self.far, *found]

    def forget_older(self) -> None:
        """Forget those that their sender has settled, or the older half if these are few."""
        over = [int(one.id) for one in self.entries() if one.settled and one.id is not None]
        if 4 * len(over) < self.count:
            over = self.ids()[: (int(self.count) + 1) // 2]
        for number in over:
            self.remove(number)


# mypyc: null object, of halves without an unsettled delivery. Nothing writes to it.
_NONE_UNSETTLED: Final = UnsettledDeliveries()

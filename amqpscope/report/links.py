"""Which link a frame speaks of, by the names that the attaches gave: for showing and selecting frames.

A frame names its link by a handle, or not at all (a disposition names deliveries). This follows
attach, begin, transfer and detach just far enough to put a name and an address beside it; whether
they were allowed is not its question.

It also knows where a security token may travel: on a link from or to the node `$cbs`, and, while not
every attach of the connection is known, on a link it has no name for.
"""

from amqpscope.limits import MAX_NAMED_DELIVERIES
from amqpscope.model.records import Connection, FrameRecord
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.messaging import Source, Target
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Transfer,
)
from dissectors.amqp10.transactions import Coordinator
from dissectors.wire import i64

__all__ = ["LinkNames", "LinkOf", "carries_tokens"]


def carries_tokens(address: str) -> bool:
    """Whether an address is that of the node that takes security tokens (claims-based security)."""
    return address.rstrip("/").lower().endswith("$cbs")


class LinkOf:
    """A link as a frame's line names it.

    name: as attached. source, target: the last addresses that an attach gave. sender: the one that
    sends on it, `client` or `server`. tokens: security tokens are sent on it.
    """

    def __init__(self, name: str, sender: str) -> None:
        self.name: str = name
        self.sender: str = sender
        self.source: str | None = None
        self.target: str | None = None
        self.coordinator: bool = False
        self.tokens: bool = False
        # Bits of the directions that have it attached; when both detached, a new attach is a new link.
        self.attached: i64 = 0
        self.key: tuple[int, str, str] = (-1, sender, name)
        self._of_source: bool = False

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
        return (self.target if self.sender == "client" else self.source) is None

    def learn(self, attach: Attach) -> None:
        """Take the addresses of one side's attach."""
        source = attach.source
        if isinstance(source, Source) and isinstance(source.address, str):
            self.source = source.address
            self.tokens = self.tokens or carries_tokens(source.address)
        target = attach.target
        if isinstance(target, Target) and isinstance(target.address, str):
            self.target = target.address
            self.tokens = self.tokens or carries_tokens(target.address)
        elif isinstance(target, Coordinator):
            self.coordinator = True
        # A client that receives consumes from the source; its own target is mostly a mere label.
        self._of_source = self.source is not None and (self.target is None or self.sender == "server")


class _Recent:
    """A dictionary of links that forgets the oldest: between one and two times the bound are kept.

    Its keys are those of `_key`; they lie in one dictionary for each direction and channel.
    """

    def __init__(self) -> None:
        self.young: dict[int, dict[int, LinkOf]] = {}
        self.old: dict[int, dict[int, LinkOf]] = {}
        self.size: i64 = 0

    def put(self, key: i64, link: LinkOf) -> None:
        links = self.young.get(key >> 32)
        if links is None:
            links = {}
            self.young[key >> 32] = links
        before: i64 = len(links)
        links[key] = link
        self.size += len(links) - before
        if self.size > MAX_NAMED_DELIVERIES:
            self.old = self.young
            self.young = {}
            self.size = 0

    def get(self, key: i64) -> LinkOf | None:
        links = self.young.get(key >> 32)
        link = None if links is None else links.get(key)
        if link is None and self.old:
            links = self.old.get(key >> 32)
            link = None if links is None else links.get(key)
        return link

    def pop(self, key: i64) -> LinkOf | None:
        link: LinkOf | None = None
        links = self.young.get(key >> 32)
        if links is not None and key in links:
            link = links.pop(key)
            self.size -= 1
        links = self.old.get(key >> 32)
        if links is not None:
            older = links.pop(key, None)
            if link is None:
                link = older
        return link

    def drop(self, high: i64) -> None:
        """Forget all whose key without its low 32 bits is `high`."""
        links = self.young.pop(high, None)
        if links is not None:
            self.size -= len(links)
        self.old.pop(high, None)


class _Connection:
    """The links of one connection. A direction is 0 for what the client sends, 1 for the server."""

    def __init__(self) -> None:
        # By direction, channel (16 bits) and handle or delivery-id (32 bits); see `_key`.
        self.handles: _Recent = _Recent()
        self.deliveries: _Recent = _Recent()
        # By direction and channel: the other side's channel.
        self.channels: dict[int, int] = {}
        # (the client's channel of the session, sender, name) -> link.
        self.names: dict[tuple[int, str, str], LinkOf] = {}
        # Bits of the directions whose AMQP layer was seen to begin, and that have sent close. Whether
        # octets were lost, and whether a link carries tokens.
        self.begun: i64 = 0
        self.closed: i64 = 0
        self.gap: bool = False
        self.tokens: bool = False

    def end_session(self, direction: i64, channel: i64) -> None:
        """Forget the links of one end of a session."""
        self.handles.drop((direction << 16) | channel)
        session = channel if direction == 0 else self.channels.get((direction << 16) | channel, -1)
        for key in [key for key in self.names if key[0] == session]:
            del self.names[key]

    def forget(self) -> None:
        """The connection is closed: what still comes is shown without names."""
        self.handles = _Recent()
        self.deliveries = _Recent()
        self.channels = {}
        self.names = {}


def _key(direction: i64, channel: i64, number: i64) -> i64:
    return (direction << 48) | (channel << 32) | number


class LinkNames:
    """Takes the frame records of a capture in order; says of each which link it speaks of."""

    def __init__(self) -> None:
        self._connections: dict[Connection, _Connection] = {}
        # The connection of the last frame: nearly always the next one's too.
        self._last: Connection | None = None
        self._known: _Connection = _Connection()

    def of(self, record: FrameRecord) -> LinkOf | None:
        """The link of this frame, or None if it has none or it is not known."""
        connection = record.connection
        if connection is not self._last:
            known = self._connections.get(connection)
            if known is None:
                known = _Connection()
                self._connections[connection] = known
            self._last = connection
            self._known = known
        known = self._known
        frame = record.frame
        body = frame.body
        direction = _side(record)
        channel: i64 = frame.channel
        if isinstance(body, Transfer):
            return _transfer(known, direction, channel, body)
        if isinstance(body, Disposition):
            return _disposition(known, direction, channel, body)
        if isinstance(body, Flow):
            return None if body.handle is None else known.handles.get(_key(direction, channel, body.handle))
        if frame.kind == "skipped":
            known.gap = True
            return None
        if frame.kind != "amqp":
            if isinstance(body, ProtocolHeader):
                if body.protocol_id == 0 and body.major == 1:
                    known.begun |= 1 << direction
            elif channel > 0 and not frame.problems:
                # In 0-9-1 nothing is said on a channel before the login.
                known.begun |= 1 << direction
            return None
        return self._other(known, direction, channel, body)

    def forget(self, connection: Connection) -> None:
        """No more frames of this connection will come."""
        self._connections.pop(connection, None)
        if self._last is connection:
            self._last = None

    def _other(self, known: _Connection, direction: i64, channel: i64, body: object) -> LinkOf | None:
        """The performatives that a connection has few of."""
        if isinstance(body, Attach):
            link = _attach(known, direction, channel, body)
            if link is not None and link.tokens:
                known.tokens = True
            return link
        if isinstance(body, Detach):
            if body.handle is None:
                return None
            link = known.handles.pop(_key(direction, channel, body.handle))
            if link is not None:
                link.attached &= ~(1 << direction)
                if link.attached == 0:
                    known.names.pop(link.key, None)
            return link
        if isinstance(body, Begin):
            known.handles.drop((direction << 16) | channel)
            if body.remote_channel is not None:
                remote: i64 = body.remote_channel
                known.channels[(direction << 16) | channel] = body.remote_channel
                known.channels[((1 - direction) << 16) | remote] = channel
        elif isinstance(body, End):
            known.end_session(direction, channel)
        elif isinstance(body, Open):
            known.begun |= 1 << direction
        elif isinstance(body, Close):
            known.closed |= 1 << direction
            if known.closed == 3:
                known.forget()
        return None

    def may_hold_token(self, record: FrameRecord, link: LinkOf | None) -> bool:
        """Whether octets of this frame that are not told apart may be a security token or a credential.

        To be asked after `of`, of frames that are not what they should be.
        """
        known = self._connections.get(record.connection)
        if link is not None:
            return link.tokens or link.anonymous or (known is not None and known.tokens and known.gap)
        if known is None or known.tokens or known.gap:
            return True
        # Before its AMQP layer begins a peer speaks SASL.
        return not self.begun(record)

    def begun(self, record: FrameRecord) -> bool:
        """Whether the login of this frame's sender was seen to be over. To be asked after `of`."""
        known = self._connections.get(record.connection)
        return known is not None and known.begun & (1 << _side(record)) != 0


def _side(record: FrameRecord) -> i64:
    """0 for what the client sends, 1 for the server."""
    client: i64 = record.connection.client
    return 0 if record.direction == (client if client >= 0 else 0) else 1


def _attach(known: _Connection, direction: i64, channel: i64, attach: Attach) -> LinkOf | None:
    if attach.name is None:
        return None
    # The link is the same one from both sides if session and name are, and the roles complement.
    session = channel if direction == 0 else known.channels.get((direction << 16) | channel, -1)
    sends = direction == 0 if attach.role is not True else direction == 1
    sender = "client" if sends else "server"
    key = (int(session), sender, attach.name)
    link = known.names.get(key)
    if link is None:
        link = LinkOf(attach.name, sender)
        if len(known.names) >= MAX_NAMED_DELIVERIES:
            known.names.clear()
        known.names[key] = link
        link.key = key
    link.learn(attach)
    link.attached |= 1 << direction
    if attach.handle is not None:
        known.handles.put(_key(direction, channel, attach.handle), link)
    return link


def _transfer(known: _Connection, direction: i64, channel: i64, transfer: Transfer) -> LinkOf | None:
    if transfer.handle is None:
        return None
    link = known.handles.get(_key(direction, channel, transfer.handle))
    if link is not None and transfer.delivery_id is not None:
        known.deliveries.put(_key(direction, channel, transfer.delivery_id), link)
    return link


def _disposition(known: _Connection, direction: i64, channel: i64, body: Disposition) -> LinkOf | None:
    if body.first is None:
        return None
    if body.role:
        other = known.channels.get((direction << 16) | channel)
        return None if other is None else known.deliveries.get(_key(1 - direction, other, body.first))
    return known.deliveries.get(_key(direction, channel, body.first))

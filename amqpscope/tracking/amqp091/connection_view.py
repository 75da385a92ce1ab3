"""What an endpoint knows of a connection: the agreed limits, the channels, and the close.

The view takes every method in the order in which the endpoint sent or received it, with its sender; see
`Channel` for why one machine serves both endpoints. The view never judges.
"""

from itertools import islice
from typing import Any, Final

from amqpscope.limits import MAX_CHANNELS, MAX_COMPARED_CHANNELS, MAX_HEADERS
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.closing import CloseReason
from amqpscope.tracking.amqp091.consumers import Roster
from amqpscope.tracking.amqp091.names import readable
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp091.set_up import Blocking, ConnectionEnd, Login, Tuning, VirtualHostOpen
from amqpscope.tracking.amqp091.states import (
    CHANNEL,
    CLIENT_HEADER,
    CLOSED,
    CONNECTION,
    OPEN,
    OPENING,
    START,
    UNREQUESTED,
)
from dissectors.amqp091.arguments import Method, MethodType
from dissectors.amqp091.methods import (
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ConnectionBlocked,
    ConnectionClose,
    ConnectionCloseOk,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionSecure,
    ConnectionSecureOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    ConnectionUnblocked,
)
from dissectors.amqp091.tables import EITHER, FieldTable
from dissectors.amqp091.values import Table
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64

__all__ = ["CONNECTION_CLASS", "ConnectionView", "PeerProperties", "properties_of"]

CONNECTION_CHANNEL: Final = 0
CONNECTION_CLASS: Final = 10

# mypyc: sentinel, the channel of no frame.
_NO_CHANNEL: Final = -1


class PeerProperties:
    """What a peer says about itself: the names of its properties, short texts among the values, and its
    capabilities.

    odd_capabilities: why the table of capabilities is malformed, "" if it is not. complete: all properties
    could be read; if not, further properties may exist.
    """

    def __init__(self, table: FieldTable | None) -> None:
        self.names: list[str] = []
        self.texts: dict[str, str] = {}
        self.capabilities: set[str] = set()
        self.odd_capabilities: str = ""
        self.complete: bool = True
        if table is None:
            return
        pairs = table.read(EITHER).pairs
        self.complete = len(pairs) <= _MOST_PROPERTIES and not table.problems()
        for name, value in pairs[:_MOST_PROPERTIES]:
            if not isinstance(name, str):
                continue  # not in UTF-8
            self.names.append(name)
            if isinstance(value, bytes):
                self.texts.setdefault(name, value[:_LONGEST].decode("utf-8", "replace"))
            elif isinstance(value, str):
                self.texts.setdefault(name, value[:_LONGEST])
            if name == "capabilities":
                self._capabilities(value)

    def _capabilities(self, value: object) -> None:
        if not isinstance(value, Table):
            self.odd_capabilities = "the property capabilities is not a table"
            return
        if len(value.pairs) > _MOST_PROPERTIES:
            self.complete = False
        for name, allowed in value.pairs[:_MOST_PROPERTIES]:
            if allowed is True and isinstance(name, str):
                self.capabilities.add(name)
            elif allowed is not False and not self.odd_capabilities:
                self.odd_capabilities = "a capability is no boolean"

    def lacks(self, capability: str) -> bool:
        """Whether it is certain that the peer did not announce this capability."""
        return self.complete and not self.odd_capabilities and capability not in self.capabilities

    @property
    def product(self) -> str:
        """The name of the product, "" if the peer does not name it."""
        return self.texts.get("product", "")

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            tuple(self.names),
            tuple(self.texts.items()),
            tuple(sorted(self.capabilities)),
            self.odd_capabilities,
            self.complete,
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "PeerProperties":
        """The object of what `dump` returned."""
        names, texts, capabilities, odd, complete = state
        properties = PeerProperties(None)
        properties.names = list(names)
        properties.texts = dict(texts)
        properties.capabilities = set(capabilities)
        properties.odd_capabilities = odd
        properties.complete = complete
        return properties


def properties_of(table: FieldTable | None) -> PeerProperties:
    """What a peer says about itself: for the same octets the same object, which nothing changes."""
    if table is None or len(table.octets) > _LONGEST_KEPT:
        return PeerProperties(table)
    known = _KNOWN.get(table.octets)
    if known is None:
        known = PeerProperties(table)
        if len(_KNOWN) >= _MOST_KEPT:
            del _KNOWN[next(iter(_KNOWN))]
        _KNOWN[table.octets] = known
    return known


# By their octets, the properties that were read last: both endpoints read those of a peer, its rules, and
# whoever follows the connection besides. Most connections of a capture are of a few programs.
_KNOWN: Final[dict[bytes, PeerProperties]] = {}
_MOST_KEPT: Final = 16
_LONGEST_KEPT: Final = 4096

# Properties of a peer that are looked at, and characters of one.
_MOST_PROPERTIES: Final = 64
_LONGEST: Final = 200


class MethodsSaid:
    """Which methods a peer has sent."""

    def __init__(self) -> None:
        # class-id << 16 | method-id of each.
        self.numbers: set[int] = set()
        # The last one, which is among them.
        self.last: MethodType | None = None

    def add(self, definition: MethodType) -> None:
        """The peer sends this method."""
        self.last = definition
        self.numbers.add(int(definition.class_id << 16 | definition.method_id))


class ChannelTable:
    """The channels of a connection."""

    def __init__(self) -> None:
        # The consumers of all channels.
        self.roster: Roster = Roster()
        # Every channel that was opened or used, by its number; 0 has the requests of the connection.
        self.channels: dict[int, Channel] = {0: _connection_channel(self.roster)}
        # The channels of which something may be known to be missing for the first time.
        self.unharmed: list[Channel] = [self.channels[0]]
        # How many are open.
        self.open: i64 = 0
        # The number that was asked for last, and what was found.
        self.last_number: i64 = _NO_CHANNEL
        self.last: Channel | None = None

    def find(self, number: i64) -> Channel | None:
        """The channel of this number, if it was ever opened or used."""
        if number == self.last_number:
            return self.last
        found = self.channels.get(int(number))
        self.last = found
        self.last_number = number
        return found


class ConnectionView:
    """One AMQP 0-9-1 connection as one endpoint knows it."""

    def __init__(self, counting: bool = True) -> None:
        # The endpoint sends deliveries, and counts those of each consumer.
        self.counting: bool = counting
        # Its set-up, as in `states.CONNECTION`.
        self.state: str = START
        # Nothing was missed.
        self.whole: bool = True
        # More may be missing by now than is known.
        self.blind: bool = False
        # The protocol headers: by the client, id, major, minor, revision.
        self.headers: list[tuple[bool, int, int, int, int]] = []
        # The server has sent a header, which refuses the client's.
        self.refused: bool = False
        # The version that the server names, -1 until it does.
        self.version: tuple[int, int] = (-1, -1)
        # What each peer says of itself, None until it does.
        self.server: PeerProperties | None = None
        self.client: PeerProperties | None = None
        # The server reads RabbitMQ's dialect and rules: it says that it is RabbitMQ, or LavinMQ.
        self.rabbitmq: bool = False
        # The release of RabbitMQ, major times 10,000 and minor, -1 if it does not say.
        self.release: i64 = -1
        # How the client logs in, and what it opens.
        self.login: Login = Login()
        self.opening: VirtualHostOpen = VirtualHostOpen()
        # The limits that the server proposes, and those that the client agrees to.
        self.proposed: Tuning = Tuning()
        self.agreed: Tuning = Tuning()
        # Whether the server takes messages.
        self.blocking: Blocking = Blocking()
        # How it is closed.
        self.ending: ConnectionEnd = ConnectionEnd()
        # The methods that each of the two has said.
        self.said_by_client: MethodsSaid = MethodsSaid()
        self.said_by_server: MethodsSaid = MethodsSaid()
        # The channels, and their consumers.
        self.table: ChannelTable = ChannelTable()

    def _knows_server(self, server: PeerProperties) -> None:
        """The server has named its product, or its properties could not be read, which counts as unknown."""
        if not server.complete and not ("product" in server.texts and "version" in server.texts):
            return
        self.server = server
        self.rabbitmq = server.product in ("RabbitMQ", "LavinMQ")
        self.release = -1
        if server.product == "RabbitMQ":
            numbers = server.texts.get("version", "").split(".")
            if len(numbers) > 1 and all(part.isdecimal() and len(part) < 5 for part in numbers[:2]):
                self.release = int(numbers[0]) * 10_000 + int(numbers[1])

    def of_product(self, product: str) -> bool:
        """Whether the server says that it is this product."""
        return self.server is not None and self.server.product == product

    def rabbitmq_since(self, major: i64, minor: i64) -> bool:
        """Whether the server says that it is RabbitMQ in this version or a later one."""
        return self.release >= major * 10_000 + minor

    def asked_version(self) -> tuple[int, int] | None:
        """The version of the client's last header, None if it was of another protocol or not captured."""
        for by_client, protocol, major, minor, _ in reversed(self.headers):
            if by_client:
                return (major, minor) if protocol == 0 else None
        return None

    def channel(self, number: i64) -> Channel | None:
        """The channel of this number, if it was ever opened or used."""
        return self.table.find(number)

    def some_channels(self) -> list[Channel]:
        """The channels that were opened or used first, and 0."""
        return list(islice(self.table.channels.values(), MAX_COMPARED_CHANNELS))

    def finished(self, by_client: bool) -> bool:
        """Whether a peer has closed the connection, or has answered the other peer's close."""
        if by_client:
            return self.ending.by_client is not None or self.ending.client_done > 0
        return self.ending.by_server is not None or self.ending.server_done > 0

    def lost(self) -> None:
        """Something is missing: nothing follows from what was not seen."""
        self.whole = False
        for channel in self.table.unharmed:
            channel.lost()
        self.table.unharmed = []

    def sure_again(self, channel: Channel) -> None:
        """Something on a channel is known again: the next loss concerns the channel, too."""
        self.table.unharmed.append(channel)

    def disorder(self, number: i64) -> None:
        """Nobody knows which methods on a channel count."""
        channel = self.channel(number)
        if channel is not None:
            channel.lost()
        else:
            # It may have been the open of that channel.
            self.lost()

    # What is said

    def header(self, by_client: bool, header: ProtocolHeader) -> None:
        """A protocol header."""
        if len(self.headers) < MAX_HEADERS:
            version = (int(header.major), int(header.minor), int(header.revision))
            self.headers.append((by_client, int(header.protocol_id), *version))
        if by_client:
            self.state = CONNECTION.after(self.state, CLIENT_HEADER)
        else:
            self.refused = True

    def method(self, by_client: bool, number: i64, method: Method, end: i64, packet: i64, time: i64) -> None:
        """A method, of the client's or of the server's, on a channel; `end`: offset behind its frame."""
        definition = method.definition()
        said = self.said_by_client if by_client else self.said_by_server
        if definition is not said.last:
            said.add(definition)
        if number == CONNECTION_CHANNEL or definition.class_id == CONNECTION_CLASS:
            # On another channel the method is a fault, but keeps its meaning.
            self._connection(by_client, method, end, packet, time)
            return
        if isinstance(method, ChannelOpen):
            if by_client:
                if self.state == UNREQUESTED:
                    # The client takes it for open, too.
                    self.state = OPEN
                self._open(number, method, end, packet, time)
            return
        channel = self.channel(number)
        if channel is None:
            channel = self.unknown(number)
            if channel is None:
                return
        if not isinstance(method, (ChannelClose, ChannelCloseOk)):
            channel.apply(by_client, method, end, packet, time)
            return
        before = channel.is_open
        channel.apply(by_client, method, end, packet, time)
        if before and not channel.is_open:
            self.table.open -= 1
        if channel.state == CLOSED and isinstance(method, ChannelCloseOk):
            channel.empty()

    def publish(self, number: i64, publish: Publish) -> None:
        """The client has sent the last frame of a message."""
        channel = self.channel(number)
        if channel is not None:
            channel.publish(publish)

    def _open(self, number: i64, method: ChannelOpen, end: i64, packet: i64, time: i64) -> None:
        known = self.channel(number)
        if known is not None and known.state != CLOSED:
            # Nobody knows whether the server assigns it to the existing channel or to another one.
            known.whole = False
            return
        if known is None and len(self.table.channels) > MAX_CHANNELS:
            self.lost()
            return
        if known is not None:
            known.empty()
        channel = Channel(number, self.table.roster, self.counting)
        # A life that begins here is whole, whatever was missing before; the agreed limits may be unknown.
        if self.blind or (self.whole and self.state != OPEN and self.state != OPENING):
            # While the connection is not open, nobody knows whether the server opens the channel.
            channel.lost()
        else:
            self.table.unharmed.append(channel)
        channel.open(method, end, packet, time)
        self.table.channels[int(number)] = channel
        self.table.last_number = _NO_CHANNEL
        self.table.open += 1

    def unknown(self, number: i64) -> Channel | None:
        """A channel that is in use although its opening was not seen; None if there are too many."""
        if len(self.table.channels) > MAX_CHANNELS:
            return None
        channel = Channel(number, self.table.roster, self.counting)
        channel.state = OPEN
        channel.lost()
        self.table.channels[int(number)] = channel
        self.table.last_number = _NO_CHANNEL
        self.table.open += 1
        return channel

    def _connection(self, by_client: bool, method: Method, end: i64, packet: i64, time: i64) -> None:
        side = "C:" if by_client else "S:"
        if isinstance(method, ConnectionClose):
            closing = CloseReason(
                method.reply_code,
                (method.reply_text or "")[:256],
                method.class_id,
                method.method_id,
                end,
                packet,
                time,
            )
            self.ending.state = CHANNEL.after(self.ending.state, side + "close")
            if by_client and self.ending.by_client is None:
                self.ending.by_client = closing
            elif not by_client and self.ending.by_server is None:
                self.ending.by_server = closing
            return
        if isinstance(method, ConnectionCloseOk):
            self.ending.state = CHANNEL.after(self.ending.state, side + "close-ok")
            self.ending.done_time = time
            if by_client:
                self.ending.client_done = packet
            else:
                self.ending.server_done = packet
            return
        name = method.definition().name
        if name.startswith("connection."):
            self.state = CONNECTION.after(self.state, side + name[len("connection.") :])
        self.table.channels[0].apply(by_client, method, end, packet, time)
        if by_client:
            self._client_says(method, end, packet, time)
        else:
            self._server_says(method, end, packet, time)

    def _client_says(self, method: Method, end: i64, packet: i64, time: i64) -> None:
        if isinstance(method, ConnectionStartOk):
            if method.client_properties is not None:  # else it was cut off
                self.client = properties_of(method.client_properties)
            self.login.mechanism = readable(method.mechanism)
            self.login.user = _user(self.login.mechanism, method.response)
        elif isinstance(method, ConnectionTuneOk):
            self.agreed.channel_max = method.channel_max
            self.agreed.frame_max = method.frame_max
            self.agreed.heartbeat = method.heartbeat
            self.agreed.end = end
            self.agreed.packet = packet
            self.agreed.time = time
        elif isinstance(method, ConnectionOpen):
            self.opening.virtual_host = method.virtual_host or ""
            self.opening.packet = packet
            self.opening.time = time
            self.opening.end = end
        elif isinstance(method, ConnectionSecureOk):
            pass  # a secret

    def _server_says(self, method: Method, end: i64, packet: i64, time: i64) -> None:
        if isinstance(method, ConnectionStart):
            self.version = (int(method.version_major), int(method.version_minor))
            if method.server_properties is not None:
                self._knows_server(properties_of(method.server_properties))
            self.login.mechanisms = _words(method.mechanisms)
            self.login.locales = _words(method.locales)
        elif isinstance(method, ConnectionTune):
            self.proposed.channel_max = method.channel_max
            self.proposed.frame_max = method.frame_max
            self.proposed.heartbeat = method.heartbeat
            self.proposed.end = end
            self.proposed.packet = packet
            self.proposed.time = time
        elif isinstance(method, ConnectionBlocked):
            self.blocking.blocked = True
            self.blocking.packet = packet
        elif isinstance(method, ConnectionUnblocked):
            self.blocking.blocked = False
            self.blocking.unblocked_time = time
        elif isinstance(method, ConnectionSecure):
            self.login.challenges += 1
        elif isinstance(method, ConnectionOpenOk):
            pass  # only the state

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        parts = (self.login, self.opening, self.proposed, self.agreed, self.blocking, self.ending)
        return (
            (self.counting, self.state, self.whole, self.blind),
            (tuple(self.headers), self.version),
            None if self.server is None else self.server.dump(),
            None if self.client is None else self.client.dump(),
            tuple(part.dump() for part in parts),
            tuple(tuple(sorted(said.numbers)) for said in (self.said_by_client, self.said_by_server)),
            tuple(channel.dump() for channel in self.table.channels.values()),
            int(self.table.open),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "ConnectionView":
        """The object of what `dump` returned."""
        about, (headers, version), server, client, parts, said, channels, opened = state
        one = ConnectionView(about[0])
        _, one.state, one.whole, one.blind = about
        one.headers, one.version = list(headers), version
        one.refused = any(not by_client for by_client, *_ in headers)
        if server is not None:
            one._knows_server(PeerProperties.load(server))
        one.client = None if client is None else PeerProperties.load(client)
        login, opening, proposed, agreed, blocking, ending = parts
        one.login, one.opening = Login.load(login), VirtualHostOpen.load(opening)
        one.proposed, one.agreed = Tuning.load(proposed), Tuning.load(agreed)
        one.blocking, one.ending = Blocking.load(blocking), ConnectionEnd.load(ending)
        one.said_by_client.numbers, one.said_by_server.numbers = set(said[0]), set(said[1])
        one.table.channels = {}
        for saved in channels:
            channel = Channel.load(saved, one.table.roster)
            one.table.channels[int(channel.number)] = channel
        one.table.unharmed = list(one.table.channels.values())
        one.table.open = opened
        return one


def _connection_channel(roster: Roster) -> Channel:
    """Channel 0, which nobody opens."""
    channel = Channel(CONNECTION_CHANNEL, roster)
    channel.state = OPEN
    return channel


def _words(octets: bytes | None) -> list[str]:
    """The words of a list, which are separated by spaces; none if they cannot be read."""
    try:
        return [] if octets is None else octets[:4096].decode("utf-8").split(" ")
    except UnicodeDecodeError:
        return []


def _user(mechanism: str, response: bytes | None) -> str | None:
    """The user that logs in by PLAIN or AMQPLAIN, None if it is not visible."""
    if response is None:
        return None
    name: object = None
    if mechanism == "PLAIN":
        parts = response.split(b"\0")
        if len(parts) == 3:
            name = parts[1]
    elif mechanism == "AMQPLAIN":
        name = FieldTable(response).get("LOGIN")
    if isinstance(name, bytes):
        return name[:_LONGEST].decode("utf-8", "replace")
    return name[:_LONGEST] if isinstance(name, str) else None

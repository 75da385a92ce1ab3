"""What an endpoint knows of a connection: what was agreed, which channels there are, how it is being closed.

It takes every method in the order in which the endpoint said or received it, and by whom; see `Channel`
for why one machine serves both. Nothing here judges.
"""

from itertools import islice
from typing import Any, Final

from amqpscope.limits import MAX_CHANNELS, MAX_COMPARED_CHANNELS, MAX_HEADERS
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.closing import Closing
from amqpscope.tracking.amqp091.consumers import Roster
from amqpscope.tracking.amqp091.names import readable
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp091.states import CHANNEL, CONNECTION, CONNECTION_REPAIR, advance
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

__all__ = ["CONNECTION_CLASS", "ConnectionView", "PeerProperties"]

CONNECTION_CHANNEL: Final = 0
CONNECTION_CLASS: Final = 10

_NO_CHANNEL: Final = -1


class PeerProperties:
    """What a peer tells of itself: the names in its properties, the short texts among them, its capabilities.

    odd_capabilities: why the table of capabilities is not as it should be, "" if it is. complete: all of them
    could be read and were looked at; if not, whether one is there that is not among these is unknown.
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
            self.odd_capabilities = "capabilities is no table"
            return
        if len(value.pairs) > _MOST_PROPERTIES:
            self.complete = False
        for name, allowed in value.pairs[:_MOST_PROPERTIES]:
            if allowed is True and isinstance(name, str):
                self.capabilities.add(name)
            elif allowed is not False and not self.odd_capabilities:
                self.odd_capabilities = "a capability is no boolean"

    def lacks(self, capability: str) -> bool:
        """Whether it is known that this capability is not among them."""
        return self.complete and not self.odd_capabilities and capability not in self.capabilities

    @property
    def product(self) -> str:
        """The name of the product, "" if it does not say."""
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
        """What `dump` gave, as an object again."""
        names, texts, capabilities, odd, complete = state
        properties = PeerProperties(None)
        properties.names = list(names)
        properties.texts = dict(texts)
        properties.capabilities = set(capabilities)
        properties.odd_capabilities = odd
        properties.complete = complete
        return properties


# Properties of a peer that are looked at, and characters of one.
_MOST_PROPERTIES: Final = 64
_LONGEST: Final = 200


class ConnectionView:
    """One AMQP 0-9-1 connection as one endpoint knows it.

    state: of its set-up, as in `states.CONNECTION`; closing: of its end, as in `states.CHANNEL`, where OPEN
    says that it has none yet. whole: nothing was missed. blind: more may be missing by now than is known.
    headers: the protocol headers, (by the client, id, major, minor, revision); refused: the server has sent
    one, which refuses the client's. The fields of the set-up are -1, "" or None until they are said; `*_end`
    is the offset behind the method in its sender's stream.
    """

    def __init__(self, counting: bool = True) -> None:
        self.counting: bool = counting
        self.state: str = "START"
        self.closing: str = "OPEN"
        self.whole: bool = True
        self.blind: bool = False
        self.headers: list[tuple[bool, int, int, int, int]] = []
        self.refused: bool = False
        self.version: tuple[int, int] = (-1, -1)
        self.server: PeerProperties | None = None
        # It reads RabbitMQ's dialect and rules: it says that it is RabbitMQ, or LavinMQ; and of RabbitMQ
        # which release, major times 10,000 and minor, -1 if it does not say.
        self.rabbitmq: bool = False
        self.release: i64 = -1
        self.client: PeerProperties | None = None
        self.mechanisms: list[str] = []
        self.locales: list[str] = []
        self.mechanism: str = ""
        # The user that logged in, None if that is not known. What else the login says is never kept.
        self.user: str | None = None
        # What the server proposes, and what the client answers.
        self.tune_channel_max: i64 = -1
        self.tune_frame_max: i64 = -1
        self.tune_heartbeat: i64 = -1
        self.channel_max: i64 = -1
        self.frame_max: i64 = -1
        self.heartbeat: i64 = -1
        self.tune_end: i64 = -1
        self.tune_ok_end: i64 = -1
        self.tune_ok_packet: i64 = 0
        self.tune_ok_time: i64 = 0
        # connection.open, and how many times the client was challenged before.
        self.open_packet: i64 = 0
        self.open_time: i64 = 0
        self.open_end: i64 = -1
        self.challenges: i64 = 0
        # The methods that each of the two has said, as class-id << 16 | method-id.
        self.said_by_client: set[int] = set()
        self.said_by_server: set[int] = set()
        self.vhost: str = ""
        self.closed_by_client: Closing | None = None
        self.closed_by_server: Closing | None = None
        # close-ok was said, and where; when the last one was.
        self.client_done: i64 = 0
        self.server_done: i64 = 0
        self.done_time: i64 = 0
        self.blocked: bool = False
        self.blocked_end: i64 = -1
        self.blocked_packet: i64 = 0
        self.blocked_time: i64 = 0
        self.unblocked_time: i64 = 0
        # The consumers of all channels.
        self.roster: Roster = Roster()
        # Every channel that was opened or used, by its number; 0 has the requests of the connection.
        self.channels: dict[int, Channel] = {0: _connection_channel(self.roster)}
        # The channels of which something may be known to be missing for the first time.
        self._unharmed: list[Channel] = [self.channels[0]]
        self.open_channels: i64 = 0
        self._last: Channel | None = None
        self._last_number: i64 = _NO_CHANNEL
        # What each of them said last, which is among the methods above.
        self._client_said: MethodType | None = None
        self._server_said: MethodType | None = None

    def _knows_server(self, server: PeerProperties) -> None:
        """The server has reported what it is; or that could not be read, then it is as if nobody had seen
        it."""
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
        if number == self._last_number:
            return self._last
        found = self.channels.get(int(number))
        self._last = found
        self._last_number = number
        return found

    def some_channels(self) -> list[Channel]:
        """The channels that were opened or used first, and 0."""
        return list(islice(self.channels.values(), MAX_COMPARED_CHANNELS))

    def finished(self, by_client: bool) -> bool:
        """Whether a peer has closed the connection, or answered the other one's close."""
        if by_client:
            return self.closed_by_client is not None or self.client_done > 0
        return self.closed_by_server is not None or self.server_done > 0

    def lost(self) -> None:
        """Something was missed: nothing follows any more from what was not seen so far."""
        self.whole = False
        for channel in self._unharmed:
            channel.lost()
        self._unharmed = []

    def sure_again(self, channel: Channel) -> None:
        """Something on a channel is known anew: the next loss is one for the channel, too."""
        self._unharmed.append(channel)

    def disorder(self, number: i64) -> None:
        """Of what is said on a channel it is not known what counts."""
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
            self.state = advance(CONNECTION, CONNECTION_REPAIR, self.state, "C:header")
        else:
            self.refused = True

    def method(self, by_client: bool, number: i64, method: Method, end: i64, packet: i64, time: i64) -> None:
        """A method, of the client's or of the server's, on a channel; `end`: offset behind its frame."""
        definition = method.definition()
        if by_client and definition is not self._client_said:
            self._client_said = definition
            self.said_by_client.add(int(definition.class_id << 16 | definition.method_id))
        elif not by_client and definition is not self._server_said:
            self._server_said = definition
            self.said_by_server.add(int(definition.class_id << 16 | definition.method_id))
        if number == CONNECTION_CHANNEL or definition.class_id == CONNECTION_CLASS:
            # On another channel it is a fault, and what it means all the same.
            self._connection(by_client, method, end, packet, time)
            return
        if isinstance(method, ChannelOpen):
            if by_client:
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
            self.open_channels -= 1
        if channel.state == "CLOSED" and isinstance(method, ChannelCloseOk):
            channel.empty()

    def publish(self, number: i64, publish: Publish) -> None:
        """The client has sent the last frame of a message."""
        channel = self.channel(number)
        if channel is not None:
            channel.publish(publish)

    def _open(self, number: i64, method: ChannelOpen, end: i64, packet: i64, time: i64) -> None:
        known = self.channel(number)
        if known is not None and known.state != "CLOSED":
            # Whether the server takes it for the channel that is there or for another, nobody knows.
            known.whole = False
            return
        if known is None and len(self.channels) > MAX_CHANNELS:
            self.lost()
            return
        if known is not None:
            known.empty()
        channel = Channel(number, self.roster, self.counting)
        # A life that begins here is whole, whatever was missed before; what was agreed may not be known.
        if self.blind:
            channel.lost()
        else:
            self._unharmed.append(channel)
        channel.open(method, end, packet, time)
        self.channels[int(number)] = channel
        self._last_number = _NO_CHANNEL
        self.open_channels += 1

    def unknown(self, number: i64) -> Channel | None:
        """A channel that is in use and was never seen to be opened; None if there are too many."""
        if len(self.channels) > MAX_CHANNELS:
            return None
        channel = Channel(number, self.roster, self.counting)
        channel.state = "OPEN"
        channel.lost()
        self.channels[int(number)] = channel
        self._last_number = _NO_CHANNEL
        self.open_channels += 1
        return channel

    def _connection(self, by_client: bool, method: Method, end: i64, packet: i64, time: i64) -> None:
        side = "C:" if by_client else "S:"
        if isinstance(method, ConnectionClose):
            closing = Closing(
                method.reply_code,
                (method.reply_text or "")[:256],
                method.class_id,
                method.method_id,
                end,
                packet,
                time,
            )
            self.closing = advance(CHANNEL, {}, self.closing, side + "close")
            if by_client and self.closed_by_client is None:
                self.closed_by_client = closing
            elif not by_client and self.closed_by_server is None:
                self.closed_by_server = closing
            return
        if isinstance(method, ConnectionCloseOk):
            self.closing = advance(CHANNEL, {}, self.closing, side + "close-ok")
            self.done_time = time
            if by_client:
                self.client_done = packet
            else:
                self.server_done = packet
            return
        name = method.definition().name
        if name.startswith("connection."):
            self.state = advance(CONNECTION, CONNECTION_REPAIR, self.state, side + name[len("connection.") :])
        self.channels[0].apply(by_client, method, end, packet, time)
        if by_client:
            self._client_says(method, end, packet, time)
        else:
            self._server_says(method, end, packet, time)

    def _client_says(self, method: Method, end: i64, packet: i64, time: i64) -> None:
        if isinstance(method, ConnectionStartOk):
            if method.client_properties is not None:  # else it was cut off
                self.client = PeerProperties(method.client_properties)
            self.mechanism = readable(method.mechanism)
            self.user = _user(self.mechanism, method.response)
        elif isinstance(method, ConnectionTuneOk):
            self.channel_max = method.channel_max
            self.frame_max = method.frame_max
            self.heartbeat = method.heartbeat
            self.tune_ok_end = end
            self.tune_ok_packet = packet
            self.tune_ok_time = time
        elif isinstance(method, ConnectionOpen):
            self.vhost = method.virtual_host or ""
            self.open_packet = packet
            self.open_time = time
            self.open_end = end
        elif isinstance(method, ConnectionSecureOk):
            pass  # a secret

    def _server_says(self, method: Method, end: i64, packet: i64, time: i64) -> None:
        if isinstance(method, ConnectionStart):
            self.version = (int(method.version_major), int(method.version_minor))
            if method.server_properties is not None:
                self._knows_server(PeerProperties(method.server_properties))
            self.mechanisms = _words(method.mechanisms)
            self.locales = _words(method.locales)
        elif isinstance(method, ConnectionTune):
            self.tune_channel_max = method.channel_max
            self.tune_frame_max = method.frame_max
            self.tune_heartbeat = method.heartbeat
            self.tune_end = end
        elif isinstance(method, ConnectionBlocked):
            self.blocked = True
            self.blocked_end = end
            self.blocked_packet = packet
            self.blocked_time = time
        elif isinstance(method, ConnectionUnblocked):
            self.blocked = False
            self.unblocked_time = time
        elif isinstance(method, ConnectionSecure):
            self.challenges += 1
        elif isinstance(method, ConnectionOpenOk):
            pass  # only the state

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        closes = (self.closed_by_client, self.closed_by_server)
        return (
            (self.state, self.closing, (self.whole, self.blind), tuple(self.headers), self.version),
            self.counting,
            None if self.server is None else self.server.dump(),
            None if self.client is None else self.client.dump(),
            (tuple(self.mechanisms), tuple(self.locales), self.mechanism, self.vhost, self.user),
            (int(self.tune_channel_max), int(self.tune_frame_max), int(self.tune_heartbeat)),
            (int(self.channel_max), int(self.frame_max), int(self.heartbeat)),
            (int(self.tune_end), int(self.tune_ok_end), int(self.tune_ok_packet), int(self.tune_ok_time)),
            (int(self.open_packet), int(self.open_time), int(self.open_end), int(self.challenges)),
            (tuple(sorted(self.said_by_client)), tuple(sorted(self.said_by_server))),
            tuple(None if one is None else one.dump() for one in closes),
            (int(self.client_done), int(self.server_done), int(self.done_time)),
            (self.blocked, int(self.blocked_end), int(self.blocked_packet)),
            (int(self.blocked_time), int(self.unblocked_time)),
            tuple(channel.dump() for channel in self.channels.values()),
            int(self.open_channels),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "ConnectionView":
        """What `dump` gave, as an object again."""
        about, counting, server, client, words, proposed, agreed, tuned, opened = state[:9]
        said, closes, done, blocked, times, channels, open_channels = state[9:]
        one = ConnectionView(counting)
        one.state, one.closing, (one.whole, one.blind), headers, one.version = about
        one.headers = list(headers)
        one.refused = any(not by_client for by_client, *_ in headers)
        if server is not None:
            one._knows_server(PeerProperties.load(server))
        one.client = None if client is None else PeerProperties.load(client)
        mechanisms, locales, one.mechanism, one.vhost, one.user = words
        one.mechanisms, one.locales = list(mechanisms), list(locales)
        one.tune_channel_max, one.tune_frame_max, one.tune_heartbeat = proposed
        one.channel_max, one.frame_max, one.heartbeat = agreed
        one.tune_end, one.tune_ok_end, one.tune_ok_packet, one.tune_ok_time = tuned
        one.open_packet, one.open_time, one.open_end, one.challenges = opened
        one.said_by_client, one.said_by_server = set(said[0]), set(said[1])
        by_client, by_server = closes
        one.closed_by_client = None if by_client is None else Closing.load(by_client)
        one.closed_by_server = None if by_server is None else Closing.load(by_server)
        one.client_done, one.server_done, one.done_time = done
        one.blocked, one.blocked_end, one.blocked_packet = blocked
        one.blocked_time, one.unblocked_time = times
        one.channels = {}
        for saved in channels:
            channel = Channel.load(saved, one.roster)
            one.channels[int(channel.number)] = channel
        one._unharmed = list(one.channels.values())
        one.open_channels = open_channels
        return one


def _connection_channel(roster: Roster) -> Channel:
    """Channel 0, which nobody opens."""
    channel = Channel(CONNECTION_CHANNEL, roster)
    channel.state = "OPEN"
    return channel


def _words(octets: bytes | None) -> list[str]:
    """The words of a list that is written with spaces between them; none if they cannot be read."""
    try:
        return [] if octets is None else octets[:4096].decode("utf-8").split(" ")
    except UnicodeDecodeError:
        return []


def _user(mechanism: str, response: bytes | None) -> str | None:
    """Who logs in by PLAIN or AMQPLAIN, None if that is not to be seen."""
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

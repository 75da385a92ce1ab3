"""One fault in an otherwise legal conversation of AMQP 0-9-1, where no doubt is possible.

As `support.faults` for 1.0: the peers take turns, so that each knows all that the other one has said. What
makes a fault certain is written beside it where that is not plain.
"""

from __future__ import annotations

from itertools import permutations
from random import Random
from typing import Any

from support import amqp091_encode as amqp
from support.broker091 import Broker
from support.broker091 import Channel as BrokerChannel
from support.client091 import REPLIES, Channel, Client
from support.legal import CLIENT, Fields, Said
from support.legal091 import Talk091
from support.network import Network
from support.peer091 import OTHER, RABBITMQ, Peer091
from support.planting import Planted, Registry, planted_in

__all__ = ["FAULTS", "Planted", "mischief", "plant"]

_REGISTRY = Registry()

FAULTS = _REGISTRY.faults
breaks = _REGISTRY.breaks
mischief = _REGISTRY.mischief

# Faults about consumers that the broker ends: few brokers do.
OF_CANCELS = ("B-CANCEL-NOTIFY-LAST", "B-CANCEL-NOTIFY-REPLY")

# What only RabbitMQ and LavinMQ ask for.
OF_RABBITMQ = ("B-CONSUME-PRIO", "B-PROP-CC", "B-PROP-EXPIRATION", "B-REPLYTO-NOACK", "Q-XARGS")

NEVER = 4_000_000  # a delivery tag that no conversation reaches


def plant(name: str, seed: str) -> Planted | None:
    """A conversation with this fault in it, or None if there was no occasion."""
    rule, fault = FAULTS[name]
    random = Random(f"{name} {seed}")
    talk = Talk091(random)
    client, broker = talk.peers
    # Long lives: occasions come.
    client.character.closes = broker.character.closes = 0.0
    broker.character.refuses = 0.0
    if rule in OF_CANCELS:
        broker.character.cancels = 0.05
    elif rule == "B-ACK-MULTIPLE":
        client.character.sloth = 3.0
        client.character.consumes = 1.0
    elif rule == "B-QOS-COUNT":
        talk.product = RABBITMQ
        client.character.sloth = 10.0
        client.character.consumes = 1.0
    elif rule == "C-CLOSEOK-LAST":
        broker.character.closes = 0.1
    elif rule in OF_RABBITMQ:
        talk.product = RABBITMQ
    elif rule == "B-PROP-PRIORITY":
        talk.product = OTHER
    elif rule in ("CH-FLOW-STOP", "CH-FLOW-OK-VALUE"):
        talk.product = OTHER
        broker.character.stops = 0.1
    client.character.pipelines = client.character.eager = False
    seed = f"{name} {seed}"
    return planted_in(talk, random, rule, fault, seed, lambda peer: not peer.opened, aftermath)


def aftermath(network: Network, peer: Peer091) -> None:
    """What a correct peer does then: it closes the connection; the other one answers. Or the capture ends."""
    other: Any = network.talk.peers[1 - peer.side]
    if other.opened and not other.close_sent and peer.random.random() < 0.6:
        other.say("connection.close", reply_code=501, reply_text="FRAME_ERROR")
        network.take(other.side)
        network.settle(read=False)
        if peer.opened and not peer.close_sent:
            peer.say("connection.close-ok")
            network.take(peer.side)
            network.settle(read=False)


# ---- occasions --------------------------------------------------------------------------------------------


def working(peer: Peer091) -> bool:
    """The connection is open, nobody has closed it."""
    return peer.opened and not peer.close_sent and not peer.close_heard


def channels(peer: Any) -> list[Any]:
    """Channels in use between contents, with nothing owed, in any order."""
    if not working(peer):
        return []
    usable = [
        channel
        for channel in peer.channels.values()
        if channel.opened and not channel.closing and channel.number not in peer.parts
        if (
            not channel.asked_to_close and not (channel.waiting or channel.flow_asked or channel.cancel_asked)
            if isinstance(channel, Channel)
            else not channel.todo
        )
    ]
    return list(peer.random.sample(usable, len(usable)))


def of_client(peer: Peer091) -> list[Channel]:
    return channels(peer) if isinstance(peer, Client) else []


def of_broker(peer: Peer091) -> list[BrokerChannel]:
    return channels(peer) if isinstance(peer, Broker) else []


def publishing(peer: Peer091) -> list[Channel]:
    """Channels on which the client may publish."""
    assert isinstance(peer, Client)
    return [] if peer.blocked else [channel for channel in of_client(peer) if channel.flowing]


def raw(peer: Peer091, octets: bytes, channel: int = 0) -> Said:
    """Octets that are no frame of `Said`'s."""
    return peer.put(Said(peer.side, "raw", channel, {}, b"", octets, 0, 0))


def request(name: str, rule: str, **fields: Any) -> None:
    """A request of the client's that breaks a rule by itself."""

    def fault(peer: Peer091) -> Said | None:
        for channel in of_client(peer):
            return peer.say(name, channel.number, **fields)
        return None

    fault.__name__ = f"{name}_that_breaks_{rule}".lower().replace("-", "_").replace(".", "_")
    breaks(rule)(fault)


def publish(peer: Peer091, channel: Channel, **fields: Any) -> Said:
    """The method of a publish."""
    return peer.say("basic.publish", channel.number, **{"routing_key": "orders", **fields})


def rest_of_publish(peer: Peer091, channel: Channel) -> None:
    """The content of a publish."""
    peer.say("content-header", channel.number, body_size=5)
    peer.say("body", channel.number, b"12345")


def whole_publish(peer: Peer091, channel: Channel) -> None:
    publish(peer, channel)
    rest_of_publish(peer, channel)


def content_frames(peer: Peer091, channel: Channel, header: bytes, *bodies: bytes) -> Said:
    """A header of any octets and bodies."""
    said = raw(peer, amqp.frame(amqp.HEADER, channel.number, header), channel.number)
    for body in bodies:
        peer.say("body", channel.number, body)
    return said


# ---- framing ----------------------------------------------------------------------------------------------


@breaks("F-FRAME-TYPE")
def unknown_frame_type(peer: Peer091) -> Said | None:
    return raw(peer, amqp.frame(9, 0, b"")) if working(peer) and not peer.parts else None


@breaks("F-FRAME-END")
def wrong_frame_end(peer: Peer091) -> Said | None:
    if not working(peer) or peer.parts:
        return None
    return raw(peer, amqp.frame(amqp.HEARTBEAT, 0, b"", end=b"\x00"))


@breaks("F-FRAME-SIZE")
def frame_too_large(peer: Peer091) -> Said | None:
    if not isinstance(peer, Client) or not 0 < peer.frame_max <= 8192:
        return None
    for channel in publishing(peer):
        size = peer.frame_max - 7
        publish(peer, channel)
        peer.say("content-header", channel.number, body_size=size)
        return peer.say("body", channel.number, b"x" * size)
    return None


@breaks("F-CH0-HEARTBEAT")
def heartbeat_on_a_channel(peer: Peer091) -> Said | None:
    return peer.say("heartbeat", 1) if working(peer) and peer.heartbeat else None


@breaks("F-CH0-CONNECTION")
def method_of_the_connection_on_a_channel(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        return peer.say("connection.update-secret", channel.number, new_secret=b"s", reason="r")
    return None


@breaks("F-HEARTBEAT-SHAPE")
def heartbeat_with_payload(peer: Peer091) -> Said | None:
    return peer.say("heartbeat", 0, b"!") if working(peer) and peer.heartbeat else None


@breaks("F-CONTENT-CH-NONZERO")
def body_on_channel_0(peer: Peer091) -> Said | None:
    return peer.say("body", 0, b"x") if working(peer) else None


@breaks("F-CONTENT-CH-NONZERO")
def content_header_on_channel_0(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            publish(peer, channel)
            said = peer.say("content-header", 0, body_size=5)
            peer.say("body", channel.number, b"12345")
            whole_publish(peer, channel)
            return said
    return None


@breaks("F-CONTENT-CH-NONZERO")
def body_of_a_channel_on_channel_0(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            publish(peer, channel)
            peer.say("content-header", channel.number, body_size=5)
            said = peer.say("body", 0, b"12345")
            whole_publish(peer, channel)
            return said
    return None


@breaks("F-METHOD-CH-NONZERO")
def publish_on_channel_0(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            said = peer.say("basic.publish", 0, routing_key="orders")
            rest_of_publish(peer, channel)
            whole_publish(peer, channel)
            return said
    return None


@breaks("F-METHOD-CH-NONZERO")
def method_on_channel_0(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and working(peer):
        return peer.say("queue.declare", 0, queue="orders", durable=True)
    return None


@breaks("F-METHOD-KNOWN")
def unknown_method(peer: Peer091) -> Said | None:
    for channel in channels(peer):
        number = peer.random.choice([b"\x00\x3c\x00\xc7", b"\x00\x46\x00\x0a"])
        return raw(peer, amqp.frame(amqp.METHOD, channel.number, number), channel.number)
    return None


@breaks("F-METHOD-ARGS")
def method_cut_short(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        payload = amqp.method("basic.qos", prefetch_count=1)[:-2]
        return raw(peer, amqp.frame(amqp.METHOD, channel.number, payload), channel.number)
    return None


@breaks("F-METHOD-TRAILING")
def octets_behind_a_method(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        payload = amqp.method("basic.qos", prefetch_count=1) + b"\0"
        return raw(peer, amqp.frame(amqp.METHOD, channel.number, payload), channel.number)
    return None


@breaks("F-METHOD-DIRECTION")
def method_of_the_other_peer(peer: Peer091) -> Said | None:
    for channel in channels(peer):
        if peer.side == CLIENT:
            return peer.say("basic.get-empty", channel.number)
        return peer.say("basic.qos", channel.number, prefetch_count=1)
    return None


@breaks("F-CONTENT-HEADER-NEXT")
def method_instead_of_a_content_header(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            publish(peer, channel)
            return peer.say("channel.flow", channel.number, active=True)
    return None


@breaks("F-CONTENT-NO-METHOD")
def method_in_a_content(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            publish(peer, channel)
            peer.say("content-header", channel.number, body_size=10)
            peer.say("body", channel.number, b"12345")
            said = peer.say("channel.flow", channel.number, active=True)
            peer.say("body", channel.number, b"67890")
            return said
    return None


@breaks("F-CONTENT-ONE-HEADER")
def second_content_header(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            publish(peer, channel)
            peer.say("content-header", channel.number, body_size=10)
            return peer.say("content-header", channel.number, body_size=10)
    return None


@breaks("F-HEADER-ORPHAN")
def content_header_of_nothing(peer: Peer091) -> Said | None:
    for channel in channels(peer):
        return peer.say("content-header", channel.number, body_size=10)
    return None


@breaks("F-BODY-ORPHAN")
def body_of_nothing(peer: Peer091) -> Said | None:
    for channel in channels(peer):
        said = [one.name for one in peer.talk.said[peer.side] if one.channel == channel.number]
        if said[-1] != "content-header":  # of an empty content: another rule's
            return peer.say("body", channel.number, b"x")
    return None


@breaks("F-BODY-ORPHAN")
def body_on_another_channel(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel, other in permutations(publishing(peer), 2):
            before = [said.name for said in peer.talk.said[CLIENT] if said.channel == other.number]
            if before[-1] != "content-header":  # of an empty content: another rule's
                publish(peer, channel)
                peer.say("content-header", channel.number, body_size=5)
                said = peer.say("body", other.number, b"12345")
                whole_publish(peer, other)
                whole_publish(peer, channel)
                return said
    return None


@breaks("F-BODY-OVERRUN")
def body_too_long(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            publish(peer, channel)
            peer.say("content-header", channel.number, body_size=3)
            return peer.say("body", channel.number, b"12345")
    return None


@breaks("F-HEADER-CLASS")
def content_header_of_another_class(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            publish(peer, channel)
            return content_frames(peer, channel, amqp.content_header(0, class_id=50))
    return None


@breaks("F-HEADER-WEIGHT")
def content_header_with_weight(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            publish(peer, channel)
            return content_frames(peer, channel, amqp.content_header(0, weight=1))
    return None


@breaks("F-HEADER-DECODE")
def property_that_is_not_there(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            publish(peer, channel)
            return content_frames(peer, channel, amqp.content_header(0)[:-2] + b"\x80\x00")
    return None


@breaks("F-HEADER-FLAGS")
def property_that_is_not_defined(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            publish(peer, channel)
            return content_frames(peer, channel, amqp.content_header(0)[:-2] + b"\x00\x02")
    return None


@breaks("F-PROTO-HDR-ONCE")
def second_protocol_header(peer: Peer091) -> Said | None:
    return peer.say("header") if isinstance(peer, Client) and working(peer) and not peer.parts else None


# ---- properties and types ---------------------------------------------------------------------------------


def _property(rule: str, **properties: Any) -> None:
    """A property that breaks a rule by itself."""

    def fault(peer: Peer091) -> Said | None:
        if isinstance(peer, Client):
            for channel in publishing(peer):
                publish(peer, channel)
                return content_frames(peer, channel, amqp.content_header(1, **properties), b"x")
        return None

    fault.__name__ = f"property_that_breaks_{rule.lower().replace('-', '_')}"
    breaks(rule)(fault)


_property("B-PROP-DELIVERY-MODE", delivery_mode=3)
_property("B-PROP-PRIORITY", priority=10)
_property("B-PROP-EXPIRATION", expiration="soon")
_property("B-PROP-CC", headers={"CC": "orders"})
_property("T-RESERVED-PROP", reserved="cluster")
_property("T-TABLE-DUP", headers=[("a", True), ("a", False)])
_property("T-TABLE-NAME-LEN", headers={"a" * 129: True})

request("queue.bind", "T-SHORTSTR-NUL", queue="orders", exchange="amq.direct", routing_key="a\0b")
request("queue.bind", "T-SHORTSTR-UTF8", queue="orders", exchange="amq.direct", routing_key=b"\xff")
request("queue.declare", "T-TICKET-ZERO", queue="orders", durable=True, reserved_1=1)
request("queue.declare", "Q-DECL-SYNTAX", queue="two words")
request("exchange.declare", "X-DECL-SYNTAX", exchange="two words", type="direct")
request("exchange.declare", "X-DEFAULT-DECL", exchange="", type="direct")
request("exchange.declare", "X-DECL-TYPE-PREFIX", exchange="odd", type="mine")
request("exchange.delete", "X-DELETE-PREDECL", exchange="amq.direct")
request("queue.declare", "Q-XARGS", queue="limited", arguments={"x-max-length": "many"})
request("basic.consume", "B-CONSUME-PRIO", queue="orders", arguments={"x-priority": "high"})
request("basic.consume", "B-REPLYTO-NOACK", queue="amq.rabbitmq.reply-to", consumer_tag="reply")


# ---- setting up a connection ------------------------------------------------------------------------------


def _start(rule: str, **fields: Any) -> None:
    """A start that breaks a rule by itself."""

    def fault(peer: Peer091) -> Said | None:
        if not isinstance(peer, Broker) or not peer.header_heard or peer.started:
            return None
        peer.started = True
        given: Fields = {
            "version_minor": 9,
            "server_properties": {"product": "RabbitMQ", "version": "3.10.8"},
            "mechanisms": "PLAIN",
            "locales": "en_US",
        }
        return peer.say("connection.start", **{**given, **fields})

    fault.__name__ = f"start_that_breaks_{rule.lower().replace('-', '_')}"
    breaks(rule)(fault)


_start("C-START-MECH-NOTNULL", mechanisms="")
_start("C-START-LOCALES-NOTNULL", locales="")
_start("C-START-LOCALE-EN-US", locales="de_DE")
_start("C-START-VERSION", version_minor=10)
_start("C-CAP-TABLE", server_properties={"product": "RabbitMQ", "capabilities": "all"})


def _start_ok(rule: str, **fields: Any) -> None:
    def fault(peer: Peer091) -> Said | None:
        if not isinstance(peer, Client) or peer.to_answer != "connection.start":
            return None
        peer.to_answer = ""
        given: Fields = {
            "client_properties": {"product": "x", "version": "1"},
            "mechanism": "PLAIN",
            "response": b"\0u\0p",
            "locale": "en_US",
        }
        return peer.say("connection.start-ok", **{**given, **fields})

    fault.__name__ = f"start_ok_that_breaks_{rule.lower().replace('-', '_')}"
    breaks(rule)(fault)


_start_ok("C-STARTOK-MECH-OFFERED", mechanism="GSSAPI")
_start_ok("C-STARTOK-LOCALE-OFFERED", locale="de_DE")
_start_ok("C-STARTOK-RESPONSE-NOTNULL", response=b"")
_start_ok("F-PRETUNE-SIZE", client_properties={"product": "x", "token": "x" * 5000})


@breaks("C-HS-ORDER-CLIENT")
def open_before_tune(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and peer.to_answer == "connection.start":
        peer.to_answer = ""
        return peer.say("connection.open", virtual_host="/")
    return None


@breaks("C-HS-ORDER-SERVER")
def open_ok_before_tune(peer: Peer091) -> Said | None:
    if isinstance(peer, Broker) and peer.todo and peer.todo[0].name == "connection.start-ok":
        peer.todo.clear()
        return peer.say("connection.open-ok")
    return None


@breaks("C-HS-NO-CHANNEL")
def channel_before_the_connection(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and peer.tuned and not peer.open_said:
        return peer.say("channel.open", 1)
    return None


@breaks("C-HS-ONCE")
def set_up_again(peer: Peer091) -> Said | None:
    if not working(peer):
        return None
    if isinstance(peer, Client):
        return peer.say("connection.open", virtual_host="/other")
    return peer.say("connection.tune", channel_max=5, frame_max=8192, heartbeat=0)


def _tune(rule: str, **fields: int) -> None:
    def fault(peer: Peer091) -> Said | None:
        if not isinstance(peer, Broker) or peer.rounds or not peer.todo:
            return None
        if peer.todo[0].name != "connection.start-ok":
            return None
        peer.todo.clear()
        return peer.say("connection.tune", **{"channel_max": 2047, "frame_max": 131072, **fields})

    fault.__name__ = f"tune_that_breaks_{rule.lower().replace('-', '_')}"
    breaks(rule)(fault)


_tune("C-TUNE-FRAMEMAX-MIN", frame_max=4095)


def tune_ok(peer: Peer091, **fields: int) -> Said:
    assert isinstance(peer, Client)
    peer.to_answer = ""
    given = {name: peer.tune[name] for name in ("channel_max", "frame_max", "heartbeat")}
    return peer.say("connection.tune-ok", **{**given, **fields})


@breaks("C-TUNEOK-FRAMEMAX-MIN")
def frame_max_too_small(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and peer.to_answer == "connection.tune":
        return tune_ok(peer, frame_max=4095)
    return None


@breaks("C-TUNEOK-FRAMEMAX-LE")
def frame_max_larger_than_offered(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and peer.to_answer == "connection.tune" and peer.tune["frame_max"]:
        return tune_ok(peer, frame_max=peer.tune["frame_max"] + 1)
    return None


@breaks("C-TUNEOK-CHMAX-LE")
def channel_max_larger_than_offered(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and peer.to_answer == "connection.tune" and peer.tune["channel_max"]:
        return tune_ok(peer, channel_max=peer.tune["channel_max"] + 1)
    return None


def _open(rule: str, **fields: Any) -> None:
    def fault(peer: Peer091) -> Said | None:
        if isinstance(peer, Client) and peer.tuned and not peer.open_said:
            peer.open_said = True
            return peer.say("connection.open", **{"virtual_host": "/", **fields})
        return None

    fault.__name__ = f"open_that_breaks_{rule.lower().replace('-', '_')}"
    breaks(rule)(fault)


_open("T-PATH-NOTNULL", virtual_host="")
_open("T-PATH-LEN", virtual_host="v" * 128)
_open("T-RESERVED-CONN", reserved_1="x")


# ---- the connection ---------------------------------------------------------------------------------------


@breaks("C-CLOSEOK-UNSOLICITED")
def close_ok_of_nothing(peer: Peer091) -> Said | None:
    return peer.say("connection.close-ok") if working(peer) and not peer.parts else None


@breaks("C-CLOSE-SILENT")
def method_behind_a_close(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        if peer.chance(0.2):
            peer.close(200, "Normal shutdown")
            return peer.say("channel.flow", channel.number, active=True)
    return None


@breaks("C-CLOSE-METHOD-ID")
def close_for_a_method_never_said(peer: Peer091) -> Said | None:
    if isinstance(peer, Broker) and working(peer) and not peer.parts and peer.chance(0.2):
        if any(said.name == "queue.purge" for said in peer.talk.said[CLIENT]):
            return None
        peer.close_sent = True
        fields = {"reply_code": 540, "reply_text": "NOT_IMPLEMENTED", "class_id": 50, "method_id": 30}
        return peer.say("connection.close", **fields)
    return None


@breaks("C-CLOSE-CODE-KNOWN")
def unknown_reply_code(peer: Peer091) -> Said | None:
    if working(peer) and not peer.parts and peer.chance(0.2):
        peer.close_sent = True
        return peer.say("connection.close", reply_code=999, reply_text="Odd")
    return None


@breaks("C-CLOSE-HARD-CODE")
def connection_closed_by_a_soft_error(peer: Peer091) -> Said | None:
    if isinstance(peer, Broker) and working(peer) and not peer.parts and peer.chance(0.2):
        peer.close_sent = True
        return peer.say("connection.close", reply_code=404, reply_text="NOT_FOUND")
    return None


@breaks("C-BLOCKED-CAP")
def blocked_unasked(peer: Peer091) -> Said | None:
    if isinstance(peer, Broker) and working(peer) and "connection.blocked" not in peer.client_capabilities:
        return peer.say("connection.blocked", reason="low on memory")
    return None


@breaks("C-BLOCKED-PAIR")
def unblocked_without_blocked(peer: Peer091) -> Said | None:
    if isinstance(peer, Broker) and working(peer) and "connection.blocked" in peer.client_capabilities:
        return None if peer.blocked else peer.say("connection.unblocked")
    return None


# ---- channels ---------------------------------------------------------------------------------------------


def never_opened(peer: Peer091) -> int:
    """A channel that the client has not opened yet, 0 if there is none."""
    if isinstance(peer, Client) and working(peer):
        opened = {said.channel for said in peer.talk.said[CLIENT] if said.name == "channel.open"}
        limit = min(peer.channel_max or 65535, 9)
        for number in range(1, limit + 1):
            if number not in opened:
                return number
    return 0


@breaks("CH-OPEN-FIRST")
def method_on_a_channel_never_opened(peer: Peer091) -> Said | None:
    number = never_opened(peer)
    return peer.say("basic.qos", number, prefetch_count=1) if number else None


@breaks("CH-OPEN-FIRST")
def transaction_on_a_channel_never_opened(peer: Peer091) -> Said | None:
    number = never_opened(peer)
    for channel in of_client(peer) if number else ():
        if not channel.mode:
            said = peer.say("tx.select", number)
            peer.say("tx.commit", channel.number)
            return said
    return None


@breaks("CH-OPEN-FIRST")
def publish_on_a_channel_never_opened(peer: Peer091) -> Said | None:
    number = never_opened(peer)
    for channel in publishing(peer) if number else ():
        said = peer.say("basic.publish", number, routing_key="orders")
        rest_of_publish(peer, channel)
        whole_publish(peer, channel)
        return said
    return None


@breaks("CH-OPEN-STATE")
def channel_opened_twice(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        return peer.say("channel.open", channel.number)
    return None


@breaks("CH-NUM-MAX")
def channel_above_the_limit(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and working(peer) and 0 < peer.channel_max < 65535:
        if len(peer.channels) < peer.channel_max:
            return peer.say("channel.open", peer.channel_max + 1)
    return None


@breaks("CH-SYNC-UNSOLICITED")
def answer_to_nothing(peer: Peer091) -> Said | None:
    for channel in of_broker(peer):
        name = peer.random.choice(["queue.bind-ok", "basic.qos-ok", "exchange.declare-ok"])
        return peer.say(name, channel.number)
    return None


@breaks("CH-CLOSE-SILENT")
def method_behind_a_close_of_the_channel(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        assert isinstance(peer, Client)
        peer.close_channel(channel)
        return peer.say("channel.flow", channel.number, active=True)
    return None


@breaks("CH-CLOSEOK-UNSOLICITED")
def close_ok_of_no_channel_close(peer: Peer091) -> Said | None:
    for channel in channels(peer):
        return peer.say("channel.close-ok", channel.number)
    return None


@breaks("CH-CLOSEOK-LAST")
def method_behind_a_close_ok(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and working(peer):
        for channel in list(peer.channels.values()):
            if channel.asked_to_close and not channel.closing and channel.number not in peer.parts:
                peer.channel_close_ok(channel)
                return peer.say("basic.qos", channel.number, prefetch_count=1)
    return None


@breaks("CH-CLOSE-SOFT-CODE")
def channel_closed_by_a_hard_error(peer: Peer091) -> Said | None:
    for channel in of_broker(peer):
        channel.closing = True
        return peer.say("channel.close", channel.number, reply_code=320, reply_text="CONNECTION_FORCED")
    return None


@breaks("CH-FLOW-OK-VALUE")
def flow_ok_of_the_opposite(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and working(peer):
        for channel in peer.channels.values():
            if channel.flow_asked and channel.number not in peer.parts and not channel.asked_to_close:
                active = channel.flow_asked.pop(0)
                return peer.say("channel.flow-ok", channel.number, active=not active)
    return None


# ---- queues and consumers ---------------------------------------------------------------------------------


@breaks("B-CTAG-UNIQUE")
def consumer_tag_in_use(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        assert isinstance(peer, Client)
        for tag, (queue, _) in channel.consumers.items():
            if tag not in channel.cancelling and queue in peer.queues:
                return peer.say("basic.consume", channel.number, queue=queue, consumer_tag=tag)
    return None


@breaks("B-CANCEL-CTAG")
def cancel_of_no_consumer(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        return peer.say("basic.cancel", channel.number, consumer_tag="nobody")
    return None


def no_queue(rule: str, name: str, **fields: Any) -> None:
    """An empty name on a channel where no queue was declared."""

    def fault(peer: Peer091) -> Said | None:
        for channel in of_client(peer):
            reported = [said.name for said in peer.talk.said[CLIENT] if said.channel == channel.number]
            if "queue.declare" not in reported:
                return peer.say(name, channel.number, queue="", **fields)
        return None

    fault.__name__ = f"{name.replace('.', '_')}_of_no_queue"
    breaks(rule)(fault)


no_queue("B-CONSUME-QKNOWN", "basic.consume")
no_queue("B-GET-QKNOWN", "basic.get")
no_queue("Q-PURGE-QKNOWN", "queue.purge")
no_queue("Q-DELETE-QKNOWN", "queue.delete")


def answering(peer: Peer091, name: str) -> list[tuple[BrokerChannel, Said]]:
    """Channels whose next request to be answered is this, and the request."""
    if not isinstance(peer, Broker) or not working(peer):
        return []
    return [
        (channel, channel.todo[0][0])
        for channel in peer.channels.values()
        if channel.opened and not channel.closing and channel.number not in peer.parts
        if channel.todo and channel.todo[0][0].name == name
        if not channel.todo[0][0].fields.get("no_wait")
    ]


@breaks("Q-DECLOK-NAME")
def another_queue_declared(peer: Peer091) -> Said | None:
    for channel, said in answering(peer, "queue.declare"):
        if said.fields["queue"] and not said.fields.get("passive"):
            channel.todo.popleft()
            return peer.say("queue.declare-ok", channel.number, queue="another")
    return None


@breaks("Q-DECL-GENNAME")
def empty_name_answered_without_a_name(peer: Peer091) -> Said | None:
    for channel, said in answering(peer, "queue.declare"):
        if not said.fields["queue"]:
            channel.todo.popleft()
            return peer.say("queue.declare-ok", channel.number, queue="")
    return None


@breaks("B-CTAG-ECHO")
def another_consumer_tag(peer: Peer091) -> Said | None:
    for channel, said in answering(peer, "basic.consume"):
        if said.fields.get("consumer_tag"):
            channel.todo.popleft()
            return peer.say("basic.consume-ok", channel.number, consumer_tag="another")
    return None


@breaks("B-CANCELOK-TAG")
def another_consumer_cancelled(peer: Peer091) -> Said | None:
    for channel, _ in answering(peer, "basic.cancel"):
        channel.todo.popleft()
        return peer.say("basic.cancel-ok", channel.number, consumer_tag="another")
    return None


@breaks("T-RESERVED-GETEMPTY")
def cluster_in_get_empty(peer: Peer091) -> Said | None:
    for channel, _ in answering(peer, "basic.get"):
        channel.todo.popleft()
        return peer.say("basic.get-empty", channel.number, reserved_1="cluster")
    return None


@breaks("B-CANCEL-NOTIFY-CAP")
def cancel_unasked(peer: Peer091) -> Said | None:
    for channel in of_broker(peer):
        assert isinstance(peer, Broker)
        if "consumer_cancel_notify" not in peer.client_capabilities and channel.consumers:
            tag = next(iter(channel.consumers))
            return peer.say("basic.cancel", channel.number, consumer_tag=tag, no_wait=True)
    return None


# ---- deliveries -------------------------------------------------------------------------------------------


def delivery(peer: Peer091, channel: BrokerChannel, tag: str, **fields: Any) -> Said:
    """A delivery of somebody else's message."""
    channel.tag += 1
    given: Fields = {"consumer_tag": tag, "delivery_tag": channel.tag, "routing_key": "orders"}
    said = peer.say("basic.deliver", channel.number, **{**given, **fields})
    peer.say("content-header", channel.number, body_size=7)
    peer.say("body", channel.number, b"planted")
    return said


def free_consumers(peer: Peer091) -> list[tuple[BrokerChannel, str]]:
    """Consumers to which anything may be delivered; the tags of replies do not count."""
    return [
        (channel, tag)
        for channel in of_broker(peer)
        for tag, consumer in channel.consumers.items()
        if consumer.no_ack and not consumer.queue.startswith(REPLIES) and channel.flowing
    ]


@breaks("B-DELIVER-CTAG")
def delivery_to_nobody(peer: Peer091) -> Said | None:
    for channel in of_broker(peer):
        if channel.flowing and not channel.unacked and not channel.acked:
            return delivery(peer, channel, "nobody")
    return None


@breaks("B-DTAG-NONZERO")
def delivery_tag_zero(peer: Peer091) -> Said | None:
    for channel, tag in free_consumers(peer):
        return delivery(peer, channel, tag, delivery_tag=0)
    return None


@breaks("B-DTAG-INCREASING")
def delivery_tag_again(peer: Peer091) -> Said | None:
    for channel, tag in free_consumers(peer):
        if channel.tag:
            return delivery(peer, channel, tag, delivery_tag=channel.tag)
    return None


@breaks("B-QOS-COUNT")
def more_than_prefetch(peer: Peer091) -> Said | None:
    for channel in of_broker(peer):
        assert isinstance(peer, Broker)
        for tag, consumer in channel.consumers.items():
            own = sum(one.consumer == tag for one in channel.outstanding())
            limited = consumer.prefetch and not consumer.no_ack and own >= consumer.prefetch
            if limited and peer.talk.product == RABBITMQ and channel.flowing:
                return delivery(peer, channel, tag)
    return None


# ---- acknowledgements -------------------------------------------------------------------------------------


@breaks("B-ACK-KNOWN")
def ack_of_no_delivery(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        return peer.say("basic.ack", channel.number, delivery_tag=NEVER)
    return None


@breaks("B-REJECT-KNOWN")
def reject_of_no_delivery(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        return peer.say("basic.reject", channel.number, delivery_tag=NEVER)
    return None


@breaks("B-NACK-KNOWN")
def nack_of_no_delivery(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        assert isinstance(peer, Client)
        if "basic.nack" in peer.server_capabilities:
            return peer.say("basic.nack", channel.number, delivery_tag=NEVER)
    return None


@breaks("B-NACK-CAP")
def nack_that_is_not_offered(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        assert isinstance(peer, Client)
        if "basic.nack" not in peer.server_capabilities and channel.unsettled and not channel.mode:
            tag = channel.unsettled.pop()
            return peer.say("basic.nack", channel.number, delivery_tag=tag)
    return None


@breaks("B-ACK-ZERO")
def ack_of_tag_zero(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        return peer.say("basic.ack", channel.number, delivery_tag=0)
    return None


@breaks("B-REJECT-ZERO")
def reject_of_tag_zero(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        return peer.say("basic.reject", channel.number, delivery_tag=0)
    return None


def said_since_open(peer: Peer091, channel: Channel, *names: str) -> list[Said]:
    """What this peer said on a channel since it was opened."""
    reported: list[Said] = []
    for said in peer.talk.said[peer.side]:
        if said.channel == channel.number:
            if said.name == "channel.open":
                reported = []
            elif said.name in names:
                reported.append(said)
    return reported


@breaks("B-ACK-DUP")
def ack_again(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        if channel.mode == "tx" or said_since_open(peer, channel, "tx.select", "basic.recover"):
            continue
        tags = [
            said.fields["delivery_tag"]
            for said in said_since_open(peer, channel, "basic.ack")
            if said.fields["delivery_tag"]
        ]
        if tags and tags[-1] not in channel.unsettled:
            return peer.say("basic.ack", channel.number, delivery_tag=tags[-1])
    return None


@breaks("B-RECOVER-REQUEUE0")
def recover_without_requeue(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        if peer.talk.product == RABBITMQ and not channel.mode and not channel.unsettled:
            return peer.say("basic.recover", channel.number, requeue=False)
    return None


# ---- confirms and transactions ----------------------------------------------------------------------------


def _not_selected(rule: str, name: str) -> None:
    def fault(peer: Peer091) -> Said | None:
        for channel in of_client(peer):
            if channel.mode != "tx":
                return peer.say(name, channel.number)
        return None

    fault.__name__ = f"{name.replace('.', '_')}_without_select"
    breaks(rule)(fault)


_not_selected("TX-COMMIT-SELECTED", "tx.commit")
_not_selected("TX-ROLLBACK-SELECTED", "tx.rollback")


@breaks("TX-CONFIRM-EXCL")
def transaction_on_a_channel_that_confirms(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        if channel.mode == "confirm":
            return peer.say("tx.select", channel.number)
    return None


@breaks("CF-TX-EXCL")
def confirms_on_a_channel_with_transactions(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        assert isinstance(peer, Client)
        if channel.mode == "tx" and "publisher_confirms" in peer.server_capabilities:
            return peer.say("confirm.select", channel.number)
    return None


@breaks("CF-SELECT-CAP")
def confirms_that_are_not_offered(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        assert isinstance(peer, Client)
        if "publisher_confirms" not in peer.server_capabilities and not channel.mode:
            return peer.say("confirm.select", channel.number)
    return None


@breaks("TX-PENDING-COMMIT")
def publish_behind_a_commit(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            if channel.mode == "tx":
                peer.ask(channel, "tx.commit")
                said = publish(peer, channel)
                peer.say("content-header", channel.number, body_size=0)
                return said
    return None


@breaks("CF-MODE")
def confirm_that_nobody_wants(peer: Peer091) -> Said | None:
    for channel in of_broker(peer):
        if channel.mode != "confirm":
            return peer.say("basic.ack", channel.number, delivery_tag=1)
    return None


@breaks("CF-SEQ-RANGE")
def confirm_of_no_publish(peer: Peer091) -> Said | None:
    for channel in of_broker(peer):
        if channel.mode == "confirm":
            return peer.say("basic.ack", channel.number, delivery_tag=channel.published + 1)
    return None


@breaks("CF-TAG-NONZERO")
def confirm_of_tag_zero(peer: Peer091) -> Said | None:
    for channel in of_broker(peer):
        if channel.mode == "confirm" and channel.unconfirmed:
            return peer.say("basic.ack", channel.number, delivery_tag=0, multiple=True)
    return None


@breaks("CF-ONCE")
def confirmed_again(peer: Peer091) -> Said | None:
    for channel in of_broker(peer):
        if channel.mode != "confirm":
            continue
        done = [n for n in range(1, channel.published + 1) if n not in channel.unconfirmed]
        reported = peer.talk.said[1]
        acked = [
            s.fields["delivery_tag"]
            for s in reported
            if s.name == "basic.ack" and s.channel == channel.number
        ]
        if done and acked and acked[-1] in done:
            return peer.say("basic.ack", channel.number, delivery_tag=acked[-1])
    return None


def unroutable(peer: Peer091, number: int) -> Said:
    """A message that no queue takes comes back on a channel."""
    said = peer.say(
        "basic.return",
        number,
        reply_code=312,
        reply_text="NO_ROUTE",
        exchange="",
        routing_key="planted",
    )
    peer.say("content-header", number, body_size=0)
    return said


@breaks("B-RETURN-FLAGGED")
def return_that_nobody_wants(peer: Peer091) -> Said | None:
    for channel in of_broker(peer):
        mandatory = [
            said
            for said in peer.talk.said[CLIENT]
            if said.channel == channel.number
            if said.fields.get("mandatory") or said.fields.get("immediate")
        ]
        if not mandatory:
            return unroutable(peer, channel.number)
    return None


@breaks("B-RETURN-CODE")
def return_with_another_code(peer: Peer091) -> Said | None:
    if not isinstance(peer, Broker) or not working(peer):
        return None
    for channel in peer.channels.values():
        if not channel.todo or channel.closing or channel.mode == "tx" or channel.number in peer.parts:
            continue
        said, content = channel.todo[0]
        key = said.fields.get("routing_key")
        if (
            content is not None
            and said.fields.get("mandatory")
            and said.fields["exchange"] == ""
            and not said.fields["immediate"]
        ):
            if key not in peer.queues:
                channel.todo.popleft()
                returned = peer.say(
                    "basic.return",
                    channel.number,
                    reply_code=313,
                    reply_text="NO_CONSUMERS",
                    exchange="",
                    routing_key=key,
                )
                properties = content.properties or {}
                peer.say("content-header", channel.number, **properties, body_size=len(content.body))
                if content.body:
                    room = peer.frame_max - 8 if peer.frame_max else len(content.body)
                    for at in range(0, len(content.body), room):
                        peer.say("body", channel.number, content.body[at : at + room])
                return returned
    return None


# ---- more of them -----------------------------------------------------------------------------------------

import support.consumer_faults091  # noqa: E402, F401

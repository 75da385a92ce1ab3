"""More faults for `support.faults091`: about consumers, what is delivered to them, and the end of things."""

from __future__ import annotations

from typing import Any

from support import amqp091_encode as amqp
from support.broker091 import Broker
from support.broker091 import Channel as BrokerChannel
from support.client091 import REPLIES, Client
from support.faults091 import (
    NEVER,
    answering,
    breaks,
    channels,
    content_frames,
    delivery,
    no_queue,
    of_broker,
    of_client,
    publish,
    publishing,
    raw,
    request,
    said_since_open,
    unroutable,
    working,
)
from support.legal import CLIENT, SERVER, Said
from support.peer091 import OTHER, Peer091

# ---- names and tables -------------------------------------------------------------------------------------

request("exchange.delete", "T-XNAME-LEN", exchange="x" * 128)
request("exchange.delete", "T-XNAME-RE", exchange="two words")
request("queue.delete", "T-QNAME-LEN", queue="q" * 128)
request("queue.delete", "T-QNAME-RE", queue="two words")
no_queue("Q-BIND-QKNOWN", "queue.bind", exchange="amq.direct")
no_queue("Q-UNBIND-QKNOWN", "queue.unbind", exchange="amq.direct")


@breaks("T-TABLE-TAG")
def unknown_tag_in_a_table(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        payload = amqp.method("queue.declare", queue="limited")[:-4] + amqp.long_string(b"\x01aZ")
        return raw(peer, amqp.frame(amqp.METHOD, channel.number, payload), channel.number)
    return None


@breaks("F-BODY-ZERO")
def body_of_an_empty_content(peer: Peer091) -> Said | None:
    if isinstance(peer, Client):
        for channel in publishing(peer):
            publish(peer, channel)
            content_frames(peer, channel, amqp.content_header(0))
            return peer.say("body", channel.number, b"x")
    return None


@breaks("T-RESERVED-XDECL")
def exchange_that_deletes_itself(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        if peer.talk.product == OTHER:
            fields: dict[str, Any] = {"exchange": "odd", "type": "direct", "reserved_2": True}
            return peer.say("exchange.declare", channel.number, **fields)
    return None


@breaks("T-RESERVED-CHAN")
def channel_opened_out_of_band(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and working(peer):
        number = peer.free_number()
        if number is not None and number != peer.channel_max:
            return peer.say("channel.open", number, reserved_1="x")
    return None


# ---- the connection and its channels ----------------------------------------------------------------------


@breaks("C-SECUREOK-RESPONSE-NOTNULL")
def empty_response(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and peer.to_answer == "connection.secure":
        peer.to_answer = ""
        return peer.say("connection.secure-ok", response=b"")
    return None


@breaks("C-START-FIRST")
def tune_instead_of_start(peer: Peer091) -> Said | None:
    if isinstance(peer, Broker) and peer.header_heard and not peer.started:
        peer.started = True
        return peer.say("connection.tune", channel_max=2047, frame_max=131072)
    return None


@breaks("C-AUTHFAIL-CAP")
def refusal_reported_unasked(peer: Peer091) -> Said | None:
    if isinstance(peer, Broker) and peer.todo and peer.todo[0].name == "connection.start-ok":
        capabilities = peer.todo[0].fields["client_properties"].get("capabilities", {})
        if "authentication_failure_close" not in capabilities:
            peer.close(403, "ACCESS_REFUSED - Login was refused", "connection.start-ok")
            return peer.talk.said[SERVER][-1]
    return None


@breaks("C-UPDATE-SECRET")
def second_secret_at_once(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and working(peer) and not peer.secret_asked:
        peer.update_secret()
        return peer.say("connection.update-secret", new_secret=b"another", reason="r")
    return None


@breaks("C-CLOSEOK-LAST")
def method_behind_the_last_word(peer: Peer091) -> Said | None:
    if isinstance(peer, Client) and peer.close_heard and not peer.close_sent and not peer.finished:
        open_ones = [number for number, channel in peer.channels.items() if channel.opened]
        if open_ones and not peer.parts:
            peer.close_ok()
            return peer.say("channel.flow", open_ones[0], active=True)
    return None


@breaks("CH-REUSE")
def channel_opened_before_its_close_is_answered(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        assert isinstance(peer, Client)
        peer.close_channel(channel)
        return peer.say("channel.open", channel.number)
    return None


@breaks("CH-NOWAIT-SILENT")
def answer_that_nobody_wants(peer: Peer091) -> Said | None:
    if not isinstance(peer, Broker) or not working(peer):
        return None
    for channel in peer.channels.values():
        if not channel.todo or channel.closing or channel.number in peer.parts:
            continue
        said, _ = channel.todo[0]
        if said.fields.get("no_wait") and said.name in ("queue.bind", "exchange.declare", "confirm.select"):
            channel.todo.popleft()
            return peer.say(f"{said.name}-ok", channel.number)
    return None


@breaks("CH-FLOW-STOP")
def publish_on_a_stopped_channel(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        assert isinstance(peer, Client)
        if not channel.flowing and not peer.blocked:
            said = publish(peer, channel)
            peer.say("content-header", channel.number, body_size=0)
            return said
    return None


@breaks("X-BIND-CAP")
def exchanges_bound_unasked(peer: Peer091) -> Said | None:
    return _bound(peer, offered=False, source="amq.fanout")


@breaks("X-BIND-DEFAULT")
def default_exchange_bound(peer: Peer091) -> Said | None:
    return _bound(peer, offered=True, source="")


def _bound(peer: Peer091, *, offered: bool, source: str) -> Said | None:
    for channel in of_client(peer):
        assert isinstance(peer, Client)
        if ("exchange_exchange_bindings" in peer.server_capabilities) == offered:
            fields = {"destination": "amq.direct", "source": source, "routing_key": "k"}
            return peer.say("exchange.bind", channel.number, **fields)
    return None


# ---- consumers --------------------------------------------------------------------------------------------


@breaks("B-CTAG-CHANNEL")
def consumer_of_another_channel_cancelled(peer: Peer091) -> Said | None:
    usable = of_client(peer)
    for channel in usable:
        for other in usable:
            reported = said_since_open(peer, other, "basic.consume")
            for tag in channel.consumers:
                if tag not in {said.fields.get("consumer_tag") for said in reported} | other.consumers.keys():
                    return peer.say("basic.cancel", other.number, consumer_tag=tag)
    return None


@breaks("B-REPLYTO-ONE")
def second_consumer_of_replies(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        assert isinstance(peer, Client)
        tag = peer.reply_tag(channel)
        if tag is not None and tag not in channel.cancelling:
            fields = {"queue": REPLIES, "consumer_tag": "another", "no_ack": True}
            return peer.say("basic.consume", channel.number, **fields)
    return None


@breaks("B-CTAG-GEN")
def no_consumer_tag_made_up(peer: Peer091) -> Said | None:
    for channel, said in answering(peer, "basic.consume"):
        if not said.fields.get("consumer_tag"):
            channel.todo.popleft()
            return peer.say("basic.consume-ok", channel.number, consumer_tag="")
    return None


@breaks("B-DELIVER-EARLY")
def delivery_before_consume_ok(peer: Peer091) -> Said | None:
    for channel, said in answering(peer, "basic.consume"):
        tag = said.fields.get("consumer_tag")
        used = [
            one.fields["consumer_tag"] for one in peer.talk.said[SERVER] if one.name == "basic.consume-ok"
        ]
        if tag and tag not in used and channel.flowing:
            return delivery(peer, channel, tag)
    return None


def gone(peer: Peer091, name: str) -> list[tuple[BrokerChannel, str]]:
    """Consumers that this method of the broker's ended, and that were not there again since."""
    found = []
    for channel in of_broker(peer):
        tags: dict[str, bool] = {}
        for said in peer.talk.said[SERVER]:
            if said.channel != channel.number:
                continue
            if said.name == "channel.open-ok":
                tags.clear()
            elif said.name == name:
                tags[said.fields["consumer_tag"]] = True
            elif said.name in ("basic.consume-ok", "basic.cancel-ok", "basic.cancel"):
                tags.pop(said.fields["consumer_tag"], None)
        asked = [
            said.fields.get("consumer_tag")
            for said in peer.talk.said[CLIENT]
            if said.name == "basic.consume" and said.channel == channel.number
        ]
        found += [(channel, tag) for tag in tags if channel.flowing and asked.count(tag) == 1]
    return found


@breaks("B-DELIVER-LATE")
def delivery_behind_cancel_ok(peer: Peer091) -> Said | None:
    for channel, tag in gone(peer, "basic.cancel-ok"):
        return delivery(peer, channel, tag)
    return None


@breaks("B-CANCEL-NOTIFY-LAST")
def delivery_behind_a_cancel(peer: Peer091) -> Said | None:
    for channel, tag in gone(peer, "basic.cancel"):
        return delivery(peer, channel, tag)
    return None


@breaks("B-CANCEL-NOTIFY-REPLY")
def cancel_answered(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        last = [said for said in peer.talk.said[SERVER] if said.channel == channel.number][-1]
        if last.name == "basic.cancel" and last.fields["no_wait"]:
            return peer.say("basic.cancel-ok", channel.number, consumer_tag=last.fields["consumer_tag"])
    return None


# ---- acknowledgements, confirms and returns ---------------------------------------------------------------


@breaks("B-ACK-NOACK")
def ack_of_what_needs_none(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        tags: list[tuple[int, str]] = []
        for said in peer.talk.said[SERVER]:
            if said.channel == channel.number:
                if said.name == "channel.open-ok":
                    tags.clear()
                elif said.name == "basic.deliver":
                    tags.append((said.fields["delivery_tag"], said.fields["consumer_tag"]))
        for tag, consumer in tags:
            queue, no_ack = channel.consumers.get(consumer, ("", False))
            if no_ack and queue != REPLIES and consumer not in channel.used_tags:
                return peer.say("basic.ack", channel.number, delivery_tag=tag)
    return None


@breaks("B-ACK-MULTIPLE")
def multiple_ack_of_a_settled_one(peer: Peer091) -> Said | None:
    for channel in of_client(peer):
        if channel.mode == "tx" or said_since_open(peer, channel, "tx.select", "basic.recover"):
            continue
        single = [
            said.fields["delivery_tag"]
            for said in said_since_open(peer, channel, "basic.ack")
            if said.fields["delivery_tag"]
        ]
        for tag in single:
            if tag not in channel.unsettled and any(one < tag for one in channel.unsettled):
                return peer.say("basic.ack", channel.number, delivery_tag=tag, multiple=True)
    return None


@breaks("CF-EXCLUSIVE")
def confirmed_both_ways(peer: Peer091) -> Said | None:
    for channel in of_broker(peer):
        if channel.mode == "confirm" and channel.unconfirmed:
            tag = channel.unconfirmed.pop()
            peer.say("basic.nack", channel.number, delivery_tag=tag)
            return peer.say("basic.ack", channel.number, delivery_tag=tag)
    return None


@breaks("B-RETURN-MATCH")
def return_of_what_was_never_published(peer: Peer091) -> Said | None:
    for channel in of_broker(peer):
        flagged = returned = 0
        for one in peer.talk.said[CLIENT]:
            if one.channel == channel.number:
                if one.name == "channel.open":
                    flagged = 0
                elif one.fields.get("mandatory") or one.fields.get("immediate"):
                    flagged += 1
        for one in peer.talk.said[SERVER]:
            if one.channel == channel.number:
                if one.name == "channel.open-ok":
                    returned = 0
                elif one.name == "basic.return":
                    returned += 1
        under_way = channel.number in peer.talk.peers[CLIENT].parts
        if channel.mode != "tx" and flagged > returned and not under_way:
            return unroutable(peer, channel.number)
    return None


@breaks("B-NACK-KNOWN")
def nack_of_everything_up_to_no_delivery(peer: Peer091) -> Said | None:
    for channel in channels(peer):
        if isinstance(peer, Client) and "basic.nack" in peer.server_capabilities:
            return peer.say("basic.nack", channel.number, delivery_tag=NEVER, multiple=True)
    return None

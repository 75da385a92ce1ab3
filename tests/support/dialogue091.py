"""Two AMQP 0-9-1 peers talk: a conversation written as the dialogue it is, captured as packets for tests.

    d = Dialogue091()
    client, server = d.client, d.server
    d.opened()                                          # header, start, tune, open, as RabbitMQ and pika do
    d.channel(1)
    d.declare("q")                                      # a method and its answer
    client.publish(b"hello", routing_key="q")           # method, content header and body frames
    d.consume("q", consumer_tag="c")
    server.deliver(b"hello")                            # delivery tags count up by themselves
    client.ack()
    client.method("queue.bind", queue="q", exchange="amq.topic", routing_key="k", no_wait=True)
    with d.on_their_way():                              # neither has heard what the other says in here
        server.close_channel(404, "NOT_FOUND", cause="basic.publish")
        client.publish()
    client.say(b"\\x01")                                 # any octets
    d.goodbye()
    d.pcap()

Each word says one method or one content, in a packet of its own, with what a correct peer would put into it;
an argument that is named replaces what it would be. Nothing keeps a peer from saying what it may not. Methods
without a word of their own are said with `method`; `d.ask` says one and its answer. What goes in parts for
the sake of a fault has words of its own: `publish_method`, `content_header`, `body`.

Labels, for cuts: the words of `d.opened()`, `d.channel()` and `d.ask()` are called by the names of their
methods ("connection.tune", "channel.open", "queue.declare-ok"), the protocol header "header".

What was heard of it, what was captured, and what a `Said` is: `support.conversation`. That a peer must have
read something only what it says itself can show: a method and its answer, an ack and the delivery it names.
"""

from __future__ import annotations

from typing import Any

from support import amqp091_encode as amqp
from support.conversation import Conversation, Said, Speaker
from support.tcp_writer import End

__all__ = ["CLIENT_CAPABILITIES", "SERVER_CAPABILITIES", "Dialogue091", "Peer091"]

CLIENT_CAPABILITIES = (
    "authentication_failure_close",
    "basic.nack",
    "connection.blocked",
    "consumer_cancel_notify",
    "exchange_exchange_bindings",
    "publisher_confirms",
)

SERVER_CAPABILITIES = (
    "publisher_confirms",
    "exchange_exchange_bindings",
    "basic.nack",
    "consumer_cancel_notify",
    "connection.blocked",
    "consumer_priorities",
    "authentication_failure_close",
    "per_consumer_qos",
    "direct_reply_to",
)

# What the answer to a method repeats of it.
_REPEATED = {
    "queue.declare": "queue",
    "basic.consume": "consumer_tag",
    "basic.cancel": "consumer_tag",
    "channel.flow": "active",
}


class Peer091(Speaker):
    """One of the two, and what it has counted so far."""

    other: Peer091
    dialogue: Dialogue091

    def __init__(self, dialogue: Dialogue091, name: str, end: End) -> None:
        super().__init__(dialogue, name, end)
        self.delivery_tags: dict[int, int] = {}  # channel: the last one that it gave out
        self.published: dict[int, int] = {}  # channel: contents since confirm.select

    # ---- frames ------------------------------------------------------------------------------------------

    def header(self, protocol: int = 0, major: int = 0, minor: int = 9, revision: int = 1) -> Said:
        return self.say(amqp.header(protocol, major, minor, revision))

    def frame(self, kind: int, channel: int, payload: bytes, **more: Any) -> Said:
        """A frame around any payload; `size` and `end` to tell another size or end."""
        return self.say(amqp.frame(kind, channel, payload, **more))

    def method(self, name: str, channel: int | None = None, **arguments: Any) -> Said:
        """Any method; those of the connection go on channel 0, others on channel 1 unless reported."""
        return self.say(self._method(name, channel, arguments))

    def heartbeat(self, channel: int = 0, payload: bytes = b"") -> Said:
        return self.frame(amqp.HEARTBEAT, channel, payload)

    def _method(self, name: str, channel: int | None, arguments: dict[str, Any]) -> bytes:
        if channel is None:
            channel = 0 if name.startswith("connection.") else 1
        if name == "channel.open":
            self.other.delivery_tags.pop(channel, None)
            self.published.pop(channel, None)
        elif name == "confirm.select":
            self.published.setdefault(channel, 0)
        payload = amqp.method(name, dialect=self.dialogue.dialect, **arguments)
        return amqp.frame(amqp.METHOD, channel, payload)

    def _content(
        self,
        method: bytes,
        body: bytes,
        channel: int,
        frame_max: int | None,
        properties: dict[str, Any],
    ) -> Said:
        limit = self.dialogue.frame_max if frame_max is None else frame_max
        header_and_body = amqp.content(
            channel, body, limit or len(body) + 8, dialect=self.dialogue.dialect, **properties
        )
        return self.say(method + header_and_body)

    # ---- the connection ----------------------------------------------------------------------------------

    def start(
        self,
        *,
        product: str | None = None,
        capabilities: tuple[str, ...] | None = SERVER_CAPABILITIES,
        properties: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> Said:
        """connection.start of RabbitMQ, unless the dialogue has another product; but it names its host, too.

        capabilities   those that it says it has; None: it tells of none
        properties     further ones of server-properties; None as a value leaves out one of these here
        """
        given: dict[str, Any] = {
            "capabilities": _capabilities(capabilities),
            "cluster_name": "rabbit@broker",
            "copyright": "Copyright (c) 2007-2022 VMware, Inc. or its affiliates.",
            "host": "broker",
            "information": "Licensed under the MPL 2.0. Website: https://rabbitmq.com",
            "platform": "Erlang/OTP 25.2.3",
            "product": product or self.dialogue.product,
            "version": "3.10.8",
        }
        return self.method(
            "connection.start",
            **{
                "version_minor": 9,
                "server_properties": _present({**given, **(properties or {})}),
                "mechanisms": "AMQPLAIN PLAIN",
                "locales": "en_US",
                **arguments,
            },
        )

    def start_ok(
        self,
        *,
        capabilities: tuple[str, ...] | None = CLIENT_CAPABILITIES,
        properties: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> Said:
        """connection.start-ok of pika, which tells its copyright, too; as `start`."""
        given: dict[str, Any] = {
            "product": "Pika Python Client Library",
            "platform": "Python 3.11.7",
            "capabilities": _capabilities(capabilities),
            "copyright": "Its authors",
            "information": "See https://pika.rtfd.org",
            "version": "1.3.2",
        }
        return self.method(
            "connection.start-ok",
            **{
                "client_properties": _present({**given, **(properties or {})}),
                "mechanism": "PLAIN",
                "response": b"\0guest\0guest",
                "locale": "en_US",
                **arguments,
            },
        )

    def secure(self, challenge: bytes = b"challenge", **arguments: Any) -> Said:
        return self.method("connection.secure", challenge=challenge, **arguments)

    def secure_ok(self, response: bytes = b"response", **arguments: Any) -> Said:
        return self.method("connection.secure-ok", response=response, **arguments)

    def tune(
        self, channel_max: int = 2047, frame_max: int = 131072, heartbeat: int = 0, **arguments: Any
    ) -> Said:
        self.dialogue.tuned = {"channel_max": channel_max, "frame_max": frame_max, "heartbeat": heartbeat}
        return self.method("connection.tune", **self.dialogue.tuned, **arguments)

    def tune_ok(self, channel: int = 0, **arguments: Any) -> Said:
        """It takes what the server offered, unless something else is named; contents go by its frame-max."""
        given = {**self.dialogue.tuned, **arguments}
        self.dialogue.frame_max = given["frame_max"]
        return self.method("connection.tune-ok", channel, **given)

    def open_connection(self, virtual_host: str = "/", **arguments: Any) -> Said:
        return self.method("connection.open", **{"virtual_host": virtual_host, **arguments})

    def connection_open_ok(self, **arguments: Any) -> Said:
        return self.method("connection.open-ok", **arguments)

    def close_connection(
        self, code: int = 200, text: str = "Normal shutdown", cause: str = "", **arguments: Any
    ) -> Said:
        """cause: the method (as "basic.publish") that its class-id and method-id name."""
        return self.method("connection.close", **_reason(code, text, cause), **arguments)

    def connection_close_ok(self, **arguments: Any) -> Said:
        return self.method("connection.close-ok", **arguments)

    def blocked(self, reason: str = "low on memory") -> Said:
        return self.method("connection.blocked", reason=reason)

    def unblocked(self) -> Said:
        return self.method("connection.unblocked")

    # ---- channels ----------------------------------------------------------------------------------------

    def open_channel(self, channel: int = 1, **arguments: Any) -> Said:
        return self.method("channel.open", channel, **arguments)

    def channel_open_ok(self, channel: int = 1, **arguments: Any) -> Said:
        return self.method("channel.open-ok", channel, **arguments)

    def close_channel(
        self,
        code: int = 200,
        text: str = "Normal shutdown",
        cause: str = "",
        channel: int = 1,
        **arguments: Any,
    ) -> Said:
        return self.method("channel.close", channel, **_reason(code, text, cause), **arguments)

    def channel_close_ok(self, channel: int = 1, **arguments: Any) -> Said:
        return self.method("channel.close-ok", channel, **arguments)

    def flow(self, active: bool, channel: int = 1) -> Said:
        return self.method("channel.flow", channel, active=active)

    def flow_ok(self, active: bool, channel: int = 1) -> Said:
        return self.method("channel.flow-ok", channel, active=active)

    # ---- contents ----------------------------------------------------------------------------------------

    def publish(
        self,
        body: bytes = b"hello",
        exchange: str = "",
        routing_key: str = "q",
        channel: int = 1,
        *,
        mandatory: bool = False,
        immediate: bool = False,
        frame_max: int | None = None,
        **properties: Any,
    ) -> Said:
        """basic.publish, content header and body frames, in one go; by the agreed frame-max unless
        reported."""
        method = self._publish(exchange, routing_key, channel, mandatory, immediate)
        return self._content(method, body, channel, frame_max, properties)

    def publish_method(
        self,
        exchange: str = "",
        routing_key: str = "q",
        channel: int = 1,
        *,
        mandatory: bool = False,
        immediate: bool = False,
    ) -> Said:
        """Only the method of a publish."""
        return self.say(self._publish(exchange, routing_key, channel, mandatory, immediate))

    def _publish(
        self, exchange: str, routing_key: str, channel: int, mandatory: bool, immediate: bool
    ) -> bytes:
        if channel in self.published:
            self.published[channel] += 1
        arguments = {
            "exchange": exchange,
            "routing_key": routing_key,
            "mandatory": mandatory,
            "immediate": immediate,
        }
        return self._method("basic.publish", channel, arguments)

    def content_header(self, body_size: int, channel: int = 1, **properties: Any) -> Said:
        """Only a content header; further `class_id`, `weight`."""
        payload = amqp.content_header(body_size, dialect=self.dialogue.dialect, **properties)
        return self.frame(amqp.HEADER, channel, payload)

    def body(self, octets: bytes, channel: int = 1) -> Said:
        """Only a body frame."""
        return self.frame(amqp.BODY, channel, octets)

    def deliver(
        self,
        body: bytes = b"hello",
        consumer_tag: str = "c",
        delivery_tag: int | None = None,
        channel: int = 1,
        *,
        redelivered: bool = False,
        exchange: str = "",
        routing_key: str = "q",
        frame_max: int | None = None,
        **properties: Any,
    ) -> Said:
        """basic.deliver and its content, with the channel's next delivery tag unless one is given."""
        method = self._deliver(consumer_tag, delivery_tag, channel, redelivered, exchange, routing_key)
        return self._content(method, body, channel, frame_max, properties)

    def deliver_method(
        self,
        consumer_tag: str = "c",
        delivery_tag: int | None = None,
        channel: int = 1,
        *,
        redelivered: bool = False,
        exchange: str = "",
        routing_key: str = "q",
    ) -> Said:
        """Only the method of a delivery."""
        return self.say(
            self._deliver(consumer_tag, delivery_tag, channel, redelivered, exchange, routing_key)
        )

    def _deliver(
        self,
        consumer_tag: str,
        delivery_tag: int | None,
        channel: int,
        redelivered: bool,
        exchange: str,
        routing_key: str,
    ) -> bytes:
        arguments = {
            "consumer_tag": consumer_tag,
            "delivery_tag": self._next_tag(channel, delivery_tag),
            "redelivered": redelivered,
            "exchange": exchange,
            "routing_key": routing_key,
        }
        return self._method("basic.deliver", channel, arguments)

    def _next_tag(self, channel: int, given: int | None) -> int:
        tag = self.delivery_tags.get(channel, 0) + 1 if given is None else given
        self.delivery_tags[channel] = tag
        return tag

    def get(self, queue: str = "q", channel: int = 1, **arguments: Any) -> Said:
        return self.method("basic.get", channel, queue=queue, **arguments)

    def get_ok(
        self,
        body: bytes = b"hello",
        delivery_tag: int | None = None,
        channel: int = 1,
        *,
        redelivered: bool = False,
        exchange: str = "",
        routing_key: str = "q",
        message_count: int = 0,
        frame_max: int | None = None,
        **properties: Any,
    ) -> Said:
        """basic.get-ok and its content; it counts delivery tags together with `deliver`."""
        arguments = {
            "delivery_tag": self._next_tag(channel, delivery_tag),
            "redelivered": redelivered,
            "exchange": exchange,
            "routing_key": routing_key,
            "message_count": message_count,
        }
        method = self._method("basic.get-ok", channel, arguments)
        return self._content(method, body, channel, frame_max, properties)

    def get_empty(self, channel: int = 1) -> Said:
        return self.method("basic.get-empty", channel)

    def return_content(
        self,
        body: bytes = b"hello",
        code: int = 312,
        text: str = "NO_ROUTE",
        exchange: str = "",
        routing_key: str = "q",
        channel: int = 1,
        frame_max: int | None = None,
        **properties: Any,
    ) -> Said:
        """basic.return and its content."""
        arguments = {
            "reply_code": code,
            "reply_text": text,
            "exchange": exchange,
            "routing_key": routing_key,
        }
        return self._content(
            self._method("basic.return", channel, arguments), body, channel, frame_max, properties
        )

    # ---- what became of them -----------------------------------------------------------------------------

    def ack(self, delivery_tag: int | None = None, multiple: bool = False, channel: int = 1) -> Said:
        """basic.ack: by a client of a delivery, by a server of a publish; of the last one unless reported."""
        tag = self._last_tag(channel) if delivery_tag is None else delivery_tag
        return self.method("basic.ack", channel, delivery_tag=tag, multiple=multiple)

    def confirm(self, delivery_tag: int | None = None, multiple: bool = False, channel: int = 1) -> Said:
        """A server's basic.ack."""
        return self.ack(delivery_tag, multiple, channel)

    def nack(
        self,
        delivery_tag: int | None = None,
        multiple: bool = False,
        requeue: bool = True,
        channel: int = 1,
    ) -> Said:
        tag = self._last_tag(channel) if delivery_tag is None else delivery_tag
        return self.method("basic.nack", channel, delivery_tag=tag, multiple=multiple, requeue=requeue)

    def reject(self, delivery_tag: int | None = None, requeue: bool = True, channel: int = 1) -> Said:
        tag = self._last_tag(channel) if delivery_tag is None else delivery_tag
        return self.method("basic.reject", channel, delivery_tag=tag, requeue=requeue)

    def _last_tag(self, channel: int) -> int:
        other = self.other
        return other.published.get(channel, 0) or other.delivery_tags.get(channel, 0)


class Dialogue091(Conversation):
    """The conversation of a client and a broker that speak AMQP 0-9-1.

    product   of the broker: what decides how field tables are read
    dialect   of the field tables: amqp091_encode.RABBITMQ or PRINTED
    """

    namespace = "amqp091"
    speaker = Peer091
    client: Peer091
    server: Peer091

    def __init__(
        self, *, product: str = "RabbitMQ", dialect: str = amqp.RABBITMQ, **conversation: Any
    ) -> None:
        self.product = product
        self.dialect = dialect
        self.tuned: dict[str, Any] = {"channel_max": 2047, "frame_max": 131072, "heartbeat": 0}
        self.frame_max = 131072  # as agreed; 0: no limit
        super().__init__(**conversation)

    # ---- what goes well, in short ------------------------------------------------------------------------

    def started(self, start: dict[str, Any] | None = None, start_ok: dict[str, Any] | None = None) -> None:
        """The protocol header, start and start-ok; what is given goes to these words."""
        self.client.header().called("header")
        self.server.start(**(start or {})).called("connection.start")
        self.client.start_ok(**(start_ok or {})).called("connection.start-ok")

    def opened(
        self,
        start: dict[str, Any] | None = None,
        start_ok: dict[str, Any] | None = None,
        tune: dict[str, Any] | None = None,
        tune_ok: dict[str, Any] | None = None,
        virtual_host: str = "/",
    ) -> None:
        """The whole beginning of a connection; what is given goes to these words."""
        self.started(start, start_ok)
        self.server.tune(**(tune or {})).called("connection.tune")
        with self.together(self.client):
            self.client.tune_ok(**(tune_ok or {})).called("connection.tune-ok")
            self.client.open_connection(virtual_host).called("connection.open")
        self.server.connection_open_ok().called("connection.open-ok")

    def channel(self, *numbers: int) -> None:
        """Open channels: number 1, or those that are named."""
        for number in numbers or (1,):
            self.client.open_channel(number).called("channel.open")
            self.server.channel_open_ok(number).called("channel.open-ok")

    def ask(
        self, name: str, channel: int = 1, answer: dict[str, Any] | None = None, **arguments: Any
    ) -> tuple[Said, Said]:
        """The client says a method, and the server its -ok; answer: arguments of that."""
        asked = self.client.method(name, channel, **arguments).called(name)
        given = dict(answer or {})
        repeated = _REPEATED.get(name)
        if repeated is not None and repeated not in given:
            given[repeated] = arguments.get(repeated) or "amq.gen-JzTY20BRgKO-HjmUJj0wLg"
        answered = self.server.method(f"{name}-ok", channel, **given).called(f"{name}-ok")
        return asked, answered

    def declare(self, queue: str = "q", channel: int = 1, **arguments: Any) -> tuple[Said, Said]:
        return self.ask("queue.declare", channel, queue=queue, **arguments)

    def declare_exchange(
        self, exchange: str = "x", type: str = "direct", channel: int = 1, **arguments: Any
    ) -> tuple[Said, Said]:
        return self.ask("exchange.declare", channel, exchange=exchange, type=type, **arguments)

    def bind(
        self,
        queue: str = "q",
        exchange: str = "x",
        routing_key: str = "q",
        channel: int = 1,
        **arguments: Any,
    ) -> tuple[Said, Said]:
        return self.ask(
            "queue.bind", channel, queue=queue, exchange=exchange, routing_key=routing_key, **arguments
        )

    def qos(
        self, prefetch_count: int, channel: int = 1, *, global_: bool = False, **arguments: Any
    ) -> tuple[Said, Said]:
        return self.ask("basic.qos", channel, prefetch_count=prefetch_count, global_=global_, **arguments)

    def consume(
        self, queue: str = "q", consumer_tag: str = "c", channel: int = 1, **arguments: Any
    ) -> tuple[Said, Said]:
        return self.ask("basic.consume", channel, queue=queue, consumer_tag=consumer_tag, **arguments)

    def cancel(self, consumer_tag: str = "c", channel: int = 1, **arguments: Any) -> tuple[Said, Said]:
        return self.ask("basic.cancel", channel, consumer_tag=consumer_tag, **arguments)

    def confirms(self, channel: int = 1) -> tuple[Said, Said]:
        """confirm.select."""
        return self.ask("confirm.select", channel)

    def transaction(self, channel: int = 1) -> tuple[Said, Said]:
        """tx.select."""
        return self.ask("tx.select", channel)

    def commit(self, channel: int = 1) -> tuple[Said, Said]:
        return self.ask("tx.commit", channel)

    def rollback(self, channel: int = 1) -> tuple[Said, Said]:
        return self.ask("tx.rollback", channel)

    def closed(self, channel: int = 1) -> None:
        """The client closes a channel."""
        self.client.close_channel(channel=channel).called("channel.close")
        self.server.channel_close_ok(channel).called("channel.close-ok")

    def goodbye(self) -> None:
        """The client closes the connection, the server answers, both end their streams."""
        self.client.close_connection().called("connection.close")
        self.server.connection_close_ok().called("connection.close-ok")
        self.tcp.goodbye()


def _capabilities(names: tuple[str, ...] | None) -> dict[str, bool] | None:
    return None if names is None else dict.fromkeys(names, True)


def _present(properties: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in properties.items() if value is not None}


def _reason(code: int, text: str, cause: str) -> dict[str, Any]:
    class_id, method_id, _ = amqp.METHODS[cause] if cause else (0, 0, "")
    return {"reply_code": code, "reply_text": text, "class_id": class_id, "method_id": method_id}

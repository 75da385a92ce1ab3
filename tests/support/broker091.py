"""A broker of AMQP 0-9-1 that says, at random, what it has a right to say: see `support.legal091`.

It works through what it has heard channel by channel, each in its own time, and has queues, exchanges and
bindings like a real one, so that what it delivers was published. Now and then there are messages of other
publishers.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from support import amqp091_encode as amqp
from support.client091 import EXCHANGES, REPLIES
from support.dialogue091 import SERVER_CAPABILITIES
from support.legal import SERVER, Choice, Fields, Said
from support.peer091 import LAVINMQ, OTHER, RABBITMQ, Content, Peer091

if TYPE_CHECKING:
    from support.legal091 import Talk091

__all__ = ["Broker"]


@dataclass(slots=True)
class Character:
    capabilities: tuple[str, ...]
    frame_max: int
    channel_max: int
    heartbeat: int
    rounds: int  # of SASL
    delivers: float
    confirms: float
    nacks: float
    cancels: float
    blocks: float
    stops: float  # channels' flow
    closes: float
    refuses: float  # logins, and to open
    others: float  # share of messages that somebody else has published

    @staticmethod
    def draw(random: Random) -> Character:
        return Character(
            capabilities=random.choice([SERVER_CAPABILITIES, SERVER_CAPABILITIES, ()]),
            frame_max=random.choice([131072, 131072, 8192, 4096, 0]),
            channel_max=random.choice([2047, 2047, 0, 3, 1]),
            heartbeat=random.choice([0, 60, 60, 10]),
            rounds=random.choice([0, 0, 0, 1, 2]),
            delivers=random.choice([0.5, 2.0, 5.0]),
            confirms=random.choice([0.2, 1.0, 3.0]),
            nacks=random.choice([0.0, 0.1, 0.3]),
            cancels=random.choice([0.0, 0.0, 0.02]),
            blocks=random.choice([0.0, 0.0, 0.02]),
            stops=random.choice([0.0, 0.02]),
            closes=random.choice([0.0, 0.0, 0.005, 0.02]),
            refuses=0.02,
            others=random.choice([0.0, 0.1, 0.3]),
        )


@dataclass(slots=True)
class Message:
    exchange: str
    routing_key: str
    properties: Fields
    body: bytes
    redelivered: bool = False


@dataclass(slots=True)
class Consumer:
    queue: str
    no_ack: bool
    prefetch: int


@dataclass(slots=True)
class Delivery:
    """One that is to be acknowledged. tag: of its consumer, None of a get."""

    message: Message
    queue: str
    consumer: str | None


@dataclass(slots=True)
class Channel:
    number: int
    closing: bool = False  # channel.close was sent
    answered: bool = False  # and close-ok was heard
    todo: deque[tuple[Said, Content | None]] = field(default_factory=deque)
    opened: bool = False
    mode: str = ""
    tag: int = 0
    unacked: dict[int, Delivery] = field(default_factory=dict)
    acked: dict[int, tuple[Delivery, bool]] = field(default_factory=dict)  # in the transaction; requeue
    posted: list[tuple[Said, Content]] = field(default_factory=list)
    published: int = 0
    unconfirmed: set[int] = field(default_factory=set)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    prefetch: int = 0  # of new consumers; elsewhere of the channel
    prefetch_of_all: int = 0  # of the channel; elsewhere of the connection
    flowing: bool = True
    flow_said: bool = True
    current: str = ""

    def outstanding(self) -> list[Delivery]:
        return [*self.unacked.values(), *(delivery for delivery, _ in self.acked.values())]


class Broker(Peer091):
    def __init__(self, talk: Talk091) -> None:
        super().__init__(talk, SERVER)
        self.character = Character.draw(self.random)
        self.todo: deque[Said] = deque()
        self.rounds = 0
        self.started = False
        self.header_heard = False
        self.client_capabilities: frozenset[str] = frozenset()
        self.channels: dict[int, Channel] = {}
        self.queues: dict[str, deque[Message]] = {}
        self.exchanges: dict[str, str] = dict(EXCHANGES)
        self.bindings: set[tuple[str, str, str]] = set()  # exchange, key, queue
        self.blocked = False
        self.names = 0

    # ---- choices -----------------------------------------------------------------------------------------

    def more_choices(self) -> list[Choice]:
        choices: list[Choice] = []
        if self.header_heard and not self.started:
            return [(1, self.start)]
        if self.todo:
            choices.append((5.0, self.connection_work))
        if not self.opened:
            return choices
        character = self.character
        for channel in self.channels.values():
            choices += self.channel_choices(channel)
        closing = 0.5 if self.talk.closing else character.closes / 10
        choices.append((closing, self.shut_down))
        if "connection.blocked" in self.client_capabilities:
            choices.append((0.1 if self.blocked else character.blocks, self.block))
        return choices

    def channel_choices(self, channel: Channel) -> list[Choice]:
        number = channel.number
        if number in self.parts:
            if self.chance(0.01) and self.character.closes:
                return [(0.1, lambda: self.close_channel(channel, 406, "PRECONDITION_FAILED"))]
            return []
        choices: list[Choice] = []
        if channel.todo:
            choices.append((5.0, lambda: self.work(channel)))
        if channel.closing or not channel.opened:
            return choices
        if channel.unconfirmed:
            choices.append((self.character.confirms, lambda: self.confirm(channel)))
        if channel.flowing:
            for tag, consumer in channel.consumers.items():
                if self.may_deliver(channel, tag, consumer):
                    choices.append(
                        (self.character.delivers, lambda t=tag, c=consumer: self.deliver(channel, t, c))  # type: ignore[misc]
                    )
        if channel.consumers and "consumer_cancel_notify" in self.client_capabilities:
            tag = self.random.choice(sorted(channel.consumers))
            choices.append((self.character.cancels, lambda: self.cancel(channel, tag)))
        if self.talk.product == OTHER:
            choices.append(
                (0.3 if not channel.flow_said else self.character.stops, lambda: self.flow(channel))
            )
        text = "PRECONDITION_FAILED - delivery acknowledgement timed out"
        choices.append((self.character.closes, lambda: self.close_channel(channel, 406, text)))
        return choices

    # ---- the connection ----------------------------------------------------------------------------------

    def start(self) -> None:
        self.started = True
        properties: Fields = {
            "product": self.talk.product,
            "version": "3.10.8",
            "platform": "Erlang/OTP 25.2.3",
            "copyright": "Copyright",
            "information": "Licensed",
            "host": "broker",
        }
        if self.character.capabilities:
            properties["capabilities"] = dict.fromkeys(self.character.capabilities, True)
        self.say(
            "connection.start",
            version_minor=9,
            server_properties=properties,
            mechanisms="AMQPLAIN PLAIN",
            locales="en_US",
        )

    def connection_work(self) -> None:
        said = self.todo.popleft()
        if said.name == "connection.start-ok":
            capabilities = said.fields["client_properties"].get("capabilities", {})
            self.client_capabilities = frozenset(capabilities)
            if self.chance(self.character.refuses):
                self.refuse_login()
            else:
                self.next_step()
        elif said.name == "connection.secure-ok":
            self.next_step()
        elif said.name == "connection.open":
            if self.chance(self.character.refuses):
                self.close(541, "INTERNAL_ERROR")
            else:
                self.opened = True
                self.say("connection.open-ok")
        elif said.name == "connection.update-secret":
            self.say("connection.update-secret-ok")

    def next_step(self) -> None:
        if self.rounds < self.character.rounds:
            self.rounds += 1
            self.say("connection.secure", challenge=b"c")
            return
        character = self.character
        self.say(
            "connection.tune",
            channel_max=character.channel_max,
            frame_max=character.frame_max,
            heartbeat=character.heartbeat,
        )

    def refuse_login(self) -> None:
        if "authentication_failure_close" in self.client_capabilities:
            self.close(403, "ACCESS_REFUSED - Login was refused", "connection.start-ok")
        else:
            self.cut_off = True

    def shut_down(self) -> None:
        if self.chance(0.8):
            self.close(320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'")
        else:
            self.close(541, "INTERNAL_ERROR")

    def block(self) -> None:
        self.blocked = not self.blocked
        if self.blocked:
            self.say("connection.blocked", reason="low on memory")
        else:
            self.say("connection.unblocked")

    # ---- channels ----------------------------------------------------------------------------------------

    def close_channel(self, channel: Channel, code: int, text: str, cause: str = "") -> None:
        self.parts.pop(channel.number, None)
        channel.closing = True
        channel.todo = deque(one for one in channel.todo if one[0].name == "channel.close")
        self.forget(channel)
        class_id, method_id, _ = amqp.METHODS[cause] if cause else (0, 0, "")
        self.say(
            "channel.close",
            channel.number,
            reply_code=code,
            reply_text=text,
            class_id=class_id,
            method_id=method_id,
        )

    def forget(self, channel: Channel) -> None:
        """Its consumers are gone; what it did not acknowledge goes back to the queues."""
        self.requeue(channel.outstanding())
        channel.unacked.clear()
        channel.acked.clear()
        channel.posted.clear()
        channel.unconfirmed.clear()
        channel.consumers.clear()
        self.queues.pop(self.replies(channel.number), None)

    def requeue(self, deliveries: list[Delivery]) -> None:
        for delivery in reversed(deliveries):
            queue = self.queues.get(delivery.queue)
            if queue is not None:
                delivery.message.redelivered = True
                queue.appendleft(delivery.message)

    def flow(self, channel: Channel) -> None:
        channel.flow_said = not channel.flow_said
        self.say("channel.flow", channel.number, active=channel.flow_said)

    def work(self, channel: Channel) -> None:
        """The next of what the client said on this channel."""
        said, content = channel.todo.popleft()
        name = said.name
        if name == "channel.close":
            if not channel.closing:
                self.forget(channel)
            self.say("channel.close-ok", channel.number)
            if not channel.closing or channel.answered:
                del self.channels[channel.number]
            return
        if content is not None:
            self.published(channel, said, content)
            return
        handler = getattr(self, "do_" + name.replace(".", "_").replace("-", "_"), None)
        if handler is not None:
            handler(channel, said, **said.fields)
        else:
            self.answer(channel, said)

    def answer(self, channel: Channel, said: Said, /, **fields: Any) -> None:
        if not said.fields.get("no_wait"):
            self.say(f"{said.name}-ok", channel.number, **fields)

    def do_channel_open(self, channel: Channel, said: Said) -> None:
        channel.opened = True
        self.answer(channel, said)

    def do_channel_flow(self, channel: Channel, said: Said, active: bool) -> None:
        channel.flowing = active
        self.answer(channel, said, active=active)

    def do_channel_flow_ok(self, channel: Channel, said: Said, active: bool) -> None:
        pass

    # ---- queues and exchanges ----------------------------------------------------------------------------

    def do_queue_declare(
        self, channel: Channel, said: Said, queue: str, passive: bool = False, **_: Any
    ) -> None:
        if passive and queue not in self.queues:
            text = f"NOT_FOUND - no queue '{queue}' in vhost '/'"
            self.close_channel(channel, 404, text, "queue.declare")
            return
        if not queue:
            self.names += 1
            queue = f"amq.gen-{self.names}"
        self.queues.setdefault(queue, deque())
        channel.current = queue
        consumers = sum(
            consumer.queue == queue for one in self.channels.values() for consumer in one.consumers.values()
        )
        count = len(self.queues[queue])
        self.answer(channel, said, queue=queue, message_count=count, consumer_count=consumers)

    def do_exchange_declare(self, channel: Channel, said: Said, exchange: str, type: str, **_: Any) -> None:
        self.exchanges[exchange] = type
        self.answer(channel, said)

    def do_queue_bind(
        self, channel: Channel, said: Said, queue: str, exchange: str, routing_key: str, **_: Any
    ) -> None:
        self.bindings.add((exchange, routing_key, queue))
        self.answer(channel, said)

    def do_queue_unbind(
        self, channel: Channel, said: Said, queue: str, exchange: str, routing_key: str
    ) -> None:
        self.bindings.discard((exchange, routing_key, queue))
        self.answer(channel, said)

    def do_queue_purge(self, channel: Channel, said: Said, queue: str, **_: Any) -> None:
        messages = self.queues.get(queue, deque())
        count = len(messages)
        messages.clear()
        self.answer(channel, said, message_count=count)

    def do_queue_delete(
        self, channel: Channel, said: Said, queue: str, if_unused: bool = False, **_: Any
    ) -> None:
        users = [
            (one, tag)
            for one in self.channels.values()
            for tag, consumer in one.consumers.items()
            if consumer.queue == queue
        ]
        if users and if_unused:
            text = f"PRECONDITION_FAILED - queue '{queue}' in vhost '/' in use"
            self.close_channel(channel, 406, text, "queue.delete")
            return
        count = len(self.queues.pop(queue, ()))
        self.bindings = {binding for binding in self.bindings if binding[2] != queue}
        for one, tag in users:
            del one.consumers[tag]
            if "consumer_cancel_notify" in self.client_capabilities and one.number not in self.parts:
                self.say("basic.cancel", one.number, consumer_tag=tag, no_wait=True)
        self.answer(channel, said, message_count=count)

    # ---- consumers ---------------------------------------------------------------------------------------

    def do_basic_qos(self, channel: Channel, said: Said, prefetch_count: int, global_: bool) -> None:
        if global_:
            channel.prefetch_of_all = prefetch_count
        else:
            channel.prefetch = prefetch_count
        self.answer(channel, said)

    def do_basic_consume(
        self, channel: Channel, said: Said, queue: str, no_ack: bool, consumer_tag: str = "", **_: Any
    ) -> None:
        if not consumer_tag:
            self.names += 1
            consumer_tag = f"amq.ctag-{self.names}"
        if queue == REPLIES:
            queue = self.replies(channel.number)
            self.queues.setdefault(queue, deque())
        channel.consumers[consumer_tag] = Consumer(queue or channel.current, no_ack, channel.prefetch)
        self.answer(channel, said, consumer_tag=consumer_tag)

    def replies(self, number: int) -> str:
        """The name that the pseudo-queue of a channel has for others."""
        return f"{REPLIES}.g1h2AA5yZXBseUAx{number}"

    def do_basic_cancel_ok(self, channel: Channel, said: Said, consumer_tag: str) -> None:
        pass

    def do_basic_cancel(self, channel: Channel, said: Said, consumer_tag: str, **_: Any) -> None:
        channel.consumers.pop(consumer_tag, None)
        self.answer(channel, said, consumer_tag=consumer_tag)

    def cancel(self, channel: Channel, tag: str) -> None:
        """Its queue moved to another node."""
        del channel.consumers[tag]
        no_wait = self.talk.product != OTHER or self.chance(0.5)
        self.say("basic.cancel", channel.number, consumer_tag=tag, no_wait=no_wait)

    def room(self, channel: Channel, tag: str, consumer: Consumer) -> bool:
        """Whether prefetch lets this consumer have another message."""
        outstanding = channel.outstanding()
        own = sum(delivery.consumer == tag for delivery in outstanding)
        limit = channel.prefetch if self.talk.product == LAVINMQ else consumer.prefetch
        if limit and own >= limit:
            return False
        if self.talk.product in (RABBITMQ, LAVINMQ):
            consumed = sum(delivery.consumer is not None for delivery in outstanding)
            return not channel.prefetch_of_all or consumed < channel.prefetch_of_all
        # By the specification both limits are wider, and whoever asks for little gets little.
        everything = sum(len(one.outstanding()) for one in self.channels.values())
        limits = [channel.prefetch, *(one.prefetch_of_all for one in self.channels.values())]
        return all(not limit or everything < limit for limit in limits)

    def may_deliver(self, channel: Channel, tag: str, consumer: Consumer) -> bool:
        queue = self.queues.get(consumer.queue)
        if queue is None or not (consumer.no_ack or self.room(channel, tag, consumer)):
            return False
        self.somebody_publishes(consumer.queue)
        return bool(queue)

    def somebody_publishes(self, queue: str) -> None:
        messages = self.queues[queue]
        if not messages and self.chance(self.character.others * 0.2):
            self.names += 1
            messages.append(Message("", queue, {}, f"of another {self.names}".encode()))

    def taken(self, channel: Channel, queue: str, consumer: str | None, no_ack: bool) -> Message:
        """The next message of a queue, with the next delivery tag."""
        message = self.queues[queue].popleft()
        channel.tag += 1
        if not no_ack:
            channel.unacked[channel.tag] = Delivery(message, queue, consumer)
        return message

    def deliver(self, channel: Channel, tag: str, consumer: Consumer) -> None:
        message = self.taken(channel, consumer.queue, tag, consumer.no_ack)
        self.content(
            "basic.deliver",
            channel.number,
            message.properties,
            message.body,
            consumer_tag=tag,
            delivery_tag=channel.tag,
            redelivered=message.redelivered,
            exchange=message.exchange,
            routing_key=message.routing_key,
        )

    def do_basic_get(self, channel: Channel, said: Said, queue: str, no_ack: bool) -> None:
        queue = queue or channel.current
        if queue in self.queues:
            self.somebody_publishes(queue)
        if not self.queues.get(queue):
            self.say("basic.get-empty", channel.number)
            return
        message = self.taken(channel, queue, None, no_ack)
        self.content(
            "basic.get-ok",
            channel.number,
            message.properties,
            message.body,
            delivery_tag=channel.tag,
            redelivered=message.redelivered,
            exchange=message.exchange,
            routing_key=message.routing_key,
            message_count=len(self.queues[queue]),
        )

    # ---- acknowledgements --------------------------------------------------------------------------------

    def do_basic_ack(self, channel: Channel, said: Said, delivery_tag: int, multiple: bool = False) -> None:
        self.settle(channel, delivery_tag, multiple, requeue=False)

    def do_basic_nack(
        self, channel: Channel, said: Said, delivery_tag: int, requeue: bool, multiple: bool = False
    ) -> None:
        self.settle(channel, delivery_tag, multiple, requeue)

    def do_basic_reject(self, channel: Channel, said: Said, delivery_tag: int, requeue: bool) -> None:
        self.settle(channel, delivery_tag, False, requeue)

    def settle(self, channel: Channel, tag: int, multiple: bool, requeue: bool) -> None:
        tags = [tag]
        if multiple:
            tags = [one for one in channel.unacked if one <= tag or not tag]
        back = []
        for one in tags:
            delivery = channel.unacked.pop(one, None)
            if delivery is None:
                continue  # it was at fault
            if channel.mode == "tx":
                channel.acked[one] = (delivery, requeue)
            elif requeue:
                back.append(delivery)
        self.requeue(back)

    def do_basic_recover(self, channel: Channel, said: Said, requeue: bool) -> None:
        self.requeue(list(channel.unacked.values()))
        channel.unacked.clear()
        self.answer(channel, said)

    def do_basic_recover_async(self, channel: Channel, said: Said, requeue: bool) -> None:
        self.requeue(list(channel.unacked.values()))
        channel.unacked.clear()

    # ---- publishing --------------------------------------------------------------------------------------

    def published(self, channel: Channel, said: Said, content: Content) -> None:
        if channel.mode == "tx":
            channel.posted.append((said, content))
            return
        code = 0
        if said.fields.get("immediate") and not self.consumed(said):
            code = 313
        elif not self.route(said, content) and said.fields.get("mandatory"):
            code = 312
        if code:
            self.content(
                "basic.return",
                channel.number,
                content.properties or {},
                content.body,
                reply_code=code,
                reply_text="NO_ROUTE" if code == 312 else "NO_CONSUMERS",
                exchange=said.fields["exchange"],
                routing_key=said.fields["routing_key"],
            )
        if channel.mode == "confirm":
            channel.published += 1
            channel.unconfirmed.add(channel.published)

    def consumed(self, said: Said) -> bool:
        """Whether somebody consumes the queue to which a message goes that names it."""
        key = said.fields["routing_key"]
        return said.fields["exchange"] == "" and any(
            consumer.queue == key for one in self.channels.values() for consumer in one.consumers.values()
        )

    def route(self, said: Said, content: Content) -> bool:
        """Put a message on its queues. False if there are none."""
        exchange, key = said.fields["exchange"], said.fields["routing_key"]
        properties = content.properties or {}
        replies = self.replies(said.channel)
        if properties.get("reply_to") == REPLIES and replies in self.queues and self.chance(0.7):
            # Whoever got it answers at once.
            answer = Message("", replies, {"correlation_id": "asked"}, b"reply")
            self.queues[replies].append(answer)
        if exchange == "":
            queues = {key} & self.queues.keys()
        else:
            fanout = self.exchanges.get(exchange) == "fanout"
            queues = {
                queue for x, k, queue in self.bindings if x == exchange and (fanout or k == key)
            } & self.queues.keys()
        for queue in queues:
            message = Message(exchange, key, content.properties or {}, content.body)
            self.queues[queue].append(message)
        return bool(queues)

    def do_confirm_select(self, channel: Channel, said: Said, **_: Any) -> None:
        channel.mode = "confirm"
        self.answer(channel, said)

    def confirm(self, channel: Channel) -> None:
        """Some are confirmed, all that are at once confirmed up to a point in one go, and some are not."""
        batch = sorted(
            self.random.sample(
                sorted(channel.unconfirmed), self.random.randrange(1, len(channel.unconfirmed) + 1)
            )
        )
        failed = [seq for seq in batch if self.chance(self.character.nacks)]
        channel.unconfirmed -= set(batch)
        for seq in failed:
            self.say("basic.nack", channel.number, delivery_tag=seq)
        done = [seq for seq in batch if seq not in failed]
        first = min([*channel.unconfirmed, *failed], default=channel.published + 1)
        before = [seq for seq in done if seq < first]
        if before:
            self.say("basic.ack", channel.number, delivery_tag=before[-1], multiple=True)
        for seq in done:
            if seq > first:
                self.say("basic.ack", channel.number, delivery_tag=seq)

    # ---- transactions ------------------------------------------------------------------------------------

    def do_tx_select(self, channel: Channel, said: Said) -> None:
        channel.mode = "tx"
        self.answer(channel, said)

    def do_tx_commit(self, channel: Channel, said: Said) -> None:
        for method, content in channel.posted:
            self.route(method, content)
        self.requeue([delivery for delivery, requeue in channel.acked.values() if requeue])
        channel.posted.clear()
        channel.acked.clear()
        self.answer(channel, said)

    def do_tx_rollback(self, channel: Channel, said: Said) -> None:
        again = {tag: delivery for tag, (delivery, _) in channel.acked.items()}
        channel.unacked = dict(sorted({**channel.unacked, **again}.items()))
        channel.posted.clear()
        channel.acked.clear()
        self.answer(channel, said)

    # ---- hearing -----------------------------------------------------------------------------------------

    def heard_header(self, said: Said) -> None:
        if said.name == "header":
            self.header_heard = True

    def heard(self, said: Said, content: Content | None) -> None:
        if said.name == "connection.tune-ok":
            self.frame_max = said.fields["frame_max"]
            self.heartbeat = said.fields["heartbeat"]
            self.tuned = True
        elif said.channel == 0:
            self.todo.append(said)
        else:
            self.heard_channel(said, content)

    def heard_channel(self, said: Said, content: Content | None) -> None:
        channel = self.channels.get(said.channel)
        if channel is None:
            if said.name == "channel.open":
                channel = self.channels[said.channel] = Channel(said.channel)
                channel.todo.append((said, content))
        elif not channel.closing or said.name == "channel.close":
            channel.todo.append((said, content))
        elif said.name == "channel.close-ok":
            channel.answered = True
            if not channel.todo:  # else it has a close to answer
                del self.channels[said.channel]

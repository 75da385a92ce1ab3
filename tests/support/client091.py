"""A client of AMQP 0-9-1 that says, at random, what it has a right to say: see `support.legal091`."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Any

from support.dialogue091 import CLIENT_CAPABILITIES
from support.legal import CLIENT, Choice, Fields, Said
from support.peer091 import OTHER, RABBITMQ, Content, Peer091

if TYPE_CHECKING:
    from support.legal091 import Talk091

__all__ = ["Client"]

QUEUES = ("orders", "mails", "jobs.low")
EXCHANGES = {"": "direct", "amq.direct": "direct", "amq.fanout": "fanout"}
OWN_EXCHANGES = {"news": "fanout", "work": "direct"}
REPLIES = "amq.rabbitmq.reply-to"
KEYS = (*QUEUES, "nowhere", "red")


@dataclass(slots=True)
class Character:
    """What it is like, and what it is inclined to do."""

    capabilities: tuple[str, ...]
    frame_max: int  # at most
    channel_max: int
    heartbeat: int
    channels: int  # that it would like to have
    pipelines: bool  # does not wait for answers
    eager: bool  # opens channels before open-ok
    publishes: float
    consumes: float
    gets: float
    closes: float  # of channels; the connection's are rarer
    sloth: float  # acknowledges seldom, and then many
    big: bool

    @staticmethod
    def draw(random: Random) -> Character:
        return Character(
            capabilities=random.choice([CLIENT_CAPABILITIES, CLIENT_CAPABILITIES, ()]),
            frame_max=random.choice([131072, 131072, 8192, 4096]),
            channel_max=random.choice([2047, 65535, 10, 2]),
            heartbeat=random.choice([0, 0, 5, 20, 60]),
            channels=random.choice([1, 1, 2, 3, 5]),
            pipelines=random.random() < 0.4,
            eager=random.random() < 0.3,
            publishes=random.choice([0.3, 1.0, 3.0]),
            consumes=random.choice([0.0, 0.5, 1.0]),
            gets=random.choice([0.1, 0.3, 0.6]),
            closes=random.choice([0.0, 0.01, 0.05, 0.2]),
            sloth=random.choice([0.2, 1.0, 3.0]),
            big=random.random() < 0.3,
        )


@dataclass(slots=True)
class Channel:
    """A channel as the client knows it. waiting: its requests whose answers are yet to come."""

    number: int
    opened: bool = False
    closing: bool = False  # channel.close was sent, close-ok is awaited
    asked_to_close: bool = False  # channel.close was heard, close-ok is yet to be said
    waiting: deque[Said] = field(default_factory=deque)
    mode: str = ""  # "tx", "confirm"
    unsettled: set[int] = field(default_factory=set)
    in_transaction: set[int] = field(default_factory=set)  # acknowledged in it
    from_get: set[int] = field(default_factory=set)
    consumers: dict[str, tuple[str, bool]] = field(default_factory=dict)  # tag: queue, no-ack
    cancelling: set[str] = field(default_factory=set)
    used_tags: set[str] = field(default_factory=set)
    current: str | None = None  # the queue last declared, if its name is known
    exchanges: set[str] = field(default_factory=set)  # declared here, perhaps not yet answered
    queues: set[str] = field(default_factory=set)
    flowing: bool = True
    flow_asked: list[bool] = field(default_factory=list)
    cancel_asked: list[str] = field(default_factory=list)

    def awaits(self, *names: str) -> bool:
        return any(said.name in names for said in self.waiting)

    @property
    def quiet(self) -> bool:
        """No delivery can be on its way."""
        return not self.consumers and not self.cancelling and not self.waiting


class Client(Peer091):
    def __init__(self, talk: Talk091) -> None:
        super().__init__(talk, CLIENT)
        self.character = Character.draw(self.random)
        self.to_answer = ""  # what it heard last on its way into the connection
        self.said_header = False
        self.tune: Fields = {}
        self.open_said = False
        self.server_capabilities: frozenset[str] = frozenset()
        self.channel_max = 0
        self.channels: dict[int, Channel] = {}
        self.queues: dict[str, Fields] = {}  # that are there for certain
        self.deleting: dict[str, Channel] = {}  # queues that will be gone, and where that was said
        self.exchanges: set[str] = set(EXCHANGES)
        self.blocked = False
        self.secret_asked = False
        self.consumer_count = 0
        self.bodies = 0

    # ---- choices -----------------------------------------------------------------------------------------

    def more_choices(self) -> list[Choice]:
        if not self.said_header:
            return [(1, self.header)]
        if not self.open_said:
            return self.opening_choices()
        if not self.opened and not self.character.eager:
            return []
        choices: list[Choice] = []
        if len(self.channels) < self.character.channels and self.free_number() is not None:
            choices.append((1.0, self.open_channel))
        for channel in self.channels.values():
            choices += self.channel_choices(channel)
        if self.opened:
            closing = 2.0 if self.talk.closing else self.character.closes / 10
            if not any(self.owes_acks(channel) for channel in self.channels.values()):
                choices.append((closing, lambda: self.close(200, "Normal shutdown")))
            if self.talk.product == RABBITMQ and not self.secret_asked:
                choices.append((0.01, self.update_secret))
        return choices

    def opening_choices(self) -> list[Choice]:
        answers = {
            "connection.start": self.start_ok,
            "connection.secure": self.secure_ok,
            "connection.tune": self.tune_ok,
        }
        if self.to_answer in answers:
            return [(1, answers[self.to_answer])]
        return [(1, self.open_connection)] if self.tuned else []

    def owes_acks(self, channel: Channel) -> bool:
        """It has fetched messages, which it means to acknowledge before it leaves."""
        return bool(channel.from_get & channel.unsettled) or channel.awaits("basic.get")

    def free_number(self) -> int | None:
        limit = self.channel_max or 65535
        free = [number for number in range(1, min(limit, 8) + 1) if number not in self.channels]
        if not free or len(self.channels) >= limit:
            return None
        if limit > 8 and limit not in self.channels and self.chance(0.1):
            return limit
        return free[0] if self.chance(0.7) else self.random.choice(free)

    def channel_choices(self, channel: Channel) -> list[Choice]:
        number = channel.number
        if number in self.parts:
            # The rest of a content is given up with the channel.
            if self.chance(0.02) and channel.opened and not self.owes_acks(channel):
                return [(0.1, lambda: self.close_channel(channel))]
            return []
        if channel.asked_to_close:
            return [(5.0, lambda: self.channel_close_ok(channel))]
        if channel.closing:
            return []
        if not channel.opened and not self.character.pipelines:
            return []
        if channel.awaits("tx.commit", "tx.rollback", "basic.recover"):
            return []
        if channel.flow_asked:
            return [(5.0, lambda: self.flow_ok(channel))]
        if channel.cancel_asked:
            return [(5.0, lambda: self.cancel_ok(channel))]
        choices: list[Choice] = []
        if channel.waiting and not self.character.pipelines:
            # It waits for the answer; what asks for none it may say.
            choices += self.publish_choices(channel) + self.ack_choices(channel)
            return choices
        if channel.opened and not self.owes_acks(channel):
            choices.append((self.character.closes, lambda: self.close_channel(channel)))
        choices += self.publish_choices(channel)
        choices += self.ack_choices(channel)
        choices += self.declare_choices(channel)
        choices += self.consumer_choices(channel)
        choices += self.mode_choices(channel)
        choices.append((0.02, lambda: self.ask(channel, "channel.flow", active=True)))
        return choices

    # ---- the connection ----------------------------------------------------------------------------------

    def header(self) -> None:
        self.said_header = True
        self.say("header")

    def start_ok(self) -> None:
        properties: Fields = {
            "product": "Some client",
            "version": "1.0",
            "platform": "Python",
            "copyright": "None",
            "information": "None",
        }
        if self.character.capabilities or self.chance(0.5):
            properties["capabilities"] = dict.fromkeys(self.character.capabilities, True)
        self.to_answer = ""
        self.say(
            "connection.start-ok",
            client_properties=properties,
            mechanism="PLAIN",
            response=b"\0guest\0guest",
            locale="en_US",
        )

    def secure_ok(self) -> None:
        self.to_answer = ""
        self.say("connection.secure-ok", response=b"r")

    def tune_ok(self) -> None:
        def lower(mine: int, theirs: int) -> int:
            return min(mine, theirs) if theirs else mine

        self.channel_max = lower(self.character.channel_max, self.tune["channel_max"])
        self.frame_max = lower(self.character.frame_max, self.tune["frame_max"])
        self.heartbeat = self.random.choice([self.tune["heartbeat"], self.character.heartbeat])
        self.tuned = True
        self.to_answer = ""
        self.say(
            "connection.tune-ok",
            channel_max=self.channel_max,
            frame_max=self.frame_max,
            heartbeat=self.heartbeat,
        )

    def open_connection(self) -> None:
        self.open_said = True
        self.say("connection.open", virtual_host=self.random.choice(["/", "/", "test"]))

    def update_secret(self) -> None:
        self.secret_asked = True
        self.say("connection.update-secret", new_secret=b"s", reason="expires")

    # ---- channels ----------------------------------------------------------------------------------------

    def ask(self, channel: Channel, name: str, /, **fields: Any) -> Said:
        """A request; its answer is awaited unless it says that it wants none."""
        said = self.say(name, channel.number, **fields)
        if not fields.get("no_wait"):
            channel.waiting.append(said)
        return said

    def open_channel(self) -> None:
        number = self.free_number()
        if number is None:
            return
        channel = self.channels[number] = Channel(number)
        self.ask(channel, "channel.open")

    def close_channel(self, channel: Channel) -> None:
        self.parts.pop(channel.number, None)
        channel.closing = True
        self.say("channel.close", channel.number, reply_code=200, reply_text="Normal shutdown")

    def channel_close_ok(self, channel: Channel) -> None:
        self.say("channel.close-ok", channel.number)
        channel.asked_to_close = False
        if not channel.closing:
            self.leave(channel)

    def leave(self, channel: Channel) -> None:
        del self.channels[channel.number]
        self.deleting = {queue: where for queue, where in self.deleting.items() if where is not channel}

    def flow_ok(self, channel: Channel) -> None:
        channel.flowing = channel.flow_asked.pop(0)
        self.say("channel.flow-ok", channel.number, active=channel.flowing)

    # ---- queues and exchanges ----------------------------------------------------------------------------

    def known_queues(self, channel: Channel) -> list[str]:
        """Queues that this channel may name; "" for the one declared last."""
        names = sorted(self.queues.keys() | channel.queues)
        if channel.current in names or channel.awaits("queue.declare"):
            names.append("")
        return names

    def declare_choices(self, channel: Channel) -> list[Choice]:
        few = 1.0 if not self.queues and not channel.queues else 0.05
        choices: list[Choice] = [
            (few, lambda: self.declare(channel)),
            (0.03, lambda: self.declare_exchange(channel)),
        ]
        if self.chance(0.05):
            # To see whether it is there; if not, that costs the channel.
            name = self.random.choice(["absent", *self.queues])
            if name in self.queues or not self.owes_acks(channel):
                choices.append((0.3, lambda: self.look_for(channel, name)))
        names = [name for name in self.known_queues(channel) if name]
        if names:
            queue = self.random.choice(names)
            choices.append((0.1, lambda: self.bind(channel, queue, "queue.bind")))
            choices.append((0.02, lambda: self.bind(channel, queue, "queue.unbind")))
            choices.append((0.02, lambda: self.ask(channel, "queue.purge", queue=queue, **self.no_wait())))
            if self.may_delete(channel, queue):
                choices.append((0.03, lambda: self.delete(channel, queue)))
        if "exchange_exchange_bindings" in self.server_capabilities and "news" in self.exchanges:
            binding: Fields = {"destination": "news", "source": "amq.fanout", "routing_key": ""}
            name = self.random.choice(["exchange.bind", "exchange.unbind"])
            if name == "exchange.bind":
                binding |= self.no_wait()
            choices.append((0.3, lambda: self.ask(channel, name, **binding)))
        return choices

    def no_wait(self) -> Fields:
        return {"no_wait": True} if self.chance(0.2) else {}

    def declare(self, channel: Channel) -> None:
        names = [name for name in QUEUES if self.deleting.get(name, channel) is channel]
        name = self.random.choice([*names, ""])
        fields: Fields = {"queue": name}
        if name:
            fields |= {"durable": name == "orders"}
            if name == "mails":
                fields["arguments"] = {"x-max-length": ("I", 100_000)}
            if self.chance(0.2):
                fields["no_wait"] = True
            channel.queues.add(name)
            channel.current = name
        else:
            fields["exclusive"] = True
            channel.current = None
        self.ask(channel, "queue.declare", **fields)

    def look_for(self, channel: Channel, queue: str) -> None:
        channel.current = queue
        self.ask(channel, "queue.declare", queue=queue, passive=True)

    def declare_exchange(self, channel: Channel) -> None:
        name = self.random.choice(list(OWN_EXCHANGES))
        channel.exchanges.add(name)
        fields = {"exchange": name, "type": OWN_EXCHANGES[name]}
        self.ask(channel, "exchange.declare", **fields, **self.no_wait())

    def known_exchanges(self, channel: Channel) -> list[str]:
        return sorted(self.exchanges | channel.exchanges)

    def bind(self, channel: Channel, queue: str, name: str) -> None:
        exchange = self.random.choice([one for one in self.known_exchanges(channel) if one])
        fields: Fields = {"queue": queue, "exchange": exchange, "routing_key": self.random.choice(KEYS)}
        self.ask(channel, name, **fields, **(self.no_wait() if name == "queue.bind" else {}))

    def may_delete(self, channel: Channel, queue: str) -> bool:
        """Nothing that it said before on another channel may still need the queue."""
        return queue in self.queues and not any(
            other is not channel and (other.waiting or queue in other.queues or other.current == queue)
            for other in self.channels.values()
        )

    def delete(self, channel: Channel, queue: str) -> None:
        fields: Fields = {"queue": queue, **self.no_wait()}
        if self.chance(0.2) and not self.owes_acks(channel):
            # It is refused while there are consumers.
            fields["if_unused"] = True
        del self.queues[queue]
        self.deleting[queue] = channel
        for one in self.channels.values():
            one.queues.discard(queue)
            if one.current == queue:
                one.current = None
        self.ask(channel, "queue.delete", **fields)

    # ---- consumers ---------------------------------------------------------------------------------------

    def consumer_choices(self, channel: Channel) -> list[Choice]:
        choices: list[Choice] = []
        names = self.known_queues(channel)
        choices.append((0.1, lambda: self.qos(channel)))
        if names:
            queue = self.random.choice(names)
            if len(channel.consumers) < 3:
                choices.append((self.character.consumes, lambda: self.consume(channel, queue)))
            choices.append((self.character.gets, lambda: self.get(channel, queue)))
        if self.talk.product == RABBITMQ and self.reply_tag(channel) is None and self.chance(0.1):
            choices.append((0.5, lambda: self.consume_replies(channel)))
        live = [tag for tag in channel.consumers if tag not in channel.cancelling]
        if live:
            tag = self.random.choice(live)
            choices.append((0.05, lambda: self.cancel(channel, tag)))
        return choices

    def qos(self, channel: Channel) -> None:
        count = self.random.choice([0, 1, 1, 2, 3, 10])
        self.ask(channel, "basic.qos", prefetch_count=count, global_=self.chance(0.3))

    def consume(self, channel: Channel, queue: str) -> None:
        fields: Fields = {"queue": queue, "no_ack": self.chance(0.3)}
        tag = ""
        if self.chance(0.8):
            self.consumer_count += 1
            old = sorted(channel.used_tags - channel.consumers.keys())
            tag = self.random.choice(old) if old and self.chance(0.2) else f"ctag{self.consumer_count}"
            fields["consumer_tag"] = tag
            fields |= self.no_wait()
        if self.chance(0.1):
            fields["arguments"] = {"x-priority": ("I", 5)}
        said = self.ask(channel, "basic.consume", **fields)
        if tag:
            channel.consumers[tag] = (queue, said.fields["no_ack"])

    def reply_tag(self, channel: Channel) -> str | None:
        """Of the consumer to which replies come directly."""
        return next((tag for tag, (queue, _) in channel.consumers.items() if queue == REPLIES), None)

    def consume_replies(self, channel: Channel) -> None:
        self.consumer_count += 1
        tag = f"replies{self.consumer_count}"
        channel.consumers[tag] = (REPLIES, True)
        self.ask(channel, "basic.consume", queue=REPLIES, consumer_tag=tag, no_ack=True)

    def cancel(self, channel: Channel, tag: str) -> None:
        channel.cancelling.add(tag)
        self.ask(channel, "basic.cancel", consumer_tag=tag, **self.no_wait())

    def cancel_ok(self, channel: Channel) -> None:
        self.say("basic.cancel-ok", channel.number, consumer_tag=channel.cancel_asked.pop(0))

    def get(self, channel: Channel, queue: str) -> None:
        self.ask(channel, "basic.get", queue=queue, no_ack=self.chance(0.3))

    # ---- publishing --------------------------------------------------------------------------------------

    def publish_choices(self, channel: Channel) -> list[Choice]:
        if self.blocked or not channel.flowing:
            return []
        return [(self.character.publishes, lambda: self.publish(channel))]

    def publish(self, channel: Channel) -> None:
        exchange = "" if self.chance(0.7) else self.random.choice(self.known_exchanges(channel))
        queues = [name for name in self.known_queues(channel) if name]
        key = self.random.choice(queues if queues and self.chance(0.7) else KEYS)
        at_once = channel.mode != "tx" and not channel.awaits("tx.select")
        properties = self.properties()
        tag = self.reply_tag(channel)
        if tag is not None and tag not in channel.cancelling and self.chance(0.5):
            properties |= {"reply_to": REPLIES, "correlation_id": "asked"}
        self.content(
            "basic.publish",
            channel.number,
            properties,
            self.body(),
            exchange=exchange,
            routing_key=key,
            mandatory=at_once and self.chance(0.3),
            immediate=at_once and self.talk.product == OTHER and self.chance(0.1),
        )

    def properties(self) -> Fields:
        given: Fields = {}
        for name, values in {
            "content_type": ("text/plain", "application/json"),
            "content_encoding": ("gzip",),
            "headers": ({"a": "b"}, {"n": ("I", -1), "t": {"x": True}, "l": ("A", ["1", ("l", 2)])}),
            "delivery_mode": (1, 2),
            "priority": (0, 9),
            "correlation_id": ("c-1",),
            "reply_to": ("orders",),
            "message_id": (f"m-{self.bodies}",),
            "timestamp": (1_700_000_000,),
            "type": ("t",),
            "user_id": ("guest",),
            "app_id": ("app",),
        }.items():
            if self.chance(0.15):
                given[name] = self.random.choice(values)
        return given

    def body(self) -> bytes:
        self.bodies += 1
        kind = self.random.random()
        if kind < 0.1:
            return b""
        if kind < 0.3:
            return b"the same"
        size = self.random.choice([10, 100, 1000])
        if self.character.big and kind > 0.8:
            size = self.random.choice([4088, 4089, 9000, 20_000])
        return (f"body {self.bodies} ".encode() * (size // 6 + 1))[:size]

    # ---- acknowledging -----------------------------------------------------------------------------------

    def ack_choices(self, channel: Channel) -> list[Choice]:
        if not channel.unsettled:
            return []
        need = 3.0 if self.owes_acks(channel) and self.talk.closing else 1.0
        some = need * len(channel.unsettled) / (1 + self.character.sloth)
        choices: list[Choice] = [(some, lambda: self.ack(channel, "basic.ack"))]
        choices.append((some * 0.1, lambda: self.ack(channel, "basic.reject")))
        if "basic.nack" in self.server_capabilities:
            choices.append((some * 0.15, lambda: self.ack(channel, "basic.nack")))
        if not channel.waiting and not channel.mode:
            choices.append((0.1, lambda: self.ask(channel, "basic.recover", requeue=True)))
        if channel.quiet and not channel.mode:
            choices.append((0.3, lambda: self.recover_async(channel)))
        return choices

    def ack(self, channel: Channel, name: str) -> None:
        tag = self.random.choice(sorted(channel.unsettled))
        fields: Fields = {"delivery_tag": tag}
        settled = {tag}
        if name != "basic.reject" and self.chance(0.4):
            fields["multiple"] = True
            settled = {one for one in channel.unsettled if one <= tag}
            if channel.quiet and self.chance(0.6):
                fields["delivery_tag"] = 0
                settled = set(channel.unsettled)
        if name != "basic.ack":
            fields["requeue"] = self.chance(0.6)
        channel.unsettled -= settled
        if channel.mode == "tx":
            channel.in_transaction |= settled
        self.say(name, channel.number, **fields)

    def recover_async(self, channel: Channel) -> None:
        channel.unsettled.clear()
        self.say("basic.recover-async", channel.number, requeue=True)

    # ---- confirms and transactions -----------------------------------------------------------------------

    def mode_choices(self, channel: Channel) -> list[Choice]:
        if channel.awaits("confirm.select", "tx.select"):
            return []
        if channel.mode == "tx":
            work = 0.3 if not channel.waiting else 0.0
            choices: list[Choice] = [
                (work, lambda: self.ask(channel, "tx.commit")),
                (work, lambda: self.ask(channel, "tx.rollback")),
            ]
            return [*choices, (0.01, lambda: self.ask(channel, "tx.select"))]
        if channel.mode == "confirm":
            return [(0.01, lambda: self.confirm_select(channel))]
        choices = [(0.05, lambda: self.ask(channel, "tx.select"))]
        if "publisher_confirms" in self.server_capabilities:
            choices.append((0.1, lambda: self.confirm_select(channel)))
        return choices

    def confirm_select(self, channel: Channel) -> None:
        said = self.ask(channel, "confirm.select", **self.no_wait())
        if said.fields.get("no_wait"):
            channel.mode = "confirm"

    # ---- hearing -----------------------------------------------------------------------------------------

    def heard(self, said: Said, content: Content | None) -> None:
        name = said.name
        if name.startswith("connection."):
            self.heard_connection(said)
            return
        channel = self.channels.get(said.channel)
        if channel is None:
            return
        if name == "channel.close":
            channel.asked_to_close = True
        elif name == "channel.close-ok":
            channel.closing = False
            if not channel.asked_to_close:
                self.leave(channel)
        elif not channel.closing and not channel.asked_to_close:
            self.heard_channel(channel, said)

    def heard_connection(self, said: Said) -> None:
        name = said.name
        self.to_answer = name
        if name == "connection.start":
            capabilities = said.fields["server_properties"].get("capabilities", {})
            self.server_capabilities = frozenset(capabilities)
        elif name == "connection.tune":
            self.tune = said.fields
        elif name == "connection.open-ok":
            self.opened = True
        elif name in ("connection.blocked", "connection.unblocked"):
            self.blocked = name == "connection.blocked"
        elif name == "connection.update-secret-ok":
            self.secret_asked = False

    def heard_channel(self, channel: Channel, said: Said) -> None:
        name = said.name
        fields = said.fields
        if name == "basic.deliver":
            _, no_ack = channel.consumers.get(fields["consumer_tag"], ("", True))
            if not no_ack:
                channel.unsettled.add(fields["delivery_tag"])
        elif name == "basic.cancel":
            channel.consumers.pop(fields["consumer_tag"], None)
            channel.cancelling.discard(fields["consumer_tag"])
            if not fields["no_wait"]:
                channel.cancel_asked.append(fields["consumer_tag"])
        elif name == "channel.flow":
            channel.flow_asked.append(fields["active"])
        elif name in ("basic.ack", "basic.nack", "basic.return"):
            pass
        else:
            self.answered(channel, channel.waiting.popleft(), said)

    def answered(self, channel: Channel, asked: Said, said: Said) -> None:
        name = asked.name
        fields = asked.fields
        assert said.name.startswith(f"{name}-"), (asked, said)
        if name == "channel.open":
            channel.opened = True
        elif name == "queue.declare":
            queue = said.fields["queue"]
            if not fields.get("passive"):
                self.queues[queue] = fields
                channel.queues.discard(queue)
                if not fields["queue"] and not channel.awaits("queue.declare"):
                    channel.current = queue
        elif name == "queue.delete":
            self.deleting.pop(fields["queue"], None)
        elif name == "exchange.declare":
            self.exchanges.add(fields["exchange"])
            channel.exchanges.discard(fields["exchange"])
        elif name == "basic.consume":
            channel.consumers[said.fields["consumer_tag"]] = (fields["queue"], fields["no_ack"])
        elif name == "basic.cancel":
            tag = fields["consumer_tag"]
            channel.consumers.pop(tag, None)
            channel.cancelling.discard(tag)
            if not tag.startswith("amq."):
                channel.used_tags.add(tag)
        elif said.name == "basic.get-ok" and not fields["no_ack"]:
            channel.unsettled.add(said.fields["delivery_tag"])
            channel.from_get.add(said.fields["delivery_tag"])
        elif name == "basic.recover":
            channel.unsettled.clear()
        elif name in ("tx.select", "confirm.select"):
            channel.mode = name.removesuffix(".select")
        elif name == "tx.rollback":
            channel.unsettled |= channel.in_transaction
            channel.in_transaction.clear()
        elif name == "tx.commit":
            channel.in_transaction.clear()

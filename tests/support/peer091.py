"""What a client and a broker of `support.legal091` have in common: frames, contents, heartbeats, the close.

A frame is a `Said`: the name of its method ("basic.publish"), or "header", "content-header", "body",
"heartbeat"; fields are the arguments as Python values, those of a content header its properties and
`body_size`.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from support import amqp091_encode as amqp
from support.legal import Choice, Fields, Said, weighted

if TYPE_CHECKING:
    from support.legal091 import Talk091

__all__ = ["Content", "Peer091", "encoded"]

RABBITMQ, LAVINMQ, OTHER = "RabbitMQ", "LavinMQ", "Other Broker"


class Content:
    """A content as it is heard: its method, its properties when they are there, and its body so far."""

    def __init__(self, method: Said) -> None:
        self.method = method
        self.properties: Fields | None = None
        self.size = 0
        self.body = b""

    def take(self, said: Said) -> bool:
        """A content header or body frame. True if that was the last."""
        if said.name == "content-header":
            self.properties = {**said.fields}
            self.size = self.properties.pop("body_size")
        else:
            self.body += said.payload
        return len(self.body) == self.size


def encoded(name: str, channel: int, fields: Fields, payload: bytes = b"") -> bytes:
    """The octets of a frame from what `Said` holds."""
    if name == "header":
        return amqp.header()
    if name == "heartbeat":
        return amqp.frame(amqp.HEARTBEAT, channel, payload)
    if name == "content-header":
        return amqp.frame(amqp.HEADER, channel, amqp.content_header(**fields))
    if name == "body":
        return amqp.frame(amqp.BODY, channel, payload)
    return amqp.say(name, channel, **fields)


class Peer091:
    """One peer's program. Public: `act` says something legal, `hear` takes in what the other one said."""

    def __init__(self, talk: Talk091, side: int) -> None:
        self.talk = talk
        self.side = side
        self.random = talk.random
        self.opened = False  # the connection, as far as this peer knows
        self.frame_max = 4096  # as agreed; 0: no limit
        self.heartbeat = 0
        self.tuned = False
        self.close_sent = False
        self.close_heard = False
        self.close_ok_sent = False
        self.close_ok_heard = False
        self.cut_off = False  # it closes the socket without a word
        self.parts: dict[int, deque[tuple[str, Fields, bytes]]] = {}  # frames of contents begun
        self.hearing: dict[int, Content] = {}

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    @property
    def finished(self) -> bool:
        """It will say nothing any more."""
        return self.close_ok_sent or self.close_ok_heard or self.cut_off

    # ---- silence -----------------------------------------------------------------------------------------

    def may_be_silent(self) -> int | None:
        """For how long (ns) from its last word on; None: as long as it likes."""
        return self.heartbeat * 1_000_000_000 if self.heartbeat and self.tuned and not self.finished else None

    def still_here(self) -> None:
        """Said when it has been silent for long."""
        self.say("heartbeat")

    # ---- saying ------------------------------------------------------------------------------------------

    def say(self, name: str, channel: int = 0, payload: bytes = b"", /, **fields: Any) -> Said:
        """Append a frame to this peer's stream, legal or not."""
        octets = encoded(name, channel, fields, payload)
        return self.put(Said(self.side, name, channel, fields, payload, octets, 0, 0))

    def put(self, said: Said) -> Said:
        stream = self.talk.said[self.side]
        said.start = stream[-1].end if stream else 0
        said.end = said.start + len(said.octets)
        stream.append(said)
        return said

    def content(self, name: str, channel: int, properties: Fields, body: bytes, **fields: Any) -> Said:
        """Say a method that has a content, whose frames follow at once or one after the other."""
        said = self.say(name, channel, **fields)
        frames: deque[tuple[str, Fields, bytes]] = deque()
        frames.append(("content-header", {**properties, "body_size": len(body)}, b""))
        room = self.frame_max - 8 if self.frame_max else len(body)
        at = 0
        while at < len(body):
            size = room if self.chance(0.7) else self.random.randrange(1, room + 1)
            frames.append(("body", {}, body[at : at + size]))
            at += size
        self.parts[channel] = frames
        if self.chance(0.5):
            while channel in self.parts:
                self.go_on(channel)
        return said

    def go_on(self, channel: int) -> None:
        """The next frame of the content that was begun."""
        frames = self.parts[channel]
        name, fields, payload = frames.popleft()
        if not frames:
            del self.parts[channel]
        self.say(name, channel, payload, **fields)

    def act(self) -> bool:
        """Say something that is legal now. False if there is nothing it may or wants to say."""
        if self.talk.mischief is not None and self.chance(0.1) and not self.close_sent:
            stream = self.talk.said[self.side]
            before = len(stream)
            if self.talk.mischief(self) is not None:
                for said in stream[before:]:
                    said.wrong = True
                return True
        choices = self.choices()
        if sum(weight for weight, _ in choices) < 0.5 and self.chance(0.9):
            return False  # nothing worth saying
        action = weighted(self.random, choices)
        if action is None:
            return False
        before = len(self.talk.said[self.side])
        action()
        new = self.talk.said[self.side][before:]
        for said in new:
            assert not self.frame_max or len(said.octets) <= self.frame_max, said
        return bool(new)

    def choices(self) -> list[Choice]:
        """What it may say now, each with a weight. Its last words first."""
        if self.finished:
            return []
        if self.close_heard:
            return [(1, self.close_ok)]
        if self.close_sent:
            return [(0.01, self.still_here)] if self.tuned and self.heartbeat else []
        choices: list[Choice] = [(3.0, lambda number=n: self.go_on(number)) for n in self.parts]  # type: ignore[misc]
        if self.tuned and self.heartbeat:
            choices.append((0.02, self.still_here))
        return choices + self.more_choices()

    def more_choices(self) -> list[Choice]:
        raise NotImplementedError

    def close(self, code: int, text: str, cause: str = "") -> None:
        """Of the connection. Contents that were begun are never finished."""
        self.close_sent = True
        self.parts.clear()
        class_id, method_id, _ = amqp.METHODS[cause] if cause else (0, 0, "")
        self.say("connection.close", reply_code=code, reply_text=text, class_id=class_id, method_id=method_id)

    def close_ok(self) -> None:
        self.parts.clear()
        self.close_ok_sent = True
        self.say("connection.close-ok")

    # ---- hearing -----------------------------------------------------------------------------------------

    def hear(self, said: Said) -> None:
        """The next frame of the other peer's."""
        if said.name == "connection.close":
            self.close_heard = True
        elif said.name == "connection.close-ok":
            self.close_ok_heard = True
        elif self.close_sent or self.close_heard or said.name in ("heartbeat", "header"):
            self.heard_header(said)
        elif said.name in ("content-header", "body"):
            content = self.hearing.get(said.channel)
            if content is not None and content.take(said):
                del self.hearing[said.channel]
                self.heard(content.method, content)
        elif said.name in ("basic.publish", "basic.deliver", "basic.get-ok", "basic.return"):
            self.hearing[said.channel] = Content(said)
        else:
            self.hearing.pop(said.channel, None)
            self.heard(said, None)

    def hear_wrong(self, said: Said) -> None:
        """What is not legal it does not take in; what leaves it at a loss makes it close the connection."""
        if said.name == "connection.close":
            self.close_heard = True
        ignored = said.name in ("heartbeat", "basic.ack", "basic.nack", "basic.reject") and self.chance(0.7)
        if not ignored and self.opened and not (self.close_sent or self.close_heard):
            self.close(501, "FRAME_ERROR")
        elif not self.opened:
            self.cut_off = True

    def heard_header(self, said: Said) -> None:
        """A protocol header, or what is of no interest."""

    def heard(self, said: Said, content: Content | None) -> None:
        """A method, with its content if it has one."""
        raise NotImplementedError

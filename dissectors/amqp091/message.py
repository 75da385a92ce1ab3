"""Putting messages together from the frames of one direction (AMQP 0-9-1, section 4.2.6).

A message is a method that has content (basic.publish, return, deliver, get-ok), a content header that says
how many octets follow, and as many body frames as it takes, all on one channel; other channels interleave
freely. Whatever else comes on the channel in between ends the message where it is.

A frame that breaks the rules of this sequence gets that as a problem (`F-CONTENT-NO-METHOD` and its like)
when it is taken. One fault is reported once: the frame may have been meant for any channel, and be missing
there, so each channel is silent until its next method, which always begins something new. A method that cuts
off a content does not, since the rest of the content may follow; but one with a content of its own, instead
of a content header, does. So it is on all channels after octets that were not captured, and where the start
was not.
"""

from typing import Any, Final

from dissectors.amqp091.arguments import Method
from dissectors.amqp091.content import ContentHeader
from dissectors.amqp091.portable import dump_method, load_method
from dissectors.interface import Assembled, Assembler, Frame, Problem
from dissectors.limits import MAX_MESSAGE, MAX_OPEN_DELIVERIES
from dissectors.wire import i64
from dissectors.wording import are, count

__all__ = ["Amqp091Message", "Amqp091MessageAssembler"]

_DUMP_VERSION: Final = 2

# What is wrong with a method that is none, or has other arguments than it should. "cut" stands for any of the
# others behind octets that were not captured.
_MISREAD: Final = ("F-METHOD-KNOWN", "F-METHOD-ARGS", "F-METHOD-TRAILING", "T-LENGTH-BOUNDS", "cut")

# Octets around the payload of a frame.
_AROUND: Final = 8

# Octets up to which the parts of a body are joined: enough to make a part's own cost small.
_SMALL_PART: Final = 2048


class Amqp091Message(Assembled):
    """A message, as far as it was captured.

    channel; offset: stream offset of its method's frame, or of its header's where no method stands before it.
    method: basic.publish and its like, None where it is not known. header: None where none came, or none that
    decodes. announced: octets of body that the header tells, to be counted with, -1 without one. seen: octets
    of body that came, those included that were not captured. frames: number of body frames. whole: nothing of
    it is known to be missing. parts: what is kept of the body.
    """

    def __init__(self, channel: i64, offset: i64, method: Method | None) -> None:
        super().__init__()
        self.channel: i64 = channel
        self.offset: i64 = offset
        self.method: Method | None = method
        self.header: ContentHeader | None = None
        self.announced: i64 = -1
        self.seen: i64 = 0
        self.frames: i64 = 0
        self.whole: bool = method is not None
        self.parts: list[bytes] = []
        self.kept: i64 = 0
        # A header frame came, whether or not it decodes.
        self.headed: bool = False

    @staticmethod
    def of(assembled: Assembled | None) -> "Amqp091Message | None":
        """What was put together, if it is a message of AMQP 0-9-1."""
        return assembled if isinstance(assembled, Amqp091Message) else None

    @property
    def complete(self) -> bool:
        """It was seen from its method to its end, as many octets as announced, with nothing missing."""
        return self.whole and self.header is not None and self.seen == self.announced

    @property
    def body_size(self) -> int:
        """Octets of body as the header tells them, -1 without one."""
        return -1 if self.header is None else self.header.body_size

    @property
    def body(self) -> bytes:
        """What is kept of the body: all of it if as many octets as were seen."""
        if len(self.parts) > 1:
            self.parts = [b"".join(self.parts)]
        return self.parts[0] if self.parts else b""

    def add(self, payload: bytes) -> None:
        """Keep a part. Small ones are joined, so that many of them cost no more than few."""
        self.kept += len(payload)
        if self.parts and len(self.parts[-1]) + len(payload) <= _SMALL_PART:
            self.parts[-1] += payload
        elif payload:
            self.parts.append(payload)

    def shortened(self, most: i64) -> "Amqp091Message":
        copy = Amqp091Message(self.channel, self.offset, self.method)
        copy.header = self.header
        copy.announced = self.announced
        copy.seen = self.seen
        copy.frames = self.frames
        copy.whole = self.whole
        copy.headed = self.headed
        copy.add(self.body[:most])
        return copy

    def __repr__(self) -> str:
        name = "unknown" if self.method is None else self.method.definition().name
        return f"<Message {name} channel={self.channel} {self.seen} of {self.body_size} octets>"


class Amqp091MessageAssembler(Assembler):
    """Takes the frames of one direction in order, gives back the messages that they end.

    keeping: keep the bodies; else they are only counted.
    """

    def __init__(self, keeping: bool = False) -> None:
        super().__init__()
        self.keeping: bool = keeping
        self._open: dict[int, Amqp091Message] = {}
        # The one of these that was begun last, None if it is over: most frames belong to it.
        self._newest: Amqp091Message | None = None
        self._kept: i64 = 0
        # Channels on which it is not known what has to come, until the next method: all but `_sure`, or some.
        self._gap: bool = False
        self._sure: set[int] = set()
        self._unsure: set[int] = set()
        # Channels whose last message had no body, with nothing since.
        self._empty: set[int] = set()

    def joined_midstream(self) -> None:
        """The frames before the first one were not captured."""
        self._gap = True

    def _fault(self, frame: Frame) -> str:
        """The rule about the sequence of content that a frame seems to break, or "". Before it is taken."""
        kind = frame.kind
        if kind != "method" and kind != "content-header" and kind != "body":
            return ""
        channel = int(frame.channel)
        message = self._open.get(channel)
        if kind == "method":
            if message is None or frame.name == "channel.close":
                # To close the channel is how a message is given up.
                return ""
            if message.method is None or not message.whole:
                # How much should have come is not known.
                return ""
            return "F-CONTENT-NO-METHOD" if message.headed else "F-CONTENT-HEADER-NEXT"
        if kind == "content-header":
            if message is None:
                return "F-HEADER-ORPHAN"
            return "F-CONTENT-ONE-HEADER" if message.headed and message.whole else ""
        if message is None:
            return "F-BODY-ZERO" if channel in self._empty else "F-BODY-ORPHAN"
        if not message.headed:
            return "F-CONTENT-HEADER-NEXT"
        size = message.seen + frame.declared_size - _AROUND
        return "F-BODY-OVERRUN" if message.announced >= 0 and size > message.announced else ""

    def _is_sure(self, channel: int) -> bool:
        """Whether it is known what has to come on a channel."""
        return channel not in self._unsure and (not self._gap or channel in self._sure)

    def take(self, frame: Frame) -> Amqp091Message | None:
        kind = frame.kind
        if kind == "heartbeat" or kind == "header":
            return None
        message = self._find(frame.channel)
        fault = "" if self._in_order(frame, message) else self._fault(frame)
        if fault and self._is_sure(int(frame.channel)):
            frame.add_problem(Problem(fault, 0, "", self._reason(fault, frame)))
            self._doubt_order()
        if kind == "body":
            return self._body(frame, message)
        if kind == "content-header":
            return self._header(frame, message)
        if kind == "method":
            ended = self._method(frame)
            if fault == "F-CONTENT-NO-METHOD" or (fault and int(frame.channel) not in self._open):
                # The rest of the content that it cuts off may follow.
                self._unsure.add(int(frame.channel))
            return ended
        if kind == "skipped" or kind == "unknown":
            self._doubt()
        return None

    def _find(self, channel: i64) -> Amqp091Message | None:
        """The message under way on a channel."""
        newest = self._newest
        if newest is not None and newest.channel == channel:
            return newest
        return self._open.get(int(channel)) if self._open else None

    def _in_order(self, frame: Frame, message: Amqp091Message | None) -> bool:
        """Whether a frame is what has to come on its channel, as nearly every one is.

        message: the one under way there.
        """
        kind = frame.kind
        if message is None:
            return kind == "method"
        if kind == "body":
            size = message.seen + frame.declared_size - _AROUND
            return message.headed and message.announced >= 0 and size <= message.announced
        return kind == "content-header" and not message.headed

    def _reason(self, fault: str, frame: Frame) -> str:
        """What is wrong with a frame that breaks this rule."""
        message = self._open.get(int(frame.channel))
        if fault == "F-HEADER-ORPHAN":
            return (
                "the peer sends a content header, but no method with content came before the content header"
            )
        if fault == "F-BODY-ZERO":
            return "the peer sends a body frame, but the content header has body-size 0"
        if message is None or message.method is None:
            return "the peer sends a body frame, but no content header came before the body frame"
        begun = message.method.definition().name
        sent = {"body": "a body frame", "content-header": "a content header"}.get(frame.name, frame.name)
        if fault == "F-CONTENT-HEADER-NEXT":
            return f"the peer sends {sent}, not the content header of the previous {begun}"
        if fault == "F-BODY-OVERRUN":
            size = message.seen + frame.declared_size - _AROUND
            announced = f"the content header announces {message.body_size}"
            if frame.declared_size > frame.size:
                return f"with this body frame, the body has {size} octets, but {announced}"
            return f"the body has {size} octets, but {announced}"
        left = message.body_size - int(message.seen)
        missing = f"{count(left, 'octet')} of the body of the previous {begun} {are(left)} still missing"
        return f"the peer sends {sent}, but {missing}"

    def finish(self) -> list[Amqp091Message]:
        """The stream ended: the messages that were not."""
        left = list(self._open.values())
        self._open = {}
        self._newest = None
        self._kept = 0
        return left

    def _method(self, frame: Frame) -> Amqp091Message | None:
        channel = int(frame.channel)
        ended: Amqp091Message | None = None
        if self._open:
            ended = self._close(channel)
        if self._unsure:
            self._unsure.discard(channel)
        if self._gap:
            self._sure.add(channel)
        if self._empty:
            self._empty.discard(channel)
        method = frame.body
        if isinstance(method, Method):
            if method.definition().content:
                self._begin(channel, Amqp091Message(channel, frame.offset, method))
            if frame.problems and any(problem.code in _MISREAD for problem in frame.problems):
                # Another one may have been meant, with content or without.
                self._unsure.add(channel)
        else:
            # It may have been one that has content.
            self._unsure.add(channel)
        return ended

    def _header(self, frame: Frame, message: Amqp091Message | None) -> Amqp091Message | None:
        channel = int(frame.channel)
        ended: Amqp091Message | None = None
        if message is None or message.headed:
            # The method before it is not there.
            ended = self._close(channel)
            message = Amqp091Message(channel, frame.offset, None)
            self._begin(channel, message)
            self._unsure.add(channel)
        message.headed = True
        header = frame.body
        if isinstance(header, ContentHeader):
            message.header = header
            message.announced = header.size
            if message.announced == 0:
                if message.method is not None:
                    self._empty.add(channel)
                del self._open[channel]
                if self._newest is message:
                    self._newest = None
                # Of what stood before it nothing was announced that it could have ended.
                return message if ended is None else ended
        else:
            message.whole = False
        return ended

    def _body(self, frame: Frame, message: Amqp091Message | None) -> Amqp091Message | None:
        channel = int(frame.channel)
        if message is None or not message.headed:
            # Whose body this is nobody knows.
            self._unsure.add(channel)
            return self._close(channel)
        message.frames += 1
        message.seen += frame.size - _AROUND
        if frame.missing > 0 and frame.declared_size > frame.size:
            # The stream ended in it, before its frame end.
            message.seen += 1
        if frame.missing > 0:
            message.whole = False
        elif self.keeping and message.whole:
            size = frame.payload_size
            if self._kept + size <= MAX_MESSAGE:
                message.add(frame.payload)
                self._kept += size
        if message.announced >= 0 and message.seen >= message.announced:
            if message.seen > message.announced:
                self._unsure.add(channel)
            return self._close(channel)
        return None

    def _begin(self, channel: int, message: Amqp091Message) -> None:
        if len(self._open) >= MAX_OPEN_DELIVERIES:
            oldest = next(iter(self._open))
            self._close(oldest)
            self._unsure.add(oldest)
        self._open[channel] = message
        self._newest = message

    def _close(self, channel: int) -> Amqp091Message | None:
        if not self._open:
            return None
        message = self._open.pop(channel, None)
        if message is not None:
            self._kept -= message.kept
            if self._newest is message:
                self._newest = None
        return message

    def _doubt_order(self) -> None:
        """It is not known what has to come, on any channel."""
        self._gap = True
        self._sure.clear()
        self._unsure.clear()
        self._empty.clear()

    def _doubt(self) -> None:
        """Frames may have been missed, on any channel."""
        self._doubt_order()
        for message in self._open.values():
            message.whole = False

    def dump(self) -> tuple[object, ...]:
        """The messages under way, as plain values."""
        messages = tuple(_dump_message(message) for message in self._open.values())
        sets = tuple(tuple(sorted(some)) for some in (self._sure, self._unsure, self._empty))
        return (_DUMP_VERSION, self.keeping, self._gap, sets, messages)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Amqp091MessageAssembler":
        """An assembler that goes on where `dump` left off. Raises ValueError on another version's state."""
        if not state or state[0] != _DUMP_VERSION:
            raise ValueError(f"state of a message assembler in version {state[:1]}, not {_DUMP_VERSION}")
        assembler = Amqp091MessageAssembler(state[1])
        assembler._gap = state[2]
        sure, unsure, empty = state[3]
        assembler._sure = set(sure)
        assembler._unsure = set(unsure)
        assembler._empty = set(empty)
        for saved in state[4]:
            message = _load_message(saved)
            assembler._open[int(message.channel)] = message
            assembler._kept += message.kept
        return assembler


def _dump_message(message: Amqp091Message) -> tuple[object, ...]:
    method = None if message.method is None else dump_method(message.method)
    header: tuple[object, ...] | None = None
    if message.header is not None:
        known = message.header
        header = (known.class_id, known.weight, known.body_size, known.flags, known.octets)
        header += (known.delivery_mode, known.priority, known.timestamp, known.sound)
    return (
        message.channel,
        message.offset,
        method,
        header,
        message.seen,
        message.frames,
        message.whole,
        message.headed,
        message.body,
    )


def _load_message(saved: tuple[Any, ...]) -> Amqp091Message:
    channel, offset, method_state, header_state, seen, frames, whole, headed, body = saved
    method = None if method_state is None else load_method(method_state)
    message = Amqp091Message(channel, offset, method)
    if header_state is not None:
        class_id, weight, body_size, flags, octets, delivery_mode, priority, timestamp, sound = header_state
        header = ContentHeader(class_id, weight, body_size, flags, octets)
        header.delivery_mode = delivery_mode
        header.priority = priority
        header.timestamp = timestamp
        header.sound = sound
        message.header = header
        message.announced = header.size
    message.seen = seen
    message.frames = frames
    message.whole = whole
    message.headed = headed
    message.add(body)
    return message

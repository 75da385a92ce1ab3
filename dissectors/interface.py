"""What a dissector takes in and gives out.

A dissector decodes one direction of one connection. It is fed with the octets of the stream in
order, is notified of octets that are missing, and of the end of the stream; it gives back `Frame`s. For
any octets whatever: what breaks the encoding is a `Problem` of its frame, what cannot be a frame
becomes a frame of the kind `skipped`. It never raises and knows neither packets nor time nor the
other direction.
"""

from collections.abc import Sequence
from typing import Final

from dissectors.wire import i64

__all__ = ["Assembled", "Assembler", "Body", "BodyField", "Dissector", "Frame", "Problem"]


class Problem:
    """Something in a frame that is not as the specification says, or not as it was sent.

    code: stable. In capitals (`T-LIST-FIT`) it is the id of a rule of the protocol's catalogue; in
        small letters it accuses nobody: `cut` (octets were not captured), `limit` (a bound of ours),
        `skipped` (octets in which no frame was found), `incomplete` (the stream ended inside).
    offset: octets from the first octet of the frame (or of the message, for its sections).
    path: the field it concerns, as `attach.source.filter[0]`; empty for the frame as a whole.
    reason: one sentence part with the values, for a person. Never holds octets from the wire.
    unread: what its sender meant there is not known, since it could not be read as what has to stand there.
    """

    def __init__(self, code: str, offset: i64, path: str, reason: str, unread: bool = False) -> None:
        self.code: str = code
        self.offset: i64 = offset
        self.path: str = path
        self.reason: str = reason
        self.unread: bool = unread

    def __repr__(self) -> str:
        return f"Problem({self.code!r}, {self.offset}, {self.path!r}, {self.reason!r})"


class BodyField:
    """One field of a body, in the words of the protocol's specification.

    secret: its content must never be shown (credentials).
    """

    def __init__(self, name: str, type: str, secret: bool = False) -> None:
        self.name: str = name
        self.type: str = type
        self.secret: bool = secret


class Body:
    """What stands in a frame, decoded: fields, of which each may be there or not, and may be a body itself.

    This is what can be determined of any protocol's frames. Who judges them knows their classes.
    """

    def title(self) -> str:
        """What it is, in the specification's word."""
        return ""

    def fields(self) -> Sequence[tuple[BodyField, object]]:
        """The fields that are present, with what was sent, whether of the right type or not."""
        return []

    def is_odd(self, value: object) -> bool:
        """Whether this value of `fields` is not of its field's type."""
        return False


class Frame:
    """One frame (or protocol header, or skipped stretch) as it stands in the stream.

    offset: stream offset of its first octet. size: its octets in the stream; `declared_size` is more
        where the stream ended inside it.
    kind: `header`, `amqp`, `sasl`, `skipped`, or a kind of another protocol.
    name: what it is, in the specification's word: `transfer`, `sasl-init`, `empty`, `header`.
    channel: -1 where the kind has none. dialect: of a protocol that has several; "" is the usual one.
    assumed: nothing has decided the dialect, and what there is speaks for another one; or it is in a
        dialect, and that of the other end is not known.
    body: mostly a `Body`, its class depends on the protocol; None where there is none; or any value.
    missing: octets of it that were not captured, not kept, or never sent. uncaptured: those of its `size`
        that were not captured. guessed: it stands behind a boundary that was only searched for.
    buffer: where it lies, lent by whoever fed it, often large; `payload_start` is an index in it.
    trailer: octets at its end that are not payload (AMQP 0-9-1's frame end).
    problems: in the order of their discovery; empty for nearly every frame.
    """

    def __init__(self, offset: i64, size: i64, kind: str, name: str, channel: i64) -> None:
        self.offset: i64 = offset
        self.size: i64 = size
        self.kind: str = kind
        self.name: str = name
        self.channel: i64 = channel
        self.dialect: str = ""
        self.assumed: bool = False
        self.body: object = None
        self.missing: i64 = 0
        self.uncaptured: i64 = 0
        self.guessed: bool = False
        self.problems: list[Problem] = NO_PROBLEMS
        self.buffer: bytes = b""
        self._start: i64 = 0
        self._body_start: i64 = 0
        self.payload_start: i64 = 0
        self._end: i64 = 0
        self.trailer: i64 = 0
        self._not_kept: i64 = 0

    def place(self, octets: bytes, start: i64, body: i64, payload: i64, end: i64) -> None:
        """Say where the frame lies: the indexes in `octets` of its start, body, payload and end."""
        self.buffer = octets
        self._start = start
        self._body_start = body
        self.payload_start = payload
        self._end = end

    def garbled(self) -> bool:
        """Whether its octets do not fit together, so that where it ends, and what it is, is not sure."""
        for problem in self.problems:
            code = problem.code
            if problem.unread or code.startswith("F-") or code == "incomplete":
                return True
        return self.kind == "skipped" or self.name == "undecodable"

    @property
    def raw(self) -> bytes:
        """The frame's octets, as far as they were captured in one piece from its start."""
        if self._start == 0 and self._end == len(self.buffer):
            return self.buffer  # it may be megabytes: not copied
        return self.buffer[self._start : self._end]

    @property
    def declared_size(self) -> i64:
        """The size that the frame's own header tells."""
        return self._end - self._start + self.missing

    @property
    def absent(self) -> i64:
        """As `missing`, without those that were never sent: the stream ended before them."""
        unsent: i64 = self.declared_size - self.size
        return self.missing - unsent if unsent > 0 else self.missing

    @property
    def extended_header(self) -> bytes:
        """The octets between the eight of the frame header and the body."""
        if self._body_start <= self._start + 8:
            return b""
        return self.buffer[self._start + 8 : self._body_start]

    @property
    def payload(self) -> bytes:
        """The octets behind the performative (a transfer's part of the message)."""
        return self.buffer[self.payload_start : self._end - self.trailer]

    @property
    def payload_size(self) -> i64:
        """The number of captured payload octets, without copying them."""
        return self._end - self.trailer - self.payload_start

    @property
    def payload_captured(self) -> i64:
        """As `payload_size`, and of a copy with what was left out of it (see `kept`)."""
        return self._end - self.trailer - self.payload_start + self._not_kept

    def detach(self) -> i64:
        """Take its octets out of the large buffer they lie in, which is let go. By how much they moved."""
        shift = self._start
        self.place(self.raw, 0, self._body_start - shift, self.payload_start - shift, self._end - shift)
        return shift

    def with_body(self, body: object) -> "Frame":
        """The same frame with another body, which says the same in the terms of another edition."""
        copy = Frame(self.offset, self.size, self.kind, self.name, self.channel)
        copy.body = body
        copy.missing = self.missing
        copy.uncaptured = self.uncaptured
        copy.guessed = self.guessed
        copy.problems = self.problems
        copy.trailer = self.trailer
        copy.place(self.buffer, self._start, self._body_start, self.payload_start, self._end)
        return copy

    def claim_payload(self, octets: i64) -> None:
        """Count so many octets at its end as payload: what its fields carry of a message."""
        self.payload_start = self._end - self.trailer - octets

    def kept(self, most: i64) -> "Frame":
        """A copy to be kept: with at most so many octets, taken out of the large buffer they may lie in."""
        copy = Frame(self.offset, self.size, self.kind, self.name, self.channel)
        copy.dialect = self.dialect
        copy.body = self.body
        copy.problems = self.problems
        copy.uncaptured = self.uncaptured
        copy.guessed = self.guessed
        end = self._end
        copy.trailer = self.trailer
        if end - self._start > most:
            end = self._start + most
            copy.trailer = 0
        copy.missing = self.missing + (self._end - end)
        shift = self._start
        payload = self.payload_start
        if payload > end:
            payload = end
        body = self._body_start
        if body > end:
            body = end
        copy.place(self.buffer[shift:end], 0, body - shift, payload - shift, end - shift)
        copy._not_kept = self.payload_captured - copy.payload_size
        return copy

    def add_problem(self, problem: Problem) -> None:
        """Add to the frame's problems."""
        if not self.problems:
            self.problems = []
        self.problems.append(problem)

    def __repr__(self) -> str:
        return f"<Frame {self.kind} {self.name} channel={self.channel} at {self.offset}+{self.size}>"


# One list for all frames without a problem, which is nearly all: `add_problem` never writes to it.
NO_PROBLEMS: Final[list[Problem]] = []


class Dissector:
    """One direction of a connection. Subclasses append what they decode to `frames`.

    offset: stream offset of the first octet that belongs to no frame given out yet. attentive: wants to be
    notified of frames, of its own direction and of the other one (`observe`).
    """

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.offset: i64 = 0
        self.wants_frames: bool = False

    def feed(self, buf: bytes, start: i64, end: i64) -> None:
        """Take the next octets of the stream, buf[start:end]."""

    def gap(self, size: i64) -> None:
        """The next `size` octets of the stream were not captured."""

    def end(self, reason: str) -> None:
        """The stream ended: `fin`, `rst`, or `capture` when only the capture did."""

    def observe(self, frame: Frame) -> None:
        """A frame of either direction, as long as both are `wants_frames`."""

    def dump(self) -> tuple[object, ...]:
        """The state, as plain values; see `load` of the subclass."""
        return ()


class Assembled:
    """What several frames say together: a message."""

    def lies_in(self, buffer: bytes) -> bool:
        """Whether all that is kept of it lies in this buffer, as a frame's octets do."""
        return False

    def move(self, buffer: bytes, shift: i64) -> None:
        """The octets that it lies in were copied to `buffer`, `shift` nearer to the start."""

    def shortened(self, most: i64) -> "Assembled":
        """A copy to be kept, with at most so many of its octets."""
        return self


class Assembler:
    """Puts together what the frames of one direction say: a subclass for each protocol."""

    def joined_midstream(self) -> None:
        """The frames before the first one were not captured."""

    def take(self, frame: Frame) -> Assembled | None:
        """The next frame, in order; what it completes, or cuts short."""
        return None

    def dump(self) -> tuple[object, ...]:
        """The state, as plain values; see `load` of the subclass."""
        return ()

"""From the octets of one direction to protocol headers and frames (AMQP 0-9-1, sections 4.2.2 to 4.2.7).

A frame is its type (1 octet), channel (2), size (4), so many octets of payload, and 0xCE. How the chain of
frames is followed, and found again, `dissectors.stream_decoder` tells. Here it also breaks at a frame end
that is none. Then either the end is wrong or the size: if a credible boundary lies inside, the size was, and
what stands before the boundary is skipped; else the frame is given out with its fault. A frame of an unknown
type is treated alike, if its end is right.

A boundary is credible where there stands, whole and at most `RESYNC_WINDOW` octets long,

* a method that is known, on channel 0 if and only if it is one of the class connection, whose arguments
  decode without a fault, and end where the frame does;
* a content header of class basic and weight 0 on another channel, whose properties do so;
* a heartbeat, all eight octets; or the protocol header of 0-9-1;
* a body before another body, or before one of these, each with its frame end. Bodies alone are only type
  and end, what any octets may look like: larger ones are passed over until something else follows.

At least six octets, mostly more than ten, have exactly one value then, so that one does not meet them by
chance in what a capture can hold. They can be there on purpose, in the body of a message. So for
`GUESSED_OCTETS` behind a boundary that was searched for, nothing that is wrong accuses anybody.

Which end of the connection this is the decoder does not know. A stream that begins with no frame is reported
as `F-PROTO-HDR`; of a server that is no breach of that rule but of those about frames.
"""

import re
from typing import Final

from dissectors.amqp091.arguments import ArgumentReader, Method, UnknownMethod
from dissectors.amqp091.content import read_content_header
from dissectors.amqp091.methods import ConnectionStart, ConnectionStartOk
from dissectors.amqp091.problems import NO_HEADER, WRONG_FRAME_END
from dissectors.amqp091.registry import new_method
from dissectors.amqp091.tables import EITHER, RABBITMQ
from dissectors.interface import Frame, Problem
from dissectors.limits import GUESSED_OCTETS, MAX_CREDIBLE_FRAME, MAX_WRONG_FRAME, RESYNC_WINDOW
from dissectors.stream_decoder import CREDIBLE, NOT_CREDIBLE, UNSURE, StreamDecoder
from dissectors.wire import i64, u16, u32
from dissectors.wording import count

__all__ = ["Amqp091FrameDecoder", "credible_frame"]

METHOD: Final = 1
HEADER: Final = 2
BODY: Final = 3
HEARTBEAT: Final = 8
FRAME_END: Final = 0xCE

_MAGIC: Final = 0x414D5150  # "AMQP"
_CONNECTION: Final = 10  # the class that has channel 0 for itself

# Octets of a frame that are not payload: seven before it, one behind it.
_AROUND: Final = 8

# What every credible boundary begins with; a size below 64 KiB has two zero octets.
_CANDIDATE: Final = re.compile(
    rb"[\x01-\x03]..\x00\x00..|\x08\x00\x00\x00\x00\x00\x00\xce|AMQP\x00\x00\x09\x01", re.DOTALL
)
# The octets that decide whether it may match.
_CANDIDATE_OCTETS: Final = 8


# Products whose field tables are read as RabbitMQ's errata say.
_RABBITMQ_DIALECT: Final = ("RabbitMQ", "LavinMQ")


def credible_frame(buf: bytes, at: i64, end: i64, last: bool = False) -> i64:
    """Judge whether a frame or protocol header begins at `at`.

    Gives CREDIBLE, NOT_CREDIBLE, or how many octets from `at` on are needed to tell (about twice
    RESYNC_WINDOW at most). last: nothing comes behind buf[:end].
    """
    left = end - at
    kind: i64 = buf[at]
    if kind == 0 or (kind > BODY and kind != HEARTBEAT and kind != 0x41):
        return NOT_CREDIBLE
    if left < 8:
        return 8
    if kind == 0x41:
        known = u32(buf, at) == _MAGIC and u32(buf, at + 4) == 0x0000_0901
        return CREDIBLE if known else NOT_CREDIBLE
    channel = u16(buf, at + 1)
    size = u32(buf, at + 3)
    if kind == HEARTBEAT:
        return CREDIBLE if channel == 0 and size == 0 and buf[at + 7] == FRAME_END else NOT_CREDIBLE
    need = size + _AROUND
    if need > RESYNC_WINDOW:
        return NOT_CREDIBLE
    if kind == BODY:
        return _credible_body(buf, at, end, last)
    if size < 4 or (kind == HEADER and (size < 14 or channel == 0)):
        return NOT_CREDIBLE
    if left < 11:
        return 11
    class_id = u16(buf, at + 7)
    detail = u16(buf, at + 9)
    method: Method | None = None
    if kind == HEADER:
        if class_id != 60 or detail != 0:
            return NOT_CREDIBLE
    else:
        method = new_method(class_id, detail)
        if method is None or (class_id == _CONNECTION) != (channel == 0):
            return NOT_CREDIBLE
    if left < need:
        return need
    if buf[at + need - 1] != FRAME_END:
        return NOT_CREDIBLE
    reader = ArgumentReader()
    if method is None:
        read_content_header(buf, at + 7, at + need - 1, reader, at, False)
        return NOT_CREDIBLE if reader.problems else CREDIBLE
    reader.begin(buf, at + 11, at + need - 1, at, method, False)
    method.decode(reader)
    return CREDIBLE if not reader.problems and reader.pos == reader.end else NOT_CREDIBLE


def _credible_body(buf: bytes, at: i64, end: i64, last: bool) -> i64:
    """Judge the body frame at `at`, small enough to be looked at, by what follows it."""
    need = u32(buf, at + 3) + _AROUND
    if u16(buf, at + 1) == 0 or need == _AROUND:
        return NOT_CREDIBLE
    behind = at + need
    if behind <= end and buf[behind - 1] != FRAME_END:
        return NOT_CREDIBLE
    if end - behind < 8:
        return need + 8
    if buf[behind] != BODY:
        following = credible_frame(buf, behind, end, last)
        return following if following <= 0 else need + following
    second = u32(buf, behind + 3) + _AROUND
    if second > RESYNC_WINDOW or second == _AROUND or u16(buf, behind + 1) == 0:
        return NOT_CREDIBLE
    if behind + second > end:
        return need + second
    return CREDIBLE if buf[behind + second - 1] == FRAME_END else NOT_CREDIBLE


def _printed_heartbeat(buf: bytes, at: i64) -> bool:
    """Whether four octets are a heartbeat as the specification's grammar prints it: without its size."""
    return buf[at] == HEARTBEAT and buf[at + 3] == FRAME_END and u16(buf, at + 1) == 0


class Amqp091FrameDecoder(StreamDecoder):
    """Decodes one direction of an AMQP 0-9-1 connection into `frames`.

    midstream: the octets fed first need not begin at a frame boundary. dialect: that of the field tables; it
    may be set between two calls (`speak`), once the peers' products are known.
    """

    def __init__(self, midstream: bool = False, dialect: i64 = EITHER) -> None:
        super().__init__(midstream, GUESSED_OCTETS)
        # A protocol header or frame has come.
        self.opened: bool = False
        self.reader: ArgumentReader = ArgumentReader(dialect)
        self.wants_frames = True

    def speak(self, dialect: i64) -> None:
        """The dialect of the field tables from here on."""
        self.reader.dialect = dialect
        self.wants_frames = False

    def observe(self, frame: Frame) -> None:
        """The server's product tells which dialect of field tables the two speak."""
        method = frame.body
        if isinstance(method, ConnectionStart):
            table = method.server_properties
            product = None if table is None else table.get("product")
            self.speak(RABBITMQ if product in _RABBITMQ_DIALECT else EITHER)
        elif isinstance(method, Method) and not isinstance(method, ConnectionStartOk):
            # The start was not captured: nobody will tell.
            self.wants_frames = False

    # The stream

    def feed(self, buf: bytes, start: i64, end: i64) -> None:
        super().feed(buf, start, end)
        # A connection that is silent from here on is not to keep a megabyte of the file.
        self.reader.buf = b""

    # While the chain holds

    def run(self, buf: bytes, start: i64, end: i64) -> i64:
        pos = start
        while end - pos >= 8:
            kind: i64 = buf[pos]
            size = u32(buf, pos + 3) + _AROUND
            if kind == 0 or (kind > BODY and kind != HEARTBEAT):
                if u32(buf, pos) != _MAGIC:
                    self.unknown_type(kind, size)
                    return pos
                self.header(buf, pos)
                pos += 8
                continue
            if kind == HEARTBEAT and _printed_heartbeat(buf, pos):
                self.printed_heartbeat(buf, pos)
                pos += 4
                continue
            if size > MAX_CREDIBLE_FRAME and self.unsure():
                self.lose("cut", UNSURE)
                return pos
            if size > end - pos:
                break
            if buf[pos + size - 1] != FRAME_END:
                if not self.wrong_end(buf, pos, size):
                    return pos
            else:
                self.doubtful = False
                self.decode(buf, pos, size, size)
            pos += size
        if pos < end:
            self.keep(buf, pos, end)
        return -1

    def unknown_type(self, kind: i64, size: i64) -> None:
        """The chain breaks at a frame of an unknown type, which says that it has this size."""
        if self.unsure():
            self.lose("cut", UNSURE)
        elif self.offset == self.origin:
            self.lose(NO_HEADER, "the stream begins with neither a protocol header nor a frame")
        else:
            more = (
                "; one place of the specification uses this frame type for a heartbeat" if kind == 4 else ""
            )
            self.lose("F-FRAME-TYPE", f"the frame type {kind} is unknown{more}")
            if size <= MAX_WRONG_FRAME:
                self.hint = size

    def wrong_end(self, buf: bytes, at: i64, size: i64) -> bool:
        """The frame at `at` has a wrong frame end. Gives it out, or breaks the chain: then False."""
        octet: i64 = buf[at + size - 1]
        reason = f"the frame-end octet is 0x{octet:02x}, not 0xce"
        if self.unsure():
            self.lose("cut", UNSURE)
            return False
        if self.boundary(buf, at + 1, at + size) >= 0:
            self.lose(WRONG_FRAME_END, reason)
            return False
        self.decode(buf, at, size, size)
        self.frames[-1].add_problem(Problem(WRONG_FRAME_END, size - 1, "", reason))
        self.doubtful = True
        return True

    def frame_size(self, buf: bytes) -> i64:
        return u32(buf, 3) + _AROUND

    def decode_part(self, front: bytes, size: i64, octet: i64) -> None:
        super().decode_part(front, size, octet)
        if octet >= 0 and octet != FRAME_END and not self.unsure():
            reason = f"the frame-end octet is 0x{octet:02x}, not 0xce"
            self.frames[-1].add_problem(Problem(WRONG_FRAME_END, size - 1, "", reason))
            self.doubtful = True

    def unfinished(self, reason: str) -> None:
        if 4 <= self.begun.passed < 8 and _printed_heartbeat(self.front(), 0):
            self.printed_heartbeat(self.front(), 0)
            self.begun.passed -= 4
        super().unfinished(reason)

    # One frame

    def header(self, buf: bytes, at: i64) -> None:
        """A protocol header."""
        frame = self.protocol_header(buf, at)
        if self.opened and not self.unsure():
            reason = "the peer sends a protocol header, but has already sent a protocol header or frames"
            frame.add_problem(Problem("F-PROTO-HDR-ONCE", 0, "", reason))
        self.opened = True
        self.give(frame, 8)

    def printed_heartbeat(self, buf: bytes, at: i64) -> None:
        """A heartbeat of four octets."""
        frame = Frame(self.offset, 4, "heartbeat", "heartbeat", 0)
        frame.place(buf, at, at + 3, at + 3, at + 4)
        frame.trailer = 1
        reason = (
            "the heartbeat has no size field (as in the printed grammar of the specification), but "
            "must have size 0"
        )
        frame.add_problem(Problem("F-HEARTBEAT-SHAPE", 3, "", reason))
        self.opened = True
        if self.unsure():
            self.excuse(frame)
        self.give(frame, 4)

    def decode(self, buf: bytes, at: i64, size: i64, kept: i64) -> None:
        kind: i64 = buf[at]
        channel = u16(buf, at + 1)
        behind = at + kept
        last = behind
        cut = kept < size
        if not cut:
            last -= 1
        self.opened = True
        frame: Frame
        if kind == BODY:
            frame = Frame(self.offset, size, "body", "body", channel)
            frame.place(buf, at, at + 7, at + 7, behind)
            if channel == 0:
                frame.add_problem(
                    Problem(
                        "F-CONTENT-CH-NONZERO",
                        1,
                        "",
                        "the peer sends a body frame on channel 0, which carries no messages",
                    )
                )
        elif kind == METHOD:
            frame = Frame(self.offset, size, "method", "undecodable", channel)
            self.method(frame, buf, at, last, behind, cut)
        elif kind == HEADER:
            frame = Frame(self.offset, size, "content-header", "content-header", channel)
            frame.place(buf, at, at + 7, last, behind)
            if channel == 0:
                frame.add_problem(
                    Problem(
                        "F-CONTENT-CH-NONZERO",
                        1,
                        "",
                        "the peer sends a content header on channel 0, which carries no messages",
                    )
                )
            frame.body = read_content_header(buf, at + 7, last, self.reader, at, cut)
            self.take_problems(frame)
        else:
            frame = Frame(self.offset, size, "heartbeat", "heartbeat", channel)
            frame.place(buf, at, at + 7, at + 7, behind)
            if channel != 0:
                frame.add_problem(
                    Problem(
                        "F-CH0-HEARTBEAT",
                        1,
                        "",
                        f"the peer sends a heartbeat on channel {channel} instead of channel 0",
                    )
                )
            if size > _AROUND:
                reason = f"the heartbeat has {size - _AROUND} octets of payload, not 0"
                frame.add_problem(Problem("F-HEARTBEAT-SHAPE", 3, "", reason))
        if cut:
            frame.missing = size - kept
        else:
            frame.trailer = 1
        if frame.problems and self.unsure():
            self.excuse(frame)
        self.give(frame, size)

    def method(self, frame: Frame, buf: bytes, at: i64, last: i64, behind: i64, cut: bool) -> None:
        """The method in a frame at `at` whose payload ends at `last`."""
        if last - at < 11:
            frame.place(buf, at, at + 7, at + 7, behind)
            if not cut:
                reason = "the payload is too short for a class-id and a method-id"
                frame.add_problem(Problem("F-METHOD-ARGS", 7, "", reason))
            return
        class_id = u16(buf, at + 7)
        method_id = u16(buf, at + 9)
        method = new_method(class_id, method_id)
        if method is None:
            frame.body = UnknownMethod(class_id, method_id)
            frame.place(buf, at, at + 7, at + 11, behind)
            reason = f"no method has the class-id {class_id} and the method-id {method_id}"
            frame.add_problem(Problem("F-METHOD-KNOWN", 7, "", reason))
            return
        reader = self.reader
        reader.begin(buf, at + 11, last, at, method, cut)
        method.decode(reader)
        frame.body = method
        frame.name = method.definition().name
        frame.place(buf, at, at + 7, reader.pos, behind)
        if class_id == _CONNECTION:
            if frame.channel != 0:
                reason = f"the peer sends {frame.name} on channel {frame.channel} instead of channel 0"
                frame.add_problem(Problem("F-CH0-CONNECTION", 1, "", reason))
        elif frame.channel == 0:
            reason = (
                f"the peer sends {frame.name} on channel 0, which is only for methods of the class connection"
            )
            frame.add_problem(Problem("F-METHOD-CH-NONZERO", 1, "", reason))
        if reader.pos < last and not reader.stopped:
            left = last - reader.pos
            reason = f"{count(left, 'octet')} {'follows' if left == 1 else 'follow'} the last argument"
            reader.problem("F-METHOD-TRAILING", reader.pos, -1, reason)
        if reader.problems:
            self.take_problems(frame)

    def take_problems(self, frame: Frame) -> None:
        """Give the frame what the reader found."""
        reader = self.reader
        if reader.problems:
            for problem in reader.problems:
                frame.add_problem(problem)
            reader.problems = []

    def excuse(self, frame: Frame) -> None:
        """The frame stands behind a boundary that was searched for: what is wrong with it accuses nobody."""
        for problem in frame.problems:
            if problem.code.isupper():
                problem.reason = f"after octets that were not captured or are not frames: {problem.reason}"
                problem.code = "cut"

    # While the chain is broken

    def credible(self, buf: bytes, at: i64, end: i64, last: bool) -> i64:
        return credible_frame(buf, at, end, last)

    def candidate(self, window: bytes, start: i64, end: i64) -> i64:
        tail = end - _CANDIDATE_OCTETS + 1
        if tail <= start:
            return start
        found = _CANDIDATE.search(window, start, end)
        if found is None:
            return tail
        at: i64 = found.start()
        return at if at < tail else tail

    def give_wrong(self, buf: bytes, at: i64, size: i64) -> bool:
        # A frame of an unknown type.
        if buf[at + size - 1] != FRAME_END:
            return False
        kind = "heartbeat" if buf[at] == 4 and size == _AROUND else "unknown"
        frame = Frame(self.offset, size, kind, kind, u16(buf, at + 1))
        frame.place(buf, at, at + 7, at + 7, at + size)
        frame.trailer = 1
        frame.add_problem(Problem(self.cause, 0, "", self.reason))
        self.opened = True
        self.give(frame, size)
        return True

    # Between processes

    def dump_protocol(self) -> tuple[object, ...]:
        return (self.opened, self.reader.dialect, self.wants_frames)

    @staticmethod
    def load(state: tuple[object, ...]) -> "Amqp091FrameDecoder":
        """A decoder that goes on where `dump` left off. Raises ValueError on another version's state."""
        decoder = Amqp091FrameDecoder()
        decoder.opened, decoder.reader.dialect, decoder.wants_frames = decoder.restore(state)
        return decoder

"""From the octets of one direction to protocol headers and frames (AMQP 0-9-1, sections 4.2.2 to 4.2.7).

Theory of operation. A frame is its type (1 octet), channel (2), size (4), so many octets of payload, and
0xCE. So a direction is a chain: whoever knows where one frame begins knows where the next one does, and the
0xCE says whether that was true. While the chain holds, a frame is decoded where it lies in the segment's
buffer; only one that goes over several segments is put together first.

The chain breaks when octets were not captured, when the capture begins in the middle, at a type that no
frame has, and at a frame end that is none. Octets missing *inside* a frame whose header is known break
nothing: its size still says where the next one begins. Of a frame whose end is wrong either the end is
wrong or the size: if a credible boundary lies inside, the size was, and what stands before the boundary is
skipped; else the frame is given out with its fault. A frame of an unknown type is treated alike, if its end
is right. While the chain is broken the decoder searches for a credible boundary, and gives what lies
before it as one `skipped` frame. Every octet of the stream belongs to exactly one frame.

A boundary is credible where there stands, whole and at most `RESYNC_WINDOW` octets long,

* a method that is known, on channel 0 if and only if it is one of the class connection, whose arguments
  decode without a fault, and end where the frame does;
* a content header of class basic and weight 0 on another channel, whose properties do so;
* a heartbeat, all eight octets; or the protocol header of 0-9-1;
* a body before another body, or before one of these, each with its frame end. Bodies alone are only type
  and end, what any octets may look like: larger ones are passed over until something else follows.

At least six octets, mostly more than ten, have exactly one value then, so that one does not meet them by
chance in what a capture can hold. They can be there on purpose: the body of a message may hold whole frames,
recorded traffic for one. They are taken for frames until the body that holds them ends, where the chain
breaks again. So for `GUESSED_OCTETS` behind a boundary that was searched for, nothing that is wrong accuses
anybody.

The verdict on a position is a function of the octets that follow it up to the next hole, never of how they
came: where they do not suffice, the decoder holds them back until more come (twice `RESYNC_WINDOW` at
most), or until a hole or the end says that none will.

Which end of the connection this is the decoder does not know. A stream that begins with no frame is told as
`F-PROTO-HDR`; of a server that is no breach of that rule but of those about frames.
"""

import re
from typing import Final

from dissectors.amqp091.arguments import ArgumentReader, Method, UnknownMethod
from dissectors.amqp091.content import read_content_header
from dissectors.amqp091.registry import new_method
from dissectors.amqp091.tables import EITHER
from dissectors.interface import Dissector, Frame, Problem
from dissectors.limits import (
    GUESSED_OCTETS,
    MAX_CREDIBLE_FRAME,
    MAX_KEPT_FRAME,
    MAX_WRONG_FRAME,
    RESYNC_WINDOW,
)
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64, u16, u32

__all__ = ["FrameDecoder", "credible_frame"]

METHOD: Final = 1
HEADER: Final = 2
BODY: Final = 3
HEARTBEAT: Final = 8
FRAME_END: Final = 0xCE

_MAGIC: Final = 0x414D5150  # "AMQP"
_CONNECTION: Final = 10  # the class that has channel 0 for itself
_DUMP_VERSION: Final = 1

# Octets of a frame that are not payload: seven before it, one behind it.
_AROUND: Final = 8

# Octets up to which pieces of what is held are joined: enough to make a piece's own cost small.
_SMALL_PART: Final = 2048

# What `credible_frame` says, besides the number of octets it would need to see.
NOT_CREDIBLE: Final = 0
CREDIBLE: Final = -1

# What every credible boundary begins with; a size below 64 KiB has two zero octets.
_CANDIDATE: Final = re.compile(
    rb"[\x01-\x03]..\x00\x00..|\x08\x00\x00\x00\x00\x00\x00\xce|AMQP\x00\x00\x09\x01", re.DOTALL
)
# The octets that decide whether it may match.
_CANDIDATE_OCTETS: Final = 8


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


class FrameDecoder(Dissector):
    """Decodes one direction of an AMQP 0-9-1 connection into `frames`.

    midstream: the octets fed first need not begin at a frame boundary. dialect: that of the field tables; it
    may be set between two calls (`speak`), once the peers' products are known.
    """

    def __init__(self, midstream: bool = False, dialect: i64 = EITHER) -> None:
        super().__init__()
        # Octets held: the front of the frame begun as captured in one piece, or while the chain is
        # broken those that are not judged yet.
        self.parts: list[bytes] = []
        self.kept: i64 = 0
        # The frame begun: the octets passed of it (with holes and what was not kept), its size once eight
        # octets are there (8 until then), whether anything is missing of it, and its last octet if seen.
        self.passed: i64 = 0
        self.size: i64 = 8
        self.holed: bool = False
        self.last: i64 = -1
        # Behind a hole in a frame, and for a while behind a boundary that was only searched for, what is
        # wrong accuses nobody.
        self.doubtful: bool = False
        self.guessed_to: i64 = 0
        # While the chain is broken: what was skipped so far and why, how many octets have to be held
        # before the next verdict, and the size of the frame of an unknown type where it broke.
        self.lost: bool = midstream
        self.cause: str = "cut"
        self.reason: str = "the capture begins in the middle of the stream" if midstream else ""
        self.skipped: i64 = 0
        self.skipped_missing: i64 = 0
        self.wanted: i64 = 0
        self.hint: i64 = 0
        # A protocol header or frame has come.
        self.opened: bool = False
        self.reader: ArgumentReader = ArgumentReader(dialect)

    def speak(self, dialect: i64) -> None:
        """The dialect of the field tables from here on."""
        self.reader.dialect = dialect

    # The stream

    def feed(self, buf: bytes, start: i64, end: i64) -> None:
        if self.lost and self.kept > 0:
            self.hold(buf, start, end)
            if self.kept >= self.wanted:
                window = self.release()
                self.work(window, 0, len(window), False)
        else:
            self.work(buf, start, end, False)
        # A connection that is silent from here on is not to keep a megabyte of the file.
        self.reader.buf = b""

    def gap(self, size: i64) -> None:
        self.settle()
        if self.passed >= 8:
            # The frame begun goes on in the hole, maybe to its end.
            inside = self.size - self.passed
            if inside > size:
                inside = size
            self.passed += inside
            size -= inside
            self.holed = True
            self.doubtful = True
            if self.passed == self.size:
                self.complete()
        if size > 0:
            if not self.lost:
                self.lose("cut", "octets were not captured")
            self.skipped += size
            self.skipped_missing += size

    def end(self, reason: str) -> None:
        self.settle()
        if self.lost:
            self.give_skipped()
        elif self.passed > 0:
            self.unfinished(reason)

    def settle(self) -> None:
        """Nothing comes behind the octets held while searching (a hole does, or the end): judge them."""
        if self.lost and self.kept > 0:
            window = self.release()
            self.work(window, 0, len(window), True)

    def work(self, buf: bytes, start: i64, end: i64, last: bool) -> None:
        """Take buf[start:end]: decode, go on with the frame begun, or search. last: see `credible_frame`."""
        pos = start
        while pos >= 0 and pos < end:
            if self.lost:
                pos = self.search(buf, pos, end, last)
            elif self.passed > 0:
                pos = self.resume(buf, pos, end, last)
            else:
                pos = self.run(buf, pos, end)

    # While the chain holds

    def run(self, buf: bytes, start: i64, end: i64) -> i64:
        """Decode every frame that lies whole in buf[start:end], keep the rest.

        Gives the index at which the chain broke, or -1 if all octets are used up.
        """
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
                self.lose("cut", _UNSURE)
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

    def unsure(self) -> bool:
        """Whether the position in the chain is a guess."""
        return self.doubtful or self.offset < self.guessed_to

    def unknown_type(self, kind: i64, size: i64) -> None:
        """The chain breaks at a frame of an unknown type, which says that it has this size."""
        if self.unsure():
            self.lose("cut", _UNSURE)
        elif self.offset == 0:
            self.lose("F-PROTO-HDR", "the stream begins with neither a protocol header nor a frame")
        else:
            more = ", the number that the specification's text once gives a heartbeat" if kind == 4 else ""
            self.lose("F-FRAME-TYPE", f"the frame type is {kind}{more}")
            if size <= MAX_WRONG_FRAME:
                self.hint = size

    def wrong_end(self, buf: bytes, at: i64, size: i64) -> bool:
        """The frame at `at` has a wrong frame end. Gives it out, or breaks the chain: then False."""
        octet: i64 = buf[at + size - 1]
        reason = f"the frame end is 0x{octet:02x}, not 0xce"
        if self.unsure():
            self.lose("cut", _UNSURE)
            return False
        if self.boundary(buf, at + 1, at + size) >= 0:
            self.lose("F-FRAME-END", reason)
            return False
        self.decode(buf, at, size, size)
        self.frames[-1].add_problem(Problem("F-FRAME-END", size - 1, "", reason))
        self.doubtful = True
        return True

    def hold(self, buf: bytes, start: i64, end: i64) -> None:
        """Add octets to those held. Small pieces are joined, so that many of them cost no more than few."""
        self.kept += end - start
        if self.parts and len(self.parts[-1]) + (end - start) <= _SMALL_PART:
            self.parts[-1] += buf[start:end]
        else:
            self.parts.append(buf[start:end])

    def front(self) -> bytes:
        """The octets held, in one piece."""
        if len(self.parts) > 1:
            self.parts = [b"".join(self.parts)]
        return self.parts[0] if self.parts else b""

    def release(self) -> bytes:
        """The octets held, which are then held no more."""
        held = self.front()
        self.parts = []
        self.kept = 0
        self.wanted = 0
        return held

    def keep(self, buf: bytes, start: i64, end: i64) -> None:
        """Keep the octets of a frame begun, as far as the bound and holes let."""
        self.passed += end - start
        if self.passed == self.size:
            self.last = buf[end - 1]
        if self.holed:
            return
        room = MAX_KEPT_FRAME - self.kept
        if end - start > room:
            end = start + room
            self.holed = True
        if end > start:
            self.hold(buf, start, end)
        if self.size == 8 and self.passed >= 8:
            self.size = u32(self.front(), 3) + _AROUND

    def resume(self, buf: bytes, start: i64, end: i64, last: bool) -> i64:
        """Go on with the frame begun. Gives the index behind it, or -1 if all octets are used up."""
        pos = start
        if self.passed < 8:
            take = 8 - self.passed
            if take > end - start:
                take = end - start
            self.hold(buf, start, start + take)
            self.passed += take
            pos += take
            if self.passed < 8:
                return -1
            # The header is whole now: either the frame goes on behind it, or what is there says more.
            whole = self.front()
            self.forget()
            self.work(whole, 0, 8, False)
            if self.lost and self.kept > 0:
                whole = self.release() + buf[pos:end]
                self.work(whole, 0, len(whole), last)
                return -1
            return pos
        take = self.size - self.passed
        if take > end - pos:
            self.keep(buf, pos, end)
            return -1
        self.keep(buf, pos, pos + take)
        return pos + take if self.complete() else self.go_on(buf, pos + take, end, last)

    def go_on(self, buf: bytes, pos: i64, end: i64, last: bool) -> i64:
        """The chain broke in the octets held: search in them and in those behind them."""
        window = self.release() + buf[pos:end]
        self.work(window, 0, len(window), last)
        return -1

    def complete(self) -> bool:
        """The frame begun has passed whole: decode what was kept of it.

        False if the chain breaks there: the octets of the frame are then held to be searched.
        """
        front = self.front()
        size = self.size
        kept = self.kept
        last = self.last
        self.forget()
        if kept == size:
            if last != FRAME_END:
                if not self.wrong_end(front, 0, size):
                    self.parts = [front]
                    self.kept = kept
                    return False
            else:
                self.doubtful = False
                self.decode(front, 0, size, kept)
            return True
        self.decode(front, 0, size, kept)
        if kept == MAX_KEPT_FRAME:
            problem = Problem("limit", kept, "", f"only the first {kept} octets of {size} are kept")
        else:
            reason = f"not all of its {size} octets were captured; kept are the first {kept}"
            problem = Problem("cut", kept, "", reason)
        self.frames[-1].add_problem(problem)
        if last >= 0 and last != FRAME_END and not self.unsure():
            reason = f"the frame end is 0x{last:02x}, not 0xce"
            self.frames[-1].add_problem(Problem("F-FRAME-END", size - 1, "", reason))
            self.doubtful = True
        return True

    def unfinished(self, reason: str) -> None:
        """The stream ended inside the frame begun: give out what is known of it."""
        front = self.front()
        size = self.size
        kept = self.kept
        passed = self.passed
        self.forget()
        why = f"the stream ended ({reason}) inside the frame"
        if passed >= 8:
            self.decode(front, 0, size, kept)
            frame = self.frames[-1]
            # All its octets are owed, but in the stream there are no more of it.
            frame.size = passed
            self.offset -= size - passed
            why += f", after {passed} of {size} octets"
            frame.add_problem(Problem("incomplete", passed, "", why))
            return
        if passed >= 4 and _printed_heartbeat(front, 0):
            self.printed_heartbeat(front, 0)
            passed -= 4
        if passed > 0:
            frame = Frame(self.offset, passed, "skipped", "skipped", -1)
            self.give(frame, passed)
            frame.add_problem(Problem("incomplete", passed, "", why + "'s header"))

    def forget(self) -> None:
        """Forget the frame begun."""
        self.parts = []
        self.kept = 0
        self.passed = 0
        self.size = 8
        self.holed = False
        self.last = -1

    # One frame

    def give(self, frame: Frame, size: i64) -> None:
        self.frames.append(frame)
        self.offset += size

    def header(self, buf: bytes, at: i64) -> None:
        """A protocol header."""
        header = ProtocolHeader(buf[at + 4], buf[at + 5], buf[at + 6], buf[at + 7])
        frame = Frame(self.offset, 8, "header", "header", -1)
        frame.body = header
        frame.place(buf, at, at + 4, at + 8, at + 8)
        if self.opened and not self.unsure():
            reason = "it follows a protocol header or frames of the same sender"
            frame.add_problem(Problem("F-PROTO-HDR-ONCE", 0, "", reason))
        self.opened = True
        self.give(frame, 8)

    def printed_heartbeat(self, buf: bytes, at: i64) -> None:
        """A heartbeat of four octets."""
        frame = Frame(self.offset, 4, "heartbeat", "heartbeat", 0)
        frame.place(buf, at, at + 3, at + 3, at + 4)
        frame.trailer = 1
        reason = "the heartbeat has no size, as in the printed grammar"
        frame.add_problem(Problem("F-HEARTBEAT-SHAPE", 3, "", reason))
        self.opened = True
        if self.unsure():
            self.excuse(frame)
        self.give(frame, 4)

    def decode(self, buf: bytes, at: i64, size: i64, kept: i64) -> None:
        """A frame of `size` octets, of which the first `kept` (at least 8) stand at buf[at:]."""
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
                frame.add_problem(Problem("F-CONTENT-CH-NONZERO", 1, "", "a body on channel 0"))
        elif kind == METHOD:
            frame = Frame(self.offset, size, "method", "undecodable", channel)
            self.method(frame, buf, at, last, behind, cut)
        elif kind == HEADER:
            frame = Frame(self.offset, size, "content-header", "content-header", channel)
            frame.place(buf, at, at + 7, last, behind)
            if channel == 0:
                frame.add_problem(Problem("F-CONTENT-CH-NONZERO", 1, "", "a content header on channel 0"))
            frame.body = read_content_header(buf, at + 7, last, self.reader, at, cut)
            self.take_problems(frame)
        else:
            frame = Frame(self.offset, size, "heartbeat", "heartbeat", channel)
            frame.place(buf, at, at + 7, at + 7, behind)
            if channel != 0:
                frame.add_problem(Problem("F-CH0-HEARTBEAT", 1, "", f"a heartbeat on channel {channel}"))
            if size > _AROUND:
                reason = f"the heartbeat has {size - _AROUND} octets of payload"
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
                reason = "there is no room for the numbers of a method"
                frame.add_problem(Problem("F-METHOD-ARGS", 7, "", reason))
            return
        class_id = u16(buf, at + 7)
        method_id = u16(buf, at + 9)
        method = new_method(class_id, method_id)
        if method is None:
            frame.body = UnknownMethod(class_id, method_id)
            frame.place(buf, at, at + 7, at + 11, behind)
            reason = f"there is no method {class_id}.{method_id}"
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
                reason = f"{frame.name} on channel {frame.channel}"
                frame.add_problem(Problem("F-CH0-CONNECTION", 1, "", reason))
        elif frame.channel == 0:
            frame.add_problem(Problem("F-METHOD-CH-NONZERO", 1, "", f"{frame.name} on channel 0"))
        if reader.pos < last and not reader.stopped:
            reason = f"{last - reader.pos} octets follow the arguments"
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
                problem.reason = f"behind octets that were not captured or are no frames: {problem.reason}"
                problem.code = "cut"

    # While the chain is broken

    def lose(self, cause: str, reason: str) -> None:
        """The chain breaks here. What has come of a frame header goes with what will be skipped."""
        self.skipped = self.passed
        self.skipped_missing = 0
        self.forget()
        self.lost = True
        self.cause = cause
        self.reason = reason

    def search(self, buf: bytes, start: i64, end: i64, last: bool) -> i64:
        """Look for a credible boundary in buf[start:end], the octets behind those skipped so far.

        Gives its index, or -1 if all octets are skipped or held.
        """
        if self.hint > 0:
            # A frame type is unknown: is the frame's size right?
            size = self.hint
            if end - start < size and not last:
                self.wanted = size
                self.hold(buf, start, end)
                return -1
            self.hint = 0
            if end - start >= size and buf[start + size - 1] == FRAME_END:
                if self.boundary(buf, start + 1, start + size) < 0:
                    self.lost = False
                    self.doubtful = True
                    self.give_unknown(buf, start, size)
                    return start + size
        at = start
        while True:
            at = self.candidate(buf, at, end)
            if at >= end:
                break
            verdict = credible_frame(buf, at, end, last)
            if verdict == CREDIBLE:
                self.skipped += at - start
                self.give_skipped()
                self.lost = False
                self.doubtful = False
                self.guessed_to = self.offset + GUESSED_OCTETS
                return at
            if verdict > 0 and not last:
                self.skipped += at - start
                self.wanted = verdict
                self.hold(buf, at, end)
                return -1
            at += 1
        self.skipped += end - start
        return -1

    def boundary(self, buf: bytes, start: i64, end: i64) -> i64:
        """The first credible boundary in buf[start:end], by those octets alone; -1 if there is none."""
        at = self.candidate(buf, start, end)
        while at < end:
            if credible_frame(buf, at, end) == CREDIBLE:
                return at
            at = self.candidate(buf, at + 1, end)
        return -1

    def candidate(self, window: bytes, start: i64, end: i64) -> i64:
        """The next index from `start` at which a credible frame may begin; `end` if none.

        The last octets may always be a beginning.
        """
        tail = end - _CANDIDATE_OCTETS + 1
        if tail <= start:
            return start
        found = _CANDIDATE.search(window, start, end)
        if found is None:
            return tail
        at: i64 = found.start()
        return at if at < tail else tail

    def give_unknown(self, buf: bytes, at: i64, size: i64) -> None:
        """Give out a frame of an unknown type whose size is right."""
        kind = "heartbeat" if buf[at] == 4 and size == _AROUND else "unknown"
        frame = Frame(self.offset, size, kind, kind, u16(buf, at + 1))
        frame.place(buf, at, at + 7, at + 7, at + size)
        frame.trailer = 1
        frame.add_problem(Problem(self.cause, 0, "", self.reason))
        self.opened = True
        self.give(frame, size)

    def drop_window(self, size: i64) -> None:
        """Give up the octets being searched, and `size` more that are not there."""
        self.skipped += self.kept + size
        self.skipped_missing += size
        self.hint = 0
        self.release()

    def give_skipped(self) -> None:
        """Give out everything skipped as one frame."""
        if self.skipped == 0:
            return
        frame = Frame(self.offset, self.skipped, "skipped", "skipped", -1)
        frame.missing = self.skipped_missing
        frame.add_problem(Problem(self.cause, 0, "", self.reason))
        size = self.skipped
        self.skipped = 0
        self.skipped_missing = 0
        self.give(frame, size)

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """The state between two calls, as plain values. `frames` are the caller's and not in it."""
        return (
            _DUMP_VERSION,
            self.offset,
            self.front(),
            self.passed,
            self.size,
            self.holed,
            self.doubtful,
            self.guessed_to,
            self.lost,
            self.cause,
            self.reason,
            self.skipped,
            self.skipped_missing,
            self.wanted,
            self.hint,
            self.opened,
            self.reader.dialect,
        )

    @staticmethod
    def load(state: tuple[object, ...]) -> "FrameDecoder":
        """A decoder that goes on where `dump` left off. Raises ValueError on another version's state."""
        if not state or state[0] != _DUMP_VERSION:
            raise ValueError(f"state of an AMQP 0-9-1 decoder in version {state[:1]}, not {_DUMP_VERSION}")
        decoder = FrameDecoder(False, _number(state[16]))
        front = state[2]
        assert isinstance(front, bytes)
        decoder.offset = _number(state[1])
        decoder.parts = [front] if front else []
        decoder.kept = len(front)
        decoder.passed = _number(state[3])
        decoder.size = _number(state[4])
        decoder.holed = bool(state[5])
        decoder.doubtful = bool(state[6])
        decoder.guessed_to = _number(state[7])
        decoder.lost = bool(state[8])
        decoder.cause = str(state[9])
        decoder.reason = str(state[10])
        decoder.skipped = _number(state[11])
        decoder.skipped_missing = _number(state[12])
        decoder.wanted = _number(state[13])
        decoder.hint = _number(state[14])
        decoder.opened = bool(state[15])
        return decoder


def _number(value: object) -> i64:
    assert isinstance(value, int)
    return value


_UNSURE: Final = "no frame stands where one is due after octets that were not captured"

"""From the octets of one direction to protocol headers and frames (transport.xml, section "framing").

Theory of operation. A frame begins with its size (4 octets, itself included), the data offset in
words of four octets (1), the type (1) and a type-specific pair of octets, for AMQP frames the channel.
So a direction is a chain: whoever knows where one frame begins knows where all later ones do. While
the chain holds, a frame is decoded where it lies in the segment's buffer; only one that goes over
several segments is put together first.

The chain breaks when octets were not captured, when the capture begins in the middle, and when a
frame header cannot be one. Octets missing *inside* a frame whose header is known break nothing: its
size still says where the next one begins (if what stands there cannot be a frame header, the chain
is broken after all). When it is broken the decoder searches: a position is a credible boundary if
there stands a protocol header, or a frame header with the usual data offset and a performative that
decodes without a fault, ends where the frame does (a transfer's payload may follow), and is followed
by what can be a frame header, as far as octets are there. What lies before it is given out as one
`skipped` frame. Every octet of the stream belongs to exactly one frame.
"""

from typing import Final

from dissectors.amqp10.composite import Composite, Reader, TypeTable
from dissectors.amqp10.performatives import Transfer
from dissectors.amqp10.registry import FINAL
from dissectors.amqp10.values import Described
from dissectors.interface import Dissector, Frame, Problem
from dissectors.limits import (
    MAX_CREDIBLE_FRAME,
    MAX_KEPT_FRAME,
    MAX_VALUES,
    RESYNC_VALUES,
    RESYNC_WINDOW,
)
from dissectors.wire import i64, u16, u32

__all__ = ["FrameDecoder", "ProtocolHeader", "credible_frame"]

_MAGIC: Final = 0x414D5150  # "AMQP"
_DUMP_VERSION: Final = 1

# What `credible_frame` says, besides the number of octets it would need to see.
NOT_CREDIBLE: Final = 0
CREDIBLE: Final = -1

# Faults after which it is unknown where a value ends.
_SIZE_FAULTS = ("T-SIZE-OVERRUN", "T-LIST-FIT", "T-MAP-FIT", "T-ARR-FIT")

# Faults that real peers commit in otherwise sound frames: no reason to distrust a boundary.
_TOLERATED = ("T-COMP-EXTRA",)


class ProtocolHeader:
    """The eight octets that open a layer: "AMQP", protocol id, major, minor, revision."""

    def __init__(self, protocol_id: i64, major: i64, minor: i64, revision: i64) -> None:
        self.protocol_id = protocol_id
        self.major = major
        self.minor = minor
        self.revision = revision

    def protocol(self) -> str:
        """What it announces: `AMQP 1.0`, `SASL`, `TLS`, another version of AMQP, or `unknown`."""
        version = (int(self.protocol_id), int(self.major), int(self.minor), int(self.revision))
        return _PROTOCOLS.get(version, "unknown")

    def __repr__(self) -> str:
        return f"ProtocolHeader({self.protocol_id}, {self.major}, {self.minor}, {self.revision})"


# transport.xml "version-negotiation", security.xml; the older ones from their own specifications.
_PROTOCOLS: dict[tuple[int, int, int, int], str] = {
    (0, 1, 0, 0): "AMQP 1.0",
    (2, 1, 0, 0): "TLS",
    (3, 1, 0, 0): "SASL",
    (0, 0, 9, 1): "AMQP 0-9-1",
    (1, 1, 0, 10): "AMQP 0-10",
    (1, 1, 0, 9): "AMQP 0-9",
    (1, 1, 9, 0): "AMQP 0-9",
    (0, 0, 9, 0): "AMQP 0-9",
    (1, 1, 8, 0): "AMQP 0-8",
    (1, 1, 9, 1): "AMQP 0-9-1",
}


def plausible_header(buf: bytes, at: i64) -> bool:
    """Whether the eight octets at `at` can be a frame header or a protocol header."""
    size = u32(buf, at)
    if size == _MAGIC:
        return True
    words: i64 = buf[at + 4]
    return size >= 8 and words >= 2 and words * 4 <= size and buf[at + 5] <= 1


def credible_frame(buf: bytes, at: i64, end: i64) -> i64:
    """Judge whether a frame begins at `at`: CREDIBLE, NOT_CREDIBLE, or the octets from `at` needed to tell."""
    left = end - at
    if left >= 8 and u32(buf, at) == _MAGIC:
        # Of this protocol only: the other versions open a stream and never stand inside one.
        protocol_id: i64 = buf[at + 4]
        known = protocol_id in (0, 2, 3) and buf[at + 5] == 1 and u16(buf, at + 6) == 0
        return CREDIBLE if known else NOT_CREDIBLE
    if left < 4:
        return 8
    size = u32(buf, at)
    if left < 12:
        if size == _MAGIC:
            return 8
        return 12 if _may_begin(buf, at, end) else NOT_CREDIBLE
    frame_type: i64 = buf[at + 5]
    if size < 8 or size > MAX_CREDIBLE_FRAME or buf[at + 4] != 2 or frame_type > 1:
        return NOT_CREDIBLE
    if size == 8:
        # An empty frame is eight octets that anything might hold: believed only before another frame.
        return _credible_behind_empty(buf, at, end)
    if size < 11 or buf[at + 8] != 0:
        return NOT_CREDIBLE
    need = _performative_size(buf, at + 8, end)
    if need == NOT_CREDIBLE or need > size - 8:
        return NOT_CREDIBLE
    if need < 0:
        return 8 - need
    if need > left - 8:
        return need + 8
    reader = Reader(buf, at + 8, at + 8 + need, at, FINAL, RESYNC_VALUES)
    body = reader.value()
    for problem in reader.problems:
        if problem.code not in _TOLERATED:
            return NOT_CREDIBLE
    if not isinstance(body, Composite) or reader.budget < 0:
        return NOT_CREDIBLE
    definition = body.definition()
    if frame_type == 0:
        if not definition.is_frame:
            return NOT_CREDIBLE
        if need != size - 8 and definition.code != 0x14:
            return NOT_CREDIBLE
    elif not definition.is_sasl_frame or need != size - 8:
        return NOT_CREDIBLE
    if left >= size + 8 and not plausible_header(buf, at + size):
        return NOT_CREDIBLE
    return CREDIBLE


def _credible_behind_empty(buf: bytes, at: i64, end: i64) -> i64:
    """Judge the empty frame at `at` by what follows it and the empty frames behind it."""
    pos = at
    while end - pos >= 8 and u32(buf, pos) == 8 and u32(buf, pos + 4) == 0x0200_0000:
        pos += 8
        if pos - at >= 8 * 16:
            return CREDIBLE
    if pos == at:
        return NOT_CREDIBLE
    if end - pos < 12:
        return pos - at + 12
    if u32(buf, pos) == 8:
        return NOT_CREDIBLE
    following = credible_frame(buf, pos, end)
    return following if following <= 0 else pos - at + following


def _may_begin(buf: bytes, at: i64, end: i64) -> bool:
    """Whether fewer than twelve octets (at least four) can still become a frame."""
    size = u32(buf, at)
    if size < 8 or size > MAX_CREDIBLE_FRAME:
        return False
    if end - at > 4 and buf[at + 4] != 2:
        return False
    return end - at <= 5 or buf[at + 5] <= 1


def _performative_size(buf: bytes, at: i64, end: i64) -> i64:
    """Octets of the described list at `at`; NOT_CREDIBLE if there is none; minus the octets needed to tell.

    At least four octets are there, and the first is 0x00.
    """
    code: i64 = buf[at + 1]
    pos = at + 1
    if code == 0x53:
        pos += 2
    elif code == 0x80:
        pos += 9
    elif code == 0xA3:
        pos += 2 + buf[at + 2]
    elif code == 0xB3 and buf[at + 2] == 0 and buf[at + 3] == 0:
        if at + 6 > end:
            return -6
        pos += 5 + u32(buf, at + 2)
    else:
        return NOT_CREDIBLE
    if pos >= end:
        return -(pos + 1 - at)
    if buf[pos] == 0x45:
        return pos + 1 - at
    if buf[pos] == 0xC0:
        return pos + 2 + buf[pos + 1] - at if pos + 2 <= end else -(pos + 2 - at)
    if buf[pos] == 0xD0:
        return pos + 5 + u32(buf, pos + 1) - at if pos + 5 <= end else -(pos + 5 - at)
    return NOT_CREDIBLE


class FrameDecoder(Dissector):
    """Decodes one direction of an AMQP 1.0 connection into `frames`.

    midstream: the octets fed first need not begin at a frame boundary.
    """

    def __init__(self, midstream: bool = False, table: TypeTable = FINAL) -> None:
        super().__init__()
        self.table: TypeTable = table
        # The frame begun: its front as captured in one piece, the octets passed of it (with holes and
        # what was not kept), and its size once eight octets are there (8 until then).
        self.parts: list[bytes] = []
        self.kept: i64 = 0
        self.passed: i64 = 0
        self.size: i64 = 8
        self.holed: bool = False
        # After a hole the next frame header is believed only if it is plausible.
        self.doubtful: bool = False
        # While the chain is broken: what was skipped so far and why, and the octets being searched.
        self.lost: bool = midstream
        self.cause: str = "cut"
        self.reason: str = "the capture begins in the middle of the stream" if midstream else ""
        self.skipped: i64 = 0
        self.skipped_missing: i64 = 0
        self.wanted: i64 = 0
        # The layer that the last protocol header opened, and whether a frame has come since.
        self.layer: str = ""
        self.framed: bool = False
        # After both sides chose TLS everything is ciphertext.
        self.opaque: bool = False
        self.reader: Reader = Reader(b"", 0, 0, 0, table)

    # The stream

    def feed(self, buf: bytes, start: i64, end: i64) -> None:
        if self.opaque:
            self.skipped += end - start
            return
        if self.lost:
            self.search(buf[start:end])
            return
        pos = start
        if self.passed > 0:
            pos = self.resume(buf, start, end)
            if pos < 0:
                return
        self.run(buf, pos, end)

    def gap(self, size: i64) -> None:
        if self.opaque or self.lost:
            self.drop_window(size)
            return
        if self.passed >= 8:
            within = self.size - self.passed
            if within > size:
                within = size
            self.passed += within
            self.holed = True
            size -= within
            if self.passed == self.size:
                self.complete()
                self.doubtful = True
            if size == 0:
                return
        self.lose("cut", "octets were not captured")
        self.drop_window(size)

    def end(self, reason: str) -> None:
        if self.opaque:
            self.give_skipped()
        elif self.lost:
            self.drop_window(0)
            self.give_skipped()
        elif self.passed > 0:
            self.unfinished("incomplete", f"the stream ended ({reason}) inside the frame")

    # While the chain holds

    def run(self, buf: bytes, start: i64, end: i64) -> None:
        """Decode every frame that lies whole in buf[start:end], keep the rest."""
        pos = start
        while end - pos >= 8:
            size = u32(buf, pos)
            if size == _MAGIC:
                self.header(buf, pos)
                pos += 8
                continue
            fault = self.header_fault(buf, pos, size)
            if fault:
                if fault == "opaque":
                    self.opaque = True
                    self.skipped = end - pos
                    return
                if not self.step_over(buf, pos, end, size, fault):
                    self.lost_at(fault, buf, pos, end)
                    return
            elif size > end - pos:
                break
            else:
                self.decode(buf, pos, size, size)
            pos += size
        if pos < end:
            self.keep(buf, pos, end)

    def header_fault(self, buf: bytes, pos: i64, size: i64) -> str:
        """The rule a frame header breaks, or "": also `cut` for an implausible one after a hole."""
        words: i64 = buf[pos + 4]
        if size >= 8 and words >= 2 and words * 4 <= size and buf[pos + 5] <= 1:
            if size >= 0x1400_0000 and self.layer == "TLS" and buf[pos] <= 0x17 and buf[pos + 1] == 3:
                return "opaque"  # a TLS record with the handshake's first message looks like a SASL frame
            self.doubtful = False
            return ""
        if self.layer == "TLS" and 0x14 <= buf[pos] <= 0x17 and buf[pos + 1] == 3:
            return "opaque"
        if self.doubtful:
            return "cut"
        if self.offset == 0:
            return "C-HDR-FORM"
        if size < 8:
            return "F-SIZE-MIN"
        if words < 2:
            return "F-DOFF-MIN"
        return "F-DOFF-RANGE" if words * 4 > size else "F-TYPE-KNOWN"

    def step_over(self, buf: bytes, pos: i64, end: i64, size: i64, fault: str) -> bool:
        """A frame with a faulty header whose size still leads to a plausible next one: give it out as it is."""
        if fault in ("cut", "F-SIZE-MIN", "C-HDR-FORM") or size > end - pos:
            return False
        if end - pos >= size + 8 and not plausible_header(buf, pos + size):
            return False
        kind = "sasl" if buf[pos + 5] == 1 else "amqp"
        frame = Frame(self.offset, size, kind, "undecodable", -1)
        frame.place(buf, pos, pos + 8, pos + 8, pos + size)
        frame.add_problem(Problem(fault, 4, "", _HEADER_REASONS[fault]))
        self.give(frame, size)
        return True

    def keep(self, buf: bytes, start: i64, end: i64) -> None:
        """Keep the octets of a frame begun, as far as the bound and holes let."""
        self.passed += end - start
        if self.holed:
            return
        room = MAX_KEPT_FRAME - self.kept
        if end - start > room:
            end = start + room
            self.holed = True
        if end > start:
            self.parts.append(buf[start:end])
            self.kept += end - start
        if self.size == 8 and self.passed >= 8:
            self.size = u32(self.front(), 0)

    def front(self) -> bytes:
        """The kept octets of the frame begun, in one piece."""
        if len(self.parts) > 1:
            self.parts = [b"".join(self.parts)]
        return self.parts[0] if self.parts else b""

    def resume(self, buf: bytes, start: i64, end: i64) -> i64:
        """Go on with the frame begun. Gives the index behind it, or -1 if all octets are used up."""
        pos = start
        if self.passed < 8:
            take = 8 - self.passed
            if take > end - start:
                take = end - start
            self.parts.append(buf[start : start + take])
            self.kept += take
            self.passed += take
            pos += take
            if self.passed < 8:
                return -1
            # The header is whole now: what `run` does with one, on the few octets at hand.
            front = self.front()
            size = u32(front, 0)
            if size == _MAGIC or self.header_fault(front, 0, size) or size == 8:
                whole = front + buf[pos:end]
                self.forget()
                self.run(whole, 0, len(whole))
                return -1
            self.size = size
        take = self.size - self.passed
        if take > end - pos:
            self.keep(buf, pos, end)
            return -1
        self.keep(buf, pos, pos + take)
        self.complete()
        return pos + take

    def complete(self) -> None:
        """The frame begun has passed whole: decode what was kept of it."""
        front = self.front()
        size = self.size
        kept = self.kept
        holed = self.holed
        self.forget()
        self.decode(front, 0, size, kept)
        if holed:
            frame = self.frames[-1]
            over = size > MAX_KEPT_FRAME and kept == MAX_KEPT_FRAME
            if over:
                frame.add_problem(
                    Problem("limit", kept, "", f"only the first {kept} octets of {size} are kept")
                )
            else:
                frame.add_problem(
                    Problem(
                        "cut",
                        kept,
                        "",
                        f"not all of its {size} octets were captured; kept are the first {kept}",
                    )
                )

    def forget(self) -> None:
        self.parts = []
        self.kept = 0
        self.passed = 0
        self.size = 8
        self.holed = False

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
        if self.layer and not self.framed:
            frame.add_problem(Problem("C-HDR-VERMATCH", 0, "", "a second protocol header follows the first"))
        self.layer = header.protocol()
        self.framed = False
        self.doubtful = False
        self.give(frame, 8)

    def decode(self, buf: bytes, at: i64, size: i64, kept: i64) -> None:
        """A frame of `size` octets, of which the first `kept` (at least 8) stand at buf[at:]."""
        body_at = at + buf[at + 4] * 4
        last = at + kept
        sasl = buf[at + 5] == 1
        channel: i64 = -1 if sasl else u16(buf, at + 6)
        frame = Frame(self.offset, size, "sasl" if sasl else "amqp", "empty", channel)
        frame.missing = size - kept
        if body_at > last:
            body_at = last
        if body_at == last:
            frame.place(buf, at, body_at, last, last)
            if sasl and kept == size:
                frame.add_problem(Problem("SA-FRAME-EMPTY", 8, "", "a SASL frame has no body"))
            elif kept < size:
                frame.name = "undecodable"
            self.give(frame, size)
            return
        self.framed = True
        reader = self.reader
        reader.buf = buf
        reader.pos = body_at
        reader.end = last
        reader.origin = at
        reader.budget = MAX_VALUES
        body = reader.value()
        frame.body = body
        if isinstance(body, Composite):
            frame.name = body.definition().name
        else:
            frame.name = "undecodable"
        frame.place(buf, at, body_at, reader.pos, last)
        if reader.problems:
            # Behind the last captured octet every size overruns: that is the capture's fault.
            if kept == size:
                frame.problems = reader.problems
            reader.problems = []
        self.judge_body(frame, body, sasl, reader.pos < last, body_at - at)
        self.give(frame, size)

    def judge_body(self, frame: Frame, body: object, sasl: bool, more: bool, body_at: i64) -> None:
        """What the framing chapter demands of a frame's body."""
        reader = self.reader
        if frame.problems and frame.problems[-1].code in _SIZE_FAULTS:
            # A size that is wrong says nothing about what stands behind it.
            more = False
        if isinstance(body, Composite):
            definition = body.definition()
            if sasl:
                if not definition.is_sasl_frame:
                    frame.add_problem(Problem("SA-FRAME-BODY", body_at, "", f"{frame.name} in a SASL frame"))
                elif more:
                    frame.add_problem(
                        Problem(
                            "SA-FRAME-BODY",
                            reader.pos - reader.origin,
                            "",
                            "octets follow the SASL frame's value",
                        )
                    )
            elif not definition.is_frame:
                frame.add_problem(Problem("F-BODY-PERF", body_at, "", f"{frame.name} is no performative"))
            elif more and not isinstance(body, Transfer):
                frame.add_problem(
                    Problem(
                        "F-BODY-PAYLOAD", reader.pos - reader.origin, "", f"octets follow the {frame.name}"
                    )
                )
        elif not frame.problems and frame.missing == 0:
            what = "a value without descriptor"
            if isinstance(body, Described):
                what = "a described value that is none"
            code = "SA-FRAME-BODY" if sasl else "F-BODY-PERF"
            frame.add_problem(Problem(code, body_at, "", f"where a performative is due stands {what}"))

    def unfinished(self, code: str, reason: str) -> None:
        """The frame begun will not be completed: give out what is known of it."""
        front = self.front()
        size = self.size
        kept = self.kept
        passed = self.passed
        self.forget()
        if passed < 8 or not plausible_header(front, 0):
            frame = Frame(self.offset, passed, "skipped", "skipped", -1)
            frame.place(front, 0, 0, 0, kept)
            frame.missing = passed - kept
        else:
            self.decode(front, 0, size, kept)
            frame = self.frames.pop()
            self.offset -= size
        frame.add_problem(
            Problem(code, passed, "", f"{reason}: {passed} octets of {size if passed >= 8 else 'it'}")
        )
        self.give(frame, passed)

    # While the chain is broken

    def lose(self, cause: str, reason: str) -> None:
        """The chain breaks here; what is pending is given out as it is."""
        if self.passed > 0:
            self.unfinished("cut", "the rest was not captured")
        self.lost = True
        self.cause = cause
        self.reason = reason
        self.skipped = 0
        self.skipped_missing = 0
        self.wanted = 0

    def lost_at(self, fault: str, buf: bytes, pos: i64, end: i64) -> None:
        """The frame header at `pos` cannot be one: search from its second octet on."""
        self.lose(fault, _HEADER_REASONS[fault])
        self.skipped = 1
        self.search(buf[pos + 1 : end])

    def drop_window(self, size: i64) -> None:
        """Give up the octets being searched, and `size` more that are not there."""
        self.skipped += self.kept + size
        self.skipped_missing += size
        self.parts = []
        self.kept = 0
        self.wanted = 0

    def search(self, octets: bytes) -> None:
        """Look for a credible boundary in what has come since the chain broke."""
        self.parts.append(octets)
        self.kept += len(octets)
        if self.kept < self.wanted:
            return
        window = self.front()
        end: i64 = len(window)
        at: i64 = 0
        while True:
            at = self.candidate(window, at)
            if at >= end:
                break
            verdict = credible_frame(window, at, end)
            if verdict == CREDIBLE:
                self.skipped += at
                self.parts = []
                self.kept = 0
                self.give_skipped()
                self.lost = False
                self.doubtful = False
                self.run(window, at, end)
                return
            if verdict > 0 and end - at < RESYNC_WINDOW:
                self.skipped += at
                self.parts = [window[at:]]
                self.kept = end - at
                self.wanted = verdict
                return
            at += 1
        self.skipped += end
        self.parts = []
        self.kept = 0
        self.wanted = 0

    def candidate(self, window: bytes, start: i64) -> i64:
        """The next index from `start` at which a frame or protocol header may begin; its end if none.

        A frame header has the data offset 2 and the type 0 or 1 behind its size, whose first octet is
        below 4 (`MAX_CREDIBLE_FRAME`). The last octets may always be a beginning.
        """
        end: i64 = len(window)
        tail = end - 5
        at = start
        while at < tail:
            found: i64 = window.find(2, at + 4)
            if found < 0:
                found = end
            magic: i64 = window.find(b"AMQP", at, found + 4)
            if magic >= 0:
                return magic
            if found + 1 >= end:
                break
            at = found - 4
            if window[found + 1] <= 1 and window[at] <= 4:
                return at
            at += 1
        return tail if tail > start else start

    def give_skipped(self) -> None:
        """Give out everything skipped as one frame."""
        if self.skipped == 0:
            return
        name = "tls" if self.opaque else "skipped"
        frame = Frame(self.offset, self.skipped, "skipped", name, -1)
        frame.missing = self.skipped_missing
        if not self.opaque:
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
            self.lost,
            self.cause,
            self.reason,
            self.skipped,
            self.skipped_missing,
            self.wanted,
            self.layer,
            self.framed,
            self.opaque,
        )

    @staticmethod
    def load(state: tuple[object, ...], table: TypeTable = FINAL) -> "FrameDecoder":
        """A decoder that goes on where `dump` left off. Raises ValueError on another version's state."""
        if not state or state[0] != _DUMP_VERSION:
            raise ValueError(f"state of an AMQP 1.0 decoder in version {state[:1]}, not {_DUMP_VERSION}")
        decoder = FrameDecoder(False, table)
        front = state[2]
        assert isinstance(front, bytes)
        decoder.offset = _number(state[1])
        decoder.parts = [front] if front else []
        decoder.kept = len(front)
        decoder.passed = _number(state[3])
        decoder.size = _number(state[4])
        decoder.holed = bool(state[5])
        decoder.doubtful = bool(state[6])
        decoder.lost = bool(state[7])
        decoder.cause = str(state[8])
        decoder.reason = str(state[9])
        decoder.skipped = _number(state[10])
        decoder.skipped_missing = _number(state[11])
        decoder.wanted = _number(state[12])
        decoder.layer = str(state[13])
        decoder.framed = bool(state[14])
        decoder.opaque = bool(state[15])
        return decoder


def _number(value: object) -> i64:
    assert isinstance(value, int)
    return value


_HEADER_REASONS = {
    "cut": "no frame stands where one is due after octets that were not captured",
    "C-HDR-FORM": "the stream does not begin with a protocol header, nor with a frame",
    "F-SIZE-MIN": "the frame size is below 8",
    "F-DOFF-MIN": "the data offset is below 2 words",
    "F-DOFF-RANGE": "the data offset lies beyond the frame's end",
    "F-TYPE-KNOWN": "the frame type is neither 0 (AMQP) nor 1 (SASL)",
}

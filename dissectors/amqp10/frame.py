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
decodes without a fault and ends where the frame does (behind a transfer's, a payload may follow). What
lies before it is given out as one `skipped` frame. A header that is wrong in another field than its
size does not break the chain, unless a credible boundary lies within that size. Every octet of the
stream belongs to exactly one frame.

The verdict on a position is a function of the octets that follow it up to the next hole, never of
how they came: where they do not suffice, the decoder holds them back until more come (at most
`RESYNC_WINDOW`), or until a hole or the end says that none will.

A boundary found by searching is a guess, for a payload may hold whole frames. If the chain breaks
again soon after it, that accuses nobody.
"""

from typing import Final

from dissectors.amqp10.composite import Composite, Reader, TypeTable
from dissectors.amqp10.performatives import Transfer
from dissectors.amqp10.registry import FINAL
from dissectors.amqp10.values import Described, Raw, ULong
from dissectors.interface import Dissector, Frame, Problem
from dissectors.limits import (
    MAX_CREDIBLE_FRAME,
    MAX_HELLO,
    MAX_KEPT_FRAME,
    MAX_VALUES,
    MAX_WRONG_FRAME,
    RESYNC_VALUES,
    RESYNC_WINDOW,
)
from dissectors.protocol_header import ProtocolHeader
from dissectors.tls import hello
from dissectors.wire import i64, u16, u32

__all__ = ["FrameDecoder", "ProtocolHeader", "credible_frame"]

_MAGIC: Final = 0x414D5150  # "AMQP"
_DUMP_VERSION: Final = 2

# Empty frames in a row that are believed: what an idle connection is made of.
_EMPTY_ROW: Final = 4

# Octets up to which pieces of what is held are joined: enough to make a piece's own cost small.
_SMALL_PART: Final = 2048

# What `credible_frame` says, besides the number of octets it would need to see.
NOT_CREDIBLE: Final = 0
CREDIBLE: Final = -1

# Faults after which it is unknown where a value ends.
_SIZE_FAULTS = ("T-SIZE-OVERRUN", "T-LIST-FIT", "T-MAP-FIT", "T-ARR-FIT", "T-CODE-UNKNOWN")

# Wrong headers whose size may be right, and at which octet they are wrong.
_WRONG_AT = {"F-DOFF-MIN": 4, "F-DOFF-RANGE": 4, "F-TYPE-KNOWN": 5}

# Faults that real peers commit in otherwise sound frames: no reason to distrust a boundary.
_TOLERATED = ("T-COMP-EXTRA", "T-DESC-DOMAIN0", "T-DESC-RESERVED", "T-DESC-SYMFORM", "T-UUID-4122")


def credible_frame(buf: bytes, at: i64, end: i64, last: bool = False) -> i64:
    """Judge whether a frame or protocol header begins at `at`.

    Gives CREDIBLE, NOT_CREDIBLE, or how many octets from `at` on are needed to tell (about
    RESYNC_WINDOW at most). last: nothing comes behind buf[:end].
    """
    left = end - at
    if left < 8:
        return 8 if left < 4 or _may_begin(buf, at, end) else NOT_CREDIBLE
    size = u32(buf, at)
    if size == _MAGIC:
        # Of this protocol only: the other versions open a stream and never stand inside one.
        known = buf[at + 4] in (0, 2, 3) and buf[at + 5] == 1 and u16(buf, at + 6) == 0
        return CREDIBLE if known else NOT_CREDIBLE
    if size < 8 or size > MAX_CREDIBLE_FRAME or buf[at + 4] != 2 or buf[at + 5] > 1:
        return NOT_CREDIBLE
    if size == 8:
        return _credible_empty(buf, at, end, last)
    if size < 12:
        return NOT_CREDIBLE
    if left < 12:
        return 12
    need: i64 = NOT_CREDIBLE
    if buf[at + 8] == 0:
        need = _performative_size(buf, at + 8, end)
    if need < 0:
        return 8 - need if 8 - need <= size else NOT_CREDIBLE
    if need == NOT_CREDIBLE or need > size - 8 or need + 8 > RESYNC_WINDOW:
        return NOT_CREDIBLE
    if need + 8 > left:
        return need + 8
    return CREDIBLE if _sound_performative(buf, at, need, need == size - 8) else NOT_CREDIBLE


def _sound_performative(buf: bytes, at: i64, need: i64, alone: bool) -> bool:
    """Whether the `need` octets of body of the frame at `at` are one of its type, without a fault.

    alone: they are the whole body.
    """
    reader = Reader(buf, at + 8, at + 8 + need, at, FINAL, RESYNC_VALUES)
    body = reader.value()
    for problem in reader.problems:
        if problem.code not in _TOLERATED:
            return False
    if not isinstance(body, Composite) or reader.budget < 0:
        return False
    if buf[at + 5] == 1:
        return body.definition().is_sasl_frame and alone
    return body.definition().is_frame and (alone or isinstance(body, Transfer))


def _credible_empty(buf: bytes, at: i64, end: i64, last: bool) -> i64:
    """Judge the empty frame at `at`: eight octets that anything might hold.

    On channel 0, where it should be sent, it is believed before another credible frame, in a row of
    them, or if nothing comes behind it.
    """
    pos = at
    while end - pos >= 8 and u32(buf, pos) == 8 and u32(buf, pos + 4) == 0x0200_0000:
        pos += 8
        if pos - at >= 8 * _EMPTY_ROW:
            return CREDIBLE
    if pos == at:
        return NOT_CREDIBLE
    if pos == end and last:
        return CREDIBLE
    if end - pos >= 8 and u32(buf, pos) == 8:
        return NOT_CREDIBLE
    following = credible_frame(buf, pos, end, last)
    return following if following <= 0 else pos - at + following


def _may_begin(buf: bytes, at: i64, end: i64) -> bool:
    """Whether fewer than eight octets (at least four) can still become a frame or header."""
    size = u32(buf, at)
    if size == _MAGIC:
        return True
    if size < 8 or size > MAX_CREDIBLE_FRAME:
        return False
    if end - at > 4 and buf[at + 4] != 2:
        return False
    return end - at <= 5 or buf[at + 5] <= 1


def _tls_record(buf: bytes, at: i64) -> bool:
    """Whether a TLS record can begin at `at`, by its type and major version."""
    return 0x14 <= buf[at] <= 0x17 and buf[at + 1] == 3


def _performative_size(buf: bytes, at: i64, end: i64) -> i64:
    """Octets of the described list at `at`, NOT_CREDIBLE if there is none; -n: n octets are needed to tell.

    At least four octets are there, and the first is 0x00.
    """
    code: i64 = buf[at + 1]
    pos = at + 2
    if code == 0x53:
        pos += 1
    elif code == 0x80:
        pos += 8
    elif code == 0xA3:
        pos += 1 + buf[at + 2]
    elif code == 0xB3 and buf[at + 2] == 0 and buf[at + 3] == 0:
        if end - at < 6:
            return -6
        pos += 4 + u16(buf, at + 4)
    else:
        return NOT_CREDIBLE
    if pos >= end:
        return at - pos - 1
    code = buf[pos]
    if code == 0x45:
        return pos + 1 - at
    octets: i64 = 1 if code == 0xC0 else 4
    if octets == 4 and code != 0xD0:
        return NOT_CREDIBLE
    if pos + 1 + octets > end:
        return at - pos - 1 - octets
    size: i64 = buf[pos + 1] if octets == 1 else u32(buf, pos + 1)
    return pos + 1 + octets + size - at


class FrameDecoder(Dissector):
    """Decodes one direction of an AMQP 1.0 connection into `frames`.

    midstream: the octets fed first need not begin at a frame boundary.
    """

    def __init__(self, midstream: bool = False, table: TypeTable = FINAL) -> None:
        super().__init__()
        self.table: TypeTable = table
        # Octets held: the front of the frame begun as captured in one piece, or while the chain is
        # broken those that are not judged yet.
        self.parts: list[bytes] = []
        self.kept: i64 = 0
        # The frame begun: the octets passed of it (with holes and what was not kept), and its size once
        # eight octets are there (8 until then).
        self.passed: i64 = 0
        self.size: i64 = 8
        self.holed: bool = False
        # Behind a hole in a frame, and for a while behind a boundary that was only searched for, a frame
        # header that cannot be one accuses nobody.
        self.doubtful: bool = False
        self.guessed_to: i64 = 0
        # While the chain is broken: what was skipped so far and why, how many octets have to be held
        # before the next verdict, and the size of the frame with a wrong header where it broke.
        self.lost: bool = midstream
        self.cause: str = "cut"
        self.reason: str = "the capture begins in the middle of the stream" if midstream else ""
        self.skipped: i64 = 0
        self.skipped_missing: i64 = 0
        self.wanted: i64 = 0
        self.hint: i64 = 0
        # The layer that the last protocol header opened, and whether a frame has come since.
        self.layer: str = ""
        self.framed: bool = False
        # After both sides chose TLS everything is ciphertext.
        self.tls: bool = False
        self.opaque: bool = False
        # The first octets of the ciphertext, while they come without a hole: they are in clear.
        self.hello: bytes = b""
        self.listening: bool = False
        self.reader: Reader = Reader(b"", 0, 0, 0, table)

    # The stream

    def feed(self, buf: bytes, start: i64, end: i64) -> None:
        if self.opaque:
            if self.listening:
                self.listen(buf, start, end)
            self.skipped += end - start
        elif self.lost and self.kept > 0:
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
        self.listening = False
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
            if not self.opaque and not self.lost:
                self.lose("cut", "octets were not captured")
            self.skipped += size
            self.skipped_missing += size

    def end(self, reason: str) -> None:
        self.settle()
        if self.opaque or self.lost:
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
            if self.opaque:
                if self.listening:
                    self.listen(buf, pos, end)
                self.skipped += end - pos
                return
            if self.lost:
                pos = self.search(buf, pos, end, last)
            elif self.passed > 0:
                pos = self.resume(buf, pos, end, last)
            else:
                pos = self.run(buf, pos, end)

    # While the chain holds

    def run(self, buf: bytes, start: i64, end: i64) -> i64:
        """Decode every frame that lies whole in buf[start:end], keep the rest.

        Gives the index at which the chain broke or ciphertext began, or -1 if all octets are used up.
        """
        pos = start
        while end - pos >= 8:
            size = u32(buf, pos)
            if size == _MAGIC:
                self.header(buf, pos)
                pos += 8
                continue
            if self.tls and _tls_record(buf, pos):
                self.opaque = True
                self.listening = True
                return pos
            fault = self.header_fault(buf, pos, size)
            if fault:
                self.lose(fault, _HEADER_REASONS[fault])
                if fault in _WRONG_AT and 8 <= size <= MAX_WRONG_FRAME:
                    self.hint = size
                return pos
            if size > end - pos:
                break
            self.decode(buf, pos, size, size)
            pos += size
        if pos < end:
            self.keep(buf, pos, end)
        return -1

    def header_fault(self, buf: bytes, pos: i64, size: i64) -> str:
        """The rule a frame header breaks, or "": also `cut` for one that accuses nobody."""
        words: i64 = buf[pos + 4]
        if size >= 8 and words >= 2 and words * 4 <= size and buf[pos + 5] <= 1:
            if size <= MAX_CREDIBLE_FRAME:
                self.doubtful = False
                return ""
            if not self.doubtful and self.offset >= self.guessed_to:
                return ""
        unsure = self.doubtful or self.offset < self.guessed_to
        if unsure:
            return "cut"
        if self.offset == 0:
            return "C-HDR-FORM"
        if size < 8:
            return "F-SIZE-MIN"
        if words < 2:
            return "F-DOFF-MIN"
        return "F-DOFF-RANGE" if words * 4 > size else "F-TYPE-KNOWN"

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
        if self.holed:
            return
        room = MAX_KEPT_FRAME - self.kept
        if end - start > room:
            end = start + room
            self.holed = True
        if end > start:
            self.hold(buf, start, end)
        if self.size == 8 and self.passed >= 8:
            self.size = u32(self.front(), 0)

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
            # The header is whole now. Nearly always it is a frame's, and the rest follows.
            front = self.front()
            size = u32(front, 0)
            ciphertext = self.tls and _tls_record(front, 0)
            if size == _MAGIC or size == 8 or ciphertext or self.header_fault(front, 0, size):
                whole = front + buf[pos:end]
                self.forget()
                self.work(whole, 0, len(whole), last)
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
        self.forget()
        self.decode(front, 0, size, kept)
        if kept == size:
            return
        if kept == MAX_KEPT_FRAME:
            problem = Problem("limit", kept, "", f"only the first {kept} octets of {size} are kept")
        else:
            reason = f"not all of its {size} octets were captured; kept are the first {kept}"
            problem = Problem("cut", kept, "", reason)
        self.frames[-1].add_problem(problem)

    def unfinished(self, reason: str) -> None:
        """The stream ended inside the frame begun: give out what is known of it."""
        front = self.front()
        size = self.size
        kept = self.kept
        passed = self.passed
        self.forget()
        if self.tls and passed >= 2 and _tls_record(front, 0):
            self.opaque = True
            self.skipped = passed
            self.give_skipped()
            return
        why = f"the stream ended ({reason}) inside the frame"
        if passed >= 8:
            self.decode(front, 0, size, kept)
            frame = self.frames[-1]
            # All its octets are owed, but in the stream there are no more of it.
            frame.size = passed
            self.offset -= size - passed
            why += f", after {passed} of {size} octets"
        else:
            frame = Frame(self.offset, passed, "skipped", "skipped", -1)
            self.give(frame, passed)
            why += "'s header"
        frame.add_problem(Problem("incomplete", passed, "", why))

    def forget(self) -> None:
        """Forget the frame begun."""
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
        if self.layer == "AMQP 1.0" or (self.layer and not self.framed):
            frame.add_problem(
                Problem("C-HDR-VERMATCH", 0, "", f"it follows the protocol header of {self.layer}")
            )
        self.layer = header.protocol()
        self.tls = self.layer == "TLS"
        self.framed = False
        self.doubtful = False
        self.give(frame, 8)

    def decode(self, buf: bytes, at: i64, size: i64, kept: i64) -> None:
        """A frame of `size` octets, of which the first `kept` (at least 8) stand at buf[at:]."""
        body_at = at + buf[at + 4] * 4
        last = at + kept
        sasl = buf[at + 5] == 1
        channel: i64 = -1
        if not sasl:
            channel = u16(buf, at + 6)
        frame = Frame(self.offset, size, "sasl" if sasl else "amqp", "empty", channel)
        frame.missing = size - kept
        self.framed = True
        if body_at >= last:
            frame.place(buf, at, last, last, last)
            if body_at < at + size:
                frame.name = "undecodable"
            elif sasl:
                frame.add_problem(Problem("SA-FRAME-EMPTY", body_at - at, "", "a SASL frame has no body"))
            self.give(frame, size)
            return
        reader = self.reader
        reader.buf = buf
        reader.pos = body_at
        reader.end = last
        reader.origin = at
        reader.budget = MAX_VALUES
        # A credential may stand anywhere in a SASL frame whose body is not as it should be.
        reader.hiding = sasl
        reader.cut = kept < size
        body = reader.value()
        frame.name = body.definition().name if isinstance(body, Composite) else "undecodable"
        frame.body = _without_content(body) if sasl else body
        frame.place(buf, at, body_at, reader.pos, last)
        if reader.problems:
            frame.problems = reader.problems
            reader.problems = []
        self.judge_body(frame, body, sasl, reader.pos < last, body_at - at)
        self.give(frame, size)

    def judge_body(self, frame: Frame, body: object, sasl: bool, more: bool, body_at: i64) -> None:
        """What the framing chapter demands of a frame's body. more: octets stand behind its value."""
        if more and frame.problems:
            for problem in frame.problems:
                if problem.code in _SIZE_FAULTS:
                    # Where the value really ends is unknown then.
                    more = False
        behind = self.reader.pos - self.reader.origin
        if isinstance(body, Composite):
            definition = body.definition()
            if sasl:
                if not definition.is_sasl_frame:
                    frame.add_problem(Problem("SA-FRAME-BODY", body_at, "", f"{frame.name} in a SASL frame"))
                elif more:
                    reason = "octets follow the SASL frame's value"
                    frame.add_problem(Problem("SA-FRAME-BODY", behind, "", reason))
            elif not definition.is_frame:
                frame.add_problem(Problem("F-BODY-PERF", body_at, "", f"{frame.name} is no performative"))
            elif more and not isinstance(body, Transfer):
                frame.add_problem(Problem("F-BODY-PAYLOAD", behind, "", f"octets follow the {frame.name}"))
        elif not frame.problems and frame.missing == 0:
            what = "a value without descriptor"
            if isinstance(body, Described):
                what = "a described value that is none"
            if sasl:
                frame.add_problem(
                    Problem("SA-FRAME-BODY", body_at, "", f"where a SASL value is due stands {what}")
                )
            else:
                frame.add_problem(
                    Problem("F-BODY-PERF", body_at, "", f"where a performative is due stands {what}")
                )

    def listen(self, buf: bytes, start: i64, end: i64) -> None:
        """The ciphertext begins, or goes on without a hole: keep what may be the hello."""
        room = MAX_HELLO - len(self.hello)
        if end - start >= room:
            end = start + room
            self.listening = False
        self.hello += buf[start:end]

    # While the chain is broken

    def lose(self, cause: str, reason: str) -> None:
        """The chain breaks here. What has come of a frame header goes with what will be skipped."""
        if self.tls and not self.framed and cause == "cut":
            # What follows the choice of TLS is ciphertext, from wherever on it is seen.
            self.opaque = True
        self.skipped = self.passed
        self.skipped_missing = 0
        self.forget()
        self.lost = True
        self.cause = cause
        self.reason = reason
        # Among what is skipped may be frames, and what is found may be the content of one.
        self.framed = True
        self.layer = ""

    def search(self, buf: bytes, start: i64, end: i64, last: bool) -> i64:
        """Look for a credible boundary in buf[start:end], the octets behind those skipped so far.

        Gives its index, or -1 if all octets are skipped or held.
        """
        if self.hint > 0:
            # A frame header is wrong: is its size right?
            size = self.hint
            if end - start < size and not last:
                self.wanted = size
                self.hold(buf, start, end)
                return -1
            self.hint = 0
            if end - start >= size and self.boundary(buf, start + 1, start + size) < 0:
                self.lost = False
                self.doubtful = True
                self.give_wrong(buf, start, size)
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
                self.guessed_to = self.offset + MAX_CREDIBLE_FRAME
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
        """The next index from `start` at which a frame or protocol header may begin; `end` if none.

        A frame header has the data offset 2 and the type 0 or 1 behind its size, whose first octet is
        at most 4 (`MAX_CREDIBLE_FRAME`). The last octets may always be a beginning.
        """
        tail = end - 5
        at = start
        while at < tail:
            found: i64 = window.find(2, at + 4, end)
            if found < 0:
                found = end
            magic: i64 = window.find(b"AMQP", at, found)
            if magic >= 0:
                return magic
            if found + 1 >= end:
                break
            at = found - 4
            if window[found + 1] <= 1 and window[at] <= 4:
                return at
            at += 1
        return tail if tail > start else start

    def give_wrong(self, buf: bytes, at: i64, size: i64) -> None:
        """Give out a frame whose header is wrong, though not its size."""
        kind = "sasl" if buf[at + 5] == 1 else "amqp"
        frame = Frame(self.offset, size, kind, "undecodable", -1)
        frame.place(buf, at, at + 8, at + 8, at + size)
        frame.add_problem(Problem(self.cause, _WRONG_AT[self.cause], "", self.reason))
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
        name = "tls" if self.opaque else "skipped"
        frame = Frame(self.offset, self.skipped, "skipped", name, -1)
        frame.missing = self.skipped_missing
        if self.opaque:
            frame.body = hello(self.hello)
        else:
            code = self.cause
            if self.skipped < 8 and code.startswith("F-"):
                # Not even room for a header: there is none that could be wrong, the frame before is.
                code = "F-SIZE-TOTAL"
                self.reason = _HEADER_REASONS[code]
            frame.add_problem(Problem(code, _WRONG_AT.get(code, 0), "", self.reason))
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
            self.hint,
            self.guessed_to,
            self.layer,
            self.framed,
            self.tls,
            self.opaque,
            self.hello,
            self.listening,
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
        decoder.hint = _number(state[13])
        decoder.guessed_to = _number(state[14])
        decoder.layer = str(state[15])
        decoder.framed = bool(state[16])
        decoder.tls = bool(state[17])
        decoder.opaque = bool(state[18])
        heard = state[19]
        assert isinstance(heard, bytes)
        decoder.hello = heard
        decoder.listening = bool(state[20])
        return decoder


def _without_content(body: object) -> object:
    """What is kept of a SASL frame's body. If it is none, a credential may stand anywhere in it."""
    if isinstance(body, Composite):
        definition = body.definition()
        return body if definition.is_sasl_frame else Described(ULong(definition.code), Raw(b""))
    if isinstance(body, Described) and isinstance(body.descriptor, ULong):
        return Described(body.descriptor, Raw(b""))
    return Raw(b"")


def _number(value: object) -> i64:
    assert isinstance(value, int)
    return value


_HEADER_REASONS = {
    "cut": "no frame stands where one is due after octets that were not captured",
    "C-HDR-FORM": "the stream does not begin with a protocol header, nor with a frame",
    "F-SIZE-TOTAL": "these octets stand between two frames; the size of the first does not cover them",
    "F-SIZE-MIN": "the frame size is below 8",
    "F-DOFF-MIN": "the data offset is below 2 words",
    "F-DOFF-RANGE": "the data offset lies beyond the frame's end",
    "F-TYPE-KNOWN": "the frame type is neither 0 (AMQP) nor 1 (SASL)",
}

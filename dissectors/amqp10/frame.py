"""From the octets of one direction to protocol headers and frames (transport.xml, section "framing").

A frame begins with its size (4 octets, itself included), the data offset in words of four octets (1), the
type (1) and a type-specific pair of octets, for AMQP frames the channel. How the chain of frames is followed,
and found again, `dissectors.stream_decoder` tells.

A position is a credible boundary if there stands a protocol header, or a frame header with the usual data
offset and a performative that decodes without a fault and ends where the frame does (behind a transfer's, a
payload may follow). For `MAX_CREDIBLE_FRAME` octets behind it a broken chain accuses nobody: a payload may
hold whole frames.
"""

from typing import Any, Final

from dissectors.amqp10.composite import Composite, Reader, TypeTable
from dissectors.amqp10.detect import NO_HEADER
from dissectors.amqp10.registry import FINAL
from dissectors.amqp10.types import BLURRING, SIZE_FAULTS
from dissectors.amqp10.values import Described, Raw, ULong
from dissectors.interface import Frame, Problem
from dissectors.limits import (
    GUESSED_OCTETS,
    MAX_CREDIBLE_FRAME,
    MAX_FRAME_CANDIDATES,
    MAX_HELLO,
    MAX_VALUES,
    MAX_WRONG_FRAME,
    RESYNC_VALUES,
    RESYNC_WINDOW,
)
from dissectors.protocol_header import ProtocolHeader
from dissectors.stream_decoder import CREDIBLE, NOT_CREDIBLE, UNSURE, StreamDecoder
from dissectors.tls import hello
from dissectors.wire import i64, u16, u32

__all__ = [
    "TRAILING",
    "FrameDecoder",
    "ProtocolHeader",
    "credible_frame",
    "holds_frame",
    "wrong_header",
]

TRAILING: Final = "F-BODY-PAYLOAD"
"""The code of the problem that octets follow a performative that has no payload."""

_MAGIC: Final = 0x414D5150  # "AMQP"
_SMALL_MAGIC: Final = 0x616D7170  # "amqp"

# Empty frames in a row that are believed: what an idle connection is made of.
_EMPTY_ROW: Final = 4

# Wrong headers whose size may be right, and at which octet they are wrong.
_WRONG_AT: Final = {"F-DOFF-MIN": 4, "F-DOFF-RANGE": 4, "F-TYPE-KNOWN": 5}

# Faults that real peers commit in otherwise sound frames: no reason to distrust a boundary.
_TOLERATED: Final = ("T-COMP-EXTRA", "T-DESC-DOMAIN0", "T-DESC-RESERVED", "T-DESC-SYMFORM", "T-UUID-4122")


def credible_frame(buf: bytes, at: i64, end: i64, last: bool = False, table: TypeTable = FINAL) -> i64:
    """Judge whether a frame or protocol header begins at `at`.

    Gives CREDIBLE, NOT_CREDIBLE, or how many octets from `at` on are needed to tell (about
    RESYNC_WINDOW at most). last: nothing comes behind buf[:end]. table: of the dialect it may be in.
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
        return _credible_empty(buf, at, end, last, table)
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
    return CREDIBLE if _sound_performative(buf, at, need, need == size - 8, table) else NOT_CREDIBLE


def holds_frame(octets: bytes) -> bool:
    """Whether a frame stands or begins among these octets: the frame around may name too large a size."""
    end: i64 = len(octets)
    at: i64 = 3
    candidates: i64 = 0
    while candidates < MAX_FRAME_CANDIDATES:
        # The data offset, behind four octets of size.
        at = octets.find(2, at + 1)
        if at < 0:
            return False
        if credible_frame(octets, at - 4, end) != NOT_CREDIBLE:
            return True
        candidates += 1
    return True


def _sound_performative(buf: bytes, at: i64, need: i64, alone: bool, table: TypeTable) -> bool:
    """Whether the `need` octets of body of the frame at `at` are one of its type, without a fault.

    alone: they are the whole body.
    """
    reader = table.reader(RESYNC_VALUES)
    reader.buf = buf
    reader.pos = at + 8
    reader.end = at + 8 + need
    reader.origin = at
    body = reader.value()
    for problem in reader.problems:
        if problem.code not in _TOLERATED:
            return False
    if not isinstance(body, Composite) or reader.budget < 0:
        return False
    if buf[at + 5] == 1:
        return body.definition().is_sasl_frame and alone
    return body.definition().is_frame and (alone or table.has_payload(body))


def _credible_empty(buf: bytes, at: i64, end: i64, last: bool, table: TypeTable) -> i64:
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
    following = credible_frame(buf, pos, end, last, table)
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


def wrong_header(frame: Frame) -> bool:
    """Whether a frame's header is wrong, so that no dialect can read what follows it."""
    return any(problem.code in _WRONG_AT for problem in frame.problems)


class FrameDecoder(StreamDecoder):
    """Decodes one direction of an AMQP 1.0 connection into `frames`.

    midstream: the octets fed first need not begin at a frame boundary.
    """

    def __init__(self, midstream: bool = False, table: TypeTable = FINAL) -> None:
        super().__init__(midstream, MAX_CREDIBLE_FRAME)
        # The layer that the last protocol header opened, and whether a frame has come since.
        self.layer: str = ""
        self.framed: bool = False
        # Both sides chose TLS: what follows is ciphertext.
        self.tls: bool = False
        # The first octets of the ciphertext, while they come without a hole: they are in clear.
        self.hello: bytes = b""
        self.listening: bool = False
        # The types of its dialect, and what reads them.
        self.table: TypeTable = table
        self.reader: Reader = table.reader(MAX_VALUES)

    # The stream

    def feed(self, buf: bytes, start: i64, end: i64) -> None:
        super().feed(buf, start, end)
        # A connection that is silent from here on is not to keep a megabyte of the file.
        self.reader.buf = b""

    def gap(self, size: i64) -> None:
        super().gap(size)
        self.listening = False

    def pass_ciphertext(self, buf: bytes, start: i64, end: i64) -> None:
        super().pass_ciphertext(buf, start, end)
        if self.listening:
            # What may be the hello is kept.
            room = MAX_HELLO - len(self.hello)
            if end - start >= room:
                end = start + room
                self.listening = False
            self.hello += buf[start:end]

    # While the chain holds

    def run(self, buf: bytes, start: i64, end: i64) -> i64:
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
            # The letters of a protocol header in small ones would be a size.
            small = self.offset == self.origin and size == _SMALL_MAGIC
            if not small and not self.unsure():
                return ""
        if self.unsure():
            return "cut"
        if self.offset == self.origin:
            return NO_HEADER
        if size < 8:
            return "F-SIZE-MIN"
        if words < 2:
            return "F-DOFF-MIN"
        return "F-DOFF-RANGE" if words * 4 > size else "F-TYPE-KNOWN"

    def frame_size(self, buf: bytes) -> i64:
        return u32(buf, 0)

    def unfinished(self, reason: str) -> None:
        if self.tls and self.begun.passed >= 2 and _tls_record(self.front(), 0):
            self.opaque = True
            self.skipped = self.begun.passed
            self.forget()
            self.give_skipped()
        else:
            super().unfinished(reason)

    def secured(self) -> None:
        self.framed = True

    # One frame

    def header(self, buf: bytes, at: i64) -> None:
        """A protocol header."""
        frame = self.protocol_header(buf, at)
        if self.layer == "AMQP 1.0" or (self.layer and not self.framed):
            frame.add_problem(
                Problem(
                    "C-HDR-VERMATCH",
                    0,
                    "",
                    (
                        f"the peer has already sent a protocol header for {self.layer} before this protocol "
                        "header"
                    ),
                )
            )
        header = frame.body
        assert isinstance(header, ProtocolHeader)
        self.layer = header.protocol()
        self.tls = self.layer == "TLS"
        self.framed = False
        self.doubtful = False
        self.give(frame, 8)

    def decode(self, buf: bytes, at: i64, size: i64, kept: i64) -> None:
        body_at = at + buf[at + 4] * 4
        last = at + kept
        sasl = buf[at + 5] == 1
        channel: i64 = -1
        if not sasl:
            channel = u16(buf, at + 6)
        frame = Frame(self.offset, size, "sasl" if sasl else "amqp", "empty", channel)
        frame.missing = size - kept
        frame.dialect = self.dialect
        self.framed = True
        if body_at >= last:
            frame.place(buf, at, last, last, last)
            if body_at < at + size:
                frame.name = "undecodable"
            elif sasl:
                reason = "this SASL frame has no body, but every SASL frame must have a body"
                frame.add_problem(Problem("SA-FRAME-EMPTY", body_at - at, "", reason))
            self.give(frame, size)
            return
        if self.undecided:
            self.decide(buf, body_at, last)
            frame.dialect = self.dialect
            frame.assumed = self.assumed
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
        # (Of so much behind the boundary, as in 0-9-1; the chain of frames stays in doubt for longer.)
        frame.guessed = self.offset < self.guessed_to - self.guessed + GUESSED_OCTETS
        self.give(frame, size)

    def decide(self, buf: bytes, at: i64, end: i64) -> None:
        """Find out by the body of a frame, buf[at:end], in which dialect this direction is."""

    def judge_body(self, frame: Frame, body: object, sasl: bool, more: bool, body_at: i64) -> None:
        """What the framing chapter demands of a frame's body. more: octets stand behind its value."""
        if more and frame.problems:
            for problem in frame.problems:
                if problem.code in SIZE_FAULTS:
                    # Where the value really ends is unknown then.
                    more = False
        behind = self.reader.pos - self.reader.origin
        if isinstance(body, Composite):
            definition = body.definition()
            if sasl:
                if not definition.is_sasl_frame:
                    frame.add_problem(
                        Problem(
                            "SA-FRAME-BODY",
                            body_at,
                            "",
                            (f"a SASL frame contains the performative {frame.name}"),
                            True,
                        )
                    )
                elif more:
                    reason = "the SASL frame has octets after its performative"
                    frame.add_problem(Problem("SA-FRAME-BODY", behind, "", reason, True))
            elif not definition.is_frame:
                frame.add_problem(
                    Problem("F-BODY-PERF", body_at, "", f"{frame.name} is not a performative", True)
                )
            elif more and not self.table.has_payload(body):
                reason = f"the frame has octets after its performative {frame.name}, which has no payload"
                if frame.name == "transfer":
                    reason += " in the draft of April 2011"
                frame.add_problem(Problem(TRAILING, behind, "", reason, True))
        elif frame.missing == 0 and not any(_explains(problem) for problem in frame.problems):
            what = "a value without descriptor"
            if isinstance(body, Described):
                what = "a described value of another type"
            if sasl:
                frame.add_problem(
                    Problem(
                        "SA-FRAME-BODY", body_at, "", f"the frame has {what} instead of a SASL performative"
                    )
                )
            else:
                frame.add_problem(
                    Problem("F-BODY-PERF", body_at, "", f"the frame has {what} instead of a performative")
                )

    # While the chain is broken

    def lose(self, cause: str, reason: str) -> None:
        if self.tls and not self.framed and cause == "cut":
            # What follows the choice of TLS is ciphertext, from wherever on it is seen.
            self.opaque = True
        super().lose(cause, reason)
        # Among what is skipped may be frames, and what is found may be the content of one.
        self.framed = True
        self.layer = ""

    def credible(self, buf: bytes, at: i64, end: i64, last: bool) -> i64:
        return credible_frame(buf, at, end, last, self.table)

    def candidate(self, window: bytes, start: i64, end: i64) -> i64:
        # A frame header has the data offset 2 and the type 0 or 1 behind its size, whose first octet is at
        # most 4 (`MAX_CREDIBLE_FRAME`).
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

    def give_wrong(self, buf: bytes, at: i64, size: i64) -> bool:
        kind = "sasl" if buf[at + 5] == 1 else "amqp"
        frame = Frame(self.offset, size, kind, "undecodable", -1)
        frame.place(buf, at, at + 8, at + 8, at + size)
        frame.add_problem(Problem(self.cause, _WRONG_AT[self.cause], "", self.reason))
        self.give(frame, size)
        return True

    def explain_skipped(self, frame: Frame) -> None:
        if self.opaque:
            frame.name = "tls"
            frame.body = hello(self.hello)
        elif frame.size < 8 and self.cause.startswith("F-"):
            # Not even room for a header: there is none that could be wrong, the frame before is.
            reason = "these octets lie between two frames; the size of the first frame does not include them"
            frame.add_problem(Problem("F-SIZE-TOTAL", 0, "", reason))
        else:
            frame.add_problem(Problem(self.cause, _WRONG_AT.get(self.cause, 0), "", self.reason))

    # Between processes

    def dump_protocol(self) -> tuple[object, ...]:
        return (self.layer, self.framed, self.tls, self.hello, self.listening)

    @staticmethod
    def load(state: tuple[object, ...], table: TypeTable = FINAL) -> "FrameDecoder":
        """A decoder that goes on where `dump` left off. Raises ValueError on another version's state."""
        decoder = FrameDecoder(False, table)
        decoder.restore_protocol(decoder.restore(state))
        return decoder

    def restore_protocol(self, own: tuple[Any, ...]) -> None:
        """Go on with what `dump_protocol` returned."""
        self.layer, self.framed, self.tls, self.hello, self.listening = own


def _explains(problem: Problem) -> bool:
    """Whether it may be why a frame's body is none: it is the body's own, or blurs what stands in it."""
    return problem.path == "" or problem.code in BLURRING


def _without_content(body: object) -> object:
    """What is kept of a SASL frame's body. If it is none, a credential may stand anywhere in it."""
    if isinstance(body, Composite):
        definition = body.definition()
        return body if definition.is_sasl_frame else Described(ULong(definition.code), Raw(b""))
    if isinstance(body, Described) and isinstance(body.descriptor, ULong):
        return Described(body.descriptor, Raw(b""))
    return Raw(b"")


_HEADER_REASONS: Final = {
    "cut": UNSURE,
    NO_HEADER: "the stream begins with neither a protocol header nor a frame",
    "F-SIZE-MIN": "the frame size is below 8",
    "F-DOFF-MIN": "the data offset is below 2 words",
    "F-DOFF-RANGE": "the data offset lies beyond the end of the frame",
    "F-TYPE-KNOWN": "the frame type is neither 0 (AMQP) nor 1 (SASL)",
}

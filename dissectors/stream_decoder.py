"""From the octets of one direction to frames: what is the same in every protocol that is a chain of frames.

Theory of operation. A frame tells its size in its header, in the first eight octets. So a direction is a
chain: whoever knows where one frame begins knows where all later ones do. While the chain holds, a frame is
decoded where it lies in the segment's buffer (`run`); only one that goes over several segments is put
together first (`keep`, `resume`).

The chain breaks (`lose`) when octets were not captured, when the capture begins in the middle, and where what
stands there cannot be a frame. Octets missing *inside* a frame whose header is known break nothing: its size
still says where the next one begins (if no frame can stand there, the chain is broken after all). A header
that is wrong in another field than its size (`hint`) breaks it only if a credible boundary lies within that
size. While the chain is broken the decoder searches for a credible boundary, a place where the octets that
follow are a sound frame as far as the protocol can tell; what lies before it is given out as one `skipped`
frame. Every octet of the stream belongs to exactly one frame.

The verdict on a position is a function of the octets that follow it up to the next hole, never of how they
came: where they do not suffice, they are held back until more come (as many as the protocol's
`credible_frame` asks for), or until a hole or the end says that none will.

A boundary found by searching is a guess, for what peers send may hold whole frames: recorded traffic for one.
They are taken for frames until what holds them ends, where the chain breaks again. So for a while behind such
a boundary, and behind a hole until the next sound frame, a broken chain accuses nobody (`unsure`).

Where ciphertext begins (`opaque`) nothing more is decoded; its octets are counted as skipped.

A protocol says what a frame is: `run` and `decode`, where speed is decided, `frame_size`, `candidate`,
`credible` and `give_wrong`. What it knows besides it adds to the other methods.
"""

from typing import Any, Final

from dissectors.interface import Dissector, Frame, Problem
from dissectors.limits import MAX_KEPT_FRAME
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64

__all__ = ["CREDIBLE", "NOT_CREDIBLE", "UNSURE", "StreamDecoder"]

NOT_CREDIBLE: Final = 0
"""What the verdict on a position is, if not the number of octets that are needed to tell."""

CREDIBLE: Final = -1

UNSURE: Final = "after octets that were not captured, no frame begins where a frame must begin"

_DUMP_VERSION: Final = 6

# Octets up to which pieces of what is held are joined: enough to make a piece's own cost small.
_SMALL_PART: Final = 2048


class BegunFrame:
    """A frame of which not all octets came so far."""

    def __init__(self) -> None:
        # The octets passed of it, with holes and what was not kept.
        self.passed: i64 = 0
        # Those of them that were not captured.
        self.uncaptured: i64 = 0
        # Its size once eight octets are there, 8 until then.
        self.size: i64 = 8
        # Not all octets passed are kept.
        self.holed: bool = False

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (self.passed, self.uncaptured, self.size, self.holed)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "BegunFrame":
        """The object of what `dump` returned."""
        if state[0] == 0:
            return NOTHING_BEGUN
        begun = BegunFrame()
        begun.passed, begun.uncaptured, begun.size, begun.holed = state
        return begun


# mypyc: null object, while no frame is begun. Nothing writes to it.
NOTHING_BEGUN: Final = BegunFrame()


class StreamDecoder(Dissector):
    """Decodes one direction of a connection into `frames`.

    midstream: the octets fed first need not begin at a frame boundary. guessed: octets behind a boundary that
    was searched for in which it is taken for a guess.

    mypyc: not an ABC, because compiled code would then check at each use of an attribute that it is there.
    """

    def __init__(self, midstream: bool, guessed: i64) -> None:
        super().__init__()
        self.guessed: i64 = guessed
        # The stream offset at which the direction begins, behind what another layer has put before it.
        self.origin: i64 = 0
        # Octets held: the front of the frame begun as captured in one piece, or while the chain is
        # broken those that are not judged yet.
        self.parts: list[bytes] = []
        self.kept: i64 = 0
        self.begun: BegunFrame = NOTHING_BEGUN
        # Behind a hole in a frame, and for a while behind a boundary that was only searched for, what
        # cannot be a frame accuses nobody.
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
        # Everything from here on is ciphertext.
        self.opaque: bool = False
        # Its protocol has dialects that begin alike. The name of the protocol that stands for its dialect, ""
        # while it is not known, or if there is but one; whether it is not known yet; whether frames were
        # given out that may be of another dialect than the one they were decoded in (see `decode_again`);
        # and whether the next frame is `Frame.assumed`.
        self.dialect: str = ""
        self.undecided: bool = False
        self.suspect: bool = False
        self.assumed: bool = False

    # What the protocol says

    def run(self, buf: bytes, start: i64, end: i64) -> i64:
        """Decode every frame that lies whole in buf[start:end], keep the rest.

        Gives the index at which the chain broke or ciphertext began, or -1 if all octets are used up.
        """
        raise NotImplementedError

    def decode(self, buf: bytes, at: i64, size: i64, kept: i64) -> None:
        """Give out a frame of `size` octets, of which the first `kept` (at least 8) stand at buf[at:]."""
        raise NotImplementedError

    def frame_size(self, buf: bytes) -> i64:
        """The size that the frame header in the first eight octets tells."""
        raise NotImplementedError

    def candidate(self, window: bytes, start: i64, end: i64) -> i64:
        """The next index from `start` at which a credible frame may begin; `end` if none.

        The last octets, too few to tell, may always be a beginning.
        """
        raise NotImplementedError

    def credible(self, buf: bytes, at: i64, end: i64, last: bool) -> i64:
        """Judge whether a frame or protocol header begins at `at`.

        Gives CREDIBLE, NOT_CREDIBLE, or how many octets from `at` on are needed to tell. last: nothing comes
        behind buf[:end].
        """
        raise NotImplementedError

    def give_wrong(self, buf: bytes, at: i64, size: i64) -> bool:
        """Give out the frame whose header is wrong, though not its size; False if that is wrong as well."""
        raise NotImplementedError

    # The stream

    def begin_at(self, origin: i64, offset: i64) -> None:
        """The stream begins at `origin`, and the octets that come first stand at `offset`. Before they do."""
        self.origin = origin
        self.offset = offset

    def feed(self, buf: bytes, start: i64, end: i64) -> None:
        self.work(buf, start, end, False)

    def gap(self, size: i64) -> None:
        self.settle()
        begun = self.begun
        if begun.passed >= 8:
            # The frame begun goes on in the hole, maybe to its end.
            inside = begun.size - begun.passed
            if inside > size:
                inside = size
            begun.passed += inside
            begun.uncaptured += inside
            size -= inside
            begun.holed = True
            self.doubtful = True
            if begun.passed == begun.size:
                self.complete(-1)
        if size > 0:
            if not self.opaque and not self.lost:
                self.lose("cut", "octets were not captured")
            self.skipped += size
            self.skipped_missing += size

    def tear(self, size: i64) -> None:
        """Octets are missing, and nobody knows how many; the next ones stand `size` further."""
        self.settle()
        begun = self.begun
        if begun.passed >= 8:
            # Whether the frame begun is over behind the hole cannot be known.
            front = self.front()
            self.forget()
            self.decode_part(front, begun.size, -1)
            frame = self.frames[-1]
            frame.size = begun.passed
            frame.uncaptured = begun.uncaptured
            self.offset -= begun.size - begun.passed
        self.gap(size)

    def end(self, reason: str) -> None:
        self.settle()
        if self.opaque or self.lost:
            self.give_skipped()
        elif self.begun.passed > 0:
            self.unfinished(reason)

    def settle(self) -> None:
        """Nothing comes behind the octets held while searching (a hole does, or the end): judge them."""
        if self.lost and self.kept > 0:
            self.judge_held(True)

    def judge_held(self, last: bool) -> None:
        """Search in the octets held. last: see `credible`."""
        window = self.release()
        self.work(window, 0, len(window), last)

    def work(self, buf: bytes, start: i64, end: i64, last: bool) -> None:
        """Take buf[start:end]: decode, go on with the frame begun, or search. last: see `credible`."""
        pos = start
        while pos >= 0 and pos < end:
            if self.opaque:
                self.pass_ciphertext(buf, pos, end)
                return
            if not self.lost:
                pos = self.resume(buf, pos, end) if self.begun.passed > 0 else self.run(buf, pos, end)
            elif self.kept > 0:
                self.hold(buf, pos, end)
                if self.kept >= self.wanted:
                    self.judge_held(last)
                return
            else:
                pos = self.search(buf, pos, end, last)

    def pass_ciphertext(self, buf: bytes, start: i64, end: i64) -> None:
        """The ciphertext begins, or goes on."""
        self.skipped += end - start

    # While the chain holds

    def unsure(self) -> bool:
        """Whether the position in the chain is a guess."""
        return self.doubtful or self.offset < self.guessed_to

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
        if self.begun is NOTHING_BEGUN:
            self.begun = BegunFrame()
        begun = self.begun
        begun.passed += end - start
        if begun.holed:
            return
        room = MAX_KEPT_FRAME - self.kept
        if end - start > room:
            end = start + room
            begun.holed = True
        if end > start:
            self.hold(buf, start, end)
        if begun.size == 8 and begun.passed >= 8:
            begun.size = self.frame_size(self.front())

    def resume(self, buf: bytes, start: i64, end: i64) -> i64:
        """Go on with the frame begun. Gives the index behind it (or its header), or -1 if it goes on."""
        behind = start + self.begun.size - self.begun.passed
        if behind > end:
            self.keep(buf, start, end)
            return -1
        self.keep(buf, start, behind)
        self.complete(buf[behind - 1])
        return behind

    def complete(self, octet: i64) -> None:
        """The frame begun has passed, or its header. octet: the last one, -1 if it was not captured."""
        front = self.front()
        begun = self.begun
        whole = self.kept == begun.passed
        self.forget()
        if whole:
            self.work(front, 0, len(front), False)
        else:
            self.decode_part(front, begun.size, octet)
            self.frames[-1].uncaptured = begun.uncaptured

    def decode_part(self, front: bytes, size: i64, octet: i64) -> None:
        """Give out a frame of which not all is kept. octet: see `complete`."""
        kept: i64 = len(front)
        guessed = self.offset < self.guessed_to
        self.decode(front, 0, size, kept)
        self.frames[-1].guessed = guessed
        if kept == MAX_KEPT_FRAME:
            problem = Problem(
                "limit", kept, "", (f"only the first {kept} of the {size} octets of this frame are kept")
            )
        else:
            reason = f"not all {size} octets of this frame were captured; the first {kept} octets are kept"
            problem = Problem("cut", kept, "", reason)
        self.frames[-1].add_problem(problem)

    def unfinished(self, reason: str) -> None:
        """The stream ended inside the frame begun: give out what is known of it."""
        front = self.front()
        begun = self.begun
        size = begun.size
        passed = begun.passed
        guessed = self.offset < self.guessed_to
        self.forget()
        why = f"the stream ended ({reason}) inside the frame"
        if passed >= 8:
            self.decode(front, 0, size, len(front))
            frame = self.frames[-1]
            # All its octets are owed, but in the stream there are no more of it.
            frame.size = passed
            frame.uncaptured = begun.uncaptured
            frame.guessed = guessed
            self.offset -= size - passed
            why += f", after {passed} of {size} octets"
        elif passed > 0:
            frame = Frame(self.offset, passed, "skipped", "skipped", -1)
            self.give(frame, passed)
            why += "'s header"
        else:
            return
        frame.add_problem(Problem("incomplete", passed, "", why))

    def forget(self) -> None:
        """Forget the frame begun."""
        self.parts = []
        self.kept = 0
        self.begun = NOTHING_BEGUN

    # One frame

    def give(self, frame: Frame, size: i64) -> None:
        """Give out a frame, which takes so many octets of the stream."""
        self.frames.append(frame)
        self.offset += size

    def protocol_header(self, buf: bytes, at: i64) -> Frame:
        """The frame of a protocol header, to be given out."""
        frame = Frame(self.offset, 8, "header", "header", -1)
        frame.body = ProtocolHeader(buf[at + 4], buf[at + 5], buf[at + 6], buf[at + 7])
        frame.place(buf, at, at + 4, at + 8, at + 8)
        return frame

    # Dialects

    def take_for(self, dialect: str) -> None:
        """The direction is in this dialect, if the protocol has it; "" to find out. Before any octets."""

    def secured(self) -> None:
        """TLS, which somebody else has decrypted, stood between the octets before and the next ones."""

    def leans(self) -> bool:
        """Whether what there is speaks for another dialect than the usual one, and does not suffice."""
        return False

    def settle_dialect(self, unknown: bool) -> None:
        """Nobody waits any longer for frames that show the dialect. Frames are decoded as of the usual one.

        unknown: the connection speaks one that is not known.
        """

    def decode_again(self, frame: Frame) -> Frame:
        """A frame that was given out while the decoder was `suspect`, in the dialect that was found since."""
        return frame

    # While the chain is broken

    def lose(self, cause: str, reason: str) -> None:
        """The chain breaks here. What has come of a frame header goes with what will be skipped."""
        self.skipped = self.begun.passed
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
            # A frame header is wrong: is its size right?
            size = self.hint
            if end - start < size and not last:
                self.wanted = size
                self.hold(buf, start, end)
                return -1
            self.hint = 0
            if end - start >= size and self.boundary(buf, start + 1, start + size) < 0:
                if self.give_wrong(buf, start, size):
                    self.lost = False
                    self.doubtful = True
                    return start + size
        at = start
        while True:
            at = self.candidate(buf, at, end)
            if at >= end:
                break
            verdict = self.credible(buf, at, end, last)
            if verdict == CREDIBLE:
                self.skipped += at - start
                self.give_skipped()
                self.lost = False
                self.doubtful = False
                self.guessed_to = self.offset + self.guessed
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
            if self.credible(buf, at, end, False) == CREDIBLE:
                return at
            at = self.candidate(buf, at + 1, end)
        return -1

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
        frame.uncaptured = self.skipped_missing
        self.explain_skipped(frame)
        self.skipped = 0
        self.skipped_missing = 0
        self.give(frame, frame.size)

    def explain_skipped(self, frame: Frame) -> None:
        """Say of a skipped frame why it is one."""
        frame.add_problem(Problem(self.cause, 0, "", self.reason))

    # Between processes

    def dump(self) -> tuple[object, ...]:
        """The state between two calls, as plain values. `frames` are the caller's and not in it."""
        return (
            _DUMP_VERSION,
            (self.origin, self.offset),
            self.front(),
            self.begun.dump(),
            (self.doubtful, self.guessed_to),
            (self.lost, self.cause, self.reason, self.skipped, self.skipped_missing, self.wanted, self.hint),
            self.opaque,
            self.dump_protocol(),
        )

    def dump_protocol(self) -> tuple[object, ...]:
        """The part of the state that the protocol added."""
        raise NotImplementedError

    def restore(self, state: tuple[Any, ...]) -> tuple[Any, ...]:
        """Go on where `dump` left off. Gives the protocol's part; ValueError for another version's state."""
        if state[:1] != (_DUMP_VERSION,):
            raise ValueError(f"state of a decoder in version {state[:1]}, not {_DUMP_VERSION}")
        _, begins, front, begun, doubt, search, self.opaque, protocol = state
        self.origin, self.offset = begins
        self.parts = [front] if front else []
        self.kept = len(front)
        self.begun = BegunFrame.load(begun)
        self.doubtful, self.guessed_to = doubt
        self.lost, self.cause, self.reason, self.skipped, self.skipped_missing, self.wanted, self.hint = (
            search
        )
        own: tuple[Any, ...] = protocol
        return own

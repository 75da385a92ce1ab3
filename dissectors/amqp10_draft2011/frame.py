"""Frames of one direction of AMQP 1.0, in whichever dialect it is: the final one, or the draft of April 2011.

Framing is the same in both. While the dialect is not known (`undecided`), each frame body is evidence
(`dialect`), and is decoded as a final one. If the evidence does not suffice, the frame is suspect: whoever
took it has to have it decoded again when the dialect is known. Nearly always the first frame decides; then
nothing is looked at any more. Where nobody waits any longer (`settle_dialect`), frames stay decoded as final
ones, and each that comes while the evidence speaks for the draft is marked (`Frame.assumed`). So is each
frame of a connection whose dialect is not known.
"""

from typing import Any

from dissectors.amqp10.composite import TypeTable
from dissectors.amqp10.frame import FrameDecoder, credible_frame, wrong_header
from dissectors.amqp10.registry import FINAL
from dissectors.amqp10_draft2011.dialect import DialectEvidence
from dissectors.amqp10_draft2011.names import DRAFT_2011, FINAL_2011
from dissectors.amqp10_draft2011.registry import DRAFT
from dissectors.interface import Frame
from dissectors.limits import MAX_VALUES
from dissectors.stream_decoder import CREDIBLE, NOT_CREDIBLE
from dissectors.wire import i64

__all__ = ["DialectDecoder", "credible_draft"]


def credible_draft(buf: bytes, at: i64, end: i64, last: bool = False) -> i64:
    """As `credible_frame`, of a frame that can only be the draft's."""
    verdict = credible_frame(buf, at, end, last, DRAFT)
    if verdict == CREDIBLE and buf[at] != 0x41:
        evidence = DialectEvidence()
        evidence.weigh(buf, at + 8, end)
        if not evidence.says_draft():
            return NOT_CREDIBLE
    return verdict


class DialectDecoder(FrameDecoder):
    """Decodes one direction of an AMQP 1.0 connection into `frames`."""

    def __init__(self, midstream: bool) -> None:
        super().__init__(midstream)
        self.undecided = True
        # Nobody waits for what would decide the dialect, so frames are decoded as final ones.
        self.unawaited: bool = False
        # The connection speaks a dialect that is not known.
        self.unknown: bool = False
        self.evidence: DialectEvidence = DialectEvidence()

    def take_for(self, dialect: str) -> None:
        if dialect == DRAFT_2011:
            self.become(DRAFT_2011, DRAFT)
        elif dialect == FINAL_2011:
            self.become("", FINAL)

    def decide(self, buf: bytes, at: i64, end: i64) -> None:
        evidence = self.evidence
        evidence.weigh(buf, at, end)
        self.assumed = self.unknown or (self.unawaited and evidence.leans_to_draft())
        if evidence.says_final():
            self.become("", FINAL)
        elif self.unawaited:
            pass
        elif evidence.says_draft():
            self.become(DRAFT_2011, DRAFT)
        else:
            self.suspect = True

    def become(self, dialect: str, table: TypeTable) -> None:
        """The dialect is known."""
        self.undecided = False
        self.dialect = dialect
        if dialect:
            self.table = table
            self.reader = table.reader(MAX_VALUES)
        self.decode_all_again()

    def decode_all_again(self) -> None:
        """Decode the frames that wait here in the dialect that is known now."""
        if self.suspect:
            self.suspect = False
            self.frames = [self.decode_again(frame) for frame in self.frames]

    def leans(self) -> bool:
        return self.undecided and self.evidence.leans_to_draft()

    def settle_dialect(self, unknown: bool) -> None:
        if self.undecided:
            self.unknown = unknown
            self.assumed = unknown or self.leans()
            self.unawaited = True
            self.decode_all_again()

    def decode_again(self, frame: Frame) -> Frame:
        if frame.kind == "header" or frame.kind == "skipped":
            return frame
        if wrong_header(frame) or (frame.dialect == self.dialect and frame.body is not None):
            frame.assumed = self.assumed
            return frame
        raw = frame.raw
        taken, offset, framed, undecided = self.frames, self.offset, self.framed, self.undecided
        self.frames = []
        self.undecided = False  # The evidence of this frame is counted already.
        self.offset = frame.offset
        self.decode(raw, 0, frame.declared_size, len(raw))
        again = self.frames[0]
        self.frames = taken
        self.offset = offset
        self.framed = framed
        self.undecided = undecided
        again.size = frame.size
        again.uncaptured = frame.uncaptured
        again.guessed = frame.guessed
        again.assumed = self.assumed
        for problem in frame.problems:
            # What is missing of it was found out by whoever put it together.
            if problem.code in ("cut", "limit", "incomplete") and problem.path == "":
                again.add_problem(problem)
        return again

    def credible(self, buf: bytes, at: i64, end: i64, last: bool) -> i64:
        verdict = super().credible(buf, at, end, last)
        if verdict == NOT_CREDIBLE and self.undecided:
            return credible_draft(buf, at, end, last)
        return verdict

    # Between processes

    def dump_protocol(self) -> tuple[object, ...]:
        about = (self.dialect, self.undecided, self.suspect, self.unawaited, self.unknown, self.assumed)
        evidence = self.evidence
        signs = (int(evidence.final), int(evidence.draft), int(evidence.later))
        return (super().dump_protocol(), about, signs)

    @staticmethod
    def load(state: tuple[object, ...], table: TypeTable = FINAL) -> "DialectDecoder":
        """A decoder that goes on where `dump` left off. Raises ValueError on another version's state."""
        decoder = DialectDecoder(False)
        framing, about, signs = decoder.restore(state)
        decoder.restore_protocol(framing)
        decoder.restore_dialect(about, signs)
        return decoder

    def restore_dialect(self, about: tuple[Any, ...], signs: tuple[int, int, int]) -> None:
        """Go on with the dialect's part of the state."""
        dialect, undecided, suspect, self.unawaited, self.unknown, self.assumed = about
        if dialect:
            self.become(dialect, DRAFT)
        self.undecided = undecided
        self.suspect = suspect
        self.evidence.final, self.evidence.draft, self.evidence.later = signs

"""What is kept of a connection to be compared: who speaks, and what each peer says, strand by strand.

Theory of operation. Two runs of one scenario say the same things, but how the two peers' frames interleave,
and those of their sessions, links and channels, is a matter of time. So each of these is a `TranscriptPart`
of its own, with a `Strand` for each thing whose order one peer alone decides: what the client says on a link,
the deliveries on it, what the receiver says of the first, the second, the third delivery. A disposition of a
hundred deliveries, or an acknowledgement of all before, is so many sayings, each with its delivery.

A peer that ends something may not have read what the other one still says there, nor wait for the answer.
How much that is, and whether it is said before or after the end was, is timing: such sayings are late, and
need not be in both runs. That an answer is missing which is due, a finding tells.
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Sequence
from typing import Any

from amqpscope.diff.forms import CanonicalFrame, CanonicalFrameTable, FormEntry
from amqpscope.limits import (
    COMPARED_PART,
    COMPARED_STORY,
    MAX_COMPARED_PARTS,
    MAX_COMPARED_SAYINGS,
    MAX_GENERATED_NAMES,
)
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.model.volatile import normalize_address
from amqpscope.report.links import LinkNames

__all__ = [
    "CONFIRMS",
    "DELIVERIES",
    "GETS",
    "LABEL",
    "OTHER",
    "OUTCOMES",
    "RETURNS",
    "SETTLEMENTS",
    "KeptTranscript",
    "Names",
    "Room",
    "Strand",
    "Transcript",
    "TranscriptPart",
]

DELIVERIES = "deliveries"
"""The strand whose last sayings may be in flight when a part is ended: see `TranscriptPart.dropped_by`."""

OUTCOMES = "outcomes"
SETTLEMENTS = "settlements"
"""What the receiver, and what the sender, says of each of them."""

CONFIRMS = "confirms"
GETS = "outcomes of gets"
RETURNS = "returns"
"""What a broker says of each publish, what a client of each message that it got, and what comes back."""

LABEL = 48
"""Characters of a name that a part is shown by."""

OTHER = {CLIENT: SERVER, SERVER: CLIENT}
"""The other one of two peers."""

_NONE_LATE: frozenset[int] = frozenset()

_GENERATED = "(generated)"


class Strand:
    """Sayings in their order. forms: numbers of a `CanonicalFrameTable`. frames: of the connection, from 0.

    peer: whose sayings they are. answers: each is about a delivery; 0 where nothing was said of one.
    late: the places of those that were said when the other peer had ended what they are about.
    """

    __slots__ = ("answers", "forms", "frames", "late", "peer")

    def __init__(self, peer: str, answers: bool = False) -> None:
        self.peer = peer
        self.answers = answers
        self.forms = array("I")
        self.frames = array("I")
        self.late: set[int] | frozenset[int] = _NONE_LATE

    def __len__(self) -> int:
        return len(self.forms)

    def be_late(self, place: int) -> None:
        """What is said there is late."""
        if not isinstance(self.late, set):
            self.late = set()
        self.late.add(place)


class Room:
    """How many more sayings of a capture can be kept."""

    def __init__(self) -> None:
        self.left = MAX_COMPARED_SAYINGS


class Names:
    """Names of nodes, queues and the like in one capture, as they are compared."""

    def __init__(self) -> None:
        self._generated: set[str] = set()
        self._known: dict[str, str] = {}

    def generated(self, name: str) -> None:
        """A broker has made this name up."""
        if name and len(self._generated) < MAX_GENERATED_NAMES:
            self._generated.add(name)

    def of(self, name: str) -> str:
        """A name without what differs from run to run."""
        if name in self._generated:
            return _GENERATED
        known = self._known.get(name)
        if known is None:
            known = normalize_address(name)
            if len(self._known) >= MAX_GENERATED_NAMES:
                self._known.clear()
            self._known[name] = known
        return known


class TranscriptPart:
    """A connection, session, link, channel or consumer. keys: what it is known by, the surest first.

    what: its kind. label: how it is called, printable. first: its first frame. dropped_by: the
    peer that ended it with deliveries still to come to it, "" for none. broken_by: the one that first ended
    it with an error: how far the other had come by then is timing. settled: nothing is to be said of
    some of its deliveries.
    """

    __slots__ = (
        "broken_by",
        "dropped_by",
        "first",
        "keys",
        "label",
        "marks",
        "parts",
        "settled",
        "strands",
        "what",
    )

    def __init__(self, what: str, label: str, first: int) -> None:
        self.what = what
        self.label = label
        self.first = first
        self.keys: list[object] = []
        # What it uses, for `keys`.
        self.marks: set[str] = set()
        self.dropped_by = ""
        self.broken_by = ""
        self.settled = False
        self.strands: dict[str, Strand] = {}
        self.parts: list[TranscriptPart] = []


class Transcript(ABC):
    """A connection. who: what a peer says of itself, which is reported but no difference: (peer, field) ->
    text.

    frames: how many of it were read. cut_at: the packet from which on it is not compared, 0 for none; why
    stands in cut_for. midstream: its beginning was not captured. late: what is said now is. over: both
    peers have closed it, and what may still come tells nothing.
    """

    def __init__(self, connection: Connection, room: Room, table: CanonicalFrameTable) -> None:
        self.connection = connection
        self.part = TranscriptPart("connection", "", 0)
        self.who: dict[tuple[str, str], str] = {}
        self.frames = 0
        self.cut_at = 0
        self.cut_for = ""
        self.midstream = False
        self.late = False
        self.over = False
        self._room = room
        self._table = table
        self._spend(COMPARED_STORY)

    @abstractmethod
    def take(self, record: FrameRecord, links: LinkNames) -> None:
        """The next frame of the connection. links: to be asked for its link."""

    @abstractmethod
    def finish(self) -> None:
        """No more comes: what its parts are known by is known now."""

    def strand(self, part: TranscriptPart, name: str, peer: str, answers: bool = False) -> Strand:
        """A strand of a part, made when it is needed."""
        found = part.strands.get(name)
        if found is None:
            found = part.strands[name] = Strand(peer, answers)
        return found

    def say(self, part: TranscriptPart, name: str, peer: str, form: CanonicalFrame, frame: int = -1) -> int:
        """One more saying of a strand; its place in it. frame: this one if not given."""
        strand = self.strand(part, name, peer)
        self._spend()
        if self.late:
            strand.be_late(len(strand))
        strand.forms.append(self._table.number(form))
        strand.frames.append(self.frames if frame < 0 else frame)
        return len(strand) - 1

    def say_of(self, part: TranscriptPart, name: str, peer: str, place: int, form: CanonicalFrame) -> None:
        """Something is said of a delivery, the `place`th: it joins what was said of it before."""
        strand = self.strand(part, name, peer, True)
        missing = place + 1 - len(strand)
        if missing > 0:
            self._spend(missing)
            strand.forms.extend([0] * missing)
            strand.frames.extend([0] * missing)
        before = self._table.form(strand.forms[place])
        if strand.forms[place]:
            form = _joined(before, form)
            if form is before:
                return
        strand.forms[place] = self._table.number(form)
        strand.frames[place] = self.frames
        if self.late:
            strand.be_late(place)

    def amend(self, part: TranscriptPart, name: str, place: int, form: CanonicalFrame) -> None:
        """A saying turns out to be another one."""
        part.strands[name].forms[place] = self._table.number(form)

    def may_have(self, parts: list[TranscriptPart]) -> bool:
        """Whether one more part can be kept beside these."""
        if len(parts) < MAX_COMPARED_PARTS:
            self._spend(COMPARED_PART)
            return True
        self.cut("has more sessions, links, channels or consumers than diff can compare")
        return False

    def kept(self) -> tuple[Any, ...]:
        """What is compared, for `KeptTranscript`. No more comes."""
        return (self.part, self.who, self.frames, self.cut_at, self.cut_for, self.midstream)

    def cut(self, why: str, packet: int = -1) -> None:
        """It is not compared from here on. packet: the one at hand if not given."""
        if not self.cut_for:
            self.cut_at = packet
            self.cut_for = why

    def _spend(self, count: int = 1) -> None:
        self._room.left -= count
        if self._room.left < 0:
            self.cut("the capture has more traffic than diff can keep")


class KeptTranscript(Transcript):
    """A connection that another process has read. kept: by `Transcript.kept`. numbers: of the forms, by those
    that they had there.
    """

    def __init__(self, connection: Connection, kept: tuple[Any, ...], numbers: Sequence[int]) -> None:
        super().__init__(connection, Room(), CanonicalFrameTable())
        self.part, self.who, self.frames, self.cut_at, self.cut_for, self.midstream = kept
        parts = [self.part]
        for part in parts:
            for strand in part.strands.values():
                strand.forms = array("I", [numbers[form] for form in strand.forms])
            parts += part.parts

    def take(self, record: FrameRecord, links: LinkNames) -> None:
        """No more comes."""

    def finish(self) -> None:
        """No more comes."""


def _joined(before: CanonicalFrame, form: CanonicalFrame) -> CanonicalFrame:
    """What was said of one delivery one after the other."""
    last = before.name.rpartition(", then ")[2]
    if last == form.name and before.entries[-len(form.entries) :] == form.entries:
        return before
    if before.name.count(", then ") >= 4:
        return before
    step = before.name.count(", then ") + 2
    entries = tuple(FormEntry(f"{step}.{path}", text, key) for path, text, key in form.entries)
    return CanonicalFrame(f"{before.name}, then {form.name}", before.entries + entries)

"""Two captures against each other: which connections belong together, where they part, and what is found.

Only what the peers say counts as a difference: not when they say it, nor in which packets, nor who they say
they are. Which findings count, if only one run has them, the caller says.
"""

from array import array
from collections.abc import Hashable
from typing import NamedTuple

from amqpscope.diff.alignment import AlignedStep, aligned
from amqpscope.diff.forms import CanonicalFrame, CanonicalFrameTable, Change, changes
from amqpscope.diff.pairing import paired
from amqpscope.diff.run import ComparedRun, Found, FoundDiagnosis
from amqpscope.diff.side_by_side import Beside, compared_run
from amqpscope.diff.transcript import DELIVERIES, OUTCOMES, SETTLEMENTS, Strand, Transcript, TranscriptPart
from amqpscope.input.replay import ReplayableCapture
from amqpscope.limits import MAX_DIFFERENCES
from amqpscope.policy.policy import Policy

__all__ = ["ComparedDiagnosis", "ComparedFinding", "Comparison", "Difference", "Meeting", "compare"]

# What two peers agree on, or tell each other to agree on, at the beginning of something.
_NEGOTIATING = frozenset(
    {
        "header",
        "sasl-mechanisms",
        "sasl-init",
        "open",
        "begin",
        "attach",
        "connection.start",
        "connection.start-ok",
        "connection.tune",
        "connection.tune-ok",
        "connection.open",
    }
)


class Difference(NamedTuple):
    """Something that is said in one run and not in the other, or otherwise.

    where: the parts that it belongs to, from the connection down. strand: of the last of them. place: of it
    in the strand, from 1 on. a, b: what is said, None for nothing; frame_a, frame_b: the frame of the
    connection, from 0 on; for nothing the last one before it of this strand, or of the connection. part: a
    whole part is missing. negotiated: both say it, with other values.
    """

    where: tuple[TranscriptPart, ...]
    strand: str
    peer: str
    place: int
    a: CanonicalFrame | None
    b: CanonicalFrame | None
    frame_a: int
    frame_b: int
    changes: list[Change]
    part: bool
    negotiated: bool

    @property
    def when(self) -> int:
        """About how many frames of the connection stand before it."""
        return min(
            frame for form, frame in ((self.a, self.frame_a), (self.b, self.frame_b)) if form is not None
        )


class Meeting:
    """A connection of each run, which belong together; one is None if there is none.

    differences: in the order of their frames, as many as are kept; count: of all, exact: or at least so many.
    """

    def __init__(self, a: Transcript | None, b: Transcript | None) -> None:
        self.a = a
        self.b = b
        self.differences: list[Difference] = []
        self.count = 0
        self.exact = True

    @property
    def any(self) -> Transcript:
        """The one of the first run, if there is one."""
        transcript = self.a or self.b
        assert transcript is not None
        return transcript

    @property
    def same(self) -> bool:
        """Whether both are there and say the same."""
        return self.a is not None and self.b is not None and not self.count

    @property
    def negotiated(self) -> list[Difference]:
        """What is negotiated otherwise."""
        return [one for one in self.differences if one.negotiated]

    @property
    def first(self) -> Difference | None:
        """The first difference that is none of what is negotiated."""
        return next((one for one in self.differences if not one.negotiated), None)

    def who(self) -> list[tuple[str, str, str | None, str | None]]:
        """Peer, field and both texts of what peers say of themselves otherwise."""
        if self.a is None or self.b is None:
            return []
        fields = sorted({*self.a.who, *self.b.who})
        values = [(*field, self.a.who.get(field), self.b.who.get(field)) for field in fields]
        return [one for one in values if one[2] != one[3]]


class ComparedFinding(NamedTuple):
    """A fingerprint, and what is found of it in either run; counts: whether it makes a difference."""

    fingerprint: str
    a: Found | None
    b: Found | None
    counts: bool


class ComparedDiagnosis(NamedTuple):
    """A diagnosis of each run, with the same key; None for the run that has none. It makes no difference."""

    a: FoundDiagnosis | None
    b: FoundDiagnosis | None


class Comparison:
    """Both runs, their connections, their findings by fingerprint, and their diagnoses by key."""

    def __init__(self, a: ComparedRun, b: ComparedRun, table: CanonicalFrameTable) -> None:
        self.a = a
        self.b = b
        self.table = table
        self.meetings = _meetings(a.stories, b.stories, table)
        self.findings = _findings(a, b)
        keys = dict.fromkeys((*a.diagnoses, *b.diagnoses))
        self.diagnoses = [ComparedDiagnosis(a.diagnoses.get(key), b.diagnoses.get(key)) for key in keys]

    @property
    def same(self) -> bool:
        """Whether there is no difference that counts."""
        return all(one.same for one in self.meetings) and not any(one.counts for one in self.findings)


def compare(a: ReplayableCapture, b: ReplayableCapture, policy: Policy, jobs: int = 1) -> Comparison:
    """Read two captures and compare them. policy: what of their findings is shown, and what counts. jobs: how
    many processes may read; the result is the same.

    Raises CaptureError.
    """
    table = CanonicalFrameTable()
    with Beside(b, policy, jobs) as beside:
        first = compared_run(a, table, policy)
        return Comparison(first, beside.take(table), table)


def _meetings(a: list[Transcript], b: list[Transcript], table: CanonicalFrameTable) -> list[Meeting]:
    found = paired(a, b, _keys)
    meetings = []
    for one, other in found.both:
        meeting = Meeting(a[one], b[other])
        _Differ(meeting, a[one], b[other], table).run()
        meetings.append(meeting)
    meetings += [Meeting(a[index], None) for index in found.only_a]
    meetings += [Meeting(None, b[index]) for index in found.only_b]
    return sorted(meetings, key=lambda one: int(one.any.connection.began) if one.a else 1 << 63)


def _keys(transcript: Transcript) -> list[Hashable]:
    protocol = transcript.connection.protocol
    marks = frozenset(transcript.part.marks)
    client = tuple(transcript.who.get(("client", field), "") for field in ("product", "container"))
    return [(protocol, marks, client), (protocol, marks), (protocol, client), protocol]


def _findings(a: ComparedRun, b: ComparedRun) -> list[ComparedFinding]:
    judged = []
    for mark in dict.fromkeys((*a.findings, *b.findings)):
        one, other = a.findings.get(mark), b.findings.get(mark)
        counts = False
        if one is None or other is None:
            only = one or other
            assert only is not None
            counts = only.counts
        judged.append(ComparedFinding(mark, one, other, counts))
    return judged


class _Differ:
    """Finds the differences of two connections."""

    def __init__(self, meeting: Meeting, a: Transcript, b: Transcript, table: CanonicalFrameTable) -> None:
        self._meeting = meeting
        self._a = a
        self._b = b
        self._table = table

    def run(self) -> None:
        """Put them into the meeting."""
        self._parts((self._a.part,), self._a.part, self._b.part, "")
        found = self._meeting.differences
        found.sort(key=lambda one: one.when)
        del found[MAX_DIFFERENCES:]

    def _add(self, difference: Difference) -> None:
        self._meeting.count += 1
        found = self._meeting.differences
        found.append(difference)
        if len(found) > 2 * MAX_DIFFERENCES:
            found.sort(key=lambda one: one.when)
            del found[MAX_DIFFERENCES:]

    def _parts(
        self, where: tuple[TranscriptPart, ...], a: TranscriptPart, b: TranscriptPart, broken_by: str
    ) -> None:
        """Two parts. broken_by: who ended, with an error, what they belong to."""
        if a.broken_by == b.broken_by:
            broken_by = broken_by or a.broken_by
        for name in dict.fromkeys((*a.strands, *b.strands)):
            one, other = a.strands.get(name), b.strands.get(name)
            known = one or other
            assert known is not None
            self._strands(
                where,
                name,
                one or Strand(known.peer, known.answers),
                other or Strand(known.peer),
                (a, b),
                broken_by,
            )
        found = paired(a.parts, b.parts, _part_keys)
        for index, index_b in found.both:
            self._parts((*where, a.parts[index]), a.parts[index], b.parts[index_b], broken_by)
        if not self._b.cut_for:
            for index in found.only_a:
                self._missing((*where, a.parts[index]), True, b.first, broken_by)
        if not self._a.cut_for:
            for index in found.only_b:
                self._missing((*where, b.parts[index]), False, a.first, broken_by)

    def _missing(self, where: tuple[TranscriptPart, ...], in_a: bool, other: int, broken_by: str) -> None:
        """A part has no partner: what is first said in it stands for all."""
        part = where[-1]
        strands = [strand for strand in part.strands.values() if len(strand)]
        if not strands or all(0 in strand.late for strand in strands):
            return
        first = min(strands, key=lambda strand: strand.frames[0])
        if broken_by and first.peer != broken_by:
            return
        form, frame = self._table.form(first.forms[0]), int(first.frames[0])
        a, b = (form, None) if in_a else (None, form)
        frames = (frame, other) if in_a else (other, frame)
        self._add(Difference(where, first.peer, first.peer, 1, a, b, *frames, [], True, False))

    def _strands(
        self,
        where: tuple[TranscriptPart, ...],
        name: str,
        a: Strand,
        b: Strand,
        parts: tuple[TranscriptPart, TranscriptPart],
        broken_by: str,
    ) -> None:
        forms_a, forms_b = a.forms, b.forms
        if name == SETTLEMENTS:
            forms_a, forms_b = (
                _without_echoes(forms_a, parts[0], self._table),
                _without_echoes(forms_b, parts[1], self._table),
            )
        if a.answers or b.answers:
            forms_a, forms_b = _without_silence(forms_a), _without_silence(forms_b)
        if self._a.cut_for:
            forms_b = forms_b[: len(forms_a)]
        if self._b.cut_for:
            forms_a = forms_a[: len(forms_b)]
        if broken_by and broken_by != a.peer:
            sure = min(_sure(a, len(forms_a)), _sure(b, len(forms_b)))
            forms_a, forms_b = forms_a[:sure], forms_b[:sure]
        if name == DELIVERIES:
            forms_a = _without_flight(forms_a, len(forms_b), parts[0])
            forms_b = _without_flight(forms_b, len(forms_a), parts[1])
        steps, exact = aligned(forms_a, forms_b, self._table)
        self._meeting.exact = self._meeting.exact and exact
        for step in steps:
            self._step(where, name, a, b, step, parts)

    def _step(
        self,
        where: tuple[TranscriptPart, ...],
        name: str,
        a: Strand,
        b: Strand,
        step: AlignedStep,
        parts: tuple[TranscriptPart, TranscriptPart],
    ) -> None:
        form_a = self._said(a, step.a)
        form_b = self._said(b, step.b)
        if form_a is None and form_b is None:
            return
        both = form_a is not None and form_b is not None and form_a.name == form_b.name
        different = changes(form_a, form_b) if both and form_a and form_b else []
        frame_a = a.frames[step.a] if form_a else _before(a, step.before_a, parts[0])
        frame_b = b.frames[step.b] if form_b else _before(b, step.before_b, parts[1])
        place = (step.a if form_a else step.b) + 1
        negotiated = both and form_a is not None and form_a.name in _NEGOTIATING
        self._add(
            Difference(
                where,
                name,
                a.peer,
                place,
                form_a,
                form_b,
                int(frame_a),
                int(frame_b),
                different,
                False,
                negotiated,
            )
        )

    def _said(self, strand: Strand, at: int) -> CanonicalFrame | None:
        if at < 0 or at in strand.late or not strand.forms[at]:
            return None
        return self._table.form(strand.forms[at])


def _part_keys(part: TranscriptPart) -> list[Hashable]:
    """What a part is known by; sessions, channels and consumers last by their order."""
    keys: list[Hashable] = [(part.what, *_hashable(key)) for key in part.keys]
    if part.what == "link":
        return keys
    return [*keys, part.what]


def _hashable(key: object) -> tuple[Hashable, ...]:
    return (key,) if isinstance(key, Hashable) else (repr(key),)


def _sure(strand: Strand, count: int) -> int:
    """How many of the first sayings are not late."""
    return min(count, min(strand.late, default=count))


def _before(strand: Strand, count: int, part: TranscriptPart) -> int:
    """The frame after which something is not said."""
    while count > 0:
        if strand.forms[count - 1]:
            return strand.frames[count - 1]
        count -= 1
    return part.first


def _without_silence(forms: "array[int]") -> "array[int]":
    """What is said of deliveries, without the last ones of which nothing is said."""
    end = len(forms)
    while end and not forms[end - 1]:
        end -= 1
    return forms[:end]


def _without_echoes(forms: "array[int]", part: TranscriptPart, table: CanonicalFrameTable) -> "array[int]":
    """What the sender says of deliveries that the receiver does not settle: else who is first is timing."""
    outcomes = part.strands.get(OUTCOMES)
    if outcomes is None:
        return forms
    kept = array("I", forms)
    for place, number in enumerate(outcomes.forms[: len(kept)]):
        if number and table.form(number).name.endswith(" settled"):
            kept[place] = 0
    return kept


def _without_flight(forms: "array[int]", others: int, part: TranscriptPart) -> "array[int]":
    """Deliveries, without those that the receiver may never have looked at when it ended the link.

    The sender was fast: of more than the other run has, those of which nobody said anything.
    """
    if not part.dropped_by or part.settled or len(forms) <= others:
        return forms
    answered = 0
    for name in (OUTCOMES, SETTLEMENTS):
        strand = part.strands.get(name)
        if strand is not None:
            answered = max(answered, len(_without_silence(strand.forms)))
    return forms[: max(others, answered)]

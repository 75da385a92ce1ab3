"""A part of a capture as a capture of its own, with the findings of `check` as comments.

Theory of operation. The capture is read twice. A `CutSurvey` finds the connection of each packet, and the
findings; then the packets that a `Choice` keeps are written. The result is checked as any capture is. Its
comments are its own findings, so that each comment is true of the file that has it. If the result shows other
certain findings of a connection than the whole capture, the whole connection is written.
"""

import os
from collections import Counter
from typing import NamedTuple

from amqpscope.cutting.anonymising import Anonymised, anonymise
from amqpscope.cutting.choice import Choice
from amqpscope.cutting.survey import CutSurvey, KnownFinding, comment_of, stream_of
from amqpscope.cutting.writing import copy_packets, recorder_at
from amqpscope.errors import CaptureError
from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.input.selection import FrameSelection
from amqpscope.layers.secrets import Secrets
from amqpscope.limits import MAX_ANNOTATED
from amqpscope.model.note import Note
from dissectors.wording import count

__all__ = ["CutResult", "CutSource", "Disguise", "Wish", "cut"]


class CutSource(NamedTuple):
    """A capture file that can be read several times. name: what messages call it. dialect, secrets: as of
    `CaptureOptions`."""

    path: str
    name: str
    dialect: str = ""
    secrets: Secrets | None = None

    def open(self, path: str = "", name: str = "") -> Capture:
        """The capture, judged; path: another file of the same conversation, which is called `name`."""
        options = CaptureOptions(
            keep=False, ended=True, judge=True, dialect=self.dialect, secrets=self.secrets
        )
        return Capture(path or self.path, options, name=name or self.name)


class Wish(NamedTuple):
    """What is to stay.

    everything: all packets. whole: the connections that the selection takes, whole. findings: what is near
    findings. around: what is near this packet, 0 for none. near: how many packets of the same connection on
    either side that is.
    """

    selection: FrameSelection
    everything: bool
    whole: bool
    findings: bool
    around: int
    near: int


class Disguise(NamedTuple):
    """That the cut is anonymised. key: of the stand-ins. ports: replace the ports, too."""

    key: bytes
    ports: bool


class CutResult(NamedTuple):
    """What became of a cut. original, packets: how many packets the capture and the cut have. connections:
    how many stay, in whole or in part; partial: of how many only a part stays; widened: those that stay whole
    because a part of them does not show the same findings. findings: of the cut, which are its comments.
    missing: findings of the original whose packet stays, and that the cut does not show. new: findings that
    only the cut shows, none of them certain. unsaid: findings that were too many. notes: of the capture.
    anonymised: what was replaced, None if nothing was.
    """

    original: int
    packets: int
    connections: int
    partial: int
    widened: list[int]
    findings: list[KnownFinding]
    missing: list[KnownFinding]
    new: list[KnownFinding]
    unsaid: int
    notes: list[Note]
    anonymised: Anonymised | None


def cut(source: CutSource, wish: Wish, out: str, folder: str, disguise: Disguise | None = None) -> CutResult:
    """Write what is wished of a capture to a pcapng file at `out`. Raises CaptureError.

    folder: for files that are needed meanwhile, which stay there.
    """
    with source.open() as capture:
        survey = CutSurvey(capture, wish.selection)
        survey.read()
        notes = capture.notes
    choice = _chosen(survey, wish)
    if not choice.packets:
        raise CaptureError(f"{source.name}: {wish.selection.missing() or 'no packet matches the options'}")
    widened: list[int] = []
    plain = os.path.join(folder, "cut.pcapng")
    while True:
        copy_packets(source.path, recorder_at(plain), {}, choice.kept)
        numbers = choice.numbers()
        found = _findings_of(source, plain, survey, numbers)
        missing, new = _compared(choice.expected(), found, numbers)
        different = {one.stream for one in (*missing, *new) if one.certain} & choice.partial
        if not different:
            break
        widened += sorted(stream_of(number) for number in different)
        choice.keep_connections(different)
    anonymised = None
    if disguise is not None:
        masked = os.path.join(folder, "masked.pcapng")
        expected = [one._replace(packet=numbers[one.packet]) for one in found]
        loose: set[int] = set()
        without: set[int] = set()
        while True:
            anonymised = anonymise(
                source.open(plain), plain, masked, disguise.key, disguise.ports, loose, without
            )
            theirs = [numbers[packet] for packet in anonymised.numbers]
            found = _findings_of(source, masked, survey, theirs)
            missing, new = _compared(expected, found, theirs)
            wrong = {anonymised.streams[one.packet] for one in new if one.certain}
            if wrong <= without:
                break
            without |= wrong & loose
            loose |= wrong
        if len(theirs) == 1:
            raise CaptureError(f"{source.name}: no connection can be anonymised: {_reasons(anonymised)}")
        plain, numbers = masked, theirs
    comments: dict[int, list[str]] = {}
    for one in found:
        text = f"{one.comment} (packet {numbers[one.packet]} of the original)"
        comments.setdefault(one.packet, []).append(text)
    copy_packets(plain, recorder_at(out, _remark(survey, choice, disguise is not None)), comments)
    connections = len(choice.whole | choice.partial)
    return CutResult(
        survey.packets,
        len(numbers) - 1,
        connections,
        len(choice.partial),
        widened,
        found,
        missing,
        new,
        survey.left_out,
        notes,
        anonymised,
    )


def _chosen(survey: CutSurvey, wish: Wish) -> Choice:
    """The packets that are wished for."""
    choice = Choice(survey)
    if wish.everything:
        choice.keep_all()
    elif wish.whole:
        choice.keep_connections(survey.wanted)
    else:
        if wish.findings:
            choice.keep_parts(choice.around([one.packet for one in survey.findings if one.wanted], wish.near))
        if wish.around:
            choice.keep_parts(choice.around([wish.around], wish.near))
        if not wish.findings and not wish.around:
            choice.keep_parts(choice.span())
    return choice


def _findings_of(source: CutSource, path: str, survey: CutSurvey, numbers: list[int]) -> list[KnownFinding]:
    """What is found in the cut at `path`, with its own packets and the connections of the original."""
    found: list[KnownFinding] = []
    with source.open(path) as capture:
        for _ in capture.blocks():
            for finding in capture.take_findings():
                if len(found) < MAX_ANNOTATED:
                    packet = int(finding.packet)
                    stream = survey.streams[numbers[packet]]
                    certain, comment = finding.certain, comment_of(finding)
                    found.append(
                        KnownFinding(packet, stream, finding.rule, finding.peer, certain, True, comment)
                    )
    return found


def _compared(
    expected: list[KnownFinding], found: list[KnownFinding], numbers: list[int]
) -> tuple[list[KnownFinding], list[KnownFinding]]:
    """Of two lists of findings those that only the first one has, and those that only the second one has."""
    before = [(one.rule, one.peer, one.certain, one.packet) for one in expected]
    after = [(one.rule, one.peer, one.certain, numbers[one.packet]) for one in found]
    return _without(expected, before, Counter(after)), _without(found, after, Counter(before))


def _without(
    findings: list[KnownFinding],
    keys: list[tuple[str, str, bool, int]],
    others: Counter[tuple[str, str, bool, int]],
) -> list[KnownFinding]:
    """The findings whose key is not among the others."""
    left: list[KnownFinding] = []
    for finding, key in zip(findings, keys, strict=True):
        if others[key] > 0:
            others[key] -= 1
        else:
            left.append(finding)
    return left


def _reasons(anonymised: Anonymised) -> str:
    """Why connections were left out."""
    return ", ".join(sorted(anonymised.left_out)) or "there is none"


def _remark(survey: CutSurvey, choice: Choice, anonymised: bool) -> str:
    """What the file says of itself."""
    parts = f", a part of {count(len(choice.partial), 'connection')}" if choice.partial else ""
    stayed = f"{count(choice.packets, 'packet')} of {survey.packets}{parts}"
    masked = ", anonymised" if anonymised else ""
    return f"cut from a capture{masked}: {stayed}; comments of packets are findings"

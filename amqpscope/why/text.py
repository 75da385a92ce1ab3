"""An answer for people: what the packet is, the state before it, then each of its frames with its grounds.

    packet 17: 10.0.0.1:51034 → 10.0.0.2:5672, sent by the client on connection 0, 3029 octets

    before
      client OPENED; max-frame-size 65536
      ...
       17  0.000000 0 C→  0 transfer    #5 handle=0 ...
      !! error amqp10/L-CREDIT: ...
      knew
        ...
      grants       grants credit: 5 from delivery-count 0 on (read)
          15  0.000000 0 ←S  0 flow        ...

Each line of a frame is that of `amqpscope read`. Nothing of the wire gets in here but by that and by
`printable`.
"""

from amqpscope.model.finding import Finding, named_peers
from amqpscope.model.records import CLIENT, SERVER
from amqpscope.protocols import in_its_terms
from amqpscope.report.diagnosis_text import diagnosis_line, worst_first
from amqpscope.report.findings import evidence_of
from amqpscope.report.line import Line
from amqpscope.report.printable import cut, printable
from amqpscope.report.verdict import answer as reaction
from amqpscope.report.verdict import headline, why_possible
from amqpscope.rules.catalogue import rule
from amqpscope.rules.explanation import how_to_mend
from amqpscope.rules.references import cited
from amqpscope.why.excerpts import ExplainedFrames
from amqpscope.why.frame_ref import (
    BELONGS,
    FORBIDS,
    GRANTS,
    LACKS,
    LIMITS,
    NAMED,
    SETS_UP,
    FrameQuestion,
    Ground,
    Knew,
    Position,
)
from amqpscope.why.inquiry import Answer
from amqpscope.why.state import Concern, state_lines
from dissectors.wording import count

__all__ = ["answer_lines", "concern_of"]

_STYLES = {
    LACKS: "problem",
    GRANTS: "transfer",
    LIMITS: "flow",
    FORBIDS: "problem",
    SETS_UP: "dim",
    BELONGS: "dim",
    NAMED: "note",
}

_WEIGHTS = (FORBIDS, LACKS, GRANTS, LACKS, LIMITS, NAMED, SETS_UP, BELONGS)

_MINOR = (SETS_UP, BELONGS)
"""What takes one line: where it stands, without what it says."""

_BELOW: Line = [("", "    ")]
"""Before the line of a frame that says more about the line above."""

_EFFECT = 12
_INDENT = 2
_LABEL = 10
_LONGEST = 300

_EXPLAINED = 3
"""Frames of a packet that are explained if nobody says which; first those that something is found at."""


def concern_of(answer: Answer) -> Concern:
    """What of the connection's state has to do with the packet's frames."""
    channels = {question.mark.channel for question in answer.questions if question.mark.channel >= 0}
    subjects = {question.subject for question in answer.questions}
    return Concern(channels or None, answer.peer == CLIENT, subjects)


def answer_lines(answer: Answer, excerpts: ExplainedFrames, only: int) -> list[tuple[Line, int]]:
    """All of an answer: lines, each with the columns before its continuation, -1 for one that may be cut.

    only: the frame to explain, counted from 1; 0: the first few.
    """
    shown = [(_head(answer, excerpts), 4)]
    if answer.connection is None:
        shown.append(([("note", "amqpscope could read no AMQP on the connection of this packet.")], 2))
        return shown
    if answer.before is not None:
        shown += [([], -1), ([("rule", "the two peers before this packet")], 2)]
        name = answer.connection.protocol
        for line in state_lines(answer.before, concern_of(answer)):
            spoken = [(style, in_its_terms(name, text)) for style, text in line]
            shown.append(([("", " " * _INDENT), *spoken], 6))
    chosen = _explained(answer, only)
    if len(answer.questions) + answer.more > 1:
        many = count(len(answer.questions) + answer.more, "frame")
        shown += [([], -1), ([("rule", f"{many} in the packet")], 2)]
        for index, question in enumerate(answer.questions):
            marks = "".join(sorted({"!!" if one.certain else "? " for one in question.findings}))[:2]
            shown.append(excerpts.line(question.mark.place, [("problem", f"{marks:<3}")]))
            if index + 1 >= _LISTED and len(answer.questions) > _LISTED:
                left = len(answer.questions) - _LISTED + answer.more
                shown.append(([("dim", f"   and {left} more (--format json has them)")], 2))
                break
        if not only and len(chosen) < len(answer.questions):
            text = f"{len(chosen)} of them explained; --frame N explains frame number N"
            shown.append(([("dim", f"   {text}")], 3))
    for index in chosen:
        shown += [([], -1), *_question(answer.questions[index], answer, excerpts)]
    if answer.ended is not None:
        shown += [([], -1), *_question(answer.ended, answer, excerpts)]
    elif not answer.questions:
        shown += _between(answer, excerpts)
    if answer.findings:
        shown += [([], -1), ([("rule", "findings in this packet")], 2)]
        reported: set[int] = set()
        for finding in answer.findings:
            shown += _finding(finding) + _named_by(finding, reported, excerpts)
    if answer.named_by:
        shown += [([], -1), ([("rule", "findings in other packets that name this packet")], 2)]
        for finding in answer.named_by[:_LISTED]:
            shown.append(([("", " " * _INDENT), *headline(finding)], 6))
    if answer.diagnoses:
        shown += [([], -1), ([("rule", "diagnoses that apply at this packet, or mention this packet")], 2)]
        for diagnosis in worst_first(answer.diagnoses)[:_LISTED]:
            shown.append(([("", " " * _INDENT), *diagnosis_line(diagnosis)], 6))
    return shown


_LISTED = 20


def _head(answer: Answer, excerpts: ExplainedFrames) -> Line:
    segment = answer.segment
    what = [count(segment.octets, "octet")] if segment.octets else ["no payload"]
    what += [flag for flag in segment.flags if flag != "ACK" or not segment.octets]
    by = ""
    if answer.connection is not None:
        by = f", by the {answer.peer} on connection {answer.connection.stream}"
    where = f"{segment.sender} → {segment.receiver}"
    time = excerpts.clock.show(segment.time)
    origin = f" (packet {segment.number} of {printable(segment.file)})" if segment.file else ""
    return [
        ("rule", f"packet {segment.packet}"),
        ("", f" of {printable(answer.name)}{origin}, {time} s: {where}{by}, {', '.join(what)}"),
    ]


def _explained(answer: Answer, only: int) -> list[int]:
    """Which of the packet's frames are explained: of those with the same to say the first."""
    if only:
        return [only - 1]
    found = any(question.findings for question in answer.questions)
    kinds: dict[tuple[str, ...], int] = {}
    for index, question in enumerate(answer.questions):
        rules = tuple(sorted({one.rule for one in question.findings}))
        if rules or not found:
            kinds.setdefault(rules or (question.mark.name,), index)
    return sorted(kinds.values())[:_EXPLAINED]


def _question(question: FrameQuestion, answer: Answer, excerpts: ExplainedFrames) -> list[tuple[Line, int]]:
    mark: Line = [("problem", "» ")]
    shown = [excerpts.line(question.mark.place, mark)]
    if question is answer.ended:
        flags = " and ".join(answer.segment.flags)
        shown = [([*mark, ("end", f"the {answer.peer}'s stream ends ({flags})")], 2)]
    if question.mark.packet != question.last_packet:
        text = f"the frame extends over packets {question.mark.packet} to {question.last_packet}"
        shown.append(([("dim", f"  {text}")], 2))
    for finding in question.findings:
        shown += _finding(finding)
    shown += _knew(question)
    shown.append(([("rule", "  earlier frames that matter")], 4))
    if not question.grounds:
        shown.append(([("dim", "    no earlier frame matters to this frame")], 4))
    reported = {ground.mark.packet for ground in question.grounds if ground.mark is not None}
    for ground in weighed(question):
        shown += _ground(ground, question, excerpts)
    for finding in question.findings:
        shown += _named_by(finding, reported, excerpts)
    if question is answer.ended:
        return shown
    shown.append(([("rule", "  later frames that matter")], 4))
    if not question.sequels:
        shown.append(([("dim", "    no later frame answers this frame")], 4))
    for sequel in question.sequels:
        shown.append(([("", f"    {named_peers(sequel.what, question.knew.peer)}")], 6))
        shown.append(excerpts.line(sequel.mark.place, _BELOW))
    return shown


def weighed(question: FrameQuestion) -> list[Ground]:
    """The grounds of a frame, what says most first: what its findings name, then by their effect."""
    return sorted(
        question.grounds,
        key=lambda one: (not is_decisive(one, question), _WEIGHTS.index(one.effect)),
    )


def is_decisive(ground: Ground, question: FrameQuestion) -> bool:
    """Whether findings rest on an earlier frame: they name the frame, or a field that it sets."""
    for finding in question.findings:
        if ground.mark is not None and ground.mark.packet in finding.others:
            return True
        if any(name.replace("_", "-") in ground.fields for name in finding.evidence):
            return True
    return False


def _finding(finding: Finding) -> list[tuple[Line, int]]:
    row = rule(finding.rule, finding.assessment.edition)
    shown = [([("problem", "  !! "), *headline(finding)], 5)]
    if not finding.certain:
        shown.append(_labelled("possible", why_possible(finding)))
    shown.append(_labelled("rule", f"{printable(row.text)} ({row.requirement})"))
    shown.append(_labelled("source", cited(row.source)))
    before = ", ".join(
        f"{printable(name.replace('_', '-'))} {_value(value)}"
        for name, value in evidence_of(finding).items()
        if name not in ("offset", "path")
    )
    if before:
        shown.append(_labelled("before", before))
    shown.append(_labelled("answer", reaction(finding)))
    mend = how_to_mend(finding.rule)
    if mend:
        shown.append(_labelled("to mend", printable(mend)))
    return shown


def _value(value: object) -> str:
    if isinstance(value, list):
        return cut(printable(", ".join(str(item) for item in value)[:_LONGEST]), _LONGEST) or "none"
    return cut(printable(str(value)[:_LONGEST]), _LONGEST)


def _named_by(finding: Finding, reported: set[int], excerpts: ExplainedFrames) -> list[tuple[Line, int]]:
    """The packets that a finding names, but for those that are reported already."""
    shown: list[tuple[Line, int]] = []
    for packet in finding.others:
        if packet not in reported and packet in excerpts.packets:
            reported.add(packet)
            shown.append(([("note", f"  {NAMED:<{_EFFECT}}"), ("", printable(finding.rule))], 2 + _EFFECT))
            shown += [excerpts.line(place, _BELOW) for place in excerpts.packets[packet]]
    return shown


def _labelled(label: str, text: str) -> tuple[Line, int]:
    return ([("key", f"     {label:<{_LABEL}}"), ("", text)], 5 + _LABEL)


def _ground(ground: Ground, question: FrameQuestion, excerpts: ExplainedFrames) -> list[tuple[Line, int]]:
    what = named_peers(ground.what, question.knew.peer)
    if ground.mark is None:
        return [([(_STYLES[ground.effect], f"  {ground.effect:<{_EFFECT}}"), ("", what)], 2 + _EFFECT)]
    known = knowledge_of(ground.mark, question)
    where = ""
    if ground.effect in _MINOR and not is_decisive(ground, question):
        where = f"packet {ground.mark.packet}, {printable(ground.mark.name)}: "
    line: Line = [
        (_STYLES[ground.effect], f"  {ground.effect:<{_EFFECT}}"),
        ("", f"{where}{what}"),
        ("dim", f" ({known})" if known else ""),
    ]
    if where:
        return [(line, 2 + _EFFECT)]
    return [(line, 2 + _EFFECT), excerpts.line(ground.mark.place, _BELOW)]


def knowledge_of(mark: Position, question: FrameQuestion) -> str:
    """Whether the sender of the frame in question had read an earlier one; "" if that is its own."""
    if mark.direction == question.mark.direction:
        return ""
    knew = question.knew
    if knew.read is not None and mark.end <= knew.read.end and mark.end not in knew.unsure_ends:
        return "read"
    if knew.arrived is not None and mark.end <= knew.arrived.end:
        return "arrived, perhaps not read"
    return "had not arrived"


def _knew(question: FrameQuestion) -> list[tuple[Line, int]]:
    shown: list[tuple[Line, int]] = [([("rule", "  what the peers had read")], 4)]
    for knew in (question.knew, question.other_knew):
        shown.append(([(knew.peer, f"    {knew.peer:<7}"), ("", knowledge(knew))], 11))
    return shown


def knowledge(knew: Knew) -> str:
    """What one peer knew of the other's frames, in a sentence."""
    other = SERVER if knew.peer == CLIENT else CLIENT
    if knew.arrived is None and knew.coming is None:
        return f"the capture shows no earlier frame of the {other}"
    parts = []
    if knew.read is not None:
        everything = all(end > knew.read.end for end in knew.unsure_ends)
        parts.append(f"must have read {'everything up to ' if everything else ''}{_named(knew.read)}")
    if knew.unsure_count:
        names = ", ".join(_named(mark) for mark in knew.unsure)
        more = knew.unsure_count - len(knew.unsure)
        names = f"{names}, and {count(more, 'earlier frame')}" if more else names
        parts.append(f"may have read {names}")
    elif knew.arrived is None:
        parts.append("cannot have read any frame")
    if knew.coming_count:
        last = "" if knew.coming is None else _named(knew.coming)
        parts.append(
            f"cannot have read {last}"
            + (f" and {count(knew.coming_count - 1, 'earlier frame')}" if knew.coming_count > 1 else "")
        )
    return "; ".join(parts)


def _named(mark: Position) -> str:
    return f"{printable(mark.name)} in packet {mark.packet}"


def _between(answer: Answer, excerpts: ExplainedFrames) -> list[tuple[Line, int]]:
    """A packet in which no frame is."""
    text = "This packet contains no octets of a frame."
    if not answer.segment.octets:
        flags = [flag for flag in answer.segment.flags if flag != "ACK"]
        text = "This packet carries no octets of a stream"
        text += f", only {' and '.join(flags)}." if flags else ", only an acknowledgement."
    shown: list[tuple[Line, int]] = [([], -1), ([("", text)], 2)]
    for label, mark in (("the frame before", answer.earlier), ("the frame after", answer.later)):
        if mark is not None:
            shown.append(([("rule", f"  {label}")], 4))
            shown.append(excerpts.line(mark.place, _BELOW))
    return shown

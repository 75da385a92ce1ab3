"""A comparison for people: per connection what is negotiated otherwise, then where the two runs first part.

    A before.pcap   B after.pcap

    connection 0: 127.0.0.1:51034 → 127.0.0.1:5672 in A | 127.0.0.1:40112 → 127.0.0.1:5672 in B
      negotiated  the client's open: max-frame-size 65536 in A, 4096 in B (packets 9, 9)
      first       the outcome that the server sends for delivery 1 on link orders: accepted settled in A, ...
          A    24  0.003112 0 C→  0 transfer    #0 orders ...
        - A    26  ...
          B    24  ...
        + B    26  ...
      more        3 differences behind it (--all shows them)

Each line of a frame is that of `amqpscope read`. Nothing of the wire gets in here but by that and by
`printable`, through which the entries of forms have gone.
"""

from amqpscope.diff.comparison import ComparedFinding, Comparison, Difference, Meeting
from amqpscope.diff.excerpts import CONTEXT, ComparedFrames
from amqpscope.diff.forms import CanonicalFrameTable
from amqpscope.diff.run import ComparedRun
from amqpscope.diff.transcript import Transcript
from amqpscope.diff.words import subject, values
from amqpscope.model.records import CLIENT
from amqpscope.report.diagnosis_text import diagnosis_line
from amqpscope.report.findings import link_name
from amqpscope.report.line import Line
from amqpscope.report.printable import in_quotes, printable
from amqpscope.report.protocol_names import protocol_name
from amqpscope.report.verdict import headline
from amqpscope.report.who import ends, who
from dissectors.wording import count

__all__ = ["comparison_lines"]

_NOT_SHOWN = "not reported"

_LABEL = 12
_MARKED = 8

_LONGEST = 100
"""Characters of the name of a link."""

_SAME_SHOWN = 5
_SHOWN_FINDINGS = 20


def comparison_lines(
    comparison: Comparison, a: ComparedFrames, b: ComparedFrames, whole: bool
) -> list[tuple[Line, int]]:
    """All of it: lines, each with the columns before its continuation, -1 for one that may be cut.

    whole: also what is the same, and all differences that are kept.
    """
    shown: list[tuple[Line, int]] = []
    for letter, run in (("A", comparison.a), ("B", comparison.b)):
        shown.append((_head(letter, run, comparison.table), 2))
    same = [one for one in comparison.meetings if one.same]
    for meeting in comparison.meetings:
        if meeting.same and not whole and len(same) > _SAME_SHOWN and not meeting.who():
            continue
        shown.append(([], -1))
        shown += _meeting(meeting, a, b, whole)
    if len(same) > _SAME_SHOWN and not whole:
        shown += [([], -1), ([("", f"{count(len(same), 'connection')} say the same")], 2)]
    shown += _findings(comparison, whole)
    shown += _diagnoses(comparison, whole)
    shown += [([], -1), (_end(comparison), 2)]
    return shown


def _head(letter: str, run: ComparedRun, table: CanonicalFrameTable) -> Line:
    line: Line = [
        ("rule", f"{letter} "),
        ("name", printable(run.name)),
        ("", f": {count(len(run.stories), 'connection')}, {count(run.frames, 'frame')}"),
    ]
    encrypted = run.protocols.get("tls", 0)
    if encrypted:
        line.append(("note", f", {encrypted} more encrypted, not compared"))
    if run.left_out:
        line.append(("note", f", {run.left_out} more not compared, because there are too many connections"))
    if table.full:
        line.append(
            (
                "note",
                "; some different messages may count as equal, because there are too many different messages",
            )
        )
    return line


def _labelled(label: str, line: Line, style: str = "key") -> tuple[Line, int]:
    return [("", "  "), (style, f"{label:<{_LABEL}}"), *line], 2 + _LABEL


def _meeting(meeting: Meeting, a: ComparedFrames, b: ComparedFrames, whole: bool) -> list[tuple[Line, int]]:
    shown: list[tuple[Line, int]] = [(_heading(meeting), 4)]
    for peer, field, said_a, said_b in meeting.who():
        text = f"{field} {said_a or _NOT_SHOWN} in A, {said_b or _NOT_SHOWN} in B (no difference)"
        shown.append(_labelled(f"{peer} is", [("", text)]))
    for letter, transcript in (("A", meeting.a), ("B", meeting.b)):
        if transcript is not None and transcript.cut_for:
            text = f"compared up to packet {transcript.cut_at} of {letter}: {transcript.cut_for}"
            shown.append(_labelled("note", [("note", text)]))
    if meeting.a is None or meeting.b is None:
        return shown
    if meeting.same:
        text = f"{count(meeting.a.frames, 'frame')} in A, {meeting.b.frames} in B"
        shown.append(_labelled("same", [("", text)]))
        return shown
    for difference in meeting.negotiated:
        for change in difference.changes:
            one = difference._replace(changes=[change])
            shown.append(_difference("negotiated", one, meeting, a, b))
    first = meeting.first
    reported = len(meeting.negotiated)
    if first is not None:
        reported += 1
        shown.append(_difference("first", first, meeting, a, b))
        shown += _around(first, meeting, a, b)
    left = meeting.count - reported
    if whole:
        for difference in meeting.differences:
            if difference is not first and not difference.negotiated:
                shown.append(_difference("then", difference, meeting, a, b))
                left -= 1
    if left > 0 or not meeting.exact:
        many = ("at least " if not meeting.exact else "") + count(max(left, 0), "more difference")
        text = many if whole else f"{many} (--all shows them)"
        shown.append(_labelled("more", [("", text)]))
    return shown


def _heading(meeting: Meeting) -> Line:
    """Which connections these are: their numbers in their captures, and their clients' names."""
    numbers = dict.fromkeys(str(one.connection.stream) for one in (meeting.a, meeting.b) if one is not None)
    clients = dict.fromkeys(who(one.connection, CLIENT) for one in (meeting.a, meeting.b) if one is not None)
    names = " | ".join(name for name in clients if name)
    line: Line = [("rule", f"connection {' | '.join(numbers)}: "), ("client", f"{names} " if names else "")]
    if meeting.a is None or meeting.b is None:
        letter = "A" if meeting.b is None else "B"
        transcript = meeting.any
        protocol = protocol_name(transcript.connection.protocol)
        line += [("", ends(transcript.connection.id)), ("problem", f" only in {letter}")]
        line.append(("", f", {protocol}, {count(transcript.frames, 'frame')}"))
        return line
    one, other = meeting.a.connection, meeting.b.connection
    return [*line, ("", f"{ends(one.id)} in A"), ("dim", " | "), ("", f"{ends(other.id)} in B")]


def _difference(
    label: str, difference: Difference, meeting: Meeting, a: ComparedFrames, b: ComparedFrames
) -> tuple[Line, int]:
    line: Line = [("name", f"{subject(difference)}: ")]
    for index, (field, one, other) in enumerate(values(difference)):
        if index:
            line.append(("", "; "))
        if field:
            line.append(("key", f"{field} "))
        line += [("error", f"{one} "), ("", "in A, "), ("address", f"{other} "), ("", "in B")]
    packets = [
        f"{packet} in {letter}"
        for letter, form, packet in (
            ("A", difference.a, _packet(meeting.a, difference.frame_a, a)),
            ("B", difference.b, _packet(meeting.b, difference.frame_b, b)),
        )
        if form is not None and packet
    ]
    noun = "packet" if len(packets) == 1 else "packets"
    return _labelled(label, [*line, ("", " "), ("dim", f"({noun} {' and '.join(packets)})")])


def _packet(transcript: Transcript | None, frame: int, excerpts: ComparedFrames) -> int:
    return 0 if transcript is None else excerpts.packets.get((int(transcript.connection.stream), frame), 0)


def _around(
    first: Difference, meeting: Meeting, a: ComparedFrames, b: ComparedFrames
) -> list[tuple[Line, int]]:
    """The frames before the first difference in both runs, and those in which it stands."""
    shown: list[tuple[Line, int]] = []
    for letter, sign, style, transcript, excerpts, form, frame in (
        ("A", "-", "error", meeting.a, a, first.a, first.frame_a),
        ("B", "+", "address", meeting.b, b, first.b, first.frame_b),
    ):
        if transcript is None:
            continue
        stream = int(transcript.connection.stream)
        start = frame - CONTEXT + (form is None)
        for number in range(max(start, 0), frame + 1):
            different = form is not None and number == frame
            before: Line = [
                ("", " " * 4),
                (style if different else "dim", f"{sign if different else ' '} {letter} "),
            ]
            shown.append(excerpts.line((stream, number), before))
        if form is None:
            text = f"(not in {letter})"
            shown.append(([("", " " * 4), (style, f"{sign} {letter} "), ("dim", text)], _MARKED))
    return shown


def _findings(comparison: Comparison, whole: bool) -> list[tuple[Line, int]]:
    if not comparison.findings:
        return []
    shown: list[tuple[Line, int]] = []
    only_a = [one for one in comparison.findings if one.b is None]
    only_b = [one for one in comparison.findings if one.a is None]
    both = [one for one in comparison.findings if one.a is not None and one.b is not None]
    title = f"findings: {len(only_a)} only in A, {len(only_b)} only in B, {len(both)} in both"
    shown += [([], -1), ([("rule", title)], 2)]
    for letter, found in (("A", only_a), ("B", only_b)):
        for one in found if whole else found[:_SHOWN_FINDINGS]:
            shown.append(_finding(one, f"only in {letter}"))
        if len(found) > _SHOWN_FINDINGS and not whole:
            left = len(found) - _SHOWN_FINDINGS
            shown.append(_labelled("", [("", f"and {left} more only in {letter} (--all shows them)")]))
    if whole:
        shown += [_finding(one, "in both") for one in both]
    return shown


def _diagnoses(comparison: Comparison, whole: bool) -> list[tuple[Line, int]]:
    """Who waits for whom in one run only. Diagnoses make no difference."""
    only_a = [one.a for one in comparison.diagnoses if one.a is not None and one.b is None]
    only_b = [one.b for one in comparison.diagnoses if one.b is not None and one.a is None]
    both = [one.a for one in comparison.diagnoses if one.a is not None and one.b is not None]
    if not comparison.diagnoses:
        return []
    title = f"diagnoses: {len(only_a)} only in A, {len(only_b)} only in B, {len(both)} in both"
    shown: list[tuple[Line, int]] = [([], -1), ([("rule", title)], 2)]
    for label, found in (("only in A", only_a), ("only in B", only_b), ("in both", both if whole else [])):
        for one in found if whole else found[:_SHOWN_FINDINGS]:
            line = diagnosis_line(one.first)
            if one.count > 1:
                line.append(("dim", f" ({one.count}×)"))
            shown.append(_labelled(label, line))
        if len(found) > _SHOWN_FINDINGS and not whole:
            left = len(found) - _SHOWN_FINDINGS
            shown.append(_labelled("", [("", f"and {left} more {label} (--all shows them)")]))
    return shown


def _finding(judged: ComparedFinding, label: str) -> tuple[Line, int]:
    known = judged.a or judged.b
    assert known is not None
    finding = known.first
    line = list(headline(finding))
    place = ""
    if finding.link_sender:
        place = f"link {in_quotes(link_name(finding), _LONGEST)}"
    elif finding.session >= 0:
        place = f"session {int(finding.session)}"
    if place:
        line.append(("", f", on {place}"))
    counts = [f"{found.count}×" for found in (judged.a, judged.b) if found is not None]
    if any(text != "1×" for text in counts):
        line.append(("dim", f" ({' and '.join(counts)})"))
    if not judged.counts and (judged.a is None or judged.b is None):
        line += [("", " "), ("dim", "(does not count)")]
    return _labelled(label, line)


def _end(comparison: Comparison) -> Line:
    if comparison.same:
        return [("name", "same")]
    different = sum(not one.same for one in comparison.meetings)
    parts = []
    if different:
        parts.append(f"{different} of {count(len(comparison.meetings), 'connection')}")
    found = sum(one.counts for one in comparison.findings)
    if found:
        parts.append(count(found, "finding"))
    return [("problem", "different"), ("", f": {', '.join(parts)}")]

"""A comparison as data: the contract `amqpscope/diff/1`."""

from typing import Any

from amqpscope.diff.comparison import ComparedDiagnosis, ComparedFinding, Comparison, Difference, Meeting
from amqpscope.diff.excerpts import CONTEXT, ComparedFrames
from amqpscope.diff.run import ComparedRun
from amqpscope.diff.transcript import Transcript
from amqpscope.diff.words import said, subject
from amqpscope.report.findings import finding_object

__all__ = ["SCHEMA", "comparison_object"]

SCHEMA = "amqpscope/diff/1"


def comparison_object(comparison: Comparison, a: ComparedFrames, b: ComparedFrames) -> dict[str, Any]:
    """All of it. scenes: frames as objects, of each run."""
    return {
        "schema": SCHEMA,
        "same": comparison.same,
        "all_told_apart": not comparison.table.full,
        "a": _run(comparison.a),
        "b": _run(comparison.b),
        "connections": [_meeting(one, a, b) for one in comparison.meetings],
        "findings": [_judged(one, comparison) for one in comparison.findings],
        "diagnoses": [_diagnosed(one) for one in comparison.diagnoses],
    }


def _diagnosed(compared: ComparedDiagnosis) -> dict[str, Any]:
    known = compared.a or compared.b
    return {
        "a": 0 if compared.a is None else compared.a.count,
        "b": 0 if compared.b is None else compared.b.count,
        "diagnosis": None if known is None else known.first.json(),
    }


def _run(run: ComparedRun) -> dict[str, Any]:
    return {
        "capture": run.name,
        "connections": len(run.stories),
        "frames": run.frames,
        "encrypted": run.protocols.get("tls", 0),
        "connections_not_compared": run.left_out,
        "findings_not_listed": run.findings_left_out,
    }


def _meeting(meeting: Meeting, a: ComparedFrames, b: ComparedFrames) -> dict[str, Any]:
    first = meeting.first
    return {
        "same": meeting.same,
        "protocol": meeting.any.connection.protocol,
        "a": _story(meeting.a),
        "b": _story(meeting.b),
        "peers": [
            {"peer": peer, "field": field, "a": one, "b": other} for peer, field, one, other in meeting.who()
        ],
        "differences": [_difference(one, meeting, a, b) for one in meeting.differences],
        "differences_count": meeting.count,
        "differences_exact": meeting.exact,
        "first": None
        if first is None
        else {
            **_difference(first, meeting, a, b),
            "before": {
                "a": _before(meeting.a, first.frame_a, first.a is None, a),
                "b": _before(meeting.b, first.frame_b, first.b is None, b),
            },
        },
    }


def _story(transcript: Transcript | None) -> dict[str, Any] | None:
    if transcript is None:
        return None
    return {
        "connection": transcript.connection.id,
        "tcp_stream": transcript.connection.stream,
        "frames": transcript.frames,
        "midstream": transcript.midstream,
        "compared_up_to_packet": transcript.cut_at or None,
        "why_not_further": transcript.cut_for or None,
    }


def _difference(
    difference: Difference, meeting: Meeting, a: ComparedFrames, b: ComparedFrames
) -> dict[str, Any]:
    return {
        "subject": subject(difference),
        "where": [{"what": part.what, "label": part.label} for part in difference.where[1:]],
        "peer": difference.peer,
        "negotiated": difference.negotiated,
        "place": difference.place,
        "fields": [{"field": one.path, "a": one.a, "b": one.b} for one in difference.changes],
        "a": _said(difference, meeting.a, True, a),
        "b": _said(difference, meeting.b, False, b),
    }


def _said(
    difference: Difference, transcript: Transcript | None, in_a: bool, excerpts: ComparedFrames
) -> dict[str, Any] | None:
    form = difference.a if in_a else difference.b
    if form is None or transcript is None:
        return None
    place = (int(transcript.connection.stream), difference.frame_a if in_a else difference.frame_b)
    return {
        "said": said(form, difference),
        "packet": excerpts.packets.get(place),
        "frame": excerpts.objects.get(place),
    }


def _before(
    transcript: Transcript | None, frame: int, with_it: bool, excerpts: ComparedFrames
) -> list[dict[str, Any]]:
    if transcript is None:
        return []
    end = frame + with_it
    numbers = range(max(end - CONTEXT, 0), end)
    found = (excerpts.objects.get((int(transcript.connection.stream), number)) for number in numbers)
    return [one for one in found if one is not None]


def _judged(judged: ComparedFinding, comparison: Comparison) -> dict[str, Any]:
    known, run = (judged.a, comparison.a) if judged.a is not None else (judged.b, comparison.b)
    assert known is not None
    return {
        "fingerprint": judged.fingerprint,
        "a": 0 if judged.a is None else judged.a.count,
        "b": 0 if judged.b is None else judged.b.count,
        "counts": judged.counts,
        "finding": finding_object(known.first, run.name),
    }

"""An answer as data: the contract `amqpscope/why/1`."""

from typing import Any

from amqpscope.model.finding import named_peers
from amqpscope.report.findings import finding_object
from amqpscope.report.moment import iso
from amqpscope.report.tls import tls_object
from amqpscope.why.capture_ends import CaptureEnds
from amqpscope.why.endings import CauseStep, Ending
from amqpscope.why.excerpts import ExplainedFrames
from amqpscope.why.frame_ref import FrameQuestion, Ground, Knew, Position
from amqpscope.why.inquiry import Answer
from amqpscope.why.state import state_object
from amqpscope.why.text import concern_of, knowledge_of, weighed

__all__ = ["SCHEMA", "answer_object", "endings_object"]

SCHEMA = "amqpscope/why/1"


def answer_object(answer: Answer, excerpts: ExplainedFrames) -> dict[str, Any]:
    """All of an answer."""
    segment = answer.segment
    connection = answer.connection
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "capture": answer.name,
        "packet": segment.packet,
        "origin": {"capture": segment.file, "packet": segment.number} if segment.file else None,
        "time": iso(segment.time),
        "from": segment.sender,
        "to": segment.receiver,
        "octets": segment.octets,
        "flags": segment.flags,
        "connection": None if connection is None else connection.id,
        "protocol": None if connection is None else connection.protocol or None,
        "peer": answer.peer or None,
        "before": None if answer.before is None else state_object(answer.before, concern_of(answer)),
        "frames": [_question(question, answer.name, excerpts) for question in answer.questions],
        "more_frames": answer.more,
        "end_of_stream": None if answer.ended is None else _question(answer.ended, answer.name, excerpts),
        "findings": [finding_object(one, answer.name) for one in answer.findings],
        "named_by": [finding_object(one, answer.name) for one in answer.named_by],
        "diagnoses": [one.json() for one in answer.diagnoses],
        "packets": {
            str(packet): [excerpts.frame(place) for place in places]
            for packet, places in excerpts.packets.items()
        },
    }
    if not answer.questions and answer.ended is None:
        found["frame_before"] = _frame(answer.earlier, excerpts)
        found["frame_after"] = _frame(answer.later, excerpts)
    return found


def _frame(mark: Position | None, excerpts: ExplainedFrames) -> dict[str, Any] | None:
    return None if mark is None else excerpts.frame(mark.place)


def _brief(mark: Position | None) -> dict[str, Any] | None:
    return None if mark is None else {"packet": mark.packet, "name": mark.name}


def _knew(knew: Knew) -> dict[str, Any]:
    return {
        "must_have_read": _brief(knew.read),
        "could_have_read": _brief(knew.arrived),
        "perhaps_read": [_brief(mark) for mark in knew.unsure],
        "perhaps_read_count": knew.unsure_count,
        "on_its_way": _brief(knew.coming),
        "on_its_way_count": knew.coming_count,
    }


def _question(question: FrameQuestion, capture: str, excerpts: ExplainedFrames) -> dict[str, Any]:
    return {
        "frame": _frame(question.mark, excerpts),
        "knew": {knew.peer: _knew(knew) for knew in (question.knew, question.other_knew)},
        "grounds": [_ground(ground, question, excerpts) for ground in weighed(question)],
        "findings": [finding_object(one, capture) for one in question.findings],
        "followed": [
            {
                "what": named_peers(one.what, question.knew.peer),
                "packet": one.mark.packet,
                "frame": _frame(one.mark, excerpts),
            }
            for one in question.sequels
        ],
    }


def _ground(ground: Ground, question: FrameQuestion, excerpts: ExplainedFrames) -> dict[str, Any]:
    mark = ground.mark
    return {
        "effect": ground.effect,
        "what": named_peers(ground.what, question.knew.peer),
        "packet": None if mark is None else mark.packet,
        "known": None if mark is None else knowledge_of(mark, question) or "own",
        "frame": _frame(mark, excerpts),
    }


def endings_object(name: str, found: CaptureEnds, excerpts: dict[int, ExplainedFrames]) -> dict[str, Any]:
    """Why things ended, of each connection."""
    reported: dict[str, Any] = {
        "schema": SCHEMA,
        "capture": name,
        "connections": [
            {
                "connection": following.connection.id,
                "protocol": following.connection.protocol or None,
                "tls": tls_object(following.connection),
                "endings": [
                    _ending(ending, name, excerpts[int(following.connection.stream)]) for ending in endings
                ],
                "diagnoses": [one.json() for one in beside],
                "more": following.more,
            }
            for following, endings, beside, _ in found.connections
        ],
        "diagnoses": [one.json() for one in found.others],
    }
    if found.more:
        reported["connections_not_told"] = found.more
    return reported


def _ending(ending: Ending, capture: str, excerpts: ExplainedFrames) -> dict[str, Any]:
    return {
        "thing": ending.thing,
        "what": ending.what,
        "peer": ending.peer or None,
        "condition": ending.condition or None,
        "packet": None if ending.mark is None else ending.mark.packet,
        "frame": _frame(ending.mark, excerpts),
        "because": [_step(step, capture, excerpts) for step in ending.steps],
    }


def _step(step: CauseStep, capture: str, excerpts: ExplainedFrames) -> dict[str, Any]:
    finding = step.finding
    place = None if step.mark is None else step.mark.place
    if finding is not None:
        place = excerpts.of_finding(finding) or place
    if place is None and step.packet:
        place = next(iter(excerpts.packets.get(step.packet, [])), None)
    return {
        "what": step.what if step.diagnosis is None else step.diagnosis.message,
        "sure": step.sure,
        "packet": step.packet or (None if step.mark is None else step.mark.packet),
        "frame": None if place is None else excerpts.frame(place),
        "finding": None if finding is None else finding_object(finding, capture),
        "diagnosis": None if step.diagnosis is None else step.diagnosis.json(),
    }

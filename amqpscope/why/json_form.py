"""An answer as data: the contract `amqpscope/why/1`."""

from typing import Any

from amqpscope.report.findings import finding_object
from amqpscope.report.moment import iso
from amqpscope.why.inquiry import Answer
from amqpscope.why.place import Ground, Knew, Mark, Question
from amqpscope.why.scenes import Scenes
from amqpscope.why.state import state_object
from amqpscope.why.text import concern_of, knowledge_of, weighed

__all__ = ["SCHEMA", "answer_object"]

SCHEMA = "amqpscope/why/1"


def answer_object(answer: Answer, scenes: Scenes) -> dict[str, Any]:
    """All of an answer."""
    segment = answer.segment
    connection = answer.connection
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "capture": answer.name,
        "packet": segment.packet,
        "time": iso(segment.time),
        "from": segment.sender,
        "to": segment.receiver,
        "octets": segment.octets,
        "flags": segment.flags,
        "connection": None if connection is None else connection.id,
        "protocol": None if connection is None else connection.protocol or None,
        "peer": answer.peer or None,
        "before": None if answer.before is None else state_object(answer.before, concern_of(answer)),
        "frames": [_question(question, answer.name, scenes) for question in answer.questions],
        "more_frames": answer.more,
        "end_of_stream": None if answer.ended is None else _question(answer.ended, answer.name, scenes),
        "findings": [finding_object(one, answer.name) for one in answer.findings],
        "named_by": [finding_object(one, answer.name) for one in answer.named_by],
        "packets": {
            str(packet): [scenes.frame(place) for place in places]
            for packet, places in scenes.packets.items()
        },
    }
    if not answer.questions and answer.ended is None:
        found["frame_before"] = _frame(answer.earlier, scenes)
        found["frame_after"] = _frame(answer.later, scenes)
    return found


def _frame(mark: Mark | None, scenes: Scenes) -> dict[str, Any] | None:
    return None if mark is None else scenes.frame(mark.place)


def _brief(mark: Mark | None) -> dict[str, Any] | None:
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


def _question(question: Question, capture: str, scenes: Scenes) -> dict[str, Any]:
    return {
        "frame": _frame(question.mark, scenes),
        "knew": {knew.peer: _knew(knew) for knew in (question.knew, question.other_knew)},
        "grounds": [_ground(ground, question, scenes) for ground in weighed(question)],
        "findings": [finding_object(one, capture) for one in question.findings],
        "followed": [
            {"what": one.what, "packet": one.mark.packet, "frame": _frame(one.mark, scenes)}
            for one in question.sequels
        ],
    }


def _ground(ground: Ground, question: Question, scenes: Scenes) -> dict[str, Any]:
    mark = ground.mark
    return {
        "effect": ground.effect,
        "what": ground.what,
        "packet": None if mark is None else mark.packet,
        "known": None if mark is None else knowledge_of(mark, question) or "own",
        "frame": _frame(mark, scenes),
    }

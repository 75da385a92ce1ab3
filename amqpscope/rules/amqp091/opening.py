"""How the two streams begin: the client's protocol header, and a server's that refuses it (section 4.2.2).

A client may ask for any version with a header of that version, and a server that does not speak it answers
with its own: that is negotiation, and nobody's fault.
"""

from collections.abc import Callable

from amqpscope.model.certainty import CERTAIN
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.proof import proved
from amqpscope.tracking.amqp091.endpoint import Endpoint, begins_otherwise
from dissectors.interface import Problem
from dissectors.protocol_header import ProtocolHeader

__all__ = ["PROBLEMS", "judge_answer", "judge_first_frame"]


def judge_first_frame(case: Case) -> None:
    """The first frame of an endpoint, or the octets with which it begins instead."""
    me = case.me
    peer = case.peer
    frame = case.record.frame
    if me.by_client:
        if not peer.view.refused or not case.record.started:
            return
        header = frame.body
        if isinstance(header, ProtocolHeader):
            wrong = _wrong_revision(
                int(header.protocol_id), int(header.major), int(header.minor), int(header.revision)
            )
            wrong_protocol_header(case, wrong, None)
        elif begins_otherwise(frame):
            wrong_protocol_header(case, _NO_HEADER, None)
    elif isinstance(frame.body, ProtocolHeader) and peer.opening is not None:
        wrong_protocol_header(case, _wrong_opening(peer), peer.opening)


_NO_HEADER = "the stream begins with neither a protocol header nor a frame"


def _wrong_opening(client: Endpoint) -> str:
    """What is wrong with how the client began its stream, "" if nothing is known to be."""
    if not client.began_well:
        return _NO_HEADER
    for by_client, protocol, major, minor, revision in client.view.headers:
        if by_client:
            return _wrong_revision(protocol, major, minor, revision)
    return ""


def _wrong_revision(protocol: int, major: int, minor: int, revision: int) -> str:
    """What is wrong with a protocol header that asks for version 0-9, but for none of its revisions."""
    if (protocol, major, minor) == (0, 0, 9) and revision != 1:
        return f"the protocol header ends in 0 0 9 {revision}, that of AMQP 0-9-1 in 0 0 9 1"
    return ""


def wrong_protocol_header(case: Case, wrong: str, spot: FrameRef | None) -> None:
    """The client's stream does not begin with the protocol header of AMQP 0-9-1, and the server refuses it.

    Why it matters: the server cannot know what is spoken, and closes the connection.
    Silent when: the start of the stream was not captured; the server goes on all the same (a load balancer
    may have put octets of its own before the header), or has not answered; or the client asks for another
    version of AMQP, with the header of that, which the server may refuse.
    """
    if wrong:
        before = case.spot
        if spot is not None:
            case.spot = spot
        case.report("amqp091/F-PROTO-HDR", wrong, CERTAIN)
        case.spot = before


def second_protocol_header(case: Case, problem: Problem) -> None:
    """The client sends a second protocol header, or one behind frames.

    Why it matters: a server reads it as a frame of the type 0x41, and closes with 501, or drops it all.
    Silent when: octets before it were not captured.
    """
    if case.me.by_client:
        proved(case, "amqp091/F-PROTO-HDR-ONCE", problem)


def answer_that_is_no_header(case: Case, problem: Problem) -> None:
    """The server begins its stream with something that is neither a protocol header nor a frame.

    Why it matters: a client whose version is refused is to be told which one is spoken.
    Silent when: the start of the stream was not captured; or it shows itself as another protocol, that of a
    web server for one: then there is no AMQP to judge.
    """
    if not case.me.by_client:
        proved(case, "amqp091/F-PROTO-REJECT-HDR", problem)


def judge_answer(case: Case) -> None:
    """A frame of a server's behind its own protocol header."""
    if case.record.frame.kind != "skipped":
        frames_behind_a_refusal(case)


def frames_behind_a_refusal(case: Case) -> None:
    """The server has refused the client's version with a protocol header of its own, and goes on sending.

    Why it matters: there is no version in which the client could read it.
    Silent when: the header was not captured. The first frame is told of, those after it are not.
    """
    rule = "amqp091/F-PROTO-REJECT-CLOSE"
    if (case.me.peer, rule) not in case.told:
        case.told.add((case.me.peer, rule))
        case.report(rule, f"{case.name} follows the protocol header with which it refuses the connection")


PROBLEMS: dict[str, Callable[[Case, Problem], None]] = {
    "F-PROTO-HDR": answer_that_is_no_header,
    "F-PROTO-HDR-ONCE": second_protocol_header,
}

RULES = {
    "amqp091/F-PROTO-HDR": wrong_protocol_header,
    "amqp091/F-PROTO-HDR-ONCE": second_protocol_header,
    "amqp091/F-PROTO-REJECT-HDR": answer_that_is_no_header,
    "amqp091/F-PROTO-REJECT-CLOSE": frames_behind_a_refusal,
}

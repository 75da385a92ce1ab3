"""How the two streams begin: the client's protocol header, and the header of a server that refuses it
(section 4.2.2).

A client may request any version by a protocol header of that version. A server that does not support the
version answers with its own protocol header. That is negotiation, and no fault.
"""

from collections.abc import Callable
from typing import Final

from amqpscope.model.certainty import CERTAIN
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.proof import proved
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.endpoint import Endpoint091, another_beginning
from dissectors.interface import Problem
from dissectors.protocol_header import ProtocolHeader

__all__ = ["PROBLEMS", "judge_answer", "judge_first_frame"]

RULES: Final = Rules("amqp091/opening")


def judge_first_frame(case: Case091) -> None:
    """The first frame of an endpoint, or the octets that it sends instead."""
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
        else:
            wrong_protocol_header(case, another_beginning(frame), None)
    elif isinstance(frame.body, ProtocolHeader) and peer.opening is not None:
        wrong_protocol_header(case, _wrong_opening(peer), peer.opening)


def _wrong_opening(client: Endpoint091) -> str:
    """What is wrong with the beginning of the client's stream, "" if nothing is known to be wrong."""
    if client.misbegun:
        return client.misbegun
    for by_client, protocol, major, minor, revision in client.view.headers:
        if by_client:
            return _wrong_revision(protocol, major, minor, revision)
    return ""


def _wrong_revision(protocol: int, major: int, minor: int, revision: int) -> str:
    """What is wrong with a protocol header that requests version 0-9, but an unknown revision."""
    if (protocol, major, minor) == (0, 0, 9) and revision != 1:
        return f"the protocol header ends in 0 0 9 {revision}, but the header of AMQP 0-9-1 ends in 0 0 9 1"
    return ""


F_PROTO_HDR: Final = RULES.rule("F-PROTO-HDR", "MUST", "tier A", by="client")


def wrong_protocol_header(case: Case091, wrong: str, spot: FrameRef | None) -> None:
    """A client does not begin its stream with the protocol header of AMQP 0-9-1, and the server refuses the
    stream.

    Demands: The first eight octets of a client must be the protocol header 'AMQP' 0 0 9 1.
    Source: GS:4.2.2; GS:4.2.1 protocol-header; G:connection
    Evidence: the first eight octets of the client's stream
    Why it matters: The server cannot determine which protocol the client speaks, and closes the connection.
    Silent when: the capture lacks the start of the stream, or when the server has not answered. The rule is
    also silent when the server accepts the stream, because a load balancer may have inserted octets before
    the header. The rule also reports nothing when the client requests another version of AMQP with the header
    of that version, because the server may refuse that version.
    How to mend it: Send `AMQP` and the octets 0 0 9 1 as the first eight octets after connecting, or after
    the TLS handshake. Check that host and port belong to an AMQP 0-9-1 listener, and that both peers use TLS
    or neither does.
    """
    if wrong:
        before = case.spot
        if spot is not None:
            case.spot = spot
        case.report(F_PROTO_HDR, wrong, CERTAIN)
        case.spot = before


F_PROTO_HDR_ONCE: Final = RULES.rule(
    "F-PROTO-HDR-ONCE", "IMPLIED", "tier A", by="client", answer="connection.close 501"
)


def second_protocol_header(case: Case091, problem: Problem) -> None:
    """A client sends a second protocol header, or sends a protocol header after frames.

    Demands: A client may send the protocol header only once, and must send only frames after it.
    Source: GS:2.2.4; GS:4.2.1 amqp
    Evidence: a protocol header at a place where a frame is due
    Why it matters: The server reads the late protocol header as a frame of type 0x41. The server closes
    the connection with reply-code 501 (frame-error), or drops the connection.
    Silent when: the capture lacks octets before the late protocol header.
    How to mend it: Write the protocol header once, as the first eight octets of the connection, and only
    frames after it. To start the handshake again, open a new socket instead of reusing the old one.
    """
    if case.me.by_client:
        proved(case, F_PROTO_HDR_ONCE, problem)


F_PROTO_REJECT_HDR: Final = RULES.rule("F-PROTO-REJECT-HDR", "MUST", "tier A", by="server")


def answer_that_is_no_header(case: Case091, problem: Problem) -> None:
    """A server begins its stream with octets that are neither a protocol header nor a frame.

    Demands: A server that does not support the requested protocol or version must answer with a protocol
    header of its own.
    Source: XML:connection.start.protocol-name; GS:4.2.2
    Evidence: the client's protocol header, and the first octets of the server
    Why it matters: A client needs to learn which version the server supports. The octets that the server
    sends do not name any version.
    Silent when: the capture lacks the start of the stream. The rule is also silent when the stream
    belongs to another protocol, for example HTTP.
    How to mend it: Answer an unsupported protocol header with the server's own protocol header (`AMQP` and
    the octets 0, 0, 9, 1), then close the socket. Write nothing before the first frame or header.
    """
    if not case.me.by_client:
        proved(case, F_PROTO_REJECT_HDR, problem)


def judge_answer(case: Case091) -> None:
    """A frame of the server after the server's own protocol header."""
    if case.record.frame.kind != "skipped":
        frames_behind_a_refusal(case)


F_PROTO_REJECT_CLOSE: Final = RULES.rule("F-PROTO-REJECT-CLOSE", "MUST", "tier A", by="server")


def frames_behind_a_refusal(case: Case091) -> None:
    """A server refuses the client's version with a protocol header of its own and then sends further frames.

    Demands: After a server has refused a version with its own protocol header, the server must close the
    socket and must not send anything more.
    Source: XML:connection.start.protocol-name; GS:4.2.2
    Evidence: the server's octets after its protocol header, and the FIN or RST of TCP
    Why it matters: The peers have not agreed on a version, so the client cannot interpret the frames.
    Silent when: the capture lacks the server's protocol header. The rule reports only the first frame after
    the server's protocol header.
    How to mend it: Close the socket as soon as the rejecting protocol header is written and flushed. Do not
    send connection.start or any other frame on that socket.
    """
    rule = F_PROTO_REJECT_CLOSE
    if (case.me.peer, rule) not in case.reported:
        case.reported |= {(case.me.peer, rule)}
        case.report(
            rule,
            f"the peer sends {case.name} after the protocol header with which the server refuses the "
            "connection",
        )


# Rules whose problems cannot be judged by the octets alone.
PROBLEMS: Final[dict[str, Callable[[Case091, Problem], None]]] = {
    F_PROTO_HDR: answer_that_is_no_header,
    F_PROTO_HDR_ONCE: second_protocol_header,
}

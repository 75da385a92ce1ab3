"""Protocol headers: which layer and version the two agree on (transport.xml, "version-negotiation").

Each peer sends a header for each layer, and the n-th of the one is answered by the n-th of the other. Where
these differ there is no layer: both end their streams, and what they say nevertheless nobody can read.
"""

from typing import Final

from amqpscope.limits import ANSWER_PATIENCE, HEADER_PATIENCE
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import CLIENT, SERVER
from amqpscope.rules.amqp10.case import Case
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.registry import SECURE_PORT
from dissectors.wire import i64

__all__ = ["judge_after_unparsed", "judge_disagreement", "judge_end", "judge_header"]

_TLS: Final = 2
_SASL: Final = 3


def goes_on_with_another_header(case: Case, certainty: i64) -> None:
    """A client goes on although the server answered its protocol header with another one.

    Why it matters: the server speaks another protocol or version; it closes, and reads nothing more.
    Silent when: the server's header may not have been received, or octets of either peer were not captured.
    Possible when it may not have been read.
    """
    _disagree(case, "amqp10/C-HDR-MISMATCH-CLOSE", certainty)


def goes_on_with_unsupported_version(case: Case, certainty: i64) -> None:
    """A server answers with another version than the client asked for, and then does not close.

    Why it matters: the answer says what it supports; the client has to connect anew, and waits for the end.
    Silent when: the client's header may not have been received, or octets of either peer were not captured.
    Possible when it may not have been read.
    """
    _disagree(case, "amqp10/C-HDR-UNSUP", certainty)


def goes_on_with_refused_protocol_id(case: Case, certainty: i64) -> None:
    """A server answers with another protocol id than the client asked for, and then does not close.

    Why it matters: it asks for SASL or TLS, or for neither; the client has to connect anew, and waits for the
    end.
    Silent when: the client's header may not have been received, or octets of either peer were not captured.
    Possible when it may not have been read.
    """
    _disagree(case, "amqp10/C-HDR-PROTOID", certainty)


def _disagree(case: Case, rule: str, certainty: i64) -> None:
    me = case.me
    spot = case.spot
    what = "the stream stays open" if spot is not None else f"{case.record.frame.name} is sent"
    own = _written(me.headers.own)
    theirs = _written(me.headers.theirs)
    case.report(
        rule,
        f"{what}, but the headers differ: {own}, and the peer's {theirs}",
        certainty,
        {"header": own, "peer_header": theirs},
        [int(me.headers.their_packet)],
    )


def _written(octets: bytes) -> str:
    """`AMQP 3 1.0.0`."""
    if len(octets) < 4:
        return "none"
    return f"AMQP {octets[0]} {octets[1]}.{octets[2]}.{octets[3]}"


def _judge(case: Case, certainty: i64) -> None:
    me = case.me
    if me.peer == CLIENT:
        goes_on_with_another_header(case, certainty)
    elif me.headers.own[:1] == me.headers.theirs[:1]:
        goes_on_with_unsupported_version(case, certainty)
    else:
        goes_on_with_refused_protocol_id(case, certainty)


def _clear(case: Case) -> bool:
    """Whether nothing is missing, and each header is known to answer which."""
    me = case.me
    peer = case.peer
    return me.whole and peer.whole and not me.headers.doubled and not peer.headers.doubled


def judge_disagreement(case: Case) -> None:
    """A frame that is sent after headers that differ; of each pair of headers the first is told."""
    me = case.me
    me.headers.disagreed = False
    if _clear(case) and case.record.frame.kind != "skipped":
        _judge(case, me.knowledge.certainty(me.headers.their_end))


def goes_on_after_unparsed_opening(case: Case, certainty: i64) -> None:
    """A server goes on after an opening of the client's that is no protocol header.

    Why it matters: it has to say a header that it supports and to close; the client may not speak AMQP.
    Silent when: the client's opening was not captured, or may not have been received. Possible when it may
    not have been read.
    """
    me = case.me
    case.report(
        "amqp10/C-HDR-UNPARSED",
        f"{case.record.frame.name} is sent, but the client's stream begins with no protocol header",
        certainty,
        {"connection_state": me.state},
        [int(me.headers.unparsed_packet)],
    )


def judge_after_unparsed(case: Case) -> None:
    """A frame of a peer whose partner's stream began with octets that are no header."""
    me = case.me
    end = me.headers.unparsed_end
    me.headers.unparsed_end = -1
    if me.peer == SERVER and case.record.frame.kind in ("amqp", "sasl"):
        goes_on_after_unparsed_opening(case, me.knowledge.certainty(end))


def client_waits_for_the_header(case: Case) -> None:
    """A client says nothing until the server has sent its protocol header, for long.

    Why it matters: the server may wait for the client's header: then both wait.
    Silent when: the start of either stream was not captured, or the client's header came within a minute of
    the server's.
    Only possible because: What it was waiting for is its own.
    """
    me = case.me
    peer = case.peer
    if me.peer != CLIENT or me.headers.sent > 0 or me.headers.received == 0 or not me.whole or not peer.whole:
        return
    waited = case.record.time - me.headers.their_time
    if me.stalls.free(me.headers.their_time, case.record.time) >= HEADER_PATIENCE:
        case.report(
            "amqp10/C-HDR-CLIENT-NOW",
            f"the client's header comes {waited / 1_000_000_000:.3f} s after the server's",
            POSSIBLE,
            {"waited_ms": int(waited // 1_000_000)},
            [int(me.headers.their_packet)],
        )


def sasl_header_of_another_version(case: Case, body: ProtocolHeader) -> None:
    """A protocol header for SASL has another version than 1.0.0.

    Why it matters: there is one version of the SASL layer; the other side cannot know what is meant.
    Silent when: the header was not captured. SASL frames without one are told by C-HDR-FIRST.
    """
    case.report(
        "amqp10/SA-HDR",
        f"the protocol header for SASL has version {body.major}.{body.minor}.{body.revision}",
    )


def tls_header_of_another_version(case: Case, body: ProtocolHeader) -> None:
    """A protocol header for TLS has another version than 1.0.0.

    Why it matters: there is one version of the TLS layer; the other side cannot know what is meant.
    Silent when: the header was not captured.
    """
    case.report(
        "amqp10/TL-HDR",
        f"the protocol header for TLS has version {body.major}.{body.minor}.{body.revision}",
    )


def tls_header_at_the_tls_port(case: Case) -> None:
    """A server at port 5671 exchanges a protocol header for TLS.

    Why it matters: at this port TLS is expected at once, without a header before it.
    Silent when: the port is another one.
    Only possible because: A port may be given to anything.
    """
    case.report("amqp10/TL-PURE", f"a header for TLS is sent at port {SECURE_PORT}", POSSIBLE)


def reused_after_both_closes(case: Case) -> None:
    """A protocol header is sent on a connection that both peers have closed.

    Why it matters: a TCP connection carries one AMQP connection; the other side is about to end it.
    Silent when: one of the closes was not captured, or may not have been received. Possible when octets were
    not captured: the other side may have begun anew.
    Possible because: Octets are missing: among them may be that the connection was begun anew.
    """
    me = case.me
    case.report(
        "amqp10/C-CLOSE-NOREUSE",
        f"a protocol header is sent after both closes, the peer's in packet {case.peer.close_packet}",
        CERTAIN if me.close_stands else POSSIBLE,
        {"connection_state": me.state},
        [int(me.close_packet), int(case.peer.close_packet)],
    )


def judge_header(case: Case, body: ProtocolHeader) -> None:
    """The rules about a protocol header."""
    me = case.me
    if me.closed and me.peer_closed:
        reused_after_both_closes(case)
        return
    client_waits_for_the_header(case)
    if body.protocol() == "unknown":
        if body.protocol_id == _SASL:
            sasl_header_of_another_version(case, body)
        elif body.protocol_id == _TLS:
            tls_header_of_another_version(case, body)
    elif me.peer == SERVER and body.protocol_id == _TLS:
        if case.connection.end(case.record.direction)[1] == SECURE_PORT:
            tls_header_at_the_tls_port(case)


def reset_after_another_header(case: Case) -> None:
    """A peer resets the connection after headers that differ.

    Why it matters: what the other side has not read yet, such as the header with what is supported, may be
    lost.
    Silent when: the other side had ended its stream, or octets were not captured.
    Only possible because: Whose program or host reset it does not show.
    """
    case.report(
        "amqp10/C-HDR-MISMATCH-READ",
        "the connection is reset after headers that differ",
        POSSIBLE,
        {"peer_header": _written(case.me.headers.theirs)},
        [int(case.me.headers.their_packet)],
    )


def judge_end(case: Case, reason: str, after_peer: bool) -> None:
    """The rules about the end of a stream after headers that differ, to which `case.spot` points."""
    me = case.me
    spot = case.spot
    if spot is None or not me.headers.differ() or not _clear(case):
        return
    if reason == "rst":
        if not after_peer:
            reset_after_another_header(case)
    elif reason == "capture" and me.headers.disagreed and not after_peer:
        if me.stalls.free(max(me.last_time, me.headers.their_time), spot.time) >= ANSWER_PATIENCE:
            _judge(case, POSSIBLE)


RULES = {
    "amqp10/C-HDR-MISMATCH-CLOSE": goes_on_with_another_header,
    "amqp10/C-HDR-UNSUP": goes_on_with_unsupported_version,
    "amqp10/C-HDR-PROTOID": goes_on_with_refused_protocol_id,
    "amqp10/C-HDR-UNPARSED": goes_on_after_unparsed_opening,
    "amqp10/C-HDR-CLIENT-NOW": client_waits_for_the_header,
    "amqp10/C-HDR-MISMATCH-READ": reset_after_another_header,
    "amqp10/SA-HDR": sasl_header_of_another_version,
    "amqp10/TL-HDR": tls_header_of_another_version,
    "amqp10/TL-PURE": tls_header_at_the_tls_port,
    "amqp10/C-CLOSE-NOREUSE": reused_after_both_closes,
}

"""Protocol headers: the layer and version on which both peers agree (transport.xml, "version-negotiation").

Each peer sends a header for each layer, and the n-th header of one peer answers the n-th header of the other
peer. If the two headers differ, there is no layer: both peers have to end their streams, and nobody can read
later octets.
"""

from typing import Final

from amqpscope.limits import ANSWER_PATIENCE, HEADER_PATIENCE
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import CLIENT, SERVER
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.registry import SECURE_PORT
from dissectors.wire import i64

__all__ = ["judge_after_unparsed", "judge_disagreement", "judge_end", "judge_header"]

RULES: Final = Rules("amqp10/negotiation")


_TLS: Final = 2
_SASL: Final = 3


C_HDR_MISMATCH_CLOSE: Final = RULES.rule("C-HDR-MISMATCH-CLOSE", "MUST", "keyword")


def goes_on_with_another_header(case: Case10, certainty: i64) -> None:
    """A client continues the connection although the server answered the client's protocol header with a
    different protocol header.

    Demands: When the two protocol headers differ, both peers must end their streams.
    Source: transport.xml section version-negotiation
    Evidence: the protocol headers of both peers, and frames before the FIN
    Why it matters: The server supports another protocol or version. The server closes the connection and
    reads nothing that the client still sends.
    Silent when: the client may not yet have received the server's protocol header, or when octets of either
    peer were not captured. The finding is reported as possible, not as certain, when the client may not yet
    have read the server's protocol header.
    How to mend it: Compare the server's protocol header with the protocol header that you sent. If the two
    headers differ, close the TCP connection, and connect again with the protocol id and version that the
    server offered.
    """
    _disagree(case, C_HDR_MISMATCH_CLOSE, certainty)


C_HDR_UNSUP: Final = RULES.rule("C-HDR-UNSUP", "MUST", "keyword", by="server")


def goes_on_with_unsupported_version(case: Case10, certainty: i64) -> None:
    """A server answers with another protocol version than the client asked for, and then does not close the
    connection.

    Demands: A server that does not support the requested version must answer with a version that it supports,
    and close the connection.
    Source: transport.xml section version-negotiation
    Evidence: a server header that differs from the client header, and frames before the FIN
    Why it matters: The server's header shows which version the server supports. The client must connect
    again, but first waits until the server closes the connection.
    Silent when: the server may not yet have received the client's protocol header, or when octets of either
    peer were not captured. The finding is reported as possible, not as certain, when the server may not yet
    have read the client's protocol header.
    How to mend it: After you answer an unsupported version with your own protocol header, close the TCP
    connection at once. Do not go on with open or SASL frames.
    """
    _disagree(case, C_HDR_UNSUP, certainty)


C_HDR_PROTOID: Final = RULES.rule("C-HDR-PROTOID", "MUST", "keyword", by="server")


def goes_on_with_refused_protocol_id(case: Case10, certainty: i64) -> None:
    """A server answers with another protocol id than the client asked for, and then does not close the
    connection.

    Demands: A server that refuses the requested protocol id (0, 2 or 3) must answer with an id that it
    accepts, and close the connection.
    Source: transport.xml section version-negotiation
    Evidence: the protocol ids of both headers, and frames before the FIN
    Why it matters: With its protocol id, the server asks for SASL, for TLS or for plain AMQP. The client must
    connect again, but first waits until the server closes the connection.
    Silent when: the server may not yet have received the client's protocol header, or when octets of either
    peer were not captured. The finding is reported as possible, not as certain, when the server may not yet
    have read the client's protocol header.
    How to mend it: After you answer with the protocol id that you accept (0, 2 or 3), close the TCP
    connection at once. Do not send frames of the layer that the client did not ask for.
    """
    _disagree(case, C_HDR_PROTOID, certainty)


def _disagree(case: Case10, rule: str, certainty: i64) -> None:
    me = case.me
    spot = case.spot
    what = "the stream stays open" if spot is not None else f"the peer sends {case.record.frame.name}"
    own = _written(me.headers.own)
    theirs = _written(me.headers.theirs)
    case.report(
        rule,
        f"{what} although the protocol headers differ ({own} from this peer, {theirs} from the other peer); "
        "the peer must close the connection instead",
        certainty,
        {"header": own, "peer_header": theirs},
        [int(me.headers.their_packet)],
    )


def _written(octets: bytes) -> str:
    """`AMQP 3 1.0.0`."""
    if len(octets) < 4:
        return "none"
    return f"AMQP {octets[0]} {octets[1]}.{octets[2]}.{octets[3]}"


def _judge(case: Case10, certainty: i64) -> None:
    me = case.me
    if me.peer == CLIENT:
        goes_on_with_another_header(case, certainty)
    elif me.headers.own[:1] == me.headers.theirs[:1]:
        goes_on_with_unsupported_version(case, certainty)
    else:
        goes_on_with_refused_protocol_id(case, certainty)


def _clear(case: Case10) -> bool:
    """Whether all octets were captured, so that it is known which header answers which."""
    me = case.me
    peer = case.peer
    return me.whole and peer.whole and not me.headers.doubled and not peer.headers.doubled


def judge_disagreement(case: Case10) -> None:
    """Judge a frame that is sent after headers that differ; only the first pair of headers is reported."""
    me = case.me
    me.headers.disagreed = False
    if _clear(case) and case.record.frame.kind != "skipped":
        _judge(case, me.knowledge.certainty(me.headers.their_end))


C_HDR_UNPARSED: Final = RULES.rule("C-HDR-UNPARSED", "MUST", "keyword", by="server")


def goes_on_after_unparsed_opening(case: Case10, certainty: i64) -> None:
    """A server continues the connection although the client began its stream with octets that are not a
    protocol header.

    Demands: A server that cannot read the client's first octets must send a protocol header that it supports,
    and close the connection.
    Source: transport.xml section version-negotiation
    Evidence: the first octets of the client, and the server's answer
    Why it matters: The client's first octets are not a protocol header, so perhaps the client does not speak
    AMQP at all. If the server continues, both peers may misread each other.
    Silent when: the first octets of the client were not captured, or when the server may not yet have
    received these octets. The finding is reported as possible, not as certain, when the server may not yet
    have read the client's first octets.
    How to mend it: Check the first 8 octets of every connection. If the first 8 octets are not a protocol
    header, send a protocol header that you support, close the TCP connection, and send no frames.
    """
    me = case.me
    case.report(
        C_HDR_UNPARSED,
        f"the peer sends {case.record.frame.name} although the client's stream does not begin with a "
        "protocol header; the server must close the connection instead",
        certainty,
        {"connection_state": me.state},
        [int(me.headers.unparsed_packet)],
    )


def judge_after_unparsed(case: Case10) -> None:
    """Judge a frame of a peer after the other peer's stream began with octets that are not a header."""
    me = case.me
    end = me.headers.unparsed_end
    me.headers.unparsed_end = -1
    if me.peer == SERVER and case.record.frame.kind in ("amqp", "sasl"):
        goes_on_after_unparsed_opening(case, me.knowledge.certainty(end))


C_HDR_CLIENT_NOW: Final = RULES.rule("C-HDR-CLIENT-NOW", "MUST", "keyword", by="client")


def client_waits_for_the_header(case: Case10) -> None:
    """A client sends its protocol header a minute or more after the server's protocol header.

    Demands: A client must send its protocol header as soon as the TCP connection is established.
    Source: transport.xml section version-negotiation
    Evidence: the time from the TCP handshake to the client's first octet, and the order of both headers
    Why it matters: The server may wait for the client's header as well. If both peers wait, the connection is
    never established.
    Silent when: the start of either stream was not captured, or when the client's protocol header came less
    than a minute after the server's protocol header.
    Only possible because: The capture does not show what the client waited for.
    How to mend it: Send the protocol header immediately after the TCP connection is established. Do not wait
    for the server's header. Do not open connections in advance without starting AMQP on them.
    """
    me = case.me
    peer = case.peer
    if me.peer != CLIENT or me.headers.sent > 0 or me.headers.received == 0 or not me.whole or not peer.whole:
        return
    waited = case.record.time - me.headers.their_time
    if me.stalls.free(me.headers.their_time, case.record.time) >= HEADER_PATIENCE:
        case.report(
            C_HDR_CLIENT_NOW,
            f"the client sends its protocol header {waited / 1_000_000_000:.3f} s after the server's "
            "protocol header, but must send the protocol header as soon as the TCP connection is "
            "established",
            POSSIBLE,
            {"waited_ms": int(waited // 1_000_000)},
            [int(me.headers.their_packet)],
        )


SA_HDR: Final = RULES.rule("SA-HDR", "MUST", "keyword")


def sasl_header_of_another_version(case: Case10, body: ProtocolHeader) -> None:
    """A peer sends a protocol header that announces SASL but has a version other than 1.0.0.

    Demands: Each peer must begin the SASL layer with the protocol header of id 3 and version 1.0.0.
    Source: security.xml section sasl
    Evidence: the first octets in each direction
    Why it matters: Only version 1.0.0 of the SASL layer exists. The other peer cannot know which layer the
    header announces, and refuses the connection.
    Silent when: the header was not captured. Another rule, C-HDR-FIRST, reports SASL frames without a
    protocol header.
    How to mend it: Send the octets `AMQP`, 3, 1, 0, 0 to start the SASL layer. If you also support AMQP
    0-9-1, do not send the version octets of AMQP 0-9-1 in this header.
    """
    case.report(
        SA_HDR,
        f"the protocol header that announces SASL has the version {body.major}.{body.minor}.{body.revision} "
        "instead of 1.0.0",
    )


TL_HDR: Final = RULES.rule("TL-HDR", "MUST", "keyword")


def tls_header_of_another_version(case: Case10, body: ProtocolHeader) -> None:
    """A peer sends an AMQP protocol header that announces TLS but has a version other than 1.0.0.

    Demands: If TLS begins within an AMQP connection, each peer must first send the AMQP protocol header that
    announces TLS (protocol-id 2, version 1.0.0).
    Source: security.xml section tls
    Evidence: the first octets in each direction
    Why it matters: Only version 1.0.0 of the TLS layer exists. The other peer cannot know which layer the
    header announces, and refuses the connection.
    Silent when: the header was not captured.
    How to mend it: Send the octets `AMQP`, 2, 1, 0, 0 to start TLS within an AMQP connection. The protocol
    header carries the version of the AMQP security layer, not the version of TLS.
    """
    case.report(
        TL_HDR,
        f"the AMQP protocol header that announces TLS has the version "
        f"{body.major}.{body.minor}.{body.revision} instead of 1.0.0",
    )


TL_PURE: Final = RULES.rule("TL-PURE", "SHOULD NOT", "lower-case", by="server")


def tls_header_at_the_tls_port(case: Case10) -> None:
    """A server at port 5671 sends an AMQP protocol header that announces TLS (protocol id 2) before TLS
    begins.

    Demands: A server at port 5671 (amqps) should start TLS at once, without the AMQP protocol header that
    announces TLS (protocol-id 2).
    Source: transport.xml section definitions > SECURE-PORT; security.xml section tls > Alternative
    Establishment
    Evidence: port 5671, and the first octets of the stream
    Why it matters: At port 5671, clients expect TLS to start at once. Clients that follow the specification
    cannot connect.
    Silent when: the server uses another port than 5671.
    Only possible because: Any service may use port 5671.
    How to mend it: On port 5671, start the TLS handshake immediately after the TCP connection is established.
    Only on other ports, announce TLS with the AMQP protocol header (protocol id 2).
    """
    case.report(
        TL_PURE,
        f"at port {SECURE_PORT}, the peer sends an AMQP protocol header that announces TLS, although TLS "
        "should begin without this header at this port",
        POSSIBLE,
    )


C_CLOSE_NOREUSE: Final = RULES.rule("C-CLOSE-NOREUSE", "SHOULD NOT", "keyword")


def reused_after_both_closes(case: Case10) -> None:
    """A peer sends a protocol header on a TCP connection on which both peers have sent close.

    Demands: A peer should not reuse a TCP connection after both peers have sent close.
    Source: transport.xml section connections > Closing a Connection
    Evidence: a protocol header after both closes
    Why it matters: A TCP connection carries one AMQP connection. The other peer is about to end the TCP
    connection, so the new AMQP connection fails.
    Silent when: one of the two closes was not captured, or may not yet have been received. The finding is
    reported as possible, not as certain, when octets were not captured, because the other peer may have begun
    a new connection.
    Possible because: The capture lacks octets that may contain the start of a new connection.
    How to mend it: After both peers have sent close, end the TCP connection. Open a new TCP connection for
    the next AMQP connection.
    """
    me = case.me
    case.report(
        C_CLOSE_NOREUSE,
        "the peer sends a protocol header on a connection on which both peers have already sent close; the "
        f"other peer's close is in packet {case.peer.closing.packet}",
        CERTAIN if me.closing.stands else POSSIBLE,
        {"connection_state": me.state},
        [int(me.closing.packet), int(case.peer.closing.packet)],
    )


def judge_header(case: Case10, body: ProtocolHeader) -> None:
    """Judge a protocol header."""
    me = case.me
    if me.closing.sent and me.closing.received:
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


C_HDR_MISMATCH_READ: Final = RULES.rule("C-HDR-MISMATCH-READ", "SHOULD", "keyword")


def reset_after_another_header(case: Case10) -> None:
    """A peer resets the TCP connection after the two peers sent different protocol headers.

    Demands: After the peers have sent different protocol headers, each peer should go on reading until the
    other peer ends its stream.
    Source: transport.xml section version-negotiation
    Evidence: the order in which the TCP streams end
    Why it matters: The reset may discard octets that the other peer has not read yet, such as the protocol
    header that shows which version is supported.
    Silent when: the other peer had ended its stream, or when octets were not captured.
    Only possible because: The capture does not show whether the program or the host of the {peer} reset the
    connection.
    How to mend it: If the two protocol headers differ, end only your sending side and go on reading until
    the other peer ends its stream or a time-out passes. Close the socket only after the other peer has
    ended its stream or the time-out has passed.
    """
    case.report(
        C_HDR_MISMATCH_READ,
        "the peer resets the connection after the two peers sent different protocol headers, instead of "
        "reading until the other peer ends its stream",
        POSSIBLE,
        {"peer_header": _written(case.me.headers.theirs)},
        [int(case.me.headers.their_packet)],
    )


def judge_end(case: Case10, reason: str, after_peer: bool) -> None:
    """Judge the end of a stream after two different headers. `case.spot` points to the end."""
    me = case.me
    spot = case.spot
    if spot is None or not me.headers.differ() or not _clear(case):
        return
    if reason == "rst":
        if not after_peer:
            reset_after_another_header(case)
    elif reason == "capture" and me.headers.disagreed and not after_peer:
        if me.stalls.free(max(me.stream.last_time, me.headers.their_time), spot.time) >= ANSWER_PATIENCE:
            _judge(case, POSSIBLE)

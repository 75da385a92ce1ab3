"""Protocol headers: which layer and version the two agree on (transport.xml, "version-negotiation").

Each peer sends a header for each layer, and the n-th of the one is answered by the n-th of the other. Where
these differ there is no layer: both end their streams, and what they say nevertheless nobody can read.
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
    different one.

    Demands: When the two headers differ both peers have to close their sending side.
    Source: transport.xml section version-negotiation
    Evidence: both headers, then FIN from each side and no frames
    Why it matters: The server supports another protocol or version. The server closes the connection and
    reads nothing that the client still sends.
    Silent when: the client may not have received the server's protocol header, or octets of either peer were
    not captured. The finding is only possible, not certain, when the client may not have read the server's
    protocol header.
    How to mend it: Compare the server's protocol header with the one that you sent. If they differ, close the
    TCP connection, and connect again with the protocol id and version that the server offered.
    """
    _disagree(case, C_HDR_MISMATCH_CLOSE, certainty)


C_HDR_UNSUP: Final = RULES.rule("C-HDR-UNSUP", "MUST", "keyword", by="server")


def goes_on_with_unsupported_version(case: Case10, certainty: i64) -> None:
    """A server answers with another protocol version than the client asked for, and then does not close the
    connection.

    Demands: A server that does not support the asked version answers with one it supports and closes the
    socket.
    Source: transport.xml section version-negotiation
    Evidence: server header differing from client header, then FIN
    Why it matters: The answer states the version that the server supports. The client must connect again, and
    waits for the server to close.
    Silent when: the server may not have received the client's protocol header, or octets of either peer were
    not captured. The finding is only possible, not certain, when the server may not have read the client's
    protocol header.
    How to mend it: After you answer an unsupported version with your own protocol header, close the TCP
    connection at once. Do not go on with open or SASL frames.
    """
    _disagree(case, C_HDR_UNSUP, certainty)


C_HDR_PROTOID: Final = RULES.rule("C-HDR-PROTOID", "MUST", "keyword", by="server")


def goes_on_with_refused_protocol_id(case: Case10, certainty: i64) -> None:
    """A server answers with another protocol id than the client asked for, and then does not close the
    connection.

    Demands: A server that refuses the asked protocol id (0, 2 or 3) sends a header with an id it accepts and
    then closes.
    Source: transport.xml section version-negotiation
    Evidence: header ids, FIN
    Why it matters: The answer demands SASL, TLS, or neither of them. The client must connect again, and waits
    for the server to close.
    Silent when: the server may not have received the client's protocol header, or octets of either peer were
    not captured. The finding is only possible, not certain, when the server may not have read the client's
    protocol header.
    How to mend it: After you answer with the protocol id that you accept (0, 2 or 3), close the TCP
    connection at once. Do not send frames of the layer that the client did not ask for.
    """
    _disagree(case, C_HDR_PROTOID, certainty)


def _disagree(case: Case10, rule: str, certainty: i64) -> None:
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


def _judge(case: Case10, certainty: i64) -> None:
    me = case.me
    if me.peer == CLIENT:
        goes_on_with_another_header(case, certainty)
    elif me.headers.own[:1] == me.headers.theirs[:1]:
        goes_on_with_unsupported_version(case, certainty)
    else:
        goes_on_with_refused_protocol_id(case, certainty)


def _clear(case: Case10) -> bool:
    """Whether nothing is missing, and each header is known to answer which."""
    me = case.me
    peer = case.peer
    return me.whole and peer.whole and not me.headers.doubled and not peer.headers.doubled


def judge_disagreement(case: Case10) -> None:
    """A frame that is sent after headers that differ; of each pair of headers the first is told."""
    me = case.me
    me.headers.disagreed = False
    if _clear(case) and case.record.frame.kind != "skipped":
        _judge(case, me.knowledge.certainty(me.headers.their_end))


C_HDR_UNPARSED: Final = RULES.rule("C-HDR-UNPARSED", "MUST", "keyword", by="server")


def goes_on_after_unparsed_opening(case: Case10, certainty: i64) -> None:
    """A server continues the connection after the client began its stream with octets that are not a protocol
    header.

    Demands: A server that cannot parse the client's opening octets still sends a valid supported header and
    then closes.
    Source: transport.xml section version-negotiation
    Evidence: non-AMQP first octets, server reply, FIN
    Why it matters: The server must send a supported protocol header and close. The client may not speak AMQP
    at all, so both peers may misread each other.
    Silent when: the first octets of the client were not captured, or the server may not have received them.
    The finding is only possible, not certain, when the server may not have read those octets.
    How to mend it: Check the first 8 octets of every connection. If they are not a protocol header, send a
    protocol header that you support, close the TCP connection, and send no frames.
    """
    me = case.me
    case.report(
        C_HDR_UNPARSED,
        f"{case.record.frame.name} is sent, but the client's stream begins with no protocol header",
        certainty,
        {"connection_state": me.state},
        [int(me.headers.unparsed_packet)],
    )


def judge_after_unparsed(case: Case10) -> None:
    """A frame of a peer whose partner's stream began with octets that are no header."""
    me = case.me
    end = me.headers.unparsed_end
    me.headers.unparsed_end = -1
    if me.peer == SERVER and case.record.frame.kind in ("amqp", "sasl"):
        goes_on_after_unparsed_opening(case, me.knowledge.certainty(end))


C_HDR_CLIENT_NOW: Final = RULES.rule("C-HDR-CLIENT-NOW", "MUST", "keyword", by="client")


def client_waits_for_the_header(case: Case10) -> None:
    """A client does not send its protocol header until a minute or more after the server's protocol header.

    Demands: The TCP client has to send its header at once after the connection is established.
    Source: transport.xml section version-negotiation
    Evidence: time from handshake to first client octet; order of the two headers
    Why it matters: The server may wait for the client's header as well. Then both peers wait, and the
    connection is never established.
    Silent when: the start of either stream was not captured, or the client's protocol header came within a
    minute of the server's.
    Only possible because: The capture does not show what the client waited for.
    How to mend it: Send the protocol header immediately after the TCP connection is established. Do not wait
    for the server's header, and do not open connections in advance without starting AMQP on them.
    """
    me = case.me
    peer = case.peer
    if me.peer != CLIENT or me.headers.sent > 0 or me.headers.received == 0 or not me.whole or not peer.whole:
        return
    waited = case.record.time - me.headers.their_time
    if me.stalls.free(me.headers.their_time, case.record.time) >= HEADER_PATIENCE:
        case.report(
            C_HDR_CLIENT_NOW,
            f"the client's header comes {waited / 1_000_000_000:.3f} s after the server's",
            POSSIBLE,
            {"waited_ms": int(waited // 1_000_000)},
            [int(me.headers.their_packet)],
        )


SA_HDR: Final = RULES.rule("SA-HDR", "MUST", "keyword")


def sasl_header_of_another_version(case: Case10, body: ProtocolHeader) -> None:
    """A protocol header for SASL has another version than 1.0.0.

    Demands: A SASL layer starts with the header AMQP, id 3, 1.0.0 from each peer, under the version rules of
    transport.
    Source: security.xml section sasl
    Evidence: first octets per direction
    Why it matters: Only version 1.0.0 of the SASL layer exists. The other peer cannot know what is meant, and
    refuses the connection.
    Silent when: the header was not captured. SASL frames without one are told by C-HDR-FIRST.
    How to mend it: Send the octets `AMQP`, 3, 1, 0, 0 to start the SASL layer. If you support AMQP 0-9-1 too,
    do not reuse its version octets.
    """
    case.report(
        SA_HDR,
        f"the protocol header for SASL has version {body.major}.{body.minor}.{body.revision}",
    )


TL_HDR: Final = RULES.rule("TL-HDR", "MUST", "keyword")


def tls_header_of_another_version(case: Case10, body: ProtocolHeader) -> None:
    """A peer sends a TLS protocol header with another version than 1.0.0.

    Demands: In-band TLS starts with the header AMQP, id 2, 1.0.0 from each peer, under the version rules of
    transport.
    Source: security.xml section tls
    Evidence: first octets per direction
    Why it matters: Only version 1.0.0 of the TLS layer exists. The other peer cannot know what is meant, and
    refuses the connection.
    Silent when: the header was not captured.
    How to mend it: Send the octets `AMQP`, 2, 1, 0, 0 to start TLS in band. The version is that of the AMQP
    security layer, not the version of TLS.
    """
    case.report(
        TL_HDR,
        f"the protocol header for TLS has version {body.major}.{body.minor}.{body.revision}",
    )


TL_PURE: Final = RULES.rule("TL-PURE", "SHOULD NOT", "lower-case", by="server")


def tls_header_at_the_tls_port(case: Case10) -> None:
    """A server at port 5671 exchanges a TLS protocol header (protocol id 2) before TLS.

    Demands: A listener on 5671 (amqps) expects TLS at once, without the AMQP id-2 header.
    Source: transport.xml section definitions > SECURE-PORT; security.xml section tls > Alternative
    Establishment
    Evidence: port 5671 and first octets
    Why it matters: At port 5671, clients expect TLS to start at once. Clients that follow the specification
    cannot connect.
    Silent when: the server uses another port than 5671.
    Only possible because: A port may be assigned to any service.
    How to mend it: On port 5671, start the TLS handshake immediately after the TCP connection is established.
    Offer TLS with the protocol header (protocol id 2) only on other ports.
    """
    case.report(TL_PURE, f"a header for TLS is sent at port {SECURE_PORT}", POSSIBLE)


C_CLOSE_NOREUSE: Final = RULES.rule("C-CLOSE-NOREUSE", "SHOULD NOT", "keyword")


def reused_after_both_closes(case: Case10) -> None:
    """A peer sends a protocol header on a TCP connection on which both peers have sent close.

    Demands: A TCP connection should not be reused after both closes.
    Source: transport.xml section connections > Closing a Connection
    Evidence: new header after both closes
    Why it matters: A TCP connection carries one AMQP connection. The other peer is about to end the TCP
    connection, so the new AMQP connection fails.
    Silent when: one of the closes was not captured, or may not have been received. The finding is only
    possible, not certain, when octets were not captured, because the other peer may have begun a new
    connection.
    Possible because: Octets are missing. Among them may be the start of a new connection.
    How to mend it: After both peers have sent close, end the TCP connection. Open a new TCP connection for
    the next AMQP connection.
    """
    me = case.me
    case.report(
        C_CLOSE_NOREUSE,
        f"a protocol header is sent after both closes, the peer's in packet {case.peer.closing.packet}",
        CERTAIN if me.closing.stands else POSSIBLE,
        {"connection_state": me.state},
        [int(me.closing.packet), int(case.peer.closing.packet)],
    )


def judge_header(case: Case10, body: ProtocolHeader) -> None:
    """The rules about a protocol header."""
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

    Demands: After a header mismatch a peer should go on reading until the other side ends its stream.
    Source: transport.xml section version-negotiation
    Evidence: TCP teardown order
    Why it matters: The reset may discard octets that the other peer has not read yet, such as the protocol
    header that shows what is supported.
    Silent when: the other peer had ended its stream, or octets were not captured.
    Only possible because: The capture does not show whether the program or the host of the {peer} reset the
    connection.
    How to mend it: After a header mismatch, end only your sending side and go on reading until the other peer
    ends its stream or a time-out passes. Then close the socket.
    """
    case.report(
        C_HDR_MISMATCH_READ,
        "the connection is reset after headers that differ",
        POSSIBLE,
        {"peer_header": _written(case.me.headers.theirs)},
        [int(case.me.headers.their_packet)],
    )


def judge_end(case: Case10, reason: str, after_peer: bool) -> None:
    """The rules about the end of a stream after headers that differ, to which `case.spot` points."""
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

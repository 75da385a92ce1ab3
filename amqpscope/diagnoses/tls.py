"""Why TLS failed, as far as alerts and ends of TCP tell."""

import datetime
from typing import Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.declaration import MAY_END, NO_OPENING, Limit, declare
from amqpscope.diagnoses.notebook import SECOND, Notebook, duration
from amqpscope.model.records import CLIENT, SERVER, Connection
from amqpscope.model.tls_facts import Certificate, TlsAlert, TlsFacts

__all__ = ["TLS_ALERT", "TLS_STALLED", "TLS_UNANSWERED", "tls_failures"]

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

TLS_ALERT: Final = declare(
    "tls-alert",
    (),
    """A peer ends TLS with an alert.

    What it means: The handshake or the connection fails. The alert gives the reason in one word.
    Usual causes: A certificate is not trusted, has expired, or belongs to another host. Another cause is that
    the peers have no TLS version or no cipher suite in common.
    Who has to act: Both peers: one peer has a certificate or configuration that the other peer rejects.
    Client: Trust the authority of the server's certificate. Connect to the host name that the certificate
    contains.
    Server: Renew the certificate. Send the whole certificate chain.
    Not reported when: the alert is the usual close_notify, or cannot be read.
    Discussions: rabbitmq/rabbitmq-server#3663, docker-library/rabbitmq#532
    """,
    explains=(NO_OPENING,),
)

TLS_UNANSWERED: Final = declare(
    "tls-unanswered",
    (),
    """A server ends the connection without an answer to the ClientHello.

    What it means: The program at the port does not accept TLS, or does not accept TLS from this client.
    Usual causes: The client uses TLS on a port without TLS, or a proxy has no server with the host name that
    the client requests.
    Who has to act: The client.
    Client: Check the port and the host name.
    Server: Read the log of the proxy.
    Not reported when: the server sends any answer.
    Discussions: rabbitmq/rabbitmq-server#2944, rabbitmq/rabbitmq-server#13559
    """,
    explains=(NO_OPENING,),
)

TLS_STALLED: Final = declare(
    "tls-stalled",
    (),
    """A TLS handshake stops, and one peer waits for the other peer.

    What it means: One peer has sent its part of the handshake. The other peer is still connected, but does
    not continue the handshake.
    Usual causes: A server is overloaded, or a proxy cannot reach its server. A small device needs more time
    for the handshake than the server allows. The packets with a large certificate do not arrive.
    Who has to act: The peer that does not continue the handshake.
    Client: Set a timeout for the TLS handshake. If the client is slow, increase the handshake timeout of the
    server.
    Server: Check the load of the server, and its timeout for the handshake (RabbitMQ: ssl_handshake_timeout).
    Not reported when: the handshake is complete, a peer sends an alert, or the capture lacks octets of the
    handshake.
    Discussions: rabbitmq/rabbitmq-server#11171, rabbitmq/rabbitmq-dotnet-client#501, celery/py-amqp#398
    """,
    Limit("seconds", 3, "a handshake takes only a few round trips, and RabbitMQ waits for at most 5 s"),
    explains=(MAY_END,),
)

_CLOSING: Final = ("close_notify", "user_canceled", "encrypted")
"""Alerts that are no fault."""

_CERTIFICATES: Final = {
    "unknown_ca": "does not trust the authority that issued the certificate of the {other}",
    "bad_certificate": "rejects the certificate of the {other}",
    "unsupported_certificate": "does not support the kind of certificate of the {other}",
    "certificate_revoked": "rejects the certificate of the {other}, which was revoked",
    "certificate_expired": "rejects the certificate of the {other}, which is not valid at this time",
    "certificate_unknown": "rejects the certificate of the {other}, which is not trusted or names "
    "another host",
    "certificate_required": "requires a certificate of the {other}, which sent none",
}
"""What an alert about a certificate says, behind its sender."""

_OTHERS: Final = {
    "protocol_version": "supports no TLS version that the {other} offers",
    "insufficient_security": "requires stronger cipher suites than the {other} offers",
    "no_application_protocol": "supports no application protocol (ALPN) that the {other} offers",
    "unrecognized_name": "has no certificate for the host name that the {other} asks for",
    "handshake_failure": "finds no common cipher suite or parameter",
    "unknown_psk_identity": "does not know the pre-shared key (PSK) that the {other} wants to use",
}


def tls_failures(notebook: Notebook, analysis: ConnectionAnalysis) -> None:
    """Note why the TLS of a connection failed."""
    connection = analysis.connection
    facts = connection.tls
    if facts is None:
        return
    alerts = [alert for alert in facts.alerts if alert.name not in _CLOSING]
    for alert in alerts:
        figures = {"alert": alert.name, "peer": connection.peer(alert.direction)}
        notebook.add(TLS_ALERT, "tls", "", alert.packet, _alert_text(connection, facts, alert), figures)
    if not alerts and not facts.version:
        server = 1 - int(facts.client)
        seen = analysis.tcp.facts(server)
        how = _ENDS.get(seen.ended)
        if how is not None and seen.delivered == 0 and seen.missing == 0:
            text = f"the server did not answer the ClientHello, and {how}"
            hello = analysis.tcp.facts(1 - server).first_packet
            notebook.add(TLS_UNANSWERED, "tls", "client", hello, text, {"ended": seen.ended})
            return
    if not facts.alerts:
        _stalled(notebook, analysis, facts)


_ENDS: Final = {"fin": "closed the TCP connection", "rst": "reset the TCP connection"}


def _stalled(notebook: Notebook, analysis: ConnectionAnalysis, facts: TlsFacts) -> None:
    """Note who did not go on with the handshake. Its parts come in turn: who spoke last waits."""
    if facts.agreed or facts.established or not facts.client_packet or notebook.lossy:
        return
    by_server = facts.server_packet > facts.client_packet
    since = facts.server_time if by_server else facts.client_time
    packet = facts.server_packet if by_server else facts.client_packet
    # Sides are those of AMQP: the client of TLS is the client.
    side = 0 if by_server else 1
    if notebook.direction(side) != (facts.client if side == 0 else 1 - facts.client):
        return
    waits, awaited = (SERVER, CLIENT) if by_server else (CLIENT, SERVER)
    if not notebook.idle(side, since, notebook.end_time, notebook.limit(TLS_STALLED)):
        return
    seconds = (notebook.end_time - since) / SECOND
    asked = "the next part" if facts.version else "the answer to the ClientHello"
    text = f"the {waits} waited {duration(seconds)} for {asked} of the TLS handshake from the {awaited}"
    ended = analysis.tcp.facts(notebook.direction(notebook.end_side)).ended if notebook.end_side >= 0 else ""
    if ended in _ENDS:
        text += f", and then the {CLIENT if notebook.end_side == 0 else SERVER} {_ENDS[ended]}"
    notebook.add(
        TLS_STALLED,
        "tls",
        awaited,
        packet,
        text,
        {"awaited": awaited},
        seconds=seconds,
        ended=notebook.end_packet,
    )


def _alert_text(connection: Connection, facts: TlsFacts, alert: TlsAlert) -> str:
    """What an alert means."""
    peer = connection.peer(alert.direction)
    other = connection.peer(1 - int(alert.direction))
    by_server = int(alert.direction) != int(facts.client)
    text = _CERTIFICATES.get(alert.name) or _OTHERS.get(alert.name)
    if by_server and facts.certificate_refused and alert.name in ("handshake_failure", "bad_certificate"):
        text = _CERTIFICATES["certificate_required"]
    said = f"the {peer} sent the TLS alert {alert.name}"
    if text is None:
        return said
    certificate = facts.client_certificate if by_server else facts.server_certificate
    detail = ""
    if alert.name in _CERTIFICATES and certificate is not None:
        detail = f" (valid {_validity(certificate)})"
    return f"{said}: the {peer} {text.format(other=other)}{detail}"


def _validity(certificate: Certificate) -> str:
    return f"{_day(certificate.begins)} to {_day(certificate.ends)}"


def _day(seconds: int) -> str:
    return (_EPOCH + datetime.timedelta(seconds=int(seconds))).date().isoformat()

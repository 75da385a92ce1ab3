"""What the TLS of a connection shows: for people, for JSON, and why a handshake failed."""

import datetime
from typing import Any, Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.model.records import Connection
from amqpscope.model.tls_facts import Certificate, TlsAlert, TlsFacts
from amqpscope.report.diagnosis import Diagnosed
from amqpscope.report.line import Line
from amqpscope.report.value_text import text_word

__all__ = ["tls_diagnoses", "tls_lines", "tls_object"]

_WIDTH: Final = 64

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)

_CLOSING: Final = ("close_notify", "user_canceled", "encrypted")
"""Alerts that are no fault."""

_CERTIFICATES: Final = {
    "unknown_ca": "does not trust the authority that issued the certificate of the {other}",
    "bad_certificate": "rejects the certificate of the {other}",
    "unsupported_certificate": "does not support the kind of certificate of the {other}",
    "certificate_revoked": "rejects the certificate of the {other}, which was revoked",
    "certificate_expired": "rejects the certificate of the {other}, which is not valid at this time",
    "certificate_unknown": "rejects the certificate of the {other}: it is not trusted, or names another host",
    "certificate_required": "requires a certificate of the {other}, which sent none",
}
"""What an alert about a certificate says, behind its sender."""

_OTHERS: Final = {
    "protocol_version": "supports no TLS version that the {other} offers",
    "insufficient_security": "requires stronger cipher suites than the {other} offers",
    "no_application_protocol": "supports no application protocol (ALPN) that the {other} offers",
    "unrecognized_name": "has no certificate for the host name that the {other} asks for",
    "handshake_failure": "finds no common cipher suite or parameter",
    "unknown_psk_identity": "does not know the key (PSK) that the {other} names",
}


def tls_lines(connection: Connection) -> list[Line]:
    """Lines of a summary."""
    facts = connection.tls
    if facts is None:
        return []
    words = [word for word in (facts.version or "TLS", facts.suite) if word]
    if facts.server_name:
        words.append(f"server name {text_word(facts.server_name, _WIDTH)}")
    if facts.alpn:
        words.append(f"ALPN {text_word(facts.alpn, _WIDTH)}")
    words.append("decrypted" if facts.decrypted and not facts.unread else "not decrypted")
    lines: list[Line] = [[("", "  " + ", ".join(words))]]
    for owner, certificate in (("server", facts.server_certificate), ("client", facts.client_certificate)):
        if certificate is not None:
            subject = text_word(certificate.subject, _WIDTH) if certificate.subject else "(no subject)"
            lines.append([("", f"  certificate of the {owner}: {subject}, valid {_validity(certificate)}")])
    return lines


def tls_object(connection: Connection) -> dict[str, Any] | None:
    """The same for JSON; None without TLS."""
    facts = connection.tls
    if facts is None:
        return None
    return {
        "version": facts.version or None,
        "cipher_suite": facts.suite or None,
        "server_name": facts.server_name or None,
        "alpn": facts.alpn or None,
        "alpn_offered": facts.offered,
        "client_random": facts.random or None,
        "decrypted": facts.decrypted and not facts.unread,
        "not_decrypted_because": facts.unread or None,
        "server_certificate": _certificate_object(facts.server_certificate),
        "client_certificate": _certificate_object(facts.client_certificate),
        "alerts": [
            {
                "peer": connection.peer(alert.direction),
                "level": "fatal" if alert.fatal else "warning",
                "description": alert.name,
                "packet": int(alert.packet),
            }
            for alert in facts.alerts
        ],
    }


def tls_diagnoses(analysis: ConnectionAnalysis) -> list[Diagnosed]:
    """Why TLS failed, as far as alerts and ends of TCP tell."""
    connection = analysis.connection
    facts = connection.tls
    if facts is None:
        return []
    found = [
        Diagnosed("diag/tls-alert", int(alert.packet), _alert_text(connection, facts, alert))
        for alert in facts.alerts
        if alert.name not in _CLOSING
    ]
    if not found and not facts.version:
        server = 1 - int(facts.client)
        ended = analysis.tcp.facts(server).ended
        how = {"fin": "closed the TCP connection", "rst": "reset the TCP connection"}.get(ended)
        if how is not None and analysis.tcp.facts(server).delivered == 0:
            text = f"the server did not answer the ClientHello and {how}"
            found.append(Diagnosed("diag/tls-unanswered", 0, text))
    return found


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
    return f"{said}: it {text.format(other=other)}{detail}"


def _validity(certificate: Certificate) -> str:
    return f"{_day(certificate.begins)} to {_day(certificate.ends)}"


def _day(seconds: int) -> str:
    return _moment(seconds)[:10]


def _moment(seconds: int) -> str:
    """Seconds since 1970, maybe in the year 9999, as ISO 8601 in UTC."""
    return (_EPOCH + datetime.timedelta(seconds=int(seconds))).isoformat(timespec="seconds")[:19] + "Z"


def _certificate_object(certificate: Certificate | None) -> dict[str, Any] | None:
    if certificate is None:
        return None
    return {
        "subject": certificate.subject,
        "issuer": certificate.issuer,
        "names": certificate.names,
        "not_before": _moment(certificate.begins),
        "not_after": _moment(certificate.ends),
    }

"""What the TLS of a connection shows: for people, and for JSON."""

import datetime
from typing import Any, Final

from amqpscope.model.records import Connection
from amqpscope.model.tls_facts import Certificate
from amqpscope.report.line import Line
from amqpscope.report.value_text import text_word

__all__ = ["tls_lines", "tls_object"]

_WIDTH: Final = 64

_NAMES: Final = 4
"""Names of a certificate that are shown."""

_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


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
            lines.append([("", f"  certificate of the {owner}: {_certificate_text(certificate)}")])
    for alert in facts.alerts:
        level = "fatal " if alert.fatal else ""
        text = f"  {level}alert {alert.name} of the {connection.peer(alert.direction)}, packet {alert.packet}"
        lines.append([("error" if alert.fatal and alert.name != "encrypted" else "", text)])
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


def _certificate_text(certificate: Certificate) -> str:
    """The owner, the issuer, the names and the validity."""
    subject = text_word(certificate.subject, _WIDTH) if certificate.subject else "(no subject)"
    words = [subject]
    if certificate.issuer == certificate.subject:
        words.append("issued by itself")
    elif certificate.issuer:
        words.append(f"issued by {text_word(certificate.issuer, _WIDTH)}")
    if certificate.names:
        more = len(certificate.names) - _NAMES
        names = ", ".join(text_word(name, _WIDTH) for name in certificate.names[:_NAMES])
        words.append(f"for {names}" + (f" and {more} more" if more > 0 else ""))
    words.append(f"valid {_validity(certificate)}")
    return ", ".join(words)


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

"""TLS inside an AMQP connection: the readable part of its first record (security.xml, "tls")."""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.model.records import CLIENT
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from dissectors.tls import TlsHello

__all__ = ["judge_hello"]

RULES: Final = Rules("amqp10/tls")


TL_ROLE: Final = RULES.rule("TL-ROLE", "MUST", "definition")


def role_reversed(case: Case10) -> None:
    """The TCP client acts as TLS server, or the TCP server acts as TLS client.

    Demands: The TCP client must be the TLS client.
    Source: security.xml section tls
    Evidence: the direction of the ClientHello
    Why it matters: With reversed roles, both peers wait for a ClientHello, or both peers send a ClientHello.
    The handshake fails.
    Silent when: the capture does not show which peer opened the connection, or when the first TLS record was
    not captured.
    How to mend it: Start the TLS handshake as TLS client on the side that opened the TCP connection. On the
    side that accepted the TCP connection, act as TLS server. Check which of the two roles the code passes to
    the TLS library.
    """
    me = case.me
    what = "server" if me.peer == CLIENT else "client"
    case.report(
        TL_ROLE,
        f"the {me.peer} sends a {what.capitalize()}Hello, so the {me.peer} acts as the TLS {what}, "
        "but the TCP client must be the TLS client",
    )


TL_SNI: Final = RULES.rule("TL-SNI", "SHOULD", "keyword", by="client")


def hello_without_server_name(case: Case10) -> None:
    """A TLS client does not send the server name extension in its ClientHello.

    Demands: The TLS client should send the server name extension.
    Source: security.xml section tls
    Evidence: the server name extension of the ClientHello
    Why it matters: A server with several names cannot know which certificate to present, so certificate
    verification may fail or the wrong virtual host answers.
    Silent when: a part of the ClientHello was not captured, or when the ClientHello extends over several TLS
    records.
    Only possible because: A client that connects to an IP address without a host name has no server name to
    send.
    How to mend it: Before the handshake, pass the host name of the server to the TLS library as the server
    name. Do not pass the resolved IP address.
    """
    case.report(TL_SNI, "the ClientHello has no server name", POSSIBLE)


def judge_hello(case: Case10, body: TlsHello) -> None:
    """Judge the first TLS record."""
    if not case.me.whole:
        return
    if body.client != (case.me.peer == CLIENT):
        role_reversed(case)
    elif not body.names_server:
        hello_without_server_name(case)

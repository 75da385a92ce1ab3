"""The words that all pictures share."""

from amqpscope.model.finding import Finding
from amqpscope.model.passwords import without_password
from amqpscope.model.records import CLIENT, Connection, endpoint
from amqpscope.protocols import label
from amqpscope.report.finding_counts import kind
from amqpscope.report.findings import message_of
from amqpscope.report.printable import cut, printable
from amqpscope.report.who import who

__all__ = ["finding_text", "heading_text", "peer_text", "wire_name"]


def heading_text(connection: Connection) -> str:
    """`connection 3, AMQP 1.0`."""
    again = f" #{connection.instance}" if connection.instance else ""
    return f"connection {connection.stream}{again}, {label(connection.protocol)}"


def peer_text(connection: Connection, peer: str) -> tuple[str, str]:
    """The name of a peer, or its role if it gives none; and its role and address."""
    first = connection.client_end()
    address = endpoint(*connection.end(first if peer == CLIENT else 1 - first))
    name = who(connection, peer)
    return name or peer, f"{peer} {address}"


def finding_text(finding: Finding, by: str) -> str:
    """`× possible error amqp10/L-CREDIT: a delivery is sent with link-credit 0`. by: see `Arrow.at_fault`."""
    return f"× {kind(finding)} {printable(finding.rule)}{by}: {printable(message_of(finding))}"


def wire_name(text: str | None) -> str:
    """The name of a link, queue or address as a label: without a password, and not too long."""
    return "" if text is None else cut(printable(without_password(text[:256])), 60)

"""Who a peer is, for people: what it calls itself, and its product; never only its port."""

from amqpscope.model.records import CLIENT, SERVER, Connection, endpoint
from amqpscope.report.line import Line
from amqpscope.report.printable import cut, printable
from amqpscope.report.value_text import text_word

__all__ = ["ends", "peer_line", "short_name", "who"]

_NAME = 32
_PRODUCT = 40


def who(connection: Connection, peer: str) -> str:
    """`till (Pika Python Client Library 1.4.4)`, as much of that as the peer has said; "" if nothing."""
    said = connection.name_of(peer)
    name = text_word(said.name, _NAME) if said.name else ""
    product = cut(printable(said.product[:_PRODUCT]), _PRODUCT)
    if name and product:
        return f"{name} ({product})"
    return name or product


def short_name(connection: Connection, peer: str) -> str:
    """The name of a peer, else its address and port, behind its product if that is known."""
    said = connection.name_of(peer)
    if said.name:
        return text_word(said.name, _NAME)
    address = endpoint(*connection.end(_direction(connection, peer)))
    if said.product:
        return f"{cut(printable(said.product[:_PRODUCT]), _PRODUCT)} at {address}"
    return address


def ends(connection: str) -> str:
    """The ends in the id of a connection, client first: `10.0.0.1:51034 → 10.0.0.2:5672`.

    If several connections had these ends, one after the other, it names the connection among them.
    """
    text, _, instance = connection.rpartition("#")
    again = f", connection {int(instance) + 1} of these ends" if instance.strip("0") else ""
    return printable(text.replace(">", " → ") + again)


def peer_line(connection: Connection, peer: str, packet: int = 0) -> Line:
    """`client 10.0.0.1:51034 till (Pika Python Client Library 1.4.4)`.

    packet: a name that was said in this one or later is left out; 0 for none.
    """
    line: Line = [(peer, f"{peer} {endpoint(*connection.end(_direction(connection, peer)))}")]
    known = "" if 0 < packet <= connection.name_of(peer).packet else who(connection, peer)
    return [*line, ("", f" {known}")] if known else line


def _direction(connection: Connection, peer: str) -> int:
    first = connection.client_end()
    return {CLIENT: first, SERVER: 1 - first}[peer]

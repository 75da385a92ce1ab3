"""Where a layer between TCP and AMQP begins on a connection; and why there is none where one was expected."""

from amqpscope.layers.interface import LayerContext, PlainStream
from amqpscope.layers.secrets import Secrets
from amqpscope.layers.stack import LayerStack, may_begin
from amqpscope.model.note import ConnectionNotes
from amqpscope.model.records import Connection
from amqpscope.reassembly.connection import TcpConnection
from dissectors.wire import i64

__all__ = ["beginning_stack", "headless_stack", "joined_stack", "note_sealed"]


def beginning_stack(
    context: LayerContext,
    tcp: TcpConnection,
    first: PlainStream,
    second: PlainStream,
    direction: i64,
    octets: bytes,
) -> LayerStack | None:
    """What chooses the layer that may begin with the first octets of a direction; None if none may.

    first, second: what takes the octets of the two directions where there is no layer.
    """
    opener = tcp.opener()
    midstream = tcp.stream(direction).start.midstream
    if not may_begin(octets, direction, opener in (direction, -1), midstream, context.secrets):
        return None
    other = tcp.stream(1 - direction)
    passed: i64 = -1
    if other.next > 0 or (other.start.midstream and not midstream):
        passed = 1 - direction
    return LayerStack(context, first, second, passed, (opener in (0, -1), opener in (1, -1)), midstream)


def headless_stack(
    context: LayerContext, tcp: TcpConnection, first: PlainStream, second: PlainStream, direction: i64
) -> LayerStack | None:
    """What waits for the other direction where the first octets of one are missing: a server may answer them
    in TLS. None if the other direction has begun.
    """
    if tcp.stream(direction).start.midstream or tcp.stream(1 - direction).next > 0:
        return None
    opener = tcp.opener()
    return LayerStack(context, first, second, -1, (opener in (0, -1), opener in (1, -1)))


def joined_stack(
    context: LayerContext,
    tcp: TcpConnection,
    first: PlainStream,
    second: PlainStream,
    direction: i64,
    offset: i64,
) -> LayerStack:
    """What reads a layer whose beginning was not captured, from this octet of a direction on."""
    stack = LayerStack(context, first, second, -1, (True, True))
    other = tcp.stream(1 - direction).next
    at_first, at_second = (offset, other) if direction == 0 else (other, offset)
    stack.join(max(tcp.opener(), 0), at_first, at_second)
    return stack


def note_sealed(connection: Connection, tcp: TcpConnection, secrets: Secrets, notes: ConnectionNotes) -> None:
    """Note why there are secrets and TLS was not decrypted, if no layer has."""
    if connection.tls is not None or not secrets.given:
        return
    for direction in (0, 1):
        if tcp.stream(direction).start.midstream or tcp.facts(direction).missing > 0:
            what = "TLS is not decrypted: the beginning of the connection was not captured"
            notes.report("capture/tls", 0, 0, what)
            return

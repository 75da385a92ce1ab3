"""Makes findings of the faults of a WebSocket layer."""

from typing import Any, Final

from amqpscope.model import websocket_faults as faults
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.model.layer_fault import LayerFault
from amqpscope.model.records import Connection, FrameRef
from amqpscope.protocols import PROTOCOLS
from amqpscope.rules.ws import frames, handshake

__all__ = ["judge_faults"]

_RULES: Final = {
    faults.ACCEPT: handshake.WS_ACCEPT,
    faults.SUBPROTOCOL: handshake.WS_SUBPROTOCOL,
    faults.EXTENSION: handshake.WS_EXTENSION,
    faults.UNMASKED: frames.WS_MASK,
    faults.MASKED: frames.WS_UNMASKED,
    faults.RESERVED_BIT: frames.WS_RSV,
    faults.OPCODE: frames.WS_OPCODE,
    faults.CONTROL: frames.WS_CONTROL,
    faults.FRAGMENT: frames.WS_FRAGMENT,
    faults.LENGTH: frames.WS_LENGTH,
    faults.CLOSE_CODE: frames.WS_CLOSE_CODE,
    faults.AFTER_CLOSE: frames.WS_AFTER_CLOSE,
    faults.TEXT_MESSAGE: frames.WS_BINARY,
}
"""The rule that each fault breaks."""


def judge_faults(connection: Connection, found: list[LayerFault], doubtful: bool) -> list[Finding]:
    """The findings of these faults.

    doubtful: one peer may have accepted an RST that the other peer did not send, so that nothing is certain.
    """
    findings = []
    for fault in found:
        if fault.name == faults.TEXT_MESSAGE and not _has_binding(connection):
            continue
        spot = FrameRef(fault.direction, fault.packet, fault.time, fault.offset, fault.what, -1)
        evidence: dict[str, Any] = {"rst_in_doubt": True} if doubtful else {}
        certainty = POSSIBLE if doubtful else CERTAIN
        findings.append(Finding(_RULES[fault.name], certainty, fault.message, connection, spot, evidence, []))
    return findings


def _has_binding(connection: Connection) -> bool:
    """Whether the WebSocket binding of AMQP 1.0 holds: AMQP 0-9-1 has none."""
    protocol = PROTOCOLS.get(connection.protocol)
    websocket = connection.websocket
    return (protocol is not None and protocol.websocket_binding) or (
        websocket is not None and websocket.for_amqp()
    )

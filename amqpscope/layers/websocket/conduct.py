"""What one WebSocket peer does wrong: in its handshake, and frame by frame.

Nothing is reported behind octets that were not captured: what looks like a header there may be none.
"""

import base64
import hashlib
from typing import Any, Final

from amqpscope.layers.http_head import HttpHead
from amqpscope.layers.interface import LayerContext
from amqpscope.layers.websocket.frames import BINARY, CONTINUATION, TEXT, FrameHeader, Malformed
from amqpscope.layers.websocket.subprotocols import shown_name
from amqpscope.model import websocket_faults as faults
from amqpscope.model.layer_fault import LayerFault
from amqpscope.reassembly.provenance import Provenance

__all__ = ["DEFLATE", "Conduct", "extension_names"]

DEFLATE: Final = "permessage-deflate"
"""The extension of RFC 7692."""

_MAGIC: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
"""What a server appends to the client's key (RFC 6455, section 1.3)."""

_NEVER_SENT: Final = (1005, 1006, 1015)
"""Close codes that stand for something and are in no close frame (section 7.4.1)."""

_SHOWN: Final = 64
"""Characters of a name of the wire that a message shows."""


def extension_names(head: HttpHead) -> list[str]:
    """The names of the extensions in a request or response."""
    return [word.split(";")[0].strip().lower() for word in head.words("sec-websocket-extensions")]


class Conduct:
    """Watches one direction. direction: of the peer. client: the peer is the WebSocket client."""

    def __init__(self, context: LayerContext, direction: int, client: bool) -> None:
        self.context = context
        self.direction = direction
        self.client = client
        # Octets were lost, or an extension was agreed that may give frames another form: nothing is judged.
        self.silent = False
        # A message is under way that is not in its last frame; the peer has sent a close frame.
        self.fragmented = False
        self.closed = False
        # Where the frame begins.
        self.offset = 0
        self.packet = 0
        self.time = 0
        # What is wrong with the response, until its packet is known.
        self.response: list[tuple[str, str]] = []

    def agree(self, request: HttpHead, response: HttpHead) -> None:
        """Compare the server's response with the request. This is the server's direction."""
        key = request.fields.get("sec-websocket-key", "")
        digest = hashlib.sha1(key.encode("latin-1") + _MAGIC, usedforsecurity=False).digest()
        accepted = response.fields.get("sec-websocket-accept", "")
        if key and accepted != base64.b64encode(digest).decode("ascii"):
            what = "does not fit the client's Sec-WebSocket-Key" if accepted else "is missing"
            self.response.append((faults.ACCEPT, f"the Sec-WebSocket-Accept of the response {what}"))
        offered = [word.lower() for word in request.words("sec-websocket-protocol")]
        chosen = response.fields.get("sec-websocket-protocol", "")
        if chosen and chosen.lower() not in offered:
            name = shown_name(chosen)
            self.response.append(
                (
                    faults.SUBPROTOCOL,
                    (f"the server chooses the subprotocol {name}, which the client did not offer"),
                )
            )
        known = extension_names(request)
        for extension in extension_names(response):
            if extension not in known:
                name = extension[:_SHOWN]
                self.response.append(
                    (
                        faults.EXTENSION,
                        (f"the server chooses the extension {name}, which the client did not offer"),
                    )
                )

    def responded(self, offset: int, provenance: Provenance) -> None:
        """The response stands here."""
        for name, message in self.response:
            packet, time = provenance.packet, provenance.time
            what = "websocket handshake"
            self.context.faults.add(LayerFault(name, self.direction, offset, packet, time, what, message))
        self.response = []

    def begin(self, offset: int, provenance: Provenance) -> None:
        """A frame begins here."""
        self.offset = offset
        self.packet = provenance.packet
        self.time = provenance.time

    def malformed(self, what: Malformed) -> None:
        """There is no header where one has to be."""
        if what.fault:
            self.report(what.fault, what.message)

    def frame(self, header: FrameHeader, deflate: bool) -> None:
        """A whole header. deflate: messages may be compressed."""
        masked = len(header.key) > 0
        if self.client and not masked:
            self.report(faults.UNMASKED, "the client sends a WebSocket frame without a mask")
        elif masked and not self.client:
            self.report(faults.MASKED, "the server sends a WebSocket frame with a mask")
        if header.compressed and (not deflate or header.control or header.opcode == CONTINUATION):
            why = (
                "no compression was agreed"
                if not deflate
                else ("only the first frame of a message may have this bit set")
            )
            self.report(faults.RESERVED_BIT, f"a WebSocket frame has the bit RSV1 set, but {why}")
        if not header.shortest:
            text = f"the length {header.length} is encoded in more octets than it needs"
            self.report(faults.LENGTH, text)
        if header.control:
            return
        if self.closed:
            self.report(faults.AFTER_CLOSE, "the peer sends a data frame after its own close frame")
        self.order(header)

    def order(self, header: FrameHeader) -> None:
        """The frames of a message follow one another."""
        if header.opcode == CONTINUATION and not self.fragmented:
            self.report(
                faults.FRAGMENT,
                "the peer sends a continuation frame, but there is no unfinished message to continue",
            )
        elif header.opcode in (TEXT, BINARY) and self.fragmented:
            self.report(faults.FRAGMENT, "a message begins before the previous message is complete")
        if header.opcode == TEXT:
            self.report(faults.TEXT_MESSAGE, "the peer sends a text message, but AMQP needs binary messages")
        self.fragmented = not header.final

    def close(self, payload: bytes) -> None:
        """A whole close frame."""
        self.closed = True
        if len(payload) == 1:
            self.report(
                faults.CLOSE_CODE,
                ("the payload of a close frame is one octet, which is too short for a close code"),
            )
        elif payload:
            code = int.from_bytes(payload[:2], "big")
            if code < 1000 or code in _NEVER_SENT:
                text = f"a WebSocket close frame has the code {code}, which no peer may send"
                self.report(faults.CLOSE_CODE, text)

    def lose(self) -> None:
        """Octets are missing."""
        self.silent = True

    def report(self, name: str, message: str) -> None:
        """The frame that began last breaks a rule."""
        if not self.silent:
            place = (self.direction, self.offset, self.packet, self.time)
            self.context.faults.add(LayerFault(name, *place, "websocket frame", message))

    def dump(self) -> tuple[Any, ...]:
        """The state, as plain values."""
        return (self.silent, self.fragmented, self.closed, self.offset, self.packet, self.time)

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go on where `dump` left off."""
        self.silent, self.fragmented, self.closed, self.offset, self.packet, self.time = state

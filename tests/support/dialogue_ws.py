"""Two AMQP 1.0 peers talk in WebSocket: the words of `support.dialogue`, each in a binary message of its own.

    d = DialogueWs()
    d.upgraded()                       # the request of the client, and the server's answer
    d.linked()
    d.client.message(b"...", first=0x81)
    d.goodbye()

The encoder is independent of the product.
"""

from __future__ import annotations

import base64
import hashlib

from support.conversation import Said, Speaker
from support.dialogue import Dialogue, Peer

__all__ = ["DialogueWs"]

MASK = b"\x11\x22\x33\x44"
NONCE = base64.b64encode(b"the sample nonce").decode()


class WsPeer(Peer):
    """One of the two."""

    def say(self, octets: bytes) -> Said:
        return self.message(octets)

    def message(self, octets: bytes, *, first: int = 0x82, mask: bool | None = None, wide: int = -1) -> Said:
        """One frame.

        first: its first octet. mask: None for what the role of the peer demands. wide: how many octets of
        extended length, -1 for the fewest.
        """
        size = len(octets)
        if wide < 0:
            wide = 0 if size < 126 else 2 if size < 0x10000 else 8
        length = bytes([{0: size, 2: 126, 8: 127}[wide]]) + (size.to_bytes(wide, "big") if wide else b"")
        if mask is None:
            mask = self.name == "client"
        if mask:
            length = bytes([length[0] | 0x80]) + length[1:] + MASK
            octets = bytes(octet ^ MASK[at % 4] for at, octet in enumerate(octets))
        return self.raw(bytes([first]) + length + octets)

    def raw(self, octets: bytes) -> Said:
        """Octets of the TCP stream."""
        return Speaker.say(self, octets)


class DialogueWs(Dialogue):
    """Their conversation."""

    namespace = "ws"
    speaker = WsPeer
    client: WsPeer
    server: WsPeer

    def upgraded(
        self,
        *,
        offer: str = "amqp",
        choose: str = "amqp",
        extensions: tuple[str, str] = ("", ""),
        key: str = "",
        status: str = "101 Switching Protocols",
    ) -> Said:
        """The handshake. extensions: offered, and agreed. key: what the server takes for the client's key."""
        offered, agreed = extensions
        request = {
            "Host": "broker.example",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Key": NONCE,
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Protocol": offer,
            "Sec-WebSocket-Extensions": offered,
        }
        magic = (key or NONCE) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        response = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Accept": base64.b64encode(hashlib.sha1(magic.encode()).digest()).decode(),
            "Sec-WebSocket-Protocol": choose,
            "Sec-WebSocket-Extensions": agreed,
        }
        self.client.raw(_head("GET /amqp HTTP/1.1", request)).called("request")
        return self.server.raw(_head(f"HTTP/1.1 {status}", response)).called("response")


def _head(line: str, fields: dict[str, str]) -> bytes:
    lines = [line, *(f"{name}: {value}" for name, value in fields.items() if value), "", ""]
    return "\r\n".join(lines).encode()

"""The handshake of WebSocket: what a server may accept."""

from typing import Final

from amqpscope.rules.declaration import Rules

RULES: Final = Rules("ws/handshake")


WS_ACCEPT: Final = RULES.rule("WS-ACCEPT", "MUST", "keyword", by="server")
"""A server accepts a WebSocket handshake with a Sec-WebSocket-Accept that does not fit the client's key.

Demands: Sec-WebSocket-Accept must be the Base64 form of a SHA-1 digest. The digest must be computed from the
client's Sec-WebSocket-Key and a fixed text.
Source: RFC 6455, section 4.2.2
Evidence: Sec-WebSocket-Key of the request, and Sec-WebSocket-Accept of the response
Why it matters: Sec-WebSocket-Accept proves that the server understood the request as WebSocket. Without a
correct Sec-WebSocket-Accept, clients close the connection.
Silent when: the request has no Sec-WebSocket-Key, or when a part of the handshake was not captured.
How to mend it: Compute Sec-WebSocket-Accept from the key of the same request. Look for a proxy that answers
from a cache.
"""


WS_SUBPROTOCOL: Final = RULES.rule("WS-SUBPROTOCOL", "MUST", "keyword", by="server")
"""A server chooses a subprotocol that the client did not offer.

Demands: A server may choose only a subprotocol that the client offers in Sec-WebSocket-Protocol. A
server that chooses no subprotocol must leave Sec-WebSocket-Protocol out.
Source: RFC 6455, section 4.2.2; AMQP WebSocket Binding 1.0, section 2.1
Evidence: Sec-WebSocket-Protocol of the request and of the response
Why it matters: Browsers and most libraries close such a connection before any AMQP frame.
Silent when: the names differ only in upper and lower case, or when a part of the handshake was not captured.
How to mend it: On the server, choose one of the names in the request. If the server supports none of the
names in the request, send no Sec-WebSocket-Protocol. On the client, offer the subprotocol `amqp`.
"""


WS_EXTENSION: Final = RULES.rule("WS-EXTENSION", "MUST", "keyword", by="server")
"""A server agrees on a WebSocket extension that the client did not offer.

Demands: A server may accept only extensions that the client offers in Sec-WebSocket-Extensions.
Source: RFC 6455, section 4.1; RFC 6455, section 9.1
Evidence: Sec-WebSocket-Extensions of the request and of the response
Why it matters: The client does not know the extension and closes the connection. If the client keeps the
connection open, it cannot read the frames that the extension changes.
Silent when: a part of the handshake was not captured.
How to mend it: On the server, or on the proxy in front of the server, accept only extensions that the request
offers.
"""

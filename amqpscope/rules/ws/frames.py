"""The frames of WebSocket, and the messages of AMQP in them."""

from typing import Final

from amqpscope.rules.declaration import Rules

RULES: Final = Rules("ws/frames")


WS_MASK: Final = RULES.rule("WS-MASK", "MUST", "keyword", by="client")
"""A client sends a WebSocket frame without a mask.

Demands: A client must mask all frames that it sends.
Source: RFC 6455, section 5.1; RFC 6455, section 5.3
Evidence: the bit MASK of the client's frames
Why it matters: A server has to close the connection, usually with the close code 1002. A proxy may treat
octets of the frames as HTTP.
Silent when: octets that the client sent before the frame were not captured. The rule is also silent when the
peers agreed on an extension that may change the form of frames.
How to mend it: Let the WebSocket library write the frames. A WebSocket library for servers does not mask
frames, so a client must not use such a library.
"""


WS_UNMASKED: Final = RULES.rule("WS-UNMASKED", "MUST NOT", "keyword", by="server")
"""A server sends a WebSocket frame with a mask.

Demands: A server must not mask any frame.
Source: RFC 6455, section 5.1
Evidence: the bit MASK of the server's frames
Why it matters: A client has to close the connection, usually with the close code 1002.
Silent when: octets that the server sent before the frame were not captured. The rule is also silent when the
peers agreed on an extension that may change the form of frames.
How to mend it: Let the WebSocket library write the frames, and use the library in the role of a server.
"""


WS_RSV: Final = RULES.rule("WS-RSV", "MUST", "keyword")
"""A peer sets a reserved bit of a WebSocket frame.

Demands: The bits RSV1, RSV2 and RSV3 must be 0 unless the peers agreed on an extension that defines these
bits. The extension permessage-deflate defines RSV1 for the first frame of a message.
Source: RFC 6455, section 5.2; RFC 7692, section 6
Evidence: the reserved bits, and Sec-WebSocket-Extensions of the response
Why it matters: The receiver has to close the connection. Often the octets are no frame at all, for example
because the peer wrote a wrong length in an earlier frame, or sent compressed data that the other peer cannot
decompress.
Silent when: octets that this peer sent before the frame were not captured, or when the peers agreed on an
extension other than permessage-deflate.
How to mend it: Compress messages only if the server's response contains the extension permessage-deflate.
Check the length of the previous frame.
"""


WS_OPCODE: Final = RULES.rule("WS-OPCODE", "illegal", "definition")
"""A peer sends a WebSocket frame with an opcode that is reserved.

Demands: The opcode of a frame must be 0, 1, 2, 8, 9 or 10.
Source: RFC 6455, section 5.2
Evidence: the opcode of the frame
Why it matters: The receiver has to close the connection. Often the octets are no frame at all, for example
because the sender wrote a wrong length in an earlier frame, or wrote AMQP to the TCP connection without a
WebSocket frame.
Silent when: octets that this peer sent before the frame were not captured, or when the peers agreed on an
extension that may define the opcode.
How to mend it: Send AMQP through the WebSocket library only. Check the length of the previous frame.
"""


WS_CONTROL: Final = RULES.rule("WS-CONTROL", "MUST", "keyword")
"""A peer sends a control frame that is fragmented, or has more than 125 octets.

Demands: A control frame (close, ping, pong) must not have more than 125 octets and must not be fragmented.
Source: RFC 6455, section 5.5
Evidence: the opcode, the length and the bit FIN of the frame
Why it matters: The receiver has to close the connection.
Silent when: octets that this peer sent before the frame were not captured. The rule is also silent when the
peers agreed on an extension that may change the form of frames.
How to mend it: Shorten the reason in a close frame to at most 123 octets, and send at most 125 octets in a
ping.
"""


WS_FRAGMENT: Final = RULES.rule("WS-FRAGMENT", "MUST", "keyword")
"""A peer mixes the fragments of several messages.

Demands: The first frame of a message must have the opcode of the message, and each further frame must have
the opcode 0. The last frame of a message must have the bit FIN set. No other message may begin between the
frames of a message.
Source: RFC 6455, section 5.4
Evidence: the opcodes and the bit FIN of the peer's data frames
Why it matters: The receiver has to close the connection. A receiver that does not close the connection
joins octets of two messages.
Silent when: octets that this peer sent before the frame were not captured. The rule is also silent when the
peers agreed on an extension that may change the form of frames.
How to mend it: Send one message after the other. If several threads send messages, protect each
whole message with a lock.
"""


WS_LENGTH: Final = RULES.rule("WS-LENGTH", "MUST", "keyword")
"""A peer encodes the length of a frame in more octets than the length needs, or sends a length of 2^63 or
more.

Demands: The length of a frame must be encoded in the fewest octets possible. In a length of eight octets,
the most significant bit must be 0.
Source: RFC 6455, section 5.2
Evidence: the length of the frame
Why it matters: Receivers may close the connection.
Silent when: octets that this peer sent before the frame were not captured. The rule is also silent when the
peers agreed on an extension that may change the form of frames.
How to mend it: Write lengths up to 125 in the second octet, lengths up to 65,535 in two octets, and larger
lengths in eight octets.
"""


WS_CLOSE_CODE: Final = RULES.rule("WS-CLOSE-CODE", "MUST NOT", "keyword")
"""A peer sends a close frame with a close code that a peer must not send.

Demands: The payload of a close frame must be empty or begin with a close code of two octets. Close codes
below 1000 must not be used, and 1005, 1006 and 1015 must never be sent.
Source: RFC 6455, section 5.5.1; RFC 6455, section 7.4.1; RFC 6455, section 7.4.2
Evidence: the payload of the close frame
Why it matters: The other peer closes the connection with a protocol error and does not learn the reason.
Silent when: octets that this peer sent before the frame were not captured. The rule is also silent when the
peers agreed on an extension that may change the form of frames.
How to mend it: Do not forward the close code of another connection. Send the close code 1000 for a normal
end, and 1011 for an error of the server.
"""


WS_AFTER_CLOSE: Final = RULES.rule("WS-AFTER-CLOSE", "MUST NOT", "keyword")
"""A peer sends a data frame after its close frame.

Demands: No data frame may follow a close frame of the same peer.
Source: RFC 6455, section 5.5.1
Evidence: the order of the peer's frames
Why it matters: The other peer ignores the frame, and the data of the frame is lost.
Silent when: octets that this peer sent before the frame were not captured. The rule is also silent when the
peers agreed on an extension that may change the form of frames.
How to mend it: Send all waiting data, including the AMQP close, before you send the close frame of the
WebSocket.
"""


WS_BINARY: Final = RULES.rule("WS-BINARY", "MUST", "keyword")
"""A peer sends a text message on a WebSocket that carries AMQP.

Demands: AMQP must be sent in binary messages.
Source: AMQP WebSocket Binding 1.0, section 2.4
Evidence: the opcode of the frame
Why it matters: AMQP octets are not UTF-8, but a text message has to be UTF-8. The receiver closes the
connection, or reads changed octets.
Silent when: the WebSocket carries no AMQP 1.0. The rule is also silent when octets that this peer sent before
the frame were not captured. The rule is also silent when the peers agreed on an extension that may change the
form of frames.
How to mend it: Pass octets, not a string, to the send function of the WebSocket library.
"""

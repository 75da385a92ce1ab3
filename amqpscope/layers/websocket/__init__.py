"""WebSocket (RFC 6455) as a layer: frames in, the octets of binary messages out.

AMQP frames may span messages and share them, so that messages are of no further meaning (AMQP WebSocket
Binding, section 2). `frames` reads headers, `inflate` undoes permessage-deflate (RFC 7692), `stream` is one
direction, `layer` the layer of a connection.
"""

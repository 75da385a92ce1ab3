"""Between the TCP stream and AMQP: TLS and WebSocket, where there are any.

Whatever takes one direction's octets is a `PlainStream`. The analysis of a direction is one; with
plain TCP it is what reassembly feeds, and there is nothing in between. A layer that unwraps
something is a `PlainStream` too, set in front of it: it takes the wire's octets and hands on the
plaintext, and says of each octet of plaintext which packet completed the record it came in: a record
is known to its receiver only when its last octet is acknowledged.
"""

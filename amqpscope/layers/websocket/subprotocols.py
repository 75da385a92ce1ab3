"""Names of subprotocols that may be shown. Clients that cannot send headers of their own, such as those in
browsers, may offer a token as one more subprotocol: a name that nobody knows may be one.
"""

from typing import Final

__all__ = ["shown_name"]

_HIDDEN: Final = "(hidden)"

_KNOWN: Final = frozenset(
    [
        *("amqp", "amqp10", "amqp1.0", "amqp-1.0", "amqp091", "amqp0-9-1", "amqp-0-9-1", "amqpwsb10"),
        *("binary", "base64", "text", "json", "cbor", "msgpack", "protobuf", "jsonrpc", "json-rpc"),
        *("mqtt", "mqttv3.1", "mqttv3.1.1", "stomp", "v10.stomp", "v11.stomp", "v12.stomp"),
        *("wamp", "wamp.2.json", "wamp.2.msgpack", "wamp.2.cbor", "graphql-ws", "graphql-transport-ws"),
        *("xmpp", "sip", "msrp", "soap", "coap", "nats", "kafka", "chat", "superchat", "echo"),
        *("ocpp1.2", "ocpp1.5", "ocpp1.6", "ocpp2.0", "ocpp2.0.1"),
    ]
)


def shown_name(name: str) -> str:
    """The name of a subprotocol as it is shown: itself if it is known, else a word that says it is hidden."""
    return name if name.lower() in _KNOWN or not name else _HIDDEN

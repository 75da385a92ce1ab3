"""The names of what a WebSocket peer can do wrong. `amqpscope.rules.ws` has a rule for each."""

from typing import Final

__all__ = [
    "ACCEPT",
    "AFTER_CLOSE",
    "CLOSE_CODE",
    "CONTROL",
    "EXTENSION",
    "FRAGMENT",
    "LENGTH",
    "MASKED",
    "OPCODE",
    "RESERVED_BIT",
    "SUBPROTOCOL",
    "TEXT_MESSAGE",
    "UNMASKED",
]

ACCEPT: Final = "accept"
SUBPROTOCOL: Final = "subprotocol"
EXTENSION: Final = "extension"
UNMASKED: Final = "unmasked"
MASKED: Final = "masked"
RESERVED_BIT: Final = "reserved-bit"
OPCODE: Final = "opcode"
CONTROL: Final = "control"
FRAGMENT: Final = "fragment"
LENGTH: Final = "length"
CLOSE_CODE: Final = "close-code"
AFTER_CLOSE: Final = "after-close"
TEXT_MESSAGE: Final = "text-message"

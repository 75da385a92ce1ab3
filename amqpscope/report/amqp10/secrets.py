"""What AMQP 1.0 says that is never shown.

* What a SASL exchange says beside mechanism names, host name and outcome code.
* Security tokens of claims-based security: bodies of messages to or from the node `$cbs`, and of those
  with the operation `put-token` or the subject `set-token`, wherever they are sent.
"""

from typing import Final

from amqpscope.tracking.amqp10.identity import Link, carries_tokens
from dissectors.amqp10.composite import Composite, Field
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Properties
from dissectors.amqp10.values import Described, Map
from dissectors.interface import Frame

__all__ = ["hides_body", "hides_field", "hides_raw", "is_unclear"]

# The descriptors of SASL's types (security.xml).
_SASL_CODES: Final = range(0x40, 0x45)
_SASL_SYMBOL: Final = "amqp:sasl-"


def hides_field(composite: Composite, field: Field, value: object) -> bool:
    """Whether a field's value is never shown."""
    if not composite.definition().is_sasl_frame:
        return field.secret
    return field.secret or field.type == "binary" or composite.is_odd(value)


def hides_raw(frame: Frame) -> bool:
    """Whether a frame's octets, or what they decode to, are never shown as they are.

    A SASL type may stand in any frame.
    """
    if frame.kind == "sasl":
        return True
    body = frame.body
    if isinstance(body, Composite):
        return body.definition().is_sasl_frame
    if isinstance(body, Described):
        descriptor = body.descriptor
        if isinstance(descriptor, int):
            return descriptor in _SASL_CODES
        return isinstance(descriptor, str) and descriptor.startswith(_SASL_SYMBOL)
    return False


def is_unclear(message: Message) -> bool:
    """Whether one section of a message may hold what belongs to another."""
    if message.is_sound():
        return False
    message.sections()
    return not message.complete or bool(message.problems)


def hides_body(message: Message, link: Link | None, doubtful: bool) -> bool:
    """Whether a message's body is never shown. doubtful: see `LinkNames.may_hold_token`."""
    if link is not None and link.tokens:
        return True
    sections = message.sections()
    if doubtful and is_unclear(message):
        # What would tell may be missing, or not be readable.
        return True
    for section in sections:
        value = section.value
        if isinstance(value, Map) and section.name == "application-properties":
            if value.get("operation") == "put-token":
                return True
        elif isinstance(value, Properties):
            to = value.to
            if value.subject == "set-token" or (isinstance(to, str) and carries_tokens(to)):
                return True
    return any(hides_body(inner, None, doubtful) for inner in message.batch())

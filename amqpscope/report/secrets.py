"""What is never shown: credentials, in no form.

SASL responses are marked in the type tables. Beyond those, octets that could be one are hidden: the
raw octets of SASL frames, and the bodies of messages that carry a token (claims-based security: sent
to the node `$cbs`, or with the operation `put-token`).
"""

from amqpscope.report.links import LinkOf
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.message import Message
from dissectors.amqp10.values import Described, Map
from dissectors.interface import Frame

__all__ = ["hides_body", "hides_raw"]


# sasl-init and sasl-response, by either descriptor.
_SECRET_TYPES = (0x41, 0x43, "amqp:sasl-init:list", "amqp:sasl-response:list")


def hides_raw(frame: Frame) -> bool:
    """Whether a frame's octets, or what they decode to, must not be shown as they are.

    Only those of AMQP frames are shown. What was skipped may hold a SASL frame, or its rest; and a
    peer may send a credential where none belongs.
    """
    body = frame.body
    if frame.kind != "amqp":
        return True
    if isinstance(body, Composite):
        return any(field.secret for field in body.definition().fields)
    return isinstance(body, Described) and body.descriptor in _SECRET_TYPES


def hides_body(message: Message, link: LinkOf | None) -> bool:
    """Whether a message's body is a secret, or might be."""
    if link is not None and (link.source == "$cbs" or link.target == "$cbs"):
        return True
    for section in message.sections():
        if section.name == "application-properties" and isinstance(section.value, Map):
            if section.value.get("operation") == "put-token":
                return True
    return False

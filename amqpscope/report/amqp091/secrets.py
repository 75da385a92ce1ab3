"""What AMQP 0-9-1 says that is never shown: what a login says, and the secret that renews one.

These are fields of methods (`Field.secret`), so a method that decodes without a fault is shown without them.
Of one with a fault nothing is shown but numbers, if it is of the class connection: where its lengths are
wrong, any octet of it may be the secret's. So it is, until somebody speaks on a channel, of everything
malformed.
"""

from typing import Final

from amqpscope.model import FrameRecord
from amqpscope.report.links import LinkNames, LinkOf
from dissectors.amqp091.arguments import Method, UnknownMethod
from dissectors.wire import i64

__all__ = ["guards", "hides_all"]

_CONNECTION: Final = 10


def guards(record: FrameRecord, link: LinkOf | None, names: LinkNames) -> bool:
    """Whether octets of a frame may be a secret."""
    frame = record.frame
    body = frame.body
    if isinstance(body, Method):
        definition = body.definition()
        if definition.secret:
            return True
        if not frame.problems:
            return False
        class_id: i64 = definition.class_id
        if isinstance(body, UnknownMethod):
            class_id = body.class_id
        return class_id == _CONNECTION or names.may_hold_token(record, link)
    if frame.kind == "unknown":
        return True
    return bool(frame.problems) and names.may_hold_token(record, link)


def hides_all(guarded: bool, faulty: bool) -> bool:
    """Whether of a frame's fields only numbers are shown. guarded: see `guards`. faulty: it has problems."""
    return guarded and faulty

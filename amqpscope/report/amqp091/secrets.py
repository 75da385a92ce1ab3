"""What AMQP 0-9-1 says that is never shown: what a login says, and the secret that renews one.

These are fields of methods (`Field.secret`), so a method that decodes without a fault is shown without them.
Where lengths or numbers are wrong, any octet may be the secret's. So of what is malformed neither octets nor
fields are shown if it is of the class connection, or on channel 0, where logins are; and of a method that
nobody knows, until its sender was seen to speak on another channel.
"""

from typing import Final

from amqpscope.model.records import FrameRecord
from amqpscope.report.links import LinkNames
from dissectors.amqp091.arguments import Method, UnknownMethod
from dissectors.interface import Frame

__all__ = ["guards", "hides_all"]

_CONNECTION: Final = 10


def guards(record: FrameRecord, names: LinkNames) -> bool:
    """Whether octets of a frame may be a secret. names: asked for the link of it, and of all before."""
    frame = record.frame
    body = frame.body
    if isinstance(body, Method) and body.definition().secret:
        return True
    if frame.kind == "unknown":
        return True
    if not frame.problems:
        return False
    several = len(frame.problems) > 1
    if isinstance(body, UnknownMethod):
        # Where more is wrong than that nobody knows it, it is a frame by chance.
        login = not names.begun(record)
        return login or several or frame.channel <= 0 or body.class_id == _CONNECTION
    if isinstance(body, Method):
        if body.definition().class_id == _CONNECTION:
            return True
        # One that has its place on a channel is reported on channel 0 too, if that is all that is wrong.
        return frame.channel <= 0 and (several or not names.begun(record))
    return frame.channel <= 0


def hides_all(frame: Frame, guarded: bool) -> bool:
    """Whether none of a frame's fields is shown. guarded: see `guards`."""
    return guarded and bool(frame.problems)

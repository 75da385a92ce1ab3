"""What of a frame may be told, where its octets could be a secret: asked before any form of it is shown."""

from typing import NamedTuple

from amqpscope.model import FrameRecord
from amqpscope.report.links import LinkNames, LinkOf
from amqpscope.report.secrets import hides_body, hides_raw, is_unclear
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.performatives import Transfer

__all__ = ["Guard", "guard"]


class Guard(NamedTuple):
    """octets: of the frame, not to be told. body: of the message. vague: a line tells numbers only."""

    octets: bool
    body: bool
    vague: bool


def guard(record: FrameRecord, link: LinkOf | None, names: LinkNames, whole: bool) -> Guard:
    """What is not to be told of a frame. whole: its message's body is asked for.

    names: has been asked for the link of every record before this one.
    """
    frame = record.frame
    message = record.message
    body = frame.body
    octets = hides_raw(frame)
    if frame.problems and not octets:
        if isinstance(body, Transfer) or not isinstance(body, Composite) or not body.definition().is_frame:
            octets = names.may_hold_token(record, link)
    hidden = False
    if message is not None:
        message.sections()
        unclear = is_unclear(message)
        if whole or unclear:
            doubtful = unclear and names.may_hold_token(record, link)
            hidden = hides_body(message, link, doubtful)
    vague = octets or (hidden and message is not None and is_unclear(message))
    return Guard(octets, hidden, vague)

"""Which parts of a frame may be shown if its octets could be a secret; every output format asks
this first.
"""

from typing import Final, NamedTuple

from amqpscope.model.records import FrameRecord
from amqpscope.report.json_renderers import FORMS
from amqpscope.report.links import LinkNames
from amqpscope.tracking.amqp10.identity import Link

__all__ = ["Redaction", "guard"]


class Redaction(NamedTuple):
    """What must not be shown. octets: of the frame. body: of the message. vague: a line shows
    numbers only.
    """

    octets: bool
    body: bool
    vague: bool


_OPEN: Final = Redaction(octets=False, body=False, vague=False)


def guard(record: FrameRecord, link: Link | None, names: LinkNames, whole: bool) -> Redaction:
    """What must not be shown of a frame. whole: its message's body is asked for.

    names: has been asked for the link of every record before this one.
    """
    form = FORMS.of(record.frame)
    octets = form.guards(record, link, names)
    hidden = record.message is not None and form.message_hidden(record, link, names, whole)
    if not octets and not hidden:
        return _OPEN
    return Redaction(octets, hidden, octets or (hidden and form.message_unclear(record)))

"""What a frame says, in the terms of the final specification, whichever dialect its sender speaks.

For those who follow a connection of either dialect, or of one peer in each: the body of a frame of the final
is as it was decoded, that of the draft is translated, with the kind of its target.
"""

from typing import Final

from amqpscope.tracking.amqp10_draft2011.translation import octets_of, translated_body
from dissectors.amqp10.performatives import Attach
from dissectors.amqp10.transactions import Coordinator
from dissectors.amqp10_draft2011 import performatives as draft
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["body_of", "carried_by", "is_draft"]

_FRAMES: Final = frozenset(
    [
        *(draft.Open, draft.Begin, draft.Attach, draft.Flow, draft.Transfer, draft.Disposition),
        *(draft.Detach, draft.End, draft.Close),
        *(draft.SaslMechanisms, draft.SaslInit, draft.SaslChallenge, draft.SaslResponse, draft.SaslOutcome),
    ]
)


def is_draft(body: object) -> bool:
    """Whether this is the body of a frame of the draft."""
    return type(body) in _FRAMES


def body_of(frame: Frame, continues: bool = False) -> object:
    """The body of a frame in the final's terms. continues: it is a transfer that goes on with a delivery."""
    body = frame.body
    if not is_draft(body):
        return body
    said = translated_body(body, continues)
    if isinstance(said, Attach) and isinstance(body, draft.Attach):
        if isinstance(body.target, draft.Coordinator):
            said.target = Coordinator()
    return said


def carried_by(frame: Frame) -> i64:
    """How many octets of a message a transfer carries."""
    body = frame.body
    return octets_of(body) if isinstance(body, draft.Transfer) else frame.payload_size

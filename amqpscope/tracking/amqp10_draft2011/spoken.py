"""What a frame says, in the terms of the final specification, whichever dialect its sender speaks.

For those who follow a connection of either dialect, or of one peer in each: the body of a frame of the final
is as it was decoded, that of the draft is translated, with the kind of its target, and with its
transfer-state as a delivery state:

    outcome                      the outcome
    txn-id, and maybe outcome    transactional-state
    bytes-transferred            received
"""

from typing import Final

from amqpscope.tracking.amqp10_draft2011.translation import error_of, octets_of, translated_body
from dissectors.amqp10.messaging import Accepted, Modified, Received, Rejected, Released, Source, Target
from dissectors.amqp10.performatives import Attach, Disposition, Transfer
from dissectors.amqp10.transactions import Coordinator, TransactionalState
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
    if isinstance(said, (Transfer, Disposition)) and isinstance(body, (draft.Transfer, draft.Disposition)):
        said.state = _state(body.state)
    elif isinstance(said, Attach) and isinstance(body, draft.Attach):
        if isinstance(body.target, draft.Coordinator):
            said.target = Coordinator()
        for sent, terminus in ((body.source, said.source), (body.target, said.target)):
            if isinstance(sent, (draft.Source, draft.Target)) and isinstance(terminus, (Source, Target)):
                terminus.dynamic = sent.dynamic is not None
    return said


def carried_by(frame: Frame) -> i64:
    """How many octets of a message a transfer carries."""
    body = frame.body
    return octets_of(body) if isinstance(body, draft.Transfer) else frame.payload_size


def _state(state: object) -> object:
    """A transfer-state as a delivery state."""
    if not isinstance(state, draft.TransferState):
        return state
    outcome = _outcome(state.outcome)
    if state.txn_id is not None:
        transactional = TransactionalState()
        transactional.txn_id = state.txn_id
        transactional.outcome = outcome
        return transactional
    if outcome is None and state.bytes_transferred is not None:
        received = Received()
        received.section_offset = state.bytes_transferred
        return received
    return outcome


def _outcome(outcome: object) -> object:
    if isinstance(outcome, draft.Accepted):
        return Accepted()
    if isinstance(outcome, draft.Released):
        return Released()
    if isinstance(outcome, draft.Rejected):
        rejected = Rejected()
        rejected.error = error_of(outcome.error)
        return rejected
    if isinstance(outcome, draft.Modified):
        modified = Modified()
        modified.delivery_failed = outcome.delivery_failed
        modified.undeliverable_here = outcome.deliver_elsewhere
        modified.message_annotations = outcome.message_attrs
        return modified
    return outcome

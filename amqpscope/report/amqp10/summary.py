"""What AMQP 1.0 frames say for a summary."""

from amqpscope.model.records import FrameRecord
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.tracking.amqp10.identity import Link
from amqpscope.tracking.amqp10.introduction import introduction
from amqpscope.tracking.amqp10.outcomes import error_in, outcome_in
from amqpscope.tracking.amqp10.sasl_exchange import SASL_CODES
from amqpscope.tracking.amqp10_draft2011.spoken import body_of, carried_by
from dissectors.amqp10.performatives import (
    Attach,
    Close,
    Detach,
    Disposition,
    End,
    Open,
    Transfer,
)
from dissectors.amqp10.sasl import SaslInit, SaslOutcome

__all__ = ["summarize"]


def summarize(summary: ConnectionOverview, record: FrameRecord, link: Link | None) -> None:
    """Take one frame of a connection."""
    body = body_of(record.frame)
    if isinstance(body, Transfer):
        _transfer(summary, record, body, link)
    elif isinstance(body, Disposition):
        if body.state is not None:
            _outcome(summary, record, body.state, link)
    elif isinstance(body, Open):
        summary.introduce(record.peer, introduction(record.frame))
    elif isinstance(body, Attach):
        if link is not None:
            summary.met(link)
    elif isinstance(body, (Detach, End, Close)):
        _ended(summary, record, body, link)
    elif isinstance(body, SaslInit):
        summary.mechanism = body.mechanism or ""
    elif isinstance(body, SaslOutcome) and body.code is not None:
        summary.sasl_outcome = SASL_CODES.get(body.code, str(body.code))


def _transfer(
    summary: ConnectionOverview, record: FrameRecord, transfer: Transfer, link: Link | None
) -> None:
    octets = int(carried_by(record.frame))
    message = record.message is not None
    peer = record.peer
    summary.of(peer).message_octets += octets
    summary.of(peer).messages += message
    if link is not None:
        known = summary.links.get(link)
        if known is not None:
            known.transfers += 1
            known.octets += octets
            known.messages += message
            known.aborted += transfer.aborted is True


def _outcome(summary: ConnectionOverview, record: FrameRecord, state: object, link: Link | None) -> None:
    """A delivery state: only one that gives an error is worth a line."""
    error = error_in(outcome_in(state))
    if error is not None:
        summary.failed(record, "rejected", error.condition or "", error.description, link)


def _ended(
    summary: ConnectionOverview, record: FrameRecord, body: Detach | End | Close, link: Link | None
) -> None:
    error = body.error
    peer = record.peer
    if isinstance(body, Detach):
        known = summary.links.get(link) if link is not None else None
        if known is not None:
            if not known.ended:
                known.ended = f"{'closed' if body.closed else 'detached'} by {peer}"
            if error is not None and not known.error:
                known.error = error.condition or "an error"
    elif isinstance(body, Close) and not summary.of(peer).closed:
        summary.of(peer).closed = int(record.packet)
    if error is not None:
        summary.failed(record, record.frame.name, error.condition or "", error.description, link)

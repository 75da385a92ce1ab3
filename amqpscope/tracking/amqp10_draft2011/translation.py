"""What a frame of the April-2011 draft says, in the terms of the final specification.

The draft and the final specification have the same connections, sessions, links, windows and credit. The
lists differ: `options` comes first, some fields have other places and names. So a frame of the draft is put
into the performative of the final that says the same, and the endpoints of `tracking.amqp10` follow it:

    transfer-count, initial-transfer-count    delivery-count, initial-delivery-count
    transfer-id of the first transfer         delivery-id of the delivery
    fragments                                 the size of the payload
    dynamic, with a lifetime-policy           dynamic, true
    transfer-state with an outcome            the outcome
    transfer-state with a txn-id              transactional-state
    transfer-state with bytes-transferred     received
    message-attrs of modified                 message-annotations

What only one of the two has is left out: `options` and settle modes. Rules about these take the draft's own
frame.

Sources: the draft of 5 April 2011 (revision 1239M), sections 3.7, 4.3, 4.5 and 6.3.3.
"""

from typing import Final

from dissectors.amqp10.composite import NOT_BROKEN, Composite
from dissectors.amqp10.messaging import Accepted, Modified, Received, Rejected, Released, Source, Target
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Transfer,
)
from dissectors.amqp10.sasl import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse
from dissectors.amqp10.transactions import TransactionalState
from dissectors.amqp10.values import Map, Raw, Symbol
from dissectors.amqp10_draft2011 import performatives as draft
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["error_of", "octets_of", "state_of", "translated", "translated_body"]

# For each performative whose fields stand elsewhere in the final's list than one place further back: where.
_PLACES: Final[dict[str, tuple[int, ...]]] = {
    "attach": (0, 1, 2, 5, 6, 7, 9, 10, 11, 12, 13),
    "transfer": (0, 2, 1, 4, 7, 8, 5, 9, 10, 3),
    "disposition": (0, 5, 1, 2, 3, 4),
    "source": (0, 1, 2, 3, 4, 6, 7, 8, 9, 10),
    "target": (0, 1, 2, 3, 4, 6),
}

# The expiry-policies by the final's names.
_POLICIES: Final[dict[str, str]] = {"session": "session-end", "connection": "connection-close"}


def translated(frame: Frame, continues: bool) -> Frame:
    """The frame with the final's performative in place of the draft's, and with nothing readable in place of
    another composite; the frame itself if it has none.

    continues: it is a transfer that goes on with a delivery of its link.
    """
    sent = frame.body
    body = translated_body(sent, continues)
    if body is None:
        return frame.with_body(Raw(b"")) if isinstance(sent, Composite) else frame
    copy = frame.with_body(body)
    if isinstance(sent, draft.Transfer) and frame.missing == 0:
        copy.claim_payload(octets_of(sent))
    return copy


def translated_body(sent: object, continues: bool) -> Composite | None:
    """The final's performative for one of the draft; None for everything else."""
    body = _body(sent, continues)
    if body is not None and isinstance(sent, Composite):
        _mark_unread(sent, body)
    return body


def octets_of(transfer: draft.Transfer) -> i64:
    """The octets of the message that a transfer carries."""
    total: i64 = 0
    for fragment in transfer.fragments or ():
        if fragment.payload is not None:
            total += len(fragment.payload)
    return total


def _mark_unread(sent: Composite, body: Composite) -> None:
    """What could not be read in the draft's list cannot be read in the final's."""
    if sent.broken_at < NOT_BROKEN:
        body.broken_at = 0
    if sent.odd is None:
        return
    places = _PLACES.get(sent.definition().name)
    for index in sent.odd:
        place = index - 1
        if place >= 0 and places is not None:
            place = places[place] if place < len(places) else -1
        if 0 <= place < body.definition().size:
            if body.odd is None:
                body.odd = {}
            # What was sent instead may be a composite of the draft.
            body.odd[place] = Raw(b"")


def _body(sent: object, continues: bool) -> Composite | None:
    if isinstance(sent, draft.Transfer):
        return _transfer(sent, continues)
    if isinstance(sent, draft.Flow):
        return _flow(sent)
    if isinstance(sent, draft.Disposition):
        return _disposition(sent)
    if isinstance(sent, draft.Attach):
        return _attach(sent)
    if isinstance(sent, draft.Begin):
        return _begin(sent)
    if isinstance(sent, draft.Open):
        return _open(sent)
    return _ending(sent) or _sasl(sent)


def _open(sent: draft.Open) -> Open:
    body = Open()
    body.container_id = sent.container_id
    body.hostname = sent.hostname
    body.max_frame_size = sent.max_frame_size
    body.channel_max = sent.channel_max
    body.idle_time_out = sent.idle_time_out
    if sent.incoming_locales is not None:
        body.incoming_locales = [Symbol(tag) for tag in sent.incoming_locales]
    body.offered_capabilities = sent.offered_capabilities
    body.desired_capabilities = sent.desired_capabilities
    body.properties = _simple(sent.properties)
    return body


def _begin(sent: draft.Begin) -> Begin:
    body = Begin()
    body.remote_channel = sent.remote_channel
    body.next_outgoing_id = sent.next_outgoing_id
    body.incoming_window = sent.incoming_window
    body.outgoing_window = sent.outgoing_window
    body.handle_max = sent.handle_max
    return body


def _attach(sent: draft.Attach) -> Attach:
    body = Attach()
    body.name = sent.name
    body.handle = sent.handle
    body.role = sent.role
    body.source = _source(sent.source)
    body.target = _target(sent.target)
    if sent.source is None and sent.target is not None and not isinstance(sent.target, draft.Target):
        # A control link has no source of its own.
        body.source = Source()
    body.unsettled = _unsettled(sent.unsettled)
    body.initial_delivery_count = sent.initial_transfer_count
    body.max_message_size = sent.max_message_size
    return body


def _flow(sent: draft.Flow) -> Flow:
    body = Flow()
    body.next_incoming_id = sent.next_incoming_id
    body.incoming_window = sent.incoming_window
    body.next_outgoing_id = sent.next_outgoing_id
    body.outgoing_window = sent.outgoing_window
    body.handle = sent.handle
    body.delivery_count = sent.transfer_count
    body.link_credit = sent.link_credit
    body.available = sent.available
    body.drain = sent.drain
    body.echo = sent.echo
    return body


def _transfer(sent: draft.Transfer, continues: bool) -> Transfer:
    body = Transfer()
    body.handle = sent.handle
    body.delivery_tag = sent.delivery_tag
    if not continues:
        body.delivery_id = sent.transfer_id
    body.settled = sent.settled
    body.state = state_of(sent.state)
    body.resume = sent.resume
    body.more = sent.more
    body.aborted = sent.aborted
    body.batchable = sent.batchable
    body.message_format = sent.message_format
    return body


def _disposition(sent: draft.Disposition) -> Disposition:
    body = Disposition()
    body.role = sent.role
    body.batchable = sent.batchable
    body.first = sent.first
    body.last = sent.last
    body.settled = sent.settled
    body.state = state_of(sent.state)
    return body


def _ending(sent: object) -> Composite | None:
    if isinstance(sent, draft.Detach):
        detach = Detach()
        detach.handle = sent.handle
        detach.closed = sent.closed
        detach.error = error_of(sent.error)
        return detach
    if isinstance(sent, draft.End):
        end = End()
        end.error = error_of(sent.error)
        return end
    if isinstance(sent, draft.Close):
        close = Close()
        close.error = error_of(sent.error)
        return close
    return None


def _sasl(sent: object) -> Composite | None:
    if isinstance(sent, draft.SaslMechanisms):
        mechanisms = SaslMechanisms()
        offered = sent.sasl_server_mechanisms
        if offered is not None:
            # Whether they are strings or symbols the draft's text lost.
            named = [Symbol(one) for one in offered if isinstance(one, str)]
            if len(named) == len(offered):
                mechanisms.sasl_server_mechanisms = named
        return mechanisms
    if isinstance(sent, draft.SaslInit):
        init = SaslInit()
        init.mechanism = None if sent.mechanism is None else Symbol(sent.mechanism)
        init.hostname = sent.hostname
        return init
    if isinstance(sent, draft.SaslChallenge):
        return SaslChallenge()
    if isinstance(sent, draft.SaslResponse):
        return SaslResponse()
    if isinstance(sent, draft.SaslOutcome):
        outcome = SaslOutcome()
        outcome.code = sent.code
        data = sent.additional_data
        outcome.additional_data = data if isinstance(data, bytes) else None
        return outcome
    return None


def error_of(sent: draft.Error | None) -> Error | None:
    """An error of the draft as one of the final, with what is simple in its info."""
    if sent is None:
        return None
    error = Error()
    error.condition = sent.condition
    error.description = sent.description
    error.info = _simple(sent.info)
    return error


def _simple(sent: Map | None) -> Map | None:
    """The entries of a map that are texts and numbers: others may hold composites, whose fields differ."""
    if sent is None:
        return None
    return Map([pair for pair in sent.pairs if isinstance(pair[0], str) and isinstance(pair[1], (str, int))])


def _source(sent: object) -> object:
    """A source, without its filter; None where none is."""
    if not isinstance(sent, draft.Source):
        return None if sent is None else Source()
    source = Source()
    if isinstance(sent.address, str):
        source.address = str(sent.address)
    source.expiry_policy = _policy(sent.expiry_policy)
    source.timeout = sent.timeout
    source.dynamic = sent.dynamic is not None
    source.distribution_mode = sent.distribution_mode
    source.default_outcome = _outcome(sent.default_outcome)
    source.outcomes = sent.outcomes
    source.capabilities = sent.capabilities
    _mark_unread(sent, source)
    return source


def _target(sent: object) -> object:
    """A target; None where none is."""
    if not isinstance(sent, draft.Target):
        return None if sent is None else Target()
    target = Target()
    if isinstance(sent.address, str):
        target.address = str(sent.address)
    target.expiry_policy = _policy(sent.expiry_policy)
    target.timeout = sent.timeout
    target.dynamic = sent.dynamic is not None
    target.capabilities = sent.capabilities
    _mark_unread(sent, target)
    return target


def _policy(sent: Symbol | None) -> Symbol | None:
    return None if sent is None else Symbol(_POLICIES.get(str(sent), str(sent)))


def _unsettled(sent: Map | None) -> Map | None:
    """The unsettled map, each delivery-tag with its delivery state."""
    if sent is None:
        return None
    pairs: list[tuple[object, object]] = []
    for tag, state in sent.pairs:
        if isinstance(tag, bytes):
            pairs.append((tag, state_of(state)))
    return Map(pairs)


def state_of(sent: object) -> object:
    """A transfer-state as a delivery state; None for one that states nothing, and for anything else."""
    if not isinstance(sent, draft.TransferState):
        return None
    outcome = _outcome(sent.outcome)
    if isinstance(sent.txn_id, bytes):
        transactional = TransactionalState()
        transactional.txn_id = sent.txn_id
        transactional.outcome = outcome
        return transactional
    if outcome is None and sent.bytes_transferred is not None:
        received = Received()
        received.section_offset = sent.bytes_transferred
        return received
    return outcome


def _outcome(sent: object) -> Composite | None:
    """An outcome of the draft as one of the final, without what the draft may nest in it."""
    if isinstance(sent, draft.Accepted):
        return Accepted()
    if isinstance(sent, draft.Released):
        return Released()
    if isinstance(sent, draft.Rejected):
        rejected = Rejected()
        if sent.error is not None:
            rejected.error = Error()
            rejected.error.condition = sent.error.condition
        return rejected
    if isinstance(sent, draft.Modified):
        modified = Modified()
        modified.delivery_failed = sent.delivery_failed
        modified.undeliverable_here = sent.deliver_elsewhere
        modified.message_annotations = _simple(sent.message_attrs)
        return modified
    return None

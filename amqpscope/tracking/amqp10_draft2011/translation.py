"""What a frame of the April-2011 draft says, in the terms of the final specification.

The draft and the final specification have the same connections, sessions, links, windows and credit. The
lists differ: `options` comes first, some fields have other places and names. So a frame of the draft is put
into the performative of the final that says the same, and the endpoints of `tracking.amqp10` follow it:

    transfer-count, initial-transfer-count    delivery-count, initial-delivery-count
    transfer-id of the first transfer         delivery-id of the delivery
    fragments                                 the size of the payload

What only one of the two has is left out: `options`, settle modes, transfer-states. Rules about these take the
draft's own frame.

Sources: the draft of 5 April 2011 (revision 1239M), sections 3.7 and 6.3.3.
"""

from typing import Final

from dissectors.amqp10.composite import NOT_BROKEN, Composite
from dissectors.amqp10.messaging import Source, Target
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
from dissectors.amqp10.values import Map, Symbol
from dissectors.amqp10_draft2011.reader import DraftField
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["FRAGMENTS", "fragments_of", "octets_of", "translated"]

FRAGMENTS: Final = 11
"""The place of the fragments in a transfer."""

_PAYLOAD: Final = 5
_ADDRESS: Final = 1
_BYTES_TRANSFERRED: Final = 1

# For each performative the places of its fields in the final's list, behind `options`.
_PLACES: Final[dict[str, tuple[int, ...]]] = {
    "open": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    "begin": (0, 1, 2, 3, 4, 5, 6, 7),
    "attach": (0, 1, 2, 5, 6, 7, 9, 10, 11, 12, 13),
    "flow": (0, 1, 2, 3, 4, 5, 6, 7, 8, 9),
    "transfer": (0, 2, 1, 4, 7, 8, 5, 9, 10, 3),
    "disposition": (0, 5, 1, 2, 3, 4),
    "detach": (0, 1, 2),
    "end": (0,),
    "close": (0,),
    "sasl-mechanisms": (0,),
    "sasl-init": (0, 1, 2),
    "sasl-challenge": (0,),
    "sasl-response": (0,),
    "sasl-outcome": (0, 1),
}


def translated(frame: Frame, continues: bool) -> Frame:
    """The frame with the final's performative in place of the draft's; the frame itself if it has none.

    continues: it is a transfer that goes on with a delivery of its link.
    """
    body = frame.body
    if not isinstance(body, Composite) or not isinstance(body.definition().fields[0], DraftField):
        return frame
    name = body.definition().name
    places = _PLACES.get(name)
    said = None if places is None else _performative(name, body.values(), continues)
    if places is None or said is None:
        return frame
    _mark_unread(body, said, places)
    copy = frame.with_body(said)
    if name == "transfer" and frame.missing == 0:
        copy.claim_payload(octets_of(body))
    return copy


def fragments_of(transfer: Composite) -> list[Composite]:
    """The fragments of a transfer, as far as they could be read."""
    sent = transfer.values()[FRAGMENTS]
    values = sent if isinstance(sent, list) else [sent]
    return [value for value in values if isinstance(value, Composite)]


def octets_of(transfer: Composite) -> i64:
    """The octets of the message that a transfer carries."""
    total: i64 = 0
    for fragment in fragments_of(transfer):
        payload = fragment.values()[_PAYLOAD]
        if isinstance(payload, bytes):
            total += len(payload)
    return total


def _mark_unread(body: Composite, said: Composite, places: tuple[int, ...]) -> None:
    """What could not be read in the draft's list cannot be read in the final's."""
    if body.broken_at < NOT_BROKEN:
        said.broken_at = 0
    if body.odd is None:
        return
    for index, value in body.odd.items():
        if 0 < index <= len(places):
            if said.odd is None:
                said.odd = {}
            said.odd[places[index - 1]] = value


def _performative(name: str, values: list[object], continues: bool) -> Composite | None:
    if name == "transfer":
        return _transfer(values, continues)
    if name == "flow":
        return _flow(values)
    if name == "disposition":
        return _disposition(values)
    if name == "attach":
        return _attach(values)
    if name == "begin":
        return _begin(values)
    if name == "open":
        return _open(values)
    return _ending(name, values) or _sasl(name, values)


def _open(values: list[object]) -> Open:
    said = Open()
    said.container_id = _text(values[1])
    said.hostname = _text(values[2])
    said.max_frame_size = _number(values[3])
    said.channel_max = _number(values[4])
    said.idle_time_out = _number(values[5])
    said.offered_capabilities = _symbols(values[8])
    said.desired_capabilities = _symbols(values[9])
    said.properties = _map(values[10])
    return said


def _begin(values: list[object]) -> Begin:
    said = Begin()
    said.remote_channel = _number(values[1])
    said.next_outgoing_id = _number(values[2])
    said.incoming_window = _number(values[3])
    said.outgoing_window = _number(values[4])
    said.handle_max = _number(values[5])
    return said


def _attach(values: list[object]) -> Attach:
    said = Attach()
    said.name = _text(values[1])
    said.handle = _number(values[2])
    said.role = _flag(values[3])
    said.source = _terminus(values[4], Source())
    said.target = _terminus(values[5], Target())
    if values[4] is None and isinstance(said.target, Target) and not _is_target(values[5]):
        # A control link has no source of its own.
        said.source = Source()
    said.unsettled = _unsettled(values[6])
    said.initial_delivery_count = _number(values[7])
    said.max_message_size = _number(values[8])
    return said


def _flow(values: list[object]) -> Flow:
    said = Flow()
    said.next_incoming_id = _number(values[1])
    said.incoming_window = _number(values[2])
    said.next_outgoing_id = _number(values[3])
    said.outgoing_window = _number(values[4])
    said.handle = _number(values[5])
    said.delivery_count = _number(values[6])
    said.link_credit = _number(values[7])
    said.available = _number(values[8])
    said.drain = _flag(values[9])
    said.echo = _flag(values[10])
    return said


def _transfer(values: list[object], continues: bool) -> Transfer:
    said = Transfer()
    said.handle = _number(values[1])
    tag = values[2]
    said.delivery_tag = tag if isinstance(tag, bytes) else None
    if not continues:
        said.delivery_id = _number(values[3])
    said.settled = _flag(values[4])
    said.resume = _flag(values[6])
    said.more = _flag(values[7])
    said.aborted = _flag(values[8])
    said.batchable = _flag(values[9])
    said.message_format = _number(values[10])
    return said


def _disposition(values: list[object]) -> Disposition:
    said = Disposition()
    said.role = _flag(values[1])
    said.batchable = _flag(values[2])
    said.first = _number(values[3])
    said.last = _number(values[4])
    said.settled = _flag(values[5])
    return said


def _ending(name: str, values: list[object]) -> Composite | None:
    if name == "detach":
        detach = Detach()
        detach.handle = _number(values[1])
        detach.closed = _flag(values[2])
        detach.error = _error(values[3])
        return detach
    if name == "end":
        end = End()
        end.error = _error(values[1])
        return end
    if name == "close":
        close = Close()
        close.error = _error(values[1])
        return close
    return None


def _sasl(name: str, values: list[object]) -> Composite | None:
    if name == "sasl-mechanisms":
        mechanisms = SaslMechanisms()
        mechanisms.sasl_server_mechanisms = _symbols(values[1])
        return mechanisms
    if name == "sasl-init":
        init = SaslInit()
        mechanism = _text(values[1])
        init.mechanism = None if mechanism is None else Symbol(mechanism)
        init.hostname = _text(values[3])
        return init
    if name == "sasl-challenge":
        return SaslChallenge()
    if name == "sasl-response":
        return SaslResponse()
    if name == "sasl-outcome":
        outcome = SaslOutcome()
        outcome.code = _number(values[1])
        data = values[2]
        outcome.additional_data = data if isinstance(data, bytes) else None
        return outcome
    return None


def _error(value: object) -> Error | None:
    """The error of a detach, end or close: both editions have the same."""
    if value is None or isinstance(value, Error):
        return value
    said = Error()
    if isinstance(value, Composite):
        parts = value.values()
        condition = parts[0]
        said.condition = Symbol(condition) if isinstance(condition, str) else None
        said.description = _text(parts[1])
        said.info = _map(parts[2])
    return said


def _terminus(value: object, said: Source | Target) -> object:
    """A source or target with the address alone; None where none is."""
    if value is None:
        return None
    if isinstance(value, Composite):
        if value.definition().name in ("source", "target"):
            address = value.values()[_ADDRESS]
            if isinstance(address, str):
                said.address = str(address)
    return said


def _is_target(value: object) -> bool:
    return isinstance(value, Composite) and value.definition().name == "target"


def _unsettled(value: object) -> Map | None:
    """The unsettled map, each delivery-tag with the octets transferred, as far as that is stated."""
    if not isinstance(value, Map):
        return None
    pairs: list[tuple[object, object]] = []
    for tag, state in value.pairs:
        transferred: object = None
        if isinstance(state, Composite) and state.definition().name == "transfer-state":
            transferred = _number(state.values()[_BYTES_TRANSFERRED])
        pairs.append((tag, transferred))
    return Map(pairs)


def _text(value: object) -> str | None:
    return str(value) if isinstance(value, str) else None


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int) and not isinstance(value, bool) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _map(value: object) -> Map | None:
    return value if isinstance(value, Map) else None


def _symbols(value: object) -> list[Symbol] | None:
    if isinstance(value, str):
        return [Symbol(value)]
    if not isinstance(value, list):
        return None
    return [Symbol(one) for one in value if isinstance(one, str)]

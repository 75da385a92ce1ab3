"""Putting messages together from the transfers of one direction (transport.xml, "Transferring a Message").

A delivery is one or more transfers on one link; all but its last have `more` set. Deliveries of
different links interleave freely, those of one link may not, so (channel, handle) says to which
delivery a transfer belongs. An aborted delivery has no message. One whose link is detached, or whose
session or connection ends, in the middle has none either.

After lost octets, after a frame that does not decode, a transfer that does not where it matters
here, and where the start was not captured, a transfer may continue a delivery whose first one was
not seen; it may repeat all that the first one says. So may one on no link, one behind a detach or an end in
mid-delivery, and one behind a begin on a channel in use. On such a link nothing is taken for the whole
of a message before an attach or the end of a delivery was seen. Of a delivery whose first octets
are not there none are kept: it is unknown where its sections begin.

A transfer with another delivery-id than the delivery under way on its link begins a new one if its
payload begins as a message does, or if nothing is sure any more; else its sender changed the id on the
way.
"""

from typing import Final

from dissectors.amqp10.composite import NOT_BROKEN
from dissectors.amqp10.message import BATCH_FORMAT, Message
from dissectors.amqp10.messaging import Received
from dissectors.amqp10.performatives import Attach, Begin, Detach, End, Transfer
from dissectors.interface import Assembler, Frame
from dissectors.limits import MAX_MESSAGE, MAX_OPEN_DELIVERIES
from dissectors.wire import i64

__all__ = ["MessageAssembler", "begins_message"]

_DUMP_VERSION: Final = 4

# Octets up to which the parts of a message are joined: enough to make a part's own cost small.
_SMALL_PART: Final = 2048


class _Delivery:
    """A delivery under way.

    whole: nothing of it is missing. growing: what is kept is its front, in one piece up to here.
    """

    def __init__(self, delivery_id: i64, message_format: i64, whole: bool, growing: bool) -> None:
        self.delivery_id: i64 = delivery_id
        self.message_format: i64 = message_format
        self.whole: bool = whole
        self.growing: bool = growing
        self.parts: list[bytes] = []
        self.kept: i64 = 0
        self.size: i64 = 0

    def add(self, payload: bytes) -> None:
        """Keep a part. Small ones are joined, so that many of them cost no more than few."""
        self.kept += len(payload)
        if self.parts and len(self.parts[-1]) + len(payload) <= _SMALL_PART:
            self.parts[-1] += payload
        elif payload:
            self.parts.append(payload)


class MessageAssembler(Assembler):
    """Takes the frames of one direction in order, gives back the messages they complete."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[int, _Delivery] = {}
        self._kept: i64 = 0
        # Octets were lost, or the start is missing: there may be links that are not known.
        self._gap: bool = False
        # The links of which it is known where a delivery begins, by channel and handle. Without a gap these
        # are all that are attached (but for too many), and some of ended sessions.
        # In a dict, as an empty one takes a third of an empty set, for every connection.
        self._known: dict[int, None] = {}

    def joined_midstream(self) -> None:
        """The frames before the first one were not captured."""
        self._gap = True

    def take(self, frame: Frame) -> Message | None:
        """A frame of this direction; the message if it completes one.

        A message whose first transfer was not seen, or of which octets are missing, is not `complete`.
        """
        body = frame.body
        if frame.missing > 0 and frame.payload_size == 0:
            # Fields may be among what is missing, also those that say where a delivery ends.
            self._doubt(int(frame.channel))
        if isinstance(body, Transfer):
            if frame.problems and _unclear(body):
                self._doubt(int(frame.channel))
                return None
            return self._transfer(frame, body)
        if isinstance(body, Attach):
            if body.handle is not None:
                key = (int(frame.channel) << 32) | body.handle
                free = key not in self._open
                self._leave(key)
                if free:
                    self._over(key)
        elif isinstance(body, Detach):
            if body.handle is not None:
                self._leave((int(frame.channel) << 32) | body.handle)
        elif isinstance(body, Begin):
            if any(key >> 32 == frame.channel for key in self._open):
                # Which of the two sessions transfers are for is not known.
                self._doubt(int(frame.channel))
        elif isinstance(body, End):
            self._end(int(frame.channel))
        elif frame.name == "skipped" or frame.name == "undecodable":
            self._doubt(int(frame.channel))
        return None

    def _transfer(self, frame: Frame, transfer: Transfer) -> Message | None:
        if transfer.handle is None:
            return self._nameless(frame, transfer)
        key = (int(frame.channel) << 32) | transfer.handle
        delivery = self._open.get(key)
        delivery_id: i64 = -1
        if transfer.delivery_id is not None:
            delivery_id = transfer.delivery_id
        size = frame.payload_size
        missing = frame.missing
        # If it is cut before its `more`, nobody knows whether it was the last.
        unknown = missing > 0 and size == 0 and transfer.more is None
        last = not transfer.more and not unknown
        if delivery is not None and delivery_id >= 0 and delivery.delivery_id != delivery_id:
            if not delivery.growing or (delivery.delivery_id >= 0 and begins_message(frame, transfer)):
                self._forget(key)
                delivery = None
            elif delivery.delivery_id < 0:
                delivery.delivery_id = delivery_id
        if delivery is None:
            if not self._gap and key not in self._known and 0 < len(self._known) < MAX_OPEN_DELIVERIES:
                if not last or self._open or not begins_message(frame, transfer):
                    # On no link: it may belong to a delivery of any link.
                    self._doubt(-1)
            if last and not transfer.aborted:
                return self._single(frame, transfer, key)
            first = self._first(transfer, key)
            growing = first or _may_be_first(frame, transfer)
            delivery = _Delivery(delivery_id, _format(transfer), first, growing)
            if not transfer.aborted:
                self._start(key, delivery)
        if self._gap and (transfer.aborted or last):
            self._over(key)
        if transfer.aborted:
            self._forget(key)
            return None
        if delivery.growing and self._kept + size <= MAX_MESSAGE:
            delivery.add(frame.payload)
            self._kept += size
        else:
            delivery.growing = False
        if missing > 0 or not delivery.growing:
            delivery.growing = False
            delivery.whole = False
        delivery.size += size + frame.absent
        if not last:
            return None
        self._forget(key)
        return Message(delivery.message_format, delivery.parts, delivery.size, delivery.whole)

    def _single(self, frame: Frame, transfer: Transfer, key: int) -> Message:
        """The message of a delivery in one transfer: nearly every one there is."""
        first = self._first(transfer, key)
        kept = first or _may_be_first(frame, transfer)
        if self._gap:
            self._over(key)
        whole = first and frame.missing == 0
        if not kept:
            return Message(_format(transfer), [], frame.payload_size + frame.absent, whole)
        return _frame_message(frame, transfer, whole)

    def _nameless(self, frame: Frame, transfer: Transfer) -> Message | None:
        """A transfer on no link that could be named: a message if all of one is here."""
        channel = int(frame.channel)
        alone = not any(key >> 32 == channel for key in self._open)
        if transfer.more or transfer.aborted or not (alone or begins_message(frame, transfer)):
            self._doubt(channel)
            return None
        whole = frame.missing == 0 and not self._gap
        return _frame_message(frame, transfer, whole)

    def _first(self, transfer: Transfer, key: int) -> bool:
        """Whether a transfer surely begins a message, where no delivery is under way."""
        if self._gap and key not in self._known:
            return False
        return not transfer.resume or _from_start(transfer)

    def _over(self, key: int) -> None:
        """No delivery is under way on a link: the next transfer begins one."""
        if len(self._known) < MAX_OPEN_DELIVERIES:
            self._known[key] = None

    def _start(self, key: int, delivery: _Delivery) -> None:
        if len(self._open) >= MAX_OPEN_DELIVERIES:
            oldest = next(iter(self._open))
            self._forget(oldest)
            self._gap = True
            self._known.pop(oldest, None)
        self._open[key] = delivery

    def _forget(self, key: int) -> None:
        delivery = self._open.pop(key, None)
        if delivery is not None:
            self._kept -= delivery.kept

    def _leave(self, key: int) -> None:
        """A link is over. The rest of the delivery under way on it may follow all the same."""
        if key in self._open:
            self._gap = True
            self._forget(key)
        self._known.pop(key, None)

    def _end(self, channel: int) -> None:
        """A session is over, and so are the links on which a delivery is under way."""
        for key in [key for key in self._open if key >> 32 == channel]:
            self._leave(key)

    def _doubt(self, channel: int) -> None:
        """Transfers may have been missed, on this channel or (-1) on any."""
        self._gap = True
        self._known = {key: None for key in self._known if channel >= 0 and key >> 32 != channel}
        for key, delivery in self._open.items():
            if channel < 0 or key >> 32 == channel:
                delivery.whole = False
                delivery.growing = False

    def dump(self) -> tuple[object, ...]:
        """The deliveries under way, as plain values."""
        deliveries = tuple(
            (
                key,
                int(d.delivery_id),
                int(d.message_format),
                d.whole,
                d.growing,
                b"".join(d.parts),
                int(d.size),
            )
            for key, d in self._open.items()
        )
        return (_DUMP_VERSION, self._gap, deliveries, tuple(sorted(self._known)))

    @staticmethod
    def load(state: tuple[object, ...]) -> "MessageAssembler":
        """An assembler that goes on where `dump` left off. Raises ValueError on another version's state."""
        if not state or state[0] != _DUMP_VERSION:
            raise ValueError(f"state of a message assembler in version {state[:1]}, not {_DUMP_VERSION}")
        assembler = MessageAssembler()
        assembler._gap = bool(state[1])
        deliveries, between = state[2], state[3]
        assert isinstance(deliveries, tuple) and isinstance(between, tuple)
        assembler._known = dict.fromkeys(between)
        for key, delivery_id, message_format, whole, growing, octets, size in deliveries:
            delivery = _Delivery(delivery_id, message_format, whole, growing)
            delivery.add(octets)
            delivery.size = size
            assembler._open[key] = delivery
            assembler._kept += delivery.kept
        return assembler


def _unclear(transfer: Transfer) -> bool:
    """Whether it could not be read which delivery a transfer belongs to, or where its payload begins or ends.

    So it is by the fields handle, delivery-id, message-format, more, state, resume and aborted.
    """
    if transfer.broken_at < NOT_BROKEN:
        return True
    odd = transfer.odd
    return odd is not None and any(index in (0, 1, 3, 5, 7, 8, 9) for index in odd)


def _frame_message(frame: Frame, transfer: Transfer, whole: bool) -> Message:
    """The message that one transfer holds, left in the buffer that the frame lies in."""
    start = frame.payload_start
    size = frame.payload_size
    return Message.in_place(_format(transfer), frame.buffer, start, start + size, size + frame.absent, whole)


def _format(transfer: Transfer) -> i64:
    if transfer.message_format is None:
        return 0
    return transfer.message_format


def begins_message(frame: Frame, transfer: Transfer) -> bool:
    """Whether a payload begins as a message does: with a section, if its format is known to have them."""
    if transfer.message_format is not None and transfer.message_format not in (0, BATCH_FORMAT):
        return True
    payload = frame.payload[:20]
    if payload.startswith(b"\x00\x53"):
        return 0x70 <= payload[2] <= 0x78 if len(payload) > 2 else False
    if payload.startswith(b"\x00\x80\x00\x00\x00\x00\x00\x00\x00"):
        return 0x70 <= payload[9] <= 0x78 if len(payload) > 9 else False
    return payload.startswith((b"\x00\xa3", b"\x00\xb3")) and b"amqp:" in payload


def _may_be_first(frame: Frame, transfer: Transfer) -> bool:
    """Whether a transfer looks like the first one of a delivery."""
    return transfer.delivery_id is not None and begins_message(frame, transfer)


def _from_start(transfer: Transfer) -> bool:
    """Whether a resuming transfer's payload begins at the start of its message (messaging.xml)."""
    state = transfer.state
    return not isinstance(state, Received) or (state.section_number == 0 and state.section_offset == 0)

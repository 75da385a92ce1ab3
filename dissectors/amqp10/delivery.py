"""Putting messages together from the transfers of one direction (transport.xml, "Transferring a Message").

A delivery is one or more transfers on one link; all but its last have `more` set. Deliveries of
different links interleave freely, those of one link may not, so (channel, handle) says to which
delivery a transfer belongs. An aborted delivery has no message. One whose link is detached, or whose
session or connection ends, in the middle has none either.

After lost octets, and where the start was not captured, a transfer may continue a delivery whose first
one was not seen; it may repeat all that the first one says. On such a link nothing is taken for the
whole of a message before an attach or the end of a delivery was seen.
"""

from dissectors.amqp10.message import Message
from dissectors.amqp10.performatives import Attach, Begin, Detach, End, Transfer
from dissectors.interface import Frame
from dissectors.limits import MAX_MESSAGE, MAX_OPEN_DELIVERIES
from dissectors.wire import i64

__all__ = ["MessageAssembler"]

_DUMP_VERSION = 2


class _Delivery:
    """A delivery under way."""

    def __init__(self, message_format: i64, whole: bool) -> None:
        self.message_format: i64 = message_format
        self.whole: bool = whole
        self.parts: list[bytes] = []
        self.kept: i64 = 0
        self.size: i64 = 0


def _format(transfer: Transfer) -> i64:
    return 0 if transfer.message_format is None else transfer.message_format


class MessageAssembler:
    """Takes the frames of one direction in order, gives back the messages they complete."""

    def __init__(self) -> None:
        self._open: dict[int, _Delivery] = {}
        self._kept: i64 = 0
        # After lost octets, or a missing start: the links of which it is known where a delivery begins.
        self._gap: bool = False
        self._between: set[int] = set()

    def joined_midstream(self) -> None:
        """The frames before the first one were not captured."""
        self._gap = True

    def take(self, frame: Frame) -> Message | None:
        """A frame of this direction; the message if it completes one.

        A message whose first transfer was not seen, or of which octets are missing, is not `complete`.
        """
        body = frame.body
        if isinstance(body, Transfer):
            message = self._transfer(frame, body)
            if frame.missing > 0 and frame.payload_size == 0:
                # Fields may be among what is missing, also the one that says where the delivery ends.
                self._lost()
            return message
        if isinstance(body, Attach):
            if body.handle is not None and self._gap:
                self._over((int(frame.channel) << 32) | body.handle)
        elif isinstance(body, Detach):
            if body.handle is not None:
                self._forget((int(frame.channel) << 32) | body.handle)
        elif isinstance(body, (Begin, End)):
            self._forget_channel(int(frame.channel))
        elif frame.kind == "skipped" or frame.missing > 0:
            self._lost()
        return None

    def _lost(self) -> None:
        self._gap = True
        self._between.clear()
        for delivery in self._open.values():
            delivery.whole = False

    def _transfer(self, frame: Frame, transfer: Transfer) -> Message | None:
        if transfer.handle is None:
            # On no link that could be named: a message only if all of it is here.
            return None if transfer.more or transfer.aborted else self._single(frame, transfer, -1)
        key = (int(frame.channel) << 32) | transfer.handle
        delivery = self._open.get(key)
        size = frame.payload_size
        if delivery is None:
            if not transfer.more and not transfer.aborted:
                return self._single(frame, transfer, key)
            delivery = _Delivery(_format(transfer), not self._gap or key in self._between)
            if not transfer.aborted:
                self._start(key, delivery)
        if self._gap and (transfer.aborted or not transfer.more):
            self._over(key)
        if transfer.aborted:
            self._forget(key)
            return None
        delivery.size += size + frame.missing
        if frame.missing > 0:
            delivery.whole = False
        if delivery.whole and self._kept + size <= MAX_MESSAGE:
            delivery.parts.append(frame.payload)
            delivery.kept += size
            self._kept += size
        else:
            delivery.whole = False
        if transfer.more:
            return None
        self._forget(key)
        return Message(delivery.message_format, delivery.parts, delivery.size, delivery.whole)

    def _single(self, frame: Frame, transfer: Transfer, key: int) -> Message:
        """The message of a delivery in one transfer: nearly every one there is."""
        whole = frame.missing == 0
        if self._gap:
            whole = whole and key in self._between
            if key >= 0:
                self._over(key)
        return Message(_format(transfer), [frame.payload], frame.payload_size + frame.missing, whole)

    def _over(self, key: int) -> None:
        """No delivery is under way on a link: the next transfer begins one."""
        if len(self._between) < MAX_OPEN_DELIVERIES:
            self._between.add(key)

    def _start(self, key: int, delivery: _Delivery) -> None:
        if len(self._open) >= MAX_OPEN_DELIVERIES:
            self._forget(next(iter(self._open)))
        self._open[key] = delivery

    def _forget(self, key: int) -> None:
        delivery = self._open.pop(key, None)
        if delivery is not None:
            self._kept -= delivery.kept

    def _forget_channel(self, channel: int) -> None:
        for key in [key for key in self._open if key >> 32 == channel]:
            self._forget(key)

    def dump(self) -> tuple[object, ...]:
        """The deliveries under way, as plain values."""
        deliveries = tuple(
            (key, int(d.message_format), d.whole, b"".join(d.parts), int(d.size))
            for key, d in self._open.items()
        )
        return (_DUMP_VERSION, self._gap, deliveries, tuple(self._between))

    @staticmethod
    def load(state: tuple[object, ...]) -> "MessageAssembler":
        """An assembler that goes on where `dump` left off. Raises ValueError on another version's state."""
        if not state or state[0] != _DUMP_VERSION:
            raise ValueError(f"state of a message assembler in version {state[:1]}, not {_DUMP_VERSION}")
        assembler = MessageAssembler()
        assembler._gap = bool(state[1])
        deliveries, between = state[2], state[3]
        assert isinstance(deliveries, tuple) and isinstance(between, tuple)
        assembler._between = set(between)
        for key, message_format, whole, octets, size in deliveries:
            delivery = _Delivery(message_format, whole)
            delivery.parts = [octets] if octets else []
            delivery.kept = len(octets)
            delivery.size = size
            assembler._open[key] = delivery
            assembler._kept += delivery.kept
        return assembler

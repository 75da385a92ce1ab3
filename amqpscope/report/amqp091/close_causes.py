"""What a close of AMQP 0-9-1 is for.

Theory of operation. A close names the class and the method that it is for. The last few methods of a channel
are remembered, and of those with that name the one is taken for its cause whose names, or tag, stand in the
text of the close; if there is none, the last one that was there before it.
"""

from typing import Final

from amqpscope.limits import MAX_DIAGNOSED, MAX_LATEST_METHODS
from amqpscope.model.records import CLIENT, SERVER, FrameRecord
from amqpscope.report.close_causes import CloseCause, CloseCauses
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.events import Listener091
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import ChannelClose, ChannelOpen, ConnectionClose
from dissectors.amqp091.registry import new_method

__all__ = ["CloseCauses091"]

_MALFORMED: Final = (501, 502, 503, 504, 505)
"""Replies to frames that are not as they should be."""

_OF_FRAMES: Final = (501, 505)
"""Those to frames as such, whatever method they belong to."""


class CloseCauses091(CloseCauses, Listener091):
    """Watches one connection."""

    def __init__(self) -> None:
        super().__init__()
        self.followed = Conversation091()
        self.followed.subscribe(self)
        self.found: list[CloseCause] = []
        # The last methods of each channel and peer, with their packets and offsets.
        self.latest: dict[tuple[int, str], list[tuple[int, int, Method]]] = {}
        # The first malformed frame of each peer that no close was for yet, with its offset.
        self.faulty: dict[str, tuple[int, str, int, int]] = {}

    def see(self, record: FrameRecord) -> None:
        frame = record.frame
        if any(problem.code.isupper() for problem in frame.problems):
            place = (int(record.packet), frame.name, int(frame.channel), int(frame.offset))
            self.faulty.setdefault(record.peer, place)
        self.followed.take(record)

    def reported(self) -> list[CloseCause]:
        return sorted(self.found, key=lambda one: one.packet)

    def connection_method(self, record: FrameRecord, method: Method) -> None:
        if isinstance(method, ConnectionClose):
            self._caused(method, 0, record)
        self._keep(record, method, 0)

    def channel_opened(self, record: FrameRecord, method: ChannelOpen, channel: Channel) -> None:
        # What was said on the channel of this number before is over.
        for peer in (CLIENT, SERVER):
            self.latest.pop((int(channel.number), peer), None)

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        self._caused(method, int(channel.number), record)

    def channel_method(self, record: FrameRecord, method: Method, channel: Channel) -> None:
        self._keep(record, method, int(channel.number))

    def _tell(self, record: FrameRecord, text: str, cause: int, offset: int, sure: bool) -> None:
        if len(self.found) < MAX_DIAGNOSED:
            self.found.append(CloseCause(int(record.packet), text, cause, offset, sure))

    def _keep(self, record: FrameRecord, method: Method, channel: int) -> None:
        """A method is among the last of its channel and peer."""
        name = method.definition().name
        kept = self.latest.setdefault((channel, record.peer), [])
        newest = (int(record.packet), int(record.frame.offset), method)
        if name not in ("basic.ack", "basic.deliver") or not kept or kept[-1][2].definition().name != name:
            kept.append(newest)
        else:
            kept[-1] = newest
        if len(kept) > MAX_LATEST_METHODS:
            del kept[0]

    def _caused(self, close: ChannelClose | ConnectionClose, channel: int, record: FrameRecord) -> None:
        """Trace a close to the method that it names."""
        blamed = new_method(close.class_id, close.method_id)
        if blamed is None or close.reply_code in (-1, 0, 200) or len(self.found) >= MAX_DIAGNOSED:
            return
        name = blamed.definition().name
        other = SERVER if record.peer == CLIENT else CLIENT
        what = "the connection" if channel == 0 else f"channel {channel}"
        faulty = self.faulty.pop(other, None)
        if faulty is not None and (
            close.reply_code in _OF_FRAMES or (close.reply_code in _MALFORMED and faulty[1] == name)
        ):
            packet, name, number, offset = faulty
            wrong = f"the malformed {name} of the {other} in packet {packet} on channel {number}"
            self._tell(record, f"{what} is closed because of {wrong}", packet, offset, True)
            return
        places = list(self.latest) if channel == 0 else [(channel, other)]
        candidates = [
            (packet, offset, method, number)
            for number, peer in places
            if peer == other
            for packet, offset, method in self.latest.get((number, peer), ())
            if method.definition().name == name
        ]
        if not candidates:
            return
        text = close.reply_text or ""
        named = [one for one in candidates if _stands_in(one[2], text)]
        meant = named or candidates
        # All but the last of a method that waits for its answer were taken. Of publishes, if none was
        # taken, it is the first.
        waits = bool(blamed.definition().responses)
        sure = waits or len(meant) == 1
        packet, offset, _, number = (max if waits else min)(meant, key=lambda one: one[:2])
        where = f" on channel {number}" if channel == 0 and number else ""
        more = "" if sure else f", the first of {len(meant)} possible causes"
        because = f"{what} is closed because of {name} of the {other} in packet {packet}{where}{more}"
        self._tell(record, because, packet, offset, sure)


def _stands_in(method: Method, text: str) -> bool:
    """Whether a name or a tag that a method has stands in the text of a close."""
    for field, value in method.fields():
        if isinstance(value, str) and value and field.name not in ("type",) and f"'{value}'" in text:
            return True
        if field.name == "delivery-tag" and text.endswith(f" {value}"):
            return True
    return False

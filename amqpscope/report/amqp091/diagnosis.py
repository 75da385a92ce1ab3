"""What a connection of AMQP 0-9-1 came to: acknowledgements, confirms, silences, closes and what caused them.

Theory of operation. The `Conversation091` tells which deliveries an acknowledgement names and which messages
a confirm does, and has those that none has named yet; so it is known how long each waited. A close names the
class and the method that it is for. The last few methods of a channel are remembered, and of those with that
name the one is taken for its cause whose names, or tag, stand in the text of the close; if there is none,
the last one that was there before it.
"""

from typing import Final

from amqpscope.limits import MAX_DIAGNOSED, MAX_LATEST_METHODS
from amqpscope.model.records import CLIENT, SERVER, FrameRecord
from amqpscope.report.diagnosis import Diagnosed, Diagnosis
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import UNLIMITED
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import Listener091
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp091.states import BOTH_CLOSE, CLIENT_CLOSES, CLOSED, SERVER_CLOSES
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    ChannelClose,
    ChannelOpen,
    ConnectionBlocked,
    ConnectionClose,
    ConnectionUnblocked,
)
from dissectors.amqp091.problems import INTERLEAVED
from dissectors.amqp091.registry import new_method
from dissectors.protocol_header import ProtocolHeader

__all__ = ["Diagnosis091"]

_SECOND: Final = 1_000_000_000
_LATE: Final = _SECOND
"""An acknowledgement or a confirm is worth a line from here on (ns)."""

_CLOSING: Final = (CLIENT_CLOSES, SERVER_CLOSES, BOTH_CLOSE)
"""States of a channel whose close is reported already."""

_MALFORMED: Final = (501, 502, 503, 504, 505)
"""Replies to frames that are not as they should be."""

_OF_FRAMES: Final = (501, 505)
"""Those to frames as such, whatever method they belong to."""


class _Waiting:
    """How long things waited on a channel, of one kind: deliveries, or publishes."""

    def __init__(self) -> None:
        self.done = 0
        self.slowest = 0
        self.from_packet = 0
        self.to_packet = 0

    def over(self, began: int, packet: int, record: FrameRecord) -> None:
        """One of them was answered, by this frame."""
        self.done += 1
        waited = int(record.time) - began
        if waited > self.slowest:
            self.slowest = waited
            self.from_packet = packet
            self.to_packet = int(record.packet)


class Diagnosis091(Diagnosis, Listener091):
    """Watches one connection."""

    def __init__(self) -> None:
        super().__init__()
        followed = Conversation091()
        self.conversation = self.followed = followed
        self.view = followed.view
        followed.listeners.append(self)
        # How long deliveries, and messages that were published, waited, by channel.
        self.deliveries: dict[int, _Waiting] = {}
        self.publishes: dict[int, _Waiting] = {}
        self.found: list[Diagnosed] = []
        self.left: list[Diagnosed] = []
        # The last methods of each channel and peer, with their packets and offsets.
        self.latest: dict[tuple[int, str], list[tuple[int, int, Method]]] = {}
        # When each peer said its last frame, and its packet; its longest silence, and the packets around it.
        self.last: dict[str, tuple[int, int]] = {}
        # The same of the FIN of a peer, or of an RST of either peer, where it stands for a close.
        self.ends: dict[str, tuple[int, int]] = {}
        self.silences: dict[str, tuple[int, int, int]] = {}
        # The first malformed frame of each peer that no close was for yet, with its offset.
        self.faulty: dict[str, tuple[int, str, int, int]] = {}
        self.blocked: tuple[int, int] | None = None
        self.headers = 0
        self.interleaved: set[int] = set()

    def see(self, record: FrameRecord) -> None:
        frame, peer = record.frame, record.peer
        packet, time = int(record.packet), int(record.time)
        by_client = peer == CLIENT
        self._silence(peer, packet, time, int(record.last_time))
        channel = int(frame.channel)
        if any(problem.code.isupper() for problem in frame.problems):
            self.faulty.setdefault(peer, (packet, frame.name, channel, int(frame.offset)))
        for problem in frame.problems:
            if problem.code in INTERLEAVED and by_client and channel not in self.interleaved:
                self.interleaved.add(channel)
                text = f"channel {channel}: {problem.reason}; two threads of the client may share the channel"
                self._tell("diag/shared-channel", packet, text)
        self.followed.take(record)

    def stream_ended(self, peer: str, reason: str, packet: int, time: int) -> None:
        if self.view.ending.by_client is None and self.view.ending.by_server is None:
            for one in (CLIENT, SERVER) if reason == "rst" else (peer,):
                self.ends[one] = min(self.ends.get(one, (time, packet)), (time, packet))

    def reported(self) -> list[Diagnosed]:
        for channel in self.view.table.channels.values():
            if channel.state not in _CLOSING:
                self._leave(channel, "at the end of the capture")
        if self.blocked is not None:
            self._tell("diag/blocked", self.blocked[1], "publishers are blocked until the end of the capture")
        found = [*self.found, *self.left, *self._slow(), *self._lapses()]
        return sorted(found, key=lambda one: one.packet)

    # Frame by frame

    def _tell(
        self, code: str, packet: int, text: str, cause: int = 0, offset: int = -1, sure: bool = True
    ) -> None:
        if len(self.found) < MAX_DIAGNOSED:
            self.found.append(Diagnosed(code, packet, text, cause, offset, sure))

    def _silence(self, peer: str, packet: int, time: int, last_time: int) -> None:
        known = self.last.get(peer)
        if known is not None:
            self._silent(peer, known, packet, time)
        self.last[peer] = (last_time, packet)

    def _silent(self, peer: str, known: tuple[int, int], packet: int, time: int) -> None:
        since = max(known[0], int(self.view.agreed.time))
        if self.view.agreed.heartbeat > 0 and time - since > self.silences.get(peer, (0, 0, 0))[0]:
            self.silences[peer] = (time - since, known[1], packet)

    def header(self, record: FrameRecord, header: ProtocolHeader) -> None:
        if record.peer == CLIENT:
            self.headers += 1
            if self.headers == 2:
                what = "the client sends a second protocol header"
                self._tell("diag/header-twice", int(record.packet), what)

    def connection_method(self, record: FrameRecord, method: Method) -> None:
        packet, time = int(record.packet), int(record.time)
        if isinstance(method, ConnectionBlocked) and self.blocked is None:
            self.blocked = (time, packet)
        elif isinstance(method, (ConnectionUnblocked, ConnectionClose)) and self.blocked is not None:
            since, first = self.blocked
            self.blocked = None
            ended = (
                ""
                if isinstance(method, ConnectionUnblocked)
                else f", when the {record.peer} closes the connection"
            )
            text = (
                f"publishers are blocked for {(time - since) / _SECOND:.3f} s, until packet {packet}{ended}"
            )
            self._tell("diag/blocked", first, text)
        if isinstance(method, ConnectionClose):
            self._caused(method, 0, record)
        self._keep(record, method, 0)

    def channel_opened(self, record: FrameRecord, method: ChannelOpen, channel: Channel) -> None:
        # What was said on the channel of this number before is over.
        for peer in (CLIENT, SERVER):
            self.latest.pop((int(channel.number), peer), None)

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        if channel.state != BOTH_CLOSE:
            self._leave(channel, f"when the {record.peer} closed the channel in packet {int(record.packet)}")
        self._caused(method, int(channel.number), record)

    def channel_method(self, record: FrameRecord, method: Method, channel: Channel) -> None:
        self._keep(record, method, int(channel.number))

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        for delivery in deliveries:
            waiting = self.deliveries.setdefault(int(record.frame.channel), _Waiting())
            waiting.over(int(delivery.time), int(delivery.packet), record)

    def confirmed(self, record: FrameRecord, method: Method, publishes: list[Publish]) -> None:
        for publish in publishes:
            waiting = self.publishes.setdefault(int(record.frame.channel), _Waiting())
            waiting.over(int(publish.time), int(publish.packet), record)

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

    def _leave(self, channel: Channel, when: str) -> None:
        """What is not acknowledged, or not confirmed, on a channel that is over."""
        if len(self.left) >= MAX_DIAGNOSED or channel.state == CLOSED:
            return
        number = channel.number
        # What came before a loss may have been acknowledged in what is missing.
        lost = self.followed.lost_packet
        left = [one for one in channel.deliveries.unacknowledged.values() if one.packet > lost]
        if left:
            first = min(left, key=_tag)
            some = _many(len(left), "delivery", "deliveries")
            text = f"channel {number}: {some} not acknowledged {when}"
            text += f", the oldest is #{first.tag} in packet {first.packet}"
            window = _window(channel)
            if window and len(left) >= window:
                text += f"; the prefetch-count of {window} is reached, so the server sends no more"
            self.left.append(Diagnosed("diag/unacknowledged", int(first.packet), text))
        unconfirmed = channel.publishes.unconfirmed
        oldest = channel.publishes.oldest()
        if oldest is not None and oldest.number <= channel.publishes.sure_to:
            text = f"channel {number}: {_many(len(unconfirmed), 'publish', 'publishes')} not confirmed {when}"
            text += f", the oldest is number {oldest.number} in packet {oldest.packet}"
            self.left.append(Diagnosed("diag/unconfirmed", int(oldest.packet), text))

    # Why something was closed

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
            self._tell(
                "diag/closed", int(record.packet), f"{what} is closed because of {wrong}", packet, offset
            )
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
        self._tell("diag/closed", int(record.packet), because, packet, offset, sure)

    # What shows in the end

    def _slow(self) -> list[Diagnosed]:
        found = []
        for code, what, table in (
            ("diag/late-ack", "acknowledgement", self.deliveries),
            ("diag/late-confirm", "confirm", self.publishes),
        ):
            for number, waiting in table.items():
                if waiting.slowest >= _LATE:
                    text = (
                        f"channel {number}: the slowest of {waiting.done} {what}s took "
                        f"{waiting.slowest / _SECOND:.3f} s, from packet {waiting.from_packet} to "
                        f"{waiting.to_packet}"
                    )
                    found.append(Diagnosed(code, waiting.from_packet, text))
        return found[:MAX_DIAGNOSED]

    def _lapses(self) -> list[Diagnosed]:
        """Who let the heartbeat lapse. A peer's own FIN, or an RST, counts as its frame, as in the rules of
        the heartbeat; without one, the last frame of the connection counts as a frame of both.
        """
        heartbeat = int(self.view.agreed.heartbeat)
        if heartbeat <= 0:
            return []
        newest = max(self.last.values())
        for peer, known in self.last.items():
            end, packet = self.ends.get(peer, newest)
            if end > known[0]:
                self._silent(peer, known, packet, end)
        found = []
        for peer, (silence, first, last) in self.silences.items():
            if silence > 2 * heartbeat * _SECOND:
                text = (
                    f"the {peer} sends nothing for {silence / _SECOND:.3f} s (packets {first} to {last}), "
                    f"with a heartbeat of {heartbeat} s: after {2 * heartbeat} s the other "
                    "peer may consider it dead"
                )
                found.append(Diagnosed("diag/heartbeat", last, text))
        return found


def _many(count: int, one: str, more: str) -> str:
    return f"{count} {one} is" if count == 1 else f"{count} {more} are"


def _tag(delivery: ConsumerDelivery) -> int:
    return delivery.tag


def _window(channel: Channel) -> int:
    """The smallest prefetch window that holds for a channel's consumers, 0 for none."""
    windows = [int(consumer.limit) for consumer in channel.consumers.live.values() if not consumer.no_ack]
    if len(channel.consumers.windows):
        windows.append(int(channel.consumers.windows.newest()))
    least = min(windows, default=int(UNLIMITED))
    return 0 if least >= UNLIMITED else least


def _stands_in(method: Method, text: str) -> bool:
    """Whether a name or a tag that a method has stands in the text of a close."""
    for field, value in method.fields():
        if isinstance(value, str) and value and field.name not in ("type",) and f"'{value}'" in text:
            return True
        if field.name == "delivery-tag" and text.endswith(f" {value}"):
            return True
    return False

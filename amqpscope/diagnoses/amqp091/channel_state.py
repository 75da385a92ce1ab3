"""What the watches of channels know of one channel of AMQP 0-9-1."""

from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import UNLIMITED, Consumer
from dissectors.wire import i64

__all__ = ["ChannelState", "Held", "window_of"]


def window_of(channel: Channel, consumer: Consumer | None) -> i64:
    """How many deliveries a consumer of a channel may have unacknowledged, 0 for any number."""
    # mypyc: statements, because a conditional expression makes an object of each number.
    least: i64 = UNLIMITED
    if consumer is not None:
        least = consumer.limit
    windows = channel.consumers.windows
    if windows.bounds:
        newest = windows.newest()
        if newest < least:
            least = newest
    if least >= UNLIMITED:
        least = 0
    return least


class Held:
    """How many deliveries of a consumer are unacknowledged."""

    def __init__(self) -> None:
        self.count: i64 = 0


class ChannelState:
    """One life of a channel whose channel.open was captured."""

    def __init__(self, channel: Channel, packet: i64) -> None:
        self.channel: Channel = channel
        # That of channel.open.
        self.packet: i64 = packet
        # How many deliveries went over it.
        self.delivered: i64 = 0
        # Since when a peer has stopped it: its side, packet and time.
        self.stopped: tuple[int, int, int] | None = None
        # Of each consumer, how many deliveries are unacknowledged; since when its window is full.
        self.held: dict[str, Held] = {}
        # The consumer that was asked for last.
        self.last_tag: str = ""
        self.last_held: Held | None = None
        # The tags of the consumers that the server has cancelled here.
        self.cancelled: list[str] = []
        self.full_tag: str = ""
        self.full_packet: i64 = 0
        self.full_time: i64 = 0
        self.full_window: i64 = 0

    def held_of(self, tag: str) -> Held | None:
        """How many deliveries of a consumer are unacknowledged, None if there were none."""
        if tag is not self.last_tag:
            self.last_tag = tag
            self.last_held = self.held.get(tag)
        return self.last_held

    def hold(self, tag: str) -> Held:
        """The first delivery of a consumer comes."""
        held = self.held[tag] = Held()
        self.last_tag = tag
        self.last_held = held
        return held

    def holding(self, tag: str) -> i64:
        """How many deliveries of a consumer are unacknowledged."""
        held = self.held.get(tag)
        return 0 if held is None else held.count

    @property
    def subject(self) -> str:
        """The channel, for people."""
        return f"channel {self.channel.number}"

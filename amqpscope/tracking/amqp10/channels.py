"""The channels of a connection: which session a frame belongs to, or a begin answers."""

from typing import Any, Final

from amqpscope.model.records import FrameRef
from amqpscope.tracking.amqp10.credit import UNKNOWN
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.object_ids import ObjectIds
from dissectors.wire import i64

__all__ = ["NO_CHANNEL", "NO_CHANNELS", "Channels"]

# mypyc: sentinel, the channel of no frame at all; a frame without a channel has -1.
NO_CHANNEL: Final = -2


class Channels:
    """What an endpoint knows of channels, besides the sessions that are mapped to them."""

    def __init__(self) -> None:
        # How many sessions were begun, by either.
        self.begun: i64 = 0
        # Sessions that the endpoint has ended, by the channel on which it sent.
        self.ended: dict[int, SessionEnd] = {}
        # Sessions whose begin the peer has not answered, oldest first, by the channel it came on. A session
        # may be begun, ended and begun again before the first answer comes.
        self.unanswered: dict[int, list[SessionEnd]] = {}
        # Sessions whose begin the endpoint has not answered, oldest first, by the channel it came on.
        self.peer_unanswered: dict[int, list[SessionEnd]] = {}
        # A begin without remote-channel that the endpoint sent while one of the peer's waited for its answer.
        self.unasked: FrameRef | None = None
        # Offset in the peer's stream behind the begin that waited.
        self.unasked_end: i64 = UNKNOWN
        # A finding says already that a channel is not the lowest unused one.
        self.high_reported: bool = False
        # The channel of the endpoint's newest frame: nearly every frame is on the channel of the one before.
        self.own_channel: i64 = NO_CHANNEL
        # The session on that channel.
        self.own: SessionEnd | None = None
        # The channel of the peer's newest frame.
        self.peer_channel: i64 = NO_CHANNEL
        # The session on that channel.
        self.peer: SessionEnd | None = None

    def restart(self) -> None:
        """Both begin anew on the same TCP connection."""
        self.ended = {}
        self.unanswered = {}
        self.peer_unanswered = {}
        self.own_channel = NO_CHANNEL
        self.peer_channel = NO_CHANNEL

    def dump(self, sessions: ObjectIds) -> tuple[object, ...]:
        """All of it as plain values, each session by number."""
        return (
            int(self.begun),
            tuple((channel, sessions.number(session)) for channel, session in self.ended.items()),
            (_waiting(self.unanswered, sessions), _waiting(self.peer_unanswered, sessions)),
            (None if self.unasked is None else self.unasked.dump(), int(self.unasked_end)),
            self.high_reported,
        )

    @staticmethod
    def load(state: tuple[Any, ...], sessions: list[SessionEnd]) -> "Channels":
        """The object of what `dump` returned."""
        channels = Channels()
        channels.begun, ended, waiting, unasked, channels.high_reported = state
        channels.ended = {channel: sessions[at] for channel, at in ended}
        channels.unanswered = {channel: [sessions[at] for at in queue] for channel, queue in waiting[0]}
        channels.peer_unanswered = {channel: [sessions[at] for at in queue] for channel, queue in waiting[1]}
        channels.unasked = None if unasked[0] is None else FrameRef.load(unasked[0])
        channels.unasked_end = unasked[1]
        return channels


# mypyc: null object, for an endpoint on whose connection no session was begun.
NO_CHANNELS: Final = Channels()


def _waiting(queues: dict[int, list[SessionEnd]], roll: ObjectIds) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return tuple(
        (channel, tuple(roll.number(session) for session in queue)) for channel, queue in queues.items()
    )

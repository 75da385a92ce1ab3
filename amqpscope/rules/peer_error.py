"""An error that a peer sends, or the end of its stream, as a possible reaction to a fault."""

from typing import Any, Final

from amqpscope.model.reaction import Reaction
from dissectors.wire import i64

__all__ = ["FIN", "RST", "PeerError", "is_objection"]

FIN: Final = "FIN"
RST: Final = "RST"
"""What ends a stream, by the name that it has as a reaction."""


class PeerError:
    """A frame with an error, or the end of a stream, as the reaction to what the other peer did before.

    peer: who sent it. name: the name of the frame, or FIN, RST. condition: its condition or its reply-code;
    "" if it has none. packet, time (ns). read: how many octets of the other peer's stream its sender can have
    received, -1 if unknown. processed: how many octets the frames before it prove to have been processed.

    What the error is about, as far as it says so: channel (the other peer's number for it, -1 for any); link,
    and who sends on the link; method: the method that it names.
    """

    def __init__(
        self, peer: str, name: str, condition: str, packet: i64, time: i64, read: i64, processed: i64
    ) -> None:
        self.peer: str = peer
        self.name: str = name
        self.condition: str = condition
        self.packet: i64 = packet
        self.time: i64 = time
        self.read: i64 = read
        self.processed: i64 = processed
        self.channel: i64 = -1
        self.link: str = ""
        self.link_sender: str = ""
        self.method: str = ""

    def is_error(self) -> bool:
        """Whether it reports an error. A close may report none; the end of a stream counts as an error."""
        return self.condition != "" or self.name == "detach" or self.name == "end"

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (self.peer, self.name, self.condition),
            (int(self.packet), int(self.time), int(self.read), int(self.processed)),
            (int(self.channel), self.link, self.link_sender, self.method),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "PeerError":
        """The object of what `dump` returned."""
        (peer, name, condition), (packet, time, read, processed), what = state
        error = PeerError(peer, name, condition, packet, time, read, processed)
        error.channel, error.link, error.link_sender, error.method = what
        return error


def is_objection(reaction: Reaction) -> bool:
    """Whether the other peer named an error or cut the connection. A close without an error is neither."""
    return bool(reaction.condition) or reaction.frame in (FIN, RST)

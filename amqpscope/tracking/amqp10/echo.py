"""A flow of the peer that asks for a flow in return."""

from typing import Any, Final

from dissectors.wire import i64

__all__ = ["NO_ECHO", "Echo"]


class Echo:
    """The oldest flow with echo=true that is not answered yet, of a session or of a link."""

    def __init__(self, end: i64, time: i64, packet: i64) -> None:
        # Offset in the peer's stream behind the flow, -1 if no flow waits for an answer.
        self.end: i64 = end
        # When the flow was captured (ns).
        self.time: i64 = time
        # The packet in which the flow begins.
        self.packet: i64 = packet

    def dump(self) -> tuple[int, int, int]:
        """All of it as plain values."""
        return (int(self.end), int(self.time), int(self.packet))

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Echo":
        """The object of what `dump` returned."""
        return Echo(*state)


# mypyc: null object, where no flow waits for an answer. Nothing writes to it.
NO_ECHO: Final = Echo(-1, 0, 0)

"""A fault of one peer that the other peer has to answer by ending a link, session or connection.

The fault is kept at the peer that has to answer, until that peer answers or shows that it continues.
"""

from typing import Any, Final

from dissectors.wire import i64

__all__ = ["CLOSE", "DETACH", "END", "PendingErrorResponse"]

CLOSE: Final = "close"
END: Final = "end"
DETACH: Final = "detach"


class PendingErrorResponse:
    """One frame that was wrong.

    rule: that of the answer. due: the answer, CLOSE, END or DETACH. condition: its error. end: behind the
    frame, in its sender's stream. packet, time (ns): of its first octet. channel, handle: its sender's, -1
    for none. delivery: its delivery-id, -1 for none. tolerable: what it asks for may be done nevertheless, so
    that only a wrong answer counts. seen: time (ns) of the first frame with which whoever has to answer shows
    that it can have received it, 0 until then.
    """

    def __init__(self, rule: str, due: str, condition: str, end: i64, packet: i64, time: i64) -> None:
        self.rule: str = rule
        self.due: str = due
        self.condition: str = condition
        self.end: i64 = end
        self.packet: i64 = packet
        self.time: i64 = time
        self.channel: i64 = -1
        self.handle: i64 = -1
        self.delivery: i64 = -1
        self.tolerable: bool = False
        self.seen: i64 = 0

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            (self.rule, self.due, self.condition, int(self.end), int(self.packet), int(self.time)),
            (int(self.channel), int(self.handle), int(self.delivery), self.tolerable, int(self.seen)),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "PendingErrorResponse":
        """The object of what `dump` returned."""
        rule, due, condition, end, packet, time = state[0]
        pending_error = PendingErrorResponse(rule, due, condition, end, packet, time)
        (
            pending_error.channel,
            pending_error.handle,
            pending_error.delivery,
            pending_error.tolerable,
            pending_error.seen,
        ) = state[1]
        return pending_error

"""A close of a channel or of the connection, with the fields that its sender set."""

from typing import Any

from dissectors.wire import i64

__all__ = ["CloseReason"]


class CloseReason:
    """A close: why it was sent, and where.

    code, text: its reply-code and the beginning of its reply-text. class_id, method_id: the method that the
    close names as its cause. end: the offset after it. packet, time (ns): of its first octet.
    """

    def __init__(
        self, code: i64, text: str, class_id: i64, method_id: i64, end: i64, packet: i64, time: i64
    ) -> None:
        self.code: i64 = code
        self.text: str = text
        self.class_id: i64 = class_id
        self.method_id: i64 = method_id
        self.end: i64 = end
        self.packet: i64 = packet
        self.time: i64 = time

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            int(self.code),
            self.text,
            int(self.class_id),
            int(self.method_id),
            int(self.end),
            int(self.packet),
            int(self.time),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "CloseReason":
        """The object of what `dump` returned."""
        return CloseReason(*state)

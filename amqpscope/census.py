"""Counting frames: what `read --count` shows. Compiled, for it looks at every frame of a capture."""

from amqpscope.model import FrameRecord
from dissectors.wire import i64

__all__ = ["Census"]


class Census:
    """Frames by name, of the client and of the server."""

    def __init__(self) -> None:
        self.client: dict[str, int] = {}
        self.server: dict[str, int] = {}
        self.frames: i64 = 0
        self.octets: i64 = 0
        self.problems: i64 = 0
        self.missing: i64 = 0

    def add(self, records: list[FrameRecord]) -> None:
        """Count these frames."""
        client = self.client
        server = self.server
        for record in records:
            frame = record.frame
            name = frame.name
            if record.direction == record.connection.client:
                client[name] = client.get(name, 0) + 1
            else:
                server[name] = server.get(name, 0) + 1
            self.frames += 1
            self.octets += frame.size - frame.missing
            self.missing += frame.missing
            if frame.problems:
                self.problems += 1

    def rows(self) -> list[tuple[str, int, int]]:
        """(name, frames of the client, frames of the server), in the order of a conversation."""
        names = sorted(set(self.client) | set(self.server), key=_order)
        return [(name, self.client.get(name, 0), self.server.get(name, 0)) for name in names]


_ORDER = (
    "header",
    "sasl-mechanisms",
    "sasl-init",
    "sasl-challenge",
    "sasl-response",
    "sasl-outcome",
    "open",
    "begin",
    "attach",
    "flow",
    "transfer",
    "disposition",
    "detach",
    "end",
    "close",
    "empty",
)


def _order(name: str) -> tuple[int, str]:
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)

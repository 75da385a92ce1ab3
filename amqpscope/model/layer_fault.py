"""What layers report of their peers: which one broke a rule of the layer, and where."""

from typing import Any

from dissectors.wire import i64

__all__ = ["LayerFault", "LayerFaults"]


class LayerFault:
    """A peer breaks a rule of a layer.

    name: of the fault; the rules of the layer have a rule for each name. direction: of the peer at fault.
    packet, time (ns), offset: of the first octet of what breaks the rule, in the stream below the layer.
    what: `websocket frame` or `websocket handshake`. message: one sentence with the values.
    """

    def __init__(
        self, name: str, direction: i64, offset: i64, packet: i64, time: i64, what: str, message: str
    ) -> None:
        self.name: str = name
        self.direction: i64 = direction
        self.offset: i64 = offset
        self.packet: i64 = packet
        self.time: i64 = time
        self.what: str = what
        self.message: str = message

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        numbers = (int(self.direction), int(self.offset), int(self.packet), int(self.time))
        return (self.name, *numbers, self.what, self.message)


class LayerFaults:
    """The faults of a connection's layers: each name once for each direction.

    waiting: those that nobody has taken yet.
    """

    def __init__(self) -> None:
        self.waiting: list[LayerFault] = []
        self.seen: set[tuple[str, int]] = set()

    def add(self, fault: LayerFault) -> None:
        """One more, unless it is known."""
        known = (fault.name, int(fault.direction))
        if known not in self.seen:
            self.seen.add(known)
            self.waiting.append(fault)

    def take(self) -> list[LayerFault]:
        """Those that wait."""
        taken = self.waiting
        self.waiting = []
        return taken

    def dump(self) -> tuple[object, ...]:
        """The state, as plain values."""
        return (tuple(fault.dump() for fault in self.waiting), tuple(sorted(self.seen)))

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go on where `dump` left off."""
        waiting, seen = state
        self.waiting = [LayerFault(*fault) for fault in waiting]
        self.seen = set(seen)

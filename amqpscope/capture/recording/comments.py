"""What is to be said of packets that are in hand, within bounds: a packet's, and those of all together."""

from typing import Final

from amqpscope.capture.recording.blocks import comment, plain
from amqpscope.limits import MAX_COMMENT, MAX_COMMENTS_HELD, MAX_PACKET_COMMENTS

__all__ = ["Comments"]

_LEAST: Final = 32  # octets that comments take beside themselves: the end, and how many more there are


class Said:
    """What is to be said of one packet: options, at most `octets` in all, and how many more there were."""

    def __init__(self) -> None:
        self.options: list[bytes] = []
        self.octets = _LEAST
        self.more = 0

    def add(self, text: bytes) -> None:
        """One more."""
        option = comment(text)
        if self.octets + len(option) > MAX_PACKET_COMMENTS:
            self.more += 1
        else:
            self.options.append(option)
            self.octets += len(option)

    def joined(self) -> bytes:
        """All as options of a block."""
        options = self.options
        if self.more:
            options = [*options, comment(b"and %d more" % self.more)]
        return b"".join(options)


class Comments:
    """By number of packet. octets: that all of them take. unsaid: those that there was no memory for.

    late: something is to be said of the next packet, whichever that is.
    """

    def __init__(self) -> None:
        self.octets = 0
        self.unsaid = 0
        self.late = False
        self._said: dict[int, Said] = {}
        self._next = Said()

    @property
    def full(self) -> bool:
        """There is no memory for more."""
        return self.octets > MAX_COMMENTS_HELD

    def add(self, packet: int, text: str) -> None:
        """One of a packet in hand; it is counted only if there is no memory for it."""
        full = self.full
        said = self._said.get(packet)
        if said is None:
            if full:
                self.unsaid += 1
                return
            said = self._said[packet] = Said()
            self.octets += _LEAST
        if full:
            said.more += 1
        else:
            self.octets -= said.octets
            said.add(plain(text, MAX_COMMENT))
            self.octets += said.octets

    def add_late(self, text: str) -> None:
        """One for the next packet."""
        self._next.add(plain(text, MAX_COMMENT))
        self.late = True

    def take_late(self) -> bytes:
        """What was for the next packet, as options of a block."""
        options = self._next.joined()
        self._next = Said()
        self.late = False
        return options

    def move_late(self, packet: int) -> None:
        """What was for the next packet is for this one."""
        self._said[packet] = self._next
        self.octets += self._next.octets
        self._next = Said()
        self.late = False

    def octets_of(self, packet: int) -> int:
        """What a packet's comments take, at most."""
        said = self._said.get(packet)
        return 0 if said is None else said.octets

    def take(self, packet: int) -> bytes | None:
        """What is to be said of a packet, as options of its block. It is said then."""
        said = self._said.pop(packet, None)
        if said is None:
            return None
        self.octets -= said.octets
        return said.joined()

    def forget(self, before: int) -> None:
        """Packets before this one are gone."""
        for packet in [packet for packet in self._said if packet < before]:
            self.octets -= self._said.pop(packet).octets

    def clear(self) -> None:
        """Nothing is in hand any more."""
        self._said.clear()

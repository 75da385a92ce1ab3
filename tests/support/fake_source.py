"""A fake live source: packets in groups, losses between them, and what happens to its interface."""

from __future__ import annotations

from dataclasses import dataclass, field

from amqpscope.capture.link_layer import LINK_ETHERNET
from amqpscope.capture.live.source import LiveInterface, LiveSource
from amqpscope.capture.packet import PacketDecoder

__all__ = ["FakeSource", "PacketGroup", "packets_of"]


def packets_of(pcap: bytes) -> list[tuple[int, bytes]]:
    """Time (ns) and octets of each packet of a little-endian pcap file in microseconds."""
    found = []
    at = 24
    while at < len(pcap):
        seconds, fraction, size = (int.from_bytes(pcap[at + n : at + n + 4], "little") for n in (0, 4, 8))
        found.append((seconds * 1_000_000_000 + fraction * 1000, pcap[at + 16 : at + 16 + size]))
        at += 16 + size
    return found


@dataclass
class PacketGroup:
    """What one `take` finds: packets were lost before it, these come, this has happened."""

    packets: list[tuple[int, bytes]] = field(default_factory=list)
    lost: int = 0
    events: list[str] = field(default_factory=list)


class FakeSource(LiveSource):
    """Gives group after group, then nothing; or ends with them, as a pipe does."""

    def __init__(self, groups: list[PacketGroup], *, ends: bool = True) -> None:
        super().__init__("made up")
        self.interfaces = [LiveInterface("made up", "", LINK_ETHERNET, True)]
        self.groups = list(groups)
        self.lost = 0
        self.ends = ends
        self.taken = 0
        self.waited: list[float] = []

    @property
    def number(self) -> int:
        return self.taken

    def wait(self, seconds: float) -> None:
        self.waited.append(seconds)

    def take(self, decoder: PacketDecoder) -> int:
        if not self.groups:
            return 0
        group = self.groups.pop(0)
        self.lost += group.lost
        self._events += group.events
        for time, octets in group.packets:
            self.taken += 1
            decoder.packet(self.taken, time, LINK_ETHERNET, octets, 0, len(octets), len(octets))
        return len(group.packets)

    def dropped(self) -> int:
        return self.lost

    def drops(self, index: int) -> int:
        return self.lost if index == 0 else 0

    def fill(self) -> float:
        return min(len(self.groups) / 10, 1.0)

    def ended(self) -> bool:
        return self.ends and not self.groups

    def _waiting(self) -> bool:
        return bool(self.groups)

    def _stirred(self, descriptor: int) -> bool:
        return False

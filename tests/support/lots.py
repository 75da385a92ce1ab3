"""A live source that is made up: packets in lots, losses between them, and what happens to its interface."""

from __future__ import annotations

from dataclasses import dataclass, field

from amqpscope.capture.link_layer import LINK_ETHERNET
from amqpscope.capture.live.source import LiveInterface, LiveSource
from amqpscope.capture.packet import PacketDecoder

__all__ = ["Lot", "Lots", "packets_of"]


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
class Lot:
    """What one `take` finds: packets were lost before it, these come, this has happened."""

    packets: list[tuple[int, bytes]] = field(default_factory=list)
    lost: int = 0
    events: list[str] = field(default_factory=list)


class Lots(LiveSource):
    """Gives lot after lot, then nothing; or ends with them, as a pipe does."""

    def __init__(self, lots: list[Lot], *, ends: bool = True) -> None:
        super().__init__("made up")
        self.interfaces = [LiveInterface("made up", "", LINK_ETHERNET, True)]
        self.lots = list(lots)
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
        if not self.lots:
            return 0
        lot = self.lots.pop(0)
        self.lost += lot.lost
        self._events += lot.events
        for time, octets in lot.packets:
            self.taken += 1
            decoder.packet(self.taken, time, LINK_ETHERNET, octets, 0, len(octets), len(octets))
        return len(lot.packets)

    def dropped(self) -> int:
        return self.lost

    def drops(self, index: int) -> int:
        return self.lost if index == 0 else 0

    def fill(self) -> float:
        return min(len(self.lots) / 10, 1.0)

    def ended(self) -> bool:
        return self.ends and not self.lots

    def _waiting(self) -> bool:
        return bool(self.lots)

    def _stirred(self, descriptor: int) -> bool:
        return False

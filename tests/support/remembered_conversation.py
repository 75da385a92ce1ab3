"""A conversation that remembers what was said, and what must be read of what the tap captured of it.

    capture = Capture()
    talk = RememberedConversation(capture)
    talk.tcp.handshake()
    talk.client(AMQP_HEADER, frame(open_(container_id="c")))
    talk.server(AMQP_HEADER, frame(open_(container_id="s")), cut=(3, 10))
    assert reported(read(capture)) == talk.expected()

What must be read is worked out from the packets in `capture.packets` as they lie there, by the IP and TCP
headers in their octets: for each octet of a stream the first packet that carries it, and the acknowledgement
of that packet. So a test may do with the packets what it likes. Nothing here is shared with the product.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from support.amqp10_encode import COMPOSITES
from support.tcp_writer import FIN, SYN, Capture, End, Packet

import amqpscope
from amqpscope.model.records import FrameRecord

NAMES = {number: name for name, (number, _) in COMPOSITES.items()}

LINK_SIZES = {"ethernet": 14, "sll": 16, "sll2": 20, "null": 4, "loop": 4, "raw": 0, "ipv4": 0, "ipv6": 0}


class Reported(NamedTuple):
    """What is to be known of a frame and its evidence."""

    peer: str
    offset: int
    size: int
    kind: str
    name: str
    packet: int
    time: int
    last_packet: int
    last_time: int
    acknowledged: int
    missing: int


@dataclass(frozen=True)
class Said:
    """A frame (or header) as an end said it, at this offset of its stream."""

    end: End
    offset: int
    octets: bytes

    @property
    def kind(self) -> str:
        if self.octets.startswith(b"AMQP"):
            return "header"
        return "sasl" if self.octets[5] == 1 else "amqp"

    @property
    def name(self) -> str:
        if self.kind == "header":
            return "header"
        body = self.octets[self.octets[4] * 4 :]
        if not body:
            return "empty"
        if body[1] == 0x53:
            return NAMES[body[2]]
        if body[1] == 0x80:
            return NAMES[int.from_bytes(body[2:10], "big")]
        size = body[2] if body[1] == 0xA3 else int.from_bytes(body[2:6], "big")
        start = 3 if body[1] == 0xA3 else 6
        return body[start : start + size].decode("ascii").removeprefix("amqp:").removesuffix(":list")


class Seen(NamedTuple):
    """One captured segment: offsets as the ends counted them, whatever the capture knows of them."""

    number: int
    time: int
    offset: int
    captured: int
    size: int
    ack: int
    flags: int

    def has(self, offset: int) -> bool:
        """Whether the octet at `offset` was captured with it."""
        return self.offset <= offset < self.offset + self.captured


class RememberedConversation:
    """A connection of a capture; `client(...)` and `server(...)` say frames."""

    def __init__(self, capture: Capture, *ends: str, **options: Any) -> None:
        self.capture = capture
        self.tcp = capture.connection(*ends, **options)
        self.said: list[Said] = []

    def client(self, *frames: bytes, **how: Any) -> list[Packet]:
        return self.say(self.tcp.client, *frames, **how)

    def server(self, *frames: bytes, **how: Any) -> list[Packet]:
        return self.say(self.tcp.server, *frames, **how)

    def say(self, end: End, *frames: bytes, **how: Any) -> list[Packet]:
        """Frames in one `send`; `how` is passed on to it."""
        offset = end.sent
        for octets in frames:
            self.said.append(Said(end, offset, octets))
            offset += len(octets)
        return end.send(b"".join(frames), **how)

    # ---- what the tap has of it ---------------------------------------------------------------------------

    def segments(self, end: End) -> list[Seen]:
        """The captured segments of one end, from the octets of the packets."""
        seen = []
        for number, packet in enumerate(self.capture.packets, 1):
            at = LINK_SIZES[self.capture.link]
            if self.capture.link == "ethernet":
                at += 4 * len(self.capture.vlan)
            ip = packet.data[at:]
            width = 4 if ip[0] >> 4 == 4 else 16
            start = 12 if width == 4 else 8
            addresses = ip[start : start + 2 * width]
            tcp = (ip[0] & 15) * 4 if width == 4 else 40
            total = int.from_bytes(ip[2:4], "big") if width == 4 else int.from_bytes(ip[4:6], "big") + 40
            ports = ip[tcp : tcp + 4]
            peer = end.peer
            if addresses != end.address.packed + peer.address.packed:
                continue
            if ports != end.port.to_bytes(2, "big") + peer.port.to_bytes(2, "big"):
                continue
            flags = ip[tcp + 13]
            data = tcp + (ip[tcp + 12] >> 4) * 4
            sequence = int.from_bytes(ip[tcp + 4 : tcp + 8], "big") + (1 if flags & SYN else 0)
            offset = _signed(sequence - end.isn - 1)
            ack = (
                _signed(int.from_bytes(ip[tcp + 8 : tcp + 12], "big") - peer.isn - 1) if flags & 0x10 else -1
            )
            size = total - data
            captured = max(0, min(len(ip) - data, size))
            seen.append(Seen(number, packet.time, offset, captured, size, ack, flags))
        return seen

    def origins(self, end: End) -> dict[int, Seen]:
        """For each octet of a stream the captured segment that carried it first.

        One whose octet was cut off by the snapshot length counts if no other has it.
        """
        origins: dict[int, Seen] = {}
        segments = self.segments(end)
        for segment in segments:
            for offset in range(segment.offset, segment.offset + segment.captured):
                origins.setdefault(offset, segment)
        for segment in segments:
            for offset in range(segment.offset + segment.captured, segment.offset + segment.size):
                origins.setdefault(offset, segment)
        return origins

    def base(self, end: End) -> int:
        """Where the captured stream begins: behind its SYN, else at the first captured segment."""
        segments = self.segments(end)
        if not segments or any(segment.flags & SYN for segment in segments):
            return 0
        return min(segment.offset for segment in segments if segment.size or not segment.flags & FIN)

    def expected(self) -> list[Reported]:
        """What must be read: every frame of which all octets were captured, and a transfer of which only
        payload is missing. In the order of the capture of their last octets, the client's first in a tie.

        Of a transfer with a hole what stands before it is kept, so all behind counts as missing.
        """
        all_origins = {end: self.origins(end) for end in (self.tcp.client, self.tcp.server)}
        reported: list[Reported] = []
        for said in self.said:
            origins = all_origins[said.end]
            end = said.offset + len(said.octets)
            missing = [at for at in range(said.offset, end) if at not in origins or not origins[at].has(at)]
            last = origins.get(end - 1)
            if last is None or (missing and not self._only_payload(said, missing)):
                continue
            first = origins[said.offset]
            reported.append(
                Reported(
                    "client" if said.end.is_client else "server",
                    said.offset - self.base(said.end),
                    len(said.octets),
                    said.kind,
                    said.name,
                    first.number,
                    first.time,
                    last.number,
                    last.time,
                    self.heard(said.end, first.ack),
                    end - missing[0] if missing else 0,
                )
            )
        return sorted(reported, key=lambda one: (one.last_packet, one.peer, one.offset))

    def heard(self, end: End, ack: int) -> int:
        """An acknowledgement as an offset of the other stream as it was captured."""
        if ack < 0 and ack == -1:
            return -1
        upto = min(ack, end.peer.sent)  # a FIN takes a number but is no octet
        return max(upto - self.base(end.peer), 0)

    def _only_payload(self, said: Said, missing: list[int]) -> bool:
        if said.name != "transfer":
            return False
        start = said.octets[4] * 4  # of the performative: descriptor, then a list with a size of 1 octet
        assert said.octets[start + 3] == 0xC0
        return missing[0] - said.offset >= start + 5 + said.octets[start + 4]


def _signed(number: int) -> int:
    """A difference of sequence numbers, the nearest to 0."""
    return (number + 2**31) % 2**32 - 2**31


def read(capture: Capture, **options: Any) -> list[FrameRecord]:
    """The frame records of what was captured."""
    return list(amqpscope.read(io.BytesIO(capture.pcap(nanoseconds=True)), **options))


def reported(records: Iterable[FrameRecord], *, skipped: bool = False) -> list[Reported]:
    """What is known of the frames; `skipped` says whether stretches that are no frames are listed too."""
    return [
        Reported(
            record.peer,
            int(record.frame.offset),
            int(record.frame.size),
            record.frame.kind,
            record.frame.name,
            int(record.packet),
            int(record.time),
            int(record.last_packet),
            int(record.last_time),
            int(record.acknowledged),
            int(record.frame.missing),
        )
        for record in records
        if skipped or record.frame.kind != "skipped"
    ]


def by_peer(frames: Iterable[Reported]) -> dict[str, list[Reported]]:
    """The frames of each direction, in the order of its stream."""
    sides: dict[str, list[Reported]] = {"client": [], "server": []}
    for one in sorted(frames, key=lambda one: one.offset):
        sides[one.peer].append(one)
    return sides

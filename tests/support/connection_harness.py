"""One connection, fed segment by segment without a capture file around it.

    harness = ConnectionHarness()
    harness.send(0, AMQP_HEADER)
    harness.send(1, AMQP_HEADER, each=3)
    harness.skip(0, 20)                      # octets that were not captured
    harness.finish()
    harness.out, harness.notes, harness.analysis

Direction 0 is the client's. An end acknowledges all that the other has sent (and the capture may not have).
Packets count from 1, a millisecond apart.
"""

from __future__ import annotations

from support.segments import captured

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.model.note import Note
from amqpscope.model.records import Connection, FrameRecord

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MILLISECOND = 1_000_000


class ConnectionHarness:
    """`reload`: after every segment the analysis is dumped and loaded."""

    def __init__(
        self,
        ports: tuple[int, int] = (51034, 5672),
        *,
        syn: bool = True,
        messages: bool = True,
        reload: bool = False,
        isn: tuple[int, int] = (1000, 2000),
    ) -> None:
        key = bytes((10, 0, 0, 1, 10, 0, 0, 2)) + ports[0].to_bytes(2, "big") + ports[1].to_bytes(2, "big")
        self.output = AnalysisOutput(messages)
        self.analysis = ConnectionAnalysis(Connection("capture", 0, 0, key), self.output)
        self.isn = isn
        self.sent = [0, 0]
        self.packet = 0
        self.reload = reload
        if syn:
            self.segment(0, b"", offset=-1, ack=-1, flags=SYN)
            self.segment(1, b"", offset=-1, flags=SYN | ACK)

    @property
    def out(self) -> list[FrameRecord]:
        assert self.output.records is not None
        return self.output.records

    @property
    def notes(self) -> list[Note]:
        return self.output.notes

    @property
    def connection(self) -> Connection:
        return self.analysis.connection

    def segment(
        self,
        direction: int,
        octets: bytes,
        *,
        offset: int | None = None,
        ack: int | None = None,
        flags: int = ACK,
        cut: int = 0,
    ) -> None:
        """One segment; `ack` counts octets of the other stream, -1 for none."""
        start = self.sent[direction] if offset is None else offset
        heard = self.sent[1 - direction] if ack is None else ack
        self.packet += 1
        segment = captured(
            octets,
            packet=self.packet,
            time=self.packet * MILLISECOND,
            seq=(self.isn[direction] + 1 + start) & 0xFFFFFFFF,
            ack=-1 if heard < 0 else (self.isn[1 - direction] + 1 + heard) & 0xFFFFFFFF,
            flags=flags,
            cut=cut,
        )
        self.analysis.tcp.segment(direction, segment)
        self.sent[direction] = max(self.sent[direction], start + len(octets) + cut)
        if self.reload:
            self.analysis = ConnectionAnalysis.load(self.analysis.dump(), self.output)

    def send(self, direction: int, octets: bytes, *, each: int = 0) -> None:
        """The next octets of a direction, in segments of `each` octets."""
        for at in range(0, len(octets), each or max(1, len(octets))):
            self.segment(direction, octets[at : at + each] if each else octets, flags=PSH | ACK)

    def skip(self, direction: int, size: int) -> None:
        """`size` octets that are sent and not captured."""
        self.sent[direction] += size

    def end(self, direction: int, flags: int = FIN | ACK) -> None:
        """FIN, or another end."""
        self.segment(direction, b"", flags=flags)

    def finish(self, reason: str = "capture") -> ConnectionHarness:
        self.analysis.finish(reason)
        return self

    def names(self, direction: int) -> list[str]:
        """The names of a direction's frames."""
        return [one.frame.name for one in self.out if one.direction == direction]

"""TCP conversations for tests, and a sink that remembers what it was given and checks that it could be.

    wire = Wire(isn=(7, 9))
    wire.syn(0); wire.syn(1); wire.data(0, b"abc"); wire.data(1, b"de"); wire.fin(0)
    recorder = replay(wire.segments)
    assert recorder.stream(0) == b"abc"

A `Segment` is what the wire carried, with true offsets; `raw` turns it into numbers of 32 bits. Reorder,
repeat, cut and drop segments of the list as you like.
"""

from dataclasses import dataclass, replace

from support.segments import captured

from amqpscope.reassembly.connection import TcpConnection
from amqpscope.reassembly.provenance import Provenance
from amqpscope.reassembly.stream import StreamSink

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MILLISECOND = 1_000_000


def octets(direction: int, start: int, end: int) -> bytes:
    """What stands at [start, end) in a direction's stream: different at each place and in each direction."""
    return bytes((at * (3 + 2 * direction) + (at >> 8) * 7 + direction) & 0xFF for at in range(start, end))


@dataclass(frozen=True)
class Segment:
    """One segment. `offset` and `ack` count octets of the streams; `ack` -1 without the ACK flag."""

    direction: int
    offset: int
    payload: bytes
    ack: int
    flags: int = ACK
    cut: int = 0
    packet: int = 0
    time: int = 0

    @property
    def end(self) -> int:
        """The offset behind what it carried on the wire."""
        return self.offset + len(self.payload) + self.cut


class Recorder(StreamSink):
    """Remembers all it is reported. Raises AssertionError when the sink's contract is broken."""

    def __init__(self, causal: bool = True) -> None:
        self.causal = causal
        self.events: list[tuple[object, ...]] = []
        self.reached = [0, 0]
        self.ended = ["", ""]
        self.acks: tuple[list[int], list[int]] = (
            [],
            [],
        )  # for each octet: the acknowledgement reported with it
        self.packets: tuple[list[int], list[int]] = ([], [])  # and the packet; -1 for a gap
        self.pieces: tuple[list[bytes], list[bytes]] = ([], [])
        self.notes: list[tuple[int, str, int, str]] = []

    def data(
        self, direction: int, offset: int, buf: bytes, start: int, end: int, provenance: Provenance
    ) -> None:
        packet, time, ack = provenance.dump()
        assert 0 <= start < end <= len(buf)
        assert offset == self.reached[direction], "a hole or an overlap"
        assert not self.ended[direction]
        assert ack >= -1
        if self.causal:
            assert ack <= self.reached[1 - direction], "reported before the octets that it acknowledges"
        size = end - start
        self.reached[direction] += size
        self.pieces[direction].append(buf[start:end])
        self.acks[direction].extend([ack] * size)
        self.packets[direction].extend([packet] * size)
        self.events.append(("data", direction, offset, buf[start:end], packet, time, ack))

    def gap(self, direction: int, offset: int, size: int, packet: int, time: int) -> None:
        assert size > 0
        assert offset == self.reached[direction], "a hole or an overlap"
        assert not self.ended[direction]
        self.reached[direction] += size
        if size < 100_000:
            self.pieces[direction].append(b"?" * size)
            self.acks[direction].extend([-1] * size)
            self.packets[direction].extend([-1] * size)
        self.events.append(("gap", direction, offset, size, packet, time))

    def end(self, direction: int, reason: str, packet: int, time: int) -> None:
        assert not self.ended[direction]
        assert reason in ("fin", "rst")
        self.ended[direction] = reason
        self.events.append(("end", direction, reason, packet, time))

    def note(self, direction: int, code: str, packet: int, time: int, detail: str) -> None:
        self.notes.append((direction, code, packet, detail))
        self.events.append(("note", direction, code, packet, time, detail))

    def codes(self) -> list[str]:
        """The codes of all notes, in order."""
        return [code for _, code, _, _ in self.notes]

    def stream(self, direction: int) -> bytes:
        """All octets, "?" for each missing one."""
        return b"".join(self.pieces[direction])

    def gaps(self, direction: int) -> list[tuple[int, int]]:
        """(offset, size) of the gaps, neighbours joined."""
        joined: list[tuple[int, int]] = []
        for event in self.events:
            if event[0] == "gap" and event[1] == direction:
                _, _, offset, size, _, _ = event
                assert isinstance(offset, int)
                assert isinstance(size, int)
                if joined and sum(joined[-1]) == offset:
                    joined[-1] = (joined[-1][0], joined[-1][1] + size)
                else:
                    joined.append((offset, size))
        return joined


class Wire:
    """Builds a conversation in the order in which it was said."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self.sent = [0, 0]
        self.finished = [False, False]

    def _add(self, segment: Segment) -> Segment:
        number = len(self.segments) + 1
        segment = replace(segment, packet=number, time=number * MILLISECOND)
        self.segments.append(segment)
        return segment

    def knows(self, direction: int) -> int:
        """What the sender of a direction has received of the other, its FIN included."""
        return self.sent[1 - direction] + (1 if self.finished[1 - direction] else 0)

    def syn(self, direction: int) -> Segment:
        """SYN, or SYN with ACK for the second. Stands one before offset 0."""
        first = not any(segment.flags & SYN for segment in self.segments)
        return self._add(Segment(direction, -1, b"", -1 if first else 0, SYN if first else SYN | ACK))

    def data(self, direction: int, size: int, ack: int | None = None, cut: int = 0) -> Segment:
        """The next `size` octets, of which the last `cut` are not captured."""
        start = self.sent[direction]
        self.sent[direction] += size
        payload = octets(direction, start, start + size - cut)
        known = self.knows(direction) if ack is None else ack
        return self._add(Segment(direction, start, payload, known, ACK | PSH, cut))

    def ack(self, direction: int, ack: int | None = None) -> Segment:
        """A segment without payload."""
        known = self.knows(direction) if ack is None else ack
        return self._add(Segment(direction, self.sent[direction] + self.finished[direction], b"", known))

    def again(self, direction: int, start: int, end: int) -> Segment:
        """Octets sent before once more, in these bounds, with what is known by now."""
        return self._add(Segment(direction, start, octets(direction, start, end), self.knows(direction)))

    def fin(self, direction: int) -> Segment:
        """FIN without payload."""
        segment = Segment(direction, self.sent[direction], b"", self.knows(direction), FIN | ACK)
        self.finished[direction] = True
        return self._add(segment)

    def rst(self, direction: int) -> Segment:
        """RST with ACK."""
        return self._add(Segment(direction, self.sent[direction], b"", self.knows(direction), RST | ACK))


def send(
    connection: TcpConnection, segment: Segment, isn: tuple[int, int] = (1000, 2000), **header: int
) -> None:
    """Gives a segment to a connection, as the wire had it: wrapped, and inside a larger buffer.

    header: its `window` and `identification`.
    """
    raw = captured(
        segment.payload,
        packet=segment.packet,
        time=segment.time,
        seq=(isn[segment.direction] + 1 + segment.offset) & 0xFFFFFFFF,
        ack=-1 if segment.ack < 0 else (isn[1 - segment.direction] + 1 + segment.ack) & 0xFFFFFFFF,
        flags=segment.flags,
        cut=segment.cut,
        **header,
    )
    connection.segment(segment.direction, raw)


def replay(
    segments: list[Segment],
    isn: tuple[int, int] = (1000, 2000),
    causal: bool = True,
    reload_after: int = -1,
    finish: bool = True,
) -> tuple[Recorder, TcpConnection]:
    """A connection fed with all segments. With `reload_after` dumped and loaded after that many of them."""
    recorder = Recorder(causal)
    connection = TcpConnection(recorder)
    for number, segment in enumerate(segments):
        if number == reload_after:
            connection = TcpConnection.load(connection.dump(), recorder)
        send(connection, segment, isn)
    if finish:
        connection.finish()
    return recorder, connection

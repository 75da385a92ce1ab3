"""What the analysis of a capture gives out: connections, and the frames that were said on them."""

import ipaddress
from collections.abc import Callable, Sequence
from typing import Any, Final

from amqpscope.capture.sink import UNORDERED
from amqpscope.model.peer_name import UNNAMED, PeerName
from amqpscope.model.tls_facts import TlsFacts
from amqpscope.model.websocket_facts import WebSocketFacts
from amqpscope.reassembly.client import client_direction
from amqpscope.reassembly.provenance import Provenance
from amqpscope.reassembly.stalls import NO_STALLS, Stalls
from dissectors.interface import Assembled, Frame, Problem
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64, u16

__all__ = [
    "CLIENT",
    "END_OF_STREAM",
    "SERVER",
    "UNORDERED",
    "Connection",
    "Counter",
    "FrameRecord",
    "FrameRef",
    "FrameWatch",
    "MakeExcerpt",
    "dump_frame",
    "load_frame",
]

CLIENT: Final = "client"
SERVER: Final = "server"

PEERS: Final = (CLIENT, SERVER)
"""The peers by side."""
END_OF_STREAM: Final = "end of stream"


class Connection:
    """One TCP connection of a capture, as it is known so far.

    capture: name of the file or interface. stream: its number as Wireshark's `tcp.stream`.
    instance: the `n` of `#n`, counting connections between the same two endpoints by time.
    ends: address and port of the end that sends in direction 0, and of the other.
    client: the direction in which the client sends, -1 while more may tell; the ports are believed till then.
    protocol: `amqp10`, another name from `dissectors.detect`, or "" while undecided.
    encrypted: its octets are ciphertext that is not read (from the start, or after a TLS header).
    proxied: a PROXY header stands before the client's octets: its end of the TCP connection is a load
    balancer's.
    tls, websocket: what these layers show, None without them.
    proxy: the packet, version and source address ("" for none) of the PROXY header, None without one.
    frames: how many were given out. began: the time (ns) of the first.
    stalls: when the sender of each direction could not write.
    names: how the sender of each direction introduces itself, as soon as it has.
    vantage: the direction in which the endpoint sends whose own log this is, -1 if it was captured, or
    UNORDERED. retold: the log has the fields of frames, and the octets were
    made from these.
    failed: amqpscope failed while it read this connection, and gave it up there (`note.mishap`).
    """

    def __init__(self, capture: str, stream: int, instance: int, key: bytes) -> None:
        self.capture: str = capture
        self.stream: int = stream
        self.instance: int = instance
        self.key: bytes = key
        self.client: i64 = -1
        self.protocol: str = ""
        self.encrypted: bool = False
        self.proxied: bool = False
        self.tls: TlsFacts | None = None
        self.websocket: WebSocketFacts | None = None
        self.proxy: tuple[int, int, str] | None = None
        self.frames: i64 = 0
        self.began: i64 = 0
        self.stalls: tuple[Stalls, Stalls] = (NO_STALLS, NO_STALLS)
        self.vantage: i64 = -1
        self.retold: bool = False
        self.failed: bool = False
        self.names: tuple[PeerName, PeerName] = (UNNAMED, UNNAMED)
        self._name: str = ""

    def end(self, direction: int) -> tuple[str, int]:
        """Address and port of the end that sends in `direction`."""
        key = self.key
        width = (len(key) - 4) // 2
        address = key[direction * width : (direction + 1) * width]
        if width == 4:
            return ".".join(map(str, address)), self.port(direction)
        return str(ipaddress.IPv6Address(address)), self.port(direction)

    def port(self, direction: int) -> int:
        """The port of the end that sends in `direction`."""
        return u16(self.key, len(self.key) - 4 + 2 * direction)

    @property
    def id(self) -> str:
        """`10.0.0.1:51034>[fd00::2]:5672#0`, client first."""
        if not self._name:
            first = self.client_end()
            name = f"{endpoint(*self.end(first))}>{endpoint(*self.end(1 - first))}#{self.instance}"
            if self.client < 0:
                return name
            self._name = name
        return self._name

    def introduce(self, direction: i64, packet: i64, name: PeerName) -> None:
        """The sender of a direction says in this packet what it calls itself."""
        first, second = self.names
        bounded = name.bounded(packet)
        self.names = (bounded, second) if direction == 0 else (first, bounded)

    def name_of(self, peer: str) -> PeerName:
        """How the client or the server introduces itself."""
        first, second = self.names
        return first if self.peer(0) == peer else second

    def client_end(self) -> int:
        """The direction in which the client sends, as far as is known now."""
        if self.client >= 0:
            return self.client
        return client_direction(-1, -1, self.port(0), self.port(1))

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            self.capture,
            self.stream,
            self.instance,
            self.key,
            int(self.client),
            self.protocol,
            self.encrypted,
            self.proxied,
            int(self.frames),
            int(self.began),
            self.failed,
            None if self.tls is None else self.tls.dump(),
            tuple((one.name, one.product, int(one.packet)) for one in self.names),
            None if self.websocket is None else self.websocket.dump(),
            self.proxy,
            (int(self.vantage), self.retold),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Connection":
        """The object of what `dump` returned."""
        connection = Connection(state[0], state[1], state[2], state[3])
        connection.restore(state)
        return connection

    def restore(self, state: tuple[Any, ...]) -> None:
        """Become what `dump` of the same connection returned."""
        self.client, self.protocol, self.encrypted, self.proxied = state[4:8]
        (
            self.frames,
            self.began,
            self.failed,
            tls,
            names,
            websocket,
            self.proxy,
            log,
        ) = state[8:]
        self.vantage, self.retold = log
        self.tls = None if tls is None else TlsFacts.load(tls)
        first, second = names
        self.names = (
            PeerName(first[0], first[1]).bounded(first[2]),
            PeerName(second[0], second[1]).bounded(second[2]),
        )
        self.websocket = None if websocket is None else WebSocketFacts.load(websocket)

    def peer(self, direction: i64) -> str:
        """`client` or `server`, whoever sends in `direction`."""
        client: i64 = self.client
        if client < 0:
            client = self.client_end()
        return CLIENT if direction == client else SERVER


def endpoint(address: str, port: int) -> str:
    """`10.0.0.1:5672`, or `[fd00::2]:5672`."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


class Counter:
    """Where frames go that are only counted: no record is made of them."""

    def count(self, frame: Frame, by_client: bool) -> None:
        """A frame, of the client or of the server."""


class FrameRecord:
    """A frame, who sent it, and the evidence for it.

    direction: of the connection, 0 or 1. packet, time: of its first octet; time in ns since 1970.
    last_packet, last_time: of its last octet, where Wireshark lists it. acknowledged: octets of the
    other direction that the sender had acknowledged when it first sent the frame's first octet, -1
    unknown: all of the other peer's that it can have known. message: what this transfer completes.
    started: its stream was captured from the start. unseen: the sender may have acknowledged octets of the
    other peer's that were not captured, and no frame given so far says so.
    """

    def __init__(
        self,
        connection: Connection,
        direction: i64,
        first: Provenance,
        last: Provenance,
        frame: Frame,
    ) -> None:
        self.connection: Connection = connection
        self.direction: i64 = direction
        self.packet: i64 = first.packet
        self.time: i64 = first.time
        self.last_packet: i64 = last.packet
        self.last_time: i64 = last.time
        self.acknowledged: i64 = first.acknowledged
        self.frame: Frame = frame
        self.message: Assembled | None = None
        self.started: bool = True
        self.unseen: bool = False

    @property
    def peer(self) -> str:
        """Who sent it: `client` or `server`."""
        return self.connection.peer(self.direction)

    def with_frame(self, frame: Frame) -> "FrameRecord":
        """The same record with another frame, which says the same in the terms of another edition."""
        first = Provenance(self.packet, self.time, self.acknowledged)
        last = Provenance(self.last_packet, self.last_time, -1)
        copy = FrameRecord(self.connection, self.direction, first, last, frame)
        copy.started = self.started
        copy.unseen = self.unseen
        return copy

    def dump(self) -> tuple[object, ...]:
        """As plain values, its connection not among them. Only what waits for a dialect is ever dumped.

        The body of a frame is not in it: the decoder decodes the frame again (`StreamDecoder.decode_again`).
        """
        frame = self.frame
        return (
            (
                self.direction,
                self.packet,
                self.time,
                self.last_packet,
                self.last_time,
                self.acknowledged,
                self.started,
                self.unseen,
            ),
            dump_frame(frame),
        )

    @staticmethod
    def load(state: tuple[Any, ...], connection: Connection) -> "FrameRecord":
        """The object of what `dump` returned: with octets of its own."""
        evidence, frame = state
        direction, packet, time, last_packet, last_time, acknowledged, started, unseen = evidence
        first = Provenance(packet, time, acknowledged)
        record = FrameRecord(
            connection, direction, first, Provenance(last_packet, last_time, -1), load_frame(frame)
        )
        record.started = started
        record.unseen = unseen
        return record

    def __repr__(self) -> str:
        return f"<FrameRecord packet={self.packet} {self.peer} {self.frame!r}>"


class FrameWatch:
    """Takes each record when it is given out, so that none has to be gathered."""

    def of(self, connection: Connection) -> "FrameWatch":
        """What takes the frames of one connection. The analysis of the connection asks this once."""
        return self

    def add(self, record: FrameRecord) -> None:
        """The next frame of a connection."""


class FrameRef:
    """Where something stands in a capture, for a verdict to point at, without what was said there.

    direction: of the connection. packet, time (ns): of the first octet. offset: in its stream. name: the
    frame's, or what stands for one (END_OF_STREAM). channel: -1 where there is none.
    """

    def __init__(self, direction: i64, packet: i64, time: i64, offset: i64, name: str, channel: i64) -> None:
        self.direction: i64 = direction
        self.packet: i64 = packet
        self.time: i64 = time
        self.offset: i64 = offset
        self.name: str = name
        self.channel: i64 = channel

    def among(self, records: list[FrameRecord]) -> int:
        """Which of these frames stands here, -1 if none does.

        Of some frames only the offset behind them is remembered: then it is the frame of this name, in this
        packet, that ends here.
        """
        found: i64 = -1
        at: i64 = -1
        for record in records:
            at += 1
            if record.direction != self.direction:
                continue
            frame = record.frame
            if frame.offset == self.offset and frame.name == self.name:
                return int(at)
            if frame.offset + frame.size == self.offset:
                if record.packet == self.packet and frame.name == self.name:
                    found = at
        return int(found)

    @staticmethod
    def of(record: FrameRecord) -> "FrameRef":
        """Where a frame stands."""
        frame = record.frame
        return FrameRef(record.direction, record.packet, record.time, frame.offset, frame.name, frame.channel)

    def is_end(self) -> bool:
        """Whether it is the end of a stream."""
        return self.name == END_OF_STREAM

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            int(self.direction),
            int(self.packet),
            int(self.time),
            int(self.offset),
            self.name,
            int(self.channel),
        )

    @staticmethod
    def load(state: tuple[int, int, int, int, str, int]) -> "FrameRef":
        """The object of what `dump` returned."""
        direction, packet, time, offset, name, channel = state
        return FrameRef(direction, packet, time, offset, name, channel)


MakeExcerpt = Callable[[FrameRef, Sequence[FrameRecord], Sequence[object]], object]
"""Makes plain values of the frames around the one at a spot, to show them in another process. The frames come
with their links, as far as these are known."""


def dump_frame(frame: Frame) -> tuple[object, ...]:
    """A frame as plain values: what does not depend on its body, and its octets."""
    return (
        (int(frame.offset), int(frame.size), frame.kind, frame.name, int(frame.missing), frame.raw),
        tuple(
            (problem.code, int(problem.offset), problem.path, problem.reason, problem.unread)
            for problem in frame.problems
        ),
    )


def load_frame(state: tuple[Any, ...]) -> Frame:
    """The frame of what `dump_frame` returned. Only a protocol header gets its body."""
    (offset, size, kind, name, missing, raw), problems = state
    frame = Frame(offset, size, kind, name, -1)
    frame.missing = missing
    frame.uncaptured = missing
    if kind == "header":
        frame.body = ProtocolHeader(raw[4], raw[5], raw[6], raw[7])
        frame.place(raw, 0, 4, len(raw), len(raw))
    elif kind == "skipped":
        frame.place(raw, 0, 0, len(raw), len(raw))
    else:
        frame.place(raw, 0, 8, 8, len(raw))
    for code, at, path, reason, unread in problems:
        frame.add_problem(Problem(code, at, path, reason, unread))
    return frame


def side_of(record: FrameRecord) -> i64:
    """0 for what the client sends, 1 for the server."""
    direction = record.direction
    return direction if record.connection.client <= 0 else 1 - direction

"""Which segment belongs to which connection, how connections are numbered, and when they are forgotten."""

from __future__ import annotations

import gc
import io
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support.amqp10_encode import AMQP_HEADER, frame
from support.damage import packets_in, written
from support.remembered_conversation import RememberedConversation, reported
from support.segments import captured
from support.tcp_writer import ACK, FIN, PSH, RST, SYN, Capture

import amqpscope
from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.numbering import PairNumbers, reverse_key
from amqpscope.analysis.table import ConnectionTable
from amqpscope.limits import MAX_LINGERING, MAX_OPEN_CONNECTIONS, MAX_SILENT_CONNECTIONS

MILLISECOND = 1_000_000
CAPTURES = Path(__file__).parents[2] / "captures"

FAILED = amqp.close(error=amqp.error(condition="amqp:internal-error"))
"""A close that shows the dialect of its sender. A close without an error fits the draft of 2011, too."""


class Ends:
    """Two ends, whose segments go straight to a table."""

    def __init__(
        self, table: ConnectionTable, client_port: int, server_port: int = 5672, *, version: int = 4
    ) -> None:
        self.table = table
        size = 4 if version == 4 else 16
        client, server = b"\x0a" + bytes(size - 2) + b"\1", b"\x0a" + bytes(size - 2) + b"\2"
        ports = client_port.to_bytes(2, "big"), server_port.to_bytes(2, "big")
        self.keys = (client + server + ports[0] + ports[1], server + client + ports[1] + ports[0])
        self.isn = [1000, 2000]
        self.sent = [0, 0]

    def segment(
        self,
        who: int,
        octets: bytes = b"",
        *,
        flags: int = ACK,
        offset: int | None = None,
        time: int | None = None,
    ) -> None:
        start = self.sent[who] if offset is None else offset
        clock = _clock(self.table)
        ack = self.isn[1 - who] + 1 + self.sent[1 - who]
        segment = captured(
            octets,
            key=self.keys[who],
            reverse=self.keys[1 - who],
            packet=clock,
            time=clock * MILLISECOND if time is None else time,
            seq=(self.isn[who] + (0 if flags & SYN else 1) + start) & 0xFFFFFFFF,
            ack=ack & 0xFFFFFFFF if flags & ACK else -1,
            flags=flags,
        )
        self.table.segment(segment)
        self.sent[who] = start + len(octets)

    def handshake(self) -> None:
        self.segment(0, flags=SYN)
        self.segment(1, flags=SYN | ACK)

    def say(self, who: int, *frames: bytes) -> None:
        self.segment(who, b"".join(frames), flags=ACK | PSH)

    def goodbye(self) -> None:
        self.segment(0, flags=FIN | ACK)
        self.segment(1, flags=FIN | ACK)


_clocks: dict[int, int] = {}


def _clock(table: ConnectionTable) -> int:
    _clocks[id(table)] = _clocks.get(id(table), 0) + 1
    return _clocks[id(table)]


def short(table: ConnectionTable, port: int) -> Ends:
    """A whole short connection."""
    ends = Ends(table, port)
    ends.handshake()
    ends.say(0, AMQP_HEADER, frame(amqp.close()))
    ends.say(1, AMQP_HEADER, frame(amqp.close()))
    ends.goodbye()
    return ends


def refused(table: ConnectionTable, port: int) -> None:
    """The shortest connection there is."""
    ends = Ends(table, port)
    ends.segment(0, flags=SYN)
    ends.segment(1, flags=RST | ACK)


# ---- numbers of pairs -------------------------------------------------------------------------------------


def test_numbers_of_pairs_are_given_once() -> None:
    pairs = PairNumbers(8)
    pairs.put(b"a", 1, 10)
    pairs.put(b"a", 2, 20)
    assert len(pairs) == 1
    assert pairs.take(b"a") == (2, 20)
    assert pairs.take(b"a") is None


@given(st.lists(st.integers(0, 60), max_size=200), st.integers(1, 30))
def test_the_pairs_put_in_last_are_remembered(numbers: list[int], most: int) -> None:
    pairs = PairNumbers(most)
    for at, number in enumerate(numbers):
        pairs.put(str(number).encode(), at, at)
        assert len(pairs) <= most
    latest = list(dict.fromkeys(reversed(numbers)))[: most - most // 4 - 1]
    for number in latest:
        at = len(numbers) - 1 - numbers[::-1].index(number)
        assert pairs.take(str(number).encode()) == (at, at)


def test_the_reverse_of_a_key() -> None:
    assert reverse_key(b"AAAABBBBccdd") == b"BBBBAAAAddcc"
    assert reverse_key(b"A" * 16 + b"B" * 16 + b"ccdd") == b"B" * 16 + b"A" * 16 + b"ddcc"


# ---- identity ---------------------------------------------------------------------------------------------


def test_both_directions_are_one_connection() -> None:
    table = ConnectionTable("c")
    ends = short(table, 50000)
    assert [one.connection.key for one in table.kept.connections] == [ends.keys[0]]
    records = table.output.take_records()
    assert [one.peer for one in records] == ["client", "client", "server", "server"]
    assert table.output.take_records() == []


@pytest.mark.parametrize("version", [4, 6])
def test_ends_and_names(version: int) -> None:
    table = ConnectionTable("c")
    ends = Ends(table, 50000, version=version)
    ends.segment(1, AMQP_HEADER)  # the server's is the first captured
    (analysis,) = table.kept.connections
    addresses = ("10.0.0.1", "10.0.0.2") if version == 4 else ("a00::1", "a00::2")
    names = [f"[{one}]" if ":" in one else one for one in addresses]
    assert analysis.connection.end(0) == (addresses[1], 5672)
    assert analysis.connection.end(1) == (addresses[0], 50000)
    assert analysis.connection.id == f"{names[0]}:50000>{names[1]}:5672#0"
    assert [analysis.connection.peer(direction) for direction in (0, 1)] == ["server", "client"]


@pytest.mark.parametrize(
    "other",
    [
        lambda ends: ends.keys[0][:-1] + b"\x01",
        lambda ends: bytes([11]) + ends.keys[0][1:],
        lambda ends: ends.keys[0][:8] + ends.keys[0][10:12] + ends.keys[0][8:10],
    ],
    ids=["port", "address", "ports swapped"],
)
def test_other_addresses_or_ports_are_another_connection(other: Callable[[Ends], bytes]) -> None:
    table = ConnectionTable("c")
    ends = Ends(table, 50000)
    ends.handshake()
    key = other(ends)
    ends.keys = (key, reverse_key(key))
    ends.segment(0, b"x")
    assert [(one.connection.stream, one.connection.instance) for one in table.kept.connections] == [
        (0, 0),
        (1, 0),
    ]


def test_one_end_that_is_both() -> None:
    """Source and destination are the same: whatever that is, it is one connection and no error."""
    table = ConnectionTable("c")
    key = b"\x7f\0\0\1\x7f\0\0\1\x16\x28\x16\x28"
    for number in range(1, 5):
        numbers = dict.fromkeys(("packet", "time", "seq", "ack"), number)
        table.segment(captured(b"x", key=key, reverse=key, flags=ACK, **numbers))
    assert len(table.kept.connections) == 1
    table.finish()


def test_the_number_counts_connections_between_two_ends() -> None:
    table = ConnectionTable("c")
    for round_ in range(3):
        for port in (50000, 50001):
            ends = Ends(table, port)
            ends.isn = [1000 + 10**6 * round_, 5000 + 10**6 * round_]
            ends.handshake()
            ends.goodbye()
    assert [one.connection.instance for one in table.kept.connections] == [0, 0, 1, 1, 2, 2]
    assert [one.connection.stream for one in table.kept.connections] == [0, 1, 2, 3, 4, 5]


def test_a_connection_used_again_is_brought_to_its_end() -> None:
    table = ConnectionTable("c")
    ends = Ends(table, 50000)
    ends.handshake()
    ends.say(0, AMQP_HEADER, frame(amqp.close())[:10])
    again = Ends(table, 50000)
    again.isn = [70_000, 80_000]
    again.handshake()
    records = table.output.take_records()
    assert [one.frame.name for one in records] == ["header", "undecodable"]
    assert "(reused)" in records[1].frame.problems[0].reason
    assert table.totals.protocols == {"amqp10": 1}


# ---- when a connection is over ----------------------------------------------------------------------------


def known(table: ConnectionTable) -> int:
    """How many connections a table knows by their ports: they are over when it is finished, not before."""
    before = sum(table.totals.protocols.values())
    table.finish()
    return sum(table.totals.protocols.values()) - before


def test_an_ended_connection_is_forgotten_after_enough_others() -> None:
    table = ConnectionTable("c", kept=KeptConnections(False))
    first = short(table, 1)
    for port in range(2, MAX_LINGERING + 1):
        refused(table, port)
    first.segment(0, b"late", offset=2)
    assert table.numbering.streams == MAX_LINGERING
    assert sum(table.totals.protocols.values()) == 0
    refused(table, MAX_LINGERING + 1)
    assert sum(table.totals.protocols.values()) == MAX_LINGERING // 2
    first.segment(0, b"late", offset=2)  # nobody knows any more what this belongs to
    assert table.totals.protocols == {"amqp10": 1, "": MAX_LINGERING // 2 - 1}
    assert table.numbering.streams == MAX_LINGERING + 1  # but that it is the same pair of ends, without SYN
    assert known(table) == MAX_LINGERING + 1 - MAX_LINGERING // 2 + 1


@pytest.mark.parametrize(
    "late",
    [
        lambda ends: ends.segment(0, b"x", offset=5),
        lambda ends: ends.segment(1, b"x", offset=5),
        lambda ends: ends.segment(0, offset=21),
        lambda ends: ends.segment(0, offset=20, flags=FIN | ACK),
        lambda ends: ends.segment(1, offset=20, flags=FIN | ACK),
        lambda ends: ends.segment(0, offset=21, flags=RST),
        lambda ends: ends.segment(0, offset=10**9, flags=RST | ACK),
        lambda ends: ends.segment(0, offset=0, flags=SYN),
        lambda ends: ends.segment(1, offset=0, flags=SYN | ACK),
    ],
)
def test_a_late_segment_opens_no_connection(late: Callable[[Ends], None]) -> None:
    table = ConnectionTable("c")
    ends = short(table, 50000)
    for _ in range(3):
        late(ends)
    assert len(table.kept.connections) == 1
    table.finish()
    assert len(table.output.take_records()) == 4


def _endings() -> Iterable[tuple[str, Callable[[Ends], None]]]:
    yield "fin", lambda ends: ends.goodbye()
    yield "rst", lambda ends: ends.segment(0, flags=RST | ACK)
    yield "rst of the server", lambda ends: ends.segment(1, flags=RST)

    def late_fin(ends: Ends) -> None:
        ends.segment(0, offset=30, flags=FIN | ACK)
        ends.segment(1, flags=FIN | ACK)
        ends.segment(0, bytes(10), offset=20)

    def hole(ends: Ends) -> None:
        ends.segment(0, offset=30, flags=FIN | ACK)
        ends.segment(1, flags=FIN | ACK)

    def many(ends: Ends) -> None:
        for _ in range(3):
            ends.goodbye()
            ends.segment(0, flags=RST)

    yield "fin before the last octets", late_fin
    yield "fin behind a hole", hole
    yield "many ends", many


@pytest.mark.parametrize("ending", [one for _, one in _endings()], ids=[name for name, _ in _endings()])
def test_every_ending_is_one(ending: Callable[[Ends], None]) -> None:
    """However it ended, the connection is forgotten, once."""
    table = ConnectionTable("c", kept=KeptConnections(False))
    for port in range(1, 101):
        ends = Ends(table, port)
        ends.handshake()
        ends.say(0, AMQP_HEADER, frame(amqp.close()))
        ends.say(1, AMQP_HEADER, frame(amqp.close()))
        ending(ends)
    for port in range(101, MAX_LINGERING + 2):
        refused(table, port)
    assert sum(table.totals.protocols.values()) == MAX_LINGERING // 2
    assert table.totals.protocols["amqp10"] == table.spoken() == 100
    assert known(table) == MAX_LINGERING + 1 - MAX_LINGERING // 2


def test_a_reset_that_was_not_its_own_ends_nothing() -> None:
    """An RST far outside the window: the connection goes on, and is not forgotten while it does."""
    table = ConnectionTable("c", kept=KeptConnections(False))
    ends = Ends(table, 65000)
    ends.handshake()
    ends.say(0, AMQP_HEADER)
    ends.say(1, AMQP_HEADER)
    ends.segment(0, offset=2 * 10**9, flags=RST)
    ends.sent[0] = 8
    for port in range(1, MAX_LINGERING + 1):
        refused(table, port)
        if port % 500 == 0:
            ends.say(0, frame())
    ends.say(0, frame(FAILED))
    names = [one.frame.name for one in table.output.take_records()]
    assert names == ["header", "header", "empty", "empty", "empty", "empty", "close"]
    assert table.numbering.streams == MAX_LINGERING + 1


def alive() -> tuple[int, int]:
    """How many connections are in memory, and how many objects."""
    gc.collect()
    objects = gc.get_objects()
    return sum(isinstance(one, ConnectionAnalysis) for one in objects), len(objects)


def test_memory_does_not_grow_with_connections() -> None:
    """After twenty thousand short connections as many objects are left as after five thousand."""
    table = ConnectionTable("c", kept=KeptConnections(False))
    left = []
    for number in range(1, 20_001):
        if number % 10 == 0:
            short(table, number)
            table.output.take_records()
        else:
            refused(table, number)
        if number in (5_000, 20_000):
            left.append(alive())
    assert sum(table.totals.protocols.values()) > 20_000 - MAX_LINGERING
    assert left[1][0] <= MAX_LINGERING
    # Of each pair of ends its numbers are remembered: a tuple.
    assert left[1][1] - left[0][1] < 15_000 + 30 * MAX_LINGERING


def test_open_connections_are_bounded() -> None:
    """The connections that were silent longest are given up."""
    table = ConnectionTable("c", kept=KeptConnections(False))
    talking = Ends(table, 1, 7)
    talking.handshake()
    talking.say(0, AMQP_HEADER)
    talking.say(1, AMQP_HEADER)
    silent = Ends(table, 2, 7)
    silent.handshake()
    silent.say(0, AMQP_HEADER, frame(amqp.close())[:10])
    silent.say(1, AMQP_HEADER)
    for number in range(MAX_OPEN_CONNECTIONS):
        ends = Ends(table, 1 + number % 60_000, 5000 + number // 60_000)
        ends.segment(0, flags=SYN)
        ends.say(0, b"x")
        if number % 1000 == 0:
            talking.say(0, frame())
    assert sum(table.totals.protocols.values()) == MAX_OPEN_CONNECTIONS // 4
    silent.say(0, frame(amqp.close())[10:])
    talking.say(0, frame(FAILED))
    records = table.output.take_records()
    assert [one.frame.name for one in records if one.connection.key == talking.keys[0]][-1] == "close"
    given_up = [one for one in records if one.connection.key == silent.keys[0]]
    assert "(evicted)" in given_up[-1].frame.problems[0].reason
    table.finish()
    assert table.totals.protocols == {"amqp10": 2, "unknown": MAX_OPEN_CONNECTIONS + 1}


def test_connections_that_say_nothing_are_bounded() -> None:
    """Attempts that nobody answers: they cost no connection that ever said something its place."""
    table = ConnectionTable("c", kept=KeptConnections(False))
    spoke = Ends(table, 1, 7)
    spoke.handshake()
    spoke.say(0, AMQP_HEADER, frame(amqp.close())[:10])
    early = Ends(table, 2, 7)
    early.handshake()
    for number in range(3 * MAX_SILENT_CONNECTIONS):
        late = Ends(table, 1 + number % 60_000, 5000 + number // 60_000)
        late.segment(0, flags=SYN)
        assert len(table._forward) <= MAX_SILENT_CONNECTIONS + 1
    assert table.totals.protocols == {"": 3 * MAX_SILENT_CONNECTIONS + 2 - len(table._forward)}
    assert len(table._forward) > MAX_SILENT_CONNECTIONS // 2
    spoke.say(0, frame(amqp.close())[10:])
    late.say(0, AMQP_HEADER)
    early.say(0, AMQP_HEADER)
    table.finish()
    names: dict[bytes, list[tuple[int, str]]] = {}
    for one in table.output.take_records():
        names.setdefault(one.connection.key, []).append((int(one.connection.instance), one.frame.name))
    assert names[spoke.keys[0]] == [(0, "header"), (0, "close")]
    assert names[late.keys[0]] == [(0, "header")]
    assert names[early.keys[0]] == [(1, "header")]  # another one, since the first was given up
    assert table.totals.protocols["amqp10"] == 3


def test_what_is_over_lets_go_of_its_state() -> None:
    table = ConnectionTable("c")
    ends = Ends(table, 50000)
    ends.handshake()
    ends.say(0, AMQP_HEADER, frame(amqp.transfer(handle=0, more=True), b"x" * 1000))
    ends.say(1, AMQP_HEADER, frame(amqp.close())[:5])
    table.finish()
    (analysis,) = table.kept.connections
    for side in (analysis.first, analysis.second):
        assert (side.decoder, side.assembler) == (None, None)
        assert (side.detection.probes, side.detection.held) == ((), b"")
    ends.say(0, frame(amqp.close()))  # and what comes all the same does no harm
    assert len(table.kept.connections) == 2


# ---- numbers as Wireshark's -------------------------------------------------------------------------------


def streams(path: Path) -> list[int]:
    """tshark's tcp.stream of each packet, -1 for one without TCP."""
    command = ["tshark", "-r", str(path), "-T", "fields", "-e", "tcp.stream"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [int(line.split(",")[0]) if line else -1 for line in printed.splitlines()]


def ours(path: Path) -> dict[int, int]:
    """Our number for each packet at which a connection was captured first."""
    file = amqpscope.Capture(path)
    list(file)
    first: dict[int, int] = {}
    for analysis in file.connections:
        packets = [analysis.tcp.facts(direction).first_packet for direction in (0, 1)]
        first[min(packet for packet in packets if packet)] = analysis.connection.stream
    return first


def agrees(path: Path) -> None:
    theirs = streams(path)
    own = ours(path)
    assert {packet: theirs[packet - 1] for packet in own} == own
    assert {*own.values()} == {number for number in theirs if number >= 0}


@pytest.mark.tshark
def test_stream_numbers_of_the_captures_are_tsharks(tmp_path: Path) -> None:
    """All of them in one file, where one's ports are another's, too."""
    packets = [
        packet for path in sorted(CAPTURES.glob("*.pcap*")) for packet in packets_in(path.read_bytes())
    ]
    assert len(packets) > 5_000
    path = tmp_path / "all.pcapng"
    path.write_bytes(b"".join(part.octets for part in written(packets, "pcapng, little-endian")))
    agrees(path)


def _syn_again(capture: Capture) -> None:
    tcp = capture.connection()
    tcp.client.segment(flags=SYN)
    tcp.client.segment(flags=SYN)
    tcp.server.segment(flags=SYN | ACK)
    tcp.server.segment(flags=SYN | ACK)
    tcp.client.ack()
    tcp.client.segment(flags=SYN)


def _syn_only(capture: Capture) -> None:
    for port in (1, 2, 3):
        capture.connection(f"10.0.0.1:{port}", "10.0.0.2:5672").client.segment(flags=SYN)


def _syn_only_other_number(capture: Capture) -> None:
    for isn in (1, 2, 3):
        capture.connection(client_isn=isn).client.segment(flags=SYN)


def _refused_and_again(capture: Capture) -> None:
    tcp = capture.connection(server_isn=-1)
    tcp.client.segment(flags=SYN)
    tcp.server.segment(flags=RST | ACK)
    tcp.client.segment(flags=SYN)
    tcp.server.isn = 5000
    tcp.server.segment(flags=SYN | ACK)
    tcp.client.ack()


def _ports_again(capture: Capture) -> None:
    for isn in (1000, 50_000, 3_000_000_000):
        tcp = capture.connection(client_isn=isn, server_isn=isn + 5)
        tcp.handshake()
        tcp.client.send(AMQP_HEADER)
        tcp.goodbye()


def _ports_again_reset(capture: Capture) -> None:
    for isn in (1000, 50_000):
        tcp = capture.connection(client_isn=isn, server_isn=isn + 5)
        tcp.handshake()
        tcp.client.send(AMQP_HEADER)
        tcp.server.rst()


def _ports_again_by_the_server(capture: Capture) -> None:
    tcp = capture.connection()
    tcp.handshake()
    tcp = capture.connection("10.0.0.2:5672", "10.0.0.1:51034", client_isn=77)
    tcp.handshake()


def _ports_again_without_syn(capture: Capture) -> None:
    tcp = capture.connection()
    tcp.handshake()
    tcp.client.send(AMQP_HEADER)
    tcp.goodbye()
    capture.wait(seconds=100)
    tcp = capture.connection(client_isn=3_000_000_000, server_isn=7)
    tcp.client.send(AMQP_HEADER)
    tcp.server.send(AMQP_HEADER)


def _syn_ack_only(capture: Capture) -> None:
    tcp = capture.connection()
    tcp.handshake()
    tcp.goodbye()
    tcp = capture.connection(client_isn=77, server_isn=88)
    tcp.server.segment(flags=SYN | ACK)
    tcp.client.send(AMQP_HEADER)


def _midstream_then_syn(capture: Capture) -> None:
    tcp = capture.connection(client_isn=500)
    tcp.client.send(AMQP_HEADER)
    tcp.server.send(AMQP_HEADER)
    tcp = capture.connection()
    tcp.handshake()


def _midstream_of_the_server_then_syn(capture: Capture) -> None:
    capture.connection(client_isn=500).server.send(AMQP_HEADER)
    capture.connection().handshake()


def _between_others(capture: Capture) -> None:
    other = capture.connection("10.0.0.9:1000", "10.0.0.8:80")
    other.handshake()
    tcp = capture.connection()
    tcp.handshake()
    other.client.send(b"GET / HTTP/1.1\r\n\r\n")
    third = capture.connection("[fd00::1]:1000", "[fd00::2]:5671")
    tcp.client.send(AMQP_HEADER)
    other.goodbye()
    third.client.send(AMQP_HEADER)


def _simultaneous(capture: Capture) -> None:
    tcp = capture.connection()
    tcp.client.segment(flags=SYN)
    tcp.server.segment(flags=SYN)
    tcp.client.segment(flags=SYN | ACK)
    tcp.server.segment(flags=SYN | ACK)
    tcp.client.ack()


@pytest.mark.tshark
@pytest.mark.parametrize(
    "story",
    [
        _syn_again,
        _syn_only,
        _syn_only_other_number,
        _refused_and_again,
        _ports_again,
        _ports_again_reset,
        _ports_again_by_the_server,
        _ports_again_without_syn,
        _syn_ack_only,
        _midstream_then_syn,
        _midstream_of_the_server_then_syn,
        _between_others,
        _simultaneous,
    ],
    ids=lambda one: one.__name__.strip("_"),
)
def test_stream_numbers_are_tsharks(story: Callable[[Capture], None], tmp_path: Path) -> None:
    capture = Capture()
    story(capture)
    # Another connection behind it: its number tells whether one was counted too many.
    capture.connection("10.9.9.9:9999", "10.8.8.8:8888").client.send(b"x")
    agrees(capture.write(tmp_path / "x.pcap"))


def test_numbers_that_tshark_would_give() -> None:
    """The same without tshark: three of the stories, by hand."""
    for story, expected in (
        (_ports_again, [(0, 0), (1, 1), (2, 2)]),
        (_ports_again_without_syn, [(0, 0), (0, 1)]),
        (_syn_ack_only, [(0, 0), (0, 1)]),
    ):
        capture = Capture()
        story(capture)
        file = amqpscope.Capture(io.BytesIO(capture.pcap()))
        list(file)
        assert [(one.connection.stream, one.connection.instance) for one in file.connections] == expected


def test_a_connection_opened_again_after_its_syn_was_answered_by_a_reset() -> None:
    """Some systems try again with the same number; what follows is read whole."""
    capture = Capture()
    talk = RememberedConversation(capture, server_isn=-1)
    talk.tcp.client.segment(flags=SYN)
    talk.tcp.server.segment(flags=RST | ACK)
    capture.wait(milliseconds=500)
    talk.tcp.client.segment(flags=SYN)
    talk.tcp.server.isn = 5000
    talk.tcp.server.segment(flags=SYN | ACK)
    talk.tcp.client.ack()
    talk.client(AMQP_HEADER, frame(amqp.open_(container_id="c")))
    talk.server(AMQP_HEADER, frame(amqp.open_(container_id="s")))
    file = amqpscope.Capture(io.BytesIO(capture.pcap(nanoseconds=True)))
    assert reported(file) == talk.expected()
    assert [(one.connection.stream, one.connection.frames) for one in file.connections] == [(0, 0), (0, 4)]


def test_an_ended_connection_keeps_no_octets() -> None:
    """Thousands are remembered after their end; each with some kilobytes of its streams would be too much."""
    table = ConnectionTable("name")
    ends = Ends(table, 40000)
    ends.segment(0, flags=SYN)
    ends.segment(1, flags=SYN | ACK)
    ends.segment(0, AMQP_HEADER + b"x" * 3000)
    (analysis,) = table.kept.connections
    assert "x" * 3000 in repr(analysis.tcp.dump())
    ends.segment(0, flags=ACK | FIN)
    ends.segment(1, flags=ACK | FIN)
    assert "xxx" not in repr(analysis.tcp.dump())


# ---- a SYN on the ports of a connection under way ----------------------------------------------------------


def under_way() -> tuple[ConnectionTable, Ends]:
    table = ConnectionTable("wire")
    _clocks.pop(id(table), None)  # of a table that is gone, and whose place this one has
    ends = Ends(table, 40000)
    ends.handshake()
    ends.say(0, AMQP_HEADER)
    ends.say(1, AMQP_HEADER)
    return table, ends


def anew(ends: Ends, isn: int = 500_000) -> Ends:
    """The same ends with other initial sequence numbers, of which a SYN is captured."""
    other = Ends(ends.table, 40000)
    other.isn = [isn, isn + 1000]
    other.segment(0, flags=SYN)
    return other


@pytest.mark.parametrize("first", ["answer", "data", "the same again"])
def test_a_syn_begins_another_connection_when_somebody_goes_on_behind_it(first: str) -> None:
    table, ends = under_way()
    other = anew(ends)
    assert len(table.kept.connections) == 1
    if first == "answer":
        other.segment(1, flags=SYN | ACK)
    elif first == "the same again":
        other.segment(0, flags=SYN)
    other.say(0, AMQP_HEADER)
    assert [one.connection.stream for one in table.kept.connections] == [0, 1]
    assert table.kept.connections[1].tcp.facts(0).syn
    assert table.kept.connections[1].tcp.facts(0).first_packet == 5
    assert table.kept.connections[0].tcp.facts(0).delivered == 8


def test_a_syn_that_nobody_answers_is_a_connection_at_the_end() -> None:
    table, ends = under_way()
    anew(ends)
    short(table, 40001)
    table.finish()
    assert [(one.connection.stream, one.tcp.facts(0).first_packet) for one in table.kept.connections] == [
        (0, 1),
        (2, 6),
        (1, 5),
    ]


def test_a_syn_whose_sender_goes_on_with_the_old_connection_is_ignored() -> None:
    table, ends = under_way()
    anew(ends)
    ends.say(0, frame(amqp.close()))
    ends.say(1, frame(amqp.close()))
    ends.goodbye()
    short(table, 40001)
    table.finish()
    # The number that Wireshark gives the SYN is not given again.
    assert [one.connection.stream for one in table.kept.connections] == [0, 2]
    assert table.kept.connections[0].connection.frames == 4
    assert [note.code for note in table.take_notes()] == ["capture/ignored"]

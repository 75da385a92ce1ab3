"""What connections leave behind when they are over: nothing, and at once."""

from __future__ import annotations

import gc
import sys

from support import amqp10_encode as amqp
from support.capture_files import packet
from support.connection_harness import ConnectionHarness
from support.segments import captured

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.packet import PacketDecoder
from amqpscope.limits import MAX_OTHER_CONNECTIONS
from amqpscope.model.records import FrameRef
from amqpscope.reassembly.connection import TcpConnection

FIN, SYN, ACK = 1, 2, 16


def alive() -> int:
    """Objects that a connection consists of."""
    return sum(type(one) in (ConnectionAnalysis, TcpConnection) for one in gc.get_objects())


def test_a_connection_that_is_over_goes_without_a_search_for_garbage() -> None:
    gc.collect()
    before = alive()
    gc.disable()
    try:
        table = ConnectionTable("capture", AnalysisOutput(judge=True), KeptConnections(False))
        decoder = PacketDecoder(table)
        number = 0
        for port in range(30_000, 30_100):
            octets = amqp.AMQP_HEADER + amqp.frame(amqp.open_(container_id="c")) + amqp.frame(amqp.end())
            for data in (
                packet(source_port=port, seq=99, flags=SYN),
                packet(octets, source_port=port, seq=100),
            ):
                number += 1
                decoder.packet(number, number, 1, data, 0, len(data), len(data))
        assert alive() == before + 200
        table.finish()
        assert len(table.output.take_records()) == 300
        assert alive() == before
    finally:
        gc.enable()


def test_a_connection_without_frames_has_nobody_to_judge_it() -> None:
    """Most connections of a scan, or of a flood, are such; a judge takes as much as all the rest."""
    harness = ConnectionHarness()
    harness.output.findings = []
    state = harness.analysis.dump()
    moved = ConnectionAnalysis.load(state, harness.output)
    assert moved.dump() == state
    assert moved.judge is None
    moved.finish("capture")
    assert moved.judge is None


class Judged:
    """One connection in a table that judges."""

    ENDS = (bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    KEYS = (ENDS[0] + ENDS[1] + b"\xc7\x5a\x16\x28", ENDS[1] + ENDS[0] + b"\x16\x28\xc7\x5a")

    def __init__(self, context: bool = False) -> None:
        self.table = ConnectionTable("capture", AnalysisOutput(records=False, judge=True, context=context))
        self.packet = 0
        self.segment(0, 99, -1, SYN)
        self.segment(1, 499, 100, SYN | ACK)

    def segment(
        self, sender: int, seq: int, ack: int, flags: int, block: bytes = b"", size: int | None = None
    ) -> None:
        """Its payload are the first `size` octets of `block`, or all."""
        self.packet += 1
        end = len(block) if size is None else size
        segment = captured(packet=self.packet, time=self.packet, seq=seq, ack=ack, flags=flags)
        segment.key, segment.reverse = self.KEYS[sender], self.KEYS[1 - sender]
        segment.buf, segment.start, segment.end = block, 0, end
        self.table.segment(segment)


def test_a_connection_that_waits_keeps_nothing_of_the_reader() -> None:
    """A reader gives a megabyte of the file at a time: one for each idle connection would be the file."""
    judged = Judged()
    said = amqp.AMQP_HEADER + amqp.frame(amqp.open_(container_id="c"))
    more = amqp.frame(amqp.begin())
    block = more + bytes(1000)
    before = sys.getrefcount(block)
    judged.segment(0, 100, 500, ACK, said)
    judged.segment(0, 100 + len(said), 500, ACK, block, len(more))
    assert judged.table.frames() == 3
    assert sys.getrefcount(block) == before


def test_frames_kept_for_later_findings_are_copied_when_the_reader_goes_on() -> None:
    judged = Judged(context=True)
    said = amqp.AMQP_HEADER + amqp.frame(amqp.open_(container_id="c"))
    end = 100 + len(said)
    more = amqp.frame(b"")
    block = more + bytes(1000)
    before = sys.getrefcount(block)
    judged.segment(0, 100, 500, ACK, said)
    judged.segment(1, 500, end, ACK, said)
    judged.segment(0, end, 500 + len(said), ACK, block, len(more))
    (analysis,) = judged.table.open_connections()
    assert analysis.judge is not None
    assert analysis.judge.context is not None
    assert judged.table.output.findings == []
    judged.segment(1, 500 + len(said), end + len(more), ACK, bytes(2000), 0)
    assert sys.getrefcount(block) == before
    kept, _links, _whole = analysis.judge.context.around(FrameRef(0, 5, 5, len(said), "empty", 0))
    assert [record.frame.raw for record in kept][-1] == more


def test_a_connection_that_ended_has_been_judged() -> None:
    """It is remembered for late segments, by the thousand: what it said is not."""
    judged = Judged()
    said = amqp.AMQP_HEADER + amqp.frame(amqp.open_(container_id="c"))
    end = 100 + len(said)
    judged.segment(0, 100, 500, ACK, said)
    judged.segment(0, end, 500, FIN | ACK)
    (analysis,) = judged.table.kept.connections
    assert analysis.judge is not None
    assert analysis.first.decoder is not None
    judged.segment(1, 500, end + 1, FIN | ACK)
    assert analysis.judge is None
    assert analysis.first.decoder is None


def test_connections_that_are_no_amqp_are_kept_up_to_a_bound() -> None:
    table = ConnectionTable("capture")
    decoder = PacketDecoder(table)
    more = MAX_OTHER_CONNECTIONS // 2
    for number in range(MAX_OTHER_CONNECTIONS + more):
        data = packet(source_port=1000 + number, seq=99, flags=SYN)
        decoder.packet(number + 1, number, 1, data, 0, len(data), len(data))
    said = packet(amqp.AMQP_HEADER, source_port=999, seq=100)
    decoder.packet(number + 2, number, 1, said, 0, len(said), len(said))
    table.finish()
    assert len(table.kept.connections) == MAX_OTHER_CONNECTIONS + 1
    assert table.kept.not_kept == more
    assert [one.connection.protocol for one in table.kept.connections[-2:]] == ["", "amqp10"]
    assert sum(table.totals.protocols.values()) == MAX_OTHER_CONNECTIONS + more + 1

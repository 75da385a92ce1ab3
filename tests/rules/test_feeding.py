"""Whichever way octets come to the judge, the findings are the same: a file, odd pieces of it, or an analysis
that was carried from process to process after every few packets."""

from __future__ import annotations

import io
import json
import marshal
from pathlib import Path

import pytest
from support.dialogue091 import Dialogue091
from support.judged import Trickle
from support.network import Tap, captured, converse
from support.protocols import PROTOCOLS, mischievous, so_many
from support.sampling import examples, share, thorough

import amqpscope
from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.numbering import reverse_key
from amqpscope.report.findings import finding_json

CAPTURES = sorted((Path(__file__).parent.parent.parent / "captures").glob("*.pcap*"))

SIZES = [1, 7, 60, 61, 200, 1500]


def whole(octets: bytes) -> list[str]:
    return [finding_json(finding, "x") for finding in amqpscope.check(io.BytesIO(octets))]


def in_pieces(octets: bytes, sizes: list[int]) -> list[str]:
    return [finding_json(finding, "x") for finding in amqpscope.check(Trickle(octets, sizes))]


def carried(octets: bytes, sizes: list[int]) -> list[str]:
    """Between any two pieces every connection's state goes through plain values."""
    found: list[str] = []
    with amqpscope.Capture(Trickle(octets, sizes), amqpscope.CaptureOptions(judge=True)) as capture:
        table = capture._table
        for _ in capture.blocks():
            found += [finding_json(finding, "x") for finding in capture.take_findings()]
            for key, analysis in list(table._forward.items()):
                state = marshal.loads(marshal.dumps(analysis.dump()))
                loaded = ConnectionAnalysis.load(state, table.output)
                assert loaded.dump() == state
                table._forward[key] = loaded
                table._backward[reverse_key(key)] = loaded
                table._lingering = [
                    (loaded if old is analysis else old, delivered) for old, delivered in table._lingering
                ]
    return found


def conversations(protocol: str) -> list[bytes]:
    many = 1000 if thorough() else so_many(protocol, 24)
    return [
        captured(
            mischievous(f"ways {n}", protocol) if n % 3 else converse(f"ways {n}", protocol=protocol),
            Tap(repeat=0.1),
        ).octets
        for n in range(many)
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_any_conversation(protocol: str) -> None:
    found = 0
    for number, octets in enumerate(conversations(protocol)):
        expected = whole(octets)
        found += len(expected)
        assert in_pieces(octets, SIZES) == expected, number
        assert carried(octets, [400, 90, 1200]) == expected, number
    # A fault is often the end of a conversation of 0-9-1: there are fewer than of 1.0.
    assert found > examples(160 if protocol == "amqp10" else 15) // PROTOCOLS[protocol].one_in


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_real_peers(path: Path) -> None:
    octets = path.read_bytes()
    expected = whole(octets)
    assert in_pieces(octets, [1000, 1]) == expected
    assert carried(octets, [3000]) == expected


def test_what_breaks_a_rule_is_found_by_a_state_that_was_carried() -> None:
    paths = sorted((CAPTURES[0].parent / "rules").glob("*/*/violating.pcap"))
    assert len(paths) > 300
    for path in share(paths, 6, "carried"):
        octets = path.read_bytes()
        assert carried(octets, [60]) == whole(octets), path.parent.name


def test_a_queue_that_the_server_names_is_known_by_a_state_that_was_carried() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1, 2)
    d.client.method("queue.declare", queue="")
    d.server.method("queue.declare-ok", queue="amq.gen-1", message_count=0, consumer_count=0)
    d.consume("")
    d.client.method("basic.consume", 2, queue="amq.gen-1", consumer_tag="c", exclusive=True)
    octets = d.pcap()
    expected = whole(octets)
    assert [json.loads(finding)["rule"] for finding in expected] == ["amqp091/B-CONSUME-EXCL"]
    assert carried(octets, [60]) == expected

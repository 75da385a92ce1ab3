"""Packets stand in a finding's `packets`, nowhere else: a connection may run through several files of a set.

Each capture is judged as it is, and once more as if it came behind other files of its set, where packets
have other numbers. Evidence has to be the same; a sentence, too, once these numbers are those of the file.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.reader import for_magic
from amqpscope.model.finding import Finding
from amqpscope.report.findings import finding_object
from amqpscope.rules.fingerprint import fingerprint

CAPTURES = Path(__file__).parent.parent.parent / "captures"
BUNDLED = sorted(CAPTURES.glob("*.pcap*"))
PAIRS = sorted((CAPTURES / "rules").glob("*/*/*.pcap"))

# So many packets that no other number of a small capture is taken for one of theirs.
BEFORE = 7 << 40


def judged_from(octets: bytes, first: int) -> list[Finding]:
    """The findings of a capture whose packets are counted from `first` on."""
    table = ConnectionTable("a set", AnalysisOutput(records=False, judge=True), KeptConnections(False))
    reader = for_magic(octets, table)
    assert reader is not None
    reader.number = first
    reader.feed(octets)
    reader.finish()
    table.finish()
    return table.output.take_findings()


def packets_of(finding: Finding) -> list[int]:
    return [int(one["packet"]) for one in finding_object(finding, "a set")["packets"]]


def in_their_file(sentence: str, packets: list[int]) -> str:
    """A sentence with these packets as they are numbered in their file. It calls each `packet N`."""
    numbers = {str(packet): str(packet - BEFORE) for packet in packets}
    return re.sub(r"(?<=packet )[0-9]+", lambda found: numbers.get(found[0], found[0]), sentence)


def compare(path: Path) -> int:
    octets = path.read_bytes()
    alone = judged_from(octets, 0)
    behind = judged_from(octets, BEFORE)
    assert [finding.rule for finding in behind] == [finding.rule for finding in alone]
    for one, other in zip(alone, behind, strict=True):
        assert not [name for name in one.evidence if name.endswith(("packet", "packets"))], one.rule
        assert other.evidence == one.evidence, one.rule
        assert fingerprint(other) == fingerprint(one), one.rule
        packets = packets_of(other)
        assert [packet - BEFORE for packet in packets] == packets_of(one)
        assert in_their_file(other.message, packets) == one.message, one.rule
    return len(alone)


@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.name)
def test_of_real_peers(path: Path) -> None:
    compare(path)


@pytest.mark.parametrize("protocol", ["amqp091", "amqp10"])
def test_of_every_rule(protocol: str) -> None:
    compared = [compare(path) for path in PAIRS if path.parent.parent.name == protocol]
    assert sum(compared) > len(compared) / 3

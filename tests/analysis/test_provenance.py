"""The evidence of octets under way, against a plain table of it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support.sampling import examples

from amqpscope.analysis.provenance import OctetProvenance
from amqpscope.reassembly.provenance import Provenance

# Offsets rise by at least one octet.
STEPS = st.lists(st.integers(1, 5), min_size=1, max_size=20)


def build(steps: list[int]) -> tuple[OctetProvenance, list[int]]:
    evidence = OctetProvenance()
    offsets = []
    offset = 0
    for number, step in enumerate(steps):
        evidence.add(offset, Provenance(100 + number, 10**18 + number, -1 if number % 3 == 0 else number))
        offsets.append(offset)
        offset += step
    return evidence, offsets


def holds(evidence: OctetProvenance, offset: int) -> int:
    """The packet of the entry that holds at `offset`."""
    return evidence.at(offset).packet


@given(STEPS)
def test_the_entry_that_holds_is_the_last_one_not_behind(steps: list[int]) -> None:
    evidence, offsets = build(steps)
    assert len(evidence) == len(steps)
    for at in range(sum(steps) + 5):
        expected = max(number for number, offset in enumerate(offsets) if offset <= at)
        assert holds(evidence, at) == 100 + expected
    assert holds(evidence, -1) == 100


@given(STEPS, st.integers(0, 100), st.integers(0, 100))
@settings(max_examples=examples(200))
def test_forgetting_changes_nothing_behind(steps: list[int], forgotten: int, thinned: int) -> None:
    evidence, offsets = build(steps)
    whole, _ = build(steps)
    forgotten %= sum(steps)
    evidence.forget(forgotten)
    assert evidence.offsets[0] <= forgotten
    assert len(evidence) == len([one for one in offsets if one > forgotten]) + 1
    for at in range(forgotten, sum(steps) + 3):
        assert holds(evidence, at) == holds(whole, at)

    thinned = forgotten + thinned % (sum(steps) - forgotten)
    first = evidence.entries[0]
    evidence.thin(thinned)
    assert evidence.entries[0] is first
    assert holds(evidence, forgotten) == holds(whole, forgotten)
    for at in range(thinned, sum(steps) + 3):
        assert holds(evidence, at) == holds(whole, at)
    assert len(evidence) <= len([one for one in offsets if one > thinned]) + 2


@given(STEPS)
def test_dumped_and_loaded_it_is_the_same(steps: list[int]) -> None:
    evidence, _ = build(steps)
    loaded = OctetProvenance.load(evidence.dump())
    assert loaded.dump() == evidence.dump()
    loaded.add(10**6, Provenance(1, 2, 3))
    assert (loaded.offsets[-1], loaded.entries[-1].dump()) == (10**6, (1, 2, 3))
    assert len(evidence) == len(steps)


def test_cleared_it_is_empty() -> None:
    evidence, _ = build([1, 2, 3])
    evidence.clear()
    assert len(evidence) == 0
    assert evidence.dump() == ((), ())
    evidence.forget(5)
    evidence.thin(5)
    assert len(evidence) == 0

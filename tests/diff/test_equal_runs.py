"""What differs between two recordings of the same run makes no difference."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.comparisons import compared, compared_files, reported
from support.network import Tap, captured, converse
from support.protocols import PROTOCOLS, mischievous, so_many
from support.rewritten import Rewriting, rewritten
from support.sampling import examples, share, thorough

ROOT = Path(__file__).resolve().parent.parent.parent / "captures"
RECORDED = sorted(ROOT.glob("*.pcap*"))
OF_RULES = sorted(ROOT.glob("rules/*/*/*.pcap"))

SECOND = 1_000_000_000


def test_there_are_captures() -> None:
    assert len(RECORDED) > 80
    assert len(OF_RULES) > 1000


@pytest.mark.parametrize(
    "path", [*RECORDED, *share(OF_RULES, 40, "diff")], ids=lambda path: str(path.relative_to(ROOT))
)
def test_a_capture_is_the_same_as_itself(path: Path) -> None:
    comparison = compared_files(path, path)
    assert comparison.same
    assert comparison.a.stories or "tls" in str(path.relative_to(ROOT)) or "cut" in path.name


REWRITINGS = st.builds(
    Rewriting,
    ports=st.integers(0, 60_000),
    time=st.integers(0, 10**9).map(lambda seconds: seconds * SECOND),
    sequence=st.integers(0, (1 << 32) - 1),
    cut=st.sampled_from([0, 1, 7, 100, 1448]),
)


# One with messages of several segments takes seconds if these are cut to octets.
SMALL = [path for path in RECORDED if path.suffix == ".pcap" and path.stat().st_size < 20_000]


@settings(max_examples=2000 if thorough() else examples(40), deadline=None)
@given(st.sampled_from(SMALL), REWRITINGS)
def test_other_ports_times_numbers_and_cuts(path: Path, how: Rewriting) -> None:
    octets = rewritten(path, how)
    comparison = compared(path.read_bytes(), octets)
    assert reported(comparison) == []
    assert all(meeting.same for meeting in comparison.meetings)
    assert [one.counts for one in comparison.findings if one.counts] == []


@pytest.mark.parametrize("behind", [-SECOND, SECOND])
@pytest.mark.parametrize("path", share(SMALL, 2, "behind"), ids=lambda path: str(path.name))
def test_one_direction_seen_later(path: Path, behind: int) -> None:
    comparison = compared(path.read_bytes(), rewritten(path, Rewriting(behind=behind)))
    assert reported(comparison) == []


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "tap",
    [
        Tap(position=0.0),
        Tap(position=1.0),
        Tap(delays=(40 * SECOND, 0)),
        Tap(delays=(0, 40 * SECOND)),
        Tap(repeat=0.3, isns=(0xFFFFFF00, 77)),
    ],
    ids=str,
)
def test_where_it_was_captured(protocol: str, tap: Tap) -> None:
    """Of conversations full of faults and races, others for each place."""
    numbers = share(range(300 if thorough() else 16), 4, f"{protocol} at {tap}")
    numbers = numbers[: so_many(protocol, len(numbers))]
    conversations = [mischievous(f"diff {n}", protocol, lossy=False) for n in numbers]
    conversations += [converse(f"diff {n}", lossy=False, protocol=protocol) for n in numbers]
    for conversation in conversations:
        here, there = captured(conversation, Tap()).octets, captured(conversation, tap).octets
        assert reported(compared(here, there)) == [], conversation.seed

"""What fuzzing has found stays passed: its corpus, every input that ever failed, and what it starts from."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from fuzz import bounds, entries, run
from fuzz.bounds import Watch
from fuzz.entries import ENTRIES
from fuzz.seeds import seeds

HERE = Path(__file__).parent


def kept(kind: str, entry: str) -> list[Path]:
    folder = HERE / kind / entry
    return sorted(folder.iterdir()) if folder.is_dir() else []


@pytest.mark.parametrize("entry", ENTRIES)
def test_inputs_that_failed_once(entry: str) -> None:
    watch = Watch(ENTRIES[entry])
    for path in kept("crashes", entry):
        watch(path.read_bytes())


@pytest.mark.parametrize("entry", ENTRIES)
def test_corpus(entry: str) -> None:
    watch = Watch(ENTRIES[entry])
    paths = kept("corpus", entry)
    assert len(paths) > 20
    for path in paths:
        watch(path.read_bytes())


@pytest.mark.parametrize("entry", ENTRIES)
def test_seeds(entry: str) -> None:
    watch = Watch(ENTRIES[entry])
    inputs = list(islice(seeds(entry), 30))
    assert len(inputs) >= 5
    for octets in inputs:
        watch(octets)


def test_entries_reach_what_they_are_for() -> None:
    """The seeds are conversations that are judged, files with segments, messages with sections."""
    for entry, frame_of, most_frames, rules in (
        ("connections", entries._frame10, 2500, 100),
        ("connections091", entries._frame091, 1500, 5),
    ):
        judged = [entries._converse(octets, -1, frame_of) for octets in seeds(entry)]
        assert sum(len(frames) for _, frames, _, _ in judged) > most_frames
        assert len({finding.rule for _, _, findings, _ in judged for finding in findings}) > rules
    files = [entries._content(octets, 1000)[0] for octets in seeds("captures")]
    segments = [len(entries._read(content, [], False)[0].segments) for content in files]
    assert sum(map(bool, segments)) > 50
    events = [entries._replay_segments(octets, -1) for octets in seeds("reassembly")]
    assert {event[0] for one in events for event in one} == {"data", "gap", "end"}


def test_the_watch_bites(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(octets: bytes) -> None:
        sum(range(len(octets) * 1_000_000))

    monkeypatch.setattr(bounds, "MOST_SECONDS", 0.01)
    Watch(slow)(b"")
    with pytest.raises(AssertionError, match=r"s for 3 octets"):
        Watch(slow)(b"abc")


def test_the_watch_sees_memory() -> None:
    """In a process of its own: what this one has had before would hide it."""
    program = """
import sys
sys.path[:0] = sys.argv[1:]
from fuzz.bounds import Watch
watch = Watch(lambda octets: bytearray(b"x" * len(octets) * 100_000_000))
watch(b"")
watch(b"a")
"""
    ran = subprocess.run(
        [sys.executable, "-c", program, str(HERE.parent), str(HERE.parents[1])],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "AssertionError: memory grew by" in ran.stderr


def test_chance_finds_what_fails_and_keeps_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers at the edges of 63 bits are among what it puts into inputs."""

    def failing(octets: bytes) -> None:
        assert b"\x80\0\0\0\0\0\0\0" not in octets

    monkeypatch.setitem(ENTRIES, "reassembly", failing)
    monkeypatch.setattr(run, "HERE", tmp_path)
    assert not run.by_chance("reassembly", 10, "a")
    (kept,) = (tmp_path / "crashes" / "reassembly").iterdir()
    assert b"\x80\0\0\0\0\0\0\0" in kept.read_bytes()
    assert kept.name in capsys.readouterr().out
    monkeypatch.setitem(ENTRIES, "reassembly", len)
    assert run.by_chance("reassembly", 0.01, "a")

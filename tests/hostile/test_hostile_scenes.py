"""What hostile captures cost, and what they do to the output: time and memory measured, for every scene."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hostile.scenes import SCENES
from support.sampling import share

from amqpscope.capture.words import INTERPRETED

HERE = Path(__file__).parent
MIB = 1024 * 1024

WAYS = (
    "read",
    "read -v",
    "read -vv",
    "read --format json -vv",
    "read --format ndjson --bodies",
    "read --count",
    "summary --all",
    "summary --all --format json",
    "check --fail-on never",
    "check --fail-on never --format json",
    "check --fail-on never --format ndjson",
    "check --fail-on never --format junit",
    "check --fail-on never --format markdown",
    "why --end",
)
FEW = ("read -vv", "summary --all --format json", "check --fail-on never")

# Growth in MiB where it may be more than 64, and why.
GROWTH = {
    "half_open": 160,  # MAX_SILENT_CONNECTIONS and MAX_OTHER_CONNECTIONS; half of that compiled
    "frames_of_4_gib": 128,  # MAX_KEPT_FRAME: its pieces, the whole, and what of it does not decode
    "large_maps": 96,  # an object for each of many values of one message, up to MAX_VALUES
    # Those that are over within a block of the file, and MAX_LINGERING of them; a third of that compiled.
    "many_connections": 96,
    "many_faulty_connections": 96,
    "many_sessions_and_links": 256,  # 8,000 sessions with both their ends
}

# Too much for every way.
LARGE = (
    *("half_open", "large_maps", "many_nothings", "frames_of_4_gib", "many_sessions_and_links", "bomb"),
    "draft_messages",
    "deflate_bombs",
)

# Made for measuring by hand: `python tests/hostile/measure.py`.
BY_HAND = (
    "half_open_million",
    "many_connections_by_hand",
    "many_faulty_connections_by_hand",
    "many_short_connections_by_hand",
)


@pytest.mark.parametrize("name", [name for name in SCENES if name not in BY_HAND])
def test_scene(name: str, tmp_path: Path) -> None:
    path = tmp_path / "scene"
    SCENES[name](path)
    ways = share(FEW, 2, name) if name in LARGE else share(WAYS, 4, name)
    ran = subprocess.run(
        [sys.executable, str(HERE / "measure.py"), str(path), *ways],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    measured = json.loads(ran.stdout)
    assert measured["interpreted"] == INTERPRETED
    # A second for each MB, compiled, is what it takes at most (measure.py shows that); four times as much
    # here, for a machine with much else to do. Interpreted, and in a small file, where starting counts, more.
    megabytes = max(path.stat().st_size, 4_000_000 if name == "bomb" else 0) / 1_000_000
    most = 4 * (1 + megabytes) * (8 if INTERPRETED else 1)
    for way, reported in measured["ways"].items():
        assert reported["status"] in (0, 3), way
        assert reported["wrong"] == [], way
        assert reported["size"] > 0 or "check" in way, way
        assert reported["seconds"] < most, way
    assert measured["growth"] < GROWTH.get(name, 64) * MIB

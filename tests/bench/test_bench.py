"""The bench measures what it says it does; how fast anything is, no test asserts."""

from __future__ import annotations

import importlib.util
import resource
import sys
from pathlib import Path
from typing import Any

import pytest

_spec = importlib.util.spec_from_file_location("bench_bench", Path(__file__).with_name("bench.py"))
assert _spec
assert _spec.loader
bench: Any = importlib.util.module_from_spec(_spec)
sys.modules["bench_bench"] = bench  # dataclasses look their module up
_spec.loader.exec_module(bench)


def python(code: str) -> list[str]:
    return [sys.executable, "-S", "-c", code]


def test_a_run_has_time_processor_time_and_peak_memory_of_the_child() -> None:
    # The kernel counts to a child what its parent had when it started it: more than that must be seen.
    much = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * bench.PEAK_UNIT + 100_000_000
    idle = bench.measure(python("pass"))
    busy = bench.measure(python(f"import time\nx = b'x' * {much}\nwhile time.process_time() < 0.3: pass"))
    assert busy.wall >= 0.3
    assert busy.cpu >= 0.3 > idle.cpu > 0
    assert busy.peak > much > idle.peak


def test_a_failing_command_tells_its_last_words() -> None:
    with pytest.raises(RuntimeError, match="exit status 3: last words"):
        bench.measure(python("import sys; print('first\\nlast words', file=sys.stderr); sys.exit(3)"))


def test_rounds_are_interleaved_and_a_failure_is_not_repeated(tmp_path: Path) -> None:
    log = tmp_path / "log"
    commands = [
        bench.Command(
            name,
            lambda path, name=name, code=code: python(f"open({str(path)!r}, 'a').write({name!r}); {code}"),
        )
        for name, code in (("A", "pass"), ("B", "raise SystemExit(1)"), ("C", "pass"))
    ]
    rows = bench.compare(log, commands, 3)
    assert log.read_text() == "ABCACAC"
    assert [len(row.runs) for row in rows] == [3, 0, 3]
    assert rows[1].failure == "exit status 1: no message"


def test_the_table_compares_round_by_round() -> None:
    slow = bench.Row(bench.Command("slow", list), [bench.Run(w, w, 5_000_000) for w in (2.0, 8.0, 3.0)])
    fast = bench.Row(bench.Command("fast", list), [bench.Run(w, 1.0, 7_000_000) for w in (1.0, 2.0, 1.0)])
    gone = bench.Row(bench.Command("gone", list), failure="no such program")
    assert bench.ratios(fast, slow) == [2.0, 4.0, 3.0]
    lines = bench.table([slow, fast, gone], 6_000_000).splitlines()
    assert lines[1].split() == ["slow", "3.00", "(2.00-8.00)", "3.00", "2", "5", "1.0x", "(1.0-1.0)"]
    assert lines[2].split() == ["fast", "1.00", "(1.00-2.00)", "1.00", "6", "7", "3.0x", "(2.0-4.0)"]
    assert lines[3] == "gone     no such program"


def test_a_capture_is_written_once(tmp_path: Path) -> None:
    path = bench.capture("small", "100kB", tmp_path / "cache")
    written = path.stat().st_mtime_ns
    assert 50_000 < path.stat().st_size < 200_000
    assert bench.capture("small", "100kB", tmp_path / "cache") == path
    assert path.stat().st_mtime_ns == written
    assert list((tmp_path / "cache").iterdir()) == [path]


def test_a_command_that_takes_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "PATIENCE", 0.2)
    with pytest.raises(RuntimeError, match="takes longer than 0 s"):
        bench.measure(python("while True: pass"))


def test_the_history_keeps_ratios_of_processor_time_and_names_what_became_slower(tmp_path: Path) -> None:
    history = tmp_path / "history.tsv"
    history.write_text(bench.HISTORY.read_text().splitlines()[0] + "\n")
    base = bench.Row(bench.Command("tshark", list), [bench.Run(1.0, cpu, 1) for cpu in (6.0, 8.0, 6.0)])
    gone = bench.Row(bench.Command("gone", list), failure="no such program")
    for commit, seconds in (("first", 1.0), ("second", 1.05), ("third", 1.5)):
        check = bench.Row(bench.Command("check", list), [bench.Run(9.0, seconds, 1) for _ in range(3)])
        measured = bench.processor_ratios([base, check, gone], commit, "small=1MB")
        slower = bench.remember(measured, history)
        assert (slower != []) == (commit == "third")
    assert slower == ["check is slower: 4.0 times as fast, 5.7 at second"]
    assert history.read_text().splitlines()[1:] == [
        "first\tsmall=1MB\tcheck\t6.00",
        "second\tsmall=1MB\tcheck\t5.71",
        "third\tsmall=1MB\tcheck\t4.00",
    ]
    base.failure = "takes longer than 120 s"
    assert bench.processor_ratios([base, check], "fourth", "small=1MB") == []

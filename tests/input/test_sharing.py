"""`--jobs`: several processes write what one writes."""

from __future__ import annotations

import errno
import io
import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from support import sharing_trial
from support.bench_captures import bench
from support.commands import DEMO, amqpscope
from support.sampling import examples, share

from amqpscope.analysis.share import Share
from amqpscope.input.workers import NotShared, Workers

ROOT = Path(__file__).parents[2]
SEVERAL = ROOT / "captures/rules/amqp091/Q-EXCL-DELETE/violating.pcap"
"""Its finding is about two connections."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no forks")


class Ran(NamedTuple):
    status: int
    out: str
    err: str


def trial(*arguments: object) -> Ran:
    """What `support.sharing_trial` does in a process of its own."""
    path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    result = subprocess.run(
        [sys.executable, sharing_trial.__file__, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
        cwd=ROOT,
        check=False,
    )
    return Ran(result.returncode, result.stdout, result.stderr)


def test_several_processes_report_what_one_reports() -> None:
    recorded = [*ROOT.glob("captures/rules/*/*/violating.pcap"), *ROOT.glob("captures/situations/*.pcap")]
    paths = [SEVERAL, *share(sorted(recorded), 60, "shares")]
    result = trial("compare", 26, examples(36), *paths)
    assert result.out == ""
    text = sharing_trial.reported([str(SEVERAL)], 1, ("text",))["text"]
    assert "Q-EXCL-DELETE" in text and ">>" in text.split("Q-EXCL-DELETE", 1)[1]  # with the frames around it
    usual, crowded = result.err.splitlines()
    shared, begun = map(int, usual.split(" of "))
    assert shared > begun * 9 // 10 > 5
    assert crowded == "0 shared, 2 not"  # too many messages; too many frames around requests


def test_other_commands_write_what_one_process_writes() -> None:
    recorded = [*ROOT.glob("captures/rules/*/*/violating.pcap"), *ROOT.glob("captures/situations/*.pcap")]
    paths = [SEVERAL, DEMO, *share(sorted(recorded), 12, "shares of other commands")]
    result = trial("commands", 27, examples(12), *paths)
    assert result.out == ""
    used, not_used = (int(words.split()[0]) for words in result.err.splitlines()[-1].split(", "))
    assert used > not_used + 60


@pytest.mark.parametrize("name", ["traced-text.log", "traced-json.log"])
def test_a_log_of_traced_messages_is_read_by_one_process(name: str, tmp_path: Path) -> None:
    recorded = (ROOT / "tests/capture/logs/recorded" / name).read_bytes()
    log = tmp_path / name
    log.write_bytes(recorded * (1 + 1_200_000 // len(recorded)))  # of 1 MiB, the reader makes out what it is
    for command in (["summary", log], ["check", log, log]):  # the second log of two is read ahead
        one, several = (trial("run", *command, "--jobs", jobs) for jobs in (1, 2))
        assert "messages" in one.out + one.err
        # The last line says how many captures were shared out.
        assert several._replace(err=several.err.splitlines()[:-1]) == one._replace(
            err=one.err.splitlines()[:-1]
        )


def test_several_captures_side_by_side_are_reported_as_one_after_the_other(tmp_path: Path) -> None:
    recorded = [*ROOT.glob("captures/rules/*/*/violating.pcap"), *ROOT.glob("captures/situations/*.pcap")]
    broken = tmp_path / "broken.pcap"
    broken.write_bytes(SEVERAL.read_bytes()[:700])
    nothing = tmp_path / "nothing.pcap"
    nothing.write_bytes(b"no capture")
    paths = [SEVERAL, DEMO, broken, nothing, tmp_path / "missing.pcap"]
    result = trial("several", 28, examples(6), *paths, *share(sorted(recorded), 20, "captures side by side"))
    assert result.out == ""
    used, not_used = (int(words.split()[0]) for words in result.err.splitlines()[-1].split(", "))
    assert used > 9 * not_used


def test_a_worker_heeds_what_this_process_was_started_to_ignore() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        workers = Workers(2, lambda worker: worker.put(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN))
    finally:
        signal.signal(signal.SIGHUP, before)
    try:
        list(workers.wait())
        assert [list(results) for results in workers.results()] == [[True], [True]]
    finally:
        workers.close()


_COUNTING = """
import sys
from amqpscope.cli.main import run
from amqpscope.input import ahead, capture, sharing, workers

began, counts = [], []

class Workers(workers.Workers):
    def __init__(self, count, work):
        before = sum(one.running for one in began)
        super().__init__(count, work)
        began.append(self)
        counts.append((count, before + count))

workers.Workers = sharing.Workers = Workers
sharing.MIN_SHARED_OCTETS = sharing.SHARE_PROBE = ahead.SHARE_PROBE = 100_000
ahead.MIN_SHARED_OCTETS = 1_000_000
ahead.MIN_AHEAD_OCTETS = 1
capture.BLOCK = 20_000
run(["check", "-q", *sys.argv[1:]])
print(max(count for count, _ in counts), max(running for _, running in counts), file=sys.stderr)
"""


@pytest.mark.parametrize("jobs", [3, 4])
def test_no_more_processes_read_than_there_may(jobs: int, tmp_path: Path) -> None:
    """Captures are read ahead while another one is shared out."""
    large, small = tmp_path / "large.pcap", tmp_path / "small.pcap"
    bench.generate("small", 2_000_000, large, seed=1)
    bench.generate("small", 500_000, small, seed=2)
    ran = subprocess.run(
        [sys.executable, "-c", _COUNTING, "--jobs", str(jobs), large, small],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
    )
    shares, running = map(int, ran.stderr.splitlines()[-1].split())
    assert 1 < shares <= running == jobs


def test_workers_are_waited_for_where_very_many_files_are_open() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2000:
        pytest.skip("this system lets a process open fewer files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        workers = Workers(1, lambda worker: worker.put(1))
        try:
            list(workers.wait())
            assert not workers.running
            assert [list(results) for results in workers.results()] == [[1]]
        finally:
            workers.close()
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_killed_worker_is_an_error_of_its_capture_alone() -> None:
    result = trial("kill", "check", "--jobs", 2, "--format", "ndjson", DEMO, SEVERAL, DEMO)
    assert result.status == 2
    assert f"{SEVERAL}: a worker process was ended by signal 9" in result.err
    assert result.err.count("signal 9") == 1
    assert "a worker is left" not in result.err


def test_an_interrupted_run_ends_the_workers_of_all_captures() -> None:
    result = trial("interrupt", "check", "--jobs", 2, DEMO, SEVERAL, DEMO, SEVERAL)
    assert result.status == 130
    assert "a worker is left" not in result.err


@pytest.mark.parametrize(
    "command",
    [
        ["summary"],
        ["summary", "--format", "json"],
        ["read"],
        ["read", "--format", "ndjson"],
        ["read", "--count"],
        ["diff", DEMO],
    ],
    ids=lambda command: "-".join(map(str, command[:3:2])),
)
def test_a_killed_worker_is_an_error_of_other_commands(command: list[str]) -> None:
    result = trial("kill", *command, "--jobs", 2, SEVERAL)
    assert result.status == 2
    assert f"{SEVERAL}: a worker process was ended by signal 9" in result.err
    assert "Traceback" not in result.err
    assert "a worker is left" not in result.err


@pytest.mark.parametrize("command", ["summary", "read", "diff"])
def test_an_interrupted_run_of_other_commands_ends_its_workers(command: str) -> None:
    result = trial("interrupt", command, *([DEMO] if command == "diff" else []), "--jobs", 2, SEVERAL)
    assert result.status == 130
    assert "Traceback" not in result.err
    assert "a worker is left" not in result.err


@pytest.mark.parametrize("command", [["summary"], ["read"], ["check", "--format", "json"]])
def test_a_run_that_is_interrupted_while_it_takes_results_ends_as_any_other(command: list[str]) -> None:
    result = trial("late", *command, "--jobs", 2, SEVERAL)
    assert result.status == 130
    assert "Traceback" not in result.err
    assert "a worker is left" not in result.err


def test_a_killed_worker_is_an_error(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    result = trial("kill", "check", "--jobs", 2, "--format", "ndjson", "--output", report, SEVERAL)
    assert result.status == 2
    assert "a worker process was ended by signal 9" in result.err
    assert "a worker is left" not in result.err
    assert json.loads(report.read_text(encoding="utf-8"))["captures"][0]["status"] == "partial"
    assert result.out == ""


def test_an_interrupted_run_ends_its_workers() -> None:
    result = trial("interrupt", "check", "--jobs", 2, SEVERAL)
    assert result.status == 130
    assert "a worker is left" not in result.err
    assert "0 shared, 1 not" in result.err


@pytest.mark.parametrize("refused", ["os.fork", "os.pipe", "tempfile.TemporaryFile"])
def test_one_process_reads_where_the_system_allows_no_further_one(
    refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(refused, fail)
    with pytest.raises(NotShared):
        Workers(2, lambda _: None)


def test_one_process_reads_where_nobody_knows_how_a_worker_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever started the program ignores SIGCHLD, so the system forgets ended processes."""

    def forgotten(*_: object) -> None:
        raise ChildProcessError

    monkeypatch.setattr(os, "fork", lambda: 2**22)
    workers = Workers(1, lambda _: None)
    monkeypatch.setattr(os, "waitpid", forgotten)
    with pytest.raises(NotShared):
        list(workers.wait())
    workers.close()


def test_one_process_reads_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("amqpscope.input.sharing.Sharing.due", lambda *_: pytest.fail("asked"))
    octets = SEVERAL.read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(octets)))
    result = amqpscope(capsys, "check", "--jobs", 2, "--format", "ndjson", "-")
    assert "Q-EXCL-DELETE" in result.out


@pytest.mark.parametrize("command", [["summary"], ["read"], ["read", "--count"]])
def test_one_process_reads_standard_input_for_other_commands(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("amqpscope.input.sharing.Sharing.due", lambda *_: pytest.fail("asked"))
    outs = []
    for more in ([], ["--jobs", 2]):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(SEVERAL.read_bytes())))
        outs.append(amqpscope(capsys, *command, *more, "-"))
    assert outs[0] == outs[1]
    assert outs[0].out


def test_one_process_compares_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("amqpscope.diff.side_by_side.Workers", lambda *_: pytest.fail("started"))
    monkeypatch.setattr("amqpscope.diff.side_by_side.SHARE_PROBE", 1)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(SEVERAL.read_bytes())))
    assert amqpscope(capsys, "diff", "--jobs", 2, SEVERAL, "-").status == 0


@pytest.mark.parametrize("jobs", ["0", "65", "two", "-1", "1.5", "", "٣"])
def test_a_number_of_processes_that_makes_no_sense(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "check", f"--jobs={jobs}", DEMO)
    assert result.status == 2
    assert "must be auto or a number from 1 to 64" in result.err


@pytest.mark.parametrize("jobs", ["1", "64", "auto"])
def test_a_number_of_processes(jobs: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert amqpscope(capsys, "check", "--jobs", jobs, DEMO).out == amqpscope(capsys, "check", DEMO).out


def test_each_connection_is_in_one_share_and_a_pattern_does_not_fill_one() -> None:
    shares = [Share(number, 3) for number in range(3)]
    owners = [[share.number for share in shares if share.owns(order)] for order in range(90)]
    assert all(len(one) == 1 for one in owners)
    for step in (2, 3, 4):
        assert {owner for (owner,) in owners[::step]} == {0, 1, 2}

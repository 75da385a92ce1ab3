"""A program with small blocks, so that small captures are shared out: `python sharing_trial.py HOW ...`.

    compare SEED COUNT PATH...  compare what one process and several report of each capture, and of so many
                                captures made of several recorded ones, in part damaged; then of the first
                                capture, where its connections keep too much for each other
    commands SEED COUNT PATH... the same for what other commands write
    several SEED COUNT PATH...  the same for what `check` writes of several captures, side by side
    run ARGUMENTS...            run `amqpscope ARGUMENTS`
    kill ARGUMENTS...           the same, but a worker is killed in the middle
    interrupt ARGUMENTS...      the same, but the program is interrupted while the workers read
    late ARGUMENTS...           the same, but it is interrupted while their results are taken

The tests are not threads of this program: a process with threads is not forked. At the end, it prints how
many captures were shared out, and how many were read by one process after all.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from support import damage

from amqpscope.cli.inputs import CaptureArgument
from amqpscope.cli.main import run
from amqpscope.diff import comparison, side_by_side
from amqpscope.diff.forms import CanonicalFrameTable
from amqpscope.diff.run import ComparedRun
from amqpscope.input import ahead, capture, sharing, workers
from amqpscope.policy.judging import judge
from amqpscope.policy.policy import Policy
from amqpscope.report.finding_counts import Detail
from amqpscope.report.forms import ReportOptions, declared
from amqpscope.report.writer import Writers

CAPTURES = Path(__file__).parents[2] / "captures"
FORMS = ("json", "ndjson", "junit", "markdown", "sarif", "github")
COMMANDS = (
    ("summary",),
    ("summary", "--all", "--format", "json"),
    ("read",),
    ("read", "-vv", "-t", "d", "--no-verdicts"),
    ("--color", "always", "read", "-v"),
    ("read", "--format", "ndjson", "--bodies"),
    ("read", "--format", "json", "--linked"),
    ("read", "--count"),
    ("read", "--count", "--format", "json"),
)
SHARED: list[bool] = []
"""Of each capture for which workers were started: whether their results were used."""


class Sharing(sharing.Sharing):
    """Remembers what became of it."""

    def share(self, of: capture.Capture, rest: Iterator[None]) -> Iterator[None]:
        SHARED.append(False)
        yield from super().share(of, rest)
        SHARED[-1] = True


class Workers(workers.Workers):
    """Interrupted while they work."""

    def wait(self) -> Iterator[None]:
        os.kill(os.getpid(), signal.SIGINT)
        yield from super().wait()


class Interrupted(Sharing):
    """Interrupted when its workers are done, and the first of their results was taken."""

    def _take_block(self, *arguments: Any) -> None:
        super()._take_block(*arguments)
        os.kill(os.getpid(), signal.SIGINT)


class Killed(Sharing):
    """Its last worker is killed behind its first block, if it reads a violating capture."""

    def _analyse(self, worker: workers.Worker, of: capture.Capture, rest: Iterator[None]) -> None:
        def killed() -> Iterator[None]:
            next(rest)
            yield
            if worker.number == worker.of - 1 and of.path.endswith("violating.pcap"):
                os.kill(os.getpid(), signal.SIGKILL)
            yield from rest

        super()._analyse(worker, of, killed())


class KilledBeside(side_by_side.Beside):
    """Its worker is killed as soon as it works."""

    def _work(self, worker: workers.Worker) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class CountedBeside(side_by_side.Beside):
    """Remembers whether the worker's result was used."""

    def take(self, table: CanonicalFrameTable) -> ComparedRun:
        SHARED.append(self._workers is not None)
        return super().take(table)


def reported(paths: list[str], jobs: int, forms: tuple[str, ...]) -> dict[str, str]:
    """What is reported of the files as one capture, in each form, and the outcome."""
    policy = Policy()
    options = ReportOptions(policy.terms, 3, Detail(True, True, True, False))
    outs = [io.StringIO() for _ in forms]
    made = [declared(form).writer(out, options) for form, out in zip(forms, outs, strict=True)]
    judged = judge(
        [CaptureArgument(paths)], policy, hearer=Writers(made[0], made[1:]), gather=False, jobs=jobs
    ).captures[0]
    texts = {form: out.getvalue() for form, out in zip(forms, outs, strict=True)}
    return texts | {"outcome": f"{judged.outcome} {judged.reason}"}


def compare(paths: list[str], jobs: int, forms: tuple[str, ...] = FORMS) -> None:
    """Print in which forms the report of several processes is another one."""
    one, several = reported(paths, 1, forms), reported(paths, jobs, forms)
    if one != several:
        differ = [form for form, text in one.items() if text != several[form]]
        print(f"{jobs} processes report something else: {', '.join(differ)}: {' '.join(paths)}")


def written(command: tuple[str, ...], paths: list[str], jobs: int) -> tuple[int, str, str]:
    """The exit status of a command, and what it writes."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run([*command, "--jobs", str(jobs), *paths])
    return int(status), out.getvalue(), err.getvalue()


def compare_commands(
    chance: Random, path: str, jobs: int, commands: Sequence[tuple[str, ...]], other: str
) -> None:
    """Print which commands write something else of a capture in several processes. other: for `diff`."""
    for command in commands:
        if written(command, [path], 1) != written(command, [path], jobs):
            print(f"{' '.join(command)}: {jobs} processes write something else: {path}")
    compared = ("diff", "--all", *chance.choice([(), ("--format", "json")]))
    pair = chance.choice([[path, other], [other, path]])
    if written(compared, pair, 1) != written(compared, pair, 2):
        print(f"{' '.join(compared)}: 2 processes write something else: {' '.join(pair)}")


def compare_several(chance: Random, paths: list[str], jobs: int) -> None:
    """Print in which form `check` writes something else of several captures where some are read ahead."""
    for form in ("text", *FORMS):
        changed: Any = ahead
        changed.MAX_AHEAD_PER_JOB = chance.choice([1, 4])
        command = ("check", "--format", form, *chance.choice([(), ("--quiet",), ("--no-diagnoses",)]))
        if form != "text" and "--quiet" in command:
            command = command[:-1]
        if written(command, paths, 1) != written(command, paths, jobs):
            print(f"{' '.join(command)}: {jobs} processes write something else: {' '.join(paths)}")


def mixed(chance: Random, recorded: list[Path]) -> bytes:
    """The packets of several recorded captures as one capture, most of other clients, some damaged."""
    queues: list[list[damage.Packet]] = []
    for number in range(chance.randint(2, 7)):
        octets = chance.choice(recorded).read_bytes()
        if chance.random() < 0.7:
            # Another client, and the same server.
            octets = octets.replace(b"\x0a\0\0\2\x0a\0\0\1", b"\x0a\0\0\2\x0a\0\0" + bytes([10 + number]))
            octets = octets.replace(
                b"\x0a\0\0\1\x0a\0\0\2", b"\x0a\0\0" + bytes([10 + number]) + b"\x0a\0\0\2"
            )
        queues.append(damage.packets_in(octets))
    packets: list[damage.Packet] = []
    while queues := [queue for queue in queues if queue]:
        queue = chance.choice(queues)
        for _ in range(min(chance.randint(1, 8), len(queue))):
            packets.append(queue.pop(0))
    form = chance.choice(damage.forms_for(packets))
    octets = b"".join(part.octets for part in damage.written(packets, form))
    if chance.random() < 0.3:
        at = chance.randrange(100, len(octets))
        octets = octets[:at] + chance.choice([b"", chance.randbytes(20) + octets[at + 20 :]])
    return octets


def by_chance(seed: int, count: int, commands: bool) -> None:
    chance = Random(seed)
    other = str(CAPTURES / "demo.pcap")
    recorded = sorted(one for one in CAPTURES.rglob("*.pcap") if one.stat().st_size < 20_000)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            path = Path(folder, f"{seed}-{number}.pcap")
            path.write_bytes(mixed(chance, recorded))
            capture.BLOCK = chance.choice([64, 300, 2000, 8000])  # type: ignore[misc]
            jobs = chance.choice([2, 3, 5])
            if commands:
                compare_commands(chance, str(path), jobs, chance.sample(COMMANDS, 4), other)
                other = str(path)
            else:
                compare([str(path)], jobs, chance.choice([FORMS, ("text",)]))


def main(how: str, *arguments: str) -> int:
    """Do what the module says. Returns the exit status."""
    changed: Any = sharing
    changed.MIN_SHARED_OCTETS = changed.SHARE_PROBE = 1
    changed_ahead: Any = ahead
    changed_ahead.MIN_AHEAD_OCTETS = 1
    besides: Any = side_by_side
    besides.SHARE_PROBE = 1
    changed_comparison: Any = comparison
    changed_comparison.Beside = KilledBeside if how == "kill" else CountedBeside
    changed.Sharing = Killed if how == "kill" else Sharing
    if how == "late":
        changed.Sharing = Interrupted
    if how == "interrupt":
        changed.Workers = besides.Workers = Workers
    capture.BLOCK = 512  # type: ignore[misc]
    status = 0
    if how == "compare":
        seed, count, *paths = arguments
        for path in paths:
            compare([path], 3)
            compare([path], 2, ("text",))
        by_chance(int(seed), int(count), False)
        print(f"{sum(SHARED)} of {len(SHARED)}", file=sys.stderr)
        SHARED.clear()
        usual = sharing._left
        changed._left = lambda table: [usual(table)[0] - 8191, usual(table)[1] - 65535, *usual(table)[2:]]
        capture.BLOCK = 512  # type: ignore[misc]
        compare([paths[0]], 2)
        changed._left = lambda table: [*usual(table)[:2], usual(table)[2] - 255, usual(table)[3]]
        compare([paths[0]], 2, ("text",))
    elif how == "commands":
        seed, count, *paths = arguments
        for path, other in zip(paths, [*paths[1:], paths[0]], strict=True):
            compare_commands(Random(path), path, 3, COMMANDS, other)
        by_chance(int(seed), int(count), True)
    elif how == "several":
        seed, count, *paths = arguments
        chance = Random(int(seed))
        for _ in range(int(count)):
            compare_several(chance, chance.choices(paths, k=chance.randint(2, 9)), chance.choice([2, 3]))
    else:
        status = run(list(arguments))
    try:
        os.waitpid(-1, os.WNOHANG)
        print("a worker is left", file=sys.stderr)
    except ChildProcessError:
        pass
    print(f"{sum(SHARED)} shared, {len(SHARED) - sum(SHARED)} not", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

"""Measures whole commands against each other: `make bench`. It reports and asserts nothing.

    python tests/bench/bench.py --rounds 5 --capture small=300MB --capture many=87MB

Each command is a process of its own, from start to end, its output thrown away. The rounds are interleaved
(A, B, A, B, ...), because on a shared machine the same program varies by a factor of two from one minute to
the next: **trust the ratios**, which are taken within a round, and less the seconds. Wall and processor time
and peak memory are what the kernel says of the child (wait4). Linux carries the memory of the process that
started a child into the child's peak, so no peak is below this script's own, some 15 MB; captures are
written by another process for that reason.

Captures come from generate.py and are kept in a folder (--cache, or AMQPSCOPE_BENCH_CACHE, else one in the
system's folder for temporary files) until the generator changes. To measure something else add a row to
OWN_COMMANDS or CAPTURES.

Each run against tshark adds its ratios of processor time to history.tsv beside this file, with the commit.
It names the commands that became slower since the last run on a capture of the same kind and size.

--compare REV builds that revision, compiled, in a folder beside the captures, and measures its commands in
the same rounds, each against the same command of this one: has something become slower?
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

HISTORY = Path(__file__).resolve().with_name("history.tsv")
GENERATOR = Path(__file__).resolve().with_name("generate.py")
SEALING = GENERATOR.with_name("sealing.py")
AMQPSCOPE = str(Path(sys.executable).with_name("amqpscope"))  # the console script of this environment
TSHARK = "tshark"


@dataclass(frozen=True)
class Command:
    """A row of the table: a name and the command line for a capture."""

    name: str
    line: Callable[[Path], list[str]]


def _tshark(*names: str) -> Callable[[Path], list[str]]:
    """tshark, printing these fields."""

    def line(path: Path) -> list[str]:
        reported = [TSHARK, "-r", str(path), "-o", "tcp.reassemble_out_of_order:TRUE", "-T", "fields"]
        for name in names:
            reported += ["-e", name]
        return reported

    return line


# What the others are compared with is the first.
_EXPERT = Command("tshark -q -z expert", lambda path: [TSHARK, "-r", str(path), "-q", "-z", "expert"])
TSHARK_COMMANDS = (
    Command(
        "tshark -T fields",
        _tshark(
            "amqp.performative",
            "amqp.channel",
            "amqp.performative.arguments.handle",
            "amqp.performative.arguments.deliveryId",
        ),
    ),
    _EXPERT,
)
# The same of AMQP 0-9-1.
TSHARK_COMMANDS_091 = (
    Command(
        "tshark -T fields",
        _tshark("amqp.method.method", "amqp.channel", "amqp.method.arguments.delivery_tag"),
    ),
    _EXPERT,
)

# The same of AMQP 1.0 in TLS, with the key log that lies beside the capture.
TSHARK_COMMANDS_TLS = (
    Command(
        TSHARK_COMMANDS[0].name,
        lambda path: [
            *TSHARK_COMMANDS[0].line(path),
            "-d",
            "tls.port==5671,amqp",
            "-o",
            f"tls.keylog_file:{_key_log(path)}",
        ],
    ),
)

OWN_COMMANDS = {
    "read --count": ("read", "--count"),
    "read": ("read",),
    "summary": ("summary",),
    "read --format ndjson": ("read", "--format", "ndjson"),
    # A check's exit status says what it found: never a failure. The form ndjson has no diagnoses.
    "check --no-diagnoses": ("check", "--fail-on", "never", "--format", "ndjson"),
    "check": ("check", "--fail-on", "never"),
    "check --format json": ("check", "--fail-on", "never", "--format", "json"),
}


def _key_log(path: Path) -> Path:
    """Where the generator puts the secrets of a capture."""
    return path.with_suffix(".keys")


def _with_key_log(path: Path) -> list[str]:
    return ["--tls-keylog", str(_key_log(path))] if _key_log(path).exists() else []


def own(program: str, version: str = "") -> list[Command]:
    """The commands of an amqpscope. version: what stands behind their names, if there are several."""
    return [
        Command(
            f"amqpscope {name}{version and f' ({version})'}",
            lambda path, words=words: [program, *words, *_with_key_log(path), str(path)],  # type: ignore[misc]
        )
        for name, words in OWN_COMMANDS.items()
    ]


PEAK_UNIT = 1 if sys.platform == "darwin" else 1024
"""Octets of one unit of ru_maxrss, getrusage(2)."""

PATIENCE = 120.0
"""Seconds for a command: tshark's expert mode has captures that it does not come back from for hours."""

# Kinds of capture, and the sizes used when none is given.
CAPTURES = {
    "small": ("300MB", "1200MB"),
    "many": ("1044MB",),  # 60,000 connections
    "large": ("300MB",),
    "loopback": ("300MB",),
    "rabbitmq": ("300MB", "1200MB"),
    "tls": ("300MB", "1200MB"),
}


@dataclass(frozen=True)
class Run:
    """One process: seconds, seconds of processor, octets at the peak (never fewer than its parent's)."""

    wall: float
    cpu: float
    peak: int


@dataclass
class Row:
    command: Command
    runs: list[Run] = field(default_factory=list)
    failure: str = ""


def measure(line: Sequence[str]) -> Run:
    """Runs one command to its end; RuntimeError with its last words if it fails, or if it takes too long."""
    with tempfile.TemporaryFile() as errors:
        began = time.perf_counter()
        process = subprocess.Popen(line, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        impatient = threading.Timer(PATIENCE, process.kill)
        impatient.start()
        _, status, usage = os.wait4(process.pid, 0)
        impatient.cancel()
        wall = time.perf_counter() - began
        if wall > PATIENCE:
            raise RuntimeError(f"takes longer than {PATIENCE:.0f} s")
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            reported = errors.read().decode(errors="replace").strip().splitlines()
            raise RuntimeError(
                f"exit status {process.returncode}: {reported[-1] if reported else 'no message'}"
            )
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * PEAK_UNIT)


def compare(path: Path, commands: Sequence[Command], rounds: int) -> list[Row]:
    """All commands in turn, `rounds` times. A command that fails is left out from then on."""
    rows = [Row(command) for command in commands]
    for _ in range(rounds):
        for row in rows:
            if row.failure:
                continue
            try:
                row.runs.append(measure(row.command.line(path)))
            except (RuntimeError, OSError) as problem:
                row.failure = str(problem)
    return rows


def ratios(row: Row, baseline: Row) -> list[float]:
    """How many times as fast as the baseline, round by round."""
    return [base.wall / run.wall for base, run in zip(baseline.runs, row.runs, strict=False)]


@dataclass(frozen=True)
class Measured:
    """A line of the history: how many times less processor time a command takes than the baseline."""

    commit: str  # with a + behind it where files differed from the commit
    capture: str  # kind and size, as small=300MB
    command: str
    ratio: float  # the median of the rounds


def processor_ratios(rows: Sequence[Row], commit: str, capture: str) -> list[Measured]:
    """The ratios of processor time of all commands against the first one; none where that one failed."""
    baseline, *others = rows
    return [
        Measured(
            commit,
            capture,
            row.command.name,
            median(base.cpu / run.cpu for base, run in zip(baseline.runs, row.runs, strict=True)),
        )
        for row in others
        if not baseline.failure and not row.failure and row.runs
    ]


def remember(measured: Sequence[Measured], history: Path) -> list[str]:
    """Append to the history. Return a sentence for each command that lost a tenth since its last line."""
    latest: dict[tuple[str, str], tuple[str, float]] = {}
    for line in history.read_text("utf-8").splitlines()[1:]:
        commit, capture, command, ratio = line.split("\t")
        latest[capture, command] = (commit, float(ratio))
    slower = []
    for one in measured:
        before, ratio = latest.get((one.capture, one.command), ("", 0.0))
        if one.ratio < 0.9 * ratio:
            slower.append(f"{one.command} is slower: {one.ratio:.1f} times as fast, {ratio:.1f} at {before}")
    with history.open("a", encoding="utf-8") as file:
        for one in measured:
            file.write(f"{one.commit}\t{one.capture}\t{one.command}\t{one.ratio:.2f}\n")
    return slower


def _commit() -> str:
    """The commit of this repository, with a + where files differ from it."""
    line = [
        "git",
        "-C",
        str(HISTORY.parent),
        "describe",
        "--always",
        "--abbrev=10",
        "--exclude=*",
        "--dirty=+",
    ]
    return subprocess.run(line, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def table(rows: Sequence[Row], size: int) -> str:
    """The rows as text; `size` is the capture's, in octets."""
    head = ("command", "wall s", "(min-max)", "cpu s", "MB/s", "peak MB", "ratio", "(min-max)")
    lines = [head]
    for row in rows:
        if row.failure or not row.runs:
            lines.append((row.command.name, row.failure or "not run", "", "", "", "", "", ""))
            continue
        walls = [run.wall for run in row.runs]
        against = ratios(row, rows[0]) or [float("nan")]
        lines.append(
            (
                row.command.name,
                f"{median(walls):.2f}",
                f"({min(walls):.2f}-{max(walls):.2f})",
                f"{median(run.cpu for run in row.runs):.2f}",
                f"{size / 1e6 / median(walls):.0f}",
                f"{max(run.peak for run in row.runs) / 1e6:.0f}",
                f"{median(against):.1f}x",
                f"({min(against):.1f}-{max(against):.1f})",
            )
        )
    widths = [max(len(line[n]) for line in lines if line[2] or n == 0) for n in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if n == 0 or not line[2] else cell.rjust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def capture(kind: str, size: str, folder: Path, **more: int) -> Path:
    """The capture of this kind and size, written if it is not there. more: seed, connections."""
    version = hashlib.sha256(GENERATOR.read_bytes() + SEALING.read_bytes()).hexdigest()[:8]
    reported = "".join(f"-{name}{number}" for name, number in more.items())
    path = folder / f"{kind}-{size}{reported}-{version}.pcap"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        try:
            line = [sys.executable, str(GENERATOR), kind, "--size", size, "--out", str(unfinished)]
            line += [word for name, number in more.items() for word in (f"--{name}", str(number))]
            subprocess.run(line, check=True)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return path


def warm(path: Path) -> None:
    """Reads the file once, so that the first command does not pay for the disk."""
    with path.open("rb") as file:
        while file.read(1 << 20):
            pass


def add_cache(parser: argparse.ArgumentParser) -> None:
    """The option that says where captures are kept."""
    parser.add_argument(
        "--cache",
        type=Path,
        default=Path(
            os.environ.get("AMQPSCOPE_BENCH_CACHE") or Path(tempfile.gettempdir()) / "amqpscope-bench"
        ),
        help="folder of the captures (AMQPSCOPE_BENCH_CACHE)",
    )


def _version(program: str) -> str:
    if not shutil.which(program):
        return "not installed"
    printed = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return printed.strip().splitlines()[0] if printed.strip() else "of unknown version"


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure amqpscope against tshark.")
    parser.add_argument(
        "--capture",
        action="append",
        metavar="KIND[=SIZE]",
        help=f"one of {', '.join(CAPTURES)}; several may be given; all by default",
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--compare", metavar="REV", help="measure this revision beside, and not tshark")
    add_cache(parser)
    given = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}, {os.cpu_count()} processors")
    print(f"amqpscope: {_version(AMQPSCOPE)}")
    print(f"tshark: {_version(TSHARK)}")
    if given.compare:
        old = build(given.compare, given.cache)
        print(f"compared with: {_version(old)} at {given.compare}")
        groups = [
            [before, after]
            for before, after in zip(own(old, given.compare), own(AMQPSCOPE, "now"), strict=True)
        ]
    else:
        groups = []
    for kind, size in _wanted(parser, given.capture or list(CAPTURES)):
        path = capture(kind, size, given.cache)
        octets = path.stat().st_size
        warm(path)
        print(f"\n{kind}: {octets / 1e6:.0f} MB, {given.rounds} interleaved rounds, medians")
        theirs = {"rabbitmq": TSHARK_COMMANDS_091, "tls": TSHARK_COMMANDS_TLS}.get(kind, TSHARK_COMMANDS)
        for group in groups or [[*theirs, *own(AMQPSCOPE)]]:
            rows = compare(path, group, given.rounds)
            print(table(rows, octets), flush=True)
            if not given.compare:
                for sentence in remember(processor_ratios(rows, _commit(), f"{kind}={size}"), HISTORY):
                    print(sentence)


def _wanted(parser: argparse.ArgumentParser, captures: list[str]) -> Iterator[tuple[str, str]]:
    for wanted in captures:
        kind, _, size = wanted.partition("=")
        if kind not in CAPTURES:
            parser.error(f"no kind of capture is called {kind}")
        for each in (size,) if size else CAPTURES[kind]:
            yield kind, each


def build(revision: str, folder: Path) -> str:
    """The program `amqpscope` of a revision of this repository, built there if it is not yet."""
    root = GENERATOR.parents[2]
    reported = subprocess.run(
        ["git", "-C", str(root), "rev-parse", "--verify", f"{revision}^{{commit}}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if reported.returncode != 0:
        sys.exit(f"no revision is called {revision}")
    place = folder / f"revision-{reported.stdout.strip()[:12]}"
    program = place / "bin" / "amqpscope"
    if not program.exists():
        with tempfile.TemporaryDirectory() as source:
            archive = Path(source, "source.tar")
            line = ["git", "-C", str(root), "archive", "-o", str(archive), reported.stdout.strip()]
            subprocess.run(line, check=True)
            shutil.unpack_archive(archive, source, filter="data")
            subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
            subprocess.run(
                [str(place / "bin" / "pip"), "install", "--quiet", source],
                env={**os.environ, "AMQPSCOPE_COMPILE": "require"},
                check=True,
            )
    return str(program)


if __name__ == "__main__":
    main()

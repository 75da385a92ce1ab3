"""Measures the pipeline against `check` of the same captures: `make bench-spark`. It asserts nothing.

    python tests/bench/pipeline.py --rounds 3 --case sets --capture small --size 1GB

one        one capture of a sixth of the size, which one process analyses
sets       ten capture sets of a tenth of the size each
rotated    one capture set: a capture of that size cut into ten files, all connections run through all
elephant   one connection of one and a half times the size; the memory of Spark's Python workers is measured

Each case is measured with each kind of capture that is asked for: `small` is AMQP 1.0, `rabbitmq` AMQP 0-9-1.

What is compared. `check` and `pipeline run --engine pool` are processes from start to end. `check` reads
the captures one after another (the rotated ones with --merge): with diagnoses, as a run with all tables
makes them, and without, as a run with "verdicts" does (`--format ndjson` has none). A Spark session is a
process too, one for local[1] and one for local[2], but its start and a first small run are not counted:
only `analyse(...).write(...)` is, from the listing of the sources to the manifest. "verdicts" writes the
tables `files` and `findings`, which is what `check --no-diagnoses` gives; "all tables" writes a row for
every frame and delivery besides, which is what `read --format ndjson` gives. The rounds are interleaved,
and ratios taken within a round; see bench.py. Processor time is that of the process and of all below it:
with Spark, of the Java, too.

A worker's memory is what it does not share with the process it was forked from (USS), looked at some twenty
times a second; for that, these runs take a little longer.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench import AMQPSCOPE, add_cache, capture, measure, warm
from generate import octets

FILES = 10
VERDICTS = ("findings",)
LOOK = 0.05  # seconds


@dataclass(frozen=True)
class Way:
    """A row of the table. master: None for a plain process, of which `line` is the command. into: it writes a
    lake.
    """

    name: str
    master: str | None = None
    plan: str = "auto"
    tables: tuple[str, ...] | None = VERDICTS
    line: tuple[str, ...] = ()
    into: bool = False


@dataclass
class Case:
    """What is read, and how that is compared. The first way is what the others are compared with."""

    sources: list[Path]
    set_by: str
    ways: tuple[Way, ...]
    watched: bool = False
    octets: int = 0
    seconds: dict[str, list[float]] = field(default_factory=dict)
    processor: dict[str, list[float]] = field(default_factory=dict)
    worker: dict[str, int] = field(default_factory=dict)


def _checks(*options: str) -> tuple[Way, Way]:
    """With diagnoses, and without."""
    line = (AMQPSCOPE, "check", "--fail-on", "never", *options)
    return (
        Way("amqpscope check", line=line),
        Way("amqpscope check --no-diagnoses", line=(*line, "--format", "ndjson")),
    )


CHAIN_1 = Way("chain plan, local[1], verdicts", "local[1]", "chain")
CHAIN_2 = Way("chain plan, local[2], verdicts", "local[2]", "chain")
FLOW_2 = Way("flow plan, local[2], verdicts", "local[2]", "flow")
POOL = (AMQPSCOPE, "pipeline", "run", "--engine", "pool", "--fail-on", "never")
POOL_ALL = Way("pool, all tables", line=POOL, into=True)
POOL_JSON = Way("pool, all tables, --json", line=(*POOL, "--json"), into=True)
CHAIN_1_ALL = Way("chain plan, local[1], all tables", "local[1]", "chain", None)
CHAIN_ALL = Way("chain plan, local[2], all tables", "local[2]", "chain", None)
FLOW_ALL = Way("flow plan, local[2], all tables", "local[2]", "flow", None)
NDJSON = Way("amqpscope read --format ndjson", line=(AMQPSCOPE, "read", "--format", "ndjson"))


def cases(wanted: list[str], size: int, folder: Path, kind: str = "small") -> dict[str, Case]:
    """The captures of these cases, written where they are not there yet. kind: see generate.py."""
    found: dict[str, Case] = {}
    for name in wanted:
        if name == "one":
            alone = _alone(capture(kind, f"{size // 6}", folder))
            ways = (*_checks(), NDJSON, POOL_ALL, POOL_JSON, CHAIN_1_ALL)
            found[name] = Case([alone], "directory", ways)
        elif name == "sets":
            part = f"{size // FILES}"
            # A directory is a capture set, so each file has one of its own.
            sources = [_alone(capture(kind, part, folder, seed=n + 1)) for n in range(FILES)]
            ways = (*_checks(), NDJSON, CHAIN_1, CHAIN_2, FLOW_2, POOL_ALL, CHAIN_1_ALL, CHAIN_ALL, FLOW_ALL)
            found[name] = Case(sources, "directory", ways)
        elif name == "rotated":
            rotated = _rotated(capture(kind, f"{size}", folder))
            ways = (*_checks("--merge"), CHAIN_2, FLOW_2, FLOW_ALL)
            found[name] = Case([rotated], "directory", ways)
        else:
            alone = _alone(capture(kind, f"{size * 3 // 2}", folder, connections=1))
            ways = (*_checks(), CHAIN_2, FLOW_2, CHAIN_ALL, FLOW_ALL)
            found[name] = Case([alone], "directory", ways, watched=True)
    for case in found.values():
        files = [file for source in case.sources for file in source.iterdir()]
        case.octets = sum(file.stat().st_size for file in files)
    return found


def _alone(path: Path) -> Path:
    """A directory with nothing but this file."""
    folder = path.with_suffix(".set")
    folder.mkdir(exist_ok=True)
    link = folder / path.name
    if not link.exists():
        os.link(path, link)
    return folder


def _rotated(path: Path) -> Path:
    """A directory with this capture cut into files of the same size, between records."""
    folder = path.with_suffix(".rotated")
    if folder.exists():
        return folder
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.mkdir()
    with path.open("rb") as file:
        head = file.read(24)
        share = path.stat().st_size // FILES
        for number in range(FILES):
            with (unfinished / f"{number:02}.pcap").open("wb") as part:
                part.write(head)
                while number == FILES - 1 or part.tell() < share:
                    record = file.read(16)
                    if not record:
                        break
                    part.write(record + file.read(struct.unpack_from("<I", record, 8)[0]))
    unfinished.rename(folder)
    return folder


class Session:
    """A Spark session in a process of its own, ready to run."""

    def __init__(self, master: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve", master],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    def run(self, case: Case, way: Way) -> dict[str, Any]:
        """Seconds by the clock and of processors, and octets of the largest Python worker."""
        assert self._process.stdin is not None
        wanted = {
            "sources": [str(source) for source in case.sources],
            "set_by": case.set_by,
            "plan": way.plan,
            "tables": way.tables,
            "watched": case.watched,
        }
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the Spark session has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer


def serve(master: str) -> None:
    """What the process of a `Session` does."""
    from amqpscope.pipeline import analyse, session

    spark = session.start(master, configuration={"spark.driver.memory": "1g"})
    folder = Path(tempfile.mkdtemp(prefix="amqpscope-bench-"))
    captures = Path(__file__).resolve().parents[2] / "captures"
    two = [str(captures / name) for name in ("demo.pcap", "amqplib-confirm.pcap")]
    for plan in ("chain", "flow"):  # a file for each of two workers
        analyse(spark, two, set_by="file", plan=plan).write(str(folder / "first"))
    print("{}", flush=True)
    try:
        for line in sys.stdin:
            wanted = json.loads(line)
            tables = wanted.pop("tables")
            watch = Watch() if wanted.pop("watched") else None
            before = _processor(os.getpid())
            began = time.perf_counter()
            analysis = analyse(spark, wanted.pop("sources"), **wanted)
            analysis.write(str(folder / "lake"), *([] if tables is None else [tables]))
            seconds = time.perf_counter() - began
            processor = _processor(os.getpid()) - before
            worker = 0 if watch is None else watch.stop()
            print(json.dumps({"seconds": seconds, "processor": processor, "worker": worker}), flush=True)
    finally:
        spark.stop()
        shutil.rmtree(folder)


class Watch:
    """Looks at the memory of the Python workers below this process, until it is stopped."""

    def __init__(self) -> None:
        self._most = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """The most octets that a worker had for itself."""
        self._ended.set()
        self._thread.join()
        return self._most

    def _look(self) -> None:
        looks = 0
        workers: list[int] = []
        while not self._ended.wait(LOOK):
            if looks % 10 == 0:  # new ones are rare, and looking for them is dear
                workers = _workers(os.getpid())
            looks += 1
            self._most = max([self._most, *(_own(process) for process in workers)])


def _below(root: int) -> list[int]:
    """A process, and all that descend from it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int(_fields(int(entry.name))[1])
            except (OSError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for process in found:
        found += children.get(process, [])
    return found


def _fields(process: int) -> list[str]:
    """What the kernel says of a process, from its state on (proc(5), stat)."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()


def _processor(root: int) -> float:
    """Seconds of processors that a process, those below it, and those of them that have ended took."""
    ticks = 0
    for process in _below(root):
        try:
            ticks += sum(map(int, _fields(process)[11:15]))
        except OSError:
            continue
    return ticks / os.sysconf("SC_CLK_TCK")


def _workers(root: int) -> list[int]:
    """Processes that descend from `root` and were started by Spark's Python daemon."""
    found = []
    for process in _below(root):
        try:
            if b"pyspark.daemon" in Path(f"/proc/{process}/cmdline").read_bytes():
                found += _below(process)[1:]
        except OSError:
            continue
    return found


def _own(process: int) -> int:
    """Octets that only this process has."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def table(case: Case) -> str:
    """The figures of a case as text."""
    base = case.seconds[case.ways[0].name]
    processor_base = case.processor[case.ways[0].name]
    lines = [("", "s", "(min-max)", "times check", "(min-max)", "processor s", "times check", "worker MB")]
    for way in case.ways:
        seconds = case.seconds[way.name]
        ratios = [mine / plain for mine, plain in zip(seconds, base, strict=True)]
        processor = case.processor[way.name]
        busy = [mine / plain for mine, plain in zip(processor, processor_base, strict=True)]
        worker = case.worker.get(way.name, 0)
        lines.append(
            (
                way.name,
                f"{median(seconds):.2f}",
                f"({min(seconds):.2f}-{max(seconds):.2f})",
                f"{median(ratios):.2f}",
                f"({min(ratios):.2f}-{max(ratios):.2f})",
                f"{median(processor):.2f}",
                f"{median(busy):.2f}",
                f"{worker / 1e6:.0f}" if worker else "",
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if n else cell.ljust(width)
            for n, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def _measure(case: Case, way: Way, sessions: dict[str, Session]) -> None:
    """One round of a way."""
    if way.master is not None:
        reported = sessions[way.master].run(case, way)
        seconds, processor = reported["seconds"], reported["processor"]
        case.worker[way.name] = max(case.worker.get(way.name, 0), reported["worker"])
    else:
        with tempfile.TemporaryDirectory(prefix="amqpscope-bench-") as folder:
            into = ["--out", f"{folder}/lake", "--set-by", case.set_by] if way.into else []
            run = measure([*way.line, *map(str, case.sources), *into])
        seconds, processor = run.wall, run.cpu
    case.seconds.setdefault(way.name, []).append(seconds)
    case.processor.setdefault(way.name, []).append(processor)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the pipeline against `check`.")
    parser.add_argument("--case", action="append", choices=("one", "sets", "rotated", "elephant"))
    parser.add_argument("--capture", action="append", choices=("small", "rabbitmq"))
    parser.add_argument("--size", type=octets, default=octets("1GB"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", metavar="MASTER", help=argparse.SUPPRESS)
    add_cache(parser)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} processors; {given.rounds} interleaved rounds")
    wanted = given.case or ["one", "sets", "rotated", "elephant"]
    found = {
        (kind, name): case
        for kind in given.capture or ["small", "rabbitmq"]
        for name, case in cases(wanted, given.size, given.cache, kind).items()
    }
    masters = {way.master for case in found.values() for way in case.ways if way.master}
    sessions = {master: Session(master) for master in sorted(masters)}
    try:
        for (kind, name), case in found.items():
            for source in case.sources:
                for file in source.iterdir():
                    warm(file)
            for _ in range(given.rounds):
                for way in case.ways:
                    _measure(case, way, sessions)
            print(f"\n{name} ({kind}): {case.octets / 1e6:.0f} MB")
            print(table(case), flush=True)
    finally:
        for session in sessions.values():
            session.close()


if __name__ == "__main__":
    main()

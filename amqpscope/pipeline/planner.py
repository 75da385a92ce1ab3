"""Which plan a run takes, and why.

The chain plan costs about what reading the files costs, and takes as long as its longest capture set. The
flow plan spreads also one capture set over all cores, for a price: two times the work for verdicts, less for
all tables, by measurement (`FLOW_COST`). So the chain plan is taken unless one capture set would keep a core
busy for longer than the flow plan needs for everything, or when all is so little that a shuffle is not worth
starting.
"""

from typing import NamedTuple

from amqpscope.limits import MAX_MERGE_OPEN
from amqpscope.pipeline.capture_set import CaptureSet
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.references import AUTO, SHUFFLES, carries_payload

__all__ = ["CHAIN", "FLOW", "PLANS", "Plan", "make_plan", "pool_plan"]

CHAIN = "chain"
FLOW = "flow"
PLANS = ("auto", CHAIN, FLOW)

FLOW_COST = 2.0
"""How many times the work of the chain plan the flow plan is."""

SMALL = 256 * 1024 * 1024
"""Octets that are read in less time than it takes to set up a shuffle."""

TASK_OCTETS = 64 * 1024 * 1024
"""Octets for a task, where they can be divided: a task costs some 0.1 s, and one that dies is done again."""

SPLIT_OCTETS = 128 * 1024 * 1024
"""Size of the ranges that large files are read in, in the flow plan."""

MIN_SPLIT = 1024 * 1024


class Plan(NamedTuple):
    """How a run is done.

    kind: CHAIN or FLOW. why: a sentence. sets: all inputs. tasks: numbers of the sets that a task of the
    chain plan reads. split: octets of a range, partitions: of the shuffle, in the flow plan. cores: at work
    at a time. shuffle: what is shuffled, one of SHUFFLES.
    """

    kind: str
    why: str
    sets: tuple[CaptureSet, ...]
    tasks: tuple[tuple[int, ...], ...]
    split: int
    partitions: int
    cores: int
    shuffle: str = AUTO

    def explain(self) -> list[str]:
        """The plan in lines for people."""
        files = [file for one in self.sets for file in one.files]
        good = [file for file in files if file.trouble is None]
        size = sum(file.size for file in good)
        lines = [f"{self.kind} plan: {self.why}"]
        lines.append(
            f"  {_count(len(good), 'file')}, {_size(size)}, in {_count(len(self.sets), 'capture set')}; "
            f"{_count(self.cores, 'core')}"
        )
        if len(good) < len(files):
            lines.append(f"  {_count(len(files) - len(good), 'input')} that cannot be read")
        if self.kind == CHAIN:
            lines.append(
                f"  {_count(len(self.tasks), 'task')}, each reads the files of its capture sets "
                "one after another; nothing is shuffled"
            )
        else:
            large = sum(file.size > self.split and not file.compression for file in good)
            carried = sum(carries_payload(file, self.shuffle) for file in good)
            if large:
                lines.append(f"  {_count(large, 'file')} read in ranges of {_size(self.split)}")
            lines.append(
                f"  references to segments, 44 octets each, shuffled by connection into "
                f"{_count(self.partitions, 'partition')}"
            )
            if carried:
                lines.append(
                    f"  the payload of {_count(carried, 'file')} is shuffled, too "
                    "(compressed, remote, or asked for)"
                )
        by_time = sum(one.by_time for one in self.sets)
        too_many = sum(one.too_many for one in self.sets)
        if by_time:
            lines.append(
                f"  {_count(by_time, 'capture set')} read in the order of time, because files may overlap"
            )
        if too_many:
            lines.append(
                f"  {_count(too_many, 'capture set')} of more than {MAX_MERGE_OPEN} files at once: read one "
                "after another, though they may overlap (--set-by file takes each alone)"
            )
        for one in sorted(self.sets, key=lambda one: -one.size)[:_SETS_SHOWN]:
            lines.append(f"  {one.name}: {_count(len(one.files), 'file')}, {_size(one.size)}")
        if len(self.sets) > _SETS_SHOWN:
            lines.append(f"  and {_count(len(self.sets) - _SETS_SHOWN, 'capture set')} more")
        return lines


_SETS_SHOWN = 5


def make_plan(
    sets: list[CaptureSet],
    cores: int,
    wanted: str = "auto",
    split: int = SPLIT_OCTETS,
    shuffle: str = AUTO,
) -> Plan:
    """The plan for these inputs on so many cores. wanted: one of PLANS. split: octets of a range.

    shuffle: one of SHUFFLES.
    """
    if wanted not in PLANS:
        raise PipelineError(f"--plan {wanted}: must be one of {', '.join(PLANS)}")
    if shuffle not in SHUFFLES:
        raise PipelineError(f"--shuffle {shuffle}: must be one of {', '.join(SHUFFLES)}")
    if split < MIN_SPLIT:
        raise PipelineError(f"ranges of {split} octets: must be at least {MIN_SPLIT}")
    total = sum(one.size for one in sets)
    largest = max((one.size for one in sets), default=0)
    kind = CHAIN
    if wanted != "auto":
        kind, why = wanted, "as requested by --plan"
    elif total <= SMALL:
        why = f"{_size(total)} of captures are too small to be worth a shuffle"
    elif cores == 1:
        why = "only one core is available"
    elif largest * cores <= total * FLOW_COST:
        why = "the capture sets keep all cores busy"
    else:
        kind = FLOW
        why = f"one capture set has {_size(largest)} of {_size(total)}: too much for one core of {cores}"
    partitions = max(cores, -(-total // TASK_OCTETS))
    return Plan(kind, why, tuple(sets), _tasks(sets, total, cores), split, partitions, cores, shuffle)


def pool_plan(sets: list[CaptureSet], processes: int, wanted: str = "auto") -> Plan:
    """The plan for so many processes without Spark. wanted: as of `make_plan`; only CHAIN can be."""
    if wanted not in ("auto", CHAIN):
        raise PipelineError(f"--plan {wanted}: without Spark, there is only the plan {CHAIN}")
    why = "without Spark, each process reads whole capture sets"
    return make_plan(sets, processes, CHAIN)._replace(why=why)


def _tasks(sets: list[CaptureSet], total: int, cores: int) -> tuple[tuple[int, ...], ...]:
    """Capture sets put together to tasks, the largest first: a late start of these would be waited for."""
    enough = max(min(TASK_OCTETS, total // (4 * cores)), 1)
    tasks: list[tuple[int, ...]] = []
    task: list[int] = []
    octets = 0
    for number in sorted(range(len(sets)), key=lambda number: (-sets[number].size, number)):
        task.append(number)
        octets += sets[number].size
        if octets >= enough or len(task) >= _SETS_OF_A_TASK:
            tasks.append(tuple(task))
            task, octets = [], 0
    if task:
        tasks.append(tuple(task))
    return tuple(tasks)


_SETS_OF_A_TASK = 256


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def _size(octets: int) -> str:
    size = float(octets)
    for unit in ("octets", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "octets" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"

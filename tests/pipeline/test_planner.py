"""Which plan is taken, by the sizes of the capture sets and the cores."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpscope.pipeline import PipelineError
from amqpscope.pipeline.capture_set import CaptureSet, capture_sets
from amqpscope.pipeline.inputs import CaptureFile, Trouble
from amqpscope.pipeline.planner import make_plan

GIB = 1 << 30


def sets(*sizes: int) -> list[CaptureSet]:
    return [
        CaptureSet(f"set {number}", (CaptureFile(f"file {number}", f"/{number}", size),))
        for number, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "cores", "kind"),
    [
        ((1000, 2000), 8, "chain"),  # too little
        ((GIB,), 1, "chain"),  # nothing to spread over
        ((GIB,) * 8, 8, "chain"),  # as many sets as cores
        ((GIB,), 2, "chain"),  # two cores do not pay for a shuffle
        ((GIB,), 8, "flow"),  # one set, many cores
        ((8 * GIB, GIB, GIB), 8, "flow"),  # one set would be waited for
        ((), 8, "chain"),
    ],
)
def test_which(sizes: tuple[int, ...], cores: int, kind: str) -> None:
    plan = make_plan(sets(*sizes), cores)
    assert plan.kind == kind
    assert plan.explain()[0].startswith(f"{kind} plan: ")


def test_every_set_is_in_one_task() -> None:
    plan = make_plan(sets(*[GIB // 3] * 5, *[10] * 1000, 0), 4)
    numbers = sorted(number for task in plan.tasks for number in task)
    assert numbers == list(range(1006))
    assert len(plan.tasks) < 20
    assert plan.tasks[0] == (0,)


def test_explained() -> None:
    broken = CaptureSet("broken", (CaptureFile("x", "/x", 5, trouble=Trouble("empty", "it is")),))
    packed = CaptureSet("packed", (CaptureFile("x.gz", "/x.gz", GIB, "gzip"),))
    text = "\n".join(make_plan([*sets(GIB), packed, broken], 4, "flow", 1 << 20).explain())
    assert "flow plan: as requested by --plan" in text
    assert "1 input that cannot be read" in text
    assert "1 file read in ranges of 1.0 MiB" in text
    assert "set 0: 1 file, 1.0 GiB" in text


def test_unknown() -> None:
    with pytest.raises(PipelineError, match="--plan best"):
        make_plan([], 1, "best")


def test_sets(tmp_path: Path) -> None:
    """By directory, by file, by what an expression finds."""
    for name in ("tap-1/a.pcap", "tap-1/b.pcap", "tap-2/a.pcap", "other/c.pcap"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")

    def named(set_by: str) -> list[tuple[str, int]]:
        found = capture_sets([str(tmp_path), str(tmp_path / "tap-1" / "a.pcap")], set_by)
        return [(Path(one.name).name, len(one.files)) for one in found]

    assert named("directory") == [("other", 1), ("tap-1", 2), ("tap-2", 1)]
    assert sorted(named("file")) == [("a.pcap", 1), ("a.pcap", 1), ("b.pcap", 1), ("c.pcap", 1)]
    assert named("(tap)-") == [("c.pcap", 1), ("tap", 3)]
    with pytest.raises(PipelineError, match="not a regular expression"):
        capture_sets([str(tmp_path)], "(")

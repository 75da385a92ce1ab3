"""What the flow plan shuffles, references or payload, makes no difference to the tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.lakes import CAPTURES, rotated, written

from amqpscope.pipeline import PipelineError, flow
from amqpscope.pipeline.capture_set import CaptureSet, capture_sets
from amqpscope.pipeline.files import whole
from amqpscope.pipeline.flow import FilePiece
from amqpscope.pipeline.inputs import CaptureFile
from amqpscope.pipeline.planner import make_plan
from amqpscope.pipeline.references import carries_payload
from amqpscope.pipeline.rows import Rows
from amqpscope.pipeline.schemas import TABLES


def test_same_tables(spark: Any, tmp_path: Path) -> None:
    for path in sorted(CAPTURES.glob("r*.pcap")):
        rotated(path, tmp_path / "captures" / path.stem, 3)
    of: dict[str, Any] = {
        shuffle: written(
            spark, tmp_path / shuffle, [tmp_path / "captures"], plan="flow", shuffle=shuffle, split=1 << 20
        )
        for shuffle in ("references", "payload")
    }
    assert of["payload"] == of["references"]
    assert of["payload"]["findings"] and of["payload"]["deliveries"]


def tables(sets: list[CaptureSet], blocks: list[Any]) -> list[dict[str, Any]]:
    """The rows of the frames that come of the blocks."""
    rows = Rows(tuple(TABLES))
    batches = list(flow.analyse(sorted(blocks), sets, rows, []))
    batches += rows.batches(True)
    return [row for name, batch in batches if name == "frames" for row in batch.to_pylist()]


@pytest.mark.parametrize("shuffle", ["references", "payload"])
def test_what_is_shuffled(tmp_path: Path, shuffle: str) -> None:
    """With the payload nobody needs the file any more."""
    path = tmp_path / "a.pcap"
    path.write_bytes((CAPTURES / "rabbitmq-large.pcap").read_bytes())
    sets = capture_sets([str(path)])
    piece = FilePiece(0, 0, 0, whole(sets[0].files[0]))
    blocks = list(flow.blocks_of(flow.refer(piece, sets, shuffle)))
    octets = sum(len(segments) for _, _, _, segments in blocks)
    frames = tables(sets, blocks)
    assert frames
    path.unlink()
    if shuffle == "payload":
        assert octets > 20_000
        assert tables(sets, blocks) == frames
    else:
        assert octets < 10_000
        with pytest.raises(FileNotFoundError):
            tables(sets, blocks)


@pytest.mark.parametrize(
    ("path", "compression", "carried"),
    [
        ("/a.pcap", "", [False, False, True]),
        ("s3://bucket/a.pcap", "", [True, False, True]),
        ("/a.pcap.gz", "gzip", [True, True, True]),
    ],
)
def test_which(path: str, compression: str, carried: list[bool]) -> None:
    """For auto, references and payload."""
    file = CaptureFile(path, path, 1 << 30, compression)
    assert [carries_payload(file, shuffle) for shuffle in ("auto", "references", "payload")] == carried
    plan = make_plan([CaptureSet("set", (file,))], 4, "flow")
    reported = any("the payload of 1 file is shuffled" in line for line in plan.explain())
    assert reported == carried[0]


def test_unknown() -> None:
    with pytest.raises(PipelineError, match="--shuffle cards: must be one of auto, references, payload"):
        make_plan([], 1, shuffle="cards")

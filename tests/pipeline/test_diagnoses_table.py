"""The diagnoses of the pipeline are those of `check`, row for row, by either plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.lakes import CAPTURES, contents, records

from amqpscope.input.diagnosing import diagnose
from amqpscope.pipeline import analyse
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.rows import Rows

TROUBLED = sorted((CAPTURES / "rules" / "diag").glob("*/troubled.pcap"))

SPLIT = 1024 * 1024


def _of_check(path: Path) -> list[str]:
    """The diagnoses of `check --format json`, each as JSON with its capture."""
    return [json.dumps({**one.json(), "capture": str(path)}, sort_keys=True) for one in diagnose(path)]


def _as_in_check(row: dict[str, Any]) -> str:
    """A row of the table in the form of `check`."""
    assert {one["capture"] for one in row["packets"]} <= {row["capture"]}
    own = {"figures": json.loads(row["figures"]), "packets": [one["packet"] for one in row["packets"]]}
    left_out = ("capture_set", "date", "protocol")
    return json.dumps({name: row[name] for name in row if name not in left_out} | own, sort_keys=True)


@pytest.mark.parametrize("plan", ["chain", "flow"])
def test_rows_are_the_diagnoses_of_check(spark: Any, tmp_path: Path, plan: str) -> None:
    sources = [str(path) for path in TROUBLED]
    analyse(spark, sources, set_by="file", plan=plan, split=SPLIT).write(str(tmp_path), ["diagnoses"])
    rows = contents(tmp_path)["diagnoses"]
    expected = sorted(one for path in TROUBLED for one in _of_check(path))
    assert {f"diag/{path.parent.name}" for path in TROUBLED} <= {row["code"] for row in rows}
    assert sorted(map(_as_in_check, rows)) == expected
    assert all(row["date"].year > 1990 for row in rows)


def test_packets_of_several_files(tmp_path: Path) -> None:
    """A capture in two files: each packet is named by its file and its number in the file."""
    whole = CAPTURES / "rules" / "diag" / "link-stolen" / "troubled.pcap"
    (expected,) = diagnose(whole)
    thief, stolen = expected.packets
    header, packets = records(whole.read_bytes())
    (tmp_path / "first.pcap").write_bytes(header + b"".join(packets[:thief]))
    (tmp_path / "second.pcap").write_bytes(header + b"".join(packets[thief:]))
    (one,) = capture_sets([str(tmp_path)], "directory")
    rows = Rows(("diagnoses",))
    assert not list(read_set(one, rows))
    ((_, batch),) = rows.batches(True)
    (row,) = batch.to_pylist()
    assert (Path(row["capture"]).name, row["packet"]) == ("second.pcap", stolen - thief)
    places = [(Path(packet["capture"]).name, packet["packet"]) for packet in row["packets"]]
    assert places == [("first.pcap", thief), ("second.pcap", stolen - thief)]
    assert f"in packet {thief} of first.pcap" in row["message"]

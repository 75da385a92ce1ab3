"""Of captures in which somebody waits for somebody, each is diagnosed as its key says; their twins are not.

With AMQPSCOPE_CAPTURES=FOLDER for the captures in each of its folders that has a key with code, subject,
whose move it is, and since which packet.
"""

from __future__ import annotations

import csv
import os
from collections import defaultdict
from pathlib import Path

import pytest
from support.commands import amqpscope
from support.diagnosed import diagnosed

FOLDERS = [Path(folder) for folder in os.environ.get("AMQPSCOPE_CAPTURES", "").split(os.pathsep) if folder]
KEYS = [
    key
    for folder in FOLDERS
    for key in sorted(folder.glob("*/key.tsv"))
    if "whose_move" in key.read_text("utf-8").partition("\n")[0]
]


def rows() -> dict[Path, list[dict[str, str]]]:
    found: dict[Path, list[dict[str, str]]] = defaultdict(list)
    for key in KEYS:
        with key.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines, delimiter="\t"):
                found[key.parent / row["file"]].append(row)
    return found


ROWS = rows()


@pytest.mark.skipif(not ROWS, reason="AMQPSCOPE_CAPTURES is not set")
@pytest.mark.parametrize("file", sorted(ROWS), ids=lambda file: file.name)
def test_a_trouble_is_diagnosed_and_its_twin_is_not(file: Path) -> None:
    found = diagnosed(file)
    due = [row for row in ROWS[file] if row["legal"] == "no"]
    if not due:
        assert found == []
    for row in ROWS[file]:
        named = [one for one in found if one.code == row["code"]]
        if row["legal"] == "yes":
            assert named == []
            continue
        expected = (row["subject"], row["whose_move"].replace("-", ""))
        assert expected in [(one.subject, one.whose_move) for one in named]
        (one,) = [one for one in named if (one.subject, one.whose_move) == expected][:1]
        if row["since_packet"] != "-":
            assert one.packet == int(row["since_packet"])
        if row["min_seconds"] != "-":
            assert one.seconds >= float(row["min_seconds"]) - 0.011


TROUBLED = [
    (file, row["code"], row["whose_move"])
    for file, rows_of_file in sorted(ROWS.items())
    for row in rows_of_file
    if row["legal"] == "no" and row["code"] != "diag/proxy-header"
]


@pytest.mark.skipif(not TROUBLED, reason="AMQPSCOPE_CAPTURES is not set")
@pytest.mark.parametrize(
    ("file", "code", "whose"), TROUBLED, ids=[f"{file.name}-{code}" for file, code, _ in TROUBLED]
)
def test_triage_says_who_has_to_act(
    file: Path, code: str, whose: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = amqpscope(capsys, "triage", file).lines
    (line, *_) = [line for line in lines if f"[{code}]" in line]
    assert f"{'nobody' if whose == '-' else f'the {whose}'} has to act: " in line
    assert len(lines) <= 15

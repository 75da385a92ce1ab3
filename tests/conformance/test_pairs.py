"""captures/rules: the files are what the dialogues write, small, and read as the table says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from scenarios import write_captures
from scenarios.pairs import scenarios

from amqpscope.conformance.pairs import CLEAN, CUT, VIOLATING, CapturePairs, Verdict
from amqpscope.errors import CaptureError
from amqpscope.rules.catalogue import catalogue

FOLDER = Path(__file__).resolve().parents[2] / "captures" / "rules"
HEAD = "\t".join(write_captures.HEAD)


def on_disk(folder: Path) -> dict[str, bytes]:
    return {
        file.relative_to(folder).as_posix(): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.name != "README.md"
    }


def test_the_files_are_what_the_script_writes() -> None:
    written = write_captures.files()
    there = on_disk(FOLDER)
    assert sorted(there) == sorted(written)
    changed = [path for path, octets in written.items() if there[path] != octets]
    assert changed == [], "write them again: python tests/scenarios/write_captures.py"


def test_the_conversations_in_the_draft_are_what_the_script_writes() -> None:
    changed = "write them again: python tests/scenarios/write_captures.py"
    assert on_disk(write_captures.DRAFT2011) == write_captures.conversations(), changed


def test_every_run_writes_the_same() -> None:
    assert write_captures.files() == write_captures.files()


def test_writing_removes_what_no_dialogue_says_any_more(tmp_path: Path) -> None:
    old = tmp_path / "amqp10" / "L-GONE" / "clean.pcap"
    old.parent.mkdir(parents=True)
    old.write_bytes(b"")
    write_captures.write(tmp_path, write_captures.files())
    assert not old.parent.exists()
    assert on_disk(tmp_path) == on_disk(FOLDER)


def test_they_are_small() -> None:
    assert sum(len(octets) for octets in on_disk(FOLDER).values()) < 6_000_000


def test_the_table_says_what_the_dialogues_announce() -> None:
    pairs = CapturePairs()
    reported = 0
    dialogues: Counter[str] = Counter()
    for scenario in scenarios():
        if scenario.kind != "pair":
            continue
        reported += 1
        space = scenario.namespace
        first = f"{space}/{scenario.rules[0]}"
        dialogues[first] += 1
        pair = pairs.pairs[first + (f"-{dialogues[first]}" if dialogues[first] > 1 else "")]
        assert set(pair.rules) == {f"{space}/{rule}" for rule in scenario.rules}
        assert pair.promise == scenario.then
        d = scenario.dialogue()
        assert list(pair.violating) == sorted(
            Verdict(f"{space}/{fault.rule}", fault.peer, d.packet_number(fault.said), fault.certain)
            for fault in d.faults
        )
        assert scenario.cut is not None
        scenario.cut(d)
        assert pairs.octets(pair.folder, CUT) == d.pcap()
        expected = [] if scenario.then == "silent" else d.faults
        assert list(pair.cut) == sorted(
            Verdict(
                f"{space}/{fault.rule}",
                fault.peer,
                d.packet_number(fault.said),
                fault.certain and scenario.then == "same",
            )
            for fault in expected
        )
    assert reported == len(pairs.pairs) > 180


def test_each_rule_finds_its_own_captures() -> None:
    pairs = CapturePairs()
    for pair in pairs.pairs.values():
        for rule in pair.rules:
            assert rule in catalogue()
            assert pair in pairs.of(rule)
        assert pairs.octets(pair.folder, VIOLATING) != pairs.octets(pair.folder, CLEAN)
    assert pairs.of("amqp10/L-NO-SUCH") == []


def test_what_is_only_possible_of_the_cut_one(tmp_path: Path) -> None:
    rows = [
        "amqp10/L-CREDIT\tamqp10/L-CREDIT\tclient\t4\tcertain\tpossible\t2",
        "amqp10/L-CREDIT\tamqp10/L-CREDIT\tclient\t5\tpossible\tpossible\t3",
    ]
    (tmp_path / "expected.tsv").write_text("\n".join([HEAD, *rows]))
    (pair,) = CapturePairs(tmp_path).of("amqp10/L-CREDIT")
    assert [(verdict.packet, verdict.certain) for verdict in pair.violating] == [(4, True), (5, False)]
    assert [(verdict.packet, verdict.certain) for verdict in pair.cut] == [(2, False), (3, False)]


def test_a_capture_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "expected.tsv").write_text(HEAD + "\n")
    with pytest.raises(CaptureError, match=r"amqp10/L-CREDIT/clean\.pcap: No such file"):
        CapturePairs(tmp_path).octets("amqp10/L-CREDIT", CLEAN)


@pytest.mark.parametrize(
    "line",
    [
        "amqp10/L-CREDIT\tamqp10/L-CREDIT\tclient\tx\tcertain\tsilent\t-",
        "amqp10/L-CREDIT\tamqp10/L-CREDIT\tclient\t4\tperhaps\tsilent\t-",
        "amqp10/L-CREDIT\tamqp10/L-CREDIT\tclient\t4\tcertain\tnever\t-",
        "amqp10/L-CREDIT\tamqp10/L-CREDIT\tclient\t4\tcertain\tsame\t-",
        "amqp10/L-CREDIT\t../../etc\tclient\t4\tcertain\tsilent\t-",
        "amqp10/L-CREDIT",
    ],
)
def test_a_table_with_nonsense_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "expected.tsv").write_text(f"{HEAD}\n{line}\n")
    with pytest.raises(CaptureError, match="line 2 is not understood"):
        CapturePairs(tmp_path)


@pytest.mark.parametrize("content", [b"", b"rule\tpeer\n", b"\xff\xfe"])
def test_a_file_that_is_no_table_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "expected.tsv").write_bytes(content)
    with pytest.raises(CaptureError, match=r"expected\.tsv"):
        CapturePairs(tmp_path)

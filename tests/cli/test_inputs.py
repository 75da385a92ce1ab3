"""Files, directories and rotated sets on the command line: what is read, what is skipped, and what is one."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import struct
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.commands import DEMO, amqpscope
from support.scripted import SCRIPTED

ROOT = Path(__file__).resolve().parents[2]
CAPTURES = ROOT / "captures"

COMMANDS = (["read"], ["read", "--count"], ["summary"], ["check"])


def packets(pcap: bytes) -> list[bytes]:
    """The records of a little-endian pcap file, each with its header."""
    found = []
    at = 24
    while at < len(pcap):
        size = 16 + struct.unpack_from("<I", pcap, at + 8)[0]
        found.append(pcap[at : at + size])
        at += size
    return found


def split(pcap: bytes, parts: int) -> list[bytes]:
    """A rotated set: the same packets in so many files, each whole."""
    records = packets(pcap)
    size = -(-len(records) // parts)
    return [pcap[:24] + b"".join(records[at : at + size]) for at in range(0, len(records), size)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory `all` of captures, other files and directories, and an empty one."""
    clean = SCRIPTED["clean"]().pcap()
    top = tmp_path / "all"
    (top / "b").mkdir(parents=True)
    (top / "e").mkdir()
    (tmp_path / "nothing").mkdir()
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "readme").write_text("no capture")
    (top / "a.txt").write_bytes(clean)
    (top / "b" / "a").write_bytes(SCRIPTED["window-overrun"]().pcap())
    (top / "b" / "b.pcap").write_bytes(b"no capture at all")
    (top / "c.gz").write_bytes(gzip.compress(clean))
    (top / "d.gz").write_bytes(gzip.compress(b"no capture either"))
    (top / "f.pcap").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SKIPPED = "amqpscope: all: skipped 3 files that are not captures (all/b/b.pcap, all/f.pcap)\n"


def test_a_directory_stands_for_its_captures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By name, reported by what is in them."""
    result = amqpscope(capsys, "check", "all")
    heads = [line.partition(": ")[0] for line in result.lines if line.startswith("all/")]
    assert heads == ["all/a.txt", "all/b/a", "all/c.gz"]
    assert result.status == 1
    assert result.err == SKIPPED
    result = amqpscope(capsys, "read", "--format", "ndjson", "all")
    assert list(dict.fromkeys(json.loads(line)["capture"] for line in result.lines)) == heads
    assert (result.status, result.err) == (0, SKIPPED)
    result = amqpscope(capsys, "read", "all")
    assert [line for line in result.lines if line.startswith("══")] == [f"══ {name}" for name in heads]
    result = amqpscope(capsys, "summary", "all", "all/a.txt")
    assert [line.partition(": ")[0] for line in result.lines if line.startswith("all/")] == [
        *heads,
        "all/a.txt",
    ]


def test_a_directory_without_captures(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        for name, why in (
            ("nothing", "the directory is empty"),
            ("texts", "none of its 1 files is a capture"),
        ):
            result = amqpscope(capsys, *command, name)
            assert result.status == 2
            assert result.err == f"amqpscope: {name}: no captures in this directory ({why})\n"
            assert amqpscope(capsys, *command, name, "all/a.txt").status == 2
    reported = json.loads(amqpscope(capsys, "check", "--format", "json", "nothing", "all/a.txt").out)[
        "captures"
    ]
    assert [(one["capture"], one["status"]) for one in reported] == [
        ("nothing", "unreadable"),
        ("all/a.txt", "ok"),
    ]


def test_odd_things_in_a_directory(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A link that leads nowhere, one back up, and a pipe, which would never end: none is read."""
    os.mkfifo(folder / "all" / "pipe")
    (folder / "all" / "lost").symlink_to("nowhere")
    (folder / "all" / "up").symlink_to("..")
    (folder / "all" / "z").symlink_to("a.txt")
    result = amqpscope(capsys, "check", "all")
    heads = [line.partition(": ")[0] for line in result.lines if line.startswith("all/")]
    assert heads == ["all/a.txt", "all/b/a", "all/c.gz", "all/z"]
    assert result.err == SKIPPED.replace("3", "6")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_in_a_directory_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "all" / "a.txt").chmod(0)
    (folder / "all" / "e").chmod(0)
    result = amqpscope(capsys, "check", "all")
    (folder / "all" / "e").chmod(0o755)
    assert result.status == 2
    assert "amqpscope: all/a.txt: Permission denied\n" in result.err
    assert "amqpscope: all/e: Permission denied\n" in result.err


def test_a_directory_that_cannot_be_looked_into_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = os.scandir

    def refused(path: str) -> object:
        if path.endswith("b"):
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr(os, "scandir", refused)
    result = amqpscope(capsys, "check", "all")
    assert result.status == 2
    assert "amqpscope: all/b: Permission denied\n" in result.err
    assert [line.partition(": ")[0] for line in result.lines if line.startswith("all/")] == [
        "all/a.txt",
        "all/c.gz",
    ]


NAMES = ["demo.pcap", "rhea-transfer-before-attach.pcap", "rabbitmq-frames-after-close.pcap"]


def _without_next(text: str) -> str:
    """Without the next command: of a set there is none that names a single file."""
    return re.sub(r"^ *next:? +amqpscope why .*\n", "", text, flags=re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("parts", [2, 3, 7, 1000])
def test_a_rotated_set_is_the_file_it_was(
    name: str, parts: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever it is split into, and however it is named; all but the name of the capture."""
    octets = (CAPTURES / name).read_bytes()
    (tmp_path / "whole").write_bytes(octets)
    (tmp_path / "set").mkdir()
    pieces = split(octets, parts)
    for number, piece in enumerate(pieces):
        path = tmp_path / "set" / f"x{number}"
        path.write_bytes(gzip.compress(piece) if number % 2 else piece)
    together = f"{tmp_path}/set/x0 and {len(pieces) - 1} more"
    for command in (
        *COMMANDS,
        ["read", "--format", "ndjson", "-vv"],
        ["read", "-vv", "--connection", "0"],
        ["summary", "--format", "json"],
        ["check", "--format", "ndjson"],
    ):
        whole = amqpscope(capsys, *command, tmp_path / "whole")
        merged = amqpscope(capsys, *command, "--merge", tmp_path / "set")
        assert merged.status == whole.status
        assert merged.out.replace(together, f"{tmp_path}/whole") == _without_next(whole.out)
        assert merged.err.replace(together, f"{tmp_path}/whole") == whole.err
        files = sorted((tmp_path / "set").iterdir(), reverse=True)
        backwards = amqpscope(capsys, *command, "--merge", *files)
        name_backwards = f"{files[0]} and {len(files) - 1} more"
        assert backwards.out.replace(name_backwards, f"{tmp_path}/whole") == _without_next(whole.out)


def test_without_merge_each_is_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, piece in enumerate(split((CAPTURES / "demo.pcap").read_bytes(), 2)):
        (tmp_path / f"{number}").write_bytes(piece)
    frames = [json.loads(line) for line in amqpscope(capsys, "read", "--format", "ndjson", tmp_path).lines]
    assert {frame["capture"] for frame in frames} == {f"{tmp_path}/0", f"{tmp_path}/1"}
    assert any(frame["packet"] < 10 for frame in frames if frame["capture"].endswith("1"))


def test_merging_one_file_is_reading_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        once = amqpscope(capsys, *command, "all/b/a")
        assert amqpscope(capsys, *command, "--merge", "all/b/a") == once


def test_merging_with_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = CAPTURES / "demo.pcap"
    first, second = split(whole.read_bytes(), 2)
    (tmp_path / "x").write_bytes(first)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(second)))
    merged = amqpscope(capsys, "read", "--merge", tmp_path / "x", "-")
    # Frames of standard input are shown at once: names that come later, and packets that settle one, are not
    # known.
    read = amqpscope(capsys, "read", whole)
    shown, expected = (
        [re.sub(" +settled in .*", "", line) for line in one.lines if not line.startswith("──")]
        for one in (merged, read)
    )
    assert shown == expected


def test_what_cannot_be_merged_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is read then: a set with a hole would be judged as if it had none."""
    for command in COMMANDS:
        for bad, why in (
            ("missing", "missing: No such file or directory"),
            ("texts/readme", "texts/readme: not a capture file (neither pcap nor pcapng)"),
            ("nothing", "nothing: no captures in this directory (the directory is empty)"),
        ):
            result = amqpscope(capsys, *command, "--merge", "all/a.txt", bad)
            assert result.status == 2
            assert result.err == f"amqpscope: {why}\n"
            assert "all/a.txt: " not in result.out
    result = amqpscope(capsys, "check", "--format", "json", "--merge", "all/a.txt", "missing")
    (reported,) = json.loads(result.out)["captures"]
    assert (reported["capture"], reported["status"]) == ("all/a.txt and 1 more", "unreadable")
    assert reported["reason"] == "missing: No such file or directory"
    assert reported["size"] is None


def test_the_size_of_a_set_is_that_of_its_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "check", "--format", "json", "--merge", "all")
    (reported,) = json.loads(result.out)["captures"]
    sizes = [(folder / "all" / name).stat().st_size for name in ("a.txt", "b/a", "c.gz")]
    assert (reported["size"], reported["status"]) == (sum(sizes), "ok")


def test_names_of_frames_that_are_given_again_are_added(capsys: pytest.CaptureFixture[str]) -> None:
    """As with `--ignore` and `--select`."""
    both = amqpscope(capsys, "read", "--only", "open,close", DEMO).out
    assert "open" in both and "close" in both
    assert amqpscope(capsys, "read", "--only", "open", "--only", "close", DEMO).out == both

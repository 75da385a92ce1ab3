"""`amqpscope cut`: a part of a capture has the same findings, and no others that are certain."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from support.commands import amqpscope
from support.recorded import blocks_of, packets_of
from support.tshark import tshark_version

from amqpscope import __version__ as amqpscope_version

KEYS = f"CLIENT_RANDOM {'00' * 32} {'00' * 48}\n"

CAPTURES = Path(__file__).resolve().parents[2] / "captures"

ENHANCED_PACKET = 6
SECTION_HEADER = 0x0A0D0D0A
COMMENT = 1

Finding = tuple[str, str, str, int]


@pytest.fixture
def faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four connections, all of them with faults."""
    monkeypatch.chdir(tmp_path)
    Path("faults.pcap").write_bytes((CAPTURES / "pika-connection-errors.pcap").read_bytes())
    return Path("faults.pcap")


def found(capsys: pytest.CaptureFixture[str], path: object, *options: object) -> list[Finding]:
    """What `check` reports of a capture."""
    result = amqpscope(capsys, "check", "--no-config", "--format", "ndjson", *options, path)
    objects = [json.loads(line) for line in result.lines]
    return sorted((one["rule"], one["peer"], one["certainty"], one["packet"]) for one in objects)


def comments(path: str, kind: int = ENHANCED_PACKET) -> list[tuple[int, str]]:
    """The comments of each block of a kind, with the block's number."""
    blocks = [block for block in blocks_of(Path(path).read_bytes()) if block.kind == kind]
    return [
        (at, text.decode()) for at, block in enumerate(blocks, 1) for text in block.options.get(COMMENT, [])
    ]


def originals(before: bytes, after: bytes) -> list[int]:
    """For each packet of the cut, from 1 on, its number in the original."""
    place = {(one.time, one.data): one.number for one in packets_of(before)[0]}
    return [0, *(place[(one.time, one.data)] for one in packets_of(after)[0])]


def test_a_connection_stays_whole_with_its_findings_as_comments(
    faults: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = found(capsys, faults, "--connection", 3)
    assert expected
    result = amqpscope(capsys, "cut", faults, "-o", "one.pcapng", "--connection", 3)
    assert (result.status, result.out) == (0, "")
    number = originals(faults.read_bytes(), Path("one.pcapng").read_bytes())
    actual = found(capsys, "one.pcapng")
    assert sorted((rule, peer, how, number[packet]) for rule, peer, how, packet in actual) == expected
    written = comments("one.pcapng")
    assert sorted(packet for packet, _ in written) == sorted(packet for *_, packet in actual)
    assert all(f"(packet {number[packet]} of the original)" in text for packet, text in written)
    assert f"{len(number) - 1} packets of " in comments("one.pcapng", SECTION_HEADER)[0][1]


@pytest.mark.parametrize(
    "options",
    [["--findings", "--near", "3"], ["--from", "40", "--to", "60"], ["--around", "30", "--near", "4"]],
)
@pytest.mark.parametrize(
    "name", ["rabbitmq-credit", "pika-dead-letters", "servicebus-delete", "pyamqp-no-wait"]
)
def test_a_part_has_the_certain_findings_of_its_packets_and_no_others(
    name: str, options: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, part = CAPTURES / f"{name}.pcap", tmp_path / "part.pcapng"
    result = amqpscope(capsys, "cut", whole, "-o", part, *options)
    if "no packet matches" in result.err:
        pytest.skip("nothing is found in this capture")
    assert result.status == 0
    number = originals(whole.read_bytes(), part.read_bytes())
    before = {one for one in found(capsys, whole) if one[2] == "certain" and one[3] in number}
    after = {(*one[:3], number[one[3]]) for one in found(capsys, part) if one[2] == "certain"}
    assert after == before


def test_a_part_of_a_long_connection_is_small_and_can_still_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, part = CAPTURES / "rabbitmq-credit.pcap", tmp_path / "part.pcapng"
    result = amqpscope(capsys, "cut", whole, "-o", part, "--around", "120", "--near", "5")
    number = originals(whole.read_bytes(), part.read_bytes())
    assert {115, 120, 125} <= set(number) and 160 not in number and len(number) < 60
    assert f"left out {247 - len(number) + 1} packets" in result.err
    names = [json.loads(line)["name"] for line in amqpscope(capsys, "read", "--format", "ndjson", part).lines]
    assert {"open", "begin", "attach", "transfer"} <= set(names)


def test_names_choose_frames_and_the_opening_of_their_connection(
    faults: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = CAPTURES / "pika-dead-letters.pcap"
    assert amqpscope(capsys, "cut", whole, "-o", "a.pcapng", "--address", "urg*").status == 0
    read = amqpscope(capsys, "read", "--format", "ndjson", "a.pcapng").lines
    names = {json.loads(line)["name"] for line in read}
    assert {"connection.start-ok", "channel.open", "queue.declare"} <= names
    result = amqpscope(capsys, "cut", whole, "-o", "b.pcapng", "--address", "nowhere")
    assert (result.status, result.lines) == (2, [])
    assert "no packet matches the options" in result.err and not Path("b.pcapng").exists()


def test_interfaces_secrets_and_losses_of_a_pcapng_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, again = CAPTURES / "proton-anonymous.pcapng", tmp_path / "again.pcapng"
    amqpscope(capsys, "cut", whole, "-o", again)
    kinds = (1, 10)
    before, after = (
        [
            (one.kind, one.options.get(2), one.options.get(11))
            for one in blocks_of(path.read_bytes())
            if one.kind in kinds
        ]
        for path in (whole, again)
    )
    assert after == before and before[0][1]


def test_standard_input_is_read_like_a_file(
    faults: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    amqpscope(capsys, "cut", faults, "-o", "file.pcapng", "--connection", 3)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(faults.read_bytes())))
    assert amqpscope(capsys, "cut", "-", "-o", "pipe.pcapng", "--connection", 3).status == 0
    assert Path("pipe.pcapng").read_bytes() == Path("file.pcapng").read_bytes()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["-o", "faults.pcap"], "--output faults.pcap: this run already reads or writes this file"),
        (["-o", "-"], "--output '-': must name a file"),
        (["-o", "x", "--around", "3", "--connection", "1"], "--around: cannot be combined with --connection"),
        (["-o", "x", "--near", "5"], "--near: only with --around or --findings"),
        (["-o", "x", "--near", "100", "--connection", "1"], "--near: only with --around or --findings"),
        (["-o", "x", "--anonymise", "--key", ""], "--key '': must not be empty"),
        (["-o", "x", "--connection", "9999"], "faults.pcap: no connection 9999 (there are 0 to 3)"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_is_written(
    options: list[str], why: str, faults: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = faults.read_bytes()
    result = amqpscope(capsys, "cut", faults, *options)
    assert result.status == 2 and why in result.err
    assert not Path("x").exists() and faults.read_bytes() == before


def test_a_report_is_a_folder_that_names_nothing_of_this_machine(
    faults: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert amqpscope(capsys, "cut", faults, "--report", "report", "--connection", "3").status == 0
    folder = Path("report")
    assert {one.name for one in folder.iterdir()} == {
        "README.md",
        "cut.pcapng",
        "findings.md",
        "page.html",
        "versions.txt",
    }
    assert "amqp091/B-CTAG-UNIQUE" in (folder / "findings.md").read_text("utf-8")
    assert amqpscope_version in (folder / "versions.txt").read_text("utf-8")
    for one in folder.iterdir():
        assert str(Path.cwd()).encode() not in one.read_bytes()
    again = amqpscope(capsys, "cut", faults, "--report", "report")
    assert again.status == 2 and "report: the folder is not empty" in again.err


def test_coloring_rules_are_lines_that_wireshark_imports(
    faults: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    amqpscope(capsys, "cut", faults, "-o", "out.pcapng", "--coloring-rules", "colors")
    lines = Path("colors").read_text("utf-8").splitlines()
    assert len(lines) == 3
    for line in lines:
        assert re.fullmatch(r"@[^@]+@frame\.comment matches \"[^@]+\"@\[\d+,\d+,\d+\]\[\d+,\d+,\d+\]", line)
    for _, text in comments("out.pcapng"):
        assert re.match("(?:error|warning|possible|note) ", text)


@pytest.mark.skipif(tshark_version() is None, reason="no tshark")
def test_a_profile_colors_packets_and_shows_findings(
    faults: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(Path("config").absolute()))
    profile = Path("config/wireshark/profiles/amqpscope")
    result = amqpscope(capsys, "cut", faults, "-o", "out.pcapng", "--wireshark-profile", profile)
    assert result.status == 0, result.err
    said = {packet for packet, _ in comments("out.pcapng")}
    fields = ("frame.number", "frame.coloring_rule.name", "_ws.col.Finding")
    command = ["tshark", "-r", "out.pcapng", "-C", "amqpscope", "--color", "-T", "fields"]
    command += [word for field in fields for word in ("-e", field)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    rows = [line.split("\t") for line in shown.splitlines()]
    assert said and {int(row[0]) for row in rows if row[1].startswith("amqpscope: ")} == said
    assert {int(row[0]) for row in rows if row[2]} == said
    again = amqpscope(capsys, "cut", faults, "-o", "out.pcapng", "--wireshark-profile", profile)
    assert again.status == 2 and "the folder is not empty" in again.err


def test_a_refused_cut_leaves_no_folder_of_a_profile(
    faults: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(capsys, "cut", faults, "-o", "out.pcapng", "--wireshark-profile", "new", "--key", "k")
    assert result.status == 2 and "--key: only with --anonymise" in result.err
    assert not Path("new").exists()


def test_where_no_other_file_can_be_made_the_file_itself_is_written(
    faults: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = "o" * 240 + ".pcapng"  # no longer name can be given to what is written meanwhile
    Path(out).write_text("as it was")
    assert amqpscope(capsys, "cut", faults, "-o", out, "--connection", 3).status == 0
    assert found(capsys, out)
    result = amqpscope(capsys, "cut", faults, "-o", "none/out.pcapng", "--connection", 3)
    assert (result.status, result.err) == (2, "amqpscope: none/out.pcapng: No such file or directory\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_nothing_of_the_capture_behind(
    number: signal.Signals, faults: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(Path("temporary").absolute()))
    line = [sys.executable, "-m", "amqpscope", "cut", "-", "--report", "new/report", "--anonymise"]
    usual = partial(signal.signal, number, signal.SIG_DFL)
    with subprocess.Popen(line, stdin=subprocess.PIPE, preexec_fn=usual) as process:
        assert process.stdin is not None
        process.stdin.write(faults.read_bytes())
        process.stdin.flush()
        deadline = time.monotonic() + 60
        while not list(Path("temporary").glob("*/*")) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert os.listdir("temporary")
        process.send_signal(number)
        assert process.wait() == -number
    assert os.listdir("temporary") == []
    assert sorted(os.listdir()) == ["faults.pcap", "temporary"]


def test_a_signal_that_is_ignored_does_not_end_a_cut(faults: Path) -> None:
    """As under nohup."""
    line = [sys.executable, "-m", "amqpscope", "cut", "-", "-o", "out.pcapng"]
    ignored = partial(signal.signal, signal.SIGHUP, signal.SIG_IGN)
    with subprocess.Popen(line, stdin=subprocess.PIPE, preexec_fn=ignored) as process:
        assert process.stdin is not None
        deadline = time.monotonic() + 60
        while len(os.listdir()) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        process.communicate(faults.read_bytes())
    assert process.returncode == 0 and Path("out.pcapng").exists()


def test_a_cut_that_fails_leaves_no_folders(faults: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty").mkdir()
    options = ["--report", "a/b/report", "--wireshark-profile", "empty", "--coloring-rules", "colors"]
    assert amqpscope(capsys, "cut", "nothing.pcap", *options).status == 2
    assert sorted(os.listdir()) == ["empty", "faults.pcap"]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["-o", "x", "--coloring-rules", "faults.pcap"], "--coloring-rules faults.pcap: this run already"),
        (["-o", "x", "--coloring-rules", "./x"], "--coloring-rules ./x: this run already"),
        (["--report", "r", "--coloring-rules", "r/cut.pcapng"], "--coloring-rules r/cut.pcapng: this run"),
        (["--report", "r", "-o", "r/page.html"], "--output r/page.html: this run already"),
        (["-o", "p/preferences", "--wireshark-profile", "p"], "--output p/preferences: this run already"),
        (["-o", "x", "--coloring-rules", "-"], "--coloring-rules '-': must name a file"),
        (["-o", "x", "--coloring-rules", ""], "--coloring-rules '': must name a file"),
        (["-o", "x", "--coloring-rules", "none/colors"], "none/colors: No such file or directory"),
        (["-o", "x", "--coloring-rules", "."], ".: Is a directory"),
        (["-o", "keys.txt", "--tls-keylog", "keys.txt"], "--output keys.txt: this run already"),
        (["-o", "x", "--coloring-rules", "keys.txt", "--tls-key", "keys.txt"], "keys.txt: this run already"),
    ],
)
def test_no_file_is_written_over_and_nothing_is_written_before_all_can_be(
    options: list[str], why: str, faults: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("keys.txt").write_text(KEYS)
    before = faults.read_bytes()
    result = amqpscope(capsys, "cut", faults, *options)
    assert result.status == 2 and why in result.err
    assert sorted(os.listdir()) == ["faults.pcap", "keys.txt"]
    assert faults.read_bytes() == before and Path("keys.txt").read_text() == KEYS

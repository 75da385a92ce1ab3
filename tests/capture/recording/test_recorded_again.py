"""Captures recorded anew say the same as before: every frame and finding, with comments beside them."""

import json
from pathlib import Path
from typing import Any

import pytest
from support.capture_files import Recorder
from support.commands import amqpscope
from support.recorded import blocks_of

from amqpscope import check
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.reader import for_magic
from amqpscope.capture.recording.output import Rotation
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder

CAPTURES = Path(__file__).parents[3] / "captures"
NAMES = [
    "demo.pcap",
    "pika-late-ack.pcap",
    "proton-anonymous.pcapng",
    "rhea-proton-ipv6.pcap",
    "rhea-transfer-before-attach.pcap",
]


def record(source: Path, recorder: PcapngRecorder) -> None:
    """Its packets, as if they had just been captured, and what `check` finds as comments."""
    findings: dict[int, list[str]] = {}
    for finding in check(str(source)):
        findings.setdefault(finding.packet, []).append(finding.rule)
    decoder = PacketDecoder(Recorder())
    decoder.recorder = recorder
    content = source.read_bytes()
    reader = for_magic(content[:4], decoder.sink, decoder)
    assert reader
    reported = 0
    for at in range(0, len(content), 1000):
        reader.feed(content[at : at + 1000])
        recorder.flush()
        for number in range(reported + 1, reader.number + 1):
            for text in findings.get(number, ()):
                recorder.comment(number, text)
        reported = reader.number
    reader.finish()
    recorder.finish(0, [reader.number], [0])


def without_names(value: Any) -> Any:
    """JSON without the names of captures."""
    if isinstance(value, dict):
        return {key: without_names(one) for key, one in value.items() if key != "capture"}
    return [without_names(one) for one in value] if isinstance(value, list) else value


def reported(capsys: pytest.CaptureFixture[str], command: str, *paths: object) -> list[Any]:
    run = amqpscope(capsys, command, "--format", "ndjson", *paths)
    return [without_names(json.loads(line)) for line in run.out.splitlines()]


@pytest.mark.parametrize("name", NAMES)
def test_one_file_says_the_same(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "recorded.pcapng"
    record(CAPTURES / name, PcapngRecorder(str(path), "a test"))
    for command in ("read", "check"):
        before = reported(capsys, command, CAPTURES / name)
        assert reported(capsys, command, path) == before
        assert before or command == "check"
    packets = [block for block in blocks_of(path.read_bytes()) if block.kind == 6]
    beside = [(number, text) for number, block in enumerate(packets, 1) for text in block.comments]
    assert sorted(beside) == sorted((one.packet, one.rule) for one in check(str(path)))


def test_a_set_of_files_merged_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = CAPTURES / "rhea-transfer-before-attach.pcap"
    recorder = PcapngRecorder(str(tmp_path / "set.pcapng"), "a test", rotation=Rotation(packets=7))
    record(source, recorder)
    assert len(recorder.files) > 3
    for command in ("read", "check"):
        before = reported(capsys, command, source)
        assert before
        assert reported(capsys, command, "--merge", *recorder.files) == before

"""What is kept in memory while a page is made does not grow with the capture."""

from __future__ import annotations

import gc
from collections import Counter
from pathlib import Path

import pytest
from support.commands import amqpscope
from support.dialogue import Dialogue
from support.pictures import picture_of

from amqpscope.input.capture import Capture

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"


def alive() -> Counter[str]:
    """How many objects of each class there are."""
    return Counter(type(one).__name__ for one in gc.get_objects())


def test_the_second_reading_begins_without_the_objects_of_the_first_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Counter[str]] = []
    blocks = Capture.blocks

    def counted(self: Capture) -> object:
        seen.append(alive())
        return blocks(self)

    monkeypatch.setattr(Capture, "blocks", counted)
    gc.collect()
    gc.disable()
    try:
        path = CAPTURES / "rhea-transfer-before-attach.pcap"
        assert amqpscope(capsys, "draw", path, "-o", tmp_path / "page.html").status == 0
    finally:
        gc.enable()
    first, second = seen
    for name in ("Conversation10", "ConnectionOverview", "ConnectionAnalysis", "OpenDelivery", "FrameRecord"):
        assert second[name] == first[name], name


def kept(frames: int, path: Path) -> int:
    """How many objects a picture of so many transfers and dispositions keeps."""
    d = Dialogue()
    d.linked(credit=frames)
    for number in range(frames // 2):
        d.client.transfer()
        d.server.disposition(number)
    path.write_bytes(d.pcap())
    gc.collect()
    before = alive().total()
    picture = picture_of(path)
    gc.collect()
    assert sum(ladder.folded for _, ladder in picture.ladders) > frames - 60
    return alive().total() - before


def test_a_picture_of_more_frames_keeps_no_more_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Charts have as many points as their width allows: here few, so that both captures have more.
    monkeypatch.setattr("amqpscope.draw.flow.MAX_CHART_POINTS", 40)
    path = tmp_path / "many.pcap"
    kept(100, path)
    assert kept(800, path) < kept(200, path) + 150

"""Two ladders side by side: aligned, and the frames that `diff` finds different marked."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.browser import Browser
from support.commands import amqpscope
from support.dialogue import Dialogue
from support.pictures import planted10

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
PAIR = CAPTURES / "rules" / "amqp10" / "C-OPEN-ONCE"
SVG = "{http://www.w3.org/2000/svg}"


def groups(path: Path) -> list[ElementTree.Element]:
    """The ladders of A and B."""
    return list(ElementTree.parse(path).getroot().iter(f"{SVG}g"))


def places(ladder: ElementTree.Element) -> dict[str, str]:
    """The height of each frame, by the first words of its text."""
    return {"".join(one.itertext()): one.get("y") or "" for one in ladder.iter(f"{SVG}text")}


def test_a_frame_that_only_one_run_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "compared.svg"
    result = amqpscope(capsys, "draw", "--compare", PAIR / "violating.pcap", PAIR / "clean.pcap", "-o", out)
    assert result.status == 0 and result.err.endswith("connection 0 of A and 0 of B, 1 difference\n")
    a, b = groups(out)
    (band,) = [one for one in a.iter(f"{SVG}rect") if "band" in (one.get("class") or "")]
    assert band.get("class") == "band only" and "".join(band.itertext()) == "is only in A"
    assert "−" in places(a) and not set(places(b)) & {"−", "+", "≠"}
    # What follows in A is moved down in B, so that both stand at one height.
    begin = "begin incoming-window=2048 outgoing-window=2048@0"
    assert places(a)[begin] == places(b)[begin]
    assert places(a)["A: violating.pcap, connection 0, AMQP 1.0"]


def test_a_frame_that_says_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, size in (("a", 5000), ("b", 6000)):
        d = Dialogue()
        d.headers()
        d.client.open(max_frame_size=size)
        d.server.open()
        (tmp_path / f"{name}.pcap").write_bytes(d.pcap())
    out = tmp_path / "compared.html"
    paths = (tmp_path / "a.pcap", tmp_path / "b.pcap")
    assert amqpscope(capsys, "draw", "--compare", *paths, "-o", out).status == 0
    text = out.read_text("utf-8")
    assert "the client&#x27;s open: max-frame-size 5000 in A, 6000 in B</a>" in text
    assert text.count('class="band changed"') == 2 and text.count('id="d0"') == 1


@pytest.mark.chromium
def test_a_page_of_hostile_captures(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = (tmp_path / "<b>&.pcap", tmp_path / "b.pcap")
    out = tmp_path / "compared.html"
    for path, text in zip(paths, ("</svg><script>alert(1)</script>", '"><img src=x onerror=x>'), strict=True):
        path.write_bytes(planted10([text]))
    assert amqpscope(capsys, "draw", "--compare", *paths, "-o", out).status == 0
    browser.problems, browser.requests = [], []
    browser.open(out)
    assert browser.value("document.querySelectorAll('script, img, b').length") == 0
    assert browser.value("document.querySelectorAll('svg line').length") > 20
    browser.value("document.querySelector('li a').click()")
    assert browser.value("document.querySelectorAll(':target.band').length") == 1
    assert browser.problems == [] and browser.requests == [out.as_uri()]
    assert re.search(r"default-src 'none'; style-src 'sha256-[^']+'", out.read_text("utf-8"))


def test_what_cannot_be_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, out = PAIR / "clean.pcap", tmp_path / "compared.svg"
    for words, reason in (
        ((one, "-o", out), "needs two captures, not 1"),
        ((one, one, "-o", tmp_path / "compared.md"), "must end in .svg or .html"),
        ((one, one, "-o", out, "--link", "q"), "cannot be combined"),
    ):
        result = amqpscope(capsys, "draw", "--compare", *words)
        assert result.status == 2 and reason in result.err
    result = amqpscope(capsys, "draw", "--compare", one, CAPTURES / "pika-types.pcap", "-o", out)
    assert result.status == 3 and "no connection" in result.err

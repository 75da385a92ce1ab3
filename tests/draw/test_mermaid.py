"""Diagrams in Markdown, read and drawn by Mermaid itself: all frames are in them, whatever peers write."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.browser import Browser
from support.commands import amqpscope
from support.npm import MERMAID, library
from support.pictures import planted091, planted10

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
HOSTILE = (
    "end", "note over C: x", "C->>S: y", "%%{init: {}}%%", "#quot;;", "loop a\n", "```", "<b>", "\u202e'\"`\\"
)  # fmt: skip
DIAGRAMS = (
    "rhea-transfer-before-attach.pcap",
    "amqplib-channel-errors.pcap",
    "situations/credit-starved.pcap",
    "pika-heartbeat-missed.pcap",
    "rules/diag/link-stolen/troubled.pcap",
    "rules/amqp091/B-ACK-DUP/violating.pcap",
    "hostile 1.0",
    "hostile 0-9-1",
)


@pytest.fixture(scope="module")
def mermaid(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """The browser, with Mermaid in an empty page."""
    text, page = library(MERMAID), tmp_path_factory.mktemp("mermaid") / "empty.html"
    page.write_text("<!DOCTYPE html><title>empty</title>", "utf-8")
    browser.open(page)
    browser.value(f"{text}; 0")
    return browser


@pytest.mark.chromium
@pytest.mark.parametrize("name", DIAGRAMS)
def test_mermaid_draws_every_frame(
    name: str, mermaid: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = CAPTURES / name, tmp_path / "ladder.md"
    if name.startswith("hostile"):
        path = tmp_path / "hostile.pcap"
        path.write_bytes((planted10 if name.endswith("1.0") else planted091)(HOSTILE))
    assert amqpscope(capsys, "draw", path, "-o", out).status == 0
    _, diagram, _ = re.split(r"```(?:mermaid)?\n", out.read_text("utf-8"))
    written = json.dumps(diagram)
    assert mermaid.value(f"mermaid.parse({written})")["diagramType"] == "sequence"
    drawn = mermaid.value(
        f"mermaid.render('drawn', {written}).then((one) => {{"
        " const page = new DOMParser().parseFromString(one.svg, 'text/html');"
        " const count = (what) => page.querySelectorAll(what).length;"
        " return [count('.messageText'), count('.note'), count('script, img, b')]; })"
    )
    lines = diagram.splitlines()
    arrows = [line for line in lines if re.match(r"    [CS]-", line)]
    notes = [line for line in lines if line.startswith("    Note over C,S: ")]
    assert drawn == [len(arrows), len(notes), 0] and len(lines) == 3 + len(arrows) + len(notes)


@pytest.mark.chromium
def test_mermaid_refuses_what_is_no_diagram(mermaid: Browser) -> None:
    with pytest.raises(AssertionError, match="Parse error on line 2"):
        mermaid.value("mermaid.parse('sequenceDiagram\\n C-->')")

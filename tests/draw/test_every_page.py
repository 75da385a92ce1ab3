"""Pages of different captures, in a browser: every view is drawn, keys and clicks work, nothing is loaded."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import amqp10_encode as amqp
from support.browser import Browser
from support.commands import amqpscope
from support.dialogue import Dialogue
from support.pictures import opened, page_data, planted091
from support.sampling import examples

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
MANY = 50_000


def recorded(name: str) -> Callable[[Path], Path]:
    """A capture of real peers."""
    return lambda folder: CAPTURES / name


def many_frames(folder: Path) -> Path:
    """Very many frames on one connection, a hundred in each segment; all of them only in CI."""
    d = Dialogue()
    d.linked(credit=MANY)
    number = 0xABCDEF01
    frame = amqp.frame(
        amqp.transfer(handle=0, delivery_id=number, delivery_tag=b"t", settled=True), b"\0Sw\x40"
    )
    before, _, after = frame.partition(number.to_bytes(4, "big"))
    for first in range(0, MANY if examples(3) == 3 else MANY // 10, 100):
        numbers = (struct.pack(">I", first + step) for step in range(100))
        d.client.say(b"".join(before + number + after for number in numbers))
    path = folder / "many.pcap"
    path.write_bytes(d.pcap())
    return path


def recorded_live(folder: Path) -> Path:
    """What `sniff` records of packets that come through a pipe."""
    path = folder / "live.pcapng"
    command = [sys.executable, "-m", "amqpscope", "sniff", "-i", "-", "-w", str(path)]
    octets = (CAPTURES / "pika-two-threads.pcap").read_bytes()
    # The status is 1, because it finds what is wrong.
    assert subprocess.run(command, input=octets, stdout=subprocess.DEVNULL).returncode == 1
    return path


def with_gaps(folder: Path) -> Path:
    """A capture in which every twelfth packet is missing."""
    octets = (CAPTURES / "rhea-split-message.pcap").read_bytes()
    kept, at, number = [octets[:24]], 24, 0
    while at < len(octets):
        size = 16 + struct.unpack_from("<I", octets, at + 8)[0]
        number += 1
        if number % 12:
            kept.append(octets[at : at + size])
        at += size
    path = folder / "gaps.pcap"
    path.write_bytes(b"".join(kept))
    return path


def hostile(folder: Path) -> Path:
    """A capture of AMQP 0-9-1 full of markup."""
    path = folder / "hostile.pcap"
    path.write_bytes(
        planted091(["</script><img src=x onerror=alert(1)>", "'\"><svg onload=alert(2)>", "\u202e]]>"])
    )
    return path


PAGES = {
    "amqp10": recorded("rhea-transfer-before-attach.pcap"),
    "amqp091": recorded("amqplib-channel-errors.pcap"),
    "several connections": recorded("shovel-proton.pcap"),
    "incident": recorded("situations/window-closed.pcap"),
    "many frames": many_frames,
    "live": recorded_live,
    "gaps": with_gaps,
    "hostile": hostile,
}


@pytest.mark.chromium
@pytest.mark.parametrize("name", PAGES)
def test_every_view_of_a_page(
    name: str, browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    path = PAGES[name](tmp_path)
    assert amqpscope(capsys, "draw", path, "-o", page).status == 0
    assert page.stat().st_size < 1_000_000 + 1.5 * path.stat().st_size
    first = page_data(page)["connections"][0]
    opened(browser, page)
    rows = "document.querySelectorAll('.ladder .arrow').length"
    drawn = browser.value(rows)
    assert drawn > 0 and drawn == browser.value("document.querySelectorAll('.arrows line').length")
    # Keys and clicks choose a row, a search keeps those that match.
    browser.click(".ladder .arrow .packet")
    browser.press("ArrowDown")
    assert browser.value("document.querySelector('.ladder [aria-selected=\"true\"]').id") != "row-0"
    browser.press("/")
    browser.press("§")
    assert browser.value(rows) == 0
    browser.press("Escape")
    assert browser.value(rows) == drawn
    browser.click("#tab-states")
    assert browser.value("document.querySelectorAll('.path .states').length") == len(first["paths"]) > 0
    browser.click("#tab-flow")
    assert browser.value("document.querySelectorAll('.chart .line').length") == len(first["flow"]["charts"])
    browser.click("#tab-map")
    cards = browser.value("document.querySelectorAll('.map .column:nth-child(2) .card').length")
    assert cards == len(page_data(page)["connections"])
    assert browser.value("document.querySelectorAll('.wires path').length") >= cards
    assert browser.value("document.querySelectorAll('.place').length") > 0
    assert browser.problems == [] and browser.requests == [page.as_uri()]

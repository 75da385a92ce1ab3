"""Pages can be used with a screen reader and a keyboard, as axe-core sees it, in light and in dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.accessibility import faults, in_colours
from support.browser import Browser
from support.commands import amqpscope
from support.npm import AXE, library
from support.pictures import opened, planted10

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
PAIR = CAPTURES / "rules" / "amqp10" / "C-OPEN-ONCE"
VIEWS = ("ladder", "states", "flow", "map")

# Of text below a drawing axe-core cannot tell the background: without arrows and wires it can.
BARE = "document.querySelectorAll('.arrows, .wires').forEach((one) => one.remove())"


@pytest.mark.chromium
@pytest.mark.parametrize("name", ["finding", "diagnosis", "hostile"])
def test_no_view_of_a_page_has_a_serious_fault(
    name: str, browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    axe = library(AXE)
    path, page = tmp_path / "hostile.pcap", tmp_path / "page.html"
    if name == "hostile":
        path.write_bytes(planted10(["</script><img src=x onerror=alert(1)>", "\u202e"]))
    else:
        known = {"finding": "rhea-transfer-before-attach.pcap", "diagnosis": "situations/window-closed.pcap"}
        path = CAPTURES / known[name]
    assert amqpscope(capsys, "draw", path, "-o", page).status == 0
    opened(browser, page)
    browser.value(f"{axe}; 0")
    found = []
    for view in VIEWS:
        browser.click(f"#tab-{view}")
        if view == "ladder":
            # A chosen row has its details, and shades the rows before it.
            browser.value("[...document.querySelectorAll('.ladder .arrow')].at(-1).click()")
            assert browser.value("document.querySelectorAll('.ladder .read, .ladder .known').length") > 0
        browser.value(BARE)
        within = "html" if view == "ladder" else "#picture"
        in_colours(browser, "light")
        found += [f"{view}, light: {one}" for one in faults(browser, within)]
        in_colours(browser, "dark")
        found += [f"{view}, dark: {one}" for one in faults(browser, within, "color-contrast")]
    in_colours(browser, "")
    assert found == []


@pytest.mark.chromium
def test_two_ladders_side_by_side_have_no_serious_fault(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    axe, out = library(AXE), tmp_path / "compared.html"
    paths = (PAIR / "violating.pcap", PAIR / "clean.pcap")
    assert amqpscope(capsys, "draw", "--compare", *paths, "-o", out).status == 0
    browser.open(out)
    browser.value(f"{axe}; 0")
    assert faults(browser) == []


@pytest.mark.chromium
def test_a_fault_is_found(browser: Browser, tmp_path: Path) -> None:
    """What these tests look with sees pale text and a field without a label."""
    axe, page = library(AXE), tmp_path / "page.html"
    page.write_text("<title>a</title><p style='color: #ddd'>pale</p><select><option>a</select>", "utf-8")
    browser.open(page)
    browser.value(f"{axe}; 0")
    assert sorted(one.partition(":")[0] for one in faults(browser)) == [
        "color-contrast",
        "html-has-lang",
        "select-name",
    ]

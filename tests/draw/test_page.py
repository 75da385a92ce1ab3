"""The page, in a browser: it draws, obeys keys and clicks, asks for nothing, and hostile text stays text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support import amqp10_encode as amqp
from support.browser import Browser
from support.commands import amqpscope
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.pictures import opened, page_data, planted10

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
EARLY = CAPTURES / "rhea-transfer-before-attach.pcap"
HOSTILE = (
    "</script><script>document.title='bad'</script>\"'&lt;<img src=x onerror=alert(1)>"
    "\u202e\x00\x1b[31m\u2028-->"
)


def drawn(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], *options: str) -> Path:
    """The page of a capture."""
    out = tmp_path / f"{path.stem}.html"
    result = amqpscope(capsys, "draw", path, "-o", out, *options)
    assert result.status == 0, result.err
    return out


def hostile(tmp_path: Path) -> Path:
    """A capture with a hostile text wherever there is room for one."""
    path = tmp_path / "hostile <b>&.pcap"
    path.write_bytes(planted10([HOSTILE]))
    return path


@pytest.mark.chromium
def test_the_page_draws_and_asks_for_nothing(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = drawn(EARLY, tmp_path, capsys)
    opened(browser, page)
    assert browser.value("document.title") == "rhea-transfer-before-attach.pcap"
    assert browser.value("document.querySelectorAll('.ladder .arrow').length") == 16
    assert browser.value("document.querySelectorAll('.arrows line').length") == 16
    assert browser.value("document.querySelectorAll('.arrows line.error').length") == 3
    overview = browser.value("document.getElementById('overview').textContent")
    assert "the server breaks a rule" in overview and "To mend it:" in overview
    assert browser.problems == []
    assert browser.requests == [page.as_uri()]


def shades(browser: Browser) -> dict[str, int]:
    """How many rows have each shade: read by the sender of the chosen frame, arrived, in flight."""
    kinds = ("read", "known", "unknown")
    return {kind: browser.value(f"document.querySelectorAll('.ladder .{kind}').length") for kind in kinds}


@pytest.mark.chromium
def test_keys_clicks_and_filters(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(browser, drawn(EARLY, tmp_path, capsys))
    chosen = "(document.querySelector('.ladder [aria-selected=\"true\"] .packet') || {}).textContent"
    browser.click("#overview button")
    assert browser.value(chosen).startswith("17")
    details = browser.value("document.getElementById('details').textContent")
    assert details.startswith("transfer, packet 17") and "delivery-tag" in details
    browser.press("ArrowDown")
    assert browser.value(chosen).startswith("19")
    # Nothing proves that the client had read a frame. The server's frames prove that it had read the begin.
    assert shades(browser) == {"read": 0, "known": 7, "unknown": 0}
    browser.press("n")
    assert browser.value(chosen).startswith("21")
    assert shades(browser) == {"read": 5, "known": 3, "unknown": 0}
    browser.press("Home")
    assert browser.value(chosen) == "4"
    browser.press("Enter")
    assert browser.value("document.activeElement.id") == "details"
    browser.press("Escape")
    assert browser.value("document.activeElement.id") == "row-0"
    browser.press("/")
    assert browser.value("document.activeElement.id") == "search"
    for key in "sasl-":
        browser.press(key)
    assert browser.value("document.querySelectorAll('.ladder .arrow').length") == 3
    browser.press("Escape")
    assert browser.value("document.querySelectorAll('.ladder .arrow').length") == 16
    browser.click("#larger")
    assert browser.value("document.getElementById('row-0').offsetHeight") == 38
    assert browser.problems == []


@pytest.mark.chromium
def test_hostile_text_is_inert(browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = drawn(hostile(tmp_path), tmp_path, capsys)
    opened(browser, page)
    for at in range(browser.value("document.querySelectorAll('.ladder [role=option]').length")):
        browser.value(f"document.getElementById('row-{at}').click()")
    assert browser.value("document.querySelectorAll('script').length") == 2
    assert browser.value("document.querySelectorAll('img, iframe, object, embed, link, base').length") == 0
    every = "[...document.querySelectorAll('*')]"
    assert (
        browser.value(f"{every}.flatMap((one) => one.getAttributeNames()).filter((n) => n.startsWith('on'))")
        == []
    )
    assert browser.value("document.title") == "hostile <b>&.pcap"
    assert "onerror=alert(1)" in browser.value("document.body.innerText")
    assert not set("\u202e\x00\x1b\u2028") & set(browser.value("document.body.innerText"))
    assert browser.problems == [] and browser.requests == [page.as_uri()]


@pytest.mark.chromium
def test_the_policy_stops_a_script_that_is_planted(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Even if a text became markup, nothing of it would run or be loaded."""
    page = drawn(EARLY, tmp_path, capsys)
    planted = (
        "<script>window.planted = 1</script><img src='http://127.0.0.1:9/x' onerror='window.planted = 2'>"
    )
    page.write_text(page.read_text("utf-8").replace("<header>", f"{planted}<header>"), "utf-8")
    opened(browser, page)
    assert browser.value("window.planted === undefined")
    assert any("Content Security Policy" in problem for problem in browser.problems)


def test_the_data_cannot_end_its_block(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = drawn(hostile(tmp_path), tmp_path, capsys)
    text = page.read_text("utf-8")
    block = text.partition('id="data">')[2].partition("</script>")[0]
    assert not set("<>&\u2028\u2029") & set(block)
    assert "onerror=alert(1)" in json.dumps(page_data(page))
    assert text.count("<script") == 2
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy is not None and "unsafe" not in policy[1] and policy[1].startswith("default-src 'none'; ")


def test_a_large_capture_is_summarised(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    d = Dialogue()
    d.linked(credit=1000)
    for number in range(400):
        d.client.transfer()
        d.server.disposition(number)
    path = tmp_path / "large.pcap"
    path.write_bytes(d.pcap())
    page = drawn(path, tmp_path, capsys)
    data = page_data(page)
    assert "frames that repeat others are folded and only counted" in data["contents"]
    assert len(data["connections"][0]["rows"]) < 60
    assert page.stat().st_size < 1_000_000 + 1.5 * path.stat().st_size


def test_a_page_with_many_connections_names_those_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from support.remembered_conversation import RememberedConversation
    from support.tcp_writer import Capture

    monkeypatch.setattr("amqpscope.draw.survey.MAX_DRAWN_CONNECTIONS", 3)
    capture = Capture()
    for number in range(5):
        talk = RememberedConversation(capture, f"10.0.0.{number + 1}:51034")
        talk.tcp.handshake()
        talk.client(amqp.AMQP_HEADER)
        for _ in range(1 + (number == 4)):
            talk.client(amqp.frame(amqp.open_(container_id=f"client-{number}")))
    path = tmp_path / "many.pcap"
    path.write_bytes(capture.pcap(nanoseconds=True))
    data = page_data(drawn(path, tmp_path, capsys))
    assert [one["stream"] for one in data["connections"]] == [4, 0, 1]
    assert data["contents"].startswith("This page shows 3 connections, the worst ones; 2 more are not in it")


@pytest.mark.chromium
def test_the_states_are_drawn(browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = CAPTURES / "rules" / "amqp10" / "C-OPEN-ONCE" / "violating.pcap"
    page = drawn(path, tmp_path, capsys)
    opened(browser, page)
    browser.click("#tab-states")
    shown = browser.value("[...document.querySelectorAll('.path summary b')].map((one) => one.textContent)")
    assert shown[:2] == ["connection: client", "connection: server"]
    assert browser.value("document.querySelectorAll('.path')[0].querySelectorAll('rect').length") == 15
    assert browser.value("document.querySelectorAll('.edge.illegal').length") == 1
    assert browser.value("document.querySelector('text.label.illegal').textContent") == "send OPEN"
    browser.click(".path .steps li.error button")
    assert browser.value("document.getElementById('details').textContent").startswith("open, packet 8")
    assert browser.problems == [] and browser.requests == [page.as_uri()]


@pytest.mark.chromium
def test_the_map_is_drawn(browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = drawn(CAPTURES / "amqplib-routing.pcap", tmp_path, capsys)
    opened(browser, page)
    browser.click("#tab-map")
    shown = browser.value("[...document.querySelectorAll('.place')].map((one) => one.textContent)")
    assert "queue lost: 1 out" in shown and "exchange unrouted: to queue lost" in shown
    wires = browser.value(
        "[...document.querySelectorAll('.wires path:not(.head)')].map((one) => one.getAttribute('class'))"
    )
    assert wires.count("client") == 1 and wires.count("server") == 2 and wires.count("bound") == 4
    browser.click(".map .line button")
    assert browser.value("document.getElementById('details').textContent").startswith(
        "basic.consume-ok, packet"
    )
    assert browser.problems == [] and browser.requests == [page.as_uri()]


@pytest.mark.chromium
def test_the_flow_is_drawn(browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = drawn(CAPTURES / "situations" / "credit-starved.pcap", tmp_path, capsys)
    opened(browser, page)
    browser.click("#tab-flow")
    titles = browser.value("[...document.querySelectorAll('figcaption b')].map((one) => one.textContent)")
    assert any(title.startswith("credit of link jobs") for title in titles) and len(titles) == 4
    # The starved link is shaded, the windows are not.
    assert browser.value("document.querySelectorAll('.band.client').length") == 2
    assert browser.value("document.querySelectorAll('.latencies tr').length") == 2
    browser.press("ArrowLeft")
    assert browser.problems == [] and browser.requests == [page.as_uri()]


@pytest.mark.chromium
def test_the_list_tells_connections_of_the_same_names_apart_and_findings_lead_there(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(browser, drawn(CAPTURES / "rules" / "diag" / "link-stolen" / "troubled.pcap", tmp_path, capsys))
    entries = browser.value("[...document.querySelectorAll('#connection option')].map((o) => o.textContent)")
    assert entries == ["0: 1 finding, shop port 51034 → server", "1: shop port 51035 → server"]
    details = "document.getElementById('details').innerText"
    assert "(connection 1), which attached the link" in browser.value(details)
    browser.click("#details li p button")
    assert browser.value("document.getElementById('connection').value") == "1"
    assert browser.problems == []


@pytest.mark.chromium
def test_the_list_names_the_count_of_findings_first(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(browser, drawn(EARLY, tmp_path, capsys))
    entry = browser.value("document.querySelector('#connection option').textContent")
    assert entry.startswith("0: 3 findings, shop (proton-shop) → ")


@pytest.mark.chromium
def test_findings_in_folds_are_counted(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = Dialogue()
    d.linked(credit=1)
    for _ in range(31):
        d.client.transfer()
    path = tmp_path / "overrun.pcap"
    path.write_bytes(d.pcap())
    opened(browser, drawn(path, tmp_path, capsys))
    assert browser.value("document.getElementById('overview').textContent").count("(29 more like this)") == 1
    entry = browser.value("document.querySelector('#connection option').textContent")
    assert entry.startswith("0: 30 findings, ")
    assert "and 11 more findings in" in browser.value("document.getElementById('details').textContent")
    browser.click("#tab-map")
    assert "× 30 findings" in browser.value(
        "document.querySelector('.map .column:nth-child(2) .card').textContent"
    )


@pytest.mark.chromium
def test_a_row_has_a_second_line_for_its_last_values(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = Dialogue()
    d.opened(client={"hostname": "h" * 100})
    path = tmp_path / "wide.pcap"
    path.write_bytes(d.pcap())
    opened(browser, drawn(path, tmp_path, capsys))
    labels = "[...document.querySelectorAll('.ladder .label')]"
    assert browser.value(f"{labels}.filter((one) => one.scrollWidth > one.offsetWidth).length") == 0
    assert 30 < browser.value(f"Math.max(...{labels}.map((one) => one.offsetHeight))") < 50


@pytest.mark.chromium
def test_the_map_colours_a_connection_as_the_list_of_its_findings(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Red only for what is certain; a diagnosis alone shows, too."""
    d = Dialogue()
    d.opened()
    d.client.fin()
    doubtful = tmp_path / "doubtful.pcap"
    doubtful.write_bytes(d.pcap())
    starved = CAPTURES / "situations" / "credit-starved.pcap"
    for path, kind in ((EARLY, "error"), (doubtful, "possible"), (starved, "possible")):
        opened(browser, drawn(path, tmp_path, capsys))
        browser.click("#tab-map")
        assert browser.value(f"document.querySelectorAll('.wires path.{kind}').length") > 0
        assert browser.value(f"document.querySelector('.map .card > span.{kind}') !== null")
        assert browser.value("document.querySelector('.map .card > span.error') !== null") == (
            kind == "error"
        )
        assert browser.problems == []


@pytest.mark.chromium
def test_a_diagnosis_in_the_ladder_names_its_begin_and_its_length(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    opened(browser, drawn(CAPTURES / "situations" / "heartbeat-late.pcap", tmp_path, capsys))
    row = "document.querySelector('.ladder .remark').textContent"
    assert "From +0.013633 s on, for 23.001 s: the client has to act" in browser.value(row)
    legend = browser.value("document.querySelector('.legend').textContent")
    assert legend == "Red: a certain findingBoxed: a diagnosis"
    assert browser.problems == []


@pytest.mark.chromium
def test_the_text_of_state_diagrams_is_never_small(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A diagram that is wider than its place scrolls in a box of its own."""
    opened(browser, drawn(CAPTURES / "rules" / "amqp10" / "C-OPEN-ONCE" / "violating.pcap", tmp_path, capsys))
    browser.click("#tab-states")
    scale = "document.querySelector('.states').getScreenCTM().a"
    assert browser.value(scale) >= 11 / 12
    assert browser.value("document.documentElement.scrollWidth <= window.innerWidth")
    box = "document.querySelector('.path .scroll')"
    assert browser.value(f"{box}.scrollWidth > {box}.clientWidth")


@pytest.mark.chromium
def test_the_labels_of_charts_stay_within_the_charts(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = Dialogue()
    d.begun(server={"incoming_window": 2147483647})
    path = tmp_path / "window.pcap"
    path.write_bytes(d.pcap())
    opened(browser, drawn(path, tmp_path, capsys))
    browser.click("#tab-flow")
    labels = "[...document.querySelectorAll('.chart text')]"
    assert browser.value(f"Math.max(...{labels}.map((one) => one.textContent.length))") == 10
    assert browser.value(f"Math.min(...{labels}.map((one) => one.getBBox().x))") >= 0


@pytest.mark.chromium
def test_the_text_of_charts_is_never_small(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Charts are as wide as the window allows; a window that becomes wider draws them again."""
    page = drawn(CAPTURES / "situations" / "credit-starved.pcap", tmp_path, capsys)
    scale = "document.querySelector('.chart').getScreenCTM().a"
    width = "document.querySelector('.chart').viewBox.baseVal.width"
    size = {"height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", width=500, **size)
    try:
        opened(browser, page)
        browser.click("#tab-flow")
        assert browser.value(scale) > 0.95 and browser.value(width) < 500
        assert browser.value("document.documentElement.scrollWidth <= window.innerWidth")
        browser.call("Emulation.setDeviceMetricsOverride", width=1300, **size)
        again = f"new Promise((done) => {{ const ask = () => {width} > 700 ? done(true) : "
        assert browser.value(f"{again}requestAnimationFrame(ask); ask(); }})")
        assert browser.value(scale) > 0.95
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


def two_sessions(tmp_path: Path) -> Path:
    """The client's disposition shows that it has read a transfer of its session; of what came before that on
    another session it shows nothing.
    """
    d = Dialogue()
    d.opened()
    for channel in (0, 1):
        d.client.begin(channel)
        d.server.begin(channel)
        d.client.attach(RECEIVER, channel=channel)
        d.server.attach(SENDER, channel=channel)
        d.client.flow(channel, handle=0)
    d.server.transfer(channel=1)
    d.server.transfer(channel=0)
    d.client.disposition(0, channel=0)
    path = tmp_path / "two-sessions.pcap"
    path.write_bytes(d.pcap())
    return path


def test_what_is_read_is_proved_for_each_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = drawn(two_sessions(tmp_path), tmp_path, capsys)
    rows = page_data(page)["connections"][0]["rows"]
    other, own = (row for row in rows if row["name"] == "transfer")
    answer = next(row for row in rows if row["name"] == "disposition")
    assert (other["channel"], own["channel"]) == (1, 0)
    assert other["behind"] < own["behind"] == answer["must"] == answer["read"]["0"]
    assert answer["read"]["1"] < other["behind"]


@pytest.mark.chromium
def test_a_frame_of_another_session_is_not_drawn_as_read(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = drawn(two_sessions(tmp_path), tmp_path, capsys)
    rows = page_data(page)["connections"][0]["rows"]
    opened(browser, page)
    answer = next(number for number, row in enumerate(rows) if row["name"] == "disposition")
    browser.click(f"#row-{answer}")
    for number, row in enumerate(rows):
        if row["name"] == "transfer":
            shown = browser.value(f"document.getElementById('row-{number}').classList.contains('read')")
            assert shown == (row["channel"] == 0)

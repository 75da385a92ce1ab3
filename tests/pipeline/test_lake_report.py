"""The report of a lake: numbers and their rows, versions, hostile texts, and the page in a browser."""

from __future__ import annotations

import datetime
import json
import random
from math import comb
from pathlib import Path
from typing import Any

import pytest
from support.accessibility import faults, in_colours
from support.browser import Browser
from support.closed_schemas import validator
from support.in_process import Here
from support.lakes import CAPTURES, contents
from support.npm import AXE, library
from support.pictures import opened, page_data
from support.tables import HOUR, Tables

from amqpscope.pipeline import report as report_module
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.compaction import compact_tables
from amqpscope.pipeline.earlier import earlier
from amqpscope.pipeline.engines import duckdb_engine
from amqpscope.pipeline.heat import heat_of
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.planner import make_plan
from amqpscope.pipeline.questions import FURTHER_QUESTIONS
from amqpscope.pipeline.report import LakeReport, lake_report, report_object
from amqpscope.pipeline.report_page import report_html
from amqpscope.pipeline.report_text import report_lines

HOSTILE = (
    "</script><script>window.planted=1</script>",
    "<img src=x onerror='window.planted=2'>\u202e\x00\x1b[31m\u2028-->",
    "'; DROP TABLE files; --",
    '$(touch /tmp/planted) `id` \\ " !!',
    "long " + "名" * 5000,
)


def reported(tables: Tables, name: str = "lake") -> LakeReport:
    with tables.engine() as engine:
        return lake_report(engine, name)


def busy(texts: tuple[str, ...], number: int = 20) -> Tables:
    """Tables with something in each, at random, and the texts wherever a peer has chosen one."""
    chance = random.Random(4)
    tables = Tables()
    some: Any = (*texts, None)
    tables.finding(rule="amqp091/C-CLOSE-REPLY", connection="c>s#0", severity="note")
    for at in range(number):
        place = {"connection": f"c>s#{at}", "capture": f"{chance.choice(texts)}/{at}.pcap".replace("\0", "")}
        time = HOUR + datetime.timedelta(hours=chance.randrange(90))
        pair = {f"{peer}_{name}": chance.choice(some) for peer in ("client", "server") for name in PAIRS}
        error = {"peer": "server", "in": "close", "condition": chance.choice(some), "count": 2}
        tables.connection(**place, **pair, start=time, errors=[error], protocol=chance.choice(PROTOCOLS))
        link = chance.choice(texts)
        tables.link(**place, name=link, source=chance.choice(some), target=chance.choice(some))
        tables.file(**place, status=chance.choice(("ok", "partial")), reason="truncated", detail=texts[0])
        for _ in range(chance.randrange(4)):
            level = {"severity": chance.choice(("error", "warning", "note")), "message": chance.choice(texts)}
            level["certainty"] = chance.choice(("certain", "possible"))
            peer = chance.choice(("client", "server"))
            tables.finding(**place, **level, time=time, peer=peer, link={"name": link, "sender": "client"})
        tables.delivery(**place, time=time, address=chance.choice(some), latency_ns=chance.randrange(10**10))
        tables.diagnosis(**place, subject=link, message=chance.choice(texts))
    tables.finding(connection=None, capture=None, packet=None, peer=None, time=None)
    return tables


PAIRS = ("product", "container")
PROTOCOLS = ("amqp10", "amqp091", None)

FIGURES = {
    "diagnoses": "times",
    "files": "files",
    "connections": "connections",
    "products": "connections",
    "activity": "connections",
    "latency": "deliveries",
    "latency_hours": "settled",
    "starved": "times",
    "unread": None,
    "errors": None,
    "examples": None,
    "span": None,
}
"""The number of rows in an answer, where it is not called `findings`; None: each group has one or more."""


@pytest.mark.parametrize("texts", [("Broker 1.0", "Broker 1.1", "q"), HOSTILE])
def test_each_number_leads_to_its_rows(texts: tuple[str, ...]) -> None:
    with busy(texts).engine() as engine:
        report = lake_report(engine, "lake")
        for name, answer in report.answers.items():
            assert (answer.wheres or name == "changes") and not answer.more, name
            figure = FIGURES.get(name, "findings")
            groups = list(zip(report.groups(name), answer.wheres, strict=True))
            for group, where in {id(one): one for one in (*groups[:1], *groups[-1:])}.values():
                assert not set('"\\$`!') & set(where)
                rows = engine.query(answer.question.rows_sql + (f" WHERE {where}" if where else ""))
                if name == "changes":
                    broken = {row["connection"] for row in rows.to_pylist()}
                    assert len(broken) == group["newer_broken"] + group["older_broken"] > 0
                elif figure is None:
                    assert rows.num_rows > 0
                else:
                    assert rows.num_rows == group[figure] > 0, name


def test_spark_gives_the_same_rows(spark: Any) -> None:
    """Of the questions that only the report asks: the types of all, and the rows of those that are not like
    others."""
    from pyspark.sql.pandas.types import to_arrow_schema

    tables = busy(HOSTILE)
    for name in ("files", "connections", "links", "deliveries", "findings", "diagnoses"):
        spark.createDataFrame(tables.dataset(name, None)).createOrReplaceTempView(name)
    with tables.engine() as engine:
        for question in FURTHER_QUESTIONS:
            rows, same = engine.query(question.sql), spark.sql(question.sql)
            assert rows.num_rows and rows.schema.types == to_arrow_schema(same.schema, timezone="UTC").types
            if question.name in ("examples", "starved"):
                assert rows.to_pylist() == same.toArrow().to_pylist(), question.name
            query = f"{question.rows_sql} WHERE {question.condition(rows.to_pylist()[0]) or 'true'}"
            assert spark.sql(query).schema.names == engine.query(query).schema.names


def test_versions() -> None:
    """The next newer version of the same product in the same role, and how likely chance is."""
    tables = Tables()
    number = 0
    for product, connections, broken in (
        ("Broker 3.9", 20, 0),
        ("Broker 3.10", 20, 10),
        ("Broker 3.11.0-rc1", 20, 10),
        ("Broker 3.11.0", 40, 0),
        ("Other 1.0", 5, 5),
        (f"Broker {'9' * 50}", 3, 1),
        (f"Broker {'9' * 5000}", 1, 1),
        ("Broker", 1, 1),
    ):
        for at in range(connections):
            number += 1
            tables.connection(connection=f"c>s#{number}", server_product=product)
            if at < broken:
                tables.finding(connection=f"c>s#{number}", peer="server", certainty="possible")
    shown = [
        (one["change"], one["older"], one["older_broken"], one["newer"], one["newer_broken"], one["chance"])
        for one in reported(tables).groups("changes")
    ]
    assert shown == [
        ("new", "Broker 3.9", 0, "Broker 3.10", 10, round(comb(20, 10) / comb(40, 10), 4)),
        ("gone", "Broker 3.11.0-rc1", 10, "Broker 3.11.0", 0, round(comb(20, 10) / comb(60, 10), 4)),
        ("new", "Broker 3.11.0", 0, f"Broker {'9' * 50}", 1, round(3 / 43, 4)),
    ]


def test_the_map_tells_quiet_hours_from_missing_ones() -> None:
    tables = Tables()
    tables.connection(start=HOUR)
    tables.connection(start=HOUR + datetime.timedelta(hours=2), connection="d>s#1")
    for severity in ("error", "note"):
        tables.finding(severity=severity)
    tables.finding(time=HOUR + datetime.timedelta(days=40))
    (day, later) = heat_of(reported(tables)).days
    assert (day.date, day.findings[9:13]) == ("2026-01-31", [None, 2, None, 0])
    assert (later.date, later.findings[10]) == ("2026-03-12", 1)


def test_the_map_begins_where_its_numbers_are_complete() -> None:
    """Findings of the first day are cut off: a day without their numbers would seem to be one without any."""
    tables = Tables()
    for days in range(3):
        tables.connection(start=HOUR + datetime.timedelta(days=days), connection=f"c>s#{days}")
        tables.finding(time=HOUR + datetime.timedelta(days=days))
    report = reported(tables)
    assert [day.date for day in heat_of(report).days] == ["2026-01-31", "2026-02-01", "2026-02-02"]
    hours = report.answers["hours"]
    cut_off = hours._replace(table=hours.table.slice(0, 2), wheres=hours.wheres[:2], more=True)
    heat = heat_of(report._replace(answers={**report.answers, "hours": cut_off}))
    assert ([day.date for day in heat.days], heat.more) == (["2026-02-02"], True)


@pytest.mark.parametrize("name", ["products", "broken"])
def test_versions_are_compared_only_if_all_are_known(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Otherwise all forms have the reason."""
    tables = Tables()
    for version in ("1.0", "1.1"):
        tables.connection(connection=version, client_product=f"Client {version}")
        tables.finding(connection=version, peer="client", rule=f"amqp10/{version}")
    assert reported(tables).left_out == {} and len(reported(tables).groups("changes")) == 2
    monkeypatch.setitem(report_module._MOST, name, 1)
    report = reported(tables)
    assert "changes" not in report.answers
    reason = report.left_out["changes"]
    assert reason.startswith("The lake has more than 1 groups of ")
    assert reason in list(report_lines(report))
    assert report_object(report)["left_out"] == {"changes": reason}
    assert '"left_out":{"changes":"The lake has more than 1 groups' in report_html(report).replace(": ", ":")


def test_what_is_new(tmp_path: Path) -> None:
    """Compared with the run before, whose rows `compact` does not change, or with another one."""
    path = tmp_path / "lake"
    captures = [str(CAPTURES / "rules" / "amqp10" / name) for name in ("C-CHMAX", "C-CLOSE-AFTEROPEN")]
    for number in (1, 2):
        sets = capture_sets(captures[:number], "file")
        Here(Any, make_plan(sets, 1, "chain"), None, captures, "file").write(str(path))
        if number == 1:
            report = compared(path)
            assert report.left_out["new_findings"] == "The lake has no earlier run." and not report.since
            assert "── New diagnoses" in list(report_lines(report))
            known = {row["fingerprint"] for row in contents(path)["findings"]}
    first = Lake(str(path)).runs()[0].name
    last = {row["fingerprint"] for row in contents(path)["findings"]}
    for since in ("", first[:6]):
        report = compared(path, since)
        new = {one["fingerprint"] for one in report.groups("new_findings")}
        assert new == last - known and report.since == first and report.left_out == {}
        compact_tables(Lake(str(path)))
    assert f"  compared with the run {first}" in list(report_lines(report))
    assert f'"since":"{first}"' in report_html(report)
    found = json.loads(json.dumps(report_object(report)))
    assert [error.message for error in validator("lake-report").iter_errors(found)] == []
    assert compared(path, Lake(str(path)).runs()[1].name).groups("new_findings") == []


def compared(path: Path, since: str = "") -> LakeReport:
    """The report of a lake, compared with an earlier run."""
    lake = Lake(str(path))
    with duckdb_engine(lake, lake.all_parts()) as engine:
        return lake_report(engine, "lake", "", earlier(lake, since))


@pytest.fixture(scope="module")
def hostile() -> LakeReport:
    return reported(busy(HOSTILE, 120), "la ke\x1b[31m")


def test_json_follows_its_schema(hostile: LakeReport) -> None:
    for report in (hostile, reported(Tables())):
        found = json.loads(json.dumps(report_object(report)))
        assert [error.message for error in validator("lake-report").iter_errors(found)] == []


def test_text_is_inert_and_has_commands(hostile: LakeReport) -> None:
    lines = list(report_lines(hostile))
    assert all(line.isprintable() for line in lines)
    assert "── Inputs that were not read, or not to the end" in lines
    assert any(line.startswith("    next: amqpscope why ") for line in lines)
    rows = [line for line in lines if line.startswith("rows: ")]
    assert len(rows) == 15
    assert all(line.startswith("rows: amqpscope pipeline sql $'la ke\\033[31m' \"SELECT ") for line in rows)


def test_commands_name_the_run() -> None:
    report = LakeReport("lake", "3f; rm x", {})
    assert report.sql_command == "amqpscope pipeline sql lake --as-of '3f; rm x'"
    assert report_object(report)["as_of"] == "3f; rm x"


def test_packets_of_a_ring() -> None:
    """Who explains a packet of the newest file opens it under its name; older files are overwritten."""
    tables = Tables()
    names = ["r.pcap", "r.pcap#2", "r.pcap#10", "s.pcap", "t.pcap#2"]
    for name in names:
        tables.file(capture=name)
    for name in ("u", "u#2"):
        tables.file(capture_set=name, capture="u.pcap")
    report = reported(tables)
    assert report.why_command("u.pcap", 7) == ""
    commands = ["", "", "amqpscope why r.pcap 7", "amqpscope why s.pcap 7", "amqpscope why 't.pcap#2' 7"]
    assert [report.why_command(name, 7) for name in names] == commands


def test_packets_of_a_file_with_such_a_name(tmp_path: Path) -> None:
    """It is there, so it is no newer one."""
    tables = Tables()
    names = [str(tmp_path / name) for name in ("r.pcap", "r.pcap#2")]
    for name in names:
        Path(name).touch()
        tables.file(capture=name)
    report = reported(tables)
    commands = [f"amqpscope why {names[0]} 7", f"amqpscope why '{names[1]}' 7"]
    assert [report.why_command(name, 7) for name in names] == commands


def page_of(report: LakeReport, folder: Path) -> Path:
    path = folder / "lake.html"
    path.write_text(report_html(report), "utf-8")
    return path


@pytest.mark.chromium
def test_hostile_texts_stay_texts_on_the_page(hostile: LakeReport, browser: Browser, tmp_path: Path) -> None:
    page = page_of(hostile, tmp_path)
    assert page.stat().st_size < 1_000_000
    opened(browser, page)
    every = "[...document.querySelectorAll('*')]"
    browser.value("[...document.querySelectorAll('main button')].forEach((one) => one.click())")
    assert browser.value("document.querySelectorAll('script').length") == 2
    assert browser.value("document.querySelectorAll('img, iframe, object, embed, link, base').length") == 0
    names = browser.value(f"{every}.flatMap((one) => one.getAttributeNames())")
    assert not [name for name in names if name.startswith("on") or name in ("src", "style")]
    links = browser.value("[...document.querySelectorAll('[href]')].map((one) => one.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)
    text = browser.value("document.body.innerText")
    assert "onerror=" in text and not set("\u202e\x00\x1b\u2028") & set(text)
    assert browser.value("window.planted === undefined")
    assert browser.problems == [] and browser.requests == [page.as_uri()]


@pytest.mark.chromium
def test_a_number_shows_the_query_and_the_findings(browser: Browser, tmp_path: Path) -> None:
    tables = Tables()
    tables.connection(client_product="Client 1.0")
    tables.finding()
    opened(browser, page_of(reported(tables), tmp_path))
    number = "#section-rules td.number button"
    browser.click(number)
    shown = browser.value(
        "[...document.querySelectorAll('#section-rules pre')].map((one) => one.textContent)"
    )
    assert shown[0].startswith('amqpscope pipeline sql lake "SELECT capture, packet, ')
    assert shown[0].endswith(
        " WHERE rule = 'amqp10/L-CREDIT' AND severity = 'error' AND certainty = 'certain' "
        "AND product = 'Client 1.0'\""
    )
    assert shown[1:] == ["amqpscope rules explain amqp10/L-CREDIT", "amqpscope why a.pcap 7"]
    assert browser.value(f"document.querySelector('{number}').getAttribute('aria-expanded')") == "true"
    browser.click(number)
    assert browser.value("document.querySelectorAll('#section-rules pre').length") == 0
    browser.click("#section-rules th button")
    assert (
        browser.value("document.querySelector('#section-rules th').getAttribute('aria-sort')") == "descending"
    )
    assert browser.problems == []


@pytest.mark.chromium
def test_the_page_has_no_serious_fault(browser: Browser, tmp_path: Path) -> None:
    axe = library(AXE)
    opened(browser, page_of(reported(busy(("Broker 1.0", "Broker 1.1", "q"))), tmp_path))
    browser.value(f"{axe}; 0")
    for selector in (".tile button", "#section-rules td.number button", ".heat button"):
        browser.click(selector)
    in_colours(browser, "light")
    found = faults(browser)
    in_colours(browser, "dark")
    found += faults(browser, "html", "color-contrast")
    in_colours(browser, "")
    assert found == []


@pytest.mark.chromium
def test_the_page_of_an_empty_lake(browser: Browser, tmp_path: Path) -> None:
    opened(browser, page_of(reported(Tables()), tmp_path))
    text = browser.value("document.getElementById('main').innerText")
    assert "No rule is broken." in text and "All inputs were read to their ends." in text
    assert browser.problems == []


@pytest.mark.chromium
def test_the_policy_stops_a_script_that_is_planted(browser: Browser, tmp_path: Path) -> None:
    page = page_of(reported(Tables()), tmp_path)
    planted = "<script>window.planted = 1</script><img src='http://127.0.0.1:9/x'>"
    page.write_text(page.read_text("utf-8").replace("<header>", f"{planted}<header>"), "utf-8")
    opened(browser, page)
    assert browser.value("window.planted === undefined")
    assert any("Content Security Policy" in problem for problem in browser.problems)


@pytest.mark.chromium
def test_the_page_fits_and_has_the_data_of_the_report(browser: Browser, tmp_path: Path) -> None:
    report = reported(busy(("Broker 1.0", "q" * 150)))
    page = page_of(report, tmp_path)
    try:
        for width in (500, 1400):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            browser.call("Emulation.setDeviceMetricsOverride", **size)
            opened(browser, page)
            assert browser.value("document.documentElement.scrollWidth") <= width
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")
    shown = page_data(page)["answers"]
    for name, answer in report_object(report)["answers"].items():
        for one in shown[name]["groups"]:
            one.pop("why", None)
        assert shown[name] == answer

"""The table of `summary`: who, where to, what was found, how it ended; what went wrong comes first."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.busy_night import busy_night
from support.commands import amqpscope

from amqpscope.report.printable import cells
from amqpscope.report.table import TableColumn, table


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    monkeypatch.chdir(tmp_path)
    Path("night.pcap").write_bytes(busy_night(most=1))
    return amqpscope(capsys, "summary", "night.pcap").lines


def test_what_went_wrong_comes_first_with_the_cause_and_the_next_command(lines: list[str]) -> None:
    assert lines[0] == "night.pcap: 12 connections, 3 went wrong"
    assert lines[1].startswith("conn 9: the client till has to act: ")
    begin = next(at for at, line in enumerate(lines) if line.startswith("conn  "))
    head, *rows = (line.split() for line in lines[begin : begin + 4])
    assert head == ["conn", "client", "traffic", "amqp", "findings", "packet", "ended"]
    assert [row[1] for row in rows] == ["till", "cart", "desk"]
    assert [line[line.index("server ") :] for line in lines[begin + 1 : begin + 4]] == [
        "server closed: 505:unexpected-frame, packet 506",
        "server closed: amqp:invalid-field, packet 551",
        "server sent RST, no close, packet 602",
    ]
    assert lines[begin + 4] == "next: amqpscope why --end night.pcap"


def test_the_others_are_a_line_each(lines: list[str]) -> None:
    detailed = [line for line in lines if line.startswith("connection ")]
    assert [line.split()[1] for line in detailed] == ["9", "10", "11"]
    last = max(at for at, line in enumerate(lines) if line.startswith("conn  "))
    healthy = lines[last + 1 : last + 10]
    assert [int(line.split()[0]) for line in healthy] == list(range(9))
    assert all(line.endswith(" client closed") for line in healthy)
    assert any("→ orders  ← orders" in line for line in healthy)


COLUMNS = [TableColumn("name", least=4), TableColumn("more", optional=True), TableColumn("n", right=True)]
ROWS = [[("", "a long name"), ("", "much"), ("", "1")], [("", "b"), ("", ""), ("", "200")]]


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (None, ["name         more    n", "a long name  much    1", "b                  200"]),
        (20, ["name       more    n", "a long n…  much    1", "b                200"]),
        (12, ["name       n", "a long…    1", "b        200"]),
        (8, []),
    ],
)
def test_a_table_is_narrowed_then_loses_columns_then_gives_up(width: int | None, shown: list[str]) -> None:
    lines = ["".join(text for _, text in line) for line in table(COLUMNS, ROWS, width)]
    assert [line.rstrip() for line in lines] == shown
    assert all(width is None or cells(line) <= width for line in lines)

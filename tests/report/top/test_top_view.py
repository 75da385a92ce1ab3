"""The full-screen view: what it shows, in which order, and what keys do to it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.dialogue091 import Dialogue091
from support.screen import SECOND, fed, later, painted, picture
from support.tcp_writer import Capture

from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.pcap import PcapReader
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.report.printable import cells
from amqpscope.report.top import model as bounds
from amqpscope.report.top.frame_history import MAX_LINES_OF_OTHERS
from amqpscope.report.top.health import BLOCKED, FAULT
from amqpscope.report.top.view import TopView

KEYS = (
    *("up", "down", "left", "right", "pageup", "pagedown", "home", "end", "enter", "escape", "backspace"),
    *("j", "k", "h", "l", "g", "G", "t", "f", "s", "p", " ", "/", "?", "x", "é"),
)


def peers(capture: Capture, number: int) -> Dialogue:
    return Dialogue(capture=capture, client=f"10.0.0.{number}:50000")


def blocked(capture: Capture, number: int, waiting: int = 7) -> Dialogue:
    """A connection with a sender that has messages and no credit."""
    d = peers(capture, number)
    d.linked(credit=1)
    d.client.transfer()
    d.client.flow(handle=0, delivery_count=1, link_credit=0, available=waiting)
    return d


def scene() -> bytes:
    """Four connections: one breaks a rule, one is blocked, one has a consumer that is full, one is well."""
    capture = Capture()
    blocked(capture, 1)
    well = peers(capture, 2)
    well.linked(credit=10)
    well.client.transfer()
    wrong = peers(capture, 3)
    wrong.linked(credit=1)
    wrong.client.transfer()
    wrong.client.transfer()
    wrong.server.detach(error="amqp:link:transfer-limit-exceeded")
    full = Dialogue091(capture=capture, client="10.0.0.4:50000")
    full.opened()
    full.channel(1)
    full.ask("basic.qos", prefetch_count=2)
    full.declare("work")
    full.consume("work", consumer_tag="worker")
    full.server.deliver(consumer_tag="worker")
    full.server.deliver(consumer_tag="worker")
    capture.wait(seconds=5)
    well.client.transfer()
    return capture.pcap()


def rows(text: str) -> list[str]:
    """The lines of connections."""
    return [line for line in text.splitlines() if ":50000>" in line and "FRAMES" not in line]


def test_connections_are_sorted_by_what_hurts() -> None:
    shown = rows(picture(fed(scene()), width=120))
    assert [line[1:9] for line in shown] == ["10.0.0.3", "10.0.0.4", "10.0.0.1", "10.0.0.2"]
    assert "error L-CREDIT" in shown[0]
    assert "prefetch of 2 used up, worker, channel 1" in shown[1]
    assert "no credit, 7 wait, link q" in shown[2]


def test_another_order() -> None:
    view = fed(scene())
    for _ in range(4):
        view.key("s")
    assert [line[1:9] for line in rows(picture(view))] == ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]
    assert "by name" in picture(view)


def test_looking_inside() -> None:
    view = fed(scene())
    view.key("down")
    view.key("j")
    view.key("enter")
    text = picture(view, 120, 30)
    assert "client OPENED" in text
    link = next(line for line in text.splitlines() if line.startswith("  q "))
    assert link.split() == ["q", "client", "attached", "0", "7", "1", "1", "0"]
    assert "transfer    #0 q" in text
    view.key("t")
    assert picture(view).count("transfer") == 1
    view.key("escape")
    view.key("escape")
    assert len(rows(picture(view))) == 4


def test_what_a_consumer_holds_is_shown() -> None:
    view = fed(scene())
    view.key("down")
    view.key("enter")
    consumer = next(line for line in picture(view).splitlines() if "(worker)" in line)
    assert consumer.split() == ["work", "(worker)", "2", "2"]


def test_findings_and_the_way_to_their_connection() -> None:
    view = fed(scene())
    assert "1 error" in picture(view)
    view.key("f")
    text = picture(view)
    assert "error amqp10/L-CREDIT client" in text
    assert "by the client in packet" in text
    view.key("enter")
    assert picture(view).splitlines()[2].startswith("10.0.0.3:50000>10.0.0.2:5672 ")


def test_a_finding_is_there_before_its_reaction() -> None:
    d = Dialogue()
    d.linked(credit=0)
    d.client.transfer()
    view = fed(d.pcap())
    view.key("f")
    assert "1 error" in picture(view)
    assert "the server sent" not in picture(view)
    d.server.detach(error="amqp:link:transfer-limit-exceeded")
    view = fed(d.pcap())
    view.key("f")
    view.key("end")
    assert "1 error" in picture(view)
    assert "the server sent detach with amqp:link:transfer-limit-exceeded" in picture(view)


def test_a_finding_that_turns_out_to_be_a_habit_counts_as_a_note() -> None:
    d = Dialogue()
    d.linked(credit=0)
    d.client.transfer()
    table = ConnectionTable("lo", AnalysisOutput(judge=True, live=True), KeptConnections(False))
    PcapReader(table).feed(d.pcap())
    (finding,) = table.output.take_fresh()
    view = TopView("lo")
    view.found([finding])
    assert (view.model.faults.errors, view.model.faults.notes) == (1, 0)
    finding.assessment = finding.assessment.by_profile("rabbitmq")
    view.amended([finding])
    view.amended([finding])
    assert (view.model.faults.errors, view.model.faults.notes) == (0, 1)
    (row,) = view.model.rows.values()
    assert row.faults.errors == 0


def test_a_filter() -> None:
    view = fed(scene())
    for key in "/worker":
        view.key(key)
    assert [line[1:9] for line in rows(picture(view))] == ["10.0.0.4"]
    assert "filter: worker" in picture(view)
    view.key("enter")
    view.key("q")
    assert not view.open
    view.key("escape")
    assert len(rows(picture(view))) == 4
    for key in "/nowhere":
        view.key(key)
    assert "none fits the filter" in picture(view)
    view.key("escape")
    assert len(rows(picture(view))) == 4


def test_a_paused_view_stands_still() -> None:
    view = fed(scene())
    before = picture(view)
    view.key("p")
    later(view, 60 * SECOND)
    paused = picture(view)
    assert " paused " in paused
    assert rows(paused) == rows(before)
    view.key("p")
    later(view, 60 * SECOND)
    assert rows(picture(view)) != rows(before)


def test_who_is_picked_stays_picked() -> None:
    capture = Capture()
    blocked(capture, 1)
    blocked(capture, 2, waiting=3)
    octets = capture.pcap()
    view = fed(octets)
    assert [line[:9] for line in rows(picture(view))] == ["▌10.0.0.1", " 10.0.0.2"]
    view.key("end")
    wrong = peers(capture, 3)
    wrong.linked(credit=0)
    wrong.client.transfer()
    wrong.server.detach(error="amqp:link:transfer-limit-exceeded")
    fed(capture.pcap(), view)  # all of it again: other connections for the view
    shown = rows(picture(view))
    assert shown[0][:9] == " 10.0.0.3"
    assert [line[:9] for line in shown if line[0] == "▌"] == ["▌10.0.0.2"]
    # Whoever goes to the first line sees what is the first from then on.
    other = fed(octets)
    fed(capture.pcap(), other)
    assert rows(picture(other))[0][:9] == "▌10.0.0.3"


def test_who_says_nothing_is_overdue() -> None:
    d = Dialogue()
    d.opened(server={"idle_time_out": 4000})
    view = fed(d.pcap(), after=3 * SECOND)
    assert "silent" not in picture(view)
    later(view, 3 * SECOND)
    assert "client silent 6.0s, allowed 4.0s" in picture(view)


@pytest.mark.parametrize(
    ("say", "text"),
    [
        (lambda d: d.client.begin(), "client's begin unanswered 5.0s, session 0"),
        (lambda d: d.begun_only() or d.client.attach(SENDER), "client's attach unanswered 5.0s, link q"),
        (lambda d: d.client.close(), "client's close unanswered 5.0s"),
        (lambda d: d.server.close(), "server's close unanswered 5.0s"),
    ],
)
def test_what_is_not_answered(say, text: str) -> None:  # type: ignore[no-untyped-def]
    class Opened(Dialogue):
        def begun_only(self) -> None:
            self.client.begin()
            self.server.begin()

    d = Opened()
    d.opened()
    say(d)
    view = fed(d.pcap(), after=2 * SECOND)
    assert "unanswered" not in picture(view)
    later(view, 3 * SECOND)
    assert text in picture(view, width=120)


def test_a_wait_that_lasts_is_shown() -> None:
    d = Dialogue()
    d.linked(credit=1)
    view = fed(d.pcap())
    (row,) = view.model.rows.values()
    assert row.analysis is not None
    text = "link q: the credit is used up"
    wait = Diagnosis("diag/credit-starved", "q", "server", 5, 0, 12.0, "c", {}, text, [5])
    view.update(view.model.now + SECOND, [row.analysis], 0, 0, {row.connection: [wait]})
    assert text in picture(view, width=160)
    view.update(view.model.now + SECOND, [row.analysis])
    assert text not in picture(view, width=160)


def test_on_a_narrow_screen_what_hurts_has_its_own_line() -> None:
    d = Dialogue()
    d.begun(server={"incoming_window": 1})
    d.attached(credit=0)
    d.server.flow(handle=0, link_credit=10, incoming_window=1)
    d.client.transfer()
    lines = picture(fed(d.pcap()), width=60).splitlines()
    (head,) = [at for at, line in enumerate(lines) if line.startswith(" CONNECTION")]
    assert "WHAT HURTS" not in lines[head]
    assert lines[head + 1].startswith("▌10.0.0.1:51034")
    assert "client's window is 0, session 0" in lines[head + 2]


def test_no_window_and_stopped_channels() -> None:
    d = Dialogue()
    d.begun(server={"incoming_window": 1})
    d.attached(credit=0)
    d.server.flow(handle=0, link_credit=10, incoming_window=1)
    d.client.transfer()
    assert "client's window is 0, session 0" in picture(fed(d.pcap()))
    e = Dialogue091()
    e.opened()
    e.channel(1)
    e.server.flow(False)
    e.client.flow_ok(False)
    e.server.blocked()
    text = picture(fed(e.pcap()), width=120)
    assert "client stopped by channel.flow, channel 1" in text
    assert "blocked by the server" in text


def test_an_unanswered_method() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.client.method("queue.declare", queue="q")
    assert "queue.declare unanswered 6.0s, channel 1" in picture(fed(d.pcap(), after=6 * SECOND), width=120)


def test_a_connection_that_is_over_stays_for_a_while() -> None:
    capture = Capture()
    d = peers(capture, 1)
    d.linked()
    d.goodbye()
    other = peers(capture, 2)
    other.linked()
    view = fed(capture.pcap())
    assert "1 open, 1 over" in picture(view)
    assert "over for" in rows(picture(view))[1]
    later(view, 20 * SECOND)
    assert len(rows(picture(view))) == 1
    assert len(view.model.names._connections) == 1


def test_of_too_many_that_are_over_those_with_findings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_OVER", 2)
    capture = Capture()
    for number in (1, 2, 3, 4):
        d = peers(capture, number)
        d.linked(credit=1)
        d.client.transfer()
        if number == 1:
            d.client.transfer()  # without credit
        d.goodbye()
        capture.wait(seconds=1)
    text = picture(fed(capture.pcap()))
    assert "0 open, 4 over" in text
    first, second = rows(text)
    assert "10.0.0.1:50000" in first
    assert "10.0.0.4:50000" in second


def test_lines_of_quiet_connections_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MAX_LINES_OF_ALL", 40)
    capture = Capture()
    for number in (1, 2, 3):
        d = peers(capture, number)
        d.linked(credit=1000)
        for _ in range(20 if number == 2 else 0):
            d.client.transfer(settled=True)
        capture.wait(seconds=1)
    looked_at, quiet, newest = fed(capture.pcap(), each=200).model.rows.values()
    assert looked_at.history.lines
    assert not quiet.history.lines
    assert len(newest.history.lines) == len(looked_at.history.lines)


def test_names_from_the_wire_do_nothing_to_the_terminal() -> None:
    d = Dialogue()
    name = "a\x1b[2J\n[red]‮b"
    d.opened(client={"container_id": name})
    d.client.begin()
    d.server.begin()
    d.client.attach(SENDER, name=name)
    d.server.attach(RECEIVER, name=name)
    d.client.transfer()  # without credit
    view = fed(d.pcap())
    for key in ("x", "enter", "t", "f"):
        view.key(key)
        for width in (80, 200):
            text = "".join(painted(view.render(width, 40), width))
            assert "\x1b" not in text and "‮" not in text and "\n" not in text
    view.key("escape")
    assert r"a\x1b[2J\n[red]" in picture(view, 200, 40)


@pytest.mark.parametrize("width", [20, 40, 80, 109, 110, 149, 150, 160, 300])
@pytest.mark.parametrize("height", [1, 2, 3, 8, 24, 60])
def test_every_page_fits_every_screen(width: int, height: int) -> None:
    view = fed(scene())
    for key in ("x", "enter", "t", "escape", "escape", "f", "escape", "?"):
        view.key(key)
        lines = view.render(width, height)
        assert len(lines) == height
        for text in painted(lines, width):
            assert cells(text) <= width


VIEW_OCTETS = scene()


@given(
    st.lists(st.sampled_from(KEYS), max_size=40),
    st.lists(st.tuples(st.integers(1, 200), st.integers(1, 70)), min_size=1, max_size=4),
)
def test_any_keys_on_any_screen(keys: list[str], sizes: list[tuple[int, int]]) -> None:
    view = fed(VIEW_OCTETS, each=4000)
    for at, key in enumerate(keys):
        view.key(key)
        width, height = sizes[at % len(sizes)]
        assert len(view.render(width, height)) == height
        if at % 5 == 4:
            later(view, SECOND)


def test_a_connection_with_many_frames_keeps_the_last() -> None:
    d = Dialogue()
    d.linked(credit=10_000)
    for _ in range(300):
        d.client.transfer(settled=True)
    view = fed(d.pcap(), each=1_000_000)
    (row,) = view.model.rows.values()
    assert 20 < len(row.history.lines) <= MAX_LINES_OF_OTHERS
    view.key("t")
    assert "#299" in picture(view)
    assert "frames …" in picture(view, 80, 60)
    assert not row.history.waits


def test_scrolled_lines_stand_still_while_more_come() -> None:
    d = Dialogue()
    d.linked(credit=10_000)
    for _ in range(30):
        d.client.transfer(settled=True)
    view = fed(d.pcap())
    view.key("t")
    view.key("pageup")
    before = picture(view).splitlines()[3:-1]
    (row,) = view.model.rows.values()
    row.history.add([("", "one more")])
    assert picture(view).splitlines()[3:-1] == before
    view.key("end")
    assert "one more" in picture(view)
    view.key("home")
    assert "header" in picture(view).splitlines()[3]


def test_without_colour_the_picked_line_is_marked() -> None:
    view = TopView("lo")
    assert "no AMQP connection yet" in picture(view)
    view = fed(scene())
    assert [line[0] for line in rows(picture(view))] == ["▌", " ", " ", " "]
    assert "\x1b[7m" in "".join(painted(view.render(80, 24), 80, colour=True))


def test_snapshots_take_turns_where_there_is_no_time_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = Capture()
    dialogues = [blocked(capture, number) for number in range(1, 6)]
    monkeypatch.setattr(bounds, "SNAPSHOT_SECONDS", 0)
    table = ConnectionTable("lo", AnalysisOutput(judge=True, live=True), KeptConnections(False))
    PcapReader(table).feed(capture.pcap())
    assert len(table.open_connections()) == len(dialogues)
    view = TopView("lo")
    for turn in range(1, 8):
        view.update(turn * SECOND, table.open_connections())
        made = [row for row in view.model.rows.values() if row.last.snapshot is not None]
        # The picked one's, which there is from the second time on, and one more.
        assert len(made) == min(turn, len(dialogues))


def test_trends_are_of_whole_seconds_however_often_it_is_looked() -> None:
    d = Dialogue()
    d.linked(credit=1000)
    table = ConnectionTable("lo", AnalysisOutput(judge=True, live=True), KeptConnections(False))
    reader = PcapReader(table)
    view = TopView("lo")
    at = 0
    for half in range(8):
        d.client.transfer()
        octets = d.pcap()
        reader.feed(octets[at:])
        at = len(octets)
        view.update(SECOND + half * SECOND // 2, table.open_connections())
    (row,) = view.model.rows.values()
    assert list(row.traffic.trend)[1:] == [2, 2, 2]
    assert row.traffic.frame_rate == 2


def test_packets_may_be_older_than_the_clock_before_them() -> None:
    view = TopView("lo")
    view.update(1_800_000_000 * SECOND, [])
    d = Dialogue()
    d.linked()
    d.client.transfer()
    fed(d.pcap(), view, each=1_000_000)
    assert " 0 frames/s" not in picture(view)
    later(view, 5 * SECOND)
    assert "  5.0s  1 open" in picture(view)


def test_snapshots_of_what_is_on_the_screen_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = Capture()
    dialogues = [peers(capture, number) for number in range(1, 6)]
    for d in dialogues:
        d.linked(credit=1000)
    table = ConnectionTable("lo", AnalysisOutput(judge=True, live=True), KeptConnections(False))
    reader = PcapReader(table)
    view = TopView("lo")
    at = 0
    for turn in range(1, 12):
        for d in dialogues:
            d.client.transfer()
        octets = capture.pcap()
        reader.feed(octets[at:])
        at = len(octets)
        view.update(turn * SECOND, table.open_connections())
        view.render(80, 24)
        monkeypatch.setattr(bounds, "SNAPSHOT_SECONDS", 0)
    picked, *others = view.model.rows.values()
    assert picked.last.time == 11 * SECOND
    assert sorted(row.last.time // SECOND for row in others) == [8, 9, 10, 11]


def test_others_keep_few_lines_and_the_picked_one_many() -> None:
    capture = Capture()
    for number in (1, 2):
        d = peers(capture, number)
        d.linked(credit=1000)
        for _ in range(120):
            d.client.transfer(settled=True)
    view = TopView("lo")
    fed(capture.pcap()[:400], view)
    picked, other = fed(capture.pcap(), each=1000).model.rows.values()
    assert len(picked.history.lines) > 120
    assert len(other.history.lines) == MAX_LINES_OF_OTHERS
    assert other.history.written > 120


def test_the_picked_line_is_on_the_screen_over_its_whole_width() -> None:
    capture = Capture()
    for number in range(1, 61):
        peers(capture, number).linked()
    view = fed(capture.pcap(), each=100_000)
    view.key("end")
    assert rows(picture(view))[-1].startswith("▌10.0.0.60:")
    assert "more below" not in picture(view)
    view.key("home")
    assert rows(picture(view))[0].startswith("▌10.0.0.1:")
    assert "more below" in picture(view)
    (marked,) = [line for line in painted(view.render(80, 24), 80, colour=True) if "\x1b[7m▌" in line]
    assert cells(re.sub(r"\x1b\[[0-9;]*m", "", marked)) == 80


def test_what_stands_still_now_comes_before_errors_of_what_is_over() -> None:
    view = fed(scene())
    names = [row.name for row in view.model.sorted("what hurts", "")]
    worst = view.model.sorted("what hurts", "")[0]
    assert worst.rank == FAULT
    worst.end(view.model.now)
    after = [row.name for row in view.model.sorted("what hurts", "")]
    blocked = [row for row in view.model.rows.values() if row.rank == BLOCKED]
    assert blocked
    assert all(after.index(row.name) < after.index(worst.name) for row in blocked)
    assert names != after


def test_each_connection_has_a_state_and_a_name() -> None:
    for width in (80, 120, 160):
        first = rows(picture(fed(scene()), width=width))[-1]
        assert " opened " in f"{first} "
        assert " client " in first

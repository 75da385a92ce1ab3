"""Ladders: every frame an arrow, what was found beside its frame, within the width, nothing raw."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console
from support import amqp10_encode as amqp
from support.commands import unprintable
from support.dialogue import SENDER, Dialogue
from support.remembered_conversation import RememberedConversation
from support.sampling import share
from support.tcp_writer import Capture

from amqpscope.conformance.coverage import judged
from amqpscope.conformance.pairs import CLEAN, VIOLATING, CapturePairs
from amqpscope.model.certainty import CERTAIN
from amqpscope.model.finding import Finding
from amqpscope.model.records import FrameRef
from amqpscope.report.ladder import WIDTH, ladder
from amqpscope.report.painter import Painter
from amqpscope.report.printable import cells
from amqpscope.rules.editions import shown_in


def drawn(octets: bytes, width: int = WIDTH, spec: str = "final") -> list[str]:
    frames, findings = judged(octets, "test", spec)
    return ["".join(text for _, text in line) for line in ladder(frames, findings, width)]


def test_a_ladder() -> None:
    d = Dialogue()
    d.linked(credit=1)
    d.client.transfer()
    d.wait(seconds=2)
    d.client.transfer()
    d.goodbye()
    assert drawn(d.pcap()) == [
        "    client 10.0.0.1:51034                                   server 10.0.0.2:5672",
        "  4 │── header AMQP 1.0.0 ────────────────────────────────────────────────────→│",
        "  5 │←──────────────────────────────────────────────────── header AMQP 1.0.0 ──│",
        "  6 │── open client ──────────────────────────────────────────────────────────→│",
        "  7 │←────────────────────────────────────────────────────────── open server ──│",
        "  8 │── begin incoming-window=2048 outgoing-window=2048@0 ────────────────────→│",
        "  9 │←─── begin remote-channel=0 incoming-window=2048 outgoing-window=2048@0 ──│",
        " 10 │── attach sender q: q → q handle=0 initial-delivery-count=0 ─────────────→│",
        " 11 │←──────────────────────────────────── attach receiver q: q → q handle=0 ──│",
        " 12 │←─ flow q link-credit=1 delivery-count=0 incoming-window=2048@0 outgoi… ──│",
        " 13 │── transfer #0 q 10 octets body=amqp-value tag=0x00000000 ───────────────→│",
        "    │   2.0 s later                                                            │",
        " 14 │══ transfer #1 q 10 octets body=amqp-value tag=0x00000001 ═══════════════→│",
        "    │   × amqp10/L-CREDIT: the sender starts a delivery although no            │",
        "    │     link-credit is left: the receiver's credit ends at delivery-count    │",
        "    │     1, and the sender's delivery-count is already 1                      │",
        " 15 │── close ────────────────────────────────────────────────────────────────→│",
        " 16 │←──────────────────────────────────────────────────────────────── close ──│",
    ]


def test_what_is_absent_has_an_arrow_where_the_stream_ended() -> None:
    d = Dialogue()
    d.opened()
    d.client.fin()
    *_, arrow, finding = drawn(d.pcap())
    assert arrow == "  8 │══ end of stream ════════════════════════════════════════════════════════→│"
    assert finding.strip(" │") == "× possible amqp10/C-CLOSE-SENT: the stream ends without close"


def test_the_end_of_a_stream_stands_among_the_frames_of_the_other_one() -> None:
    d = Dialogue()
    d.opened()
    d.client.fin()
    d.server.begin()
    rows = drawn(d.pcap())
    assert [row.split("│")[0].strip() for row in rows[1:]] == ["4", "5", "6", "7", "8", "", "9"]


def test_a_frame_with_a_finding_is_reported_whole() -> None:
    d = Dialogue()
    d.opened()
    d.client.attach(
        SENDER, name="n" * 40, source=amqp.source(address="s" * 48), target=amqp.target(address="t" * 48)
    )
    text = "".join(row[5:-1] for row in drawn(d.pcap()))
    assert "n" * 40 in text and "s" * 48 in text and "t" * 48 in text
    assert "initial-delivery-count=0" in text


def test_what_a_peer_says_is_cut_to_the_width() -> None:
    d = Dialogue()
    d.headers()
    d.client.open(hostname="h" * 400)
    row = drawn(d.pcap())[-1]
    assert row == "  6 │── open client hostname=" + "h" * 46 + "… ─→│"


def test_channels_are_reported_where_there_are_several() -> None:
    d = Dialogue()
    d.begun()
    d.client.begin(channel=12)
    rows = drawn(d.pcap())
    assert [row[:6] for row in rows[1:8]] == [
        "  4   ",
        "  5   ",
        "  6  0",
        "  7  0",
        "  8  0",
        "  9  0",
        " 10 12",
    ]
    assert {len(row) for row in rows} == {WIDTH}


def test_each_connection_has_a_ladder() -> None:
    capture = Capture()
    talks = [RememberedConversation(capture, f"10.0.0.{number}:51034") for number in (1, 3)]
    for talk in talks:
        talk.tcp.handshake()
    for container in ("a", "b"):
        for talk in talks:
            talk.client(
                amqp.AMQP_HEADER if container == "a" else amqp.frame(amqp.open_(container_id=container))
            )
    rows = drawn(capture.pcap(nanoseconds=True))
    assert [row.split("─→")[0].rstrip("─ ").split("  server")[0].strip() for row in rows] == [
        "client 10.0.0.1:51034",
        "7 │── header AMQP 1.0.0",
        "9 │── open b",
        "",
        "client 10.0.0.3:51034",
        "8 │── header AMQP 1.0.0",
        "10 │── open b",
    ]


@pytest.mark.parametrize("width", [WIDTH, 40, 57, 100])
def test_every_ladder_of_the_rules_keeps_its_width(width: int) -> None:
    pairs = CapturePairs()
    for pair in share(list(pairs.pairs.values()), 6, f"{width} columns"):
        for which in (VIOLATING, CLEAN):
            for row in drawn(pairs.octets(pair.folder, which), width):
                assert cells(row) == width or not row, (pair.folder, row)


def test_every_pair_is_marked_where_it_is_broken_and_nowhere_else() -> None:
    pairs = CapturePairs()
    for pair in share(list(pairs.pairs.values()), 3, "marked"):
        rows = drawn(pairs.octets(pair.folder, VIOLATING), spec=shown_in(pair.rules[0]))
        marked = [int(row.split("│")[0].split()[0]) for row in rows if "══" in row]
        assert sorted(marked) == sorted({verdict.packet for verdict in pair.violating}), pair.folder
        reported = "\n".join(rows)
        for rule in pair.rules:
            assert reported.count(f" {rule}: ") == sum(verdict.rule == rule for verdict in pair.violating)
        clean = "\n".join(drawn(pairs.octets(pair.folder, CLEAN)))
        assert "══" not in clean and "×" not in clean.replace(" × ", "")


HOSTILE = [
    "\x1b[31mred\x1b[0m",
    "\u202egnp.exe\u202c",
    "a\nb\rc\td",
    "wide 茶葉 🍵 half ｱ",
    "\u0301" * 60,
    "[red]markup[/red]",
    "x" * 5000,
    "│══→" * 9,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_escaped_and_moves_no_line(text: str) -> None:
    d = Dialogue()
    d.headers()
    d.client.open(container_id=text, hostname=text)
    d.server.open(container_id=text, properties=[(amqp.symbol("product"), amqp.string(text))])
    d.client.begin()
    d.server.begin()
    # Without a session: reported whole.
    d.client.attach(name=text, channel=3, source=amqp.source(address=text), target=amqp.target(address=text))
    d.client.attach(name=text, source=amqp.source(address=text), target=amqp.target(address=text))
    d.client.frame(amqp.close(error=amqp.error(condition="x:y", description=text)))
    d.client.frame(amqp.close(error=amqp.error(condition="x:y", description=text)))
    for width in (40, WIDTH):
        rows = drawn(d.pcap(), width)
        assert any("═" in row for row in rows)
        assert unprintable("\n".join(rows)) == []
        assert {cells(row) for row in rows} == {width}


@pytest.mark.parametrize("text", HOSTILE)
def test_so_is_what_a_finding_says_of_it(text: str) -> None:
    d = Dialogue()
    d.opened()
    frames, _ = judged(d.pcap(), "test")
    last = frames[-1]
    spots = [FrameRef.of(last), FrameRef(last.direction, last.packet, last.time, 99, text, -1)]
    findings = [Finding("amqp10/" + text, CERTAIN, text, last.connection, spot, {}, []) for spot in spots]
    rows = ["".join(part for _, part in line) for line in ladder(frames, findings)]
    assert sum(row[4:7] == "│←═" for row in rows) == 2
    assert unprintable("\n".join(rows)) == []
    assert {cells(row) for row in rows} == {WIDTH}


def test_a_password_is_not_drawn() -> None:
    d = Dialogue()
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms()
    # Said twice, which is a fault: reported whole.
    for _ in range(2):
        d.client.init(initial_response=b"\0user\0sesame")
    rows = drawn(d.pcap())
    assert any("═" in row for row in rows)
    assert "sesame" not in "".join(rows)
    assert b"sesame".hex() not in "".join(rows)


def test_octets_that_are_no_frame_have_a_line_of_their_own() -> None:
    d = Dialogue()
    d.opened()
    with d.missed():
        d.client.begin()
    d.client.flow()
    rows = drawn(d.pcap())
    assert any("│-- skipped " in row and "---→│" in row for row in rows)


def test_packets_rise_downwards_also_where_something_is_known_only_later() -> None:
    rows = drawn(CapturePairs().octets("amqp10/C-HDR-FORM", VIOLATING))
    packets = [int(row[:3]) for row in rows[1:] if row[:3].strip()]
    assert packets == sorted(packets) and len(packets) > 2


CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap*")), ids=lambda path: path.name)
def test_every_frame_of_real_peers_is_an_arrow(path: Path) -> None:
    octets = path.read_bytes()
    frames, findings = judged(octets, path.name)
    rows = drawn(octets)
    absent = {
        (finding.connection.id, finding.peer) for finding in findings if finding.frame == "end of stream"
    }
    said = {(record.peer, int(record.packet)) for record in frames}
    elsewhere = {
        (finding.peer, int(finding.packet))
        for finding in findings
        if finding.frame != "end of stream" and (finding.peer, int(finding.packet)) not in said
    }
    arrows = sum(row.endswith("→│") or "│←" in row[:9] for row in rows)
    assert arrows == len(frames) + len(absent) + len(elsewhere)
    assert {cells(row) for row in rows if row} == {WIDTH}
    assert unprintable("\n".join(rows)) == []


def test_an_output_that_is_not_unicode_gets_plain_signs() -> None:
    d = Dialogue()
    d.opened()
    d.client.fin()
    frames, findings = judged(d.pcap(), "test")
    console = Console(file=io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    rows = [Painter(console, None).paint(line) for line in ladder(frames, findings)]
    assert all(row.isascii() and len(row) == WIDTH for row in rows)
    assert rows[-2].startswith("  8 |== end of stream ===")

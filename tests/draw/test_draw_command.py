"""`amqpscope draw`: a file in each form, of the connection that was asked for, safe to open."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support import amqp10_encode as amqp
from support.commands import amqpscope, unprintable
from support.dialogue import Dialogue

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
EARLY = CAPTURES / "rhea-transfer-before-attach.pcap"
CROSSING = CAPTURES / "amqplib-crossing-close.pcap"
TWO = CAPTURES / "amqplib-channel-errors.pcap"
SVG = "{http://www.w3.org/2000/svg}"

HOSTILE = (
    "</text><script>alert(1)</script>\"'&lt;<img onerror=x>\u202e\x00\x1b[31m\n```\n# --> %% end; #lt;\ud800"
)


def hostile() -> bytes:
    """A conversation with a hostile text wherever there is room for one."""
    text = HOSTILE.encode("utf-8", "replace").decode()
    d = Dialogue()
    d.headers()
    d.client.open(container_id=text, hostname=text, properties=[(amqp.symbol("product"), amqp.string(text))])
    d.server.open(container_id=text, properties=[(amqp.symbol("product"), amqp.string(text))])
    d.client.begin()
    d.server.begin()
    d.client.attach(name=text, source=amqp.source(address=text), target=amqp.target(address=text))
    d.client.attach(name=text, channel=3, source=amqp.source(address=text))
    d.client.transfer()
    d.client.frame(amqp.close(error=amqp.error(condition="x:y", description=text)))
    d.client.frame(amqp.close(error=amqp.error(condition="x:y", description=text)))
    return d.pcap()


def texts(path: Path) -> list[str]:
    """The texts of a picture, each as it is read."""
    return ["".join(one.itertext()) for one in ElementTree.parse(path).iter(f"{SVG}text")]


def test_a_ladder_in_svg(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ladder.svg"
    result = amqpscope(capsys, "draw", EARLY, "-o", out)
    assert (result.status, result.out) == (0, "")
    assert result.err == f"amqpscope: {out}: connection 0, 16 frames\n"
    shown = texts(out)
    assert "rhea-transfer-before-attach.pcap, connection 0, AMQP 1.0" in shown
    assert "shop (proton-shop)" in shown and "server 127.0.0.2:5672" in shown
    assert 'close amqp:invalid-field "no such handle: 0"' in shown
    assert sum(text.startswith("× error amqp10/") for text in shown) == 3
    lines = list(ElementTree.parse(out).iter(f"{SVG}line"))
    assert sum(line.get("class") == "error" for line in lines) == 3
    assert len(lines) == 16 + 2
    # Every arrow falls, and its text stands within the lifelines.
    assert all(float(one.get("y2") or 0) > float(one.get("y1") or 0) for one in lines)


def test_the_picture_in_the_guide_is_up_to_date(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ladder.svg"
    assert amqpscope(capsys, "draw", EARLY, "-o", out).status == 0
    kept = CAPTURES.parent / "docs" / "assets" / "ladder.svg"
    assert kept.read_text("utf-8") == out.read_text("utf-8"), "the guide names the command that draws it"


def test_arrows_that_cross(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The client's flow was in flight when the server sent its flow."""
    d = Dialogue()
    d.begun()
    with d.on_their_way():
        d.client.flow()
        d.server.flow()
    d.server.empty()
    path, out = tmp_path / "closes.pcap", tmp_path / "closes.svg"
    path.write_bytes(d.pcap())
    assert amqpscope(capsys, "draw", path, "-o", out).status == 0
    lines = [one for one in ElementTree.parse(out).iter(f"{SVG}line") if one.get("class") != "life"]
    falls = [float(one.get("y2") or 0) - float(one.get("y1") or 0) for one in lines]
    *before, flow, answer, last = falls
    assert len({*before, answer, last}) == 1 and flow > 4 * answer


def test_time_to_scale(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    d = Dialogue()
    d.begun()
    d.client.empty()
    d.wait(seconds=5)
    d.client.empty()
    path = tmp_path / "slow.pcap"
    path.write_bytes(d.pcap())
    steps = {}
    for scale in ("even", "time"):
        out = tmp_path / f"{scale}.svg"
        assert amqpscope(capsys, "draw", path, "-o", out, "--scale", scale).status == 0
        lines = [one for one in ElementTree.parse(out).iter(f"{SVG}line") if one.get("class") != "life"]
        places = [float(one.get("y1") or 0) for one in lines]
        steps[scale] = places[-1] - places[-2]
    assert steps["time"] > 2 * steps["even"]


def test_mermaid_in_markdown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ladder.md"
    assert amqpscope(capsys, "draw", EARLY, "-o", out).status == 0
    head, diagram, rest = re.split(r"```(?:mermaid)?\n", out.read_text("utf-8"))
    assert head.startswith("# rhea-transfer-before-attach.pcap")
    lines = diagram.splitlines()
    assert lines[0] == "sequenceDiagram"
    assert sum(re.match(r"    [CS]->>[CS]: \d+#58; ", line) is not None for line in lines) == 16
    assert sum("Note over C,S: × error amqp10/" in line for line in lines) == 3
    assert rest.count("- packet ") == 3


def test_text_is_that_of_read_ladder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ladder.txt"
    assert amqpscope(capsys, "draw", EARLY, "-o", out).status == 0
    lines = out.read_text("utf-8").splitlines()
    assert max(len(line) for line in lines) == 100
    assert sum("═" in line for line in lines) == 3
    read = amqpscope(capsys, "read", "--ladder", EARLY).lines
    assert [line.split("│")[0] for line in lines if line.split("│")[0].strip()][1:] == [
        line.split("│")[0] for line in read if line.split("│")[0].strip()
    ][1:]


@pytest.mark.parametrize("suffix", ["svg", "md", "txt"])
def test_hostile_text_is_only_text(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "hostile.pcap", tmp_path / f"hostile.{suffix}"
    path.write_bytes(hostile())
    assert amqpscope(capsys, "draw", path, "-o", out).status == 0
    text = out.read_text("utf-8")
    assert unprintable(text) == []
    if suffix == "svg":
        allowed = {"svg", "title", "style", "rect", "text", "tspan", "line", "path"}
        elements = list(ElementTree.parse(out).iter())
        assert {one.tag.removeprefix(SVG) for one in elements} == allowed
        assert not any(name.startswith("on") or "href" in name for one in elements for name in one.attrib)
        assert any("<script>alert(1)</script>" in shown for shown in texts(out))
    if suffix == "md":
        assert text.count("```") == 2
        assert "<" not in text.replace("<br/>", "") and "%%" not in text and "#lt;" not in text


def test_the_worst_connection_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from support.remembered_conversation import RememberedConversation
    from support.tcp_writer import Capture

    capture = Capture()
    talks = [RememberedConversation(capture, f"10.0.0.{number}:51034") for number in (1, 3)]
    for talk, container in zip(talks, ("fine", "bad"), strict=True):
        talk.tcp.handshake()
        talk.client(amqp.AMQP_HEADER)
        talk.client(amqp.frame(amqp.open_(container_id=container)))
    talks[1].client(amqp.frame(amqp.open_(container_id="bad")))
    path, out = tmp_path / "two.pcap", tmp_path / "two.svg"
    path.write_bytes(capture.pcap(nanoseconds=True))
    result = amqpscope(capsys, "draw", path, "-o", out)
    assert result.err.startswith(f"amqpscope: {out}: connection 1, 3 frames; 1 other connection not drawn")
    result = amqpscope(capsys, "draw", path, "-o", out, "--connection", "10.0.0.1")
    assert result.err.startswith(f"amqpscope: {out}: connection 0, 2 frames")
    result = amqpscope(capsys, "draw", path, "-o", out, "--connection", "7")
    assert (result.status, result.err) == (2, f"amqpscope: {path}: no connection 7 (there are 0 to 1)\n")


def test_frames_are_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "some.txt"

    def packets(*options: str) -> list[int]:
        assert amqpscope(capsys, "draw", EARLY, "-o", out, *options).status == 0
        rows = [re.match(r" *(\d+) │", line) for line in out.read_text("utf-8").splitlines()]
        return [int(row[1]) for row in rows if row]

    assert packets("--from", "13", "--to", "17") == [13, 14, 16, 17]
    assert packets("--link", "stocked-in") == [12, 12]
    assert packets("--around", "4") == [4, 6, 8, 10, 11, 12, 12, 12, 12]
    assert out.read_text("utf-8").count("×") == 0
    assert amqpscope(capsys, "draw", EARLY, "-o", out, "--around", "1").err.endswith(
        "--around 1: no frame begins in this packet\n"
    )
    assert amqpscope(capsys, "draw", EARLY, "-o", out, "--link", "none").err.endswith(
        "no frame matches the options\n"
    )


def test_a_diagnosis_stands_in_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "late.svg"
    path = CAPTURES / "pika-heartbeat-missed.pcap"
    assert amqpscope(capsys, "draw", path, "-o", out).status == 0
    assert any("[diag/heartbeat-late]" in text for text in texts(out))


@pytest.mark.parametrize("suffix", ["txt", "md", "svg"])
def test_a_diagnosis_begins_with_when_it_holds(
    suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"late.{suffix}"
    path = CAPTURES / "situations" / "heartbeat-late.pcap"
    assert amqpscope(capsys, "draw", path, "-o", out).status == 0
    shown = out.read_text("utf-8").replace("#43;", "+").replace("#58;", ":")
    assert "From +0.013633 s on, for 23.001 s: the client has to act: " in shown


def test_what_cannot_be_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "draw", EARLY, "-o", tmp_path / "ladder.png")
    assert result.status == 2 and "the name must end in" in result.err
    result = amqpscope(capsys, "draw", EARLY, "-o", tmp_path / "none" / "ladder.svg")
    assert result.status == 2 and "No such file or directory" in result.err
    result = amqpscope(capsys, "draw", EARLY, CROSSING, "-o", tmp_path / "ladder.svg")
    assert result.status == 2 and "merge them with --merge" in result.err
    nothing = tmp_path / "nothing.pcap"
    nothing.write_bytes(EARLY.read_bytes()[:24])
    result = amqpscope(capsys, "draw", nothing, "-o", tmp_path / "ladder.svg")
    assert result.status == 3
    assert list(tmp_path.iterdir()) == [nothing]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([EARLY, "-o", "out.html", "--scale", "time"], "--scale: only with --output OUT.svg"),
        ([EARLY, "-o", "out.txt", "--scale", "even"], "--scale: only with --output OUT.svg"),
        ([EARLY, CROSSING, "-o", "out.svg", "--compare", "--scale", "time"], "--compare: cannot be combined"),
    ],
)
def test_a_scale_that_would_change_nothing_is_refused(
    options: list[object],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    result = amqpscope(capsys, "draw", *options)
    assert result.status == 2 and why in result.err
    assert not list(tmp_path.iterdir())


def test_the_capture_itself_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "traffic.svg"
    path.write_bytes(EARLY.read_bytes())
    result = amqpscope(capsys, "draw", path, "-o", path)
    assert result.status == 2 and "already reads or writes this file" in result.err
    assert path.read_bytes() == EARLY.read_bytes()


@pytest.mark.parametrize(
    ("form", "end", "finding"),
    [
        ("txt", "24   │←═", "× amqp091/C-HB-SEND by the client: "),
        ("md", "S--xC: 24#58; end of stream by RST", "amqp091/C-HB-SEND by the client#58; "),
        ("svg", '<line class="error lost" x1="936"', "× warning amqp091/C-HB-SEND by the client: "),
        ("html", '"peer":"server","packet":24,', '"rule":"amqp091/C-HB-SEND","by":" by the client"'),
    ],
)
def test_the_end_of_a_stream_is_drawn_from_the_peer_that_ended_it(
    form: str, end: str, finding: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The client is silent, and the server ends the connection with RST: the arrow is the server's."""
    out = tmp_path / f"ladder.{form}"
    path = CAPTURES / "rules" / "amqp091" / "C-HB-SEND-2" / "violating.pcap"
    assert amqpscope(capsys, "draw", path, "-o", out).status == 0
    text = out.read_text("utf-8")
    assert end in text and finding in text
    assert "end of stream" in text and "by RST" in text

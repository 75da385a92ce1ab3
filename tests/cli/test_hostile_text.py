"""Whatever a peer, a file's name or an argument says: no control character reaches the output, in no form."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from pathlib import Path

import pytest
from support import amqp10_encode as amqp
from support.commands import SGR, amqpscope, every_way, set_against_another, unprintable
from support.tcp_writer import Capture

from amqpscope.cli import output
from amqpscope.report.printable import cells

TEXTS = [
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\",
    "\x9b31mC1\x9d0;x\x9c",
    "a\nb\rc\td\x0be\x0cf\x85g\u2028h\u2029i",
    "nul\0del\x7f",
    "\u202egnp.exe\u202c \u2066a\u2069 \u200e\u200f\u061c",
    "[red]markup[/red] [link=http://x]y[/link] [/] [bold",
    "soft\xadhyphen zero\u200bwidth\u200cjoin\u200der\u2060\ufeff",
    "\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4",
    "\u0301leading mark, a" + "\u0301" * 60,
    "private\ue000\U000f0000 unassigned\U0003fffe tag\U000e0041 selector\ufe0f\U000e0100",
    "emoji 👩‍👩‍👧 🍵 🇩🇪 wide 茶葉 half ｱ",
    'quote " backslash \\ tick ` dollar $(x) %n ;',
    "x" * 70_000,
    "\u202e" * 5_000,
    "",
    " ",
]

BAD_UTF8 = [amqp.string(b"\xff\xfe\x1b[31m"), amqp.symbol(b"\x9b31m"), amqp.raw(b"\x73\x00\x00\xd8\x00")]


def hostile(path: Path) -> Path:
    """A capture in which every text a peer can choose is one of these, a connection each."""
    capture = Capture()
    for number, text in enumerate([*TEXTS, *BAD_UTF8]):
        string = text if isinstance(text, bytes) else amqp.string(text)
        # A symbol takes ASCII only: of each text what is ASCII, controls included.
        symbol = text if isinstance(text, bytes) else amqp.symbol(text.encode("ascii", "ignore"))
        pairs = [(symbol, string), (amqp.symbol("product"), string), (amqp.symbol("version"), string)]
        error = amqp.error(condition=symbol, description=string, info=pairs)
        # In few segments: it is the texts that count.
        tcp = capture.connection(f"10.0.0.1:{40000 + number}", mss=40_000)
        client, server = tcp.client, tcp.server
        tcp.handshake()
        client.send(amqp.SASL_HEADER)
        server.send(amqp.SASL_HEADER + amqp.sasl_frame(amqp.sasl_mechanisms(sasl_server_mechanisms=symbol)))
        client.send(amqp.sasl_frame(amqp.sasl_init(mechanism=symbol, hostname=string)))
        server.send(amqp.sasl_frame(amqp.sasl_outcome(code=77)))
        client.send(amqp.AMQP_HEADER)
        server.send(amqp.AMQP_HEADER)
        opening = amqp.open_(
            container_id=string,
            hostname=string,
            outgoing_locales=symbol,
            offered_capabilities=symbol,
            properties=pairs,
        )
        client.send(amqp.frame(opening))
        server.send(amqp.frame(opening))
        client.send(amqp.frame(amqp.begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)))
        server.send(
            amqp.frame(amqp.begin(remote_channel=0, next_outgoing_id=0, incoming_window=9, outgoing_window=9))
        )
        for role in (amqp.SENDER, amqp.RECEIVER):
            (client if role is amqp.SENDER else server).send(
                amqp.frame(
                    amqp.attach(
                        name=string,
                        handle=0,
                        role=role,
                        initial_delivery_count=0,
                        source=amqp.source(
                            address=string,
                            expiry_policy=symbol,
                            distribution_mode=symbol,
                            filter=[(symbol, amqp.described(symbol, string))],
                            capabilities=symbol,
                        ),
                        target=amqp.target(address=string),
                        properties=pairs,
                    )
                )
            )
        message = (
            amqp.message_annotations(pairs)
            + amqp.properties(
                message_id=string,
                user_id=(text if isinstance(text, bytes) else text.encode())[:300],
                to=string,
                subject=string,
                reply_to=string,
                correlation_id=string,
                content_type=symbol,
            )
            + amqp.application_properties([(string, string), (amqp.string("[a]"), symbol)])
            + amqp.amqp_value(
                amqp.list_([string, symbol, amqp.map_([(string, string)]), amqp.array([string], choice=0xF0)])
            )
        )
        tag = (text if isinstance(text, bytes) else text.encode())[:32]
        client.send(amqp.frame(amqp.transfer(handle=0, delivery_id=0, delivery_tag=tag), message))
        as_data = amqp.data(text if isinstance(text, bytes) else text.encode())
        client.send(amqp.frame(amqp.transfer(handle=0, delivery_id=1, delivery_tag=tag), as_data))
        server.send(
            amqp.frame(amqp.disposition(role=True, first=0, settled=True, state=amqp.rejected(error=error)))
        )
        server.send(amqp.frame(amqp.described(symbol, string)))
        server.send(amqp.frame(amqp.close(error=error)))
        client.send(amqp.frame(amqp.close(error=amqp.error(condition="x", description=string))))
        tcp.goodbye()
    return capture.write(path)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile(tmp_path_factory.mktemp("hostile") / "c.pcapng")


def test_nothing_but_visible_characters_in_json_of_ascii(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in every_way(path):
        result = amqpscope(capsys, *arguments)
        assert result.status == 0
        assert unprintable(result.out + result.err) == [], arguments
        if "json" in arguments or "ndjson" in arguments:
            assert result.out.isascii()


def test_nothing_but_visible_characters_of_a_comparison(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for arguments in set_against_another(path):
        result = amqpscope(capsys, *arguments)
        assert result.status == 1
        assert unprintable(SGR.sub("", result.out) + result.err) == [], arguments
        if "text" in arguments:
            assert max(map(cells, SGR.sub("", result.out).splitlines())) <= 80
        else:
            assert result.out.isascii()


def test_only_our_own_colours(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for arguments in (
        ["read", "-vv", str(path)],
        ["summary", str(path)],
        ["check", str(path)],
        ["triage", str(path)],
    ):
        written = amqpscope(capsys, *arguments).out
        assert SGR.search(written)
        assert unprintable(SGR.sub("", written)) == []
        # What a peer says stands between our own sequences: each line ends as it began.
        for line in written.splitlines():
            found = SGR.findall(line)
            assert found[1::2] == ["\x1b[0m"] * (len(found) // 2)
            assert "\x1b[0m" not in found[0::2]


def test_marks_do_not_pile_up(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written = amqpscope(capsys, "read", "-vv", path).out
    assert "\\u0301" in written
    assert "\u0301" * 4 not in written
    # Nor do they change the quote or the space before a text.
    assert '"\u0301' not in written
    assert " \u0301" not in written


def test_lines_are_as_wide_as_they_may_be(
    path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, counted as a terminal counts: wide characters twice, marks not at all."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for arguments in (
        ["read", str(path)],
        ["read", "-v", str(path)],
        ["summary", str(path)],
        ["check", str(path)],
    ):
        lines = SGR.sub("", amqpscope(capsys, *arguments).out).splitlines()
        assert max(map(cells, lines)) <= 60
        assert any("…" in line for line in lines)


# Names as the system may give them: any octets but NUL and slash.
NAMES = [
    b"\x1b[31mred",
    b"new\nline",
    b"bad\xff\xfeutf8",
    "\u202egnp".encode(),
    b"[red]x[bold]",
    b"\xc2\x9b31m",
    b'quote"and\\',
]


@pytest.mark.parametrize("name", NAMES)
def test_file_names(name: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    tcp.client.send(amqp.AMQP_HEADER)
    tcp.client.send(amqp.frame(amqp.end()))  # before open: something to be found
    tcp.goodbye()
    path = os.path.join(str(tmp_path), os.fsdecode(name))
    Path(path).write_bytes(capture.pcap())
    for arguments in every_way(path):
        # Twice, where several can be read: then each has a heading.
        result = amqpscope(capsys, *arguments, *([] if "why" in arguments else [path]))
        assert result.status == 0
        assert unprintable(result.out + result.err) == [], arguments
        if "ndjson" in arguments:
            shown = path.encode("utf-8", "backslashreplace").decode()  # half a surrogate pair is no JSON
            assert {json.loads(line)["capture"] for line in result.lines} == {shown}
    Path(path).write_bytes(b"no capture")
    missing = path + "-missing"
    for wrong in (path, missing, path + "/below"):
        for command in (
            ["read"],
            ["summary"],
            ["check"],
            ["triage"],
            ["read", "--format", "json"],
            ["why", "--end"],
        ):
            result = amqpscope(capsys, *command, wrong)
            assert result.status == 2
            assert unprintable(result.out + result.err) == []
            assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["read", "--\x1b[31m", "x"],
        ["\x1b[31m"],
        ["read", "--only", "\x1b[31m\n", "x"],
        ["read", "--channel", "\x9b\u202e", "x"],
        ["read", "--from", "\x1b", "x"],
        ["read", "-t", "\x1b[31m\n", "x"],
        ["read", "--limit", "\x1b", "x"],
        ["read", "--connection", "\x1b\n", "x"],
        ["summary", "--connection", "\x1b\n", "x"],
        ["read", "--format", "\x1b\udcff", "x"],
        ["check", "--fail-on", "\x1b\udcff", "x"],
        ["check", "--max-per-rule", "\x9b\n", "x"],
    ],
)
def test_arguments(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, *arguments)
    assert result.status == 2
    assert result.out == ""
    assert unprintable(result.err) == []
    assert result.err.startswith("amqpscope: ")
    assert result.err.count("\n") == 1


class Screen(io.StringIO):
    """Standard error as a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_progress(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bar names the file, neither as control sequences nor as markup."""
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    tcp.client.send(amqp.AMQP_HEADER)
    path = tmp_path / "[red]a[\x1b[31m\u202e"
    path.write_bytes(capture.pcap())
    screen = Screen()
    monkeypatch.setattr(output, "_WORTH_A_BAR", 0)
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "300")
    amqpscope(capsys, "read", "--count", path)
    shown = screen.getvalue()
    assert "[red]a[\\x1b[31m\\u202e" in SGR.sub("", shown)
    # Besides colours: cursor visibility, cursor up, erase line, carriage return.
    own = re.compile("\x1b\\[(?:\\?25[lh]|[0-9]*A|2K)|\r")
    assert unprintable(own.sub("", SGR.sub("", shown))) == []


def test_no_bar_in_a_pipe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = hostile(tmp_path / "c.pcapng")
    monkeypatch.setattr(output, "_WORTH_A_BAR", 0)
    assert amqpscope(capsys, "read", "--count", path).err == ""
    assert amqpscope(capsys, "summary", path).err == ""

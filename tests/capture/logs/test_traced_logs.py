"""Logs of messages that RabbitMQ's plugin rabbitmq_tracing wrote: shown, and never taken for frames."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope as command
from support.judged import Trickle

from amqpscope import Capture
from amqpscope.capture.traced import TracedMessage
from amqpscope.limits import MAX_TRACED_OCTETS
from amqpscope.report.traced_text import TraceLines

FOLDER = Path(__file__).parent / "recorded"
TEXT, JSON = FOLDER / "traced-text.log", FOLDER / "traced-json.log"


def traced(source: Any) -> tuple[list[TracedMessage], list[str]]:
    """The messages and the notes of a log."""
    messages: list[TracedMessage] = []
    with Capture(source, name="log") as capture:
        capture.trace(messages.append)
        assert list(capture) == []
        return messages, [note.detail for note in capture.notes]


def test_text_and_json_say_the_same() -> None:
    text, as_json = traced(io.BytesIO(TEXT.read_bytes()))[0], traced(io.BytesIO(JSON.read_bytes()))[0]
    assert [one.content() for one in text] == [one.content() for one in as_json]
    assert len(text) == 10
    assert [one.size for one in text] == [6, 11, 6, 6, 6000, 6, 11, 11, 6, 6]
    assert text[0].routing_keys == ["a.b"]
    assert text[0].queues == ["logs-q"]
    assert dict(text[0].properties)["message-id"] == "m0"
    assert text[0].connection == "127.0.0.1:54260 -> 127.0.0.9:5672"


@pytest.mark.parametrize("path", [TEXT, JSON], ids=["text", "json"])
def test_commands_show_messages_and_check_has_nothing_to_judge(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    read = command(capsys, "read", path)
    assert read.status == 0
    assert read.out.count("published exchange=") == 5
    assert "messages that RabbitMQ has traced, without frames" in read.out
    summary = command(capsys, "summary", path)
    assert summary.status == 0
    assert "exchange=logs-x routing-key=a.b queue=logs-q: 4 messages, 29 octets" in summary.out
    checked = command(capsys, "check", path)
    assert checked.status == 3
    assert "no frames to check: a log of 10 messages that RabbitMQ has traced" in checked.err
    for arguments in (("read", "--format", "ndjson"), ("draw", "-o", str(tmp_path / "page.html"))):
        done = command(capsys, arguments[0], *arguments[1:], path)
        assert done.status == 3
        assert "that RabbitMQ has traced" in done.err


@pytest.mark.parametrize("path", [TEXT, JSON], ids=["text", "json"])
@pytest.mark.parametrize("sizes", [[7, 1, 64], [1]])
def test_the_same_log_in_small_pieces_says_the_same(path: Path, sizes: list[int]) -> None:
    octets = path.read_bytes()[:6000]
    pieces, whole = traced(Trickle(octets, sizes)), traced(io.BytesIO(octets))
    assert [one.content() for one in pieces[0]] == [one.content() for one in whole[0]]
    assert pieces[1] == whole[1]


def test_a_payload_may_look_like_the_log() -> None:
    lines = TEXT.read_bytes().splitlines(True)
    at = next(at for at, line in enumerate(lines) if line == b"body 0\n")
    body = b"=" * 80 + b"\nExchange:     other\nPayload: \n" + b"=" * 80 + b"\n"
    messages, _ = traced(io.BytesIO(b"".join([*lines[:at], body, *lines[at + 1 :]])))
    assert len(messages) == 10
    assert messages[0].exchange == "logs-x"
    assert messages[0].size == len(body) - 1


def test_what_is_not_whole_is_noted() -> None:
    octets = TEXT.read_bytes()
    place = octets.index(b"Payload", 2000)
    cut = octets[:place] + octets[octets.index(b"=" * 80, place) :]
    messages, notes = traced(io.BytesIO(cut))
    assert len(messages) == 9
    assert any("is incomplete" in note for note in notes)
    lines = JSON.read_bytes().splitlines(True)
    messages, notes = traced(io.BytesIO(lines[0] + lines[1][:200] + b"\nother\n" + lines[2]))
    assert len(messages) == 2
    assert any("cannot be read" in note for note in notes)
    assert any("1 line with other content skipped" in note for note in notes)


def test_time_is_counted_from_the_first_message_that_has_one() -> None:
    lines = TraceLines(0)
    start = 1_790_000_000_000_000_000
    shown = []
    for number, when in enumerate([0, start, 0, start + 1_500_000_000], 1):
        line = lines.lines(TracedMessage(number, when, published=True))[-1][0]
        shown.append(line[1][1].strip())
    assert shown == ["0.000000", "0.000000", "0.000000", "1.500000"]


def test_nothing_of_a_message_reaches_the_terminal_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = json.loads(JSON.read_text().splitlines()[0])
    for name in ("connection", "exchange", "user", "vhost"):
        message[name] = "\x1b[31m"
    message["routing_keys"] = message["routed_queues"] = ["\x1b]0;x\x07"]
    message["properties"]["message_id"] = "\x1b[0m"
    log = tmp_path / "log"
    log.write_text(json.dumps(message) + "\n")
    for arguments in (("read", "-v"), ("summary",)):
        assert "\x1b" not in command(capsys, arguments[0], *arguments[1:], log).out


@pytest.mark.parametrize(
    "hostile",
    [
        b"Properties:   [" + b'{<<"a">>,longstr,<<"b">>},\n              ' * 100_000,
        b"Routing keys: " + b'<<"' * 500_000 + b"\n",
        b"Properties:   [\n" + b" \n" * 200_000,
        b"Payload: \n" + (b"=" * 80 + b"\n") * 30_000,
    ],
    ids=["properties", "keys", "lines", "rules"],
)
def test_a_hostile_message_takes_no_longer_than_another_one(hostile: bytes) -> None:
    before = time.process_time()
    head = TEXT.read_bytes()[:280]
    traced(io.BytesIO(TEXT.read_bytes() + head + hostile))
    assert time.process_time() - before < 3


def test_a_line_of_json_may_have_any_type() -> None:
    messages, notes = traced(io.BytesIO(JSON.read_bytes() + b'{"type": [], "routing_keys": 1}\n'))
    assert len(messages) == 10
    assert any("1 line with other content skipped" in note for note in notes)


@pytest.mark.parametrize("behind", [" ", "\n  "], ids=["fields", "lines"])
def test_a_message_keeps_so_many_octets_and_no_more(behind: str) -> None:
    part = "z" * (MAX_TRACED_OCTETS // 3)
    fields = [f"{name}:{behind}{part}\n" for name in ("User", "Exchange", "Virtual host", "Connection")]
    octets = TEXT.read_bytes()
    octets += octets[: octets.index(b"Node")] + "".join(fields).encode() + b"Payload: \nbody\n"
    message = traced(io.BytesIO(octets))[0][-1]
    kept = [message.user, message.exchange, message.virtual_host, message.connection]
    assert part in message.user
    assert sum(map(len, kept)) <= MAX_TRACED_OCTETS

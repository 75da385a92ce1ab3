"""Logs in the form of the Tracer of RabbitMQ's Java client, beside captures of the same connections."""

from __future__ import annotations

import io
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope as command
from support.judged import Trickle

from amqpscope import Capture, CaptureOptions
from amqpscope.capture.logs.tracer import TracerFrames

FOLDER = Path(__file__).parent / "recorded"
NAMES = ("tracer", "tracer-frames", "tracer-errors", "tracer-violating")
RESERVED = ("reserved-1", "reserved-2", "reserved-3")


def found(octets: bytes, certain: bool) -> set[tuple[str, str]]:
    """Rule and peer of each finding, or of the certain ones."""
    with Capture(io.BytesIO(octets), CaptureOptions(judge=True), name="log") as capture:
        for _ in capture:
            pass
        assert not capture.mishaps
        return {(one.rule, one.peer) for one in capture.take_findings() if one.certain or not certain}


def frames(
    capsys: pytest.CaptureFixture[str], path: Path
) -> dict[tuple[int, str, int], list[dict[str, Any]]]:
    """The frames of a file but for bodies, by connection, sender and channel."""
    shown: dict[tuple[int, str, int], list[dict[str, Any]]] = {}
    order: dict[str, int] = {}
    for line in command(capsys, "read", "--format", "ndjson", path).out.splitlines():
        frame = json.loads(line)
        number = order.setdefault(frame["connection"], len(order))
        if frame["kind"] not in ("body", "heartbeat"):
            shown.setdefault((number, frame["peer"], frame["channel"]), []).append(frame)
    return shown


@pytest.mark.parametrize("name", NAMES)
def test_the_log_has_the_fields_that_were_captured(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    log, wire = (frames(capsys, FOLDER / f"{name}.{kind}") for kind in ("log", "pcapng"))
    assert log.keys() == wire.keys()
    for place, captured in wire.items():
        assert [one["name"] for one in log[place]] == [one["name"] for one in captured]
        for one, other in zip(log[place], captured, strict=True):
            assert one["size"] is None
            unknown = {problem["path"].split(".")[1] for problem in one["problems"]}
            if one["kind"] == "content-header":
                assert one["fields"]["body-size"] is None
                one, other = (each["fields"]["properties"] for each in (one, other))
            else:
                one, other = one["fields"], other["fields"]
            assert {key for key in other if other[key] not in (None, "null")} - one.keys() <= unknown | {
                "body"
            }
            for key in one.keys() - unknown - {"server-properties", "client-properties"}:
                assert one[key] == other[key]
            for key in ("server-properties", "client-properties"):
                assert json.dumps(one.get(key, {})).count("RabbitMQ") == json.dumps(other.get(key, {})).count(
                    "RabbitMQ"
                )


@pytest.mark.parametrize("name", NAMES)
def test_no_finding_is_certain_and_none_is_new(name: str) -> None:
    octets = (FOLDER / f"{name}.log").read_bytes()
    assert found(octets, True) == set()
    assert found(octets, False) <= found((FOLDER / f"{name}.pcapng").read_bytes(), False)


@pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("tracer-errors", {"amqp091/B-ACK-DUP"}),
        ("tracer-violating", {"amqp091/B-ACK-KNOWN", "amqp091/CH-OPEN-FIRST"}),
    ],
)
def test_faults_are_found(name: str, rules: set[str]) -> None:
    assert rules <= {rule for rule, _ in found((FOLDER / f"{name}.log").read_bytes(), False)}


def times(octets: bytes) -> list[str]:
    """The names of the frames, in their order."""
    with Capture(io.BytesIO(octets), name="log") as capture:
        return [record.frame.name for record in capture]


def test_an_answer_that_stands_before_its_question_is_put_behind_it() -> None:
    lines = (FOLDER / "tracer.log").read_bytes().splitlines(True)
    expected = found(b"".join(lines), False)
    for at in range(len(lines) - 1):
        first, second = lines[at], lines[at + 1]
        pair = (first, second)
        if not all(b" ch#" in one for one in pair) or (b" -> " in first) == (b" -> " in second):
            continue
        question, answer = (re.search(rb"<([a-z.-]+?)>\(", one) for one in pair)
        if question is None or answer is None or not answer[1].startswith(question[1]):
            continue
        swapped = b"".join([*lines[:at], second, first, *lines[at + 2 :]])
        assert found(swapped, False) <= expected, first
        assert times(swapped) == times(b"".join(lines))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_line_cut_short_accuses_nobody(name: str, share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (FOLDER / f"{name}.log").read_bytes().splitlines(True)
    monkeypatch.setattr(TracerFrames, "ordered", True)  # else no finding is certain
    accused = found(b"".join(lines), True)
    for at in range(0, len(lines), 5):
        cut = lines[at][: int(len(lines[at]) * share)] + b"\n"
        if b" ch#" in cut:
            assert found(b"".join([*lines[:at], cut, *lines[at + 1 :]]), True) <= accused, cut


def test_a_body_of_several_lines_is_passed_over() -> None:
    lines = (FOLDER / "tracer.log").read_bytes().splitlines(True)
    at = next(at for at, line in enumerate(lines) if b"body 0" in line)
    body = b"one\ntwo ch#1 -> x\n1795913115184: something\nthree"
    changed = b"".join([*lines[:at], lines[at].replace(b"body 0", body), *lines[at + 1 :]])
    assert times(changed) == times(b"".join(lines))
    assert found(changed, False) == found(b"".join(lines), False)


def test_a_body_that_does_not_end_hides_what_follows() -> None:
    lines = (FOLDER / "tracer.log").read_bytes().splitlines(True)
    at = next(at for at, line in enumerate(lines) if b"body 0" in line)
    torn = b"".join([*lines[:at], lines[at].rstrip()[:-3] + b"\n", *lines[at + 1 :]])
    assert found(torn, False) <= found(b"".join(lines), False)


def test_the_same_log_in_small_pieces_says_the_same() -> None:
    octets = (FOLDER / "tracer.log").read_bytes()

    def shown(source: Any) -> list[str]:
        with Capture(source, name="log") as capture:
            return [repr(record) for record in capture] + [note.detail for note in capture.notes]

    assert shown(Trickle(octets, [7, 1, 64])) == shown(Trickle(octets, [1 << 20]))


def test_the_password_is_hidden(capsys: pytest.CaptureFixture[str]) -> None:
    shown = command(capsys, "read", "-vv", FOLDER / "tracer.log")
    assert "made-up-for-captures" not in shown.out
    assert "RabbitMQ's Java Tracer" in shown.out


def test_releases_that_print_no_spaces_are_read() -> None:
    log = (
        b'1319551245765: <Tracer-0> ch#3 -> {#method<tx.commit>(),null,""}\n'
        b'1319551245799: <Tracer-0> ch#3 <- {#method<tx.commit-ok>(),null,""}\n'
    )
    assert times(log) == ["tx.commit", "tx.commit-ok"]


@pytest.mark.parametrize(
    "hostile",
    [
        "1795913115184: <T> ch#1 -> " * 100_000,
        "1795913115184: <T> ch#1 -> {#method<queue.declare>(ticket=0" + ", queue=" * 300_000 + '), null, ""}',
        "1795913115184: <T> ch#0 <- {#method<connection.start>(version-major=0, version-minor=9, "
        "server-properties={" + "a={" * 300_000 + '}, mechanisms=, locales=), null, ""}',
        "1" * 2_000_000,
        "1795913115184: <T> ch#1 -> {#method<basic.publish>(), #contentHeader<basic>(" + '), "' * 300_000,
    ],
    ids=["lines", "fields", "tables", "digits", "bodies"],
)
def test_a_hostile_line_takes_no_longer_than_another_one(hostile: str) -> None:
    before = time.process_time()
    found((FOLDER / "tracer-violating.log").read_bytes() + hostile.encode() + b"\n", False)
    assert time.process_time() - before < 3

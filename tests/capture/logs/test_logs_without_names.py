"""Logs that name neither connection nor channel: those of uamqp and of the Azure SDK for Python."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.commands import amqpscope as command
from support.judged import Trickle

import amqpscope
from amqpscope import Capture, CaptureError, CaptureOptions
from amqpscope.limits import MAX_LOG_TUPLE

pytest.importorskip("cryptography")  # uamqp only speaks TLS

FOLDER = Path(__file__).parent / "recorded"
NAMES = ("uamqp", "azure-python", "azure-python-violating")
Captured = pytest.CaptureFixture[str]

DEFAULTS = {
    "max-frame-size": 4294967295,
    "channel-max": 65535,
    "handle-max": 4294967295,
    "snd-settle-mode": 2,
    "rcv-settle-mode": 0,
    "durable": 0,
    "timeout": 0,
    "expiry-policy": "session-end",
}
"""What null means: the libraries print it in its place."""


def frames(capsys: Captured, path: Path) -> dict[tuple[int, str], list[dict[str, Any]]]:
    """The frames of a file without those of SASL, by the order of their connection and by their sender."""
    found: dict[tuple[int, str], list[dict[str, Any]]] = {}
    order: dict[str, int] = {}
    for line in command(capsys, "read", "--format", "ndjson", path).out.splitlines():
        frame = json.loads(line)
        number = order.setdefault(frame["connection"], len(order))
        if frame["kind"] != "sasl" and frame["fields"].get("protocol-id") != 3:
            found.setdefault((number, frame["peer"]), []).append(frame)
    return found


def bare(value: object, name: str = "") -> object:
    """A value without the names of types, and without what is as good as null."""
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)) in ("uint", "ulong", "ubyte", "ushort", "long", "symbol"):
            return bare(next(iter(value.values())), name)
        fields = {key: bare(one, key) for key, one in value.items()}
        return {key: one for key, one in fields.items() if one not in (None, False, DEFAULTS.get(key, ()))}
    return [bare(one) for one in value] if isinstance(value, list) else value


def findings(path: Path) -> dict[tuple[str, str, bool], int]:
    """How often each rule was broken, by which peer and how certainly."""
    found: dict[tuple[str, str, bool], int] = {}
    for one in amqpscope.check(path):
        key = (one.rule, one.peer, one.certain)
        found[key] = found.get(key, 0) + 1
    return found


@pytest.mark.parametrize("name", NAMES)
def test_the_log_has_the_frames_that_were_captured(name: str, capsys: Captured) -> None:
    log, wire = (frames(capsys, FOLDER / f"{name}.{kind}") for kind in ("log", "pcapng"))
    assert log.keys() == wire.keys()
    seen = 0
    for side, captured in wire.items():
        logged = log[side]
        # The libraries end a connection without reading what the server still sends.
        assert [one["name"] for one in logged] == [one["name"] for one in captured][: len(logged)]
        assert len(logged) == len(captured) or side[1] == "server"
        for one, other in zip(logged, captured, strict=False):
            seen += 1
            unknown = {problem["path"].split(".")[1] for problem in one["problems"]} - {"payload"}
            # A tag is hidden where it may be a secret that cannot be distinguished from the rest.
            if "hidden" in one["fields"].get("delivery-tag", ""):
                unknown.add("delivery-tag")
            had = {key: value for key, value in other["fields"].items() if key not in unknown}
            assert (one["kind"], one["channel"], one["size"]) == (other["kind"], other["channel"], None)
            shown = {key: value for key, value in one["fields"].items() if key not in unknown}
            assert bare(shown) == bare(had)
    assert seen > 30


@pytest.mark.parametrize("name", NAMES)
def test_the_log_accuses_nobody_of_an_error_of_whom_the_wire_says_nothing(name: str) -> None:
    log, wire = (findings(FOLDER / f"{name}.{kind}") for kind in ("log", "pcapng"))
    more = {rule for rule, _, certain in log.keys() - wire.keys() if certain}
    # The wire has an excuse: the credit was on its way. The log shows that the library had not read it. All
    # versions of the library do that, so it is a note.
    assert more <= ({"amqp10/L-CREDIT-INIT"} if name.startswith("azure") else set())
    checked = amqpscope.check(FOLDER / f"{name}.log")
    habits = {one.assessment.profile for one in checked if one.rule == "amqp10/L-CREDIT-INIT"}
    assert habits <= {"azure-python"}


def test_what_breaks_the_protocol_is_found_in_the_log() -> None:
    log, wire = (findings(FOLDER / f"azure-python-violating.{kind}") for kind in ("log", "pcapng"))
    for fault in (("amqp10/L-CREDIT", "server", True), ("amqp10/D-RCVMODE-SECOND", "client", True)):
        assert log[fault] == wire[fault] == 37
    fault = ("amqp10/L-CREDIT-OWNER", "client", True)
    assert findings(FOLDER / "uamqp.log")[fault] == findings(FOLDER / "uamqp.pcapng")[fault] == 1


@pytest.mark.parametrize("name", NAMES)
def test_the_same_log_in_small_pieces_says_the_same(name: str) -> None:
    octets = (FOLDER / f"{name}.log").read_bytes()

    def shown(source: Any) -> list[str]:
        with amqpscope.Capture(source, name="log") as capture:
            return [repr(record) for record in capture] + [note.detail for note in capture.notes]

    assert shown(Trickle(octets, [7, 1, 64])) == shown(Trickle(octets, [1 << 20]))


def said(lines: list[str]) -> tuple[list[str], list[str], list[str]]:
    """The frames, the notes and the certain findings of a log."""
    octets = "\n".join(lines).encode()
    with Capture(io.BytesIO(octets), CaptureOptions(judge=True), name="log") as capture:
        names = [f"{record.connection.id[8]} {record.frame.name}" for record in capture]
        found = [one.rule for one in capture.take_findings() if one.certain]
        assert not capture.mishaps
        return names, [note.detail for note in capture.notes], found


OPENED = [
    "x -> Header (AMQP 0.1.0.0)",
    "x <- Header (AMQP 0.1.0.0)",
    "x -> [OPEN]* {one}",
    "x <- [OPEN]* {two}",
    "x -> [BEGIN]* {NULL,0,65536,65536}",
    "x <- [BEGIN]* {0,0,2048,4294967295}",
]
CLOSED = ["x -> [END]* {}", "x <- [END]* {}", "x -> [CLOSE]* {}", "x <- [CLOSE]* {}"]


def test_a_connection_may_follow_another_one() -> None:
    names, notes, found = said([*OPENED, *CLOSED, *OPENED, *CLOSED])
    assert len(names) == 20
    assert [name for name in names if name.endswith("open")] == ["1 open", "1 open", "2 open", "2 open"]
    assert not any("skipped" in note for note in notes)
    assert found == []


def test_two_connections_at_a_time_are_not_taken_for_one() -> None:
    other = [line.replace("one", "three") for line in OPENED]
    names, notes, found = said([*OPENED, *other, "x -> [ATTACH]* {a,0,true,0,0,NULL,NULL}", *CLOSED])
    assert len(names) - names.count("1 skipped") == 6
    assert "11 frames skipped: the log does not say to which connection or session" in notes[0]
    assert found == []


def test_two_sessions_at_a_time_are_not_taken_for_one() -> None:
    _, notes, found = said([*OPENED, OPENED[4], "x -> [FLOW]* {0,65536,0,65536,0,0,100}", *CLOSED])
    assert "6 frames skipped: the log does not say to which connection or session" in notes[0]
    assert found == []


def test_a_log_without_the_beginning_of_its_connection_is_not_guessed() -> None:
    with pytest.raises(CaptureError, match="not a capture file"):
        said([*OPENED[2:], *CLOSED])


def test_the_answer_to_a_session_on_another_channel_is_unknown() -> None:
    lines = [line.replace("* {0,0,2048", "* {7,0,2048") for line in OPENED]
    _, _, found = said([*lines, *CLOSED])
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "x -> [OPEN]* {one,two,three,four}",
        "x -> [OPEN]* {one",
        "x -> [ATTACH]* {a,-1,true}",
        "x -> [FLOW]* {0,65536,0,65536,0,0,100,1,maybe}",
        "x -> [BEGIN]* {65536,0,1,1}",
        "x -> [CLOSE]* {1,2}",
        "DEBUG -> FlowFrame(handle=)",
        "DEBUG <- FlowFrame(handle=1, more=2)",
        "DEBUG <- CloseFrame(error=" + "[" * 2000 + "]" * 2000 + ")",
        "DEBUG -> FlowFrame(incoming_window=__import__('os').abort())",
    ],
)
def test_a_line_that_cannot_be_read_is_a_note_and_no_fault(line: str) -> None:
    opened = OPENED if line.startswith("x") else AZURE
    _, notes, found = said([*opened, line, *(CLOSED if opened is OPENED else [])])
    assert found == ([] if opened is OPENED else ["amqp10/S-CH-LOWEST"])  # as in captures of this library
    assert any("the frame in this line cannot be read" in note for note in notes) or "incoming_window" in line


AZURE = [
    r"DEBUG -> Header(b'AMQP\x00\x01\x00\x00')",
    r"DEBUG <- Header(b'AMQP\x00\x01\x00\x00')",
    "DEBUG -> OpenFrame(container_id='one', hostname=None)",
    "DEBUG <- OpenFrame(container_id=b'two', hostname=None)",
    "DEBUG -> BeginFrame(remote_channel=None, next_outgoing_id=0, incoming_window=1, outgoing_window=1)",
    "DEBUG <- BeginFrame(remote_channel=1, next_outgoing_id=0, incoming_window=1, outgoing_window=1)",
]


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.sampled_from([*OPENED, *CLOSED]), st.text(max_size=30)), max_size=30),
    st.lists(st.one_of(st.sampled_from(AZURE), st.text(max_size=30)), max_size=30),
    st.booleans(),
    st.lists(st.integers(1, 80), min_size=1, max_size=4),
)
def test_any_lines_are_read_in_any_pieces(
    of_uamqp: list[str], of_azure: list[str], first: bool, sizes: list[int]
) -> None:
    lines = [*OPENED, *of_uamqp] if first else [*AZURE, *of_azure]
    octets = "\n".join(lines).encode("utf-8", "replace")

    def shown(source: Any) -> list[str] | str:
        try:
            with amqpscope.Capture(source, CaptureOptions(judge=True), name="log") as capture:
                found = [repr(record) for record in capture]
                found += [f"{one.rule} {one.certain}" for one in capture.take_findings()]
                assert not capture.mishaps
                return found + [note.detail for note in capture.notes]
        except CaptureError as error:
            return str(error)

    assert shown(Trickle(octets, sizes)) == shown(io.BytesIO(octets))


@pytest.mark.parametrize(
    "line",
    [
        "x " + "-> [" * 500_000,
        "x -> [OPEN]* {" + "{" * 1_000_000,
        "x -> [OPEN]* " + "-> [OPEN]* {" * 100_000 + "}",
        "x -> [ATTACH]* {a,0,true,0,0,NULL,NULL," + "{" * 500_000 + "}" * 500_000 + "}",
        "DEBUG -> OpenFrame(" + "(" * (MAX_LOG_TUPLE - 100),
        "DEBUG -> OpenFrame(container_id=" + "-" * (MAX_LOG_TUPLE - 100) + "1)",
        "DEBUG -> OpenFrame(" * 100_000,
    ],
    ids=["arrows", "brackets", "frames", "maps", "tuples", "signs", "many"],
)
def test_a_hostile_line_takes_no_longer_than_another_one(line: str) -> None:
    before = time.process_time()
    said([*OPENED, line] if line.startswith("x") else [*AZURE, line])
    assert time.process_time() - before < 3

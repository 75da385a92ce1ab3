"""Logs made by hand: what they prove about each peer, what is damaged in them, and what is hostile."""

from __future__ import annotations

import io
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.judged import Trickle

import amqpscope
from amqpscope import Capture, CaptureError, CaptureOptions
from amqpscope.limits import MAX_LOG_LINE
from amqpscope.model.finding import Finding

OPENING = """\
[0x1]:  -> AMQP
[0x1]:  <- AMQP
[0x1]:0 -> @open(16) [container-id="one"]
[0x1]:0 <- @open(16) [container-id="two"]
[0x1]:0 -> @begin(17) [next-outgoing-id=0x0, incoming-window=0xff, outgoing-window=0xff]
[0x1]:0 <- @begin(17) [remote-channel=0x0, next-outgoing-id=0x0, incoming-window=0xff, outgoing-window=0xff]
[0x1]:0 -> @attach(18) [name="a", handle=0x0, role=false, source=@source(40) [], target=@target(41) [], \
initial-delivery-count=0x0]
[0x1]:0 <- @attach(18) [name="a", handle=0x0, role=true, source=@source(40) [], target=@target(41) []]
"""
FLOW = """\
[0x1]:0 <- @flow(19) [next-incoming-id=0x0, incoming-window=0xff, next-outgoing-id=0x0, \
outgoing-window=0xff, handle=0x0, delivery-count=0x0, link-credit=0x%x, drain=false]
"""
TRANSFER = """\
[0x1]:0 -> @transfer(20) [handle=0x0, delivery-id=0x%x, delivery-tag=b"%d", message-format=0x0, \
settled=true] (5) "\\x00Sw\\xa1\\x00"
"""
TAKEN_BACK = OPENING + FLOW % 10 + FLOW % 0 + TRANSFER % (0, 0)


def of_the_peer(log: str) -> str:
    """The log that the other endpoint would print if nothing crossed on the way."""
    return log.replace("->", "<>").replace("<-", "->").replace("<>", "<-")


def read(log: str | bytes) -> tuple[list[Finding], list[str], Capture]:
    """The findings of a log, its notes, and its frames."""
    octets = log.encode() if isinstance(log, str) else log
    with Capture(io.BytesIO(octets), CaptureOptions(judge=True), name="log") as capture:
        for _ in capture.blocks():
            pass
        return capture.take_findings(), [f"{note.code}: {note.detail}" for note in capture.notes], capture


def found(log: str) -> list[tuple[str, str, bool]]:
    return [(one.rule, one.peer, one.certain) for one in read(log)[0]]


def test_the_endpoint_that_wrote_the_log_had_read_what_it_had_logged() -> None:
    assert found(TAKEN_BACK) == [("amqp10/L-CREDIT", "client", True)]


def test_the_peer_may_not_have_read_what_was_on_its_way() -> None:
    assert found(of_the_peer(TAKEN_BACK)) == [("amqp10/L-CREDIT", "client", False)]


def test_what_needs_octets_is_silent() -> None:
    # A message without a body, a frame that would be larger than max-frame-size.
    log = OPENING.replace('"two"', '"two", max-frame-size=0x200').replace('"a"', f'"{"a" * 600}"')
    log += FLOW % 10 + TRANSFER % (0, 0)
    assert found(log) == []
    assert (
        "the log has no octets, so amqpscope knows nothing about encodings, sizes and messages"
        in read(log)[1][0]
    )


@pytest.mark.parametrize("prefix", ["", "AMQP:FRAME:"])
def test_old_and_new_proton_say_the_same(prefix: str) -> None:
    assert found(TAKEN_BACK.replace("]:0 ", f"]: {prefix}0 " if prefix else "]:0 ")) == found(TAKEN_BACK)


def test_a_router_logs_with_a_time_and_a_number() -> None:
    log = "".join(
        f"2026-04-05 14:54:{second:02}.038137 -0400 SERVER (trace) {line.replace('0x1', 'C7')}\n"
        for second, line in enumerate(TAKEN_BACK.splitlines())
    )
    findings, notes, _ = read(log)
    assert [one.rule for one in findings] == ["amqp10/L-CREDIT"]
    assert findings[0].time == 1_775_415_250_038_137_000
    assert not any("no-time" in note for note in notes)


def test_connections_differ_by_their_names_and_by_their_beginnings() -> None:
    other = TAKEN_BACK.replace("0x1]", "0x2]")
    mixed = "".join(a + b for a, b in zip(TAKEN_BACK.splitlines(True), other.splitlines(True), strict=True))
    findings, notes, capture = read(mixed + "something else\n\n" + TAKEN_BACK)
    assert [one.rule for one in findings] == ["amqp10/L-CREDIT"] * 3
    assert [one.connection.id for one in capture.connections] == [
        f"0.0.0.0:{port}>0.0.0.0:5672#0" for port in (1, 2, 3)
    ]
    assert "33 frames; 1 line with other content skipped" in notes[0]


@pytest.mark.parametrize("line", range(len(TAKEN_BACK.splitlines())))
def test_a_line_that_is_damaged_is_a_note_and_no_fault(line: int) -> None:
    lines = (OPENING + FLOW % 10 + TRANSFER % (0, 0) + TRANSFER % (1, 1)).splitlines(True)
    lines[line] = lines[line][: len(lines[line]) - 6] + "#&\n"
    findings, notes, _ = read("".join(lines))
    assert not [one for one in findings if one.certain]
    assert any("log" in note for note in notes)


def test_fields_behind_the_end_of_a_line_that_was_cut_are_unknown() -> None:
    log = OPENING.replace(", initial-delivery-count=0x0]", ", ... (truncated)")
    assert read(log + FLOW % 10)[0] == []


def test_a_line_that_is_too_long_is_passed_over() -> None:
    long = '[0x1]:0 -> @close(24) [error="' + "x" * MAX_LOG_LINE + "\n"
    findings, notes, _ = read(OPENING + long + FLOW % 1)
    assert not [one for one in findings if one.certain]
    assert "capture/log-damaged: the line is too long" in notes


def test_what_is_no_log_is_refused_as_before() -> None:
    for octets in (b"nothing to see here\n" * 9, b"[0x1]:0 -> nothing\n", b"\0\0\0\0" + TAKEN_BACK.encode()):
        with pytest.raises(CaptureError, match="not a capture file"):
            read(octets)


LINES = st.sampled_from([*TAKEN_BACK.splitlines(True), *of_the_peer(TAKEN_BACK).splitlines(True)])


@settings(max_examples=40)
@given(
    st.lists(st.one_of(LINES, st.text(max_size=40), st.binary(max_size=40)), max_size=30),
    st.lists(st.integers(1, 80), min_size=1, max_size=4),
    st.integers(0, 600),
)
def test_any_lines_are_read_in_any_pieces(parts: list[str | bytes], sizes: list[int], cut: int) -> None:
    rest = (part.encode("utf-8", "replace") if isinstance(part, str) else part for part in parts)
    octets = OPENING.encode() + b"".join(rest)
    octets = octets[: len(octets) - cut % len(octets)]

    def shown(source: io.BytesIO) -> list[str] | str:
        try:
            with amqpscope.Capture(source, CaptureOptions(judge=True), name="log") as capture:
                lines = [repr(record) for record in capture]
                lines += [f"{one.rule} {one.certain}" for one in capture.take_findings()]
                assert not capture.mishaps
                return lines + [note.detail for note in capture.notes]
        except CaptureError as error:
            return str(error)

    assert shown(Trickle(octets, sizes)) == shown(io.BytesIO(octets))


@pytest.mark.parametrize(
    "line",
    [
        "[0x1]: " + " " * 1_000_000 + "->",
        "[0x1]:" * 100_000 + " RAW:",
        "[0x1]:0 -> @open(16) [" + "[" * 500_000,
    ],
    ids=["blanks", "beginnings", "nested"],
)
def test_a_hostile_line_takes_no_longer_than_another_one(line: str) -> None:
    before = time.process_time()
    read(OPENING + line + "\n")
    assert time.process_time() - before < 3

"""Logs of which a part is missing, or in which a line is not what it seems: nobody is accused for it."""

from __future__ import annotations

import io
import json
import re
import time
from collections import Counter
from pathlib import Path

import pytest
from support.commands import amqpscope as command
from support.written_logs import found, written

from amqpscope import Capture, CaptureError

from .test_logs_without_names import AZURE, CLOSED, OPENED, said
from .test_proton_j_logs import REAL, in_proton_j
from .test_written_logs import GO

FOLDER = Path(__file__).parent / "recorded"
EACH_KIND = 4
"""So many frames of a kind and direction are cut, one at a time."""


@pytest.mark.parametrize(
    "behind", ["-> Header", "<- Header", "-> [OPEN", "<- [OPEN", "<- [BEGIN", "-> [CLOSE"]
)
def test_a_late_close_is_not_one_of_the_next_connection_of_uamqp(behind: str) -> None:
    lines = (FOLDER / "uamqp.log").read_bytes().splitlines(True)
    at = max(at for at, line in enumerate(lines) if f"b'{behind}".encode() in line)
    late = b"2026-11-23 19:10:12,103 uamqp.c_uamqp INFO b'<- [CLOSE]* {}'\n"
    assert found(b"".join([*lines[: at + 1], late, *lines[at + 1 :]])) <= found(io.BytesIO(b"".join(lines)))


@pytest.mark.parametrize(
    "behind", ["-> Header", "-> OpenFrame", "<- Header", "<- OpenFrame", "<- BeginFrame"]
)
def test_a_late_close_is_not_one_of_the_next_connection_of_azure(behind: str) -> None:
    lines = (FOLDER / "azure-python.log").read_bytes().splitlines(True)
    at = max(at for at, line in enumerate(lines) if behind.encode() in line)
    late = b"2026-11-23 19:10:13,419 azure.servicebus._pyamqp._connection DEBUG <- CloseFrame(error=None)\n"
    assert found(b"".join([*lines[: at + 1], late, *lines[at + 1 :]])) <= found(io.BytesIO(b"".join(lines)))


def test_a_connection_that_one_side_has_closed_is_not_over() -> None:
    names, notes, found = said([*OPENED, *CLOSED[:3], *OPENED, *CLOSED])
    assert not any(name.startswith("2") for name in names)
    assert "10 frames skipped" in " ".join(notes)
    assert found == []


@pytest.mark.parametrize("name", ["uamqp", "azure-python", "azure-python-violating"])
def test_a_log_with_a_line_cut_short_accuses_nobody_more(name: str) -> None:
    lines = (FOLDER / f"{name}.log").read_bytes().splitlines(True)
    accused = found(b"".join(lines))
    tried: Counter[bytes] = Counter()
    for at, line in enumerate(lines):
        place = max(line.rfind(b"-> "), line.rfind(b"<- "))
        if place < 0 or b"state changed" in line:
            continue
        # Of many frames of one kind, the first few: each costs a reading of the whole log.
        kind = line[place : place + 14]
        tried[kind] += 1
        if tried[kind] > EACH_KIND:
            continue
        for length in (2, 4, 9):
            cut = line[: place + length].rstrip() + b"\n"
            octets = b"".join([*lines[:at], cut, *lines[at + 1 :]])
            try:
                assert found(octets) <= accused, cut
            except CaptureError:
                assert b"-> Header" in line  # without it no frame can be placed


@pytest.mark.parametrize("by_client", [True, False])
def test_a_line_of_proton_j_cut_short_accuses_nobody_more(by_client: bool) -> None:
    lines = written(FOLDER / "proton-frames.pcapng", by_client, in_proton_j).splitlines(True)
    accused = found("".join(lines).encode())
    for at, line in enumerate(lines):
        place = line.index("] ") + 5
        for length in (3, 8):
            cut = line[: place + length].rstrip() + "\n"
            octets = "".join([*lines[:at], cut, *lines[at + 1 :]]).encode()
            assert found(octets) <= accused, cut


@pytest.mark.parametrize(
    ("opened", "line"),
    [
        (OPENED, "the state goes -> [T of x"),
        (OPENED, "from a -> b"),
        (AZURE, "Link state changed: <LinkState.DETACHED: 0> -> <LinkState.ATTACH_SENT: 1>"),
        (AZURE, "the door was closed -> Open"),
        (REAL.splitlines(), "[12:30] -> Empty cart"),
        (REAL.splitlines(), "12:30 -> SA"),
    ],
)
def test_other_text_with_an_arrow_is_other_text(opened: list[str], line: str) -> None:
    _, notes, _ = said([*opened, line])
    assert "1 line with other content skipped" in notes[0]
    assert not any("cannot be read" in note for note in notes)


@pytest.mark.parametrize("line", ["[12:30] -> Empty cart", "[12:30] -> SA", "x -> [TRANS", "DEBUG -> Head"])
def test_a_text_without_a_whole_frame_is_no_log(line: str) -> None:
    with pytest.raises(CaptureError, match="not a capture file"):
        said([line, line])


def test_many_brackets_take_no_longer_than_other_text() -> None:
    before = time.process_time()
    said([*AZURE, *["DEBUG " + "-> OpenFrame(" * 2000 + ")" * 33000 + "x"] * 5])
    assert time.process_time() - before < 2


@pytest.mark.parametrize("cut", range(1, 6))
def test_a_log_of_fields_that_begins_later_has_no_octets_either(cut: int, tmp_path: Path) -> None:
    lines = (FOLDER / "proton-frames.log").read_bytes().splitlines(True)
    assert found(b"".join(lines[cut:])) <= found(b"".join(lines))


def test_a_log_of_fields_that_begins_with_the_outcome_is_a_log_of_fields(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_text("\n".join(REAL.splitlines()[4:]).replace("hostname='h.example'", "hostname='null'"))
    assert found(log.read_bytes()) == set()
    assert "amqpscope:unlogged" not in command(capsys, "read", "-vv", log).out


@pytest.mark.parametrize(
    ("error", "description"),
    [
        ("amqp:not-found,Entity a, not found", "Entity a, not found"),
        ("amqp:not-found,a, b, c", "a, b, c"),
        ("amqp:not-found,a}b{{", "a}b{{"),
        ("amqp:not-found,a", "a"),
        ("amqp:not-found", None),
        ("amqp:not-found,a,{[k:v]}", "not in the log"),
    ],
)
def test_the_description_of_an_error_may_have_any_marks(
    error: str, description: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    lines = [f"x <- [DETACH]* {{0,true,* {{{error}}}}}", f"x <- [CLOSE]* {{* {{{error}}}}}"]
    log.write_text("\n".join([*OPENED, *lines]) + "\n")
    shown = [json.loads(one) for one in command(capsys, "read", "--format", "ndjson", log).out.splitlines()]
    for one in shown[-2:]:
        given = one["fields"]["error"]
        unknown = {problem["path"].split(".")[-1] for problem in one["problems"]}
        assert "amqp:not-found" in json.dumps(given)
        if description == "not in the log":
            assert unknown == {"description", "info"}
        elif description is None:
            assert "description" not in json.dumps(given)
        else:
            assert json.dumps(description) in json.dumps(given)
    assert [one["name"] for one in shown[-2:]] == ["detach", "close"]


@pytest.mark.parametrize("payload", ["a} (b", 'a} (b} (7) "c', ', batchable=true} (5) "d'])
def test_a_payload_may_look_like_the_end_of_a_frame(payload: str) -> None:
    lines = written(FOLDER / "proton-frames.pcapng", True, in_proton_j).splitlines()
    at = next(at for at, line in enumerate(lines) if "Transfer{" in line)
    head = re.match(r".*?, batchable=[a-z]+\}", lines[at])
    assert head is not None
    lines[at] = f'{head[0]} ({len(payload)}) "{payload}"'
    with Capture(io.BytesIO("\n".join(lines).encode()), name="log") as capture:
        transfers = [one.frame for one in capture if one.frame.name == "transfer"]
        assert not any("cannot be read" in note.detail for note in capture.notes)
    assert transfers[0].payload == payload.encode()


def go(*lines: str) -> set[tuple[str, str]]:
    """The certain findings in a log of go-amqp without addresses."""
    return found("".join(f"{line}\n" for line in lines).encode())


GO_OPENED = GO.splitlines()
GO_ENDS, GO_ENDED, GO_CLOSES, GO_CLOSED = (
    f"14:26:22.500000 {place}: Frame{{Type: AMQP, Channel: 0, Body: {name}{{Error: *Error(nil)}}}}"
    for name in ("End", "Close")
    for place in ("TX (connWriter)", "RX (connReader)")
)
GO_OVER = (GO_ENDS, GO_ENDED, GO_CLOSES, GO_CLOSED)


def test_connections_of_go_one_after_the_other_are_legal() -> None:
    octets = "\n".join([*GO_OPENED, *GO_OVER, *GO_OPENED, *GO_OVER, ""]).encode()
    with Capture(io.BytesIO(octets), name="log") as capture:
        names = [record.frame.name for record in capture]
    assert names.count("close") == 4
    assert found(octets) == set()


@pytest.mark.parametrize(
    ("first", "late"), [(GO_CLOSES, GO_CLOSED), (GO_CLOSED, GO_CLOSES)], ids=["received", "sent"]
)
@pytest.mark.parametrize("behind", [1, 2, 3])
def test_a_late_close_is_not_one_of_the_next_connection_of_go(first: str, late: str, behind: int) -> None:
    opened = [*GO_OPENED[:behind], late, *GO_OPENED[behind:]]
    assert go(*GO_OPENED, first, *opened, *GO_OVER) == set()


def test_two_lines_of_go_in_one_accuse_nobody() -> None:
    glued = GO_OPENED[2] + GO_OPENED[3]
    assert go(*GO_OPENED[:2], glued, *GO_OVER) == set()


@pytest.mark.parametrize("end", ["146", " T", "TX", ": Frame{Type: AMQP, Channel: "])
@pytest.mark.parametrize("address", ["", " 0xc000002180"], ids=["without", "with"])
def test_an_open_of_go_that_is_cut_short_accuses_nobody(address: str, end: str) -> None:
    opens, *others = (line.replace("): ", f"{address}): ") for line in (*GO_OPENED, *GO_OVER))
    cut = opens[: opens.index(end) + len(end)]
    assert go(opens, *others, cut, *others) == set()


def test_a_time_of_a_line_has_63_bits() -> None:
    octets = "".join(f"2400-01-01 {line}\n" for line in GO_OPENED).encode()
    with Capture(io.BytesIO(octets), name="log") as capture:
        times = [record.time for record in capture]
    assert len(times) >= len(GO_OPENED)
    assert max(times) < 1 << 63

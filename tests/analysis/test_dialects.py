"""Connections in the draft of April 2011, and in both dialects, in any segments and after a reload."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from support import amqp10_encode as final
from support import draft2011_encode as draft
from support.commands import amqpscope
from support.connection_harness import ConnectionHarness
from support.dialogue_draft2011 import Dialogue2011
from support.tcp_writer import Capture as Tap

from dissectors.amqp10_draft2011.message import DraftMessage

DRAFT, FINAL = "amqp10-draft2011", "amqp10"

# Of the final specification these would be an open without container-id and an ambiguous flow.
BARE = draft.frame(draft.open_(container_id="c"))
BEGIN = draft.frame(draft.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))
TRANSFERS = b"".join(
    draft.transfer_frames([draft.data(b"x" * 900)], 512, handle=0, delivery_tag=b"t", transfer_id=0)
)
FULL = draft.frame(draft.open_(container_id="c", hostname="h", max_frame_size=4096))
FINAL_OPEN = final.frame(final.open_(container_id="s"))
FINAL_BEGIN = final.frame(final.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1))


def spoken(
    parts: Iterable[tuple[int, bytes]], *, reload: bool = False, each: int = 0, syn: bool = True
) -> ConnectionHarness:
    harness = ConnectionHarness(syn=syn, reload=reload)
    for direction, octets in parts:
        harness.send(direction, octets, each=each)
    harness.finish()
    return harness


def shown(harness: ConnectionHarness) -> list[tuple[int, str, str, int, str]]:
    return [
        (int(one.direction), one.frame.name, one.frame.dialect, int(one.frame.offset), repr(one.frame.body))
        for one in harness.out
    ]


HEADERS = [(0, final.AMQP_HEADER), (1, final.AMQP_HEADER)]

CONVERSATIONS = {
    "draft": ([*HEADERS, (0, FULL), (1, FULL), (0, BEGIN + TRANSFERS)], DRAFT),
    "suspect": ([*HEADERS, (0, BARE), (1, BARE), (0, BEGIN), (1, BEGIN), (0, TRANSFERS)], DRAFT),
    "one side": ([*HEADERS, (0, BARE + BEGIN + TRANSFERS)], DRAFT),
    "mixed": ([*HEADERS, (0, FULL), (1, FINAL_OPEN), (0, BEGIN + TRANSFERS), (1, FINAL_BEGIN)], FINAL),
    "mixed, the other way": ([*HEADERS, (0, FINAL_OPEN), (1, BARE), (0, FINAL_BEGIN), (1, BEGIN)], FINAL),
    "final": ([*HEADERS, (0, FINAL_OPEN), (1, FINAL_OPEN), (0, FINAL_BEGIN)], FINAL),
}


@pytest.mark.parametrize(("parts", "name"), CONVERSATIONS.values(), ids=list(CONVERSATIONS))
def test_the_same_however_it_comes(parts: list[tuple[int, bytes]], name: str) -> None:
    harness = spoken(parts)
    assert harness.connection.protocol == name
    whole = shown(harness)
    assert len(whole) > 3
    for reload, each in ((True, 0), (False, 7), (True, 50)):
        other = spoken(parts, reload=reload, each=each)
        assert other.connection.protocol == name
        assert shown(other) == whole


@pytest.mark.parametrize("conversation", ["draft", "suspect", "one side", "mixed"])
def test_each_side_is_decoded_in_its_dialect(conversation: str) -> None:
    harness = spoken(CONVERSATIONS[conversation][0], reload=True)
    for record in harness.out:
        drafted = record.frame.kind == "amqp" and (record.direction == 0 or conversation != "mixed")
        assert record.frame.dialect == ("draft2011" if drafted else "")
        assert record.frame.problems == []
    messages = [record.message for record in harness.out if record.message is not None]
    (message,) = messages
    assert isinstance(message, DraftMessage)
    assert (message.complete, message.octets) == (True, b"x" * 900)


def test_the_middle_of_a_draft_connection() -> None:
    for reload in (False, True):
        harness = ConnectionHarness(syn=False, reload=reload)
        harness.send(0, b"the end of a frame" + BEGIN + TRANSFERS, each=11)
        harness.skip(0, 100)
        harness.send(0, BEGIN)
        harness.finish()
        assert harness.connection.protocol == DRAFT
        names = [record.frame.name for record in harness.out if record.frame.kind == "amqp"]
        # A begin alone does not suffice where frames are searched for.
        assert names[0] == "transfer"
        assert names[-1] == "begin"


def test_nothing_waits_for_a_side_that_says_nothing() -> None:
    harness = ConnectionHarness()
    harness.send(0, final.AMQP_HEADER + FULL)
    assert harness.out == []
    for _ in range(10):
        harness.send(0, BEGIN)
    assert len(harness.out) >= 8
    assert harness.connection.protocol == DRAFT


@pytest.mark.parametrize("reload", [False, True])
def test_a_sign_of_the_draft_after_frames_that_fit_both_dialects(reload: bool) -> None:
    """Such frames are read as final ones. One that has a sign of the draft is marked, and so are the next."""
    numbers = {"incoming_window": 1, "next_outgoing_id": 0, "outgoing_window": 1}
    plain = draft.frame(draft.flow(next_incoming_id=0, **numbers))
    echo = draft.frame(draft.flow(next_incoming_id=0, echo=True, **numbers))
    harness = ConnectionHarness(syn=False, reload=reload)
    for octets in (plain,) * 12 + (echo, echo, plain):
        harness.send(0, octets)
    harness.finish()
    assert [one.frame.assumed for one in harness.out] == [False] * 12 + [True] * 3
    assert {one.frame.dialect for one in harness.out} == {""}


def test_a_final_peer_that_leaves_out_its_first_field() -> None:
    harness = spoken([*HEADERS, (0, final.frame(final.open_(hostname="h")))])
    assert harness.connection.protocol == "amqp10-unknown"  # or a peer of the draft without max-frame-size
    assert [problem.code for problem in harness.out[-1].frame.problems] == ["P-OPEN-MAND"]


@pytest.mark.parametrize("reload", [False, True])
def test_a_wrong_frame_header_stays_wrong_in_any_dialect(reload: bool) -> None:
    """A frame whose data offset lies behind its end comes before anything shows the dialect."""
    harness = spoken([(0, final.AMQP_HEADER + final.frame(final.close(), doff=9))], reload=reload)
    frame = harness.out[-1].frame
    assert (frame.name, [problem.code for problem in frame.problems]) == ("undecodable", ["F-DOFF-RANGE"])


@pytest.fixture
def capture(tmp_path: Path) -> str:
    tap = Tap()
    d = Dialogue2011(capture=tap)
    d.linked(credit=2)
    d.client.transfer()
    d.goodbye()
    return str(tap.write(tmp_path / "draft.pcap"))


def test_commands_name_the_draft(capture: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert f'"protocol": "{DRAFT}"' in amqpscope(capsys, "read", "--format", "ndjson", capture).out
    assert "AMQP 1.0 (draft of April 2011)" in amqpscope(capsys, "summary", capture).out
    assert "1 fragment" not in amqpscope(capsys, "read", capture).out
    assert "4 fragments message of" in amqpscope(capsys, "read", capture).out
    assert "hello" in amqpscope(capsys, "read", "-vv", capture).out
    assert '"amqp-data", "number": 2' in amqpscope(capsys, "read", "--format", "json", capture).out


@pytest.mark.parametrize("command", ["read", "check", "summary"])
def test_the_dialect_may_be_forced(command: str, capture: str, capsys: pytest.CaptureFixture[str]) -> None:
    plain = amqpscope(capsys, command, capture)
    assert plain.status == 0
    assert amqpscope(capsys, command, "--dialect", "draft2011", capture).out == plain.out
    assert amqpscope(capsys, command, "--dialect", "final", capture).out != plain.out

"""`amqpscope why --end`: what ended, who did it, and the first cause that the capture shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091

from amqpscope.model.certainty import CERTAIN
from amqpscope.model.finding import Finding
from amqpscope.model.reaction import Reaction
from amqpscope.model.records import Connection, FrameRef
from amqpscope.why.endings import Ended
from amqpscope.why.endings10 import Following10
from amqpscope.why.frame_ref import Position
from amqpscope.why.tracing import Tracing

ROOT = Path(__file__).parent.parent.parent / "captures"


def endings(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[list[dict[str, Any]]]:
    """Of each connection what ended on it."""
    result = amqpscope(capsys, "why", "--end", "--format", "json", *arguments)
    assert (result.status, result.err) == (0, "")
    found = json.loads(result.out)
    assert found["schema"] == "amqpscope/why/1"
    return [connection["endings"] for connection in found["connections"]]


def ends_of(capsys: pytest.CaptureFixture[str], d: Conversation, folder: Path) -> list[dict[str, Any]]:
    """What ended in a dialogue."""
    capture = folder / "dialogue.pcap"
    capture.write_bytes(d.pcap())
    (found,) = endings(capsys, capture)
    return found


def reasons(ending: dict[str, Any]) -> list[tuple[bool, str]]:
    """Of each step back that is no diagnosis: whether it is a cause, and in words."""
    return [(step["sure"], step["what"]) for step in ending["because"] if step["diagnosis"] is None]


def violating(rule: str) -> Path:
    return ROOT / "rules" / rule / "violating.pcap"


def causes(ending: dict[str, Any]) -> list[tuple[bool, int | None, str | None]]:
    """Of each step back: whether it is a cause, its packet, and the rule if it is a finding."""
    return [
        (step["sure"], step["packet"], None if step["finding"] is None else step["finding"]["rule"])
        for step in ending["because"]
    ]


def test_a_close_is_traced_to_the_method_that_it_names(capsys: pytest.CaptureFixture[str]) -> None:
    first, _, _, last = endings(capsys, ROOT / "pika-connection-errors.pcap")
    assert (first[0]["thing"], first[0]["peer"], first[0]["condition"]) == ("connection", "server", "503")
    assert causes(first[0]) == [(True, 16, "amqp091/X-DECL-TYPE-PREFIX")]
    assert first[0]["because"][0]["frame"]["name"] == "exchange.declare"
    assert first[1]["what"] == "ended with the connection"
    assert causes(first[1])[-1] == (True, 16, "amqp091/X-DECL-TYPE-PREFIX")
    assert causes(last[0]) == [(True, 83, "amqp091/B-CTAG-UNIQUE")]


def test_an_error_answers_what_was_said_since_the_last_one(capsys: pytest.CaptureFixture[str]) -> None:
    (connection, _) = endings(capsys, ROOT / "pika-channel-errors.pcap")
    refused = {one["packet"]: one for one in connection if one["thing"] == "channel 1"}
    assert causes(refused[103]) == [(True, 102, "amqp091/Q-DECL-RESERVED")]
    assert refused[103]["because"][0]["frame"]["name"] == "queue.declare"
    # The one before is answered with the same code, and is not what this one is about.
    assert causes(refused[109]) == [(True, 108, None)]
    assert refused[109]["because"][0]["frame"]["name"] == "basic.consume"


def test_a_finding_that_another_error_was_for_is_no_cause() -> None:
    connection = Connection("c.pcap", 0, 0, bytes(12))
    connection.client = 0
    spot = FrameRef(0, 10, 0, 100, "transfer", 0)
    finding = Finding("amqp10/L-CREDIT", CERTAIN, "beyond", connection, spot, {}, [])
    finding.reaction = Reaction("detach", packet=30)
    condition = "amqp:link:transfer-limit-exceeded"
    for before, causes in ((None, [finding]), (5, [finding]), (20, [])):
        answered = None if before is None else Position(1, 0, 1, before, 0, "detach", 0)
        mark = Position(1, 50, 60, 30, 0, "close", 0)
        following = Following10(connection)
        following.whole.ended = Ended(
            "server", "was closed", mark, condition, None, 0, None, answered, None, None
        )
        (ending,) = Tracing(following, [finding], []).endings()
        assert [step.finding for step in ending.steps if step.finding is not None] == causes


def test_what_only_came_before_is_no_cause(capsys: pytest.CaptureFixture[str]) -> None:
    (connection, _) = endings(capsys, ROOT / "pika-channel-errors.pcap")
    assert connection[0]["condition"] is None
    assert causes(connection[0])[0] == (False, 109, None)
    assert "  perhaps  the server had reported an error earlier" in (
        amqpscope(capsys, "why", "--end", ROOT / "pika-channel-errors.pcap").out
    )


def test_a_session_is_ended_for_a_broken_rule(capsys: pytest.CaptureFixture[str]) -> None:
    (connection,) = endings(capsys, violating("amqp10/L-UNATTACHED-TRANSFER"))
    answered = [one for one in connection if one["condition"]]
    for one in answered:
        assert (True, 13, "amqp10/L-UNATTACHED-TRANSFER") in causes(one)
    assert connection[0]["thing"] == "connection"


def test_a_link_that_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    found = [
        one for path in sorted(ROOT.glob("rhea*.pcap")) for part in endings(capsys, path) for one in part
    ]
    refused = [one for one in found if one["because"] and "refused link" in one["because"][0]["what"]]
    assert refused
    for one in refused:
        assert one["thing"].startswith("link ")
        step, *others = one["because"]
        assert [other["diagnosis"]["code"] for other in others] == ["diag/link-refused"] * len(others)
        assert step["frame"]["name"] == "attach"
        assert step["frame"]["peer"] != one["peer"]


def test_a_login_that_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    connections = endings(capsys, ROOT / "librabbitmq-refused.pcap")
    step = connections[0][0]["because"][0]
    assert (step["what"], step["frame"]["name"]) == ("the refused login", "connection.start-ok")


def test_a_silence_for_longer_than_agreed(capsys: pytest.CaptureFixture[str]) -> None:
    found = [one for part in endings(capsys, ROOT / "pika-heartbeat-missed.pcap") for one in part]
    silent = [step for one in found for step in one["because"] if " was silent for " in step["what"]]
    assert silent
    assert "the heartbeat allows " in silent[0]["what"]


def test_a_stream_that_ends_without_a_close(capsys: pytest.CaptureFixture[str]) -> None:
    (connection,) = endings(capsys, violating("amqp091/C-CLOSE-HANDSHAKE"))
    assert connection[0]["what"] == "was ended by the client without a close, by FIN in packet 12"
    assert [one["what"] for one in connection[1:]] == ["still existed when the connection ended"]


def test_one_connection_of_several(capsys: pytest.CaptureFixture[str]) -> None:
    capture = ROOT / "pika-connection-errors.pcap"
    everything = endings(capsys, capture)
    assert endings(capsys, "--connection", "3", capture) == [everything[3]]
    result = amqpscope(capsys, "why", "--end", "--connection", "77", capture)
    assert (result.status, result.err) == (2, f"amqpscope: {capture}: no connection 77 (there are 0 to 3)\n")
    assert amqpscope(capsys, "why", "--end", "--connection", "x", capture).status == 2


def test_what_makes_no_sense_together(capsys: pytest.CaptureFixture[str]) -> None:
    capture = ROOT / "pika-connection-errors.pcap"
    for arguments, words in (
        (["--end", capture, 3], "--end: cannot be combined with a packet or --frame"),
        (
            [capture],
            f"a PACKET is needed: amqpscope why {capture} PACKET; `amqpscope check` names packets with "
            f"findings, and `amqpscope why --end {capture}` explains how connections ended",
        ),
        (["--connection", "1", capture, 3], "--connection: only with --end"),
    ):
        result = amqpscope(capsys, "why", *arguments)
        assert (result.status, result.out, result.err) == (2, "", f"amqpscope: {words}\n")


def test_an_orderly_end_has_no_cause(capsys: pytest.CaptureFixture[str]) -> None:
    capture = ROOT / "demo.pcap"
    for ending in (one for part in endings(capsys, capture) for one in part if one["condition"] is None):
        assert ending["because"] == [] or ending["what"].startswith("ended with")
    shown = amqpscope(capsys, "why", "--end", capture).out
    assert "  cause    the capture does not show why\n" in shown
    assert "nothing shows one" not in shown


# A link that ends with an error: when, with which condition, whether the attach that answers has a
# terminus; and what is shown about it.
LINKS = [
    (0, "amqp:not-found", False, [(True, "the attach of the refused link")]),
    (660, "amqp:not-found", False, [(True, "the attach of the refused link")]),
    (0, "amqp:not-found", True, [(False, "the attach of the refused link")]),
    (5, "amqp:not-found", True, [(False, "the last frame of the client that had arrived")]),
    (30, "amqp:not-found", True, []),
    (660, "amqp:link:detach-forced", True, [(False, "neither peer sent anything for 660.001 s")]),
    (
        *(0, "amqp:link:detach-forced", True),
        [
            (
                False,
                "an operator's decision, or a shutdown: "
                "the error that the server reports does not accuse the other peer",
            )
        ],
    ),
    (
        *(0, "amqp:link:stolen", True),
        [(False, "the error says that the link was attached again elsewhere")],
    ),
]


@pytest.mark.parametrize(("waited", "condition", "terminus", "because"), LINKS)
def test_why_a_link_ends_that_nothing_was_sent_on(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    waited: int,
    condition: str,
    terminus: bool,
    because: list[tuple[bool, str]],
) -> None:
    d = Dialogue()
    d.begun()
    d.client.attach(name="rx", handle=0, role=True)
    d.server.attach(name="rx", handle=0, role=False, **({} if terminus else {"source": None}))
    d.wait(seconds=waited)
    d.server.detach(handle=0, error=condition)
    d.client.detach(handle=0)
    found = ends_of(capsys, d, tmp_path)
    (link,) = [one for one in found if one["thing"].startswith("link ")]
    assert reasons(link) == because


@pytest.mark.parametrize(
    ("waited", "because"),
    [
        (300, [(False, "neither peer sent anything for 300.000 s")]),
        (
            2,
            [
                (
                    False,
                    "an operator's decision, or a shutdown: "
                    "the error that the server reports does not accuse the other peer",
                )
            ],
        ),
    ],
)
def test_a_silence_of_both_is_no_operator(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, waited: int, because: list[tuple[bool, str]]
) -> None:
    d = Dialogue()
    d.linked(credit=10)
    d.client.transfer()
    d.server.disposition()
    d.wait(seconds=waited)
    d.server.close("amqp:connection:forced")
    d.client.close()
    found = ends_of(capsys, d, tmp_path)
    ((sure, what),) = reasons(found[0])
    assert (sure, what[:33]) == (because[0][0], because[0][1][:33])


def test_heartbeats_are_no_silence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    d = Dialogue()
    d.linked(credit=10)
    for _ in range(12):
        d.wait(seconds=30)
        d.client.empty()
        d.server.empty()
    d.server.close("amqp:connection:forced")
    found = ends_of(capsys, d, tmp_path)
    ((_, what),) = reasons(found[0])
    assert what.startswith("an operator's decision")


def test_a_reset_after_a_long_silence_of_both(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.wait(seconds=351)
    d.client.publish(b"late", routing_key="q")
    d.server.rst()
    found = ends_of(capsys, d, tmp_path)
    assert found[0]["what"].startswith("was ended by the server without a close, by RST")
    (step,) = found[0]["because"]
    assert (step["sure"], step["diagnosis"]["code"]) == (True, "diag/silence")


def test_what_comes_after_the_end_is_no_cause(capsys: pytest.CaptureFixture[str]) -> None:
    # The client gives up while the server is silent; the server's next heartbeat comes half a second later.
    (found,) = endings(capsys, ROOT / "amqplib-server-stalled.pcap")
    connection = found[0]
    assert connection["what"] == "was ended by the client without a close, by FIN in packet 23"
    step, *stalls = connection["because"]
    assert [(one["sure"], one["diagnosis"]["code"]) for one in stalls] == [(True, "diag/heartbeat-late")]
    assert step["sure"]
    assert step["packet"] == 17
    assert step["what"].startswith("the server was silent for ")
    assert step["what"].endswith(" s, but the heartbeat allows only 2 s")


def test_a_stream_that_ends_before_the_other_peer_said_anything(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    d = Dialogue()
    d.client.header()
    d.client.fin()
    d.wait(seconds=1)
    d.server.header()
    d.server.open()
    found = ends_of(capsys, d, tmp_path)
    assert reasons(found[0]) == [(False, "the capture shows no earlier frame of the server")]


def test_an_error_of_long_ago_is_no_cause(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for seconds, steps in ((1, 2), (30, 0)):
        d = Dialogue091()
        d.opened()
        d.channel(1)
        d.client.method("queue.declare", queue="q", passive=True)
        d.server.close_channel(404, "no queue 'q'", "queue.declare")
        d.client.method("channel.close-ok")
        d.wait(seconds=seconds)
        d.goodbye()
        found = ends_of(capsys, d, tmp_path)
        assert len(found[0]["because"]) == steps


def test_who_goes_on_does_not_end_for_an_error_before(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.client.method("queue.declare", queue="q", passive=True)
    d.server.close_channel(404, "no queue 'q'", "queue.declare")
    d.client.method("channel.close-ok")
    d.channel(1)
    d.client.method("channel.close", reply_code=200, reply_text="bye")
    d.server.method("channel.close-ok")
    d.goodbye()
    connection, refused, closed = ends_of(capsys, d, tmp_path)
    assert refused["condition"] == "404"
    assert (connection["because"], closed["because"]) == ([], [])


def crossing() -> tuple[Dialogue091, int]:
    """A publish to no exchange, a close of the client's at once, and the server's with 404 on its way."""
    d = Dialogue091()
    d.opened()
    d.channel(1)
    published = d.client.publish(b"x", exchange="none")
    with d.on_their_way():
        d.client.method("channel.close", reply_code=200, reply_text="bye")
        d.server.close_channel(404, "NOT_FOUND - no exchange 'none' in vhost '/'", "basic.publish")
    d.client.method("channel.close-ok")
    d.goodbye()
    return d, d.packet_number(published)


def test_an_error_that_crosses_the_other_close(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    d, published = crossing()
    connection, own, other = ends_of(capsys, d, tmp_path)
    assert (own["thing"], own["peer"], own["condition"], own["because"]) == ("channel 1", "client", None, [])
    assert (other["thing"], other["peer"], other["condition"]) == ("channel 1", "server", "404")
    assert other["what"] == "was closed by the server, before the server had read the close of the other peer"
    (step,) = other["because"]
    assert (step["sure"], step["packet"], step["frame"]["name"]) == (True, published, "basic.publish")
    assert connection["because"][0]["what"] == "the server had reported an error earlier"


def test_a_frame_is_reported_of_the_error_that_names_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    d, published = crossing()
    capture = tmp_path / "dialogue.pcap"
    capture.write_bytes(d.pcap())
    shown = amqpscope(capsys, "why", capture, published).out
    assert "the channel is closed with 404, and the close names basic.publish" in shown


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (403, [(True, "the refused login")]),
        (541, [(False, "the last frame of the client that had arrived")]),
    ],
)
def test_only_some_errors_refuse_a_login(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, code: int, cause: list[tuple[bool, str]]
) -> None:
    d = Dialogue091()
    d.client.header()
    d.server.start()
    d.client.start_ok()
    d.server.close_connection(code, "refused")
    d.client.method("connection.close-ok")
    d.tcp.goodbye()
    found = ends_of(capsys, d, tmp_path)
    assert reasons(found[0]) == cause


@pytest.mark.parametrize(("deleted", "reported"), [("q", 1), ("other", 0)])
def test_a_consumer_is_cancelled_when_its_queue_is_deleted(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, deleted: str, reported: int
) -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q", consumer_tag="c")
    d.client.method("queue.delete", queue=deleted)
    d.server.method("queue.delete-ok", message_count=0)
    d.server.method("basic.cancel", consumer_tag="c", no_wait=True)
    found = ends_of(capsys, d, tmp_path)
    (consumer,) = [one for one in found if one["thing"].startswith("consumer")]
    assert len(consumer["because"]) == reported


def test_what_has_not_ended_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q", consumer_tag="c")
    path = tmp_path / "open.pcap"
    path.write_bytes(d.pcap())
    lines = amqpscope(capsys, "why", "--end", path).lines
    assert 'channel 1, consumer "c" on channel 1: not ended before the end of the capture' in lines


def test_a_consumer_whose_tag_the_server_chooses_has_an_end(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.client.method("basic.consume", queue="q")
    d.server.method("basic.consume-ok", consumer_tag="made-up")
    d.client.method("basic.cancel", consumer_tag="made-up")
    d.server.method("basic.cancel-ok", consumer_tag="made-up")
    found = ends_of(capsys, d, tmp_path)
    (consumer,) = [one for one in found if one["thing"].startswith("consumer")]
    assert (consumer["thing"], consumer["what"]) == (
        'consumer "made-up" on channel 1',
        "was cancelled by the client",
    )


def test_a_close_is_reported_of_its_answer(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    d = Dialogue091()
    d.opened()
    closed = d.packet_number(d.client.method("connection.close", reply_code=200, reply_text="bye"))
    answer = d.packet_number(d.server.method("connection.close-ok"))
    capture = tmp_path / "dialogue.pcap"
    capture.write_bytes(d.pcap())
    shown = amqpscope(capsys, "why", capture, closed).lines
    assert shown[shown.index("    the answer") + 1].split()[0] == str(answer)


def stalled(by: str) -> Dialogue091:
    """The client takes nothing more, or the server's octets get lost: with a heartbeat of 2 s, for 9 s."""
    d = Dialogue091()
    d.opened(tune={"heartbeat": 2})
    d.channel(1)
    d.server.deliver(b"x")
    if by == "window":
        d.client.end.window = 0
        d.client.end.ack()
        for _ in range(9):
            d.wait(seconds=1)
            d.client.heartbeat()
    else:
        for _ in range(9):
            d.wait(seconds=1)
            d.client.heartbeat()
            d.server.end.retransmit()
    return d


@pytest.mark.parametrize(
    ("by", "why"),
    [
        ("window", "the TCP window of the client left no room"),
        ("resent", "TCP did not acknowledge the octets that the server sent again"),
    ],
)
def test_who_could_not_write_may_have_given_up(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, by: str, why: str
) -> None:
    d = stalled(by)
    d.server.rst()
    found = ends_of(capsys, d, tmp_path)
    ((sure, what),) = reasons(found[0])
    assert not sure
    assert what.startswith("the server could not write for ")
    assert why in what


@pytest.mark.parametrize("by", ["window", "resent"])
def test_who_is_silent_and_could_not_write(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, by: str
) -> None:
    d = stalled(by)
    d.client.rst()
    found = ends_of(capsys, d, tmp_path)
    (silent, kept) = reasons(found[0])
    assert silent[0]
    assert silent[1].startswith("the server was silent for ")
    assert silent[1].endswith(" s, but the heartbeat allows only 4 s")
    assert kept[0]
    assert kept[1].startswith("the server could not write: ")


def test_a_fault_that_brokers_answer_otherwise_than_is_due(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = endings(capsys, violating("amqp091/F-FRAME-END"))
    ((sure, what),) = reasons(found[0])
    assert (found[0]["condition"], sure, what) == ("501", True, "the usual answer of brokers to this fault")


@pytest.mark.parametrize("own", ["end", "close"])
def test_an_error_that_crosses_the_end_of_its_cause(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, own: str
) -> None:
    d = Dialogue()
    d.linked(credit=1)
    sent = d.packet_number(d.client.transfer(handle=7))
    with d.on_their_way():
        if own == "end":
            d.client.end_session()
            crossing = d.packet_number(d.server.end_session(error="amqp:session:unattached-handle"))
        else:
            d.client.close()
            crossing = d.packet_number(d.server.close("amqp:session:unattached-handle"))
    capture = tmp_path / "dialogue.pcap"
    capture.write_bytes(d.pcap())
    shown = amqpscope(capsys, "why", capture, sent).lines
    what = "the session is ended" if own == "end" else "the connection is closed"
    assert shown[shown.index(f"    {what} with an error") + 1].split()[0] == str(crossing)


def test_an_end_that_is_answered_is_reported_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    d = Dialogue()
    d.linked(credit=1)
    sent = d.packet_number(d.client.transfer())
    d.client.end_session()
    d.server.end_session()
    d.goodbye()
    capture = tmp_path / "dialogue.pcap"
    capture.write_bytes(d.pcap())
    shown = amqpscope(capsys, "why", capture, sent).lines
    assert "    the client ends the session" in shown
    assert "    the session is ended" not in shown

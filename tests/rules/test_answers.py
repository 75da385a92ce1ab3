"""What counts as the answer to a finding: an error that is for it, as far as it says what it is for."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from support.commands import amqpscope as commands
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091
from support.sampling import examples, share

import amqpscope
from amqpscope.limits import MAX_KEPT_EXCERPTS
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, FrameRecord
from amqpscope.report.verdict import answer
from dissectors.amqp091.methods import ChannelClose, ConnectionClose
from dissectors.amqp10.performatives import Close, Detach, End

ROOT = Path(__file__).parent.parent.parent / "captures"


def findings_of(source: io.BytesIO | Path, rule: str) -> list[Finding]:
    with amqpscope.Capture(source, amqpscope.CaptureOptions(judge=True, context=True)) as capture:
        findings = [finding for _ in capture.blocks() for finding in capture.take_findings()]
    found = [finding for finding in findings if finding.rule == rule]
    assert found
    return found


def found(dialogue: Conversation, rule: str) -> list[Finding]:
    return findings_of(io.BytesIO(dialogue.pcap()), rule)


def acknowledged(*channels: int) -> Dialogue091:
    """Acknowledgements of what was never delivered, on these channels, of which each is open."""
    d = Dialogue091()
    d.opened()
    for channel in channels:
        d.client.open_channel(channel)
        d.server.channel_open_ok(channel)
    for channel in channels:
        d.client.ack(7, channel=channel)
    return d


def test_a_close_of_a_channel_is_not_for_another_channel() -> None:
    d = acknowledged(1, 2)
    d.server.close_channel(406, "unknown delivery tag", "basic.ack", channel=2)
    first, second = found(d, "amqp091/B-ACK-KNOWN")
    assert (first.reaction.frame, first.reaction.other_error) == ("", True)
    assert answer(first).startswith("the server gave no error for this")
    assert (second.reaction.frame, second.reaction.condition) == ("channel.close", "406")


CLOSES: list[tuple[Callable[[Dialogue091], object], str]] = [
    (lambda d: d.server.close_channel(406, "unknown tag", "basic.ack"), "channel.close"),
    (lambda d: d.server.close_channel(404, "no queue", "queue.bind"), ""),
    (lambda d: d.server.close_channel(406, "time-out"), "channel.close"),
    (lambda d: d.server.close_connection(504, "channel error", "basic.ack"), "connection.close"),
    (lambda d: d.server.close_connection(530, "not allowed", "queue.bind"), ""),
    (lambda d: d.server.close_connection(505, "no content header", "basic.publish"), "connection.close"),
    (lambda d: d.server.close_connection(541, "internal error"), "connection.close"),
]


@pytest.mark.parametrize(("close", "reaction"), CLOSES)
def test_a_close_that_names_a_method_is_for_that_one(
    close: Callable[[Dialogue091], object], reaction: str
) -> None:
    d = acknowledged(1)
    close(d)
    (finding,) = found(d, "amqp091/B-ACK-KNOWN")
    assert (finding.reaction.frame, finding.reaction.other_error) == (reaction, not reaction)


@pytest.mark.parametrize(
    ("cause", "reaction"), [("connection.start-ok", "connection.close"), ("basic.publish", ""), ("", "")]
)
def test_a_note_is_answered_only_by_what_names_its_frame(cause: str, reaction: str) -> None:
    d = Dialogue091()
    d.opened(start_ok={"properties": {"copyright": None, "information": None}})
    d.client.open_channel()
    d.server.channel_open_ok()
    d.server.close_connection(505, "not expected", cause)
    (finding,) = found(d, "amqp091/C-STARTOK-CLIENT-PROPS")
    assert finding.reaction.frame == reaction


def overrun() -> Dialogue:
    """Two links on one session, a delivery without credit on the first of them."""
    d = Dialogue()
    d.linked(credit=0)
    d.server.flow(handle=0, link_credit=0)
    d.client.attach(name="other", handle=1, role=False)
    d.server.attach(name="other", handle=1, role=True)
    d.client.begin(channel=1)
    d.server.begin(channel=1, remote_channel=1)
    d.client.transfer()
    return d


ENDINGS: list[tuple[Callable[[Dialogue], object], str]] = [
    (lambda d: d.server.detach(handle=0, error="amqp:link:transfer-limit-exceeded"), "detach"),
    (lambda d: d.server.detach(handle=1, error="amqp:resource-deleted"), ""),
    (lambda d: d.server.end_session(channel=0, error="amqp:session:window-violation"), "end"),
    (lambda d: d.server.end_session(channel=1, error="amqp:session:window-violation"), ""),
    (lambda d: d.server.close(error="amqp:not-allowed"), "close"),
]


@pytest.mark.parametrize(("ending", "reaction"), ENDINGS)
def test_an_error_is_for_its_link_or_session(ending: Callable[[Dialogue], object], reaction: str) -> None:
    d = overrun()
    ending(d)
    (finding,) = found(d, "amqp10/L-CREDIT")
    assert (finding.reaction.frame, finding.reaction.other_error) == (reaction, not reaction)


def test_a_detach_is_for_what_was_said_of_no_link() -> None:
    d = overrun()
    d.client.transfer(handle=5)
    d.server.detach(handle=1, error="amqp:session:unattached-handle")
    (finding,) = found(d, "amqp10/L-UNATTACHED-TRANSFER")
    assert finding.reaction.frame == "detach"


# What a client may not ask for of queues and exchanges: the server's close is what shows it.
OF_THE_VIRTUAL_HOST = [
    *("X-DECL-TYPED", "X-DELETE-EXISTS", "X-BIND-EXIST", "X-UNBIND-EXIST"),
    *("Q-DECL-EQUIV-CLIENT", "Q-EXCL-ACCESS", "Q-BIND-XEXIST", "Q-BIND-QEXIST"),
    *("Q-UNBIND-XEXIST", "Q-UNBIND-QEXIST", "Q-DELETE-QEXIST", "Q-PURGE-QEXIST"),
    *("B-CONSUME-QEXIST", "B-GET-QEXIST"),
]


@pytest.mark.parametrize("rule", OF_THE_VIRTUAL_HOST)
def test_a_refused_request_is_answered_by_its_refusal(rule: str) -> None:
    refused = [
        finding
        for finding in findings_of(ROOT / "rules" / "amqp091" / rule / "violating.pcap", f"amqp091/{rule}")
        if finding.evidence.get("reply_code")
    ]
    assert refused
    for finding in refused:
        assert finding.reaction.frame in ("channel.close", "connection.close")
        assert finding.reaction.condition == str(finding.evidence["reply_code"])
        assert finding.reaction.packet > finding.packet
        assert finding.reaction.after > 0
        assert answer(finding).startswith(f"the server sent {finding.reaction.frame} with ")


@pytest.mark.parametrize("rule", OF_THE_VIRTUAL_HOST)
def test_a_refused_request_is_shown_among_the_frames_around_it(rule: str) -> None:
    path = ROOT / "rules" / "amqp091" / rule / "violating.pcap"
    for finding in findings_of(path, f"amqp091/{rule}"):
        around = [(record.direction, record.frame.offset) for record in finding.around]
        assert (finding.spot.direction, finding.offset) in around


def refused_late(between: int) -> Dialogue091:
    """A queue is bound to no exchange, which is refused only after so many other frames."""
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare("q")
    d.client.method("queue.bind", queue="q", exchange="none", routing_key="k")
    for _ in range(between):
        d.server.heartbeat()
    d.server.close_channel(404, "NOT_FOUND - no exchange 'none' in vhost '/'", "queue.bind")
    d.client.method("channel.close-ok")
    d.goodbye()
    return d


@pytest.mark.parametrize(("between", "shown"), [(0, True), (4, True), (40, False)])
def test_frames_around_a_request_that_is_refused_later(between: int, shown: bool) -> None:
    (finding,) = found(refused_late(between), "amqp091/Q-BIND-XEXIST")
    assert finding.reaction.frame == "channel.close"
    around = [record.frame.name for record in finding.around]
    assert len(around) >= 5
    # If the request is too long ago, what is shown is its refusal.
    assert ("queue.bind" in around) == shown
    assert ("channel.close" in around) == (between != 4)


def test_a_silence_is_answered_by_the_close_before_its_end() -> None:
    d = Dialogue()
    d.opened(client={"idle_time_out": 500})
    d.client.begin()
    d.server.begin()
    d.wait(milliseconds=1500)
    d.client.close("amqp:resource-limit-exceeded")
    d.server.close()
    (finding,) = found(d, "amqp10/C-IDLE-KEEP")
    assert (finding.reaction.frame, finding.reaction.condition) == ("close", "amqp:resource-limit-exceeded")
    assert finding.reaction.after < 0
    assert " ms before the frame at fault (packet " in answer(finding)


@pytest.mark.parametrize("condition", ["amqp:decode-error", "amqp:not-found"])
def test_a_silence_is_not_answered_by_another_error(condition: str) -> None:
    d = Dialogue()
    d.opened(client={"idle_time_out": 500})
    d.client.begin()
    d.server.begin()
    d.wait(milliseconds=1500)
    d.server.empty()
    d.client.close(condition)
    (finding,) = found(d, "amqp10/C-IDLE-KEEP")
    assert (finding.reaction.frame, finding.reaction.other_error) == ("", True)


@pytest.mark.parametrize(
    ("capture", "how", "text"),
    [
        (
            "pika-heartbeat-missed.pcap",
            "RST",
            "the server ended its stream with RST 0.00 ms later (packet 36), as the specification asks",
        ),
        (
            "amqplib-server-stalled.pcap",
            "FIN",
            "the client had given up already: FIN in packet 23, 501.26 ms before this frame",
        ),
    ],
)
def test_a_missed_heartbeat_is_answered_by_the_end_of_the_stream(capture: str, how: str, text: str) -> None:
    (finding,) = findings_of(ROOT / capture, "amqp091/C-HB-SEND")
    assert finding.reaction.frame == how
    assert answer(finding) == text


def test_the_end_of_a_stream_is_no_answer_after_a_close() -> None:
    d = Dialogue091()
    d.opened()
    d.client.frame(77, 0, b"")
    d.server.close_connection(501, "frame error")
    d.client.method("connection.close-ok")
    d.tcp.goodbye()
    (finding,) = found(d, "amqp091/F-FRAME-TYPE")
    assert (finding.reaction.frame, finding.reaction.condition) == ("connection.close", "501")


@pytest.mark.parametrize(
    ("rule", "size"),
    [("F-SIZE-MIN", b"\0\0\0\7"), ("F-SIZE-TOTAL", b"\x7f\xff\xff\xff")],
)
def test_a_fault_that_shows_late_is_answered_by_the_close_before(rule: str, size: bytes) -> None:
    # The octets behind a size that cannot be are searched for a frame: the fault is given when they end.
    d = Dialogue()
    d.begun()
    d.client.say(size + b"\2\0\0\0")
    d.server.close("amqp:connection:framing-error")
    d.tcp.goodbye()
    (finding,) = found(d, f"amqp10/{rule}")
    assert (finding.reaction.frame, finding.reaction.condition) == ("close", "amqp:connection:framing-error")


def test_an_error_on_its_way_is_no_answer_in_amqp10() -> None:
    d = Dialogue()
    d.linked(credit=0)
    with d.on_their_way():
        d.server.close(error="amqp:not-allowed")
        d.client.transfer()
    d.client.close()
    (finding,) = found(d, "amqp10/L-CREDIT-INIT")
    assert finding.peer == CLIENT
    assert finding.reaction.frame == ""


def test_an_error_on_its_way_is_no_answer_in_amqp091() -> None:
    d = acknowledged()
    d.channel(1)
    with d.on_their_way():
        d.client.ack(7)
        d.server.close_channel(406, "unknown delivery tag", "basic.ack")
    (finding,) = found(d, "amqp091/B-ACK-KNOWN")
    assert (finding.reaction.frame, finding.reaction.other_error) == ("", True)


def test_the_error_of_another_link_is_no_answer_to_how_a_session_was_begun() -> None:
    d = Dialogue()
    d.opened()
    d.client.begin(channel=5)
    d.server.begin(channel=0, remote_channel=5)
    d.client.attach(name="other", handle=0, role=False, channel=5)
    d.server.attach(name="other", handle=0, role=True)
    d.server.detach(handle=0, error="amqp:link:stolen")
    (finding,) = found(d, "amqp10/S-CH-LOWEST")
    assert finding.reaction.frame == ""


def test_what_asks_for_no_error_and_was_processed_is_not_answered_later() -> None:
    d = Dialogue()
    d.opened()
    d.client.begin(channel=5)
    d.server.begin(channel=0, remote_channel=5)
    d.client.attach(name="other", handle=0, role=False, channel=5)
    d.server.attach(name="other", handle=0, role=True)
    d.server.close("amqp:connection:forced")
    (finding,) = found(d, "amqp10/S-CH-LOWEST")
    assert (finding.reaction.frame, finding.reaction.other_error) == ("", True)


def test_what_a_server_answers_wrongly_is_not_said_to_be_let_pass() -> None:
    path = ROOT / "rules" / "amqp091" / "X-DECL-EQUIV" / "violating.pcap"
    (finding,) = findings_of(path, "amqp091/X-DECL-EQUIV")
    assert answer(finding).startswith("the answer of the client is not known, because this finding needs")
    assert finding.around


def test_a_full_stop_is_no_part_of_code(capsys: pytest.CaptureFixture[str]) -> None:
    shown = commands(
        capsys,
        "check",
        "--full",
        "--possible",
        "--notes",
        "--format",
        "markdown",
        ROOT / "rhea-transfer-before-attach.pcap",
    ).out
    assert "`" in shown
    assert ".`" not in shown


# The same answer is reported in each form.
FORMS = ["text", "json", "ndjson", "markdown", "junit", "sarif", "github"]


@pytest.mark.parametrize("form", FORMS)
def test_every_form_tells_of_a_refusal(capsys: pytest.CaptureFixture[str], form: str) -> None:
    path = ROOT / "rules" / "amqp091" / "Q-BIND-XEXIST" / "violating.pcap"
    shown = commands(
        capsys,
        "check",
        "--full",
        "--possible",
        "--notes",
        "--format",
        form,
        "--select",
        "Q-BIND-XEXIST",
        path,
    )
    text = shown.out + shown.err
    if "json" in form:
        assert '"frame": "channel.close", "condition": "404"' in " ".join(text.split())
    else:
        assert "the server sent channel.close with 404:not-found " in text
    assert "gave no error" not in text


def test_frames_around_a_finding_are_shown_as_they_were_captured(capsys: pytest.CaptureFixture[str]) -> None:
    shown = commands(
        capsys,
        "check",
        "--full",
        "--possible",
        "--notes",
        "--profile",
        "none",
        ROOT / "pika-two-threads.pcap",
    ).out
    around: list[int] = []
    excerpts = 0
    for line in shown.splitlines():
        words = line.removeprefix("  >>").split()
        if words and words[0].isdigit() and line.startswith("  "):
            around.append(int(words[0]))
        else:
            excerpts += bool(around)
            assert around == sorted(around)
            around = []
    assert excerpts > 5


# What is refused is shown with the request: of these only the end is remembered until the refusal comes.
OF_AN_EARLIER_FRAME = [
    *("B-PUBLISH-XEXIST", "B-CONTENT-TOO-LARGE", "Q-DECL-RESERVED", "X-DECL-RESERVED"),
    *("C-OPEN-VHOST-EXISTS", "B-PUBLISH-INTERNAL"),
]


@pytest.mark.parametrize("rule", OF_AN_EARLIER_FRAME)
def test_the_frame_at_fault_is_marked(capsys: pytest.CaptureFixture[str], rule: str) -> None:
    path = ROOT / "rules" / "amqp091" / rule / "violating.pcap"
    (finding,) = findings_of(path, f"amqp091/{rule}")
    shown = commands(capsys, "check", "--full", "--possible", "--notes", "--select", rule, path).lines
    (marked,) = [line for line in shown if line.startswith("  >>")]
    assert marked.split()[1] == str(finding.packet)
    assert finding.frame in marked


def has_error(record: FrameRecord) -> bool:
    """Whether a frame says that something is wrong."""
    body = record.frame.body
    if isinstance(body, (ChannelClose, ConnectionClose)):
        return body.reply_code not in (0, 200)
    return isinstance(body, (Close, End, Detach)) and body.error is not None


def test_what_is_said_of_answers_is_true() -> None:
    """Of every finding in the captures of all rules: that no error came is not said where one did."""
    findings = 0
    for path in share(sorted(ROOT.glob("rules/*/*/*.pcap")), 8, "answers"):
        errors: list[tuple[int, str, int, str]] = []
        found: list[Finding] = []
        with amqpscope.Capture(path, amqpscope.CaptureOptions(judge=True)) as capture:
            for records in capture.blocks():
                for record in records:
                    if has_error(record):
                        stream = int(record.connection.stream)
                        errors.append((stream, record.peer, int(record.packet), record.frame.name))
                found += capture.take_findings()
        for finding in found:
            findings += 1
            others = [
                error
                for error in errors
                if error[0] == finding.connection.stream and error[1] != finding.peer
            ]
            if finding.reaction.condition:
                assert (finding.reaction.packet, finding.reaction.frame) in [error[2:] for error in others]
            elif not finding.reaction.frame and not finding.reaction.other_error and finding.reaction.awaited:
                assert [error for error in others if error[2] >= finding.packet] == [], (path, finding)
    assert findings > examples(50)


def test_little_is_kept_of_a_long_condition() -> None:
    d = overrun()
    d.server.close("x" * 30_000)
    (finding,) = found(d, "amqp10/L-CREDIT")
    assert finding.reaction.condition == "x" * 1024


def test_surroundings_are_kept_of_some_requests_only() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    for number in range(MAX_KEPT_EXCERPTS + 40):
        d.declare(f"q{number}")
    for _ in range(MAX_KEPT_EXCERPTS):
        d.client.method("queue.bind", queue="q1", exchange="none", routing_key="k")
        d.server.close_channel(404, "NOT_FOUND - no exchange 'none' in vhost '/'", "queue.bind")
        d.client.method("channel.close-ok")
        d.channel(1)
    findings = found(d, "amqp091/Q-BIND-XEXIST")
    assert len(findings) == MAX_KEPT_EXCERPTS
    # Half of what may be kept is not for those that are not refused.
    assert [bool(finding.around) for finding in findings].count(True) == MAX_KEPT_EXCERPTS // 2
    assert {finding.reaction.frame for finding in findings} == {"channel.close"}

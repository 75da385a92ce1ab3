"""Which protocol a connection speaks: at its start and in its middle, on any port, however it was cut."""

from __future__ import annotations

import random

import pytest
from support import amqp091_encode as amqp091
from support import amqp10_encode as amqp
from support.amqp10_encode import AMQP_HEADER, SASL_HEADER, TLS_HEADER, frame, sasl_frame
from support.connection_harness import ACK, FIN, RST, ConnectionHarness
from support.openings import (
    BODY,
    CLIENT_HELLO,
    CONTENT,
    HEARTBEAT,
    KNOWN,
    OPENINGS,
    SERVER_HELLO,
    START_OK,
    STRANGE,
    method091,
    record,
)

from amqpscope.limits import MAX_NOTES

DECODED = {"amqp10": {"header", "amqp", "sasl"}, "amqp091": {"header", "method", "heartbeat"}}
HEADER_ONLY = ("amqp010", "amqp09", "amqp08", "amqp-unknown")
OPEN = frame(amqp.open_(container_id="some container"))
PUBLISH = method091(60, 40, b"\0\0\0\4some\0", channel=7)
BEGIN = frame(amqp.begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10))
CLOSE = frame(amqp.close())


def transfer(payload: bytes) -> bytes:
    return frame(amqp.transfer(handle=0, delivery_id=1, delivery_tag=b"1"), payload)


# ---- at the start -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "octets"), KNOWN, ids=lambda one: str(one)[:30])
@pytest.mark.parametrize("direction", [0, 1])
def test_every_opening_however_it_is_split(name: str, octets: bytes, direction: int) -> None:
    for split in range(min(len(octets), 40)):
        harness = ConnectionHarness()
        harness.send(direction, octets[:split])
        harness.send(direction, octets[split:])
        harness.finish()
        assert harness.connection.protocol == name, split
        assert harness.connection.encrypted == (name == "tls")
        headers = 0
        if name in HEADER_ONLY and octets.startswith(b"AMQP"):
            headers = 1
        if name in DECODED:
            assert {one.frame.kind for one in harness.out} <= DECODED[name]
            assert sum(int(one.frame.size) for one in harness.out) == len(octets)
        else:
            assert [one.frame.kind for one in harness.out] == ["header"] * headers


@pytest.mark.parametrize(("name", "octets"), KNOWN, ids=lambda one: str(one)[:30])
def test_an_opening_octet_by_octet(name: str, octets: bytes) -> None:
    harness = ConnectionHarness()
    harness.send(0, octets, each=1)
    assert harness.finish().connection.protocol == name


@pytest.mark.parametrize(("name", "octets"), KNOWN, ids=lambda one: str(one)[:30])
def test_ports_do_not_matter(name: str, octets: bytes) -> None:
    for ports in ((1, 65535), (5672, 443), (80, 5671), (22, 1883), (61613, 15672)):
        harness = ConnectionHarness(ports)
        harness.send(0, octets)
        assert harness.finish().connection.protocol == name


@pytest.mark.parametrize("protocol", ["amqp09", "amqp08", "amqp010", "amqp-unknown"])
@pytest.mark.parametrize("each", [1, 3, 8, 11, 1000])
@pytest.mark.parametrize("answered", [True, False])
def test_behind_another_header_frames_are_read_if_the_server_answers_in_them(
    protocol: str, each: int, answered: bool
) -> None:
    """Behind a header of 0-9, which brokers take, they are read without an answer, too."""
    for header in OPENINGS[protocol]:
        if not header.startswith(b"AMQP"):
            continue
        harness = ConnectionHarness()
        harness.send(0, header[:8], each=each)
        if answered:
            harness.send(1, method091(10, 10, b"\0\x09" + bytes(300)), each=each)
        harness.send(0, START_OK + HEARTBEAT, each=each)
        harness.finish()
        kinds = [one.frame.kind for one in harness.out if one.direction == 0]
        if answered or protocol == "amqp09":
            assert kinds == ["header", "method", "heartbeat"]
            assert harness.connection.protocol == "amqp091"
        else:
            assert kinds == ["header"]


@pytest.mark.parametrize("header", [b"AMQP\0\2\0\0", b"AMQP\1\1\0\0", b"AMQP\1\1\0\x0a"])
@pytest.mark.parametrize("each", [0, 1, 8, 11])
def test_frames_of_1_0_are_read_behind_another_header_if_the_server_answers_in_them(
    header: bytes, each: int
) -> None:
    harness = ConnectionHarness()
    harness.send(0, header, each=each)
    harness.send(1, AMQP_HEADER + OPEN, each=each)
    harness.send(0, OPEN + BEGIN, each=each)
    harness.finish()
    assert harness.names(0) == ["header", "open", "begin"]
    assert harness.connection.protocol == "amqp10"


@pytest.mark.parametrize("header", [b"AMQP\0\2\0\0", b"AMQP\1\1\0\0", b"AMQP\1\1\0\x0a"])
@pytest.mark.parametrize("each", [0, 1, 8, 11])
def test_frames_of_1_0_behind_another_header_wait_for_the_server_s(header: bytes, each: int) -> None:
    harness = ConnectionHarness()
    harness.send(0, header + OPEN + BEGIN, each=each)
    harness.send(1, AMQP_HEADER + OPEN, each=each)
    harness.finish()
    assert harness.names(0) == ["header", "open", "begin"]
    assert harness.connection.protocol == "amqp10"
    assert harness.names(1) == ["header", "open"]


@pytest.mark.parametrize("lost", [False, True])
def test_what_is_not_kept_until_the_server_speaks_is_missing(lost: bool) -> None:
    harness = ConnectionHarness()
    harness.send(0, b"AMQP\0\2\0\0" + OPEN)
    if lost:
        harness.skip(0, 500)
    harness.send(0, OPEN * 9000)
    harness.send(1, AMQP_HEADER + OPEN)
    harness.finish()
    assert harness.names(0) == ["header"]
    assert harness.analysis.first.unclear(-1)


@pytest.mark.parametrize(
    "strange", [b"\x01\x00\x00\xff", b"\x01" + bytes(30), b"GET / HTTP/1.1\r\n", bytes(40)]
)
def test_behind_a_header_of_0_9_nothing_else_is(strange: bytes) -> None:
    harness = ConnectionHarness()
    harness.send(0, OPENINGS["amqp09"][0])
    harness.send(0, strange, each=1)
    harness.send(0, START_OK)
    harness.finish()
    assert [one.frame.kind for one in harness.out] == ["header"]


def test_names_are_those_that_detection_documents() -> None:
    assert set(HEADER_ONLY) < set(OPENINGS)


@pytest.mark.parametrize("octets", STRANGE, ids=str)
def test_strange_octets_are_unknown(octets: bytes) -> None:
    harness = ConnectionHarness()
    harness.send(0, octets)
    harness.send(1, octets[::-1] + b"some more octets")
    harness.finish()
    assert (harness.connection.protocol, harness.out, harness.notes) == ("unknown", [], [])


def test_a_connection_without_data() -> None:
    harness = ConnectionHarness()
    harness.segment(0, b"")
    harness.end(0)
    harness.end(1)
    harness.finish()
    assert (harness.connection.protocol, harness.out, harness.notes) == ("", [], [])
    assert harness.connection.id == "10.0.0.1:51034>10.0.0.2:5672#0"


@pytest.mark.parametrize("octets", [b"A", b"AMQP\0\1", b"hello", b"\x16\3\1"])
def test_too_few_octets_are_unknown_in_the_end(octets: bytes) -> None:
    harness = ConnectionHarness()
    harness.send(0, octets)
    assert harness.connection.protocol == ""
    assert harness.finish().connection.protocol == "unknown"
    assert harness.out == []


# ---- headers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [0, 1, 3, 8, 11])
def test_a_doubled_header(each: int) -> None:
    harness = ConnectionHarness()
    harness.send(0, AMQP_HEADER * 2 + OPEN, each=each)
    harness.finish()
    assert harness.names(0) == ["header", "header", "open"]
    assert [[one.code for one in record.frame.problems] for record in harness.out] == [
        [],
        ["C-HDR-VERMATCH"],
        [],
    ]


@pytest.mark.parametrize("each", [0, 1, 3, 8, 11])
@pytest.mark.parametrize("times", [1, 2, 5])
@pytest.mark.parametrize("rest", [b"", b"AMQ", method091(10, 11)])
def test_a_doubled_header_of_another_version(each: int, times: int, rest: bytes) -> None:
    header = b"AMQP\1\1\0\x0a"
    harness = ConnectionHarness()
    harness.send(0, header * times + rest, each=each)
    harness.send(1, b"something that is no AMQP")
    harness.send(0, header)  # not there any more: a frame stood between
    harness.finish()
    own = [one for one in harness.out if one.direction == 0]
    expected = times + (1 if rest == b"" else 0)
    assert [(one.frame.kind, int(one.frame.offset)) for one in own] == [
        ("header", 8 * n) for n in range(expected)
    ]
    assert not any(one.frame.problems for one in own)
    assert harness.connection.protocol == "amqp010"
    if each in (1, 3) and times > 1:
        assert own[1].packet < own[1].last_packet


@pytest.mark.parametrize(
    ("client", "server", "protocol"),
    [
        (b"AMQP\0\0\x09\1", AMQP_HEADER, "amqp091"),
        (AMQP_HEADER, b"AMQP\0\0\x09\1", "amqp10"),
        (SASL_HEADER, b"AMQP\0\0\x09\1", "amqp10"),
        (b"AMQP\0\2\0\0", AMQP_HEADER, "amqp10"),
        (b"AMQP\1\1\0\x0a", b"AMQP\0\0\x09\1", "amqp091"),
        (b"AMQP\0\0\x09\0", b"AMQP\0\0\x09\1", "amqp091"),
        (b"AMQP\1\1\0\x0a", b"AMQP\1\1\x08\0", "amqp010"),
    ],
)
@pytest.mark.parametrize("each", [0, 1])
def test_peers_of_different_versions(client: bytes, server: bytes, protocol: str, each: int) -> None:
    """Both headers are shown; the first version that is decoded names the connection, else the first."""
    harness = ConnectionHarness()
    harness.send(0, client, each=each)
    harness.send(1, server, each=each)
    harness.end(1)
    harness.end(0)
    harness.finish()
    assert (harness.names(0), harness.names(1)) == (["header"], ["header"])
    assert [bytes(one.frame.raw) for one in harness.out] == [client, server]
    assert harness.connection.protocol == protocol


# ---- one side tells of the other --------------------------------------------------------------------------


@pytest.mark.parametrize("octets", STRANGE, ids=str)
@pytest.mark.parametrize("each", [0, 1, 5])
def test_rubbish_from_the_client_that_the_server_answers_as_amqp(octets: bytes, each: int) -> None:
    harness = ConnectionHarness()
    harness.send(0, octets, each=each)
    harness.send(1, AMQP_HEADER)
    harness.end(0)
    harness.finish()
    assert harness.connection.protocol == "amqp10"
    assert harness.names(1) == ["header"]
    own = [one for one in harness.out if one.direction == 0]
    assert sum(int(one.frame.size) for one in own) == len(octets)
    assert own[0].frame.offset == 0
    assert "header" not in harness.names(0)
    assert own[0].frame.problems


@pytest.mark.parametrize("ended_by", [FIN | ACK, RST | ACK])
def test_a_direction_that_ended_before_the_other_reported(ended_by: int) -> None:
    harness = ConnectionHarness()
    harness.send(0, b"AMQP\0")
    harness.end(0, ended_by)
    harness.send(1, AMQP_HEADER)
    harness.finish()
    own = [one for one in harness.out if one.direction == 0]
    assert [(one.frame.name, int(one.frame.size)) for one in own] == [("skipped", 5)]
    assert [problem.code for problem in own[0].frame.problems] == ["incomplete"]


def test_amqp_behind_a_line_of_text() -> None:
    """The client's stream begins with a line of no protocol that is known; its frames are found behind it."""
    line = b"PROXIED FOR 10.0.0.1 TO 10.0.0.2\r\n"
    for server_speaks in (True, False):
        harness = ConnectionHarness()
        harness.send(0, line)
        harness.send(0, AMQP_HEADER + OPEN)
        if server_speaks:
            harness.send(1, AMQP_HEADER + OPEN)
        harness.finish()
        assert harness.names(0) == ["skipped", "header", "open"]
        assert [int(one.frame.offset) for one in harness.out if one.direction == 0] == [
            0,
            len(line),
            len(line) + 8,
        ]
        assert harness.names(1) == (["header", "open"] if server_speaks else [])


def test_amqp_behind_a_negotiation_that_is_unknown_in_both_directions() -> None:
    harness = ConnectionHarness()
    harness.send(0, b"\x05\x01\x00\x07\x07\x07")
    harness.send(1, b"\x05\x00\x07\x07\x07\x07")
    harness.send(0, AMQP_HEADER + OPEN)
    harness.send(1, AMQP_HEADER + OPEN)
    harness.finish()
    assert harness.connection.protocol == "amqp10"
    for direction in (0, 1):
        assert harness.names(direction) == ["skipped", "header", "open"]


def test_octets_that_were_not_looked_at_are_counted() -> None:
    """Rubbish beyond what is searched; then the server says AMQP, and the client's frames are found again."""
    harness = ConnectionHarness()
    rubbish = b"rubbish " * 40_000
    harness.send(0, rubbish, each=1000)
    assert harness.analysis.first.detection.resting
    harness.skip(0, 500)
    harness.send(0, rubbish, each=1000)
    harness.send(1, AMQP_HEADER)
    harness.send(0, AMQP_HEADER + OPEN)
    harness.finish()
    (skipped, header, opened) = [one for one in harness.out if one.direction == 0]
    assert (skipped.frame.name, int(skipped.frame.offset)) == ("skipped", 0)
    assert (int(skipped.frame.size), int(skipped.frame.missing)) == (2 * len(rubbish) + 500, 500)
    assert (int(header.frame.offset), opened.frame.name) == (2 * len(rubbish) + 500, "open")
    assert (skipped.packet, header.packet) == (3, opened.packet)
    assert skipped.packet < skipped.last_packet < header.packet


@pytest.mark.parametrize("name", ["http", "tls", "ssh", "mqtt", "stomp"])
def test_the_others_answer_is_not_searched_for_long(name: str) -> None:
    harness = ConnectionHarness()
    harness.send(0, OPENINGS[name][0])
    harness.send(1, b"something " * 10_000, each=1000)
    assert harness.analysis.ignored
    harness.send(1, AMQP_HEADER + OPEN)
    harness.finish()
    assert (harness.connection.protocol, harness.out, harness.notes) == (name, [], [])


def test_an_http_client_on_an_amqp_port() -> None:
    harness = ConnectionHarness()
    harness.send(0, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    harness.send(1, AMQP_HEADER)
    harness.end(1)
    harness.finish()
    assert (harness.connection.protocol, harness.names(0), harness.names(1)) == (
        "amqp10",
        ["skipped"],
        ["header"],
    )
    assert [one.packet for one in harness.out] == [3, 4]


# ---- TLS --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [0, 1, 5, 13, 1000])
def test_tls_inside_amqp(each: int) -> None:
    """After both sides' TLS headers everything is ciphertext."""
    harness = ConnectionHarness()
    harness.send(0, TLS_HEADER, each=each)
    harness.send(1, TLS_HEADER, each=each)
    harness.send(0, CLIENT_HELLO, each=each)
    harness.send(1, SERVER_HELLO, each=each)
    for _ in range(20):
        harness.send(0, record(0x17, b"\x00" * 300), each=each)
        harness.send(1, record(0x17, AMQP_HEADER + OPEN), each=each)
    assert not harness.connection.encrypted
    harness.finish()
    assert harness.connection.encrypted
    assert harness.connection.protocol == "amqp10"
    for direction in (0, 1):
        assert harness.names(direction) == ["header", "tls"]
    sizes = [int(one.frame.size) for one in harness.out if one.frame.name == "tls"]
    assert sizes == [harness.sent[0] - 8, harness.sent[1] - 8]
    assert not any(one.frame.problems for one in harness.out)


def test_a_tls_header_that_the_server_declines() -> None:
    harness = ConnectionHarness()
    harness.send(0, TLS_HEADER)
    harness.send(1, AMQP_HEADER)
    harness.end(1)
    harness.finish()
    assert [one.frame.name for one in harness.out] == ["header", "header"]
    assert not harness.connection.encrypted


def test_tls_from_the_start() -> None:
    harness = ConnectionHarness((51034, 5671))
    harness.send(0, CLIENT_HELLO)
    harness.send(1, SERVER_HELLO)
    harness.send(0, record(0x17, AMQP_HEADER))
    harness.finish()
    assert (harness.connection.protocol, harness.connection.encrypted, harness.out) == ("tls", True, [])


# ---- in the middle ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [0, 1, 7, 60])
@pytest.mark.parametrize("direction", [0, 1])
def test_frames_in_the_middle(each: int, direction: int) -> None:
    harness = ConnectionHarness((40000, 40001), syn=False)
    harness.send(direction, transfer(b"x" * 100)[40:], each=each)
    harness.send(direction, BEGIN + transfer(b"y" * 50) + CLOSE, each=each)
    harness.finish()
    assert harness.names(0 if harness.out[0].direction == 0 else 1) == [
        "skipped",
        "begin",
        "transfer",
        "close",
    ]
    assert harness.connection.protocol == "amqp10"


@pytest.mark.parametrize("header", [AMQP_HEADER, SASL_HEADER, TLS_HEADER], ids=["amqp", "sasl", "tls"])
@pytest.mark.parametrize("split", range(9))
def test_a_header_alone_without_syn(header: bytes, split: int) -> None:
    harness = ConnectionHarness(syn=False)
    harness.segment(0, b"")
    harness.segment(1, b"")
    harness.send(0, header[:split])
    harness.send(0, header[split:])
    assert harness.connection.protocol == "amqp10"
    assert harness.finish().names(0) == ["header"]


@pytest.mark.parametrize(
    ("name", "octets"),
    [(name, octets) for name, octets in KNOWN if name not in DECODED and octets.startswith(b"AMQP")],
    ids=str,
)
def test_other_headers_without_syn(name: str, octets: bytes) -> None:
    for split in range(9):
        harness = ConnectionHarness(syn=False)
        harness.send(0, octets[:split])
        harness.send(0, octets[split:])
        harness.send(1, octets)
        harness.finish()
        if name == "amqp-unknown":  # which four octets do not make in the middle of anything
            assert (harness.connection.protocol, harness.out) == ("unknown", [])
        else:
            assert harness.connection.protocol == name
            assert (harness.names(0), harness.names(1)) == (["header"], ["header"])


@pytest.mark.parametrize("octets", [b"AMQP\0\0\x09\1", b"AMQP\1\1\0\x0a", b"AMQP is a protocol"], ids=str)
def test_another_header_inside_a_message_is_none(octets: bytes) -> None:
    """The capture begins in the middle of a message about AMQP."""
    harness = ConnectionHarness(syn=False)
    harness.send(0, b"... " + octets + b" ...")
    harness.send(0, octets + b" ...")
    harness.skip(0, 10)
    harness.send(0, octets + b" ...")
    harness.send(0, CLOSE + CLOSE)
    harness.finish()
    assert harness.connection.protocol == "amqp10"
    assert harness.names(0) == ["skipped", "close", "close"]


@pytest.mark.parametrize(
    "segments",
    [
        [b"rest of a record", record(0x17, b"x" * 700)],
        [record(0x17, b"x" * 300) + record(0x17, b"x" * 3000)[:100]],
    ],
)
def test_tls_in_the_middle(segments: list[bytes]) -> None:
    harness = ConnectionHarness(syn=False)
    for octets in segments:
        harness.send(0, octets)
    harness.send(1, b"x")
    harness.finish()
    assert (harness.connection.protocol, harness.out) == ("tls", [])
    assert harness.connection.encrypted


@pytest.mark.parametrize("each", [0, 1, 5, 13])
@pytest.mark.parametrize(
    ("segments", "names"),
    [
        ([b"rest of a body\xce", HEARTBEAT], ["skipped", "heartbeat"]),
        (
            [b"rest of a body\xce", PUBLISH + CONTENT + BODY],
            ["skipped", "basic.publish", "content-header", "body"],
        ),
        ([CONTENT + BODY], ["content-header", "body"]),
        ([b"AMQP\0\0\x09\1", HEARTBEAT], ["header", "heartbeat"]),
    ],
)
def test_frames_of_0_9_1_in_the_middle(segments: list[bytes], names: list[str], each: int) -> None:
    harness = ConnectionHarness(syn=False)
    for octets in segments:
        harness.send(0, octets, each=each)
    harness.send(1, b"x")
    harness.finish()
    assert harness.connection.protocol == "amqp091"
    assert harness.names(0) == names
    assert harness.names(1) == ["skipped"]


@pytest.mark.parametrize("kind", ["random", "zeros", "near frames", "text"])
def test_the_middle_of_a_large_message(kind: str) -> None:
    """The capture begins in the payload of a message; megabytes later its next frame stands."""
    size = 1_500_000
    octets = {
        "random": random.Random(1).randbytes(size),
        "zeros": bytes(size),
        "near frames": b"\0\0\0\x20\x02\0\0\0\0\x53\x14\xc0\x0f" * (size // 13),
        "text": b"all work and no play " * (size // 21),
    }[kind]
    harness = ConnectionHarness(syn=False)
    harness.send(0, octets, each=1448)
    assert (harness.out, harness.connection.protocol) == ([], "")
    harness.send(0, BEGIN + CLOSE)
    harness.finish()
    assert harness.names(0) == ["skipped", "begin", "close"]
    assert int(harness.out[0].frame.size) == len(octets)
    assert (harness.out[0].packet, harness.out[0].last_packet + 1) == (1, harness.out[1].packet)


def test_frames_of_one_direction_tell_of_the_other_in_the_middle() -> None:
    """The client is in the middle of a large message, the server says flow."""
    harness = ConnectionHarness(syn=False)
    harness.send(0, b"x" * 5000, each=500)
    harness.send(1, frame(amqp.flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1)))
    harness.send(0, b"x" * 5000, each=500)
    harness.send(0, CLOSE)
    harness.finish()
    assert harness.names(1) == ["flow"]
    assert harness.names(0) == ["skipped", "close"]
    assert int(harness.out[-1].frame.offset) == 10_000


def test_what_is_missing_while_undecided_is_noted_when_it_is_amqp() -> None:
    for octets in (AMQP_HEADER + OPEN, b"GET / HTTP/1.1\r\n\r\n"):
        harness = ConnectionHarness()
        harness.skip(0, 30)
        harness.send(0, b"x" * 50)
        harness.skip(0, 20)
        harness.send(0, b"x" * 50)
        harness.send(1, octets)
        harness.finish()
        reported = [(note.code, note.detail) for note in harness.notes]
        if octets.startswith(b"AMQP"):
            sender = "10.0.0.1:51034"
            assert reported == [
                ("capture/gap", f"30 octets sent by {sender} were not captured"),
                ("capture/gap", f"20 octets sent by {sender} were not captured"),
            ]
            assert harness.notes[0].connection is harness.connection
        else:
            assert reported == []


@pytest.mark.parametrize("lost", range(1, 10))
def test_a_start_that_was_lost(lost: int) -> None:
    """SYN was captured, the first octets were not."""
    harness = ConnectionHarness()
    harness.skip(0, lost)
    harness.send(0, (SASL_HEADER + sasl_frame(amqp.sasl_init(mechanism="PLAIN")) + AMQP_HEADER + OPEN)[lost:])
    harness.finish()
    inside = ["sasl-init"] if lost <= 8 else []
    assert harness.names(0) == ["skipped", *inside, "header", "open"]
    assert sum(int(one.frame.size) for one in harness.out) == harness.sent[0]


# ---- who is the client ------------------------------------------------------------------------------------

MECHANISMS = sasl_frame(amqp.sasl_mechanisms(sasl_server_mechanisms=["ANONYMOUS"]))
INIT = sasl_frame(amqp.sasl_init(mechanism="ANONYMOUS"))
CHALLENGE = sasl_frame(amqp.sasl_challenge(challenge=b"?"))
RESPONSE = sasl_frame(amqp.sasl_response(response=b"!"))
OUTCOME = sasl_frame(amqp.sasl_outcome(code=0))


@pytest.mark.parametrize("reload", [False, True])
@pytest.mark.parametrize("client", [0, 1])
@pytest.mark.parametrize("ports", [(40000, 41000), (41000, 40000), (5672, 40000), (40000, 5672)], ids=str)
def test_sasl_tells_the_client_of_the_headers_before_it(
    ports: tuple[int, int], client: int, reload: bool
) -> None:
    harness = ConnectionHarness(ports, syn=False, reload=reload)
    harness.send(client, SASL_HEADER)
    harness.send(1 - client, SASL_HEADER)
    assert harness.out == []
    harness.send(1 - client, MECHANISMS)
    assert [one.frame.name for one in harness.out] == ["header", "header", "sasl-mechanisms"]
    harness.send(client, INIT)
    harness.finish()
    assert [one.peer for one in harness.out] == ["client", "server", "server", "client"]
    assert [int(one.packet) for one in harness.out] == [1, 2, 3, 4]
    assert [bytes(one.frame.raw) for one in harness.out[:2]] == [SASL_HEADER, SASL_HEADER]
    assert repr(harness.out[0].frame.body) == "ProtocolHeader(3, 1, 0, 0)"
    assert harness.connection.id.startswith(f"10.0.0.{client + 1}:{ports[client]}>")
    assert {one.connection.id for one in harness.out} == {harness.connection.id}


@pytest.mark.parametrize("said", [INIT, RESPONSE], ids=["init", "response"])
def test_who_speaks_as_the_client_in_sasl_is_it(said: bytes) -> None:
    for direction in (0, 1):
        harness = ConnectionHarness((5672, 5671), syn=False)
        harness.send(direction, said + said)
        harness.finish()
        assert {one.peer for one in harness.out} == {"client"}


@pytest.mark.parametrize("said", [MECHANISMS, CHALLENGE, OUTCOME], ids=["mechanisms", "challenge", "outcome"])
def test_who_speaks_as_the_server_in_sasl_is_it(said: bytes) -> None:
    for direction in (0, 1):
        harness = ConnectionHarness((40000, 50000), syn=False)
        harness.send(direction, said + said)
        harness.finish()
        assert {one.peer for one in harness.out} == {"server"}


@pytest.mark.parametrize(
    ("ports", "client"),
    [
        ((40000, 5672), 0),
        ((5672, 40000), 1),
        ((5671, 100), 1),
        ((100, 5671), 0),
        ((40000, 30000), 0),
        ((30000, 40000), 1),
        ((5672, 5671), 0),
        ((7000, 7000), 0),
    ],
)
def test_ports_tell_the_client_when_nothing_else_does(ports: tuple[int, int], client: int) -> None:
    harness = ConnectionHarness(ports, syn=False)
    harness.send(0, CLOSE + CLOSE)
    harness.finish()
    assert {one.peer for one in harness.out} == {"client" if client == 0 else "server"}
    assert harness.connection.client == client
    silent = ConnectionHarness(ports, syn=False)
    silent.segment(0, b"")
    assert silent.connection.id.startswith(f"10.0.0.{client + 1}:{ports[client]}>")
    assert silent.finish().connection.client == client


@pytest.mark.parametrize("ports", [(40000, 5672), (5672, 40000)], ids=str)
def test_syn_tells_more_than_ports_and_sasl(ports: tuple[int, int]) -> None:
    harness = ConnectionHarness(ports)
    harness.send(1, SASL_HEADER + INIT)  # the server speaks as a client should
    harness.finish()
    assert [one.peer for one in harness.out] == ["server", "server"]
    assert harness.connection.client == 0


def test_headers_alone_wait_no_longer_than_the_connection() -> None:
    harness = ConnectionHarness((40000, 41000), syn=False)
    harness.send(0, AMQP_HEADER)
    harness.send(1, AMQP_HEADER)
    assert harness.out == []
    harness.finish()
    assert [one.frame.name for one in harness.out] == ["header", "header"]
    assert [one.peer for one in harness.out] == ["server", "client"]  # the higher port is the client's


def test_records_that_wait_are_few() -> None:
    harness = ConnectionHarness((40000, 41000), syn=False)
    harness.segment(0, b"")
    harness.segment(1, b"")
    harness.send(0, AMQP_HEADER * 8, each=8)
    assert harness.out == []
    harness.send(0, AMQP_HEADER)
    assert len(harness.out) == 9


# ---- notes ------------------------------------------------------------------------------------------------


def test_notes_of_a_connection_are_few() -> None:
    harness = ConnectionHarness()
    harness.send(0, AMQP_HEADER + OPEN)
    harness.send(1, AMQP_HEADER + OPEN)
    for _ in range(100):
        harness.skip(0, 12)
        harness.send(0, CLOSE)
        harness.segment(1, b"")
    for n in range(20):
        harness.segment(0, b"\xff" * 10, offset=harness.sent[0] - 10 + n % 2)
    harness.finish()
    gaps = [note.detail for note in harness.notes if note.code == "capture/gap"]
    assert gaps == ["12 octets sent by 10.0.0.1:51034 were not captured"] * MAX_NOTES + ["96 more"]
    assert len([note for note in harness.notes if note.code == "capture/overlap-differs"]) == MAX_NOTES
    assert len(harness.notes) == 2 * MAX_NOTES + 1


@pytest.mark.parametrize(("product", "sound"), [("RabbitMQ", False), ("LavinMQ", False), ("Qpid", True)])
def test_the_servers_product_tells_the_dialect_of_tables(product: str, sound: bool) -> None:
    """A tag `U` is in the specification's grammar, and nothing to RabbitMQ."""
    harness = ConnectionHarness()
    harness.send(0, amqp091.header())
    harness.send(1, amqp091.say("connection.start", 0, server_properties={"product": product}))
    harness.send(0, amqp091.say("connection.start-ok", 0, client_properties={}, mechanism="PLAIN"))
    table = {"x-odd": ("U", 7)}
    harness.send(0, amqp091.say("queue.declare", 1, queue="q", arguments=table))
    harness.finish()
    problems = [problem.code for problem in harness.out[-1].frame.problems]
    assert (problems == []) == sound, problems

"""Whole conversations, from the octets of a capture file to frames with their evidence."""

from __future__ import annotations

import io
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from support import amqp10_encode as amqp
from support.amqp10_encode import AMQP_HEADER, SASL_HEADER, frame, sasl_frame
from support.remembered_conversation import RememberedConversation, by_peer, read, reported
from support.tcp_writer import ACK, PSH, SYN, Capture

import amqpscope
from amqpscope.model.note import Note
from amqpscope.model.records import FrameRecord

MESSAGE_A = amqp.properties(message_id="a") + amqp.data(bytes(range(256)) * 3)
MESSAGE_B = amqp.properties(message_id="b") + amqp.amqp_value("second")


def sasl(talk: RememberedConversation) -> None:
    talk.client(SASL_HEADER)
    talk.server(SASL_HEADER, sasl_frame(amqp.sasl_mechanisms(sasl_server_mechanisms=["PLAIN"])))
    talk.client(sasl_frame(amqp.sasl_init(mechanism="PLAIN", initial_response=b"\0u\0p")))
    talk.server(sasl_frame(amqp.sasl_outcome(code=0)))


def opening(talk: RememberedConversation) -> None:
    talk.client(AMQP_HEADER, frame(amqp.open_(container_id="client")))
    talk.server(AMQP_HEADER, frame(amqp.open_(container_id="server")))
    begin = amqp.begin(next_outgoing_id=0, incoming_window=100, outgoing_window=100)
    talk.client(frame(begin, channel=1))
    talk.server(
        frame(
            amqp.begin(remote_channel=1, next_outgoing_id=0, incoming_window=9, outgoing_window=9), channel=2
        )
    )


def links(talk: RememberedConversation) -> None:
    for handle, name in enumerate(("first", "second")):
        source, target = amqp.source(address="here"), amqp.target(address=name)
        talk.client(
            frame(
                amqp.attach(
                    name=name,
                    handle=handle,
                    role=amqp.SENDER,
                    source=source,
                    target=target,
                    initial_delivery_count=0,
                ),
                channel=1,
            )
        )
        talk.server(
            frame(
                amqp.attach(name=name, handle=handle, role=amqp.RECEIVER, source=source, target=target),
                channel=2,
            ),
            frame(
                amqp.flow(
                    next_incoming_id=0,
                    incoming_window=100,
                    next_outgoing_id=0,
                    outgoing_window=100,
                    handle=handle,
                    delivery_count=0,
                    link_credit=10,
                ),
                channel=2,
            ),
        )


def transfers(**how: Any) -> list[bytes]:
    """A message over three transfers, and one over two between them on another link."""
    thirds = [MESSAGE_A[:300], MESSAGE_A[300:600], MESSAGE_A[600:]]
    halves = [MESSAGE_B[:10], MESSAGE_B[10:]]
    first = amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"a", message_format=0, more=True)
    second = amqp.transfer(handle=1, delivery_id=1, delivery_tag=b"b", message_format=0, more=True)
    return [
        frame(first, thirds[0], channel=1),
        frame(second, halves[0], channel=1),
        frame(amqp.transfer(handle=0, more=True), thirds[1], channel=1),
        frame(amqp.transfer(handle=1), halves[1], channel=1),
        frame(amqp.transfer(handle=0), thirds[2], channel=1),
    ]


def ending(talk: RememberedConversation) -> None:
    accepted = amqp.accepted()
    talk.server(frame(amqp.disposition(role=True, first=0, last=1, settled=True, state=accepted), channel=2))
    talk.client(frame(amqp.detach(handle=0, closed=True), channel=1))
    talk.server(frame(amqp.detach(handle=0, closed=True), channel=2))
    talk.client(frame(amqp.end(), channel=1))
    talk.server(frame(amqp.end(), channel=2))
    talk.client(frame(amqp.close()))
    talk.server(frame(amqp.close()))


def whole(talk: RememberedConversation, *, handshake: bool = True, goodbye: bool = True) -> None:
    """Everything a connection has, from SYN to FIN."""
    if handshake:
        talk.tcp.handshake()
    sasl(talk)
    opening(talk)
    links(talk)
    talk.client(*transfers())
    talk.client(frame())
    talk.server(frame())
    ending(talk)
    if goodbye:
        talk.tcp.goodbye()


def messages(records: list[FrameRecord]) -> list[tuple[bytes, bool]]:
    return [(one.message.octets, one.message.complete) for one in records if one.message is not None]


NAMES_OF_CLIENT = [
    "header",
    "sasl-init",
    "header",
    "open",
    "begin",
    "attach",
    "attach",
    "transfer",
    "transfer",
    "transfer",
    "transfer",
    "transfer",
    "empty",
    "detach",
    "end",
    "close",
]
NAMES_OF_SERVER = [
    "header",
    "sasl-mechanisms",
    "sasl-outcome",
    "header",
    "open",
    "begin",
    "attach",
    "flow",
    "attach",
    "flow",
    "empty",
    "disposition",
    "detach",
    "end",
    "close",
]


def test_a_whole_conversation_is_read_with_its_evidence() -> None:
    capture = Capture()
    talk = RememberedConversation(capture, mss=250)
    whole(talk)
    records = read(capture)
    assert reported(records, skipped=True) == talk.expected()
    assert [one.frame.name for one in records if one.peer == "client"] == NAMES_OF_CLIENT
    assert [one.frame.name for one in records if one.peer == "server"] == NAMES_OF_SERVER
    assert not any(one.frame.problems for one in records)
    assert messages(records) == [(MESSAGE_B, True), (MESSAGE_A, True)]
    # A transfer of 300 octets goes over several segments of 250.
    assert any(one.packet < one.last_packet for one in records)
    assert {one.connection.id for one in records} == {"10.0.0.1:51034>10.0.0.2:5672#0"}


def test_messages_are_left_alone_when_not_asked_for() -> None:
    capture = Capture()
    talk = RememberedConversation(capture)
    whole(talk)
    records = read(capture, messages=False)
    assert reported(records) == talk.expected()
    assert messages(records) == []


@pytest.mark.parametrize(
    "options",
    [
        {"link": "ethernet"},
        {"link": "ethernet", "vlan": (7,)},
        {"link": "ethernet", "vlan": (7, 9)},
        {"link": "ethernet", "padded": True},
        {"link": "sll"},
        {"link": "sll2"},
        {"link": "null"},
        {"link": "loop"},
        {"link": "raw"},
    ],
    ids=str,
)
@pytest.mark.parametrize("version", [4, 6])
def test_every_link_layer_and_both_ip_versions(options: dict[str, Any], version: int) -> None:
    capture = Capture(**options)
    ends = ("10.0.0.1:51034", "10.0.0.2:5672") if version == 4 else ("[fd00::1]:51034", "[fd00::2]:5672")
    talk = RememberedConversation(capture, *ends, mss=300)
    whole(talk)
    records = read(capture)
    assert reported(records, skipped=True) == talk.expected()
    assert len(records) == len(NAMES_OF_CLIENT) + len(NAMES_OF_SERVER)
    assert {one.connection.id for one in records} == {f"{ends[0]}>{ends[1]}#0"}


@pytest.mark.parametrize("link", ["ipv4", "ipv6"])
def test_link_types_of_one_ip_version(link: str) -> None:
    capture = Capture(link=link)
    talk = RememberedConversation(capture, *(() if link == "ipv4" else ("[fd00::1]:51034", "[fd00::2]:5672")))
    whole(talk)
    assert reported(read(capture), skipped=True) == talk.expected()


@pytest.mark.parametrize("form", ["pcap", "pcap big", "pcapng", "pcapng big", "microseconds"])
def test_every_file_format(form: str) -> None:
    capture = Capture()
    talk = RememberedConversation(capture)
    whole(talk)
    order: Any = ">" if "big" in form else "<"
    octets = (
        capture.pcapng(byte_order=order)
        if form.startswith("pcapng")
        else capture.pcap(nanoseconds=form != "microseconds", byte_order=order)
    )
    assert reported(amqpscope.read(io.BytesIO(octets))) == talk.expected()


@pytest.mark.parametrize("sequences", [(0, 0), (2**32 - 1, 2**32 - 700), (2**32 - 5, 2**31), (2**31 - 3, 5)])
def test_sequence_numbers_wrap(sequences: tuple[int, int]) -> None:
    capture = Capture()
    talk = RememberedConversation(capture, client_isn=sequences[0], server_isn=sequences[1], mss=100)
    whole(talk)
    assert reported(read(capture), skipped=True) == talk.expected()


@pytest.mark.parametrize("acks", ["delayed", "immediate"])
@pytest.mark.parametrize("each", [1, 7, 8, 9, 100])
def test_any_segment_size(each: int, acks: Any) -> None:
    capture = Capture()
    talk = RememberedConversation(capture, mss=each, acks=acks)
    whole(talk)
    assert reported(read(capture), skipped=True) == talk.expected()


# ---- what was acknowledged --------------------------------------------------------------------------------


def test_acknowledged_is_that_of_the_segment_with_the_frames_first_octet() -> None:
    capture = Capture()
    talk = RememberedConversation(capture, acks="none")
    talk.tcp.handshake()
    talk.client(AMQP_HEADER, frame(amqp.open_(container_id="c")))
    talk.tcp.server.hears(8)
    opened = talk.server(AMQP_HEADER, frame(amqp.open_(container_id="s" * 40)), cut=(20,))
    talk.tcp.client.hears(3)
    talk.client(frame(amqp.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1)))
    talk.tcp.client.hears()
    talk.client(frame(amqp.close()))
    assert len(opened) == 2
    found = {(one.peer, one.name): one.acknowledged for one in reported(read(capture))}
    assert found == {
        ("client", "header"): 0,
        ("client", "open"): 0,
        ("server", "header"): 8,
        ("server", "open"): 8,
        ("client", "begin"): 3,
        ("client", "close"): talk.tcp.server.sent,
    }


def test_acknowledged_of_a_retransmission_does_not_count() -> None:
    capture = Capture()
    talk = RememberedConversation(capture, acks="none")
    talk.tcp.handshake()
    talk.client(AMQP_HEADER)
    talk.server(AMQP_HEADER)
    talk.tcp.client.hears(0)
    sent = talk.client(frame(amqp.open_(container_id="c")))
    talk.tcp.client.hears()
    talk.tcp.client.retransmit()
    (opened,) = [one for one in reported(read(capture)) if one.name == "open"]
    assert (opened.acknowledged, opened.packet) == (0, capture.number(sent[0]))


def test_acknowledged_never_counts_a_fin() -> None:
    capture = Capture()
    talk = RememberedConversation(capture)
    talk.tcp.handshake()
    talk.client(AMQP_HEADER)
    talk.tcp.client.fin()
    talk.server(AMQP_HEADER)
    server = [one for one in reported(read(capture)) if one.peer == "server"]
    assert [one.acknowledged for one in server] == [8]


# ---- a capture that has not all of it ---------------------------------------------------------------------


def test_midstream() -> None:
    capture = Capture()
    talk = RememberedConversation(capture)
    with capture.missed():
        talk.tcp.handshake()
        sasl(talk)
        opening(talk)
    links(talk)
    talk.client(*transfers())
    ending(talk)
    records = read(capture)
    assert reported(records, skipped=True) == talk.expected()
    assert messages(records) == [(MESSAGE_B, True), (MESSAGE_A, True)]


@pytest.mark.parametrize("start", range(1, 24))
def test_a_start_inside_a_frame_skips_the_rest_of_it(start: int) -> None:
    """The first captured octets are the rest of an attach; then the frames are found."""
    capture = Capture()
    talk = RememberedConversation(capture)
    with capture.missed():
        talk.tcp.handshake()
        opening(talk)
    with capture.missed():
        talk.client(frame(amqp.attach(name="missed", handle=3, role=True), channel=1)[:start])
    rest = frame(amqp.attach(name="missed", handle=3, role=True), channel=1)[start:]
    talk.tcp.client.send(rest)
    talk.said.pop()
    links(talk)
    ending(talk)
    records = read(capture)
    skipped = [one for one in records if one.frame.kind == "skipped"]
    assert reported(records) == talk.expected()
    assert [(int(one.frame.offset), int(one.frame.size)) for one in skipped] == [(0, len(rest))]
    assert [problem.code for problem in skipped[0].frame.problems] == ["cut"]


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("syn", [True, False])
def test_one_direction_only(side: str, syn: bool) -> None:
    capture = Capture()
    talk = RememberedConversation(capture, mss=300)
    whole(talk)
    kept = talk.tcp.client if side == "client" else talk.tcp.server
    capture.packets = [packet for packet in capture.packets if packet.sender is kept][0 if syn else 1 :]
    records = [one for one in read(capture) if one.frame.kind != "skipped"]
    assert [one.frame.name for one in records] == (NAMES_OF_CLIENT if side == "client" else NAMES_OF_SERVER)
    assert {one.peer for one in records} == {side}
    expected = [one for one in talk.expected() if one.peer == side]
    assert [(one.packet, one.last_packet, one.time) for one in reported(records)] == [
        (one.packet, one.last_packet, one.time) for one in expected
    ]
    if syn:
        # Behind the SYN of the other side that is acknowledged, offsets are known.
        assert [one.acknowledged for one in reported(records)] == [one.acknowledged for one in expected]


def test_a_lost_segment_loses_exactly_the_frames_in_the_gap() -> None:
    """Every packet with data of the client left out once."""
    capture = Capture()
    talk = RememberedConversation(capture, mss=120)
    whole(talk)
    packets = list(capture.packets)
    carriers = [one.number for one in talk.segments(talk.tcp.client) if one.size]
    assert len(carriers) > 15
    for number in carriers:
        capture.packets = packets[: number - 1] + packets[number:]
        notes: list[Note] = []
        file = amqpscope.Capture(io.BytesIO(capture.pcap(nanoseconds=True)))
        records = list(file)
        notes = file.notes
        sides, expected = by_peer(reported(records)), by_peer(talk.expected())
        assert sides["server"] == expected["server"], number
        places = {one.offset for one in expected["client"]}
        assert [one for one in sides["client"] if one.offset in places] == expected["client"], number
        assert [note.code for note in notes] == ["capture/gap"], number
        # Every octet of the stream belongs to one frame, or to a stretch that was skipped.
        place = 0
        for one in by_peer(reported(records, skipped=True))["client"]:
            assert one.offset == place
            place += one.size
        assert place == talk.tcp.client.sent


def test_a_gap_inside_a_payload_loses_only_that_payload() -> None:
    capture = Capture()
    talk = RememberedConversation(capture)
    talk.tcp.handshake()
    opening(talk)
    payload = amqp.data(b"x" * 1000)
    before = frame(amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"0"), payload)
    holed = frame(amqp.transfer(handle=0, delivery_id=1, delivery_tag=b"1"), payload)
    behind = frame(amqp.transfer(handle=0, delivery_id=2, delivery_tag=b"2"), payload)
    gap = talk.client(before, holed, behind, cut=(len(before) + 100, 300))[1]
    talk.server(frame(amqp.disposition(role=True, first=0, last=2)))
    capture.packets.remove(gap)
    records = read(capture)
    assert reported(records, skipped=True) == talk.expected()
    found = [one for one in records if one.frame.name == "transfer"]
    # What stands before the hole is kept, and what stands behind it is not.
    assert [int(one.frame.missing) for one in found] == [0, len(holed) - 100, 0]
    assert found[1].frame.payload == payload[: int(found[1].frame.payload_size)]
    assert [[problem.code for problem in one.frame.problems] for one in found] == [[], ["cut"], []]
    assert [one.message.complete if one.message else None for one in found] == [True, False, True]


def test_snapshot_length_cuts_payload_only() -> None:
    capture = Capture(snaplen=120)
    talk = RememberedConversation(capture)
    talk.tcp.handshake()
    opening(talk)
    for number in range(5):
        talk.client(
            frame(
                amqp.transfer(handle=0, delivery_id=number, delivery_tag=b"t"), amqp.data(b"x" * 100 * number)
            ),
            frame(amqp.flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1)),
        )
        talk.server(frame(amqp.disposition(role=True, first=number)))
    records = read(capture)
    sides, expected = by_peer(reported(records)), by_peer(talk.expected())
    assert sides["server"] == expected["server"]
    assert sides["client"] == expected["client"]
    names = [one.name for one in sides["client"]]
    assert (names.count("transfer"), names.count("flow")) == (5, 1)  # the others stand where was cut


# ---- the same octets, brought in other ways ---------------------------------------------------------------


def _retransmission(talk: RememberedConversation) -> None:
    talk.client(*transfers()[:2])
    talk.tcp.client.retransmit()


def _other_boundaries(talk: RememberedConversation) -> None:
    talk.client(*transfers(), cut=(5, 500))
    talk.tcp.client.retransmit(skip=3, size=700)
    talk.tcp.client.retransmit(skip=1)


def _overlap(talk: RememberedConversation) -> None:
    octets = b"".join(transfers())
    start = talk.tcp.client.sent
    talk.client(*transfers(), cut=(100,), each=200)
    talk.tcp.client.segment(octets[50:350], offset=start + 50, flags=PSH | ACK)


def _reordered(talk: RememberedConversation) -> None:
    with talk.capture.reordered():
        talk.client(*transfers(), each=90)


def _reordered_with_overlap(talk: RememberedConversation) -> None:
    octets = b"".join(transfers())
    start = talk.tcp.client.sent
    with talk.capture.reordered(2, 0, 3, 1):
        talk.client(*transfers(), cut=(200, 400))
        talk.tcp.client.segment(octets[150:700], offset=start + 150, flags=PSH | ACK)


def _duplicated(talk: RememberedConversation) -> None:
    with talk.capture.duplicated():
        talk.client(*transfers(), each=333)
        talk.server(frame(amqp.flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1)))


def _lost_on_the_way(talk: RememberedConversation) -> None:
    with talk.tcp.lost():
        talk.client(*transfers(), each=500)
    talk.tcp.client.retransmit()


def _acknowledgement_first(talk: RememberedConversation) -> None:
    """The tap shows the answer before the octets that it answers."""
    with talk.capture.reordered():
        talk.client(*transfers()[:1])
        talk.server(frame(amqp.flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1)))


def _keep_alives(talk: RememberedConversation) -> None:
    talk.tcp.client.keep_alive()
    talk.tcp.server.ack()
    talk.tcp.server.keep_alive(1)
    talk.tcp.client.ack()
    talk.client(*transfers())
    talk.tcp.client.keep_alive(1)


def _crossing(talk: RememberedConversation) -> None:
    with talk.tcp.crossing():
        talk.client(*transfers())
        talk.server(frame(amqp.flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1)))
        talk.client(frame(amqp.flow(incoming_window=1, next_outgoing_id=1, outgoing_window=1)))


DELIVERIES: list[Callable[[RememberedConversation], None]] = [
    _retransmission,
    _other_boundaries,
    _overlap,
    _reordered,
    _reordered_with_overlap,
    _duplicated,
    _lost_on_the_way,
    _acknowledgement_first,
    _keep_alives,
    _crossing,
]


@pytest.mark.parametrize("delivery", DELIVERIES, ids=lambda one: one.__name__.strip("_"))
def test_however_it_was_delivered(delivery: Callable[[RememberedConversation], None]) -> None:
    capture = Capture()
    talk = RememberedConversation(capture)
    talk.tcp.handshake()
    opening(talk)
    delivery(talk)
    ending(talk)
    talk.tcp.goodbye()
    file = amqpscope.Capture(io.BytesIO(capture.pcap(nanoseconds=True)))
    assert by_peer(reported(file, skipped=True)) == by_peer(talk.expected())
    # Both ends' packets, which differ in nothing from their copies.
    expected = ["capture/duplicate"] * 2 if delivery is _duplicated else []
    assert [note.code for note in file.notes] == expected


def test_a_second_copy_that_differs_is_noted_and_does_not_count() -> None:
    capture = Capture()
    talk = RememberedConversation(capture)
    talk.tcp.handshake()
    opening(talk)
    talk.client(frame(amqp.close()))
    start = talk.said[-1].offset
    talk.tcp.client.segment(b"\xff" * 12, offset=start, flags=PSH | ACK)
    file = amqpscope.Capture(io.BytesIO(capture.pcap(nanoseconds=True)))
    assert reported(file, skipped=True) == talk.expected()
    assert [(note.code, note.packet) for note in file.notes] == [
        ("capture/overlap-differs", len(capture.packets))
    ]


@pytest.mark.parametrize("milliseconds", [-5000, -40, -3, 3, 40, 5000, 3_600_000])
@pytest.mark.parametrize("side", ["client", "server"])
def test_a_shifted_direction_says_the_same(side: str, milliseconds: float) -> None:
    """A mirror port or a tap may show one direction later than the other by any time."""
    capture = Capture()
    talk = RememberedConversation(capture, mss=400)
    whole(talk)
    shown = by_peer(reported(read(capture)))
    capture.delay(talk.tcp.client if side == "client" else talk.tcp.server, milliseconds=milliseconds)
    shifted = by_peer(reported(read(capture)))
    for peer in ("client", "server"):
        assert [_without_place(one) for one in shifted[peer]] == [_without_place(one) for one in shown[peer]]
    assert by_peer(talk.expected()) == shifted


def _without_place(one: Any) -> Any:
    return one._replace(packet=0, last_packet=0, time=0, last_time=0)


def test_a_key_that_refuses_to_be_compared() -> None:
    """A signaling NaN twice as a key of a map."""
    capture = Capture()
    talk = RememberedConversation(capture)
    talk.tcp.handshake()
    keys = amqp.map_([(amqp.decimal64(Decimal("sNaN")), amqp.uint(1))] * 2)
    talk.client(AMQP_HEADER, frame(amqp.open_(container_id="c", properties=keys)))
    records = read(capture)
    assert reported(records) == talk.expected()
    assert "T-MAP-DUPKEY" in [problem.code for problem in records[1].frame.problems]


# ---- where a connection begins and ends -------------------------------------------------------------------


def test_ports_used_again_are_another_connection() -> None:
    capture = Capture()
    first = RememberedConversation(capture)
    whole(first)
    second = RememberedConversation(capture, client_isn=77_000_000, server_isn=99_000_000)
    whole(second)
    records = read(capture)
    assert [one.connection.id[-2:] for one in records] == ["#0"] * 31 + ["#1"] * 31
    assert [one.connection.stream for one in records] == [0] * 31 + [1] * 31
    assert reported(records) == first.expected() + second.expected()


def test_ports_used_again_by_the_other_end() -> None:
    """The server of the first is the client of the second, on the same two ports."""
    capture = Capture()
    first = RememberedConversation(capture)
    whole(first)
    second = RememberedConversation(capture, "10.0.0.2:5672", "10.0.0.1:51034", client_isn=5, server_isn=6)
    whole(second)
    records = read(capture)
    assert reported(records) == first.expected() + second.expected()
    assert records[-1].connection.id == "10.0.0.2:5672>10.0.0.1:51034#1"


def test_ports_used_again_without_the_syn() -> None:
    capture = Capture()
    first = RememberedConversation(capture)
    whole(first)
    capture.wait(seconds=1)
    second = RememberedConversation(capture, client_isn=3_000_000_000, server_isn=99_000_000)
    with capture.missed():
        second.tcp.handshake()
    whole(second, handshake=False)
    records = read(capture)
    assert [one.connection.id[-2:] for one in records] == ["#0"] * 31 + ["#1"] * 31
    assert reported(records) == first.expected() + second.expected()
    # Wireshark does not tell the two apart.
    assert {one.connection.stream for one in records} == {0}


def test_an_open_connection_is_another_one_after_a_silence_and_a_jump() -> None:
    capture = Capture()
    first = RememberedConversation(capture)
    whole(first, goodbye=False)
    capture.wait(seconds=59)
    stray = RememberedConversation(capture, client_isn=3_000_000_000, server_isn=99_000_000)
    stray.client(frame(amqp.close()))
    capture.wait(seconds=61)
    second = RememberedConversation(capture, client_isn=2_000_000_000, server_isn=99_000_000)
    opening(second)
    records = read(capture)
    assert reported(records) == first.expected() + second.expected()
    assert [one.connection.instance for one in records] == [0] * 31 + [1] * 6


@pytest.mark.parametrize("who", ["client", "server"])
@pytest.mark.parametrize("inside", [False, True])
def test_reset(who: str, inside: bool) -> None:
    capture = Capture()
    talk = RememberedConversation(capture)
    talk.tcp.handshake()
    opening(talk)
    if inside:
        talk.tcp.client.send(frame(amqp.close())[:9])
        talk.tcp.server.send(frame(amqp.close())[:10])
    (talk.tcp.client if who == "client" else talk.tcp.server).rst()
    file = amqpscope.Capture(io.BytesIO(capture.pcap(nanoseconds=True)))
    records = list(file)
    whole_frames, cut = records[:6], records[6:]
    assert reported(whole_frames) == talk.expected()
    assert sorted(one.peer for one in cut) == (["client", "server"] if inside else [])
    for one in cut:
        (problem,) = one.frame.problems
        assert problem.code == "incomplete"
        assert "(rst)" in problem.reason  # for both: what was reset is over in both directions
    (analysis,) = file.connections
    ended = [analysis.tcp.facts(direction).ended for direction in (0, 1)]
    assert ended == (["rst", ""] if who == "client" else ["", "rst"])


def test_fin_with_last_octets_and_a_frame_cut_short() -> None:
    capture = Capture()
    talk = RememberedConversation(capture)
    talk.tcp.handshake()
    opening(talk)
    talk.tcp.client.fin(frame(amqp.close()))
    talk.server(frame(amqp.close(error=amqp.error(condition="x:y", description="z" * 30)))[:40])
    talk.said.pop()
    talk.tcp.server.fin()
    records = read(capture)
    assert [one.frame.name for one in records[-2:]] == ["close", "close"]
    assert [[problem.code for problem in one.frame.problems] for one in records[-2:]] == [[], ["incomplete"]]
    assert "(fin)" in records[-1].frame.problems[0].reason


def test_a_syn_that_carries_octets() -> None:
    """TCP Fast Open: data stand behind the SYN in the same segment."""
    capture = Capture()
    talk = RememberedConversation(capture)
    talk.tcp.client.segment(AMQP_HEADER, offset=0, flags=SYN)
    talk.tcp.server.segment(flags=SYN | ACK)
    records = read(capture)
    assert [(one.frame.name, int(one.packet), int(one.frame.offset)) for one in records] == [("header", 1, 0)]


def test_non_amqp_connections_lie_between() -> None:
    capture = Capture()
    talks = [RememberedConversation(capture, f"10.0.0.1:{51000 + n}", "10.0.0.2:5672") for n in range(3)]
    others = [capture.connection(f"10.0.0.1:{52000 + n}", "10.0.0.3:80") for n in range(3)]
    for talk, other in zip(talks, others, strict=True):
        talk.tcp.handshake()
        other.handshake()
        other.client.send(b"GET / HTTP/1.1\r\n\r\n")
    for talk, other in zip(talks, others, strict=True):
        opening(talk)
        other.server.send(b"HTTP/1.1 200 OK\r\n\r\n" + b"\0" * 5000)
    for talk in talks:
        ending(talk)
    records = read(capture)
    for number, talk in enumerate(talks):
        own = [one for one in records if one.connection.stream == 2 * number]
        assert reported(own) == talk.expected()
    assert {one.connection.stream for one in records} == {0, 2, 4}

"""Any number in any place: nothing fails, in any command, compiled or not.

0, 2^31, 2^32 - 1, 2^63 - 1, 2^63 and 2^64 - 1, as far as a place can hold them, and its largest number: in
each field of each frame, content header, table value, message section, and of the formats that hold packets.
In a run of `make properties` all of them are tried, in others a share.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from scenarios.pairs import DIALOGUES, Scenario, scenarios
from support import amqp091_encode as amqp091
from support import amqp10_encode as amqp
from support.all_numbers import SAYINGS, say_all
from support.all_outputs import everywhere, failures, ways
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091
from support.number_fields import another, counting, fitting
from support.sampling import share, thorough
from support.tcp_writer import Capture as Tap

from amqpscope.input.capture import Capture, CaptureOptions, check

AT_ONCE = 60
"""Connections of a capture: each with another number in another place."""

SLICES = 8

TURNS = 6
"""Where all are tried, each capture is read in so many times fewer ways, the next one in others."""


def client(number: int) -> str:
    """An end that no other connection of the capture has."""
    return f"10.1.{number // 200}.{1 + number % 200}:51034"


def places(protocol: str) -> list[tuple[int, int]]:
    """Each place of the conversation that has all, with each number that it can hold."""
    with counting() as written:
        say_all(protocol)
    return [(place, number) for place, width in enumerate(written.widths) for number in fitting(width)]


def captures(protocol: str, cases: list[tuple[int, int]]) -> Iterator[Tap]:
    """Captures in which each of these is said on a connection of its own."""
    for start in range(0, len(cases), AT_ONCE):
        tap = Tap()
        for number, (place, value) in enumerate(cases[start : start + AT_ONCE]):
            with another(place, value):
                say_all(protocol, capture=tap, client=client(number))
        yield tap


@pytest.mark.parametrize("part", range(SLICES) if thorough() else [0])
@pytest.mark.parametrize("protocol", SAYINGS)
def test_any_number_anywhere(protocol: str, part: int, tmp_path: Path) -> None:
    cases = places(protocol)
    assert len(cases) > 2500
    if thorough():
        cases = cases[part::SLICES]
    else:
        cases = Random(protocol).sample(cases, 3)
    for turn, tap in enumerate(captures(protocol, cases)):
        path = tap.write(tmp_path / "large.pcap")
        packets = Random(path.stat().st_size).sample(range(1, len(tap.packets) + 1), 3)
        known = ways(path, packets)
        chosen = known[turn % TURNS :: TURNS] if thorough() else known
        assert failures(way() for way in chosen) == []


def reported(chosen: Sequence[Scenario], random: Random) -> Tap:
    """These dialogues, each with another number in some place."""
    tap = Tap()
    for number, scenario in enumerate(chosen):
        with counting() as written:
            scenario.dialogue()
        all_places = range(len(written.widths))
        wide = [place for place in all_places if written.widths[place] == 8]
        if not all_places:
            continue
        place = random.choice(wide if wide and random.random() < 0.5 else all_places)
        # Some dialogues look at what was written, and end there.
        with another(place, random.choice(fitting(written.widths[place]))), suppress(AssertionError):
            dialogue = DIALOGUES[scenario.namespace](capture=tap, client=client(number))
            scenario.tell(dialogue)
    return tap


@pytest.mark.parametrize("part", range(SLICES) if thorough() else [0])
def test_where_rules_look(part: int, tmp_path: Path) -> None:
    """In the dialogues of the rules: those that count look closest there."""
    random = Random(part)
    chosen = share(scenarios(), 150, "large")
    for start in range(0, len(chosen), AT_ONCE):
        path = reported(chosen[start : start + AT_ONCE], random).write(tmp_path / "rules.pcap")
        assert failures(everywhere(path)) == []


# ---- the places where it failed --------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1 << 46, 1 << 63, (1 << 64) - 1])
def test_a_body_size(size: int, tmp_path: Path) -> None:
    """With a body and without one; published, and delivered; what was announced is reported as it was
    sent."""
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q", consumer_tag="c")
    d.server.deliver(b"hello")
    d.client.publish_method(routing_key="q")
    d.client.frame(amqp091.HEADER, 1, amqp091.content_header(size))
    d.client.frame(amqp091.BODY, 1, b"hello")
    d.client.method("basic.qos", prefetch_size=1)
    for _ in range(4):
        d.server.method("basic.deliver", consumer_tag="c", delivery_tag=size - 1)
        d.server.frame(amqp091.HEADER, 1, amqp091.content_header(size))
    d.goodbye()
    path = tmp_path / "body.pcap"
    path.write_bytes(d.pcap())
    with Capture(path, CaptureOptions(judge=True)) as capture:
        frames = [record.frame for record in capture]
        found = capture.take_findings()
    sizes = [frame.body.body_size for frame in frames if frame.kind == "content-header"]
    assert sizes == [5, *[size] * 5]
    (due,) = [
        one.message for one in found if one.rule == "amqp091/F-CONTENT-NO-METHOD" and one.peer == "client"
    ]
    assert f" {size - 5} octets " in due
    assert failures(everywhere(path, range(20, len(d.capture.packets), 5))) == []


@pytest.mark.parametrize("offset", [1 << 46, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
@pytest.mark.parametrize("section", [0, (1 << 32) - 1])
def test_a_received_state(section: int, offset: int, tmp_path: Path) -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer()
    state = amqp.received(section_number=section, section_offset=offset)
    d.server.disposition(settled=False, state=state)
    d.goodbye()
    path = tmp_path / "received.pcap"
    path.write_bytes(d.pcap())
    (found,) = [one for one in check(path) if one.rule == "amqp10/M-RECEIVED-POS"]
    assert f"section-number {section} and section-offset {offset}, but" in found.message
    assert failures(everywhere(path, [14])) == []


@pytest.mark.parametrize("tag", [(1 << 62), (1 << 63), (1 << 64) - 1])
def test_a_delivery_tag(tag: int, tmp_path: Path) -> None:
    """It is known again by all of its 64 bits."""
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q", consumer_tag="c")
    d.server.method("basic.deliver", consumer_tag="c", delivery_tag=tag - 1)
    d.server.say(amqp091.content(1, b"hello"))
    d.server.method("basic.deliver", consumer_tag="c", delivery_tag=tag)
    d.server.say(amqp091.content(1, b"hello"))
    d.client.ack(delivery_tag=tag)
    d.client.ack(delivery_tag=tag - 1)
    d.client.ack(delivery_tag=tag)
    d.goodbye()
    path = tmp_path / "tag.pcap"
    path.write_bytes(d.pcap())
    found = [one for one in check(path) if one.peer == "client" and "delivery_tag" in one.evidence]
    assert {(one.evidence["delivery_tag"], one.delivery_id) for one in found} == {(tag, tag)}
    assert failures(everywhere(path)) == []


@pytest.mark.parametrize("tag", [1 << 63, (1 << 64) - 1])
def test_a_delivery_tag_next_to_a_small_one_when_the_broker_closes(tag: int, tmp_path: Path) -> None:
    """The broker's timeout is about the older one."""
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare("q")
    d.consume("q", consumer_tag="c")
    for one in (1, tag):
        d.server.method("basic.deliver", consumer_tag="c", delivery_tag=one)
        d.server.say(amqp091.content(1, b"hello"))
    d.wait(seconds=1800)
    text = "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value: 1800000"
    d.server.close_channel(406, text)
    d.goodbye()
    path = tmp_path / "oldest.pcap"
    path.write_bytes(d.pcap())
    (found,) = [one for one in check(path) if one.rule == "amqp091/B-ACK-TIMEOUT"]
    assert found.evidence["delivery_tag"] == 1
    assert failures(everywhere(path)) == []


# ---- keys that have no hash ------------------------------------------------------------------------------


def test_keys_and_values_of_any_type(tmp_path: Path) -> None:
    """A list, a map, an array and a described value as key and as value of every map, in every command."""
    odd = [
        amqp.list_([amqp.null()]),
        amqp.map_([(amqp.null(), amqp.null())]),
        amqp.array([amqp.uint(1, "widest")]),
        amqp.described(1, amqp.list_([])),
        amqp.raw("84 7e 00 00 00 00 00 00 00"),  # a signalling NaN
    ]
    pairs = amqp.map_([(one, one) for one in odd])
    d = Dialogue()
    d.opened(client={"properties": pairs}, server={"properties": pairs, "offered_capabilities": odd[0]})
    d.client.begin(properties=pairs, desired_capabilities=odd[2])
    d.server.begin(properties=pairs)
    source = amqp.source(address=odd[0], filter=pairs, dynamic_node_properties=pairs, outcomes=odd[2])
    d.client.attach(properties=pairs, unsettled=pairs, source=source)
    d.server.attach(amqp.RECEIVER, properties=pairs, unsettled=pairs, target=odd[3])
    d.server.flow(handle=0, properties=pairs)
    for one in odd:
        sections = ("delivery-annotations", "message-annotations", "application-properties", "footer")
        d.client.transfer(
            b"".join(amqp.section(name, pairs) for name in sections)
            + amqp.properties(message_id=one, correlation_id=one, to=one)
            + amqp.amqp_value(pairs),
            state=amqp.modified(message_annotations=pairs),
        )
        d.server.disposition(settled=False, state=one)
    error = amqp.error(condition="amqp:connection:redirect", info=pairs)
    d.client.frame(amqp.close(error=error))
    d.server.close()
    path = tmp_path / "odd.pcap"
    path.write_bytes(d.pcap())
    assert failures(everywhere(path, range(4, len(d.capture.packets) + 1, 5))) == []


# ---- what holds the packets ------------------------------------------------------------------------------


def small(link: str = "ethernet") -> Tap:
    tap = Tap(link)
    d = Dialogue(capture=tap)
    d.headers()
    d.client.open()
    d.server.close()
    return tap


def words(octets: bytes, spared: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where words of 2, 4 and 8 octets stand that are no part of what is spared."""
    kept = [any(start <= at < end for start, end in spared) for at in range(len(octets))]
    return [
        (at, width)
        for width in (2, 4, 8)
        for at in range(0, len(octets) - width + 1, 2)
        if not any(kept[at : at + width])
    ]


def fields_of_files() -> Iterator[tuple[str, bytes, list[tuple[int, int]]]]:
    """Captures with all that their formats may hold of numbers, and where these stand."""
    tap = small()
    pcap = tap.pcap()
    yield "pcap", pcap, words(pcap, [_inside(pcap, packet.data) for packet in tap.packets] + [(0, 4)])
    options = b"".join(struct.pack("<HHQ", code, 8, 1) + bytes(4) for code in (14, 4, 5))
    plain = tap.pcapng()
    block = struct.pack("<IIIII", 5, 24 + len(options), 0, 0, 0) + options
    block += struct.pack("<I", 24 + len(options))
    ng = plain + block
    yield "pcapng", ng, words(ng, [_inside(ng, packet.data) for packet in tap.packets] + [(0, 4), (8, 12)])
    for link in ("ethernet", "sll2", "null"):
        file = small(link).pcap()
        head = [(at, at + 16 + 54) for at in _records(file)]
        yield (
            link,
            file,
            [
                (at, width)
                for start, end in head[3:5]
                for width in (2, 4)
                for at in range(start + 16, min(end, len(file)) - width + 1, 2)
            ],
        )


def _inside(file: bytes, data: bytes) -> tuple[int, int]:
    at = file.index(data)
    return at, at + len(data)


def _records(file: bytes) -> list[int]:
    found = []
    at = 24
    while at < len(file):
        found.append(at)
        at += 16 + int.from_bytes(file[at + 8 : at + 12], "little")
    return found


def test_the_formats_that_hold_packets(tmp_path: Path) -> None:
    tried = 0
    path = tmp_path / "file"
    for name, octets, places in fields_of_files():
        cases = [
            (at, number.to_bytes(width, order))
            for at, width in places
            for number in fitting(width)
            for order in ("little", "big")
        ]
        chosen = cases if thorough() else Random(name).sample(cases, 3)
        for at, number in chosen:
            path.write_bytes(octets[:at] + number + octets[at + len(number) :])
            assert failures(everywhere(path)) == [], (name, at, number.hex())
            tried += 1
    assert tried >= 15

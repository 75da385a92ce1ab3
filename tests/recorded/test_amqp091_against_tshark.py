"""Every field of every frame of AMQP 0-9-1 as tshark reads it, but where tshark is wrong.

Of the captures that come with the product, and with AMQPSCOPE_CAPTURES=FOLDER also of those there whose names
begin with `a091-`, and of those in its folder `public`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support import amqp091_encode as amqp
from support.amqp091_second_opinion import Reported, differences, our_frames, tshark_frames
from support.tcp_writer import Capture

pytestmark = pytest.mark.tshark

FOLDER = os.environ.get("AMQPSCOPE_CAPTURES", "")
BUNDLED = sorted((Path(__file__).resolve().parents[2] / "captures").glob("*.pcap*"))
CAPTURES = [
    *(
        path for path in BUNDLED if b"\x00\x0a\x00\x0a\x00\x09" in path.read_bytes()
    ),  # connection.start of 0-9
    *sorted(Path(FOLDER).glob("a091-*.pcap") if FOLDER else ()),
    *sorted(path for path in Path(FOLDER, "public").glob("*.pcap") if FOLDER),
]

# Where tshark is wrong, and how: parts of a difference, with the reason.
EXPLAINED = {
    "update-secret": "tshark does not know these methods",
    "'exchange.unbind-ok', tshark '40.51'": "tshark looks for it at 40.41",
    "undecodable": "tshark leaves out a value of an unknown type, and what follows it in its table",
}


def unexplained(found: list[str]) -> list[str]:
    return [difference for difference in found if not any(part in difference for part in EXPLAINED)]


# py-amqp writes integers of 64 bits with tag L, which tshark does not know: it reads the rest of the table
# wrong. Keys of such fields say so in our captures.
UNKNOWN_TAG = ".tag_L"


def without_unknown_tables(ours: list[Reported], theirs: list[Reported]) -> int:
    """Takes the tables of frames that have a value with UNKNOWN_TAG out of both; returns of how many."""
    count = 0
    for direction in {reported.direction for reported in ours}:
        mine = [reported for reported in ours if reported.direction == direction]
        other = [reported for reported in theirs if reported.direction == direction]
        for our, their in zip(mine, other, strict=False):
            if any(UNKNOWN_TAG in name for name in our.fields):
                count += 1
                for reported in (our, their):
                    reported.fields = {
                        name: text for name, text in reported.fields.items() if "." not in name
                    }
    return count


SAMPLE: dict[str, Any] = {
    "o": 9,
    "h": 300,
    "l": 70_000,
    "q": 2**40,
    "s": "some text",
    "S": b"octets",
    "?": True,
}
TABLE = {
    "t": True,
    "b": ("b", -5),
    "I": ("I", -(2**31)),
    "l": ("l", -(2**40)),
    "f": ("f", 1.5),
    "d": ("d", -2.25),
    "D": ("D", (2, 12345)),
    "S": "text",
    "T": ("T", 1700000384),
    "V": None,
    "F": {"inner": {"deep": ("I", 1)}, "empty": {}},
    "A": ("A", [("I", 1), "two", ("A", [True]), {"k": "v"}]),
}


def conversation(path: Path) -> None:
    """A capture in which both peers say all that there is, right and wrong."""
    capture = Capture()
    tcp = capture.connection("10.0.0.1:51034", "10.0.0.2:5672")
    tcp.handshake()
    tcp.client.send(amqp.header())
    for name, (class_id, _, form) in amqp.METHODS.items():
        if class_id == 30:
            continue  # tshark knows these of AMQP 0-8 and 0-9 only
        given: dict[str, Any] = {}
        for field in form.split():
            argument, kind = field.split(":")
            given[argument] = SAMPLE.get(kind, TABLE)
        end = tcp.server if name.endswith(("-ok", "start", "secure", "tune", "deliver")) else tcp.client
        end.send(amqp.say(name, 0 if class_id == 10 else 7, **given))
    properties = {"content_type": "text/plain", "content_encoding": "utf-8", "headers": TABLE}
    properties |= {"delivery_mode": 2, "priority": 9, "correlation_id": "c", "reply_to": "r"}
    properties |= {"expiration": "1", "message_id": "m", "timestamp": 1700000384, "type": "t"}
    properties |= {"user_id": "u", "app_id": "a", "reserved": "x"}
    for number in range(15):
        some = dict(list(properties.items())[:number])
        tcp.client.send(amqp.say("basic.publish", 7, routing_key="k"))
        tcp.client.send(amqp.content(7, b"0123456789" * number, frame_max=58, **some), each=100)
    tcp.client.send(amqp.heartbeat() + amqp.say("tx.commit", 65535) + amqp.heartbeat())
    tcp.client.send(amqp.frame(amqp.METHOD, 1, b"\0\x3c\0\x79"))
    tcp.client.fin()
    tcp.server.fin()
    capture.write(path)


def test_all_that_can_be_said(tmp_path: Path) -> None:
    path = tmp_path / "conversation.pcap"
    conversation(path)
    ours, theirs = our_frames(path), tshark_frames(path)
    assert len(ours) == len(theirs) > 120
    assert unexplained(differences(ours, theirs)) == []


def test_a_difference_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "conversation.pcap"
    conversation(path)
    ours, theirs = our_frames(path), tshark_frames(path)
    texts = 0
    for reported in ours[::25]:
        for name in reported.fields:
            kept = reported.fields[name]
            reported.fields[name] = kept + "x"
            assert len(unexplained(differences(ours, theirs))) == 1 or reported.name.startswith(
                "connection.up"
            )
            reported.fields[name] = kept
            texts += 1
    assert texts > 8
    assert len(differences(ours[:-1], theirs)) >= 1


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.name)
def test_recorded_captures(path: Path) -> None:
    ours, theirs = our_frames(path), tshark_frames(path)
    assert (without_unknown_tables(ours, theirs) > 0) == (path.name == "pyamqp-types.pcap")
    assert unexplained(differences(ours, theirs)) == []

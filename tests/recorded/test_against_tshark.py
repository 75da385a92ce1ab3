"""The second opinion: in every capture of captures/, every field that tshark shows is what the product reads.

tshark lists a frame at the packet of its last octet; so it is compared with `last_packet`. Where tshark is
known to be wrong, or shows nothing, FAULTS says so, each with its reason; a fault that tshark no longer
commits has to be taken from the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import support.amqp10_encode as amqp
from support.second_opinion import Difference, differences, product_frames
from support.tcp_writer import Capture, Connection
from support.tshark import NUMBERS, pyshark_frames, tshark_frames, tshark_version

from dissectors.amqp10.performatives import Transfer
from dissectors.amqp10.values import Array

pytestmark = [
    pytest.mark.tshark,
    pytest.mark.skipif(tshark_version() is None, reason="tshark is not installed"),
]

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
FILES = sorted(path for path in CAPTURES.glob("*.pcap*") if b"AMQP\x00\x01\x00\x00" in path.read_bytes())


# ---- what tshark is known to get wrong ---------------------------------------------------------------------


@dataclass(frozen=True)
class Fault:
    """excuses: whether it explains a difference. commit: traffic in which tshark commits it."""

    name: str
    reason: str
    excuses: Callable[[Difference], bool]
    commit: Callable[[Connection], object]


def _in_message(difference: Difference) -> bool:
    return difference.path.startswith("message.")


def _tells(difference: Difference, pattern: str) -> bool:
    """Whether tshark marks the frame with an error like this."""
    their = difference.their_frame
    return their is not None and any(re.search(pattern, fault) for fault in their.faults)


def _only_ours(difference: Difference, *problems: str) -> bool:
    """Whether tshark does not list the frame at all; it has one of these problems, if any are named."""
    if difference.path != "frame" or difference.our_frame is None:
        return False
    found = {problem.code for problem in difference.our_frame.record.frame.problems}
    return not problems or not found.isdisjoint(problems)


def _has_problem(difference: Difference, code: str) -> bool:
    """Whether the product says this of just this field."""
    our = difference.our_frame
    path = f"{our.name}.{difference.path}" if our else ""
    return our is not None and (code, path) in {(p.code, p.path) for p in our.record.frame.problems}


def _other_descriptor(difference: Difference) -> bool:
    """Whether the descriptor of the frame's body is anything but a small ulong."""
    our = difference.our_frame
    if our is None or our.kind == "header" or difference.their_frame is None:
        return False
    frame = our.record.frame
    return frame.raw[8 + len(frame.extended_header) :][:2] != b"\x00\x53"


def _begins_delivery(difference: Difference) -> bool:
    """Whether it is the first of several transfers, so that its last section goes on in the next one."""
    our = difference.our_frame
    body = our.record.frame.body if our else None
    return isinstance(body, Transfer) and body.more is True


def _octet_by_octet(text: str) -> str:
    """Text beyond ASCII as tshark shows it in a field of its own."""
    return "".join(c if c.isascii() else "\ufffd" * len(c.encode()) for c in text)


def _array_of_lists(difference: Difference) -> bool:
    our = difference.our_frame
    message = our.record.message if our else None
    values = [section.value for section in message.sections()] if message else []
    return difference.theirs is None and any(isinstance(v, Array) and v.element == "list" for v in values)


def _say(tcp: Connection, *bodies: bytes) -> None:
    for body in bodies:
        tcp.client.send(amqp.frame(body))


def _open(**properties: object) -> bytes:
    return amqp.open_(container_id="c", properties=properties)


def _message(tcp: Connection, *sections: bytes) -> None:
    transfer = amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t")
    tcp.client.send(amqp.frame(transfer, b"".join(sections)))


def _split(tcp: Connection, message: bytes) -> None:
    for octets in amqp.transfer_frames(message, 60, handle=0, delivery_id=0, delivery_tag=b"t"):
        tcp.client.send(octets)


def _lose_a_segment(tcp: Connection) -> None:
    with tcp.capture.missed():
        _say(tcp, _open())
    _say(tcp, amqp.close())


FAULTS = [
    Fault(
        "continuation",
        "takes the payload of every transfer for a message of its own, also where it goes on with one",
        lambda d: _in_message(d) and d.our_frame is not None and d.our_frame.continues,
        lambda tcp: _split(tcp, amqp.data(b"\x00\x53\x77\xa1\x02hi" * 12)),
    ),
    Fault(
        "first part",
        "shows of the section in which a delivery's first transfer ends the items that it can read",
        lambda d: _in_message(d) and d.ours is None and _begins_delivery(d),
        lambda tcp: _split(tcp, amqp.application_properties({"a": "b", "long": "x" * 50})),
    ),
    Fault(
        "described body",
        "knows no described value in an amqp-value: declare and discharge, and what others have described",
        lambda d: (
            d.path.startswith("message.amqp-value")
            and d.theirs is None
            and _tells(d, "Unknown AMQP type 0 .* of field .AMQP-Value")
        ),
        lambda tcp: _message(tcp, amqp.amqp_value(amqp.discharge(txn_id=b"x", fail=False))),
    ),
    Fault(
        "null body",
        "shows nothing of an amqp-value that is null",
        lambda d: d.path == "message.amqp-value" and d.ours == "null" and d.theirs is None,
        lambda tcp: _message(tcp, amqp.amqp_value(None)),
    ),
    Fault(
        "lists in an array",
        "shows the first list of an array, and none behind it",
        _array_of_lists,
        lambda tcp: _message(tcp, amqp.amqp_value(amqp.array_of("list", [[amqp.int_(1)], [amqp.int_(2)]]))),
    ),
    Fault(
        "empty binary",
        "stops at an empty binary in a list, array or map, and shows no more of the frame",
        lambda d: not d.theirs and d.our_frame is not None and b"\xa0\x00" in d.our_frame.record.frame.raw,
        lambda tcp: _say(tcp, _open(a=amqp.binary(b""), b="c")),
    ),
    Fault(
        "decimals",
        "does not decode decimals",
        lambda d: d.theirs == "(not supported)" and d.ours is not None and d.ours.startswith("Decimal"),
        lambda tcp: _say(tcp, _open(d=amqp.raw("74 32 80 00 07"))),
    ),
    Fault(
        "time before 1970",
        "prints the part below a second of a time before 1970 with a sign, beside seconds cut towards 1970",
        lambda d: re.search(r"\.-\d{8}", d.theirs or "") is not None,
        lambda tcp: _say(tcp, _open(t=amqp.timestamp(-1))),
    ),
    Fault(
        "eight octets",
        "reads four of the eight octets of a message-id or section-offset",
        lambda d: (
            d.path.endswith(("message-id", "correlation-id", "section-offset"))
            and (d.ours or "").isdecimal()
            and int(d.ours or 0) >> 32 == int(d.theirs or -1)
        ),
        lambda tcp: _message(tcp, amqp.properties(message_id=1000)),
    ),
    Fault(
        "beyond ASCII",
        "shows a string field octet by octet, each beyond ASCII as a replacement character",
        lambda d: d.ours is not None and d.theirs == _octet_by_octet(d.ours) != d.ours,
        lambda tcp: _say(tcp, amqp.open_(container_id="Gr\u00fc\u00dfe")),
    ),
    Fault(
        "no UTF-8",
        "shows what is no UTF-8 as if it were",
        lambda d: _has_problem(d, "T-STR-UTF8") and "\ufffd" in (d.theirs or ""),
        lambda tcp: _say(tcp, amqp.open_(container_id=amqp.string(b"\xff"))),
    ),
    Fault(
        "other type",
        "reads a value of another type as if it had the field's type",
        lambda d: _has_problem(d, "T-COMP-TYPE"),
        lambda tcp: _say(tcp, amqp.open_(container_id="c", max_frame_size=amqp.string("4096"))),
    ),
    Fault(
        "overrun",
        "shows nothing of a value that claims more octets than there are",
        lambda d: d.theirs is None and _has_problem(d, "T-SIZE-OVERRUN"),
        lambda tcp: _say(tcp, amqp.open_(container_id=amqp.string("client", size=240))),
    ),
    Fault(
        "count too high",
        "shows nothing of a list, map or array that counts more items than it has octets",
        lambda d: d.theirs is None and _tells(d, "Number of (list|map|array) elements .* bigger than"),
        lambda tcp: _message(tcp, amqp.amqp_value(amqp.raw("e0 04 09 54 01 02"))),
    ),
    Fault(
        "other descriptors",
        "takes the octet behind the format code of a frame's descriptor for the performative: also of the "
        "legal symbols and eight-octet numbers, and where no descriptor is",
        _other_descriptor,
        lambda tcp: _say(
            tcp,
            amqp.open_(container_id="c", descriptor_form="symbol"),
            amqp.begin(next_outgoing_id=0, incoming_window=1, outgoing_window=1, descriptor_form="full"),
        ),
    ),
    Fault(
        "data offset",
        "calls a frame empty whose data offset lies beyond its end",
        lambda d: d.path == "name" and d.theirs == "empty" and _tells(d, "Bad frame length"),
        lambda tcp: tcp.client.send(amqp.frame(amqp.close(), doff=9)),
    ),
    Fault(
        "other version",
        "tells no version of a protocol header whose protocol it does not dissect",
        lambda d: _only_ours(d) and d.our_frame is not None and "(" in d.our_frame.name,
        lambda tcp: tcp.server.send(amqp.protocol_header(0, 0, 9, 1)),
    ),
    Fault(
        "unfinished",
        "lists no frame whose last octets were not captured",
        lambda d: _only_ours(d, "incomplete", "cut"),
        lambda tcp: tcp.client.send(amqp.frame(_open())[:-1]),
    ),
    Fault(
        "lost for good",
        "finds no frame any more in a direction of which octets were lost",
        lambda d: _only_ours(d) and d.our_frame is not None and d.our_frame.after_gap,
        _lose_a_segment,
    ),
]


def unexcused(found: list[Difference], faults: list[Fault] = FAULTS) -> list[Difference]:
    return [difference for difference in found if not any(fault.excuses(difference) for fault in faults)]


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Difference]]:
    """By the fault's name: the differences in a connection in which tshark commits it."""
    capture = Capture()
    for n, fault in enumerate(FAULTS):
        tcp = capture.connection(f"10.0.0.1:{50_000 + n}")
        tcp.handshake()
        tcp.client.send(amqp.AMQP_HEADER)
        fault.commit(tcp)
        tcp.client.hears()
        tcp.server.ack()
        tcp.goodbye()
    path = capture.write(tmp_path_factory.mktemp("faults") / "faults.pcap")
    found: dict[str, list[Difference]] = {fault.name: [] for fault in FAULTS}
    for difference in differences(product_frames(path), tshark_frames(path)):
        frame = difference.our_frame or difference.their_frame
        assert frame
        found[FAULTS[frame.stream].name].append(difference)
    return found


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_tshark_still_commits_this_fault(fault: Fault, committed: dict[str, list[Difference]]) -> None:
    others = [other for other in FAULTS if other is not fault]
    found = committed[fault.name]
    assert unexcused(found) == []
    assert unexcused(found, others), f"no longer needed with tshark {tshark_version()}: take it out of FAULTS"


# ---- the captures ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_field_is_as_tshark_reads_it(path: Path) -> None:
    ours, theirs = product_frames(path), tshark_frames(path)
    assert sum(len(frame.fields) for frame in theirs) > len(theirs)
    assert [str(difference) for difference in unexcused(differences(ours, theirs))] == []


@pytest.mark.parametrize("name", ["demo.pcap", "rhea-proton-ipv6.pcap"])
def test_pyshark_sees_the_same_frames(name: str) -> None:
    ours = sorted(product_frames(CAPTURES / name), key=lambda frame: frame.packet)
    reported = [
        (
            frame.packet,
            frame.name,
            frame.channel,
            {field: text for field, text in frame.fields.items() if field in NUMBERS},
        )
        for frame in ours
    ]
    assert pyshark_frames(CAPTURES / name) == reported
    assert sum(len(numbers) for *_, numbers in reported) > 50


# ---- traffic made by hand: what no recorded peer said ------------------------------------------------------

PERFORMATIVES = ("open", "begin", "attach", "flow", "transfer", "disposition", "detach", "end", "close")
SASL = ("sasl-mechanisms", "sasl-init", "sasl-challenge", "sasl-response", "sasl-outcome")
STATES = ("received", "accepted", "rejected", "released", "modified", "declared", "transactional-state")
SAMPLES: dict[str, Any] = {
    "boolean": True,
    "ubyte": 1,
    "ushort": 300,
    "uint": 70_000,
    "ulong": 200,
    "string": "text",
    "symbol": "symbol",
    "symbols": ["one", "two"],
    "binary": b"\x01\xff",
    "timestamp": 1_700_000_000_001,
    "message-id": "id",
    "fields": {"key": "text", "list": amqp.list_([amqp.uint(1), None]), "map": amqp.map_({"a": True})},
    "unsettled": {b"\x01": amqp.accepted(), b"\x02": amqp.received(section_number=1, section_offset=2)},
}
NESTED = {
    "source": "source",
    "target": "target",
    "error": "error",
    "default-outcome": "modified",
    "outcome": "rejected",
}


def _filled(name: str, choice: amqp.Choice, **given: Any) -> amqp.Encoded:
    """A composite with a value in every field."""
    fields: dict[str, Any] = {}
    for field, kind in amqp.COMPOSITES[name][1]:
        key = field.replace("-", "_")
        if key in given:
            fields[key] = given[key]
        elif field in NESTED:
            fields[key] = _filled(NESTED[field], choice)
        else:
            fields[key] = SAMPLES.get(kind, "address")
    return amqp.composite(name, choice=choice, **fields)


@pytest.mark.parametrize("choice", ["smallest", "widest"])
def test_every_field_there_is(choice: amqp.Choice, tmp_path: Path) -> None:
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    tcp.client.send(amqp.SASL_HEADER)
    for name in SASL:
        tcp.client.send(amqp.sasl_frame(_filled(name, choice)))
    tcp.client.send(amqp.AMQP_HEADER)
    sections = (
        _filled("header", choice)
        + amqp.delivery_annotations({"d": amqp.uint(1, choice)})
        + amqp.message_annotations({"m": amqp.symbol("s", choice)})
        + _filled("properties", choice)
        + amqp.application_properties({"a": amqp.long(-1, choice)})
        + amqp.data(b"\x00\x01", choice)
        + amqp.data(b"\x02", choice)
        + amqp.footer({"f": amqp.ulong(5, choice)})
    )
    for n, state in enumerate(STATES):
        for name in PERFORMATIVES:
            given: dict[str, Any] = {"state": _filled(state, choice)}
            if name == "transfer":
                given |= {"handle": n, "more": False, "aborted": False, "message_format": 0}
            if state == "declared":
                given["target"] = _filled("coordinator", choice)
            payload = sections if name == "transfer" else b""
            # Most frames over several packets, which tshark lists at the last.
            tcp.client.send(amqp.frame(_filled(name, choice, **given), payload, channel=n), each=30)
    path = capture.write(tmp_path / "all.pcap")
    ours, theirs = product_frames(path), tshark_frames(path)
    assert unexcused(differences(ours, theirs)) == []
    for name in (*SASL, *PERFORMATIVES):
        seen = {
            re.split(r"[.\[]", path)[0] for frame in theirs if frame.name == name for path in frame.fields
        }
        assert seen == {field for field, _ in amqp.COMPOSITES[name][1]}


@pytest.mark.parametrize(
    "body",
    [
        amqp.transfer(delivery_id=0, delivery_tag=b"t"),
        amqp.open_(),
        amqp.begin(next_outgoing_id=0),
        amqp.attach(name="x", role=True),
        amqp.detach(),
        amqp.close(error=amqp.error(description="no condition")),
        amqp.end(extra=[amqp.uint(1), "more"]),
    ],
    ids=lambda body: body.hex(),
)
def test_frames_with_fields_missing_or_too_many(body: bytes, tmp_path: Path) -> None:
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    payload = amqp.amqp_value("hello") if body[2] == 0x14 else b""
    tcp.client.send(amqp.AMQP_HEADER + amqp.frame(body, payload))
    path = capture.write(tmp_path / "one.pcap")
    assert differences(product_frames(path), tshark_frames(path)) == []

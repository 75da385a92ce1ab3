"""`cut --anonymise`: the same findings, none of the names, and stand-ins that depend on the key only.

With AMQPSCOPE_CAPTURES=FOLDER all captures there are anonymised, too.
"""

from __future__ import annotations

import base64
import json
import os
import re
import struct
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support import draft2011_encode as draft
from support.capture_files import Record, ethernet, ipv4, pcap, tcp
from support.commands import amqpscope
from support.dialogue_draft2011 import Dialogue2011
from support.recorded import packets_of
from support.tcp_writer import Capture as Tap

from amqpscope.cutting.stand_ins import StandIns
from amqpscope.cutting.words import WORDS
from dissectors.proxy import proxy_header, proxy_size

FOLDERS = [Path(folder) for folder in os.environ.get("AMQPSCOPE_CAPTURES", "").split(os.pathsep) if folder]

ROOT = Path(__file__).resolve().parents[2]

SAMPLE = [
    "captures/pika-dead-letters.pcap",
    "captures/servicebus-batch.pcap",
    "captures/proton-scram-sha-1.pcap",
    "captures/rhea-types.pcap",
    "captures/rhea-proton-ipv6.pcap",
    "captures/draft2011/transactions.pcap",
    "captures/draft2011/sections_in_fragments.pcap",
    "captures/rules/amqp091/F-HEARTBEAT-SHAPE/violating.pcap",
    "captures/rules/amqp091/F-PRETUNE-ACCEPT/violating.pcap",
    "captures/rules/amqp10/D-RESUME-FLAG/violating.pcap",
    "captures/rules/amqp10/M-TGT-DYN-NOADDR/violating.pcap",
    "captures/rules/amqp10/T-STR-NOBOM/violating.pcap",
    "captures/rules/ws/WS-MASK/violating.pcap",
]

Finding = tuple[str, str, str, int]


def found(capsys: pytest.CaptureFixture[str], path: Path) -> list[Finding]:
    """What `check` reports of a capture."""
    lines = amqpscope(capsys, "check", "--no-config", "--format", "ndjson", path).lines
    return [(one["rule"], one["peer"], one["certainty"], one["packet"]) for one in map(json.loads, lines)]


def names(capsys: pytest.CaptureFixture[str], path: Path) -> set[str]:
    """The words of the values of all frames, but for those that stand in values that stay, too."""
    hidden: set[str] = set()
    stay: set[str] = set(WORDS)
    for line in amqpscope(capsys, "read", "--format", "ndjson", path).lines:
        _gather(json.loads(line), "", hidden, stay)
    return {word for word in hidden if word not in stay and word.lower() not in stay}


def _gather(value: object, name: str, hidden: set[str], stay: set[str]) -> None:
    if isinstance(value, dict) and value.get("code") == "foreign":
        # The first octets of a stream tell which protocol it speaks instead of AMQP.
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            _gather(inner, key, hidden, stay)
    elif isinstance(value, list):
        for inner in value:
            _gather(inner, name, hidden, stay)
    elif isinstance(value, str):
        (stay if name in _KEPT else hidden).update(re.findall(r"[A-Za-z0-9]{6,}", value))


_KEPT = frozenset(
    {
        "product",
        "version",
        "platform",
        "copyright",
        "information",
        "time",
        "connection",
        "kind",
        "name",
        "peer",
    }
    | {
        "capture",
        "type",
        "mechanism",
        "mechanisms",
        "sasl-server-mechanisms",
        "locales",
        "locale",
        "condition",
    }
    | {"capabilities", "offered-capabilities", "desired-capabilities", "outcomes", "protocol"}
)


@pytest.mark.parametrize(
    "path", [*SAMPLE, *(str(one) for folder in FOLDERS for one in sorted(folder.rglob("*.pcap*")))]
)
def test_the_findings_stay_and_the_names_do_not(
    path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = ROOT / path, tmp_path / "after.pcapng"
    result = amqpscope(capsys, "cut", before, "-o", after, "--anonymise", "--key", "one")
    if "no connection can be anonymised" in result.err:
        pytest.skip("nothing but TLS, or no AMQP")
    assert result.status == 0 and "replaced all addresses" in result.err
    # Packets of other protocols are not in it.
    expected, actual = found(capsys, before), found(capsys, after)
    if not re.search(r"left out \d+ connection", result.err):
        assert [one[:3] for one in actual] == [one[:3] for one in expected]
    octets = b"".join(one.data for one in packets_of(after.read_bytes())[0])
    hidden = names(capsys, before)
    assert hidden or path not in SAMPLE or "rules" in path
    for name in hidden:
        word = name.encode()
        for form in (word, name.encode("utf-16-le"), word.hex().encode(), base64.b64encode(word)[:-4]):
            assert len(form) < 6 or form not in octets, name


def test_equal_keys_give_equal_files_and_others_do_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = []
    for key in ("one", "one", "two"):
        path = tmp_path / "out.pcapng"
        amqpscope(capsys, "cut", ROOT / SAMPLE[0], "-o", path, "--anonymise", "--key", key)
        files.append(path.read_bytes())
    assert files[0] == files[1] != files[2]
    assert [len(one.data) for one in packets_of(files[0])[0]] == [
        len(one.data) for one in packets_of(files[2])[0]
    ]


def test_what_cannot_be_masked_is_left_out_with_a_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tls = ROOT / "captures" / "pika-tls-to-plain-port.pcap"
    result = amqpscope(capsys, "cut", tls, "-o", tmp_path / "out.pcapng", "--anonymise")
    assert result.status == 0
    for name in (b"localhost", b"rabbitmq.example"):
        assert name not in (tmp_path / "out.pcapng").read_bytes()


@pytest.mark.parametrize(
    "header",
    [
        b"PROXY TCP4 203.0.113.77 10.20.30.4 50000 5672\r\n",
        b"PROXY TCP6 2001:db8::77 2001:db8::4 50000 5672\r\n",
        b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x4d\x0a\x14\x1e\x04\xc3\x50\x16\x28",
    ],
)
def test_a_proxy_header_names_another_client(
    header: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    octets = header + b"AMQP\0\0\x09\x01"
    before, after = tmp_path / "in.pcap", tmp_path / "out.pcapng"
    packets = [
        tcp(flags=2, seq=999),
        tcp(flags=18, seq=1999, ack=1000, source_port=5672, destination_port=40000),
    ]
    packets.append(tcp(octets))
    ends = [("10.0.0.1", "10.0.0.2"), ("10.0.0.2", "10.0.0.1"), ("10.0.0.1", "10.0.0.2")]
    records = [Record(at, ethernet(ipv4(one, *ends[at]))) for at, one in enumerate(packets)]
    before.write_bytes(pcap(records))
    amqpscope(capsys, "cut", before, "-o", after, "--anonymise", "--key", "k")
    written = packets_of(after.read_bytes())[0][-1].data[40:]
    size = int(proxy_size(written))
    assert size == len(header) and written[size:] == octets[size:]
    masked, known = proxy_header(written, size), proxy_header(octets, size)
    assert masked.source is not None and known.source is not None
    assert masked.source[0] != known.source[0] and masked.source[1] == known.source[1]


def test_connections_on_the_same_ports_without_a_beginning_are_masked_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tap = Tap()
    for isn, name in ((1_000_000, "warehouse"), (3_000_000_000, "storehouse")):
        tcp = tap.connection(client_isn=isn, server_isn=isn + 7)
        for end in (tcp.client, tcp.server):
            end.send(amqp.AMQP_HEADER)
            end.send(amqp.frame(amqp.open_(container_id=name)))
        for end in (tcp.client, tcp.server):
            end.send(amqp.frame(amqp.close()))
        tcp.client.fin()
        tcp.server.fin()
        tap.wait(seconds=120)
    before, after = tap.write(tmp_path / "in.pcap"), tmp_path / "out.pcapng"
    result = amqpscope(capsys, "cut", before, "-o", after, "--anonymise", "--key", "k")
    assert result.status == 0 and "connection 0" not in result.err, result.err
    frames = []
    for path in (before, after):
        lines = amqpscope(capsys, "read", "--format", "ndjson", path).lines
        frames.append([(one["name"], one["problems"]) for one in map(json.loads, lines)])
    assert len(frames[0]) == 12 and frames[0] == frames[1]
    octets = after.read_bytes()
    assert b"warehouse" not in octets and b"storehouse" not in octets


@pytest.mark.parametrize("largest", [7, 400])
def test_a_section_of_the_draft_has_the_same_stand_ins_however_many_fragments_it_has(
    largest: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = Dialogue2011()
    d.linked(credit=2)
    for number in range(2):
        about = draft.properties(message_id=f"parcel-{number}".encode(), to="warehouse-of-the-north")
        d.client.transfers([about, draft.data(b"made up")], largest, settled=True)
    d.goodbye()
    before, after = d.capture.write(tmp_path / "in.pcap"), tmp_path / "out.pcapng"
    amqpscope(capsys, "cut", before, "-o", after, "--anonymise", "--key", "k")
    assert [one[:3] for one in found(capsys, after)] == [one[:3] for one in found(capsys, before)]
    written = amqpscope(capsys, "read", "-v", after).out
    masked = StandIns(b"k").text(b"warehouse-of-the-north").decode()
    assert written.count(masked) == 2 and "warehouse" not in written and "parcel" not in written


def test_other_protocols_and_what_is_below_ip_are_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packets = [
        ethernet(ipv4(tcp(b"AMQP\0\0\x09\x01"), "10.1.2.3", "10.1.2.4")),
        b"\xaa\xbb\xcc\xdd\xee\xff" * 2 + b"\x08\x06" + b"who has 10.1.2.3",
    ]
    (tmp_path / "in.pcap").write_bytes(pcap([Record(0, one) for one in packets]))
    amqpscope(capsys, "cut", tmp_path / "in.pcap", "-o", tmp_path / "out.pcapng", "--anonymise")
    octets = (tmp_path / "out.pcapng").read_bytes()
    assert b"AMQP\0\0\x09\x01" in octets and b"who has" not in octets
    assert bytes([10, 1, 2, 3]) not in octets and bytes.fromhex("aabbccddeeff") not in octets


@settings(max_examples=15)
@given(st.lists(st.text(min_size=1, max_size=4), min_size=2, max_size=8, unique=True))
def test_stand_ins_of_different_texts_differ_and_have_their_sizes(texts: list[str]) -> None:
    stand_ins = StandIns(b"key")
    octets = [text.encode("utf-8", "replace") for text in texts]
    masked = [stand_ins.binary(one) for one in octets]
    assert [len(one) for one in masked] == [len(one) for one in octets]
    assert len(set(masked)) == len(set(octets))


@settings(max_examples=15)
@given(st.lists(st.binary(min_size=1, max_size=30), unique=True, max_size=8))
def test_stand_ins_of_different_octets_differ(values: list[bytes]) -> None:
    stand_ins = StandIns(b"key")
    masked = [stand_ins.binary(one) for one in values]
    assert [len(one) for one in masked] == [len(one) for one in values]
    assert len(set(masked)) == len(values)


def test_a_word_has_one_stand_in_however_it_is_encoded() -> None:
    stand_ins = StandIns(b"key")
    word = "Größe7"
    plain = stand_ins.text(word.encode()).decode()
    assert unquote(stand_ins.text(quote(word).encode()).decode()) == plain != word
    every = "".join(f"%{octet:02x}" for octet in word.encode())
    assert unquote(stand_ins.text(every.encode()).decode()) == plain
    assert stand_ins.text("abc".encode("utf-16-le")).decode("utf-16-le") == stand_ins.text(b"abc").decode()
    # What is encoded between words stays: `%2F`, `%25`, `%00`.
    assert re.fullmatch(rb"%2[Ff][a-z]{2}%25[0-9]{2}%00", stand_ins.text(b"%2Fqx%2541%00"))


@settings(max_examples=50)
@given(st.binary(min_size=1, max_size=40), st.booleans())
def test_octets_that_are_no_utf8_stay_so(octets: bytes, private: bool) -> None:
    masked = StandIns(b"key").text(octets, private)
    assert len(masked) == len(octets)
    assert _broken(masked) == _broken(octets)


def _broken(octets: bytes) -> int:
    """How many octets are no UTF-8."""
    return sum("\udc80" <= one <= "\udcff" for one in octets.decode("utf-8", "surrogateescape"))


def test_standard_words_stay_but_not_in_what_is_private() -> None:
    stand_ins = StandIns(b"key")
    text = b"amqp:not-found: the queue is missing"
    assert stand_ins.text(text).startswith(b"amqp:not-found: the queue is missing")
    words = re.findall(b"[a-z]{4,}", stand_ins.text(text, True))
    assert len(words) == 4 and not set(words) & set(re.findall(b"[a-z]+", text))


def test_a_word_of_megabytes_gets_each_character_of_its_class() -> None:
    word = "aA7é茶" * 300_000
    standing_in = StandIns(b"key").text(word.encode()).decode()
    assert standing_in != word
    assert re.fullmatch("(?:[a-z][A-Z][0-9][\u0080-\u07ff][\u0800-\ud7ff])+", standing_in)
    assert len(standing_in) == len(word)
    assert StandIns(b"key").text(word.encode()) == standing_in.encode()
    assert StandIns(b"other").text(word.encode()) != standing_in.encode()


def test_small_domains_are_permuted() -> None:
    stand_ins = StandIns(b"key")
    assert len({stand_ins.text(b"%d" % digit) for digit in range(10)}) == 10
    assert len({stand_ins.octets(bytes([one])) for one in range(256)}) == 256
    assert stand_ins.text(b"/queues/orders.eu") != b"/queues/orders.eu"
    assert stand_ins.text(b"/queues/orders.eu").startswith(b"/queues/")
    assert stand_ins.text(b"amq.direct") == b"amq.direct"
    assert stand_ins.address(bytes([127, 0, 0, 1]))[0] == 127


def test_an_octet_sent_again_is_masked_once_in_a_websocket(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packets, sink = packets_of((ROOT / "captures/rules/ws/WS-MASK/clean.pcap").read_bytes())
    request = next(one for one in sink.segments if one.payload.startswith(b"GET "))
    ports = struct.unpack(">HH", request.key[8:])
    again = tcp(b"\0", *ports, request.seq + len(request.payload) - 1, request.ack)
    records = [Record(one.time, one.data) for one in packets]
    first = records[request.packet - 1]
    records.insert(request.packet, Record(first.time, ethernet(ipv4(again))))
    before, after = tmp_path / "before.pcap", tmp_path / "after.pcapng"
    before.write_bytes(pcap(records))
    result = amqpscope(capsys, "cut", before, "-o", after, "--anonymise")
    assert result.status == 0 and "left out" not in result.err
    assert found(capsys, after) == found(capsys, before)
    counts = [amqpscope(capsys, "read", "--count", path).lines[1:] for path in (before, after)]
    assert counts[0] == counts[1] != []

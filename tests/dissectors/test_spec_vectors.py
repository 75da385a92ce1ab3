"""What the specification's text prints in octets, read as it says. The pictures are taken from the XML."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from support.decoded import problems, read_value

import dissectors.spec
from dissectors.amqp10 import registry
from dissectors.amqp10.frame import FrameDecoder, ProtocolHeader
from dissectors.amqp10.types import FORMAT_CODES, ValueReader
from dissectors.amqp10.values import Array, Described, Symbol, Timestamp

XML = Path(dissectors.spec.__file__).parent / "amqp10"
NS = "{http://www.amqp.org/schema/amqp.xsd}"


def picture(file: str, title: str) -> str:
    for element in ElementTree.parse(XML / file).getroot().iter(NS + "picture"):
        if element.get("title") == title:
            return element.text or ""
    raise AssertionError(f"{file} has no picture {title!r}")


def octets_of(line: str) -> bytes:
    """Octets as the pictures write them: 0x.. for one, "text" for its ASCII octets."""
    tokens = re.findall(r'0x([0-9A-Fa-f]{2})|"([^"]*)"', line)
    return b"".join(bytes.fromhex(number) if number else text.encode("ascii") for number, text in tokens)


def line_with(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if start in line)


def test_string() -> None:
    octets = octets_of(line_with(picture("types.xml", "Primitive Format Code (String)"), "0xA1"))
    assert octets == b"\xa1\x1eHello Glorious Messaging World"
    decoded, reader = read_value(octets)
    assert decoded == "Hello Glorious Messaging World"
    assert type(decoded) is str
    assert reader.problems == []


def test_url() -> None:
    octets = octets_of(line_with(picture("types.xml", "Described Format Code (URL)"), "0x00"))
    assert octets == b"\x00\xa1\x03URL\xa1\x1ehttp://example.org/hello-world"
    decoded, reader = read_value(octets)
    assert decoded == Described("URL", "http://example.org/hello-world")
    assert reader.problems == []


def test_book() -> None:
    text = picture("types.xml", "Example Composite Value")
    head = octets_of(line_with(text, "example:book:list"))
    title = octets_of(line_with(text, "AMQP for & by Dummies"))
    authors = octets_of(line_with(text, "Rob J. Godfrey"))
    octets = head + title + authors + b"\x40"
    assert octets.hex(" ") == (
        "00 a3 11 65 78 61 6d 70 6c 65 3a 62 6f 6f 6b 3a 6c 69 73 74 c0 40 03"
        " a1 15 41 4d 51 50 20 66 6f 72 20 26 20 62 79 20 44 75 6d 6d 69 65 73"
        " e0 25 02 a1 0e 52 6f 62 20 4a 2e 20 47 6f 64 66 72 65 79"
        " 13 52 61 66 61 65 6c 20 48 2e 20 53 63 68 6c 6f 6d 69 6e 67 40"
    )
    decoded, reader = read_value(octets)
    assert decoded == Described(
        Symbol("example:book:list"),
        [
            "AMQP for & by Dummies",
            Array("string", ["Rob J. Godfrey", "Rafael H. Schloming"], 2),
            None,
        ],
    )
    assert reader.pos == len(octets)
    assert reader.problems == []


def test_timestamp() -> None:
    text = (XML / "types.xml").read_text()
    number, moment = re.search(
        r"example,\s+(\d+)\s+represents\s+the\s+moment\s+([0-9T:.Z-]+)\.", text
    ).groups()  # type: ignore[union-attr]
    decoded, _ = read_value(b"\x83" + int(number).to_bytes(8))
    assert isinstance(decoded, Timestamp)
    assert decoded.iso() == moment == "2011-07-26T18:21:03.521Z"


def test_every_encoding_of_the_type_list() -> None:
    wanted: dict[int, tuple[str, str, int]] = {}
    for element in ElementTree.parse(XML / "types.xml").getroot().iter(NS + "type"):
        for encoding in element.findall(NS + "encoding"):
            attributes = encoding.attrib
            wanted[int(attributes["code"], 16)] = (
                element.attrib["name"],
                attributes["category"],
                int(attributes["width"]),
            )
    assert {code: name for code, (name, _, _) in wanted.items()} == FORMAT_CODES
    for code, (name, category, width) in wanted.items():
        # An item of each that is as short as can be, and its octets are used up.
        data = {
            "fixed": bytes(width),
            "variable": bytes(width),
            "compound": width.to_bytes(width) + bytes(width),
            "array": (width + 1).to_bytes(max(width, 1)) + bytes(width) + b"\x40",
        }[category]
        reader = ValueReader(bytes([code]) + data, 0, 1 + len(data), 0)
        reader.value()
        assert problems(reader.problems) == [], name
        assert reader.pos == 1 + len(data)


@pytest.mark.parametrize(
    ("file", "protocol_id", "name", "constants"),
    [
        ("transport.xml", 0, "AMQP 1.0", (registry.MAJOR, registry.MINOR, registry.REVISION)),
        ("security.xml", 2, "TLS", (registry.TLS_MAJOR, registry.TLS_MINOR, registry.TLS_REVISION)),
        ("security.xml", 3, "SASL", (registry.SASL_MAJOR, registry.SASL_MINOR, registry.SASL_REVISION)),
    ],
)
def test_protocol_headers(file: str, protocol_id: int, name: str, constants: tuple[int, int, int]) -> None:
    text = (XML / file).read_text()
    drawn = set(re.findall(rf"AMQP%d{protocol_id}\.(\d)\.(\d)\.(\d) +-+>", text))
    assert (str(constants[0]), str(constants[1]), str(constants[2])) in drawn
    octets = b"AMQP" + bytes([protocol_id, *constants])
    assert octets.hex() == f"414d51500{protocol_id}010000"
    decoder = FrameDecoder()
    decoder.feed(octets, 0, 8)
    (frame,) = decoder.frames
    assert (frame.kind, frame.name, frame.size, frame.channel) == ("header", "header", 8, -1)
    assert isinstance(frame.body, ProtocolHeader)
    assert frame.body.protocol() == name
    assert repr(frame.body) == f"ProtocolHeader({protocol_id}, 1, 0, 0)"
    assert frame.problems == []


def test_a_header_of_another_version_as_in_the_negotiation_examples() -> None:
    assert "AMQP%d0.1.1.0" in (XML / "transport.xml").read_text()
    decoder = FrameDecoder()
    decoder.feed(b"AMQP\x00\x01\x01\x00", 0, 8)
    (frame,) = decoder.frames
    assert isinstance(frame.body, ProtocolHeader)
    assert frame.body.protocol() == "unknown"
    assert frame.problems == []


def test_frame_layout() -> None:
    # The picture of a frame: SIZE 0-3, DOFF 4, TYPE 5, CHANNEL 6-7, then to 4*DOFF what is ignored.
    text = "".join(
        element.text or ""
        for element in ElementTree.parse(XML / "transport.xml").getroot().iter(NS + "picture")
    )
    assert re.search(r"0 \| +SIZE +\|", text)
    assert re.search(r"4 \| +DOFF +\| +TYPE +\| +CHANNEL +\|", text)
    assert "(DOFF * 4 - 8) bytes" in text
    assert "(SIZE - DOFF * 4) bytes" in text
    octets = bytes.fromhex("00000016 04 00 0102 aabbccdd eeff0011 00 53 17 c0 01 00")
    decoder = FrameDecoder()
    decoder.feed(octets, 0, len(octets))
    (frame,) = decoder.frames
    assert (frame.kind, frame.name, frame.channel, frame.size) == ("amqp", "end", 0x0102, 22)
    assert frame.extended_header == bytes.fromhex("aabbccddeeff0011")
    assert frame.problems == []


def test_message_format_picture() -> None:
    # Three octets of format, one of version; 0 is the format of messaging.xml.
    assert re.search(r"3 octets +1 octet", (XML / "transport.xml").read_text())
    assert registry.MESSAGE_FORMAT == 0
    assert (registry.PORT, registry.SECURE_PORT, registry.MIN_MAX_FRAME_SIZE) == (5672, 5671, 512)

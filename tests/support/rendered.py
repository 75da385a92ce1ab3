"""What the reports say of octets, without a capture around them."""

from __future__ import annotations

from amqpscope.model.records import Connection, FrameRecord
from amqpscope.reassembly.provenance import Provenance
from amqpscope.report.json_form import FrameForm
from amqpscope.report.links import LinkNames
from amqpscope.report.timeline import Clock, Timeline
from dissectors.amqp091 import frame as amqp091
from dissectors.amqp091.message import Amqp091MessageAssembler

KEY = bytes([10, 0, 0, 1, 10, 0, 0, 2]) + (49152).to_bytes(2, "big") + (5672).to_bytes(2, "big")


def records(client: bytes, server: bytes = b"", lost: int = 0) -> list[FrameRecord]:
    """The frames of AMQP 0-9-1 in the octets of both peers, the client's first.

    lost: so many octets before the client's were not captured.
    """
    connection = Connection("capture", 0, 0, KEY)
    connection.client = 0
    connection.protocol = "amqp091"
    found: list[FrameRecord] = []
    for direction, octets in enumerate((client, server)):
        decoder = amqp091.Amqp091FrameDecoder()
        assembler = Amqp091MessageAssembler(keeping=True)
        if lost and direction == 0:
            decoder.gap(lost)
        decoder.feed(octets, 0, len(octets))
        decoder.end("fin")
        for frame in decoder.frames:
            carried = Provenance(1, 0, -1)
            record = FrameRecord(connection, direction, carried, carried, frame)
            record.message = assembler.take(frame)
            found.append(record)
    return found


def lines(found: list[FrameRecord], verbosity: int = 0) -> list[str]:
    """The timeline of frames, without the columns before their names."""
    names = LinkNames()
    timeline = Timeline(Clock("r"), verbosity, names)
    shown: list[str] = []
    for record in found:
        link = names.of(record)
        for parts, _ in timeline.lines(record, link):
            text = "".join(part for _, part in parts).rstrip()
            shown.append(text[24:] if text[:5].strip().isdigit() else text)
    return shown


def as_json(found: list[FrameRecord], bodies: bool = False) -> list[str]:
    """Frames as JSON."""
    return FrameForm("capture", bodies, LinkNames()).lines(found)

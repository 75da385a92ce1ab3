"""What is fuzzed: each entry takes any octets, drives a part of the product with them, and checks it.

An entry fails by an exception: the product's own, or an assertion that something did not hold which has to
hold for all octets. Where an entry needs more than octets (segments, turns of a conversation) these are the
program of a small machine, reported at its function: any octets are a program, so that nothing is thrown
away.

Time and memory are checked around an entry, see `fuzz.bounds`. What a test or the fuzzer cannot repeat (the
clock, chance) is nowhere in here: cuts and places are taken from the octets' checksum.
"""

from __future__ import annotations

import io
import json
import tempfile
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from fuzz.layer_entry import heads, layers
from fuzz.log_entry import logs
from fuzz.secrets_entry import blocks, keylogs, server_keys
from support import amqp10_encode as amqp
from support import draft2011_encode as draft
from support.all_outputs import failures, ways
from support.capture_files import A4, B4, START, Record, ethernet, ipv4, pcap, tcp
from support.capture_files import Recorder as Segments
from support.decoded import frame_state
from support.segments import captured
from support.streams import Recorder
from support.streams import octets as stream_octets

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.capture.pcap import PcapReader
from amqpscope.capture.pcapng import PcapngReader
from amqpscope.capture.reader import CaptureReader, for_magic
from amqpscope.capture.source import CaptureSource
from amqpscope.errors import CaptureError
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.reassembly.connection import TcpConnection
from amqpscope.reassembly.provenance import Provenance
from amqpscope.report.amqp10.json_form import value_json
from amqpscope.report.amqp10.value_text import TEXT
from amqpscope.report.capture_summary import CaptureSummary
from amqpscope.report.diagnosis_text import diagnosis_line
from amqpscope.report.findings import finding_json
from amqpscope.report.json_form import FrameForm
from amqpscope.report.links import LinkNames
from amqpscope.report.summary import connection_object, summary_json
from amqpscope.report.summary_text import connection_lines
from amqpscope.report.timeline import Clock, Timeline
from amqpscope.report.verdict import Verdicts
from dissectors.amqp091 import frame as frame091
from dissectors.amqp091 import message as message091
from dissectors.amqp10.delivery import MessageAssembler
from dissectors.amqp10.frame import FrameDecoder
from dissectors.amqp10.message import BATCH_FORMAT, Message
from dissectors.amqp10.outline import SECTIONS, outline
from dissectors.amqp10.types import ValueReader
from dissectors.amqp10_draft2011.frame import DialectDecoder
from dissectors.amqp10_draft2011.message import DraftAssembler, DraftMessage
from dissectors.amqp10_draft2011.names import DRAFT_2011
from dissectors.interface import Assembled, Assembler, Frame, Problem
from dissectors.limits import MAX_PROBLEMS

__all__ = ["ENTRIES"]

Entry = Callable[[bytes], None]
NewDecoder = Callable[[bool], FrameDecoder]

# Problems that a frame may have beside those of the values in it.
_OF_THE_FRAME = 4

# Decompressed octets that are read of one input: what a few kB can expand to would take all the time.
_MOST_CONTENT = 256 * 1024

FIN, SYN, RST, ACK = 1, 2, 4, 16
MILLISECOND = 1_000_000
KEY = bytes((10, 0, 0, 1, 10, 0, 0, 2)) + (51034).to_bytes(2, "big") + (5672).to_bytes(2, "big")


def captures(octets: bytes) -> None:
    """A capture file: in any pieces, and moved to another process in the middle, it is read the same."""
    content, damage = _content(octets, 1 << 20)
    chance = zlib.crc32(octets)
    assert _content(octets, 5 + chance % 1000) == (content, damage)
    assert damage == printable_ascii(damage)
    if len(content) < 4 or for_magic(content[:4], Segments()) is None:
        return
    whole, reader = _read(content, [], False)
    cuts = sorted({(chance * (n + 1) * 7919) % len(content) for n in range(12)})
    pieces, other = _read(content, cuts, True)
    assert pieces.segments == whole.segments
    assert pieces.notes == whole.notes
    assert other.dump() == reader.dump()
    assert reader.offset <= len(content)
    assert len(whole.segments) <= reader.number
    assert len(whole.notes) <= 100
    for note in whole.notes:
        assert note.code.startswith("capture/")
        assert note.detail == printable_ascii(note.detail)


def _content(octets: bytes, piece: int) -> tuple[bytes, str]:
    """What a file's octets are when they are decompressed, read in such pieces; and the damage met."""
    source = CaptureSource(io.BytesIO(octets), "file")
    parts: list[bytes] = []
    size = 0
    try:
        source.start(Segments())
        while size < _MOST_CONTENT:
            part = source.read(min(piece, _MOST_CONTENT - size))
            if not part:
                break
            assert len(part) <= max(piece, 4)
            parts.append(part)
            size += len(part)
    except CaptureError as error:
        reason = str(error)
        assert reason == printable_ascii(reason)
        return b"", reason
    return b"".join(parts), source.damage if size < _MOST_CONTENT else ""


def _read(content: bytes, cuts: list[int], move: bool) -> tuple[Segments, CaptureReader]:
    sink = Segments()
    reader = for_magic(content[:4], sink)
    assert reader is not None
    for begin, end in pairwise([0, *cuts, len(content)]):
        reader.feed(content[begin:end])
        if move:
            state = reader.dump()
            if isinstance(reader, PcapReader):
                reader = PcapReader.load(state, sink)
            else:
                reader = PcapngReader.load(state, sink)
            assert reader.dump() == state
    reader.finish()
    return sink, reader


def reassembly(octets: bytes) -> None:
    """Segments of one connection: what comes out has no holes and no overlaps, and may be moved.

    An operation is an octet (bit 0: direction; bits 1 to 3: what; bits 4 to 7: variant) and its arguments.
    Octets are sent from where the direction has come to, and acknowledge all that the other has sent, each
    changed by a signed argument.
    """
    chance = zlib.crc32(octets)
    first = _replay_segments(octets, -1)
    assert _replay_segments(octets, 1 + chance % 12) == first


def _replay_segments(program: bytes, move_after: int) -> list[tuple[Any, ...]]:
    take = Program(program)
    recorder = Recorder(causal=False)
    connection = TcpConnection(recorder)
    sent = [0, 0]
    initial = (0xFFFFFF00, 2000)  # one of them wraps early
    time = 0
    packet = 0
    while take.left():
        operation = take.octet()
        direction = operation & 1
        what = operation >> 1 & 7
        variant = operation >> 4
        offset = sent[direction]
        ack = sent[1 - direction]
        flags = ACK
        payload = b""
        cut = 0
        time += MILLISECOND
        if what == 0:
            payload = stream_octets(direction, offset, offset + take.octet() * (variant + 1))
        elif what == 1:  # from elsewhere, with another acknowledgement, and perhaps other content
            offset += take.signed() * (variant + 1)
            ack += take.signed()
            payload = stream_octets(direction, offset, offset + take.octet())
            if variant & 1:
                payload = bytes(octet ^ 1 for octet in payload)
        elif what == 2:
            cut = take.octet() * (variant + 1)
            payload = stream_octets(direction, offset, offset + take.octet())
        elif what == 3:
            flags = take.octet() & (FIN | SYN | RST | ACK)
            if flags & SYN:
                offset -= 1
            if variant & 1:
                payload = stream_octets(direction, offset, offset + take.octet())
        elif what == 4:  # octets that are sent and not captured
            sent[direction] += take.word() << variant
            continue
        elif what == 5:
            offset += take.signed()
            ack += take.signed() << variant
        elif what == 6:  # anywhere
            offset = int.from_bytes(take.octets(4), "big")
            ack = int.from_bytes(take.octets(4), "big")
            payload = stream_octets(direction, 0, take.octet())
        else:
            time += 1 << take.octet() % 48
            if variant & 1:
                connection.tick(time)
            continue
        packet += 1
        sent[direction] = max(sent[direction], offset + len(payload) + cut) if what != 6 else sent[direction]
        if packet == move_after:
            state = connection.dump()
            connection = TcpConnection.load(state, recorder)
            assert connection.dump() == state
        segment = captured(payload, packet=packet, time=time, flags=flags, cut=cut)
        segment.seq = (initial[direction] + offset) & 0xFFFFFFFF
        segment.ack = (initial[1 - direction] + ack) & 0xFFFFFFFF if flags & ACK else -1
        segment.identification = 0 if what == 6 else 40 + (packet - variant) % 100
        connection.starts_new(direction, segment.seq, flags, time, bool(variant & 8))
        connection.segment(direction, segment)
    connection.finish()
    assert connection.waiting() == 0
    for direction in (0, 1):
        facts = connection.facts(direction)
        delivered = sum(len(event[3]) for event in recorder.events if event[:2] == ("data", direction))
        missing = sum(event[3] for event in recorder.events if event[:2] == ("gap", direction))
        assert (facts.delivered, facts.missing) == (delivered, missing)
    for _, code, _, detail in recorder.notes:
        assert code.startswith("capture/")
        assert detail == printable_ascii(detail)
    return list(recorder.events)


def types(octets: bytes) -> None:
    """Any value: the same wherever it lies, shown in text and JSON."""
    reader = ValueReader(octets, 0, len(octets), 0)
    while reader.pos < len(octets) and reader.budget > 0:
        before = int(reader.pos)
        value = reader.value()
        assert before < reader.pos <= len(octets)
        text = TEXT.typed(value)
        assert text.isprintable()
        _visible(value_json(value))
    _sound(reader.problems, len(octets))
    inside = ValueReader(b"\xa1" * 5 + octets + b"\x40" * 9, 5, 5 + len(octets), 5)
    apart = ValueReader(octets, 0, len(octets), 0)
    while apart.pos < len(octets) and apart.budget > 0:
        assert repr(inside.value()) == repr(apart.value())
        assert inside.pos == apart.pos + 5
    assert [repr(one) for one in inside.problems] == [repr(one) for one in apart.problems]


def performatives(octets: bytes) -> None:
    """A frame with any body, in any pieces, whole or cut short, and the frame behind it.

    The first octet says whether it is a SASL frame (bit 0) and how long the extended header is (bits 1, 2).
    """
    _performative(octets, FrameDecoder)


def performatives2011(octets: bytes) -> None:
    """The same in the April-2011 draft, and the message that a transfer brings."""
    _performative(octets, _draft_decoder)


def _draft_decoder(midstream: bool) -> FrameDecoder:
    decoder = DialectDecoder(midstream)
    decoder.take_for(DRAFT_2011)
    return decoder


def _performative(octets: bytes, new: NewDecoder) -> None:
    if not octets:
        return
    extended = octets[0] >> 1 & 3
    rest = bytes(4 * extended) + octets[1:]
    size = (8 + len(rest)).to_bytes(4, "big")
    frame = size + bytes((2 + extended, octets[0] & 1, 0, 3)) + rest
    stream = b"AMQP\0\1\0\0" + frame + _CLOSE
    chance = zlib.crc32(octets)
    whole = _frames(stream, [], new)
    assert sum(int(one.size) for one in whole) == len(stream)
    assert (whole[-1].name, whole[-1].problems) == ("close", [])
    pieces = _frames(stream, sorted({8 + chance % (len(frame) + 1), chance // 7 % len(stream)}), new)
    assert [frame_state(one) for one in pieces] == [frame_state(one) for one in whole]
    for one in whole:
        _sound(one.problems, int(one.size))
    records = [_record(one) for one in whole]
    assembler: Assembler = MessageAssembler() if new is FrameDecoder else DraftAssembler()
    for record in records:
        record.message = assembler.take(record.frame)
    _show(records)
    # As if it were behind lost octets, and cut short.
    for end in (len(stream), 8 + chance % (len(frame) + 1)):
        lost = new(True)
        lost.feed(stream, 8, end)
        lost.end("capture")
        assert sum(int(one.size) for one in lost.frames) == end - 8


# In the encoding that both dialects have.
_CLOSE = amqp.frame(draft.close())


def _frames(stream: bytes, cuts: list[int], new: NewDecoder = FrameDecoder) -> list[Frame]:
    decoder = new(False)
    frames: list[Frame] = []
    for begin, end in pairwise([0, *cuts, len(stream)]):
        buffer = b"\x02" * 3 + stream[begin:end] + b"\0" * 2
        decoder.feed(buffer, 3, 3 + end - begin)
        frames += decoder.frames
        decoder.frames = []
        if cuts:
            state = decoder.dump()
            decoder = type(decoder).load(state)
            assert decoder.dump() == state
    decoder.end("fin")
    return frames + decoder.frames


def messages(octets: bytes) -> None:
    """A message with any payload.

    Bit 0 of the first octet: whether it is a batch, else of format 0. Bit 1: whether something is missing.
    """
    if not octets:
        return
    message_format = BATCH_FORMAT if octets[0] & 1 else 0
    complete = not octets[0] & 2
    payload = octets[1:]
    message = Message(message_format, [payload], len(payload), complete)
    sections = message.sections()
    at = 0
    for section in sections:
        assert section.offset == at
        at += section.size
    assert at == len(payload) or message.problems
    _sound(message.problems, len(payload))
    known = int(outline(b"\x40" * 3 + payload + b"\xa1", 3, 3 + len(payload))) & SECTIONS
    if known and complete:
        assert message.problems == []
        assert [section.name for section in sections] == _names(known)
    half = zlib.crc32(octets) % (len(payload) + 1)
    parts = Message(message_format, [payload[:half], payload[half:]], len(payload), complete)
    assert repr([(one.name, one.value) for one in parts.sections()]) == repr(
        [(one.name, one.value) for one in sections]
    )
    for one in message.batch():
        one.sections()
    transfer = _frames(b"AMQP\0\1\0\0" + _TRANSFER, [])[1]
    record = _record(transfer)
    record.message = message
    _show([record])
    # The way of a frame's payload to a message.
    assembler = MessageAssembler()
    body = _TRANSFER[8:] + payload
    for one in _frames((8 + len(body)).to_bytes(4, "big") + _TRANSFER[4:8] + body, []):
        assembler.take(one)


_TRANSFER = amqp.frame(amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t"))
_SECTIONS = (
    "",
    "header",
    "delivery-annotations",
    "message-annotations",
    "properties",
    "application-properties",
    "data",
    "amqp-sequence",
    "amqp-value",
    "footer",
)


def _names(known: int) -> list[str]:
    names: list[str] = []
    while known:
        names.insert(0, _SECTIONS[known & 15])
        known >>= 4
    return names


def connections(octets: bytes) -> None:
    """A conversation of two peers, judged: moved to another process in the middle it is judged the same.

    An operation is an octet (bits 0 to 2: what; bit 3: direction; bits 4 to 7: variant) and its arguments.
    """
    _judged(octets, _frame10)


def connections091(octets: bytes) -> None:
    """The same of AMQP 0-9-1."""
    _judged(octets, _frame091)


def commands(octets: bytes) -> None:
    """A conversation as a capture, read in two of all the ways there are: by a command in one of its forms,
    by a live watch, by the pipeline.

    Bit 0 of the first octet: whether it is of AMQP 0-9-1. The others, and the checksum, choose the ways.
    """
    if not octets:
        return
    chance = zlib.crc32(octets)
    frame_of = _frame091 if octets[0] & 1 else _frame10
    records = []
    for sent in _segments(octets[1:], frame_of):
        ports = (51034, 5672) if sent.direction == 0 else (5672, 51034)
        segment = tcp(sent.payload, *ports, sent.seq, max(sent.ack, 0), sent.flags)
        source, destination = (A4, B4) if sent.direction == 0 else (B4, A4)
        data = ethernet(ipv4(segment, source, destination, total=20 + len(segment) + sent.cut))
        records.append(Record(START + sent.time, data, len(data) + sent.cut))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "capture.pcap")
        path.write_bytes(pcap(records))
        known = ways(path, [1 + chance % max(len(records), 1)])
        chosen = {(octets[0] >> 1) % len(known), chance // 7 % len(known)}
        reported = [known[number]() for number in sorted(chosen)]
    assert failures(reported) == []


def _frame10(take: Program, what: int) -> bytes:
    """An AMQP (1) or SASL (2) frame of the right size."""
    channel = take.octet()
    body = take.octets(take.word() & 0x3FFF)
    return (8 + len(body)).to_bytes(4, "big") + bytes((2, what - 1, 0, channel)) + body


def _frame091(take: Program, what: int) -> bytes:
    """A method (1), or a content header, body or heartbeat (2), of the right size."""
    kind = 1 if what == 1 else (2, 3, 8, 4)[take.octet() & 3]
    channel = take.octet() & 3
    body = take.octets(take.word() & 0x3FFF)
    return bytes((kind, 0, channel)) + len(body).to_bytes(4, "big") + body + b"\xce"


def _judged(octets: bytes, frame_of: Callable[[Program, int], bytes]) -> None:
    chance = zlib.crc32(octets)
    first, frames, findings, analysis = _converse(octets, -1, frame_of)
    second, _, _, _ = _converse(octets, 1 + chance % 24, frame_of)
    assert second == first
    _show(frames)
    summary = CaptureSummary({})
    for record in frames:
        summary.add(record)
    clock = Clock("r")
    clock.start(0)
    verdicts = Verdicts(clock, 1000)
    for finding in findings:
        verdicts.add(finding)
        _visible(finding_json(finding, "capture"))
    _lines(list(verdicts.lines()))
    for line in connection_lines(analysis, summary.connections.get(analysis.connection), 80):
        assert "".join(text for _, text in line).isprintable()
    summary.judge(findings)
    known, found = summary.take(analysis)
    reported = json.dumps(connection_object(analysis, known))
    diagnosed = [json.dumps(one.json()) for one in found]
    _visible("".join(summary_json("capture", [reported], diagnosed, [])))
    _lines([(diagnosis_line(one), 0) for one in found])


_HEADERS = (
    b"AMQP\0\1\0\0",
    b"AMQP\3\1\0\0",
    b"AMQP\2\1\0\0",
    b"AMQP\0\0\x09\1",
    b"AMQP\1\1\0\x0a",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\0\x30\x01\0\0\x2c\x03\x03",
    b"AMQP",
)


class Sent(NamedTuple):
    """A segment of one of the two. ack: -1 for none. cut: octets of it that were not captured."""

    direction: int
    time: int
    seq: int
    ack: int
    flags: int
    payload: bytes
    cut: int


def _segments(program: bytes, frame_of: Callable[[Program, int], bytes]) -> Iterator[Sent]:
    """What the two send."""
    take = Program(program)
    sent = [0, 0]
    heard = [0, 0]
    initial = (1000, 0xFFFFFF00)
    time = MILLISECOND

    def segment(direction: int, offset: int, payload: bytes, flags: int, cut: int = 0) -> Sent:
        seq = (initial[direction] + 1 + offset) & 0xFFFFFFFF
        ack = (initial[1 - direction] + 1 + heard[direction]) & 0xFFFFFFFF if flags & ACK else -1
        return Sent(direction, time, seq, ack, flags, payload, cut)

    if not program or not program[0] & 0x80:
        yield segment(0, -1, b"", SYN)
        yield segment(1, -1, b"", SYN | ACK)
    while take.left():
        operation = take.octet()
        what = operation & 7
        direction = operation >> 3 & 1
        variant = operation >> 4
        time += MILLISECOND
        if not variant & 1:
            heard[direction] = sent[1 - direction]
        payload = b""
        cut = 0
        if what == 0:
            payload = take.octets(take.octet())
        elif what in (1, 2):
            payload = frame_of(take, what)
        elif what == 3:
            payload = _HEADERS[take.octet() & 7]
        elif what == 4:
            sent[direction] += take.word()
            continue
        elif what == 5:
            yield segment(direction, sent[direction], b"", take.octet() & (FIN | SYN | RST | ACK))
            continue
        elif what == 6:  # earlier or later octets
            offset = max(sent[direction] + take.signed(), 0)
            payload = take.octets(take.octet())
            yield segment(direction, offset, payload, ACK)
            sent[direction] = max(sent[direction], offset + len(payload))
            continue
        else:
            time += 1 << take.octet() % 48
            continue
        if variant & 2:
            cut = min(len(payload), 5)
        elif variant & 4 and len(payload) > 1:  # in two segments
            yield segment(direction, sent[direction], payload[:1], ACK)
            sent[direction] += 1
            payload = payload[1:]
        yield segment(direction, sent[direction], payload[: len(payload) - cut], ACK, cut)
        sent[direction] += len(payload)


def _converse(
    program: bytes, move_after: int, frame_of: Callable[[Program, int], bytes]
) -> tuple[list[Any], list[FrameRecord], list[Finding], ConnectionAnalysis]:
    context = move_after < 0  # what lies around findings does not move
    output = AnalysisOutput(judge=True, context=context)
    out, notes, findings = output.records, output.notes, output.findings
    assert out is not None and findings is not None
    analysis = ConnectionAnalysis(Connection("capture", 0, 0, KEY), output)
    for packet, sent in enumerate(_segments(program, frame_of), 1):
        if packet == move_after:
            state = analysis.dump()
            analysis = ConnectionAnalysis.load(state, output)
            assert repr(analysis.dump()) == repr(state)  # nan is not what it equals
        segment = captured(sent.payload, packet=packet, time=sent.time, seq=sent.seq, ack=sent.ack)
        segment.flags, segment.cut = sent.flags, sent.cut
        analysis.tcp.segment(sent.direction, segment)
    analysis.finish("capture")
    reported = [
        [_about(record) for record in out],
        [(one.code, one.packet, one.time, one.detail) for one in notes],
        [finding_json(one, "capture") for one in findings],
        analysis.connection.dump(),
    ]
    for note in notes:
        assert note.detail == printable_ascii(note.detail)
    return reported, out, findings, analysis


def _about_message(message: Assembled | None) -> tuple[Any, ...] | None:
    if isinstance(message, (Message, DraftMessage)):
        return (message.octets, message.complete, int(message.size))
    if isinstance(message, message091.Amqp091Message):
        return (message.body, message.complete, int(message.seen))
    return None


def _about(record: FrameRecord) -> tuple[Any, ...]:
    return (
        int(record.direction),
        int(record.packet),
        int(record.last_packet),
        int(record.acknowledged),
        frame_state(record.frame),
        _about_message(record.message),
    )


class Program:
    """Arguments taken from octets, zeros behind their end."""

    def __init__(self, program: bytes) -> None:
        self._program = program
        self._at = 0

    def left(self) -> bool:
        return self._at < len(self._program)

    def octets(self, size: int) -> bytes:
        """The next octets, fewer at the end."""
        taken = self._program[self._at : self._at + size]
        self._at += size
        return taken

    def octet(self) -> int:
        return int.from_bytes(self.octets(1), "big")

    def word(self) -> int:
        return int.from_bytes(self.octets(2), "big")

    def signed(self) -> int:
        return int.from_bytes(self.octets(1), "big", signed=True)


def frames091(octets: bytes) -> None:
    """A direction of AMQP 0-9-1, in any pieces, with a hole, moved to another process in between.

    The first octet says whether it begins in the middle (bit 0), the dialect of its tables (bits 1, 2), and
    where in it the hole is (the others; 0: none).
    """
    if len(octets) < 2:
        return
    stream = octets[1:]
    hole = (octets[0] >> 3) * len(stream) // 32
    chance = zlib.crc32(octets)
    whole = _frames091(octets[0], stream, hole, [])
    assert sum(int(one.size) for one in whole) == len(stream) + (_HOLE if hole else 0)
    cuts = sorted(
        {chance % (len(stream) + 1), chance // 7 % (len(stream) + 1), chance // 99 % 40 % len(stream)}
    )
    pieces = _frames091(octets[0], stream, hole, cuts)
    assert [frame_state(one) for one in pieces] == [frame_state(one) for one in whole]
    if octets[0] & 1:
        # Nobody is accused for what was read in the middle of a stream.
        assert not [problem for one in whole for problem in one.problems if problem.code.isupper()]
    assembler, other = message091.Amqp091MessageAssembler(True), message091.Amqp091MessageAssembler(True)
    records: list[FrameRecord] = []
    for one in whole:
        _sound(one.problems, int(one.size))
        found = len(one.problems)
        ended = assembler.take(one)
        records.append(_record(one))
        records[-1].message = ended
        faults = one.problems[found:]
        again = other.take(one)
        assert repr(one.problems[found + len(faults) :]) == repr(faults)
        assert repr(ended) == repr(again)
        if ended is not None and again is not None:
            assert (ended.complete, ended.body) == (again.complete, again.body)
            assert not ended.complete or len(ended.body) == ended.announced
        other = message091.Amqp091MessageAssembler.load(other.dump())
    _show(records)


# Octets of the hole in a direction: more than a frame header has.
_HOLE = 20


def _frames091(form: int, stream: bytes, hole: int, cuts: list[int]) -> list[Frame]:
    decoder = frame091.Amqp091FrameDecoder(form & 1 == 1, min(form >> 1 & 3, 2))
    frames: list[Frame] = []
    for begin, end in pairwise(sorted({0, *cuts, hole, len(stream)})):
        if begin == hole and hole:
            decoder.gap(_HOLE)
        buffer = b"\x02" * 3 + stream[begin:end] + b"\0" * 2
        decoder.feed(buffer, 3, 3 + end - begin)
        frames += decoder.frames
        decoder.frames = []
        if cuts:
            state = decoder.dump()
            decoder = frame091.Amqp091FrameDecoder.load(state)
            assert decoder.dump() == state
    decoder.end("fin")
    return frames + decoder.frames


def printable_ascii(text: str) -> str:
    """The text with anything replaced that may not be in it."""
    return text if text.isascii() and text.isprintable() else ascii(text) + "!"


def _sound(problems: list[Problem], size: int) -> None:
    """Problems are bounded, lie in what they are of, and hold nothing that could be a command."""
    assert len(problems) <= MAX_PROBLEMS + _OF_THE_FRAME
    for problem in problems:
        assert 0 <= problem.offset <= size
        assert problem.path.isprintable()
        assert problem.reason == printable_ascii(problem.reason)


def _record(frame: Frame) -> FrameRecord:
    return FrameRecord(Connection("capture", 0, 0, KEY), 0, Provenance(1, 2, 5), Provenance(3, 4, 5), frame)


def _show(records: list[FrameRecord]) -> None:
    """All forms of output take the frames, and nothing in them is more than visible."""
    for verbosity in (0, 1, 2):
        clock = Clock("r")
        clock.start(0)
        names = LinkNames()
        timeline = Timeline(clock, verbosity, names)
        for record in records:
            _lines(timeline.lines(record, names.of(record)))
    names = LinkNames()
    form = FrameForm("capture", True, names)
    for record in records:
        _visible(form.line(record, names.of(record)))


def _lines(lines: list[Any]) -> None:
    for line, _ in lines:
        text = "".join(part for _, part in line)
        assert text.isprintable(), ascii(text)


def _visible(form: str) -> None:
    assert form.isascii()
    assert form.isprintable()
    json.loads(form)


ENTRIES: dict[str, Entry] = {
    "captures": captures,
    "reassembly": reassembly,
    "types": types,
    "performatives": performatives,
    "performatives2011": performatives2011,
    "messages": messages,
    "connections": connections,
    "frames091": frames091,
    "connections091": connections091,
    "commands": commands,
    "layers": layers,
    "heads": heads,
    "keylogs": keylogs,
    "server-keys": server_keys,
    "secret-blocks": blocks,
    "logs": logs,
}

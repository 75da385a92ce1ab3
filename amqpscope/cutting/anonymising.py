"""A capture once more, with stand-ins for all that names somebody or is anybody's data.

Theory of operation. The frames of the capture are masked (`masking`), and the masked octets are kept by
their place in their stream (`overlay`). Then each TCP segment is written anew: an IP header with stand-ins
for the addresses; the TCP header, with the options that everybody uses; and the octets that the overlay has
for its place. So a retransmission has the same octets again, nothing below IP is left, and octets that belong
to no frame are zeros. Connections whose octets cannot be masked are left out.
"""

from collections.abc import Collection
from functools import partial
from typing import Final, NamedTuple

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.recorder import Packet
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder
from amqpscope.capture.segment import Segment
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.source import CaptureSource
from amqpscope.cutting.masking import Masker, scrubbed
from amqpscope.cutting.masking_proxy import masked_header
from amqpscope.cutting.masking_websocket import WebSocketMasker
from amqpscope.cutting.overlay import Overlay
from amqpscope.cutting.stand_ins import StandIns
from amqpscope.cutting.survey import CutSurvey, number_of
from amqpscope.cutting.writing import recorder_at
from amqpscope.input.capture import BLOCK, Capture
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.protocols import PROTOCOLS
from amqpscope.reassembly.sequence import unwrap
from dissectors.proxy import proxy_begun, proxy_size

__all__ = ["Anonymised", "anonymise"]

_RAW_IP: Final = 101  # LINKTYPE_RAW
_TCP: Final = 6
_SYN: Final = 0x02
_OUTER: Final = 2  # what carries direction 0 has this number
_BEGIN: Final = 16  # octets of a stream that shows no frame
_OPTIONS: Final = frozenset({2, 3, 4, 5, 8})  # segment size, window scale, SACK (2), time stamps


class Anonymised(NamedTuple):
    """What was replaced.

    numbers, streams: for each packet, from 1 on, its number and that of its connection before. replaced: how
    many values of each kind. left_out: why connections are left out, and how many. zeroed: octets that belong
    to no frame.
    """

    numbers: list[int]
    streams: list[int]
    replaced: dict[str, int]
    left_out: dict[str, int]
    zeroed: int


def anonymise(
    capture: Capture,
    path: str,
    out: str,
    key: bytes,
    ports: bool,
    loose: Collection[int] = (),
    without: Collection[int] = (),
) -> Anonymised:
    """Write the capture at `path` to a pcapng file at `out`, with stand-ins.

    capture: the same one, to be read. key: of the stand-ins. ports: replace the ports, too. loose:
    connections whose octets that belong to no frame are searched for texts; those of others are zeros.
    without: connections that are left out. Raises CaptureError.
    """
    stand_ins = StandIns(key)
    overlay = Overlay()
    try:
        masking = _Masking(stand_ins, overlay, loose, without)
        with capture:
            survey = CutSurvey(capture)
            survey.read(masking.take, masking.over)
        if masking.enclosed:
            _Enclosing(survey, masking).run(path)
        rebuilding = _Rebuilding(survey, masking, recorder_at(out), ports)
        rebuilding.run(path)
        streams = [survey.streams[number] for number in rebuilding.numbers]
        return Anonymised(rebuilding.numbers, streams, stand_ins.counts, masking.left_out, overlay.unread)
    finally:
        overlay.close()


class _Masking:
    """Masks all frames. origins: of each connection that can be written, the sequence numbers of offset 0.
    enclosed: whether one of these has octets before or around its frames.
    """

    def __init__(
        self, stand_ins: StandIns, overlay: Overlay, loose: Collection[int], without: Collection[int]
    ) -> None:
        self._loose = loose
        self._without = without
        self.stand_ins = stand_ins
        self.overlay = overlay
        self.origins: dict[int, tuple[Connection, int, int]] = {}
        self.left_out: dict[str, int] = {}
        self.enclosed = False
        self._maskers: dict[tuple[int, int], Masker] = {}

    def take(self, record: FrameRecord) -> None:
        """The next frame."""
        key = (number_of(record.connection), int(record.direction))
        masker = self._maskers.get(key)
        if masker is None:
            protocol = PROTOCOLS.get(record.connection.protocol)
            if protocol is None:
                return
            masker = self._maskers[key] = protocol.masker(self.stand_ins)
        for offset, octets in masker.take(record.frame):
            self.overlay.put(*key, offset, octets)

    def over(self, analysis: ConnectionAnalysis) -> None:
        """A connection is over."""
        connection = analysis.connection
        number = number_of(connection)
        why = _obstacle(connection)
        if number in self._without:
            why = "its stand-ins show other findings"
        if why:
            self.left_out[why] = self.left_out.get(why, 0) + 1
        else:
            origins = [int(analysis.tcp.stream(direction).origin) for direction in (0, 1)]
            self.origins[number] = (connection, origins[0], origins[1])
            self.enclosed = self.enclosed or _is_enclosed(connection)
        for direction in (0, 1):
            masker = self._maskers.pop((number, direction), None)
            for offset, octets in masker.finish() if masker is not None else []:
                self.overlay.put(number, direction, offset, octets)

    def masked(self, connection: Connection, direction: int, offset: int, octets: bytes) -> bytes:
        """What stands for octets of a stream of frames, from this offset on."""
        # What another protocol begins with shows which one it is.
        number = number_of(connection)
        read = len(octets) if number in self._loose else max(_BEGIN - offset, 0)
        otherwise = scrubbed(octets[:read], self.stand_ins) + bytes(max(len(octets) - read, 0))
        return self.overlay.get(number, direction, offset, otherwise)


def _obstacle(connection: Connection) -> str:
    """Why a connection cannot be masked, "" if it can."""
    websocket = connection.websocket
    if websocket is not None and (websocket.deflate or connection.proxied):
        return "compressed WebSocket" if websocket.deflate else "WebSocket behind a PROXY header"
    if connection.tls is not None or connection.protocol == "tls":
        return "TLS"
    if connection.failed:
        return "amqpscope failed to read it"
    return "" if connection.protocol in PROTOCOLS else "no AMQP 1.0 or 0-9-1"


class _Segments(SegmentSink):
    """Reads the segments of the connections that are written, each with its place in its stream."""

    def __init__(self, survey: CutSurvey, masking: _Masking) -> None:
        super().__init__()
        self._survey = survey
        self._masking = masking
        # How far each direction is: what a sequence number is near to.
        self._near: dict[tuple[int, int], int] = {}

    def run(self, path: str) -> None:
        """Read the capture."""
        source = CaptureSource(path)
        try:
            reader = source.start(self, PacketDecoder(self))
            while block := source.read(BLOCK):
                reader.feed(block)
                self.block_over()
            reader.finish()
        finally:
            source.close()
            self.over()

    def block_over(self) -> None:
        """A part of the file was read."""

    def over(self) -> None:
        """The whole file was read, or that failed."""

    def segment(self, segment: Segment) -> None:
        stream = self._survey.streams[int(segment.packet)]
        known = self._masking.origins.get(stream)
        if known is None:
            return
        connection, *origins = known
        direction = 0 if segment.key == connection.key else 1
        place = (stream, direction)
        first = int(segment.seq) + (1 if int(segment.flags) & _SYN else 0)
        offset = int(unwrap(first, origins[direction], self._near.get(place, 0)))
        self._near[place] = offset
        self.placed(segment, connection, direction, offset)

    def placed(self, segment: Segment, connection: Connection, direction: int, offset: int) -> None:
        """The next segment. offset: of its octets in the stream of its direction."""
        raise NotImplementedError


class _Enclosing(_Segments):
    """Masks the octets that stand before or around frames, in the order of their streams: a PROXY header, and
    what WebSocket puts around its payloads.
    """

    def __init__(self, survey: CutSurvey, masking: _Masking) -> None:
        super().__init__(survey, masking)
        self._octets = Overlay()

    def placed(self, segment: Segment, connection: Connection, direction: int, offset: int) -> None:
        if _is_enclosed(connection):
            octets = segment.buf[int(segment.start) : int(segment.end)]
            self._octets.put(number_of(connection), direction, offset, octets)

    def over(self) -> None:
        try:
            for connection, _, _ in self._masking.origins.values():
                for direction in (0, 1):
                    if connection.websocket is not None:
                        self._mask_websocket(connection, direction)
                    elif connection.proxied:
                        self._mask_proxy(connection, direction)
        finally:
            self._octets.close()

    def _read(self, connection: Connection, direction: int, at: int, end: int) -> bytes:
        """The next octets of a direction from here on, up to this end."""
        size = min(end - at, BLOCK)
        return self._octets.get(number_of(connection), direction, at, bytes(size)) if size > 0 else b""

    def _end(self, connection: Connection, direction: int) -> int:
        """Where the first octets of a direction are missing."""
        return self._octets.extent(number_of(connection), direction)

    def _mask_websocket(self, connection: Connection, direction: int) -> None:
        """All that a direction says."""
        masking = self._masking
        inner = partial(masking.masked, connection, direction)
        masker = WebSocketMasker(masking.stand_ins, inner)
        at, end = 0, self._end(connection, direction)
        while octets := self._read(connection, direction, at, end):
            masking.overlay.put(number_of(connection), _OUTER + direction, at, masker.take(octets))
            at += len(octets)

    def _mask_proxy(self, connection: Connection, direction: int) -> None:
        """A header that a direction begins with."""
        front = self._read(connection, direction, 0, self._end(connection, direction))
        size = int(proxy_size(front))
        if size > 0 or proxy_begun(front):
            header = masked_header(front[:size] if size > 0 else front, self._masking.stand_ins)
            self._masking.overlay.put(number_of(connection), direction, 0, header)


def _is_enclosed(connection: Connection) -> bool:
    """Whether octets stand before or around the frames of a connection."""
    return connection.proxied or connection.websocket is not None


class _Rebuilding(_Segments):
    """Writes each segment anew."""

    def __init__(
        self,
        survey: CutSurvey,
        masking: _Masking,
        recorder: PcapngRecorder,
        ports: bool,
    ) -> None:
        super().__init__(survey, masking)
        self.numbers = [0]
        self._recorder = recorder
        self._ports = ports

    def block_over(self) -> None:
        self._recorder.flush()

    def over(self) -> None:
        self._recorder.finish(0, [], [])

    def dropped(self, packet: int, time: int, count: int) -> None:
        self._recorder.lost(0, count)

    def placed(self, segment: Segment, connection: Connection, direction: int, offset: int) -> None:
        start, end = int(segment.start), int(segment.end)
        payload = b""
        if start < end:
            octets = segment.buf[start:end]
            if connection.websocket is None:
                payload = self._masking.masked(connection, direction, offset, octets)
            else:
                outer = (number_of(connection), _OUTER + direction)
                payload = self._masking.overlay.get(*outer, offset, bytes(len(octets)))
        octets = self._datagram(segment, _tcp_header(segment), payload)
        packet = Packet()
        packet.number = len(self.numbers)
        packet.time = segment.time
        packet.link_type = _RAW_IP
        packet.buf = octets
        packet.end = len(octets)
        packet.wire = len(octets) + int(segment.cut)
        self.numbers.append(int(segment.packet))
        self._recorder.packet(packet)

    def _datagram(self, segment: Segment, header: bytes, payload: bytes) -> bytes:
        """The IP datagram with a TCP header and these octets."""
        stand_ins = self._masking.stand_ins
        key = segment.key
        width = (len(key) - 4) // 2
        source, destination = (stand_ins.address(key[at : at + width]) for at in (0, width))
        ports = [int.from_bytes(key[at : at + 2], "big") for at in (2 * width, 2 * width + 2)]
        if self._ports:
            ports = [stand_ins.port(port) for port in ports]
        tcp = bytearray(header)
        tcp[:4] = ports[0].to_bytes(2, "big") + ports[1].to_bytes(2, "big")
        size = len(tcp) + len(payload) + int(segment.cut)
        tcp[16:18] = b"\0\0"
        if not segment.cut:
            pseudo = source + destination + size.to_bytes(4, "big") + _TCP.to_bytes(4, "big")
            tcp[16:18] = _checksum(pseudo + tcp + payload)
        if width == 16:
            length = size if size < 65536 else 0
            ip = b"\x60\0\0\0" + length.to_bytes(2, "big") + bytes([_TCP, 64]) + source + destination
        else:
            length = size + 20 if size + 20 < 65536 else 0
            head = b"\x45\0" + length.to_bytes(2, "big") + int(segment.identification).to_bytes(2, "big")
            head += b"\x40\0" + bytes([64, _TCP])
            ends = source + destination
            ip = head + _checksum(head + b"\0\0" + ends) + ends
        return ip + bytes(tcp) + payload


def _tcp_header(segment: Segment) -> bytes:
    """The TCP header before a segment's payload, with no other options than `_OPTIONS`."""
    buf, start = segment.buf, int(segment.start)
    wanted = segment.key[-4:] + int(segment.seq).to_bytes(4, "big")
    for size in range(20, 64, 4):
        at = start - size
        if at >= 0 and buf[at : at + 8] == wanted and buf[at + 12] >> 4 == size // 4:
            return _plain_options(buf[at:start])
    # Its options were not captured whole.
    ack = max(int(segment.ack), 0).to_bytes(4, "big")
    window = (int(segment.window) & 0xFFFF).to_bytes(2, "big")
    return wanted + ack + bytes([0x50, int(segment.flags)]) + window + bytes(4)


def _plain_options(header: bytes) -> bytes:
    """A TCP header in which nothing stands for all other options."""
    options = bytearray(header[20:])
    at = 0
    while at < len(options):
        kind = options[at]
        if kind == 0:
            options[at:] = bytes(len(options) - at)
            break
        size = 1 if kind == 1 else options[at + 1] if at + 1 < len(options) else 0
        if size < 1 or (kind != 1 and size < 2):
            options[at:] = b"\1" * (len(options) - at)
            break
        if kind != 1 and kind not in _OPTIONS:
            options[at : at + size] = b"\1" * len(options[at : at + size])
        at += size
    return header[:20] + bytes(options)


def _checksum(octets: bytes) -> bytes:
    """The checksum of the Internet (RFC 1071)."""
    if len(octets) % 2:
        octets += b"\0"
    # 65536 is 1 modulo 65535, so the sum of the words is the number itself.
    rest = int.from_bytes(octets, "big") % 0xFFFF
    return (0xFFFF - rest).to_bytes(2, "big") if rest else b"\0\0" if any(octets) else b"\xff\xff"

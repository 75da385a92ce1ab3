"""One direction of WebSocket: the octets of the stream below in, those of binary messages out.

Theory of operation. Payloads are handed on as they come, whether their frame is whole or not. What is missing
in a payload costs only that, and in one that is compressed the rest of its message. Where a header is
missing, too, the next one is taken where a segment begins with a message, and its frames end exactly where
the segment ends: other places are not certain enough. Where nothing makes sense behind that, it was chance,
and the search goes on.
"""

from typing import Any

from amqpscope.layers.http_head import NO_HEAD, HttpHead
from amqpscope.layers.interface import LayerContext, LayerStream
from amqpscope.layers.places import Places
from amqpscope.layers.websocket.conduct import Conduct
from amqpscope.layers.websocket.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    TEXT,
    FrameHeader,
    Malformed,
    header_at,
    unmasked,
)
from amqpscope.layers.websocket.inflate import Inflater
from amqpscope.limits import MAX_WEBSOCKET_CLOSES
from amqpscope.model.websocket_facts import WebSocketClose, WebSocketFacts
from amqpscope.reassembly.provenance import Provenance

__all__ = ["WebSocketStream"]


class WebSocketStream(LayerStream):
    """One direction. masked: its frames have to be, for it is the client's."""

    def __init__(self, context: LayerContext, facts: WebSocketFacts, direction: int, masked: bool) -> None:
        super().__init__()
        self.context = context
        self.facts = facts
        self.direction = direction
        self.masked = masked
        # Octets of the handshake that still come; octets of a header that is not whole, or of a control
        # frame.
        self.head = 0
        self.pending = b""
        # The frame under way, and how many octets of its payload have come.
        self.frame: FrameHeader | None = None
        self.passed = 0
        # The message under way is binary, and compressed; what is left of it cannot be decompressed.
        self.binary = False
        self.compressed = False
        self.spoilt = False
        self.inflater: Inflater | None = None
        # A header is missing: frames are searched for; they were, and were found. Nothing more is read.
        self.lost = False
        self.resumed = False
        self.dead = False
        self.given = 0
        self.places = Places()
        # What the peer does wrong.
        self.conduct = Conduct(context, direction, masked)

    def take_head(self, head: HttpHead, takeover: bool, deflate: bool) -> None:
        """The handshake's part in this direction, which may be lost. takeover: of the compression, if there
        is any.
        """
        self.head = head.size
        self.lost = head is NO_HEAD
        if deflate:
            self.inflater = Inflater(takeover)

    # From below

    def inner(self, outer: int) -> int:
        return self.places.inner(outer)

    def data(self, offset: int, buf: bytes, start: int, end: int, provenance: Provenance) -> None:
        if self.head > 0:
            self.conduct.responded(offset, provenance)
            skipped = min(self.head, end - start)
            self.head -= skipped
            start += skipped
            offset += skipped
        if self.dead or start == end:
            return
        octets = buf[start:end]
        if self.lost:
            if not self.begins_here(octets):
                return
            self.lost = False
            self.resumed = True
        at = 0
        while at < len(octets) and not (self.dead or self.lost):
            if self.frame is None:
                at = self.begin(octets, at, offset, provenance)
            if self.frame is not None:
                at = self.payload(octets, at, offset, provenance)

    def begin(self, octets: bytes, at: int, offset: int, provenance: Provenance) -> int:
        """Read a header. Gives the index behind it."""
        held = len(self.pending)
        if not held:
            self.conduct.begin(offset + at, provenance)
        front = self.pending + octets[at : at + 14]
        header = header_at(front, 0, len(front))
        if header is None:
            self.pending = front
            return len(octets)
        if isinstance(header, Malformed):
            self.conduct.malformed(header)
        else:
            self.conduct.frame(header, self.inflater is not None)
        if isinstance(header, Malformed) or (header.compressed and self.inflater is None):
            if self.resumed:
                self.search_again(provenance)
            else:
                self.give_up("the next octets are not a WebSocket frame", provenance)
            return len(octets)
        self.pending = b""
        self.frame = header
        self.passed = 0
        if not header.control and header.opcode != CONTINUATION:
            self.binary = header.opcode == BINARY
            self.compressed = header.compressed
            self.spoilt = False
        return at + header.size - held

    def payload(self, octets: bytes, at: int, offset: int, provenance: Provenance) -> int:
        """Take the payload of the frame, as far as it has come. Gives the index behind it."""
        frame = self.frame
        assert frame is not None
        end = min(len(octets), at + frame.length - self.passed)
        plain = unmasked(octets[at:end], frame.key, self.passed)
        self.passed += end - at
        whole = self.passed == frame.length
        if frame.control:
            if frame.opcode == CLOSE:
                self.pending += plain
                if whole:
                    self.close(self.pending, provenance)
            self.pending = b"" if whole else self.pending
        elif self.binary and not self.spoilt:
            self.message(plain, offset + end, frame.final and whole, provenance)
        if whole:
            self.frame = None
        return end

    def message(self, plain: bytes, outer: int, last: bool, provenance: Provenance) -> None:
        """Octets of a binary message. last: they end it."""
        inflater = self.inflater
        if not self.compressed or inflater is None:
            if plain:
                self.give(plain, outer, True, provenance)
            return
        for piece in inflater.feed(plain, last):
            self.give(piece, outer, False, provenance)
        if inflater.failed:
            self.give_up(inflater.failed, provenance)

    def give(self, octets: bytes, outer: int, even: bool, provenance: Provenance) -> None:
        self.above.data(self.given, octets, 0, len(octets), provenance)
        self.given += len(octets)
        self.places.add(outer, self.given, even)

    def close(self, payload: bytes, provenance: Provenance) -> None:
        """A close frame (section 5.5.1)."""
        self.conduct.close(payload)
        if len(self.facts.closes) < MAX_WEBSOCKET_CLOSES:
            code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else -1
            self.facts.closes.append(WebSocketClose(self.direction, code, provenance.packet))

    # Loss

    def gap(self, offset: int, size: int, packet: int, time: int) -> None:
        self.miss(offset, size, packet, time, True)

    def tear(self, offset: int, size: int, packet: int, time: int) -> None:
        self.miss(offset, size, packet, time, False)

    def miss(self, offset: int, size: int, packet: int, time: int, exact: bool) -> None:
        """`size` octets are missing, or if that is not exact some."""
        skipped = min(self.head, size)
        self.head -= skipped
        offset += skipped
        size -= skipped
        if self.dead or size == 0:
            return
        self.conduct.lose()
        frame = self.frame
        inflater = self.inflater
        left = 0 if frame is None else frame.length - self.passed
        inside = exact and frame is not None and size <= left
        if inside and frame is not None and (frame.control or not self.binary or self.spoilt):
            self.passed += size
            self.pending = b""
        elif inside and not self.compressed:
            self.above.gap(self.given, size, packet, time)
            self.given += size
            self.passed += size
            self.places.add(offset + size, self.given, True)
        else:
            self.places.tear(offset, self.given)
            self.above.tear(self.given, size, packet, time)
            self.given += size
            self.places.add(offset + size, self.given)
            if inflater is not None:
                inflater.lose()
                if inflater.failed:
                    self.give_up(inflater.failed, Provenance(packet, time, -1))
            if inside:
                self.passed += size
                self.spoilt = True
            else:
                self.lost = True
                self.frame = None
                self.pending = b""
                return
        if frame is not None and self.passed == frame.length:
            self.frame = None

    def begins_here(self, octets: bytes) -> bool:
        """Whether frames begin here and fill these octets exactly."""
        at = 0
        while at < len(octets):
            header = header_at(octets, at, len(octets))
            if not isinstance(header, FrameHeader) or (len(header.key) > 0) != self.masked:
                return False
            if header.opcode == TEXT or not header.shortest or (header.compressed and self.inflater is None):
                return False
            if at == 0 and (header.opcode == CONTINUATION or not header.final):
                return False
            at += header.size + header.length
        return at == len(octets)

    def search_again(self, provenance: Provenance) -> None:
        """What was taken for frames was none."""
        self.lost = True
        self.resumed = False
        self.pending = b""
        self.places.tear(self.places.end(), self.given)
        self.above.tear(self.given, 1, provenance.packet, provenance.time)
        self.given += 1

    def give_up(self, reason: str, provenance: Provenance) -> None:
        """Nothing more can be read of this direction."""
        self.dead = True
        self.facts.unread = self.facts.unread or reason
        self.places.tear(self.places.end(), self.given)
        self.above.tear(self.given, 1, provenance.packet, provenance.time)
        self.given += 1
        self.context.notes.add("capture/websocket", provenance.packet, provenance.time, reason)

    def finish(self, reason: str) -> None:
        self.above.finish(reason)

    # Between processes

    def dump(self) -> tuple[Any, ...]:
        """The state, as plain values."""
        frame = self.frame
        header = None
        if frame is not None:
            first = (0x80 if frame.final else 0) | (0x40 if frame.compressed else 0) | frame.opcode
            header = (frame.size, first, frame.length, frame.key)
        return (
            (self.head, self.pending, self.passed, self.given),
            (self.binary, self.compressed, self.spoilt, self.lost, self.resumed, self.dead),
            header,
            None if self.inflater is None else self.inflater.dump(),
            self.places.dump(),
            self.conduct.dump(),
        )

    def restore(self, state: tuple[Any, ...]) -> None:
        """Go on where `dump` left off."""
        numbers, flags, header, inflater, places, conduct = state
        self.head, self.pending, self.passed, self.given = numbers
        self.binary, self.compressed, self.spoilt, self.lost, self.resumed, self.dead = flags
        self.frame = None if header is None else FrameHeader(*header)
        self.inflater = None if inflater is None else Inflater.load(inflater)
        self.places = Places.load(places)
        self.conduct.restore(conduct)

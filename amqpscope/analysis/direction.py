"""One side of a connection: from the octets of one direction to frames, each with its evidence.

Theory of operation. The octets of a direction tell which protocol it speaks (`detection`), or the other
direction does; until then its octets are held, or only counted. From then on its decoder gives frames, and
knows nothing of packets. So beside the decoder stands the evidence for the octets that belong to no frame
yet: of which packet, when, and what that acknowledged. With a frame goes that of its first octet and of its
last. Nearly always a frame begins and ends in the packet at hand; then nothing is kept, and nothing looked
up.

What its frames mean for the connection the side does not know: they go, with what it finds out of its
protocol, to the `FrameSink` that has both sides.
"""

from amqpscope.analysis.detection import Detection
from amqpscope.analysis.provenance import OctetProvenance
from amqpscope.layers.interface import PlainStream
from amqpscope.protocols import DIALECTS, PROTOCOLS
from amqpscope.reassembly.direction import Direction
from amqpscope.reassembly.provenance import Provenance
from amqpscope.reassembly.stream import StreamSink
from dissectors.detect import FOREIGN_PROTOCOLS, MORE, UNKNOWN
from dissectors.foreign import ForeignDecoder
from dissectors.interface import Assembler, Frame
from dissectors.stream_decoder import StreamDecoder
from dissectors.wire import i64

__all__ = ["DirectionAnalysis", "FrameSink"]


class FrameSink(StreamSink):
    """What has both sides of a connection: their streams come to it, and their frames.

    mypyc: not an ABC, because compiled code would then check at each use of an attribute that it is there.
    """

    def frame(self, direction: i64, frame: Frame, first: Provenance, last: Provenance) -> None:
        """A side's next frame. first, last: where its first and its last octet come from."""
        raise NotImplementedError

    def spoken(self) -> str:
        """The protocol of the connection, if that is known and decoded; else ""."""
        raise NotImplementedError

    def name(self, direction: i64, protocol: str) -> None:
        """A side speaks a protocol that is decoded. It has given no frame of it yet."""
        raise NotImplementedError

    def decided(self, direction: i64) -> None:
        """What a side speaks became known, whatever it is."""
        raise NotImplementedError

    def stopped_looking(self) -> None:
        """A side is not looked at any more."""
        raise NotImplementedError

    def assembler(self, protocol: str) -> Assembler | None:
        """What puts a side's messages together, None if that is not wanted."""
        raise NotImplementedError

    def dialect(self) -> str:
        """The dialect that sides are taken for, "" to find out."""
        raise NotImplementedError


class DirectionAnalysis(PlainStream):
    """One direction: which protocol it speaks, its dissector, and the evidence for octets under way.

    sink: takes its frames. stream: where it begins, by what reassembly knows. ended: the reason for which it
    is over, "" while it is not; end_packet, end_time (ns): of what showed it.
    """

    def __init__(self, sink: FrameSink, stream: Direction) -> None:
        self.sink: FrameSink = sink
        self.stream: Direction = stream
        self.direction: i64 = stream.index
        self.detection: Detection = Detection(sink.dialect())
        self.protocol: str = MORE  # what its octets show
        self.decoder: StreamDecoder | None = None
        self.foreign: bool = False  # the decoder only counts: the side speaks another protocol
        self.evidence: OctetProvenance = OctetProvenance()
        self.assembler: Assembler | None = None  # comes with the decoder
        self.dialect: str = ""  # of the messages that it puts together
        self.ended: str = ""
        self.end_packet: i64 = 0
        self.end_time: i64 = 0

    # From reassembly

    def data(self, offset: i64, buf: bytes, start: i64, end: i64, provenance: Provenance) -> None:
        decoder = self.decoder
        if decoder is None:
            self.undecided(offset, buf, start, end, 0, provenance)
            return
        evidence = self.evidence
        if decoder.offset == offset:
            # Nothing is under way: all frames that come of this begin and end in this packet.
            if len(evidence.offsets) > 0:
                evidence.clear()
            decoder.feed(buf, start, end)
            frames = decoder.frames
            if frames:
                decoder.frames = []
                for frame in frames:
                    self.sink.frame(self.direction, frame, provenance, provenance)
            if decoder.offset < offset + (end - start):
                evidence.add(offset, provenance)
            return
        evidence.add(offset, provenance)
        decoder.feed(buf, start, end)
        self.collect(decoder)

    def secured(self) -> None:
        if self.decoder is not None:
            self.decoder.secured()

    def begin_at(self, offset: i64) -> None:
        self.detection.begin_at(offset)
        decoder = self.decoder
        if decoder is not None:
            decoder.begin_at(offset, offset)

    def gap(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        decoder = self.decoder
        provenance = Provenance(packet, time, -1)
        if decoder is None:
            self.undecided(offset, b"", 0, 0, size, provenance)
            return
        self.evidence.add(offset, provenance)
        decoder.gap(size)
        self.collect(decoder)

    def tear(self, offset: i64, size: i64, packet: i64, time: i64) -> None:
        decoder = self.decoder
        if decoder is None:
            self.gap(offset, size, packet, time)
            return
        self.evidence.add(offset, Provenance(packet, time, -1))
        decoder.tear(size)
        self.collect(decoder)

    def finish(self, reason: str) -> None:
        if self.ended:
            return
        self.ended = reason
        if self.decoder is None:
            self.detection.finish()
            self.look()
        decoder = self.decoder
        if decoder is not None:
            decoder.end(reason)
            self.collect(decoder)

    # Frames

    def collect(self, decoder: StreamDecoder) -> None:
        """Give out what the decoder has, with the evidence of each frame's octets."""
        frames = decoder.frames
        if frames:
            decoder.frames = []
            self.give_all(frames)
        evidence = self.evidence
        evidence.forget(decoder.offset)
        if len(evidence.offsets) > 2:
            self.thin(decoder)

    def give_all(self, frames: list[Frame]) -> None:
        """Give these out, with the evidence of each frame's octets."""
        evidence = self.evidence
        for frame in frames:
            first = evidence.at(frame.offset)
            last = evidence.at(frame.offset + frame.size - 1)
            self.sink.frame(self.direction, frame, first, last)

    def thin(self, decoder: StreamDecoder) -> None:
        """Keep of the octets that can only be the middle of a frame no evidence."""
        if decoder.lost or decoder.opaque:
            self.evidence.thin(decoder.offset + decoder.skipped)
        elif decoder.begun.passed >= 8:
            self.evidence.thin(decoder.offset + decoder.begun.passed)

    def is_foreign(self) -> bool:
        """Whether this side speaks no AMQP, on a connection whose other side does."""
        return self.foreign and self.protocol in FOREIGN_PROTOCOLS

    def unclear(self, acknowledged: i64) -> bool:
        """Whether octets of this direction are missing that no frame given out so far accounts for.

        acknowledged: so many octets the other end had acknowledged, -1 if that is not known.
        """
        decoder = self.decoder
        detection = self.detection
        if decoder is None and not detection.started:
            # Without its SYN it is not known where it begins, nor what was acknowledged of it.
            return self.stream.start.syn == 0
        if not detection.whole:
            return True
        return decoder is not None and decoder.lost and not 0 <= acknowledged <= decoder.offset

    # While the protocol is not known

    def undecided(
        self, offset: i64, buf: bytes, start: i64, end: i64, missing: i64, provenance: Provenance
    ) -> None:
        """The octets buf[start:end], or so many missing ones, of a direction that is not decoded (yet)."""
        detection = self.detection
        if not detection.counts():
            return
        if not detection.started and not detection.resting:
            detection.begin(self.begins(offset, buf, start, end))
            spoken = self.sink.spoken()
            if spoken and detection.whole and missing == 0:
                detection.expect(spoken)
            elif spoken:
                self.decode(spoken)
                if missing > 0:
                    self.gap(offset, missing, provenance.packet, provenance.time)
                else:
                    self.data(offset, buf, start, end, provenance)
                return
        self.evidence.add(offset, provenance)
        stopped_looking = detection.resting
        if missing > 0:
            detection.lose(missing)
        else:
            detection.take(offset, buf, start, end)
        self.look()
        counting = detection.probes or detection.foreign is not None
        if self.decoder is None and counting:
            self.evidence.thin(detection.passed())
        if detection.resting and not stopped_looking:
            if self.decoder is None and not counting:
                self.evidence.clear()
            self.sink.stopped_looking()

    def look(self) -> None:
        """See what has become known of the protocol."""
        detection = self.detection
        headers = detection.headers
        if headers:
            detection.headers = ()
            self.give_all(list(headers))
        if detection.protocol != self.protocol:
            self.protocol = detection.protocol
            if self.protocol in PROTOCOLS and not detection.differs():
                # First, so that the rules are known by which its frames are judged.
                self.sink.name(self.direction, self.protocol)
                self.decode(self.protocol)
            self.sink.decided(self.direction)
        if detection.foreign is not None:
            spoken = self.sink.spoken()
            if spoken:
                self.decode(spoken)

    def begins(self, offset: i64, buf: bytes, start: i64, end: i64) -> bool:
        """Whether the octets at `offset` are the side's first.

        Without its SYN that rests on what the other end acknowledged first, which may be more than SYN.
        """
        stream = self.stream
        if offset != self.detection.origin or stream.start.midstream:
            return False
        return stream.start.syn != 0 or b"AMQP".startswith(buf[start : min(end, start + 4)])

    def expect(self, protocol: str) -> None:
        """The other side speaks a protocol that is decoded: so does this one, if its octets allow it."""
        detection = self.detection
        if self.decoder is not None:
            return
        detection.expect(protocol)
        if detection.protocol == protocol != self.protocol:
            # What was held behind a header of another version is of this one.
            self.look()
        elif detection.foreign is not None or detection.protocol == UNKNOWN:
            self.decode(protocol)
        elif detection.protocol == MORE and detection.started and (self.ended or not detection.whole):
            self.decode(protocol)

    def decode(self, protocol: str) -> None:
        """The connection speaks a protocol that is decoded: decode this direction from where it began."""
        if self.decoder is not None:
            return
        # If nothing has come yet its start will, if that was captured.
        stream = self.stream
        detection = self.detection
        self.foreign = detection.foreign is not None
        decoder = detection.decoder(protocol, stream.start.syn != 0 and not stream.start.midstream)
        self.protocol = detection.protocol
        self.decoder = decoder
        self.assemble(protocol, decoder.dialect)
        if self.ended:
            decoder.end(self.ended)
        self.collect(decoder)

    def assemble(self, protocol: str, dialect: str) -> None:
        """Put together the messages of a protocol in this dialect from here on."""
        self.dialect = dialect
        assembler = self.sink.assembler(DIALECTS.get((protocol, dialect), protocol))
        if assembler is not None and not self.detection.whole:
            assembler.joined_midstream()
        self.assembler = assembler

    # Between processes

    def release(self) -> None:
        """Let go of all that only further octets would need."""
        self.decoder = None
        self.assembler = None
        self.detection.release()
        self.evidence.clear()

    def dump(self) -> tuple[object, ...]:
        """The state, as plain values."""
        decoder = self.decoder
        return (
            self.detection.dump(),
            None if decoder is None else decoder.dump(),
            self.evidence.dump(),
            None if self.assembler is None else self.assembler.dump(),
            (self.ended, int(self.end_packet), int(self.end_time)),
            (self.foreign, self.dialect),
        )

    def restore(self, state: tuple[object, ...]) -> None:
        """Go on where `dump` left off, with nothing passed on yet."""
        detection, decoder, evidence, assembler, ended, foreign = state
        assert isinstance(detection, tuple) and isinstance(evidence, tuple) and isinstance(ended, tuple)
        self.detection = Detection.load(detection, self.sink.dialect())
        self.protocol = self.detection.protocol
        assert isinstance(foreign, tuple)
        self.foreign, self.dialect = foreign
        spoken = self.sink.spoken()
        if isinstance(decoder, tuple):
            if self.foreign:
                self.decoder = ForeignDecoder.load(decoder)
            else:
                self.decoder = PROTOCOLS[spoken].load_decoder(decoder)
        self.evidence = OctetProvenance.load(evidence)
        if isinstance(assembler, tuple):
            self.assembler = PROTOCOLS[DIALECTS.get((spoken, self.dialect), spoken)].load_assembler(assembler)
        self.ended, self.end_packet, self.end_time = ended

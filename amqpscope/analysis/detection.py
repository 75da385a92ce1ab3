"""Which protocol one direction of a connection speaks, while that is not known.

Theory of operation. A direction whose start was captured is identified by its first octets, which are held
until they tell. One that was joined in the middle, or begins like nothing that is known, is searched for a
frame, in so many of its octets: by a decoder of each protocol that is lost (`probes`). The one whose frame
stands first goes on with the stream; a message may hold whole frames of the other protocol, but is found
first only where the capture begins inside it. In which nothing is found, rests: its octets are counted and
not looked at, so that they can be determined as skipped should the other direction turn out to be AMQP.

Each direction is identified by its own octets. What the other one speaks (`expected`) is only believed where
these say nothing else: a direction that shows itself as another protocol, or announces another version of
AMQP than the connection has, is `foreign` to it. Its octets are counted, too.
"""

from typing import Any, Final

from amqpscope.limits import MAX_UNDECIDED
from amqpscope.model.records import dump_frame, load_frame
from amqpscope.protocols import PROTOCOLS, detected, label
from amqpscope.protocols.detect import detect, detect_header, detect_midstream
from dissectors.detect import FOREIGN_PROTOCOLS, MORE, UNDECODED, UNKNOWN
from dissectors.foreign import ForeignDecoder
from dissectors.interface import Frame
from dissectors.limits import DETECT_OCTETS
from dissectors.protocol_header import ProtocolHeader
from dissectors.stream_decoder import StreamDecoder
from dissectors.wire import i64

__all__ = ["Detection"]

# Protocols whose first eight octets are AMQP's header, and which are not decoded further.
_HEADER_ONLY: Final = frozenset(UNDECODED.values())

_NEVER: Final = UNDECODED["unknown"]


class Detection:
    """What is known of one direction's protocol, and its octets as long as they may tell more.

    protocol: a name from `dissectors.detect`, MORE while it is open. started: something came, or is known to
    be missing. whole: the stream's start was captured, and nothing is missing since. resting: nothing more is
    looked for. headers: protocol headers to be given out. expected: the protocol that the other direction
    speaks, "" while it is not known. foreign: what takes the octets of a direction that speaks none that is
    decoded, or not the connection's.
    """

    def __init__(self, dialect: str = "") -> None:
        # The dialect that the direction is taken for, "" to find out.
        self.dialect: str = dialect
        self.protocol: str = MORE
        self.started: bool = False
        self.whole: bool = False
        self.resting: bool = False
        self.headers: tuple[Frame, ...] = ()
        self.expected: str = ""
        self.foreign: ForeignDecoder | None = None
        # The stream offsets of its first octet, and of the first that was not given out as part of a header.
        self.origin: i64 = 0
        self.headed: i64 = 0
        # The first octets, in one piece; how many there were; the search, and in how many octets it was.
        self.held: bytes = b""
        self.held_octets: i64 = 0
        self.probes: tuple[StreamDecoder, ...] = ()
        self.searched: i64 = 0

    def begin(self, whole: bool) -> None:
        """The first octets, or the first that are missing. whole: they are the stream's first."""
        self.started = True
        self.whole = whole

    def begin_at(self, offset: i64) -> None:
        """The stream begins at this offset: what is before it is of another layer. Before any octets come."""
        self.origin = offset
        self.headed = offset

    def expect(self, protocol: str) -> None:
        """The other direction speaks this protocol: what says nothing else is taken for it."""
        self.expected = protocol
        if self.held and self.protocol in _HEADER_ONLY and not self.resting:
            self._take_headers()

    def differs(self) -> bool:
        """Whether this direction speaks a version of AMQP that is decoded, and the other one another."""
        return self.expected != "" and self.protocol in PROTOCOLS and self.protocol != self.expected

    def looked_at(self) -> bool:
        """Whether any octets came while undecided."""
        return self.held_octets + self.searched > 0

    def counts(self) -> bool:
        """Whether the octets that come make a difference."""
        return not self.resting or len(self.probes) > 0 or self.foreign is not None

    def passed(self) -> i64:
        """The stream offset before which nothing is held."""
        foreign = self.foreign
        if foreign is not None:
            return foreign.offset + foreign.skipped
        if not self.probes:
            return self.headed
        first: i64 = self.probes[0].offset + self.probes[0].skipped
        for probe in self.probes:
            at = probe.offset + probe.skipped
            if at < first:
                first = at
        return first

    def take(self, offset: i64, buf: bytes, start: i64, end: i64) -> None:
        """The octets buf[start:end], at `offset` of the stream."""
        if self.resting:
            foreign = self.foreign
            if foreign is not None:
                foreign.feed(buf, start, end)
            for probe in self.probes:
                probe.skipped += end - start
            return
        if self.protocol == MORE:
            if self.whole:
                self._hold(buf, start, end)
                self._decide(detect(self.held))
                if self.protocol == MORE and self.held_octets > MAX_UNDECIDED:
                    self._decide(UNKNOWN)
                return
            if offset - self.headed == self.held_octets and self.held_octets < 8:
                # No SYN was captured, but perhaps all that came after it.
                self._hold(buf, start, end)
                if self.held_octets >= 8:
                    if self.held.startswith(b"AMQP"):
                        found = detect_header(_header(self.held, 0))
                        if found in _HEADER_ONLY and found != _NEVER:
                            self._decide(found)
                            return
                    self.held = b""
        elif self.protocol in _HEADER_ONLY or self.differs():
            self._hold(buf, start, end)
            self._take_headers()
            return
        self._search(buf, start, end)

    def lose(self, size: i64) -> None:
        """The next `size` octets were not captured: what follows is like a start in the middle."""
        if self.resting:
            foreign = self.foreign
            if foreign is not None:
                foreign.gap(size)
            for probe in self.probes:
                probe.gap(size)
            return
        if self.protocol in _HEADER_ONLY or self.differs():
            foreign = self._be_foreign() if self.differs() else None
            if foreign is not None:
                foreign.gap(size)
            self.resting = True
            self.whole = False
            return
        if self.protocol == MORE:
            self.whole = False
        self._search_held()
        if not self.resting and self.protocol not in PROTOCOLS:
            self._begin_search()
        for probe in self.probes:
            probe.gap(size)
        self._choose()

    def finish(self) -> None:
        """Nothing comes any more that could be awaited."""
        if self.protocol == MORE and self.started and self.expected:
            self.protocol = self.expected
        if self.probes and not self.resting:
            for probe in self.probes:
                probe.settle()
            self._choose()

    def decoder(self, protocol: str, whole: bool) -> StreamDecoder:
        """The connection speaks this protocol: the decoder that goes on, with all that was kept.

        whole: if nothing has come yet, that what comes will be the stream's start.
        """
        foreign = self.foreign
        if foreign is not None:
            self.foreign = None
            foreign.flush()
            return foreign
        self.protocol = protocol
        self.resting = False
        for probe, known in zip(self.probes, detected(), strict=True) if self.probes else ():
            if known.name == protocol:
                self.probes = ()
                self.held = b""
                return probe
        if not self.started:
            self.whole = whole
        decoder = PROTOCOLS[protocol].decoder(not self.whole)
        decoder.take_for(self.dialect)
        decoder.begin_at(self.origin, self.headed)
        decoder.feed(self.held, 0, len(self.held))
        self.held = b""
        return decoder

    def release(self) -> None:
        """Let go of all that only further octets would need."""
        self.probes = ()
        self.headers = ()
        self.foreign = None
        self.held = b""
        self.resting = True

    # -- what the octets say -----------------------------------------------------------------------

    def _hold(self, buf: bytes, start: i64, end: i64) -> None:
        self.held += buf[start:end]
        self.held_octets += end - start

    def _decide(self, protocol: str) -> None:
        if protocol == MORE or protocol == self.protocol:
            return
        expected = self.expected
        if (
            expected
            and protocol != expected
            and protocol not in PROTOCOLS
            and protocol not in FOREIGN_PROTOCOLS
        ):
            # What says nothing else, or asks for a version that is not decoded, is for the other direction's.
            protocol = expected
        self.protocol = protocol
        if protocol == UNKNOWN:
            self._search_held()
        elif protocol not in PROTOCOLS or self.differs():
            if self.held.startswith(b"AMQP"):
                self._take_headers()
            else:
                self._be_foreign()

    def _take_headers(self) -> None:
        """The protocol headers of versions that are not decoded here, as many as follow one another."""
        octets = self.held
        at: i64 = 0
        awaited = self.expected
        while len(octets) - at >= 8 and octets.startswith(b"AMQP", at):
            header = _header(octets, at)
            named = detect_header(header)
            if named == awaited or (named in PROTOCOLS and not awaited):
                # The sender has thought better of it.
                self.protocol = named
                break
            frame = Frame(self.headed, 8, "header", "header", -1)
            frame.body = header
            frame.place(octets, at, at + 4, at + 8, at + 8)
            self.headers = (*self.headers, frame)
            self.headed += 8
            at += 8
        left = octets[at:]
        self.held = left
        if self.protocol in PROTOCOLS and not self.differs():
            return
        if len(left) < 8 and b"AMQP".startswith(left[:4]):
            return
        taken_by = _taken_by(self.protocol)
        # Frames of the other direction's version may follow all the same, or those of a version whose brokers
        # take this header.
        found = detect(left)
        if found == (awaited or taken_by) and found != MORE:
            self.protocol = found
            return
        if found == MORE or (not awaited and found in PROTOCOLS):
            # What the other direction speaks is not known yet.
            if len(left) <= MAX_UNDECIDED:
                return
            # What is not kept is missing, should it have been frames.
            self.whole = self.whole and found == MORE
        if self.differs():
            self._be_foreign()
        else:
            self._rest(False)

    def _be_foreign(self) -> ForeignDecoder | None:
        """Count the octets from here on. None: nobody asks for them, the stream's start was not captured."""
        held = self.held
        self._rest(False)
        if not self.whole:
            return None
        foreign = ForeignDecoder(self.protocol, label(self.protocol), self.headed == self.origin, held[:8])
        foreign.offset = self.headed
        foreign.feed(held, 0, len(held))
        self.foreign = foreign
        return foreign

    def _search(self, buf: bytes, start: i64, end: i64) -> None:
        """Look for a frame in the middle of a stream, in so many of its octets."""
        self._begin_search()
        most: i64 = MAX_UNDECIDED if self.whole else DETECT_OCTETS
        stop: i64 = start + most - self.searched
        if stop > end:
            stop = end
        for probe in self.probes:
            probe.feed(buf, start, stop)
        self.searched += stop - start
        self._choose()
        if self.protocol in PROTOCOLS:
            if stop < end:
                for probe in self.probes:
                    probe.feed(buf, stop, end)
            return
        if not self.whole:
            self._decide(detect_midstream(buf, start, end))
        if stop < end and not self.resting:
            self._rest(True)
            for probe in self.probes:
                probe.skipped += end - stop

    def _choose(self) -> None:
        """If a probe has found a frame, decide for it; of several for the one whose frame stands first."""
        best: i64 = -1
        chosen = ""
        for probe, known in zip(self.probes, detected(), strict=True) if self.probes else ():
            found = _first_frame(probe)
            if found >= 0 and (best < 0 or found < best):
                best = found
                chosen = known.name
        if best >= 0:
            self.protocol = chosen

    def _search_held(self) -> None:
        """What was held is searched, if that was not done already."""
        held = self.held
        self.held = b""
        if held and self.searched == 0:
            self._search(held, 0, len(held))

    def _begin_search(self) -> None:
        """Have the decoders that search for a frame."""
        if self.probes:
            return
        probes = []
        for protocol in detected():
            probe = protocol.decoder(True)
            probe.take_for(self.dialect)
            probe.begin_at(self.origin, self.headed)
            if self.whole:
                probe.cause = protocol.no_header
                probe.reason = "the stream begins with neither a protocol header nor a frame"
            probes.append(probe)
        self.probes = tuple(probes)

    def _rest(self, count: bool) -> None:
        """Look for nothing more; `count` what comes if the other direction may still turn out to be AMQP."""
        self.resting = True
        self.held = b""
        if count:
            for probe in self.probes:
                probe.drop_window(0)
            if self.protocol == MORE:
                self.protocol = UNKNOWN
        else:
            self.probes = ()

    # -- between processes -------------------------------------------------------------------------

    def dump(self) -> tuple[object, ...]:
        """The state between two calls as plain values: when the headers have been given out."""
        return (
            (self.protocol, self.expected),
            (self.started, self.whole, self.resting),
            (self.held, int(self.held_octets), int(self.searched), int(self.origin), int(self.headed)),
            tuple((probe.dump(), tuple(dump_frame(one) for one in probe.frames)) for probe in self.probes),
            None if self.foreign is None else self.foreign.dump(),
        )

    @staticmethod
    def load(state: tuple[Any, ...], dialect: str = "") -> "Detection":
        """The object of what `dump` returned."""
        reported, (started, whole, resting), (held, octets, searched, origin, headed), probes, foreign = state
        detection = Detection(dialect)
        detection.protocol, detection.expected = reported
        detection.started, detection.whole, detection.resting = started, whole, resting
        detection.held, detection.held_octets, detection.searched = held, octets, searched
        detection.origin, detection.headed = origin, headed
        if probes:
            loaded = []
            for (probe, frames), known in zip(probes, detected(), strict=True):
                decoder = known.load_decoder(probe)
                decoder.frames = [load_frame(frame) for frame in frames]
                loaded.append(decoder)
            detection.probes = tuple(loaded)
        if foreign is not None:
            detection.foreign = ForeignDecoder.load(foreign)
        return detection


def _header(octets: bytes, at: i64) -> ProtocolHeader:
    """The protocol header at octets[at:]."""
    return ProtocolHeader(octets[at + 4], octets[at + 5], octets[at + 6], octets[at + 7])


def _taken_by(undecoded: str) -> str:
    """The protocol whose servers may take this one's header and go on in their own; "" if there is none."""
    for protocol in detected():
        if undecoded in protocol.takes_header_of:
            return protocol.name
    return ""


def _repeats(header: ProtocolHeader) -> bool:
    """Whether such a header may stand in the middle of a stream."""
    protocol = PROTOCOLS.get(detect_header(header))
    return protocol is None or protocol.repeats_header


def _first_frame(probe: StreamDecoder) -> i64:
    """Where the first frame stands that a decoder has found; -1 if it has found none.

    Of a protocol that has a header at the start only a header in the middle is none.
    """
    only_headers = False
    for frame in probe.frames:
        header = frame.body
        if frame.offset > probe.origin and isinstance(header, ProtocolHeader) and not _repeats(header):
            only_headers = True
        elif frame.kind != "skipped":
            return frame.offset
    return -1 if probe.lost or only_headers else probe.offset

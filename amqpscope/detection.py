"""Which protocol one direction of a connection speaks, while that is not known.

Theory of operation. A direction whose start was captured is told by its first octets, which are held
until they tell. One that was joined in the middle, or begins like nothing that is known, is searched for an
AMQP 1.0 frame, in so many of its octets: by a frame decoder that is lost (`probe`), and that decodes the
stream once it has found one. In which nothing is found, rests: its octets are counted and not looked at, so
that they can be told as skipped should the other direction turn out to be AMQP.

Of the versions of AMQP that are not decoded only the protocol headers are taken (`told`), as many as follow
one another.
"""

from typing import Any, Final

from amqpscope.limits import MAX_UNDECIDED
from dissectors.amqp10.frame import FrameDecoder
from dissectors.detect import MORE, UNKNOWN, detect, detect_header, detect_midstream
from dissectors.limits import DETECT_OCTETS
from dissectors.wire import i64

__all__ = ["Detection"]

# Protocols whose first eight octets are AMQP's header, and which are not decoded further.
_HEADER_ONLY: Final = ("amqp091", "amqp010", "amqp09", "amqp08", "amqp-unknown")


class Detection:
    """What is known of one direction's protocol, and its octets as long as they may tell more.

    protocol: a name from `dissectors.detect`, MORE while it is open. started: something came, or is known to
    be missing. whole: the stream's start was captured, and nothing is missing since. resting: nothing more is
    looked for. told: has protocol headers to be given out.
    """

    def __init__(self) -> None:
        self.protocol: str = MORE
        self.started: bool = False
        self.whole: bool = False
        self.resting: bool = False
        self.told: FrameDecoder | None = None
        # The first octets, in one piece; how many there were; the search, and in how many octets it was.
        self.held: bytes = b""
        self.held_octets: i64 = 0
        self.probe: FrameDecoder | None = None
        self.searched: i64 = 0

    def begin(self, whole: bool) -> None:
        """The first octets, or the first that are missing. whole: they are the stream's first."""
        self.started = True
        self.whole = whole

    def looked_at(self) -> bool:
        """Whether any octets came while undecided."""
        return self.held_octets + self.searched > 0

    def counts(self) -> bool:
        """Whether the octets that come make a difference."""
        return not self.resting or self.probe is not None

    def take(self, offset: i64, buf: bytes, start: i64, end: i64) -> None:
        """The octets buf[start:end], at `offset` of the stream."""
        probe = self.probe
        if self.resting:
            if probe is not None:
                probe.skipped += end - start
            return
        if self.protocol == MORE:
            if self.whole:
                self._hold(buf, start, end)
                self._decide(detect(self.held))
                if self.protocol == MORE and self.held_octets > MAX_UNDECIDED:
                    self._decide(UNKNOWN)
                return
            if offset == self.held_octets and offset < 8:
                # No SYN was captured, but perhaps all that came after it.
                self._hold(buf, start, end)
                if self.held_octets >= 8:
                    if self.held.startswith(b"AMQP") and detect_header(self.held) in _HEADER_ONLY:
                        if detect_header(self.held) != "amqp-unknown":
                            self._decide(detect_header(self.held))
                            return
                    self.held = b""
        elif probe is not None and self.protocol in _HEADER_ONLY:
            self._hold(buf, start, end)
            self._headers(probe)
            return
        self._search(buf, start, end)

    def lose(self, size: i64) -> None:
        """The next `size` octets were not captured: what follows is like a start in the middle."""
        probe = self.probe
        if self.resting:
            if probe is not None:
                probe.gap(size)
            return
        if self.protocol in _HEADER_ONLY:
            self._rest(False)
            return
        if self.protocol == MORE:
            self.whole = False
        self._search_held()
        self._prober().gap(size)

    def decoder(self, whole: bool) -> FrameDecoder:
        """It is AMQP 1.0: the decoder that goes on, with all that was kept.

        whole: if nothing has come yet, that what comes will be the stream's start.
        """
        self.protocol = "amqp10"
        self.resting = False
        decoder = self.probe
        self.probe = None
        if decoder is None:
            if not self.started:
                self.whole = whole
            decoder = FrameDecoder(not self.whole)
            decoder.feed(self.held, 0, len(self.held))
        self.held = b""
        return decoder

    def release(self) -> None:
        """Let go of all that only further octets would need."""
        self.probe = None
        self.told = None
        self.held = b""
        self.resting = True

    # -- what the octets say -----------------------------------------------------------------------

    def _hold(self, buf: bytes, start: i64, end: i64) -> None:
        self.held += buf[start:end]
        self.held_octets += end - start

    def _decide(self, protocol: str) -> None:
        if protocol == MORE or protocol == self.protocol:
            return
        self.protocol = protocol
        if protocol == UNKNOWN:
            self._search_held()
        elif protocol in _HEADER_ONLY and self.held.startswith(b"AMQP"):
            headers = FrameDecoder(False)
            self.probe = headers
            self._headers(headers)
        elif protocol != "amqp10":
            self._rest(False)

    def _headers(self, headers: FrameDecoder) -> None:
        """The protocol headers of a version that is not decoded, as many as follow one another."""
        octets = self.held
        at: i64 = 0
        while len(octets) - at >= 8 and octets.startswith(b"AMQP", at):
            headers.feed(octets, at, at + 8)
            at += 8
        for frame in headers.frames:
            frame.problems = []  # what AMQP 1.0 would have to say of them
        self.told = headers
        left = octets[at:]
        if len(left) < 8 and b"AMQP".startswith(left[:4]):
            self.held = left
        else:
            self._rest(False)

    def _search(self, buf: bytes, start: i64, end: i64) -> None:
        """Look for a frame in the middle of a stream, in so many of its octets."""
        probe = self._prober()
        most: i64 = MAX_UNDECIDED if self.whole else DETECT_OCTETS
        stop: i64 = start + most - self.searched
        if stop > end:
            stop = end
        probe.feed(buf, start, stop)
        self.searched += stop - start
        if not probe.lost or any(frame.kind != "skipped" for frame in probe.frames):
            self.protocol = "amqp10"
            if stop < end:
                probe.feed(buf, stop, end)
            return
        if not self.whole:
            self._decide(detect_midstream(buf, start, end))
        if stop < end and not self.resting:
            self._rest(True)
            probe.skipped += end - stop

    def _search_held(self) -> None:
        """What was held is searched, if that was not done already."""
        held = self.held
        self.held = b""
        if held and self.searched == 0:
            self._search(held, 0, len(held))

    def _prober(self) -> FrameDecoder:
        """The decoder that searches for a frame."""
        probe = self.probe
        if probe is None:
            probe = FrameDecoder(True)
            if self.whole:
                probe.cause = "C-HDR-FORM"
                probe.reason = "the stream does not begin with a protocol header, nor with a frame"
            self.probe = probe
        return probe

    def _rest(self, count: bool) -> None:
        """Look for nothing more; `count` what comes if the other direction may still turn out to be AMQP."""
        self.resting = True
        self.held = b""
        probe = self.probe
        if count and probe is not None:
            probe.drop_window(0)
            if self.protocol == MORE:
                self.protocol = UNKNOWN
        else:
            self.probe = None

    # -- between processes -------------------------------------------------------------------------

    def dump(self) -> tuple[object, ...]:
        """The state between two calls as plain values: when what was told has been given out."""
        return (
            self.protocol,
            (self.started, self.whole, self.resting),
            (self.held, int(self.held_octets), int(self.searched)),
            None if self.probe is None else self.probe.dump(),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Detection":
        """What `dump` gave, as an object again."""
        protocol, (started, whole, resting), (held, octets, searched), probe = state
        detection = Detection()
        detection.protocol = protocol
        detection.started, detection.whole, detection.resting = started, whole, resting
        detection.held, detection.held_octets, detection.searched = held, octets, searched
        detection.probe = None if probe is None else FrameDecoder.load(probe)
        return detection

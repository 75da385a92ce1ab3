"""What all watches of one connection share: its diagnoses so far, and when each peer was heard.

Times are in nanoseconds, as in the records of frames. A *side* is 0 for the client and 1 for the server.
"""

from typing import Any, Final

from amqpscope.diagnoses.declaration import Kind
from amqpscope.diagnoses.limits import Limits
from amqpscope.limits import MAX_DIAGNOSED, MAX_UNATTESTED
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.tracking.clock import ClockStepGuard
from dissectors.wire import i64

__all__ = ["SECOND", "Heard", "Notebook", "diagnosis", "duration", "side_of_peer"]

SECOND: Final = 1_000_000_000

_SKEW: Final = 2_000_000_000
"""Frames come in the order of causes. Octets that are sent again are late by less than this."""

_PEERS: Final = (CLIENT, SERVER)


def side_of_peer(peer: str) -> int:
    """0 for the client, 1 for the server."""
    return 0 if peer == CLIENT else 1


def duration(seconds: float) -> str:
    """A time for people: `0.35 s`, `50.6 s`."""
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


class Heard:
    """What was captured of one side. Times are 0, and offsets -1, while nothing was."""

    def __init__(self) -> None:
        # Its last frame: when its last octet came, the packet and the time of its first octet, and the offset
        # behind it.
        self.time: i64 = 0
        self.packet: i64 = 0
        self.begun: i64 = -1
        self.end: i64 = 0
        # How much of the other side's stream it has acknowledged.
        self.acknowledged: i64 = -1
        # The time of its last segment. Known at the end of the connection.
        self.segment_time: i64 = 0

    def last_time(self) -> i64:
        """The time of the last that was captured of it."""
        return max(self.time, self.segment_time)


def diagnosis(
    kind: Kind,
    connection: str,
    subject: str,
    whose: str,
    packet: i64,
    message: str,
    figures: dict[str, Any],
    *,
    seconds: float = -1.0,
    ended: i64 = 0,
    packets: tuple[int, ...] = (),
) -> Diagnosis:
    """A diagnosis of a connection (its id). whose: `client`, `server` or ""."""
    shown = sorted({int(one) for one in (int(packet), *packets, int(ended)) if one > 0})
    return Diagnosis(
        kind.code,
        subject,
        whose,
        int(packet),
        int(ended),
        seconds,
        connection,
        figures,
        message,
        shown,
    )


# mypyc: null object, of connections without a diagnosis. Nothing appends to it.
_NOTHING: Final[list[Diagnosis]] = []


class Notebook:
    """Takes the diagnoses of one connection. limits: the configured ones."""

    def __init__(self, connection: Connection, limits: Limits) -> None:
        self.connection: Connection = connection
        self.limits: Limits = limits
        self.found: list[Diagnosis] = _NOTHING
        # What was captured of each side.
        self.client: Heard = Heard()
        self.server: Heard = Heard()
        # The newest time of a frame; and whether a frame was older by far than one that it answers: clocks
        # of two taps differ then, so that no time between frames of both sides means anything.
        self.newest: i64 = 0
        self.skewed: bool = False
        # What lasts is looked at while packets come.
        self.looking: bool = False
        # How far the frames confirm a wait, and whether a peer has to be heard from time to time.
        self.pace: ClockStepGuard = ClockStepGuard()
        self.beats: bool = False
        # The time up to which the capture shows the connection, and the packet that ended it, 0 if none did.
        self.end_time: i64 = 0
        self.end_packet: i64 = 0
        # Which side ended it by FIN or RST, -1 if neither did.
        self.end_side: i64 = -1
        # Octets of the connection are missing (gappy), or cannot be read.
        self.gappy: bool = False
        self.lossy: bool = False

    def limit(self, kind: Kind, name: str = "seconds") -> float:
        """A limit of a kind of diagnosis, as configured."""
        return self.limits.of(kind, name)

    def hear(self, record: FrameRecord, side: i64) -> None:
        """Take the next frame of a side."""
        heard = self.client if side == 0 else self.server
        time = record.last_time
        frame = record.frame
        heard.time = time
        heard.packet = record.packet
        heard.begun = record.time
        heard.end = frame.offset + frame.size
        if time > self.newest:
            self.newest = time
        self.acknowledges(record, heard)

    def acknowledges(self, record: FrameRecord, heard: Heard) -> None:
        """What the next frame acknowledges, and whether it is older by far than the newest one. heard: what
        was captured of its sender.
        """
        if record.last_time + _SKEW < self.newest:
            self.skewed = True
        if record.acknowledged > heard.acknowledged:
            heard.acknowledged = record.acknowledged

    def heard(self, side: i64) -> Heard:
        """What was captured of a side."""
        return self.client if side == 0 else self.server

    def frame_time(self) -> i64:
        """The time of the last frame of either side."""
        return max(self.client.time, self.server.time)

    def direction(self, side: i64) -> i64:
        """The direction in which a side sends."""
        client: i64 = max(self.connection.client, 0)
        return client if side == 0 else 1 - client

    def idle(self, side: i64, since: i64, until: i64, seconds: float) -> bool:
        """Whether a side could have acted for so many seconds, as far as the capture's clock is believed, and
        was there meanwhile.
        """
        least: i64 = int(seconds * SECOND)
        return self.passed(since, until) >= least and self.was_there(side, since, until, seconds)

    def was_there(self, side: i64, since: i64, until: i64, seconds: float) -> bool:
        """The same of a wait whose length is confirmed.

        Of a wait that is over before the connection is, the side has to be heard after so many seconds and
        before the end of the wait: else nobody knows whether the whole conversation paused.
        """
        least: i64 = int(seconds * SECOND)
        if self.skewed or until - since < least:
            return False
        heard = self.heard(side).last_time()
        if heard <= since or (not self.end_time and heard < since + least):
            return False
        return self.connection.stalls[int(self.direction(side))].free(since, until) >= least

    def passed(self, since: i64, until: i64) -> i64:
        """How much of the time from `since` to `until` passed, as far as the capture's clock is believed.

        It may have been set forward where both peers are silent for long, though one of them had to be heard.
        Of a wait counts what is left without the longest such stretch. The time behind the last frame passes
        while somebody looks.
        """
        if not self.beats:
            return until - since
        seen = until
        if self.looking:
            seen = max(since, min(until, self.pace.last))
        attested = max(self.pace.attested(since, seen), 0)
        if seen - since - attested > MAX_UNATTESTED:
            return attested + until - seen
        return until - since

    def begin_looking(self, now: i64) -> list[Diagnosis]:
        """What is made from here on is only looked at, as if the capture ended at this time (ns).

        Returns what was made before, for `end_looking`.
        """
        made = self.found
        self.found = _NOTHING
        self.end_time = now
        self.looking = True
        return made

    def end_looking(self, made: list[Diagnosis]) -> list[Diagnosis]:
        """Return what was made since `begin_looking`, and forget it."""
        looked = self.found
        self.found = made
        self.end_time = 0
        self.looking = False
        self.client.segment_time = 0
        self.server.segment_time = 0
        return looked

    def add(
        self,
        kind: Kind,
        subject: str,
        whose: str,
        packet: i64,
        message: str,
        figures: dict[str, Any],
        *,
        seconds: float = -1.0,
        ended: i64 = 0,
        packets: tuple[int, ...] = (),
    ) -> None:
        """Make a diagnosis. whose: `client`, `server` or ""."""
        name = self.connection.id
        self.take(
            diagnosis(
                kind,
                name,
                subject,
                whose,
                packet,
                message,
                figures,
                seconds=seconds,
                ended=ended,
                packets=packets,
            )
        )

    def take(self, made: Diagnosis) -> None:
        """A diagnosis of the connection."""
        if len(self.found) >= MAX_DIAGNOSED:
            return
        if self.found is _NOTHING:
            self.found = []
        self.found.append(made)

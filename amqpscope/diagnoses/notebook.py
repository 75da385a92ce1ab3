"""What all watches of one connection share: its diagnoses so far, and when each peer was heard.

Times are in nanoseconds, as in the records of frames. A *side* is 0 for the client and 1 for the server.
"""

from collections.abc import Mapping
from typing import Any, Final

from amqpscope.diagnoses.declaration import Kind
from amqpscope.limits import MAX_DIAGNOSED
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord

__all__ = ["SECOND", "Notebook", "duration", "side_of_peer"]

SECOND: Final = 1_000_000_000

_SKEW: Final = 2 * SECOND
"""Frames come in the order of causes. Octets that are sent again are late by less than this."""

_PEERS: Final = (CLIENT, SERVER)


def side_of_peer(peer: str) -> int:
    """0 for the client, 1 for the server."""
    return 0 if peer == CLIENT else 1


def duration(seconds: float) -> str:
    """A time for people: `0.35 s`, `50.6 s`."""
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"


class Notebook:
    """Takes the diagnoses of one connection. limits: the configured ones, by `code.limit`."""

    def __init__(self, connection: Connection, limits: Mapping[str, float]) -> None:
        self.connection = connection
        self.limits = limits
        self.found: list[Diagnosis] = []
        # Of each side: its last frame, and how much of the other side's stream it has acknowledged.
        self.frame_time = [0, 0]
        self.frame_packet = [0, 0]
        self.acknowledged = [-1, -1]
        # The newest time of a frame; and whether a frame was older by far than one that it answers: clocks
        # of two taps differ then, so that no time between frames of both sides means anything.
        self.newest = 0
        self.skewed = False
        # Of each side: its last segment. Known at the end of the connection.
        self.segment_time = [0, 0]
        # The time up to which the capture shows the connection, and the packet that ended it, 0 if none did.
        self.end_time = 0
        self.end_packet = 0
        # Which side ended it by FIN or RST, -1 if neither did.
        self.end_side = -1
        # Octets of the connection are missing (gappy), or cannot be read.
        self.gappy = False
        self.lossy = False

    def limit(self, kind: Kind, name: str = "seconds") -> float:
        """A limit of a kind of diagnosis, as configured."""
        given = self.limits.get(f"{kind.name}.{name}")
        return kind.limit(name) if given is None else given

    def hear(self, record: FrameRecord, side: int) -> None:
        """Take the next frame of a side."""
        self.frame_time[side] = record.last_time
        self.frame_packet[side] = record.packet
        if record.last_time + _SKEW < self.newest:
            self.skewed = True
        self.newest = max(self.newest, record.last_time)
        if record.acknowledged > self.acknowledged[side]:
            self.acknowledged[side] = record.acknowledged

    def heard(self, side: int) -> int:
        """The time of the last that was captured of a side."""
        return max(self.frame_time[side], self.segment_time[side])

    def direction(self, side: int) -> int:
        """The direction in which a side sends."""
        client = max(self.connection.client, 0)
        return client if side == 0 else 1 - client

    def idle(self, side: int, since: int, until: int, seconds: float) -> bool:
        """Whether a side could have acted for so many seconds, and was there meanwhile.

        Of a wait that is over before the connection is, the side has to be heard after so many seconds and
        before the end of the wait: else nobody knows whether the whole conversation paused.
        """
        least = int(seconds * SECOND)
        heard = self.heard(side)
        if self.skewed or until - since < least or heard <= since:
            return False
        if not self.end_time and heard < since + least:
            return False
        free: int = self.connection.stalls[self.direction(side)].free(since, until)
        return free >= least

    def add(
        self,
        kind: Kind,
        subject: str,
        whose: str,
        packet: int,
        message: str,
        figures: dict[str, Any],
        *,
        seconds: float = -1.0,
        ended: int = 0,
        packets: tuple[int, ...] = (),
    ) -> None:
        """Make a diagnosis. whose: `client`, `server` or ""."""
        if len(self.found) >= MAX_DIAGNOSED:
            return
        shown = sorted({one for one in (packet, *packets, ended) if one > 0})
        name = self.connection.id
        self.found.append(
            Diagnosis(
                kind.code,
                subject,
                whose,
                packet,
                ended,
                seconds,
                name,
                figures,
                message,
                [int(one) for one in shown],
            )
        )

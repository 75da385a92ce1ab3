"""The parts of an answer: frames by their positions, and what each frame means for the frame in question."""

from typing import NamedTuple

from amqpscope.model.finding import Finding
from amqpscope.model.records import FrameRecord

__all__ = [
    "BELONGS",
    "FORBIDS",
    "GRANTS",
    "LACKS",
    "LIMITS",
    "NAMED",
    "SETS_UP",
    "FrameQuestion",
    "Ground",
    "Knew",
    "Position",
    "Sequel",
]

GRANTS = "grants"
LIMITS = "limits"
FORBIDS = "forbids"
LACKS = "lacks"
SETS_UP = "sets up"
BELONGS = "belongs to"
NAMED = "matters to"
"""What an earlier frame does for a later one. `lacks`: there is none, and there should be. `matters to`: a
finding names it."""


class Position(NamedTuple):
    """The position of a frame, without its content.

    direction: of the connection. offset, end: of its first octet and after its last octet, in its sender's
    stream. packet, time (ns): of its first octet. channel: -1 if it has none.
    """

    direction: int
    offset: int
    end: int
    packet: int
    time: int
    name: str
    channel: int

    @staticmethod
    def of(record: FrameRecord) -> "Position":
        """The position of a frame."""
        frame = record.frame
        offset = int(frame.offset)
        return Position(
            int(record.direction),
            offset,
            offset + int(frame.size),
            int(record.packet),
            int(record.time),
            frame.name,
            int(frame.channel),
        )

    @property
    def place(self) -> tuple[int, int]:
        """What distinguishes the frame from all others of its connection."""
        return self.direction, self.offset


class Ground(NamedTuple):
    """An earlier frame that decides whether a later frame is right.

    effect: one of the words above. what: what it does, in a few words. mark: None if the frame is lacking.
    fields: the fields that it gives a value, as the specification spells them.
    """

    effect: str
    what: str
    mark: Position | None
    fields: tuple[str, ...] = ()


class Knew(NamedTuple):
    """Which frames of the other peer one peer had, when it sent its newest frame.

    read: the newest frame that it must have read, as its own frames prove. arrived: the newest frame that had
    reached its host. unsure: the frames up to `arrived` that it may not have read (the newest few), and how
    many there are; unsure_ends: the offsets behind all of them. Some may stand before `read`, on sessions
    that prove nothing. coming: the newest earlier frame of the other peer that had not arrived, and how many
    had not.
    """

    peer: str
    read: Position | None
    arrived: Position | None
    unsure: list[Position]
    unsure_count: int
    unsure_ends: frozenset[int]
    coming: Position | None
    coming_count: int


class Sequel(NamedTuple):
    """A later frame, and its relation to the frame in question."""

    what: str
    mark: Position


class FrameQuestion(NamedTuple):
    """One frame that is asked about, and everything that is known about it.

    subject: the name of the link, or the tag of the consumer, that it is about, "" if none.
    """

    mark: Position
    subject: str
    last_packet: int
    knew: Knew
    other_knew: Knew
    grounds: list[Ground]
    findings: list[Finding]
    sequels: list[Sequel]

"""What a line of a log says."""

from abc import ABC, abstractmethod
from typing import Final

__all__ = [
    "CONTINUES",
    "DAMAGED",
    "ENDED",
    "HEADER",
    "LOST",
    "UNPLACED",
    "Causes",
    "Entry",
    "LineFormat",
    "Spoken",
]

HEADER: Final = "header"
"""The name of a protocol header."""

ENDED: Final = "end of stream"
"""The name of an entry that says that its sender sends nothing more."""


LOST: Final = "lost"
"""The name of an entry that stands for a frame whose line cannot be read."""


class Entry:
    """One frame, as one endpoint logged it.

    connection: the name of the connection in the log. sent: the endpoint sent it; else it received it. name:
    of the frame, in the specification's word, HEADER, ENDED or LOST. octets: of the frame. time: nanoseconds
    since 1970, 0 where the line has none. line: of the log, from 1.
    """

    __slots__ = ("connection", "line", "name", "octets", "sent", "time")

    def __init__(
        self, connection: str, sent: bool, name: str, octets: bytes, time: int = 0, line: int = 0
    ) -> None:
        self.connection = connection
        self.sent = sent
        self.name = name
        self.octets = octets
        self.time = time
        self.line = line


class Spoken:
    """What a line is that gives no entry."""


CONTINUES: Final = Spoken()
"""The line belongs to the format, and its frame is in other lines, or will be whole with the next ones."""

DAMAGED: Final = Spoken()
"""The line looks like one of a frame, and it cannot be read of which connection."""


UNPLACED: Final = Spoken()
"""The line is one of a frame, and the log does not say of which connection or session."""


class Causes(ABC):
    """Which entry cannot stand before which one of the other peer, in a log that exchanges them."""

    @abstractmethod
    def lacks(self, entry: Entry) -> bool:
        """Whether something of the other peer must come first, and has not come."""

    @abstractmethod
    def gives(self, entry: Entry, lacking: Entry) -> bool:
        """Whether an entry is what another one lacks."""

    @abstractmethod
    def saw(self, entry: Entry) -> None:
        """An entry has found its place."""


class LineFormat(ABC):
    """The lines of one library. One object reads one log.

    library: its name for people. retold: the log has the fields of frames, not their octets.
    prints_headers: the log has protocol headers, too; else they may be left out. unplaced: why frames are
    UNPLACED, for people. exact: what the endpoint had processed when it sent a frame are the lines before
    that frame; else the log proves no more of it than a capture would. ordered: no line stands before the
    line of what it answers, and none of one sender before what that one sent earlier; else no finding is
    certain. of_client: what is `sent` is sent by the client. greeting: the protocol header with which the
    client begins, if it is not printed and not that of AMQP 1.0. causes: puts the lines of both directions
    right, each of which is in order.
    """

    library = ""
    retold = True
    prints_headers = True
    unplaced = ""
    exact = True
    ordered = True
    of_client = False
    greeting = b""
    causes: type[Causes] | None = None

    @abstractmethod
    def take(self, line: str) -> Entry | Spoken | None:
        """What the next line says; None for a line of something else."""

    def finish(self) -> int:
        """How many frames were under way at the end of the log."""
        return 0

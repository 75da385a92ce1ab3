"""What a command makes of a capture, where several processes read it: see `amqpscope.input.sharing`.

A worker is a fork, so it has its own copy of all that the command has gathered so far. There, the work takes
the frames of its share of the connections, and makes plain values of them, and of each connection that is
over. The first process is given these values in the order of the capture, as if it had made them itself.
"""

from collections.abc import Sequence
from typing import Any

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord

__all__ = ["SharedWork"]


class SharedWork:
    """The work of a command that wants nothing but findings and the connections that are over.

    ready: the connections may be shared out now.
    """

    @property
    def ready(self) -> bool:
        return True

    # In a worker

    def share(self) -> None:
        """From now on, frames and connections of a share come here."""

    @property
    def incomplete(self) -> bool:
        """What a share shows does not suffice: one process has to read the capture."""
        return False

    def frames(self, records: list[FrameRecord]) -> Sequence[object]:
        """The next frames. Returns a plain value for each of them, or nothing at all."""
        return ()

    def judge(self, findings: list[Finding]) -> None:
        """The next findings."""

    def over(self, analysis: ConnectionAnalysis, last: bool) -> object:
        """A connection is over, and all its frames and findings have come. Returns a plain value.

        last: the capture is over, too.
        """
        return None

    def rest(self) -> object:
        """All is over. Returns a plain value for the whole share."""
        return None

    # In the first process

    def take_frames(self, values: list[tuple[Connection, Any]]) -> None:
        """What `frames` of all workers returned of a block, in the order of the capture, each with the
        connection of its frame.
        """

    def take_over(self, connection: Connection, value: Any) -> None:
        """What `over` returned. Comes before the connection is among those that are over."""

    def take_rest(self, values: list[Any]) -> None:
        """What `rest` returned in each worker. Comes before the last block."""

"""What the sender of each frame had processed for certain, as the endpoints of the rules know it.

The theory stands at the top of `amqpscope.tracking.knowledge`.
"""

from amqpscope.model.records import Connection, FrameRecord
from amqpscope.protocols import protocol_of
from amqpscope.report.ladder_model import Read
from amqpscope.tracking.knowledge import CONNECTION

__all__ = ["KnownBounds"]


class KnownBounds:
    """Follows one connection with a judge of its own, whose findings are dropped."""

    def __init__(self, connection: Connection) -> None:
        self._judge = protocol_of(connection.protocol).judge(connection, [], None, None)
        self._judge.believe_log()

    def take(self, record: FrameRecord, asked: bool) -> Read | None:
        """The next frame. If asked, gives what of the other stream its sender had processed for certain."""
        judge = self._judge
        me, other = judge.endpoint(record.direction), judge.endpoint(1 - record.direction)
        me.catch_up(record.acknowledged, other.sent_end)
        me.prove(record)
        read: Read | None = None
        if asked:
            read = Read(int(me.knowledge.must_of(CONNECTION)), me.read_of_sessions())
        judge.take(record)
        judge.findings.clear()
        return read

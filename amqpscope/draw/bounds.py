"""What the sender of each frame had processed for certain, as the endpoints of the rules know it.

The theory stands at the top of `amqpscope.tracking.knowledge`.
"""

from amqpscope.model.records import Connection, FrameRecord
from amqpscope.protocols import protocol_of

__all__ = ["KnownBounds"]


class KnownBounds:
    """Follows one connection with a judge of its own, whose findings are dropped."""

    def __init__(self, connection: Connection) -> None:
        self._judge = protocol_of(connection.protocol).judge(connection, [], None, None)
        self._judge.believe_log()

    def take(self, record: FrameRecord) -> int:
        """The next frame. Gives the octets of the other stream that its sender had processed for certain."""
        judge = self._judge
        me, other = judge.endpoint(record.direction), judge.endpoint(1 - record.direction)
        me.catch_up(record.acknowledged, other.sent_end)
        me.prove(record)
        must = int(me.knowledge.must)
        judge.take(record)
        judge.findings.clear()
        return must

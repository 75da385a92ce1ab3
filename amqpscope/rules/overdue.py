"""What a peer should have said by now, in a capture that still goes on.

The rules judge a silence by what ends it: a frame, or the end of the stream. Who watches wants to hear of it
while it lasts. So this is no finding yet: the finding follows when the silence ends.
"""

from amqpscope.model.records import Connection
from dissectors.wire import i64

__all__ = ["Overdue"]


class Overdue:
    """A peer is silent for longer than it may be.

    rule: the one that it breaks. peer: `client` or `server`, who is silent. since: when it last said
    something; agreed: for how long it may be silent; both in ns.
    """

    def __init__(self, rule: str, connection: Connection, peer: str, since: i64, agreed: i64) -> None:
        self.rule: str = rule
        self.connection: Connection = connection
        self.peer: str = peer
        self.since: i64 = since
        self.agreed: i64 = agreed

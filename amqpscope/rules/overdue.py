"""What a peer should have sent by now, while the capture still goes on.

The rules judge a silence when a frame or the end of the stream ends it. Somebody who watches a live capture
wants to know of the silence while it lasts. `Overdue` is therefore not a finding yet: the finding follows
when the silence ends.
"""

from amqpscope.model.records import Connection
from dissectors.wire import i64

__all__ = ["Overdue", "milliseconds"]


def milliseconds(silence: i64) -> int:
    """A silence (ns) in milliseconds, rounded like the seconds in the message of a finding."""
    return int((silence + 500_000) // 1_000_000)


class Overdue:
    """A peer is silent for longer than allowed.

    rule: the rule that the peer breaks. peer: `client` or `server`, who is silent. since: when the peer last
    sent something; agreed: for how long the peer may be silent; both in ns.
    """

    def __init__(self, rule: str, connection: Connection, peer: str, since: i64, agreed: i64) -> None:
        self.rule: str = rule
        self.connection: Connection = connection
        self.peer: str = peer
        self.since: i64 = since
        self.agreed: i64 = agreed

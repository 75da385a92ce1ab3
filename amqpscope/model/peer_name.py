"""What a peer calls itself when a connection is opened."""

from typing import Final

from amqpscope.limits import MAX_PEER_NAME
from dissectors.wire import i64

__all__ = ["UNNAMED", "PeerName"]


class PeerName:
    """How a peer introduces itself.

    name: its container-id, or in AMQP 0-9-1 its connection_name or cluster_name. product: of its properties
    product and version. Both are as sent, "" for what it does not say. packet: of the frame that says it.
    """

    def __init__(self, name: str, product: str) -> None:
        self.name: str = name
        self.product: str = product
        self.packet: i64 = 0

    def bounded(self, packet: i64) -> "PeerName":
        """The same, of a bounded length, as said in this packet."""
        bounded = PeerName(self.name[:MAX_PEER_NAME], self.product[:MAX_PEER_NAME])
        bounded.packet = packet
        return bounded


# mypyc: null object, of a peer that has not introduced itself. Nothing writes to it.
UNNAMED: Final = PeerName("", "")

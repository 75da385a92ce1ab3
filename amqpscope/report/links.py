"""Which link a frame belongs to, for showing and selecting frames.

This module also knows where a security token may be: on a link from or to the node `$cbs`, and, while an
attach of the connection may be unknown, on a link without a known name.
"""

from typing import Final

from amqpscope.model.records import Connection, FrameRecord
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.identity import Link
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.wire import i64

__all__ = ["LinkNames"]

_OUTSIDE: Final = ("header", "sasl", "skipped")
"""What an AMQP 1.0 connection has besides frames of AMQP itself."""


class _Connection:
    """One connection. begun: bits of the directions whose login was seen to be over.

    gap: octets were lost. tokens: a link carries tokens.
    """

    def __init__(self) -> None:
        self.conversation: Conversation10 = Conversation10()
        self.begun: i64 = 0
        self.gap: bool = False
        self.tokens: bool = False


class LinkNames:
    """Takes the frame records of a capture in order, and returns the link of each frame."""

    def __init__(self) -> None:
        self._connections: dict[Connection, _Connection] = {}
        # The connection of the last frame: nearly always the next one's too.
        self._last: Connection | None = None
        self._known: _Connection = _Connection()

    def of(self, record: FrameRecord) -> Link | None:
        """The link of this frame; None if it has none or the link is unknown."""
        connection = record.connection
        if connection is not self._last:
            self._known = self._of(connection)
            self._last = connection
        known = self._known
        frame = record.frame
        if frame.kind == "amqp":
            known.conversation.take(record)
            link = known.conversation.link
            if link is None:
                if frame.name == "open":
                    known.begun |= 1 << record.direction
            elif link.tokens:
                known.tokens = True
            return link
        body = frame.body
        if frame.kind == "skipped":
            known.gap = True
        elif isinstance(body, ProtocolHeader):
            if body.protocol_id == 0 and body.major == 1:
                known.begun |= 1 << record.direction
        elif frame.channel > 0 and not frame.problems:
            # In 0-9-1 nothing is said on a channel before the login.
            known.begun |= 1 << record.direction
        if frame.kind in _OUTSIDE:
            known.conversation.take(record)
        return None

    def conversation(self, connection: Connection) -> Conversation10:
        """What follows a connection of AMQP 1.0, to subscribe to. `of` has it take each frame."""
        return self._of(connection).conversation

    def forget(self, connection: Connection) -> None:
        """No more frames of this connection will come."""
        self._connections.pop(connection, None)
        if self._last is connection:
            self._last = None

    def _of(self, connection: Connection) -> _Connection:
        known = self._connections.get(connection)
        if known is None:
            known = _Connection()
            self._connections[connection] = known
        return known

    def may_hold_token(self, record: FrameRecord, link: Link | None) -> bool:
        """Whether octets of this frame that are not distinguished may be a security token or a credential.

        To be asked after `of`, of frames that are not what they should be.
        """
        known = self._connections.get(record.connection)
        if link is not None:
            return link.tokens or link.anonymous or (known is not None and known.tokens and known.gap)
        if known is None or known.tokens or known.gap:
            return True
        # Before its AMQP layer begins a peer speaks SASL.
        return not self.begun(record)

    def begun(self, record: FrameRecord) -> bool:
        """Whether the login of this frame's sender was seen to be over. To be asked after `of`."""
        known = self._connections.get(record.connection)
        return known is not None and known.begun & (1 << record.direction) != 0

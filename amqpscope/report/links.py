"""Which link a frame speaks of, by the names that the attaches gave: for showing and selecting frames.

A frame names its link by a handle, or not at all (a disposition names deliveries). This follows
attach, begin, transfer and detach just far enough to put a name and an address beside it; whether
they were allowed is not its question.
"""

from amqpscope.limits import MAX_NAMED_DELIVERIES
from amqpscope.model import CLIENT, Connection, FrameRecord
from dissectors.amqp10.messaging import Source, Target
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Transfer,
)
from dissectors.amqp10.transactions import Coordinator

__all__ = ["LinkNames", "LinkOf"]


class LinkOf:
    """A link as a frame's line names it. name: as attached. source, target: addresses; address: the one
    at the end that is not anonymous, as `source` or `target` of the attach say."""

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.source: str | None = None
        self.target: str | None = None
        self.coordinator: bool = False
        self.of_source: bool = False

    @property
    def address(self) -> str | None:
        """The address that says most: the target where there is one, else the source."""
        if self.coordinator:
            return "coordinator"
        return self.source if self.target is None or self.of_source else self.target

    def learn(self, attach: Attach) -> None:
        """Take the addresses of one side's attach."""
        source = attach.source
        if isinstance(source, Source) and isinstance(source.address, str):
            self.source = source.address
        target = attach.target
        if isinstance(target, Target) and isinstance(target.address, str):
            self.target = target.address
        elif isinstance(target, Coordinator):
            self.coordinator = True


class _Connection:
    """The links of one connection."""

    def __init__(self) -> None:
        # A direction is 0 for what the client sends, 1 for the server.
        # (direction, channel, handle) -> link; (direction, channel) -> the other side's channel.
        self.handles: dict[tuple[int, int, int], LinkOf] = {}
        self.channels: dict[tuple[int, int], int] = {}
        # (session, name, sender's direction) -> link; a session is the opener's (direction, channel).
        self.names: dict[tuple[tuple[int, int], str, int], LinkOf] = {}
        # (sender's direction, channel, delivery-id) -> link.
        self.deliveries: dict[tuple[int, int, int], LinkOf] = {}


class LinkNames:
    """Takes the frame records of a capture in order; says of each which link it speaks of."""

    def __init__(self) -> None:
        self._connections: dict[Connection, _Connection] = {}

    def of(self, record: FrameRecord) -> LinkOf | None:
        """The link of this frame, or None if it has none or it is not known."""
        body = record.frame.body
        if not isinstance(body, (Attach, Begin, Flow, Transfer, Disposition, Detach, End, Open, Close)):
            return None
        known = self._connections.get(record.connection)
        if known is None:
            known = _Connection()
            self._connections[record.connection] = known
        direction = 0 if record.peer == CLIENT else 1
        channel = int(record.frame.channel)
        if isinstance(body, Transfer):
            return self._transfer(known, direction, channel, body)
        if isinstance(body, Disposition):
            return self._disposition(known, direction, channel, body)
        if isinstance(body, Flow):
            return known.handles.get((direction, channel, body.handle)) if body.handle is not None else None
        if isinstance(body, Attach):
            return self._attach(known, direction, channel, body)
        if isinstance(body, Detach):
            return (
                known.handles.pop((direction, channel, body.handle), None)
                if body.handle is not None
                else None
            )
        if isinstance(body, Begin):
            if body.remote_channel is not None:
                known.channels[(direction, channel)] = body.remote_channel
                known.channels[(1 - direction, body.remote_channel)] = channel
        elif isinstance(body, End):
            for key in [key for key in known.handles if key[:2] == (direction, channel)]:
                del known.handles[key]
        elif isinstance(body, Close):
            self._connections.pop(record.connection, None)
        return None

    def _attach(self, known: _Connection, direction: int, channel: int, attach: Attach) -> LinkOf | None:
        if attach.name is None:
            return None
        # The link is the same one from both sides if session and name are, and the roles complement.
        other = known.channels.get((direction, channel), -1)
        session = (0, channel if direction == 0 else other)
        sender = direction if attach.role is False else 1 - direction
        key = (session, attach.name, sender)
        link = known.names.get(key)
        if link is None:
            link = LinkOf(attach.name)
            known.names[key] = link
            if len(known.names) > MAX_NAMED_DELIVERIES:
                del known.names[next(iter(known.names))]
        link.learn(attach)
        # A client that receives consumes from the source; its own target is mostly a mere label.
        link.of_source = link.source is not None and (
            link.target is None or self._receives(direction, attach)
        )
        if attach.handle is not None:
            known.handles[(direction, channel, attach.handle)] = link
        return link

    def _receives(self, direction: int, attach: Attach) -> bool:
        """Whether the direction that attached first (the client nearly always, 0) receives on the link."""
        return (attach.role is True) == (direction == 0)

    def _transfer(
        self, known: _Connection, direction: int, channel: int, transfer: Transfer
    ) -> LinkOf | None:
        if transfer.handle is None:
            return None
        link = known.handles.get((direction, channel, transfer.handle))
        if link is not None and transfer.delivery_id is not None:
            known.deliveries[(direction, channel, transfer.delivery_id)] = link
            if len(known.deliveries) > MAX_NAMED_DELIVERIES:
                del known.deliveries[next(iter(known.deliveries))]
        return link

    def _disposition(
        self, known: _Connection, direction: int, channel: int, body: Disposition
    ) -> LinkOf | None:
        if body.first is None:
            return None
        if body.role:
            other = known.channels.get((direction, channel))
            return None if other is None else known.deliveries.get((1 - direction, other, body.first))
        return known.deliveries.get((direction, channel, body.first))

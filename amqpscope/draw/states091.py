"""The paths of AMQP 0-9-1: how a connection is set up and closed, and each channel."""

from typing import Final

from amqpscope.draw.states import Diagram, StatePaths
from amqpscope.model.records import CLIENT, FrameRecord
from amqpscope.tracking.amqp091.states import CHANNEL, CONNECTION, OPEN

__all__ = ["StatePaths091"]

_WORDS: Final = {"C": "client", "S": "server"}

_CONNECTION: Final = Diagram("AMQP 0-9-1 connection", _WORDS, CONNECTION)
_CHANNEL: Final = Diagram("AMQP 0-9-1 channel, and the closing of a connection", _WORDS, CHANNEL)

_CLOSING: Final = ("close", "close-ok")


class StatePaths091(StatePaths):
    """Follows one connection. One table serves both endpoints, so frames are inputs in their order."""

    def take(self, record: FrameRecord) -> None:
        frame = record.frame
        kind, _, method = frame.name.partition(".")
        letter = "C" if record.peer == CLIENT else "S"
        if frame.name == "header" or kind == "connection":
            action = f"{letter}:{method or 'header'}"
            if method in _CLOSING:
                path = self.path(("closing",), _CHANNEL, "closing of the connection")
                if path is not None and not path.steps:
                    path.state = OPEN
            else:
                path = self.path(("connection",), _CONNECTION, "connection")
        elif kind == "channel":
            action = f"{letter}:{method}"
            path = self.path(("channel", int(frame.channel)), _CHANNEL, f"channel {frame.channel}")
        else:
            return
        inputs = {one for _, one in path.diagram.machine.cells} if path is not None else ()
        if path is not None and action in inputs:
            path.take(action, int(record.packet), True)

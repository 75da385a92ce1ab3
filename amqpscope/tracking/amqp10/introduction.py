"""How a peer of AMQP 1.0 introduces itself: by its open."""

from amqpscope.model.peer_name import PeerName
from amqpscope.tracking.amqp10_draft2011.spoken import body_of
from dissectors.amqp10.performatives import Open
from dissectors.amqp10.values import Map
from dissectors.interface import Frame

__all__ = ["introduction"]


def introduction(frame: Frame) -> PeerName | None:
    """What the sender of a frame calls itself in it; None if it is no open."""
    if frame.name != "open":
        return None
    body = body_of(frame)
    if not isinstance(body, Open):
        return None
    words: list[str] = []
    properties = body.properties
    if isinstance(properties, Map):
        for key in ("product", "version"):
            value: object = properties.get(key)
            if isinstance(value, str) and value:
                words.append(value)
    return PeerName(body.container_id or "", " ".join(words))

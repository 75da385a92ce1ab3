"""The paths of AMQP 1.0: of each endpoint's connection, sessions and links."""

from typing import Final

from amqpscope.draw.follower import Walk
from amqpscope.draw.states import Diagram, StatePaths
from amqpscope.draw.words import wire_name
from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import Link, Session
from amqpscope.tracking.amqp10.states import CONNECTION, LINK, SESSION
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.performatives import Attach, Begin, Close, Detach, End, Open

__all__ = ["StatePaths10"]

_WORDS: Final = {"S": "send", "R": "receive"}

_CONNECTION: Final = Diagram("AMQP 1.0 connection", _WORDS, CONNECTION)
_SESSION: Final = Diagram("AMQP 1.0 session", _WORDS, SESSION)
_LINK: Final = Diagram("AMQP 1.0 link", _WORDS, LINK)


class StatePaths10(StatePaths):
    """Follows one connection."""

    def follow(self, walk: Walk) -> None:
        walk.names.conversation(walk.connection).subscribe(_Events(self))


class _Events(Listener10):
    """Turns events into inputs of the tables."""

    def __init__(self, paths: StatePaths10) -> None:
        self._paths = paths
        self._sessions: dict[Session, int] = {}
        self._links: dict[Link, int] = {}

    def header(self, record: FrameRecord, body: ProtocolHeader) -> None:
        if body.protocol_id == 0:
            self._paths.exchange(record, ("connection",), _CONNECTION, "connection", "HDR")

    def opened(self, record: FrameRecord, body: Open) -> None:
        self._paths.exchange(record, ("connection",), _CONNECTION, "connection", "OPEN")

    def closed(self, record: FrameRecord, body: Close) -> None:
        action = "CLOSE" if body.error is None else "CLOSE(error)"
        self._paths.exchange(record, ("connection",), _CONNECTION, "connection", action)

    def session_begun(self, record: FrameRecord, body: Begin, session: Session) -> None:
        self._session(record, session, "BEGIN")

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        self._session(record, session, "END" if body.error is None else "END(error)")

    def _session(self, record: FrameRecord, session: Session, action: str) -> None:
        number = self._sessions.setdefault(session, len(self._sessions))
        self._paths.exchange(record, ("session", number), _SESSION, f"session {number}", action)

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        self._link(record, link, "ATTACH")

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        self._link(record, link, "DETACH")

    def _link(self, record: FrameRecord, link: Link, action: str) -> None:
        number = self._links.setdefault(link, len(self._links))
        self._paths.exchange(record, ("link", number), _LINK, f"link {wire_name(link.name)}", action)

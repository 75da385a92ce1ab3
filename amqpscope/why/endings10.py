"""What begins and ends on an AMQP 1.0 connection: sessions, and the links on them."""

from amqpscope.limits import REFUSAL_TIME
from amqpscope.model.records import CLIENT, Connection, FrameRecord
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from amqpscope.tracking.amqp10_draft2011.spoken import body_of
from amqpscope.why.endings import CauseStep, Following, Thing
from amqpscope.why.frame_ref import Position
from amqpscope.why.grounds import name_text
from amqpscope.why.remembered import Recent
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Flow,
    Open,
    Transfer,
)
from dissectors.amqp10.sasl import SaslOutcome

__all__ = ["Following10"]

_AUTH = 1
"""The sasl-code of credentials that are refused; the higher ones are of errors of the server's own."""

_LATER = (
    *("amqp:link:stolen", "amqp:link:detach-forced", "amqp:link:redirect", "amqp:connection:forced"),
    *("amqp:link:transfer-limit-exceeded", "amqp:link:message-size-exceeded"),
)
"""Errors of a link that was attached, and not refused."""


class _Asked:
    """An attach that began a link: which peer sent it, and where. used: whether anything was sent since then.

    answer: the attach that answers it, and whether that has no terminus, which announces a refusal.
    """

    __slots__ = ("answer", "mark", "peer", "used")

    def __init__(self, peer: str, mark: Position) -> None:
        self.peer = peer
        self.mark = mark
        self.answer: tuple[Position, bool] | None = None
        self.used = False


class Following10(Following, Listener10):
    """Follows an AMQP 1.0 connection by its events."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._conversation = Conversation10()
        self._conversation.subscribe(self)
        self._sessions: Recent[Session, Thing] = Recent()
        self._links: Recent[Link, Thing] = Recent()
        self._begun = 0
        self._idle: dict[str, int] = {}
        # By link.
        self._asked: dict[Thing, _Asked] = {}

    def patience(self, peer: str) -> tuple[str, int]:
        return "the idle-time-out", self._idle.get(peer, 0) * 1_000_000

    def follow(self, record: FrameRecord) -> None:
        self._conversation.take(record)

    def opened(self, record: FrameRecord, body: Open) -> None:
        self._idle[record.peer] = body.idle_time_out or 0

    def closed(self, record: FrameRecord, body: Close) -> None:
        how = f"was closed by the {record.peer}{_with(body.error)}"
        self.end(self.whole, how, _condition(body.error), record, None)

    def sasl(self, record: FrameRecord) -> None:
        body = body_of(record.frame)
        if isinstance(body, SaslOutcome) and body.code:
            what = (
                "the refused login" if body.code == _AUTH else "the login, because of an error of the server"
            )
            cause = CauseStep(what, self.last_mark.get(CLIENT), None, 0, True)
            how = f"was refused by the {record.peer} at the login"
            self.end(self.whole, how, f"sasl-code {body.code}", record, cause)

    def session_begun(self, record: FrameRecord, body: Begin, session: Session) -> None:
        if self._sessions.get(session) is None:
            name = f"session {self._begun} (channel {record.frame.channel})"
            self._sessions.put(session, self.begin(name, self.whole, record))
            self._begun += 1
            self.goes_on(record)
        self._is_about(session, None)

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        thing = self._is_about(session, None)
        if thing is not None:
            how = f"was ended by the {record.peer}{_with(body.error)}"
            self.end(thing, how, _condition(body.error), record, None)

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        around = self._is_about(session, link)
        if around is None:
            return
        thing = self._links.get(link)
        if thing is None:
            name = f"link {name_text(link.name)} ({link.sender} sends)"
            thing = self.about = self.begin(name, around, record)
            self._links.put(link, thing)
            self._asked[thing] = _Asked(record.peer, Position.of(record))
            self.goes_on(record)
        elif thing in self._asked and self._asked[thing].peer != record.peer:
            terminus = body.target if body.role else body.source
            self._asked[thing].answer = (Position.of(record), terminus is None and not body.odd)

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        thing = self._links.get(link)
        if thing is not None:
            self.about = thing
            self._detach(thing, body, record)

    def flow(self, record: FrameRecord, body: Flow, session: Session, link: Link | None) -> None:
        self._is_about(session, link)

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        if self._is_about(delivery.session, delivery.link) is not None:
            self.goes_on(record)
            if self.about in self._asked:
                self._asked[self.about].used = True

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        self.delivery_started(record, body, delivery)

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        self._is_about(session, None)

    def stray(self, record: FrameRecord, session: Session | None) -> None:
        self._is_about(session, None)

    def _is_about(self, session: Session | None, link: Link | None) -> Thing | None:
        """The newest frame is about a session, and a link of it. Gives the session, None if not known."""
        thing = None if session is None else self._sessions.get(session)
        if thing is not None:
            inner = None if link is None else self._links.get(link)
            self.about = thing if inner is None else inner
        return thing

    def _detach(self, link: Thing, body: Detach, record: FrameRecord) -> None:
        peer = record.peer
        cause = None
        asked = self._asked.pop(link, None)
        if asked is not None and asked.peer != peer and not asked.used and body.error is not None:
            answered = asked.answer
            sure = answered is None or answered[1]
            soon = answered is not None and int(record.time) - answered[0].time <= REFUSAL_TIME
            if sure or (soon and _condition(body.error) not in _LATER):
                cause = CauseStep("the attach of the refused link", asked.mark, None, 0, sure)
        how = f"was {'closed' if body.closed else 'detached'} by the {peer}{_with(body.error)}"
        self.end(link, how, _condition(body.error), record, cause)


def _condition(error: Error | None) -> str:
    """The condition of an error; a word if it has none."""
    if error is None:
        return ""
    return "unknown" if error.condition is None else str(error.condition)


def _with(error: Error | None) -> str:
    return "" if error is None else " with an error"

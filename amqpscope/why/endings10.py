"""What begins and ends on an AMQP 1.0 connection: sessions, and the links on them."""

from amqpscope.limits import REFUSAL_TIME
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.why.endings import CauseStep, Following, Thing
from amqpscope.why.frame_ref import Position
from amqpscope.why.grounds import name_text
from amqpscope.why.remembered import Recent
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
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


class _Session:
    """A session: its links by name and sender, and by each peer's handle."""

    def __init__(self, thing: Thing) -> None:
        self.thing = thing
        self.links: Recent[tuple[str, str], Thing] = Recent()
        self.handles: Recent[tuple[str, int], Thing] = Recent()


class Following10(Following):
    """Follows an AMQP 1.0 connection."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._sessions: dict[tuple[str, int], _Session] = {}
        self._begun = 0
        self._idle: dict[str, int] = {}
        # Of a link: the attach that began it and who said it; what answers that, and whether it has no
        # terminus, which announces that the link is refused; whether anything was sent on it since.
        self._asked: dict[Thing, tuple[str, Position]] = {}
        self._answered: dict[Thing, tuple[Position, bool]] = {}
        self._used: set[Thing] = set()

    def patience(self, peer: str) -> tuple[str, int]:
        return "the idle-time-out", self._idle.get(peer, 0) * 1_000_000

    def follow(self, record: FrameRecord) -> None:
        body = record.frame.body
        peer = record.peer
        channel = int(record.frame.channel)
        if isinstance(body, Open):
            self._idle[peer] = body.idle_time_out or 0
        elif isinstance(body, Close):
            how = f"was closed by the {peer}{_with(body.error)}"
            self.end(self.whole, how, _condition(body.error), record, None)
        elif isinstance(body, SaslOutcome) and body.code:
            what = (
                "the login that is refused"
                if body.code == _AUTH
                else "the login, for an error of the server's"
            )
            cause = CauseStep(what, self.last_mark.get(CLIENT), None, 0, True)
            how = f"was refused by the {peer} at the login"
            self.end(self.whole, how, f"sasl-code {body.code}", record, cause)
        elif isinstance(body, Begin):
            self._begin(body, record)
        else:
            session = self._sessions.get((peer, channel))
            if session is not None:
                self._on(session, body, record)

    def _begin(self, body: Begin, record: FrameRecord) -> None:
        peer, channel = record.peer, int(record.frame.channel)
        other = SERVER if peer == CLIENT else CLIENT
        session = None if body.remote_channel is None else self._sessions.get((other, body.remote_channel))
        if session is None:
            thing = self.begin(f"session {self._begun} (channel {channel})", self.whole, record)
            self._begun += 1
            session = _Session(thing)
            self.goes_on(record)
        self.about = session.thing
        self._sessions[(peer, channel)] = session

    def _on(self, session: _Session, body: object, record: FrameRecord) -> None:
        peer = record.peer
        self.about = session.thing
        if isinstance(body, End):
            how = f"was ended by the {peer}{_with(body.error)}"
            self.end(session.thing, how, _condition(body.error), record, None)
            self._sessions.pop((peer, int(record.frame.channel)), None)
        elif isinstance(body, Attach) and body.name is not None and body.role is not None:
            other = SERVER if peer == CLIENT else CLIENT
            key = (body.name, other if body.role else peer)
            link = session.links.get(key)
            if link is None or link.ended is not None:
                link = self.begin(f"link {name_text(body.name)} ({key[1]} sends)", session.thing, record)
                session.links.put(key, link)
                self._asked[link] = (peer, Position.of(record))
                self.goes_on(record)
            elif link in self._asked and self._asked[link][0] != peer:
                terminus = body.target if body.role else body.source
                self._answered[link] = (Position.of(record), terminus is None and not body.odd)
            self.about = link
            if body.handle is not None:
                session.handles.put((peer, body.handle), link)
        elif isinstance(body, Detach) and body.handle is not None:
            link = session.handles.pop((peer, body.handle))
            if link is not None:
                self.about = link
                self._detach(link, body, record)
        elif isinstance(body, (Transfer, Flow)) and body.handle is not None:
            link = session.handles.get((peer, body.handle))
            if link is not None:
                self.about = link
            if isinstance(body, Transfer):
                self.goes_on(record)
                if link is not None:
                    self._used.add(link)

    def _detach(self, link: Thing, body: Detach, record: FrameRecord) -> None:
        peer = record.peer
        cause = None
        asked = self._asked.pop(link, None)
        answered = self._answered.pop(link, None)
        if asked is not None and asked[0] != peer and link not in self._used and body.error is not None:
            sure = answered is None or answered[1]
            soon = answered is not None and int(record.time) - answered[0].time <= REFUSAL_TIME
            if sure or (soon and _condition(body.error) not in _LATER):
                cause = CauseStep("the link is refused: the attach that asks for it", asked[1], None, 0, sure)
        self._used.discard(link)
        how = f"was {'closed' if body.closed else 'detached'} by the {peer}{_with(body.error)}"
        self.end(link, how, _condition(body.error), record, cause)


def _condition(error: Error | None) -> str:
    """The condition of an error; a word if it has none."""
    if error is None:
        return ""
    return "unknown" if error.condition is None else str(error.condition)


def _with(error: Error | None) -> str:
    return "" if error is None else " with an error"

"""What a peer asks for and does not get: answers to begin, attach, detach, end, close, drain and echo."""

from typing import Final

from amqpscope.diagnoses.amqp10.link_state import ahead
from amqpscope.diagnoses.amqp10.watch import Watch10
from amqpscope.diagnoses.declaration import MAY_END, Limit, declare
from amqpscope.diagnoses.latency import Latency
from amqpscope.diagnoses.notebook import SECOND, Notebook, duration, side_of_peer
from amqpscope.limits import MAX_NAMED_DELIVERIES
from amqpscope.model.passwords import without_password
from amqpscope.model.records import PEERS, FrameRecord, side_of
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from dissectors.amqp10.performatives import Attach, Begin, Close, Detach, End, Flow, Transfer
from dissectors.wire import i64

__all__ = ["UNANSWERED", "RequestWatch"]

UNANSWERED: Final = declare(
    "unanswered",
    ("1.0",),
    """A peer is alive, but does not answer a request.

    What it means: The answer to a begin, attach, detach, end or close is a frame of the same kind. When a
    flow has drain=true, the answer of the sender is to use up all credit or to send a flow. The answer to a
    flow with echo=true is a flow. The host of the peer has acknowledged the request, and the peer sends other
    frames.
    Usual causes: A library, a broker or an application has no handler for the request. For example, a server
    library sends no answers by itself, an application forgets to close a link, or a library does not
    implement drain.
    Who has to act: The peer that has not answered.
    Client: Use a time-out for each request, and close the connection if no answer arrives. Answer the
    requests of the server.
    Server: Answer every attach, if necessary with an error.
    Not reported when: the host of the peer has not acknowledged the request, the peer has ended the session
    or connection itself, or the peer has used up the credit that had to be drained.
    Discussions: Azure/amqpnetlite#488, Azure/go-amqp#255, rabbitmq/rabbitmq-server#2578,
    skupperproject/skupper-router#1682
    """,
    Limit(
        "seconds",
        5,
        ("a broker may need up to 2 s to create a queue, and answers all other requests at once"),
    ),
    Limit("close-seconds", 3, "a peer needs no work to answer a close"),
    explains=(MAY_END,),
)


_MIRRORED: Final = ("attach", "detach", "end", "close")
"""Requests that look like their answers."""

_OF_LINKS: Final = ("attach", "detach", "drain")

# The words for requests that are fields of a flow.
_REQUESTS: Final = {"drain": "flow with drain=true", "echo": "flow with echo=true"}
"""Requests about a link."""


class _Asked:
    """A request. about: ` of link ...`, ` on channel ...` or "". end: the offset behind it in its sender's
    stream. up_to: of a drain, the delivery-count.
    """

    def __init__(self, kind: str, about: str, record: FrameRecord) -> None:
        self.kind: str = kind
        self.about: str = about
        self.side: i64 = side_of(record)
        self.packet: i64 = record.packet
        self.time: i64 = record.time
        self.end: i64 = record.frame.offset + record.frame.size
        self.credit: i64 = 0


class RequestWatch(Watch10):
    """Watches the requests of one connection."""

    def __init__(self, notebook: Notebook, conversation: Conversation10) -> None:
        super().__init__(notebook, later=True)
        self.conversation: Conversation10 = conversation
        # By kind and what it is about; of each, the newest.
        self.asked: dict[tuple[str, object], _Asked] = {}
        # The sessions whose begin was captured, and no octets are missing since.
        self.sessions: set[Session] = set()
        # Of links whose attach was captured, their delivery-count less the deliveries that were started.
        self.counts: dict[Link, int] = {}
        # How long answers took, by what was asked for.
        self.latencies: dict[str, Latency] = {}

    def _ask(self, key: tuple[str, object], about: str, record: FrameRecord) -> _Asked:
        asked = _Asked(key[0], about, record)
        # Where octets are missing, this may be the answer to what is among them.
        sure = not self.notebook.lossy or key[0] not in _MIRRORED
        if sure and len(self.asked) < MAX_NAMED_DELIVERIES:
            self.asked[key] = asked
        return asked

    def _answer(self, key: tuple[str, object], record: FrameRecord) -> None:
        asked = self._withdraw(key, record)
        if asked is not None:
            latency = self.latencies.get(asked.kind)
            if latency is None:
                latency = self.latencies[asked.kind] = Latency()
            latency.add(record.time - asked.time, asked.packet, record.packet)

    def _withdraw(self, key: tuple[str, object], record: FrameRecord) -> _Asked | None:
        """Nobody needs an answer after this frame. Gives what was asked of its sender, if it was asked."""
        asked = self.asked.pop(key, None)
        if asked is None or asked.side == side_of(record):
            return None
        self._over(asked, record.packet, record.time)
        return asked

    def _over(self, asked: _Asked, ended: i64, until: i64) -> None:
        """A request was answered or withdrawn, or nothing more is known of it."""
        notebook = self.notebook
        other = 1 - asked.side
        patience = notebook.limit(UNANSWERED, "close-seconds" if asked.kind == "close" else "seconds")
        if (
            not notebook.idle(other, asked.time, until, patience)
            or notebook.heard(other).time <= asked.time
            or notebook.heard(other).acknowledged < asked.end
        ):
            return
        seconds = (until - asked.time) / SECOND
        who = PEERS[other]
        figures: dict[str, object] = {"asked": asked.kind, "peer_alive": "frames"}
        if asked.kind == "drain":
            figures["credit"] = asked.credit
        notebook.add(
            UNANSWERED,
            asked.kind,
            who,
            asked.packet,
            f"the {who} {'did not answer' if ended else 'has not answered'} the "
            f"{_REQUESTS.get(asked.kind, asked.kind)}{asked.about} for {duration(seconds)}, although the "
            f"{who} still sends frames",
            figures,
            seconds=seconds,
            ended=ended,
        )

    # Sessions and links

    def session_begun(self, record: FrameRecord, body: Begin, session: Session) -> None:
        self.sessions.add(session)
        if session.half(1 - side_of(record)) is None:
            self._ask(("begin", session), f" on channel {record.frame.channel}", record)
        else:
            self._answer(("begin", session), record)

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        self.sessions.discard(session)
        self._drop(session, record)
        if session.ended_by("client") and session.ended_by("server"):
            self._answer(("end", session), record)
        else:
            self._ask(("end", session), f" on channel {record.frame.channel}", record)

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        if side_of(record) == side_of_peer(link.sender):
            self.counts[link] = int((body.initial_delivery_count or 0) - link.deliveries)
        if link.attached == 3:
            self._answer(("attach", link), record)
        else:
            self._ask(("attach", link), f' of link "{without_password(link.name)}"', record)

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        self.counts.pop(link, None)
        self._withdraw(("drain", link), record)
        if link.detached == 3:
            self._answer(("detach", link), record)
        elif link.attached == 3:
            self._ask(("detach", link), f' of link "{without_password(link.name)}"', record)
        else:
            self.asked.pop(("attach", link), None)

    def closed(self, record: FrameRecord, body: Close) -> None:
        if ("close", None) in self.asked:
            self._answer(("close", None), record)
            return
        for key in list(self.asked):
            self._withdraw(key, record)
        self.asked = {}
        self._ask(("close", None), "", record)

    def _drop(self, session: Session, record: FrameRecord) -> None:
        """What was asked in a session that is ended is over."""
        self._withdraw(("begin", session), record)
        self._withdraw(("echo", session), record)
        for half in (session.client, session.server):
            if half is None or not self.asked:
                continue
            for on in half.handles.values():
                for kind in _OF_LINKS:
                    self._withdraw((kind, on.link), record)

    # Drain and echo

    def flow(self, record: FrameRecord, body: Flow, session: Session, link: Link | None) -> None:
        side = side_of(record)
        if session not in self.sessions:
            return
        self._answer(("echo", session), record)
        if link is not None and link in self.counts:
            if side == side_of_peer(link.sender):
                self._answer(("drain", link), record)
                if body.delivery_count is not None:
                    self.counts[link] = int(body.delivery_count - link.deliveries)
            elif body.drain is True:
                known = self.counts[link] + link.deliveries
                count = known if body.delivery_count is None else body.delivery_count
                left = ahead(count + (body.link_credit or 0), known)
                if left > 0 and ("drain", link) not in self.asked:
                    self.attend(self.conversation)
                    self._ask(
                        ("drain", link), f' of link "{without_password(link.name)}"', record
                    ).credit = left
                return
            else:
                self.asked.pop(("drain", link), None)
        if body.echo is True:
            self._ask(("echo", session), f" on channel {record.frame.channel}", record)

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        asked = self.asked.get(("drain", delivery.link)) if self.asked else None
        if asked is not None:
            asked.credit -= 1
            if asked.credit <= 0:
                self._answer(("drain", delivery.link), record)

    # The end

    def lasting(self, until: i64) -> None:
        for asked in self.asked.values():
            self._over(asked, 0, until)

    def lost(self, until: i64) -> None:
        self.lasting(until)
        self.asked = {}
        self.counts = {}
        self.sessions.clear()

    def finish(self, accused: set[str]) -> None:
        for asked in self.asked.values():
            self._over(asked, self.notebook.end_packet, self.notebook.end_time)
        self.asked = {}

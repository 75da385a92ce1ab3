"""What happened on each connection: peers, sessions, links, messages, octets, how it ended and why."""

import json
from typing import Any

from amqpscope.analysis import ConnectionAnalysis, Note
from amqpscope.limits import MAX_SUMMARY_ERRORS, MAX_SUMMARY_LINKS
from amqpscope.model import CLIENT, SERVER, Connection, FrameRecord, endpoint
from amqpscope.report.links import LinkNames, LinkOf
from amqpscope.report.moment import iso
from amqpscope.report.secrets import without_password
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Error,
    Open,
    Transfer,
)
from dissectors.amqp10.sasl import SaslInit, SaslOutcome
from dissectors.amqp10.values import Map

__all__ = ["ConnectionSummary", "ErrorSummary", "LinkSummary", "Summary", "protocol_name", "summary_json"]

_PROTOCOLS = {
    "amqp10": "AMQP 1.0",
    "amqp091": "AMQP 0-9-1",
    "amqp010": "AMQP 0-10",
    "amqp09": "AMQP 0-9",
    "amqp08": "AMQP 0-8",
    "amqp-unknown": "AMQP of an unknown version",
    "tls": "TLS",
    "http": "HTTP",
    "ssh": "SSH",
    "stomp": "STOMP",
    "mqtt": "MQTT",
    "unknown": "not AMQP",
    "": "no data",
}

_SASL_CODES = {0: "ok", 1: "auth", 2: "sys", 3: "sys-perm", 4: "sys-temp"}

_TCP_ENDS = {"fin": "FIN", "rst": "RST", "": "still open"}


def protocol_name(protocol: str) -> str:
    """A protocol as people write it."""
    return _PROTOCOLS.get(protocol, protocol)


class LinkSummary:
    """One link: its name, who sends on it, its addresses, and what went over it.

    ended: who detached or closed it first, or "". error: the condition one of its detaches gave, or "".
    """

    def __init__(self, link: LinkOf) -> None:
        self.link = link
        self.transfers = 0
        self.messages = 0
        self.octets = 0
        self.aborted = 0
        self.ended = ""
        self.error = ""

    @property
    def source(self) -> str | None:
        """The address of its source."""
        return None if self.link.source is None else without_password(self.link.source)

    @property
    def target(self) -> str | None:
        """The address of its target."""
        if self.link.coordinator:
            return "coordinator"
        return None if self.link.target is None else without_password(self.link.target)


class ErrorSummary:
    """An error that a peer reported, in a frame or delivery state: `count` times, first in `packet`."""

    def __init__(
        self, packet: int, peer: str, what: str, condition: str, description: str | None, link: str | None
    ) -> None:
        self.packet = packet
        self.peer = peer
        self.what = what
        self.condition = condition
        self.description = description
        self.link = link
        self.count = 0


class ConnectionSummary:
    """One connection, put together from its frames. What a peer said is by `client` and `server`."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.first_time = 0
        self.last_time = 0
        self.frames = {CLIENT: 0, SERVER: 0}
        self.products = {CLIENT: "", SERVER: ""}
        self.containers = {CLIENT: "", SERVER: ""}
        self.mechanism = ""
        self.sasl_outcome = ""
        self.sessions = 0
        self.links: dict[LinkOf, LinkSummary] = {}
        self.links_dropped = 0
        self.messages = {CLIENT: 0, SERVER: 0}
        self.message_octets = {CLIENT: 0, SERVER: 0}
        self.problems = 0
        self.errors: dict[tuple[str, str, str, str | None, str | None], ErrorSummary] = {}
        self.errors_dropped = 0
        # The packet of a peer's close, 0 while there is none.
        self.closed = {CLIENT: 0, SERVER: 0}

    def add(self, record: FrameRecord, link: LinkOf | None) -> None:
        """Take one frame of this connection."""
        frame = record.frame
        peer = record.peer
        if not self.first_time:
            self.first_time = int(record.time)
        self.last_time = max(self.last_time, int(record.last_time))
        self.frames[peer] += 1
        if frame.problems:
            self.problems += 1
        body = frame.body
        if isinstance(body, Transfer):
            self._transfer(record, peer, body, link)
        elif isinstance(body, Disposition):
            if body.state is not None:
                self._outcome(record, peer, body.state, link)
        elif isinstance(body, Open):
            self.containers[peer] = body.container_id or ""
            self.products[peer] = _product(body)
        elif isinstance(body, Begin):
            self.sessions += body.remote_channel is None
        elif isinstance(body, Attach):
            if link is not None and link not in self.links:
                if len(self.links) < MAX_SUMMARY_LINKS:
                    self.links[link] = LinkSummary(link)
                else:
                    self.links_dropped += 1
        elif isinstance(body, (Detach, End, Close)):
            self._ended(record, peer, body, link)
        elif isinstance(body, SaslInit):
            self.mechanism = body.mechanism or ""
        elif isinstance(body, SaslOutcome) and body.code is not None:
            self.sasl_outcome = _SASL_CODES.get(body.code, str(body.code))

    def _transfer(self, record: FrameRecord, peer: str, transfer: Transfer, link: LinkOf | None) -> None:
        octets = int(record.frame.payload_size)
        message = record.message is not None
        self.message_octets[peer] += octets
        self.messages[peer] += message
        if link is not None:
            known = self.links.get(link)
            if known is not None:
                known.transfers += 1
                known.octets += octets
                known.messages += message
                known.aborted += transfer.aborted is True

    def _outcome(self, record: FrameRecord, peer: str, state: object, link: LinkOf | None) -> None:
        """A delivery state: only one that gives an error is worth a line."""
        outcome = getattr(state, "outcome", state)
        error = getattr(outcome, "error", None)
        if isinstance(error, Error) and isinstance(outcome, Composite):
            self._error(record, peer, outcome.definition().name, error, link)

    def _ended(self, record: FrameRecord, peer: str, body: Detach | End | Close, link: LinkOf | None) -> None:
        error = body.error
        if isinstance(body, Detach):
            summary = self.links.get(link) if link is not None else None
            if summary is not None:
                if not summary.ended:
                    summary.ended = f"{'closed' if body.closed else 'detached'} by {peer}"
                if error is not None and not summary.error:
                    summary.error = error.condition or "an error"
        elif isinstance(body, Close) and not self.closed[peer]:
            self.closed[peer] = int(record.packet)
        if error is not None:
            self._error(record, peer, record.frame.name, error, link)

    def _error(self, record: FrameRecord, peer: str, what: str, error: Error, link: LinkOf | None) -> None:
        name = None if link is None else link.name
        condition = error.condition or ""
        key = (peer, what, condition, error.description, name)
        known = self.errors.get(key)
        if known is None:
            if len(self.errors) >= MAX_SUMMARY_ERRORS:
                self.errors_dropped += 1
                return
            known = ErrorSummary(int(record.packet), peer, what, condition, error.description, name)
            self.errors[key] = known
        known.count += 1


class Summary:
    """Gathers what the frames of a capture say, connection by connection."""

    def __init__(self) -> None:
        self._names = LinkNames()
        self.connections: dict[Connection, ConnectionSummary] = {}

    def add(self, record: FrameRecord) -> None:
        """Take one frame record."""
        summary = self.connections.get(record.connection)
        if summary is None:
            summary = ConnectionSummary(record.connection)
            self.connections[record.connection] = summary
        summary.add(record, self._names.of(record))


def tcp_end(analysis: ConnectionAnalysis, direction: int) -> str:
    """How a direction ended: `FIN`, `RST`, or `still open` where the capture ended before."""
    return _TCP_ENDS[analysis.tcp.facts(direction).ended]


def connection_object(analysis: ConnectionAnalysis, summary: ConnectionSummary | None) -> dict[str, Any]:
    """One connection as an object for JSON."""
    connection = analysis.connection
    client = max(int(connection.client), 0)
    facts = {connection.peer(direction): analysis.tcp.facts(direction) for direction in (client, 1 - client)}
    seen = [fact for fact in facts.values() if fact.segments]
    result: dict[str, Any] = {
        "connection": connection.id,
        "tcp_stream": connection.stream,
        "client": endpoint(*connection.end(client)),
        "server": endpoint(*connection.end(1 - client)),
        "protocol": connection.protocol or None,
        "encrypted": connection.encrypted,
        "start": iso(min(int(fact.first_time) for fact in seen)) if seen else None,
        "end": iso(max(int(fact.last_time) for fact in seen)) if seen else None,
        "octets": {peer: int(fact.delivered) for peer, fact in facts.items()},
        "missing": {peer: int(fact.missing) for peer, fact in facts.items()},
        "retransmitted": {peer: int(fact.retransmitted) for peer, fact in facts.items()},
        "captured_twice": {peer: int(fact.duplicated) for peer, fact in facts.items()},
        "midstream": any(fact.midstream for fact in facts.values()),
        "tcp_ended": {peer: fact.ended or None for peer, fact in facts.items()},
    }
    if summary is None:
        return result
    return result | {
        "closed_in_packet": {peer: packet or None for peer, packet in summary.closed.items()},
        "frames": summary.frames,
        "containers": {peer: name or None for peer, name in summary.containers.items()},
        "products": {peer: name or None for peer, name in summary.products.items()},
        "sasl": {"mechanism": summary.mechanism or None, "outcome": summary.sasl_outcome or None},
        "sessions": summary.sessions,
        "messages": summary.messages,
        "message_octets": summary.message_octets,
        "frames_with_problems": summary.problems,
        "errors": [
            {
                "packet": error.packet,
                "peer": error.peer,
                "in": error.what,
                "condition": error.condition or None,
                "description": None if error.description is None else without_password(error.description),
                "link": error.link,
                "count": error.count,
            }
            for error in summary.errors.values()
        ],
        "errors_not_listed": summary.errors_dropped,
        "links": [
            {
                "name": link.link.name,
                "sender": link.link.sender,
                "source": link.source,
                "target": link.target,
                "transfers": link.transfers,
                "messages": link.messages,
                "aborted": link.aborted,
                "octets": link.octets,
                "ended": link.ended or None,
                "error": link.error or None,
            }
            for link in summary.links.values()
        ],
        "links_not_listed": summary.links_dropped,
    }


def summary_json(
    capture: str, analyses: list[ConnectionAnalysis], summary: Summary, notes: list[Note], not_kept: int = 0
) -> str:
    """A capture's summary as one line of JSON. not_kept: connections without AMQP that are only counted."""
    return json.dumps(
        {
            "schema": "amqpscope/summary/1",
            "capture": capture,
            "connections": [
                connection_object(analysis, summary.connections.get(analysis.connection))
                for analysis in analyses
            ],
            "connections_not_listed": not_kept,
            "notes": [
                {"code": note.code, "packet": int(note.packet), "detail": note.detail} for note in notes
            ],
        }
    )


def _product(body: Open) -> str:
    properties = body.properties
    if not isinstance(properties, Map):
        return ""
    words = [properties.get(name) for name in ("product", "version")]
    return " ".join(word for word in words if isinstance(word, str) and word)

"""What happened on each connection, in a few lines: sessions, links, messages, octets, and how it ended."""

import json
from typing import Any

from amqpscope.analysis import ConnectionAnalysis
from amqpscope.model import CLIENT, SERVER, Connection, FrameRecord, endpoint
from amqpscope.report.links import LinkNames, LinkOf
from amqpscope.report.moment import iso
from amqpscope.report.value_text import value_text
from dissectors.amqp10.performatives import Attach, Begin, Close, Detach, End, Error, Open, Transfer
from dissectors.amqp10.sasl import SaslInit, SaslOutcome
from dissectors.amqp10.values import Map

__all__ = ["ConnectionSummary", "LinkSummary", "Summary", "protocol_name"]

_PROTOCOLS = {
    "amqp10": "AMQP 1.0",
    "amqp091": "AMQP 0-9-1",
    "amqp010": "AMQP 0-10",
    "amqp09": "AMQP 0-9",
    "amqp08": "AMQP 0-8",
    "amqp-unknown": "AMQP, unknown version",
    "tls": "TLS",
    "http": "HTTP",
    "ssh": "SSH",
    "stomp": "STOMP",
    "mqtt": "MQTT",
    "unknown": "not AMQP",
    "": "no data",
}

_SASL_CODES = {0: "ok", 1: "auth", 2: "sys", 3: "sys-perm", 4: "sys-temp"}


def protocol_name(protocol: str) -> str:
    """A protocol as people write it."""
    return _PROTOCOLS.get(protocol, protocol)


class LinkSummary:
    """One link: its name, who sends on it, its addresses, and what went over it."""

    def __init__(self, link: LinkOf, sender: str) -> None:
        self.link = link
        self.sender = sender
        self.transfers = 0
        self.messages = 0
        self.octets = 0
        self.aborted = 0
        self.ended = ""


class ConnectionSummary:
    """One connection, put together from its frames."""

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
        self.messages = {CLIENT: 0, SERVER: 0}
        self.message_octets = {CLIENT: 0, SERVER: 0}
        self.problems = 0
        self.errors: list[str] = []
        self.closed = {CLIENT: "", SERVER: ""}

    def add(self, record: FrameRecord, link: LinkOf | None) -> None:
        """Take one frame of this connection."""
        frame = record.frame
        peer = record.peer
        if not self.first_time:
            self.first_time = int(record.time)
        self.last_time = max(self.last_time, int(record.last_time))
        self.frames[peer] += 1
        self.problems += bool(frame.problems)
        body = frame.body
        if isinstance(body, Transfer):
            self._transfer(record, body, link)
        elif isinstance(body, Open):
            self.containers[peer] = body.container_id or ""
            self.products[peer] = _product(body)
        elif isinstance(body, Begin):
            self.sessions += body.remote_channel is None
        elif isinstance(body, Attach) and link is not None:
            if link not in self.links:
                sender = peer if body.role is False else _other(peer)
                self.links[link] = LinkSummary(link, sender)
        elif isinstance(body, (Detach, End, Close)):
            self._ended(record, body, link)
        elif isinstance(body, SaslInit):
            self.mechanism = body.mechanism or ""
        elif isinstance(body, SaslOutcome) and body.code is not None:
            self.sasl_outcome = _SASL_CODES.get(body.code, str(body.code))

    def _transfer(self, record: FrameRecord, transfer: Transfer, link: LinkOf | None) -> None:
        known = self.links.get(link) if link is not None else None
        message = record.message
        if known is not None:
            known.transfers += 1
            known.octets += int(record.frame.payload_size)
            known.messages += message is not None
            known.aborted += transfer.aborted is True
        self.message_octets[record.peer] += int(record.frame.payload_size)
        self.messages[record.peer] += message is not None

    def _ended(self, record: FrameRecord, body: Detach | End | Close, link: LinkOf | None) -> None:
        peer = record.peer
        error = body.error
        what = record.frame.name
        if isinstance(body, Detach) and link is not None and link in self.links:
            how = "closed" if body.closed else "detached"
            summary = self.links[link]
            summary.ended = summary.ended or f"{how} by {peer}"
        if isinstance(body, Close):
            self.closed[peer] = "close"
        if isinstance(error, Error):
            condition = value_text(error.condition) if error.condition is not None else "error"
            text = f"packet {record.packet}: {peer} sent {what} with {condition}"
            if error.description:
                text += f" ({value_text(error.description, 160)})"
            self.errors.append(text)

    @property
    def duration(self) -> float:
        """Seconds from the first frame to the last."""
        return (self.last_time - self.first_time) / 1e9


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


def ending(summary: ConnectionSummary | None, analysis: ConnectionAnalysis) -> dict[str, str]:
    """How each peer ended: by close, FIN, RST, or not before the capture did."""
    result = {}
    for direction in (0, 1):
        peer = analysis.connection.peer(direction)
        tcp = {"fin": "FIN", "rst": "RST", "": "still open"}[analysis.tcp.facts(direction).ended]
        close = summary.closed[peer] if summary is not None else ""
        result[peer] = f"{close}, {tcp}" if close else tcp
    return result


def connection_object(analysis: ConnectionAnalysis, summary: ConnectionSummary | None) -> dict[str, Any]:
    """One connection as an object for JSON."""
    connection = analysis.connection
    client = max(int(connection.client), 0)
    facts = {connection.peer(direction): analysis.tcp.facts(direction) for direction in (0, 1)}
    times = [fact.first_time for fact in facts.values() if fact.first_time]
    result: dict[str, Any] = {
        "connection": connection.id,
        "tcp_stream": connection.stream,
        "client": endpoint(*connection.end(client)),
        "server": endpoint(*connection.end(1 - client)),
        "protocol": connection.protocol,
        "encrypted": connection.encrypted,
        "start": iso(min(times)) if times else None,
        "end": iso(max(fact.last_time for fact in facts.values())) if times else None,
        "octets": {peer: fact.delivered for peer, fact in facts.items()},
        "missing": {peer: fact.missing for peer, fact in facts.items()},
        "retransmitted": {peer: fact.retransmitted for peer, fact in facts.items()},
        "midstream": any(fact.midstream for fact in facts.values()),
        "ended": ending(summary, analysis),
    }
    if summary is not None:
        result |= {
            "frames": summary.frames,
            "containers": summary.containers,
            "products": summary.products,
            "sasl": {"mechanism": summary.mechanism, "outcome": summary.sasl_outcome},
            "sessions": summary.sessions,
            "messages": summary.messages,
            "message_octets": summary.message_octets,
            "frames_with_problems": summary.problems,
            "errors": summary.errors,
            "links": [
                {
                    "name": link.link.name,
                    "sender": link.sender,
                    "source": link.link.source,
                    "target": "coordinator" if link.link.coordinator else link.link.target,
                    "transfers": link.transfers,
                    "messages": link.messages,
                    "aborted": link.aborted,
                    "octets": link.octets,
                    "ended": link.ended or "not detached",
                }
                for link in summary.links.values()
            ],
        }
    return result


def summary_json(capture: str, analyses: list[ConnectionAnalysis], summary: Summary, notes: list[Any]) -> str:
    """A capture's summary as one line of JSON."""
    return json.dumps(
        {
            "capture": capture,
            "connections": [
                connection_object(analysis, summary.connections.get(analysis.connection))
                for analysis in analyses
            ],
            "notes": [{"code": note.code, "packet": note.packet, "detail": note.detail} for note in notes],
        }
    )


def _product(body: Open) -> str:
    properties = body.properties
    if not isinstance(properties, Map):
        return ""
    words = [properties.get(name) for name in ("product", "version")]
    return " ".join(word for word in words if isinstance(word, str))


def _other(peer: str) -> str:
    return SERVER if peer == CLIENT else CLIENT

"""What happened on each connection: peers, sessions, links, messages, octets, and how and why it ended."""

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.model.note import Note
from amqpscope.model.passwords import without_password
from amqpscope.model.records import CLIENT, SERVER, FrameRecord, endpoint
from amqpscope.reassembly.stream import StreamFacts
from amqpscope.report.connection_summary import ConnectionOverview, ErrorSummary, PeerOverview
from amqpscope.report.json_renderer import JsonRenderer
from amqpscope.report.moment import iso
from amqpscope.report.printable import in_quotes
from amqpscope.report.tls import tls_object
from amqpscope.report.websocket import websocket_object
from amqpscope.tracking.amqp10.identity import Link

__all__ = [
    "add_frame",
    "connection_object",
    "error_object",
    "error_words",
    "round_trip",
    "summary_json",
]

_TCP_ENDS: Final = {"fin": "FIN", "rst": "RST", "": "still open"}


def error_object(error: ErrorSummary) -> dict[str, Any]:
    """An error that a peer reported, once or more often, without the packet."""
    return {
        "peer": error.peer,
        "in": error.what,
        "condition": error.condition or None,
        "description": None if error.description is None else without_password(error.description),
        "link": None if error.link is None else without_password(error.link),
        "count": error.count,
    }


def error_words(error: ErrorSummary, most: int) -> str:
    """The text of an error in quotes, cut to `most` characters, and the method that it names as its cause."""
    words = [in_quotes(without_password(error.description), most)] if error.description else []
    words += [f"caused by {error.cause}"] if error.cause else []
    return " ".join(words)


def add_frame(
    summary: ConnectionOverview, record: FrameRecord, link: Link | None, renderer: JsonRenderer
) -> None:
    """Take one frame of a connection, and its link. renderer: that of the frame."""
    frame = record.frame
    if not summary.first_time:
        summary.first_time = int(record.time)
    summary.last_time = max(summary.last_time, int(record.last_time))
    summary.of(record.peer).heard(record)
    if frame.problems:
        summary.problems += 1
    renderer.summarize(summary, record, link)


def tcp_end(analysis: ConnectionAnalysis, direction: int) -> str:
    """How a direction ended: `FIN`, `RST`, or `still open` where the capture ended before."""
    return _TCP_ENDS[analysis.tcp.facts(direction).ended]


def _could_not_write(facts: dict[str, StreamFacts]) -> dict[str, Any] | None:
    """For how long (seconds) TCP kept each peer from being heard; None if it kept neither."""
    if all(fact.shut == 0 and fact.unheard == 0 for fact in facts.values()):
        return None
    return {
        peer: {"window_seconds": fact.shut / 1e9, "resent_seconds": fact.unheard / 1e9}
        for peer, fact in facts.items()
    }


def round_trip(facts: dict[str, StreamFacts], summary: ConnectionOverview) -> dict[str, int | None]:
    """The time (ns) that TCP took from the place of the capture to each peer and back, None if not known.

    Of the server from SYN to SYN+ACK. Of the client at most: until its first frame, which needs the SYN+ACK.
    """
    client, server = facts[CLIENT], facts[SERVER]
    found: dict[str, int | None] = {CLIENT: None, SERVER: None}
    if client.syn and server.syn and client.first_time < server.first_time:
        found[SERVER] = int(server.first_time - client.first_time)
        began = summary.of(CLIENT).began
        if began > server.first_time:
            found[CLIENT] = int(began - server.first_time)
    return found


def connection_object(analysis: ConnectionAnalysis, summary: ConnectionOverview | None) -> dict[str, Any]:
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
        "tls": tls_object(connection),
        "websocket": websocket_object(connection),
        "start": iso(min(int(fact.first_time) for fact in seen)) if seen else None,
        "end": iso(max(int(fact.last_time) for fact in seen)) if seen else None,
        "octets": {peer: None if connection.retold else int(fact.delivered) for peer, fact in facts.items()},
        "missing": {peer: None if connection.retold else int(fact.missing) for peer, fact in facts.items()},
        "retransmitted": {peer: int(fact.retransmitted) for peer, fact in facts.items()},
        "captured_twice": {peer: int(fact.duplicated) for peer, fact in facts.items()},
        "could_not_write": _could_not_write(facts),
        "midstream": any(fact.midstream for fact in facts.values()),
        "tcp_ended": {peer: fact.ended or None for peer, fact in facts.items()},
    }
    if summary is None:
        return result
    numbers = summary.numbers
    return result | {
        "closed_in_packet": {peer: one.closed or None for peer, one in summary.peers},
        "frames": {peer: one.frames for peer, one in summary.peers},
        "containers": {peer: one.container or None for peer, one in summary.peers},
        "products": {peer: one.product or None for peer, one in summary.peers},
        "sasl": {"mechanism": summary.mechanism or None, "outcome": summary.sasl_outcome or None},
        "sessions": summary.sessions,
        "messages": {peer: one.messages for peer, one in summary.peers},
        "message_octets": {peer: one.message_octets for peer, one in summary.peers},
        "frames_with_problems": summary.problems,
        "errors": [{"packet": error.packet, **error_object(error)} for error in summary.errors.values()],
        "errors_not_listed": summary.errors_dropped,
        "links": [
            {
                "name": without_password(link.link.name),
                "sender": link.link.sender,
                "source": link.source,
                "target": link.target,
                "transfers": link.transfers,
                "messages": link.messages,
                "aborted": link.aborted,
                "octets": link.octets,
                "ended": link.ended or None,
                "error": link.error or None,
                **({} if numbers is None else numbers.link(link.link)),
            }
            for link in summary.links.values()
        ],
        "links_not_listed": summary.links_dropped,
        "round_trip": {
            peer: None if time is None else time / 1e9 for peer, time in round_trip(facts, summary).items()
        },
        "silence": {peer: _silence(one) for peer, one in summary.peers},
        "windows": [],
        "channels": [],
        "requests": {},
        "blocked": None,
        **({} if numbers is None else numbers.json()),
    }


def _silence(peer: PeerOverview) -> dict[str, Any]:
    """The longest silence of a peer, in seconds."""
    return {
        "longest": peer.longest / 1e9,
        "after_packet": peer.longest_packet or None,
        "limit": peer.limit / 1e9 if peer.limit else None,
    }


def summary_json(
    capture: str,
    connections: Iterable[str],
    diagnoses: Iterable[str],
    notes: list[Note],
    not_kept: int = 0,
) -> Iterator[str]:
    """A capture's summary as one line of JSON, in parts.

    connections, diagnoses: each as JSON, one after the other. not_kept: those without AMQP that are only
    counted.
    """
    yield f'{{"schema": "amqpscope/summary/1", "capture": {json.dumps(capture)}, "connections": ['
    between = ""
    for connection in connections:
        yield between + connection
        between = ", "
    yield '], "diagnoses": ['
    between = ""
    for diagnosis in diagnoses:
        yield between + diagnosis
        between = ", "
    reported = [{"code": note.code, "packet": int(note.packet), "detail": note.detail} for note in notes]
    yield f'], "connections_not_listed": {not_kept}, "notes": {json.dumps(reported)}}}'

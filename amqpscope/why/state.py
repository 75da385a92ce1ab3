"""The state of both endpoints as lines and as data: the part of a snapshot that concerns a frame.

Unknown numbers, which nobody sent or which were not captured, are left out of the lines and are null in the
data.
"""

from typing import Any

from amqpscope.model.passwords import without_password
from amqpscope.model.records import CLIENT, SERVER
from amqpscope.reassembly.stalls import WINDOW, Stall
from amqpscope.report.line import Line
from amqpscope.report.printable import printable
from amqpscope.tracking.snapshot import (
    UNKNOWN,
    ChannelSnapshot,
    ConnectionSnapshot,
    ConsumerSnapshot,
    EndSnapshot,
    LinkSnapshot,
    SessionEndSnapshot,
    SessionSnapshot,
)
from amqpscope.why.grounds import name_text
from dissectors.wording import count

__all__ = ["Concern", "state_lines", "state_object"]

_MOST = 8
"""Links of a session, or consumers of a channel, that lines tell; the data has all that the snapshot has."""


class Concern:
    """What of a connection matters.

    channels: numbers, None for all; by_client: of the client's, else the server's. subjects: names of links,
    or tags of consumers, that are reported first.
    """

    def __init__(self, channels: set[int] | None, by_client: bool, subjects: set[str]) -> None:
        self.channels = channels
        self.by_client = by_client
        self.subjects = subjects

    def session(self, session: SessionSnapshot) -> bool:
        """Whether a session is on one of the channels."""
        end = session.client if self.by_client else session.server
        return self.channels is None or (end is not None and int(end.channel) in self.channels)

    def channel(self, channel: ChannelSnapshot) -> bool:
        """Whether a channel is one of them."""
        return self.channels is None or int(channel.number) in self.channels


# Lines


def state_lines(snapshot: ConnectionSnapshot, concern: Concern) -> list[Line]:
    """Both ends, then sessions with their links, or channels with their consumers."""
    lines = [_end(snapshot.client), _end(snapshot.server)]
    if snapshot.blocked:
        lines.append([("note", "the server has blocked the connection: the server accepts no messages")])
    for session in snapshot.sessions:
        if concern.session(session):
            lines += _session(session, concern.subjects)
    for channel in snapshot.channels:
        if concern.channel(channel):
            lines += _channel(channel, concern.subjects)
    return lines


def _numbers(*pairs: tuple[str, int]) -> str:
    """Those that are known."""
    return ", ".join(f"{name} {value}" for name, value in pairs if value != UNKNOWN)


def _end(end: EndSnapshot) -> Line:
    parts = [end.state]
    limits = _numbers(
        ("max-frame-size", int(end.max_frame_size)),
        ("channel-max", int(end.channel_max)),
        ("idle-time-out (ms)", int(end.idle) // 1_000_000 if end.idle > 0 else UNKNOWN),
    )
    if limits:
        parts.append(limits)
    if not end.whole:
        parts.append("not captured completely")
    if end.stall is not None:
        parts.append(_stall(end.peer, end.stall))
    return [(end.peer, f"{end.peer:<7}"), ("", "; ".join(parts))]


def _stall(peer: str, stall: Stall) -> str:
    """When and why a peer could not write."""
    why = "TCP does not acknowledge the octets that this peer sends again"
    if stall.cause == WINDOW:
        why = f"the TCP window of the {SERVER if peer == CLIENT else CLIENT} leaves no room"
    if stall.until < 0:
        return f"cannot write since packet {stall.packet}: {why}"
    lasted = int(stall.until - stall.since) / 1e9
    return f"could not write for {lasted:.3f} s from packet {stall.packet} on: {why}"


def _half(peer: str, end: SessionEndSnapshot | None) -> str:
    if end is None:
        return f"{peer} not known"
    numbers = _numbers(
        ("channel", int(end.channel)),
        ("next-outgoing-id", int(end.next_outgoing_id)),
        ("may send", int(end.window)),
    )
    transfers = f"{numbers} transfers" if end.window != UNKNOWN else numbers
    return f"{peer} {end.state}{f' ({transfers})' if transfers else ''}"


def _session(session: SessionSnapshot, subjects: set[str]) -> list[Line]:
    lines: list[Line] = [
        [
            ("key", f"session {session.number}: "),
            ("", f"{_half('client', session.client)}, {_half('server', session.server)}"),
        ]
    ]
    links = sorted(session.links, key=lambda one: one.name not in subjects)
    for link in links[:_MOST]:
        lines.append(_link(link))
    more = len(links) - _MOST + int(session.more_links)
    if more > 0:
        lines.append([("dim", f"and {count(more, 'more link')}")])
    return lines


def _link(link: LinkSnapshot) -> Line:
    ends = (link.sender_state or "not known", link.receiver_state or "not known")
    numbers = _numbers(("credit", int(link.credit)), ("delivery-count", int(link.delivery_count)))
    parts = [f"{link.sender} sends, sender {ends[0]}, receiver {ends[1]}"]
    if numbers:
        parts.append(numbers)
    if link.drain:
        parts.append("drain")
    if link.unsettled:
        parts.append(f"{link.unsettled} unsettled")
    if link.unfinished:
        parts.append("a delivery is under way")
    return [("key", f"link {name_text(link.name)}: "), ("", ", ".join(parts))]


def _channel(channel: ChannelSnapshot, subjects: set[str]) -> list[Line]:
    parts = [channel.state]
    if channel.prefetch != UNKNOWN:
        parts.append(f"prefetch {channel.prefetch}")
    if channel.deliveries:
        parts.append(f"last delivery-tag {channel.deliveries}")
    if channel.unacknowledged:
        parts.append(f"{channel.unacknowledged} not acknowledged")
    if channel.confirming:
        parts.append(f"{channel.published} published, {channel.unconfirmed} not confirmed")
    if channel.transacted:
        parts.append("in transactions")
    if channel.client_stopped or channel.server_stopped:
        parts.append(f"{'client' if channel.client_stopped else 'server'} must send no content")
    if channel.asked:
        parts.append(f"waiting for the answer to {printable(channel.first_asked)}")
    lines: list[Line] = [[("key", f"channel {channel.number}: "), ("", ", ".join(parts))]]
    for consumer in sorted(channel.consumers, key=lambda one: one.tag not in subjects)[:_MOST]:
        lines.append(_consumer(consumer))
    more = len(channel.consumers) - _MOST + int(channel.more_consumers)
    if more > 0:
        lines.append([("dim", f"and {count(more, 'more consumer')}")])
    return lines


def _consumer(consumer: ConsumerSnapshot) -> Line:
    parts = [f"of {name_text(consumer.queue)}"]
    if consumer.no_ack:
        parts.append("no-ack")
    numbers = _numbers(("prefetch", int(consumer.prefetch)), ("unacknowledged", int(consumer.unacknowledged)))
    if numbers:
        parts.append(numbers)
    return [("key", f"consumer {name_text(consumer.tag)} "), ("", ", ".join(parts))]


# Data


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else int(value)


def state_object(snapshot: ConnectionSnapshot, concern: Concern) -> dict[str, Any]:
    """The same as values, by the specification's names."""
    return {
        "client": _end_object(snapshot.client),
        "server": _end_object(snapshot.server),
        "blocked": snapshot.blocked,
        "sessions": [_session_object(one) for one in snapshot.sessions if concern.session(one)],
        "channels": [_channel_object(one) for one in snapshot.channels if concern.channel(one)],
    }


def _end_object(end: EndSnapshot) -> dict[str, Any]:
    return {
        "state": end.state,
        "whole": end.whole,
        "on_its_way": int(end.unread),
        "max_frame_size": _known(end.max_frame_size),
        "channel_max": _known(end.channel_max),
        "stall": None if end.stall is None else _stall_object(end.stall),
        "idle_seconds": None if end.idle == UNKNOWN else int(end.idle) / 1_000_000_000,
    }


def _stall_object(stall: Stall) -> dict[str, Any]:
    return {
        "cause": "window" if stall.cause == WINDOW else "resent",
        "packet": int(stall.packet),
        "seconds": None if stall.until < 0 else int(stall.until - stall.since) / 1_000_000_000,
    }


def _half_object(end: SessionEndSnapshot | None) -> dict[str, Any] | None:
    if end is None:
        return None
    return {
        "channel": _known(end.channel),
        "state": end.state,
        "next_outgoing_id": _known(end.next_outgoing_id),
        "next_incoming_id": _known(end.next_incoming_id),
        "may_send_transfers": _known(end.window),
        "outgoing_window": _known(end.outgoing_window),
        "unsettled": int(end.unsettled),
    }


def _session_object(session: SessionSnapshot) -> dict[str, Any]:
    return {
        "session": int(session.number),
        "client": _half_object(session.client),
        "server": _half_object(session.server),
        "links": [
            {
                "name": without_password(link.name),
                "sender": link.sender,
                "sender_state": link.sender_state or None,
                "receiver_state": link.receiver_state or None,
                "credit": _known(link.credit),
                "delivery_count": _known(link.delivery_count),
                "drain": link.drain,
                "unsettled": int(link.unsettled),
                "unfinished": link.unfinished,
            }
            for link in session.links
        ],
        "more_links": int(session.more_links),
    }


def _channel_object(channel: ChannelSnapshot) -> dict[str, Any]:
    return {
        "channel": int(channel.number),
        "state": channel.state,
        "prefetch": _known(channel.prefetch),
        "last_delivery_tag": channel.deliveries,
        "unacknowledged": int(channel.unacknowledged),
        "confirming": channel.confirming,
        "published": channel.published,
        "unconfirmed": int(channel.unconfirmed),
        "transacted": channel.transacted,
        "client_stopped": channel.client_stopped,
        "server_stopped": channel.server_stopped,
        "awaits_answer_to": channel.first_asked or None,
        "consumers": [
            {
                "tag": without_password(one.tag),
                "queue": without_password(one.queue),
                "no_ack": one.no_ack,
                "prefetch": _known(one.prefetch),
                "unacknowledged": _known(one.unacknowledged),
            }
            for one in channel.consumers
        ],
        "more_consumers": int(channel.more_consumers),
    }

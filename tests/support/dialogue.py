"""Two AMQP 1.0 peers talk: a conversation written as the dialogue it is, captured as packets for tests.

    d = Dialogue()
    client, server = d.client, d.server
    d.linked(credit=2)                                  # headers, opens, begins, attaches, a flow
    client.transfer()
    client.transfer(b"...", settled=True)
    with d.on_their_way():                              # neither has heard what the other says in here
        server.detach()
        client.transfer()
    client.say(b"\\x00\\x00\\x00\\x04")                    # any octets
    d.goodbye()
    d.pcap()

Each word says one frame, in a packet of its own, with what a correct peer would put into it: ids, counts and
windows go on from what was said before; a field that is named replaces what it would be, None leaves it out.
Nothing keeps a peer from saying what it may not.

What was heard of it, what was captured, and what a `Said` is: `support.conversation`. That a peer must have
read something only what it says itself can show: `client.flow()` names the peer's last transfer,
`client.disposition()` its delivery, a `begin` the channel that it answers.
"""

from __future__ import annotations

from typing import Any

from support import amqp10_encode
from support.amqp10_encode import RECEIVER, SENDER
from support.conversation import Conversation, Said, Speaker
from support.tcp_writer import End

MESSAGE = amqp10_encode.amqp_value("hello")


class Handle:
    """One end of a link as its owner counts it."""

    def __init__(self, name: str, role: bool) -> None:
        self.name = name
        self.role = role
        self.count = 0
        self.open = False
        self.tag = b""
        self.sections: list[Any] = []


class Peer(Speaker):
    """One of the two, and what it has counted so far.

    amqp: the encoder of what it speaks. count, initial_count: what that calls the two counts of a link.
    """

    amqp: Any = amqp10_encode
    count = "delivery_count"
    initial_count = "initial_delivery_count"
    other: Peer

    def __init__(self, dialogue: Dialogue, name: str, end: End) -> None:
        super().__init__(dialogue, name, end)
        self.begun: dict[int, int] = {}  # channel: next-outgoing-id
        self.windows: dict[int, int] = {}  # channel: incoming-window
        self.answered: dict[int, int] = {}  # channel: the other's
        self.delivery_ids: dict[int, int] = {}
        self.handles: dict[tuple[int, int], Handle] = {}
        self.tags = 0
        self.introduction: dict[str, Any] = {}  # fields of its open, unless others are given

    def ack(self) -> None:
        """A bare acknowledgement."""
        self.acknowledge()

    # ---- frames ------------------------------------------------------------------------------------------

    def frame(self, body: bytes = b"", payload: bytes = b"", channel: int = 0, **more: Any) -> Said:
        """A frame around an encoded body."""
        return self.say(self.amqp.frame(body, payload, channel=channel, **more))

    def sasl_frame(self, body: bytes = b"", payload: bytes = b"", **more: Any) -> Said:
        return self.say(self.amqp.sasl_frame(body, payload, **more))

    # ---- the connection ----------------------------------------------------------------------------------

    def header(self, protocol_id: int = 0, major: int = 1, minor: int = 0, revision: int = 0) -> Said:
        return self.say(self.amqp.protocol_header(protocol_id, major, minor, revision))

    def open(self, channel: int = 0, **fields: Any) -> Said:
        given = {"container_id": self.name, **self.introduction, **fields}
        return self.frame(self.amqp.open_(**given), channel=channel)

    def empty(self, channel: int = 0) -> Said:
        return self.frame(channel=channel)

    def close(self, error: str | None = None, channel: int = 0) -> Said:
        return self.frame(self.amqp.close(error=self._error(error)), channel=channel)

    # ---- SASL --------------------------------------------------------------------------------------------

    def mechanisms(self, *names: str, **more: Any) -> Said:
        return self.sasl_frame(
            self.amqp.sasl_mechanisms(sasl_server_mechanisms=list(names) or ["PLAIN"]), **more
        )

    def init(self, mechanism: str = "PLAIN", **fields: Any) -> Said:
        return self.sasl_frame(
            self.amqp.sasl_init(mechanism=mechanism, **{"initial_response": b"\0u\0p", **fields})
        )

    def challenge(self) -> Said:
        return self.sasl_frame(self.amqp.sasl_challenge(challenge=b"c"))

    def response(self) -> Said:
        return self.sasl_frame(self.amqp.sasl_response(response=b"r"))

    def outcome(self, code: int = 0, **fields: Any) -> Said:
        return self.sasl_frame(self.amqp.sasl_outcome(code=code, **fields))

    # ---- sessions ----------------------------------------------------------------------------------------

    def begin(self, channel: int = 0, **fields: Any) -> Said:
        """A begin; it answers the other's on the same channel (or `remote_channel`) if that is unanswered."""
        other = self.other
        if "remote_channel" not in fields and channel in other.begun and channel not in other.answered:
            fields["remote_channel"] = channel
        answers = fields.get("remote_channel")
        if answers is not None:
            other.answered[answers] = channel
            self.answered[channel] = answers
        given = {"next_outgoing_id": 0, "incoming_window": 2048, "outgoing_window": 2048, **fields}
        self.begun[channel] = given["next_outgoing_id"] or 0
        self.windows[channel] = given["incoming_window"]
        self.delivery_ids.setdefault(channel, 0)
        return self.frame(self.amqp.begin(**given), channel=channel)

    def end_session(self, channel: int = 0, error: str | None = None) -> Said:
        said = self.frame(self.amqp.end(error=self._error(error)), channel=channel)
        self.begun.pop(channel, None)
        self.answered.pop(channel, None)
        self.delivery_ids.pop(channel, None)
        for key in [key for key in self.handles if key[0] == channel]:
            del self.handles[key]
        return said

    def flow(self, channel: int = 0, **fields: Any) -> Said:
        """A flow of the session; with `handle`, of a link: a receiver's gives ten credits."""
        other = self.other
        theirs = self.answered.get(channel)
        given: dict[str, Any] = {
            "next_incoming_id": other.begun.get(theirs) if theirs is not None else None,
            "incoming_window": self.windows.get(channel, 2048),
            "next_outgoing_id": self.begun.get(channel, 0),
            "outgoing_window": 2048,
        }
        handle = self.handles.get((channel, fields.get("handle", -1)))
        if handle is not None:
            sender = handle if handle.role == SENDER else self._partner(channel, handle)
            given[self.count] = sender.count if sender is not None else None
            given["link_credit"] = 10
        given.update(fields)
        self.windows[channel] = given["incoming_window"]
        return self.frame(self.amqp.flow(**given), channel=channel)

    # ---- links -------------------------------------------------------------------------------------------

    def attach(
        self, role: bool = SENDER, handle: int = 0, name: str | None = "q", channel: int = 0, **fields: Any
    ) -> Said:
        given: dict[str, Any] = {
            "name": name,
            "handle": handle,
            "role": role,
            "source": self.amqp.source(address="q"),
            "target": self.amqp.target(address="q"),
        }
        if role == SENDER:
            given[self.initial_count] = 0
        given.update(fields)
        link = Handle(name or "", role)
        link.count = given.get(self.initial_count) or 0 if role == SENDER else 0
        self.handles[channel, handle] = link
        return self.frame(self.amqp.attach(**given), channel=channel)

    def detach(
        self, handle: int = 0, closed: bool | None = True, error: str | None = None, channel: int = 0
    ) -> Said:
        said = self.frame(
            self.amqp.detach(handle=handle, closed=closed, error=self._error(error)), channel=channel
        )
        self.handles.pop((channel, handle), None)
        return said

    def transfer(self, payload: bytes = MESSAGE, handle: int = 0, channel: int = 0, **fields: Any) -> Said:
        """A transfer: the first of a new delivery, or the next of the one that has `more`."""
        link = self.handles.get((channel, handle)) or Handle("", SENDER)
        given: dict[str, Any] = {"handle": handle}
        if not link.open:
            given["delivery_id"] = self.delivery_ids.get(channel, 0)
            given["delivery_tag"] = self.tags.to_bytes(4, "big")
            given["message_format"] = 0
            self.tags += 1
            link.count += 1
            self.delivery_ids[channel] = self.delivery_ids.get(channel, 0) + 1
        given.update(fields)
        if isinstance(given.get("delivery_id"), int) and not link.open:
            self.delivery_ids[channel] = given["delivery_id"] + 1 & 0xFFFFFFFF
        link.open = bool(given.get("more")) and not given.get("aborted")
        if channel in self.begun:
            self.begun[channel] = self.begun[channel] + 1 & 0xFFFFFFFF
        return self.frame(self.amqp.transfer(**given), payload, channel=channel)

    def disposition(self, first: int = 0, last: int | None = None, channel: int = 0, **fields: Any) -> Said:
        given: dict[str, Any] = {"role": RECEIVER, "first": first, "last": last, "settled": True}
        if fields.get("role", RECEIVER) == RECEIVER:
            given["state"] = self.amqp.accepted()
        given.update(fields)
        return self.frame(self.amqp.disposition(**given), channel=channel)

    def _error(self, condition: str | None) -> bytes | None:
        return None if condition is None else self.amqp.error(condition=condition)

    def _partner(self, channel: int, handle: Handle) -> Handle | None:
        theirs = self.answered.get(channel)
        for (number, _), other in self.other.handles.items():
            if number == theirs and other.name == handle.name and other.role != handle.role:
                return other
        return None


class Dialogue(Conversation):
    """The conversation of a client and a server that speak AMQP 1.0."""

    namespace = "amqp10"
    speaker = Peer
    client: Peer
    server: Peer

    # ---- what goes well, in short ------------------------------------------------------------------------

    def headers(self) -> None:
        self.client.header()
        self.server.header()

    def opened(self, client: dict[str, Any] | None = None, server: dict[str, Any] | None = None) -> None:
        """Headers and opens; `client`, `server`: fields of their opens."""
        self.headers()
        self.client.open(**(client or {})).called("client open")
        self.server.open(**(server or {})).called("server open")

    def begun(self, client: dict[str, Any] | None = None, server: dict[str, Any] | None = None) -> None:
        """And a session; `client`, `server`: fields of their begins."""
        self.opened()
        self.client.begin(**(client or {})).called("client begin")
        self.server.begin(**(server or {})).called("server begin")

    def linked(
        self,
        credit: int = 10,
        client: dict[str, Any] | None = None,
        server: dict[str, Any] | None = None,
    ) -> None:
        """And a link on which the client sends; `client`, `server`: fields of their attaches."""
        self.begun()
        self.attached(credit, client, server)

    def attached(
        self,
        credit: int = 10,
        client: dict[str, Any] | None = None,
        server: dict[str, Any] | None = None,
    ) -> None:
        """A link on which the client sends, with credit unless that is 0."""
        self.client.attach(SENDER, **(client or {})).called("client attach")
        self.server.attach(RECEIVER, **(server or {})).called("server attach")
        if credit:
            self.server.flow(handle=0, link_credit=credit).called("credit")

    def subscribed(
        self, credit: int = 10, client: dict[str, Any] | None = None, server: dict[str, Any] | None = None
    ) -> None:
        """A session and a link on which the server sends."""
        self.begun()
        self.client.attach(RECEIVER, **(client or {})).called("client attach")
        self.server.attach(SENDER, **(server or {})).called("server attach")
        if credit:
            self.client.flow(handle=0, link_credit=credit).called("credit")

    def goodbye(self) -> None:
        """The client closes, the server answers, both end their streams."""
        self.client.close()
        self.server.close()
        self.tcp.goodbye()

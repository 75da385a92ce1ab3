"""Two peers talk in the April-2011 draft of AMQP 1.0: dialogues with the words of `support.dialogue`.

    d = Dialogue2011()
    d.linked(credit=2)
    d.client.transfer()                                     # header, properties, "hello" and footer
    d.client.transfer([draft.data(b"...")], settled=True)   # these sections
    d.client.transfers([draft.data(b"a" * 9000)], 4096)     # one message in as many frames as it needs
    d.server.disposition(0, 4)                              # transfer-ids
    d.goodbye()

A transfer takes the next transfer-id of its session and, unless one is given, the delivery-tag of the message
that goes on.
"""

from __future__ import annotations

from typing import Any

from support import draft2011_encode as draft
from support.conversation import Said
from support.dialogue import SENDER, Dialogue, Handle, Peer

__all__ = ["Dialogue2011", "Peer2011"]

MESSAGE = [draft.header(), draft.properties(), draft.amqp_data("hello"), draft.footer()]


REST = [draft.data(b"and more")]

_NAMES = {"delivery_count": "transfer_count", "initial_delivery_count": "initial_transfer_count"}


class Peer2011(Peer):
    """One of the two."""

    amqp = draft
    count = "transfer_count"
    initial_count = "initial_transfer_count"

    def flow(self, channel: int = 0, **fields: Any) -> Said:
        """A flow, by the final's names of the fields or by the draft's."""
        return super().flow(channel, **_renamed(fields))

    def attach(
        self, role: bool = SENDER, handle: int = 0, name: str | None = "q", channel: int = 0, **fields: Any
    ) -> Said:
        """An attach, by the final's names of the fields or by the draft's."""
        if role == SENDER:
            fields = {"source": draft.source(address="q", distribution_mode="move"), **fields}
        return super().attach(role, handle, name, channel, **_renamed(fields))

    def transfer(self, payload: Any = None, handle: int = 0, channel: int = 0, **fields: Any) -> Said:
        """A transfer of these sections, or of the `fragments` that are given: the first of a message, or the
        next of the one that has `more`. Octets are a section of data.
        """
        link = self.handles.get((channel, handle)) or Handle("", draft.SENDER)
        if payload is None:
            payload = REST if link.open else MESSAGE
        elif isinstance(payload, bytes):
            payload = [draft.data(payload)]
        if not link.open:
            link.tag = self.tags.to_bytes(4, "big")
            self.tags += 1
            link.count += 1
            link.sections = []
        before = len(link.sections)
        link.sections += payload
        given: dict[str, Any] = {
            "handle": handle,
            "delivery_tag": link.tag,
            "transfer_id": self.begun.get(channel, 0),
            "message_format": 0,
        }
        if "fragments" not in fields:
            given["fragments"] = draft.fragments(link.sections)[before:] or None
        given.update(fields)
        link.open = bool(given.get("more")) and not given.get("aborted")
        self.begun[channel] = self.begun.get(channel, 0) + 1 & 0xFFFFFFFF
        self.delivery_ids[channel] = self.begun[channel]
        return self.frame(draft.transfer(**given), channel=channel)

    def transfers(
        self, sections: list[draft.Section], largest: int, handle: int = 0, channel: int = 0, **fields: Any
    ) -> list[Said]:
        """One message, a fragment of at most `largest` octets in each transfer."""
        pieces = draft.fragments(sections, largest)
        last = len(pieces) - 1
        return [
            self.transfer(
                handle=handle, channel=channel, fragments=[piece], more=number < last or None, **fields
            )
            for number, piece in enumerate(pieces)
        ]

    def disposition(self, first: int = 0, last: int | None = None, channel: int = 0, **fields: Any) -> Said:
        """Of transfers, by their transfer-ids: accepted and settled, unless something else is said."""
        if fields.get("role", draft.RECEIVER) == draft.RECEIVER:
            fields = {"state": draft.transfer_state(outcome=draft.accepted()), **fields}
        return super().disposition(first, last, channel, **{"state": None, **fields})


def _renamed(fields: dict[str, Any]) -> dict[str, Any]:
    return {_NAMES.get(name, name): value for name, value in fields.items()}


class Dialogue2011(Dialogue):
    """The conversation of a client and a server that speak the draft."""

    namespace = "amqp10-draft2011"
    speaker = Peer2011
    client: Peer2011
    server: Peer2011

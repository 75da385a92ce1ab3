"""Two peers that speak the April-2011 draft of AMQP 1.0, and say at random what they have a right to say.

What they do is what the peers of `support.legal` do: the states of connections, sessions and links, the
windows and the credit are the same in both dialects. Here is what differs: transfer-ids, fragments of
numbered sections, one transfer-state, no settle modes, and the draft's encodings. They do nothing in
transactions.

In `Said.fields` and in the peers' programs things have the final's names; `in_draft_words` gives the fields
as they are sent. Each peer has a style of its own: the encodings that it chooses.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

from support import draft2011_encode as draft
from support.legal import (
    NAMES,
    SERIAL_NUMBERS,
    WRAP,
    Delivery,
    Fields,
    Incoming,
    Link,
    Peer,
    Session,
    State,
    Talk,
)

__all__ = ["Peer2011", "Talk2011", "in_draft_words", "transfer_state"]

_RENAMED = {
    "delivery_count": "transfer_count",
    "initial_delivery_count": "initial_transfer_count",
    "properties": "options",  # of a flow
}

_ABSENT = ("delivery_id", "snd_settle_mode", "rcv_settle_mode")

_NUMBERS = {_RENAMED.get(name, name) for name in SERIAL_NUMBERS} | {"transfer_id"}

_OUTCOMES = {
    "accepted": draft.accepted(),
    "rejected": draft.rejected(error=draft.error(condition="amqp:precondition-failed")),
    "released": draft.released(),
    "modified": draft.modified(delivery_failed=True),
}

# Octets around the payload of a fragment, at most.
_AROUND_FRAGMENT = 64


def transfer_state(state: State) -> draft.Encoded:
    """A transfer-state by what `Said` has of it: an outcome, or the little that was received."""
    if state is None:
        return draft.transfer_state()
    if state == "received":
        return draft.transfer_state(bytes_transferred=0)
    assert isinstance(state, str)
    return draft.transfer_state(outcome=_OUTCOMES[state])


def in_draft_words(name: str, fields: Fields) -> Fields:
    """The fields of a frame by the draft's names, as Python values or, of what is composite, encoded."""
    given = {_RENAMED.get(field, field): value for field, value in fields.items() if field not in _ABSENT}
    if given.get("state") is not None:
        given["state"] = transfer_state(given["state"])
    if given.get("unsettled") is not None:
        given["unsettled"] = {tag: transfer_state(state) for tag, state in given["unsettled"].items()}
    if isinstance(given.get("error"), str):
        given["error"] = draft.error(condition=given["error"])
    return given


@dataclass(frozen=True)
class Style:
    """Which of the legal encodings a peer chooses.

    choice: of all that has several. descriptor_form: of performatives. options: that every performative has.
    utf16: strings are encoded so. array: the fragments of a transfer are an array.
    """

    choice: Any
    descriptor_form: Any
    options: dict[str, Any] | None
    utf16: bool
    array: bool

    @staticmethod
    def draw(random: Random) -> Style:
        return Style(
            choice=random.choice(["smallest", "smallest", "widest"]),
            descriptor_form=random.choice(["small", "small", "full", "symbol", "symbol32"]),
            options=random.choice([None, None, {}, {"x-hop": "1", "x-more": draft.list_([True], 0xE0)}]),
            utf16=random.random() < 0.3,
            array=random.random() < 0.3,
        )


class Message(bytes):
    """The octets of all sections, one behind the other."""

    sections: tuple[draft.Section, ...] = ()

    def fragments(self, start: int, end: int, last: bool) -> list[Fields]:
        """The fragments that carry these octets; an empty section has one. last: the message ends here."""
        found: list[Fields] = []
        begins = 0
        for number, section in enumerate(self.sections):
            ends = begins + len(section.octets)
            first, final = max(start, begins), min(end, ends)
            empty = begins == ends and start <= begins and (begins < end or last)
            if first < final or empty:
                found.append(
                    {
                        "first": first == begins,
                        "last": final == ends,
                        "section_code": section.code,
                        "section_number": number,
                        "section_offset": first - begins,
                        "payload": section.octets[first - begins : final - begins],
                    }
                )
            begins = ends
        return found


class Peer2011(Peer):
    """One peer's program."""

    amqp = draft
    least_frame_size = 4096
    largest_message = 40_000

    def __init__(self, talk: Talk, side: int) -> None:
        super().__init__(talk, side)
        self.character.max_frame_size = self.random.choice([None, 4096, 4096, 5000, 8192, 65536])
        self.character.transacts = False
        self.style = Style.draw(self.random)
        # The transfer-ids of the deliveries that this peer sends and receives, by session and first id.
        self.sent_ids: dict[tuple[str, int], list[int]] = {}
        self.received_ids: dict[tuple[str, int], list[int]] = {}

    # ---- encoding -----------------------------------------------------------------------------------------

    def encoded(self, name: str, channel: int, fields: Fields, payload: bytes = b"") -> bytes:
        if name == "header":
            return draft.protocol_header(fields["id"])
        if name == "empty":
            return draft.frame(channel=channel)
        style = self.style
        choice = style.choice if self.talk.serial is None else "widest"
        values = in_draft_words(name, fields)
        if name == "transfer" and "transfer_id" not in fields:
            # A fault of `support.faults`: a delivery in one transfer.
            values["transfer_id"] = fields.get("delivery_id")
            values["fragments"] = list(draft.fragment_fields([draft.data(payload)]))
        values["options"] = self.options(values)
        for field, value in values.items():
            if field in _NUMBERS and type(value) is int and self.talk.serial is not None:
                values[field] = draft.uint(value, "widest")
            elif isinstance(value, str) and style.utf16 and field in ("container_id", "hostname", "name"):
                short = choice == "smallest" and len(value) < 100
                values[field] = draft.string(value, 0xA2 if short else 0xB2)
        if values.get("fragments") is not None:
            values["fragments"] = self.fragments(values["fragments"])
        body = draft.composite(name, descriptor_form=style.descriptor_form, choice=choice, **values)
        if name.startswith("sasl-"):
            return draft.sasl_frame(body)
        return draft.frame(body, channel=channel)

    def options(self, fields: Fields) -> dict[Any, Any] | None:
        """The options of a performative with these fields."""
        own = fields.get("options") or {}
        return {**(self.style.options or {}), **own} if own or self.style.options else self.style.options

    def fragments(self, pieces: list[Fields]) -> bytes:
        if len(pieces) == 1 and not self.style.array:
            return draft.fragment(**pieces[0])
        if self.style.array:
            return draft.multiple("*", [draft.fragment(choice="widest", **piece) for piece in pieces], 0xF0)
        return draft.multiple("*", [draft.fragment(**piece) for piece in pieces])

    # ---- links --------------------------------------------------------------------------------------------

    def settle_modes(self, link: Link) -> Fields:
        return {"snd_settle_mode": None, "rcv_settle_mode": None}

    def rcv_mode(self, link: Link) -> Fields:
        return {}

    def source_fields(self, link: Link) -> Fields:
        # "This field MUST be set by the sending end of the Link."
        return {"distribution_mode": "move"} if link.sender else {}

    # ---- transfers ----------------------------------------------------------------------------------------

    def message(self, link: Link) -> Message:
        random = self.random
        header = draft.header(durable=True) if self.chance(0.5) else draft.section("header")
        properties = draft.section("properties")
        if self.chance(0.5):
            self.messages += 1
            properties = draft.properties(
                message_id=b"%s-%d" % (NAMES[self.side].encode(), self.messages), subject="s"
            )
        body: list[draft.Section] = []
        if self.chance(0.3):
            body.append(draft.amqp_map({"k": "v"}))
        sizes = [0, 1, 20, 200, 900, 2500, 9000] if self.character.big else [0, 1, 20]
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            size = random.choice(sizes)
            body.append(
                random.choice(
                    [
                        draft.data(b"d" * size),
                        draft.amqp_data(draft.binary(b"v" * size), True),
                        draft.amqp_list([draft.binary(b"l" * size), draft.uint(size)]),
                    ]
                )
            )
        footer = draft.footer(message_attrs={"x-sum": "0"}) if self.chance(0.3) else draft.section("footer")
        sections = (header, properties, *body, footer)
        message = Message(b"".join(section.octets for section in sections))
        message.sections = sections
        return message

    def next_number(self, session: Session) -> int:
        return session.next_out & WRAP

    def around(self, session: Session, delivery: Delivery, fields: Fields) -> int:
        carried = {**fields, **self.every_transfer(session, delivery)}
        sections = getattr(delivery.message, "sections", ())
        return super().around(session, delivery, carried) + _AROUND_FRAGMENT * (len(sections) + 1)

    def every_transfer(self, session: Session, delivery: Delivery) -> Fields:
        """What stands on every transfer of a delivery."""
        return {
            "delivery_tag": delivery.tag,
            "transfer_id": session.next_out & WRAP,
            "message_format": 0,
        }

    def say_transfer(self, session: Session, delivery: Delivery, size: int = 0, /, **fields: Any) -> None:
        fields |= self.every_transfer(session, delivery)
        last = not fields.get("more") and not fields.get("aborted")
        message = delivery.message
        pieces = []
        if isinstance(message, Message) and (size or last):
            pieces = message.fragments(delivery.position - size, delivery.position, last)
        fields["fragments"] = pieces or None
        self.sent_ids.setdefault((session.key, delivery.number), []).append(session.next_out & WRAP)
        session.next_out += 1
        self.say("transfer", session.out or 0, **fields)

    def hear_transfer(self, session: Session, fields: Fields) -> None:
        link = session.peer_handles.get(fields["handle"])
        number = fields["transfer_id"]
        if link is not None and link.receiving is not None:
            number = link.receiving.number
        self.received_ids.setdefault((session.key, number), []).append(fields["transfer_id"])
        super().hear_transfer(session, {**fields, "delivery_id": fields["transfer_id"]})

    # ---- dispositions -------------------------------------------------------------------------------------

    def last_number(self, session: Session, each: Incoming | Delivery) -> int | None:
        """The last transfer-id of a delivery whose transfer-ids follow each other; else None."""
        ids = self.sent_ids if isinstance(each, Delivery) else self.received_ids
        named = ids.get((session.key, each.number), [each.number])
        together = (named[-1] - named[0]) & WRAP == len(named) - 1
        return named[-1] if together else None

    def number_after(self, session: Session, each: Incoming | Delivery) -> int:
        last = self.last_number(session, each)
        return -1 if last is None or not each.complete else (last + 1) & WRAP

    def dispose(
        self, session: Session, role: bool, first: int, last: int, settled: bool, state: State
    ) -> None:
        # A delivery of several transfers is named by its first transfer-id, or by all of them.
        ids = self.received_ids if role else self.sent_ids
        named = ids.get((session.key, last), [last])
        if (named[-1] - named[0]) & WRAP == len(named) - 1 and self.chance(0.7):
            last = named[-1]
        super().dispose(session, role, first, last, settled, state)


class Talk2011(Talk):
    """Both peers, and what they have said."""

    def new_peer(self, side: int) -> Peer:
        return Peer2011(self, side)

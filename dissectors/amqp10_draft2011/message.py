"""Messages of the draft: what the fragments of the transfers of one direction make up (sections 3.6.11, 4.2).

A message is a row of sections, each with a number from 0 and a code that says what it holds. A fragment is a
part of one section; its flags say whether the section begins and ends with it. Transfers of one delivery have
the same delivery-tag on the same link, all but the last have `more` set. Deliveries of one link do not
interleave.

What was not seen from its beginning, or with a hole inside, is a message that is not `complete`. Sections are
decoded when someone looks.
"""

from typing import Any, Final

from dissectors.amqp10.composite import NOT_BROKEN, Composite, Reader, sent_name
from dissectors.amqp10.values import Map, Raw
from dissectors.amqp10_draft2011.performatives import (
    Attach,
    Begin,
    Detach,
    End,
    Fragment,
    Properties,
    Transfer,
)
from dissectors.amqp10_draft2011.registry import DRAFT, SECTION_CODES
from dissectors.interface import Assembled, Assembler, Frame, Problem
from dissectors.limits import MAX_MESSAGE, MAX_OPEN_DELIVERIES, MAX_VALUES
from dissectors.wire import i64

__all__ = ["DraftAssembler", "DraftMessage", "DraftSection"]

_DUMP_VERSION: Final = 1

_DATA: Final = 3
_AMQP_DATA: Final = 4

_MOST_SECTIONS: Final = 4096
"""Sections kept of one message: more numbers than any has, and few enough to be objects."""


class DraftSection:
    """One section of a message, as far as it was seen.

    number: from 0. code: what it holds (`registry.SECTION_CODES`). whole: all its octets are there.
    """

    def __init__(self, number: i64, code: i64, whole: bool) -> None:
        self.number: i64 = number
        self.code: i64 = code
        self.whole: bool = whole
        self.ended: bool = False
        self.size: i64 = 0
        self._parts: list[bytes] = []

    @property
    def name(self) -> str:
        """The name of its code, `unknown` for a code that has none."""
        return SECTION_CODES.get(int(self.code), "unknown")

    @property
    def octets(self) -> bytes:
        """Its octets."""
        if len(self._parts) > 1:
            self._parts = [b"".join(self._parts)]
        return self._parts[0] if self._parts else b""

    def add(self, octets: bytes) -> None:
        """The octets of its next fragment."""
        self.size += len(octets)
        if octets:
            self._parts.append(octets)

    def decode(self, problems: list[Problem]) -> object:
        """What it holds: a composite, `Map`, list or bytes; None if it is empty; of amqp-data all values.

        What is wrong goes to `problems`.
        """
        octets = self.octets
        if self.code == _DATA:
            return octets
        name = self.name
        if name == "unknown":
            problems.append(
                Problem("M-SECT-KNOWN", 0, "", f"no section has the section-code {self.code}", True)
            )
            return Raw(octets)
        reader = DRAFT.reader(MAX_VALUES)
        reader.buf = octets
        reader.end = len(octets)
        reader.cut = not self.whole
        reader.path = [name]
        values: list[object] = []
        while reader.pos < reader.end and reader.budget >= 0:
            values.append(reader.value())
        if self.code != _AMQP_DATA:
            self.check(reader, values)
        problems += reader.problems
        if self.code == _AMQP_DATA:
            return values
        return values[0] if values else None

    def check(self, reader: Reader, values: list[object]) -> None:
        """Check that a section holds nothing, or one value of its type."""
        if not values or reader.problems or not self.whole:
            return
        name = self.name
        value = values[0]
        kind = name.removeprefix("amqp-")
        fits = (
            (isinstance(value, Composite) and value.definition().name == name)
            or (kind == "map" and isinstance(value, Map))
            or (kind == "list" and isinstance(value, list))
        )
        if not fits:
            reader.problem(
                "M-SECT-TYPE",
                0,
                f"the {name} section contains a value of the type `{sent_name(value)}`, not `{kind}`",
            )
        elif len(values) > 1:
            reader.problem(
                "M-PAYLOAD-WHOLE", 0, (f"the {name} section contains {len(values)} values, not one value")
            )

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (int(self.number), int(self.code), self.whole, self.ended, int(self.size), self.octets)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "DraftSection":
        """What `dump` gave, as an object again."""
        number, code, whole, ended, size, octets = state
        section = DraftSection(number, code, whole)
        section.add(octets)
        section.ended = ended
        section.size = size
        return section


class DraftMessage(Assembled):
    """What a delivery carries, as far as it was captured.

    size: octets of all its fragments. complete: it was seen to its end with nothing missing.
    """

    def __init__(self, message_format: i64, sections: list[DraftSection], size: i64, complete: bool) -> None:
        super().__init__()
        self.message_format: i64 = message_format
        self.sections: list[DraftSection] = sections
        self.size: i64 = size
        self.complete: bool = complete
        self.problems: list[Problem] = []
        self._values: list[object] | None = None

    @staticmethod
    def of(assembled: Assembled | None) -> "DraftMessage | None":
        """What was put together, if it is a message of the draft."""
        return assembled if isinstance(assembled, DraftMessage) else None

    @property
    def octets(self) -> bytes:
        """The octets of its sections, one after the other."""
        return b"".join([section.octets for section in self.sections])

    def values(self) -> list[object]:
        """What each section holds (`DraftSection.decode`); of another message format than 0 the octets."""
        values = self._values
        if values is None:
            values = []
            for section in self.sections:
                values.append(section.decode(self.problems) if self.message_format == 0 else section.octets)
            self._values = values
        return values

    def properties(self) -> Properties | None:
        """Its properties, if it has any."""
        found = [value for value in self.values() if isinstance(value, Properties)]
        return found[0] if found else None

    def shortened(self, most: i64) -> "DraftMessage":
        kept: list[DraftSection] = []
        room: i64 = most
        for section in self.sections:
            octets = section.octets[:room]
            copy = DraftSection(section.number, section.code, section.whole and len(octets) == section.size)
            copy.add(octets)
            kept.append(copy)
            room -= len(octets)
        return DraftMessage(self.message_format, kept, self.size, self.complete and self.size <= most)


class _Delivery:
    """A delivery under way. whole: nothing of it is missing."""

    def __init__(self, tag: bytes | None, message_format: i64, whole: bool) -> None:
        self.tag: bytes | None = tag
        self.message_format: i64 = message_format
        self.whole: bool = whole
        self.sections: list[DraftSection] = []
        self.size: i64 = 0
        self.kept: i64 = 0

    def add(self, fragment: Fragment, room: i64) -> None:
        """The next fragment, of which so many octets may be kept."""
        payload = fragment.payload
        if payload is None:
            payload = b""
        sections = self.sections
        section = sections[-1] if sections else None
        number = -1 if fragment.section_number is None else min(fragment.section_number, 1 << 32)
        code = -1 if fragment.section_code is None else min(fragment.section_code, 1 << 32)
        offset = 0 if fragment.section_offset is None else min(fragment.section_offset, 1 << 62)
        self.size += len(payload)
        if fragment.odd is not None or fragment.broken_at < NOT_BROKEN:
            self.whole = False
        if section is None or section.ended or (number >= 0 and number != section.number):
            if section is not None and not section.ended:
                self.cut(section)
            if number < 0:
                number = 0 if section is None else int(section.number) + 1
            begins = offset == 0 and fragment.first is not False
            if not begins or number != (0 if section is None else section.number + 1):
                self.whole = False
            if len(sections) >= _MOST_SECTIONS:
                self.whole = False
                return
            section = DraftSection(number, code, begins)
            sections.append(section)
        elif fragment.first or code != section.code or offset != section.size:
            self.cut(section)
        if len(payload) > room:
            payload = b""
            self.cut(section)
        section.add(payload)
        self.kept += len(payload)
        if fragment.last:
            section.ended = True

    def cut(self, section: DraftSection) -> None:
        """Some of a section is missing."""
        section.whole = False
        self.whole = False

    def message(self) -> DraftMessage:
        """The message: no more fragments come."""
        for section in self.sections:
            if not section.ended:
                self.cut(section)
        return DraftMessage(self.message_format, self.sections, self.size, self.whole)


class DraftAssembler(Assembler):
    """Takes the frames of one direction in order, gives back the messages they complete."""

    def __init__(self) -> None:
        super().__init__()
        self._open: dict[int, _Delivery] = {}
        self._kept: i64 = 0
        # Frames may have been missed: a transfer may go on with a delivery that was not seen.
        self._gap: bool = False

    def joined_midstream(self) -> None:
        self._gap = True

    def take(self, frame: Frame) -> DraftMessage | None:
        """A frame of this direction; the message if it completes one."""
        body = frame.body
        if isinstance(body, Transfer):
            return self._transfer(frame, body)
        if isinstance(body, (Attach, Detach)):
            if body.handle is not None:
                self._forget((int(frame.channel) << 32) | body.handle)
        elif isinstance(body, (Begin, End)):
            for key in [key for key in self._open if key >> 32 == frame.channel]:
                self._forget(key)
        elif frame.name == "skipped" or frame.name == "undecodable":
            self._doubt()
        return None

    def _transfer(self, frame: Frame, transfer: Transfer) -> DraftMessage | None:
        if transfer.handle is None:
            self._doubt()
            return None
        key = (int(frame.channel) << 32) | transfer.handle
        delivery = self._open.get(key)
        if (
            delivery is not None
            and transfer.delivery_tag is not None
            and delivery.tag != transfer.delivery_tag
        ):
            self._forget(key)
            delivery = None
        if delivery is None:
            # Whoever resumes a delivery goes on where it was interrupted.
            delivery = _Delivery(transfer.delivery_tag, transfer.message_format or 0, True)
            if len(self._open) >= MAX_OPEN_DELIVERIES:
                self._forget(next(iter(self._open)))
            self._open[key] = delivery
        if frame.missing > 0 or transfer.odd is not None or transfer.broken_at < NOT_BROKEN:
            delivery.whole = False
        before = delivery.kept
        for fragment in transfer.fragments or ():
            delivery.add(fragment, MAX_MESSAGE - self._kept - (delivery.kept - before))
        self._kept += delivery.kept - before
        if transfer.aborted:
            self._forget(key)
            return None
        if transfer.more:
            return None
        self._forget(key)
        if not delivery.sections and self._gap:
            delivery.whole = False
        return delivery.message()

    def _forget(self, key: int) -> None:
        delivery = self._open.pop(key, None)
        if delivery is not None:
            self._kept -= delivery.kept

    def _doubt(self) -> None:
        """Transfers may have been missed."""
        self._gap = True
        for delivery in self._open.values():
            delivery.whole = False

    def dump(self) -> tuple[object, ...]:
        """The deliveries under way, as plain values."""
        deliveries = tuple(
            (
                key,
                (one.tag, int(one.message_format), one.whole, int(one.size), int(one.kept)),
                tuple(section.dump() for section in one.sections),
            )
            for key, one in self._open.items()
        )
        return (_DUMP_VERSION, self._gap, deliveries)

    @staticmethod
    def load(state: tuple[Any, ...]) -> "DraftAssembler":
        """An assembler that goes on where `dump` left off. Raises ValueError on another version's state."""
        if not state or state[0] != _DUMP_VERSION:
            raise ValueError(f"state of a message assembler in version {state[:1]}, not {_DUMP_VERSION}")
        assembler = DraftAssembler()
        assembler._gap = state[1]
        for key, (tag, message_format, whole, size, kept), sections in state[2]:
            delivery = _Delivery(tag, message_format, whole)
            delivery.size = size
            delivery.kept = kept
            delivery.sections = [DraftSection.load(section) for section in sections]
            assembler._open[key] = delivery
            assembler._kept += delivery.kept
        return assembler

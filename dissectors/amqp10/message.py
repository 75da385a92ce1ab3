"""Messages: the sections in the joined payload of a delivery (messaging.xml, section "message-format").

Sections are decoded when someone looks. A `Message` holds the payload's parts as the transfers
brought them; `sections()` joins and decodes them, and `problems` then holds what was wrong.
"""

from typing import Final

from dissectors.amqp10.composite import Composite, Reader, TypeTable, sent_name
from dissectors.amqp10.messaging import Header
from dissectors.amqp10.outline import MARKED_DURABLE, OPTIONAL, delivery_count, outline, section_ends
from dissectors.amqp10.registry import FINAL, SECTIONS
from dissectors.amqp10.types import type_name
from dissectors.amqp10.values import Described, Map, Raw, Symbol, ULong
from dissectors.interface import Assembled, Problem
from dissectors.wire import i64

__all__ = ["BATCH_FORMAT", "DURABLE", "OPTED", "RESERVED", "Message", "Section"]

# Event Hubs and Service Bus: the body is data sections, each holding one encoded message of format 0.
BATCH_FORMAT: Final = 0x80013700

# mypyc: null object, of all messages of which nothing is left to join. Nothing writes to it.
NO_PARTS: Final[list[bytes]] = []

OPTED: Final = 1
"""Of `Message.traits`: there are annotations, and all their keys begin with `x-opt-`."""
DURABLE: Final = 2
"""Of `Message.traits`: it has to survive a crash."""
RESERVED: Final = 4
"""Of `Message.traits`: an annotation has a key that no specification known here assigns."""

_ANNOTATIONS: Final = ("delivery-annotations", "message-annotations", "footer")

_SECTION_CODES: Final[dict[str, int]] = {symbol: code for code, (_, symbol, _) in SECTIONS.items()}


class Section:
    """One section of a message.

    name: `header`, `data`, ..., or `unknown`. value: the composite (header, properties), `Map`,
    bytes, list, or any value (amqp-value). offset, size: octets in the message.
    """

    def __init__(self, name: str, value: object, offset: i64, size: i64) -> None:
        self.name: str = name
        self.value: object = value
        self.offset: i64 = offset
        self.size: i64 = size

    def __repr__(self) -> str:
        return f"<Section {self.name} at {self.offset}+{self.size}>"


class Message(Assembled):
    """What a delivery carries, as far as it was captured.

    message_format: from the first transfer, 0 where it was not given. size: octets of all its
    payloads. complete: it was seen to its end with nothing missing. kept: octets that are still there.
    """

    def __init__(self, message_format: i64, parts: list[bytes], size: i64, complete: bool) -> None:
        super().__init__()
        self.message_format: i64 = message_format
        self.size: i64 = size
        self.complete: bool = complete
        self.problems: list[Problem] = []
        self._outline: i64 = -1
        self._sections: list[Section] | None = None
        # The payload: buffer[start:end], in the parts of it that are not joined yet, or in none.
        self._parts: list[bytes] = parts
        self._buffer: bytes = b""
        self._start: i64 = 0
        self._end: i64 = 0

    @staticmethod
    def in_place(
        message_format: i64, buffer: bytes, start: i64, end: i64, size: i64, complete: bool
    ) -> "Message":
        """A message whose payload, buffer[start:end], is left where it is until someone wants it."""
        message = Message(message_format, NO_PARTS, size, complete)
        message._buffer = buffer
        message._start = start
        message._end = end
        return message

    @staticmethod
    def of(assembled: Assembled | None) -> "Message | None":
        """What was put together, if it is a message of AMQP 1.0."""
        return assembled if isinstance(assembled, Message) else None

    @property
    def octets(self) -> bytes:
        """The joined payload."""
        self._join()
        if self._end - self._start < len(self._buffer):
            self._buffer = self._buffer[self._start : self._end]
            self._start = 0
            self._end = len(self._buffer)
        return self._buffer

    def front(self, most: i64) -> bytes:
        """The first octets of the joined payload."""
        self._join()
        return self._buffer[self._start : min(self._end, self._start + most)]

    def outline(self) -> i64:
        """Its sections, if they can be seen to be sound; see `outline`."""
        if self._outline < 0:
            self._join()
            self._outline = outline(self._buffer, self._start, self._end)
        return self._outline

    def is_sound(self) -> bool:
        """Whether it is whole, of format 0, and seen to have no problem without being decoded.

        True for nearly every one. False says nothing: it has to be decoded.
        """
        return self.complete and self.message_format == 0 and self.outline() > 0

    def traits(self) -> i64:
        """What it asks of its receiver: OPTED, DURABLE, RESERVED. Only of a complete one of format 0."""
        known = self.outline()
        traits: i64 = 0
        if known > 0:
            if known & MARKED_DURABLE:
                traits = traits | DURABLE
            if known & OPTIONAL:
                traits = traits | OPTED
            return traits
        opted = False
        required = False
        for section in self.sections():
            value = section.value
            if isinstance(value, Header):
                if value.durable:
                    traits = traits | DURABLE
            elif isinstance(value, Map) and section.name in _ANNOTATIONS:
                for key, _ in value:
                    if isinstance(key, Symbol) and key.startswith("x-"):
                        if key.startswith("x-opt-"):
                            opted = True
                        else:
                            required = True
                    elif isinstance(key, (Symbol, ULong)) and key != "rejected":
                        traits = traits | RESERVED
        if opted and not required and traits & RESERVED == 0:
            traits = traits | OPTED
        return traits

    def delivery_count(self) -> int:
        """How often its header says that it was delivered before; 0: it does not. Of one that `is_sound`."""
        self._join()
        return int(delivery_count(self._buffer, self._start, self._end))

    def section_octets(self) -> list[bytes]:
        """The octets of each section of a message whose outline is known, its descriptor included."""
        self._join()
        start = self._start
        parts: list[bytes] = []
        for end in section_ends(self._buffer, self._start, self._end):
            parts.append(self._buffer[start:end])
            start = end
        return parts

    def lies_in(self, buffer: bytes) -> bool:
        """Whether its payload was left in this buffer."""
        return self._buffer is buffer

    def move(self, buffer: bytes, shift: i64) -> None:
        """The payload it was left in was moved to another buffer, so many octets nearer to its start."""
        self._buffer = buffer
        self._start -= shift
        self._end -= shift

    def shortened(self, most: i64) -> "Message":
        octets = self.octets
        return Message(self.message_format, [octets[:most]], self.size, self.complete and len(octets) <= most)

    def _join(self) -> None:
        parts = self._parts
        if parts:
            self._buffer = parts[0] if len(parts) == 1 else b"".join(parts)
            self._end = len(self._buffer)
            self._parts = NO_PARTS

    def sections(self, table: TypeTable = FINAL) -> list[Section]:
        """The sections in order. Of a message format other than 0 and the batch: none, it is opaque."""
        if self._sections is None:
            self._sections = []
            if self.message_format == 0 or self.message_format == BATCH_FORMAT:
                self._sections = self._decode(table)
        return self._sections

    def batch(self, table: TypeTable = FINAL) -> list["Message"]:
        """The messages inside one of the batch format: one a data section. Otherwise none."""
        if self.message_format != BATCH_FORMAT:
            return []
        inner: list[Message] = []
        for section in self.sections(table):
            value = section.value
            if section.name == "data" and isinstance(value, bytes):
                inner.append(Message(0, [value], len(value), True))
        return inner

    def _decode(self, table: TypeTable) -> list[Section]:
        octets = self.octets
        end: i64 = len(octets)
        reader = _SectionReader(octets, 0, end, 0, table)
        reader.cut = not self.complete
        sections: list[Section] = []
        while reader.pos < end:
            start = reader.pos
            found = len(reader.problems)
            value = reader.value()
            if octets[start] != 0:
                # Whatever it decodes as, a section begins with the 0x00 of its descriptor.
                del reader.problems[found:]
                reader.problem_once(
                    "M-PAYLOAD-WHOLE", start, "the octets from here on are not a section of a message"
                )
            section = _section(reader, value, start, reader.sound(found) and octets[start] == 0)
            sections.append(section)
            if section.name == "unknown" and not isinstance(value, (Described, Composite)):
                # Where no section stands it is unknown where the next one does, unless it is to be seen.
                if reader.pos < end and octets[reader.pos] != 0:
                    reader.pos = end
                    section.value = Raw(octets[start:end])
            section.size = reader.pos - start
            if reader.budget < 0:
                break
        self.problems = reader.problems
        return sections


class _SectionReader(Reader):
    """Reads the sections of a message, each with its name in the path of its problems."""

    def described(self, start: i64) -> object:
        # The way nearly every section goes that is no composite: smallulong, looked up in no table.
        if self.depth == 0 and self.end - self.pos >= 3 and self.buf[self.pos] == 0x53:
            code: i64 = self.buf[self.pos + 1]
            if 0x71 <= code <= 0x78 and code != 0x73:
                self.pos += 2
                self.budget -= 1
                self.depth = 1
                value = self.wrapped(int(code))
                self.depth = 0
                return Described(ULong(code), value)
        return super().described(start)

    def described_by(self, descriptor: object, start: i64) -> object:
        code = _section_code(descriptor) if self.depth == 1 else -1
        if code < 0 or self.known(descriptor) is not None:
            return super().described_by(descriptor, start)
        return Described(descriptor, self.wrapped(code))

    def wrapped(self, code: int) -> object:
        """The value behind the descriptor of a section."""
        name, _, wanted = SECTIONS[code]
        first: i64 = self.buf[self.pos]
        if wanted == "map" and (first == 0xC1 or first == 0xD1):
            self.keys = name if name == "application-properties" else "annotations"
        self.path.append(name)
        value = self.value()
        self.path.pop()
        self.keys = ""
        return value


def _section_code(descriptor: object) -> int:
    """The numeric descriptor of a message section, from either of its descriptors; -1 for another one."""
    code = -1
    if isinstance(descriptor, ULong):
        code = int(descriptor)
    elif isinstance(descriptor, Symbol):
        code = _SECTION_CODES.get(descriptor, -1)
    return code if code in SECTIONS else -1


def _section(reader: Reader, value: object, start: i64, sound: bool) -> Section:
    """Name a top-level value of a payload, and check what it wraps."""
    if isinstance(value, Composite):
        definition = value.definition()
        if "section" in definition.provides:
            return Section(definition.name, value, start, 0)
    if isinstance(value, Described):
        code = _section_code(value.descriptor)
        if code >= 0:
            name, _, wanted = SECTIONS[code]
            if sound and wanted != "*" and type_name(value.value) != wanted:
                reader.problem(
                    "M-SECT-TYPE",
                    start,
                    (
                        f"the {name} section contains a value of the type `{sent_name(value.value)}`, not "
                        f"`{wanted}`"
                    ),
                    name,
                )
            return Section(name, value.value, start, 0)
    if sound:
        # It has a descriptor: its first octet is that of one.
        what = "described value of another kind"
        if isinstance(value, Composite):
            what = f"value of the type `{sent_name(value)}`"
        reader.problem("M-SECT-KNOWN", start, f"a {what} is sent instead of a message section")
    return Section("unknown", value, start, 0)

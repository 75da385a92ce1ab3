"""A digest of a message on one connection, to compare it with the same message on another connection.

A broker receives a message on one connection and forwards it on others. It may change the header and
annotations, but must not change the bare message (properties, application-properties and body). Only a
comparison with the other connection shows a change. For the first messages of each direction, the digest
therefore keeps the encoded message-id, the header, and a checksum of each other section.

Sources: messaging.xml, "message-format".
"""

from typing import Any, Final
from zlib import crc32

from amqpscope.limits import MAX_PASSED_HEADER
from amqpscope.model.records import FrameRecord, FrameRef
from dissectors.amqp10.message import Message
from dissectors.amqp10.outline import entries, message_id
from dissectors.wire import i64

__all__ = ["MessageDigest", "message_digest"]

# Descriptors of the sections (messaging.xml).
HEADER: Final = 0x70
ANNOTATIONS: Final = 0x72
PROPERTIES: Final = 0x73
APPLICATION: Final = 0x74


class MessageDigest:
    """One message of a connection.

    spot: of the transfer that completes it. message_id: as encoded. header, properties: the octets of these
    sections, b"" for none (or if they are too many to be kept).
    sections: the descriptors of those of the bare message, in order. sums: a checksum of each; entries: one
    of each application property, in order; annotations: one of each key of the message-annotations.
    link: the name of the one it is on. draft: it is a message of the April-2011 draft
    (`tracking.amqp10_draft2011.passing`).
    """

    def __init__(
        self,
        spot: FrameRef,
        message_id: bytes,
        header: bytes,
        properties: bytes,
        sections: bytes,
        sums: tuple[int, ...],
        link: str,
    ) -> None:
        self.spot: FrameRef = spot
        self.message_id: bytes = message_id
        self.header: bytes = header
        self.properties: bytes = properties
        self.sections: bytes = sections
        self.sums: tuple[int, ...] = sums
        self.link: str = link
        self.entries: tuple[int, ...] = ()
        self.annotations: tuple[int, ...] = ()
        self.draft: bool = False

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            self.spot.dump(),
            self.message_id,
            (self.header, self.properties),
            (self.sections, self.sums),
            (self.entries, self.annotations, self.draft),
            self.link,
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "MessageDigest":
        """The object of what `dump` returned."""
        spot, identity, (header, properties), (sections, sums), about, link = state
        passed = MessageDigest(FrameRef.load(spot), identity, header, properties, sections, sums, link)
        passed.entries, passed.annotations, passed.draft = about
        return passed


def message_digest(record: FrameRecord, message: Message, link: str) -> MessageDigest | None:
    """What to keep of a message, which `record` completes. None: it has no id, and cannot be determined
    elsewhere.

    message: of format 0, with an outline.
    """
    identity = b""
    header = b""
    properties = b""
    sections: list[int] = []
    sums: list[int] = []
    annotations: tuple[int, ...] = ()
    properties_each: tuple[int, ...] = ()
    for part in message.section_octets():
        code: i64 = part[2]
        if code == HEADER:
            header = part if len(part) <= MAX_PASSED_HEADER else b""
        elif code == ANNOTATIONS:
            annotations = _sums(part, 1)
        elif 0x73 <= code <= 0x77:
            if code == PROPERTIES:
                identity = message_id(part, 0, len(part))
                properties = part if len(part) <= MAX_PASSED_HEADER else b""
            elif code == APPLICATION:
                properties_each = _sums(part, 2)
            sections.append(int(code))
            sums.append(crc32(part))
    if not identity:
        return None
    passed = MessageDigest(
        FrameRef.of(record), identity, header, properties, bytes(sections), tuple(sums), link
    )
    passed.entries = properties_each
    passed.annotations = annotations
    return passed


def _sums(section: bytes, width: int) -> tuple[int, ...]:
    """Of a map section, in order: a checksum of each key (width 1), or of each entry (2)."""
    places = entries(section, 0, len(section))
    sums = [crc32(section[places[at] : places[at + width]]) for at in range(0, len(places) - 1, 2)]
    return tuple(sums)

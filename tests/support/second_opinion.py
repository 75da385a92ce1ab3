"""What the product reads in a capture, put in tshark's words and compared with what tshark reads.

    ours = product_frames(path)             in the vocabulary of support.tshark: paths and texts
    theirs = tshark_frames(path)
    for difference in differences(ours, theirs):
        ...

Frames are matched within one direction of one connection (tcp.stream and source) by the packet of their last
octet, their size and their place; then their names, channels and every field are compared. A field that only
one of them has is a difference too.

Texts are tshark's where it has a manner of its own: floating point as C's "%f", a time inside a map or list
as "Nov 14, 2023 22:13:20.000000000", binaries in hexadecimal, control characters as \\x1b.
"""

from __future__ import annotations

import datetime
import math
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from support.tshark import CUT, TsharkFrame

from amqpscope.input.capture import read
from amqpscope.model.records import FrameRecord, endpoint
from dissectors.amqp10.composite import Composite, Field
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.message import Message
from dissectors.amqp10.performatives import Transfer
from dissectors.amqp10.values import Array, Described, Map, Timestamp
from dissectors.interface import Frame

_BLANK = re.compile("[\t\n\r]")  # what XML makes a blank in an attribute
_CONTROL = re.compile("[\x00-\x1f\x7f]")


# The octets of a message that come after what was captured: they begin no section and end none.
_MORE = b"\x00"


@dataclass
class ProductFrame:
    """One frame as the product read it; `record` is the whole of it."""

    stream: int
    source: str
    packet: int  # of its last octet, as tshark lists it
    kind: str
    name: str
    channel: int
    size: int
    fields: dict[str, str]
    sections: dict[str, str]
    record: FrameRecord = field(repr=False)
    continues: bool = False  # it is a transfer, and not the first of its delivery
    after_gap: bool = False  # octets of its direction before it were not captured, or are no frames


@dataclass
class Difference:
    """One thing about one frame that the two see differently; None for what one of them does not see."""

    path: str  # "frame", "name", "channel", "stream", a field's path, or "message." and a section's path
    ours: str | None
    theirs: str | None
    our_frame: ProductFrame | None = field(repr=False)
    their_frame: TsharkFrame | None = field(repr=False)

    def __str__(self) -> str:
        frame = self.our_frame or self.their_frame
        assert frame is not None
        return f"packet {frame.packet} {frame.name} {self.path}: {self.ours!r}, tshark {self.theirs!r}"


# ---- the product's frames in tshark's words ---------------------------------------------------------------


def product_frames(path: Path) -> list[ProductFrame]:
    """All frames but skipped stretches, in the product's order.

    The sections of a message stand with the transfer that it begins with, as far as they lie whole in that
    transfer's payload: tshark takes the payload of every transfer for a message of its own.
    """
    frames: list[ProductFrame] = []
    begun: dict[tuple[int, int, int, int | None], ProductFrame] = {}  # deliveries under way, by their link
    broken: set[tuple[int, int]] = set()
    for record in read(path):
        frame = record.frame
        connection = record.connection
        direction = (connection.stream, int(record.direction))
        if frame.kind == "skipped":
            broken.add(direction)
            continue
        body = frame.body
        fields: dict[str, str] = {}
        if isinstance(body, Composite):
            _composite(body, "", fields)
        reported = ProductFrame(
            connection.stream,
            endpoint(*connection.end(int(record.direction))),
            int(record.last_packet),
            frame.kind,
            frame_name(frame),
            max(0, int(frame.channel)),
            int(frame.size),
            fields,
            {},
            record,
            after_gap=direction in broken,
        )
        frames.append(reported)
        if isinstance(body, Transfer):
            link = (*direction, reported.channel, body.handle)
            reported.continues = link in begun
            begun.setdefault(link, reported)
            if record.message:
                _message(record.message, begun[link])
            if not body.more or body.aborted:
                del begun[link]
    for first in begun.values():  # whatever may follow, its first octets are sections too
        payload = first.record.frame.payload
        _message(Message(0, [payload, _MORE], len(payload) + len(_MORE), False), first)
    return frames


def frame_name(frame: Frame) -> str:
    """The product's name, but "header 0" for a protocol header of version 1.0.0 and "unknown 31" for a
    frame whose body has this descriptor, which the product calls undecodable."""
    body = frame.body
    if isinstance(body, ProtocolHeader):
        version = (int(body.major), int(body.minor), int(body.revision))
        return f"header {body.protocol_id}" + ("" if version == (1, 0, 0) else f" {version}")
    if isinstance(body, Described) and isinstance(body.descriptor, int):
        return f"unknown {int(body.descriptor)}"
    return frame.name


def _composite(composite: Composite, path: str, into: dict[str, str]) -> None:
    for definition, value in composite.fields():
        _field(definition, value, f"{path}.{definition.name}" if path else definition.name, into)
    for n, value in enumerate(composite.extra or ()):
        _item(value, f"{path}[{n}]", into)


def _field(definition: Field, value: object, path: str, into: dict[str, str]) -> None:
    if isinstance(value, Timestamp):
        into[path] = str(int(value))
    elif definition.type == "timestamp" and isinstance(value, int):
        into[path] = str(value)
    else:
        _item(value, path, into)


def _message(message: Message, first: ProductFrame) -> None:
    """The sections that lie whole in the first transfer; the second of one name is "data 2", and so on."""
    into = first.sections
    seen: Counter[str] = Counter()
    for section in message.sections():
        if section.offset + section.size > first.record.frame.payload_size:
            break
        seen[section.name] += 1
        name = section.name if seen[section.name] == 1 else f"{section.name} {seen[section.name]}"
        value = section.value
        if isinstance(value, Composite):
            into[name] = value.definition().name
            _composite(value, name, into)
        else:
            _item(value, name, into)


def _item(value: object, path: str, into: dict[str, str]) -> None:
    """A value and what is in it: items of lists and arrays by number, of maps by their key's text."""
    if isinstance(value, Described):
        _item(value.value, path, into)
    elif isinstance(value, Composite):
        into[path] = value.definition().name
        _composite(value, path, into)
    elif isinstance(value, Map):
        for key, item in value.pairs:
            _item(item, f"{path}[{value_text(key)}]", into)
        if not value.pairs:
            into[path] = ""
    elif isinstance(value, list | Array):
        for n, item in enumerate(value):
            _item(item, f"{path}[{n}]", into)
        if not len(value):
            into[path] = ""
    else:
        into[path] = value_text(value)


def value_text(value: Any) -> str:
    """A value that holds no others, as tshark prints it inside a map or list."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Timestamp):
        seconds, milliseconds = divmod(int(value), 1000)
        try:
            moment = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(seconds=seconds)
        except OverflowError:  # a year that has not four digits
            return repr(value)
        return f"{moment:%b} {moment.day:2}, {moment:%Y %H:%M:%S}.{milliseconds:03}000000"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:f}" if value == value else "-nan" if math.copysign(1, value) < 0 else "nan"
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, uuid.UUID | str):
        return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):x}", _BLANK.sub(" ", str(value)))
    return repr(value)


# ---- the comparison ---------------------------------------------------------------------------------------


def differences(ours: Sequence[ProductFrame], theirs: Sequence[TsharkFrame]) -> list[Difference]:
    """Everything the two see differently, direction by direction."""
    found: list[Difference] = []
    directions: dict[tuple[int, str], tuple[list[ProductFrame], list[TsharkFrame]]] = {}
    for our in ours:
        directions.setdefault((our.stream, our.source), ([], []))[0].append(our)
    for their in theirs:
        directions.setdefault((their.stream, their.source), ([], []))[1].append(their)
    for our_frames, their_frames in directions.values():
        for pair in _matched(our_frames, their_frames):
            found += _frame_differences(*pair)
    return found


def _matched(
    ours: list[ProductFrame], theirs: list[TsharkFrame]
) -> Iterator[tuple[ProductFrame | None, TsharkFrame | None]]:
    """Pairs of one frame seen by both, and frames that only one of them sees."""
    our_keys = [(frame.packet, frame.kind, frame.size) for frame in ours]
    their_keys = [(frame.packet, frame.kind, frame.size) for frame in theirs]
    matcher = SequenceMatcher(None, our_keys, their_keys, autojunk=False)
    for kind, our_start, our_end, their_start, their_end in matcher.get_opcodes():
        if kind == "equal":
            yield from zip(ours[our_start:our_end], theirs[their_start:their_end], strict=True)
        else:
            yield from ((frame, None) for frame in ours[our_start:our_end])
            yield from ((None, frame) for frame in theirs[their_start:their_end])


def _frame_differences(our: ProductFrame | None, their: TsharkFrame | None) -> Iterable[Difference]:
    if our is None or their is None:
        yield Difference("frame", our.name if our else None, their.name if their else None, our, their)
        return
    if our.name != their.name:
        yield Difference("name", our.name, their.name, our, their)
    if our.kind == "amqp" and our.channel != their.channel:
        yield Difference("channel", str(our.channel), str(their.channel), our, their)
    for prefix, our_texts, their_texts in (
        ("", our.fields, their.fields),
        ("message.", our.sections, their.sections),
    ):
        for path in our_texts | their_texts:
            our_text, their_text = our_texts.get(path), their_texts.get(path)
            if not same(our_text, their_text):
                yield Difference(prefix + path, our_text, their_text, our, their)


def same(ours: str | None, theirs: str | None) -> bool:
    """Whether two texts are the same, as far as tshark prints them."""
    if ours is not None and theirs is not None and theirs.endswith(CUT):
        return ours.startswith(theirs.removesuffix(CUT).rstrip("…"))
    return ours == theirs

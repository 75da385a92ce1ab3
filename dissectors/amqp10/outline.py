"""Which sections a message has, walked over without making an object for any value.

Every message of a capture has to be looked at, and nearly every one is sound: sections of the nine
kinds, values of the types their definitions demand, ASCII text, maps with few names for keys, annotations
that anybody may use, a content-type that is one, times of these decades. `outline` recognises those at the
price of a walk. Whatever is less plain, sound or not, it leaves to the full decoding in `message`: it answers
only where that would find no problem, and where annotations and properties say nothing that they may not.
"""

from typing import Final

from dissectors.wire import i64, u32

__all__ = [
    "MARKED_DURABLE",
    "OPTIONAL",
    "SECTIONS",
    "TYPED",
    "behind",
    "delivery_count",
    "entries",
    "field_count",
    "first_field",
    "is_media_type",
    "is_uuid",
    "message_id",
    "outline",
    "pairs",
    "section_ends",
]

TYPED: Final = 1 << 60
"""Beside the sections: properties has a content-type, which only data has."""

OPTIONAL: Final = 1 << 61
"""Beside the sections: there are annotations, and all their keys begin with `x-opt-`."""

MARKED_DURABLE: Final = 1 << 62
"""Beside the sections: the header says that the message is durable."""

SECTIONS: Final = (1 << 60) - 1
"""The bits of the sections."""

_MOST_SECTIONS: Final = 15  # what 60 bits hold
_MOST_KEYS: Final = 16
_DEEPEST: Final = 8

# Types of the fields of header and properties (messaging.xml), as `_field` takes them.
_BOOLEAN: Final = 1
_UBYTE: Final = 2
_UINT: Final = 3
_BINARY: Final = 4
_STRING: Final = 5
_SYMBOL: Final = 6
_TIMESTAMP: Final = 7
_MESSAGE_ID: Final = 8
_CONTENT_TYPE: Final = 9
_CONTENT_ENCODING: Final = 10

_HEADER: Final = bytes([_BOOLEAN, _UBYTE, _UINT, _BOOLEAN, _UINT])
_PROPERTIES: Final = bytes(
    [
        _MESSAGE_ID,
        _BINARY,
        _STRING,
        _STRING,
        _STRING,
        _MESSAGE_ID,
        _CONTENT_TYPE,
        _CONTENT_ENCODING,
        _TIMESTAMP,
        _TIMESTAMP,
        _STRING,
        _UINT,
        _STRING,
    ]
)
# What the tokens of a media type are made of (RFC 2045, section 5.1): a 1 for each.
_TOKEN: Final = bytes(
    [1 if 0x20 < octet < 0x7F and octet not in b'()<>@,;:\\"/[]?=' else 0 for octet in range(256)]
)


def outline(octets: bytes, pos: i64, end: i64) -> i64:
    """The sections of the message octets[pos:end], or 0: decode it to know.

    Four bits a section, the last one lowest: its descriptor less 0x6F (header 1, to footer 9). Above them
    TYPED, OPTIONAL and MARKED_DURABLE.
    """
    sections: i64 = 0
    traits: i64 = 0
    required = False
    count: i64 = 0
    while pos < end:
        if end - pos < 4 or octets[pos] != 0 or octets[pos + 1] != 0x53 or count >= _MOST_SECTIONS:
            return 0
        code: i64 = octets[pos + 2]
        first: i64 = octets[pos + 3]
        pos += 3
        if code == 0x70:
            # The first field of a list that is not empty.
            if _durable(octets, pos, end):
                traits = traits | MARKED_DURABLE
            pos = _fields(octets, pos, end, _HEADER)
        elif code == 0x73:
            pos = _fields(octets, pos, end, _PROPERTIES)
            if pos >= TYPED:
                pos -= TYPED
                traits = traits | TYPED
        elif code == 0x74:
            pos = _map(octets, pos, end, 0xA1, True, False, 0)
        elif code == 0x71 or code == 0x72 or code == 0x78:
            pos = _map(octets, pos, end, 0xA3, False, True, 0)
            if pos >= OPTIONAL:
                pos -= OPTIONAL
                traits = traits | OPTIONAL
            elif pos >= TYPED:
                pos -= TYPED
                required = True
        elif code == 0x75:
            if first == 0x40:
                return 0
            pos = _field(octets, pos, end, _BINARY)
        elif code == 0x76:
            if first != 0x45 and first != 0xC0 and first != 0xD0:
                return 0
            pos = _value(octets, pos, end, 0)
        elif code == 0x77:
            pos = _value(octets, pos, end, 0)
        else:
            return 0
        if pos < 0:
            return 0
        sections = sections << 4 | (code - 0x6F)
        count += 1
    if required:
        traits = traits & ~OPTIONAL
    return sections | traits


def section_ends(octets: bytes, pos: i64, end: i64) -> list[int]:
    """Where each section of a message ends that `outline` knows to be sound."""
    ends: list[int] = []
    while pos < end:
        pos = behind(octets, pos + 3, end)
        if pos < 0:
            return []
        ends.append(pos)
    return ends


def message_id(octets: bytes, pos: i64, end: i64) -> bytes:
    """The message-id as it is encoded in the properties section octets[pos:end], b"" if there is none."""
    if end - pos < 3 or octets[pos + 3] == 0x45:
        return b""
    first = _items(octets, pos + 3)
    if _count(octets, pos + 3) == 0 or octets[first] == 0x40:
        return b""
    behind = _value(octets, first, end, 0)
    return octets[first:behind] if behind > first else b""


def entries(octets: bytes, pos: i64, end: i64) -> list[int]:
    """Where in the section octets[pos:end] each item of its list or map begins, and where the last one ends.

    Of a section that `outline` knows to be sound. The items of a map are its keys and values in turn.
    """
    places: list[int] = []
    first = pos + 3
    if octets[first] == 0x45:
        return places
    count = _count(octets, first)
    at = _items(octets, first)
    while count > 0 and at >= 0:
        places.append(at)
        at = behind(octets, at, end)
        count -= 1
    places.append(at)
    return places if at >= 0 else []


def delivery_count(octets: bytes, pos: i64, end: i64) -> i64:
    """The delivery-count in the header of the sound message octets[pos:end], 0 if there is none."""
    if end - pos < 4 or octets[pos + 2] != 0x70:
        return 0
    places = entries(octets, pos, end)
    if len(places) < 6:
        return 0
    at: i64 = places[4]
    code: i64 = octets[at]
    if code == 0x52:
        return octets[at + 1]
    if code == 0x70:
        return u32(octets, at + 1)
    return 0


def pairs(octets: bytes, pos: i64) -> int:
    """How many pairs the map of the section has that begins at `pos` and is sound."""
    return int(_count(octets, pos + 3) // 2)


def field_count(octets: bytes, pos: i64) -> i64:
    """How many fields the composite has whose section begins at `pos` and is sound."""
    if octets[pos + 3] == 0x45:
        return 0
    return _count(octets, pos + 3)


def first_field(octets: bytes, pos: i64) -> i64:
    """Where the first of them stands, if there is one."""
    return _items(octets, pos + 3)


def behind(octets: bytes, pos: i64, end: i64) -> i64:
    """The index behind a value that is known to be sound, or -1: nothing in it is looked at."""
    if pos >= end:
        return -1
    code: i64 = octets[pos]
    size: i64 = 0
    if code >= 0xA0:
        size = _size(octets, pos + 1, end, code & 0x10 != 0)
        if size < 0:
            return -1
        size += 1
        if code & 0x10:
            size += 3
    elif code >= 0x50:
        size = 1 << ((code >> 4) - 5)
    if size > end - pos - 1:
        return -1
    return pos + 1 + size


# Each walk takes the index of a constructor and the end of what encloses it, and gives the index
# behind the value, or -1. No conditional expressions: mypyc makes objects of the numbers in them.


def _size(octets: bytes, pos: i64, end: i64, wide: bool) -> i64:
    """The size that stands at `pos`, if the data it claims is there, else -1."""
    size: i64
    if wide:
        if end - pos < 4:
            return -1
        size = u32(octets, pos)
        pos += 4
    else:
        if end - pos < 1:
            return -1
        size = octets[pos]
        pos += 1
    if size > end - pos:
        return -1
    return size


def _text(octets: bytes, pos: i64, end: i64) -> i64:
    """Plain ASCII up to `end`: valid in any text type."""
    at = pos
    while end - at >= 4:
        # Four at a time: each number is an `i64` of its own, so that none becomes an object.
        a: i64 = octets[at]
        b: i64 = octets[at + 1]
        c: i64 = octets[at + 2]
        d: i64 = octets[at + 3]
        if (a | b | c | d) >= 0x80:
            return -1
        at += 4
    while at < end:
        last: i64 = octets[at]
        if last >= 0x80:
            return -1
        at += 1
    return end


def _variable(octets: bytes, pos: i64, end: i64) -> i64:
    """A binary, string or symbol whose format code stands at `pos`."""
    code: i64 = octets[pos]
    wide = code >= 0xB0
    size = _size(octets, pos + 1, end, wide)
    if size < 0:
        return -1
    data = pos + 2
    if wide:
        data = pos + 5
    if code & 0xF == 0:
        return data + size
    return _text(octets, data, data + size)


def _field(octets: bytes, pos: i64, end: i64, kind: i64) -> i64:
    """A field of a composite: null, or a value of its type."""
    if pos >= end:
        return -1
    code: i64 = octets[pos]
    if code == 0x40:
        return pos + 1
    width: i64 = -1
    if kind == _BOOLEAN:
        if code == 0x41 or code == 0x42:
            width = 0
    elif kind == _UBYTE:
        if code == 0x50:
            width = 1
    elif kind == _UINT:
        if code == 0x70:
            width = 4
        elif code == 0x52:
            width = 1
        elif code == 0x43:
            width = 0
    elif kind == _TIMESTAMP:
        # From 2004 to 2074, if it counts milliseconds.
        if code == 0x83 and end - pos > 8 and octets[pos + 1] == 0 and octets[pos + 2] == 0:
            if 1 <= octets[pos + 3] <= 2:
                width = 8
    elif kind == _MESSAGE_ID and code == 0x80:
        width = 8
    elif kind == _MESSAGE_ID and code == 0x53:
        width = 1
    elif kind == _MESSAGE_ID and code == 0x44:
        width = 0
    elif kind == _MESSAGE_ID and code == 0x98:
        if not is_uuid(octets, pos, end):
            return -1
        width = 16
    elif kind == _CONTENT_ENCODING:
        return -1
    else:
        low = code & 0xF
        if code < 0xA0 or code >= 0xC0:
            return -1
        if kind == _CONTENT_TYPE:
            after = -1
            if low == 3:
                after = _variable(octets, pos, end)
            if after < 0:
                return -1
            first = pos + 2
            if code >= 0xB0:
                first = pos + 5
            if not is_media_type(octets, first, after):
                return -1
            return after
        if kind == _MESSAGE_ID and low != 0 and low != 1:
            return -1
        if (kind == _BINARY and low != 0) or (kind == _STRING and low != 1) or (kind == _SYMBOL and low != 3):
            return -1
        return _variable(octets, pos, end)
    if width < 0 or end - pos - 1 < width:
        return -1
    return pos + 1 + width


def is_media_type(octets: bytes, pos: i64, end: i64) -> bool:
    """Whether octets[pos:end] begin as a media type does: type, slash, subtype (RFC 2045, section 5.1).

    Behind them stands nothing, or a semicolon and what may be parameters.
    """
    at = pos
    while at < end and _TOKEN[octets[at]] == 1:
        at += 1
    if at == pos or at >= end or octets[at] != 0x2F:
        return False
    at += 1
    pos = at
    while at < end and _TOKEN[octets[at]] == 1:
        at += 1
    if at == pos:
        return False
    while at < end and octets[at] == 0x20:
        at += 1
    return at >= end or octets[at] == 0x3B


def is_uuid(octets: bytes, pos: i64, end: i64) -> bool:
    """Whether the uuid whose format code stands at `pos` has the variant and a version of RFC 4122."""
    if end - pos < 17 or octets[pos + 9] >> 6 != 2:
        return False
    version = octets[pos + 7] >> 4
    return 1 <= version <= 8


def _stop(octets: bytes, pos: i64, end: i64) -> i64:
    """Where the list or map ends whose format code stands at `pos`, -1 if its count has no room."""
    wide = octets[pos] >= 0xD0
    size = _size(octets, pos + 1, end, wide)
    if wide:
        if size < 4:
            return -1
        return pos + 5 + size
    if size < 1:
        return -1
    return pos + 2 + size


def _count(octets: bytes, pos: i64) -> i64:
    """How many items it counts."""
    if octets[pos] >= 0xD0:
        return u32(octets, pos + 5)
    return octets[pos + 2]


def _items(octets: bytes, pos: i64) -> i64:
    """Where the first of them stands."""
    if octets[pos] >= 0xD0:
        return pos + 9
    return pos + 3


def _fields(octets: bytes, pos: i64, end: i64, kinds: bytes) -> i64:
    """The list of a composite with fields of these kinds; with a content-type TYPED is added."""
    if pos >= end:
        return -1
    code: i64 = octets[pos]
    if code == 0x45:
        return pos + 1
    if code != 0xC0 and code != 0xD0:
        return -1
    stop = _stop(octets, pos, end)
    if stop < 0:
        return -1
    count = _count(octets, pos)
    if count > len(kinds):
        return -1
    at = _items(octets, pos)
    index: i64 = 0
    typed: i64 = 0
    while index < count:
        first = at
        at = _field(octets, at, stop, kinds[index])
        if at < 0:
            return -1
        if kinds[index] == _CONTENT_TYPE and octets[first] != 0x40:
            typed = TYPED
        index += 1
    if at != stop:
        return -1
    return stop + typed


def _durable(octets: bytes, pos: i64, end: i64) -> bool:
    """Whether the header whose list stands at `pos` has true in its first field."""
    if end - pos < 4 or (octets[pos] != 0xC0 and octets[pos] != 0xD0):
        return False
    stop = _stop(octets, pos, end)
    if stop < 0 or _count(octets, pos) == 0:
        return False
    at = _items(octets, pos)
    if at >= stop:
        return False
    return octets[at] == 0x41 or (octets[at] == 0x56 and stop - at > 1 and octets[at + 1] == 1)


def _map(octets: bytes, pos: i64, end: i64, key_code: i64, simple: bool, private: bool, depth: i64) -> i64:
    """A map whose keys are short names of one format code, all different.

    simple: no compound values. private: all keys begin with `x-`; to what it gives OPTIONAL is added if all
    begin with `x-opt-`, else TYPED, if there are any.
    """
    if pos >= end or (octets[pos] != 0xC1 and octets[pos] != 0xD1):
        return -1
    stop = _stop(octets, pos, end)
    if stop < 0:
        return -1
    count = _count(octets, pos)
    if count & 1 or count > 2 * _MOST_KEYS:
        return -1
    first = _items(octets, pos)
    at = first
    done: i64 = 0
    optional = True
    while done < count:
        if at >= stop or octets[at] != key_code or stop - at < 2:
            return -1
        if _repeats(octets, first, at, stop, depth):
            return -1
        if private:
            if octets[at + 1] < 2 or octets[at + 2] != 0x78 or octets[at + 3] != 0x2D:
                return -1
            if octets[at + 1] < 6 or octets[at + 4] != 0x6F or octets[at + 5] != 0x70:
                optional = False
            elif octets[at + 6] != 0x74 or octets[at + 7] != 0x2D:
                optional = False
        at = _variable(octets, at, stop)
        if at < 0 or at >= stop:
            return -1
        if simple and (octets[at] >= 0xC0 or octets[at] == 0x45):
            return -1
        at = _value(octets, at, stop, depth + 1)
        if at < 0:
            return -1
        done += 2
    if at != stop:
        return -1
    if private and count > 0:
        if optional:
            return stop + OPTIONAL
        return stop + TYPED
    return stop


def _repeats(octets: bytes, first: i64, key: i64, stop: i64, depth: i64) -> bool:
    """Whether the short name at `key` stands as a key between `first` and there already."""
    size: i64 = octets[key + 1]
    if size > stop - key - 2:
        return True
    at = first
    while at < key:
        if octets[at + 1] == size and octets[at + 2 : at + 2 + size] == octets[key + 2 : key + 2 + size]:
            return True
        at = _value(octets, at + 2 + octets[at + 1], stop, depth + 1)
        if at < 0:
            return True
    return False


def _value(octets: bytes, pos: i64, end: i64, depth: i64) -> i64:
    """Any plain value. Arrays, described values, maps with other keys than names: -1."""
    if pos >= end:
        return -1
    code: i64 = octets[pos]
    if code < 0x50:
        if 0x40 <= code <= 0x45:
            return pos + 1
        return -1
    if code < 0xA0:
        if code & 0xF > 5 and code != 0x98:
            return -1
        width: i64 = 1 << ((code >> 4) - 5)
        # What may hold octets that are no value of the type: boolean, char, uuid; and codes nobody assigned.
        if code == 0x98 and not is_uuid(octets, pos, end):
            return -1
        if code == 0x73 or code == 0x56 or not _assigned(code) or end - pos - 1 < width:
            return -1
        return pos + 1 + width
    if code < 0xC0:
        low = code & 0xF
        if low == 0 or low == 1 or low == 3:
            return _variable(octets, pos, end)
        return -1
    if depth >= _DEEPEST:
        return -1
    if code == 0xC1 or code == 0xD1:
        return _map(octets, pos, end, 0xA1, False, False, depth + 1)
    if code != 0xC0 and code != 0xD0:
        return -1
    stop = _stop(octets, pos, end)
    if stop < 0:
        return -1
    count = _count(octets, pos)
    at = _items(octets, pos)
    while count > 0:
        at = _value(octets, at, stop, depth + 1)
        if at < 0:
            return -1
        count -= 1
    if at != stop:
        return -1
    return stop


def _assigned(code: i64) -> bool:
    """Whether a fixed-width format code from 0x50 on is assigned."""
    if code < 0x60:
        return code <= 0x55
    if code < 0x80:
        return code == 0x60 or code == 0x61 or 0x70 <= code <= 0x72 or code == 0x74
    return 0x80 <= code <= 0x84 or code == 0x94 or code == 0x98

"""Messages as JSON straight from their octets, for those that are as nearly all are.

`json_form.message_json` decodes a message into objects and writes these. That is two thirds of the time
that a capture of small messages takes, so what is plain goes another way: `QuickMessages` walks the octets
and writes the same text as it goes. On anything out of the ordinary (a fault of any kind, an array, a
decimal, a described value in a body, a section that stands twice, whatever might be a secret) it gives up,
and the message goes the long way. Tests hold the two ways to the same text.
"""

import math
import struct
from json.encoder import encode_basestring_ascii as quote
from typing import Final

from amqpscope.report.digits import digits
from amqpscope.report.moment import Moments
from amqpscope.report.secrets import is_secret_key, without_password
from dissectors.amqp10.outline import is_uuid
from dissectors.wire import i64, u16, u32, u64

__all__ = ["QuickMessages"]

_LONGEST: Final = 256 * 1024
"""Octets of a message. Longer ones are rare, and have no more values than the decoder's own bound."""

_DEEPEST: Final = 8
"""Levels of lists and maps in lists and maps."""

_REMEMBERED: Final = 4096
"""Short texts whose JSON is remembered: keys, addresses, subjects, content types come again and again."""

_SHORT_SECTION: Final = 160
"""Octets of a header or map section that is remembered: many messages differ in their ids and bodies only."""

_SHORT: Final = 40
"""Octets of a text that is remembered."""

_LAST_TIMESTAMP: Final = 9_000_000_000_000
"""Milliseconds since 1970, in the year 2255: as nanoseconds still below 2**63."""

_UTF8_MARK = b"\xef\xbb\xbf"

# Lists, and not tuples: compiled, a tuple of known length is made anew each time it is looked into by a
# number, which took a quarter of the time of a message.

# The sections, by the last digit of their descriptor 0x7_.
_NAMES: Final[list[str]] = [
    "header",
    "delivery-annotations",
    "message-annotations",
    "properties",
    "application-properties",
    "data",
    "amqp-sequence",
    "amqp-value",
    "footer",
]

# What the fields of properties are.
_ID: Final = 0
_BINARY: Final = 1
_ADDRESS: Final = 2
_SUBJECT: Final = 3
_STRING: Final = 4
_SYMBOL: Final = 5
_TIME: Final = 6
_UINT: Final = 7

# The fields of properties in order: their names as JSON has them, and what each is.
_PROPERTIES: Final[list[str]] = [
    ', "message-id": ',
    ', "user-id": ',
    ', "to": ',
    ', "subject": ',
    ', "reply-to": ',
    ', "correlation-id": ',
    ', "content-type": ',
    ', "content-encoding": ',
    ', "absolute-expiry-time": ',
    ', "creation-time": ',
    ', "group-id": ',
    ', "group-sequence": ',
    ', "reply-to-group-id": ',
]
_KINDS: Final[list[int]] = [
    _ID,
    _BINARY,
    _ADDRESS,
    _SUBJECT,
    _STRING,
    _ID,
    _SYMBOL,
    _SYMBOL,
    _TIME,
    _TIME,
    _STRING,
    _UINT,
    _STRING,
]


class QuickMessages:
    """Writes messages of format 0 as JSON. `sound` is False once it has given one up."""

    def __init__(self) -> None:
        self.buf: bytes = b""
        self.pos: i64 = 0
        self.end: i64 = 0
        self.sound: bool = True
        self._sections: dict[bytes, str] = {}
        self._texts: dict[bytes, str] = {}
        self._keys: dict[bytes, str] = {}
        self._moments: Moments = Moments()

    def text(self, octets: bytes, bodies: bool) -> str:
        """A complete message, or "" if it has to go the long way. bodies: with the values of its body."""
        self.buf = octets
        self.pos = 0
        self.end = len(octets)
        self.sound = True
        end = self.end
        if end > _LONGEST:
            return ""
        text = '{"format": 0, "size": ' + digits(end) + ', "complete": true'
        body = ""
        seen: i64 = 0
        while self.pos < end:
            start = self.pos
            if end - start < 4 or octets[start] != 0 or octets[start + 1] != 0x53:
                return ""
            kind: i64 = octets[start + 2] - 0x70
            if kind < 0 or kind > 8:
                return ""
            self.pos = start + 3
            if 5 <= kind <= 7:
                value = self.body(kind, bodies)
                if not self.sound:
                    return ""
                body += ', {"section": "' + _NAMES[kind] + '", "size": ' + digits(self.pos - start)
                body += ', "value": ' + value + "}" if bodies else "}"
                continue
            if seen & (1 << kind):
                return ""
            seen |= 1 << kind
            if kind == 3:
                text += ', "properties": {'
                text += self.properties()
                text += "}"
            else:
                text += self.section(kind, start)
            if not self.sound:
                return ""
        return text + ', "body": [' + body[2:] + "]}"

    def give_up(self) -> str:
        """This message is not for the quick way."""
        self.sound = False
        return ""

    # Sections

    def section(self, kind: i64, start: i64) -> str:
        """The member for a header or a map that begins at `start`. Short ones are remembered as a whole."""
        octets = self.buf
        stop: i64 = 0
        if self.pos + 1 < self.end and octets[self.pos] & 0xFE == 0xC0:
            stop = self.pos + 2 + octets[self.pos + 1]
            if stop <= self.end and stop - start <= _SHORT_SECTION:
                known = self._sections.get(octets[start:stop])
                if known is not None:
                    self.pos = stop
                    return known
            else:
                stop = 0
        value = self.header() if kind == 0 else self.section_map(kind == 4)
        if not self.sound:
            return ""
        member = f', "{_NAMES[kind]}": {{{value}}}'
        if stop == self.pos:
            if len(self._sections) >= _REMEMBERED:
                self._sections.clear()
            self._sections[octets[start:stop]] = member
        return member

    def body(self, kind: i64, shown: bool) -> str:
        """A data, amqp-sequence or amqp-value. The octets of a data are written only if they are shown."""
        code: i64 = self.buf[self.pos]
        if (kind == 5 and code != 0xA0 and code != 0xB0) or (
            kind == 6 and code != 0x45 and code != 0xC0 and code != 0xD0
        ):
            return self.give_up()
        if kind == 5 and not shown:
            self.span(code)
            return ""
        return self.value(0)

    def open_list(self, most: i64) -> i64:
        """Go into the list at `pos`: its count of elements, at most `most`, or -1. Sets `end` to its end."""
        code: i64 = self.buf[self.pos]
        if code == 0x45:
            self.pos += 1
            self.end = self.pos
            return 0
        return self.open_compound(code == 0xC0, code == 0xD0, most)

    def open_compound(self, small: bool, large: bool, most: i64) -> i64:
        """The same, of a list or map whose format code has been looked at."""
        pos = self.pos + 1
        left = self.end - pos
        size: i64 = 0
        count: i64 = 0
        if small:
            if left < 2:
                return -1
            size = self.buf[pos]
            count = self.buf[pos + 1]
            if size < 1 or size > left - 1 or count > most:
                return -1
            self.pos = pos + 2
            self.end = pos + 1 + size
            return count
        if not large or left < 8:
            return -1
        size = u32(self.buf, pos)
        count = u32(self.buf, pos + 4)
        if size < 4 or size > left - 4 or count > most:
            return -1
        self.pos = pos + 8
        self.end = pos + 4 + size
        return count

    def header(self) -> str:
        """The fields of a header."""
        outer = self.end
        count = self.open_list(5)
        if count < 0:
            return self.give_up()
        text = ""
        if count > 0:
            text = self.boolean(', "durable": ')
        if count > 1 and self.sound and not self.null():
            if self.end - self.pos < 2 or self.buf[self.pos] != 0x50:
                return self.give_up()
            text += ', "priority": ' + str(self.buf[self.pos + 1])
            self.pos += 2
        if count > 2:
            text += self.uint(', "ttl": ')
        if count > 3:
            text += self.boolean(', "first-acquirer": ')
        if count > 4:
            text += self.uint(', "delivery-count": ')
        if self.pos != self.end:
            return self.give_up()
        self.end = outer
        return text[2:]

    def properties(self) -> str:
        """The fields of properties."""
        outer = self.end
        count = self.open_list(13)
        if count < 0:
            return self.give_up()
        text = ""
        index: i64 = 0
        while index < count:
            if self.pos >= self.end:
                return self.give_up()
            if self.buf[self.pos] != 0x40:
                value = self.property(_KINDS[index])
                if not self.sound:
                    return ""
                text += _PROPERTIES[index]
                text += value
            else:
                self.pos += 1
            index += 1
        if self.pos != self.end:
            return self.give_up()
        self.end = outer
        return text[2:]

    def property(self, kind: i64) -> str:
        """One field of properties that is not null."""
        code: i64 = self.buf[self.pos]
        if kind == _ID:
            if code == 0xA1 or code == 0xB1:
                return self.string(self.span(code), False)
            if code in (0xA0, 0xB0, 0x53, 0x80, 0x44, 0x98):
                return self.value(0)
            return self.give_up()
        if kind == _TIME:
            return self.timestamp() if code == 0x83 else self.give_up()
        if kind == _UINT:
            return self.uint("")
        if kind == _BINARY:
            if code != 0xA0 and code != 0xB0:
                return self.give_up()
            size = self.span(code)
            return '"' + self.buf[self.pos - size : self.pos].hex() + '"' if size >= 0 else ""
        if kind == _SYMBOL:
            return self.symbol(self.span(code)) if code == 0xA3 or code == 0xB3 else self.give_up()
        if code != 0xA1 and code != 0xB1:
            return self.give_up()
        text = self.string(self.span(code), True)
        if kind == _ADDRESS and "$" in text:
            return self.give_up()
        if kind == _SUBJECT and text == '"set-token"':
            return self.give_up()
        return text

    def section_map(self, application: bool) -> str:
        """The entries of a map section: keys are strings in application properties, symbols in the others."""
        outer = self.end
        code: i64 = self.buf[self.pos]
        count = self.open_compound(code == 0xC1, code == 0xD1, 2048)
        if count < 0 or count & 1:
            return self.give_up()
        text = ""
        keys: list[str] = []
        read: i64 = 0
        while read < count:
            if self.end - self.pos < 2:
                return self.give_up()
            code = self.buf[self.pos]
            if application:
                if code != 0xA1 and code != 0xB1:
                    return self.give_up()
            elif code != 0xA3 and code != 0xB3:
                return self.give_up()
            key = self.key(self.span(code))
            if not self.sound or key in keys or (application and key == '"operation": '):
                return self.give_up()
            keys.append(key)
            if self.pos >= self.end:
                return self.give_up()
            code = self.buf[self.pos]
            if application and (code >= 0xC0 or code == 0x45):
                # A list, map or array is none of the types that an application property may have.
                return self.give_up()
            value = self.value(0)
            if not self.sound:
                return ""
            text += ", "
            text += key
            text += value
            read += 2
        if self.pos != self.end or (count == 2 and keys[0] == '"map": ') or len(keys) > 64:
            return self.give_up()
        self.end = outer
        return text[2:]

    # Fields

    def null(self) -> bool:
        """Whether null stands here; then it is stepped over."""
        if self.pos < self.end and self.buf[self.pos] == 0x40:
            self.pos += 1
            return True
        return False

    def boolean(self, name: str) -> str:
        """A boolean field, behind its name; nothing for null."""
        if self.null():
            return ""
        pos = self.pos
        if pos < self.end:
            code: i64 = self.buf[pos]
            if code == 0x41 or code == 0x42:
                self.pos = pos + 1
                return name + ("true" if code == 0x41 else "false")
            if code == 0x56 and self.end - pos >= 2 and self.buf[pos + 1] <= 1:
                self.pos = pos + 2
                return name + ("true" if self.buf[pos + 1] == 1 else "false")
        return self.give_up()

    def uint(self, name: str) -> str:
        """A uint field, behind its name; nothing for null."""
        if self.null():
            return ""
        pos = self.pos
        left = self.end - pos
        if left > 0:
            code: i64 = self.buf[pos]
            if code == 0x43:
                self.pos = pos + 1
                return name + "0"
            if code == 0x52 and left >= 2:
                self.pos = pos + 2
                return name + str(self.buf[pos + 1])
            if code == 0x70 and left >= 5:
                self.pos = pos + 5
                return name + str(u32(self.buf, pos + 1))
        return self.give_up()

    def span(self, code: i64) -> i64:
        """Step over a value of variable width. Gives the octets of its data, which end at `pos`; -1: none."""
        pos = self.pos
        left = self.end - pos
        size: i64 = 0
        if code < 0xB0:
            if left < 2:
                self.sound = False
                return -1
            size = self.buf[pos + 1]
            pos += 2
            left -= 2
        else:
            if left < 5:
                self.sound = False
                return -1
            size = u32(self.buf, pos + 1)
            pos += 5
            left -= 5
        if size > left:
            self.sound = False
            return -1
        self.pos = pos + size
        return size

    def string(self, size: i64, comes_again: bool) -> str:
        """The string whose `size` octets end at `pos`. comes_again: it is worth remembering."""
        if size < 0:
            return ""
        data = self.buf[self.pos - size : self.pos]
        if comes_again and size <= _SHORT:
            known = self._texts.get(data)
            if known is not None:
                return known
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            return self.give_up()
        if data.startswith(_UTF8_MARK):
            return self.give_up()
        shown = quote(without_password(text) if "://" in text else text)
        if comes_again and size <= _SHORT:
            if len(self._texts) >= _REMEMBERED:
                self._texts.clear()
            self._texts[data] = shown
        return shown

    def symbol(self, size: i64) -> str:
        """The text of the symbol whose `size` octets end at `pos`."""
        if size < 0 or not self.buf[self.pos - size : self.pos].isascii():
            return self.give_up()
        return self.string(size, True)

    def key(self, size: i64) -> str:
        """The key of a map whose `size` octets end at `pos`, with a colon. Gives up on that of a secret."""
        if size < 0:
            return ""
        data = self.buf[self.pos - size : self.pos]
        known = self._keys.get(data)
        if known is not None:
            return known
        if not data.isascii() or is_secret_key(data):
            return self.give_up()
        shown = self.string(size, False) + ": "
        if len(self._keys) >= _REMEMBERED:
            self._keys.clear()
        if size <= _SHORT and self.sound:
            self._keys[data] = shown
        return shown

    # Values of any type

    def value(self, depth: i64) -> str:
        """The value at `pos`, which is before `end`, as `json_form.value_json` writes it."""
        buf = self.buf
        pos = self.pos
        code: i64 = buf[pos]
        if code >= 0xA0:
            if code == 0xA1 or code == 0xB1:
                return self.string(self.span(code), True)
            if code == 0xA3 or code == 0xB3:
                return '{"symbol": ' + self.symbol(self.span(code)) + "}"
            if code == 0xA0 or code == 0xB0:
                size = self.span(code)
                return '{"binary": "' + buf[self.pos - size : self.pos].hex() + '"}' if size >= 0 else ""
            return self.collection(code, depth)
        self.pos = pos + 1
        if code < 0x50:
            if code == 0x40:
                return "null"
            if code == 0x41:
                return "true"
            if code == 0x42:
                return "false"
            if code == 0x43:
                return '{"uint": 0}'
            if code == 0x44:
                return '{"ulong": 0}'
            return "[]" if code == 0x45 else self.give_up()
        left = self.end - pos - 1
        number: i64 = 0
        if code < 0x60:
            if left < 1:
                return self.give_up()
            self.pos = pos + 2
            number = buf[pos + 1]
            if code == 0x52:
                return '{"uint": ' + digits(number) + "}"
            if code == 0x53:
                return '{"ulong": ' + digits(number) + "}"
            if code == 0x50:
                return '{"ubyte": ' + digits(number) + "}"
            if code == 0x56 and number <= 1:
                return "true" if number == 1 else "false"
            if number >= 0x80:
                number -= 0x100
            if code == 0x54:
                return '{"int": ' + digits(number) + "}"
            if code == 0x55:
                return '{"long": ' + digits(number) + "}"
            return '{"byte": ' + digits(number) + "}" if code == 0x51 else self.give_up()
        if code < 0x70:
            if left < 2:
                return self.give_up()
            self.pos = pos + 3
            number = u16(buf, pos + 1)
            if code == 0x60:
                return '{"ushort": ' + digits(number) + "}"
            if number >= 0x8000:
                number -= 0x10000
            return '{"short": ' + digits(number) + "}" if code == 0x61 else self.give_up()
        if code < 0x80:
            if left < 4:
                return self.give_up()
            self.pos = pos + 5
            number = u32(buf, pos + 1)
            if code == 0x70:
                return '{"uint": ' + digits(number) + "}"
            if code == 0x71:
                return '{"int": ' + str(number - 0x1_0000_0000 if number >= 0x8000_0000 else number) + "}"
            return self.real(code) if code == 0x72 else self.give_up()
        return self.wide(code, left)

    def wide(self, code: i64, left: i64) -> str:
        """A value of eight or sixteen octets whose format code was stepped over."""
        pos = self.pos
        if left < (8 if code < 0x90 else 16):
            return self.give_up()
        if code == 0x83:
            self.pos = pos - 1
            return '{"timestamp": ' + self.timestamp() + "}"
        if code == 0x98:
            if not is_uuid(self.buf, pos - 1, pos + left):
                return self.give_up()
            self.pos = pos + 16
            text = self.buf[pos : pos + 16].hex()
            return '{"uuid": "' + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:])) + '"}'
        self.pos = pos + 8
        if code == 0x80:
            return '{"ulong": ' + str(u64(self.buf, pos)) + "}"
        if code == 0x81:
            number = u64(self.buf, pos)
            return '{"long": ' + str(number - (1 << 64) if number >= 1 << 63 else number) + "}"
        return self.real(code) if code == 0x82 else self.give_up()

    def real(self, code: i64) -> str:
        """A float or double, whose octets end at `pos`."""
        number: float = struct.unpack_from(
            ">f" if code == 0x72 else ">d", self.buf, self.pos - (4 if code == 0x72 else 8)
        )[0]
        if not math.isfinite(number):
            return self.give_up()
        text = repr(number)
        return '{"float": ' + text + "}" if code == 0x72 else text

    def timestamp(self) -> str:
        """The timestamp at `pos`, in quotes."""
        pos = self.pos
        if self.end - pos < 9:
            return self.give_up()
        self.pos = pos + 9
        high = u32(self.buf, pos + 1)
        if high >= 0x8000_0000:
            return self.give_up()
        milliseconds = (high << 32) | u32(self.buf, pos + 5)
        if milliseconds > _LAST_TIMESTAMP:
            return self.give_up()
        return '"' + self._moments.iso(milliseconds * 1_000_000)[:23] + 'Z"'

    def collection(self, code: i64, depth: i64) -> str:
        """The list or map at `pos`."""
        is_map = code == 0xC1 or code == 0xD1
        if depth >= _DEEPEST or (not is_map and code != 0xC0 and code != 0xD0):
            return self.give_up()
        outer = self.end
        count = self.open_compound(code < 0xD0, code >= 0xD0, _LONGEST)
        if count < 0 or (is_map and count & 1):
            return self.give_up()
        items: list[str] = []
        keys: set[str] = set()
        read: i64 = 0
        while read < count:
            if self.pos >= self.end:
                return self.give_up()
            if is_map:
                key_code: i64 = self.buf[self.pos]
                start = self.pos
                if key_code not in (0xA1, 0xA3, 0xB1, 0xB3):
                    return self.give_up()
                size = self.span(key_code)
                if size < 0 or is_secret_key(self.buf[self.pos - size : self.pos]):
                    return self.give_up()
                self.pos = start
                key = self.value(depth)
                if not self.sound or key in keys or self.pos >= self.end:
                    return self.give_up()
                keys.add(key)
                items.append("[" + key + ", " + self.value(depth + 1) + "]")
                read += 2
            else:
                items.append(self.value(depth + 1))
                read += 1
            if not self.sound:
                return ""
        if self.pos != self.end:
            return self.give_up()
        self.end = outer
        return '{"map": [' + ", ".join(items) + "]}" if is_map else "[" + ", ".join(items) + "]"

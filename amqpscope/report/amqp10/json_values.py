"""Values of AMQP 1.0 as JSON straight from their octets: the alphabet of `json_quick`.

A reader stands at `pos` and may go up to `end`, that of the innermost list or map. What is out of the
ordinary ends it: `sound` is False from then on, and whatever is given has no meaning.
"""

import math
import struct
from json.encoder import encode_basestring_ascii as quote
from typing import Final

from amqpscope.model.passwords import without_password
from amqpscope.report.digits import digits
from amqpscope.report.moment import Moments
from amqpscope.report.secrets import is_secret_key
from dissectors.amqp10.outline import is_uuid
from dissectors.wire import i64, u16, u32, u64

__all__ = ["LONGEST", "REMEMBERED", "QuickValues"]

LONGEST: Final = 256 * 1024
"""Octets of a message. Longer ones are rare, and have no more values than the decoder's own bound."""

REMEMBERED: Final = 4096
"""Short texts whose JSON is remembered: keys, addresses, subjects, content types come again and again."""

_DEEPEST: Final = 8
"""Levels of lists and maps in lists and maps."""

_SHORT: Final = 40
"""Octets of a text that is remembered."""

_LAST_TIMESTAMP: Final = 9_000_000_000_000
"""Milliseconds since 1970, in the year 2255: as nanoseconds still below 2**63."""

_UTF8_MARK: Final = b"\xef\xbb\xbf"


class QuickValues:
    """Writes values as JSON, as `json_form.value_json` does. `sound` is False once it has given up."""

    def __init__(self) -> None:
        self.buf: bytes = b""
        self.pos: i64 = 0
        self.end: i64 = 0
        self.sound: bool = True
        self._texts: dict[bytes, str] = {}
        self._keys: dict[bytes, str] = {}
        self._moments: Moments = Moments()

    def give_up(self) -> str:
        """This message is not for the quick way."""
        self.sound = False
        return ""

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
            if len(self._texts) >= REMEMBERED:
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
        if len(self._keys) >= REMEMBERED:
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
        return '"' + self._moments.milliseconds(milliseconds) + '"'

    def collection(self, code: i64, depth: i64) -> str:
        """The list or map at `pos`."""
        is_map = code == 0xC1 or code == 0xD1
        if depth >= _DEEPEST or (not is_map and code != 0xC0 and code != 0xD0):
            return self.give_up()
        outer = self.end
        count = self.open_compound(code < 0xD0, code >= 0xD0, LONGEST)
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

"""Messages as JSON straight from their octets, for those that are as nearly all are.

`json_form.message_json` decodes a message into objects and writes these. That is two thirds of the time
that a capture of small messages takes, so what is plain goes another way: `QuickMessages` walks the octets
and writes the same text as it goes. On anything out of the ordinary (a fault of any kind, an array, a
decimal, a described value in a body, a section that stands twice, whatever might be a secret) it gives up,
and the message goes the long way. Tests hold the two ways to the same text.
"""

from typing import Final

from amqpscope.report.amqp10.json_values import LONGEST, REMEMBERED, QuickValues
from amqpscope.report.digits import digits
from dissectors.wire import i64

__all__ = ["QuickMessages"]

_SHORT_SECTION: Final = 160
"""Octets of a header or map section that is remembered: many messages differ in their ids and bodies only."""

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


class QuickMessages(QuickValues):
    """Writes messages of format 0 as JSON. `sound` is False once it has given one up."""

    def __init__(self) -> None:
        super().__init__()
        self._sections: dict[bytes, str] = {}

    def text(self, octets: bytes, bodies: bool) -> str:
        """A complete message, or "" if it has to go the long way. bodies: with the values of its body."""
        self.buf = octets
        self.pos = 0
        self.end = len(octets)
        self.sound = True
        end = self.end
        if end > LONGEST:
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
            if len(self._sections) >= REMEMBERED:
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

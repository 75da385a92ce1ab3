"""Logs of Qpid Proton (C, and its bindings to Python, Ruby, Go and C++) and of routers that are built on it.

`PN_TRACE_FRM=1` prints the fields of frames, `PN_TRACE_RAW=1` in addition their octets:

    [0x5595dd0a0d70]: AMQP:FRAME:0 -> @close(24) []
    [0x5595dd0a0d70]:   IO:  RAW:->0000/000c: 00 00 00 0c 02 00 00 00 00 53 18 45             .........S.E

Older releases have no `AMQP:FRAME:`. The routers Qpid Dispatch and skupper-router have `[C7]` or `[7]` in the
place of the address, and a time and a module before it.
"""

import re
from typing import Final

from amqpscope.capture.logs.encoding import frame, header
from amqpscope.capture.logs.entries import CONTINUES, DAMAGED, ENDED, HEADER, LOST, Entry, LineFormat, Spoken
from amqpscope.capture.logs.frames import name_of
from amqpscope.capture.logs.proton_values import Unreadable, octets_of, read_performative
from amqpscope.capture.logs.stamps import time_of
from amqpscope.limits import MAX_LOG_FRAME

__all__ = ["ProtonFrames", "ProtonOctets"]

# Numbers of repetitions are bounded, so that the time for a line only grows with its length.
_FRAME: Final = re.compile(
    r"\[(0x[0-9a-f]{1,16}|C?\d{1,20})\]: {0,4}(?:[A-Z]{1,8}: {0,4}FRAME:)? {0,4}(\d{0,6}) {0,2}(->|<-) "
    r"(@[a-z-]{1,40}\(\d{1,9}\) .*|SASL|AMQP|TLS|EOS|\(EMPTY FRAME\))$",
    re.ASCII,
)
_OCTETS: Final = re.compile(
    r"\[(0x[0-9a-f]{1,16}|C?\d{1,20})\]: {0,4}IO: {0,4}RAW: {0,4}(->|<-)"
    r"([0-9a-f]{4,8})/([0-9a-f]{4,8}): ((?:[0-9a-f]{2} ){1,16})",
    re.ASCII,
)
_PAYLOAD: Final = re.compile(r" \((\d+)\) (.*)$", re.DOTALL)
# What is left of a frame if two programs write into one line.
_LIKE: Final = re.compile(
    r"\[(?:0x[0-9a-f]{1,16}|C?\d{1,20})\]:.{0,30}(?:->|<-)|(?:->|<-) @[a-z-]{1,40}\(\d|:FRAME:", re.ASCII
)
_OCTETS_LIKE: Final = re.compile(r"RAW:(?:->|<-)[0-9a-f]{1,8}/", re.ASCII)
_CUT: Final = re.compile(r'^(.*?)(?:\\x?[0-9a-fA-F]?)?"? ?\.\.\.(?: \(truncated\))?$', re.DOTALL)
_QUOTES: Final = '"'


def _line(line: str) -> re.Match[str] | None:
    return _FRAME.search(line.rstrip()) if "->" in line or "<-" in line else None


class ProtonFrames(LineFormat):
    """What `PN_TRACE_FRM` prints."""

    library = "Qpid Proton"

    def take(self, line: str) -> Entry | Spoken | None:
        found = _line(line)
        if found is None:
            return DAMAGED if "RAW:" not in line and _LIKE.search(line) else None
        connection, channel, arrow, text = found.groups()
        time = time_of(line[: found.start()])
        sent = arrow == "->"
        plain = _plain(connection, sent, text, time)
        if plain is not None:
            return plain
        if len(channel) > 5 or int(channel or 0) > 0xFFFF:
            return Entry(connection, sent, LOST, b"", time)
        if text == "(EMPTY FRAME)":
            return Entry(connection, sent, "empty", frame(int(channel or 0), None), time)
        try:
            body, rest = read_performative(text)
        except Unreadable:
            return Entry(connection, sent, LOST, b"", time)
        payload, missing = _payload(rest)
        octets = frame(int(channel or 0), body, payload, missing)
        return Entry(connection, sent, body.name, octets, time)


class ProtonOctets(LineFormat):
    """What `PN_TRACE_RAW` prints; of the lines of `PN_TRACE_FRM` beside it only what has no octets."""

    library = "Qpid Proton"
    retold = False
    prints_headers = False

    def __init__(self) -> None:
        # By connection and direction: the frame that is not whole.
        self._begun: dict[tuple[str, bool], bytes] = {}

    def take(self, line: str) -> Entry | Spoken | None:
        found = _OCTETS.search(line) if "RAW:" in line else None
        if found is None:
            other = _line(line)
            if other is None:
                return DAMAGED if _OCTETS_LIKE.search(line) or _LIKE.search(line) else None
            plain = _plain(other[1], other[3] == "->", other[4], time_of(line[: other.start()]))
            return plain or CONTINUES
        connection, arrow, offset, size, text = found.groups()
        sent = arrow == "->"
        place = (connection, sent)
        begun = self._begun.pop(place, b"")
        octets = bytes.fromhex(text)
        whole = int(size, 16)
        if int(offset, 16) == 0:
            lost, begun = bool(begun), b""
        else:
            lost = len(begun) != int(offset, 16)
        if lost or whole > MAX_LOG_FRAME:
            return Entry(connection, sent, LOST, b"", 0)
        begun += octets[: whole - len(begun)]
        if len(begun) < whole:
            self._begun[place] = begun
            return CONTINUES
        return Entry(connection, sent, name_of(begun), begun, time_of(line[: found.start()]))

    def finish(self) -> int:
        return len(self._begun)


def _plain(connection: str, sent: bool, text: str, time: int) -> Entry | None:
    """The entry of a line that tells all without fields: a protocol header, or the end of a stream."""
    if text == "EOS":
        return Entry(connection, sent, ENDED, b"", time)
    if text in ("SASL", "AMQP", "TLS"):
        return Entry(connection, sent, HEADER, header(text), time)
    return None


def _payload(rest: str) -> tuple[bytes, int]:
    """The octets of payload that a line holds, and how many more there were."""
    found = _PAYLOAD.match(rest)
    if found is None:
        return b"", 0
    size = min(int(found[1][:9]), MAX_LOG_FRAME)
    text = found[2].removeprefix(_QUOTES)
    octets = octets_of(text.removesuffix(_QUOTES))
    cut = _CUT.match(text)
    if len(octets) != size and cut is not None:
        octets = octets_of(cut[1])
    octets = octets[:size]
    return octets, size - len(octets)

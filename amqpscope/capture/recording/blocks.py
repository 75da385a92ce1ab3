"""The blocks of a pcapng file as they are written: little-endian, times in nanoseconds.

Source: draft-ietf-opsawg-pcapng, section 3 (options: 3.5) and 4.
"""

import re
from struct import Struct
from typing import Final

from dissectors.wire import i64, u32le

SECTION_HEADER: Final = 0x0A0D0D0A
BYTE_ORDER: Final = 0x1A2B3C4D
INTERFACE_DESCRIPTION: Final = 1
INTERFACE_STATISTICS: Final = 5
ENHANCED_PACKET: Final = 6
DECRYPTION_SECRETS: Final = 10
TLS_KEY_LOG: Final = 0x544C534B

PACKET_MIN: Final = 32
"""Octets of an enhanced packet block beside the packet, its padding and options."""

_END: Final = 0
_COMMENT: Final = 1
_APPLICATION: Final = 4  # shb_userappl
_NAME: Final = 2  # if_name
_DESCRIPTION: Final = 3  # if_description
_TIME_UNIT: Final = 9  # if_tsresol
_FILTER: Final = 11  # if_filter
_DROPPED: Final = 4  # epb_dropcount
_START_TIME: Final = 2  # isb_starttime
_END_TIME: Final = 3  # isb_endtime
_RECEIVED: Final = 4  # isb_ifrecv
_SYSTEM_DROPPED: Final = 7  # isb_osdrop

_NANOSECONDS: Final = b"\x09"
_FILTER_TEXT: Final = b"\0"  # what if_filter holds: the text given to libpcap

_HIGHEST: Final = 0xFFFFFFFFFFFFFFFF
_LONGEST_OPTION: Final = 0xFFFC

_FRAME: Final = Struct("<II")
_WORD: Final = Struct("<I")
_OPTION: Final = Struct("<HH")
_SECTION: Final = Struct("<IHHq")
_INTERFACE: Final = Struct("<HHI")
_TWO_WORDS: Final = Struct("<II")
_LONG: Final = Struct("<Q")

_NOT_PLAIN: Final = re.compile(r"[^\x20-\x7e]")


def plain(text: str, most: int) -> bytes:
    """Text for an option in UTF-8, at most so many octets, with what could be a command escaped."""
    if _NOT_PLAIN.search(text):
        text = "".join([_shown(character) for character in text])
    octets = text.encode()
    if len(octets) > most:
        octets = octets[: most - 3].decode("utf-8", "ignore").encode() + b"..."
    return octets


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def comment(text: bytes) -> bytes:
    """An option that is a remark on its block."""
    return _option(_COMMENT, text)


def lost_before(count: int) -> bytes:
    """An option: packets lost before the packet that it is with, and after the one before."""
    return _option(_DROPPED, _LONG.pack(min(max(count, 0), _HIGHEST)))


def section_header(application: str, remark: bytes) -> bytes:
    """A section's header; `application` wrote it, `remark` is a comment or empty."""
    options = comment(remark) if remark else b""
    options += _option(_APPLICATION, plain(application, 200))
    return _block(SECTION_HEADER, _SECTION.pack(BYTE_ORDER, 1, 0, -1), options)


def interface_description(link_type: int, name: bytes, description: bytes, filter: bytes) -> bytes:
    """What packets of an interface are. Empty texts are left out; no length of packets is claimed."""
    options = _option(_NAME, name) if name else b""
    if description:
        options += _option(_DESCRIPTION, description)
    options += _option(_TIME_UNIT, _NANOSECONDS)
    if filter:
        options += _option(_FILTER, _FILTER_TEXT + filter)
    return _block(INTERFACE_DESCRIPTION, _INTERFACE.pack(link_type, 0, 0), options)


def interface_statistics(
    interface: int, start: int, end: int, received: int, dropped: int, remarks: bytes
) -> bytes:
    """How the capture on an interface ended; `received` and `dropped` below 0 are not known.

    `start` and `end` in nanoseconds since 1970; `remarks`: comments as options.
    """
    options = remarks + _option(_START_TIME, _time(start)) + _option(_END_TIME, _time(end))
    if received >= 0:
        options += _option(_RECEIVED, _LONG.pack(min(received, _HIGHEST)))
    if dropped >= 0:
        options += _option(_SYSTEM_DROPPED, _LONG.pack(min(dropped, _HIGHEST)))
    return _block(INTERFACE_STATISTICS, _WORD.pack(interface) + _time(end), options)


def decryption_secrets(lines: bytes) -> bytes:
    """Secrets of TLS connections, as lines of a key log."""
    size = 20 + len(lines) + (-len(lines) & 3)
    body = _TWO_WORDS.pack(TLS_KEY_LOG, len(lines)) + lines + bytes(-len(lines) & 3)
    return _FRAME.pack(DECRYPTION_SECRETS, size) + body + _WORD.pack(size)


def with_options(octets: bytes, at: i64, options: bytes) -> bytes:
    """The enhanced packet block at `octets[at:]`, with `options` before those that it has."""
    size: i64 = u32le(octets, at + 4)
    padded: i64 = (u32le(octets, at + 20) + 3) & ~3
    ours: i64 = len(options)
    there = octets[at + 28 + padded : at + size - 4]
    if len(there) == 0:
        there = _option(_END, b"")
        ours += 4
    return (
        octets[at : at + 4]
        + _WORD.pack(size + ours)
        + octets[at + 8 : at + 28 + padded]
        + options
        + there
        + _WORD.pack(size + ours)
    )


def end_of_options() -> bytes:
    """What follows the last option, where there are any."""
    return _option(_END, b"")


def _time(time: int) -> bytes:
    time = min(max(time, 0), _HIGHEST)
    return _TWO_WORDS.pack(time >> 32, time & 0xFFFFFFFF)


def _option(code: int, value: bytes) -> bytes:
    value = value[:_LONGEST_OPTION]
    return _OPTION.pack(code, len(value)) + value + bytes(-len(value) & 3)


def _block(kind: int, body: bytes, options: bytes) -> bytes:
    """A block of `body`, whose size is a multiple of 4, and at least one option."""
    size = 16 + len(body) + len(options)
    return _FRAME.pack(kind, size) + body + options + _option(_END, b"") + _WORD.pack(size)

"""Takes out of a pcapng file what dumpcap notes about the machine: processor, system, kernel release.

Blocks and options as in the pcapng specification (section header block 4.1, interface description block
4.2, options 3.5); little-endian sections only, which is what dumpcap writes on the machines that recordings
are made on.
"""

from __future__ import annotations

import struct

SECTION_HEADER, INTERFACE_DESCRIPTION = 0x0A0D0D0A, 1
FIXED_PART = {SECTION_HEADER: 16, INTERFACE_DESCRIPTION: 8}  # octets of a block's body before its options
MACHINE_OPTIONS = {
    SECTION_HEADER: {2, 3},
    INTERFACE_DESCRIPTION: {12, 15},
}  # shb_hardware, shb_os; if_os, if_hardware


def without_machine(content: bytes) -> bytes:
    """The same file without those options; every other octet stays."""
    if content[8:12] != b"\x4d\x3c\x2b\x1a":
        raise ValueError("not a little-endian pcapng file")
    blocks = bytearray()
    at = 0
    while at < len(content):
        kind, total = struct.unpack_from("<II", content, at)
        body = content[at + 8 : at + total - 4]
        if kind in MACHINE_OPTIONS:
            fixed = FIXED_PART[kind]
            body = body[:fixed] + kept_options(body[fixed:], MACHINE_OPTIONS[kind])
        size = len(body) + 12
        blocks += struct.pack("<II", kind, size) + body + struct.pack("<I", size)
        at += total
    return bytes(blocks)


def kept_options(options: bytes, dropped: set[int]) -> bytes:
    """An option list without the options of the codes in `dropped`."""
    kept = bytearray()
    at = 0
    while at + 4 <= len(options):
        code, length = struct.unpack_from("<HH", options, at)
        size = 4 + (length + 3) // 4 * 4
        if code not in dropped:
            kept += options[at : at + size]
        at += size
    return bytes(kept)

"""Filters in libpcap's language, compiled by libpcap, which scapy knows how to call.

No interface is opened for it, so that it takes no privilege. libpcap writes the program then as for a file:
with every header in the packet. The kernel takes tags of VLANs out of it before any program sees it; a filter
that asks for them would pass nothing, and is refused.
"""

import re
from ctypes import byref
from typing import Final

from amqpscope.capture.live.programs import Instruction
from amqpscope.errors import CaptureError

__all__ = ["compiled"]

_RAW_IP: Final = 101  # the LINKTYPE value that systems have a number of their own for
_RAW_IP_HERE: Final = 12
_VLAN: Final = re.compile(r"\bvlan\b")


def compiled(text: str, link_type: int, snaplen: int) -> list[Instruction]:
    """The program for a filter: `snaplen` octets of what passes. Raises CaptureError if it cannot be had."""
    if _VLAN.search(text):
        raise CaptureError(
            f"the filter {text!r}: the kernel removes VLAN tags before the filter sees a packet; remove "
            "`vlan` from the filter, or capture on the interface of the VLAN"
        )
    try:
        from scapy.libs import winpcapy as library
        from scapy.libs.structures import bpf_program
    except ImportError:
        raise CaptureError("a filter needs scapy: pip install 'amqpscope[live]'") from None
    except OSError:
        raise CaptureError("a filter needs libpcap, which is not installed on this machine") from None
    program = bpf_program()
    handle = library.pcap_open_dead(_RAW_IP_HERE if link_type == _RAW_IP else link_type, snaplen)
    try:
        encoded = text.encode()
        if b"\0" in encoded or library.pcap_compile(handle, byref(program), encoded, 1, 0xFFFFFFFF) != 0:
            why = library.pcap_geterr(handle).decode(errors="replace") or "cannot be understood"
            raise CaptureError(f"the filter {text!r}: {why}")
        try:
            return [
                (one.code, one.jt, one.jf, one.k & 0xFFFFFFFF) for one in program.bf_insns[: program.bf_len]
            ]
        finally:
            library.pcap_freecode(byref(program))
    finally:
        library.pcap_close(handle)

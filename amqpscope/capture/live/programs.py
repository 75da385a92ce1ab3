"""Filter programs for packet sockets: what the kernel gives a socket, decided before anything is copied.

Theory of operation. A program is classic BPF: instructions with an accumulator A and an index register X,
jumps forward only, loads beyond the packet reject it. The one for AMQP is put together here, so that it needs
no libpcap. It moves X to the IP header, through tags, and from there to TCP's ports:

* all but the first fragment of an IP datagram have no ports, so those that carry TCP pass, whatever ports
  they are of;
* IPv6's extension headers are passed over, up to two of them;
* what is inside a tunnel, MPLS or PPPoE does not pass: that takes a filter of one's own.

A program of libpcap's begins with its own loads, so a program may be put behind another that lets it fall
through: `prepared` puts in front of each what no filter expresses. On loopback a packet is seen twice, as it
goes out and as it comes in; the first sight is dropped, as libpcap does. Where one socket is for several
interfaces, the packets of all others are.

Source: the kernel's Documentation/networking/filter.rst, include/uapi/linux/filter.h and bpf_common.h.
"""

import array
import socket
import struct
from collections.abc import Sequence
from typing import Final

from amqpscope.errors import CaptureError

__all__ = ["AMQP_PORTS", "MAX_PORTS", "Instruction", "attach", "ports_program", "prepared"]

AMQP_PORTS: Final = (5671, 5672)
"""The ports that IANA has registered for AMQP, over TLS and plain."""

MAX_PORTS: Final = 100
"""Ports of a program: a conditional jump reaches over 255 instructions, and each port takes two."""

Instruction = tuple[int, int, int, int]
"""Code, instructions to jump over if true, if false, operand."""

_ATTACH_FILTER: Final = 26  # SO_ATTACH_FILTER

_LOAD_WORD: Final = 0x20  # at a fixed place, as all `_LOAD`
_LOAD_HALF: Final = 0x28
_LOAD_BYTE: Final = 0x30
_AT_X_HALF: Final = 0x48  # at X and so much more
_AT_X_BYTE: Final = 0x50
_LOAD_KEPT: Final = 0x60
_KEEP: Final = 0x02  # A
_SET_X: Final = 0x01
_ADD: Final = 0x04
_ADD_X: Final = 0x0C
_AND: Final = 0x54
_SHIFT: Final = 0x64
_A_TO_X: Final = 0x07
_X_TO_A: Final = 0x87
_GO: Final = 0x05
_IF_EQUAL: Final = 0x15
_IF_ANY_BIT: Final = 0x45
_RETURN: Final = 0x06

# Where a load finds not the packet but what the kernel knows of it.
_PROTOCOL: Final = 0xFFFFF000
_KIND: Final = 0xFFFFF004
_INTERFACE: Final = 0xFFFFF008
_HARDWARE: Final = 0xFFFFF01C

_OUTGOING: Final = 4  # PACKET_OUTGOING
_LOOPBACK: Final = 772  # ARPHRD_LOOPBACK

_IPV4: Final = 0x0800
_IPV6: Final = 0x86DD
_TAGS: Final = (0x8100, 0x88A8)

_TCP: Final = 6
_FRAGMENT: Final = 44
_EXTENSIONS: Final = (0, 43, 60)  # hop by hop, routing, destination
_EXTENSIONS_PASSED: Final = 2

_LONGEST: Final = 4096  # instructions (BPF_MAXINSNS)

_NEXT: Final = ""  # the label of the instruction behind


class _Assembly:
    """Instructions with labels to jump to, all of which are further on."""

    def __init__(self) -> None:
        self._code: list[tuple[int, int, str, str]] = []
        self._labels: dict[str, int] = {}

    def add(self, code: int, operand: int = 0) -> None:
        self._code.append((code, operand, _NEXT, _NEXT))

    def test(self, code: int, operand: int, true: str = _NEXT, false: str = _NEXT) -> None:
        self._code.append((code, operand, true, false))

    def go(self, label: str) -> None:
        self._code.append((_GO, 0, label, _NEXT))

    def label(self, name: str) -> None:
        self._labels[name] = len(self._code)

    def instructions(self) -> list[Instruction]:
        found: list[Instruction] = []
        for place, (code, operand, true, false) in enumerate(self._code):
            over = [self._labels[label] - place - 1 if label else 0 for label in (true, false)]
            if code == _GO:
                found.append((code, 0, 0, over[0]))
            else:
                found.append((code, over[0], over[1], operand))
        return found


def ports_program(ports: Sequence[int], snaplen: int, ethernet: bool) -> list[Instruction]:
    """Lets TCP pass from or to one of `ports`, or all of TCP if there are none; up to `snaplen` octets of it.

    ethernet: whether packets begin with the Ethernet header, else they do with IP's.
    """
    if len(ports) > MAX_PORTS:
        raise CaptureError(
            f"{len(ports)} ports are given, but at most {MAX_PORTS} are possible: use a filter or any port"
        )
    for port in ports:
        if not 0 <= port <= 0xFFFF:
            raise CaptureError(f"{port} is no port")
    code = _Assembly()
    if ethernet:
        _past_ethernet(code)
    else:
        _past_tags(code)
    code.label("other")
    code.add(_RETURN, 0)
    code.label("IPv6")
    _past_ipv6(code, snaplen)
    code.label("IPv4")
    code.add(_AT_X_BYTE, 9)
    code.test(_IF_EQUAL, _TCP, _NEXT, "no")
    code.add(_AT_X_HALF, 6)
    code.test(_IF_ANY_BIT, 0x1FFF, "yes")
    code.add(_AT_X_BYTE, 0)
    code.add(_AND, 0x0F)
    code.add(_SHIFT, 2)
    code.add(_ADD_X)
    code.add(_A_TO_X)
    code.label("TCP")
    for at in (0, 2) if ports else ():
        code.add(_AT_X_HALF, at)
        for port in ports:
            code.test(_IF_EQUAL, port, "yes")
    if not ports:
        code.go("yes")
    code.label("no")
    code.add(_RETURN, 0)
    code.label("yes")
    code.add(_RETURN, snaplen)
    return code.instructions()


def _past_ethernet(code: _Assembly) -> None:
    """X to what is behind the Ethernet header and up to two tags; on to "IPv4" or "IPv6"."""
    for at in (12, 16, 20):
        code.add(_SET_X, at + 2)
        code.add(_LOAD_HALF, at)
        code.test(_IF_EQUAL, _IPV4, "IPv4")
        code.test(_IF_EQUAL, _IPV6, "IPv6")
        code.test(_IF_EQUAL, _TAGS[0], f"tag at {at}")
        code.test(_IF_EQUAL, _TAGS[1], _NEXT, "other")
        code.label(f"tag at {at}")


def _past_tags(code: _Assembly) -> None:
    """The same for a packet that begins behind its link layer; the kernel says what it is.

    A packet that goes out with its tag in it begins behind that, too.
    """
    code.add(_SET_X, 0)
    code.add(_LOAD_WORD, _PROTOCOL)
    code.test(_IF_EQUAL, _IPV4, "IPv4")
    code.test(_IF_EQUAL, _IPV6, "IPv6")
    code.test(_IF_EQUAL, _TAGS[0], "tagged")
    code.test(_IF_EQUAL, _TAGS[1], _NEXT, "other")
    code.label("tagged")
    for at, version in ((4, 0x40), (4, 0x60), (8, 0x40), (8, 0x60)):
        code.add(_LOAD_HALF, at - 2)
        code.test(_IF_EQUAL, _IPV4 if version == 0x40 else _IPV6, _NEXT, f"not {version} at {at}")
        code.add(_LOAD_BYTE, at)
        code.add(_AND, 0xF0)
        code.add(_SET_X, at)
        code.test(_IF_EQUAL, version, "IPv4" if version == 0x40 else "IPv6")
        code.label(f"not {version} at {at}")
    code.add(_SET_X, 0)
    code.add(_LOAD_BYTE, 0)
    code.add(_AND, 0xF0)
    code.test(_IF_EQUAL, 0x40, "IPv4")
    code.test(_IF_EQUAL, 0x60, "IPv6")


def _past_ipv6(code: _Assembly, snaplen: int) -> None:
    """X from the IPv6 header to what is behind it and its extensions; on to "TCP" or "no"."""
    code.add(_AT_X_BYTE, 6)
    code.add(_KEEP)
    code.add(_X_TO_A)
    code.add(_ADD, 40)
    code.add(_A_TO_X)
    code.add(_LOAD_KEPT)
    for number in range(_EXTENSIONS_PASSED):
        code.test(_IF_EQUAL, _TCP, "TCP")
        code.test(_IF_EQUAL, _FRAGMENT, "fragment")
        for extension in _EXTENSIONS:
            code.test(_IF_EQUAL, extension, f"extension {number}")
        code.go("no")
        code.label(f"extension {number}")
        code.add(_AT_X_BYTE, 0)
        code.add(_KEEP)
        code.add(_AT_X_BYTE, 1)
        code.add(_ADD, 1)
        code.add(_SHIFT, 3)
        code.add(_ADD_X)
        code.add(_A_TO_X)
        code.add(_LOAD_KEPT)
    code.test(_IF_EQUAL, _TCP, "TCP")
    code.test(_IF_EQUAL, _FRAGMENT, _NEXT, "no")
    code.label("fragment")
    code.add(_AT_X_BYTE, 0)
    code.test(_IF_EQUAL, _TCP, _NEXT, "no")
    code.add(_AT_X_HALF, 2)
    code.test(_IF_ANY_BIT, 0xFFF8, _NEXT, "first")
    code.add(_RETURN, snaplen)
    code.label("first")
    code.add(_X_TO_A)
    code.add(_ADD, 8)
    code.add(_A_TO_X)
    code.go("TCP")


def prepared(program: Sequence[Instruction], indexes: Sequence[int]) -> list[Instruction]:
    """`program`, behind what drops the packets that it shall not see.

    indexes: the kernel's of the interfaces whose packets it shall see; all if there are none.
    """
    code = _Assembly()
    if indexes:
        code.add(_LOAD_WORD, _INTERFACE)
        for index in indexes:
            code.test(_IF_EQUAL, index, "ours")
        code.add(_RETURN, 0)
        code.label("ours")
    code.add(_LOAD_WORD, _HARDWARE)
    code.test(_IF_EQUAL, _LOOPBACK, _NEXT, "seen once")
    code.add(_LOAD_WORD, _KIND)
    code.test(_IF_EQUAL, _OUTGOING, _NEXT, "seen once")
    code.add(_RETURN, 0)
    code.label("seen once")
    return [*code.instructions(), *program]


def attach(receiver: socket.socket, program: Sequence[Instruction]) -> None:
    """Have a socket take only what passes, in place of the filter that it has.

    Raises OSError, and CaptureError if there is too much of it.
    """
    if len(program) > _LONGEST:
        raise CaptureError(
            f"the filter needs {len(program)} instructions, but the kernel takes at most {_LONGEST}"
        )
    octets = array.array("B", b"".join(struct.pack("=HBBI", *one) for one in program))
    option = struct.pack("HP", len(program), octets.buffer_info()[0])  # struct sock_fprog
    receiver.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, option)

"""The network interfaces of this machine, as Linux tells of them over rtnetlink.

Asking takes no privilege. The same kind of socket tells of changes; what it says then is only taken as a
hint to look, so that nothing is lost when it has too much to say.

Source: include/uapi/linux/netlink.h, rtnetlink.h, if_link.h and if_addr.h of the kernel; RFC 3549.
"""

import contextlib
import fcntl
import ipaddress
import os
import socket
import struct
from collections.abc import Iterator
from typing import Final

from amqpscope.capture.link_layer import LINK_ETHERNET, LINK_RAW
from amqpscope.capture.live.source import LiveInterface

__all__ = ["InterfaceWatch", "index_of", "is_ethernet", "is_up", "linux_interfaces", "name_of"]

_LINKS_CHANGED: Final = 1  # RTMGRP_LINK

_NEW_LINK: Final = 16
_GET_LINK: Final = 18
_NEW_ADDRESS: Final = 20
_GET_ADDRESS: Final = 22
_ERROR: Final = 2
_DONE: Final = 3
_REQUEST_ALL: Final = 0x301  # NLM_F_REQUEST, NLM_F_ROOT, NLM_F_MATCH

_LINK_NAME: Final = 3  # IFLA_IFNAME
_ADDRESS: Final = 1  # IFA_ADDRESS
_LOCAL_ADDRESS: Final = 2  # IFA_LOCAL: the own one, where the other is the peer's

_GET_FLAGS: Final = 0x8913  # SIOCGIFFLAGS
_UP: Final = 1

_ETHERNET: Final = 1  # ARPHRD_ETHER
_LOOPBACK: Final = 772  # ARPHRD_LOOPBACK

_RECEIVED: Final = 1024 * 1024


def is_ethernet(hardware: int) -> bool:
    """Whether packets of an interface with this kind of hardware (ARPHRD) begin with an Ethernet header."""
    return hardware in (_ETHERNET, _LOOPBACK)


def linux_interfaces() -> dict[int, LiveInterface]:
    """Every interface by the kernel's index. Raises OSError."""
    interfaces: dict[int, LiveInterface] = {}
    addresses: dict[int, list[str]] = {}
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as channel:
        channel.settimeout(5)
        for body in _all(channel, _GET_LINK, _NEW_LINK):
            if len(body) >= 16:
                hardware, index, flags = struct.unpack_from("=2xHiI", body)
                for kind, value in _attributes(body, 16):
                    if kind == _LINK_NAME:
                        name = os.fsdecode(value.rstrip(b"\0"))
                        link_type = LINK_ETHERNET if is_ethernet(hardware) else LINK_RAW
                        interfaces[index] = LiveInterface(name, "", link_type, flags & _UP != 0)
        for body in _all(channel, _GET_ADDRESS, _NEW_ADDRESS):
            if len(body) >= 8:
                (index,) = struct.unpack_from("=4xI", body)
                found = dict(_attributes(body, 8))
                own = found.get(_LOCAL_ADDRESS) or found.get(_ADDRESS) or b""
                if len(own) in (4, 16):
                    addresses.setdefault(index, []).append(str(ipaddress.ip_address(own)))
    for index, interface in interfaces.items():
        interface.description = ", ".join(addresses.get(index, []))
    return interfaces


def _all(channel: socket.socket, request: int, answer: int) -> Iterator[bytes]:
    """What stands behind the header of each message of the kind `answer`."""
    channel.send(struct.pack("=IHHIIB3x", 20, request, _REQUEST_ALL, request, 0, 0))
    while True:
        datagram = channel.recv(_RECEIVED)
        at = 0
        while len(datagram) - at >= 16:
            length, kind = struct.unpack_from("=IH", datagram, at)
            if kind == _ERROR:
                raise OSError("the kernel does not list its interfaces")
            if kind == _DONE or length < 16:
                return
            if kind == answer:
                yield datagram[at + 16 : at + length]
            at += (length + 3) & ~3


def _attributes(body: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while len(body) - at >= 4:
        length, kind = struct.unpack_from("=HH", body, at)
        if length < 4:
            return
        yield kind & 0x3FFF, body[at + 4 : at + length]
        at += (length + 3) & ~3


def index_of(name: str) -> int:
    """The kernel's index of an interface, 0 if there is none of the name."""
    try:
        return socket.if_nametoindex(name)
    except (OSError, ValueError):
        return 0


def name_of(index: int) -> str:
    """The name of the interface of an index, "" if there is none."""
    try:
        return socket.if_indextoname(index)
    except (OSError, OverflowError):
        return ""


def is_up(name: str) -> bool:
    """Whether the interface is there and up."""
    request = struct.pack("16sH14x", os.fsencode(name)[:15], 0)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        try:
            flags: int = struct.unpack_from("16xH", fcntl.ioctl(any_socket, _GET_FLAGS, request))[0]
        except OSError:
            return False
    return flags & _UP != 0


class InterfaceWatch:
    """Tells that interfaces came, went or changed, by a descriptor that is ready then."""

    def __init__(self) -> None:
        self._channel = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._channel.setblocking(False)
        self._channel.bind((0, _LINKS_CHANGED))

    def fileno(self) -> int:
        """The descriptor that is ready when there is something to tell."""
        return self._channel.fileno()

    def settle(self) -> None:
        """All that was reported is known now."""
        for _ in range(1000):
            try:
                self._channel.recv(65536)
            except BlockingIOError:
                return
            except OSError:  # it had more to tell than room for it
                continue

    def close(self) -> None:
        """Nothing is reported any more."""
        with contextlib.suppress(OSError):
            self._channel.close()

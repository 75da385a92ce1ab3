"""Capturing with scapy's live sockets, for systems without the ring.

They are used raw: scapy hands over the octets of a packet and its time, and takes nothing apart. Each packet
takes a call of its own even so. Measured over loopback on Linux (tests/bench/live.py), a packet takes some
thirty times the processor time it takes with the ring, and at rates at which the ring loses nothing half are
lost; so the ring is what is used where there is one. The time comes in floating point, exact to less than a
microsecond.

An interface that goes away is not listened to again: opening a socket takes a privilege that is given up.
"""

import contextlib
import errno
import fcntl
import logging
import select
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from amqpscope.capture.link_layer import LINK_ETHERNET, LINK_RAW
from amqpscope.capture.live.programs import Instruction, attach, prepared
from amqpscope.capture.live.source import TAKEN_AT_ONCE, LiveInterface, LiveSource
from amqpscope.capture.packet import PacketDecoder
from amqpscope.errors import CaptureError, NotPossible
from amqpscope.limits import MAX_PACKET

__all__ = ["ScapySource", "scapy_interfaces"]

_PACKET: Final = 263  # SOL_PACKET
_STATISTICS: Final = 6  # PACKET_STATISTICS
_BUFFER_FORCED: Final = 33  # SO_RCVBUFFORCE, beyond what a user may have
_LINK_TYPE_OF_BPF: Final = 0x4004426A  # BIOCGDLT
_UP: Final = 1
_GONE: Final = "is gone"


def scapy_interfaces() -> list[LiveInterface]:
    """The interfaces that scapy knows. Raises CaptureError."""
    found = []
    for one in _configuration().ifaces.values():
        addresses = ", ".join(str(address) for addresses in one.ips.values() for address in addresses)
        up = bool(int(one.flags) & _UP) if one.flags is not None else True
        found.append(LiveInterface(str(one.network_name), addresses, LINK_ETHERNET, up))
    return found


def _configuration() -> Any:
    """scapy's. Raises CaptureError if there is no scapy."""
    logging.getLogger("scapy").setLevel(logging.ERROR)  # what it warns of is only for its own dissectors
    try:
        import scapy.arch
        from scapy.config import conf
    except ImportError:
        raise NotPossible("live capture needs scapy on this system: pip install 'amqpscope[live]'") from None
    except Exception as error:  # it looks for interfaces and libraries while it is imported
        raise CaptureError(f"live capture needs scapy on this system, but scapy fails: {error}") from error
    assert scapy.arch
    return conf


class _Receiver:
    """One interface's socket."""

    def __init__(self, interface: LiveInterface, raw: Any) -> None:
        self.interface = interface
        self.raw = raw
        self.dropped = 0
        self.placed = 0
        self.failed = ""


class ScapySource(LiveSource):
    """Captures from `names`. filter: in libpcap's language, for where no program can be attached; program:
    the filter for a link type, for Linux. snaplen: octets kept of a packet.

    Raises OSError, PermissionError among them, and CaptureError.
    """

    def __init__(
        self,
        name: str,
        names: Sequence[str],
        filter: str,
        program: Callable[[int], Sequence[Instruction]],
        snaplen: int,
        buffer_octets: int,
        promiscuous: bool,
    ) -> None:
        configuration = _configuration()
        super().__init__(name)
        self._snaplen = snaplen
        self._number = 0
        self._receivers: list[_Receiver] = []
        self._turn = 0
        self._full = False  # there was more than was taken
        try:
            for one in names:
                raw = configuration.L2listen(
                    iface=one, filter=None if sys.platform == "linux" else filter, promisc=promiscuous
                )
                link_type = _link_type(raw)
                interface = LiveInterface(one, "", link_type, True)
                self.interfaces.append(interface)
                self._receivers.append(_Receiver(interface, raw))
                self._prepare(raw, program(link_type), buffer_octets)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError | CaptureError | KeyboardInterrupt):
                raise
            raise CaptureError(f"{name}: cannot be captured from: {error}") from error
        for receiver in self._receivers:
            self._poll.register(receiver.raw.fileno(), select.POLLIN | select.POLLERR)

    @property
    def number(self) -> int:
        return self._number

    def take(self, decoder: PacketDecoder) -> int:
        before = self._number
        room = TAKEN_AT_ONCE
        quiet = 0
        while room > 0 and quiet < len(self._receivers):
            # In turn, so that packets of several interfaces come about in the order of time.
            place = self._turn % len(self._receivers)
            self._turn += 1
            octets, time = self._receive(self._receivers[place])
            if not octets:
                quiet += 1
                continue
            quiet = 0
            room -= len(octets)
            self._number += 1
            decoder.interface = place
            decoder.packet(
                self._number,
                time,
                self.interfaces[place].link_type,
                octets,
                0,
                min(len(octets), self._snaplen),
                len(octets),
            )
        self._full = room <= 0
        if not self._full:
            self._count_drops()
            for receiver in self._receivers:
                receiver.placed = receiver.dropped
        return self._number - before

    def dropped(self) -> int:
        return sum(receiver.placed for receiver in self._receivers)

    def drops(self, index: int) -> int:
        return self._receivers[index].placed if index < len(self._receivers) else 0

    def fill(self) -> float:
        return 1.0 if self._full else 0.0

    def ended(self) -> bool:
        return not self._receivers

    def close(self) -> None:
        for receiver in self._receivers:
            with contextlib.suppress(KeyError, OSError, ValueError):
                self._poll.unregister(receiver.raw.fileno())
            with contextlib.suppress(OSError):
                receiver.raw.close()
        self._receivers = []
        super().close()

    def _waiting(self) -> bool:
        return self._full

    def _stirred(self, descriptor: int) -> bool:
        return True

    def _prepare(self, raw: Any, program: Sequence[Instruction], buffer_octets: int) -> None:
        """Make it never wait. On Linux: filter, and forget what came before the filter."""
        if hasattr(raw, "set_nonblock"):
            raw.set_nonblock(True)
        elif hasattr(raw, "pcap_fd"):
            raw.pcap_fd.setnonblock(True)
        else:
            raw.ins.setblocking(False)
            if sys.platform == "linux":
                attach(raw.ins, prepared(program, []))
                with contextlib.suppress(BlockingIOError):
                    while True:
                        raw.ins.recv(1)
                try:
                    raw.ins.setsockopt(socket.SOL_SOCKET, _BUFFER_FORCED, buffer_octets)
                except OSError:
                    raw.ins.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_octets)

    def _receive(self, receiver: _Receiver) -> tuple[bytes, int]:
        """The next packet and its time, no octets if there is none now."""
        if receiver.failed == _GONE:
            return b"", 0
        try:
            _, octets, time = receiver.raw.recv_raw(MAX_PACKET)
        except BlockingIOError:
            return b"", 0
        except OSError as error:
            gone = error.errno in (errno.ENXIO, errno.ENODEV, errno.EBADF)
            said = _GONE if gone else "is down: waiting for it to come up"
            if receiver.failed != said:
                receiver.failed = said
                self._events.append(f"{receiver.interface.name} {said}")
                if gone:
                    with contextlib.suppress(KeyError, OSError, ValueError):
                        self._poll.unregister(receiver.raw.fileno())
            return b"", 0
        if not octets:
            return b"", 0
        if receiver.failed:
            receiver.failed = ""
            self._events.append(f"{receiver.interface.name} is up")
        return bytes(octets), int((time or 0) * 1_000_000_000)

    def _count_drops(self) -> None:
        for receiver in self._receivers:
            raw = receiver.raw
            with contextlib.suppress(OSError):
                if hasattr(raw, "get_stats"):
                    receiver.dropped = raw.get_stats()[1] or 0
                elif sys.platform == "linux" and not hasattr(raw, "pcap_fd"):
                    receiver.dropped += struct.unpack("=2I", raw.ins.getsockopt(_PACKET, _STATISTICS, 8))[1]


def _link_type(raw: Any) -> int:
    if hasattr(raw, "pcap_fd"):
        return int(raw.pcap_fd.datalink())
    if hasattr(raw, "bpf_fd"):
        reported: int = struct.unpack("=I", fcntl.ioctl(raw.bpf_fd, _LINK_TYPE_OF_BPF, bytes(4)))[0]
        return reported
    from amqpscope.capture.live.links import is_ethernet

    return LINK_ETHERNET if is_ethernet(raw.ins.getsockname()[3]) else LINK_RAW

"""Opening what `-i` names, in the way that does it best here."""

import difflib
import errno
import sys
from collections.abc import Callable, Sequence
from typing import Final

from amqpscope.capture.link_layer import LINK_ETHERNET, LINK_RAW
from amqpscope.capture.live.programs import AMQP_PORTS, Instruction, ports_program
from amqpscope.capture.live.source import LiveInterface, LiveSource
from amqpscope.errors import CaptureError, NotPermitted, NotPossible
from amqpscope.limits import MAX_PACKET

__all__ = ["BUFFER_OCTETS", "list_interfaces", "open_source"]

BUFFER_OCTETS: Final = 64 * 1024 * 1024
"""Of the kernel's buffer: a quarter of a second at 2 Gbit/s, several seconds of what AMQP mostly is."""

_LEAST_BUFFER: Final = 1024 * 1024
_ANY: Final = "any"
_STANDARD_INPUT: Final = "-"
_NAMES_SHOWN: Final = 12

# What a kernel says that has packet sockets without this kind of ring.
_NO_RING: Final = (errno.EINVAL, errno.ENOPROTOOPT, errno.EOPNOTSUPP, errno.ENOSYS)


def list_interfaces() -> list[LiveInterface]:
    """The interfaces that can be named, and `any`. It takes no privilege. Raises CaptureError."""
    if sys.platform == "linux":
        from amqpscope.capture.live.links import linux_interfaces

        try:
            interfaces = list(linux_interfaces().values())
        except OSError as error:
            raise CaptureError(f"the interfaces cannot be listed: {error.strerror or error}") from error
    else:
        from amqpscope.capture.live.scapy_source import scapy_interfaces

        interfaces = scapy_interfaces()
    return [*interfaces, LiveInterface(_ANY, "all interfaces", LINK_RAW, True)]


def open_source(
    names: Sequence[str],
    filter: str = "",
    any_port: bool = False,
    ports: Sequence[int] = AMQP_PORTS,
    snaplen: int = MAX_PACKET,
    buffer_octets: int = BUFFER_OCTETS,
    promiscuous: bool = True,
) -> LiveSource:
    """Begin to capture from the interfaces `names`, from `any`, or from `-`, which is standard input.

    filter: in libpcap's language; without one, TCP from and to `ports`, or all of it if `any_port`.
    snaplen: octets of a packet that are captured. buffer_octets: of the kernel's buffer, which is made
    smaller if there is not so much memory. promiscuous: also packets to other machines. Raises CaptureError,
    NotPermitted or NotPossible if nobody can do it here.
    """
    if sys.platform == "win32":
        raise NotPossible(
            "live capture works on Windows only in WSL; without WSL, capture with dumpcap and check the file"
        )
    if snaplen < 1:
        raise CaptureError(f"a snapshot length of {snaplen} octets is too small")
    names = list(dict.fromkeys(names))
    if not names:
        raise CaptureError("no interface to capture from")
    for alone in (_STANDARD_INPUT, _ANY):
        if alone in names and len(names) > 1:
            raise CaptureError(f"-i {alone} cannot be combined with another interface")
    if names == [_STANDARD_INPUT]:
        if filter.strip():
            raise CaptureError(
                "--filter works only on interfaces; filter standard input in the program that writes it"
            )
        from amqpscope.capture.live.pipe import PipeSource

        return PipeSource()
    known = list_interfaces()
    for name in names:
        if name not in [one.name for one in known]:
            raise CaptureError(_no_such_interface(name, known))

    def program(link_type: int) -> Sequence[Instruction]:
        if filter.strip():
            from amqpscope.capture.live.libpcap import compiled

            return compiled(filter, link_type, snaplen)
        return ports_program([] if any_port else ports, snaplen, link_type == LINK_ETHERNET)

    shown = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
    try:
        if sys.platform == "linux":
            try:
                return _ring(shown, [] if names == [_ANY] else names, program, buffer_octets, promiscuous)
            except OSError as error:
                if error.errno not in _NO_RING:
                    raise
        from amqpscope.capture.live.scapy_source import ScapySource

        if names == [_ANY]:
            names = [one.name for one in known if one.up and one.name != _ANY]
        text = filter.strip() or _filter_text([] if any_port else ports)
        return ScapySource(shown, names, text, program, snaplen, buffer_octets, promiscuous)
    except PermissionError:
        raise NotPermitted(_no_permission(shown, names[0])) from None
    except OSError as error:
        raise CaptureError(f"{shown}: cannot be captured from: {error.strerror or error}") from error


def _ring(
    shown: str,
    names: Sequence[str],
    program: Callable[[int], Sequence[Instruction]],
    buffer_octets: int,
    promiscuous: bool,
) -> LiveSource:
    """The kernel's ring, as large as it can be had. Raises OSError."""
    from amqpscope.capture.live.ring import RingSource

    while True:
        try:
            return RingSource(shown, names, program, buffer_octets, promiscuous)
        except OSError as error:
            if error.errno != errno.ENOMEM or buffer_octets <= _LEAST_BUFFER:
                raise
            buffer_octets //= 2


def _filter_text(ports: Sequence[int]) -> str:
    """What `ports_program` lets pass, in libpcap's language."""
    if not ports:
        return "tcp"
    of_ports = " or ".join(f"port {port}" for port in ports)
    return f"(tcp and ({of_ports})) or (ip proto 6 and ip[6:2] & 0x1fff != 0)"


def _no_such_interface(name: str, known: Sequence[LiveInterface]) -> str:
    """What to say of a name that no interface has. The names most like it come first."""
    names = [one.name for one in known]
    near = difflib.get_close_matches(name, names, n=3)
    reported = (near + [one for one in names if one not in near])[:_NAMES_SHOWN]
    more = f" and {len(names) - len(reported)} more" if len(names) > len(reported) else ""
    return f"no interface {name}: there are {', '.join(reported)}{more}"


def _no_permission(shown: str, name: str) -> str:
    return (
        f"{shown}: no permission to capture; use sudo, or give the capability cap_net_raw to the Python "
        "interpreter or a copy of the interpreter (setcap cap_net_raw+ep PYTHON), or use a pipe "
        f"(tcpdump -U -w - -i {name} port 5672 | amqpscope sniff -i -)"
    )

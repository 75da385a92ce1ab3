"""Where a packet goes that is to be kept as it was captured, before anything is made of it."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from dissectors.wire import i64


@mypyc_attr(allow_interpreted_subclasses=True)
class PacketRecorder(ABC):
    """Takes every packet that a `PacketDecoder` is given, in the same order."""

    @abstractmethod
    def packet(
        self,
        number: i64,
        time: i64,
        interface: i64,
        link_type: i64,
        buf: bytes,
        start: i64,
        end: i64,
        wire: i64,
    ) -> None:
        """One captured packet, `buf[start:end]`, that had `wire` octets on the wire.

        `number` counts from 1 and `interface` from 0, `time` is in nanoseconds since 1970, `link_type` one of
        libpcap's LINKTYPE values. `buf` is only lent for the call.
        """

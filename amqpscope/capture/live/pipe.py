"""A capture that comes through a pipe while it is made, by tcpdump or dumpcap.

Nothing here waits for octets: what reads is asked only for what is there. Of what is compressed there may be
octets that give nothing yet; then reading is taken up again where it was.
"""

import os
import select
from typing import Final

from amqpscope.capture.live.source import TAKEN_AT_ONCE, LiveInterface, LiveSource
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.pcap import PcapReader
from amqpscope.capture.pcapng import PcapngReader
from amqpscope.capture.records import CaptureReader
from amqpscope.capture.source import CaptureSource
from amqpscope.errors import CaptureError

__all__ = ["PipeSource"]

_HEADER: Final = 24  # octets before the first packet in the shortest capture


class _NothingYet(Exception):
    """There is nothing to be read now."""


class _Arrived:
    """The file of a descriptor, as far as it has come."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self.first = b""
        self.patient = False  # wait for octets

    def read(self, octets: int) -> bytes:
        """Up to so many octets, none at the end. Raises _NothingYet."""
        first = self.first
        if first:
            self.first = first[octets:]
            return first[:octets]
        if not self._poll.poll(None if self.patient else 0):
            raise _NothingYet
        try:
            return os.read(self._descriptor, octets)
        except BlockingIOError:
            raise _NothingYet from None


class PipeSource(LiveSource):
    """The capture that comes from a descriptor, by default standard input, which stays open.

    Raises CaptureError here if there is nothing to come from it, and by `take` if what comes is no capture.
    """

    buffered = False

    def __init__(self, descriptor: int = 0) -> None:
        name = "standard input"
        try:  # before any other descriptor is opened, which might get the number of a closed one
            os.fstat(descriptor)
        except OSError as error:
            raise CaptureError(f"{name}: {error.strerror or error}") from error
        if os.isatty(descriptor):
            raise CaptureError(f"{name}: is a terminal; a capture has to be piped to it")
        super().__init__(name)
        self._arrived = _Arrived(descriptor)
        self._source = CaptureSource(self._arrived, self.name)
        self._reader: CaptureReader | None = None
        self._descriptor = descriptor
        self._more = True  # what was read may have left something that the descriptor does not tell of
        self._ended = False
        self._poll.register(descriptor, select.POLLIN)

    @property
    def number(self) -> int:
        return 0 if self._reader is None else int(self._reader.number)

    def take(self, decoder: PacketDecoder) -> int:
        before = self.number
        room = TAKEN_AT_ONCE
        self._more = False
        try:
            while not self._ended and room > 0:
                reader = self._reader
                if reader is None:
                    self._begin(decoder)
                    break
                block = self._source.read(TAKEN_AT_ONCE)
                room -= len(block)
                if block:
                    reader.feed(block)
                    self._describe(reader)
                else:
                    self._finish(decoder, reader)
            else:
                self._more = not self._ended
        except _NothingYet:
            pass
        return self.number - before

    def dropped(self) -> int:
        return 0

    def drops(self, index: int) -> int:
        return 0

    def fill(self) -> float:
        return 0.0

    def ended(self) -> bool:
        return self._ended

    def close(self) -> None:
        self._leave()
        super().close()

    def _waiting(self) -> bool:
        return self._more

    def _stirred(self, descriptor: int) -> bool:
        return True

    def _begin(self, decoder: PacketDecoder) -> None:
        """Read what tells what kind of capture it is, and its header; and stop there."""
        arrived = self._arrived
        first = b""
        try:
            while len(first) < _HEADER:
                more = arrived.read(_HEADER - len(first))
                if not more:
                    break
                first += more
        finally:
            arrived.first = first
        # That is enough, unless it is compressed: then it may take a few more.
        arrived.patient = True
        reader = self._source.start(decoder.sink, decoder)
        header = self._source.read(_HEADER)
        arrived.patient = False
        self._reader = reader
        self._more = True
        reader.feed(header)
        self._describe(reader)

    def _describe(self, reader: CaptureReader) -> None:
        """Have `interfaces` be those that the capture has named so far."""
        link_types: list[int] = []
        if isinstance(reader, PcapngReader):
            link_types = [int(one.link_type) for one in reader.interfaces]
        elif isinstance(reader, PcapReader):
            link_types = [int(reader.link_type)] if reader.link_type >= 0 else []
        for link_type in link_types[len(self.interfaces) :]:
            self.interfaces.append(LiveInterface(self.name, "", link_type, True))

    def _finish(self, decoder: PacketDecoder, reader: CaptureReader) -> None:
        reader.finish()
        if self._source.damage:
            decoder.sink.note(self._source.damage_code, self.number, 0, self._source.damage)
        self._leave()

    def _leave(self) -> None:
        if not self._ended:
            self._ended = True
            self._poll.unregister(self._descriptor)

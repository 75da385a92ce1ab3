"""What a source brings, in a recorder: its interfaces before their packets, and what of them was lost."""

from amqpscope.capture.live.source import LiveSource
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder

__all__ = ["SourceRecorder"]


class SourceRecorder:
    """Tells `recorder` of the interfaces of `source`. The packets it is given by who takes them.

    filter: by which they were captured, in libpcap's language, "" without one.
    """

    def __init__(self, source: LiveSource, recorder: PcapngRecorder, filter: str) -> None:
        self.recorder = recorder
        self._source = source
        self._filter = filter
        self._described = 0
        self._dropped: list[int] = []
        self.describe()

    def describe(self) -> None:
        """Before packets are taken: what interfaces there are by now."""
        interfaces = self._source.interfaces
        for index in range(self._described, len(interfaces)):
            one = interfaces[index]
            self.recorder.interface(index, one.name, one.link_type, one.description, self._filter)
        self._described = len(interfaces)

    def count_lost(self) -> None:
        """After packets were taken: those that were dropped behind them."""
        self._dropped += [0] * (len(self._source.interfaces) - len(self._dropped))
        for index, before in enumerate(self._dropped):
            dropped = self._source.drops(index)
            if dropped > before:
                self.recorder.lost(index, dropped - before)
                self._dropped[index] = dropped

    def finish(self, end: int) -> None:
        """The capture is over, at this time (ns); 0: with its last packet. Raises CaptureError."""
        interfaces = len(self._source.interfaces)
        received = [self._source.number] if interfaces == 1 else []
        self.recorder.finish(end, received, [self._source.drops(index) for index in range(interfaces)])

"""The few frames of a connection around an offending one, for people to look at.

Frames lie in the reader's large buffers, so what is kept of them here is copied, and little of it.
"""

from amqpscope.finding import Finding
from amqpscope.limits import CONTEXT_AFTER, CONTEXT_BEFORE, CONTEXT_OCTETS
from amqpscope.model import FrameRecord

__all__ = ["Context"]


class Context:
    """Sees all frames of a connection; gives each finding the frames around its own."""

    def __init__(self) -> None:
        self._latest: list[FrameRecord] = []
        self._awaiting: list[Finding] = []

    def saw(self, record: FrameRecord, found: list[Finding]) -> None:
        """The next frame, and what was found in it."""
        record = _kept(record)
        if self._awaiting:
            left: list[Finding] = []
            for finding in self._awaiting:
                finding.around.append(record)
                if len(finding.around) < finding.around_whole:
                    left.append(finding)
            self._awaiting = left
        for finding in found:
            finding.around = [*self._latest, record]
            finding.around_whole = len(finding.around) + CONTEXT_AFTER
            self._awaiting.append(finding)
        self._latest.append(record)
        if len(self._latest) > CONTEXT_BEFORE:
            del self._latest[0]

    def ended(self, found: list[Finding]) -> None:
        """The connection is over, and this was found because of that."""
        for finding in found:
            finding.around = self._latest[:]
            finding.around_whole = len(finding.around)


def _kept(record: FrameRecord) -> FrameRecord:
    """The record, taken out of the reader's buffer; of a large one a copy with what is kept of it."""
    frame = record.frame
    message = record.message
    if frame.declared_size <= CONTEXT_OCTETS and (message is None or message.lies_in(frame.buffer)):
        shift = frame.detach()
        if message is not None:
            message.move(frame.buffer, shift)
        return record
    copy = FrameRecord(
        record.connection,
        record.direction,
        record.packet,
        record.time,
        record.last_packet,
        record.last_time,
        record.acknowledged,
        frame.kept(CONTEXT_OCTETS),
    )
    if message is not None:
        copy.message = message.shortened(CONTEXT_OCTETS)
    return copy

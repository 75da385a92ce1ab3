"""A few frames of a connection around a frame at fault, for people to look at.

Frames lie in the reader's large buffers, so the context copies what it keeps, and keeps little.
"""

from amqpscope.limits import CONTEXT_AFTER, CONTEXT_BEFORE, CONTEXT_KEPT, CONTEXT_OCTETS
from amqpscope.model.finding import Finding
from amqpscope.model.records import FrameRecord, FrameRef
from amqpscope.reassembly.provenance import Provenance

__all__ = ["Context"]


class Context:
    """Sees all frames of a connection, and gives each finding the frames around its own."""

    def __init__(self) -> None:
        self._latest: list[FrameRecord] = []
        # Excerpts that later frames still belong to, and how many frames each will have.
        self._awaiting: list[tuple[list[FrameRecord], int]] = []

    def saw(self, record: FrameRecord, found: list[Finding]) -> None:
        """The next frame, and the findings in it, or the findings by it in an earlier frame."""
        record = _kept(record)
        if self._awaiting:
            left: list[tuple[list[FrameRecord], int]] = []
            for frames, whole in self._awaiting:
                frames.append(record)
                if len(frames) < whole:
                    left.append((frames, whole))
            self._awaiting = left
        self._latest.append(record)
        if len(self._latest) > CONTEXT_KEPT:
            del self._latest[0]
        for finding in found:
            frames, whole = self.around(finding.spot)
            finding.around = frames
            finding.around_whole = whole

    def around(self, spot: FrameRef) -> tuple[list[FrameRecord], int]:
        """The frames around one frame, or around the newest if that frame is not kept any more.

        The list grows with the next frames of the connection until it has as many frames as the second value
        says.
        """
        latest = self._latest
        at = spot.among(latest)
        if at < 0:
            at = len(latest) - 1
        first = max(at - CONTEXT_BEFORE, 0)
        whole = at - first + 1 + CONTEXT_AFTER
        frames = latest[first : first + whole]
        if len(frames) < whole:
            self._awaiting.append((frames, whole))
        return frames, whole

    def ended(self, found: list[Finding]) -> None:
        """The connection is over, and the finding was made because of that."""
        for finding in found:
            finding.around = self._latest[-CONTEXT_BEFORE:]
            finding.around_whole = len(finding.around)


def _kept(record: FrameRecord) -> FrameRecord:
    """The record, copied out of the reader's buffer; a large record is copied only in part."""
    frame = record.frame
    message = record.message
    if frame.declared_size <= CONTEXT_OCTETS and (message is None or message.lies_in(frame.buffer)):
        shift = frame.detach()
        if message is not None:
            message.move(frame.buffer, shift)
        return record
    first = Provenance(record.packet, record.time, record.acknowledged)
    last = Provenance(record.last_packet, record.last_time, -1)
    copy = FrameRecord(record.connection, record.direction, first, last, frame.kept(CONTEXT_OCTETS))
    if message is not None:
        copy.message = message.shortened(CONTEXT_OCTETS)
    return copy

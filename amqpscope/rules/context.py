"""A few frames of a connection around a frame at fault, for people to look at.

Frames lie in the reader's large buffers. Most frames are forgotten while their buffer is still read, so a
context copies a frame only when the reader goes on to another buffer, or when a finding needs the frame. A
context keeps little.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpscope.limits import CONTEXT_AFTER, CONTEXT_BEFORE, CONTEXT_KEPT, CONTEXT_OCTETS
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, FrameRecord, FrameRef
from amqpscope.reassembly.provenance import Provenance
from dissectors.wire import i64

if TYPE_CHECKING:
    from amqpscope.tracking.amqp10.identity import Link
    from amqpscope.tracking.amqp10.link import LinkEnd

__all__ = ["Context", "Contexts"]


class Contexts:
    """The contexts of all connections of a capture."""

    def __init__(self) -> None:
        # The contexts that have seen frames since the reader's buffer changed.
        self._borrowing: list[Context] = []

    def borrows(self, context: Context) -> None:
        """The context keeps a frame that lies in the reader's buffer."""
        self._borrowing.append(context)

    def release(self) -> None:
        """The reader goes on to another buffer: copy what is kept out of the buffer before."""
        for context in self._borrowing:
            context.copy_out()
            context.borrowing = False
        self._borrowing.clear()


class Context:
    """Sees all frames of a connection, and gives each finding the frames around its own.

    contexts: says when the reader's buffer changes.
    """

    def __init__(self, contexts: Contexts) -> None:
        self._contexts: Contexts = contexts
        # The latest frames, as a ring that begins at `_oldest`.
        self._latest: list[FrameRecord] = []
        # The end of the link that the sender of each of them names in it.
        self._ends: list[LinkEnd | None] = []
        self._oldest: i64 = 0
        # How many frames came since the latest frames were copied.
        self._uncopied: i64 = 0
        # Whether the contexts know that frames came since the reader's buffer changed.
        self.borrowing: bool = False
        # Excerpts that later frames still belong to, and how many frames each will have.
        self._awaiting: list[tuple[list[FrameRecord], list[object], int]] = []
        # The last end that was asked for, and its link.
        self._end: LinkEnd | None = None
        self._link: Link | None = None

    def saw(self, record: FrameRecord, found: list[Finding], end: LinkEnd | None) -> None:
        """The next frame, and the findings in it, or the findings by it in an earlier frame.

        end: of the link that the frame is about, None if it is about none.
        """
        if not self.borrowing:
            self.borrowing = True
            self._contexts.borrows(self)
        self._uncopied += 1
        if len(self._latest) < CONTEXT_KEPT:
            self._latest.append(record)
            self._ends.append(end)
        else:
            oldest = self._oldest
            self._latest[oldest] = record
            self._ends[oldest] = end
            self._oldest = 0 if oldest + 1 == CONTEXT_KEPT else oldest + 1
        if self._awaiting:
            self._await(end)
        for finding in found:
            frames, links, whole = self.around(finding.spot)
            finding.around = frames
            finding.around_links = links
            finding.around_whole = whole

    def copy_out(self) -> None:
        """Copy the frames that are kept out of the reader's buffer."""
        kept: i64 = len(self._latest)
        count: i64 = self._uncopied
        if count > kept:
            count = kept
        while count > 0:
            at: i64 = self._oldest + kept - count
            if at >= kept:
                at -= kept
            self._latest[at] = _kept(self._latest[at])
            count -= 1
        self._uncopied = 0

    def around(self, spot: FrameRef) -> tuple[list[FrameRecord], list[object], int]:
        """The frames around one frame, or around the newest if that frame is not kept any more, and their
        links.

        Both lists grow with the next frames of the connection until they have as many entries as the third
        value says.
        """
        latest = self._in_order()
        at = spot.among(latest)
        if at < 0:
            at = len(latest) - 1
        first = max(at - CONTEXT_BEFORE, 0)
        whole = at - first + 1 + CONTEXT_AFTER
        frames = latest[first : first + whole]
        links = self._links(first, first + whole)
        if len(frames) < whole:
            self._awaiting.append((frames, links, whole))
        return frames, links, whole

    def ended(self, found: list[Finding]) -> None:
        """The connection is over, and the finding was made because of that."""
        if not found:
            return
        latest = self._in_order()
        for finding in found:
            finding.around = latest[-CONTEXT_BEFORE:]
            finding.around_links = self._links(max(len(latest) - CONTEXT_BEFORE, 0), len(latest))
            finding.around_whole = len(finding.around)

    def _await(self, end: LinkEnd | None) -> None:
        """Add the newest frame to the excerpts that it still belongs to."""
        record = self._in_order()[-1]
        left: list[tuple[list[FrameRecord], list[object], int]] = []
        for frames, links, whole in self._awaiting:
            frames.append(record)
            links.append(self._link_of(end, record))
            if len(frames) < whole:
                left.append((frames, links, whole))
        self._awaiting = left

    def _in_order(self) -> list[FrameRecord]:
        """The latest frames, copied out of the reader's buffer, the oldest first."""
        self.copy_out()
        oldest = self._oldest
        if oldest > 0:
            self._latest = self._latest[oldest:] + self._latest[:oldest]
            self._ends = self._ends[oldest:] + self._ends[:oldest]
            self._oldest = 0
        return self._latest

    def _links(self, first: int, behind: int) -> list[object]:
        """The links of some of the frames that are kept."""
        links: list[object] = []
        for record, end in zip(self._latest[first:behind], self._ends[first:behind], strict=True):
            links.append(self._link_of(end, record))
        return links

    def _link_of(self, end: LinkEnd | None, record: FrameRecord) -> Link | None:
        """The link that the sender of a frame has attached with this end, by its name and addresses."""
        if end is None:
            return None
        link = self._link
        if link is None or end is not self._end:
            from amqpscope.tracking.amqp10.identity import Link  # of AMQP 1.0 only

            direction = record.direction
            link = Link(end.name, record.connection.peer(direction if end.sender else 1 - direction))
            attaches = [end.attach, end.peer_attach]
            # The server says which address a dynamic node has.
            for attach in attaches if record.peer == CLIENT else reversed(attaches):
                if attach is not None:
                    link.learn(attach)
            # Octets that were not captured may have given its handle to a link that carries security tokens.
            link.tokens = link.tokens or not end.whole
            self._end = end
            self._link = link
        return link


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

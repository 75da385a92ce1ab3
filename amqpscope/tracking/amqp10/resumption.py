"""What the two ends of a link state about unsettled deliveries when the link is attached again.

Sources: transport.xml, "Resuming Deliveries".
"""

from collections.abc import Iterable
from typing import Any, Final

from amqpscope.limits import MAX_STATED
from amqpscope.tracking.amqp10.credit import UNKNOWN
from dissectors.amqp10.performatives import Attach
from dissectors.wire import i64

__all__ = ["NO_OCTETS", "NO_RESUMPTION", "NO_TAGS", "LinkResumption", "unsettled_map"]

# mypyc: null objects. Nothing writes to them.
NO_OCTETS: Final[dict[bytes, int]] = {}
NO_TAGS: Final[set[bytes]] = set()


class LinkResumption:
    """Of a link, by delivery-tag: what was left unsettled, and what was resumed."""

    def __init__(self) -> None:
        # What this end lists as unsettled in its attach; None if its map is null.
        self.listed: dict[bytes, object] | None = None
        # What the other end lists as unsettled in its attach; None if its map is null.
        self.peer_listed: dict[bytes, object] | None = None
        # As sender: the tags that were resumed, or used again though they are listed.
        self.resumed: set[bytes] = NO_TAGS
        # As sender: the octets of complete deliveries from before the link was attached again.
        self.former: dict[bytes, int] = NO_OCTETS
        # As receiver: what it lists as unsettled and the sender's attach does not.
        self.orphans: set[bytes] = NO_TAGS
        # Offset in the sender's stream behind the attach that does not list them.
        self.orphans_end: i64 = UNKNOWN

    def resume(self, tag: bytes) -> None:
        """The sender resumes a delivery, or uses the tag of a listed one."""
        if not self.resumed:
            self.resumed = set()
        if len(self.resumed) < MAX_STATED:
            self.resumed.add(tag)

    def compare(self, attach: Attach, end: i64) -> None:
        """Find what this receiver lists as unsettled, and the sender's attach, ending at `end`, does not."""
        self.orphans = NO_TAGS
        own = self.listed
        theirs = self.peer_listed
        if not own or theirs is None or attach.incomplete_unsettled:
            return
        orphans = {tag for tag in own if tag not in theirs}
        if orphans:
            self.orphans = orphans
            self.orphans_end = end

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values; what the ends list follows from their attaches."""
        return (
            tuple(sorted(self.resumed)),
            tuple(self.former.items()),
            (tuple(sorted(self.orphans)), int(self.orphans_end)),
        )

    def restore(self, state: tuple[Any, ...]) -> None:
        """Take what `dump` gave."""
        resumed, former, orphans = state
        self.resumed = set(resumed)
        self.former = dict(former)
        self.orphans = set(orphans[0])
        self.orphans_end = orphans[1]


def unsettled_map(attach: Attach | None) -> dict[bytes, object] | None:
    """The unsettled map of an attach, by delivery-tag; None if there is none."""
    if attach is None or attach.unsettled is None:
        return None
    pairs: Iterable[tuple[object, object]] = attach.unsettled.pairs
    return {tag: state for tag, state in pairs if isinstance(tag, bytes)}


# mypyc: null object, of most links, which are attached once. Nothing writes to it.
NO_RESUMPTION: Final = LinkResumption()

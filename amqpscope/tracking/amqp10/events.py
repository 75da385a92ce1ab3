"""The events of an AMQP 1.0 connection, for subscribers of a `Conversation`.

Each method is one event and does nothing here: a subscriber overrides the methods that it needs.
`amqpscope.tracking.events` describes their arguments and when they are called.
"""

from mypy_extensions import mypyc_attr

from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from amqpscope.tracking.events import Listener
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Close,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Transfer,
)

__all__ = ["Listener10", "Taker10"]


@mypyc_attr(allow_interpreted_subclasses=True)
class Listener10(Listener):
    """Takes the events of an AMQP 1.0 connection."""

    def needs_deliveries(self) -> bool:
        """Whether the subscriber needs the events of deliveries. When the answer changes, it says so by
        `Conversation10.ask_again`.
        """
        return True

    def header(self, record: FrameRecord, body: ProtocolHeader) -> None:
        """A peer sends a protocol header."""

    def sasl(self, record: FrameRecord) -> None:
        """A peer sends a frame of the SASL layer."""

    def opened(self, record: FrameRecord, body: Open) -> None:
        """A peer opens the connection."""

    def closed(self, record: FrameRecord, body: Close) -> None:
        """A peer closes the connection."""

    def session_begun(self, record: FrameRecord, body: Begin, session: Session) -> None:
        """A peer begins a session, or answers the begin of the other peer."""

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        """A peer ends its half of a session."""

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        """A peer attaches a link, or answers the attach of the other peer."""

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        """A peer detaches its half of a link."""

    def flow(self, record: FrameRecord, body: Flow, session: Session, link: Link | None) -> None:
        """A peer updates the windows of a session and, unless `link` is None, the credit of that link."""

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        """A peer sends the first transfer of a delivery. It may be the last one, too."""

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        """A peer sends a further transfer of a delivery."""

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        """A peer changes the state of deliveries, or settles them.

        deliveries: those of the named ones that were begun unsettled and that their receiver has not settled
        before, in the order of their ids.
        """

    def stray(self, record: FrameRecord, session: Session | None) -> None:
        """A frame names a session (None) or a link of `session` that its sender does not have.

        A transfer may cause a `delivery_started`, too, with a delivery whose link is None.
        """

    def other(self, record: FrameRecord) -> None:
        """Any other frame: an empty one, one that does not decode, octets that were skipped."""


class Taker10:
    """A listener that takes an event, in a chain of those that do. next: the next one, None for none.

    mypyc: a chain, because compiled code checks the type of what stands in a list at each use.
    """

    def __init__(self, listener: Listener10, following: "Taker10 | None") -> None:
        self.listener: Listener10 = listener
        self.next: Taker10 | None = following

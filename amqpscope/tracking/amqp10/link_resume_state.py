"""How the sending end attached a link, and what it left unsettled: for later connections.

A link outlives its connection. A peer that attaches it again, on another connection of the same two
containers, lists in the attach what is still unsettled. Only the unsettled deliveries at the end of the
earlier connection show whether the list is right. This module keeps them for each link, in a compact form.

Sources: transport.xml, "Establishing or Resuming a Link", "Resuming Deliveries"; messaging.xml, source,
terminus-expiry-policy.
"""

from typing import Any

from amqpscope.limits import MAX_LEFT
from amqpscope.model.records import FrameRef
from dissectors.amqp10.messaging import Source
from dissectors.amqp10.performatives import Attach
from dissectors.wire import i64

__all__ = ["LinkResumeState"]


class LinkResumeState:
    """One link of a connection, as its sending end attached it first there.

    name: the link's. spot: of the attach. resumes: its unsettled map is not null. partial: the map does not
    list all (incomplete-unsettled, or more than is kept). tags: those in the map.
    left: tags of deliveries that neither end had settled when the session or the connection was over.
    closed: the link was, by either end. lasts: the source outlives the connection (expiry-policy never).
    timeout: else, for how many seconds it does.
    """

    def __init__(self, name: str, spot: FrameRef) -> None:
        self.name: str = name
        self.spot: FrameRef = spot
        self.resumes: bool = False
        self.partial: bool = False
        self.tags: tuple[bytes, ...] = ()
        self.left: tuple[bytes, ...] = ()
        self.closed: bool = False
        self.lasts: bool = False
        self.timeout: i64 = 0

    def attached(self, attach: Attach) -> None:
        """What the attach at `spot` says of unsettled deliveries."""
        unsettled = attach.unsettled
        if unsettled is None:
            # A value that is no map is a fault of its own.
            self.resumes = attach.unread(7)
            self.partial = self.resumes
            return
        self.resumes = True
        self.partial = attach.incomplete_unsettled is True or len(unsettled) > MAX_LEFT
        self.tags = tuple(key for key, _ in unsettled.pairs[:MAX_LEFT] if isinstance(key, bytes))

    def follow(self, attach: Attach) -> None:
        """An attach of the link, the first or one after it on the same connection."""
        self.closed = False
        self.left = ()
        source = attach.source
        if isinstance(source, Source):
            self.lasts = source.expiry_policy == "never"
            self.timeout = source.timeout or 0

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            self.name,
            self.spot.dump(),
            (self.resumes, self.partial, self.tags),
            (self.left, self.closed, self.lasts, int(self.timeout)),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "LinkResumeState":
        """The object of what `dump` returned."""
        name, spot, attached, after = state
        account = LinkResumeState(name, FrameRef.load(spot))
        account.resumes, account.partial, account.tags = attached
        account.left, account.closed, account.lasts, account.timeout = after
        return account

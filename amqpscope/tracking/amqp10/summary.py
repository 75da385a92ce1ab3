"""What is kept of a finished AMQP 1.0 connection, for comparison with later ones of the same capture set."""

from typing import Any

from amqpscope.model.records import Connection
from amqpscope.tracking.amqp10.link_resume_state import LinkResumeState
from amqpscope.tracking.amqp10.message_digest import MessageDigest
from amqpscope.tracking.summary import ConnectionSummary
from dissectors.wire import i64

__all__ = ["Amqp10Summary"]


class Amqp10Summary(ConnectionSummary):
    """One AMQP 1.0 connection.

    containers: the container-id of each end by the direction in which it sends. ended: the time (ns) of
    the last frame. whole: both streams were captured from start to end. links: by the direction in which
    their senders send. passages: the first messages of each direction. all_passages: whether these are all.
    """

    def __init__(
        self,
        connection: Connection,
        containers: tuple[str, str],
        ended: i64,
        whole: bool,
        links: tuple[list[LinkResumeState], list[LinkResumeState]],
        digests: tuple[list[MessageDigest], list[MessageDigest]],
        all_passages: tuple[bool, bool],
    ) -> None:
        super().__init__(connection)
        self.containers: tuple[str, str] = containers
        self.ended: i64 = ended
        self.whole: bool = whole
        self.links: tuple[list[LinkResumeState], list[LinkResumeState]] = links
        self.digests: tuple[list[MessageDigest], list[MessageDigest]] = digests
        self.all_passages: tuple[bool, bool] = all_passages

    @property
    def weight(self) -> int:
        return len(self.links[0]) + len(self.links[1])

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            self.connection.dump(),
            self.containers,
            int(self.ended),
            self.whole,
            tuple(tuple(account.dump() for account in accounts) for accounts in self.links),
            tuple(tuple(passed.dump() for passed in digests) for digests in self.digests),
            self.all_passages,
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "Amqp10Summary":
        """The object of what `dump` returned."""
        connection, containers, ended, whole, links, digests, all_passages = state
        first, second = ([LinkResumeState.load(account) for account in accounts] for accounts in links)
        to, fro = ([MessageDigest.load(passed) for passed in digests] for digests in digests)
        return Amqp10Summary(
            Connection.load(connection), containers, ended, whole, (first, second), (to, fro), all_passages
        )

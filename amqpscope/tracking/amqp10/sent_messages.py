"""The messages and links of an endpoint that are compared with what is sent later, or elsewhere."""

from typing import Any, Final

from amqpscope.tracking.amqp10.credit import UNKNOWN
from amqpscope.tracking.amqp10.link_resume_state import LinkResumeState
from amqpscope.tracking.amqp10.message_digest import MessageDigest
from amqpscope.tracking.amqp10.redelivery import Fate
from dissectors.wire import i64

__all__ = ["NO_MESSAGES", "SentMessages"]


class SentMessages:
    """What is kept of the messages that an endpoint has sent, and of the links on which it sent them."""

    def __init__(self) -> None:
        # The links on which it sends, by name, for the connection after this one.
        self.accounts: dict[str, LinkResumeState] = {}
        # Of the first messages it sent those with an id, to be found on other connections.
        self.digests: list[MessageDigest] = []
        # How many messages were looked at for that.
        self.looked_at: i64 = 0
        # All messages that can be looked at have been.
        self.complete: bool = True
        # What became of its messages so far, by message-id, if they may be a distribution node's.
        self.fates: dict[bytes, Fate] = {}
        # The link, by name, on which a delivery was last accepted.
        self.accepted_on: str = ""
        # Offset in the peer's stream behind the disposition that accepted it.
        self.accepted_end: i64 = UNKNOWN
        # It has sent messages with reserved annotations.
        self.reserved: bool = False

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            tuple(account.dump() for account in self.accounts.values()),
            (tuple(digest.dump() for digest in self.digests), int(self.looked_at), self.complete),
            tuple(fate.dump() for fate in self.fates.values()),
            (self.accepted_on, int(self.accepted_end), self.reserved),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "SentMessages":
        """The object of what `dump` returned."""
        messages = SentMessages()
        accounts, digests, fates, accepted = state
        messages.accounts = {account.name: account for account in map(LinkResumeState.load, accounts)}
        messages.digests = [MessageDigest.load(digest) for digest in digests[0]]
        _, messages.looked_at, messages.complete = digests
        messages.fates = {fate.message_id: fate for fate in map(Fate.load, fates)}
        messages.accepted_on, messages.accepted_end, messages.reserved = accepted
        return messages


# mypyc: null object, for an endpoint that has attached no link on which it sends.
NO_MESSAGES: Final = SentMessages()

"""Which frame of AMQP 0-9-1 cannot have been sent before which frame of the other peer.

For logs in which the lines of the two directions may be exchanged. An answer comes behind its question, and
what names a delivery or a message comes behind that.
"""

from typing import Final

from amqpscope.capture.logs.entries import Causes, Entry
from amqpscope.limits import MAX_LOG_CONNECTIONS
from dissectors.amqp091.registry import METHODS

__all__ = ["Causes091"]

_QUESTIONS: Final = {answer: one.name for one in METHODS for answer in one.responses}
_SETTLING: Final = ("basic.ack", "basic.nack", "basic.reject")
_MESSAGES: Final = ("basic.publish", "basic.deliver", "basic.get-ok")
_ARGUMENTS: Final = 11
"""Where the arguments of a method begin in its frame."""


class Causes091(Causes):
    """What has been seen of one connection."""

    def __init__(self) -> None:
        # By sender and channel: how many questions of each name wait for their answer.
        self._asked: dict[tuple[bool, int, str], int] = {}
        # By sender and channel: how many messages were sent.
        self._messages: dict[tuple[bool, int], int] = {}

    def lacks(self, entry: Entry) -> bool:
        """Whether something of the other peer must come first, and has not come."""
        channel = _channel(entry)
        question = _QUESTIONS.get(entry.name)
        if question is not None:
            return self._asked.get((not entry.sent, channel, question), 0) == 0
        if entry.name in _SETTLING and len(entry.octets) >= _ARGUMENTS + 8:
            return _tag(entry) > self._messages.get((not entry.sent, channel), 0)
        return False

    def gives(self, entry: Entry, lacking: Entry) -> bool:
        """Whether an entry is what another one lacks."""
        if _channel(entry) != _channel(lacking):
            return False
        if lacking.name in _SETTLING:
            seen = self._messages.get((entry.sent, _channel(entry)), 0)
            return entry.name in _MESSAGES and _tag(lacking) == seen + 1
        return entry.name == _QUESTIONS.get(lacking.name)

    def saw(self, entry: Entry) -> None:
        """An entry has found its place."""
        channel = _channel(entry)
        question = _QUESTIONS.get(entry.name)
        if question is not None:
            place = (not entry.sent, channel, question)
            self._asked[place] = max(0, self._asked.get(place, 0) - 1)
        if entry.name == "channel.open":
            self._messages.pop((True, channel), None)
            self._messages.pop((False, channel), None)
        if entry.name in _MESSAGES:
            sender = (entry.sent, channel)
            self._messages[sender] = self._messages.get(sender, 0) + 1
        if len(self._asked) < MAX_LOG_CONNECTIONS:
            asked = (entry.sent, channel, entry.name)
            self._asked[asked] = self._asked.get(asked, 0) + 1


def _tag(entry: Entry) -> int:
    return int.from_bytes(entry.octets[_ARGUMENTS : _ARGUMENTS + 8], "big")


def _channel(entry: Entry) -> int:
    return int.from_bytes(entry.octets[1:3], "big")

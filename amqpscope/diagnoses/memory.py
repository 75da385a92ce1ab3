"""What a watch remembers of deliveries until they are settled, in bounded memory.

What is remembered stands at the delivery itself, because a dictionary or a list of deliveries costs several
times as much for each of them. The conversation knows where these deliveries are.
"""

from amqpscope.limits import MAX_UNANSWERED
from amqpscope.tracking.events import Conversation, Rememberable
from dissectors.wire import i64

__all__ = ["Memory"]


class Memory:
    """The deliveries of which one watch remembers something. No other watch remembers anything of them.

    Of too many the oldest are forgotten.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.conversation: Conversation = conversation
        # How many they are, with those that no frame can name any more.
        self.count: i64 = 0

    def put(self, delivery: Rememberable, what: object) -> None:
        """Remember this of a delivery, instead of what was remembered of it."""
        if delivery.remembered is None:
            if self.count >= 2 * MAX_UNANSWERED:
                self._forget(MAX_UNANSWERED)
            self.count += 1
        delivery.remembered = what

    def take(self, delivery: Rememberable) -> object | None:
        """What is remembered of a delivery, None for nothing. It is forgotten."""
        what = delivery.remembered
        if what is not None:
            delivery.remembered = None
            self.count -= 1
        return what

    def clear(self) -> None:
        """Forget all."""
        self._forget(0)

    def _forget(self, left: i64) -> None:
        """Forget the oldest deliveries, all but so many."""
        known = [one for one in self.conversation.outstanding() if one.remembered is not None]
        known.sort(key=_packet)
        size: i64 = len(known)
        at: i64 = 0
        while at < size - left:
            known[at].remembered = None
            at += 1
        self.count = min(size, left)


def _packet(delivery: Rememberable) -> int:
    return int(delivery.packet)

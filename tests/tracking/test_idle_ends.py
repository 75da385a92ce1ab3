"""A session or a link on which nothing is sent shares its empty collections: a peer may open very many."""

from __future__ import annotations

import pytest

from amqpscope.tracking.amqp10.attachment import Attachment
from amqpscope.tracking.amqp10.credit import UNKNOWN, ReceiverCount, SenderCredit
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10.resumption import LinkResumption
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.session_deliveries import ReceivedDeliveries, SentDeliveries
from amqpscope.tracking.amqp10.transfer_ids import IncomingTransfers, OutgoingTransfers
from amqpscope.tracking.knowledge import PeerLimits
from amqpscope.tracking.spans import Spans
from dissectors.amqp10.performatives import Transfer

COLLECTIONS = (list, dict, set)
PARTS = (
    Attachment, IncomingTransfers, PeerLimits, OutgoingTransfers, ReceivedDeliveries, ReceiverCount,
    LinkResumption, SenderCredit, SentDeliveries, Spans,
)  # fmt: skip


def collections(thing: object) -> dict[str, int]:
    """The identities of the collections that a thing has, and of those of its parts."""
    found: dict[str, int] = {}
    for name in dir(thing):
        value = getattr(thing, name)
        if isinstance(value, PARTS):
            found |= {f"{name}.{inner}": one for inner, one in collections(value).items()}
        elif isinstance(value, COLLECTIONS) and not name.startswith("__"):
            found[name] = id(value)
    return found


@pytest.mark.parametrize(
    ("one", "other", "own"),
    [
        (LinkEnd("a", True, 0), LinkEnd("b", False, 1), set()),
        (SessionEnd(0), SessionEnd(1), {"handles", "peer_handles", "links"}),
    ],
    ids=["link", "session"],
)
def test_idle_ends_share_their_empty_collections(one: object, other: object, own: set[str]) -> None:
    others = collections(other)
    assert {name for name, identity in collections(one).items() if others[name] != identity} == own


def test_what_one_writes_no_other_has() -> None:
    one, other = SessionEnd(0), SessionEnd(1)
    one.receiving().aborted[3] = 100
    one.receiving().add(7, 50)
    one.receiving().settled.add(1, 2)
    one.sending().aborted.add(4)
    one.incoming.receive_transfer(50)
    one.outgoing.limits.set(10, 20, 1)
    assert not other.received.aborted and not other.received.ends and not other.received.settled.firsts
    assert not other.sent.aborted and not other.incoming.ends and len(other.outgoing.limits) == 0


def test_what_a_link_writes_no_other_has() -> None:
    one, other = LinkEnd("a", False, 0), LinkEnd("b", True, 1)
    one.resuming().resume(b"tag")
    one.received().count = 7
    other.received().current = 3
    transfer = Transfer()
    transfer.delivery_tag = b"tag"
    one.send_transfer(transfer, 0, 1, 10)
    idle = [LinkEnd("c", sender, 2) for sender in (True, False)]
    for link in idle:
        assert not link.resumption.resumed and not link.tags
        assert link.receipt.count == 0 and link.receipt.current == UNKNOWN and link.credit.count == 0

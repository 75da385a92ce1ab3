"""A session or a link on which nothing is sent shares its empty collections: a peer may open very many."""

from __future__ import annotations

import pytest

from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.knowledge import Limits
from amqpscope.tracking.spans import Spans

COLLECTIONS = (list, dict, set)


def collections(thing: object) -> dict[str, int]:
    """The identities of the collections that a thing has, and of those of its own counters."""
    found: dict[str, int] = {}
    for name in dir(thing):
        value = getattr(thing, name)
        if isinstance(value, (Limits, Spans)):
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
    one.abort_received(3, 100)
    one.abort_sent(4)
    one.receive_transfer(50)
    one.receive_delivery(7, 50)
    one.settled.add(1, 2)
    one.limits.set(10, 20, 1)
    assert not other.aborted and not other.aborts and not other.received_ends
    assert not other.received_deliveries and not other.settled.firsts and len(other.limits) == 0

"""Objects that stand for nothing are shared by all connections, so nothing may ever write to one."""

from __future__ import annotations

from pathlib import Path

import pytest

import amqpscope
from amqpscope.reassembly.stalls import NO_STALLS, Stalls
from amqpscope.tracking.amqp10.channels import NO_CHANNELS, Channels
from amqpscope.tracking.amqp10.credit import NO_CREDIT, NO_RECEIPT, ReceiverCount, SenderCredit
from amqpscope.tracking.amqp10.sent_messages import NO_MESSAGES, SentMessages
from amqpscope.tracking.amqp10.session_deliveries import (
    NONE_RECEIVED,
    NONE_SENT,
    ReceivedDeliveries,
    SentDeliveries,
)

RULES = Path(__file__).resolve().parent.parent.parent / "captures" / "rules"

SHARED = [
    (NO_CHANNELS, Channels),
    (NO_CREDIT, SenderCredit),
    (NO_MESSAGES, SentMessages),
    (NO_RECEIPT, ReceiverCount),
    (NO_STALLS, Stalls),
    (NONE_RECEIVED, ReceivedDeliveries),
    (NONE_SENT, SentDeliveries),
]


def state(thing: object) -> dict[str, object]:
    """The attributes of an object, compiled or not; those that are objects, by what they hold."""
    names = getattr(thing, "__mypyc_attrs__", None) or vars(thing)
    values = {name: getattr(thing, name) for name in names if not name.startswith("__")}
    return {name: state(value) if _is_ours(value) else value for name, value in values.items()}


def _is_ours(value: object) -> bool:
    return type(value).__module__.startswith(("amqpscope.", "dissectors."))


@pytest.mark.parametrize("protocol", ["amqp10", "amqp10-draft2011"])
def test_no_capture_changes_them(protocol: str) -> None:
    captures = sorted((RULES / protocol).glob("*/*.pcap*"))
    assert len(captures) > 10
    for capture in captures[:: 1 + len(captures) // 150]:
        list(amqpscope.check(str(capture)))
    for shared, kind in SHARED:
        assert state(shared) == state(kind())

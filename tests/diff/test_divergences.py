"""One thing is changed in the second run: it is found, named, and nothing else is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support import amqp10_encode as amqp
from support.comparisons import compared, reported
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091

Words = list[tuple[str, list[tuple[str, str, str]]]]


def sending(
    *,
    open: dict[str, object] | None = None,
    attach: dict[str, object] | None = None,
    credit: int = 10,
    messages: int = 3,
    outcome: bytes | None = None,
    settled: bool | None = None,
    body: bytes = amqp.amqp_value("hello"),
) -> Dialogue:
    """A client that sends some messages, of which the second has the outcome."""
    d = Dialogue()
    d.opened(client=open)
    d.client.begin()
    d.server.begin()
    d.attached(credit, client=attach)
    for number in range(messages):
        d.client.transfer(body, settled=settled)
        if settled is None:
            d.server.disposition(number, state=outcome if number == 1 and outcome else amqp.accepted())
    d.client.detach()
    d.server.detach()
    d.goodbye()
    return d


CHANGED_10: list[tuple[str, Callable[[], Dialogue], Words]] = [
    (
        "max-frame-size",
        lambda: sending(open={"max_frame_size": 4096}),
        [("the client's open", [("max-frame-size", "not set", "4096")])],
    ),
    (
        "settle mode",
        lambda: sending(attach={"snd_settle_mode": 0}),
        [("the client's attach on link q", [("snd-settle-mode", "not set", "unsettled")])],
    ),
    (
        "credit",
        lambda: sending(credit=100),
        [("the server's flow on link q", [("link-credit", "10", "100")])],
    ),
    (
        "outcome",
        lambda: sending(outcome=amqp.released()),
        [
            (
                "the outcome that the server sends for delivery 2 on link q",
                [("", "accepted settled", "released settled")],
            )
        ],
    ),
    (
        "one message fewer",
        lambda: sending(messages=2),
        [
            (
                "delivery 3 of the client on link q",
                [("", "transfer (settled false, body amqp-value)", "nothing")],
            ),
            (
                "the outcome that the server sends for delivery 3 on link q",
                [("", "accepted settled", "nothing")],
            ),
        ],
    ),
    (
        "another body",
        lambda: sending(body=amqp.amqp_value("goodbye")),
        [
            (
                f"delivery {number} of the client on link q",
                [("body", "amqp-value", "amqp-value (another one)")],
            )
            for number in (1, 2, 3)
        ],
    ),
]


@pytest.mark.parametrize(
    ("what", "change", "words"), CHANGED_10, ids=lambda one: one if isinstance(one, str) else ""
)
def test_one_change_of_1_0_is_named(what: str, change: Callable[[], Dialogue], words: Words) -> None:
    comparison = compared(sending().pcap(), change().pcap())
    assert not comparison.same
    assert reported(comparison) == words


def publishing(
    *,
    heartbeat: int = 60,
    prefetch: int = 10,
    messages: int = 3,
    acks: bool = True,
    rejected: int = -1,
    missing: int = -1,
    properties: dict[str, object] | None = None,
) -> Dialogue091:
    """A client that publishes some messages and gets them back."""
    d = Dialogue091()
    d.opened(tune_ok={"heartbeat": heartbeat})
    d.channel(1)
    d.declare("q")
    d.qos(prefetch_count=prefetch)
    for _ in range(messages):
        d.client.publish(b"hello", routing_key="q", **(properties or {}))
    d.consume("q", consumer_tag="c")
    for number in range(messages):
        d.server.deliver(b"hello", **(properties or {}))
        if number == rejected:
            d.client.reject(requeue=False)
        elif number != missing:
            d.client.ack()
    d.goodbye()
    return d


CHANGED_091: list[tuple[str, Callable[[], Dialogue091], Words]] = [
    (
        "heartbeat",
        lambda: publishing(heartbeat=30),
        [("the client's connection.tune-ok", [("heartbeat", "60 s", "30 s")])],
    ),
    (
        "prefetch",
        lambda: publishing(prefetch=1),
        [("the client's basic.qos on channel 1", [("prefetch-count", "10", "1")])],
    ),
    (
        "rejected",
        lambda: publishing(rejected=1),
        [("the outcome that the client sends for delivery 2 on consumer q", [("", "ack", "reject")])],
    ),
    (
        "not acknowledged",
        lambda: publishing(missing=2),
        [("the outcome that the client sends for delivery 3 on consumer q", [("", "ack", "nothing")])],
    ),
    (
        "persistent",
        lambda: publishing(properties={"delivery_mode": 2}),
        [
            *(
                ("the client's basic.publish on channel 1", [("delivery-mode", "not set", "2")])
                for _ in range(3)
            ),
            *(
                (f"delivery {number} of the server on consumer q", [("delivery-mode", "not set", "2")])
                for number in (1, 2, 3)
            ),
        ],
    ),
]


@pytest.mark.parametrize(
    ("what", "change", "words"), CHANGED_091, ids=lambda one: one if isinstance(one, str) else ""
)
def test_one_change_of_0_9_1_is_named(what: str, change: Callable[[], Dialogue091], words: Words) -> None:
    comparison = compared(publishing().pcap(), change().pcap())
    assert not comparison.same
    assert reported(comparison) == words

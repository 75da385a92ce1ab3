"""What clients publish, and what servers return of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scenarios.pairs import add_pair, legal, pair, without
from support.dialogue091 import Dialogue091


def odd_property(
    rule: str, name: str, wrong: object, right: object, certain: bool = True
) -> Callable[[Dialogue091], None]:
    """A dialogue in which a property of a message is odd."""

    def tell(d: Dialogue091) -> None:
        d.opened()
        d.channel(1)
        value: Any = wrong if d.wrong else right
        said = d.client.publish(**{name: value}).called("fault")
        if d.wrong and certain:
            said.breaks(rule)
        elif d.wrong:
            said.may_break(rule)
        d.goodbye()

    return tell


for case, rule, name, wrong, right, certain in (
    ("delivery_mode_three", "B-PROP-DELIVERY-MODE", "delivery_mode", 3, 2, True),
    ("priority_ten", "B-PROP-PRIORITY", "priority", 10, 9, False),
    ("expiration_with_a_unit", "B-PROP-EXPIRATION", "expiration", "60s", "60000", True),
    ("expiration_below_zero", "B-PROP-EXPIRATION", "expiration", "-1", "0", True),
    ("user_that_did_not_log_in", "B-PROP-USERID", "user_id", "admin", "guest", False),
    ("copies_no_list", "B-PROP-CC", "headers", {"CC": "other"}, {"CC": ("A", ["other"])}, True),
    (
        "copies_no_strings",
        "B-PROP-CC",
        "headers",
        {"BCC": ("A", [("I", 1)])},
        {"BCC": ("A", ["other"])},
        True,
    ),
):
    add_pair(case, odd_property(rule, name, wrong, right, certain), rule, cut=without("fault"))


@pair("B-PROP-PRIORITY", cut=without("fault"))
def priority_ten_at_another_broker(d: Dialogue091) -> None:
    d.product = "Qpid"
    d.opened()
    d.channel(1)
    said = d.client.publish(priority=10 if d.wrong else 0).called("fault")
    if d.wrong:
        said.breaks("B-PROP-PRIORITY")
    d.goodbye()


@pair("B-REPLYTO-PUBLISH", cut=without("channel.open"))
def request_without_a_consumer_of_replies(d: Dialogue091) -> None:
    d.opened()
    d.channel(1, 2)
    d.consume("amq.rabbitmq.reply-to", "r", channel=2, no_ack=True)
    channel = 1 if d.wrong else 2
    said = d.client.publish(channel=channel, reply_to="amq.rabbitmq.reply-to")
    if d.wrong:
        said.breaks("B-REPLYTO-PUBLISH")
        d.server.close_channel(
            406, "PRECONDITION_FAILED - fast reply consumer does not exist", "basic.publish"
        )
        d.client.channel_close_ok()
    d.goodbye()


@pair("B-RETURN-FLAGGED", cut=without("publish"))
def return_that_was_not_asked_for(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(mandatory=not d.wrong).called("publish")
    said = d.server.return_content()
    if d.wrong:
        said.breaks("B-RETURN-FLAGGED")
    d.goodbye()


@pair("B-RETURN-MATCH", cut=without("publish"))
def return_of_another_routing_key(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(mandatory=True).called("publish")
    said = d.server.return_content(routing_key="other" if d.wrong else "q")
    if d.wrong:
        said.breaks("B-RETURN-MATCH")
    d.goodbye()


@pair("B-RETURN-MATCH", cut=without("publish"))
def return_of_another_body(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(mandatory=True).called("publish")
    said = d.server.return_content(b"hell" if d.wrong else b"hello")
    if d.wrong:
        said.breaks("B-RETURN-MATCH")
    d.goodbye()


@pair("B-RETURN-CODE", cut=without("publish"))
def return_for_what_was_not_immediate(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(mandatory=True, immediate=not d.wrong).called("publish")
    said = d.server.return_content(code=313, text="NO_CONSUMERS")
    if d.wrong:
        said.breaks("B-RETURN-CODE")
    d.goodbye()


@pair("B-RETURN-CODE", cut=without("publish"))
def return_for_a_reason_of_its_own(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish(mandatory=True).called("publish")
    said = d.server.return_content(code=404 if d.wrong else 312, text="NOT_FOUND")
    if d.wrong:
        said.may_break("B-RETURN-CODE")
    d.goodbye()


@pair("CF-RETURN-FIRST", cut=without("publish"))
def return_after_the_ack(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.confirms()
    d.client.publish(mandatory=True).called("publish")
    if d.wrong:
        d.server.confirm(1)
    said = d.server.return_content()
    if d.wrong:
        said.breaks("CF-RETURN-FIRST")
    else:
        d.server.confirm(1)
    d.goodbye()


@legal("returns among routed messages that look the same")
def returns_of_messages_alike(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.confirms()
    for _ in range(3):
        d.client.publish(mandatory=True)
    d.server.confirm(2, multiple=True)
    d.server.return_content()
    d.server.confirm(3)
    d.client.publish(b"", mandatory=True, immediate=True)
    d.server.return_content(b"", code=313, text="NO_CONSUMERS")
    d.server.confirm(4)
    d.goodbye()


@legal("returns that tell messages apart by their reply-code")
def returns_of_both_kinds(d: Dialogue091) -> None:
    d.opened(start={"product": "Other Broker"})
    d.channel(1)
    d.client.publish(mandatory=True)
    d.client.publish(immediate=True)
    d.server.return_content(code=313, text="NO_CONSUMERS")
    d.server.return_content()
    d.goodbye()


@legal("properties as they may be")
def properties_as_they_may_be(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.consume("amq.rabbitmq.reply-to", "r", no_ack=True)
    d.client.publish(
        delivery_mode=1,
        priority=0,
        expiration="0",
        user_id="guest",
        reply_to="amq.rabbitmq.reply-to",
        headers={"CC": ("A", ["a", "b"]), "BCC": ("A", []), "SUCCESS": "CC"},
    )
    d.goodbye()


@legal("a request for a reply, when the server has just cancelled the consumer of replies")
def request_that_crosses_a_cancel(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.consume("amq.rabbitmq.reply-to", "r", no_ack=True)
    d.server.method("basic.cancel", consumer_tag="r", no_wait=True)
    d.client.publish(reply_to="amq.rabbitmq.reply-to")
    d.goodbye()

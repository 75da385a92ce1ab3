"""Messages that a broker takes on one connection and sends on over another one."""

from __future__ import annotations

from functools import partial

from scenarios.pairs import add_pair, legal, without
from support import draft2011_encode as draft
from support.conversation import Said
from support.dialogue_draft2011 import Dialogue2011
from support.draft2011_encode import Section

HEADER = draft.header()
PROPERTIES = draft.properties(message_id=b"m-1", subject="a")
DATA = draft.data(b"hello")
FOOTER = draft.footer()
MESSAGE = [HEADER, PROPERTIES, DATA, FOOTER]

ARRIVED = 1_300_000_000_000
"""A transmit-time long before the capture, in milliseconds."""


def sent_on(d: Dialogue2011, came: list[Section], left: list[Section], seconds: float = 5) -> Said:
    """A client sends a message; another client receives the message from the broker. What the broker sent."""
    d.linked()
    d.client.transfer(came).called("came")
    d.server.disposition(0)
    d.goodbye()
    d.wait(seconds=seconds)
    later = d.again()
    later.subscribed(credit=10)
    said = later.server.transfer(left)
    later.client.disposition(0)
    later.goodbye()
    return said


def noted(**attributes: str) -> Section:
    return draft.header(message_attrs={f"x-{key}": value for key, value in attributes.items()})


# Rule: the message as it came, as it wrongly leaves, as it rightly leaves, and the seconds between.
ON_THE_WAY: dict[str, tuple[list[Section], list[Section], list[Section], float]] = {
    "M-PROPS-UNALTERED": (
        MESSAGE,
        [HEADER, draft.properties(message_id=b"m-1", subject="b"), DATA, FOOTER],
        [noted(seen="yes"), PROPERTIES, DATA, draft.footer(message_attrs={"x-seen": "yes"})],
        5,
    ),
    "M-BARE-IMMUTABLE": (
        MESSAGE,
        [HEADER, PROPERTIES, draft.data(b"HELLO"), FOOTER],
        [HEADER, PROPERTIES, draft.data(b"hel"), draft.data(b"lo"), FOOTER],
        5,
    ),
    "M-ANN-PROPAGATE": (
        [noted(trace="1", region="north"), PROPERTIES, DATA, FOOTER],
        [noted(region="south"), PROPERTIES, DATA, FOOTER],
        [noted(region="south", trace="1", hops="2"), PROPERTIES, DATA, FOOTER],
        5,
    ),
    "M-HDR-TTL-EXPIRED": (
        [draft.header(ttl=10_000, transmit_time=ARRIVED), PROPERTIES, DATA, FOOTER],
        MESSAGE,
        [draft.header(ttl=10_000, transmit_time=ARRIVED), PROPERTIES, DATA, FOOTER],
        20,
    ),
}


def _reported(
    rule: str, way: tuple[list[Section], list[Section], list[Section], float], d: Dialogue2011
) -> None:
    came, wrong, right, seconds = way
    if rule == "M-HDR-TTL-EXPIRED" and not d.wrong:
        seconds = 9
    said = sent_on(d, came, wrong if d.wrong else right, seconds)
    if d.wrong:
        said.may_break(rule)


for _rule, _way in ON_THE_WAY.items():
    add_pair(
        f"on_the_way_{_rule.lower().replace('-', '_')}",
        partial(_reported, _rule, _way),
        _rule,
        cut=without("came"),
    )


@legal()
def sent_on_before_its_transmit_time_and_ttl(d: Dialogue2011) -> None:
    """The clock of the sender is ahead: the ttl counts from the transmit-time."""
    ahead = 4_000_000_000_000
    sent_on(d, [draft.header(ttl=10, transmit_time=ahead), PROPERTIES, DATA, FOOTER], MESSAGE, 5)


@legal()
def encoded_anew_on_the_way(d: Dialogue2011) -> None:
    wide = draft.section(
        "properties", draft.composite("properties", choice="widest", message_id=b"m-1", subject="a")
    )
    body = [draft.amqp_data("one", "two"), draft.amqp_map([("a", "1"), ("b", "2")])]
    anew = [draft.amqp_data("one"), draft.amqp_data("two"), draft.amqp_map([("b", "2"), ("a", "1")])]
    sent_on(d, [HEADER, PROPERTIES, *body], [HEADER, wide, *anew, FOOTER])

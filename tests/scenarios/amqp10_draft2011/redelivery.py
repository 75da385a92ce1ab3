"""Messages that a broker sends again, after what the peers stated about them before."""

from __future__ import annotations

from typing import Any

from scenarios.amqp10_draft2011.rules import pair
from scenarios.pairs import legal, reported, without
from support import draft2011_encode as draft
from support.conversation import Said
from support.dialogue_draft2011 import Dialogue2011
from support.draft2011_encode import RECEIVER, SENDER, Encoded, Section


def message(number: bytes = b"m", body: bytes = b"work", **header: Any) -> list[Section]:
    """The same message each time, but for its header."""
    return [draft.header(**header), draft.properties(message_id=number), draft.data(body), draft.footer()]


def source(address: str = "q", **fields: Any) -> Encoded:
    return draft.source(address=address, **{"distribution_mode": "move", **fields})


def consuming(d: Dialogue2011, **fields: Any) -> None:
    """A link on which the server sends, and a message on it."""
    d.subscribed(client={"source": source(**fields)}, server={"source": source(**fields)})
    d.server.transfer(message()).called("message")


def other_link(d: Dialogue2011, **fields: Any) -> None:
    """One more link on which the server sends."""
    d.client.attach(RECEIVER, handle=1, name="other", source=source(**fields))
    d.server.attach(SENDER, handle=1, name="other", source=source(**fields))
    d.client.flow(handle=1)


def answers(d: Dialogue2011, outcome: Encoded | None) -> None:
    """The client settles the message with this outcome."""
    state = None if outcome is None else draft.transfer_state(outcome=outcome)
    d.client.disposition(0, state=state).called("outcome")


def then(d: Dialogue2011, outcome: Encoded | None, handle: int = 0, **header: Any) -> Said:
    """The client settles the message with this outcome, and the server sends the message again."""
    answers(d, outcome)
    return d.server.transfer(message(**header), handle=handle)


@pair("M-ACQUIRED-HOLD", cut=without("server attach"))
def sent_again_while_acquired(d: Dialogue2011) -> None:
    consuming(d)
    if not d.wrong:
        answers(d, draft.released())
    said = d.server.transfer(message())
    if d.wrong:
        said.may_break("M-ACQUIRED-HOLD")
    d.goodbye()


@pair("M-ACQUIRED-EXCL", cut=without("message"))
def sent_to_another_while_acquired(d: Dialogue2011) -> None:
    consuming(d)
    other_link(d, distribution_mode="move" if d.wrong else "copy")
    said = d.server.transfer(message(), handle=1)
    if d.wrong:
        said.may_break("M-ACQUIRED-EXCL")
    d.goodbye()


@pair("M-ACCEPT-NORESEND", cut=without("outcome"))
def sent_again_after_acceptance(d: Dialogue2011) -> None:
    consuming(d)
    said = then(d, draft.accepted() if d.wrong else draft.released())
    if d.wrong:
        said.may_break("M-ACCEPT-NORESEND")
    d.goodbye()


@pair("M-ACC-COUNT", cut=without("outcome"))
def counted_though_accepted(d: Dialogue2011) -> None:
    consuming(d, distribution_mode="copy")
    other_link(d, distribution_mode="copy")
    said = then(d, draft.accepted(), handle=1, delivery_failures=1 if d.wrong else None)
    if d.wrong:
        said.may_break("M-ACC-COUNT")
    d.goodbye()


@pair("M-REL-COUNT", cut=without("outcome"))
def counted_though_released(d: Dialogue2011) -> None:
    consuming(d)
    said = then(d, draft.released(), delivery_failures=1 if d.wrong else None)
    if d.wrong:
        said.may_break("M-REL-COUNT")
    d.goodbye()


@pair("M-MOD-COUNT", cut=without("outcome"))
def not_counted_though_failed(d: Dialogue2011) -> None:
    consuming(d)
    said = then(d, draft.modified(delivery_failed=True), delivery_failures=None if d.wrong else 1)
    if d.wrong:
        said.may_break("M-MOD-COUNT")
    d.goodbye()


@pair("M-REJ-COUNT", cut=without("outcome"))
def not_counted_though_rejected(d: Dialogue2011) -> None:
    """The client reads the dead letters, too."""
    consuming(d)
    other_link(d, address="dead")
    said = then(d, draft.rejected(), handle=1, delivery_failures=None if d.wrong else 1)
    if d.wrong:
        said.may_break("M-REJ-COUNT")
    d.goodbye()


@pair("M-REJ-ANNOTATE", cut=without("outcome"))
def error_of_rejection_not_handed_on(d: Dialogue2011) -> None:
    consuming(d)
    other_link(d, address="dead")
    error = draft.error(condition="x:spoilt")
    header: dict[str, Any] = {} if d.wrong else {"message_attrs": {"rejected": error}}
    said = then(d, draft.rejected(error=error), handle=1, delivery_failures=1, **header)
    if d.wrong:
        said.may_break("M-REJ-ANNOTATE")
    d.goodbye()


@pair("M-MOD-NOTHERE", cut=without("outcome"))
def sent_again_to_the_link_that_gave_it_up(d: Dialogue2011) -> None:
    consuming(d)
    said = then(d, draft.modified(deliver_elsewhere=d.wrong))
    if d.wrong:
        said.may_break("M-MOD-NOTHERE")
    d.goodbye()


@pair("M-MOD-ANNOT", cut=without("outcome"))
def attributes_not_applied(d: Dialogue2011) -> None:
    consuming(d)
    noted = draft.modified(message_attrs={"x-note": "later"})
    said = then(d, noted, message_attrs={"x-note": "now" if d.wrong else "later"})
    if d.wrong:
        said.may_break("M-MOD-ANNOT")
    d.goodbye()


@pair("M-DEFAULT-OUTCOME", cut=without("outcome"))
def sent_again_though_settled_by_default(d: Dialogue2011) -> None:
    consuming(d, default_outcome=draft.accepted() if d.wrong else draft.released())
    said = then(d, None)
    if d.wrong:
        said.may_break("M-DEFAULT-OUTCOME")
    d.goodbye()


@pair("M-HDR-FIRSTACQ", cut=without("outcome"))
def other_acquirer_not_counted(d: Dialogue2011) -> None:
    consuming(d)
    other_link(d)
    failed = draft.modified(delivery_failed=True)
    said = then(d, failed, handle=1, delivery_failures=1, former_acquirers=0 if d.wrong else 1)
    if d.wrong:
        said.may_break("M-HDR-FIRSTACQ")
    d.goodbye()


@pair("M-ID-UNIQUE", cut=without("first"))
def message_id_used_twice(d: Dialogue2011) -> None:
    d.linked()
    d.client.transfer(message(b"order-1", b"two pounds of tea")).called("first")
    said = d.client.transfer(message(b"order-1" if d.wrong else b"order-2", b"three pounds of tea"))
    if d.wrong:
        said.may_break("M-ID-UNIQUE")
    d.goodbye()


@reported("the receiver rejects a message for another link, which does not count its failures")
def failures_of_another_link(d: Dialogue2011) -> None:
    consuming(d)
    other_link(d)
    said = then(d, draft.rejected(), handle=1, former_acquirers=0, delivery_failures=0)
    said.may_break("M-HDR-FIRSTACQ")
    said.may_break("M-REJ-COUNT")
    d.goodbye()


@legal()
def messages_that_may_be_sent_again(d: Dialogue2011) -> None:
    """Some released, some unlike the first ones, some in several transfers, whose outcome is not followed."""
    consuming(d)
    said = then(d, draft.released())
    assert said is not None
    d.client.disposition(1, state=draft.transfer_state(outcome=draft.accepted()))
    pieces = draft.fragments(message(b"long", b"w" * 60), 30)
    for _ in range(2):
        for number, piece in enumerate(pieces):
            d.server.transfer(fragments=[piece], more=number + 1 < len(pieces) or None)
    without_id = [draft.header(), draft.properties(), draft.data(b"no id"), draft.footer()]
    d.server.transfer(without_id)
    d.server.transfer(without_id)
    d.goodbye()


@legal()
def the_same_values_in_another_encoding(d: Dialogue2011) -> None:
    """A message-id stands for one message however its values are encoded and its sections are divided."""
    d.linked()
    properties = draft.properties(message_id=b"m")
    wide = draft.composite("properties", choice="widest", message_id=b"m")
    one, two = ("a", "1"), ("b", "2")
    d.client.transfer([draft.header(), properties, draft.data(b"ab"), draft.amqp_map([one, two])])
    again = [draft.section("properties", wide), draft.data(b"a"), draft.data(b"b")]
    d.client.transfer([draft.header(durable=True), *again, draft.amqp_map([two, one])])
    d.goodbye()

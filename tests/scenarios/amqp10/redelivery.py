"""Messages that a broker sends again, beside what was said of them before."""

from __future__ import annotations

from typing import Any

from scenarios.amqp10.transaction import DECLARE, REJECTED, T, discharge, state
from scenarios.pairs import pair, reported, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue, Said

ACCEPTED = amqp.accepted()


def message(count: int | None = None, note: str | None = None, number: str = "m") -> bytes:
    """The same message each time, but for its header and annotations."""
    parts = [amqp.header(delivery_count=count) if count is not None else b""]
    if note is not None:
        parts.append(amqp.message_annotations({amqp.symbol("x-opt-note"): note}))
    return b"".join([*parts, amqp.properties(message_id=number), amqp.amqp_value("work")])


def source(**fields: Any) -> bytes:
    return amqp.source(address="q", **fields)


def consuming(d: Dialogue, **fields: Any) -> None:
    """A link on which the server sends, and a message on it."""
    d.subscribed(client={"source": source(**fields)}, server={"source": source(**fields)})
    d.server.transfer(message()).called("message")


def then(d: Dialogue, outcome: bytes | None, count: int | None = None, **more: Any) -> Said:
    """The client says this of it, the server sends it again."""
    d.client.disposition(0, state=outcome).called("outcome")
    return d.server.transfer(message(count, **more))


@pair("M-ACQUIRED-HOLD", cut=without("server attach"))
def sent_again_while_acquired(d: Dialogue) -> None:
    consuming(d)
    if not d.wrong:
        d.client.disposition(0, state=amqp.released())
    said = d.server.transfer(message())
    if d.wrong:
        said.may_break("M-ACQUIRED-HOLD")
    d.goodbye()


@pair("M-ACQUIRED-EXCL", cut=without("message"))
def sent_to_another_while_acquired(d: Dialogue) -> None:
    consuming(d, distribution_mode="move")
    moving = source(distribution_mode="move" if d.wrong else "copy")
    d.client.attach(RECEIVER, handle=1, name="other", source=moving)
    d.server.attach(SENDER, handle=1, name="other", source=moving)
    d.client.flow(handle=1)
    said = d.server.transfer(message(), handle=1)
    if d.wrong:
        said.may_break("M-ACQUIRED-EXCL")
    d.goodbye()


@pair("M-ACCEPT-NORESEND", cut=without("outcome"))
def sent_again_after_acceptance(d: Dialogue) -> None:
    consuming(d)
    said = then(d, ACCEPTED if d.wrong else amqp.released())
    if d.wrong:
        said.may_break("M-ACCEPT-NORESEND")
    d.goodbye()


@pair("M-ACC-COUNT", cut=without("outcome"))
def counted_though_accepted(d: Dialogue) -> None:
    consuming(d, distribution_mode="copy")
    copying = source(distribution_mode="copy")
    d.client.attach(RECEIVER, handle=1, name="other", source=copying)
    d.server.attach(SENDER, handle=1, name="other", source=copying)
    d.client.flow(handle=1)
    d.client.disposition(0).called("outcome")
    said = d.server.transfer(message(1 if d.wrong else None), handle=1)
    if d.wrong:
        said.may_break("M-ACC-COUNT")
    d.goodbye()


@pair("M-REL-COUNT", cut=without("outcome"))
def counted_though_released(d: Dialogue) -> None:
    consuming(d)
    said = then(d, amqp.released(), 1 if d.wrong else None)
    if d.wrong:
        said.may_break("M-REL-COUNT")
    d.goodbye()


@pair("M-MOD-COUNT", cut=without("outcome"))
def not_counted_though_failed(d: Dialogue) -> None:
    consuming(d)
    said = then(d, amqp.modified(delivery_failed=True), None if d.wrong else 1)
    if d.wrong:
        said.may_break("M-MOD-COUNT")
    d.goodbye()


@pair("M-REJ-COUNT", cut=without("outcome"))
def not_counted_though_rejected(d: Dialogue) -> None:
    """The client reads the dead letters, too."""
    consuming(d)
    d.client.attach(RECEIVER, handle=1, name="dead", source=amqp.source(address="dead"))
    d.server.attach(SENDER, handle=1, name="dead", source=amqp.source(address="dead"))
    d.client.flow(handle=1)
    d.client.disposition(0, state=amqp.rejected()).called("outcome")
    said = d.server.transfer(message(None if d.wrong else 1), handle=1)
    if d.wrong:
        said.may_break("M-REJ-COUNT")
    d.goodbye()


@pair("M-MOD-NOTHERE", cut=without("outcome"))
def sent_again_though_undeliverable_here(d: Dialogue) -> None:
    consuming(d)
    said = then(d, amqp.modified(undeliverable_here=d.wrong))
    if d.wrong:
        said.may_break("M-MOD-NOTHERE")
    d.goodbye()


@pair("M-MOD-ANNOT", cut=without("outcome"))
def annotations_not_applied(d: Dialogue) -> None:
    consuming(d)
    noted = amqp.modified(message_annotations={amqp.symbol("x-opt-note"): "later"})
    said = then(d, noted, note="now" if d.wrong else "later")
    if d.wrong:
        said.may_break("M-MOD-ANNOT")
    d.goodbye()


@pair("M-DEFAULT-OUTCOME", cut=without("outcome"))
def sent_again_though_settled_by_default(d: Dialogue) -> None:
    consuming(d, default_outcome=ACCEPTED if d.wrong else amqp.released())
    said = then(d, None)
    if d.wrong:
        said.may_break("M-DEFAULT-OUTCOME")
    d.goodbye()


@pair("TX-RET-DEFAULT", cut=without("message"))
def sent_again_after_a_rollback(d: Dialogue) -> None:
    d.begun()
    mine = source(default_outcome=ACCEPTED if d.wrong else amqp.released())
    d.client.attach(RECEIVER, source=mine)
    d.server.attach(SENDER, source=mine)
    d.client.flow(handle=0)
    d.client.attach(SENDER, handle=1, name="control", target=amqp.coordinator())
    d.server.attach(RECEIVER, handle=1, name="control", target=amqp.coordinator())
    d.server.flow(handle=1)
    d.client.transfer(DECLARE, handle=1)
    d.server.disposition(0, state=amqp.declared(txn_id=T))
    d.server.transfer(message()).called("message")
    d.client.disposition(0, state=state(T, ACCEPTED))
    d.client.transfer(discharge(), handle=1)
    d.server.disposition(1, state=REJECTED)
    said = d.server.transfer(message())
    if d.wrong:
        said.may_break("TX-RET-DEFAULT")
    d.goodbye()


@reported("another message with an id that was there before, and one that is sent to a link attached again")
def another_message_with_the_id(d: Dialogue) -> None:
    consuming(d)
    d.client.disposition(0)
    other = amqp.properties(message_id="m") + amqp.amqp_value("other work")
    d.server.transfer(other).may_break("M-ID-UNIQUE")
    d.server.transfer(message(number="n"))
    d.client.disposition(1)
    d.client.detach(closed=None)
    d.server.detach(closed=None)
    d.client.attach(RECEIVER)
    d.server.attach(SENDER, initial_delivery_count=3)
    d.client.flow(handle=0)
    d.server.transfer(message(number="n"))
    d.goodbye()


@pair("M-HDR-FIRSTACQ", cut=without("outcome"))
def called_first_though_acquired(d: Dialogue) -> None:
    consuming(d)
    d.client.attach(RECEIVER, handle=1, name="other", source=source())
    d.server.attach(SENDER, handle=1, name="other", source=source())
    d.client.flow(handle=1)
    d.client.disposition(0, state=amqp.released()).called("outcome")
    header = amqp.header(first_acquirer=d.wrong)
    said = d.server.transfer(header + message(), handle=1)
    if d.wrong:
        said.may_break("M-HDR-FIRSTACQ")
    d.goodbye()


@pair("M-REJ-ANNOTATE", cut=without("outcome"))
def error_of_rejection_not_annotated(d: Dialogue) -> None:
    consuming(d)
    d.client.attach(RECEIVER, handle=1, name="dead letters", source=amqp.source(address="dead"))
    d.server.attach(SENDER, handle=1, name="dead letters", source=amqp.source(address="dead"))
    d.client.flow(handle=1)
    error = amqp.error(condition="x:spoilt")
    d.client.disposition(0, state=amqp.rejected(error=error)).called("outcome")
    header = amqp.header(delivery_count=1)
    notes = b"" if d.wrong else amqp.delivery_annotations({"rejected": error})
    said = d.server.transfer(header + notes + message(), handle=1)
    if d.wrong:
        said.may_break("M-REJ-ANNOTATE")
    d.goodbye()


@reported("by the drafts the error of a rejection is not handed on", spec="csd01")
def error_of_rejection_by_a_draft(d: Dialogue) -> None:
    consuming(d)
    d.client.disposition(0, state=amqp.rejected(error=amqp.error(condition="x:spoilt")))
    d.server.transfer(message(1))
    d.goodbye()

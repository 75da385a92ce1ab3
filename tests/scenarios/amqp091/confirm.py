"""Publisher confirms, and transactions, which exclude them."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported, without
from support.dialogue091 import SERVER_CAPABILITIES, Dialogue091


def publishing(d: Dialogue091, count: int = 1, confirms: bool = True) -> None:
    """A channel on which so many messages were published."""
    d.opened()
    d.channel(1)
    if confirms:
        d.confirms()
    for _ in range(count):
        d.client.publish().called("publish")


@pair("CF-SELECT-CAP", cut=without("connection.start"))
def confirms_that_the_server_does_not_have(d: Dialogue091) -> None:
    others = tuple(name for name in SERVER_CAPABILITIES if name != "publisher_confirms")
    d.opened(start={"capabilities": others if d.wrong else SERVER_CAPABILITIES})
    d.channel(1)
    said, _ = d.confirms()
    if d.wrong:
        said.breaks("CF-SELECT-CAP")
    d.goodbye()


@pair("CF-TX-EXCL", cut=without("tx.select"))
def confirms_in_a_transaction(d: Dialogue091) -> None:
    d.opened()
    d.channel(1, 2)
    d.transaction()
    said = d.client.method("confirm.select", 1 if d.wrong else 2)
    if d.wrong:
        said.breaks("CF-TX-EXCL")
        d.server.close_channel(406, "PRECONDITION_FAILED - cannot switch from tx to confirm mode")
        d.client.channel_close_ok()
    else:
        d.server.method("confirm.select-ok", 2)
    d.goodbye()


@pair("TX-CONFIRM-EXCL", cut=without("confirm.select"))
def transaction_in_confirm_mode(d: Dialogue091) -> None:
    d.opened()
    d.channel(1, 2)
    d.confirms()
    said = d.client.method("tx.select", 1 if d.wrong else 2)
    if d.wrong:
        said.breaks("TX-CONFIRM-EXCL")
        d.server.close_channel(406, "PRECONDITION_FAILED - cannot switch from confirm to tx mode")
        d.client.channel_close_ok()
    else:
        d.server.method("tx.select-ok", 2)
    d.goodbye()


@pair("CF-MODE", cut=without("publish"))
def confirm_on_a_channel_without_confirms(d: Dialogue091) -> None:
    publishing(d, confirms=not d.wrong)
    said = d.server.confirm(1)
    if d.wrong:
        said.breaks("CF-MODE")
    d.goodbye()


@pair("CF-TAG-NONZERO", cut=without("confirm.select"))
def confirm_of_tag_zero(d: Dialogue091) -> None:
    publishing(d)
    said = d.server.confirm(0 if d.wrong else 1, multiple=True)
    if d.wrong:
        said.breaks("CF-TAG-NONZERO")
    d.goodbye()


@pair("CF-SEQ-RANGE", cut=without("publish"))
def confirm_of_what_is_still_on_its_way(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.client.publish()
    d.client.method("confirm.select", no_wait=True)
    d.client.publish().called("publish")
    with d.on_their_way():
        d.client.publish()
        said = d.server.confirm(2 if d.wrong else 1, multiple=True)
    if d.wrong:
        said.breaks("CF-SEQ-RANGE")
    d.goodbye()


@pair("CF-ONCE", cut=without("publish"))
def confirm_said_twice(d: Dialogue091) -> None:
    publishing(d, 2)
    d.server.confirm(1)
    said = d.server.confirm(1 if d.wrong else 2)
    if d.wrong:
        said.breaks("CF-ONCE")
    d.goodbye()


@pair("CF-ONCE", cut=without("publish"))
def confirm_up_to_what_was_confirmed(d: Dialogue091) -> None:
    publishing(d, 3)
    d.server.confirm(2)
    said = d.server.confirm(2 if d.wrong else 3, multiple=True)
    if d.wrong:
        said.may_break("CF-ONCE")
    d.goodbye()


@pair("CF-EXCLUSIVE", cut=without("publish"))
def nack_of_what_an_ack_has_covered(d: Dialogue091) -> None:
    publishing(d, 3)
    d.server.confirm(3 if d.wrong else 1, multiple=True)
    said = d.server.nack(2)
    if d.wrong:
        said.breaks("CF-EXCLUSIVE")
    d.goodbye()


@pair("CF-ALL", cut=without("publish"))
def message_that_is_never_confirmed(d: Dialogue091) -> None:
    publishing(d, 2)
    d.server.confirm(2, multiple=not d.wrong)
    d.wait(seconds=400)
    d.client.close_channel()
    said = d.server.channel_close_ok()
    if d.wrong:
        said.may_break("CF-ALL")
    d.goodbye()


@pair("CF-ALL", cut=without("publish"))
def message_that_is_never_confirmed_on_the_connection(d: Dialogue091) -> None:
    publishing(d)
    if not d.wrong:
        d.server.confirm(1)
    d.wait(seconds=400)
    d.client.close_connection()
    said = d.server.connection_close_ok()
    if d.wrong:
        said.may_break("CF-ALL")
    d.tcp.goodbye()


@pair("CF-NACK-HANDLE", cut=without("publish"))
def client_that_cannot_cope_with_nacks(d: Dialogue091) -> None:
    publishing(d)
    d.server.nack(1)
    if d.wrong:
        d.client.close_connection(540, "not implemented", "basic.nack").breaks("CF-NACK-HANDLE")
    else:
        d.client.close_connection()
    d.server.connection_close_ok()
    d.tcp.goodbye()


@pair("CF-NACK-HANDLE", cut=without("publish"))
def client_that_closes_the_channel_for_a_nack(d: Dialogue091) -> None:
    publishing(d)
    d.server.nack(1)
    if d.wrong:
        d.client.close_channel(406, "nacked", "basic.nack").breaks("CF-NACK-HANDLE")
    else:
        d.client.close_channel()
    d.server.channel_close_ok()
    d.goodbye()


@pair("TX-COMMIT-SELECTED", "TX-ROLLBACK-SELECTED", cut=without("channel.open"))
def commit_without_a_transaction(d: Dialogue091) -> None:
    d.opened()
    d.channel(1, 2)
    if not d.wrong:
        d.transaction()
        d.transaction(2)
    first = d.client.method("tx.commit")
    if d.wrong:
        first.breaks("TX-COMMIT-SELECTED")
        d.server.close_channel(406, "PRECONDITION_FAILED - channel is not transactional", "tx.commit")
        d.client.channel_close_ok()
    else:
        d.server.method("tx.commit-ok")
    second = d.client.method("tx.rollback", 2)
    if d.wrong:
        second.breaks("TX-ROLLBACK-SELECTED")
        text = "PRECONDITION_FAILED - channel is not transactional"
        d.server.close_channel(406, text, "tx.rollback", channel=2)
        d.client.channel_close_ok(2)
    else:
        d.server.method("tx.rollback-ok", 2)
    d.goodbye()


@pair("TX-PENDING-COMMIT", cut=without("tx.select"))
def publish_before_the_commit_is_answered(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.transaction()
    d.client.publish()
    d.client.method("tx.commit")
    if d.wrong:
        d.client.publish().may_break("TX-PENDING-COMMIT")
    d.server.method("tx.commit-ok")
    d.client.publish()
    d.commit()
    d.goodbye()


@pair("TX-PENDING-COMMIT", cut=without("tx.select"))
def publish_before_another_server_answers_the_commit(d: Dialogue091) -> None:
    d.product = "Qpid"
    d.opened()
    d.channel(1)
    d.transaction()
    d.client.method("tx.commit")
    if d.wrong:
        d.client.publish().may_break("TX-PENDING-COMMIT")
    d.server.method("tx.commit-ok")
    d.goodbye()


@pair("TX-MANDATORY", "TX-IMMEDIATE", cut=without("tx.select"))
def mandatory_in_a_transaction(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.transaction()
    first = d.client.publish(mandatory=d.wrong)
    second = d.client.publish(immediate=d.wrong)
    if d.wrong:
        first.may_break("TX-MANDATORY")
        second.may_break("TX-IMMEDIATE")
    d.commit()
    d.goodbye()


@legal("confirms of several at a time, out of order, around nacks, and a select said twice")
def confirms_in_any_order(d: Dialogue091) -> None:
    publishing(d, 6)
    d.server.nack(3)
    d.server.confirm(5)
    d.server.confirm(4, multiple=True)
    d.confirms()
    d.client.publish()
    d.server.confirm(7, multiple=True)
    d.closed()
    # Numbers are counted anew on the channel that is opened next.
    d.channel(1)
    d.confirms()
    d.client.publish()
    d.server.confirm(1)
    d.goodbye()


@reported("what is published while the server closes the channel is not counted")
def publishes_that_cross_a_close(d: Dialogue091) -> None:
    publishing(d)
    with d.on_their_way():
        d.server.close_channel(403, "ACCESS_REFUSED - access to exchange 'gone' refused", "basic.publish")
        d.client.publish()
    d.client.channel_close_ok()
    d.channel(1)
    d.confirms()
    d.client.publish()
    d.server.confirm(1)
    d.goodbye()


@legal("messages that are not confirmed yet when the client is done")
def closed_before_all_is_confirmed(d: Dialogue091) -> None:
    publishing(d, 3)
    d.wait(seconds=400)
    d.client.publish()
    d.server.confirm(3, multiple=True)
    d.goodbye()


@legal("a channel is closed while its commit is not answered")
def closed_while_committing(d: Dialogue091) -> None:
    d.opened()
    d.channel(1)
    d.transaction()
    d.client.publish()
    d.client.method("tx.commit")
    with d.on_their_way():
        d.server.method("tx.commit-ok")
        d.client.close_channel()
    d.server.channel_close_ok()
    d.goodbye()

"""Messages that pass a broker: what is kept of them, and what is said of them."""

from __future__ import annotations

import itertools

import pytest
from scenarios.amqp10.intermediary import DATA, MESSAGE, ON_THE_WAY, sent_on
from support import amqp10_encode as amqp
from support.connection_summaries import summaries
from support.dialogue import Dialogue

from amqpscope.correlation.correlate import correlate
from amqpscope.limits import MAX_PASSAGES
from amqpscope.tracking.amqp10.summary import Amqp10Summary

CHANGED = amqp.properties(message_id="m-1", subject="b") + DATA


def rules(made: list[Amqp10Summary]) -> list[tuple[str, int]]:
    return [(finding.rule.removeprefix("amqp10/"), finding.packet) for finding in correlate(made)]


@pytest.mark.parametrize("rule", ON_THE_WAY)
def test_summaries_tell_the_same_in_any_order_and_from_another_process(rule: str) -> None:
    came, wrong, _, seconds = ON_THE_WAY[rule]
    d = Dialogue()
    said = sent_on(d, came, wrong, seconds)
    made = summaries(d)
    expected = [(rule, d.packet_number(said))]
    for order in itertools.permutations(made):
        assert rules(list(order)) == expected
        assert rules([Amqp10Summary.load(one.dump()) for one in order]) == expected


@pytest.mark.parametrize("before", [0, MAX_PASSAGES - 1, MAX_PASSAGES])
def test_only_the_first_messages_of_a_direction_are_kept(before: int) -> None:
    """With an id or without one: nobody pays for them all the way."""
    d = Dialogue()
    d.linked(credit=before + 1)
    for _ in range(before):
        d.client.transfer(DATA, settled=True)
    d.client.transfer(MESSAGE, settled=True)
    d.goodbye()
    later = d.again()
    later.subscribed()
    later.server.transfer(CHANGED, settled=True)
    later.goodbye()
    assert [rule for rule, _ in rules(summaries(d))] == (
        ["M-BARE-IMMUTABLE"] if before < MAX_PASSAGES else []
    )


def test_no_more_are_kept_of_all_connections_than_are_allowed() -> None:
    d = Dialogue()
    sent_on(d, MESSAGE, CHANGED)
    for allowed in (0, 1, 2):
        made = summaries(d, allowed)
        assert sum(len(one.digests[0]) + len(one.digests[1]) for one in made) == allowed
        assert all(one.all_passages == (True, True) for one in made) == (allowed == 2)


def test_another_broker_sends_another_message() -> None:
    """Two brokers may have messages of one id, and one of them may listen elsewhere."""
    for server, containers in (("10.0.0.9:5672", ("b", "b")), ("10.0.0.2:5672", ("b", "c"))):
        d = Dialogue()
        d.opened(server={"container_id": containers[0]})
        d.client.begin()
        d.server.begin()
        d.attached()
        d.client.transfer(MESSAGE, settled=True)
        d.goodbye()
        later = d.again(server=server)
        later.opened(server={"container_id": containers[1]})
        later.client.begin()
        later.server.begin()
        later.client.attach(amqp.RECEIVER)
        later.server.attach(amqp.SENDER)
        later.client.flow(handle=0, link_credit=10)
        later.server.transfer(CHANGED, settled=True)
        later.goodbye()
        assert rules(summaries(d)) == []


def test_what_was_not_captured_whole_is_not_the_first() -> None:
    """The message may have been sent before, where octets are missing."""
    came, wrong, _, _ = ON_THE_WAY["M-HDR-DELCOUNT-ZERO"]
    d = Dialogue()
    sent_on(d, came, wrong)
    assert [rule for rule, _ in rules(summaries(d))] == ["M-HDR-DELCOUNT-ZERO"]
    d = Dialogue()
    other = d.again("10.0.0.3:50000")
    other.subscribed()
    with other.missed():
        other.server.transfer(DATA, settled=True)
    other.server.transfer(DATA, settled=True)
    other.goodbye()
    sent_on(d, came, wrong)
    assert rules(summaries(d)) == []


def test_a_message_that_returns_on_its_own_connection_names_no_other() -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer(MESSAGE).called("came")
    d.server.disposition(0, settled=True, state=amqp.accepted())
    d.wait(seconds=5)
    d.client.attach(amqp.RECEIVER, name="back", handle=1)
    d.server.attach(amqp.SENDER, name="back", handle=1)
    d.client.flow(handle=1, link_credit=10)
    d.server.transfer(CHANGED, handle=1, settled=True)
    d.goodbye()
    (finding,) = [one for one in correlate(summaries(d)) if one.rule.startswith("amqp10/M-BARE")]
    assert finding.others
    assert "earlier_connection" not in finding.evidence

"""What joins connections does not depend on the order in which they ended or were captured."""

from __future__ import annotations

import io
import itertools
import marshal

from scenarios.amqp10.resumption import LASTING, attached_without_what_was_left
from support import amqp10_encode as amqp
from support.connection_summaries import summaries
from support.dialogue import RECEIVER, Dialogue

import amqpscope
from amqpscope.correlation.correlate import correlate
from amqpscope.model.finding import Finding
from amqpscope.tracking.amqp10.summary import Amqp10Summary

RULE = "amqp10/L-ATTACH-UNSETTLED"


def found(d: Dialogue) -> list[tuple[str, str, int, bool]]:
    findings = amqpscope.check(io.BytesIO(d.pcap()))
    return [(f.rule, f.connection.id, f.packet, f.certain) for f in findings]


def reported(findings: list[Finding]) -> list[tuple[str, str, int, str]]:
    return [(f.rule, f.connection.id, f.packet, f.message) for f in findings]


def left_twice() -> Dialogue:
    """Three connections; the second takes up what the first left, and the third nothing."""
    d = Dialogue()
    d.linked(client={"source": LASTING})
    d.client.transfer(delivery_tag=b"a")
    d.goodbye()
    second = d.again("10.0.0.1:51035")
    second.begun()
    second.client.attach(source=LASTING, unsettled=[(b"a", None)])
    second.server.attach(RECEIVER, unsettled=[(b"a", amqp.received(section_number=0, section_offset=0))])
    second.server.flow(handle=0, link_credit=10)
    second.client.transfer(delivery_tag=b"a", resume=True)
    second.goodbye()
    third = d.again("10.0.0.1:51036")
    third.begun()
    third.client.attach(source=LASTING).called("third attach")
    third.server.attach(RECEIVER)
    third.goodbye()
    return d


def test_the_connection_before_counts() -> None:
    d = left_twice()
    packet = d.packet_number(d.labels["third attach"])
    assert found(d) == [(RULE, "10.0.0.1:51036>10.0.0.2:5672#0", packet, False)]


def test_the_order_of_the_summaries_changes_nothing() -> None:
    made = summaries(left_twice())
    assert len(made) == 3
    expected = reported(correlate(made))
    assert len(expected) == 1
    for order in itertools.permutations(made):
        assert reported(correlate(order)) == expected


def test_summaries_go_through_plain_values() -> None:
    made = summaries(left_twice())
    carried = [Amqp10Summary.load(marshal.loads(marshal.dumps(one.dump()))) for one in made]
    assert [one.dump() for one in carried] == [one.dump() for one in made]
    assert reported(correlate(carried)) == reported(correlate(made))


def test_a_link_taken_while_its_connection_lasts_is_another_matter() -> None:
    d = Dialogue()
    d.linked(client={"source": LASTING})
    d.client.transfer()
    later = d.again()
    later.begun()
    later.client.attach(source=LASTING)
    later.server.attach(RECEIVER)
    d.goodbye()
    later.goodbye()
    assert found(d) == []


def test_what_was_missed_of_either_connection_may_have_settled_it() -> None:
    d = Dialogue()
    attached_without_what_was_left(d)
    whole = d.capture.packets[:]
    for missed, said in enumerate(whole):
        if any(one.packet is said for one in d.said):
            d.capture.packets = [packet for packet in whole if packet is not said]
            assert [finding for finding in found(d) if finding[0] == RULE] == [], missed


def test_an_end_of_the_session_leaves_as_much_as_the_end_of_the_connection() -> None:
    d = Dialogue()
    d.linked(client={"source": LASTING})
    d.client.transfer()
    d.client.end_session()
    d.server.end_session()
    d.client.begin(remote_channel=None)
    d.server.begin(remote_channel=0)
    d.goodbye()
    later = d.again()
    later.begun()
    said = later.client.attach(source=LASTING)
    later.server.attach(RECEIVER)
    later.goodbye()
    assert found(d) == [(RULE, "10.0.0.1:51035>10.0.0.2:5672#0", d.packet_number(said), False)]

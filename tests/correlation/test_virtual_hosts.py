"""What connections of AMQP 0-9-1 leave to be compared with each other, and what is said of them together."""

from __future__ import annotations

import itertools
import marshal

import pytest
from scenarios.amqp091 import entities, existence, passing
from scenarios.pairs import Scenario, scenarios
from support.connection_summaries import summaries
from support.dialogue091 import Dialogue091
from support.tcp_writer import Packet

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.packet import SegmentSink
from amqpscope.capture.segment import Segment
from amqpscope.correlation.correlate import correlate
from amqpscope.limits import ADDRESS_TRANSLATION, MAX_GETS, MAX_OPERATIONS, MAX_PASSAGES
from amqpscope.tracking.amqp091.summary import Amqp091Summary
from amqpscope.tracking.summary import ConnectionSummary, load_summary

REPORTED = {module.__name__ for module in (entities, existence, passing)}
SCENARIOS = [scenario for scenario in scenarios() if scenario.module in REPORTED]


def rules(made: list[ConnectionSummary]) -> list[tuple[str, int, bool]]:
    return sorted((finding.rule, int(finding.packet), finding.certain) for finding in correlate(made))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_summaries_tell_the_same_in_any_order_and_from_another_process(scenario: Scenario) -> None:
    made = summaries(scenario.dialogue())  # type: ignore[arg-type]
    expected = rules(made)
    assert expected or scenario.kind != "pair"
    for order in itertools.islice(itertools.permutations(made), 6):
        assert rules(list(order)) == expected
    carried = [load_summary(marshal.loads(marshal.dumps(one.dump()))) for one in made]
    assert [one.dump() for one in carried] == [one.dump() for one in made]
    assert rules(carried) == expected


def test_one_that_was_not_captured_whole_silences_what_rests_on_nobody_else() -> None:
    d = Dialogue091()
    entities.declared_and_not_seen(d)
    third = d.again("10.0.0.1:51040")
    entities.ready(third)
    third.goodbye()
    assert "amqp091/CH-VISIBLE" in {rule for rule, _, _ in rules(summaries(d))}
    opening = next(said for said in reversed(d.said) if said.octets.startswith(b"AMQP"))
    d.capture.packets.remove(opening.packet)
    # What the answer says by itself is left.
    assert [rule for rule, _, _ in rules(summaries(d))] == ["amqp091/B-CONSUME-QEXIST"]


def left_by(d: Dialogue091) -> Amqp091Summary:
    made = summaries(d)  # type: ignore[arg-type]
    assert len(made) == 1
    one = made[0]
    assert isinstance(one, Amqp091Summary)
    return one


@pytest.mark.parametrize("more", [0, 1])
def test_so_many_operations_are_kept_of_a_connection(more: int) -> None:
    d = Dialogue091()
    entities.ready(d)
    d.segment = 60_000
    with d.together(d.client):
        for _ in range(MAX_OPERATIONS + more):
            d.client.method("queue.declare", queue="q", no_wait=True)
    d.goodbye()
    one = left_by(d)
    assert (len(one.operations), one.whole) == (MAX_OPERATIONS, not more)


def test_who_polls_leaves_few_operations() -> None:
    d = Dialogue091()
    entities.ready(d)
    for _ in range(MAX_GETS + 3):
        d.client.get("q")
        d.server.get_empty()
    d.goodbye()
    one = left_by(d)
    assert (len(one.operations), one.whole) == (MAX_GETS, True)


@pytest.mark.parametrize("more", [0, 1])
def test_the_first_messages_are_kept(more: int) -> None:
    d = Dialogue091()
    entities.ready(d)
    for number in range(MAX_PASSAGES + more):
        d.client.publish(b"a body that is long enough", message_id=f"m-{number}")
    d.goodbye()
    one = left_by(d)
    assert (len(one.contents), one.all_contents) == (MAX_PASSAGES, not more)


def test_names_done_to_over_two_addresses_are_left_alone() -> None:
    """The nodes of a cluster: what is deleted over one of them is gone on the other."""
    d = Dialogue091()
    entities.ready(d)
    d.declare("work", durable=True)
    d.wait(seconds=5)
    node = d.again("10.0.0.1:51040", server="10.0.0.3:5672")
    entities.ready(node)
    node.ask("queue.delete", queue="work", answer={"message_count": 0})
    entities.leave(node)
    other = entities.another(d)
    other.client.method("queue.declare", queue="work", passive=True)
    entities.not_found(other, "queue.declare", "queue", "work")
    entities.leave(other)
    d.goodbye()
    assert rules(summaries(d)) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "scenario", [one for one in SCENARIOS if one.kind == "pair"], ids=lambda one: one.name
)
def test_it_goes_on_where_it_was_put_down(scenario: Scenario) -> None:
    """Carried to another process between any two packets."""
    content = scenario.dialogue().pcap()
    whole = _summed(content, 0)
    assert [one.dump() for one in _summed(content, 1)] == [one.dump() for one in whole]


def _summed(content: bytes, every: int) -> list[ConnectionSummary]:
    """The summaries of a capture. every: after so many packets all connections are put down and taken up."""
    from amqpscope.capture.reader import for_magic

    table = ConnectionTable("capture", AnalysisOutput(judge=True), KeptConnections(False))
    table.correlation.wanted = False
    reader = for_magic(content, _Carried(table, every))
    assert reader is not None
    reader.feed(content)
    reader.finish()
    table.finish()
    return table.correlation.summaries


class _Carried(SegmentSink):
    """Hands segments to a table, whose connections it moves to another process and back."""

    def __init__(self, table: ConnectionTable, every: int) -> None:
        super().__init__()
        self.table = table
        self.every = every

    def segment(self, segment: Segment) -> None:
        table = self.table
        table.segment(segment)
        if self.every:
            for key, analysis in list(table._forward.items()):
                state = marshal.loads(marshal.dumps(analysis.dump()))
                again = ConnectionAnalysis.load(state, table.output)
                table._forward[key] = again
                for back, one in list(table._backward.items()):
                    if one is analysis:
                        table._backward[back] = again


@pytest.mark.parametrize("translation", [20_000, 20_000_000])
def test_a_connection_that_is_captured_on_both_sides_of_an_address_translation(translation: int) -> None:
    """Then it uses its own exclusive queue, and not that of another client."""
    d = Dialogue091()
    d.opened()
    d.channel()
    d.declare("mine", exclusive=True)
    d.consume("mine", "c")
    d.wait(seconds=1)
    d.goodbye()
    for packet in d.capture.packets[:]:
        octets = bytearray(packet.data)
        by_client = packet.sender is d.client.end
        at = 26 if by_client else 30  # the address of the client in the headers
        octets[at : at + 4] = b"\x0a\x63\x00\x07"
        time = packet.time + (translation if by_client else -translation)
        d.capture.packets.append(Packet(time, bytes(octets), packet.wire_length, packet.sender))
    d.capture.packets.sort(key=lambda packet: packet.time)
    accused = {rule for rule, _, _ in rules(summaries(d))}
    assert ("amqp091/Q-EXCL-ACCESS" in accused) == (translation > ADDRESS_TRANSLATION)

"""Profiles: each habit of a product is a note to it, and an error to everybody else; nothing else is excused.

Every habit is reported by a dialogue: the product does what it is known for, once saying who it is in its
open, once as anybody. Both times the same is found, in the same packet; only the weight differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.judged import judged

from amqpscope.errors import FilterError
from amqpscope.model.finding import Finding
from amqpscope.report.verdict import why_possible
from amqpscope.rules.catalogue import catalogue, severity
from amqpscope.rules.profiles import (
    AUTO,
    HABITUAL,
    NONE,
    PROFILES,
    habit_of,
    profile,
    under,
    valid,
    weight,
)
from amqpscope.rules.registry import checked

Tell = Callable[[Dialogue], None]


def properties(**said: str) -> dict[str, Any]:
    return {"properties": [(name.replace("_", "-"), amqp.string(text)) for name, text in said.items()]}


RABBITMQ = properties(product="RabbitMQ", version="3.13.7", platform="Erlang/OTP 26.2.5")

INTRODUCTIONS = {
    "rabbitmq-3": RABBITMQ,
    "azure-service": {"container_id": "4bff8d529a594560809195a8f9700345_G1"},
    "azure-net": properties(
        product="Messaging.ServiceBus",
        version="7.17.5",
        user_agent="azsdk-net-Messaging.ServiceBus/7.17.5 (.NET 8.0.4; Debian GNU/Linux 12)",
    ),
    "azure-python": properties(
        product="azsdk-python-servicebus",
        version="7.15.0",
        user_agent="shop azsdk-python-servicebus/7.15.0 pyamqp/2.0.0a1 Python/3.11.7 (Linux)",
    ),
    "uamqp": properties(
        product="azsdk-python-servicebus",
        version="7.10.0",
        user_agent="azsdk-python-servicebus/7.10.0 uamqp/1.6.5 Python/3.11.7 (Linux)",
    ),
    "rhea": properties(
        product="MSJSClient",
        version="7.9.5",
        user_agent="azsdk-js-azureservicebus/7.9.5 Node/v20.20.2 OS/(x64-Linux)",
    ),
    "amqpnetlite": {"container_id": "AMQPNetLite-6bb0aab7"},
    "qpid-proton": properties(product="qpid-dispatch-router", version="1.19.0"),
    "artemis": properties(product="apache-activemq-artemis", version="2.31.2"),
    "amqp10": {"container_id": "conn1740000000000"},
}
"""What each product says of itself."""

REPORTED: dict[tuple[str, str, str], tuple[str, Tell]] = {}
"""Peer and dialogue by profile, rule and path."""


def habit(name: str, rule: str, peer: str, path: str = "") -> Callable[[Tell], Tell]:
    def keep(tell: Tell) -> Tell:
        REPORTED[name, f"amqp10/{rule}", path] = (peer, tell)
        return tell

    return keep


@habit("rabbitmq-3", "L-CLOSE-ANSWER", "server")
def a_closing_detach_is_answered_by_one_that_does_not_close(d: Dialogue) -> None:
    d.linked()
    d.client.detach()
    d.server.detach(closed=None)
    d.client.end_session()
    d.server.end_session()
    d.goodbye()


@habit("rabbitmq-3", "C-CLOSE-LAST", "server")
def a_detach_comes_after_the_close(d: Dialogue) -> None:
    d.linked()
    with d.on_their_way():
        d.client.detach()
        d.client.close()
        d.server.close()
        d.server.detach()
    d.tcp.goodbye()


@habit("artemis", "M-DYN-NAME", "server")
def a_dynamic_node_has_a_random_address(d: Dialogue) -> None:
    made = amqp.source(dynamic=True, address="3f0c26f3-f9c6-4120-8f22-d1b0b3349062")
    d.begun()
    d.client.attach(RECEIVER, name="replies", source=amqp.source(dynamic=True))
    d.server.attach(SENDER, name="replies", source=made)
    d.goodbye()


@habit("azure-service", "D-TAG-PRESENT", "server")
def deliveries_have_no_tag(d: Dialogue) -> None:
    d.subscribed()
    d.server.transfer(delivery_tag=None)
    d.client.disposition(0)
    d.goodbye()


@habit("azure-service", "L-ATTACH-IDC", "server")
def the_answers_of_cbs_come_on_a_link_without_initial_delivery_count(d: Dialogue) -> None:
    source = amqp.source(address="$cbs")
    d.begun()
    d.client.attach(RECEIVER, source=source)
    d.server.attach(SENDER, source=source, initial_delivery_count=None)
    d.goodbye()


@habit("azure-net", "L-ATTACH-IDC", "client")
def the_requests_to_cbs_go_on_a_link_without_initial_delivery_count(d: Dialogue) -> None:
    target = amqp.target(address="$cbs")
    d.begun()
    d.client.attach(SENDER, target=target, initial_delivery_count=None)
    d.server.attach(RECEIVER, target=target)
    d.goodbye()


SESSION = "com.microsoft:session-filter"


def session(name: str = SESSION) -> bytes:
    return amqp.source(address="q", filter=[(name, amqp.string("orders-7"))])


def described_session() -> bytes:
    return amqp.source(address="q", filter=[(SESSION, amqp.described(SESSION, amqp.string("orders-7")))])


@habit("azure-net", "M-FILTER-VALUE", "client", SESSION)
@habit("azure-python", "M-FILTER-VALUE", "client", SESSION)
def a_session_is_asked_for_by_a_bare_string(d: Dialogue) -> None:
    d.begun()
    d.client.attach(RECEIVER, source=session())
    d.server.attach(SENDER, source=described_session())
    d.goodbye()


@habit("azure-service", "M-FILTER-VALUE", "server", SESSION)
def the_session_is_reported_as_a_bare_string(d: Dialogue) -> None:
    d.begun()
    d.client.attach(RECEIVER, source=described_session())
    d.server.attach(SENDER, source=session())
    d.goodbye()


@habit("azure-python", "C-PIPE-CHANNEL", "client")
def a_session_begins_on_channel_1_before_the_open(d: Dialogue) -> None:
    d.headers()
    with d.unheard(d.server):
        d.client.open()
        d.client.begin(1)
    d.server.open()
    d.server.begin(0, remote_channel=1)
    d.goodbye()


@habit("azure-python", "L-HANDLE-LOWEST", "client")
def the_first_link_has_handle_1(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER, handle=1)
    d.server.attach(RECEIVER, handle=0)
    d.goodbye()


@habit("azure-python", "L-CREDIT-OWNER", "client")
def a_sender_states_a_credit_of_its_own(d: Dialogue) -> None:
    d.linked(credit=10)
    d.client.flow(handle=0, link_credit=10000)
    d.goodbye()


@habit("azure-python", "L-CREDIT-INIT", "client")
def a_sender_does_not_wait_for_credit(d: Dialogue) -> None:
    d.linked(credit=0)
    d.client.transfer(settled=True)
    d.goodbye()


@habit("amqp10", "D-RCVMODE-SECOND", "client")
@habit("uamqp", "D-RCVMODE-SECOND", "client")
def a_receiver_in_mode_second_settles_first(d: Dialogue) -> None:
    d.subscribed(client={"rcv_settle_mode": 1}, server={"rcv_settle_mode": 1})
    d.server.transfer()
    d.client.disposition(0, settled=True)
    d.goodbye()


@habit("amqp10", "M-DYNPROPS-UNSET", "client")
def the_properties_of_a_dynamic_node_are_an_empty_map(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER, target=amqp.target(address="q", dynamic_node_properties=[]))
    d.server.attach(RECEIVER)
    d.goodbye()


@habit("rhea", "T-FIELDS-KEY", "client", "error.info")
def an_error_s_info_has_strings_for_keys(d: Dialogue) -> None:
    reason = [(amqp.string("DeadLetterReason"), amqp.string("too old"))]
    d.subscribed()
    d.server.transfer()
    d.client.disposition(0, state=amqp.rejected(error=amqp.error(condition="x:dead-letter", info=reason)))
    d.goodbye()


@habit("rhea", "T-FIELDS-KEY", "client", "state.message-annotations")
def modified_has_strings_for_keys_of_annotations(d: Dialogue) -> None:
    noted = [(amqp.string("x-opt-tries"), amqp.uint(3))]
    d.subscribed()
    d.server.transfer()
    d.client.disposition(0, state=amqp.modified(delivery_failed=True, message_annotations=noted))
    d.goodbye()


@habit("amqpnetlite", "S-FLOW-NEXTIN-UNSET", "client")
def a_flow_has_next_incoming_id_before_the_begin(d: Dialogue) -> None:
    d.opened()
    d.client.begin()
    d.client.flow(next_incoming_id=0)
    d.server.begin()
    d.goodbye()


@habit("amqpnetlite", "L-DC-UNSET", "client")
@habit("qpid-proton", "L-DC-UNSET", "client")
def a_flow_has_delivery_count_before_the_attach(d: Dialogue) -> None:
    d.begun()
    with d.on_their_way():
        d.client.attach(RECEIVER)
        d.client.flow(handle=0, delivery_count=0)
    d.server.attach(SENDER)
    d.goodbye()


def found(tell: Tell, peer: str = "", **introduction: Any) -> list[Finding]:
    """What is found in a dialogue in which `peer` introduces itself so."""
    d = Dialogue()
    if peer:
        {"client": d.client, "server": d.server}[peer].introduction = introduction
    tell(d)
    while_read, at_end = judged(d.pcap())
    return while_read + at_end


def verdicts(findings: list[Finding]) -> list[tuple[str, str, int, bool]]:
    return [(one.rule, one.peer, int(one.packet), one.certain) for one in findings]


def test_every_habit_is_reported_and_every_product_introduces_itself() -> None:
    habits = {(one.name, habit.rule, habit.path) for one in PROFILES for habit in one.habits}
    assert set(REPORTED) == {habit for habit in habits if habit[1].startswith("amqp10/")}
    assert set(INTRODUCTIONS) == {name for name, _, _ in REPORTED}


@pytest.mark.parametrize(("name", "rule", "path"), list(REPORTED))
def test_a_habit_is_a_note_to_its_product_and_has_its_full_weight_to_anybody(
    name: str, rule: str, path: str
) -> None:
    peer, tell = REPORTED[name, rule, path]
    anybody = found(tell)
    product = found(tell, peer, **INTRODUCTIONS[name])
    assert [(one.rule, one.peer) for one in anybody] == [(rule, peer)]
    assert verdicts(product) == verdicts(anybody)
    assert [(one.assessment.profile, weight(one)) for one in anybody] == [("", severity(rule))]
    assert [(one.assessment.profile, weight(one)) for one in product] == [(name, "note")]
    habit = habit_of(product[0])
    assert habit is not None and (habit.rule, habit.path) == (rule, path) and habit_of(anybody[0]) is None


@pytest.mark.parametrize(("name", "rule", "path"), list(REPORTED))
def test_it_is_nobodys_excuse_that_the_other_peer_is_that_product(name: str, rule: str, path: str) -> None:
    peer, tell = REPORTED[name, rule, path]
    other = "server" if peer == "client" else "client"
    assert [one.assessment.profile for one in found(tell, other, **INTRODUCTIONS[name])] == [""]


def without_open(d: Dialogue, label: str) -> None:
    d.capture.packets.remove(d.capture.packets[d.packet_number(d.labels[label]) - 1])


def with_half_an_open(d: Dialogue, label: str) -> None:
    packet = d.capture.packets[d.packet_number(d.labels[label]) - 1]
    packet.data = packet.data[:-6]


@pytest.mark.parametrize("miss", [without_open, with_half_an_open])
@pytest.mark.parametrize(("name", "rule", "path"), list(REPORTED))
def test_whose_open_is_not_all_there_may_be_any_product(
    name: str, rule: str, path: str, miss: Callable[[Dialogue, str], None]
) -> None:
    peer, tell = REPORTED[name, rule, path]
    d = Dialogue()
    tell(d)
    if rule == "amqp10/C-PIPE-CHANNEL":
        return  # rests on the open
    miss(d, f"{peer} open")
    while_read, at_end = judged(d.pcap())
    for one in while_read + at_end:
        assert (one.rule, one.peer, one.certain) == (rule, peer, False)
        if found(tell)[0].certain:
            assert one.evidence["product_captured"] is False
            assert why_possible(one).startswith("Some products are known to do this")


@pytest.mark.parametrize("miss", [without_open, with_half_an_open])
def test_loss_excuses_the_shape_of_a_habit_only(miss: Callable[[Dialogue, str], None]) -> None:
    d = Dialogue()
    d.linked()
    d.client.close()
    d.server.close()
    d.server.detach()
    d.server.flow()
    miss(d, "server open")
    while_read, at_end = judged(d.pcap())
    verdict = [(one.rule, one.frame, one.certain) for one in while_read + at_end if one.peer == "server"]
    assert verdict == [("amqp10/C-CLOSE-LAST", "detach", False), ("amqp10/C-CLOSE-LAST", "flow", True)]


def test_a_product_that_cannot_be_read_is_not_known() -> None:
    d = Dialogue()
    d.headers()
    d.client.open(properties=amqp.raw("a1 01 c3"))
    d.server.open()
    d.client.begin()
    d.server.begin()
    d.client.attach(SENDER, initial_delivery_count=None)
    while_read, at_end = judged(d.pcap())
    verdict = [(one.rule, one.certain) for one in while_read + at_end]
    assert ("amqp10/L-ATTACH-IDC", False) in verdict


def test_a_habit_breaks_a_rule_that_is_checked_and_has_a_public_source() -> None:
    habits = [habit for one in PROFILES for habit in one.habits]
    assert HABITUAL == {habit.rule for habit in habits} <= set(checked()) & set(catalogue())
    for habit in habits:
        assert habit.source.startswith("https://") and habit.does


@pytest.mark.parametrize("version", ["4.0.0", "4.1.0-beta.2", "40.1", "", "three"])
def test_what_was_mended_is_no_habit_any_more(version: str) -> None:
    peer, tell = REPORTED["rabbitmq-3", "amqp10/L-CLOSE-ANSWER", ""]
    said = properties(product="RabbitMQ", version=version)
    assert [one.assessment.profile for one in found(tell, peer, **said)] == [""]
    assert [one.assessment.profile for one in found(tell, peer, **properties(product="RabbitMQ"))] == [""]


@pytest.mark.parametrize("product", ["rabbitmq", "RabbitMQ-like", "not RabbitMQ", "RabbitMQ\n"])
def test_all_of_a_product_s_name_has_to_be_there(product: str) -> None:
    peer, tell = REPORTED["rabbitmq-3", "amqp10/L-CLOSE-ANSWER", ""]
    assert [
        one.assessment.profile for one in found(tell, peer, **properties(product=product, version="3.9"))
    ] == [""]


@pytest.mark.parametrize(
    "container", ["4bff8d529a594560809195a8f9700345", "x4bff8d529a594560809195a8f9700345_G1", "AMQPNetLite-"]
)
def test_all_of_a_container_id_has_to_have_the_form(container: str) -> None:
    peer, tell = REPORTED["azure-service", "amqp10/D-TAG-PRESENT", ""]
    assert [one.assessment.profile for one in found(tell, peer, container_id=container)] == [""]


def test_a_detach_that_is_never_answered_is_no_habit() -> None:
    def tell(d: Dialogue) -> None:
        d.linked()
        d.client.attach(SENDER, handle=1, name="r")
        d.server.attach(RECEIVER, handle=1, name="r")
        d.client.detach(handle=1)
        d.client.transfer()
        d.wait(seconds=120)
        d.server.flow()

    findings = [one for one in found(tell, "server", **RABBITMQ) if one.peer == "server"]
    assert [(one.rule, one.assessment.profile) for one in findings] == [("amqp10/L-CLOSE-ANSWER", "")]


def test_a_transfer_after_the_close_is_no_habit() -> None:
    def tell(d: Dialogue) -> None:
        d.subscribed()
        with d.on_their_way():
            d.client.close()
            d.server.close()
            d.server.transfer()
        d.tcp.goodbye()

    findings = found(tell, "server", **RABBITMQ)
    assert [(one.rule, one.assessment.profile) for one in findings] == [("amqp10/C-CLOSE-LAST", "")]


def test_another_filter_that_is_a_bare_string_is_no_habit() -> None:
    def tell(d: Dialogue) -> None:
        d.begun()
        d.client.attach(RECEIVER, source=session("apache.org:selector-filter:string"))
        d.server.attach(SENDER)
        d.goodbye()

    findings = found(tell, "client", **INTRODUCTIONS["azure-net"])
    assert [(one.rule, one.assessment.profile) for one in findings] == [("amqp10/M-FILTER-VALUE", "")]


@pytest.mark.parametrize(
    ("condition", "excused"),
    [
        ("amqp:session:window-violation", ""),
        ("amqp:invalid-field", ""),
        ("amqp:internal-error", ""),
        ("amqp:resource-limit-exceeded", "amqpnetlite"),
        ("amqp:resource-locked", "amqpnetlite"),
    ],
)
def test_a_habit_that_the_other_peer_complains_of_is_no_excuse(condition: str, excused: str) -> None:
    def tell(d: Dialogue) -> None:
        d.opened()
        d.client.begin()
        d.client.flow(next_incoming_id=0)
        d.server.begin()
        d.server.end_session(error=condition)
        d.client.end_session()
        d.goodbye()

    findings = found(tell, "client", **INTRODUCTIONS["amqpnetlite"])
    assert [(one.rule, one.assessment.profile) for one in findings] == [
        ("amqp10/S-FLOW-NEXTIN-UNSET", excused)
    ]


def test_who_is_who_is_asked_anew_when_the_connection_is_used_again() -> None:
    _peer, _tell = REPORTED["amqpnetlite", "amqp10/S-FLOW-NEXTIN-UNSET", ""]
    d = Dialogue()
    d.client.introduction = INTRODUCTIONS["amqpnetlite"]
    d.opened()
    d.client.begin()
    d.client.flow(next_incoming_id=0)
    d.server.begin()
    d.server.end_session(error="amqp:resource-locked")  # this finding is complete now
    d.client.end_session()
    d.client.close()
    d.server.close()
    d.client.introduction = {}
    d.opened()
    d.client.begin()
    d.client.flow(next_incoming_id=0)
    d.server.begin()
    d.server.end_session(error="amqp:resource-locked")
    d.client.end_session()
    d.goodbye()
    while_read, at_end = judged(d.pcap())
    flows = [
        one.assessment.profile for one in while_read + at_end if one.rule == "amqp10/S-FLOW-NEXTIN-UNSET"
    ]
    assert flows == ["amqpnetlite", ""]


def test_a_choice_of_profiles() -> None:
    _, tell = REPORTED["amqp10", "amqp10/D-RCVMODE-SECOND", ""]
    said = INTRODUCTIONS["amqp10"]
    assert [one.assessment.profile for one in under(found(tell, "client", **said), AUTO)] == ["amqp10"]
    assert [weight(one) for one in under(found(tell, "client", **said), NONE)] == ["error"]
    assert [one.assessment.profile for one in under(found(tell, "client", **said), "uamqp")] == ["uamqp"]
    assert [one.assessment.profile for one in under(found(tell), "rabbitmq-3,uamqp")] == ["uamqp"]
    assert [one.assessment.profile for one in under(found(tell), "rabbitmq-3")] == [""]


def test_a_name_that_no_profile_has() -> None:
    for choice in (AUTO, NONE, "uamqp", "rabbitmq-3,uamqp"):
        assert valid(choice) == choice
    for choice, name in (("rabbitmq-3,auto", "auto"), ("rabbitmq", "rabbitmq"), ("uamqp,", ""), ("", "")):
        with pytest.raises(
            FilterError, match=f"--profile {name}: must be auto, none, or names out of rabbitmq-3, "
        ):
            valid(choice)
    assert profile("uamqp").name == "uamqp"


def test_a_hostile_open_costs_little_and_says_nothing() -> None:
    _, tell = REPORTED["amqp10", "amqp10/D-RCVMODE-SECOND", ""]
    agent = "azsdk-python-" * 4000 + " uamqp"
    many = [(f"p{number}", amqp.string("x")) for number in range(2000)]
    odd = [("product", amqp.list_([])), ("user-agent", amqp.string(agent)), ("version", amqp.uint(3))]
    began = time.process_time()
    findings = found(tell, "client", container_id="conn" + "1" * 100_000, properties=odd + many)
    assert time.process_time() - began < 2
    assert [one.assessment.profile for one in findings if one.rule == "amqp10/D-RCVMODE-SECOND"] == [""]


def test_the_first_of_two_values_counts() -> None:
    peer, tell = REPORTED["rabbitmq-3", "amqp10/L-CLOSE-ANSWER", ""]
    twice = [("product", amqp.string("RabbitMQ")), ("version", amqp.string("3.1"))] * 2
    assert "rabbitmq-3" in [one.assessment.profile for one in found(tell, peer, properties=twice)]
    twice[0] = ("product", amqp.string("other"))
    assert "rabbitmq-3" not in [one.assessment.profile for one in found(tell, peer, properties=twice)]

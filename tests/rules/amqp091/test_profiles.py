"""Profiles of products that speak AMQP 0-9-1: a habit is a note to them, an error to others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.dialogue091 import Dialogue091
from support.judged import judged

from amqpscope.model.finding import Finding
from amqpscope.rules.profiles import PROFILES, weight

Tell = Callable[[Dialogue091, str], None]

REPORTED: dict[tuple[str, str], tuple[str, tuple[str, ...], Tell]] = {}
"""Peer, names of the product, and the dialogue, by profile and rule."""


def habit(name: str, rule: str, peer: str, *products: str) -> Callable[[Tell], Tell]:
    def keep(tell: Tell) -> Tell:
        REPORTED[name, f"amqp091/{rule}"] = (peer, products, tell)
        return tell

    return keep


def opened(d: Dialogue091, client: str = "someone", server: str = "someone", **more: Any) -> None:
    d.opened(start={"product": server}, start_ok={"properties": {"product": client}}, **more)


@habit("rabbitmq-091", "F-FRAME-SIZE", "server", "RabbitMQ")
def headers_larger_than_a_frame(d: Dialogue091, product: str, code: int = 200) -> None:
    opened(d, server=product, tune_ok={"frame_max": 4096})
    d.channel(1)
    d.declare()
    d.consume(no_ack=True)
    d.server.deliver(headers={f"header {number}": "x" * 100 for number in range(50)})
    d.client.close_connection(code)
    d.server.connection_close_ok()
    d.tcp.goodbye()


@habit("pamqp", "T-RESERVED-CHAN", "client", "aiormq", "rabbitpy", "AMQPStorm", "carehare", "aiorabbit/1.0.3")
def channel_opened_out_of_band(d: Dialogue091, product: str) -> None:
    opened(d, client=product)
    d.client.open_channel(reserved_1="0")
    d.server.channel_open_ok()
    d.goodbye()


PAYLOAD_MAX = (
    "AMQPStorm",
    "rabbitpy",
    "carehare",
    "aiorabbit/1.0.3",
    "aioamqp",
    "rabbitmq-client",
    "node-amqp-coffee",
)


@habit("payload-max", "F-FRAME-SIZE", "client", *PAYLOAD_MAX)
def body_as_large_as_a_frame(d: Dialogue091, product: str, beyond: int = 8, code: int = 200) -> None:
    opened(d, client=product, tune_ok={"frame_max": 4096})
    d.channel(1)
    d.client.publish(b"x" * 5000, frame_max=4096 + beyond)
    d.server.close_connection(code)
    d.client.connection_close_ok()
    d.tcp.goodbye()


def locale(d: Dialogue091, product: str, which: str) -> None:
    d.opened(start={}, start_ok={"properties": {"product": product}, "locale": which})
    d.goodbye()


@habit("bunny", "C-STARTOK-LOCALE-OFFERED", "client", "Bunny", "amqp gem")
def a_british_locale(d: Dialogue091, product: str) -> None:
    locale(d, product, "en_GB")


@habit("aiorabbit", "C-STARTOK-LOCALE-OFFERED", "client", "aiorabbit/1.0.3")
def a_locale_with_a_hyphen(d: Dialogue091, product: str) -> None:
    locale(d, product, "en-US")


@habit("streadway", "C-STARTOK-LOCALE-OFFERED", "client", "https://github.com/streadway/amqp")
def no_locale(d: Dialogue091, product: str) -> None:
    locale(d, product, "")


@habit("amqp-client-js", "C-STARTOK-LOCALE-OFFERED", "client", "amqp-client.js")
def no_locale_either(d: Dialogue091, product: str) -> None:
    locale(d, product, "")


def found(tell: Callable[..., None], product: str, **more: Any) -> list[Finding]:
    d = Dialogue091()
    tell(d, product, **more)
    while_read, at_end = judged(d.pcap())
    return [one for one in while_read + at_end if weight(one) == "error" or one.assessment.profile]


def test_every_habit_is_reported() -> None:
    habits = {(one.name, habit.rule) for one in PROFILES for habit in one.habits}
    assert set(REPORTED) == {habit for habit in habits if habit[1].startswith("amqp091/")}


@pytest.mark.parametrize(("name", "rule"), list(REPORTED))
def test_a_habit_is_a_note_to_its_product_and_an_error_to_anybody(name: str, rule: str) -> None:
    peer, products, tell = REPORTED[name, rule]
    for product in products:
        assert [(f.rule, f.peer, f.assessment.profile, weight(f)) for f in found(tell, product)] == [
            (rule, peer, name, "note")
        ]
    assert [(f.rule, f.peer, f.assessment.profile, weight(f)) for f in found(tell, "someone")] == [
        (rule, peer, "", "error")
    ]


@pytest.mark.parametrize(("name", "rule"), list(REPORTED))
def test_whose_properties_were_not_captured_may_be_any_product(name: str, rule: str) -> None:
    peer, products, tell = REPORTED[name, rule]
    d = Dialogue091()
    tell(d, products[0])
    said = d.labels["connection.start" if peer == "server" else "connection.start-ok"]
    d.capture.packets.remove(d.capture.packets[d.packet_number(said) - 1])
    while_read, at_end = judged(d.pcap())
    assert not [one for one in while_read + at_end if one.rule == rule and one.certain]


def test_a_habit_that_the_other_peer_complains_of_is_no_excuse() -> None:
    findings = found(headers_larger_than_a_frame, "RabbitMQ", code=501)
    assert [(one.rule, one.assessment.profile) for one in findings] == [("amqp091/F-FRAME-SIZE", "")]


def test_a_body_larger_than_a_frame_is_no_habit() -> None:
    def tell(d: Dialogue091, product: str) -> None:
        opened(d, server=product, tune_ok={"frame_max": 4096})
        d.channel(1)
        d.declare()
        d.consume(no_ack=True)
        d.server.deliver(b"x" * 5000, frame_max=8192)
        d.goodbye()

    findings = found(tell, "RabbitMQ")
    assert [(one.rule, one.assessment.profile) for one in findings] == [("amqp091/F-FRAME-SIZE", "")]


@pytest.mark.parametrize(
    ("given", "profile"), [({}, "payload-max"), ({"beyond": 9}, ""), ({"code": 501}, "")]
)
def test_more_than_what_is_around_a_payload_is_no_habit(given: dict[str, int], profile: str) -> None:
    findings = found(body_as_large_as_a_frame, "rabbitpy", **given)
    assert {(one.rule, one.assessment.profile) for one in findings} == {("amqp091/F-FRAME-SIZE", profile)}

"""Troubles of AMQP 1.0 with security tokens and with management."""

from __future__ import annotations

from typing import Any

from scenarios.diagnoses.troubles import alive, trouble
from support import amqp10_encode as amqp
from support.conversation import Conversation
from support.dialogue import RECEIVER, SENDER, Dialogue

START = 1_700_000_000
"""The time (s) of the first packet of every dialogue."""


def node(address: str) -> Dialogue:
    """A client with two links to a node that answers requests."""
    d = Dialogue()
    d.begun()
    d.client.attach(
        SENDER, 0, "requests", source=amqp.source(address="requests"), target=amqp.target(address=address)
    )
    d.server.attach(
        RECEIVER, 0, "requests", source=amqp.source(address="requests"), target=amqp.target(address=address)
    )
    d.server.flow(handle=0, link_credit=100)
    answers = {"source": amqp.source(address=address), "target": amqp.target(address="answers")}
    d.client.attach(RECEIVER, 1, "answers", **answers)
    d.server.attach(SENDER, 1, "answers", **answers)
    d.client.flow(handle=1, link_credit=100)
    return d


def asked(d: Dialogue, application: dict[str, Any], message_id: str = "1") -> None:
    """A request, settled as it is sent."""
    properties = amqp.properties(message_id=message_id, reply_to="answers")
    pairs = {name: amqp.string(one) if isinstance(one, str) else one for name, one in application.items()}
    message = properties + amqp.application_properties(pairs) + amqp.amqp_value("token")
    d.client.transfer(message, settled=True)


def answered(d: Dialogue, name: str, status: int, message_id: str = "1") -> None:
    """The answer to it."""
    pairs = {name: amqp.int_(status)}
    properties = amqp.properties(correlation_id=message_id)
    d.server.transfer(properties + amqp.application_properties(pairs) + amqp.amqp_value(""), 1, settled=True)


def put_token(d: Dialogue, expires: int | None = None) -> None:
    application: dict[str, Any] = {"operation": "put-token", "type": "jwt", "name": "amqp://broker/q"}
    if expires is not None:
        application["expiration"] = amqp.timestamp(1000 * (START + expires))
    asked(d, application)


@trouble("token-refused")
def a_token_is_refused(troubled: bool) -> Conversation:
    d = node("$cbs")
    put_token(d)
    answered(d, "status-code", 401 if troubled else 202)
    d.goodbye()
    return d


@trouble("token-unanswered")
def a_token_is_not_answered(troubled: bool) -> Conversation:
    d = node("$cbs")
    put_token(d)
    if not troubled:
        d.wait(seconds=1)
        answered(d, "status-code", 202)
    alive(d)
    return d


@trouble("token-expired")
def a_token_runs_out(troubled: bool) -> Conversation:
    d = node("$cbs")
    put_token(d, 60)
    answered(d, "status-code", 202)
    d.client.attach(RECEIVER, 2, "q")
    d.server.attach(SENDER, 2, "q")
    d.client.flow(handle=2, link_credit=10)
    d.server.transfer(handle=2, settled=True)
    d.wait(seconds=62)
    if troubled:
        d.server.detach(2, error="amqp:unauthorized-access")
        d.client.detach(2)
    else:
        d.server.transfer(handle=2, settled=True)
    d.goodbye()
    return d


@trouble("management-failed")
def management_refuses(troubled: bool) -> Conversation:
    d = node("$management")
    asked(d, {"operation": "READ", "type": "com.microsoft:session", "name": "q"})
    answered(d, "statusCode", 410 if troubled else 200)
    d.goodbye()
    return d

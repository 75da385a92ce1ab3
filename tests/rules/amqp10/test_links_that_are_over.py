"""What a disposition says of deliveries of a link, a session or a connection that is over changes nothing.

So it breaks no rule of what may be said of a delivery. While a link is only detached, its deliveries remain.
"""

from __future__ import annotations

import pytest
from support import amqp10_encode as amqp
from support.dialogue import MESSAGE, RECEIVER, SENDER, Dialogue
from support.judged import judged

RULES = ("D-STATE-FINAL-RCV", "D-STATE-FINAL-SND", "D-SND-SPONT", "D-DISP-PARTIAL", "D-RCVMODE-SECOND")

OVER = ("closed", "closed by both", "error", "attached again", "end", "close")
LIVE = ("", "detached by both")


def leave(d: Dialogue, how: str, other: bool) -> None:
    """other: whether the client leaves, or leaves the link first; else the server."""
    talks = [d.client, d.server] if other else [d.server, d.client]
    if how in ("closed", "closed by both"):
        for peer in talks[: 2 if how == "closed by both" else 1]:
            peer.detach()
    elif how == "error":
        talks[0].detach(closed=None, error="amqp:internal-error")
    elif how == "end":
        talks[0].end_session()
    elif how == "close":
        talks[0].close()
    elif how:
        for peer in talks:
            peer.detach(closed=None)
        if how == "attached again":
            for peer in talks:
                if peer is d.client:
                    peer.attach(SENDER, initial_delivery_count=1)
                else:
                    peer.attach(RECEIVER)


def receiver_changes_its_outcome(d: Dialogue, how: str) -> None:
    d.linked()
    d.client.transfer()
    d.server.disposition(0, settled=None)
    leave(d, how, True)
    d.server.disposition(0, state=amqp.rejected())


def sender_changes_its_outcome(d: Dialogue, how: str) -> None:
    d.linked()
    d.client.transfer()
    d.client.disposition(0, role=SENDER, settled=None, state=amqp.accepted())
    leave(d, how, False)
    d.client.disposition(0, role=SENDER, state=amqp.released())


def sender_decides(d: Dialogue, how: str) -> None:
    d.linked()
    d.client.transfer()
    leave(d, how, False)
    d.client.disposition(0, role=SENDER, state=amqp.released())


def sender_speaks_of_an_incomplete_delivery(d: Dialogue, how: str) -> None:
    d.linked()
    d.client.transfer(MESSAGE[:4], more=True)
    leave(d, how, False)
    d.client.disposition(0, role=SENDER, settled=None, state=amqp.accepted())


def receiver_settles_first(d: Dialogue, how: str) -> None:
    d.linked(client={"rcv_settle_mode": 1}, server={"rcv_settle_mode": 1})
    d.client.transfer()
    leave(d, how, True)
    d.server.disposition(0)


TALKS = {
    "D-STATE-FINAL-RCV": receiver_changes_its_outcome,
    "D-STATE-FINAL-SND": sender_changes_its_outcome,
    "D-SND-SPONT": sender_decides,
    "D-DISP-PARTIAL": sender_speaks_of_an_incomplete_delivery,
    "D-RCVMODE-SECOND": receiver_settles_first,
}


def found(rule: str, how: str) -> list[str]:
    d = Dialogue()
    TALKS[rule](d, how)
    while_read, at_end = judged(d.pcap())
    return [
        one.rule.partition("/")[2]
        for one in while_read + at_end
        if one.certain and one.rule.partition("/")[2] in RULES
    ]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("how", OVER)
def test_nothing_is_certain_of_what_is_over(rule: str, how: str) -> None:
    assert found(rule, how) == []


@pytest.mark.parametrize("rule", RULES[:3])
@pytest.mark.parametrize("how", LIVE)
def test_what_is_under_way_is_judged(rule: str, how: str) -> None:
    assert found(rule, how) == [rule]

"""A connection or a channel is opened before that is requested or possible.

If the server sends connection.open-ok unasked, it is out of order. The client is at fault only if it never
sends connection.open.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.dialogue091 import Dialogue091
from support.judged import judged


def found(d: Dialogue091) -> list[tuple[str, str, int]]:
    """Rule, peer and packet of each certain finding."""
    while_read, at_end = judged(d.pcap())
    return [(one.rule.partition("/")[2], one.peer, one.packet) for one in while_read + at_end if one.certain]


def use(d: Dialogue091) -> None:
    d.channel(1)
    d.declare("q")
    d.channel(2)
    d.client.publish()


def nothing(d: Dialogue091) -> None:
    """The client closes the connection as soon as it is open."""


def test_a_client_that_never_sends_connection_open_is_at_fault() -> None:
    d = Dialogue091()
    d.started()
    d.server.tune()
    d.client.tune_ok()
    d.server.connection_open_ok()
    use(d)
    d.goodbye()
    # The connection begins with three packets of TCP.
    assert found(d) == [("C-HS-ORDER-SERVER", "server", 9), ("C-HS-NO-CHANNEL", "client", 10)]


@pytest.mark.parametrize("then", [use, nothing])
@pytest.mark.parametrize("early", [1, 2])
def test_a_client_that_goes_on_in_order_is_at_no_fault(
    then: Callable[[Dialogue091], None], early: int
) -> None:
    d = Dialogue091()
    d.started()
    d.server.tune()
    if early == 2:
        d.server.connection_open_ok()
    d.client.tune_ok()
    if early == 1:
        d.server.connection_open_ok()
    d.client.open_connection()
    then(d)
    d.goodbye()
    assert [(rule, peer) for rule, peer, _ in found(d)] == [("C-HS-ORDER-SERVER", "server")]


def test_a_channel_that_is_opened_too_early_may_be_opened_again() -> None:
    d = Dialogue091()
    d.client.header()
    d.client.open_channel(1)
    d.server.start()
    d.client.start_ok()
    d.server.tune()
    d.client.tune_ok()
    d.client.open_connection()
    d.server.connection_open_ok()
    use(d)
    d.goodbye()
    assert [(rule, peer) for rule, peer, _ in found(d)] == [("C-HS-NO-CHANNEL", "client")]

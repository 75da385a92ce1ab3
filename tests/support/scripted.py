"""A handful of conversations whose verdicts `amqpscope check` is looked at for: one fault each, or none."""

from __future__ import annotations

from support import amqp10_encode as amqp
from support.dialogue import Dialogue


def clean() -> Dialogue:
    """Nobody breaks anything."""
    d = Dialogue()
    d.linked(credit=2)
    d.client.transfer()
    d.server.disposition()
    d.goodbye()
    return d


def window_overrun() -> Dialogue:
    """Two transfers into a window of none, and the session ends for it."""
    d = Dialogue()
    d.opened()
    d.client.begin()
    d.server.begin(incoming_window=1)
    d.attached()
    d.client.flow()
    d.client.transfer()
    d.client.transfer()
    d.client.transfer()
    d.server.end_session(error="amqp:session:window-violation")
    d.client.end_session()
    d.goodbye()
    return d


def credit_overrun() -> Dialogue:
    """Eight deliveries on two credits: six findings of one rule, and nobody says anything."""
    d = Dialogue()
    d.linked(credit=2)
    d.server.flow(handle=0, link_credit=2)
    for _ in range(8):
        d.client.transfer()
    d.goodbye()
    return d


def credit_withdrawn() -> Dialogue:
    """The credit is taken back; whether the sender had read that, no capture shows."""
    d = Dialogue()
    d.linked(credit=10)
    d.server.flow(handle=0, link_credit=0)
    d.client.transfer()
    d.goodbye()
    return d


def no_close() -> Dialogue:
    """The stream ends without close: only a warning, and only possible."""
    d = Dialogue()
    d.linked()
    d.tcp.goodbye()
    return d


def malformed() -> Dialogue:
    """A string that is no UTF-8, from a client whose link has a name hostile to terminals."""
    d = Dialogue()
    d.begun()
    d.client.attach(name="\x1b[31mred\u202e[bold]", source=amqp.source(address=amqp.string(b"\xff\x1b[2J")))
    d.goodbye()
    return d


def lost() -> Dialogue:
    """A transfer that the tap did not see, and a fault that can be seen all the same."""
    d = Dialogue()
    d.linked(credit=3)
    d.client.transfer()
    with d.missed():
        d.client.transfer()
    d.server.close()
    d.client.close()
    d.client.empty()
    d.tcp.goodbye()
    return d


SCRIPTED = {
    "clean": clean,
    "window-overrun": window_overrun,
    "credit-overrun": credit_overrun,
    "credit-withdrawn": credit_withdrawn,
    "no-close": no_close,
    "malformed": malformed,
    "lost": lost,
}

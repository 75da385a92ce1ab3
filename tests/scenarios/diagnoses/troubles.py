"""What a trouble is: a conversation with the trouble in it, and a twin that looks alike and is fine.

    @trouble("credit-none")
    def nobody_grants_credit(troubled: bool) -> Conversation:
        ...

In the first one the diagnosis of that code is made, in its twin no diagnosis at all. `troubles()` are all of
them, by code.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091

Speak = Callable[[bool], Conversation]

_TROUBLES: dict[str, Speak] = {}


def trouble(name: str) -> Callable[[Speak], Speak]:
    """A conversation with, or without, the trouble that this diagnosis names."""

    def take(speak: Speak) -> Speak:
        assert name not in _TROUBLES, name
        _TROUBLES[name] = speak
        return speak

    return take


def troubles() -> dict[str, Speak]:
    """The conversations by the names of their diagnoses."""
    for file in sorted(Path(__file__).parent.glob("*.py")):
        if file.stem != "troubles":
            importlib.import_module(f"scenarios.diagnoses.{file.stem}")
    return _TROUBLES


def alive(d: Dialogue, seconds: float = 30) -> None:
    """Time passes, and both peers show that they are there."""
    for _ in range(3):
        d.wait(seconds=seconds / 3)
        d.client.empty()
        d.server.empty()


def alive091(d: Dialogue091, seconds: float = 30) -> None:
    """The same in AMQP 0-9-1."""
    for _ in range(3):
        d.wait(seconds=seconds / 3)
        d.client.heartbeat()
        d.server.heartbeat()


def channel091(**tune: int) -> Dialogue091:
    """A connection with a channel and a queue."""
    d = Dialogue091()
    d.opened(tune=tune)
    d.channel(1)
    d.declare("q", durable=True)
    return d

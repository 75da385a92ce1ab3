"""What has rules of its own: a protocol, or a layer below it."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import ClassVar

__all__ = ["RuleSpace", "WebSocketRules"]


class RuleSpace:
    """A namespace of rules."""

    name: str
    """How the ids of its rules begin."""

    label: str
    """What people call it."""

    layers: ClassVar[Mapping[str, str]] = {}
    """The layers of its rules, by the first letters of their ids."""

    unchecked: str = ""
    """The table in `amqpscope/rules/data` of the rules that are not checked; "" if there is none."""

    guards: str = ""
    """The table there of what is legal although it looks odd."""

    named_rules: str = ""
    """The table there of the rules that the specification's XML names, and the rules they come to."""

    editions: str = ""
    """The table there of how its rules differ in drafts."""

    def rules(self) -> ModuleType | None:
        """The package that declares its rules; None if they are declared elsewhere, and imported already."""
        return None


class WebSocketRules(RuleSpace):
    """WebSocket below AMQP."""

    name = "ws"
    label = "WebSocket"
    layers: ClassVar[Mapping[str, str]] = {"WS": "websocket"}

    def rules(self) -> ModuleType:
        from amqpscope.rules import ws

        return ws

"""What a scenario is: a dialogue reported twice, with a fault in it, and without it but else the same.

    @pair("L-CREDIT", cut=without("credit"))
    def more_deliveries_than_credit(d: Dialogue) -> None:
        d.linked(credit=2)
        d.client.transfer()
        d.client.transfer()
        if d.wrong:
            d.client.transfer().breaks("L-CREDIT")
        d.goodbye()

With `d.wrong` the capture must give exactly the findings that `breaks` and `may_break` announce, each at its
peer and packet; without it none at all, of any rule. The cut takes something out of the wrong one's capture
and holds the rule to its "Silent when"; `then` says what is left of it: SILENT, SAME, or POSSIBLE.

    @legal("S-CH-ASYM")       legal although it looks odd: a guard of the catalogue, or a name
    @reported("credit lowered")   a dialogue whose findings are all announced, and that has no clean twin

Dialogues in the folder amqp10 are functions of a `Dialogue`, those in amqp091 of a `Dialogue091`, those in
amqp10_draft2011 of a `Dialogue2011`, those in ws of a `DialogueWs`; the rules that they name are in the
namespace of the same name.
`scenarios()` are all of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from support.conversation import Conversation, Said
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091
from support.dialogue_draft2011 import Dialogue2011
from support.dialogue_ws import DialogueWs

from amqpscope.rules.registry import checked

Tell = Callable[[Any], None]  # of a dialogue of the protocol
Cut = Callable[[Conversation], None]

DIALOGUES: dict[str, type[Conversation]] = {
    dialogue.namespace: dialogue for dialogue in (Dialogue, Dialogue091, Dialogue2011, DialogueWs)
}
"""By namespace of the rules, which is also the folder of the scenarios, with `_` for `-`."""

SILENT, SAME, POSSIBLE = "silent", "same", "possible"


@dataclass(frozen=True)
class Scenario:
    name: str
    kind: str
    tell: Tell
    rules: tuple[str, ...] = ()
    cut: Cut | None = None
    then: str = SILENT
    handshake: bool = True
    spec: str = "final"
    retold: str = ""
    introduction: tuple[tuple[str, Any], ...] = ()

    @property
    def namespace(self) -> str:
        """By the folder in which it is reported."""
        return self.module.split(".")[1].replace("_", "-")

    @property
    def module(self) -> str:
        return self.retold or (self.tell.func if isinstance(self.tell, partial) else self.tell).__module__

    def dialogue(self, wrong: bool = True) -> Conversation:
        d = DIALOGUES[self.namespace](wrong=wrong)
        d.spec = self.spec
        if self.introduction:
            for peer in (d.client, d.server):
                peer.introduction = dict(self.introduction)  # type: ignore[attr-defined]
        self.tell(d)
        return d


_SCENARIOS: list[Scenario] = []


def scenarios() -> list[Scenario]:
    """All of them, by protocol and file."""
    for namespace in DIALOGUES:
        _import(namespace)
    # In the same order whichever of them a test had imported before.
    return sorted(
        _SCENARIOS, key=lambda scenario: (list(DIALOGUES).index(scenario.namespace), scenario.module)
    )


def _import(namespace: str) -> None:
    if not any(rule.startswith(f"{namespace}/") for rule in checked()):
        return  # a protocol whose connections are not judged
    folder = namespace.replace("-", "_")
    for path in sorted((Path(__file__).parent / folder).glob("*.py")):
        importlib.import_module(f"scenarios.{folder}.{path.stem}")


def retell(
    namespace: str, module: str, rules: Collection[str], but: Collection[str], introduction: dict[str, Any]
) -> None:
    """The pairs of another namespace once more, in the dialogue of this module's: those of these rules alone.

    but: the names of those that do not make sense there. introduction: fields of both opens.
    """
    _import(namespace)
    for scenario in _SCENARIOS[:]:
        if scenario.namespace == namespace and scenario.kind == "pair" and scenario.name not in but:
            if set(scenario.rules) <= set(rules):
                _add(replace(scenario, retold=module, introduction=tuple(introduction.items())))


def _add(scenario: Scenario) -> None:
    _SCENARIOS.append(scenario)


def pair(
    *rules: str,
    cut: Cut | None = None,
    then: str = SILENT,
    spec: str = "final",
    introduction: dict[str, Any] | None = None,
) -> Callable[[Tell], Tell]:
    """A dialogue for one rule, or for a few that the same words tell; spec: the edition that judges it.

    introduction: fields of both opens.
    """
    opens = tuple((introduction or {}).items())

    def keep(tell: Tell) -> Tell:
        _add(
            Scenario(
                tell.__name__,
                "pair",
                tell,
                rules,
                cut or from_the_fault,
                then,
                spec=spec,
                introduction=opens,
            )
        )
        return tell

    return keep


def add_pair(name: str, tell: Tell, *rules: str, cut: Cut | None = None, then: str = SILENT) -> None:
    """The same for a dialogue out of a table."""
    _add(Scenario(name, "pair", tell, rules, cut or from_the_fault, then))


def legal(guard: str = "") -> Callable[[Tell], Tell]:
    def keep(tell: Tell) -> Tell:
        _add(Scenario(tell.__name__, "legal", tell, (guard,) if guard else ()))
        return tell

    return keep


def reported(what: str = "", spec: str = "final") -> Callable[[Tell], Tell]:
    def keep(tell: Tell) -> Tell:
        _add(Scenario(tell.__name__, "reported", tell, spec=spec))
        return tell

    return keep


# ---- cuts: what is taken out of a capture -----------------------------------------------------------------


def from_the_fault(d: Conversation) -> None:
    """The capture begins at the offending frame (or, if that comes later, at its packet)."""
    first = next((fault.said for fault in d.faults), d.said[-1])
    _from(d, first)


def starting_at(label: str) -> Cut:
    """The capture begins at this frame."""

    def cut(d: Conversation) -> None:
        _from(d, d.labels[label])

    return cut


def _from(d: Conversation, said: Said) -> None:
    packets = d.capture.packets
    del packets[: d.packet_number(said) - 1]


def without(label: str) -> Cut:
    """The tap missed the packet of this frame."""

    def cut(d: Conversation) -> None:
        d.capture.packets.remove(d.capture.packets[d.packet_number(d.labels[label]) - 1])

    return cut


def one_direction(d: Conversation) -> None:
    """Only what the peer at fault sent was captured."""
    sender = d.faults[0].said.peer.end
    if d.faults[0].peer != d.faults[0].said.peer.name:
        sender = sender.peer
    d.capture.packets[:] = [packet for packet in d.capture.packets if packet.sender is sender]


def other_direction(d: Conversation) -> None:
    """What the peer at fault sent was not captured."""
    sender = d.faults[0].said.peer.end
    d.capture.packets[:] = [packet for packet in d.capture.packets if packet.sender is not sender]

"""The paths that a connection takes through the state diagrams of its specification.

A step is an input that an endpoint sends or receives. An endpoint receives a frame before its first own frame
that acknowledges it: before that it cannot have known of it. The states come from the tables in
`amqpscope.tracking`, with their repairs. This module judges nothing: a step is a fault if the judge found one
in its frame.
"""

from collections import deque
from typing import Any, Final

from amqpscope.draw.follower import Follower
from amqpscope.limits import MAX_PATH_STEPS, MAX_STATE_PATHS
from amqpscope.model.records import CLIENT, SERVER, FrameRecord
from amqpscope.tracking.states import Machine

__all__ = ["Diagram", "StatePath", "StatePaths"]


class Diagram:
    """A state diagram of the specification. title: what it is of. words: what the letters of inputs mean."""

    def __init__(self, title: str, words: dict[str, str], machine: Machine) -> None:
        self.title = title
        self.words = words
        self.machine = machine

    def json(self) -> dict[str, Any]:
        """Its states and its transitions, as the page draws them."""
        cells = self.machine.cells
        states = dict.fromkeys(
            [self.machine.start, *(name for (one, _), to in cells.items() for name in (one, to))]
        )
        edges: dict[tuple[str, str], list[str]] = {}
        for (state, action), following in cells.items():
            edges.setdefault((state, following), []).append(self.worded(action))
        return {
            "title": self.title,
            "start": self.machine.start,
            "states": list(states),
            "edges": [[one, to, actions] for (one, to), actions in edges.items()],
        }

    def worded(self, action: str) -> str:
        """An input in words: `send OPEN`."""
        return f"{self.words[action[0]]} {action[2:]}"


class StatePath:
    """The path of one endpoint of a connection, session, link or channel. more: steps that are not kept."""

    def __init__(self, diagram: Diagram, of: str) -> None:
        self.diagram = diagram
        self.of = of
        self.state = diagram.machine.start
        # Packet, input, state before, state after, whether the frame is sent by this endpoint.
        self.steps: list[tuple[int, str, str, str, bool]] = []
        self.more = 0

    def take(self, action: str, packet: int, own: bool) -> None:
        """An input."""
        before = self.state
        self.state = self.diagram.machine.after(before, action)
        if len(self.steps) < MAX_PATH_STEPS:
            self.steps.append((packet, self.diagram.worded(action), before, self.state, own))
        else:
            self.more += 1

    def json(self) -> dict[str, Any]:
        """As the page draws it."""
        steps = [list(step) for step in self.steps]
        return {
            "diagram": self.diagram.title,
            "of": self.of,
            "steps": steps,
            "state": self.state,
            "more": self.more,
        }


_UNBOUNDED: Final = 1 << 62


class StatePaths(Follower):
    """The paths of one connection. A protocol has a subclass that knows its inputs.

    paths: in the order in which they begin; more: steps on further paths, which are not kept.
    """

    def __init__(self) -> None:
        self.paths: dict[tuple[object, ...], StatePath] = {}
        self.more = 0
        # By the endpoint that receives them: inputs in flight, each with the offset behind its frame.
        self._flying: dict[str, deque[tuple[int, int, StatePath, str]]] = {CLIENT: deque(), SERVER: deque()}

    def finish(self) -> None:
        """All frames have come, so they have arrived."""
        for peer in (CLIENT, SERVER):
            self._arrive(peer, _UNBOUNDED)

    def path(self, key: tuple[object, ...], diagram: Diagram, of: str) -> StatePath | None:
        """The path of this key, which begins here if it is new; None if there are too many."""
        found = self.paths.get(key)
        if found is None:
            if len(self.paths) >= MAX_STATE_PATHS:
                self.more += 1
                return None
            found = self.paths[key] = StatePath(diagram, of)
        return found

    def exchange(
        self, record: FrameRecord, key: tuple[object, ...], diagram: Diagram, of: str, action: str
    ) -> None:
        """A frame is an input of both endpoints: one sends it (S:), the other one receives it (R:)."""
        sender = record.peer
        receiver = SERVER if sender == CLIENT else CLIENT
        self._arrive(sender, int(record.acknowledged) if record.acknowledged >= 0 else _UNBOUNDED)
        own = self.path((*key, sender), diagram, f"{of}: {sender}")
        other = self.path((*key, receiver), diagram, f"{of}: {receiver}")
        if own is not None:
            own.take(f"S:{action}", int(record.packet), True)
        if other is not None:
            behind = int(record.frame.offset + record.frame.size)
            self._flying[receiver].append((behind, int(record.packet), other, f"R:{action}"))

    def _arrive(self, peer: str, acknowledged: int) -> None:
        """An endpoint has received so many octets."""
        flying = self._flying[peer]
        while flying and flying[0][0] <= acknowledged:
            _, packet, path, action = flying.popleft()
            path.take(action, packet, False)

    def json(self) -> list[dict[str, Any]]:
        """All paths that have steps."""
        return [path.json() for path in self.paths.values() if path.steps]

    def diagrams(self) -> list[Diagram]:
        """The diagrams of the paths."""
        return list({path.diagram.title: path.diagram for path in self.paths.values()}.values())

"""Every state and every input of every table, by real frames: the state after it, and who is accused of what.

Nothing is listed by hand: the states, the inputs and the way to each state come from the tables. A frame said
by one end is the same frame received by the other one, so each input of a cell is a frame of one of the two,
and both ends are followed. What has to be found is worked out from what each end has sent so far, without
the tables: a cell that is illegal to send accuses its sender, one that is illegal to receive the other end.
"""

from __future__ import annotations

import io
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from support.dialogue import RECEIVER, SENDER, Dialogue, Peer, Said
from support.judged import judged

import amqpscope
from amqpscope.rules.catalogue import severity
from amqpscope.tracking.amqp10.endpoint import Endpoint10
from amqpscope.tracking.amqp10.states import CONNECTION, LINK, SEND_FRAME, SESSION
from amqpscope.tracking.states import Table

ERROR = "amqp:internal-error"
LONGEST = 6  # ways that are tried: to each state there is one as short
SUBJECTS = ("client", "server")


@dataclass(frozen=True)
class Machine:
    """table, repair: as they stand. start: where an endpoint begins. say: an input as a frame of the peer
    that sends it. prepare: what both have said before. wrong: what an end may not send, by what it has sent.
    state: of an endpoint, as far as there is anything that has one."""

    table: Table
    repair: Table
    start: str
    prepare: Callable[[Dialogue], None]
    say: Callable[[Peer, str], Said]
    wrong: Callable[[list[str]], str]
    state: Callable[[Endpoint10, dict[str, object]], str]

    def states(self) -> list[str]:
        return sorted({state for state, _ in self.table} | set(self.table.values()))

    def inputs(self) -> list[str]:
        """Each of the table's inputs, sent and received, with an error and without where it can carry one."""
        plain = {name.split("(")[0][2:] for _, name in [*self.table, *self.repair]}
        named = plain | {f"{name}(error)" for name in plain if name in ("CLOSE", "END", "DETACH")}
        return sorted(f"{way}:{name}" for way in "SR" for name in named)

    def after(self, state: str, action: str) -> str:
        """What a cell says: the table's word, else the repair's, else nothing changes."""
        plain = action.removesuffix("(error)")
        for table, name in ((self.table, action), (self.table, plain), (self.repair, plain)):
            if (state, name) in table:
                return table[state, name]
        return state

    def way_to(self, state: str, last: str) -> list[str]:
        """The shortest way that the table draws; if there is one, one behind which `last` may be said."""
        ways: list[list[str]] = []
        queue = deque([(self.start, list[str]())])
        while queue:
            here, way = queue.popleft()
            if here == state:
                ways.append(way)
            if len(way) < LONGEST:
                for (before, action), following in self.table.items():
                    if before == here != following:
                        queue.append((following, [*way, action]))
        for way in ways:
            if not self.wrong([action[2:] for action in [*way, last] if action[0] == last[0]]):
                return way
        return ways[0]


# ---- connection -------------------------------------------------------------------------------------------


def say_connection(peer: Peer, name: str) -> Said:
    if name == "HDR":
        return peer.header()
    if name == "OPEN":
        return peer.open()
    if name == "FRAME":
        return peer.begin()
    return peer.close(ERROR if name.endswith("(error)") else None)


def wrong_connection(sent: list[str]) -> str:
    *before, name = [each.removesuffix("(error)") for each in sent]
    if name == "HDR":
        return "C-HDR-VERMATCH" if before else ""
    if "CLOSE" in before:
        return "C-CLOSE-LAST"
    if "HDR" not in before:
        return "C-HDR-FIRST"
    if name == "FRAME":
        return "" if "OPEN" in before else "C-OPEN-FIRST"
    if name == "CLOSE":
        return "" if "OPEN" in before else "C-CLOSE-AFTEROPEN"
    return "C-OPEN-ONCE" if "OPEN" in before else ""


def connection_state(endpoint: Endpoint10, kept: dict[str, object]) -> str:
    return endpoint.state


# ---- session ----------------------------------------------------------------------------------------------


def say_session(peer: Peer, name: str) -> Said:
    if name == "BEGIN":
        return peer.begin()
    return peer.end_session(error=ERROR if name.endswith("(error)") else None)


def wrong_session(sent: list[str]) -> str:
    *before, name = [each.removesuffix("(error)") for each in sent]
    begun = bool(before) and before[-1] == "BEGIN"
    if name == "BEGIN":
        return "S-BEGIN-REUSE" if begun else ""
    if begun:
        return ""
    return "S-END-LAST" if "BEGIN" in before else "S-BEGIN-FIRST"


def session_state(endpoint: Endpoint10, kept: dict[str, object]) -> str:
    """Of the first session that there was: what comes after it on its channel is another one."""
    session = kept.setdefault("session", endpoint.sessions.get(0) or endpoint.peer_sessions.get(0))
    if session is None:
        del kept["session"]
        return "UNMAPPED"
    return str(session.state)  # type: ignore[attr-defined]


# ---- link -------------------------------------------------------------------------------------------------


def say_link(peer: Peer, name: str) -> Said:
    if name == "ATTACH":
        return peer.attach(SENDER if peer.name == "client" else RECEIVER)
    return peer.detach(closed=None, error=ERROR if name.endswith("(error)") else None)


def wrong_link(sent: list[str]) -> str:
    *before, name = [each.removesuffix("(error)") for each in sent]
    attached = bool(before) and before[-1] == "ATTACH"
    if name == "ATTACH":
        return "L-HANDLE-INUSE" if attached else ""
    return "" if attached else "L-UNATTACHED-DETACH"


def link_state(endpoint: Endpoint10, kept: dict[str, object]) -> str:
    link = kept.get("link")
    if link is None:
        found = list(endpoint.sessions[0].links.values())
        if not found:
            return "DETACHED"
        kept["link"] = link = found[0]
    return str(link.state)  # type: ignore[attr-defined]


# A frame on a session says more than that it is one: `tests/scenarios/amqp10/session.py` has those.
BEGINS_AND_ENDS = {cell: state for cell, state in SESSION.cells.items() if cell[1] != SEND_FRAME}

MACHINES = {
    "connection": Machine(
        CONNECTION.cells,
        CONNECTION.repairs,
        CONNECTION.start,
        lambda d: None,
        say_connection,
        wrong_connection,
        connection_state,
    ),
    "session": Machine(
        BEGINS_AND_ENDS,
        SESSION.repairs,
        SESSION.start,
        lambda d: d.opened(),
        say_session,
        wrong_session,
        session_state,
    ),
    "link": Machine(
        LINK.cells, LINK.repairs, LINK.start, lambda d: d.begun(), say_link, wrong_link, link_state
    ),
}

CELLS = [
    (name, state, action) for name, m in MACHINES.items() for state in m.states() for action in m.inputs()
]


def reported(name: str, subject: str, actions: list[str]) -> tuple[Dialogue, list[tuple[Said, str]]]:
    """The dialogue in which `subject` meets these inputs, and what is wrong in it."""
    machine = MACHINES[name]
    d = Dialogue()
    machine.prepare(d)
    me, other = (d.client, d.server) if subject == "client" else (d.server, d.client)
    sent: dict[str, list[str]] = {"client": [], "server": []}
    faults = []
    for action in actions:
        peer = me if action[0] == "S" else other
        said = machine.say(peer, action[2:])
        sent[peer.name].append(action[2:])
        rule = machine.wrong(sent[peer.name])
        if rule == "C-HDR-VERMATCH" and over(sent):
            rule = "C-CLOSE-NOREUSE"
        if rule:
            faults.append((said, rule))
    return d, faults


def over(sent: dict[str, list[str]]) -> bool:
    """Whether both have closed."""
    return all(any(each.startswith("CLOSE") for each in words) for words in sent.values())


def followed(name: str, subject: str, d: Dialogue, frames: int) -> list[str]:
    """The subject's state before the first input and after each."""
    ends = {"client": Endpoint10("client"), "server": Endpoint10("server")}
    me = ends[subject]
    kept: dict[str, object] = {}
    machine = MACHINES[name]
    states = []
    records = list(amqpscope.read(io.BytesIO(d.pcap())))
    before = len(records) - frames
    for number, record in enumerate(records):
        if number == before:
            states.append(machine.state(me, kept))
        sender, receiver = ends[record.peer], ends["server" if record.peer == "client" else "client"]
        sender.catch_up(record.acknowledged, receiver.sent_end)
        sender.send(record)
        receiver.deliver(record)
        me.catch_up(ends["server" if subject == "client" else "client"].sent_end, 0)
        if number >= before:
            states.append(machine.state(me, kept))
        for end in ends.values():
            assert end.may_send == CONNECTION.allows(end.state, SEND_FRAME)
            assert all(SESSION.allows(session.state, SEND_FRAME) for session in end.sessions.values())
    return states


@pytest.mark.parametrize("subject", SUBJECTS)
@pytest.mark.parametrize(("name", "state", "action"), CELLS)
def test_a_cell(name: str, state: str, action: str, subject: str) -> None:
    machine = MACHINES[name]
    actions = [*machine.way_to(state, action), action]
    d, faults = reported(name, subject, actions)
    expected = [machine.start]
    for each in actions:
        expected.append(machine.after(expected[-1], each))
    assert expected[-2] == state
    assert followed(name, subject, d, len(actions)) == expected
    while_read, at_end = judged(d.pcap())
    found = [
        (f.rule.removeprefix("amqp10/"), f.peer, f.packet)
        for f in while_read + at_end
        if severity(f.rule) != "note"
    ]
    assert found == [(rule, said.peer.name, d.packet_number(said)) for said, rule in faults]


def test_no_cell_is_left_out() -> None:
    for name, machine in MACHINES.items():
        cells = {(state, action) for each, state, action in CELLS if each == name}
        assert set(machine.table) | set(machine.repair) <= cells
        assert len(cells) == len(machine.states()) * len(machine.inputs())
    kinds = Counter(
        "legal" if (s, a) in MACHINES[n].table else "repaired" if (s, a) in MACHINES[n].repair else "none"
        for n, s, a in CELLS
    )
    assert kinds["legal"] == sum(len(machine.table) for machine in MACHINES.values())
    assert kinds["repaired"] == sum(len(machine.repair) for machine in MACHINES.values())
    assert kinds["none"] > kinds["legal"]

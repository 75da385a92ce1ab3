"""The state tables against the specification's own, read anew from its XML; every state, every input."""

import re
from importlib import resources

import pytest

from amqpscope.tracking.amqp10.states import CONNECTION, HANDLE, LINK, SESSION
from amqpscope.tracking.states import Machine

TRANSPORT = resources.files("dissectors.spec").joinpath("amqp10/transport.xml").read_text()

CONNECTION_STATES = [
    "START", "HDR_RCVD", "HDR_SENT", "HDR_EXCH", "OPEN_RCVD", "OPEN_SENT", "OPEN_PIPE", "CLOSE_PIPE",
    "OC_PIPE", "OPENED", "CLOSE_RCVD", "CLOSE_SENT", "DISCARDING", "END",
]  # fmt: skip


def legal_table() -> dict[str, tuple[str, str]]:
    """State -> (legal sends, legal receives), from the table printed in transport.xml."""
    block = TRANSPORT[TRANSPORT.index("State        Legal Sends") :]
    rows = {}
    for line in block[: block.index("*  = any frames")].splitlines():
        match = re.match(r"([A-Z_]{3,10}) +(\S+) +(\S+)", line)
        if match:
            rows[match[1]] = (match[2], match[3])
    return rows


def test_every_connection_state_of_the_specification_is_there() -> None:
    assert sorted(legal_table()) == sorted(CONNECTION_STATES)
    in_tables = {state for state, _ in CONNECTION.drawn} | set(CONNECTION.drawn.values())
    assert in_tables == set(CONNECTION_STATES)


@pytest.mark.parametrize("state", CONNECTION_STATES)
def test_what_the_table_lets_a_state_send_is_what_its_row_says(state: str) -> None:
    sends, receives = legal_table()[state]
    cells = {action for name, action in CONNECTION.cells if name == state}
    assert ("S:HDR" in cells) == (sends == "HDR")
    assert ("S:OPEN" in cells) == (sends == "OPEN")
    assert ("S:CLOSE" in cells) == (sends in ("*", "**"))
    assert ("S:FRAME" in cells) == (sends in ("*", "**"))
    # The diagram draws no arrow for the open that HDR_RCVD may receive: it is among the repairs.
    if receives in ("HDR", "OPEN") and state != "HDR_RCVD":
        assert f"R:{receives}" in cells
    if receives == "-":
        assert not any(action.startswith("R:") for action in cells)


def test_session_states_of_the_specification() -> None:
    section = TRANSPORT[TRANSPORT.index('title="Session States"') :]
    printed = set(re.findall(r"<dt>([A-Z]+(?:[ _][A-Z]+)?)</dt>", section[: section.index("</doc>")]))
    assert {name.replace(" ", "_") for name in printed} == {state for state, _ in SESSION.drawn}


def test_session_states_that_may_send_frames() -> None:
    section = TRANSPORT[TRANSPORT.index('title="Session States"') :]
    printed = re.findall(
        r"<dt>([A-Z]+(?:[ _][A-Z]+)?)</dt>\s*<dd>(.*?)</dd>", section[: section.index("</doc>")], re.DOTALL
    )
    may_send = {
        name.replace(" ", "_") for name, said in printed
        if re.search("may (both )?send", " ".join(said.split()))
    }  # fmt: skip
    assert {state for state, action in SESSION.cells if action == "S:FRAME"} == may_send


MACHINES = pytest.mark.parametrize(
    "machine", [CONNECTION, SESSION, LINK, HANDLE], ids=["connection", "session", "link", "handle"]
)


@MACHINES
def test_every_state_takes_every_input(machine: Machine) -> None:
    states = {state for state, _ in machine.cells} | set(machine.cells.values())
    actions = {action for _, action in machine.cells}
    for state in states:
        for action in actions | {action + "(error)" for action in actions}:
            assert machine.after(state, action) in states


@MACHINES
def test_a_repair_never_stands_in_for_a_cell_of_the_specification(machine: Machine) -> None:
    assert not set(machine.cells) & set(machine.repairs)
    assert not set(machine.drawn) & set(machine.implied)


def test_an_input_without_a_cell_is_illegal() -> None:
    assert CONNECTION.allows("OPENED", "S:CLOSE(error)")
    assert CONNECTION.allows("OPEN_SENT", "S:CLOSE(error)")
    assert not CONNECTION.allows("HDR_EXCH", "S:CLOSE(error)")
    assert not CONNECTION.allows("HDR_RCVD", "S:OPEN")


def test_two_opens_and_closes_that_cross() -> None:
    state = "START"
    for action in ("S:HDR", "S:OPEN", "R:HDR", "R:OPEN", "S:CLOSE(error)", "R:CLOSE"):
        state = CONNECTION.after(state, action)
    assert state == "END"


def test_what_is_not_in_any_table_changes_nothing() -> None:
    assert CONNECTION.after("OPENED", "S:OPEN") == "OPENED"
    assert CONNECTION.after("END", "S:CLOSE") == "END"

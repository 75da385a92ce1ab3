"""The states of an AMQP 0-9-1 connection and of a channel as tables: (state, input) to the next state.

An input is `C:` what the client sends or `S:` what the server does. One table serves both endpoints: each of
them sees its own inputs when it sends them, and the other's when it can have received them. The tables hold
what the grammars of the classes connection and channel say; an input that has no cell is illegal in that
state, or changes nothing in it. What it is taken to mean nevertheless stands in a second table beside the
first, so that one fault does not make everything after it a fault: these cells are ours.

Sources: section 2.2.4 and the grammars of the classes "connection" and "channel" (amqp0-9-1.xml).
"""

from typing import Final

__all__ = ["CHANNEL", "CONNECTION", "CONNECTION_REPAIR", "STILL_DUE", "advance"]

Table = dict[tuple[str, str], str]

CONNECTION: Final[Table] = {
    ("START", "C:header"): "HEADED",
    ("HEADED", "S:start"): "STARTED",
    ("STARTED", "C:start-ok"): "ANSWERED",
    ("ANSWERED", "S:secure"): "CHALLENGED",
    ("CHALLENGED", "C:secure-ok"): "ANSWERED",
    ("ANSWERED", "S:tune"): "TUNED",
    ("TUNED", "C:tune-ok"): "AGREED",
    ("AGREED", "C:open"): "OPENING",
    ("OPENING", "S:open-ok"): "OPEN",
}
"""How a connection is set up. How it is closed is the same for it and for channels: see CHANNEL."""

STILL_DUE: Final[dict[str, str]] = {
    "START": "no protocol header yet",
    "HEADED": "start has not come yet",
    "STARTED": "start is not answered yet",
    "ANSWERED": "tune has not come yet",
    "CHALLENGED": "a challenge is not answered yet",
    "TUNED": "tune is not answered yet",
    "AGREED": "open has not come yet",
    "OPENING": "open is not answered yet",
    "OPEN": "it is open",
}
"""What a connection in each of these states waits for."""

CONNECTION_REPAIR: Final[Table] = {
    ("START", "S:start"): "STARTED",
    ("HEADED", "C:start-ok"): "ANSWERED",
    ("STARTED", "S:tune"): "TUNED",
    ("STARTED", "C:tune-ok"): "AGREED",
    ("STARTED", "C:open"): "OPENING",
    ("ANSWERED", "C:tune-ok"): "AGREED",
    ("ANSWERED", "C:open"): "OPENING",
    ("CHALLENGED", "S:tune"): "TUNED",
    ("TUNED", "C:open"): "OPENING",
    ("AGREED", "S:open-ok"): "OPEN",
    ("TUNED", "S:open-ok"): "OPEN",
}

CHANNEL: Final[Table] = {
    ("CLOSED", "C:open"): "OPENING",
    ("OPENING", "S:open-ok"): "OPEN",
    ("OPENING", "C:close"): "CLIENT CLOSES",
    ("OPENING", "S:close"): "SERVER CLOSES",
    ("OPEN", "C:close"): "CLIENT CLOSES",
    ("OPEN", "S:close"): "SERVER CLOSES",
    ("CLIENT CLOSES", "S:close-ok"): "CLOSED",
    ("CLIENT CLOSES", "S:close"): "BOTH CLOSE",
    ("SERVER CLOSES", "C:close-ok"): "CLOSED",
    ("SERVER CLOSES", "C:close"): "BOTH CLOSE",
    # Each of the two still answers the other's.
    ("BOTH CLOSE", "C:close-ok"): "CLIENT CLOSES",
    ("BOTH CLOSE", "S:close-ok"): "SERVER CLOSES",
}


def advance(table: Table, repair: Table, state: str, action: str) -> str:
    """The state after an input: by the table; if it has no cell, by the repairs; else unchanged."""
    following = table.get((state, action))
    if following is None:
        following = repair.get((state, action), state)
    return following

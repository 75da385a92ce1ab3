"""The state diagrams of AMQP 1.0 as tables: (state, input) to the next state.

An input is `S:` what the endpoint sends or `R:` what it receives. The tables hold what the
specification draws, and nothing else; an input that has no cell is illegal in that state. What an
endpoint that sends it nevertheless is taken to mean stands in a second table beside the first, so
that one fault does not make everything after it a fault: these cells are ours.

Sources: transport.xml, "Connection State Diagram" and "Connection States"; "Session States". For links
the specification draws no diagram; the table here is ours.
"""

from typing import Final

__all__ = [
    "CONNECTION",
    "CONNECTION_REPAIR",
    "LINK",
    "LINK_REPAIR",
    "SESSION",
    "SESSION_REPAIR",
    "advance",
]

Table = dict[tuple[str, str], str]

CONNECTION: Final[Table] = {
    ("START", "R:HDR"): "HDR_RCVD",
    ("START", "S:HDR"): "HDR_SENT",
    ("HDR_RCVD", "S:HDR"): "HDR_EXCH",
    ("HDR_SENT", "R:HDR"): "HDR_EXCH",
    ("HDR_SENT", "S:OPEN"): "OPEN_PIPE",
    ("HDR_EXCH", "R:OPEN"): "OPEN_RCVD",
    ("HDR_EXCH", "S:OPEN"): "OPEN_SENT",
    ("OPEN_PIPE", "R:HDR"): "OPEN_SENT",
    ("OPEN_PIPE", "S:CLOSE"): "OC_PIPE",
    ("OC_PIPE", "R:HDR"): "CLOSE_PIPE",
    ("OPEN_RCVD", "S:OPEN"): "OPENED",
    ("OPEN_SENT", "R:OPEN"): "OPENED",
    ("OPEN_SENT", "S:CLOSE"): "CLOSE_PIPE",
    ("CLOSE_PIPE", "R:OPEN"): "CLOSE_SENT",
    ("OPENED", "R:CLOSE"): "CLOSE_RCVD",
    ("OPENED", "S:CLOSE"): "CLOSE_SENT",
    ("OPENED", "S:CLOSE(error)"): "DISCARDING",
    ("CLOSE_RCVD", "S:CLOSE"): "END",
    ("CLOSE_SENT", "R:CLOSE"): "END",
    ("DISCARDING", "R:CLOSE"): "END",
}

# Ours. A close that comes before the sender's own open ends the connection all the same; a second
# open, header or close changes nothing; what is received in a state that expects nothing is as sent.
CONNECTION_REPAIR: Final[Table] = {
    ("START", "S:OPEN"): "OPEN_PIPE",
    ("HDR_RCVD", "S:OPEN"): "OPEN_SENT",
    ("HDR_RCVD", "R:OPEN"): "OPEN_RCVD",
    ("START", "S:CLOSE"): "OC_PIPE",
    ("HDR_SENT", "S:CLOSE"): "OC_PIPE",
    ("HDR_RCVD", "S:CLOSE"): "CLOSE_PIPE",
    ("HDR_EXCH", "S:CLOSE"): "CLOSE_PIPE",
    ("OPEN_RCVD", "S:CLOSE"): "CLOSE_SENT",
    ("HDR_EXCH", "R:CLOSE"): "CLOSE_RCVD",
    ("OPEN_SENT", "R:CLOSE"): "CLOSE_RCVD",
    ("OPEN_RCVD", "R:CLOSE"): "CLOSE_RCVD",
    ("CLOSE_PIPE", "R:CLOSE"): "END",
    # A TCP connection that is used again, which it should not be.
    ("END", "S:HDR"): "HDR_SENT",
    ("END", "R:HDR"): "HDR_RCVD",
}

SESSION: Final[Table] = {
    ("UNMAPPED", "S:BEGIN"): "BEGIN_SENT",
    ("UNMAPPED", "R:BEGIN"): "BEGIN_RCVD",
    ("BEGIN_SENT", "R:BEGIN"): "MAPPED",
    ("BEGIN_RCVD", "S:BEGIN"): "MAPPED",
    ("MAPPED", "S:END"): "END_SENT",
    ("MAPPED", "S:END(error)"): "DISCARDING",
    ("MAPPED", "R:END"): "END_RCVD",
    ("END_SENT", "R:END"): "UNMAPPED",
    ("DISCARDING", "R:END"): "UNMAPPED",
    ("END_RCVD", "S:END"): "UNMAPPED",
}

# Ours. An endpoint may send on a session before the answer to its begin has come, so also end it.
SESSION_REPAIR: Final[Table] = {
    ("BEGIN_SENT", "S:END"): "END_SENT",
    ("BEGIN_SENT", "S:END(error)"): "DISCARDING",
    ("END_SENT", "R:BEGIN"): "END_SENT",
    ("DISCARDING", "R:BEGIN"): "DISCARDING",
    ("BEGIN_RCVD", "R:END"): "UNMAPPED",
}

# Ours: the specification draws no diagram of a link. An attach of one side alone is half attached;
# a detach that does not close leaves the terminus, so the link may be attached again (suspended).
LINK: Final[Table] = {
    ("DETACHED", "S:ATTACH"): "ATTACH_SENT",
    ("DETACHED", "R:ATTACH"): "ATTACH_RCVD",
    ("ATTACH_SENT", "R:ATTACH"): "ATTACHED",
    ("ATTACH_RCVD", "S:ATTACH"): "ATTACHED",
    ("ATTACH_SENT", "S:DETACH"): "DETACH_SENT",
    ("ATTACHED", "S:DETACH"): "DETACH_SENT",
    ("ATTACHED", "R:DETACH"): "DETACH_RCVD",
    ("DETACH_SENT", "R:ATTACH"): "DETACH_SENT",
    ("DETACH_SENT", "R:DETACH"): "DETACHED",
    ("DETACH_RCVD", "S:DETACH"): "DETACHED",
}

LINK_REPAIR: Final[Table] = {
    ("ATTACH_RCVD", "R:DETACH"): "DETACHED",
}


def advance(table: Table, repair: Table, state: str, action: str) -> str:
    """The state after an input: by the table; if it has no cell, by the repairs; else unchanged.

    An input with an error falls back to the plain one where the table makes no difference.
    """
    following = table.get((state, action))
    if following is None and action.endswith("(error)"):
        action = action[: -len("(error)")]
        following = table.get((state, action))
    if following is None:
        following = repair.get((state, action), state)
    return following

"""Why there is no WebSocket on a connection that asks for it."""

from typing import Final

from amqpscope.diagnoses.declaration import declare
from amqpscope.diagnoses.notebook import Notebook

__all__ = ["WEBSOCKET_REFUSED", "WEBSOCKET_UNREAD", "websocket_failures"]

WEBSOCKET_REFUSED: Final = declare(
    "websocket-refused",
    (),
    """A server refuses the upgrade to WebSocket.

    Means: The answer to the upgrade has another status than 101.
    Comes about: Another path or host than the server's, a proxy that knows no WebSocket, missing credentials.
    Move: The client's.
    Client: Check path, host and subprotocol.
    Server: Look at the log of what answered.
    Silent when: The upgrade is accepted.
    """,
)

WEBSOCKET_UNREAD: Final = declare(
    "websocket-unread",
    (),
    """A WebSocket cannot be read on.

    Means: What it carries is compressed or cut in a way that cannot be followed. Nobody is at fault.
    Comes about: Octets are missing, or an extension was agreed that amqpscope does not read.
    Move: Nobody's.
    Client: Nothing.
    Server: Nothing.
    Silent when: All of it is read.
    """,
)

_ACCEPTED: Final = 101
"""The status with which a server begins WebSocket."""

_LOST: Final = 0
"""Instead of a status, where the response was not captured."""


def websocket_failures(notebook: Notebook) -> None:
    """Note why there is no WebSocket, or why it is not read."""
    facts = notebook.connection.websocket
    if facts is None:
        return
    if facts.status not in (_ACCEPTED, _LOST):
        reason = f" {facts.reason}" if facts.reason else ""
        text = f"server refused the upgrade to WebSocket: {facts.status}{reason}"
        notebook.add(WEBSOCKET_REFUSED, "websocket", "client", 0, text, {"status": int(facts.status)})
    elif facts.unread:
        notebook.add(WEBSOCKET_UNREAD, "websocket", "", 0, facts.unread, {})

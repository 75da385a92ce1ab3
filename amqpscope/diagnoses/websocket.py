"""Why there is no WebSocket on a connection that asks for it."""

from typing import Final

from amqpscope.diagnoses.declaration import NO_OPENING, declare
from amqpscope.diagnoses.notebook import Notebook

__all__ = ["WEBSOCKET_REFUSED", "WEBSOCKET_UNREAD", "websocket_failures"]

WEBSOCKET_REFUSED: Final = declare(
    "websocket-refused",
    (),
    """A server refuses the upgrade to WebSocket.

    What it means: The answer to the upgrade has a status other than 101.
    Usual causes: The path or the host is wrong, a proxy does not support WebSocket, or credentials are
    missing.
    Who has to act: The client.
    Client: Check the path, the host and the subprotocol.
    Server: Read the log of the program that answered the upgrade.
    Not reported when: the server accepts the upgrade.
    Discussions: Azure/azure-service-bus-emulator-installer#51, amqp/rhea#69
    """,
    explains=(NO_OPENING,),
)

WEBSOCKET_UNREAD: Final = declare(
    "websocket-unread",
    (),
    """From one point on, amqpscope cannot read the content of a WebSocket connection.

    What it means: The content is compressed in a way that amqpscope does not support, or a part of the
    content is missing. No peer is at fault.
    Usual causes: Octets are missing, or the peers agreed on an extension that amqpscope does not read.
    Who has to act: Nobody.
    Client: The client needs no change.
    Server: The server needs no change.
    Not reported when: amqpscope can read the whole WebSocket connection.
    Discussions: mitmproxy/mitmproxy#2447, hahwul/gori#518
    """,
    trouble=False,
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
        text = f"the server refused the upgrade to WebSocket: {facts.status}{reason}"
        notebook.add(WEBSOCKET_REFUSED, "websocket", "client", 0, text, {"status": int(facts.status)})
    elif facts.unread:
        notebook.add(WEBSOCKET_UNREAD, "websocket", "", 0, facts.unread, {})

"""A client and a server of Qpid Proton, as `python -m support.proton_peers ...`:

    serve PORT COUNT
    send PORT COUNT [tls]

Each in a process of its own. The server says "ready", accepts COUNT messages, then sends as many back, and
ends with the client's connection. The client prints what came back.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

__all__: list[str] = []

PATIENCE = 60.0


def serve(port: int, count: int) -> None:
    """Accept messages, and send them back to who asks for them."""
    handlers, reactor = import_module("proton.handlers"), import_module("proton.reactor")

    class Server(handlers.MessagingHandler):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.kept: list[Any] = []

        def on_start(self, event: Any) -> None:
            self.listener = event.container.listen(f"amqp://127.0.0.1:{port}")
            print("ready", flush=True)

        def on_link_opening(self, event: Any) -> None:
            event.link.source.address = event.link.remote_source.address
            event.link.target.address = event.link.remote_target.address

        def on_message(self, event: Any) -> None:
            self.kept.append(event.message)

        def on_sendable(self, event: Any) -> None:
            while event.sender.credit and self.kept:
                event.sender.send(self.kept.pop(0))

        def on_connection_closing(self, event: Any) -> None:
            self.listener.close()

    reactor.Container(Server()).run()


def send(port: int, count: int, tls: bool) -> None:
    """Send messages, and receive as many. Some are larger than a frame."""
    proton, utils = import_module("proton"), import_module("proton.utils")
    domain = None
    if tls:
        domain = proton.SSLDomain(proton.SSLDomain.MODE_CLIENT)
        domain.set_peer_authentication(proton.SSLDomain.ANONYMOUS_PEER)
    connection = utils.BlockingConnection(
        f"{'amqps' if tls else 'amqp'}://127.0.0.1:{port}", ssl_domain=domain, timeout=PATIENCE
    )
    sender = connection.create_sender("orders")
    for number in range(count):
        sender.send(proton.Message(body=f"order {number} " + "x" * (number * number * 400)))
    receiver = connection.create_receiver("orders", credit=count)
    for _ in range(count):
        message = receiver.receive(timeout=PATIENCE)
        receiver.accept()
        print(len(message.body), flush=True)
    connection.close()


if __name__ == "__main__":
    what, port, count, *rest = sys.argv[1:]
    if what == "serve":
        serve(int(port), int(count))
    else:
        send(int(port), int(count), bool(rest))

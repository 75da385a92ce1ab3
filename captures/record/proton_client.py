"""AMQP 1.0 clients on Qpid Proton, one class a scenario. Each ends by itself, or fails after LIFETIME s."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from proton import Delivery, Message, symbol, timestamp, uint
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import Container

LIFETIME = 25.0
MADE = timestamp(1_700_000_000_000)  # one fixed creation time: two recordings differ as little as possible
VIRTUAL_HOST = "warehouse.example"


class Client(MessagingHandler):
    """Connects under a fixed container id; a scenario opens links in `opened`, calls `finish` when done."""

    polite = False  # whether each detach, end and close waits for the answer to the one before

    def __init__(self, url: str, login: dict[str, Any], prefetch: int = 0) -> None:
        super().__init__(prefetch=prefetch, auto_accept=False)
        self.url = url
        self.login = login
        self.heartbeat: float | None = None
        self.container: Any = None
        self.connection: Any = None
        self.finished = False

    def on_start(self, event: Any) -> None:
        self.container = event.container
        self.container.container_id = "shop"
        self.timer = self.container.schedule(LIFETIME, self)
        self.connection = self.container.connect(
            self.url,
            reconnect=False,
            virtual_host=VIRTUAL_HOST,
            heartbeat=self.heartbeat,
            properties={symbol("product"): "proton-shop"},
            **self.login,
        )

    def on_timer_task(self, event: Any) -> None:
        if not self.finished:
            print("not done in time", file=sys.stderr)
            os._exit(3)

    def on_connection_opened(self, event: Any) -> None:
        self.opened()

    def opened(self) -> None:
        raise AssertionError("a scenario opens something")

    def finish(self, *links: Any) -> None:
        """Detaches every link, ends the session, closes: all at once, or each when the last was answered."""
        self.finished = True
        self.closing = [*links, links[0].session, self.connection]
        while self.closing and not self.polite:
            self.closing.pop(0).close()
        self.close_next()

    def close_next(self, event: Any = None) -> None:
        if self.finished and self.closing:
            self.closing.pop(0).close()

    on_link_closed = on_session_closed = close_next
    on_link_remote_detach = close_next  # RabbitMQ 3.10 answers a closing detach with one that does not close

    def on_connection_closed(self, event: Any) -> None:
        self.timer.cancel()  # nothing is left to wait for: the container ends by itself once all is written

    def on_disconnected(self, event: Any) -> None:
        self.timer.cancel()


class SendReceive(Client):
    """Sends five messages to a queue, settles each when it is accepted, then receives and accepts them."""

    count = 5

    def __init__(self, url: str, login: dict[str, Any], queue: str = "letters") -> None:
        super().__init__(url, login)
        self.queue = queue
        self.sent = self.confirmed = self.received = 0

    def opened(self) -> None:
        self.sender = self.container.create_sender(self.connection, self.queue, name="letters-out")

    def on_sendable(self, event: Any) -> None:
        while self.sent < self.count and event.sender.credit:
            self.sent += 1
            event.sender.send(
                Message(
                    id=f"letter-{self.sent}",
                    subject="letter",
                    creation_time=MADE,
                    durable=True,
                    properties={"page": self.sent, "urgent": self.sent == 1},
                    body="dear reader, " * self.sent,
                )
            )

    def on_accepted(self, event: Any) -> None:
        self.confirmed += 1
        if self.confirmed == self.count:
            self.receiver = self.container.create_receiver(self.connection, self.queue, name="letters-in")

    def on_link_opened(self, event: Any) -> None:
        if event.link.is_receiver:
            event.link.flow(self.count)

    def on_message(self, event: Any) -> None:
        self.accept(event.delivery)
        self.received += 1
        if self.received == self.count:
            self.finish(self.sender, self.receiver)


class Heartbeat(Client):
    """Announces an idle time-out, sends one message, and is silent long enough for several empty frames."""

    silence = 3.2  # s

    def __init__(self, url: str, login: dict[str, Any]) -> None:
        super().__init__(url, login)
        self.heartbeat = 2.0  # s; Proton announces half of it
        self.sent = False

    def opened(self) -> None:
        self.sender = self.container.create_sender(self.connection, "letters", name="letters-out")

    def on_sendable(self, event: Any) -> None:
        if not self.sent:
            self.sent = True
            event.sender.send(Message(id="letter-1", creation_time=MADE, body="dear reader"))

    def on_accepted(self, event: Any) -> None:
        self.container.schedule(self.silence, Later(lambda: self.finish(self.sender)))


class Later(MessagingHandler):
    """Calls a function when a scheduled time has come."""

    def __init__(self, call: Any) -> None:
        super().__init__()
        self.call = call

    def on_timer_task(self, event: Any) -> None:
        self.call()


class Transactions(Client, TransactionHandler):
    """Two messages in a committed transaction, two in one that is rolled back, then what the queue has."""

    def __init__(self, url: str, login: dict[str, Any]) -> None:
        super().__init__(url, login)
        self.transaction: Any = None
        self.round = 0
        self.posted = self.received = 0

    def opened(self) -> None:
        self.sender = self.container.create_sender(self.connection, "ledger", name="ledger-out")

    def on_sendable(self, event: Any) -> None:
        if event.link == self.sender and self.round == 0:
            self.declare()

    def declare(self) -> None:
        self.round += 1
        self.posted = 0
        self.container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event: Any) -> None:
        self.transaction = event.transaction
        for number in (1, 2):
            self.transaction.send(self.sender, Message(id=f"entry-{self.round}-{number}", body=number))

    def on_settled(self, event: Any) -> None:
        if event.link != self.sender:
            return
        self.posted += 1
        if self.posted == 2:
            if self.round == 1:
                self.transaction.commit()
            else:
                self.transaction.abort()

    def on_transaction_committed(self, event: Any) -> None:
        self.declare()

    def on_transaction_aborted(self, event: Any) -> None:
        self.receiver = self.container.create_receiver(self.connection, "ledger", name="ledger-in")

    def on_link_opened(self, event: Any) -> None:
        if event.link.is_receiver:
            event.link.flow(2)

    def on_message(self, event: Any) -> None:
        self.accept(event.delivery)
        self.received += 1
        if self.received == 2:
            self.finish(self.sender, self.connection._txn_ctrl, self.receiver)


class Pipelined(Client):
    """Opens a receiver and gives it credit without waiting for any answer, as Proton does by itself.

    A server that sends before it has attached makes Proton give up; how the connection then ends is what is
    recorded.
    """

    def on_start(self, event: Any) -> None:
        super().on_start(event)
        receiver = self.container.create_receiver(self.connection, "stocked", name="stocked-in")
        receiver.flow(3)

    def opened(self) -> None:
        pass

    def on_message(self, event: Any) -> None:
        self.accept(event.delivery)
        if event.message.id == "stocked-3":
            self.finish(event.link)

    def on_transport_error(self, event: Any) -> None:
        print(event.transport.condition)
        self.finished = True


class Outcomes(Client):
    """Sends three messages to RabbitMQ, receives each and accepts, rejects or releases it."""

    def __init__(self, url: str, login: dict[str, Any]) -> None:
        super().__init__(url, login)
        self.sent = self.confirmed = self.received = 0

    def opened(self) -> None:
        self.sender = self.container.create_sender(self.connection, "/queue/captures", name="captures-out")

    def on_sendable(self, event: Any) -> None:
        while self.sent < 3 and event.sender.credit:
            self.sent += 1
            event.sender.send(
                Message(
                    id=f"parcel-{self.sent}",
                    subject="parcel",
                    creation_time=MADE,
                    content_type="text/plain",
                    durable=True,
                    priority=self.sent,
                    ttl=60.0,
                    reply_to="/queue/answers",
                    inferred=True,
                    properties={"weight": 1.5 * self.sent, "fragile": False, "count": uint(self.sent)},
                    body=b"contents",
                )
            )

    def on_accepted(self, event: Any) -> None:
        self.confirmed += 1
        if self.confirmed == 3:
            self.receiver = self.container.create_receiver(
                self.connection, "/queue/captures", name="captures-in"
            )

    def on_link_opened(self, event: Any) -> None:
        if event.link.is_receiver:
            event.link.flow(2)

    def on_message(self, event: Any) -> None:
        self.received += 1
        if self.received == 2:
            event.receiver.flow(2)
        if event.message.id == "parcel-2" and self.received == 2:
            event.delivery.update(Delivery.RELEASED)
        elif event.message.id == "parcel-3":
            event.delivery.update(Delivery.REJECTED)
        else:
            event.delivery.update(Delivery.ACCEPTED)
        event.delivery.settle()
        if self.received == 4:
            self.finish(self.sender, self.receiver)


class PoliteOutcomes(Outcomes):
    polite = True


SCENARIOS: dict[str, type[Client]] = {
    "send-receive": SendReceive,
    "heartbeat": Heartbeat,
    "transactions": Transactions,
    "pipelined": Pipelined,
    "outcomes": PoliteOutcomes,
    "outcomes-hurried": Outcomes,
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("scenario", choices=sorted(SCENARIOS))
    options.add_argument("--connect", required=True, help="loopback address; the port is 5672")
    options.add_argument("--mechanism", default="ANONYMOUS")
    options.add_argument("--user")
    options.add_argument("--password")
    given = options.parse_args()
    host = f"[{given.connect}]" if ":" in given.connect else given.connect
    login: dict[str, Any] = {"allowed_mechs": given.mechanism, "allow_insecure_mechs": True}
    if given.user:
        login.update(user=given.user, password=given.password)
    client = SCENARIOS[given.scenario](f"amqp://{host}:5672", login)
    Container(client).run()
    if not client.finished:
        sys.exit("the connection ended before the scenario did")


if __name__ == "__main__":
    main()

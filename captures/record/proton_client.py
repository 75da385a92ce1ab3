"""AMQP 1.0 clients on Qpid Proton, one class a scenario. Each ends by itself, or fails after LIFETIME s."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from proton import Delivery, Link, Message, symbol, timestamp, uint
from proton.handlers import MessagingHandler, TransactionHandler
from proton.reactor import AtMostOnce, Container, DurableSubscription, LinkOption
from proton.utils import BlockingConnection

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
        self.max_frame_size: int | None = None
        self.container: Any = None
        self.connection: Any = None
        self.finished = False
        self.closing: list[Any] = []

    def on_start(self, event: Any) -> None:
        self.container = event.container
        self.container.container_id = "shop"
        self.timer = self.container.schedule(LIFETIME, self)
        self.connection = self.container.connect(
            self.url,
            reconnect=False,
            virtual_host=VIRTUAL_HOST,
            heartbeat=self.heartbeat,
            max_frame_size=self.max_frame_size,
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


class AcceptedInTransactions(Client, TransactionHandler):
    """Two messages accepted in a transaction that is rolled back, then again in one that is committed."""

    def __init__(self, url: str, login: dict[str, Any]) -> None:
        super().__init__(url, login)
        self.transaction: Any = None
        self.sent = self.confirmed = self.received = 0

    def opened(self) -> None:
        self.sender = self.container.create_sender(self.connection, "ledger", name="ledger-out")

    def on_sendable(self, event: Any) -> None:
        while event.link == self.sender and self.sent < 2:
            self.sent += 1
            event.sender.send(Message(id=f"entry-{self.sent}", body=self.sent))

    def on_accepted(self, event: Any) -> None:
        if event.link == self.sender:
            self.confirmed += 1
            if self.confirmed == 2:
                self.receiver = self.container.create_receiver(self.connection, "ledger", name="ledger-in")

    def on_link_opened(self, event: Any) -> None:
        if event.link.is_receiver:
            self.container.declare_transaction(self.connection, handler=self)

    def on_transaction_declared(self, event: Any) -> None:
        self.transaction = event.transaction
        self.receiver.flow(2)

    def on_message(self, event: Any) -> None:
        self.transaction.accept(event.delivery)
        self.received += 1
        if self.received == 2:
            self.transaction.abort()
        elif self.received == 4:
            self.transaction.commit()

    def on_transaction_aborted(self, event: Any) -> None:
        self.container.declare_transaction(self.connection, handler=self)

    def on_transaction_committed(self, event: Any) -> None:
        self.finish(self.sender, self.receiver, self.connection._txn_ctrl)


class Windows(Client):
    """Two sessions with windows of four small frames, and in each messages of three frames there and back."""

    polite = True
    count = 3

    def __init__(self, url: str, login: dict[str, Any]) -> None:
        super().__init__(url, login)
        self.max_frame_size = 1024
        self.sessions: list[Any] = []
        self.links: list[Any] = []
        self.sent: dict[Any, int] = {}
        self.confirmed = self.received = 0

    def opened(self) -> None:
        for number in (1, 2):
            session = self.connection.session()
            session.incoming_capacity = 4 * self.max_frame_size
            session.open()
            self.sessions.append(session)
            sender = self.container.create_sender(session, f"scrolls-{number}", name=f"scrolls-{number}-out")
            self.links.append(sender)

    def on_sendable(self, event: Any) -> None:
        sender = event.sender
        while self.sent.get(sender.name, 0) < self.count and sender.credit:
            number = self.sent[sender.name] = self.sent.get(sender.name, 0) + 1
            sender.send(Message(id=f"scroll-{number}", creation_time=MADE, body="scroll " * 350))

    def on_accepted(self, event: Any) -> None:
        self.confirmed += 1
        if self.confirmed == 2 * self.count:
            for number, session in enumerate(self.sessions, 1):
                receiver = self.container.create_receiver(
                    session, f"scrolls-{number}", name=f"scrolls-{number}-in"
                )
                receiver.flow(self.count)
                self.links.append(receiver)

    def on_message(self, event: Any) -> None:
        self.accept(event.delivery)
        self.received += 1
        if self.received == 2 * self.count:
            self.finished = True
            self.closing = [*self.links, *self.sessions, self.connection]
            self.close_next()


class SettlesSecond(LinkOption):
    """The receiver says its outcome, and forgets the delivery when the sender has settled it."""

    def apply(self, link: Any) -> None:
        link.snd_settle_mode = Link.SND_UNSETTLED
        link.rcv_settle_mode = Link.RCV_SECOND


class Modes(Client):
    """Messages settled when sent, and messages that the receiver settles second, one credit at a time."""

    polite = True
    count = 4

    def __init__(self, url: str, login: dict[str, Any]) -> None:
        super().__init__(url, login)
        self.sent = self.settled = 0

    def opened(self) -> None:
        self.sender = self.container.create_sender(
            self.connection, "notices", name="notices-out", options=AtMostOnce()
        )

    def on_sendable(self, event: Any) -> None:
        while self.sent < self.count and event.sender.credit:
            self.sent += 1
            event.sender.send(Message(id=f"notice-{self.sent}", creation_time=MADE, body="take notice"))
            if self.sent == self.count:
                self.receiver = self.container.create_receiver(
                    self.connection, "notices", name="notices-in", options=SettlesSecond()
                )

    def on_link_opened(self, event: Any) -> None:
        if event.link.is_receiver:
            event.link.flow(1)

    def on_message(self, event: Any) -> None:
        event.delivery.update(Delivery.ACCEPTED)

    def on_settled(self, event: Any) -> None:
        if event.link.is_receiver:
            event.delivery.settle()
            self.settled += 1
            if self.settled == self.count:
                self.finish(self.sender, self.receiver)
            else:
                event.link.flow(1)


class Durable(Client):
    """A durable subscription: detached, not closed, and attached again on the same and a new connection."""

    polite = True

    def __init__(self, url: str, login: dict[str, Any]) -> None:
        super().__init__(url, login)
        self.sent = self.received = self.detached = 0
        self.receiver: Any = None

    def opened(self) -> None:
        if not self.sent:
            self.sender = self.container.create_sender(self.connection, "gazette", name="gazette-out")
        else:
            self.subscribe()

    def on_sendable(self, event: Any) -> None:
        while self.sent < 6 and event.sender.credit:
            self.sent += 1
            event.sender.send(Message(id=f"issue-{self.sent}", creation_time=MADE, body="news"))
            if self.sent == 6:
                self.subscribe()

    def subscribe(self) -> None:
        self.receiver = self.container.create_receiver(
            self.connection, "gazette", name="gazette-in", options=DurableSubscription()
        )

    def on_link_opened(self, event: Any) -> None:
        if event.link == self.receiver:
            event.link.flow(2)

    def on_message(self, event: Any) -> None:
        self.accept(event.delivery)
        self.received += 1
        if self.received == 6:
            self.finish(event.link)
        elif self.received % 2 == 0:
            event.link.detach()

    def on_link_remote_detach(self, event: Any) -> None:
        if self.received == 2:
            self.subscribe()
        else:
            self.connection.close()

    def on_connection_closed(self, event: Any) -> None:
        if self.received == 6:
            super().on_connection_closed(event)
        else:
            self.timer.cancel()
            super().on_start(event)

    def on_disconnected(self, event: Any) -> None:
        pass


class Relay(Client):
    """A sender without a target: each message says where it goes, one of them nowhere known."""

    polite = True

    def __init__(self, url: str, login: dict[str, Any]) -> None:
        super().__init__(url, login)
        self.sent = self.confirmed = self.received = 0

    def opened(self) -> None:
        self.sender = self.container.create_sender(self.connection, None, name="relay-out")

    def on_sendable(self, event: Any) -> None:
        while self.sent < 4:
            self.sent += 1
            event.sender.send(
                Message(id=f"parcel-{self.sent}", address=f"house-{self.sent % 2}", body="contents")
            )

    def on_accepted(self, event: Any) -> None:
        self.confirmed += 1
        if self.confirmed == 4:
            self.receivers = [
                self.container.create_receiver(self.connection, f"house-{number}", name=f"house-{number}")
                for number in (0, 1)
            ]

    def on_link_opened(self, event: Any) -> None:
        if event.link.is_receiver:
            event.link.flow(2)

    def on_message(self, event: Any) -> None:
        self.accept(event.delivery)
        self.received += 1
        if self.received == 4:
            self.finish(self.sender, *self.receivers)


class Prices(Client):
    """Asks for prices; the answers come to a node that the server made up."""

    polite = True

    def __init__(self, url: str, login: dict[str, Any]) -> None:
        super().__init__(url, login)
        self.asked = self.answered = 0

    def opened(self) -> None:
        self.receiver = self.container.create_receiver(self.connection, None, dynamic=True, name="answers-in")
        self.receiver.flow(5)

    def on_link_opened(self, event: Any) -> None:
        if event.link == self.receiver:
            self.sender = self.container.create_sender(self.connection, "prices", name="prices-out")

    def on_sendable(self, event: Any) -> None:
        if self.asked == 0:
            self.ask()

    def ask(self) -> None:
        self.asked += 1
        articles = ["tea", "cocoa", "umbrella"][: self.asked]
        self.sender.send(Message(id=self.asked, reply_to=self.receiver.remote_source.address, body=articles))

    def on_message(self, event: Any) -> None:
        self.accept(event.delivery)
        self.answered += 1
        if self.answered == 3:
            self.finish(self.sender, self.receiver)
        else:
            self.ask()


class Large(Client):
    """Messages too large for a frame to RabbitMQ and back; the client takes frames of 1024 octets."""

    polite = True

    def __init__(self, url: str, login: dict[str, Any]) -> None:
        super().__init__(url, login)
        self.max_frame_size = 1024
        self.sent = self.confirmed = self.received = 0

    def opened(self) -> None:
        self.sender = self.container.create_sender(self.connection, "/queue/scrolls", name="scrolls-out")

    def on_sendable(self, event: Any) -> None:
        while self.sent < 2 and event.sender.credit:
            self.sent += 1
            event.sender.send(Message(id=f"scroll-{self.sent}", inferred=True, body=b"scroll " * 900))

    def on_accepted(self, event: Any) -> None:
        self.confirmed += 1
        if self.confirmed == 2:
            self.receiver = self.container.create_receiver(
                self.connection, "/queue/scrolls", name="scrolls-in"
            )

    def on_link_opened(self, event: Any) -> None:
        if event.link.is_receiver:
            event.link.flow(2)

    def on_message(self, event: Any) -> None:
        self.accept(event.delivery)
        self.received += 1
        if self.received == 2:
            self.finish(self.sender, self.receiver)


class Refused(Client):
    """Links to a node that is not there, and a message larger than its link allows."""

    polite = True

    def opened(self) -> None:
        self.container.create_sender(self.connection, "nowhere", name="nowhere-out")

    def on_link_error(self, event: Any) -> None:
        if event.link.name == "nowhere-out":
            self.container.create_receiver(self.connection, "nowhere", name="nowhere-in").flow(3)
        elif event.link.name == "nowhere-in":
            self.container.create_sender(self.connection, "large", name="large-out")
        else:
            self.finished = True
            self.connection.close()

    def on_link_opened(self, event: Any) -> None:
        pass

    def on_sendable(self, event: Any) -> None:
        if event.link.name == "large-out" and event.link.credit == 10:
            event.sender.send(Message(id="large-1", body="x" * 1500))


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


def blocking(url: str, login: dict[str, Any]) -> None:
    """The blocking programming interface as its documentation shows it: prefetched, each call awaited."""
    connection = BlockingConnection(url, timeout=LIFETIME, container_id="shop", **login)
    sender = connection.create_sender("letters", name="letters-out")
    for number in range(3):
        sender.send(Message(id=f"letter-{number}", body="dear reader"))
    receiver = connection.create_receiver("letters", credit=2, name="letters-in")
    for number in range(3):
        receiver.receive()
        if number == 1:
            receiver.reject()
        else:
            receiver.accept()
    receiver.close()
    sender.close()
    connection.close()


SCENARIOS: dict[str, type[Client]] = {
    "send-receive": SendReceive,
    "heartbeat": Heartbeat,
    "transactions": Transactions,
    "transactional-accept": AcceptedInTransactions,
    "windows": Windows,
    "modes": Modes,
    "durable": Durable,
    "relay": Relay,
    "prices": Prices,
    "refused": Refused,
    "large": Large,
    "pipelined": Pipelined,
    "outcomes": PoliteOutcomes,
    "outcomes-hurried": Outcomes,
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("scenario", choices=[*sorted(SCENARIOS), "blocking"])
    options.add_argument("--connect", required=True, help="loopback address; the port is 5672")
    options.add_argument("--mechanism", default="ANONYMOUS")
    options.add_argument("--user")
    options.add_argument("--password")
    given = options.parse_args()
    host = f"[{given.connect}]" if ":" in given.connect else given.connect
    login: dict[str, Any] = {"allowed_mechs": given.mechanism, "allow_insecure_mechs": True}
    if given.user:
        login.update(user=given.user, password=given.password)
    if given.scenario == "blocking":
        blocking(f"amqp://{host}:5672", login)
        return
    client = SCENARIOS[given.scenario](f"amqp://{host}:5672", login)
    Container(client).run()
    if not client.finished:
        sys.exit("the connection ended before the scenario did")


if __name__ == "__main__":
    main()

"""A small AMQP 1.0 broker on Qpid Proton: queues, a warehouse that judges orders, transactions, SASL.

Anything sent to an address is kept there and handed to receivers of that address. Orders (address `orders`)
are judged instead: see `Broker.judge`. Runs until it is told to end, or for LIFETIME seconds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path
from typing import Any

from proton import Condition, Delivery, Endpoint, Message, Terminus, symbol
from proton.handlers import MessagingHandler
from proton.reactor import Container

LIFETIME = 90.0
REALM = "warehouse"  # of the test users
USER, PASSWORD = "shop", "made-up-for-captures"
STOCK = {"tea": 40, "cocoa": 3}
DECLARED, TRANSACTIONAL = 0x33, 0x34


class Broker(MessagingHandler):
    def __init__(self, url: str, mechanism: str, users: Path, credit: int, idle_seconds: float) -> None:
        super().__init__(prefetch=credit, auto_accept=False)
        self.url = url
        self.mechanism = mechanism
        self.users = users
        self.idle_seconds = idle_seconds
        self.queues: dict[str, list[Message]] = {}
        self.consumers: dict[str, list[Any]] = {}
        self.transactions: dict[bytes, list[tuple[str, Message]]] = {}
        self.declared = 0

    def on_start(self, event: Any) -> None:
        event.container.listen(self.url)
        event.container.schedule(LIFETIME, self)

    def on_timer_task(self, event: Any) -> None:
        os._exit(3)

    def on_connection_bound(self, event: Any) -> None:
        event.connection.container = "warehouse"  # the default would be made from random numbers
        sasl = event.transport.sasl()
        sasl.allowed_mechs(self.mechanism)
        sasl.allow_insecure_mechs = True
        sasl.config_name(REALM)
        sasl.config_path(str(self.users))
        if self.idle_seconds:
            event.transport.idle_timeout = self.idle_seconds

    def on_connection_opening(self, event: Any) -> None:
        event.connection.properties = {symbol("product"): "proton-warehouse"}

    def on_link_opening(self, event: Any) -> None:
        link = event.link
        if link.remote_target.type == Terminus.COORDINATOR:
            link.target.type = Terminus.COORDINATOR
            link.target.capabilities.put_object(symbol("amqp:local-transactions"))
            return
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        if link.is_sender:
            if link.remote_source.dynamic:
                link.source.address = f"temporary-{len(self.consumers)}"
                link.source.dynamic = True
            self.consumers.setdefault(link.source.address, []).append(link)

    def on_link_closing(self, event: Any) -> None:
        for links in self.consumers.values():
            if event.link in links:
                links.remove(event.link)

    def on_sendable(self, event: Any) -> None:
        self.hand_out(event.link.source.address)

    def on_link_flow(self, event: Any) -> None:
        link = event.link
        if link.is_sender and link.state & Endpoint.LOCAL_ACTIVE:
            self.hand_out(link.source.address)
            if link.drain_mode and not self.queues.get(link.source.address):
                link.drained()

    def on_message(self, event: Any) -> None:
        link, delivery, message = event.link, event.delivery, event.message
        if link.remote_target.type == Terminus.COORDINATOR:
            self.coordinate(delivery, message.body)
            return
        address = link.target.address or message.address
        if address == "orders":
            self.judge(delivery, message)
        elif delivery.remote_state == TRANSACTIONAL:
            transaction = bytes(delivery.remote.data[0])
            self.transactions[transaction].append((address, message))
            delivery.local.data = [transaction]
            delivery.update(TRANSACTIONAL)
            delivery.settle()
        else:
            self.queues.setdefault(address, []).append(message)
            self.accept(delivery)
            self.hand_out(address)

    def coordinate(self, delivery: Any, body: Any) -> None:
        """A declare is answered with a new transaction, a discharge hands its messages on or forgets them."""
        if str(body.descriptor) in ("amqp:declare:list", str(0x31)):
            self.declared += 1
            name = b"transaction-%d" % self.declared
            self.transactions[name] = []
            delivery.local.data = [name]
            delivery.update(DECLARED)
            delivery.settle()
            return
        name, failed = bytes(body.value[0]), bool(body.value[1])
        posted = self.transactions.pop(name)
        self.accept(delivery)
        for address, message in [] if failed else posted:
            self.queues.setdefault(address, []).append(message)
            self.hand_out(address)

    def judge(self, delivery: Any, message: Message) -> None:
        """Confirms what is in stock, rejects what is not sold, gives back what is there only in part."""
        article, quantity = message.properties["article"], int(message.properties["quantity"])
        if article not in STOCK:
            delivery.local.condition = Condition(
                "warehouse:unknown-article",
                f"nothing called {article} is sold here",
                {symbol("article"): article},
            )
            delivery.update(Delivery.REJECTED)
            delivery.settle()
        elif quantity > STOCK[article]:
            delivery.local.failed = True
            delivery.local.annotations = {symbol("x-opt-in-stock"): STOCK[article]}
            delivery.update(Delivery.MODIFIED)
            delivery.settle()
        else:
            STOCK[article] -= quantity
            self.accept(delivery)
            confirmation = Message(
                address=message.reply_to,
                correlation_id=message.id,
                subject="confirmation",
                properties={"article": article, "left": STOCK[article]},
                body="on its way",
            )
            self.queues.setdefault(message.reply_to, []).append(confirmation)
            self.hand_out(message.reply_to)

    def hand_out(self, address: str) -> None:
        queue = self.queues.get(address, [])
        for link in self.consumers.get(address, []):
            while queue and link.credit and link.state & Endpoint.LOCAL_ACTIVE:
                link.send(queue.pop(0))


def make_users(folder: Path) -> None:
    """A Cyrus SASL configuration with one test user, in `folder`."""
    database = folder / f"{REALM}.sasldb"
    (folder / f"{REALM}.conf").write_text(
        f"pwcheck_method: auxprop\nauxprop_plugin: sasldb\nsasldb_path: {database}\n"
        "mech_list: PLAIN SCRAM-SHA-1\n"
    )
    subprocess.run(
        ["saslpasswd2", "-p", "-c", "-f", str(database), "-u", REALM, USER],
        input=PASSWORD.encode(),
        check=True,
        env={**os.environ, "PATH": os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"},
    )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--listen", required=True, help="loopback address; the port is 5672")
    options.add_argument("--folder", type=Path, required=True, help="for the test users")
    options.add_argument("--mechanism", choices=["ANONYMOUS", "PLAIN", "SCRAM-SHA-1"], default="ANONYMOUS")
    options.add_argument("--credit", type=int, default=10)
    options.add_argument("--idle-seconds", type=float, default=0.0)
    given = options.parse_args()
    if given.mechanism != "ANONYMOUS":
        make_users(given.folder)
    host = f"[{given.listen}]" if ":" in given.listen else given.listen
    Container(
        Broker(f"amqp://{host}:5672", given.mechanism, given.folder, given.credit, given.idle_seconds)
    ).run()


if __name__ == "__main__":
    main()

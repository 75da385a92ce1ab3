"""A small AMQP 1.0 broker on Qpid Proton: queues, a warehouse that judges orders, transactions, SASL.

Anything sent to an address is kept there and handed to receivers of that address. Orders (address `orders`)
are judged instead: see `Broker.judge`; a request to `prices` is answered to where it says; `$cbs` takes any
token (claims-based security as the Azure clients speak it); `nowhere` refuses links; a message to `large` may
have LARGEST octets. Runs until it is terminated, or for LIFETIME seconds.
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
LARGEST = 1000  # octets
DECLARED, TRANSACTIONAL = 0x33, 0x34


class Broker(MessagingHandler):
    def __init__(self, url: str, users: Path, given: argparse.Namespace) -> None:
        super().__init__(prefetch=given.credit, auto_accept=False)
        self.url = url
        self.mechanism = given.mechanism
        self.users = users
        self.idle_seconds = given.idle_seconds
        self.max_frame_size = given.max_frame_size
        self.window = given.window
        self.queues: dict[str, list[Message]] = {}
        self.consumers: dict[str, list[Any]] = {}
        self.handed: dict[tuple[str, str], Message] = {}  # by link and tag: what may yet be given back
        self.transactions: dict[bytes, list[tuple[str, Message]]] = {}
        self.retired: dict[bytes, list[Any]] = {}  # deliveries a receiver has accepted in a transaction
        self.declared = self.named = 0

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
        if self.max_frame_size:
            event.transport.max_frame_size = self.max_frame_size

    def on_connection_opening(self, event: Any) -> None:
        event.connection.properties = {symbol("product"): "proton-warehouse"}

    def on_session_opening(self, event: Any) -> None:
        if self.window:
            event.session.incoming_capacity = self.window * self.max_frame_size

    def on_link_opening(self, event: Any) -> None:
        link = event.link
        if link.remote_target.type == Terminus.COORDINATOR:
            link.target.type = Terminus.COORDINATOR
            link.target.capabilities.put_object(symbol("amqp:local-transactions"))
            return
        link.source.copy(link.remote_source)
        link.target.copy(link.remote_target)
        if "nowhere" in (link.source.address, link.target.address):
            link.source.type = link.target.type = Terminus.UNSPECIFIED  # that a detach follows
            link.condition = Condition("amqp:not-found", "there is no node called nowhere")
            return
        link.snd_settle_mode = link.remote_snd_settle_mode
        if link.is_sender:
            link.rcv_settle_mode = link.remote_rcv_settle_mode
        if link.is_receiver and link.target.address == "large":
            link.max_message_size = LARGEST
        if link.is_sender:
            if link.remote_source.dynamic:
                self.named += 1
                link.source.address = f"temporary-{self.named}"
                link.source.dynamic = True
            self.consumers.setdefault(link.source.address, []).append(link)

    def on_link_local_open(self, event: Any) -> None:
        if event.link.condition:
            event.link.close()

    def on_link_closing(self, event: Any) -> None:
        for links in self.consumers.values():
            if event.link in links:
                links.remove(event.link)

    def on_link_remote_detach(self, event: Any) -> None:
        self.on_link_closing(event)
        event.link.detach()

    def on_delivery(self, event: Any) -> None:
        """What a receiver says of a message: settle it, keep it for the transaction, or hand it out again."""
        delivery = event.delivery
        if not delivery.link.is_sender or not delivery.updated:
            return
        if delivery.remote_state == TRANSACTIONAL and not delivery.settled:
            self.retired[bytes(delivery.remote.data[0])].append(delivery)
            return
        message = self.handed.pop((delivery.link.name, delivery.tag), None)
        if delivery.remote_state in (Delivery.RELEASED, Delivery.MODIFIED) and message is not None:
            if delivery.remote_state == Delivery.MODIFIED:
                message.delivery_count += 1
            self.queues[delivery.link.source.address].insert(0, message)
        if not delivery.settled:  # the receiver settles second
            delivery.update(delivery.remote_state)
            delivery.settle()

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
        elif address in ("prices", "$cbs"):
            self.accept(delivery)
            answer = Message(
                address=message.reply_to,
                correlation_id=message.id,
                properties={"status-code": 202, "status-description": "Accepted"},
            )
            if address == "prices":
                answer.properties, answer.body = {}, {article: 3 * len(article) for article in message.body}
            self.queues.setdefault(message.reply_to or "$cbs", []).append(answer)
            self.hand_out(message.reply_to or "$cbs")
        elif address == "large" and link.max_message_size < len(message.body):
            link.condition = Condition(
                "amqp:link:message-size-exceeded", f"a message may have {LARGEST} octets"
            )
            link.close()
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
            self.transactions[name], self.retired[name] = [], []
            delivery.local.data = [name]
            delivery.update(DECLARED)
            delivery.settle()
            return
        name, failed = bytes(body.value[0]), bool(body.value[1])
        posted = self.transactions.pop(name)
        self.accept(delivery)
        for retired in self.retired.pop(name):
            if not failed:
                self.handed.pop((retired.link.name, retired.tag), None)
                retired.update(Delivery.ACCEPTED)
                retired.settle()
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
                message, tag = queue.pop(0), link.delivery_tag()
                self.handed[link.name, tag] = message
                link.send(message, tag)


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
    options.add_argument("--max-frame-size", type=int, default=0)
    options.add_argument("--window", type=int, default=0, help="of a session, in frames of that size")
    given = options.parse_args()
    if given.mechanism != "ANONYMOUS":
        make_users(given.folder)
    host = f"[{given.listen}]" if ":" in given.listen else given.listen
    Container(Broker(f"amqp://{host}:5672", given.folder, given)).run()


if __name__ == "__main__":
    main()

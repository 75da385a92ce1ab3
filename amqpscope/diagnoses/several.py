"""What several connections have to do with each other: many short ones, links, resumed deliveries.

Theory of operation. The watches of all connections share one `Several`. They say there what other connections
may be about, and ask it. Frames come in the order of packets, so what it knows was said before.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final

from amqpscope.diagnoses.declaration import Limit, declare
from amqpscope.diagnoses.limits import Limits
from amqpscope.diagnoses.notebook import SECOND
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.records import CLIENT
from dissectors.wording import count

__all__ = ["CONNECTION_CHURN", "ConnectedFact", "Placed", "Resumption", "Several", "Theft"]

CONNECTION_CHURN: Final = declare(
    "connection-churn",
    ("1.0", "0-9-1"),
    """A host opens many connections one after the other, and sends only one or two messages on each of them.

    What it means: Each connection costs several round trips, a login and memory of the broker.
    Usual causes: A script or a function connects, publishes one message and disconnects. PHP applications
    work like this unless they use an AMQP proxy.
    Who has to act: The client.
    Client: Keep one connection, or use a proxy that keeps its connection to the broker open.
    Server: The server needs no change.
    Not reported when: logins are refused, or the host opens only a few connections, or opens them slowly.
    Discussions: aznamier/keycloak-event-listener-rabbitmq#27, amqp-node/amqplib#284
    """,
    Limit("connections", 20, "a smaller number of connections costs little"),
    Limit("messages", 2, "a new connection for a batch of messages is reasonable"),
    Limit("every-seconds", 3, "connections that are opened more slowly are no load for the broker"),
)

_HOSTS: Final = 1024
_LINKS: Final = 4096


ConnectedFact = tuple[str, str, str, str, int, int, int]
"""The arguments of `Several.connected`."""


class Placed:
    """A diagnosis, with the time (ns) at which its connection began, and the protocol of the connection."""

    def __init__(self, diagnosis: Diagnosis, began: int, protocol: str) -> None:
        self.diagnosis = diagnosis
        self.began = began
        self.protocol = protocol


class Theft:
    """A link that a server has detached, because another connection attached it. packet: of the detach."""

    def __init__(
        self,
        connection: str,
        container: str,
        link: str,
        address: str | None,
        condition: str,
        packet: int,
    ) -> None:
        self.connection = connection
        self.container = container
        self.link = link
        self.address = address
        self.condition = condition
        self.packet = packet

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values, in the order of the parameters."""
        return (self.connection, self.container, self.link, self.address, self.condition, self.packet)


class Resumption:
    """A link on which a client sends, and which it may resume.

    packet: of its attach. accepted: the delivery-tags that the answering attach lists as accepted. sent: the
    message-ids and packets of what was sent then as new. left: message-ids by tag of what is not settled.
    """

    def __init__(
        self,
        connection: str,
        container: str,
        link: str,
        packet: int,
        accepted: tuple[bytes, ...],
        sent: tuple[tuple[str, int], ...],
        left: dict[bytes, str],
    ) -> None:
        self.connection = connection
        self.container = container
        self.link = link
        self.packet = packet
        self.accepted = accepted
        self.sent = sent
        self.left = left

    def dump(self) -> tuple[Any, ...]:
        """All of it as plain values, in the order of the parameters."""
        return (self.connection, self.container, self.link, self.packet, self.accepted, self.sent, self.left)


class _Host:
    """The short connections of one host to one server."""

    def __init__(self, packet: int, time: int, connection: str, protocol: str) -> None:
        self.packet = packet
        self.first = time
        self.last = time
        self.connection = connection
        self.protocol = protocol
        self.connections = 0
        self.messages = 0
        self.others = 0


class Several:
    """What the connections of a capture say for each other. limits: the configured ones, by `code.limit`."""

    def __init__(self, limits: Mapping[str, float]) -> None:
        self.limits = Limits(limits)
        # What was said with `connected`, where other processes analyse the other connections; else None.
        self.outgoing: list[ConnectedFact] | None = None
        # A diagnosis needed what connections say that another process analyses.
        self.incomplete: bool = False
        self.hosts: OrderedDict[tuple[str, str], _Host] = OrderedDict()
        # By container and link name: the last attaches, with their connection, packet and address.
        self.attaches: OrderedDict[tuple[str, str], list[tuple[str, int]]] = OrderedDict()
        # By container and link name: what a client has sent there and nobody has settled, message-ids by tag.
        self.unsettled: OrderedDict[tuple[str, str], dict[bytes, str]] = OrderedDict()

    def postpone(self, fact: Theft | Resumption) -> bool:
        """Whether somebody else concludes from this fact: not all other connections are known here."""
        if self.outgoing is None:
            return False
        if isinstance(fact, Theft) or (fact.accepted and fact.sent):
            self.incomplete = True
        return True

    def share(self) -> None:
        """From now on, other processes analyse some of the connections."""
        self.outgoing = []

    def take_facts(self) -> list[ConnectedFact]:
        """What was said with `connected` since the last call, for the `Several` of all connections."""
        facts = self.outgoing
        if not facts:
            return []
        self.outgoing = []
        return facts

    def began(self, connection: str, time: int, protocol: str) -> None:
        """A connection is over that began at this time (ns). To be called after all else about it."""

    # Many short connections

    def connected(
        self, host: str, server: str, connection: str, protocol: str, packet: int, time: int, messages: int
    ) -> None:
        """A connection of a host is over. packet, time: of its begin."""
        if self.outgoing is not None:
            self.outgoing.append((host, server, connection, protocol, packet, time, messages))
            return
        known = self.hosts.get((host, server))
        if known is None:
            if len(self.hosts) >= _HOSTS:
                self.hosts.popitem(last=False)
            known = self.hosts[host, server] = _Host(packet, time, connection, protocol)
        if messages > self._limit("messages"):
            known.others += 1
            return
        known.connections += 1
        known.messages += messages
        if packet < known.packet:
            known.packet, known.first, known.connection = packet, time, connection
            known.protocol = protocol
        known.last = max(known.last, time)

    def _limit(self, name: str) -> float:
        return self.limits.of(CONNECTION_CHURN, name)

    def churned(self) -> list[Placed]:
        """The hosts that opened many connections for few messages."""
        found = []
        for (host, _), known in self.hosts.items():
            span = (known.last - known.first) / SECOND
            if (
                known.connections < self._limit("connections")
                or known.others > known.connections
                or not known.messages
                or span > known.connections * self._limit("every-seconds")
            ):
                continue
            figures = {
                "connections": known.connections,
                "publishes": known.messages,
                "seconds": round(span, 1),
            }
            message = (
                f"{host} opened {known.connections} connections in {span:.1f} s, and sent only "
                f"{count(known.messages, 'message')} on them"
            )
            diagnosis = Diagnosis(
                CONNECTION_CHURN.code,
                host,
                CLIENT,
                known.packet,
                0,
                span,
                known.connection,
                figures,
                message,
                [known.packet],
            )
            found.append(Placed(diagnosis, known.first, known.protocol))
        return found

    # Links of one name

    def attached(self, container: str, name: str, connection: str, packet: int) -> None:
        """A client attaches a link."""
        key = (container, name)
        known = self.attaches.get(key)
        if known is None:
            if len(self.attaches) >= _LINKS:
                self.attaches.popitem(last=False)
            known = self.attaches[key] = []
        known.append((connection, packet))
        del known[:-4]

    def thief(self, container: str, name: str, connection: str, packet: int) -> tuple[str, int] | None:
        """The newest attach of a link on another connection, as its connection and packet."""
        for other, at in reversed(self.attaches.get((container, name), [])):
            if other != connection and at < packet:
                return other, at
        return None

    # Deliveries that are resumed

    def sent(self, container: str, name: str) -> dict[bytes, str]:
        """A client begins to send on a link that it may resume: what it sends there, kept up to date."""
        if len(self.unsettled) >= _LINKS:
            self.unsettled.popitem(last=False)
        fresh: dict[bytes, str] = {}
        self.unsettled[container, name] = fresh
        return fresh

    def left(self, container: str, name: str) -> dict[bytes, str]:
        """What a client had sent on a link and nobody had settled, before it attached the link again."""
        return dict(self.unsettled.get((container, name), {}))

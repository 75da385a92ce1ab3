"""What is known of the TLS of a connection: what is in the clear, and why the rest cannot be read."""

from typing import Any

from dissectors.wire import i64

__all__ = ["Certificate", "TlsAlert", "TlsFacts"]


class Certificate:
    """What a certificate says of its owner. Texts are of the wire.

    subject, issuer: as RFC 4514 writes them. names: DNS names and addresses. begins, ends: of its validity,
    in seconds since 1970.
    """

    def __init__(self, subject: str, issuer: str, names: list[str], begins: int, ends: int) -> None:
        self.subject: str = subject
        self.issuer: str = issuer
        self.names: list[str] = names
        self.begins: i64 = begins
        self.ends: i64 = ends

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (self.subject, self.issuer, tuple(self.names), int(self.begins), int(self.ends))


class TlsAlert:
    """An alert. direction: of its sender. name: as RFC 8446 has it; `encrypted` if it cannot be read."""

    def __init__(self, direction: i64, fatal: bool, name: str, packet: i64, time: i64) -> None:
        self.direction: i64 = direction
        self.fatal: bool = fatal
        self.name: str = name
        self.packet: i64 = packet
        self.time: i64 = time

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (int(self.direction), self.fatal, self.name, int(self.packet), int(self.time))


class TlsFacts:
    """What the handshake of a connection shows, and whether what it protects is read."""

    def __init__(self) -> None:
        # `TLS 1.3`, and the suite's name; "" while they are not known.
        self.version: str = ""
        self.suite: str = ""
        # The name of the server that the client asks for, the protocols (ALPN) that it offers, and the chosen
        # one.
        self.server_name: str = ""
        self.offered: list[str] = []
        self.alpn: str = ""
        # Which direction is the client's.
        self.client: i64 = 0
        # The client random, in hexadecimal, by which secrets are found.
        self.random: str = ""
        # The certificates in the clear, or decrypted.
        self.server_certificate: Certificate | None = None
        self.client_certificate: Certificate | None = None
        # The server asked for the client's certificate; the client has answered that it has none.
        self.certificate_requested: bool = False
        self.certificate_refused: bool = False
        # The last packet of each peer with a part of the handshake, and its time; 0 while there is none.
        self.client_packet: i64 = 0
        self.client_time: i64 = 0
        self.server_packet: i64 = 0
        self.server_time: i64 = 0
        # Both peers have sent their parts of the handshake.
        self.agreed: bool = False
        # The handshake is over: application data follow.
        self.established: bool = False
        # Application data were decrypted.
        self.decrypted: bool = False
        # Why something is not decrypted; "" if all is.
        self.unread: str = ""
        self.alerts: list[TlsAlert] = []

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        server, client = self.server_certificate, self.client_certificate
        return (
            (self.version, self.suite, self.server_name, tuple(self.offered), self.alpn, int(self.client)),
            (
                self.random,
                None if server is None else server.dump(),
                None if client is None else client.dump(),
            ),
            (self.certificate_requested, self.certificate_refused, self.established, self.decrypted),
            (self.unread, tuple(alert.dump() for alert in self.alerts)),
            (
                int(self.client_packet),
                int(self.client_time),
                int(self.server_packet),
                int(self.server_time),
                self.agreed,
            ),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "TlsFacts":
        """The object of what `dump` returned."""
        facts = TlsFacts()
        chosen, (facts.random, server, client), flags, (facts.unread, alerts), turns = state
        facts.client_packet, facts.client_time, facts.server_packet, facts.server_time, facts.agreed = turns
        facts.version, facts.suite, facts.server_name, offered, facts.alpn, facts.client = chosen
        facts.offered = list(offered)
        facts.server_certificate = None if server is None else _certificate(server)
        facts.client_certificate = None if client is None else _certificate(client)
        facts.certificate_requested, facts.certificate_refused, facts.established, facts.decrypted = flags
        facts.alerts = [TlsAlert(*alert) for alert in alerts]
        return facts


def _certificate(state: tuple[Any, ...]) -> Certificate:
    subject, issuer, names, begins, ends = state
    return Certificate(subject, issuer, list(names), begins, ends)

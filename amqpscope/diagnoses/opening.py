"""How a connection opens: the wrong port, another version, no mechanism, a refused login, a PROXY header."""

from typing import Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.declaration import declare
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.diagnoses.watch import Watch
from amqpscope.model.records import CLIENT, SERVER, FrameRecord
from amqpscope.protocols import is_amqp, label
from dissectors.amqp091.methods import (
    ConnectionClose,
    ConnectionSecureOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
)
from dissectors.amqp10.sasl import SaslInit, SaslMechanisms, SaslOutcome
from dissectors.detect import FOREIGN_PROTOCOLS
from dissectors.protocol_header import ProtocolHeader

__all__ = [
    "LOGIN_REFUSED",
    "NO_COMMON_MECHANISM",
    "PROXY_HEADER",
    "VERSION_MISMATCH",
    "WRONG_PORT",
    "OpeningWatch",
]

_BOTH: Final = ("1.0", "0-9-1")

WRONG_PORT: Final = declare(
    "wrong-port",
    (),
    """A client speaks another protocol than the server at its port.

    Means: One of them speaks AMQP, the other one TLS, HTTP, MQTT or STOMP.
    Comes about: amqp:// for amqps:// or the reverse; port 5672 for 15672 (management), 1883 (MQTT) or 61613
    (STOMP); a health check of a load balancer.
    Move: The client's.
    Client: Use the port of the protocol: 5672 for AMQP, 5671 for AMQP over TLS.
    Server: Nothing, or let another listener answer there.
    Silent when: Both speak AMQP, on whatever port, or a PROXY header comes first.
    Threads: rabbitmq/rabbitmq-server#13559, ruby-amqp/rabbitmq_http_api_client#35
    """,
)

VERSION_MISMATCH: Final = declare(
    "version-mismatch",
    (),
    """A client asks for a version of AMQP that the server does not speak.

    Means: The server answers with the protocol header that it speaks, and closes.
    Comes about: A client of AMQP 1.0 at RabbitMQ before 4.0 without its plugin; a client of AMQP 0-9-1 at
    Azure, ActiveMQ or Qpid; a client without SASL at a server that demands it.
    Move: The client's.
    Client: Use a library of the version that the server speaks; use SASL ANONYMOUS instead of no SASL.
    Server: RabbitMQ before 4.0 needs its plugin rabbitmq_amqp1_0.
    Silent when: The client goes on in the version of the answer, or repeats its header after SASL or TLS.
    """,
)

NO_COMMON_MECHANISM: Final = declare(
    "no-common-mechanism",
    _BOTH,
    """The client leaves when it sees which SASL mechanisms the server offers.

    Means: None of them is one that the client has, or is allowed to use.
    Comes about: The server offers only EXTERNAL (certificates), or PLAIN only over TLS.
    Move: The client's.
    Client: Configure a mechanism that is offered, or connect over TLS.
    Server: Offer another mechanism.
    Silent when: The server ends the connection, or the capture ends.
    """,
)

LOGIN_REFUSED: Final = declare(
    "login-refused",
    _BOTH,
    """The server refuses a login.

    Means: The user, the password, the token, or the virtual host of the client is not accepted.
    Comes about: A wrong password or an expired token; the user guest from another host than the broker's.
    Move: The client's. Where the server says that it has a failure (sys, sys-temp): the server's.
    Client: Check the credentials and the virtual host.
    Server: Look at the log: the reason is not said on the wire.
    Silent when: A channel is closed with 403, or the server shuts down.
    """,
)

PROXY_HEADER: Final = declare(
    "proxy-header",
    _BOTH,
    """A load balancer says who the real client is, by a header of the PROXY protocol. This is no fault.

    Means: The address of the TCP connection is the load balancer's.
    Comes about: HAProxy and cloud load balancers send it, when they are configured to.
    Move: Nobody's.
    Client: Nothing.
    Server: A server that does not expect the header takes it for a bad protocol header.
    Silent when: The AMQP header comes first.
    """,
)

_NAMES: Final = {"AMQP 1.0": "1.0 without SASL", "SASL": "1.0 with SASL", "TLS": "1.0 with TLS"}


class OpeningWatch(Watch):
    """Watches how one connection opens."""

    def __init__(self, notebook: Notebook) -> None:
        super().__init__(notebook)
        # Of each side: the first octets that are no AMQP, and the last protocol header with its packet.
        self.skipped = [0, 0]
        self.headers: list[ProtocolHeader | None] = [None, None]
        self.header_packet = [0, 0]
        self.header_count = [0, 0]
        # Frames of the client behind the server's last header.
        self.went_on = 0
        # The login: what is offered and chosen; the packets of both, of what was refused and of the tune.
        self.offered = ""
        self.offered_packet = 0
        self.mechanism = ""
        self.chosen_packet = 0
        self.answered = False

    def take(self, record: FrameRecord, side: int) -> None:
        frame = record.frame
        body = frame.body
        if self.answered:
            return
        if frame.kind == "skipped":
            self.skipped[side] = self.skipped[side] or record.packet
        elif isinstance(body, ProtocolHeader):
            self.headers[side] = body
            self.header_packet[side] = record.packet
            self.header_count[side] += 1
            self.went_on = 0
        elif side == 0:
            self.went_on += 1
        if isinstance(body, SaslMechanisms):
            self.offered = ", ".join(body.sasl_server_mechanisms or ())
            self.offered_packet = record.packet
        elif isinstance(body, ConnectionStart):
            self.offered = ", ".join((body.mechanisms or b"").decode("ascii", "replace").split())
            self.offered_packet = record.packet
        elif isinstance(body, SaslInit):
            self.mechanism = body.mechanism or ""
            self.chosen_packet = record.packet
        elif isinstance(body, (ConnectionStartOk, ConnectionSecureOk)):
            if isinstance(body, ConnectionStartOk):
                self.mechanism = body.mechanism or ""
            self.chosen_packet = record.packet
        elif isinstance(body, SaslOutcome):
            if body.code:
                names = {1: "auth", 2: "sys", 3: "sys-perm", 4: "sys-temp"}
                whose = SERVER if body.code in (2, 3, 4) else CLIENT
                self._refused(record, "sasl", whose, {"outcome": names.get(body.code, str(body.code))})
        elif isinstance(body, ConnectionClose):
            if side == 1 and self.chosen_packet and body.reply_code == 403:
                self._refused(record, "connection", CLIENT, {"code": 403})
            self.answered = True
        elif isinstance(body, ConnectionTune):
            self.answered = True

    def _refused(self, record: FrameRecord, subject: str, whose: str, figures: dict[str, object]) -> None:
        self.answered = True
        why = " ".join(str(one) for one in figures.values())
        self.notebook.add(
            LOGIN_REFUSED,
            subject,
            whose,
            record.packet,
            f"server refuses the login by {self.mechanism or 'SASL'}: {why}",
            {"mechanism": self.mechanism, **figures},
            packets=(self.chosen_packet,),
        )

    def conclude(self, analysis: ConnectionAnalysis) -> None:
        """The connection is over, or the capture is."""
        connection = self.notebook.connection
        if connection.proxy is not None:
            packet, version, source = connection.proxy
            self.notebook.add(
                PROXY_HEADER,
                f"v{version}",
                "",
                packet,
                f"a PROXY header (version {version}) names {source or 'no client'} as the client: no fault",
                {"version": version, "source": source or None},
            )
        client, server = analysis.first, analysis.second
        if connection.client == 1:
            client, server = server, client
        tls = connection.tls
        spoken = client.detection.protocol if tls is None or tls.decrypted else "tls"
        answer = server.protocol if server.is_foreign() else ""
        if spoken in FOREIGN_PROTOCOLS or answer:
            self._wrong_port(analysis, spoken, answer)
        elif self.headers[0] is not None and self.headers[1] is not None:
            self._mismatch(self.headers[0], self.headers[1])
        ended_by_client = client.end_packet and not (
            server.end_packet and server.end_packet < client.end_packet
        )
        if self.offered_packet and not self.chosen_packet and ended_by_client and not self.notebook.lossy:
            self.notebook.add(
                NO_COMMON_MECHANISM,
                "sasl",
                CLIENT,
                self.offered_packet,
                f"server offers {self.offered or 'no mechanism'}; client leaves without choosing one",
                {"offered": self.offered},
            )

    def _wrong_port(self, analysis: ConnectionAnalysis, spoken: str, answer: str) -> None:
        connection = self.notebook.connection
        server = self.notebook.direction(1)
        port = connection.port(server)
        if answer:
            says = label(answer)
            facts = analysis.tcp.facts(server)
            self._report_port(
                f"{answer}-server",
                self.skipped[1] or facts.first_packet,
                "AMQP",
                says,
                port,
                f"the server says {says}",
            )
        elif is_amqp(connection.protocol) or port == 5672:
            says = label(spoken)
            facts = analysis.tcp.facts(1 - server)
            self._report_port(
                spoken, self.skipped[0] or facts.first_packet, says, "AMQP", port, "the port is AMQP's"
            )

    def _report_port(self, subject: str, packet: int, client: str, server: str, port: int, why: str) -> None:
        self.notebook.add(
            WRONG_PORT,
            subject,
            CLIENT,
            packet,
            f"client speaks {client} to port {port}, but {why}",
            {"client_says": client, "server_says": server, "port": port},
        )

    def _mismatch(self, asked: ProtocolHeader, spoken: ProtocolHeader) -> None:
        """The last headers of both sides differ, and the client does not go on."""
        if (
            asked.protocol() == spoken.protocol()
            or self.went_on
            or self.header_count[0] != self.header_count[1]
            or self.header_packet[1] < self.header_packet[0]
        ):
            return
        names = [_named(one) for one in (asked, spoken)]
        if all(one in _NAMES for one in names):
            client, server = (_NAMES[one] for one in names)
        else:
            client, server = ("1.0" if one in _NAMES else one.removeprefix("AMQP ") for one in names)
        self.notebook.add(
            VERSION_MISMATCH,
            "header",
            CLIENT,
            self.header_packet[1],
            f"client asks for AMQP {client}, server answers that it speaks AMQP {server}",
            {"client": client, "server": server},
            packets=(self.header_packet[0],),
        )


def _named(header: ProtocolHeader) -> str:
    """What a header announces: a version of AMQP, or a layer of AMQP 1.0."""
    known = header.protocol()
    return f"{header.major}.{header.minor}.{header.revision}" if known == "unknown" else known

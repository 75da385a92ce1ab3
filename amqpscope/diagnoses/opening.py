"""How a connection opens: the wrong port, another version, no mechanism, a refused login, a PROXY header."""

from typing import Final

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.declaration import NO_OPENING, REFUSES, declare
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.diagnoses.speech import Speech
from amqpscope.model.records import CLIENT, FrameRecord
from amqpscope.protocols import is_amqp, label
from dissectors.detect import FOREIGN_PROTOCOLS
from dissectors.protocol_header import ProtocolHeader
from dissectors.wire import i64

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
    """A client and the server at the port speak different protocols.

    What it means: One peer speaks AMQP. The other peer speaks TLS, HTTP, MQTT or STOMP.
    Usual causes: The URL begins with amqp:// instead of amqps://, or with amqps:// instead of amqp://. The
    client uses port 5672 instead of 15672 (management), 1883 (MQTT) or 61613 (STOMP), or one of these ports
    instead of 5672. A load balancer may also send a health check.
    Who has to act: The client.
    Client: Use the port of the protocol: 5672 for AMQP, 5671 for AMQP over TLS.
    Server: The server needs no change, unless the port was meant for the protocol of the client.
    Not reported when: both peers speak AMQP (on any port), or the connection begins with a PROXY header.
    Discussions: rabbitmq/rabbitmq-server#13559, ruby-amqp/rabbitmq_http_api_client#35
    """,
    explains=(NO_OPENING,),
)

VERSION_MISMATCH: Final = declare(
    "version-mismatch",
    (),
    """A client asks for a version of AMQP that the server does not speak.

    What it means: The server answers with the protocol header that it supports, and closes the connection.
    Usual causes: An AMQP 1.0 client connects to RabbitMQ before 4.0 without the AMQP 1.0 plugin, or an AMQP
    0-9-1 client connects to Azure, ActiveMQ or Qpid. Another cause is that a client does not use SASL, but
    the server requires SASL.
    Who has to act: The client.
    Client: Use a library for the version that the server speaks. Use SASL ANONYMOUS instead of no SASL.
    Server: For AMQP 1.0 in RabbitMQ before 4.0, enable the plugin rabbitmq_amqp1_0.
    Not reported when: the client continues with the version in the server's answer, or repeats its header
    after SASL or TLS.
    Discussions: Azure/amqpnetlite#319, achilleasa/dart_amqp#67, amqp/rhea#122
    """,
    explains=(NO_OPENING,),
)

NO_COMMON_MECHANISM: Final = declare(
    "no-common-mechanism",
    _BOTH,
    """A client ends the connection without choosing one of the SASL mechanisms that the server has offered.

    What it means: The client supports none of the offered mechanisms, or its configuration does not allow the
    client to use them.
    Usual causes: The server offers only EXTERNAL (certificates), or offers PLAIN only over TLS.
    Who has to act: The client.
    Client: Configure a mechanism that the server offers, or connect over TLS.
    Server: Offer another mechanism.
    Not reported when: the server ends the connection, or the capture ends.
    Discussions: amqp-node/amqplib#604, eclipse-hono/hono#1186, pma/amqp#30
    """,
    explains=(NO_OPENING,),
)

LOGIN_REFUSED: Final = declare(
    "login-refused",
    _BOTH,
    """A server refuses a login.

    What it means: The server does not accept the user, the password, the token or the virtual host of the
    client.
    Usual causes: The password is wrong, the token has expired, or the user `guest` connects from another host
    (by default, RabbitMQ accepts `guest` only from its own host).
    Who has to act: The client. If the SASL outcome reports an internal failure of the server (codes sys,
    sys-perm, sys-temp), the server has to act.
    Client: Check the credentials and the virtual host.
    Server: Read the log of the server, because no frame contains the reason for the refusal.
    Not reported when: a channel is closed with 403, or the server shuts down.
    Discussions: amqp-node/amqplib#574, alanxz/rabbitmq-c#490, amqp-node/amqplib#237
    """,
    explains=(REFUSES,),
)

PROXY_HEADER: Final = declare(
    "proxy-header",
    _BOTH,
    """A load balancer sends the address of the real client in a header of the PROXY protocol. Such a header
    is not a fault.

    What it means: The address of the TCP connection is the address of the load balancer.
    Usual causes: HAProxy and cloud load balancers send the header if they are configured to send it.
    Who has to act: Nobody.
    Client: The client needs no change.
    Server: A server that does not expect the header treats it as a bad protocol header.
    Not reported when: the connection begins with an AMQP header.
    Discussions: mholt/caddy-l4#35, cloudamqp/amqproxy#114
    """,
    trouble=False,
)

_NAMES: Final = {"AMQP 1.0": "1.0 without SASL", "SASL": "1.0 with SASL", "TLS": "1.0 with TLS"}


class _Begun:
    """How one side begins. Packets are 0 while there is none."""

    def __init__(self) -> None:
        # The first octets that are no AMQP.
        self.skipped: i64 = 0
        # The last protocol header, its packet, and how many there were.
        self.header: ProtocolHeader | None = None
        self.packet: i64 = 0
        self.headers: i64 = 0


# mypyc: null object, of a side that has sent nothing about the opening. Nothing writes to it.
_NOT_BEGUN: Final = _Begun()


class OpeningWatch:
    """Watches how one connection opens."""

    def __init__(self, notebook: Notebook, speech: Speech) -> None:
        self.notebook: Notebook = notebook
        # What understands the frames of its protocol.
        self.speech: Speech = speech
        self.client: _Begun = _NOT_BEGUN
        self.server: _Begun = _NOT_BEGUN
        # Frames of the client behind the last header.
        self.went_on: i64 = 0
        # The login: what is offered and chosen; the packets of both, of what was refused and of the tune.
        self.offered: str = ""
        self.offered_packet: i64 = 0
        self.mechanism: str = ""
        self.chosen_packet: i64 = 0
        # The login is answered: nothing that follows is about the opening.
        self.answered: bool = False

    def take(self, record: FrameRecord, side: i64) -> None:
        """The next frame. side: its sender's."""
        if self.answered:
            return
        frame = record.frame
        body = frame.body
        if isinstance(body, ProtocolHeader):
            own = self._begun(side)
            own.header = body
            own.packet = record.packet
            own.headers += 1
            self.went_on = 0
        elif frame.kind == "skipped":
            own = self._begun(side)
            own.skipped = own.skipped or record.packet
        elif side == 0:
            self.went_on += 1
        self.speech.open(record, side, self)

    def _begun(self, side: i64) -> _Begun:
        """How a side begins, to be written to."""
        begun = self.client if side == 0 else self.server
        if begun is _NOT_BEGUN:
            begun = _Begun()
            if side == 0:
                self.client = begun
            else:
                self.server = begun
        return begun

    def refuse(
        self, record: FrameRecord, subject: str, whose: str, why: str, figures: dict[str, object]
    ) -> None:
        """The server refuses the login, for a reason that `why` and the `figures` name."""
        self.answered = True
        how = f"with the mechanism {self.mechanism}" if self.mechanism else "with SASL"
        self.notebook.add(
            LOGIN_REFUSED,
            subject,
            whose,
            record.packet,
            f"the server refuses the login {how}: {why}",
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
                f"a PROXY header (version {version}) names {source or 'no client'} as the client; such a "
                "header is no fault",
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
        elif self.client.header is not None and self.server.header is not None:
            self._mismatch(self.client.header, self.server.header)
        ended_by_client = client.end_packet and not (
            server.end_packet and server.end_packet < client.end_packet
        )
        if self.offered_packet and not self.chosen_packet and ended_by_client and not self.notebook.lossy:
            self.notebook.add(
                NO_COMMON_MECHANISM,
                "sasl",
                CLIENT,
                self.offered_packet,
                f"the server offers {self.offered or 'no SASL mechanism'}, and the client ends the "
                "connection without choosing a mechanism",
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
                self.server.skipped or facts.first_packet,
                "AMQP",
                says,
                port,
                f"the server speaks {says}",
            )
        elif is_amqp(connection.protocol) or port == 5672:
            says = label(spoken)
            facts = analysis.tcp.facts(1 - server)
            self._report_port(
                spoken,
                self.client.skipped or facts.first_packet,
                says,
                "AMQP",
                port,
                "this port belongs to AMQP",
            )

    def _report_port(self, subject: str, packet: int, client: str, server: str, port: int, why: str) -> None:
        self.notebook.add(
            WRONG_PORT,
            subject,
            CLIENT,
            packet,
            f"the client speaks {client} to port {port}, but {why}",
            {"client_says": client, "server_says": server, "port": port},
        )

    def _mismatch(self, asked: ProtocolHeader, spoken: ProtocolHeader) -> None:
        """The last headers of both sides differ, and the client does not go on."""
        if (
            asked.protocol() == spoken.protocol()
            or self.went_on
            or self.client.headers != self.server.headers
            or self.server.packet < self.client.packet
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
            self.server.packet,
            f"the client asks for AMQP {client}, but the server answers that it speaks AMQP {server}",
            {"client": client, "server": server},
            packets=(self.client.packet,),
        )


def _named(header: ProtocolHeader) -> str:
    """What a header announces: a version of AMQP, or a layer of AMQP 1.0."""
    known = header.protocol()
    return f"{header.major}.{header.minor}.{header.revision}" if known == "unknown" else known

"""What servers of AMQP 0-9-1 refuse without a word or because it was removed; frames that threads tear."""

from typing import Final

from amqpscope.diagnoses.amqp091.watch import Watch091
from amqpscope.diagnoses.declaration import ENDS, NO_OPENING, Limit, declare
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.model.finding import named_peers
from amqpscope.model.records import CLIENT, FrameRecord, side_of
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.requests import MethodRequest
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicQos,
    ConnectionClose,
    ConnectionOpenOk,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    QueueDeclare,
)
from dissectors.amqp091.problems import INTERLEAVED, WRONG_FRAME_END
from dissectors.amqp091.reply_code import reply_code

__all__ = ["HANDSHAKE_LIMIT", "REMOVED_FEATURE", "THREADS_SHARE_CHANNEL", "Refusal091Watch"]

HANDSHAKE_LIMIT: Final = declare(
    "handshake-limit",
    ("0-9-1",),
    """A server ends the connection during the handshake, because the client exceeds a limit of the server.

    What it means: The client asks for a frame-max that the server does not accept, or the client's
    connection.start-ok is larger than the server accepts before connection.tune. RabbitMQ closes the socket
    without an error.
    Usual causes: An older configuration sets frame-max to 4096, and the server is RabbitMQ 4.1 or later.
    Another cause is that the password is a token (JWT) of more than 4096 octets, and the server is
    RabbitMQ before 4.1.
    Who has to act: The client.
    Client: Use the frame-max that the server proposes. Use a smaller token.
    Server: RabbitMQ 4.1 and later accept 8192 octets before connection.tune (initial_frame_max).
    Not reported when: this version of the server does not have the limit, the frame is small enough, or the
    server sends a close with another reason.
    Discussions: rabbitmq/rabbitmq-server#13753, amqp-node/amqplib#793
    """,
    Limit("octets-before-tune", 4096, "RabbitMQ before 4.1"),
    Limit(
        "new-octets-before-tune",
        8192,
        ("the limit of RabbitMQ 4.1 and later, and also the smallest frame-max that these versions accept"),
    ),
    explains=(NO_OPENING,),
)

REMOVED_FEATURE: Final = declare(
    "removed-feature",
    ("0-9-1",),
    """A client uses a feature that this version of the broker no longer permits.

    What it means: The broker closes the connection with reply-code 541, and the reply-text contains the name
    of the feature. The feature global_qos is basic.qos with the global flag. The feature
    transient_nonexcl_queues is a queue that is neither durable nor exclusive.
    Usual causes: An older client, or a client with an older configuration, connects to RabbitMQ 4.3 or later.
    Who has to act: The client.
    Client: Declare each queue as durable or exclusive. Set the prefetch for each consumer, without the global
    flag.
    Server: In some versions, the configuration key deprecated_features.permit can still permit some of these
    features.
    Not reported when: the queue is exclusive or durable, or basic.qos does not set the global flag.
    Discussions: celery/kombu#2237, eosrio/hyperion-history-api#156, runtipi/runtipi#2592
    """,
    explains=(ENDS,),
)

THREADS_SHARE_CHANNEL: Final = declare(
    "threads-share-channel",
    ("0-9-1",),
    """Two threads of a client write to one channel or one socket without a lock.

    What it means: On a shared channel, frames of one message appear between the frames of another message. On
    a shared socket, one frame begins inside another frame.
    Usual causes: Several publishing threads share a channel, or two threads or processes use one connection.
    Who has to act: The client.
    Client: Give each thread its own channel, and use a lock so that two threads never write to the socket at
    the same time.
    Server: The server needs no change.
    Not reported when: octets are missing, or the frames belong to several channels.
    Discussions: CopernicaMarketingSoftware/AMQP-CPP#92, rabbitmq/rabbitmq-dotnet-client#681,
    celery/py-amqp#462
    """,
    explains=(ENDS,),
)

_AROUND: Final = 8
"""Octets of a frame around its payload."""


class Refusal091Watch(Watch091):
    """Watches what is refused on one connection, and torn frames."""

    def __init__(self, notebook: Notebook, conversation: Conversation091) -> None:
        super().__init__(notebook)
        self.conversation = conversation
        # The packets of start-ok and tune-ok, with the size of one and the frame-max of the other.
        self.start_ok = (0, 0)
        self.tune_ok = (0, 0)
        self.tuned = False
        self.opened = False
        self.close_code = 0
        # The newest uses of what was removed, by the name of the feature: packet and method.
        self.uses: dict[str, tuple[int, str, str]] = {}
        # A torn frame of the client: its packet and the offset behind it, as it says.
        self.torn = (0, 0)
        self.shared: set[int] = set()

    def look(self, record: FrameRecord) -> None:
        """Any frame, before it is taken."""
        frame = record.frame
        packet, end = self.torn
        if side_of(record) != 0 or self.notebook.gappy:
            return
        if packet and frame.kind != "skipped":
            self.torn = (0, 0)
            if frame.offset < end:
                self._report(packet, "socket", "frame", "another frame begins in the middle of a frame")
        for problem in frame.problems:
            if problem.code == WRONG_FRAME_END:
                self.torn = (record.packet, frame.offset + int(self.conversation.due) + _AROUND)
            elif problem.code in INTERLEAVED and not self.shared:
                number = frame.channel
                self.shared.add(number)
                self._report(
                    record.packet, f"channel {number}", "content", named_peers(problem.reason, CLIENT)
                )

    def _report(self, packet: int, subject: str, torn: str, reason: str) -> None:
        self.notebook.add(
            THREADS_SHARE_CHANNEL,
            subject,
            CLIENT,
            packet,
            f"{subject}: two threads of the client write without a lock: {reason}",
            {"torn": torn},
        )

    def connection_method(self, record: FrameRecord, method: Method) -> None:
        if isinstance(method, ConnectionStartOk):
            self.start_ok = (record.packet, record.frame.size)
        elif isinstance(method, ConnectionTuneOk):
            self.tune_ok = (record.packet, method.frame_max)
        elif isinstance(method, ConnectionTune):
            self.tuned = True
        elif isinstance(method, ConnectionOpenOk):
            self.opened = True
        elif isinstance(method, ConnectionClose):
            self.close_code = method.reply_code
            if side_of(record) == 1 and method.reply_code in (540, 541):
                self._removed(record, method.reply_code, method.reply_text or "")

    def requested(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        if isinstance(method, BasicQos) and method.global_:
            self.uses["global_qos"] = (record.packet, "basic.qos with the global flag", "")
        elif isinstance(method, QueueDeclare) and not (method.durable or method.exclusive or method.passive):
            queue = method.queue or ""
            self.uses["transient_nonexcl_queues"] = (record.packet, f'queue.declare of "{queue}"', queue)

    def _server(self) -> tuple[str, str]:
        """The product and the version that the server names."""
        server = self.conversation.view.server
        return ("", "") if server is None else (server.product, server.texts.get("version", ""))

    def _removed(self, record: FrameRecord, code: int, text: str) -> None:
        for feature, (packet, what, queue) in self.uses.items():
            if feature in text:
                product, version = self._server()
                figures = {"feature": feature, "code": code, "server": f"{product} {version}".strip()}
                if queue:
                    figures["queue"] = queue
                self.notebook.add(
                    REMOVED_FEATURE,
                    feature,
                    CLIENT,
                    packet,
                    f"{what} uses the feature {feature}, which {product or 'the server'} {version} refuses "
                    f"with {reply_code(int(code))}",
                    figures,
                    ended=record.packet,
                )

    def finish(self, accused: set[str]) -> None:
        notebook = self.notebook
        product, version = self._server()
        if product != "RabbitMQ" or notebook.end_side != 1 or self.opened or notebook.lossy:
            return
        numbers = [int(one) for one in version.split(".") if one.isdigit()]
        if not numbers:
            return
        new = numbers >= [4, 1]
        before = notebook.limit(HANDSHAKE_LIMIT, "new-octets-before-tune" if new else "octets-before-tune")
        packet, size = self.start_ok
        tune_packet, frame_max = self.tune_ok
        if tune_packet and new and 0 < frame_max < before and (not self.close_code or self.close_code >= 500):
            notebook.add(
                HANDSHAKE_LIMIT,
                "frame-max",
                CLIENT,
                tune_packet,
                f"the client asks for frame-max {frame_max}, but RabbitMQ {version} requires at least "
                f"{before:.0f}, "
                "and closes the socket without an error",
                {"asked": frame_max, "server": f"RabbitMQ {version}", "minimum": int(before)},
                ended=notebook.end_packet,
            )
        elif packet and not self.tuned and size > before and not self.close_code:
            notebook.add(
                HANDSHAKE_LIMIT,
                "start-ok",
                CLIENT,
                packet,
                f"connection.start-ok has {size} octets, but RabbitMQ {version} accepts only "
                f"{before:.0f} before "
                "connection.tune, and closes the socket without an error",
                {"size": size, "limit": int(before), "server": f"RabbitMQ {version}"},
                ended=notebook.end_packet,
            )

"""Requests to the nodes of a server: security tokens ($cbs) and management, paired with their answers.

Sources: AMQP Claims-based Security 1.0; AMQP Management 1.0; RabbitMQ's management over AMQP 1.0.
"""

from typing import Any, Final

from amqpscope.diagnoses.amqp10.links import LinkWatch
from amqpscope.diagnoses.amqp10.refusals import RefusalWatch
from amqpscope.diagnoses.amqp10.watch import Watch10
from amqpscope.diagnoses.declaration import ENDS, MAY_END, Limit, declare
from amqpscope.diagnoses.latency import Latency
from amqpscope.diagnoses.notebook import SECOND, Notebook, duration
from amqpscope.limits import MAX_UNANSWERED
from amqpscope.model.passwords import without_password
from amqpscope.model.records import CLIENT, SERVER, FrameRecord, side_of
from amqpscope.tracking.amqp10.conversation import Conversation10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Properties
from dissectors.amqp10.performatives import Attach, Detach, End, Error, Transfer
from dissectors.amqp10.values import Map
from dissectors.wire import i64

__all__ = ["MANAGEMENT_FAILED", "TOKEN_EXPIRED", "TOKEN_REFUSED", "TOKEN_UNANSWERED", "ServiceWatch"]

TOKEN_REFUSED: Final = declare(
    "token-refused",
    ("1.0",),
    """A server refuses a security token.

    What it means: The answer to put-token has a status other than 2xx. The server will refuse links to the
    audience of the token.
    Usual causes: The key of the client is wrong, the token is for another audience, or the clock of a host is
    wrong.
    Who has to act: The client.
    Client: Check the key, the audience and the clock.
    Server: The server needs no change.
    Not reported when: the answer was not captured, or the answer belongs to another operation.
    Discussions: Azure/azure-sdk-for-python#23487
    """,
)

TOKEN_EXPIRED: Final = declare(
    "token-expired",
    ("1.0",),
    """A client did not renew a security token, and the server ended a link after the token had expired.

    What it means: The server checks the token not only when a link is attached, but as long as the link is
    attached.
    Usual causes: The application or the library does not send put-token again before the token expires.
    Who has to act: The client.
    Client: Renew each token well before it expires.
    Server: The server needs no change.
    Not reported when: the token was renewed, or the server ended no link because of the token.
    Discussions: Azure/azure-sdk-for-python#23487, Azure/azure-service-bus-dotnet#265
    """,
    Limit("clock-seconds", 5, "the clock of the capturing host and the clock of the server may differ"),
    explains=(ENDS,),
)

TOKEN_UNANSWERED: Final = declare(
    "token-unanswered",
    ("1.0",),
    """A server is alive, but does not answer put-token.

    What it means: The client cannot attach links before the answer arrives.
    Usual causes: The node $cbs hangs, or cannot reach the service that checks the token.
    Who has to act: The server.
    Client: Use a time-out for put-token, and open a new connection.
    Server: Answer put-token with a status, if necessary with status 500.
    Not reported when: the link for the answers has no credit, because in this case the client has to act
    (grant credit).
    Discussions: Azure/azure-service-bus-java#401, Azure/azure-sdk-for-java#12044
    """,
    Limit("seconds", 10, "to check a token, the server may need an answer of another service"),
    explains=(MAY_END,),
)

MANAGEMENT_FAILED: Final = declare(
    "management-failed",
    ("1.0",),
    """A server answers a management request with an error.

    What it means: The status of the answer is 400 or more.
    Usual causes: The queue already exists with other arguments (409), the queue does not exist (404), or the
    user lacks a permission (403).
    Who has to act: The client. If the status is 5xx, the server has to act.
    Client: Correct the request according to the status: the arguments, the name of the queue, or the user.
    Server: Read the log of the server.
    Not reported when: a look-up (GET) finds nothing.
    Discussions: Azure/azure-sdk-for-java#25121, Azure/azure-sdk-for-go#17382
    """,
)


class _Request:
    """A request to a node. kind: `token` or `management`. name: the audience, or the operation."""

    def __init__(self, kind: str, name: str, record: FrameRecord) -> None:
        self.kind = kind
        self.name = name
        self.packet = record.packet
        self.time = record.time
        self.end = record.frame.offset + record.frame.size


class _Token:
    """A token that was given. expiry: in ns, 0 if it is not known."""

    def __init__(self, packet: int, time: int, expiry: int) -> None:
        self.packet = packet
        self.time = time
        self.expiry = expiry


class ServiceWatch(Watch10):
    """Watches the requests to the nodes of one server."""

    def __init__(
        self, notebook: Notebook, conversation: Conversation10, links: LinkWatch, refusals: RefusalWatch
    ) -> None:
        super().__init__(notebook, later=True)
        self.conversation: Conversation10 = conversation
        self.links = links
        self.refusals = refusals
        self.asked: dict[str, _Request] = {}
        self.tokens: dict[str, _Token] = {}
        self.given: dict[str, _Token] = {}
        # How long answers took, by what was asked for.
        self.latencies: dict[str, Latency] = {}

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        if link.requests:
            self.attend(self.conversation)

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        link = delivery.link
        if record.message is not None and link is not None and link.requests:
            self._message(record, link)

    def delivery_continued(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        link = delivery.link
        if record.message is not None and link is not None and link.requests:
            self._message(record, link)

    def _message(self, record: FrameRecord, link: Link) -> None:
        message = Message.of(record.message)
        if message is None or not message.complete:
            return
        properties: Properties | None = None
        application: dict[str, Any] = {}
        text: object = None
        for section in message.sections():
            value = section.value
            if isinstance(value, Properties):
                properties = value
            elif section.name == "application-properties" and isinstance(value, Map):
                application = {str(key): one for key, one in value}
            elif section.name == "amqp-value":
                text = value
        if properties is None:
            return
        if side_of(record) == 0:
            self._request(record, link, properties, application, text)
        else:
            request = self.asked.pop(str(properties.correlation_id), None)
            if request is not None:
                latency = self.latencies.setdefault(request.kind, Latency())
                latency.add(record.time - request.time, request.packet, record.packet)
                self._answered(record, request, properties, application, text)

    def _request(
        self,
        record: FrameRecord,
        link: Link,
        properties: Properties,
        application: dict[str, Any],
        text: object,
    ) -> None:
        operation = str(application.get("operation", ""))
        if link.tokens:
            if operation != "put-token":
                return
            name = without_password(str(application.get("name", "")))
            request = _Request("token", name, record)
            self.given[name] = _Token(record.packet, record.time, _expiry(application, text, record.time))
        else:
            name = operation or f"{properties.subject} {properties.to}"
            request = _Request("management", without_password(name), record)
        if properties.message_id is not None and len(self.asked) < MAX_UNANSWERED:
            self.asked[str(properties.message_id)] = request

    def _answered(
        self,
        record: FrameRecord,
        request: _Request,
        properties: Properties,
        application: dict[str, Any],
        text: object,
    ) -> None:
        status = application.get("status-code", application.get("statusCode"))
        if not isinstance(status, int) and properties.subject is not None and properties.subject.isdigit():
            status = int(properties.subject)
        if not isinstance(status, int):
            return
        said = application.get("status-description", application.get("statusDescription"))
        if said is None and isinstance(text, str):
            said = text
        about = f": {without_password(str(said))}" if said else ""
        if request.kind == "token":
            given = self.given.pop(request.name, None)
            if 200 <= status < 300:
                if given is not None:
                    self.tokens[request.name] = given
                return
            self.refusals.token_refused = True
            self._tell(
                TOKEN_REFUSED,
                record,
                request,
                CLIENT,
                f"the server refused the request put-token for {request.name} with status {status}{about}",
                {"status_code": status, "description": said},
            )
        elif status >= 400 and not (status == 404 and request.name.startswith("GET ")):
            self._tell(
                MANAGEMENT_FAILED,
                record,
                request,
                SERVER if status >= 500 else CLIENT,
                f"the server answered the management request {request.name} with the error status "
                f"{status}{about}",
                {"status": status, "description": said},
            )

    def _tell(
        self,
        kind: Any,
        record: FrameRecord,
        request: _Request,
        whose: str,
        message: str,
        figures: dict[str, Any],
    ) -> None:
        self.notebook.add(
            kind, request.name, whose, record.packet, message, figures, packets=(request.packet,)
        )

    # What ends for a token

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        if isinstance(body.error, Error) and side_of(record) == 1:
            self._ended(record, body.error, without_password(link.name), link.address)

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        if isinstance(body.error, Error) and side_of(record) == 1:
            self._ended(record, body.error, "", None)

    def _ended(self, record: FrameRecord, error: Error, name: str, address: str | None) -> None:
        """A link was ended, or (no name) a session."""
        if error.condition != "amqp:unauthorized-access":
            return
        slack = int(self.notebook.limit(TOKEN_EXPIRED, "clock-seconds") * SECOND)
        expired = [
            (audience, token)
            for audience, token in self.tokens.items()
            if token.expiry and token.expiry <= record.time + slack
        ]
        if len(self.tokens) > 1 and address:
            expired = [one for one in expired if one[0].rstrip("/").endswith(address.strip("/"))]
        if len(expired) != 1:
            return
        audience, token = expired[0]
        lifetime = (token.expiry - token.time) / SECOND
        over = max((record.time - token.expiry) / SECOND, 0.0)
        what = f'link "{name}"' if name else "the session"
        self.notebook.add(
            TOKEN_EXPIRED,
            audience,
            CLIENT,
            token.packet,
            f"the client did not renew the token for {audience}, which was valid for "
            f"{duration(lifetime)}, and the "
            f"server ended {what} {duration(over)} after the token had expired",
            {
                "lifetime": round(lifetime),
                "renewed": 0,
                "condition": str(error.condition),
                "link": name or None,
            },
            ended=record.packet,
        )
        del self.tokens[audience]

    # The end

    def _unanswered(self, until: i64, ended: i64) -> None:
        notebook = self.notebook
        for request in self.asked.values():
            if (
                request.kind != "token"
                or not notebook.idle(1, request.time, until, notebook.limit(TOKEN_UNANSWERED))
                or notebook.server.time <= request.time
                or notebook.server.acknowledged < request.end
                or not self.links.token_credit
            ):
                continue
            seconds = (until - request.time) / SECOND
            notebook.add(
                TOKEN_UNANSWERED,
                request.name,
                SERVER,
                request.packet,
                f"the server has not answered the request put-token for {request.name} for "
                f"{duration(seconds)}, although the server is alive",
                {"asked": "put-token", "peer_alive": "frames"},
                seconds=seconds,
                ended=ended,
            )
        self.asked = {}

    def lasting(self, until: i64) -> None:
        asked = self.asked
        self._unanswered(until, 0)
        self.asked = asked

    def lost(self, until: i64) -> None:
        self._unanswered(until, 0)
        self.tokens = {}
        self.given = {}

    def finish(self, accused: set[str]) -> None:
        self._unanswered(self.notebook.end_time, self.notebook.end_packet)


def _expiry(application: dict[str, Any], text: object, now: int) -> int:
    """When a token expires (ns): by its property, or by what the token says; 0 if neither does."""
    given: object = application.get("expiration")
    if given is None and isinstance(text, str):
        for part in text.split("&"):
            name, _, value = part.partition("=")
            if name.rpartition(" ")[2] == "se" and value.isdigit():
                given = int(value)
    if not isinstance(given, int) or given <= 0:
        return 0
    # Seconds or milliseconds since 1970.
    return given * SECOND if given < 100_000_000_000 else given * 1_000_000

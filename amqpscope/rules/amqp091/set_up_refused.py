"""A set-up that cannot succeed: what is said where the specification wants the socket closed without a word.

Before a connection is open there is no close (section 2.2.4). All brokers say one nevertheless, which tells
more than silence does; and some go on where they should have hung up.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.introduction import listed
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.connection_view import ConnectionView
from amqpscope.tracking.amqp091.names import UNREADABLE
from amqpscope.tracking.amqp091.states import STILL_DUE
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import ConnectionClose, ConnectionOpenOk
from dissectors.wire import i64

__all__ = ["RULES", "judge_answer", "judge_close"]

RULES: Final = Rules("amqp091/set_up_refused")


_ACCESS_REFUSED: Final = 403
_NOT_ALLOWED: Final = 530
_NO_SUCH_PATH: Final = (402, 404)


# A close


C_HS_ERROR_SILENT: Final = RULES.rule(
    "C-HS-ERROR-SILENT", "MUST", "tier C", note="No error is tied to it, and both peers go on."
)


def close_before_open(case: Case091) -> None:
    """A peer sends connection.close before the connection is open.

    Demands: A peer that finds an error before the connection is open closes the socket without sending
    anything.
    Source: GS:2.2.4
    Evidence: Connection.Close or other data sent before Open/Open-Ok
    Why it matters: By the specification, a peer that finds an error before that point closes the socket
    without sending anything. All brokers send connection.close with the reason, which is more useful.
    Silent when: octets of either peer were not captured.
    How to mend it: Close the socket without sending connection.close, if strict conformance is required.
    Otherwise keep connection.close, and mend the error that the reply-text of connection.close names.
    """
    case.report(
        C_HS_ERROR_SILENT,
        f"close while the connection is being set up: {STILL_DUE[case.view.state]}",
        evidence={"connection_state": case.view.state},
    )


C_AUTHFAIL_CAP: Final = RULES.rule(
    "C-AUTHFAIL-CAP", "IMPLIED", "tier A", by="server", answer="connection.close 403"
)


def login_refused_unasked(case: Case091) -> None:
    """A server reports a failed login with connection.close 403 to a client that did not announce the
    capability authentication_failure_close.

    Demands: The server reports failed authentication with Close 403 only to clients that set the capability
    authentication_failure_close.
    Source: RMQ:docs/auth-notification
    Evidence: client capabilities; server frame after Start-Ok or Secure-Ok
    Why it matters: Such a client still waits for connection.tune, or takes the connection.close for another
    error. Its user does not learn that the login failed.
    Silent when: the client announces the capability authentication_failure_close, or its connection.start-ok
    was not captured.
    How to mend it: Look for the capability authentication_failure_close in the client-properties of
    connection.start-ok. If the capability is missing or false, close the socket after a failed login without
    sending connection.close.
    """
    case.report(
        C_AUTHFAIL_CAP,
        "close with 403 for a login, and the client has no capability authentication_failure_close",
    )


C_START_CLIENT_SUPPORT: Final = RULES.rule("C-START-CLIENT-SUPPORT", "MUST", "tier B", by="client")


def close_for_the_version(case: Case091) -> None:
    """A client that gets connection.start with another version than it asked for sends connection.close,
    instead of closing the socket.

    Demands: A client that cannot work with the offered version closes the socket and sends nothing more.
    Source: XML:connection.start.client-support
    Evidence: Start version; client octets afterwards
    Why it matters: A server of another version need not understand connection.close, and may report a
    protocol error instead of the real cause.
    Silent when: the offered version is the version that the client asked for.
    Only possible because: The client may close the connection for another reason.
    How to mend it: Compare version-major and version-minor of connection.start with the version in the
    protocol header. If the client cannot work with the offered version, close the socket and send nothing
    more.
    """
    case.report(
        C_START_CLIENT_SUPPORT,
        "close in answer to start of a version that the client did not ask for, instead of the end",
        POSSIBLE,
    )


C_OPEN_VHOST_EXISTS: Final = RULES.rule(
    "C-OPEN-VHOST-EXISTS", "IMPLIED", "tier B", by="client", answer="connection.close 402"
)


def virtual_host_unknown(case: Case091, code: i64) -> None:
    """A client opens a virtual host that does not exist.

    Demands: The client opens a virtual host that exists.
    Source: XML constant invalid-path; XML:connection.open.virtual-host
    Evidence: reply to Open
    Why it matters: The server refuses connection.open. The client can do nothing on the connection, because
    no channel can be opened.
    Silent when: the server does not say that the virtual host is missing, or the name of the virtual host is
    empty. Another rule (amqp091/T-PATH-NOTNULL) reports an empty name.
    Only possible because: Only the server's close indicates that the virtual host does not exist.
    How to mend it: Correct the virtual host in connection.open, or create the virtual host on the broker. In
    a connection URI, check percent-encoding: the virtual host `/` is written `%2F`.
    """
    view = case.view
    record = case.record
    closing = int(record.packet)
    before = case.spot
    case.spot = FrameRef(
        1 - record.direction, view.opening.packet, view.opening.time, view.opening.end, "connection.open", 0
    )
    case.report(
        C_OPEN_VHOST_EXISTS,
        f"the server refuses the virtual host with {code} (packet {closing})",
        POSSIBLE,
        {"reply_code": int(code)},
        [closing],
    )
    case.spot = before


# What has to be answered by hanging up


C_STARTOK_MECH_REACT: Final = RULES.rule(
    "C-STARTOK-MECH-REACT",
    "MUST",
    "tier C",
    by="server",
    note="The rule is about how a peer answers the other peer's fault.",
)


def wrong_mechanism_answered(case: Case091) -> None:
    """A server answers a connection.start-ok whose mechanism it did not offer, instead of closing the socket.

    Demands: Given a mechanism it never offered, the server closes the socket without sending anything.
    Source: XML:connection.start-ok.mechanism.validity
    Evidence: bad mechanism; server octets afterwards
    Why it matters: This has little effect: a connection.close that gives the reason is more useful to the
    client than silence.
    Silent when: connection.start or connection.start-ok was not captured. The rule reports once per
    connection.
    How to mend it: Compare the mechanism in connection.start-ok with the mechanisms of connection.start. If
    the mechanism was not offered, close the socket without sending; never go on with secure or tune.
    """
    case.report_once(
        C_STARTOK_MECH_REACT,
        f"{case.name} in answer to a security mechanism that was not offered",
        CERTAIN,
        {"offered": listed(case.view.login.mechanisms)},
    )


C_TUNEOK_FRAMEMAX_REACT: Final = RULES.rule(
    "C-TUNEOK-FRAMEMAX-REACT",
    "MUST",
    "tier C",
    by="server",
    note="The rule is about how a peer answers the other peer's fault.",
)


def too_large_frame_max_answered(case: Case091) -> None:
    """A server answers a connection.tune-ok whose frame-max is above the server's limit, instead of
    dropping the connection.

    Demands: Offered too high a frame-max, the server drops the connection without a Close handshake.
    Source: XML:connection.tune-ok.frame-max.upper-limit
    Evidence: bad Tune-Ok; what the server sends
    Why it matters: This has little effect: RabbitMQ and LavinMQ close with 530, which gives the client the
    reason.
    Silent when: connection.tune or connection.tune-ok was not captured. The rule reports once per connection.
    How to mend it: Compare frame-max of connection.tune-ok with the limit in connection.tune. If frame-max is
    above the limit, drop the connection without sending, and never send connection.open-ok.
    """
    case.report_once(
        C_TUNEOK_FRAMEMAX_REACT,
        f"{case.name} in answer to a frame-max above the limit",
        CERTAIN,
        {"frame_max": int(case.view.agreed.frame_max), "limit": int(case.view.proposed.frame_max)},
    )


C_TUNEOK_CHMAX_REACT: Final = RULES.rule(
    "C-TUNEOK-CHMAX-REACT",
    "MUST",
    "tier C",
    by="server",
    note="The rule is about how a peer answers the other peer's fault.",
)


def too_large_channel_max_answered(case: Case091) -> None:
    """A server answers a connection.tune-ok whose channel-max is above the server's limit, instead of
    dropping the connection.

    Demands: Offered too high a channel-max, the server drops the connection without a Close handshake.
    Source: XML:connection.tune-ok.channel-max.upper-limit
    Evidence: bad Tune-Ok; what the server sends
    Why it matters: This has little effect: RabbitMQ and LavinMQ close with 530, which gives the client the
    reason.
    Silent when: connection.tune or connection.tune-ok was not captured. The rule reports once per connection.
    How to mend it: Compare channel-max of connection.tune-ok with the limit in connection.tune. If
    channel-max is above the limit, drop the connection without sending, and never send connection.open-ok.
    """
    case.report_once(
        C_TUNEOK_CHMAX_REACT,
        f"{case.name} in answer to a channel-max above the limit",
        CERTAIN,
        {"channel_max": int(case.view.agreed.channel_max), "limit": int(case.view.proposed.channel_max)},
    )


# Who is brought before them


def judge_close(case: Case091, method: ConnectionClose) -> None:
    """A close, if the connection is not open yet."""
    me = case.me
    view = case.view
    if not me.whole or view.state == "OPEN" or (me.by_client and view.state == "OPENING"):
        return
    code = method.reply_code
    if me.by_client:
        asked = view.asked_version()
        if view.state == "STARTED" and asked is not None and view.version != asked:
            close_for_the_version(case)
        else:
            close_before_open(case)
        return
    state = view.state
    if state == "ANSWERED" or state == "CHALLENGED":
        client = view.client
        if _wrong_mechanism(view):
            wrong_mechanism_answered(case)
        elif code == _ACCESS_REFUSED and client is not None and client.lacks("authentication_failure_close"):
            login_refused_unasked(case)
        else:
            close_before_open(case)
    elif (state == "AGREED" or state == "OPENING") and _frame_max_too_large(view):
        too_large_frame_max_answered(case)
    elif (state == "AGREED" or state == "OPENING") and _channel_max_too_large(view):
        too_large_channel_max_answered(case)
    else:
        close_before_open(case)
        text = (method.reply_text or "").lower()
        if state == "OPENING" and view.opening.virtual_host:
            if code in _NO_SUCH_PATH or (code == _NOT_ALLOWED and "not found" in text):
                virtual_host_unknown(case, code)


def judge_answer(case: Case091, method: Method) -> None:
    """The server goes on with the set-up: secure, tune or open-ok."""
    view = case.view
    if not case.me.whole:
        return
    if isinstance(method, ConnectionOpenOk):
        if _frame_max_too_large(view):
            too_large_frame_max_answered(case)
        if _channel_max_too_large(view):
            too_large_channel_max_answered(case)
    elif _wrong_mechanism(view):
        wrong_mechanism_answered(case)


def _wrong_mechanism(view: ConnectionView) -> bool:
    if view.client is None or not any(view.login.mechanisms) or view.login.mechanism == UNREADABLE:
        return False
    return view.login.mechanism not in view.login.mechanisms


def _frame_max_too_large(view: ConnectionView) -> bool:
    return 0 < view.proposed.frame_max < view.agreed.frame_max


def _channel_max_too_large(view: ConnectionView) -> bool:
    return 0 < view.proposed.channel_max < view.agreed.channel_max

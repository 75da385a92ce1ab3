"""A connection set-up that fails, although the specification wants the socket closed without any frame.

The specification has no close before the connection is open (section 2.2.4). All brokers send
connection.close nevertheless, which is more useful. Some brokers continue although they should close the
socket.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.introduction import listed
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.connection_view import ConnectionView
from amqpscope.tracking.amqp091.names import UNREADABLE
from amqpscope.tracking.amqp091.states import AGREED, ANSWERED, CHALLENGED, OPEN, OPENING, STARTED, STILL_DUE
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import ConnectionClose, ConnectionOpenOk
from dissectors.amqp091.reply_code import reply_code
from dissectors.wire import i64

__all__ = ["RULES", "judge_answer", "judge_close"]

RULES: Final = Rules("amqp091/set_up_refused")


_ACCESS_REFUSED: Final = 403
_NOT_ALLOWED: Final = 530
_NO_SUCH_PATH: Final = (402, 404)


# A close


C_HS_ERROR_SILENT: Final = RULES.rule(
    "C-HS-ERROR-SILENT",
    "MUST",
    "tier C",
    note="The specification names no error for this fault, and both peers continue.",
)


def close_before_open(case: Case091) -> None:
    """A peer sends connection.close before the connection is open.

    Demands: A peer that finds an error before the connection is open must close the socket without sending
    anything.
    Source: GS:2.2.4
    Evidence: a connection.close or other data that is sent before connection.open or connection.open-ok
    Why it matters: The fault does little harm. All brokers send connection.close with the reason, and
    the reason is more useful to the client than a closed socket.
    Silent when: the capture lacks octets of either peer.
    How to mend it: Close the socket without sending connection.close, if strict conformance is required. If
    strict conformance is not required, keep connection.close, and correct the error that the reply-text of
    connection.close describes.
    """
    case.report(
        C_HS_ERROR_SILENT,
        f"the peer sends connection.close before the connection is open ({STILL_DUE[case.view.state]}); the "
        "peer must close the socket without a method instead",
        evidence={"connection_state": case.view.state},
    )


C_AUTHFAIL_CAP: Final = RULES.rule(
    "C-AUTHFAIL-CAP", "IMPLIED", "tier A", by="server", answer="connection.close 403"
)


def login_refused_unasked(case: Case091) -> None:
    """A server reports a failed login by connection.close (reply-code 403, access-refused) to a client that
    did not announce the capability authentication_failure_close.

    Demands: A server may report a failed login by connection.close (reply-code 403, access-refused) only to
    clients that announce the capability authentication_failure_close.
    Source: RMQ:docs/auth-notification
    Evidence: the capabilities in connection.start-ok, and the server's answer to the login
    Why it matters: A client without the capability authentication_failure_close still waits for
    connection.tune, or mistakes the connection.close for another error. The user of the client does not learn
    that the login failed.
    Silent when: the client announces the capability authentication_failure_close, or its connection.start-ok
    was not captured.
    How to mend it: Look for the capability authentication_failure_close in the client-properties of
    connection.start-ok. If the capability is missing or false, close the socket after a failed login without
    sending connection.close.
    """
    case.report(
        C_AUTHFAIL_CAP,
        "connection.close has reply-code 403 (access-refused) for a failed login, "
        "but the client has not announced the capability authentication_failure_close",
    )


C_START_CLIENT_SUPPORT: Final = RULES.rule("C-START-CLIENT-SUPPORT", "MUST", "tier B", by="client")


def close_for_the_version(case: Case091) -> None:
    """When connection.start has another version than the client requested, the client sends connection.close
    instead of closing the socket.

    Demands: A client that does not support the version in connection.start must close the socket and must not
    send anything more.
    Source: XML:connection.start.client-support
    Evidence: the version in connection.start, and what the client sends afterwards
    Why it matters: A server of another version perhaps does not understand connection.close, and may report a
    protocol error instead of the real cause.
    Silent when: the version in connection.start is the version that the client requested.
    Only possible because: The client may close the connection for another reason.
    How to mend it: Compare version-major and version-minor of connection.start with the version in the
    protocol header. If the client cannot work with the offered version, close the socket and send nothing
    more.
    """
    case.report(
        C_START_CLIENT_SUPPORT,
        "the client refuses the version of connection.start by sending connection.close instead of closing "
        "the socket",
        POSSIBLE,
    )


C_OPEN_VHOST_EXISTS: Final = RULES.rule(
    "C-OPEN-VHOST-EXISTS", "IMPLIED", "tier B", by="client", answer="connection.close 402"
)


def virtual_host_unknown(case: Case091, code: i64) -> None:
    """A client opens a virtual host that does not exist.

    Demands: The virtual host in connection.open must exist.
    Source: XML constant invalid-path; XML:connection.open.virtual-host
    Evidence: the server's answer to connection.open
    Why it matters: The server refuses connection.open. The client cannot open any channel on the connection.
    Silent when: the reply-text of the server does not say that the virtual host is missing. The rule is also
    silent when another rule (amqp091/T-PATH-NOTNULL) already reports that the name of the virtual host is
    empty.
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
        f"the server refuses connection.open with {reply_code(int(code))} in packet {closing}, because the "
        "virtual host does not exist",
        POSSIBLE,
        {"reply_code": int(code)},
        [closing],
    )
    case.spot = before


# Faults after which the server has to close the socket


C_STARTOK_MECH_REACT: Final = RULES.rule(
    "C-STARTOK-MECH-REACT",
    "MUST",
    "tier C",
    by="server",
    note="The rule is about how a peer reacts to a fault of the other peer.",
)


def wrong_mechanism_answered(case: Case091) -> None:
    """A client chooses a security mechanism that the server did not offer, and the server answers the
    connection.start-ok instead of closing the socket.

    Demands: A server must close the socket without sending anything if the client chooses a mechanism that
    was not offered.
    Source: XML:connection.start-ok.mechanism.validity
    Evidence: a connection.start-ok with a mechanism that was not offered, and what the server sends
    afterwards
    Why it matters: The fault has little effect: a connection.close that gives the reason is more useful to
    the client than a closed socket.
    Silent when: connection.start or connection.start-ok was not captured. The rule reports the fault only
    once per connection.
    How to mend it: Compare the mechanism in connection.start-ok with the mechanisms of connection.start. If
    the mechanism was not offered, close the socket without sending anything. Do not send connection.secure or
    connection.tune.
    """
    case.report_once(
        C_STARTOK_MECH_REACT,
        f"the server sends {case.name} although the client chose a security mechanism that was not offered; "
        "the server must close the socket without a method instead",
        CERTAIN,
        {"offered": listed(case.view.login.mechanisms)},
    )


C_TUNEOK_FRAMEMAX_REACT: Final = RULES.rule(
    "C-TUNEOK-FRAMEMAX-REACT",
    "MUST",
    "tier C",
    by="server",
    note="The rule is about how a peer reacts to a fault of the other peer.",
)


def too_large_frame_max_answered(case: Case091) -> None:
    """A server answers a connection.tune-ok whose frame-max is above the server's limit, instead of dropping
    the connection.

    Demands: A server must drop the connection without connection.close if the client's frame-max is above the
    server's limit.
    Source: XML:connection.tune-ok.frame-max.upper-limit
    Evidence: a connection.tune-ok whose frame-max is too high, and what the server sends afterwards
    Why it matters: The fault has little effect: RabbitMQ and LavinMQ close with reply-code 530
    (not-allowed), which gives the client the reason.
    Silent when: connection.tune or connection.tune-ok was not captured. The rule reports the fault only once
    per connection.
    How to mend it: Compare frame-max of connection.tune-ok with the limit in connection.tune. If
    frame-max is above the limit, drop the connection without sending anything, and never send
    connection.open-ok.
    """
    case.report_once(
        C_TUNEOK_FRAMEMAX_REACT,
        f"the server sends {case.name} although the client's frame-max is above the server's limit; the "
        "server must close the socket without a method instead",
        CERTAIN,
        {"frame_max": int(case.view.agreed.frame_max), "limit": int(case.view.proposed.frame_max)},
    )


C_TUNEOK_CHMAX_REACT: Final = RULES.rule(
    "C-TUNEOK-CHMAX-REACT",
    "MUST",
    "tier C",
    by="server",
    note="The rule is about how a peer reacts to a fault of the other peer.",
)


def too_large_channel_max_answered(case: Case091) -> None:
    """A server answers a connection.tune-ok whose channel-max is above the server's limit, instead of
    dropping the connection.

    Demands: A server must drop the connection without connection.close if the client's channel-max is above
    the server's limit.
    Source: XML:connection.tune-ok.channel-max.upper-limit
    Evidence: a connection.tune-ok whose channel-max is too high, and what the server sends afterwards
    Why it matters: The fault has little effect: RabbitMQ and LavinMQ close with reply-code 530
    (not-allowed), which gives the client the reason.
    Silent when: connection.tune or connection.tune-ok was not captured. The rule reports the fault only once
    per connection.
    How to mend it: Compare channel-max of connection.tune-ok with the limit in connection.tune. If
    channel-max is above the limit, drop the connection without sending anything, and never send
    connection.open-ok.
    """
    case.report_once(
        C_TUNEOK_CHMAX_REACT,
        f"the server sends {case.name} although the client's channel-max is above the server's limit; the "
        "server must close the socket without a method instead",
        CERTAIN,
        {"channel_max": int(case.view.agreed.channel_max), "limit": int(case.view.proposed.channel_max)},
    )


# Which methods these rules judge


def judge_close(case: Case091, method: ConnectionClose) -> None:
    """A connection.close before the connection is open."""
    me = case.me
    view = case.view
    if not me.whole or view.state == OPEN or (me.by_client and view.state == OPENING):
        return
    code = method.reply_code
    if me.by_client:
        asked = view.asked_version()
        if view.state == STARTED and asked is not None and view.version != asked:
            close_for_the_version(case)
        else:
            close_before_open(case)
        return
    state = view.state
    if state in (ANSWERED, CHALLENGED):
        client = view.client
        if _wrong_mechanism(view):
            wrong_mechanism_answered(case)
        elif code == _ACCESS_REFUSED and client is not None and client.lacks("authentication_failure_close"):
            login_refused_unasked(case)
        else:
            close_before_open(case)
    elif state in (AGREED, OPENING) and _frame_max_too_large(view):
        too_large_frame_max_answered(case)
    elif state in (AGREED, OPENING) and _channel_max_too_large(view):
        too_large_channel_max_answered(case)
    else:
        close_before_open(case)
        text = (method.reply_text or "").lower()
        if state == OPENING and view.opening.virtual_host:
            if code in _NO_SUCH_PATH or (code == _NOT_ALLOWED and "not found" in text):
                virtual_host_unknown(case, code)


def judge_answer(case: Case091, method: Method) -> None:
    """The server continues the set-up by secure, tune or open-ok."""
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

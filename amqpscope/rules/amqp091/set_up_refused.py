"""A set-up that cannot succeed: what is said where the specification wants the socket closed without a word.

Before a connection is open there is no close (section 2.2.4). All brokers say one nevertheless, which tells
more than silence does; and some go on where they should have hung up.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.records import FrameRef
from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.introduction import listed
from amqpscope.tracking.amqp091.conversation import Conversation
from amqpscope.tracking.amqp091.names import UNREADABLE
from amqpscope.tracking.amqp091.states import STILL_DUE
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import ConnectionClose, ConnectionOpenOk
from dissectors.wire import i64

__all__ = ["RULES", "judge_answer", "judge_close"]

_ACCESS_REFUSED: Final = 403
_NOT_ALLOWED: Final = 530
_NO_SUCH_PATH: Final = (402, 404)


# A close


def close_before_open(case: Case) -> None:
    """A connection.close before the connection is open.

    Why it matters: the specification wants the socket closed without a word then. All brokers say more, which
    is more useful.
    Silent when: octets of either peer were not captured.
    """
    case.report(
        "amqp091/C-HS-ERROR-SILENT",
        f"close while the connection is being set up: {STILL_DUE[case.view.state]}",
        evidence={"connection_state": case.view.state},
    )


def login_refused_unasked(case: Case) -> None:
    """The server reports a failed login by a close with 403 to a client that does not know of that.

    Why it matters: such a client waits for tune, or takes the close for something else.
    Silent when: the client says that it knows (capability authentication_failure_close), or its start-ok
    was not captured.
    """
    case.report(
        "amqp091/C-AUTHFAIL-CAP",
        "close with 403 for a login, and the client has no capability authentication_failure_close",
    )


def close_for_the_version(case: Case) -> None:
    """A client that is offered another version than it asked for says so, instead of hanging up.

    Why it matters: a server of another version need not understand the close.
    Silent when: the versions are the same.
    Only possible because: It may close for something else.
    """
    case.report(
        "amqp091/C-START-CLIENT-SUPPORT",
        "close in answer to start of a version that the client did not ask for, instead of the end",
        POSSIBLE,
    )


def virtual_host_unknown(case: Case, code: i64) -> None:
    """The client opens a virtual host that does not exist.

    Why it matters: it is refused, and nothing can be done on the connection.
    Silent when: the server does not say so, or the name is empty, which is told of by itself.
    Only possible because: Only its close tells.
    """
    view = case.view
    record = case.record
    closing = int(record.packet)
    before = case.spot
    case.spot = FrameRef(
        1 - record.direction, view.open_packet, view.open_time, view.open_end, "connection.open", 0
    )
    case.report(
        "amqp091/C-OPEN-VHOST-EXISTS",
        f"the server refuses the virtual host with {code} (packet {closing})",
        POSSIBLE,
        {"reply_code": int(code)},
        [closing],
    )
    case.spot = before


# What has to be answered by hanging up


def wrong_mechanism_answered(case: Case) -> None:
    """The server answers a mechanism that it did not offer, instead of hanging up.

    Why it matters: little: a close with the reason is more useful than silence.
    Silent when: start or start-ok was not captured. Told once.
    """
    case.report_once(
        "amqp091/C-STARTOK-MECH-REACT",
        f"{case.name} in answer to a security mechanism that was not offered",
        CERTAIN,
        {"offered": listed(case.view.mechanisms)},
    )


def too_large_frame_max_answered(case: Case) -> None:
    """The server answers a frame-max above its limit, instead of dropping the connection.

    Why it matters: little: RabbitMQ and LavinMQ close with 530, which tells why.
    Silent when: tune or tune-ok was not captured. Told once.
    """
    case.report_once(
        "amqp091/C-TUNEOK-FRAMEMAX-REACT",
        f"{case.name} in answer to a frame-max above the limit",
        CERTAIN,
        {"frame_max": int(case.view.frame_max), "limit": int(case.view.tune_frame_max)},
    )


def too_large_channel_max_answered(case: Case) -> None:
    """The server answers a channel-max above its limit, instead of dropping the connection.

    Why it matters: little: RabbitMQ and LavinMQ close with 530, which tells why.
    Silent when: tune or tune-ok was not captured. Told once.
    """
    case.report_once(
        "amqp091/C-TUNEOK-CHMAX-REACT",
        f"{case.name} in answer to a channel-max above the limit",
        CERTAIN,
        {"channel_max": int(case.view.channel_max), "limit": int(case.view.tune_channel_max)},
    )


# Who is brought before them


def judge_close(case: Case, method: ConnectionClose) -> None:
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
        if state == "OPENING" and view.vhost:
            if code in _NO_SUCH_PATH or (code == _NOT_ALLOWED and "not found" in text):
                virtual_host_unknown(case, code)


def judge_answer(case: Case, method: Method) -> None:
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


def _wrong_mechanism(view: Conversation) -> bool:
    if view.client is None or not any(view.mechanisms) or view.mechanism == UNREADABLE:
        return False
    return view.mechanism not in view.mechanisms


def _frame_max_too_large(view: Conversation) -> bool:
    return 0 < view.tune_frame_max < view.frame_max


def _channel_max_too_large(view: Conversation) -> bool:
    return 0 < view.tune_channel_max < view.channel_max


RULES = {
    "amqp091/C-START-CLIENT-SUPPORT": close_for_the_version,
    "amqp091/C-STARTOK-MECH-REACT": wrong_mechanism_answered,
    "amqp091/C-HS-ERROR-SILENT": close_before_open,
    "amqp091/C-AUTHFAIL-CAP": login_refused_unasked,
    "amqp091/C-TUNEOK-FRAMEMAX-REACT": too_large_frame_max_answered,
    "amqp091/C-TUNEOK-CHMAX-REACT": too_large_channel_max_answered,
    "amqp091/C-OPEN-VHOST-EXISTS": virtual_host_unknown,
}

"""How a connection is set up: start, secure, tune, open, in this order (section 2.2.4, class connection).

The order stands in the table `states.CONNECTION`, of which each peer knows its own steps at once and the
other's as far as it had acknowledged them: what has no cell there was said too early, or twice.
"""

from typing import Final

from amqpscope.model import Spot
from amqpscope.rules.amqp091.case import Case
from amqpscope.tracking.amqp091.conversation import Conversation, PeerProperties
from amqpscope.tracking.amqp091.endpoint import obscure
from amqpscope.tracking.amqp091.states import CONNECTION
from amqpscope.tracking.knowledge import CERTAIN, POSSIBLE
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    ConnectionClose,
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionSecure,
    ConnectionSecureOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
    ConnectionUpdateSecret,
)
from dissectors.wire import i64

__all__ = ["RULES", "channel_too_early", "judge_close", "judge_first", "judge_set_up", "judge_update_secret"]

_FRAME_MIN: Final = 4096

# What the two tell of themselves, by the specification's lists.
_SERVER_PROPERTIES: Final = ["host", "product", "version", "platform", "copyright", "information"]
_CLIENT_PROPERTIES: Final = ["product", "version", "platform", "copyright", "information"]

# Mechanisms of SASL that show the password, or nothing at all; and such that do not.
_WEAK: Final = ("PLAIN", "AMQPLAIN", "ANONYMOUS")
_STRONG: Final = ("SCRAM-", "GSSAPI", "GS2-", "CRAM-MD5", "DIGEST-MD5")

# Mechanisms that always begin with the client's word, and such that need not.
_SPEAKS_FIRST: Final = ("PLAIN", "AMQPLAIN")
_MAY_BE_EMPTY: Final = ("EXTERNAL", "ANONYMOUS", "GSSAPI", "CRAM-MD5", "DIGEST-MD5")

_ACCESS_REFUSED: Final = 403
_NOT_ALLOWED: Final = 530
_NO_SUCH_PATH: Final = (402, 404)


# Noted once one of the two is out of order: from then on nobody can say whose turn it is.
_OUT_OF_STEP: Final = ("", "out of step")


# The server's first words


def start_not_first(case: Case) -> None:
    """The server's first frame is not connection.start.

    Why it matters: the client cannot know which version and mechanisms it may use; most hang up.
    Silent when: octets of either peer were not captured.
    """
    case.report("amqp091/C-START-FIRST", f"the server's first frame is {case.name}, not connection.start")


def start_of_a_higher_version(case: Case, method: ConnectionStart) -> None:
    """The server's start is of a higher version than the one that the client asked for.

    Why it matters: the client cannot be expected to know it; a server answers with its header and hangs up.
    Silent when: the client's protocol header was not captured, or is not that of AMQP 0-9-1.
    """
    if not (0 <= method.version_major <= 99 and 0 <= method.version_minor <= 99):
        start_version_out_of_range(case, method)
        return
    asked = _asked_version(case.view)
    offered = (int(method.version_major), int(method.version_minor))
    if asked is not None and offered > asked:
        case.report(
            "amqp091/C-START-VERSION",
            f"start is of version {offered[0]}-{offered[1]}, the client asked for {asked[0]}-{asked[1]}",
            evidence={"offered": f"{offered[0]}-{offered[1]}", "asked": f"{asked[0]}-{asked[1]}"},
        )


def start_version_out_of_range(case: Case, method: ConnectionStart) -> None:
    """A version number in start is above 99.

    Why it matters: no version of AMQP has it; the client talks to something else.
    Silent when: start does not decode.
    """
    if method.version_major < 0 or method.version_minor < 0:
        return
    case.report(
        "amqp091/C-START-VERSION-RANGE",
        f"start is of version {method.version_major}-{method.version_minor}, above 99",
        evidence={"version_major": int(method.version_major), "version_minor": int(method.version_minor)},
    )


def server_properties_missing(case: Case, properties: PeerProperties) -> None:
    """The server's properties leave out some of host, product, version, platform, copyright, information.

    Why it matters: who looks for the cause of a fault learns less. RabbitMQ leaves out its host on purpose.
    Silent when: start does not decode.
    """
    _properties_missing(case, "amqp091/C-START-SERVER-PROPS", _SERVER_PROPERTIES, properties)


def no_mechanism_offered(case: Case) -> None:
    """Start offers no security mechanism.

    Why it matters: the client has none to choose, and cannot log in.
    Silent when: start does not decode.
    """
    case.report("amqp091/C-START-MECH-NOTNULL", "start offers no security mechanism")


def no_locale_offered(case: Case) -> None:
    """Start offers no locale.

    Why it matters: the client has to name one of them.
    Silent when: start does not decode.
    """
    case.report("amqp091/C-START-LOCALES-NOTNULL", "start offers no locale")


def locale_en_us_not_offered(case: Case) -> None:
    """The locales of start leave out en_US.

    Why it matters: it is the one that every client can rely on.
    Silent when: start offers no locale at all, which is a fault of its own.
    """
    case.report("amqp091/C-START-LOCALE-EN-US", "the locales offered leave out en_US")


def odd_capabilities(case: Case, properties: PeerProperties) -> None:
    """The capabilities that a peer tells of are not a table of booleans.

    Why it matters: RabbitMQ takes a capability that is not true, of type 't', for one that is not there.
    Silent when: the properties do not decode.
    """
    case.report("amqp091/C-CAP-TABLE", properties.odd_capabilities)


# What the client makes of them


def client_properties_missing(case: Case, properties: PeerProperties) -> None:
    """The client's properties leave out some of product, version, platform, copyright, information.

    Why it matters: who looks for the cause of a fault in the server's list of connections learns less.
    Silent when: start-ok does not decode.
    """
    _properties_missing(case, "amqp091/C-STARTOK-CLIENT-PROPS", _CLIENT_PROPERTIES, properties)


def mechanism_not_offered(case: Case, mechanism: str) -> None:
    """The client picks a security mechanism that the server did not offer.

    Why it matters: the server cannot check who it is, and hangs up.
    Silent when: start was not captured, or offers none.
    """
    case.report(
        "amqp091/C-STARTOK-MECH-OFFERED",
        "start-ok names no security mechanism"
        if not mechanism
        else "start-ok names a security mechanism that start does not offer",
        evidence={"offered": _few(case.view.mechanisms)},
    )


def weaker_mechanism_than_offered(case: Case, mechanism: str, better: str) -> None:
    """The client picks a mechanism that shows its password, although the server offers one that does not.

    Why it matters: whoever can read the connection learns the password.
    Silent when: start was not captured. Never more than possible: whether the client knows the stronger
    one no capture tells, and under TLS it need not matter.
    """
    case.report(
        "amqp091/C-STARTOK-MECH-BEST",
        f"the client picks {mechanism}, although the server offers {better[:40]}",
        POSSIBLE,
        {"offered": _few(case.view.mechanisms)},
    )


def empty_response(case: Case, certainty: i64) -> None:
    """Start-ok has no response of the security mechanism.

    Why it matters: there is nothing by which the server could know who the client is.
    Silent when: the mechanism needs no response at first, as EXTERNAL. Possible for mechanisms that are not
    known here.
    """
    case.report("amqp091/C-STARTOK-RESPONSE-NOTNULL", "the response in start-ok is empty", certainty)


def locale_not_offered(case: Case) -> None:
    """The client picks a locale that the server did not offer.

    Why it matters: the server may refuse it, or answer in another language. RabbitMQ ignores the field.
    Silent when: start was not captured, or offers none.
    """
    case.report(
        "amqp091/C-STARTOK-LOCALE-OFFERED",
        "start-ok names a locale that start does not offer",
        evidence={"offered": _few(case.view.locales)},
    )


def empty_answer_to_a_challenge(case: Case) -> None:
    """The client's answer to the first challenge is empty.

    Why it matters: the server has asked for something and is told nothing.
    Silent when: it is not the first challenge: some mechanisms end with an empty answer; or the mechanism
    is GSSAPI, where the first may be the last.
    """
    case.report("amqp091/C-SECUREOK-RESPONSE-NOTNULL", "the response in secure-ok is empty")


# What is agreed


def offered_frame_max_too_small(case: Case, frame_max: i64) -> None:
    """The server's tune limits frames to less than 4096 octets.

    Why it matters: every peer must take frames of 4096 octets; the client cannot work with less.
    Silent when: tune does not decode.
    """
    case.report(
        "amqp091/C-TUNE-FRAMEMAX-MIN",
        f"frame-max {frame_max} is below {_FRAME_MIN}",
        evidence={"frame_max": int(frame_max)},
    )


def chosen_frame_max_too_small(case: Case, frame_max: i64) -> None:
    """The client's tune-ok limits frames to less than 4096 octets.

    Why it matters: every peer must take frames of 4096 octets; servers hang up.
    Silent when: tune-ok does not decode.
    """
    case.report(
        "amqp091/C-TUNEOK-FRAMEMAX-MIN",
        f"frame-max {frame_max} is below {_FRAME_MIN}",
        evidence={"frame_max": int(frame_max)},
    )


def chosen_frame_max_too_large(case: Case, frame_max: i64, limit: i64) -> None:
    """The client's frame-max is above the limit that the server has set.

    Why it matters: the client may send frames that the server does not take; it hangs up at once.
    Silent when: tune was not captured, or sets no limit. Possible when the client says 0, which some read as
    no limit of its own, and the server is neither RabbitMQ nor LavinMQ, which refuse that.
    """
    certainty = CERTAIN if frame_max > 0 or case.view.rabbitmq else POSSIBLE
    said = str(frame_max) if frame_max > 0 else "0 (no limit)"
    case.report(
        "amqp091/C-TUNEOK-FRAMEMAX-LE",
        f"frame-max {said} is above the server's {limit}",
        certainty,
        {"frame_max": int(frame_max), "limit": int(limit)},
    )


def chosen_channel_max_too_large(case: Case, channel_max: i64, limit: i64) -> None:
    """The client's channel-max is above the limit that the server has set.

    Why it matters: the client may open channels that the server does not grant; it hangs up at once.
    Silent when: tune was not captured, or sets no limit. Possible when the client says 0, which some read as
    no limit of its own, and the server is neither RabbitMQ nor LavinMQ, which refuse that.
    """
    certainty = CERTAIN if channel_max > 0 or case.view.rabbitmq else POSSIBLE
    said = str(channel_max) if channel_max > 0 else "0 (no limit)"
    case.report(
        "amqp091/C-TUNEOK-CHMAX-LE",
        f"channel-max {said} is above the server's {limit}",
        certainty,
        {"channel_max": int(channel_max), "limit": int(limit)},
    )


def no_channel_max(case: Case) -> None:
    """The client leaves channel-max at 0, as the server did.

    Why it matters: the specification wants a value; most take 0 for as many as there are numbers.
    Silent when: the server has set a limit: then 0 is above it. Never more than possible: whether 0 is no
    value the specification does not say.
    """
    case.report("amqp091/C-TUNEOK-CHMAX-NOTNULL", "channel-max is 0", POSSIBLE)


# The order


def server_out_of_order(case: Case, name: str) -> None:
    """The server says a method of the set-up before it is its turn, or twice.

    Why it matters: the client is not where the server takes it to be; what was to be agreed is not.
    Silent when: octets of either peer were not captured, or one of the two was out of order before.
    """
    case.report(
        "amqp091/C-HS-ORDER-SERVER",
        f"{name} out of order: {_so_far(case.view.state)}",
        evidence={"connection_state": case.view.state},
    )


def client_out_of_order(case: Case, name: str) -> None:
    """The client says a method of the set-up before it is its turn, or twice.

    Why it matters: the server cannot go on; most drop the connection without a word.
    Silent when: octets of either peer were not captured, or one of the two was out of order before. Tune-ok
    and open may be said together.
    """
    case.report(
        "amqp091/C-HS-ORDER-CLIENT",
        f"{name} out of order: {_so_far(case.view.state)}",
        evidence={"connection_state": case.view.state},
    )


def set_up_again(case: Case, name: str) -> None:
    """A method of the set-up is said when the connection is open already.

    Why it matters: what was agreed holds till the end; the virtual host cannot be changed.
    Silent when: octets of either peer were not captured.
    """
    case.report(
        "amqp091/C-HS-ONCE", f"{name} on a connection that is open", evidence={"connection_state": "OPEN"}
    )


def channel_too_early(case: Case) -> None:
    """A frame on a channel before the connection is open: for the client before its open, for the server
    before its open-ok.

    Why it matters: there are no channels yet; the other peer drops the connection.
    Silent when: octets of either peer were not captured, or the set-up was out of order before. Told once.
    """
    view = case.view
    if not case.me.whole or _OUT_OF_STEP in case.told or (view.state == "OPENING" and case.me.by_client):
        return
    before = "connection.open" if case.me.by_client else "connection.open-ok"
    case.report_once(
        "amqp091/C-HS-NO-CHANNEL",
        f"{case.name} on channel {case.record.frame.channel} before {before}",
        CERTAIN,
        {"connection_state": view.state},
    )


# What is said instead of hanging up


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


def close_before_open(case: Case) -> None:
    """A connection.close before the connection is open.

    Why it matters: the specification wants the socket closed without a word then. All brokers say more, which
    is more useful.
    Silent when: octets of either peer were not captured.
    """
    case.report(
        "amqp091/C-HS-ERROR-SILENT",
        f"close while the connection is being set up: {_so_far(case.view.state)}",
        evidence={"connection_state": case.view.state},
    )


def close_for_the_version(case: Case) -> None:
    """A client that is offered another version than it asked for says so, instead of hanging up.

    Why it matters: a server of another version need not understand the close.
    Silent when: the versions are the same. Never more than possible: it may close for something else.
    """
    case.report(
        "amqp091/C-START-CLIENT-SUPPORT",
        "close in answer to start of a version that the client did not ask for, instead of the end",
        POSSIBLE,
    )


def wrong_mechanism_answered(case: Case) -> None:
    """The server answers a mechanism that it did not offer, instead of hanging up.

    Why it matters: little: a close with the reason is more useful than silence.
    Silent when: start or start-ok was not captured. Told once.
    """
    case.report_once(
        "amqp091/C-STARTOK-MECH-REACT",
        f"{case.name} in answer to a security mechanism that was not offered",
        CERTAIN,
        {"offered": _few(case.view.mechanisms)},
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


def virtual_host_unknown(case: Case, code: i64) -> None:
    """The client opens a virtual host that does not exist.

    Why it matters: it is refused, and nothing can be done on the connection.
    Silent when: the server does not say so, or the name is empty, which is told of by itself. Never more
    than possible: only its close tells.
    """
    view = case.view
    record = case.record
    closing = int(record.packet)
    before = case.spot
    case.spot = Spot(
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


# Secrets


def secret_at_the_wrong_time(case: Case, why: str) -> None:
    """The client updates its secret before the connection is open, or again before the answer.

    Why it matters: the server drops the connection, or which secret holds is not known.
    Silent when: octets of either peer were not captured.
    """
    case.report("amqp091/C-UPDATE-SECRET", f"update-secret {why}")


# Who is brought before them


def judge_first(case: Case) -> bool:
    """The server's first frame. False: it is not what it has to be."""
    me = case.me
    if me.by_client or me.frames > 0 or not me.whole or case.view.state not in ("START", "HEADED"):
        return True
    frame = case.record.frame
    if isinstance(frame.body, ConnectionStart) or (frame.problems and obscure(frame)):
        return True
    start_not_first(case)
    case.told.add(_OUT_OF_STEP)
    return False


def judge_set_up(case: Case, method: Method) -> bool:
    """A method on channel 0 that may be one of the set-up. False: it is, and out of order."""
    me = case.me
    by_client = me.by_client
    if isinstance(method, (ConnectionStart, ConnectionSecure, ConnectionTune, ConnectionOpenOk)):
        if by_client:
            return True
    elif isinstance(method, (ConnectionStartOk, ConnectionSecureOk, ConnectionTuneOk, ConnectionOpen)):
        if not by_client:
            return True
    else:
        return True
    view = case.view
    if me.whole:
        name = method.definition().name
        step = ("C:" if by_client else "S:") + name[len("connection.") :]
        if (view.state, step) not in CONNECTION:
            if view.state == "OPEN":
                set_up_again(case, name)
            elif _OUT_OF_STEP not in case.told:
                case.told.add(_OUT_OF_STEP)
                if by_client:
                    client_out_of_order(case, name)
                else:
                    server_out_of_order(case, name)
            return False
    if isinstance(method, ConnectionStart):
        _judge_start(case, method)
    elif isinstance(method, ConnectionStartOk):
        _judge_start_ok(case, method)
    elif isinstance(method, ConnectionSecureOk):
        if method.response == b"" and me.whole and view.challenges == 1 and view.mechanism != "GSSAPI":
            empty_answer_to_a_challenge(case)
    elif isinstance(method, ConnectionTune):
        if 0 < method.frame_max < _FRAME_MIN:
            offered_frame_max_too_small(case, method.frame_max)
        if me.whole and _wrong_mechanism(view):
            wrong_mechanism_answered(case)
    elif isinstance(method, ConnectionTuneOk):
        _judge_tune_ok(case, method)
    elif isinstance(method, ConnectionSecure):
        if me.whole and _wrong_mechanism(view):
            wrong_mechanism_answered(case)
    elif isinstance(method, ConnectionOpenOk):
        if me.whole:
            if _frame_max_too_large(view):
                too_large_frame_max_answered(case)
            if _channel_max_too_large(view):
                too_large_channel_max_answered(case)
    return True


def judge_close(case: Case, method: ConnectionClose) -> None:
    """A close, if the connection is not open yet."""
    me = case.me
    view = case.view
    if not me.whole or view.state == "OPEN" or (me.by_client and view.state == "OPENING"):
        return
    code = method.reply_code
    if me.by_client:
        asked = _asked_version(view)
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
        elif (
            code == _ACCESS_REFUSED
            and client is not None
            and "authentication_failure_close" not in client.capabilities
        ):
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


def judge_update_secret(case: Case, method: ConnectionUpdateSecret) -> None:
    """update-secret: on a connection that is open, one at a time."""
    me = case.me
    if not me.by_client or not me.whole:
        return
    view = case.view
    if view.state != "OPEN" and view.state != "OPENING":
        secret_at_the_wrong_time(case, "before the connection is open")
    elif view.channels[0].awaited(False, "connection.update-secret-ok") >= 0:
        secret_at_the_wrong_time(case, "before the last one is answered")


def _judge_start(case: Case, method: ConnectionStart) -> None:
    start_of_a_higher_version(case, method)
    properties = PeerProperties(method.server_properties)
    if case.found == 0 or not case.record.frame.problems:
        if method.mechanisms == b"":
            no_mechanism_offered(case)
        if method.locales == b"":
            no_locale_offered(case)
        elif method.locales is not None and b"en_US" not in method.locales.split(b" "):
            locale_en_us_not_offered(case)
        if method.server_properties is not None:
            if properties.odd_capabilities:
                odd_capabilities(case, properties)
            server_properties_missing(case, properties)


def _judge_start_ok(case: Case, method: ConnectionStartOk) -> None:
    view = case.view
    mechanism = method.mechanism
    if view.server is not None and mechanism is not None and any(view.mechanisms):
        if mechanism not in view.mechanisms:
            mechanism_not_offered(case, mechanism)
        elif mechanism in _WEAK:
            for better in view.mechanisms:
                if better.startswith(_STRONG):
                    weaker_mechanism_than_offered(case, mechanism, better)
                    break
    if method.response == b"" and mechanism and mechanism not in _MAY_BE_EMPTY:
        empty_response(case, CERTAIN if mechanism in _SPEAKS_FIRST else POSSIBLE)
    if view.server is not None and method.locale is not None and any(view.locales):
        if method.locale not in view.locales:
            locale_not_offered(case)
    if method.client_properties is not None:
        properties = PeerProperties(method.client_properties)
        if properties.odd_capabilities:
            odd_capabilities(case, properties)
        client_properties_missing(case, properties)


def _judge_tune_ok(case: Case, method: ConnectionTuneOk) -> None:
    view = case.view
    limit = view.tune_frame_max
    if 0 < method.frame_max < _FRAME_MIN:
        chosen_frame_max_too_small(case, method.frame_max)
    elif limit > 0 and method.frame_max >= 0 and (method.frame_max == 0 or method.frame_max > limit):
        chosen_frame_max_too_large(case, method.frame_max, limit)
    limit = view.tune_channel_max
    if limit > 0 and method.channel_max >= 0 and (method.channel_max == 0 or method.channel_max > limit):
        chosen_channel_max_too_large(case, method.channel_max, limit)
    elif limit == 0 and method.channel_max == 0:
        no_channel_max(case)


def _asked_version(view: Conversation) -> tuple[int, int] | None:
    """The version of the client's last header, None if it was of another protocol or not captured."""
    for by_client, protocol, major, minor, _ in reversed(view.headers):
        if by_client:
            return (major, minor) if protocol == 0 else None
    return None


def _wrong_mechanism(view: Conversation) -> bool:
    return view.client is not None and any(view.mechanisms) and view.mechanism not in view.mechanisms


def _frame_max_too_large(view: Conversation) -> bool:
    return 0 < view.tune_frame_max < view.frame_max


def _channel_max_too_large(view: Conversation) -> bool:
    return 0 < view.tune_channel_max < view.channel_max


def _properties_missing(case: Case, rule: str, wanted: list[str], properties: PeerProperties) -> None:
    missing = [name for name in wanted if name not in properties.names]
    if missing and not properties.more:
        case.report(rule, f"the properties leave out {', '.join(missing)}", evidence={"missing": missing})


def _few(words: list[str]) -> str:
    return " ".join(words)[:200]


_SO_FAR: Final[dict[str, str]] = {
    "START": "no protocol header yet",
    "HEADED": "start has not come yet",
    "STARTED": "start is not answered yet",
    "ANSWERED": "tune has not come yet",
    "CHALLENGED": "a challenge is not answered yet",
    "TUNED": "tune is not answered yet",
    "AGREED": "open has not come yet",
    "OPENING": "open is not answered yet",
    "OPEN": "it is open",
}


def _so_far(state: str) -> str:
    """What is still to come in a state, for a message."""
    return _SO_FAR.get(state, state)


RULES = {
    "amqp091/C-START-FIRST": start_not_first,
    "amqp091/C-START-VERSION": start_of_a_higher_version,
    "amqp091/C-START-VERSION-RANGE": start_version_out_of_range,
    "amqp091/C-START-CLIENT-SUPPORT": close_for_the_version,
    "amqp091/C-START-SERVER-PROPS": server_properties_missing,
    "amqp091/C-START-MECH-NOTNULL": no_mechanism_offered,
    "amqp091/C-START-LOCALES-NOTNULL": no_locale_offered,
    "amqp091/C-START-LOCALE-EN-US": locale_en_us_not_offered,
    "amqp091/C-STARTOK-CLIENT-PROPS": client_properties_missing,
    "amqp091/C-STARTOK-MECH-OFFERED": mechanism_not_offered,
    "amqp091/C-STARTOK-MECH-REACT": wrong_mechanism_answered,
    "amqp091/C-STARTOK-MECH-BEST": weaker_mechanism_than_offered,
    "amqp091/C-STARTOK-RESPONSE-NOTNULL": empty_response,
    "amqp091/C-STARTOK-LOCALE-OFFERED": locale_not_offered,
    "amqp091/C-SECUREOK-RESPONSE-NOTNULL": empty_answer_to_a_challenge,
    "amqp091/C-HS-ORDER-SERVER": server_out_of_order,
    "amqp091/C-HS-ORDER-CLIENT": client_out_of_order,
    "amqp091/C-HS-ONCE": set_up_again,
    "amqp091/C-HS-NO-CHANNEL": channel_too_early,
    "amqp091/C-HS-ERROR-SILENT": close_before_open,
    "amqp091/C-AUTHFAIL-CAP": login_refused_unasked,
    "amqp091/C-TUNE-FRAMEMAX-MIN": offered_frame_max_too_small,
    "amqp091/C-TUNEOK-FRAMEMAX-MIN": chosen_frame_max_too_small,
    "amqp091/C-TUNEOK-FRAMEMAX-LE": chosen_frame_max_too_large,
    "amqp091/C-TUNEOK-FRAMEMAX-REACT": too_large_frame_max_answered,
    "amqp091/C-TUNEOK-CHMAX-LE": chosen_channel_max_too_large,
    "amqp091/C-TUNEOK-CHMAX-NOTNULL": no_channel_max,
    "amqp091/C-TUNEOK-CHMAX-REACT": too_large_channel_max_answered,
    "amqp091/C-OPEN-VHOST-EXISTS": virtual_host_unknown,
    "amqp091/C-UPDATE-SECRET": secret_at_the_wrong_time,
    "amqp091/C-CAP-TABLE": odd_capabilities,
}

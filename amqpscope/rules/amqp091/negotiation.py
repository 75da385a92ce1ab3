"""The order of the connection set-up: start, secure, tune, open (section 2.2.4, class connection).

The table `states.CONNECTION` has the order. Each peer knows its own steps at once, and the steps of the other
peer as far as it had acknowledged them. A method without a cell in the table was sent too early, or twice.
Methods in the right order are passed on to the rules about them.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.amqp091.introduction import judge_secure_ok, judge_start, judge_start_ok
from amqpscope.rules.amqp091.set_up_refused import judge_answer
from amqpscope.rules.amqp091.tuning import judge_tune, judge_tune_ok
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.endpoint import unreadable
from amqpscope.tracking.amqp091.states import CONNECTION, HEADED, OPEN, OPENING, START, STILL_DUE, UNREQUESTED
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    ConnectionOpen,
    ConnectionOpenOk,
    ConnectionSecure,
    ConnectionSecureOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
)

__all__ = ["RULES", "channel_too_early", "judge_first", "judge_set_up", "judge_update_secret"]

RULES: Final = Rules("amqp091/negotiation")


# Noted once one of the two peers is out of order: from then on nobody can say whose turn it is.
_OUT_OF_STEP: Final = ("", "out of step")


C_START_FIRST: Final = RULES.rule(
    "C-START-FIRST",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def start_not_first(case: Case091) -> None:
    """The first frame of a server is not connection.start.

    Demands: After accepting the client's protocol header, a server must send connection.start before any
    other frame.
    Source: G:connection; GS:2.2.4
    Evidence: the first frame of the server
    Why it matters: The client cannot know which version and mechanisms are available. Most clients close the
    socket.
    Silent when: the capture lacks octets of either peer.
    How to mend it: Send connection.start as the first frame after accepting the client's protocol header. If
    a proxy stands between the peers, check that it does not insert or drop frames.
    """
    case.report(C_START_FIRST, f"the server's first frame is {case.name}, not connection.start")


C_HS_ORDER_SERVER: Final = RULES.rule(
    "C-HS-ORDER-SERVER",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def server_out_of_order(case: Case091, name: str) -> None:
    """A server sends a method of the connection set-up too early or twice.

    Demands: During the connection set-up, a server must send these methods in this order: connection.start;
    connection.secure as often as needed, or not at all; connection.tune; connection.open-ok. Each method
    after connection.start must answer the previous method of the client.
    Source: G:connection open-connection; GS:2.2.4
    Evidence: the order of the methods in the connection set-up
    Why it matters: Client and server disagree about the state of the set-up, and have not agreed on the
    values that a set-up method negotiates.
    Silent when: the capture lacks octets of either peer. The rule is also silent when one of the two peers
    had already sent a set-up method out of order.
    How to mend it: Use a state machine for the connection set-up. The order is connection.start;
    connection.secure as often as needed, or not at all; connection.tune; connection.open-ok. Send
    connection.start, connection.tune and connection.open-ok once each, and send every method only in answer
    to the client's previous method.
    """
    case.report(
        C_HS_ORDER_SERVER,
        f"the peer sends {name} out of order: {STILL_DUE[case.view.state]}",
        evidence={"connection_state": case.view.state},
    )


C_HS_ORDER_CLIENT: Final = RULES.rule(
    "C-HS-ORDER-CLIENT",
    "IMPLIED",
    "tier A",
    by="client",
    answer="connection.close 503 or to close the socket",
)


def client_out_of_order(case: Case091, name: str) -> None:
    """A client sends a method of the connection set-up too early or twice.

    Demands: During the connection set-up, a client must send these methods in this order:
    connection.start-ok; one connection.secure-ok for each connection.secure; connection.tune-ok;
    connection.open.
    Source: G:connection open-connection; GS:2.2.4
    Evidence: the order of the methods in the connection set-up
    Why it matters: The server cannot continue the connection set-up. Most servers drop the connection without
    sending connection.close.
    Silent when: the capture lacks octets of either peer. The rule is also silent when one of the two peers
    had already sent a set-up method out of order. A client may send connection.open directly after
    connection.tune-ok.
    How to mend it: Use a state machine for the connection set-up. Wait for connection.start before sending
    connection.start-ok, and answer each connection.secure with one connection.secure-ok. Wait for
    connection.tune before sending connection.tune-ok, and then send connection.open once.
    """
    case.report(
        C_HS_ORDER_CLIENT,
        f"the peer sends {name} out of order: {STILL_DUE[case.view.state]}",
        evidence={"connection_state": case.view.state},
    )


C_HS_ONCE: Final = RULES.rule("C-HS-ONCE", "IMPLIED", "tier A", answer="connection.close 503")


def set_up_again(case: Case091, name: str) -> None:
    """A peer sends a method of the connection set-up on a connection that is already open.

    Demands: A peer must not repeat methods of the connection set-up on an open connection, for example to
    change the virtual host.
    Source: G:connection; GS:3.1.2
    Evidence: the state of the connection (open or not)
    Why it matters: The negotiated values and the virtual host cannot change until the connection ends. The
    receiver closes the connection with reply-code 503 (command-invalid).
    Silent when: the capture lacks octets of either peer.
    How to mend it: Send set-up methods only before connection.open-ok. To use another virtual host or other
    tuning values, close the connection and open a new one.
    """
    case.report(
        C_HS_ONCE,
        f"the peer sends {name} on a connection that is already open",
        evidence={"connection_state": OPEN},
    )


C_HS_NO_CHANNEL: Final = RULES.rule(
    "C-HS-NO-CHANNEL", "IMPLIED", "tier A", answer="connection.close 503 or connection.close 505"
)


def channel_too_early(case: Case091) -> bool:
    """A peer sends a frame on a channel before the connection is open: a client before connection.open, a
    server before connection.open-ok.

    Demands: A client must send connection.open before its first frame on a channel other than 0. A server
    must send connection.open-ok before its first frame on a channel other than 0.
    Source: G:connection use-connection; GS:2.3.7
    Evidence: the peer's connection.open or connection.open-ok, and the peer's frames on channels other than 0
    Why it matters: No channels exist yet, and the other peer drops the connection.
    Silent when: the capture lacks octets of either peer, or when a set-up method was already sent out of
    order. A client that sends no connection.open at all is reported even if the server has sent
    connection.open-ok. The rule reports the fault only once per connection.
    How to mend it: As a client, send frames on channels other than 0 only after connection.open. As a server,
    send frames on channels other than 0 only after connection.open-ok. Do not hand the connection to
    application threads before the set-up is complete.
    """
    view = case.view
    if not case.me.whole:
        return False
    if view.state == UNREQUESTED:
        if not case.me.by_client:
            return False
    elif _OUT_OF_STEP in case.reported or (view.state == OPENING and case.me.by_client):
        return False
    before = "connection.open" if case.me.by_client else "connection.open-ok"
    found = case.found
    case.report_once(
        C_HS_NO_CHANNEL,
        f"the peer sends {case.name} on channel {case.record.frame.channel} before {before}",
        CERTAIN,
        {"connection_state": view.state},
    )
    return case.found > found


C_UPDATE_SECRET: Final = RULES.rule(
    "C-UPDATE-SECRET", "IMPLIED", "tier A", by="client", answer="connection.close 530"
)


def secret_at_the_wrong_time(case: Case091, before: str) -> None:
    """A client sends connection.update-secret before the connection is open, or before the server has
    answered the previous connection.update-secret.

    Demands: A client may send connection.update-secret only on an open connection, and must wait for the
    server's answer before the client sends the next connection.update-secret.
    Source: RMQX:connection.update-secret
    Evidence: the state of the connection (open or not), and each connection.update-secret that has no answer
    yet
    Why it matters: The server drops the connection, or the client cannot know which secret is valid.
    Silent when: the capture lacks octets of either peer.
    How to mend it: Send connection.update-secret only on an open connection, and wait for
    connection.update-secret-ok before sending the next one. If several threads can renew the secret, let only
    one thread at a time renew it.
    """
    case.report(C_UPDATE_SECRET, f"the peer sends connection.update-secret before {before}")


# Which methods these rules judge


def judge_first(case: Case091) -> bool:
    """The server's first frame. False: it is not connection.start."""
    me = case.me
    if me.by_client or me.frames > 0 or not me.whole or case.view.state not in (START, HEADED):
        return True
    frame = case.record.frame
    if isinstance(frame.body, ConnectionStart) or (frame.problems and unreadable(frame)):
        return True
    start_not_first(case)
    case.reported |= {_OUT_OF_STEP}
    return False


def judge_set_up(case: Case091, method: Method) -> bool:
    """A method on channel 0 that may belong to the set-up. False: it does, and is out of order."""
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
        if not CONNECTION.allows(view.state, step):
            if view.state == OPEN:
                set_up_again(case, name)
            elif _OUT_OF_STEP not in case.reported:
                case.reported |= {_OUT_OF_STEP}
                if by_client:
                    client_out_of_order(case, name)
                else:
                    server_out_of_order(case, name)
            return False
    if isinstance(method, ConnectionStart):
        judge_start(case, method)
    elif isinstance(method, ConnectionStartOk):
        judge_start_ok(case, method)
    elif isinstance(method, ConnectionSecureOk):
        judge_secure_ok(case, method)
    elif isinstance(method, ConnectionTuneOk):
        judge_tune_ok(case, method)
    elif not by_client:
        if isinstance(method, ConnectionTune):
            judge_tune(case, method)
        judge_answer(case, method)
    return True


def judge_update_secret(case: Case091) -> None:
    """connection.update-secret: only on an open connection, one at a time."""
    me = case.me
    if not me.by_client or not me.whole:
        return
    view = case.view
    if view.state != OPEN and view.state != OPENING:
        secret_at_the_wrong_time(case, "the connection is open")
    elif view.table.channels[0].requests.awaited(False, "connection.update-secret-ok") >= 0:
        secret_at_the_wrong_time(case, "the previous connection.update-secret is answered")

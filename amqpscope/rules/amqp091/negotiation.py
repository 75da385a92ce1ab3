"""In which order a connection is set up: start, secure, tune, open (section 2.2.4, class connection).

The order stands in the table `states.CONNECTION`, of which each peer knows its own steps at once and the
other's as far as it had acknowledged them: what has no cell there was said too early, or twice. What is said
in the right order is brought before the rules about it from here.
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.introduction import judge_secure_ok, judge_start, judge_start_ok
from amqpscope.rules.amqp091.set_up_refused import judge_answer
from amqpscope.rules.amqp091.tuning import judge_tune, judge_tune_ok
from amqpscope.tracking.amqp091.endpoint import unreadable
from amqpscope.tracking.amqp091.states import CONNECTION, STILL_DUE
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
    ConnectionUpdateSecret,
)

__all__ = ["RULES", "channel_too_early", "judge_first", "judge_set_up", "judge_update_secret"]

# Noted once one of the two is out of order: from then on nobody can say whose turn it is.
_OUT_OF_STEP: Final = ("", "out of step")


def start_not_first(case: Case) -> None:
    """The server's first frame is not connection.start.

    Why it matters: the client cannot know which version and mechanisms it may use; most hang up.
    Silent when: octets of either peer were not captured.
    """
    case.report("amqp091/C-START-FIRST", f"the server's first frame is {case.name}, not connection.start")


def server_out_of_order(case: Case, name: str) -> None:
    """The server says a method of the set-up before it is its turn, or twice.

    Why it matters: the client is not where the server takes it to be; what was to be agreed is not.
    Silent when: octets of either peer were not captured, or one of the two was out of order before.
    """
    case.report(
        "amqp091/C-HS-ORDER-SERVER",
        f"{name} out of order: {STILL_DUE[case.view.state]}",
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
        f"{name} out of order: {STILL_DUE[case.view.state]}",
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


def channel_too_early(case: Case) -> bool:
    """A frame on a channel before the connection is open: for the client before its open, for the server
    before its open-ok.

    Why it matters: there are no channels yet; the other peer drops the connection.
    Silent when: octets of either peer were not captured, or the set-up was out of order before. Told once.
    """
    view = case.view
    if not case.me.whole or _OUT_OF_STEP in case.told or (view.state == "OPENING" and case.me.by_client):
        return False
    before = "connection.open" if case.me.by_client else "connection.open-ok"
    found = case.found
    case.report_once(
        "amqp091/C-HS-NO-CHANNEL",
        f"{case.name} on channel {case.record.frame.channel} before {before}",
        CERTAIN,
        {"connection_state": view.state},
    )
    return case.found > found


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
    if isinstance(frame.body, ConnectionStart) or (frame.problems and unreadable(frame)):
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


RULES = {
    "amqp091/C-START-FIRST": start_not_first,
    "amqp091/C-HS-ORDER-SERVER": server_out_of_order,
    "amqp091/C-HS-ORDER-CLIENT": client_out_of_order,
    "amqp091/C-HS-ONCE": set_up_again,
    "amqp091/C-HS-NO-CHANNEL": channel_too_early,
    "amqp091/C-UPDATE-SECRET": secret_at_the_wrong_time,
}

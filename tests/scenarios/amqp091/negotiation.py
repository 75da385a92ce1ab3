"""How a connection is set up, and everything that can go wrong on the way."""

from __future__ import annotations

from typing import Any

from scenarios.pairs import add_pair, legal, other_direction, pair, reported, without
from support.dialogue091 import CLIENT_CAPABILITIES, Dialogue091, Peer091


def refused(d: Dialogue091, peer: Peer091) -> None:
    """A peer hangs up: what the specification asks for while a connection is set up."""
    peer.fin()
    peer.other.fin()


def ends(d: Dialogue091) -> None:
    """Behind what was reported wrong: the server hangs up. Else the connection goes its way."""
    if d.wrong:
        refused(d, d.server)
    else:
        d.goodbye()


# ---- start ------------------------------------------------------------------------------------------------


@pair("C-START-FIRST", cut=without("header"))
def tune_before_start(d: Dialogue091) -> None:
    d.client.header().called("header")
    if d.wrong:
        d.server.tune().breaks("C-START-FIRST")
        refused(d, d.client)
        return
    d.server.start()
    d.client.start_ok()
    d.server.tune()
    d.client.tune_ok()
    d.client.open_connection()
    d.server.connection_open_ok()
    d.goodbye()


@pair("C-START-VERSION", cut=without("header"))
def start_of_a_higher_version(d: Dialogue091) -> None:
    d.client.header().called("header")
    said = d.server.start(version_minor=10 if d.wrong else 9)
    if d.wrong:
        said.breaks("C-START-VERSION")
        refused(d, d.client)
        return
    d.client.start_ok()
    refused(d, d.server)


@pair("C-START-CLIENT-SUPPORT", cut=without("header"))
def version_refused_with_a_close(d: Dialogue091) -> None:
    d.client.header().called("header")
    d.server.start(version_major=0, version_minor=8)
    if d.wrong:
        d.client.close_connection(540, "unknown version").may_break("C-START-CLIENT-SUPPORT")
    refused(d, d.client)


def _start(rule: str, cut: Any = None, **arguments: Any) -> None:
    """A start that breaks a rule by itself."""

    def tell(d: Dialogue091) -> None:
        d.client.header()
        said = d.server.start(**(arguments if d.wrong else {}))
        if d.wrong:
            said.breaks(rule)
            refused(d, d.client)
            return
        d.client.start_ok()
        refused(d, d.server)

    add_pair(f"start that breaks {rule}", tell, rule, cut=cut or other_direction)


_start("C-START-VERSION-RANGE", version_major=100)
_start("C-START-SERVER-PROPS", properties={"host": None})
_start("C-START-MECH-NOTNULL", mechanisms="")
_start("C-START-LOCALES-NOTNULL", locales="")
_start("C-START-LOCALE-EN-US", locales="de_DE fr_FR")
_start("C-CAP-TABLE", properties={"capabilities": "all"})


@reported("capabilities of a client that are no booleans")
def odd_capabilities(d: Dialogue091) -> None:
    d.client.header()
    d.server.start()
    d.client.start_ok(properties={"capabilities": {"basic.nack": "yes"}}).breaks("C-CAP-TABLE")
    refused(d, d.server)


# ---- start-ok ---------------------------------------------------------------------------------------------


def _start_ok(rule: str, cut: Any, certain: bool = True, start: Any = None, **arguments: Any) -> None:
    """A start-ok that breaks a rule."""

    def tell(d: Dialogue091) -> None:
        d.client.header()
        d.server.start(**(start or {})).called("connection.start")
        said = d.client.start_ok(**(arguments if d.wrong else {}))
        if d.wrong:
            said.breaks(rule, certain=certain)
        refused(d, d.server)

    add_pair(f"start-ok that breaks {rule}", tell, rule, cut=cut)


_start_ok("C-STARTOK-CLIENT-PROPS", other_direction, properties={"copyright": None})
_start_ok("C-STARTOK-MECH-OFFERED", without("connection.start"), mechanism="GSSAPI", response=b"token")
_start_ok("C-STARTOK-RESPONSE-NOTNULL", other_direction, response=b"")
_start_ok("C-STARTOK-LOCALE-OFFERED", without("connection.start"), locale="de_DE")


@pair("C-STARTOK-MECH-BEST", cut=without("connection.start"))
def plain_although_scram_is_offered(d: Dialogue091) -> None:
    d.client.header()
    d.server.start(mechanisms="PLAIN SCRAM-SHA-256").called("connection.start")
    if d.wrong:
        d.client.start_ok().may_break("C-STARTOK-MECH-BEST")
    else:
        d.client.start_ok(mechanism="SCRAM-SHA-256", response=b"n,,n=guest,r=nonce")
    refused(d, d.server)


@pair("C-STARTOK-MECH-REACT", "C-STARTOK-MECH-OFFERED", cut=without("connection.start"))
def wrong_mechanism_answered(d: Dialogue091) -> None:
    d.client.header()
    d.server.start().called("connection.start")
    said = d.client.start_ok(mechanism="PLAINER" if d.wrong else "PLAIN")
    if d.wrong:
        said.breaks("C-STARTOK-MECH-OFFERED")
        d.server.close_connection(503, "unknown mechanism").breaks("C-STARTOK-MECH-REACT")
        d.client.connection_close_ok()
        refused(d, d.client)
        return
    refused(d, d.server)


@legal("EXTERNAL needs no response, and a challenge may be answered with nothing in the end")
def nothing_to_respond(d: Dialogue091) -> None:
    d.client.header()
    d.server.start(mechanisms="EXTERNAL SCRAM-SHA-256")
    d.client.start_ok(mechanism="EXTERNAL", response=b"")
    d.server.secure()
    d.client.secure_ok()
    d.server.secure()
    d.client.secure_ok(b"")
    d.server.tune()
    d.client.tune_ok()
    d.client.open_connection()
    d.server.connection_open_ok()
    d.goodbye()


@pair("C-SECUREOK-RESPONSE-NOTNULL", cut=without("connection.secure"))
def nothing_in_answer_to_a_challenge(d: Dialogue091) -> None:
    d.started()
    d.server.secure().called("connection.secure")
    said = d.client.secure_ok(b"" if d.wrong else b"response")
    if d.wrong:
        said.breaks("C-SECUREOK-RESPONSE-NOTNULL")
    refused(d, d.server)


# ---- the order --------------------------------------------------------------------------------------------


@pair("C-HS-ORDER-CLIENT", cut=without("connection.start"))
def open_before_start_ok(d: Dialogue091) -> None:
    d.client.header()
    d.server.start().called("connection.start")
    if d.wrong:
        d.client.open_connection().breaks("C-HS-ORDER-CLIENT")
        refused(d, d.server)
        return
    d.client.start_ok()
    refused(d, d.server)


@pair("C-HS-ORDER-CLIENT", cut=without("connection.start-ok"))
def tune_ok_before_tune(d: Dialogue091) -> None:
    d.started()
    if d.wrong:
        d.client.method("connection.tune-ok", channel_max=10, frame_max=4096).breaks("C-HS-ORDER-CLIENT")
        d.server.tune().called("connection.tune")
        refused(d, d.client)
        return
    d.server.tune().called("connection.tune")
    d.client.tune_ok()
    refused(d, d.server)


@pair("C-HS-ORDER-SERVER", cut=without("connection.start-ok"))
def open_ok_before_tune(d: Dialogue091) -> None:
    d.started()
    if d.wrong:
        d.server.connection_open_ok().breaks("C-HS-ORDER-SERVER")
        refused(d, d.client)
        return
    d.server.tune()
    d.client.tune_ok()
    d.client.open_connection()
    d.server.connection_open_ok()
    d.goodbye()


@legal("tune-ok, open and the first channel in one piece")
def all_at_once(d: Dialogue091) -> None:
    d.started()
    d.server.tune()
    with d.together(d.client):
        d.client.tune_ok()
        d.client.open_connection()
        d.client.open_channel()
    d.server.connection_open_ok()
    d.server.channel_open_ok()
    d.goodbye()


@pair("C-HS-ONCE", cut=without("connection.open-ok"))
def another_virtual_host(d: Dialogue091) -> None:
    d.opened()
    if d.wrong:
        d.client.open_connection("/other").breaks("C-HS-ONCE")
        d.server.close_connection(503, "COMMAND_INVALID", "connection.open")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.goodbye()


@reported("a second tune")
def tuned_again(d: Dialogue091) -> None:
    d.opened()
    d.server.method("connection.tune", channel_max=5, frame_max=4096).breaks("C-HS-ONCE")
    d.goodbye()


@pair("C-HS-NO-CHANNEL", cut=without("connection.tune"))
def channel_before_open(d: Dialogue091) -> None:
    d.started()
    d.server.tune().called("connection.tune")
    d.client.tune_ok()
    if d.wrong:
        d.client.open_channel().breaks("C-HS-NO-CHANNEL")
        refused(d, d.server)
        return
    d.client.open_connection()
    d.server.connection_open_ok()
    d.channel()
    d.goodbye()


@reported("the channel is answered before the connection")
def channel_open_ok_before_open_ok(d: Dialogue091) -> None:
    d.started()
    d.server.tune()
    d.client.tune_ok()
    d.client.open_connection()
    d.client.open_channel()
    d.server.channel_open_ok().breaks("C-HS-NO-CHANNEL")
    d.server.connection_open_ok()
    d.goodbye()


@pair("C-HS-ERROR-SILENT", cut=without("connection.start-ok"))
def login_refused_with_a_close(d: Dialogue091) -> None:
    d.started()
    if d.wrong:
        d.server.close_connection(403, "ACCESS_REFUSED - Login was refused").breaks("C-HS-ERROR-SILENT")
        d.client.connection_close_ok()
    refused(d, d.server)


@pair("C-AUTHFAIL-CAP", cut=without("connection.start-ok"))
def login_refused_unasked(d: Dialogue091) -> None:
    names = [name for name in CLIENT_CAPABILITIES if name != "authentication_failure_close"]
    d.started(start_ok={"capabilities": tuple(names)})
    if d.wrong:
        d.server.close_connection(403, "ACCESS_REFUSED - Login was refused").breaks("C-AUTHFAIL-CAP")
        d.client.connection_close_ok()
    refused(d, d.server)


@pair("C-OPEN-VHOST-EXISTS", "C-HS-ERROR-SILENT", cut=without("connection.open"))
def unknown_virtual_host(d: Dialogue091) -> None:
    d.started()
    d.server.tune()
    d.client.tune_ok()
    said = d.client.open_connection("/nope" if d.wrong else "/").called("connection.open")
    if d.wrong:
        said.may_break("C-OPEN-VHOST-EXISTS")
        text = "NOT_ALLOWED - vhost /nope not found"
        d.server.close_connection(530, text, "connection.open").breaks("C-HS-ERROR-SILENT")
        d.client.connection_close_ok()
        d.tcp.goodbye()
        return
    d.server.connection_open_ok()
    d.goodbye()


@reported("a virtual host that the user may not enter exists")
def forbidden_virtual_host(d: Dialogue091) -> None:
    d.started()
    d.server.tune()
    d.client.tune_ok()
    d.client.open_connection("/private")
    text = "NOT_ALLOWED - access to vhost '/private' refused for user 'guest'"
    d.server.close_connection(530, text, "connection.open").breaks("C-HS-ERROR-SILENT")
    d.client.connection_close_ok()
    d.tcp.goodbye()


# ---- what is agreed ---------------------------------------------------------------------------------------


@pair("C-TUNE-FRAMEMAX-MIN", cut=other_direction)
def small_frames_offered(d: Dialogue091) -> None:
    d.started()
    said = d.server.tune(frame_max=4095 if d.wrong else 4096)
    if d.wrong:
        said.breaks("C-TUNE-FRAMEMAX-MIN")
    refused(d, d.client)


@pair("C-TUNEOK-FRAMEMAX-MIN", cut=other_direction)
def small_frames_chosen(d: Dialogue091) -> None:
    d.started()
    d.server.tune()
    said = d.client.tune_ok(frame_max=4095 if d.wrong else 4096)
    if d.wrong:
        said.breaks("C-TUNEOK-FRAMEMAX-MIN")
    refused(d, d.server)


def _tuned_too_high(rule: str, field: str, offered: int) -> None:
    """What the server limits, and the client does not."""

    def tell(d: Dialogue091) -> None:
        d.started()
        d.server.tune(**{field: offered}).called("connection.tune")
        said = d.client.tune_ok(**{field: offered + 1 if d.wrong else offered})
        if d.wrong:
            said.breaks(f"{rule}-LE")
        refused(d, d.server)

    def answered(d: Dialogue091) -> None:
        d.started()
        d.server.tune(**{field: offered}).called("connection.tune")
        said = d.client.tune_ok(**{field: offered + 1 if d.wrong else offered})
        if d.wrong:
            said.breaks(f"{rule}-LE")
            text = f"negotiated {field} = {offered + 1} is higher than the maximum"
            d.server.close_connection(530, text, "connection.tune").breaks(f"{rule}-REACT")
            d.client.connection_close_ok()
        refused(d, d.server)

    def unlimited(d: Dialogue091) -> None:
        d.started(start={"product": "Other Broker"})
        d.server.tune(**{field: offered})
        d.client.tune_ok(**{field: 0}).may_break(f"{rule}-LE")
        refused(d, d.server)

    add_pair(f"{field} above the limit", tell, f"{rule}-LE", cut=without("connection.tune"))
    both = (f"{rule}-REACT", f"{rule}-LE")
    add_pair(f"{field} above the limit, and answered", answered, *both, cut=without("connection.tune"))
    reported()(_named(unlimited, f"no limit of {field} where there is one"))


def _named(tell: Any, name: str) -> Any:
    tell.__name__ = name
    return tell


_tuned_too_high("C-TUNEOK-FRAMEMAX", "frame_max", 131072)
_tuned_too_high("C-TUNEOK-CHMAX", "channel_max", 2047)


@reported("RabbitMQ refuses 0 where it sets a limit")
def no_limit_of_channels_where_rabbitmq_sets_one(d: Dialogue091) -> None:
    d.started()
    d.server.tune()
    d.client.tune_ok(channel_max=0).breaks("C-TUNEOK-CHMAX-LE")
    refused(d, d.server)


@pair("C-TUNEOK-CHMAX-NOTNULL", cut=without("connection.tune"))
def no_limit_of_channels(d: Dialogue091) -> None:
    d.started()
    d.server.tune(channel_max=0).called("connection.tune")
    said = d.client.tune_ok(channel_max=0 if d.wrong else 65535)
    if d.wrong:
        said.may_break("C-TUNEOK-CHMAX-NOTNULL")
    refused(d, d.server)


# ---- secrets ----------------------------------------------------------------------------------------------


@pair("C-UPDATE-SECRET", cut=without("connection.open-ok"))
def two_secrets_at_once(d: Dialogue091) -> None:
    d.opened()
    d.client.method("connection.update-secret", new_secret=b"one", reason="expires")
    if not d.wrong:
        d.server.method("connection.update-secret-ok")
    said = d.client.method("connection.update-secret", new_secret=b"two", reason="expires")
    if d.wrong:
        said.breaks("C-UPDATE-SECRET")
        d.server.method("connection.update-secret-ok")
    d.server.method("connection.update-secret-ok")
    d.goodbye()

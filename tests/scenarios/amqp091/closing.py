"""How a connection is ended: closes, their answers, the sockets."""

from __future__ import annotations

from scenarios.pairs import legal, one_direction, other_direction, pair, reported, without
from support import amqp091_encode as amqp
from support.dialogue091 import Dialogue091


@pair("C-CLOSE-HANDSHAKE", cut=without("channel.open-ok"))
def stream_ended_without_close(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    if d.wrong:
        d.client.fin().breaks("C-CLOSE-HANDSHAKE")
        d.server.fin()
        return
    d.goodbye()


@reported("in the middle of a content")
def stream_ended_inside_a_content(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.client.publish_method()
    d.client.content_header(1000)
    d.client.body(b"x" * 500)
    d.client.fin().breaks("C-CLOSE-HANDSHAKE")
    d.server.rst()


@reported("a server that dies")
def stream_reset_without_close(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.server.rst().may_break("C-CLOSE-HANDSHAKE")


@legal("a connection that was not open yet is dropped")
def dropped_before_open(d: Dialogue091) -> None:
    d.started()
    d.server.tune()
    d.client.tune_ok()
    d.client.open_connection()
    d.server.fin()
    d.client.fin()


@reported("broken frames are answered with the end")
def dropped_for_broken_frames(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.client.say(amqp.frame(amqp.METHOD, 1, amqp.method("basic.ack"), end=b"\x00")).breaks("F-FRAME-END")
    d.server.fin()
    d.client.fin()


@reported("so is a table that cannot be read")
def dropped_for_an_unreadable_table(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    table = b"\x01n\x01"  # a name, and a type that is none
    payload = amqp.method("queue.declare", queue="q")[:-4] + len(table).to_bytes(4, "big") + table
    d.client.say(amqp.frame(amqp.METHOD, 1, payload)).breaks("T-TABLE-TAG")
    d.server.rst()


@pair("C-CLOSE-REPLY", cut=one_direction)
def close_not_answered(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.server.close_connection(320, "CONNECTION_FORCED - maintenance")
    if not d.wrong:
        d.client.connection_close_ok()
    said = d.client.fin()
    if d.wrong:
        said.breaks("C-CLOSE-REPLY")
    d.server.fin()


@reported("a refused login is left unanswered")
def close_before_open_not_answered(d: Dialogue091) -> None:
    d.started()
    d.server.close_connection(403, "ACCESS_REFUSED - Login was refused").breaks("C-HS-ERROR-SILENT")
    d.client.fin().may_break("C-CLOSE-REPLY")
    d.server.fin()


@legal("who closed has gone already")
def closed_and_gone(d: Dialogue091) -> None:
    d.opened()
    d.server.close_connection(320, "CONNECTION_FORCED - maintenance")
    d.server.fin()
    d.client.fin()


@pair("C-CLOSE-CROSS", cut=other_direction)
def crossing_close_not_answered(d: Dialogue091) -> None:
    d.opened()
    with d.on_their_way():
        d.client.close_connection()
        d.server.close_connection(320, "CONNECTION_FORCED - maintenance")
    d.server.connection_close_ok()
    if not d.wrong:
        d.client.connection_close_ok()
    said = d.client.fin()
    if d.wrong:
        said.may_break("C-CLOSE-CROSS")
    d.server.fin()


@pair("C-CLOSE-SILENT", cut=without("connection.close"))
def method_after_close(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.client.close_connection().called("connection.close")
    if d.wrong:
        d.client.publish().breaks("C-CLOSE-SILENT")
    d.server.connection_close_ok()
    d.tcp.goodbye()


@legal("what was on its way when the close came")
def on_its_way_to_a_close(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.declare("q")
    d.consume("q")
    with d.on_their_way():
        d.client.close_connection()
        d.server.deliver()
    d.server.connection_close_ok()
    d.tcp.goodbye()


@pair("C-CLOSE-DISCARD", cut=without("queue.declare"))
def answer_after_close(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.server.close_connection(320, "CONNECTION_FORCED - maintenance")
    with d.unheard(d.server):
        d.client.method("queue.declare", queue="q").called("queue.declare")
    if d.wrong:
        d.server.method("queue.declare-ok", queue="q").breaks("C-CLOSE-DISCARD")
    d.client.connection_close_ok()
    d.tcp.goodbye()


@pair("C-CLOSEOK-LAST", cut=without("connection.close-ok"))
def method_after_close_ok(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.server.close_connection(320, "CONNECTION_FORCED - maintenance")
    d.client.connection_close_ok().called("connection.close-ok")
    if d.wrong:
        d.client.close_channel().breaks("C-CLOSEOK-LAST")
    d.tcp.goodbye()


@pair("C-CLOSEOK-UNSOLICITED", cut=other_direction)
def connection_close_ok_of_nothing(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    if d.wrong:
        d.client.connection_close_ok().breaks("C-CLOSEOK-UNSOLICITED")
        d.server.close_connection(503, "COMMAND_INVALID", "connection.close-ok")
        d.tcp.goodbye()
        return
    d.goodbye()


@pair("C-CLOSEOK-SOCKET", cut=one_direction)
def socket_kept(d: Dialogue091) -> None:
    d.opened()
    d.client.close_connection()
    d.server.connection_close_ok()
    if d.wrong:
        d.wait(seconds=200)
    said = d.client.fin()
    if d.wrong:
        said.may_break("C-CLOSEOK-SOCKET")
    d.server.fin()


@pair("C-CLOSE-METHOD-ID", cut=without("channel.open"))
def close_names_a_method_never_said(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.declare("q")
    cause = "basic.publish" if d.wrong else "queue.declare"
    said = d.server.close_connection(540, "NOT_IMPLEMENTED", cause)
    if d.wrong:
        said.breaks("C-CLOSE-METHOD-ID")
    d.client.connection_close_ok()
    d.tcp.goodbye()


@reported("of a channel")
def channel_close_names_a_method_never_said(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.declare("q")
    d.server.close_channel(406, "PRECONDITION_FAILED", "basic.ack").breaks("C-CLOSE-METHOD-ID")
    d.client.channel_close_ok()
    d.goodbye()


@reported("a broken frame that is on its way is no excuse")
def close_names_a_method_while_a_broken_frame_comes(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    with d.on_their_way():
        d.client.frame(amqp.HEARTBEAT, 0, b"", end=b"\0").breaks("F-FRAME-END")
        d.server.close_connection(540, "NOT_IMPLEMENTED", "queue.purge").breaks("C-CLOSE-METHOD-ID")
    d.client.connection_close_ok()
    d.tcp.goodbye()


@pair("C-CLOSE-CODE-KNOWN", cut=other_direction)
def unknown_reply_code(d: Dialogue091) -> None:
    d.opened()
    said = d.server.close_connection(542 if d.wrong else 541, "something")
    if d.wrong:
        said.breaks("C-CLOSE-CODE-KNOWN")
    d.client.connection_close_ok()
    d.tcp.goodbye()


@reported("of a message returned")
def unknown_reply_code_of_a_message(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.client.publish(mandatory=True)
    d.server.return_content(code=310, text="odd").breaks("C-CLOSE-CODE-KNOWN")
    d.goodbye()


@pair("C-CLOSE-HARD-CODE", cut=without("connection.open-ok"))
def connection_closed_by_a_soft_error(d: Dialogue091) -> None:
    d.opened()
    d.channel()
    d.declare("q")
    code = 404 if d.wrong else 541
    said = d.server.close_connection(code, "no queue", "queue.declare")
    if d.wrong:
        said.breaks("C-CLOSE-HARD-CODE")
    d.client.connection_close_ok()
    d.tcp.goodbye()

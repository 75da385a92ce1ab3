"""Heartbeats: kept and not kept, what attests that, and when their time is."""

from __future__ import annotations

from scenarios.pairs import legal, one_direction, pair, reported, without
from support.dialogue091 import Dialogue091, Peer091


def heartbeats(d: Dialogue091, milliseconds: int, *peers: Peer091, each: int = 250) -> None:
    """For so long these peers send heartbeats."""
    for _ in range(milliseconds // each):
        d.wait(milliseconds=each)
        for peer in peers:
            peer.heartbeat()


@pair("C-HB-SEND", cut=without("connection.tune-ok"))
def silent_for_longer_than_the_delay(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    heartbeats(d, 1500, d.server, *([] if d.wrong else [d.client]))
    said = d.client.method("queue.declare", queue="q")
    if d.wrong:
        said.breaks("C-HB-SEND")
    d.server.method("queue.declare-ok", queue="q")
    d.goodbye()


@pair("C-HB-SEND", cut=without("connection.tune-ok"))
def silent_until_the_other_side_drops_it(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    heartbeats(d, 3000, d.server, *([] if d.wrong else [d.client]))
    if d.wrong:
        d.server.rst().breaks("C-HB-SEND", peer="client")
        return
    d.goodbye()


@reported("the server is silent, and the client closes its socket")
def server_silent_until_the_end(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    heartbeats(d, 2500, d.client)
    d.client.fin().breaks("C-HB-SEND", peer="server")
    d.server.fin()


@reported("the clock may have been set forward")
def silent_and_nobody_attests_it(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 60})
    d.channel()
    d.wait(seconds=120)
    d.client.heartbeat().may_break("C-HB-SEND")
    d.server.heartbeat().may_break("C-HB-SEND")
    d.goodbye()


@reported("the clock was set back before: it attests nothing")
def silent_behind_a_clock_that_was_set_back(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    d.wait(seconds=-59)
    heartbeats(d, 500, d.server, d.client)
    heartbeats(d, 1500, d.server)
    d.client.heartbeat().may_break("C-HB-SEND")
    d.goodbye()


@reported("the clock was set back while the server was silent: the client may have waited for long")
def given_up_while_the_clock_was_set_back(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    heartbeats(d, 1000, d.client)
    d.wait(seconds=-59)
    heartbeats(d, 2000, d.client)
    d.client.fin().may_break("C-CLOSE-HANDSHAKE")
    d.server.fin()


@reported("the clock was set back between the last heartbeat and the end")
def given_up_right_behind_a_clock_that_was_set_back(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    d.client.heartbeat()
    d.wait(seconds=-2)
    d.client.fin().may_break("C-CLOSE-HANDSHAKE")
    d.server.fin()


@reported("all times of the capture are equal: the client may have waited for long")
def given_up_in_a_capture_without_times(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    d.client.fin().may_break("C-CLOSE-HANDSHAKE")
    d.server.fin()
    for packet in d.capture.packets:
        packet.time = d.capture.packets[0].time


@reported("too long only by the longest stretch between two frames")
def silent_and_hardly_attested(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    heartbeats(d, 1000, d.server)
    d.wait(seconds=60)
    d.client.heartbeat().may_break("C-HB-SEND")
    d.server.heartbeat().may_break("C-HB-SEND")
    d.goodbye()


@legal("a heartbeat nearly a tenth too late")
def a_little_late(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    d.wait(milliseconds=550)
    d.server.heartbeat()
    d.wait(milliseconds=540)
    d.client.heartbeat()
    d.server.heartbeat()
    d.goodbye()


@legal("no heartbeats were agreed")
def no_delay(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 10}, tune_ok={"heartbeat": 0})
    d.channel()
    d.wait(seconds=600)
    d.declare()
    d.goodbye()


@legal("the server's TCP window is closed: what the client writes stays in its host")
def silent_while_the_window_is_closed(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    d.server.end.window = 0
    d.server.end.ack()
    heartbeats(d, 5000, d.server)
    d.server.end.window = 0xFFFF
    d.server.end.ack()
    d.client.heartbeat()
    d.goodbye()


@reported("the server's window is closed until the client resets the connection")
def silent_until_the_end_while_the_window_is_closed(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 10})
    d.channel()
    d.server.end.window = 0
    d.server.end.ack()
    heartbeats(d, 50_000, d.server, each=2500)
    d.client.rst().may_break("C-CLOSE-HANDSHAKE")


@reported("the server's window was open again for long")
def silent_though_the_window_is_open_again(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    d.server.end.window = 0
    d.server.end.ack()
    heartbeats(d, 2000, d.server)
    d.server.end.window = 0xFFFF
    d.server.end.ack()
    heartbeats(d, 2000, d.server)
    d.client.heartbeat().breaks("C-HB-SEND")
    d.goodbye()


@legal("the client's octets are sent again and again: nothing new can go out")
def silent_while_octets_are_sent_again(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 10})
    d.channel()
    with d.tcp.lost():
        d.client.heartbeat()
        for _ in range(8):
            d.client.end.retransmit()
            heartbeats(d, 5000, d.server, each=2500)
    d.client.end.retransmit()
    d.server.end.ack()
    d.client.heartbeat()
    d.goodbye()


@legal("a server that blocks its client reads nothing from it")
def silent_while_blocked(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    d.client.publish()
    d.server.blocked()
    heartbeats(d, 5000, d.server)
    d.server.unblocked()
    d.client.heartbeat()
    d.goodbye()


@pair("C-HB-REACT", "C-HB-SEND", cut=without("connection.tune-ok"))
def silence_put_up_with(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    for n in range(16):
        d.wait(milliseconds=250)
        said = d.server.heartbeat()
        if not d.wrong:
            d.client.heartbeat()
        elif n == 13:
            said.breaks("C-HB-REACT")
    said = d.client.heartbeat()
    if d.wrong:
        said.breaks("C-HB-SEND")
    d.goodbye()


@pair("C-HB-EARLY", cut=without("connection.start"))
def heartbeat_before_tune(d: Dialogue091) -> None:
    d.client.header()
    d.server.start().called("connection.start")
    d.client.start_ok()
    if d.wrong:
        d.client.heartbeat().breaks("C-HB-EARLY")
    d.server.tune(heartbeat=60)
    d.client.heartbeat()
    d.client.tune_ok()
    d.server.heartbeat()
    d.client.open_connection()
    d.server.connection_open_ok()
    d.goodbye()


@reported("a heartbeat of the server before tune-ok")
def heartbeat_before_tune_ok(d: Dialogue091) -> None:
    d.started()
    d.server.tune(heartbeat=60)
    d.server.heartbeat().breaks("C-HB-EARLY")
    d.client.tune_ok()
    d.client.open_connection()
    d.server.connection_open_ok()
    d.goodbye()


@pair("C-HB-CLOSING", cut=one_direction)
def silent_while_closing(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel()
    d.server.close_connection(320, "CONNECTION_FORCED - maintenance")
    heartbeats(d, 1500, d.server, *([] if d.wrong else [d.client]))
    said = d.client.connection_close_ok()
    if d.wrong:
        said.breaks("C-HB-CLOSING")
    d.tcp.goodbye()


@legal("heartbeats after close, and after close-ok")
def heartbeats_till_the_end(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 60})
    d.client.close_connection()
    d.client.heartbeat()
    d.server.heartbeat()
    d.server.connection_close_ok()
    d.server.heartbeat()
    d.client.heartbeat()
    d.tcp.goodbye()


@reported("a server that says something again after the client has given it up")
def server_heard_again_after_it_was_given_up(d: Dialogue091) -> None:
    d.opened(tune={"heartbeat": 1})
    d.channel(1)
    d.wait(milliseconds=3100)
    d.client.fin().may_break("C-HB-SEND")
    with d.unheard(d.server):
        d.server.heartbeat().may_break("C-HB-SEND")

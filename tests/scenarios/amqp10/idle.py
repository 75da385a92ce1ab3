"""Idle time-outs: kept and not kept, and what attests that."""

from __future__ import annotations

from scenarios.pairs import Cut, legal, one_direction, pair, reported, without
from support.dialogue import Dialogue


def heartbeats(d: Dialogue, milliseconds: int, *, each: int = 100, both: bool = False) -> None:
    """For so long the client sends heartbeats, or both do."""
    for _ in range(milliseconds // each):
        d.wait(milliseconds=each)
        d.client.empty()
        if both:
            d.server.empty()


def without_heartbeats() -> Cut:
    """The tap missed all of the client's but the opening."""

    def cut(d: Dialogue) -> None:
        for said in d.said:
            if said.peer is d.client and len(said.octets) == 8 and said.octets.startswith(b"\0"):
                d.capture.packets.remove(d.capture.packets[d.packet_number(said) - 1])

    return cut


@pair("C-IDLE-KEEP", cut=without("client open"))
def silent_for_longer_than_the_idle_time_out(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 500})
    d.client.begin()
    d.server.begin()
    heartbeats(d, 800, both=not d.wrong)
    said = d.server.empty()
    if d.wrong:
        said.breaks("C-IDLE-KEEP")
    d.goodbye()


@reported("the clock may have been set forward")
def silent_and_nobody_attests_it(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 500})
    d.client.begin()
    d.server.begin()
    d.wait(seconds=3600)
    d.server.empty().may_break("C-IDLE-KEEP")
    d.goodbye()


@reported("too long only by the longest stretch between two frames")
def silent_and_hardly_attested(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 500})
    d.client.begin()
    d.server.begin()
    heartbeats(d, 500)
    d.wait(seconds=3600)
    d.server.empty().may_break("C-IDLE-KEEP")
    d.goodbye()


@reported("the other side's own clock attests it")
def silent_until_the_other_side_gave_up(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 500})
    d.client.begin()
    d.server.begin()
    d.wait(milliseconds=1500)
    d.client.close("amqp:resource-limit-exceeded")
    d.server.close().breaks("C-IDLE-KEEP")
    d.tcp.goodbye()


@reported("silent since before the other side's open came")
def silent_and_the_open_perhaps_not_read(d: Dialogue) -> None:
    d.headers()
    d.server.open()
    d.client.open(idle_time_out=500)
    heartbeats(d, 1000)
    d.server.empty().may_break("C-IDLE-KEEP")
    d.goodbye()


@legal("the client's TCP window is closed: what the server writes stays in its host")
def silent_while_the_window_is_closed(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 500})
    d.client.begin()
    d.server.begin()
    d.client.end.window = 0
    d.client.end.ack()
    heartbeats(d, 3000)
    d.client.end.window = 0xFFFF
    d.client.end.ack()
    d.server.empty()
    d.goodbye()


@legal("the server's octets are sent again and again: nothing new can go out")
def silent_while_octets_are_sent_again(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 500})
    d.client.begin()
    with d.tcp.lost():
        d.server.begin()
        for _ in range(10):
            d.server.end.retransmit()
            heartbeats(d, 300)
    d.server.end.retransmit()
    d.client.end.ack()
    d.server.empty()
    d.goodbye()


@reported("the client's window was open again for long")
def silent_though_the_window_is_open_again(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 500})
    d.client.begin()
    d.server.begin()
    d.client.end.window = 0
    d.client.end.ack()
    heartbeats(d, 600)
    d.client.end.window = 0xFFFF
    d.client.end.ack()
    heartbeats(d, 800)
    d.server.empty().breaks("C-IDLE-KEEP")
    d.goodbye()


@legal("a heartbeat nearly a tenth too late")
def a_little_late(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 500})
    d.client.begin()
    d.server.begin()
    heartbeats(d, 550, each=50)
    d.server.empty()
    d.goodbye()


@pair("C-IDLE-KEEP", "C-IDLE-REFUSE", cut=without_heartbeats())
def silent_again_and_again(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 500})
    d.client.begin()
    d.server.begin()
    for n in range(3):
        heartbeats(d, 800, both=not d.wrong)
        said = d.server.empty()
        if d.wrong:
            said.breaks("C-IDLE-KEEP")
        if d.wrong and n == 2:
            said.may_break("C-IDLE-REFUSE")
    d.goodbye()


@pair("C-IDLE-HALF", cut=without("client open"))
def given_up_at_what_was_announced(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 1000})
    d.client.begin()
    d.server.begin()
    d.wait(milliseconds=1010 if d.wrong else 2010)
    said = d.client.close("amqp:resource-limit-exceeded")
    if d.wrong:
        said.may_break("C-IDLE-HALF")
    d.client.fin()


@pair("C-IDLE-CLOSE", cut=one_direction)
def stream_ended_after_silence(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 1000})
    d.client.begin()
    d.server.begin()
    d.wait(milliseconds=2100)
    if d.wrong:
        d.client.fin().may_break("C-IDLE-CLOSE")
        d.server.fin()
    else:
        d.client.close("amqp:resource-limit-exceeded")
        d.client.fin()

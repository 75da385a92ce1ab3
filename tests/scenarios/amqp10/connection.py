"""Connections: headers, opens, limits agreed, heartbeats, closes."""

from __future__ import annotations

from scenarios.pairs import SAME, legal, one_direction, pair, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue


@pair("C-HDR-FIRST")
def frame_before_header(d: Dialogue) -> None:
    if d.wrong:
        d.client.open().breaks("C-HDR-FIRST")
        d.server.header()
    else:
        d.headers()
        d.client.open()
    d.server.open()
    d.goodbye()


@pair("C-OPEN-FIRST")
def first_frame_is_not_open(d: Dialogue) -> None:
    d.headers()
    if d.wrong:
        d.client.begin().breaks("C-OPEN-FIRST")
        d.client.open()
    else:
        d.client.open()
        d.client.begin()
    d.server.open()
    d.server.begin()
    d.goodbye()


@pair("C-CLOSE-AFTEROPEN")
def close_before_open(d: Dialogue) -> None:
    d.headers()
    d.client.open()
    if d.wrong:
        d.server.close("amqp:internal-error").breaks("C-CLOSE-AFTEROPEN")
    else:
        d.server.open()
        d.server.close("amqp:internal-error")
    d.client.close()
    d.tcp.goodbye()


@pair("C-EMPTY-AFTEROPEN")
def empty_frame_before_open(d: Dialogue) -> None:
    d.headers()
    if d.wrong:
        d.client.empty().breaks("C-EMPTY-AFTEROPEN")
    d.client.open()
    if not d.wrong:
        d.client.empty()
    d.server.open()
    d.goodbye()


@pair("C-CLOSE-LAST")
def frame_after_close(d: Dialogue) -> None:
    d.begun()
    if not d.wrong:
        d.client.flow()
    d.client.close()
    if d.wrong:
        d.client.flow().breaks("C-CLOSE-LAST")
    d.server.close()
    d.tcp.goodbye()


@pair("C-MAXFRAME", cut=without("server open"))
def frame_larger_than_agreed(d: Dialogue) -> None:
    d.opened(server={"max_frame_size": 1024})
    d.client.begin()
    d.server.begin()
    d.attached()
    said = d.client.transfer(amqp.data(b"x" * (1100 if d.wrong else 900)))
    if d.wrong:
        said.breaks("C-MAXFRAME")
    d.goodbye()


@pair("C-OPEN-SIZE", cut=without("server header"))
def open_larger_than_512_octets(d: Dialogue) -> None:
    d.client.header()
    d.server.header().called("server header")
    said = d.client.open(properties={"note": "x" * (600 if d.wrong else 300)})
    if d.wrong:
        said.breaks("C-OPEN-SIZE")
    d.server.open()
    d.goodbye()


@pair("C-PIPE-SIZE", cut=without("server header"))
def pipelined_frame_larger_than_512_octets(d: Dialogue) -> None:
    d.client.header()
    d.server.header().called("server header")
    d.client.open()
    said = d.client.begin(properties={"note": "x" * (600 if d.wrong else 300)})
    if d.wrong:
        said.breaks("C-PIPE-SIZE")
    d.server.open()
    d.server.begin()
    d.goodbye()


@pair("C-CHMAX", "C-CHMAX-REACT", cut=without("server open"))
def channel_beyond_agreed(d: Dialogue) -> None:
    d.opened(server={"channel_max": 0})
    channel = 1 if d.wrong else 0
    said = d.client.begin(channel=channel)
    if d.wrong:
        said.breaks("C-CHMAX")
    said = d.server.begin(remote_channel=channel)
    if d.wrong:
        said.breaks("C-CHMAX-REACT")
    d.goodbye()


@pair("C-PIPE-CHANNEL", cut=without("server header"))
def channel_other_than_0_before_the_peers_open(d: Dialogue) -> None:
    d.client.header()
    d.server.header().called("server header")
    d.client.open()
    channel = 1 if d.wrong else 0
    said = d.client.begin(channel=channel)
    if d.wrong:
        said.breaks("C-PIPE-CHANNEL")
    d.client.attach(SENDER, channel=channel)  # on the same session: no fault of its own
    d.server.open()
    d.server.begin(remote_channel=channel)
    d.server.attach(RECEIVER)
    d.goodbye()


@pair("C-EMPTY-CH0-PRE", cut=without("server header"))
def empty_frame_off_channel_0_before_the_peers_open(d: Dialogue) -> None:
    d.client.header()
    d.server.header().called("server header")
    d.client.open()
    said = d.client.empty(channel=1 if d.wrong else 0)
    if d.wrong:
        said.breaks("C-EMPTY-CH0-PRE")
    d.server.open()
    d.goodbye()


@pair("C-EMPTY-CH0", cut=without("client header"), then=SAME)
def empty_frame_off_channel_0(d: Dialogue) -> None:
    d.client.header().called("client header")
    d.server.header()
    d.client.open()
    d.server.open()
    said = d.client.empty(channel=1 if d.wrong else 0)
    if d.wrong:
        said.breaks("C-EMPTY-CH0")
    d.client.begin()
    d.server.begin()
    d.goodbye()


@pair("C-OPEN-CH0", then=SAME)
def open_on_another_channel(d: Dialogue) -> None:
    d.headers()
    said = d.client.open(channel=1 if d.wrong else 0)
    if d.wrong:
        said.breaks("C-OPEN-CH0")
    d.server.open()
    d.client.begin()
    d.server.begin()
    d.goodbye()


@pair("C-OPEN-ONCE")
def second_open(d: Dialogue) -> None:
    d.opened()
    if d.wrong:
        d.client.open().breaks("C-OPEN-ONCE")
    d.client.begin()
    d.server.begin()
    d.goodbye()


@pair("C-MAXFRAME-FLOOR", then=SAME)
def max_frame_size_below_the_floor(d: Dialogue) -> None:
    d.headers()
    said = d.client.open(max_frame_size=511 if d.wrong else 512)
    if d.wrong:
        said.breaks("C-MAXFRAME-FLOOR")
    d.server.open()
    d.client.begin()
    d.server.begin()
    d.goodbye()


@pair("C-LOCALE-TAG", then=SAME)
def locale_with_underscore(d: Dialogue) -> None:
    d.headers()
    said = d.client.open(outgoing_locales=["en_US" if d.wrong else "en-US"])
    if d.wrong:
        said.breaks("C-LOCALE-TAG")
    d.server.open()
    d.client.begin()
    d.server.begin()
    d.goodbye()


@pair("C-CLOSE-CH0")
def close_on_another_channel(d: Dialogue) -> None:
    d.begun()
    said = d.client.close(channel=1 if d.wrong else 0)
    if d.wrong:
        said.breaks("C-CLOSE-CH0")
    d.server.close()
    d.tcp.goodbye()


@pair("C-CLOSE-SENT", cut=one_direction)
def stream_ended_without_close(d: Dialogue) -> None:
    d.begun()
    if d.wrong:
        d.client.fin().may_break("C-CLOSE-SENT")
        d.server.fin()
    else:
        d.goodbye()


@pair("C-CLOSE-ANSWER")
def close_never_answered(d: Dialogue) -> None:
    d.begun()
    d.client.close()
    if d.wrong:
        d.server.fin().may_break("C-CLOSE-ANSWER")
    else:
        d.server.close()
        d.server.fin()
    d.client.fin()


@pair("C-HDR-FORM")
def stream_begins_with_no_header(d: Dialogue) -> None:
    if d.wrong:
        d.client.say(b"amqp\0\1\0\0").breaks("C-HDR-FORM")
        d.client.open()
        d.server.header()
        d.server.fin()
        d.client.fin()
    else:
        d.client.header()
        d.server.header()
        d.client.open()
        d.server.open()
        d.goodbye()


@pair("C-HDR-VERMATCH")
def second_header(d: Dialogue) -> None:
    d.client.header()
    if d.wrong:
        d.client.header().may_break("C-HDR-VERMATCH")
    d.server.header()
    d.client.open()
    d.server.open()
    d.goodbye()


@legal("C-HDR-SERVER-WAIT")
def server_says_its_header_first(d: Dialogue) -> None:
    with d.on_their_way():
        d.server.header()
        d.client.header()
    d.client.open()
    d.server.open()
    d.goodbye()


@legal("C-IDLE-ZERO")
def idle_time_out_of_zero(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 0})
    d.client.begin()
    d.wait(seconds=120)
    d.server.begin()
    d.goodbye()


@legal("C-EMPTY-CHIGNORE")
def empty_frames_need_no_session(d: Dialogue) -> None:
    d.opened()
    d.client.empty()
    d.server.empty()
    d.client.begin()
    d.client.empty()
    d.server.begin()
    d.goodbye()


@legal("F-EMPTY-OK")
def heartbeats(d: Dialogue) -> None:
    d.opened(client={"idle_time_out": 1000}, server={"idle_time_out": 1000})
    for _ in range(5):
        d.wait(milliseconds=900)
        d.client.empty()
        d.server.empty()
    d.goodbye()


@legal("F-EXTHDR-IGNORE")
def extended_header(d: Dialogue) -> None:
    d.opened()
    d.client.frame(
        amqp.begin(next_outgoing_id=0, incoming_window=10, outgoing_window=10), extended=b"\0\1\2\3"
    )
    d.server.begin(remote_channel=0)
    d.goodbye()


@legal("headers, opens and closes cross")
def headers_opens_and_closes_cross(d: Dialogue) -> None:
    with d.on_their_way():
        d.client.header()
        d.server.header()
    with d.on_their_way():
        d.client.open()
        d.server.open()
    with d.on_their_way():
        d.client.close()
        d.server.close("amqp:connection:forced")
    d.tcp.goodbye()


@legal("frames behind the peer's close were on their way")
def frames_cross_a_close(d: Dialogue) -> None:
    d.linked()
    with d.on_their_way():
        d.server.close("amqp:connection:forced")
        d.client.transfer()
        d.client.transfer()
    d.client.close()
    d.tcp.goodbye()


@legal("everything pipelined on channel 0")
def pipelined_to_the_end(d: Dialogue) -> None:
    with d.unheard(d.server):
        d.client.header()
        d.client.open()
        d.client.begin()
        d.client.attach(SENDER)
        d.server.header()
        d.server.open()
        d.server.begin()
        d.server.attach(role=True)
        d.server.flow(handle=0)
    d.client.transfer()
    d.server.disposition(0)
    d.goodbye()


@pair("C-CLOSE-CH0-PIPE", cut=without("server header"))
def pipelined_close_off_channel_0(d: Dialogue) -> None:
    d.client.header()
    d.server.header().called("server header")
    d.client.open()
    said = d.client.close(channel=1 if d.wrong else 0)
    if d.wrong:
        said.breaks("C-CLOSE-CH0-PIPE")
    d.server.open()
    d.server.close()
    d.tcp.goodbye()


@pair("C-REDIRECT-INFO", then=SAME)
def redirect_without_address(d: Dialogue) -> None:
    d.opened()
    info: dict[str, object] = {"hostname": "h", "network-host": "n"}
    if not d.wrong:
        info["port"] = amqp.ushort(5672)
    error = amqp.error(condition="amqp:connection:redirect", info=info)
    said = d.server.frame(amqp.close(error=error))
    if d.wrong:
        said.breaks("C-REDIRECT-INFO")
    d.client.close()
    d.tcp.goodbye()


@legal("another header is the answer")
def another_header_is_the_answer(d: Dialogue) -> None:
    with d.on_their_way():
        d.client.header()
        d.client.open()
        d.server.header(3)
        d.server.fin()
    d.client.fin()


@legal("a session on each side, channels crossed, ended and begun at once")
def sessions_of_both_sides(d: Dialogue) -> None:
    d.opened()
    with d.on_their_way():
        d.client.begin(channel=0, remote_channel=None)
        d.server.begin(channel=0, remote_channel=None)
    with d.on_their_way():
        d.client.begin(channel=1, remote_channel=0)
        d.server.begin(channel=1, remote_channel=0)
    with d.on_their_way():
        d.client.end_session(channel=0)
        d.client.begin(channel=0, remote_channel=None)
        d.server.end_session(channel=0)
        d.server.begin(channel=0, remote_channel=None)
    with d.on_their_way():
        d.client.end_session(channel=1)
        d.client.begin(channel=1, remote_channel=0)
        d.server.end_session(channel=1)
        d.server.begin(channel=1, remote_channel=0)
    d.client.flow(channel=0, next_incoming_id=0)
    d.server.flow(channel=0, next_incoming_id=0)
    d.goodbye()


@pair("C-DIALECT-1239", then=SAME)
def open_of_the_draft(d: Dialogue) -> None:
    d.headers()
    if d.wrong:
        fields = amqp.list_([amqp.null(), "client", "broker.example", amqp.uint(65536), amqp.ushort(255)])
        d.client.frame(amqp.described(0x10, fields)).may_break("C-DIALECT-1239")
    else:
        d.client.open(hostname="broker.example", max_frame_size=65536, channel_max=255)
    d.server.open()
    d.server.close("amqp:decode-error")
    if not d.wrong:
        d.client.close()
    d.server.fin()
    d.client.fin()

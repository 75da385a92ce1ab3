"""What each endpoint of AMQP 0-9-1 is taken to know when a client does not wait, or a packet was cut."""

from __future__ import annotations

from support.dialogue091 import Dialogue091
from support.judged import Trickle
from support.tcp_writer import Capture

import amqpscope
from amqpscope.rules.amqp091.judge import Judge091
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import UNANSWERED


def judge_of(d: Dialogue091) -> Judge091:
    """The judge of a connection at the end of the capture."""
    with amqpscope.Capture(Trickle(d.pcap(), [100]), amqpscope.CaptureOptions(judge=True)) as capture:
        judge = None
        for _ in capture.blocks():
            judge = next((one.judge for one in capture._table._forward.values()), judge)
    assert isinstance(judge, Judge091)
    return judge


def server_view(d: Dialogue091, number: int = 1) -> Channel:
    """The channel as the server could know it at the end of the capture."""
    channel = judge_of(d).server.view.channel(number)
    assert channel is not None
    return channel


def test_a_close_that_gives_up_a_content_is_heard() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.confirms()
    d.client.publish_method()
    d.client.close_channel()
    d.server.heartbeat()
    channel = server_view(d)
    assert channel.state == "CLIENT CLOSES"
    assert channel.publishes.count == 0


def test_a_consumer_cancelled_before_it_is_answered_takes_no_name_from_another() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.declare()
    d.client.method("basic.consume", queue="q", consumer_tag="c")
    d.client.method("basic.consume", queue="q")
    d.client.method("basic.cancel", consumer_tag="c", no_wait=True)
    d.server.method("basic.consume-ok", consumer_tag="c")
    d.server.method("basic.consume-ok", consumer_tag="amq.ctag-1")
    channel = server_view(d)
    assert set(channel.consumers.live) == {"amq.ctag-1"}
    assert channel.consumers.live["amq.ctag-1"].ready
    assert channel.consumers.cancelled == {"c": UNANSWERED}


def test_of_what_was_cut_off_of_its_properties_nothing_is_known() -> None:
    d = Dialogue091(capture=Capture(snaplen=150))
    d.opened()
    d.client.heartbeat()
    views = (judge_of(d).client.view, judge_of(d).server.view)
    assert [(view.server, view.client) for view in views] == [(None, None)] * 2
    whole = Dialogue091()
    whole.opened()
    whole.client.heartbeat()
    view = judge_of(whole).client.view
    assert view.server is not None and view.client is not None

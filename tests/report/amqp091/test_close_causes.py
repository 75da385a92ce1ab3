"""What a close of AMQP 0-9-1 is traced to."""

from __future__ import annotations

import io

import pytest
from support.dialogue091 import Dialogue091

from amqpscope.input.capture import Capture as Reading
from amqpscope.report.amqp091.close_causes import CloseCauses091


def reported(d: Dialogue091) -> list[tuple[int, str]]:
    """The causes of all closes: each with the packet of the close, and its sentence."""
    causes = CloseCauses091()
    with Reading(io.BytesIO(d.pcap()), name="dialogue") as capture:
        for record in capture:
            causes.see(record)
    return [(one.packet, one.text) for one in causes.reported()]


def begun(**tune: int) -> Dialogue091:
    d = Dialogue091(**tune)
    d.opened()
    d.channel(1)
    return d


def test_a_close_is_traced_to_what_it_names() -> None:
    d = begun()
    d.client.publish(b"one", exchange="there")
    wrong = d.client.publish(b"two", exchange="missing")
    with d.on_their_way():
        d.client.publish(b"three", exchange="there")
        d.server.close_channel(404, "NOT_FOUND - no exchange 'missing' in vhost '/'", cause="basic.publish")
    (found,) = reported(d)
    assert (
        found[1]
        == f"channel 1 is closed because of basic.publish of the client in packet {d.packet_number(wrong)}"
    )


def test_a_close_for_a_malformed_frame_is_traced_to_it() -> None:
    d = begun()
    d.client.publish_method()
    wrong = d.client.publish_method()
    d.server.close_connection(505, "UNEXPECTED_FRAME", cause="basic.publish")
    packet = d.packet_number(wrong)
    ((_, text),) = reported(d)
    assert f"malformed basic.publish of the client in packet {packet} on channel 1" in text


@pytest.mark.parametrize(
    ("published", "closed", "packet"),
    [
        # The text names the exchange, and one publish went there.
        (["there", "none"], "no exchange 'none'", 1),
        # Two went there; the first of them is refused.
        (["none", "none"], "no exchange 'none'", 0),
    ],
)
def test_a_refused_publish_is_the_first_that_it_may_be(
    published: list[str], closed: str, packet: int
) -> None:
    d = begun()
    with d.unheard(d.server):
        packets = [d.packet_number(d.client.publish(b"x", exchange=name)) for name in published]
    d.server.close_channel(404, f"NOT_FOUND - {closed} in vhost '/'", "basic.publish")
    ((_, text),) = reported(d)
    more = ", the first of 2 possible causes" if published[0] == published[1] else ""
    assert (
        text
        == f"channel 1 is closed because of basic.publish of the client in packet {packets[packet]}{more}"
    )


def test_what_was_said_on_the_channel_before_it_was_opened_again_is_no_cause() -> None:
    d = begun()
    d.client.publish(b"x", exchange="none")
    d.client.method("channel.close", reply_code=200, reply_text="bye")
    d.server.method("channel.close-ok")
    d.channel(1)
    d.server.close_channel(404, "NOT_FOUND - no exchange 'none' in vhost '/'", "basic.publish")
    assert reported(d) == []

"""What a frame's header declares is not what was sent: it is judged when it is there, and never counted."""

from __future__ import annotations

import io

import pytest
from support import amqp10_encode as amqp
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091

import amqpscope
from amqpscope.model.finding import Finding
from amqpscope.report.frame_counts import Census

LIMIT = 5000
SIZES = (
    *(LIMIT - 1, LIMIT, LIMIT + 1, LIMIT + 8, LIMIT + 9),
    *(65_535, 65_536, 16 * 1024 * 1024, 16 * 1024 * 1024 + 1, 64 * 1024 * 1024, 64 * 1024 * 1024 + 1),
    *(2**31 - 1, 2**31, 2**32 - 8, 2**32 - 1),
)
"""What a header declares: around what was agreed, what is kept, what is believed, and what 32 bits hold."""

SENT = (8, 11, 12, 40, 900, 4990)
"""Octets of the frame that are sent, the header among them."""


def begun10(size: int, sent: int) -> tuple[Conversation, bytes]:
    """A transfer of so many octets by its header, to a peer that takes frames of LIMIT."""
    d = Dialogue()
    d.server.introduction = {"max_frame_size": LIMIT}
    d.linked(credit=10)
    body = amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t", message_format=0)
    return d, (size.to_bytes(4, "big") + b"\x02\0\0\0" + body + amqp.data(b"x" * 5000))[:sent]


def begun091(size: int, sent: int) -> tuple[Conversation, bytes]:
    """A body frame of so many octets by its header, where frames of LIMIT were agreed."""
    d = Dialogue091()
    d.opened(tune={"frame_max": LIMIT}, tune_ok={"frame_max": LIMIT})
    d.channel(1)
    d.client.publish_method()
    d.client.content_header(2**40)
    return d, (b"\x03\0\x01" + (size - 8).to_bytes(4, "big") + b"x" * 5000)[:sent]


WAYS = {"amqp10": (begun10, "amqp10/C-MAXFRAME"), "amqp091": (begun091, "amqp091/F-FRAME-SIZE")}


def reported(d: Conversation, rule: str) -> tuple[list[Finding], Census, list[amqpscope.FrameRecord]]:
    with amqpscope.Capture(io.BytesIO(d.pcap()), amqpscope.CaptureOptions(judge=True)) as capture:
        records = [record for block in capture.blocks() for record in block]
        findings = [finding for finding in capture.take_findings() if finding.rule == rule]
    census = Census()
    census.add(records)
    return findings, census, records


@pytest.mark.parametrize("protocol", WAYS)
@pytest.mark.parametrize("end", ["fin", "rst", "capture"])
@pytest.mark.parametrize("size", SIZES)
def test_a_frame_whose_header_declares_more_than_comes(protocol: str, size: int, end: str) -> None:
    begin, rule = WAYS[protocol]
    for sent in SENT:
        d, octets = begin(size, sent)
        said = d.client.say(octets)
        if end == "fin":
            d.client.fin()
        elif end == "rst":
            d.client.rst()
        findings, census, records = reported(d, rule)
        # Exactly what was sent, whatever was declared.
        assert census.octets == d.tcp.client.sent + d.tcp.server.sent
        assert census.missing == 0
        last = records[-1].frame
        assert (last.size, last.absent, last.uncaptured) == (len(octets), 0, 0)
        if size > LIMIT:
            (finding,) = findings
            assert (finding.peer, finding.certain) == ("client", True)
            assert finding.packet == d.packet_number(said)
            assert str(size) in finding.message
        else:
            assert findings == []


@pytest.mark.parametrize("protocol", WAYS)
@pytest.mark.parametrize("hole", [1, 100, 2000])
def test_a_hole_in_a_frame_that_is_not_finished(protocol: str, hole: int) -> None:
    """What the sequence numbers prove to be missing is, and no more."""
    begin, rule = WAYS[protocol]
    d, octets = begin(2**31 - 1, 4990)
    said = d.client.say(octets[:60])
    with d.missed():
        d.client.say(octets[60 : 60 + hole])
    d.client.say(octets[60 + hole :])
    d.client.fin()
    findings, census, records = reported(d, rule)
    assert census.octets == d.tcp.client.sent + d.tcp.server.sent - hole
    assert census.missing == hole
    assert records[-1].frame.uncaptured == hole
    (finding,) = findings
    assert (finding.certain, finding.packet) == (True, d.packet_number(said))


def test_a_frame_of_which_more_comes_than_is_kept() -> None:
    """All of it was captured: nothing is missing, though not all is kept."""
    size = 17 * 1024 * 1024
    d = Dialogue(segment=60_000)
    d.linked(credit=10)
    octets = size.to_bytes(4, "big") + b"\x02\0\0\0"
    octets += amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t", message_format=0)
    d.client.say(octets.ljust(size - 1000, b"x"))
    _, census, _ = reported(d, "")
    assert (census.octets, census.missing) == (d.tcp.client.sent + d.tcp.server.sent, 0)


def test_the_body_of_a_frame_that_is_not_finished_counts_as_sent() -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.client.publish_method()
    d.client.content_header(10)
    d.client.say(b"\x03\0\x01\xff\xff\xff\xf0" + b"x" * 5000)
    d.client.fin()
    (finding,), _, records = reported(d, "amqp091/F-BODY-OVERRUN")
    assert finding.message == (
        "with this body frame, the body has 4294967280 octets, but the content header announces 10"
    )
    message = records[-1].message
    assert message is not None and message.seen == 5000  # type: ignore[attr-defined]

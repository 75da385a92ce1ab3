"""The frames around a finding tell the sizes that were sent, however little is kept of them."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from support import amqp10_encode as amqp
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091

import amqpscope
from amqpscope.limits import CONTEXT_OCTETS
from amqpscope.model.records import FrameRecord
from amqpscope.report.links import LinkNames
from amqpscope.report.timeline import Clock, Timeline

LARGE = bytes(10_000)


def published() -> Conversation:
    """A body of 10,000 octets in two frames, and an acknowledgement of what was never delivered."""
    d = Dialogue091()
    d.opened()
    d.client.open_channel()
    d.server.channel_open_ok()
    d.client.publish(LARGE, frame_max=8200)
    d.client.publish(LARGE)
    d.client.ack(7)
    return d


def transferred() -> Conversation:
    """Large transfers, one of which ends no delivery, and one without credit."""
    d = Dialogue()
    d.linked(credit=2)
    message = amqp.section("data", amqp.binary(LARGE))
    d.client.transfer(message)
    d.client.transfer(LARGE, more=True)
    d.client.transfer(LARGE)
    d.client.transfer(message)
    return d


@pytest.mark.parametrize("dialogue", [published, transferred])
def test_sizes_around_a_finding_are_those_of_the_timeline(dialogue: Callable[[], Conversation]) -> None:
    octets = dialogue().pcap()
    with amqpscope.Capture(io.BytesIO(octets)) as capture:
        records = [record for block in capture.blocks() for record in block]
    sent = {(record.direction, int(record.frame.offset)): sizes(record) for record in records}
    with amqpscope.Capture(io.BytesIO(octets), amqpscope.CaptureOptions(judge=True, context=True)) as capture:
        findings = [finding for _ in capture.blocks() for finding in capture.take_findings()]
    around = [record for finding in findings for record in finding.around]
    assert all(len(record.frame.raw) <= CONTEXT_OCTETS for record in around)
    large = [record for record in around if record.frame.size > CONTEXT_OCTETS]
    assert large
    for record in large:
        assert sizes(record)[0] in (10_000, 10_008)
        assert sizes(record) == sent[record.direction, int(record.frame.offset)]


def sizes(record: FrameRecord) -> list[int]:
    """The octets that a frame's line tells of."""
    timeline = Timeline(Clock("r"), 0, LinkNames())
    text = "".join(part for line, _ in timeline.lines(record, None) for _, part in line)
    return [int(size) for size in re.findall(r"(\d+) octets", text)]

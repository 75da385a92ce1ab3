"""Who takes the frames of a connection."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091

from amqpscope.diagnoses.capture import CaptureDiagnoses
from amqpscope.input.capture import Capture, CaptureOptions


def delivered() -> Dialogue:
    d = Dialogue()
    d.opened()
    d.linked()
    d.client.transfer()
    d.goodbye()
    return d


def published() -> Dialogue091:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.client.publish()
    d.goodbye()
    return d


@pytest.mark.parametrize("dialogue", [delivered, published])
def test_each_connection_asks_once_who_takes_its_frames(dialogue: Callable[[], Conversation]) -> None:
    diagnoses = CaptureDiagnoses({})
    options = CaptureOptions(keep=False, ended=True, judge=True, records=False)
    with Capture(BytesIO(dialogue().pcap()), options, name="dialogue") as capture:
        capture.watch(diagnoses)
        for _ in capture.blocks():
            pass
        (analysis,) = capture.take_ended()
        watch = diagnoses.watched[analysis.connection]
        assert analysis.watch is watch and watch.messages == 1 and watch.transport.opened
        diagnoses.end(analysis)
    assert analysis.watch is None

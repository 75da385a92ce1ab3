"""The judge of a draft connection, given a frame of the final specification."""

from __future__ import annotations

from io import BytesIO

from support.dialogue_draft2011 import Dialogue2011
from support.draft2011_encode import RECEIVER

from amqpscope.input.capture import Capture
from amqpscope.rules.amqp10_draft2011.judge import JudgeDraft2011
from dissectors.amqp10.performatives import Transfer


def test_a_final_transfer_leaves_the_deliveries_of_other_handles_unsettled() -> None:
    d = Dialogue2011()
    d.linked()
    d.client.attach(handle=1, name="r", initial_delivery_count=0)
    d.server.attach(RECEIVER, handle=1, name="r")
    d.server.flow(handle=1, link_credit=10)
    d.client.transfer(handle=1, more=True)
    d.client.transfer(handle=0)
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        *before, last = capture
    judge = JudgeDraft2011(last.connection, [], None)
    for record in before:
        judge.take(record)
    session = judge.client.session_on(0)
    assert session is not None
    unsettled = dict(session.sending().unsettled)
    assert len(unsettled) == 1
    body = Transfer()
    body.handle = 0
    body.delivery_id = 1
    judge.take(last.with_frame(last.frame.with_body(body)))
    assert session.sending().unsettled.items() >= unsettled.items()

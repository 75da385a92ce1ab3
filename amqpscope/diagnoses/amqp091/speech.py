"""What frames of AMQP 0-9-1 say of their connection."""

from amqpscope.diagnoses.notebook import SECOND
from amqpscope.diagnoses.opening import OpeningWatch
from amqpscope.diagnoses.speech import Speech
from amqpscope.diagnoses.transport import TransportWatch
from amqpscope.model.records import CLIENT, FrameRecord
from dissectors.amqp091.methods import (
    ConnectionClose,
    ConnectionOpenOk,
    ConnectionSecureOk,
    ConnectionStart,
    ConnectionStartOk,
    ConnectionTune,
    ConnectionTuneOk,
)
from dissectors.amqp091.reply_code import reply_code
from dissectors.wire import i64

__all__ = ["Speech091"]


class Speech091(Speech):
    """Of AMQP 0-9-1."""

    def open(self, record: FrameRecord, side: i64, watch: OpeningWatch) -> None:
        body = record.frame.body
        if isinstance(body, ConnectionStart):
            watch.offered = ", ".join((body.mechanisms or b"").decode("ascii", "replace").split())
            watch.offered_packet = record.packet
        elif isinstance(body, ConnectionStartOk):
            watch.mechanism = body.mechanism or ""
            watch.chosen_packet = record.packet
        elif isinstance(body, ConnectionSecureOk):
            watch.chosen_packet = record.packet
        elif isinstance(body, ConnectionClose):
            if side == 1 and watch.chosen_packet and body.reply_code == 403:
                why = f"reply-code {reply_code(403)}"
                watch.refuse(record, "connection", CLIENT, why, {"code": 403})
            watch.answered = True
        elif isinstance(body, ConnectionTune):
            watch.answered = True

    def resume(self, body: object, watch: TransportWatch) -> None:
        watch.closed_first = isinstance(body, ConnectionClose)
        if isinstance(body, ConnectionClose):
            watch.close_text = body.reply_text or ""

    def connect(self, body: object, time: i64, side: i64, watch: TransportWatch) -> None:
        if isinstance(body, ConnectionClose):
            watch.side(side).closing = True
        elif isinstance(body, ConnectionOpenOk):
            watch.opened = watch.opened or side == 1
        elif isinstance(body, ConnectionTuneOk):
            for one in (0, 1):
                watch.agree(one, body.heartbeat * SECOND, time)

"""What frames of AMQP 1.0 say of their connection."""

from typing import Final

from amqpscope.diagnoses.opening import OpeningWatch
from amqpscope.diagnoses.speech import Speech
from amqpscope.diagnoses.transport import TransportWatch
from amqpscope.model.records import CLIENT, SERVER, FrameRecord
from amqpscope.tracking.amqp10.sasl_exchange import SASL_CODES
from dissectors.amqp10.performatives import Begin, Close, Open
from dissectors.amqp10.sasl import SaslInit, SaslMechanisms, SaslOutcome
from dissectors.wire import i64

__all__ = ["Speech10"]

# The error condition of a peer that stops waiting for the other peer's frames.
_GIVEN_UP: Final = "amqp:resource-limit-exceeded"


class Speech10(Speech):
    """Of AMQP 1.0."""

    def open(self, record: FrameRecord, side: i64, watch: OpeningWatch) -> None:
        body = record.frame.body
        if isinstance(body, SaslMechanisms):
            watch.offered = ", ".join(body.sasl_server_mechanisms or ())
            watch.offered_packet = record.packet
        elif isinstance(body, SaslInit):
            watch.mechanism = body.mechanism or ""
            watch.chosen_packet = record.packet
        elif isinstance(body, SaslOutcome) and body.code:
            outcome = SASL_CODES.get(body.code, str(body.code))
            whose = SERVER if body.code in (2, 3, 4) else CLIENT
            watch.refuse(record, "sasl", whose, f"sasl-outcome {outcome}", {"outcome": outcome})
        elif side == 1 and watch.went_on and isinstance(body, (Open, Begin)):
            # The server has accepted the login, and the client goes on in the version of the server.
            watch.answered = True

    def resume(self, body: object, watch: TransportWatch) -> None:
        watch.closed_first = isinstance(body, Close)
        if isinstance(body, Close) and body.error is not None:
            watch.close_text = f"{body.error.condition} {body.error.description}"

    def connect(self, body: object, time: i64, side: i64, watch: TransportWatch) -> None:
        if isinstance(body, Close):
            own = watch.side(side)
            own.closing = True
            own.given_up = body.error is not None and body.error.condition == _GIVEN_UP
        elif isinstance(body, Open):
            watch.opened = watch.opened or side == 1
            if body.idle_time_out:
                watch.agree(1 - side, body.idle_time_out * 1_000_000, time)

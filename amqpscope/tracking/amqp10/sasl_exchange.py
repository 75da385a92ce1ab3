"""A SASL exchange, as one of its ends knows it."""

from typing import Any, Final

from amqpscope.tracking.amqp10.states import (
    CLIENT_INIT,
    CLIENT_RESPONSE,
    SASL,
    SERVER_CHALLENGE,
    SERVER_MECHANISMS,
    SERVER_OUTCOME,
    SERVER_OUTCOME_FAILED,
    SERVER_OUTCOME_OK,
    START,
)
from dissectors.amqp10.portable import dump_value, load_value
from dissectors.amqp10.sasl import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse
from dissectors.wire import i64

__all__ = ["SASL_CODES", "SaslExchange", "sasl_input"]

SASL_CODES: Final = {0: "ok", 1: "auth", 2: "sys", 3: "sys-perm", 4: "sys-temp"}
"""The names of the codes of sasl-outcome."""

# security.xml, type sasl-code: what is beyond may mean anything.
_LAST_CODE: Final = 4


class SaslExchange:
    """What an endpoint has sent of a SASL exchange, and what it can have received."""

    def __init__(self) -> None:
        # A state of the table `SASL`.
        self.state: str = START
        # What the server offers.
        self.mechanisms: SaslMechanisms | None = None
        # What the client chose.
        self.init: SaslInit | None = None
        # How the server ended the exchange.
        self.outcome: SaslOutcome | None = None
        # Challenges without a response yet.
        self.challenges: i64 = 0

    def take(self, body: object) -> None:
        """The endpoint sends a frame of the exchange, or receives one that is the peer's to send."""
        self.state = SASL.after(self.state, sasl_input(body))
        if isinstance(body, SaslMechanisms):
            self.mechanisms = body
        elif isinstance(body, SaslInit):
            self.init = body
        elif isinstance(body, SaslChallenge):
            self.challenges += 1
        elif isinstance(body, SaslResponse):
            # A response that answers none uses up none of those that follow.
            self.challenges = max(self.challenges - 1, 0)
        elif isinstance(body, SaslOutcome):
            self.outcome = body

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            self.state,
            dump_value(self.mechanisms),
            dump_value(self.init),
            dump_value(self.outcome),
            int(self.challenges),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "SaslExchange":
        """The object of what `dump` returned."""
        exchange = SaslExchange()
        exchange.state = state[0]
        mechanisms, init, outcome = (load_value(body) for body in state[1:4])
        exchange.mechanisms = mechanisms if isinstance(mechanisms, SaslMechanisms) else None
        exchange.init = init if isinstance(init, SaslInit) else None
        exchange.outcome = outcome if isinstance(outcome, SaslOutcome) else None
        exchange.challenges = state[4]
        return exchange


def sasl_input(body: object) -> str:
    """The input of the table `SASL` that a frame is, "" if it is none; its first letter says whose it is."""
    if isinstance(body, SaslOutcome):
        code = body.code
        if code is None or code > _LAST_CODE:
            return SERVER_OUTCOME
        return SERVER_OUTCOME_OK if code == 0 else SERVER_OUTCOME_FAILED
    if isinstance(body, SaslMechanisms):
        return SERVER_MECHANISMS
    if isinstance(body, SaslInit):
        return CLIENT_INIT
    if isinstance(body, SaslChallenge):
        return SERVER_CHALLENGE
    return CLIENT_RESPONSE if isinstance(body, SaslResponse) else ""

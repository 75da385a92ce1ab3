"""A SASL exchange, as one of its ends knows it."""

from typing import Any

from dissectors.amqp10.portable import dump_value, load_value
from dissectors.amqp10.sasl import SaslInit, SaslMechanisms, SaslOutcome
from dissectors.wire import i64

__all__ = ["SaslExchange"]


class SaslExchange:
    """What an endpoint has sent of a SASL exchange, and what it can have received."""

    def __init__(self) -> None:
        # What the server offers.
        self.mechanisms: SaslMechanisms | None = None
        # What the client chose.
        self.init: SaslInit | None = None
        # How the server ended the exchange.
        self.outcome: SaslOutcome | None = None
        # Challenges without a response yet.
        self.challenges: i64 = 0

    def dump(self) -> tuple[object, ...]:
        """All of it as plain values."""
        return (
            dump_value(self.mechanisms),
            dump_value(self.init),
            dump_value(self.outcome),
            int(self.challenges),
        )

    @staticmethod
    def load(state: tuple[Any, ...]) -> "SaslExchange":
        """What `dump` gave, as an object again."""
        exchange = SaslExchange()
        mechanisms, init, outcome = (load_value(body) for body in state[:3])
        exchange.mechanisms = mechanisms if isinstance(mechanisms, SaslMechanisms) else None
        exchange.init = init if isinstance(init, SaslInit) else None
        exchange.outcome = outcome if isinstance(outcome, SaslOutcome) else None
        exchange.challenges = state[3]
        return exchange

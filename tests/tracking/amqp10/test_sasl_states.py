"""The table of a SASL exchange against the figure of the specification, written as a regular expression."""

from __future__ import annotations

import re
from itertools import product

import pytest

from amqpscope.tracking.amqp10.sasl_exchange import SaslExchange, sasl_input
from amqpscope.tracking.amqp10.states import SASL
from dissectors.amqp10.sasl import SaslChallenge, SaslInit, SaslMechanisms, SaslOutcome, SaslResponse

INPUTS = {
    "m": "S:MECHANISMS",
    "i": "C:INIT",
    "c": "S:CHALLENGE",
    "r": "C:RESPONSE",
    "k": "S:OUTCOME(ok)",
    "f": "S:OUTCOME(failed)",
    "u": "S:OUTCOME",
    "h": "C:HDR",
    "H": "S:HDR",
}
# Behind a failure before sasl-init the client may have sent one; an outcome with an unknown code may be any.
LEGAL = re.compile(r"(m(i[cr]*(k[hH]*|f|u[ihH]*)?|fi?|u[ihH]*)?)?")
LONGEST = 5


def walked(said: str) -> str | None:
    """The state behind inputs that all have a cell, None if one of them has none."""
    state = SASL.start
    for one in said:
        if not SASL.allows(state, INPUTS[one]):
            return None
        state = SASL.after(state, INPUTS[one])
    return state


@pytest.mark.parametrize("length", range(1, LONGEST + 1))
def test_what_has_cells_is_what_the_figure_allows(length: int) -> None:
    for said in map("".join, product(INPUTS, repeat=length)):
        assert (walked(said) is not None) == (LEGAL.fullmatch(said) is not None), said


@pytest.mark.parametrize(
    ("said", "state"),
    [("im", "CHOSEN"), ("kmi", "ACCEPTED"), ("mki", "ACCEPTED"), ("mifk", "ACCEPTED"), ("mikf", "REFUSED")],
)
def test_what_comes_out_of_turn_counts_all_the_same(said: str, state: str) -> None:
    reached = SASL.start
    for one in said:
        reached = SASL.after(reached, INPUTS[one])
    assert reached == state


def outcome(code: int | None) -> SaslOutcome:
    body = SaslOutcome()
    body.code = code
    return body


def test_frames_are_inputs() -> None:
    bodies = [SaslMechanisms(), SaslInit(), SaslChallenge(), SaslResponse()]
    assert [sasl_input(body) for body in bodies] == [INPUTS[one] for one in "micr"]
    codes = [sasl_input(outcome(code)) for code in (0, 1, 4, 5, None)]
    assert codes == [INPUTS[one] for one in "kffuu"]
    assert sasl_input(None) == ""


def test_an_exchange_goes_on_in_another_process() -> None:
    exchange = SaslExchange()
    for body in (SaslMechanisms(), SaslInit(), SaslChallenge()):
        exchange.take(body)
    again = SaslExchange.load(exchange.dump())  # type: ignore[arg-type]
    assert (again.state, again.challenges) == ("CHOSEN", 1)
    again.take(SaslResponse())
    again.take(outcome(0))
    assert (again.state, again.challenges) == ("ACCEPTED", 0)

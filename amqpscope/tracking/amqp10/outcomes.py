"""The outcome that a delivery state gives; and which outcomes a source allows the receiver to choose, as far
as its list of outcomes can be understood.

Sources: messaging.xml, "delivery-state" and "source", field outcomes; transactions.xml,
"transactional-state"; types.xml, "descriptor-values".
"""

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from dissectors.amqp10.messaging import Rejected, Source
from dissectors.amqp10.performatives import Error
from dissectors.amqp10.registry import FINAL
from dissectors.amqp10.transactions import TransactionalState
from dissectors.amqp10.values import Symbol
from dissectors.wire import i64

__all__ = ["error_in", "excludes", "foreign", "outcome_in"]


def outcome_in(state: object) -> object:
    """The outcome in a transactional state, None if there is none; any other state itself."""
    return state.outcome if isinstance(state, TransactionalState) else state


def error_in(outcome: object) -> Error | None:
    """The error that an outcome gives: only `rejected` has one."""
    return outcome.error if isinstance(outcome, Rejected) else None


def foreign(outcomes: list[Symbol]) -> tuple[Symbol, i64] | None:
    """The first symbol of a list of outcomes that stands for none, and how certain that is; None if all do.

    A symbol of another domain than `amqp` may stand for an outcome. So may one of that domain that we do not
    know, but that is not likely.
    """
    for symbol in outcomes:
        code = FINAL.code_of(symbol)
        known = FINAL.new(code) if code >= 0 else None
        if known is not None:
            if "outcome" in known.definition().provides:
                continue
            return (symbol, CERTAIN)
        domain, colon, name = symbol.partition(":")
        if domain and colon and name and domain != "amqp":
            continue
        return (symbol, POSSIBLE if domain == "amqp" and name else CERTAIN)
    return None


def excludes(source: Source, symbol: str) -> bool:
    """Whether a source lists its outcomes, and the one with this symbolic descriptor is not among them.

    If a symbol in the list stands for no outcome, nobody knows which one was meant by it: it may be this one.
    """
    outcomes = source.outcomes
    return outcomes is not None and len(outcomes) > 0 and symbol not in outcomes and foreign(outcomes) is None

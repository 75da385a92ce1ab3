"""Which rules are checked: the tables `RULES` of all files together.

A rule's function stands in the file of its subject, and its id beside it in the `RULES` of that file.
"""

from collections.abc import Iterable
from typing import Final

from amqpscope.rules.amqp10 import (
    attachment,
    condition,
    connection,
    content,
    coordinator,
    counting,
    delivery,
    ending,
    filtering,
    framing,
    idle,
    intermediary,
    link,
    message,
    negotiation,
    outcome,
    reaction,
    redelivery,
    refusal,
    resuming,
    resumption,
    sasl,
    session,
    settlement,
    terminus,
    tls,
    transaction,
    transactional_work,
    types,
    window,
)

__all__ = ["SUBJECTS", "checked"]

SUBJECTS: Final[dict[str, Iterable[str]]] = {
    "attachment": attachment.RULES,
    "condition": condition.RULES,
    "connection": connection.RULES,
    "counting": counting.RULES,
    "content": content.RULES,
    "coordinator": coordinator.RULES,
    "delivery": delivery.RULES,
    "ending": ending.RULES,
    "filtering": filtering.RULES,
    "framing": framing.RULES,
    "idle": idle.RULES,
    "intermediary": intermediary.RULES,
    "link": link.RULES,
    "message": message.RULES,
    "negotiation": negotiation.RULES,
    "reaction": reaction.RULES,
    "outcome": outcome.RULES,
    "redelivery": redelivery.RULES,
    "refusal": refusal.RULES,
    "resuming": resuming.RULES,
    "resumption": resumption.RULES,
    "sasl": sasl.RULES,
    "session": session.RULES,
    "settlement": settlement.RULES,
    "terminus": terminus.RULES,
    "tls": tls.RULES,
    "transaction": transaction.RULES,
    "transactional_work": transactional_work.RULES,
    "types": types.RULES,
    "window": window.RULES,
}
"""The rules of each file in `amqpscope/rules/amqp10/`."""

_CHECKED: Final[dict[str, str]] = {rule: subject for subject, rules in SUBJECTS.items() for rule in rules}


def checked() -> dict[str, str]:
    """The rules that are checked, each with the file that has it: `amqp10/L-CREDIT` is in `link`."""
    return dict(_CHECKED)

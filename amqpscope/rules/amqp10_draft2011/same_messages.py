"""The rules about the states of messages that the draft has in the same words as the final specification.

They are those of `rules.amqp10.redelivery` and `rules.amqp10.content`, reported as in `same`. Where those
speak of the header's delivery-count, the draft has delivery-failures.
"""

from typing import Final

from amqpscope.rules.amqp10 import judge  # noqa: F401
from amqpscope.rules.amqp10_draft2011.same import DOCUMENT
from amqpscope.rules.declaration import Rules

__all__ = ["RULES"]

RULES: Final = Rules(
    "amqp10_draft2011/same_messages",
    document=DOCUMENT,
    terms={
        "delivery-count": "delivery-failures",
        "undeliverable-here": "deliver-elsewhere",
        "message-annotations": "message-attrs",
        "an annotation": "an entry of message-attrs",
        "the annotation": "the message-attrs entry",
    },
)

_SAME: Final[dict[str, str]] = {
    "M-ID-UNIQUE": "4.2.3",
    "M-ACC-COUNT": "4.3.2",
    "M-REJ-COUNT": "4.2.2, 4.3.3",
    "M-REL-COUNT": "4.3.4",
    "M-MOD-COUNT": "4.3.5",
    "M-MOD-NOTHERE": "4.3.5",
    "M-MOD-ANNOT": "4.3.5",
    "M-ACQUIRED-EXCL": "4.4.1",
    "M-ACQUIRED-HOLD": "4.4.1",
    "M-DEFAULT-OUTCOME": "4.4.1, 4.5.3",
    "M-ACCEPT-NORESEND": "4.5.2",
}

# `judge` has imported all rules of the final specification, so they are declared.
for _rule, _section in _SAME.items():
    RULES.same(f"amqp10/{_rule}", _section)

"""The protocols that are decoded: the one place that knows which there are.

To add a protocol, write a file like `amqp091.py` in this package and add its object to `PROTOCOLS`. Whoever
needs what is particular to a protocol asks its object, by the name that a connection has
(`Connection.protocol`).

A connection may also have the name of a protocol that is recognised and not decoded (`dissectors.detect`).
"""

from collections import ChainMap
from collections.abc import Mapping
from typing import Final, cast

from amqpscope.errors import FilterError
from amqpscope.protocols.amqp091 import Amqp091
from amqpscope.protocols.amqp10 import Amqp10
from amqpscope.protocols.amqp10_draft2011 import Amqp10Draft2011
from amqpscope.protocols.interface import Protocol
from amqpscope.protocols.rule_space import RuleSpace, WebSocketRules
from dissectors.amqp10_draft2011.names import DRAFT_2011, FINAL_2011
from dissectors.detect import FOREIGN_PROTOCOLS, MORE, UNDECODED, UNKNOWN, UNKNOWN_DIALECT
from dissectors.foreign import NAMES

__all__ = [
    "DIALECTS",
    "PROTOCOLS",
    "RULE_SPACES",
    "Protocol",
    "any_decoded",
    "detected",
    "in_its_terms",
    "is_amqp",
    "known_dialect",
    "label",
    "protocol_of",
    "protocol_of_kind",
]

PROTOCOLS: Final[dict[str, Protocol]] = {one.name: one for one in (Amqp10(), Amqp091(), Amqp10Draft2011())}
"""By name. The order is that in which they are believed where octets could be either's."""

RULE_SPACES: Final[Mapping[str, RuleSpace]] = ChainMap(
    {one.name: one for one in (WebSocketRules(),)}, cast(dict[str, RuleSpace], PROTOCOLS)
)
"""What has rules, by the namespace of its rules: the protocols, then the layers below them."""

DIALECTS: Final[dict[tuple[str, str], str]] = {
    (one.usual or one.name, one.dialect): one.name for one in PROTOCOLS.values()
}
"""The name of the protocol that stands for a dialect (`StreamDecoder.dialect`) of a detected one."""


def known_dialect(name: str) -> str:
    """The dialect of AMQP 1.0, if there is one of this name; "" stands for finding out. Else FilterError."""
    if name not in ("", FINAL_2011, DRAFT_2011):
        raise FilterError(f"dialect {name}: must be {FINAL_2011} or {DRAFT_2011}")
    return name


def detected() -> list[Protocol]:
    """Those that the beginning of a direction shows. Dialects show behind it."""
    return [one for one in PROTOCOLS.values() if not one.usual]


_UNDECODED: Final = frozenset([*UNDECODED.values(), UNKNOWN_DIALECT])


def protocol_of(name: str) -> Protocol:
    """The protocol by which a connection of this name is judged and shown.

    Frames of a connection that is not decoded are protocol headers. They are judged by the first protocol,
    whose rules say what a protocol header has to be. Raises LookupError if nothing has such a name.
    """
    known = PROTOCOLS.get(name)
    if known is not None:
        return known
    if name in _UNDECODED or name in FOREIGN_PROTOCOLS or name in (MORE, UNKNOWN):
        return next(iter(PROTOCOLS.values()))
    raise LookupError(f"no protocol is called {name!r}")


def protocol_of_kind(kind: str, dialect: str = "") -> Protocol | None:
    """The protocol whose frames are of this kind (`Frame.kind`) and dialect; None if all have it, or none."""
    return next((one for one in PROTOCOLS.values() if kind in one.kinds and one.dialect == dialect), None)


def is_amqp(name: str) -> bool:
    """Whether a connection of this name speaks AMQP, in a version that is decoded or not."""
    return name in PROTOCOLS or name in _UNDECODED


def in_its_terms(name: str, text: str) -> str:
    """A text about the protocol of this name, with the words of its dialect."""
    for word, own in protocol_of(name).terms.items():
        text = text.replace(word, own)
    return text


def any_decoded(connections: Mapping[str, int]) -> bool:
    """Whether there are connections of a protocol that is decoded. connections: how many, by protocol."""
    return any(connections.get(name) for name in (*PROTOCOLS, UNKNOWN_DIALECT))


def label(name: str) -> str:
    """What people call the protocol or the rules of this name; the name itself if they have no other."""
    known = RULE_SPACES.get(name)
    return NAMES.get(name, name) if known is None else known.label

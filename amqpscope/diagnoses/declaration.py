"""The declaration of a diagnosis: everything about it that the program reads, beside the code that makes it.

    CREDIT_NONE: Final = declare(
        "credit-none",
        ("1.0",),
        '''A sender waits for credit that the receiver has never granted.

        What it means: ...
        ''',
        Limit("seconds", 10, "clients grant credit at once, or when they are first asked for a message"),
        explains=(MAY_END,),
    )

The words have fixed heads. `Client:` and `Server:` say what each of the two can change. `Not reported when:`
names similar situations without the diagnosis. `Discussions:` names reports of users. `explains` says how
`why --end` uses the diagnosis. No other file lists codes.
"""

from typing import Final, NamedTuple

__all__ = ["ENDS", "HEADS", "KINDS", "MAY_END", "NO_OPENING", "REFUSES", "Kind", "Limit", "declare"]

HEADS: Final = (
    "What it means",
    "Usual causes",
    "Who has to act",
    "Client",
    "Server",
    "Not reported when",
    "Discussions",
)
"""The heads of the words of a diagnosis, in order."""

ENDS: Final = "ends"
"""The sentence says that the other peer ends a connection, session, link or channel because of it."""

NO_OPENING: Final = "no-opening"
"""The connection ends because of it before AMQP is spoken."""

REFUSES: Final = "refuses"
"""The end is a refusal. The steps before the end say how sure they are."""

MAY_END: Final = "may-end"
"""A wait. Whoever waits for too long may end the connection, session, link or channel."""


class Limit(NamedTuple):
    """A number from which on a diagnosis is made: times are in seconds of packet time."""

    name: str
    value: float
    reason: str


class Kind:
    """A kind of diagnosis. code: `diag/...`. protocols: versions of AMQP that can have it.

    explains: which ends the diagnosis explains (ENDS, NO_OPENING, REFUSES, MAY_END), empty for none.
    trouble: whether the diagnosis is a problem, and not only a fact.
    """

    def __init__(
        self,
        code: str,
        protocols: tuple[str, ...],
        words: str,
        limits: tuple[Limit, ...],
        explains: tuple[str, ...] = (),
        trouble: bool = True,
    ) -> None:
        self.code = code
        self.protocols = protocols
        self.words = words
        self.limits = limits
        self.explains = explains
        self.trouble = trouble

    @property
    def name(self) -> str:
        """The code without its namespace."""
        return self.code.partition("/")[2]

    @property
    def sentence(self) -> str:
        """What it is, in one sentence."""
        return " ".join(self.words.partition("\n\n")[0].split())

    def limit(self, name: str) -> float:
        """The usual value of one of its limits."""
        for limit in self.limits:
            if limit.name == name:
                return limit.value
        raise KeyError(name)

    def sections(self) -> dict[str, str]:
        """The texts under the heads."""
        found: dict[str, str] = {}
        head = ""
        for line in self.words.partition("\n\n")[2].splitlines():
            name, colon, rest = line.strip().partition(":")
            if colon and name in HEADS:
                head = name
                found[head] = rest.strip()
            elif head and line.strip():
                found[head] += f" {line.strip()}"
        return found


KINDS: Final[dict[str, Kind]] = {}
"""The kinds of diagnoses of all files that are imported, by code."""


def declare(
    name: str,
    protocols: tuple[str, ...],
    words: str,
    *limits: Limit,
    explains: tuple[str, ...] = (),
    trouble: bool = True,
) -> Kind:
    """Declare a kind of diagnosis. The parameters are the fields of `Kind`."""
    kind = Kind(f"diag/{name}", protocols, words, limits, explains, trouble)
    if kind.code in KINDS:
        raise ValueError(f"{kind.code} is declared twice")
    KINDS[kind.code] = kind
    return kind

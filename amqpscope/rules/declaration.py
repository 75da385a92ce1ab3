"""The declaration of a rule: everything about it that the program reads, beside the function that judges it.

    RULES: Final = Rules("amqp10/link")

    L_CREDIT: Final = RULES.rule("L-CREDIT", "illegal", "definition", by="sender", answer="amqp:link:...")


    def transfer_beyond_credit(case: Case10, link: LinkEnd) -> None:
        '''A sender starts a delivery for which the receiver has granted no link-credit.

        Demands: No new message may be started while link-credit is zero or below.
        Source: transport.xml section links > Flow Control
        Why it matters: ...
        '''

`rule` returns the id with its namespace, which the function reports. The first docstring after the
declaration has the words of the rule; `explanation` reads it. Nothing else lists the ids of rules.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from amqpscope.protocols import RULE_SPACES

__all__ = ["DECLARED", "LAYERS", "SUBJECTS", "USUAL_SEVERITY", "Declaration", "Rules", "namespace_of"]

USUAL_SEVERITY: Final = {
    "MUST": "error",
    "MUST NOT": "error",
    "MAY NOT": "error",
    "illegal": "error",
    "IMPLIED": "error",
    "SHOULD": "warning",
    "SHOULD NOT": "warning",
}
"""The severity of breaking a rule of each level, unless its declaration gives a reason for another
severity.
"""

LAYERS: Final = tuple(
    dict.fromkeys(layer for protocol in RULE_SPACES.values() for layer in protocol.layers.values())
)
"""The layers of the rules, from the octets up: first those of AMQP 1.0, then those that only AMQP 0-9-1 has,
from channel on.
"""


_OF_OCTETS: Final = ("types", "framing", "messaging")
"""The layers whose rules rest on octets."""


class Declaration(NamedTuple):
    """What decides how a rule is judged, weighed and selected.

    id: with its namespace, `amqp10/L-CREDIT`. subject: the file that declares it, as `amqp10/link`. layer:
    one of `LAYERS`. level: MUST, SHOULD, illegal... basis: how the specification expresses the rule. breaker:
    who can break it. severity: `error`, `warning` or `note`; severity_reason: why it differs from
    `USUAL_SEVERITY`, or "". answer: the answer of a correct peer, an error condition of AMQP 1.0 or a close
    of AMQP 0-9-1, several joined by ` or `; "" if none is known. answer_named: whether the specification
    names that answer for this fault. broker_codes: other reply-codes with which brokers are known to answer.
    renamed_from: earlier ids of the rule, the first one first, which configurations may still use. proved:
    how certain a problem of the dissector is whose code is the name of the rule: `certain`; `possible`, if
    the octets may be legal; `properties`, if a broker may have forwarded them. "" if a function judges.
    octets: whether the rule rests on the octets of frames, and not on their fields alone. Such a rule is
    silent about a log of frames, which has no encodings, no sizes and no messages.
    same_as: the rule of another edition that has the function and the words, "" if the rule has its own.
    section: the section of its own edition that states the rule.
    """

    id: str
    subject: str
    layer: str
    level: str
    basis: str
    breaker: str
    severity: str
    severity_reason: str
    answer: str
    answer_named: bool
    broker_codes: tuple[str, ...]
    renamed_from: tuple[str, ...]
    proved: str
    octets: bool
    same_as: str = ""
    section: str = ""

    def first_name(self) -> str:
        """The first id that the rule had. Fingerprints of findings use it, whatever the rule is
        called now.
        """
        return self.renamed_from[0] if self.renamed_from else self.id


DECLARED: Final[dict[str, Declaration]] = {}
"""The rules of all files that are imported, by id."""

SUBJECTS: Final[dict[str, "Rules"]] = {}
"""The files of rules that are imported, by their paths in `amqpscope/rules/`."""


def namespace_of(subject: str) -> str:
    """The namespace of the rules in a file: the name of its protocol."""
    return subject.partition("/")[0].replace("_", "-")


class Rules:
    """The rules of one file, in the order in which they are declared.

    subject: the file's path in `amqpscope/rules/`, without its ending: `amqp10/link`. ids: of its rules.
    Where rules are the `same` as in another edition: document: what states them; terms: its words for those
    of the other edition.
    """

    def __init__(self, subject: str, document: str = "", terms: Mapping[str, str] | None = None) -> None:
        self.subject = subject
        self.document = document
        self.terms: Mapping[str, str] = terms or {}
        self.namespace = namespace_of(subject)
        self.ids: list[str] = []
        SUBJECTS[subject] = self

    def rule(
        self,
        name: str,
        level: str,
        basis: str,
        by: str = "either",
        *,
        error: str = "",
        warning: str = "",
        note: str = "",
        answer: str = "",
        usual_answer: str = "",
        broker_codes: tuple[str, ...] = (),
        layer: str = "",
        renamed_from: tuple[str, ...] = (),
        proved: str = "",
        octets: bool | None = None,
    ) -> str:
        """Declare a rule; return its id with the namespace.

        error, warning, note: the reason for that severity, if it is not the usual one of the level. answer:
        the answer that the specification names for this fault; usual_answer: the answer that it names for
        faults of this kind. layer: the layer, if the name of the rule does not show it. renamed_from: earlier
        names of the rule. proved: how certain a problem of the dissector is; octets: whether the rule rests
        on octets, see `Declaration`. By default, a rule rests on octets if it is about types, framing or
        messages, or if the dissector proves it.
        """
        whole = f"{self.namespace}/{name}"
        if whole in DECLARED:
            raise ValueError(f"{whole} is declared twice")
        layer = layer or RULE_SPACES[self.namespace].layers[name.partition("-")[0]]
        severity = "error" if error else "warning" if warning else "note" if note else USUAL_SEVERITY[level]
        DECLARED[whole] = Declaration(
            whole,
            self.subject,
            layer,
            level,
            basis,
            by,
            severity,
            error or warning or note,
            answer or usual_answer,
            bool(answer),
            broker_codes,
            tuple(f"{self.namespace}/{old}" for old in renamed_from),
            proved,
            (bool(proved) or layer in _OF_OCTETS) if octets is None else octets,
        )
        self.ids.append(whole)
        return whole

    def in_its_terms(self, text: str) -> str:
        """A text of the other edition with this edition's words."""
        for other, term in self.terms.items():
            text = text.replace(other, term)
        return text

    def same(self, other: str, section: str, answer: str | None = None) -> None:
        """Declares the rule that another edition of the protocol has in the same words.

        other: the id of that rule, which has the function and the docstring. section: where this edition
        states the rule. answer: what this edition names for the fault, None for the same.
        """
        declared = DECLARED[other]
        whole = f"{self.namespace}/{other.partition('/')[2]}"
        if whole in DECLARED:
            raise ValueError(f"{whole} is declared twice")
        one = declared._replace(
            id=whole, subject=self.subject, renamed_from=(), same_as=other, section=section
        )
        if answer is not None:
            one = one._replace(answer=answer, answer_named=answer != "")
        DECLARED[whole] = one
        self.ids.append(whole)

"""The declaration of a rule: everything about it that the program reads, beside the function that judges it.

    RULES: Final = Rules("amqp10/link")

    L_CREDIT: Final = RULES.rule("L-CREDIT", "illegal", "definition", by="sender", answer="amqp:link:...")


    def transfer_beyond_credit(case: Case10, link: LinkEnd) -> None:
        '''A sender starts a delivery for which the receiver has granted no link-credit.

        Demands: No new message may be started while link-credit is zero or below.
        Source: transport.xml section links > Flow Control
        Why it matters: ...
        '''

`rule` gives the id with its namespace, by which the function reports. The first docstring behind the
declaration has the words of the rule; `explanation` reads it. Nothing else lists the ids of rules.
"""

from typing import Final, NamedTuple

from amqpscope.protocols import PROTOCOLS

__all__ = ["DECLARED", "LAYERS", "SUBJECTS", "USUAL_SEVERITY", "Declaration", "Rules"]

USUAL_SEVERITY: Final = {
    "MUST": "error",
    "MUST NOT": "error",
    "MAY NOT": "error",
    "illegal": "error",
    "IMPLIED": "error",
    "SHOULD": "warning",
    "SHOULD NOT": "warning",
}
"""What breaking a rule of each level amounts to, unless its declaration gives a reason for another
severity."""

LAYERS: Final = tuple(
    dict.fromkeys(layer for protocol in PROTOCOLS.values() for layer in protocol.layers.values())
)
"""The layers of the rules, from the octets up: AMQP 1.0's, and from channel on those of AMQP 0-9-1."""


class Declaration(NamedTuple):
    """What decides how a rule is judged, weighed and selected.

    id: with its namespace, `amqp10/L-CREDIT`. subject: the file that has it, as `amqp10/link`. layer: one of
    `LAYERS`. level: MUST, SHOULD, illegal... basis: how the text says so. breaker: who can break it.
    severity: `error`, `warning` or `note`; severity_reason: why it is another one than `USUAL_SEVERITY`, or
    "". answer: what a correct peer answers, an error condition of AMQP 1.0 or a close of AMQP 0-9-1, several
    joined by ` or `; "" if none is known. answer_named: the specification names that answer for this fault.
    broker_codes: reply codes that brokers are known to answer with instead. renamed_from: ids that the rule
    had before, the first one first, which configurations may still name. proved: the dissector alone proves
    the fault, by a problem whose code is the name of the rule: `certain`; `possible`, where the octets may be
    legal; `properties`, where a broker hands on what it received. "" if a function judges.
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

    def first_name(self) -> str:
        """The id that the rule had first: by it findings are known again, whatever the rule is called now."""
        return self.renamed_from[0] if self.renamed_from else self.id


DECLARED: Final[dict[str, Declaration]] = {}
"""The rules of all files that are imported, by id."""

SUBJECTS: Final[dict[str, "Rules"]] = {}
"""The files of rules that are imported, by their paths in `amqpscope/rules/`."""


class Rules:
    """The rules of one file, in the order in which they are declared.

    subject: the file's path in `amqpscope/rules/`, without its ending: `amqp10/link`. ids: of its rules.
    """

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.namespace = subject.partition("/")[0]
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
    ) -> str:
        """Declares a rule; gives its id with the namespace.

        error, warning, note: the reason for that severity, where it is not the usual one of the level.
        answer: what the specification names for this fault; usual_answer: what it names for faults of this
        kind. layer: where the name does not tell it. renamed_from: names that the rule had before. proved:
        how certain a problem of the dissector is, see `Declaration`.
        """
        whole = f"{self.namespace}/{name}"
        if whole in DECLARED:
            raise ValueError(f"{whole} is declared twice")
        severity = "error" if error else "warning" if warning else "note" if note else USUAL_SEVERITY[level]
        DECLARED[whole] = Declaration(
            whole,
            self.subject,
            layer or PROTOCOLS[self.namespace].layers[name.partition("-")[0]],
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
        )
        self.ids.append(whole)
        return whole

"""How much of the catalogue is checked, proved by judging the captures of every rule in this run.

A rule counts as checked when each of its violating captures gives exactly what is announced, its clean
ones give nothing of any rule, and its cut ones what is promised of them.
"""

import io
from typing import NamedTuple

from amqpscope.conformance.pairs import CLEAN, CUT, LEGAL, VIOLATING, CapturePairs, Pair, Verdict
from amqpscope.errors import CaptureError
from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.model.finding import Finding
from amqpscope.model.records import FrameRecord
from amqpscope.rules.catalogue import Named, Rule, catalogue, guards
from amqpscope.rules.editions import FINAL, shown_in
from amqpscope.rules.registry import checked

__all__ = [
    "CHECKED",
    "FAILED",
    "NOT_YET",
    "UNDECIDABLE",
    "Coverage",
    "Proof",
    "coverage",
    "judged",
    "standing",
    "status",
]

CHECKED, FAILED, NOT_YET, UNDECIDABLE = "checked", "failed", "not yet", "not decidable"


class Proof(NamedTuple):
    """A row of the catalogue, and how it stands.

    status: one of CHECKED, FAILED, NOT_YET, UNDECIDABLE; of a guard CHECKED (silent) or FAILED. failures:
    what its captures gave that they should not, or the other way round, as sentences.
    """

    rule: Rule
    status: str
    failures: tuple[str, ...]


class Coverage(NamedTuple):
    """All rules, and all guards, in the order of the catalogue."""

    rules: list[Proof]
    guards: list[Proof]

    @property
    def failed(self) -> bool:
        """Whether any rule or guard failed."""
        return any(proof.status == FAILED for proof in (*self.rules, *self.guards))


def judged(octets: bytes, name: str, spec: str = FINAL) -> tuple[list[FrameRecord], list[Finding]]:
    """The frames of a capture and what is found in them by an edition. Raises CaptureError if it is none."""
    with Capture(io.BytesIO(octets), CaptureOptions(judge=True, spec=spec), name=name) as capture:
        frames = list(capture)
        return frames, capture.take_findings()


def status(rule: Rule) -> str:
    """How a rule stands, before its captures are judged."""
    if rule.id in checked():
        return CHECKED
    return UNDECIDABLE if rule.observable == "no" else NOT_YET


def coverage(pairs: CapturePairs) -> Coverage:
    """Judge all captures. What cannot be read has failed."""
    failures: dict[str, list[str]] = {rule: [] for rule in checked()}
    reported: set[str] = set()
    for pair in pairs.pairs.values():
        reported.update(pair.rules)
        for rule, failure in _pair(pairs, pair):
            failures.setdefault(rule, []).append(failure)
    for rule in checked():
        if rule not in reported:
            failures[rule].append("it has no captures")
    rules = []
    for row in catalogue().values():
        wrong = tuple(failures.get(row.id, ()))
        rules.append(Proof(row, FAILED if wrong else status(row), wrong))
    legal = []
    for row in guards().values():
        wrong = tuple(_guard(pairs, row.id))
        legal.append(Proof(row, FAILED if wrong else CHECKED, wrong))
    return Coverage(rules, legal)


def standing(one: Named, proved: Coverage) -> str:
    """How a rule that the XML names stands: as the best of the rows that it comes to.

    UNDECIDABLE also if it has none, and only permits something.
    """
    by_id = {proof.rule.id: proof.status for proof in proved.rules}
    ways = {by_id[name] for name in one.rules}
    return next((how for how in (FAILED, CHECKED, NOT_YET) if how in ways), UNDECIDABLE)


def _pair(pairs: CapturePairs, pair: Pair) -> list[tuple[str, str]]:
    """What is wrong with a pair's captures: of which rule, and a sentence."""
    wrong: list[tuple[str, str]] = []
    for which in (VIOLATING, CLEAN, CUT):
        path = f"{pair.folder}/{which}.pcap"
        try:
            found = _verdicts(pairs.octets(pair.folder, which), path, shown_in(pair.rules[0]))
        except CaptureError as error:
            wrong += [(rule, str(error)) for rule in pair.rules]
            continue
        expected: tuple[Verdict, ...] = ()
        if which == VIOLATING:
            expected = pair.violating
        elif which == CUT:
            # Others may still speak: the promise is about these rules.
            expected = pair.cut
            found = [verdict for verdict in found if verdict.rule in pair.rules]
        for verdict in _without(list(expected), found):
            wrong.append((verdict.rule, f"{path}: not found: {verdict}"))
        for verdict in _without(found, list(expected)):
            # A finding of another rule fails the rules that these captures are about.
            about = (verdict.rule,) if verdict.rule in pair.rules else pair.rules
            wrong += [(rule, f"{path}: found, and should not be: {verdict}") for rule in about]
    return wrong


def _guard(pairs: CapturePairs, rule: str) -> list[str]:
    """What is found in legal traffic."""
    try:
        found = _verdicts(pairs.octets(rule, LEGAL), rule)
    except CaptureError as error:
        return [str(error)]
    return [f"{rule}/{LEGAL}.pcap: found, and should not be: {verdict}" for verdict in found]


def _verdicts(octets: bytes, name: str, spec: str = FINAL) -> list[Verdict]:
    _, findings = judged(octets, name, spec)
    return sorted(
        Verdict(finding.rule, finding.peer, int(finding.packet), finding.certain) for finding in findings
    )


def _without(verdicts: list[Verdict], others: list[Verdict]) -> list[Verdict]:
    """The verdicts that are not among the others, each as often as it is more often there."""
    left = list(others)
    rest = []
    for verdict in verdicts:
        if verdict in left:
            left.remove(verdict)
        else:
            rest.append(verdict)
    return rest

"""A policy: what is judged by which text, what is shown, what it weighs, and what counts.

It comes from a configuration file, from what was given besides (on a command line, which beats the file), or
from both. It holds nothing of a run: what it decides of the findings of one is in `Rulings`.
"""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Final

from amqpscope.diagnoses.registry import known_codes
from amqpscope.model.finding import Finding
from amqpscope.policy.allow_list import Allowance
from amqpscope.policy.config_finding import EXPIRED, REMARKS, UNUSED, ConfigFinding, RunConclusion
from amqpscope.policy.configuration import Configuration, find_configuration, read_configuration
from amqpscope.policy.selectors import FindingChoice, Levels, selectors
from amqpscope.policy.terms import COUNTING, Terms
from amqpscope.rules import editions
from amqpscope.rules.editions import FINAL
from amqpscope.rules.profiles import AUTO, valid, weight

if TYPE_CHECKING:
    from amqpscope.policy.baseline import Baseline

ALLOW: Final = "allow"
BASELINE: Final = "baseline"

__all__ = ["Given", "Policy", "Rulings", "load_policy"]


class Given:
    """What is given beside a configuration file, and beats it; None where nothing is."""

    def __init__(self) -> None:
        self.select: list[str] | None = None
        self.ignore: list[str] | None = None
        self.fail_on: str | None = None
        self.fail_on_possible: bool | None = None
        self.strict: bool | None = None
        self.allow_empty: bool | None = None
        self.spec: str | None = None
        self.profile: str | None = None
        self.baseline: str | None = None
        # Codes of diagnoses for which a run fails, and whether any are made.
        self.fail_on_diagnosis: list[str] | None = None
        self.diagnoses: bool | None = None


class Policy:
    """What findings are held to.

    configuration: what the file says; given: what was given besides. terms: which findings count. spec,
    profile: as of `input.capture.Capture`. today: the day by which entries of the allow-list expire;
    without it none does. baseline: what does not count since it was known before. gather: the file of a
    baseline that is to be made of what is found, into `gathered`, so that none holds. Raises FilterError for
    what was given and makes no sense, ConfigurationError for a baseline that is none.
    """

    def __init__(
        self,
        configuration: Configuration | None = None,
        given: Given | None = None,
        today: datetime.date = datetime.date.min,
        gather: str | None = None,
    ) -> None:
        self.configuration = configuration or Configuration()
        self.today = today
        given = given or Given()
        values = self.configuration.values
        self.terms = _terms(self.configuration, given)
        self.spec: str = editions.known(given.spec or values.get("spec", FINAL))
        self.profile: str = valid(given.profile if given.profile is not None else values.get("profile", AUTO))
        select: list[str] | None = values.get("select")
        self._choices = [
            FindingChoice(
                None if select is None else selectors("select", select),
                selectors("ignore", values.get("ignore", [])),
            )
        ]
        # What is given to be selected replaces what the file selects; what the file ignores stays ignored.
        if given.select is not None:
            self._choices[0].select = selectors("--select", given.select)
        if given.ignore is not None:
            only = None if given.select is None else selectors("--select", given.select)
            self._choices.append(FindingChoice(only, selectors("--ignore", given.ignore)))
        self._levels = Levels(self.configuration.levels)
        # The limits of diagnoses that are configured, by `code.limit`, and the codes for which a run fails.
        self.limits: dict[str, float] = values.get("diagnosis-limits", {})
        failing = given.fail_on_diagnosis
        diagnoses = given.diagnoses
        if failing is None:
            # Who is given that there are no diagnoses asks for none of those that the file names.
            failing = [] if diagnoses is False else values.get("fail-on-diagnosis", [])
        self._failing = known_codes(failing, "--fail-on-diagnosis")
        self._diagnoses: bool = bool(values.get("diagnoses", True) if diagnoses is None else diagnoses)
        self.baseline: Baseline | None = None
        self.gathered: Baseline | None = None
        known: str | None = given.baseline
        if known is None and "baseline" in values:
            known = self.configuration.path(values["baseline"])
        if gather is not None or known is not None:
            from amqpscope.policy.baseline import Baseline, read_baseline  # brings what knows findings again

            if gather is not None:
                self.gathered = Baseline(gather)
            elif known is not None:
                self.baseline = read_baseline(known)
        self._allowances: dict[str, list[Allowance]] = {}
        for one in self.configuration.allowances:
            if not one.expired(today):
                for rule in one.rules:
                    self._allowances.setdefault(rule, []).append(one)

    def decides_as(self, other: Policy) -> bool:
        """Whether it decides of all findings as another one of the same configuration and options, which was
        made at another time: entries of the allow-list may have expired, or the baseline be another one.
        """
        return self._allowances == other._allowances and (
            self.baseline is None or (other.baseline is not None and self.baseline.same_as(other.baseline))
        )

    def diagnosing(self, wanted: bool) -> bool:
        """Whether diagnoses are made. wanted: somebody shows them."""
        return bool(self._failing) or (wanted and self._diagnoses)

    def fails_for(self, code: str) -> bool:
        """Whether a diagnosis of this code counts for the outcome."""
        return code in self._failing

    def counts(self, finding: Finding) -> bool:
        """Whether a finding, of which was decided, makes the run fail."""
        return self.terms.counts(finding)

    def level(self, rule: str) -> str:
        """The severity set for a rule, "" for none."""
        return self._levels.of(rule)

    def allowances(self, finding: Finding, capture: str = "") -> list[Allowance]:
        """The entries of the allow-list that hold, and fit a finding. capture: see `Allowance.fits`."""
        return [one for one in self._allowances.get(finding.rule, ()) if one.fits(finding, capture)]

    def takes(self, finding: Finding) -> bool:
        """Whether a finding is selected and not ignored, by its rule and what it weighs."""
        return all(choice.takes(finding.rule, weight(finding)) for choice in self._choices)


class Rulings:
    """What a policy decides of the findings of one run."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._used: set[int] = set()
        self._captures: list[str] = []
        self._ended: set[str] = set()
        # Fingerprints of the baseline that were found again.
        self._again: set[str] = set()

    def begin(self, capture: str) -> None:
        """A capture of this name is judged."""
        self._captures.append(capture)

    def ended(self, capture: str) -> None:
        """A capture of this name was read to its end, and nothing of it is missing."""
        self._ended.add(capture)

    @property
    def used(self) -> set[int]:
        """The numbers of the entries of the allow-list that have excused a finding, here or elsewhere."""
        return self._used

    def decide(self, finding: Finding, capture: str = "") -> bool:
        """Set what a finding weighs, and why it does not count; False: it is not to be shown at all.

        The same finding may come again. capture: see `Allowance.fits`.
        """
        policy = self.policy
        suppressed_by = reason = ""
        # Also of what is ignored: an entry for it is not out of date.
        allowances = policy.allowances(finding, capture)
        if allowances:
            self._used.update(one.number for one in allowances)
            suppressed_by, reason = ALLOW, allowances[0].reason
        finding.assessment = finding.assessment.by_policy(policy.level(finding.rule), suppressed_by, reason)
        taken = policy.takes(finding)
        if policy.baseline is not None or policy.gathered is not None:
            self._compare(finding, taken and not allowances)
        return taken

    def _compare(self, finding: Finding, counted: bool) -> None:
        """Look a finding up in the baseline, or add it to the one that is made, if it is `counted`."""
        from amqpscope.rules.fingerprint import fingerprint

        policy = self.policy
        if policy.baseline is not None:
            number = fingerprint(finding)
            if number in policy.baseline.known:
                self._again.add(number)
                self._suppress_known(finding, policy.baseline)
        elif policy.gathered is not None and counted:
            policy.gathered.add(fingerprint(finding), finding)
            self._suppress_known(finding, policy.gathered)

    def _suppress_known(self, finding: Finding, baseline: Baseline) -> None:
        if not finding.assessment.suppressed_by:
            level = finding.assessment.level
            finding.assessment = finding.assessment.by_policy(level, BASELINE, baseline.file)

    def close(self, whole: bool) -> RunConclusion:
        """What is to be said at the end. whole: no capture is missing among those that were judged."""
        whole = whole and self._ended.issuperset(self._captures)
        closing = RunConclusion()
        configuration = self.policy.configuration
        lines: list[int] = []
        for one in configuration.allowances:
            expired = one.expired(self.policy.today)
            if not expired and (not whole or not self._missed(one)):
                continue
            lines = lines or configuration.lines_of_allowances()
            kind = EXPIRED if expired else UNUSED
            what = (
                f"expired on {one.expires} and excuses no findings any more"
                if expired
                else "matches no finding"
            )
            evidence = {"entry": one.number, "rules": ", ".join(one.words), "reason": one.reason}
            if one.expires is not None:
                evidence["expires"] = str(one.expires)
            closing.remarks.append(
                ConfigFinding(
                    kind,
                    f"entry {one.number} of the allow-list, for {evidence['rules']}, {what} ({one.reason})",
                    configuration.file,
                    lines[one.number - 1],
                    evidence,
                    expired and REMARKS[EXPIRED].severity in self.policy.terms.severities,
                )
            )
        baseline = self.policy.baseline
        if baseline is not None:
            closing.baseline = baseline.file
            ended = {baseline.path(capture) for capture in self._ended}
            for known in sorted(baseline.known.values(), key=lambda one: one.order):
                if (
                    known.fingerprint not in self._again
                    and known.captures
                    and ended.issuperset(known.captures)
                ):
                    closing.fixed.append(known)
        return closing

    def _missed(self, one: Allowance) -> bool:
        """Whether an entry could have fitted, and did not: one for another capture could not."""
        return one.number not in self._used and any(one.fits_capture(name) for name in self._captures)


def load_policy(
    file: str | None = None, given: Given | None = None, today: datetime.date | None = None
) -> Policy:
    """The policy of this configuration file; without one of the nearest, or that of nobody's.

    today: without it, the day that it is here. Raises ConfigurationError, or FilterError for what was given
    besides.
    """
    configuration = find_configuration() if file is None else read_configuration(file)
    return Policy(configuration, given, today or datetime.datetime.now().astimezone().date())


def _terms(configuration: Configuration, given: Given) -> Terms:
    """Which findings count: `strict` raises what is said beside it in the same place, and what is below."""
    values = configuration.values
    fail_on: str = values.get("fail-on", "error")
    possible: bool = values.get("fail-on-possible", False)
    fail_on, possible = _stricter(fail_on, possible, values.get("strict", False))
    if given.strict is False:
        fail_on, possible = values.get("fail-on", "error"), values.get("fail-on-possible", False)
    fail_on = given.fail_on or fail_on
    possible = possible if given.fail_on_possible is None else given.fail_on_possible
    fail_on, possible = _stricter(fail_on, possible, given.strict or False)
    allow_empty: bool = values.get("allow-empty", False)
    return Terms(COUNTING[fail_on], possible, allow_empty if given.allow_empty is None else given.allow_empty)


def _stricter(fail_on: str, possible: bool, strict: bool) -> tuple[str, bool]:
    """As `strict` has it: warnings, and what is possible, count, too."""
    if not strict:
        return fail_on, possible
    return (fail_on if fail_on == "note" else "warning"), True

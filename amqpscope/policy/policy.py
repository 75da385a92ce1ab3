"""A policy: what is judged by which text, what is shown, what it weighs, and what counts.

It comes from a configuration file, from what was given besides (on a command line, which beats the file), or
from both. It holds nothing of a run: what it decides of the findings of one is in `Rulings`.
"""

from amqpscope.finding import Finding
from amqpscope.policy.configuration import Configuration, find_configuration, read_configuration
from amqpscope.policy.selectors import Choice, Levels, selectors
from amqpscope.policy.terms import COUNTING, Terms
from amqpscope.rules.editions import FINAL, known
from amqpscope.rules.profiles import AUTO, valid, weight

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


class Policy:
    """What findings are held to.

    configuration: what the file says; given: what was given besides. terms: which findings count. spec,
    profile: as of `amqpscope.reading.Capture`. Raises FilterError for what was given and makes no sense.
    """

    def __init__(self, configuration: Configuration | None = None, given: Given | None = None) -> None:
        self.configuration = configuration or Configuration()
        given = given or Given()
        values = self.configuration.values
        self.terms = _terms(self.configuration, given)
        self.spec: str = known(given.spec or values.get("spec", FINAL))
        self.profile: str = valid(given.profile if given.profile is not None else values.get("profile", AUTO))
        select: list[str] | None = values.get("select")
        self._choices = [
            Choice(
                None if select is None else selectors("select", select),
                selectors("ignore", values.get("ignore", [])),
            )
        ]
        # What is given to be selected replaces what the file selects; what the file ignores stays ignored.
        if given.select is not None:
            self._choices[0].select = selectors("--select", given.select)
        if given.ignore is not None:
            only = None if given.select is None else selectors("--select", given.select)
            self._choices.append(Choice(only, selectors("--ignore", given.ignore)))
        self._levels = Levels(self.configuration.levels)

    def counts(self, finding: Finding) -> bool:
        """Whether a finding, of which was decided, makes the run fail."""
        return self.terms.counts(finding)

    def level(self, rule: str) -> str:
        """The severity set for a rule, "" for none."""
        return self._levels.of(rule)

    def takes(self, finding: Finding) -> bool:
        """Whether a finding is selected and not ignored, by its rule and what it weighs."""
        return all(choice.takes(finding.rule, weight(finding)) for choice in self._choices)


class Rulings:
    """What a policy decides of the findings of one run."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy

    def decide(self, finding: Finding) -> bool:
        """Say of a finding what it weighs, and why it does not count; False: it is not to be shown at all.

        The same finding may come again.
        """
        finding.level = self.policy.level(finding.rule)
        return self.policy.takes(finding)


def load_policy(file: str | None = None, given: Given | None = None) -> Policy:
    """The policy of this configuration file; without one of the nearest, or that of nobody's.

    Raises ConfigurationError, or FilterError for what was given besides.
    """
    return Policy(find_configuration() if file is None else read_configuration(file), given)


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

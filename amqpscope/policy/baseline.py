"""The baseline: findings that there were when a team began to check, so that only new ones count.

A JSON file that is kept in the repository: an object with `schema`, `amqpscope/baseline/1`, and `findings`,
an entry for each fingerprint, sorted, so that a change of it is readable. `captures` says in which captures a
finding was and how often, their paths from the baseline's folder; what a finding is known by is its
fingerprint alone, wherever and however often it comes again: how often a fault repeats depends on the load.
"""

import json
import os
from collections.abc import Iterable
from typing import Any, Final

from amqpscope.errors import ConfigurationError, OutputError
from amqpscope.limits import MAX_BASELINE, MAX_BASELINE_OCTETS
from amqpscope.model.finding import Finding
from amqpscope.model.passwords import without_password
from amqpscope.model.volatile import mask_numbers
from amqpscope.policy.bounded_file import octets_of
from amqpscope.policy.paths import slashes
from amqpscope.policy.replacement import Replacement

__all__ = [
    "SCHEMA",
    "Baseline",
    "BaselineEntry",
    "known_object",
    "may_be_written",
    "read_baseline",
    "write_baseline",
]

SCHEMA: Final = "amqpscope/baseline/1"

_FAMILY: Final = SCHEMA.rpartition("/")[0].encode()
_START: Final = 1000
"""Octets in which a file that was a baseline says so."""

_MESSAGE: Final = 200
"""Characters of a message that an entry has."""


class BaselineEntry:
    """An entry: what is known by a fingerprint. captures: how often it was in each, by its path."""

    def __init__(
        self, fingerprint: str, rule: str, peer: str, message: str, captures: dict[str, int]
    ) -> None:
        self.fingerprint = fingerprint
        self.rule = rule
        self.peer = peer
        self.message = message
        self.captures = captures

    @property
    def order(self) -> tuple[str, str, str]:
        """Where among the others it stands."""
        return self.rule, self.peer, self.fingerprint


class Baseline:
    """Findings by their fingerprints. file: where they are from, or will stand."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.known: dict[str, BaselineEntry] = {}

    def same_as(self, other: "Baseline") -> bool:
        """Whether the same findings are known."""
        return {one: of.captures for one, of in self.known.items()} == {
            one: of.captures for one, of in other.known.items()
        }

    def add(self, fingerprint: str, finding: Finding) -> None:
        """One more finding. Raises ConfigurationError if there are too many of them."""
        one = self.known.get(fingerprint)
        if one is None:
            if len(self.known) >= MAX_BASELINE:
                raise ConfigurationError(
                    f"{self.file}: the baseline would have more than {MAX_BASELINE} different findings"
                )
            one = self.known[fingerprint] = BaselineEntry(
                fingerprint, finding.rule, finding.peer, _message(finding), {}
            )
        capture = self.path(finding.connection.capture)
        one.captures[capture] = one.captures.get(capture, 0) + 1

    def path(self, capture: str) -> str:
        """A capture as the baseline has it: from its folder, the same on every machine."""
        try:
            path = os.path.relpath(capture, os.path.dirname(self.file) or ".")
        except (OSError, ValueError):
            path = capture
        return slashes(path)


def _message(finding: Finding) -> str:
    """What was seen, without what differs from run to run, or may be a part of a secret."""
    message = finding.message
    path = finding.evidence.get("path")
    if isinstance(path, str) and path:
        message = message.replace(path, "…")
    message = mask_numbers(without_password(message))
    return message if len(message) <= _MESSAGE else message[: _MESSAGE - 1] + "…"


def known_object(known: BaselineEntry) -> dict[str, Any]:
    """An entry as it stands in the file, and in reports."""
    return {
        "rule": known.rule,
        "peer": known.peer,
        "message": known.message,
        "fingerprint": known.fingerprint,
        "captures": dict(sorted(known.captures.items())),
    }


def may_be_written(path: str) -> None:
    """Raise ConfigurationError if no baseline can be at this path, or what is there never was one.

    One that is damaged (by a merge, say), or of another schema, may be written over.
    """
    if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
        raise ConfigurationError(f"{path}: No such file or directory")
    try:
        with open(path, "rb") as file:
            start = file.read(_START)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from error
    if start.strip() and _FAMILY not in start:
        raise ConfigurationError(f"{path}: the file is not a baseline, so amqpscope does not overwrite it")


def write_baseline(baseline: Baseline) -> None:
    """Write it, all or nothing. Raises ConfigurationError."""
    findings = [known_object(one) for one in sorted(baseline.known.values(), key=lambda one: one.order)]
    text = json.dumps({"schema": SCHEMA, "findings": findings}, indent=1) + "\n"
    path = os.path.realpath(baseline.file)
    if os.path.lexists(path) and not os.path.isfile(path):
        raise ConfigurationError(f"{baseline.file}: is not a regular file")
    try:
        file = Replacement(baseline.file)
        try:
            file.open().write(text)
        except BaseException:
            file.abandon()
            raise
        file.complete()
    except OutputError as error:
        raise ConfigurationError(str(error)) from error


def read_baseline(path: str) -> Baseline:
    """The baseline in a file. Raises ConfigurationError."""
    octets = octets_of(path, MAX_BASELINE_OCTETS)
    try:
        whole: Any = json.loads(octets)
    except (ValueError, RecursionError) as error:
        reason = "the file is not JSON" if octets.strip() else "the file is empty"
        raise ConfigurationError(f"{path}: is not a valid baseline: {reason}") from error
    if not isinstance(whole, dict) or "schema" not in whole:
        raise ConfigurationError(f'{path}: is not a valid baseline: it has no "schema"')
    if whole["schema"] != SCHEMA:
        raise ConfigurationError(f"{path}: the schema of the baseline is not {SCHEMA}: write a new baseline")
    findings = whole.get("findings")
    if not isinstance(findings, list):
        raise ConfigurationError(f'{path}: is not a valid baseline: "findings" is not a list')
    baseline = Baseline(path)
    for number, one in enumerate(findings, 1):
        known = _known(one)
        if known is None:
            raise ConfigurationError(
                f"{path}: is not a valid baseline: entry {number} was changed by hand or is damaged"
            )
        baseline.known[known.fingerprint] = known
    return baseline


def _known(one: Any) -> BaselineEntry | None:
    """An entry; None if it is none."""
    if not isinstance(one, dict):
        return None
    texts = [one.get(name) for name in ("fingerprint", "rule", "peer", "message")]
    captures = one.get("captures")
    if not _are(str, texts) or not isinstance(captures, dict) or not _are(int, captures.values()):
        return None
    fingerprint, rule, peer, message = texts
    return BaselineEntry(str(fingerprint), str(rule), str(peer), str(message), dict(captures))


def _are(kind: type, values: Iterable[object]) -> bool:
    return all(isinstance(value, kind) for value in values)

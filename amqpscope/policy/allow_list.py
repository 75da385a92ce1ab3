"""The allow-list: findings that a team has decided to live with, each with the reason, and until when.

    [[allow]]
    rule = "amqp10/L-CREDIT"
    reason = "the legacy scanner sends one too many, SHOP-4711"
    container = "scanner-*"
    expires = 2027-01-31

An entry excuses a finding when all that it says of its place fits. In patterns `*` and `?` stand for any
characters. It holds through the day on which it expires.
"""

import datetime
import fnmatch
import os
import re
from typing import Final

from amqpscope.model.finding import Finding
from amqpscope.policy.paths import slashes

__all__ = ["PEERS", "SCOPES", "Allowance"]

SCOPES: Final = ("connection", "peer", "container", "product", "address", "capture")
"""What an entry may say of the place."""

PEERS: Final = ("client", "server")


class Allowance:
    """An entry.

    number: which of the entries, from 1. words: the rules as they are named; rules: their ids. reason: why.
    scope: patterns by `SCOPES`, of which one has to fit. expires: the last day, None for ever. folder: where
    the file is, which patterns of captures are relative to.
    """

    def __init__(
        self,
        number: int,
        words: list[str],
        rules: frozenset[str],
        reason: str,
        scope: dict[str, list[str]],
        expires: datetime.date | None,
        folder: str,
    ) -> None:
        self.number = number
        self.words = words
        self.rules = rules
        self.reason = reason
        self.scope = scope
        self.expires = expires
        self._folder = _absolute(folder)
        self._patterns = {
            name: [_pattern(one) for one in patterns] for name, patterns in scope.items() if name != "capture"
        }

    def expired(self, today: datetime.date) -> bool:
        """Whether it holds no more."""
        return self.expires is not None and today > self.expires

    def fits(self, finding: Finding, capture: str = "") -> bool:
        """Whether it is about this finding, if its rule is among the entry's.

        capture: where the finding was, if not in the capture of its connection, but in one file of several.
        """
        for name, patterns in self._patterns.items():
            values = _values(name, finding)
            if not any(pattern.match(value) for pattern in patterns for value in values):
                return False
        return self.fits_capture(capture or finding.connection.capture)

    def fits_capture(self, capture: str) -> bool:
        """Whether it is about findings of a capture of this name."""
        patterns = self.scope.get("capture")
        if patterns is None:
            return True
        return any(_names(one, capture, self._folder) for one in patterns)


def _absolute(folder: str) -> str:
    """The same folder for other processes, whose working directory is another."""
    try:
        return os.path.abspath(folder or ".")
    except OSError:  # the working directory is gone
        return folder


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(text.replace("[", "[[]")))


def _values(scope: str, finding: Finding) -> tuple[str, ...]:
    """What a finding has to be compared with a pattern."""
    if scope == "connection":
        return (finding.connection.id,)
    if scope == "peer":
        return (finding.peer,)
    if scope == "address":
        return finding.addresses
    if scope == "container":
        name = finding.said.get("container-id")
        return () if name is None else (name,)
    product = finding.said.get("product")
    if product is None:
        return ()
    version = finding.said.get("version")
    return (product,) if version is None else (product, f"{product} {version}")


def _names(pattern: str, capture: str, folder: str) -> bool:
    """Whether a pattern names a capture: with a slash its path, from the configuration's folder, or as it was
    given; without one the file's name."""
    wanted = _pattern(pattern)
    if "/" not in pattern:
        return wanted.match(os.path.basename(capture)) is not None
    if wanted.match(slashes(capture)):
        return True
    try:
        relative = os.path.relpath(capture, folder)
    except (OSError, ValueError):
        return False
    return wanted.match(slashes(relative)) is not None

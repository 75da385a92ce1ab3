"""The configuration: `amqpscope.toml`, or the table `[tool.amqpscope]` of a `pyproject.toml`.

The nearest one holds, from the working directory upwards, but not above a folder with `.git` in it; where
both are in one folder, `amqpscope.toml`. Everything in it is looked at before anything is read: what is not
known, or of another type than it has to be, is an error that names the file, the line and the key.
"""

import datetime
import difflib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from amqpscope.diagnoses.registry import known_codes, known_limits
from amqpscope.errors import ConfigurationError, FilterError
from amqpscope.input.jobs import jobs_of
from amqpscope.limits import MAX_CONFIGURATION, MAX_JOBS
from amqpscope.policy.allow_list import PEERS, SCOPES, Allowance
from amqpscope.policy.bounded_file import octets_of
from amqpscope.policy.selectors import Selector, selectors
from amqpscope.policy.terms import COUNTING, SEVERITIES
from amqpscope.policy.toml_lines import line_of_key, lines_of_entries
from amqpscope.report.forms import NAMES
from amqpscope.rules.editions import EDITIONS
from amqpscope.rules.profiles import valid

__all__ = [
    "KEYS",
    "NAME",
    "Configuration",
    "find_configuration",
    "nearest_word",
    "read_configuration",
]

NAME: Final = "amqpscope.toml"

_SHARED: Final = "pyproject.toml"
_TABLE: Final = ("tool", "amqpscope")


class Configuration:
    """What a file says. file: its path, as people see it; "" if there is none.

    values: by key, checked: texts, booleans, numbers, lists of texts. levels: the severities that are set.
    allowances: the allow-list.
    """

    def __init__(self, file: str = "", text: str = "", table: tuple[str, ...] = ()) -> None:
        self.file = file
        self.folder = os.path.dirname(file)
        self.values: dict[str, Any] = {}
        self.levels: list[tuple[Selector, str]] = []
        self.allowances: list[Allowance] = []
        self._text = text
        self._table = table

    def path(self, name: str) -> str:
        """A path that stands in the file, which is relative to it, as it is from the working directory."""
        return os.path.join(self.folder, name) if self.folder else name

    def line(self, key: str, within: tuple[str, ...] = ()) -> int:
        """The line where a key stands, of our table or of one within it; 0 if it cannot be determined."""
        return line_of_key(self._text, (*self._table, *within), key)

    def lines_of_allowances(self, count: int = 0) -> list[int]:
        """The line where each entry of the allow-list begins; 0 where it cannot be determined."""
        return lines_of_entries(self._text, self._table, "allow", count or len(self.allowances))


def find_configuration(start: str | None = None) -> Configuration:
    """The nearest configuration from a folder (the working directory) upwards; an empty one if there is none.

    Raises ConfigurationError if one is there that cannot be understood.
    """
    try:
        folder = Path(start if start is not None else os.getcwd()).absolute()
    except OSError:
        return Configuration()  # the working directory is gone
    for one in (folder, *folder.parents):
        for name in (NAME, _SHARED):
            path = one / name
            # A link that leads nowhere is an error. Where nothing may be looked at, there is no file.
            if os.path.isfile(path) or (os.path.islink(path) and not os.path.exists(path)):
                found = _read(_shown(path), shared=name == _SHARED, must=False)
                if found is not None:
                    return found
        if os.path.exists(one / ".git"):
            break
    return Configuration()


def read_configuration(path: str) -> Configuration:
    """The configuration of this file. Raises ConfigurationError."""
    found = _read(path, shared=os.path.basename(path) == _SHARED, must=True)
    assert found is not None
    return found


def _shown(path: Path) -> str:
    """A path as it is shortest from the working directory."""
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):
        return str(path)
    return min(relative, str(path), key=len)


def _read(path: str, shared: bool, must: bool) -> Configuration | None:
    """What a file says. None if it has no table of ours, unless it must."""
    import tomllib  # only where there is a configuration

    octets = octets_of(path, MAX_CONFIGURATION)
    try:
        text = octets.decode("utf-8").removeprefix("\ufeff")  # the mark that some editors put first
        whole: Any = tomllib.loads(text)
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: is not in UTF-8 (octet {error.start})") from error
    except RecursionError as error:
        raise ConfigurationError(f"{path}: is nested too deeply") from error
    except ValueError as error:
        raise ConfigurationError(f"{path}: is not valid TOML: {error}") from error
    table: tuple[str, ...] = ()
    if shared:
        table = _TABLE
        tools = whole.get("tool")
        if tools is None or (isinstance(tools, dict) and "amqpscope" not in tools):
            if must:
                raise ConfigurationError(f"{path}: has no table [tool.amqpscope]")
            return None
        whole = tools.get("amqpscope") if isinstance(tools, dict) else tools
        if not isinstance(whole, dict):
            raise ConfigurationError(f"{path}: tool.amqpscope: must be a table")
    # Line ends as the parser takes them, so that lines are counted as it does.
    return _Reader(Configuration(path, text.replace("\r\n", "\n"), table)).read(whole)


class _Reader:
    """Takes a table of TOML apart."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration

    def read(self, table: dict[str, Any]) -> Configuration:
        """All of it. Raises ConfigurationError."""
        configuration = self._configuration
        for key, value in table.items():
            if key not in KEYS:
                raise self._wrong(key, nearest_word(key, KEYS, "key"))
            configuration.values[key] = KEYS[key](self, key, value)
        return configuration

    def _wrong(self, key: str, what: str, within: tuple[str, ...] = ()) -> ConfigurationError:
        """An error about a key, of our table or of one in it."""
        file = self._configuration.file
        line = self._configuration.line(key, within)
        where = f"{file}, line {line}" if line else file
        inner = f"[{'.'.join(within)}] " if within else ""
        return ConfigurationError(f"{where}: {inner}{key}: {what}")

    # What may stand behind a key

    def boolean(self, key: str, value: object) -> bool:
        if not isinstance(value, bool):
            raise self._wrong(key, "must be true or false")
        return value

    def count(self, key: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LARGEST:
            raise self._wrong(key, "must be a number, 1 or more")
        return value

    def jobs(self, key: str, value: object) -> int:
        try:
            return jobs_of(str(value), "")
        except FilterError:
            raise self._wrong(key, f'must be "auto" or a number from 1 to {MAX_JOBS}') from None

    def text(self, key: str, value: object) -> str:
        if not _is_text(value):
            raise self._wrong(key, "must be a text")
        return str(value)

    def texts(self, key: str, value: object) -> list[str]:
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or not all(_is_text(one) for one in value):
            raise self._wrong(key, "must be a list of texts")
        return list(value)

    def rules(self, key: str, value: object) -> list[str]:
        words = self.texts(key, value)
        try:
            selectors(key, words)
        except FilterError as error:
            raise self._wrong(key, str(error).removeprefix(f"{key} ")) from error
        return words

    def products(self, key: str, value: object) -> str:
        names = ",".join(self.texts(key, value))
        try:
            return valid(names)
        except FilterError as error:
            raise self._wrong(key, str(error).removeprefix("--profile ")) from error

    def diagnoses(self, key: str, value: object) -> list[str]:
        words = self.texts(key, value)
        try:
            known_codes(words, key)
        except FilterError as error:
            raise self._wrong(key, str(error).removeprefix(f"{key} ")) from error
        return words

    def diagnosis_limits(self, key: str, value: object) -> dict[str, float]:
        if not isinstance(value, dict):
            raise self._wrong(
                key, 'must be a table, such as [diagnosis-limits] with "credit-none.seconds" = 20'
            )
        try:
            return known_limits(value)
        except FilterError as error:
            raise self._wrong(key, str(error)) from error

    def severities(self, key: str, value: object) -> dict[str, str]:
        if not isinstance(value, dict):
            raise self._wrong(key, 'must be a table of rules, such as [severity] with "amqp10/M-*" = "note"')
        for name, level in value.items():
            if not isinstance(level, str) or level not in SEVERITIES:
                raise self._wrong(name, "must be error, warning or note (to hide a rule: ignore)", (key,))
            try:
                selector = Selector(key, name)
            except FilterError as error:
                what = str(error).removeprefix(f"{key} {name.strip()}: ")
                raise self._wrong(name, what, (key,)) from error
            if selector.severity:
                raise self._wrong(name, "must be a rule, or a pattern of rules", (key,))
            self._configuration.levels.append((selector, level))
        return dict(value)

    def allow(self, key: str, value: object) -> list[dict[str, Any]]:
        if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
            raise self._wrong(
                key, "must be a list of tables, each beginning with [[allow]], with a rule and a reason"
            )
        for index, entry in enumerate(value):
            try:
                self._configuration.allowances.append(self._entry(index + 1, entry))
            except FilterError as error:
                raise self._wrong_entry(index, len(value), str(error)) from error
        return value

    def _wrong_entry(self, index: int, count: int, what: str) -> ConfigurationError:
        configuration = self._configuration
        line = configuration.lines_of_allowances(count)[index]
        where = f"{configuration.file}, line {line}" if line else configuration.file
        return ConfigurationError(f"{where}: [[allow]] {index + 1}: {what}")

    def _entry(self, number: int, entry: dict[str, Any]) -> Allowance:
        """An entry of the allow-list. Raises FilterError for what cannot be."""
        for key in entry:
            if key not in _ENTRY:
                raise FilterError(f"{key}: {nearest_word(key, _ENTRY, 'key')}")
        for key in ("rule", "reason"):
            if key not in entry:
                raise FilterError(f"{key}: is missing")
        words = _texts("rule", entry["rule"])
        named = selectors("rule", words)
        if not words or any(one.severity for one in named):
            raise FilterError("rule: must be one or more rules or patterns of rules")
        reason = entry["reason"]
        if not isinstance(reason, str) or not reason.strip():
            raise FilterError("reason: must be a text that is not empty")
        scope: dict[str, list[str]] = {key: _texts(key, entry[key]) for key in SCOPES if key in entry}
        for peer in scope.get("peer", []):
            if peer not in PEERS:
                raise FilterError("peer: must be client or server")
        expires = entry.get("expires")
        # A date with a time is a date, too.
        if expires is not None and type(expires) is not datetime.date:
            raise FilterError("expires: must be a date such as 2027-01-31, without quotes")
        rules = frozenset[str]().union(*(one.rules for one in named))
        folder = self._configuration.folder
        return Allowance(number, words, rules, " ".join(reason.split()), scope, expires, folder)


_ENTRY: Final = ("rule", "reason", *SCOPES, "expires")


def _is_text(value: object) -> bool:
    """Whether it is a text that says something, and can be the name of a file."""
    return isinstance(value, str) and value != "" and "\0" not in value


def _texts(key: str, value: object) -> list[str]:
    """A text, or a list of them. Raises FilterError for anything else."""
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not found or not all(_is_text(one) for one in found):
        raise FilterError(f"{key}: must be a text, or a list of texts")
    return list(found)


_LARGEST: Final = 10**9


def _one_of(words: Iterable[str]) -> Callable[[_Reader, str, object], str]:
    """What takes one of these words."""
    known = list(words)

    def taken(reader: _Reader, key: str, value: object) -> str:
        if not isinstance(value, str):
            raise reader._wrong(key, f"must be one of {', '.join(known)}")
        if value not in known:
            raise reader._wrong(key, f"{value}: must be one of {', '.join(known)}")
        return value

    return taken


KEYS: Final[dict[str, Callable[[_Reader, str, Any], object]]] = {
    "select": _Reader.rules,
    "ignore": _Reader.rules,
    "severity": _Reader.severities,
    "allow": _Reader.allow,
    "fail-on": _one_of(COUNTING),
    "fail-on-possible": _Reader.boolean,
    "strict": _Reader.boolean,
    "allow-empty": _Reader.boolean,
    "spec": _one_of(EDITIONS),
    "profile": _Reader.products,
    "format": _one_of(NAMES),
    "output": _Reader.texts,
    "baseline": _Reader.text,
    "max-per-rule": _Reader.count,
    "jobs": _Reader.jobs,
    "tls-keylog": _Reader.texts,
    "tls-key": _Reader.texts,
    "diagnoses": _Reader.boolean,
    "diagnosis-limits": _Reader.diagnosis_limits,
    "fail-on-diagnosis": _Reader.diagnoses,
}
"""Every key, with what takes its value."""


def nearest_word(given: str, known: Iterable[str], what: str) -> str:
    """Why a word is none of the known ones, and which of them it is like."""
    words = list(known)
    near = difflib.get_close_matches(given.lower().replace("_", "-")[:64], words, n=1, cutoff=0.6)
    if near:
        return f"there is no such {what}; did you mean {near[0]}?"
    return f"there is no such {what}; there are {', '.join(words)}"

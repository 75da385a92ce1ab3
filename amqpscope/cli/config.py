"""`amqpscope config show`: what holds here, and where it is from."""

import json
import os
from typing import Any

import typer

from amqpscope.capture.source import shown_name
from amqpscope.cli.help import HelpfulCommand
from amqpscope.cli.judging import ConfigOptions, today
from amqpscope.cli.option_groups import with_options
from amqpscope.cli.output import ObjectFormat, TextOrJson, say
from amqpscope.cli.status import Status
from amqpscope.errors import ConfigurationError
from amqpscope.policy.configuration import NAME, Configuration
from amqpscope.policy.policy import Policy
from amqpscope.report.printable import printable, word

__all__ = ["app"]

SCHEMA = "amqpscope/configuration/1"

_EPILOG = f"""\b
Without --config, the command uses {NAME}, or pyproject.toml with a
table [tool.amqpscope]. The command searches for this file in the working
directory, and then in its parent directories up to the first directory that
contains .git. Options on a command line override the file.

\b
Exit status: 0 fine, 2 the configuration is not valid.
"""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Show the configuration. The configuration decides which findings count.",
    epilog="Use `amqpscope config COMMAND --help` for one command.",
)


@app.callback()
def config() -> None:
    """Show the configuration that `check` applies."""


@app.command(cls=HelpfulCommand, epilog=_EPILOG, short_help="Show the settings in effect, and their origin.")
@with_options
def show(
    *,
    options: ConfigOptions,
    form: ObjectFormat = TextOrJson.text,
) -> int:
    """Show each setting that `check` uses in this directory, and the file that sets it."""
    configuration = options.configuration()
    status = Status.FINE
    try:
        Policy(configuration)
    except ConfigurationError as error:
        # Its baseline is no baseline, or not there yet. All else holds, and is shown.
        say(str(error))
        status = Status.FAILURE
    if form is TextOrJson.json:
        print(json.dumps(_reported(configuration), indent=1))
    else:
        for line in _lines(configuration):
            print(line)
    return status


# What holds where no file says anything.
DEFAULTS: dict[str, object] = {
    "select": ["all"],
    "ignore": [],
    "fail-on": "error",
    "fail-on-possible": False,
    "strict": False,
    "allow-empty": False,
    "spec": "final",
    "profile": "auto",
    "format": "text",
    "output": [],
    "baseline": None,
    "max-per-rule": 3,
    "jobs": 1,
    "tls-keylog": [],
    "tls-key": [],
    "diagnoses": True,
    "diagnosis-limits": {},
    "fail-on-diagnosis": [],
}


def _reported(configuration: Configuration) -> dict[str, Any]:
    """All of it as an object of JSON."""
    values = configuration.values
    lines = configuration.lines_of_allowances() if configuration.allowances else []
    return {
        "schema": SCHEMA,
        "file": shown_name(configuration.file) or None,
        "settings": {
            key: {
                "value": values.get(key, default),
                "from": "file" if key in values else "default",
                "line": (configuration.line(key) or None) if key in values else None,
            }
            for key, default in DEFAULTS.items()
        },
        "severity": [
            {
                "rule": selector.word,
                "severity": level,
                "rules": len(selector.rules),
                "line": configuration.line(selector.word, ("severity",)) or None,
            }
            for selector, level in configuration.levels
        ],
        "allow": [
            {
                "rule": one.words,
                "reason": one.reason,
                "scope": one.scope,
                "expires": None if one.expires is None else str(one.expires),
                "expired": one.expired(today()),
                "rules": len(one.rules),
                "line": line or None,
            }
            for one, line in zip(configuration.allowances, lines, strict=True)
        ],
    }


def _lines(configuration: Configuration) -> list[str]:
    """The same for people: a line each, with where it is from behind it."""
    reported = _reported(configuration)
    file = printable(configuration.file)
    if configuration.file:
        lines = [f"configuration: {file}"]
    else:
        lines = [f"configuration: none, so all settings have their defaults (in {printable(_here())})"]
    rows = [
        (key, _value(one["value"]), one["from"], one["line"]) for key, one in reported["settings"].items()
    ]
    for one in reported["severity"]:
        many = "" if one["rules"] == 1 else f" ({one['rules']} rules)"
        rows.append((f"severity {printable(one['rule'])}", f"{one['severity']}{many}", "file", one["line"]))
    for number, one in enumerate(reported["allow"], 1):
        place = [f"{name} {', '.join(patterns)}" for name, patterns in one["scope"].items()]
        until = ""
        if one["expires"]:
            until = f" ({'expired on' if one['expired'] else 'until'} {one['expires']})"
        text = f"{', '.join([*one['rule'], *place])}: {one['reason']}{until}"
        rows.append((f"allow {number}", printable(text), "file", one["line"]))
    names = max(len(name) for name, *_ in rows)
    width = max(len(value) for _, value, *_ in rows)
    for name, value, origin, line in rows:
        where = origin if origin == "default" else file + (f", line {line}" if line else "")
        lines.append(f"  {name:<{names}}  {value:<{width}}  {where}")
    return lines


def _here() -> str:
    try:
        return os.getcwd()
    except OSError:
        return "a folder that is gone"


def _value(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ", ".join(f"{word(str(name))} = {one:g}" for name, one in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(word(str(one)) for one in value) or "none"
    if value is None:
        return "none"
    return word(str(value))

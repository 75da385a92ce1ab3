"""Options of the commands that judge: by which text, and what counts for the exit status."""

import datetime
import enum
from typing import Annotated

import typer

from amqpscope.errors import FilterError
from amqpscope.policy.configuration import Configuration, find_configuration, read_configuration
from amqpscope.policy.policy import Given
from amqpscope.rules.editions import CSD01, CSPRD02, FINAL

__all__ = [
    "POLICY_PANEL",
    "STATUS_PANEL",
    "AllowEmpty",
    "BaselineOption",
    "ConfigOption",
    "FailOn",
    "FailOnOption",
    "FailOnPossible",
    "IgnoreOption",
    "NoConfig",
    "ProfileOption",
    "SelectOption",
    "Spec",
    "SpecOption",
    "StrictOption",
    "configuration_of",
    "given_of",
    "today",
]


class FailOn(enum.StrEnum):
    """From which severity on findings make the exit status 1."""

    error = "error"
    warning = "warning"
    note = "note"
    never = "never"


class Spec(enum.StrEnum):
    """Editions of the specification."""

    final = FINAL
    csd01 = CSD01
    csprd02 = CSPRD02


STATUS_PANEL = "Exit status"

POLICY_PANEL = "Which findings are shown and how they count"

FailOnOption = Annotated[
    FailOn | None,
    typer.Option(
        "--fail-on",
        metavar="error|warning|note|never",
        rich_help_panel=STATUS_PANEL,
        show_default=False,
        help="Set the lowest severity that makes the command fail with exit status 1. [default: error]",
    ),
]
SpecOption = Annotated[
    Spec | None,
    typer.Option(
        "--spec",
        metavar="final|csd01|csprd02",
        rich_help_panel=POLICY_PANEL,
        show_default=False,
        help=(
            "Check messages against this edition of AMQP 1.0: the final specification of 2011 "
            "(final, the default), the OASIS draft of February 2012 (csd01) or the OASIS draft of May 2012 "
            "(csprd02)."
        ),
    ),
]
FailOnPossible = Annotated[
    bool | None,
    typer.Option(
        "--fail-on-possible/--no-fail-on-possible",
        rich_help_panel=STATUS_PANEL,
        show_default=False,
        help="Fail with exit status 1 on possible findings, too.",
    ),
]

ProfileOption = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="auto|none|NAME,...",
        rich_help_panel=POLICY_PANEL,
        show_default=False,
        help=(
            "Report known deviations of products as notes only. With auto (the default), amqpscope "
            "takes the product that a peer names in its open. With none, known deviations are reported "
            "like all other findings. With NAME,..., amqpscope assumes the named products, even if the "
            "peers name other products (`rules profiles` lists the names)."
        ),
    ),
]

StrictOption = Annotated[
    bool | None,
    typer.Option(
        "--strict/--no-strict",
        rich_help_panel=STATUS_PANEL,
        show_default=False,
        help="Fail on warnings and on possible findings. The same as --fail-on warning --fail-on-possible.",
    ),
]
FailOnDiagnosis = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on-diagnosis",
        metavar="CODE|all",
        rich_help_panel=STATUS_PANEL,
        show_default=False,
        help=(
            "Exit with status 1 if the report has this diagnosis, for example credit-none. The "
            "option may be repeated."
        ),
    ),
]

DiagnosesOption = Annotated[
    bool | None,
    typer.Option(
        "--diagnoses/--no-diagnoses",
        rich_help_panel=STATUS_PANEL,
        show_default=False,
        help=(
            "Report diagnoses below the findings: who waits for whom, since when, and why. With "
            "--no-diagnoses, leave the diagnoses out. "
            "[default: diagnoses]"
        ),
    ),
]

AllowEmpty = Annotated[
    bool | None,
    typer.Option(
        "--allow-empty/--no-allow-empty",
        rich_help_panel=STATUS_PANEL,
        show_default=False,
        help="Exit with status 0 even if there is no AMQP 1.0 or 0-9-1 to check.",
    ),
]
SelectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="WHICH,...",
        rich_help_panel=POLICY_PANEL,
        show_default=False,
        help="Show only findings of these rules or severities, for example L-CREDIT, amqp10/M-*, error.",
    ),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="WHICH,...",
        rich_help_panel=POLICY_PANEL,
        show_default=False,
        help=(
            "Hide findings of these rules or severities. If --select names a rule more "
            "specifically, its findings are still shown."
        ),
    ),
]
BaselineOption = Annotated[
    str | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        rich_help_panel=POLICY_PANEL,
        show_default=False,
        help=(
            "Let only new findings decide the exit status. Findings that are in this baseline file "
            "do not count."
        ),
    ),
]
ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        rich_help_panel=POLICY_PANEL,
        show_default=False,
        help="Use this configuration file. Default: the nearest amqpscope.toml, or "
        "pyproject.toml with [tool.amqpscope], in this directory or a parent "
        "directory.",
    ),
]
NoConfig = Annotated[
    bool,
    typer.Option("--no-config", rich_help_panel=POLICY_PANEL, help="Use no configuration file."),
]


def today() -> datetime.date:
    """The day by which what a configuration allows expires."""
    return datetime.datetime.now().astimezone().date()


def configuration_of(file: str | None, none: bool) -> Configuration:
    """What `--config` and `--no-config` ask for. Raises ConfigurationError, FilterError."""
    if none:
        if file is not None:
            raise FilterError("--config: cannot be combined with --no-config")
        return Configuration()
    return find_configuration() if file is None else read_configuration(file)


def given_of(
    *,
    select: list[str] | None = None,
    ignore: list[str] | None = None,
    fail_on: FailOn | None = None,
    possible: bool | None = None,
    strict: bool | None = None,
    allow_empty: bool | None = None,
    spec: Spec | None = None,
    profile: str | None = None,
    baseline: str | None = None,
    fail_on_diagnosis: list[str] | None = None,
    diagnoses: bool | None = None,
) -> Given:
    """What the options of these names ask for."""
    given = Given()
    given.select = select or None
    given.ignore = ignore or None
    given.fail_on = None if fail_on is None else fail_on.value
    given.fail_on_possible = possible
    given.strict = strict
    given.allow_empty = allow_empty
    given.spec = None if spec is None else spec.value
    given.profile = profile
    given.baseline = baseline
    given.fail_on_diagnosis = fail_on_diagnosis or None
    given.diagnoses = diagnoses
    return given

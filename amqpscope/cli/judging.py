"""Options of the commands that judge: by which text, and what counts for the exit status."""

import datetime
import enum
from typing import Annotated

import typer

from amqpscope.cli.option_groups import OptionGroup
from amqpscope.errors import FilterError
from amqpscope.policy.configuration import Configuration, find_configuration, read_configuration
from amqpscope.policy.policy import Given
from amqpscope.rules.editions import CSD01, CSPRD02, FINAL

__all__ = [
    "POLICY_PANEL",
    "STATUS_PANEL",
    "ConfigOptions",
    "DiagnosisOptions",
    "DiagnosisStatusOptions",
    "FailOn",
    "FindingOptions",
    "NewFindingOptions",
    "RuleOptions",
    "Spec",
    "StatusOptions",
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


class FindingOptions(OptionGroup):
    """Which findings are shown."""

    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="WHICH,...",
            rich_help_panel=POLICY_PANEL,
            show_default=False,
            help="Show only findings of these rules or severities, for example L-CREDIT (a rule), "
            "amqp10/M-* (all rules whose ids begin with amqp10/M-) or error (a severity).",
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            "--ignore",
            metavar="WHICH,...",
            rich_help_panel=POLICY_PANEL,
            show_default=False,
            help="Hide findings of these rules or severities. The findings of a rule are still shown if "
            "--select names the rule more precisely than --ignore.",
        ),
    ] = None

    def give(self, given: Given) -> None:
        """Put what the options ask for into `given`."""
        given.select = self.select or None
        given.ignore = self.ignore or None


class NewFindingOptions(FindingOptions):
    """Which findings are shown, and which of them are new."""

    baseline: Annotated[
        str | None,
        typer.Option(
            "--baseline",
            metavar="FILE",
            rich_help_panel=POLICY_PANEL,
            show_default=False,
            help="Let only new findings make the command fail: findings that are in this baseline file do "
            "not change the exit status.",
        ),
    ] = None

    def give(self, given: Given) -> None:
        super().give(given)
        given.baseline = self.baseline


class ConfigOptions(OptionGroup):
    """Which configuration file is used."""

    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            rich_help_panel=POLICY_PANEL,
            show_default=False,
            help="Use this configuration file. By default, amqpscope uses the nearest amqpscope.toml, or "
            "pyproject.toml with a table [tool.amqpscope], in this directory or a parent directory.",
        ),
    ] = None
    no_config: Annotated[
        bool,
        typer.Option("--no-config", rich_help_panel=POLICY_PANEL, help="Use no configuration file."),
    ] = False

    def configuration(self) -> Configuration:
        """What the file says. Raises ConfigurationError, FilterError."""
        if self.no_config:
            if self.config is not None:
                raise FilterError("--config: cannot be combined with --no-config")
            return Configuration()
        return find_configuration() if self.config is None else read_configuration(self.config)


class RuleOptions(ConfigOptions):
    """By what messages are checked: a configuration file, an edition, and what is known of products."""

    spec: Annotated[
        Spec | None,
        typer.Option(
            "--spec",
            metavar="final|csd01|csprd02",
            rich_help_panel=POLICY_PANEL,
            show_default=False,
            help="Check messages against this edition of AMQP 1.0: the final specification of 2011 (final, "
            "the default), the OASIS draft of February 2012 (csd01) or the OASIS draft of May 2012 "
            "(csprd02).",
        ),
    ] = None
    profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="auto|none|NAME,...",
            rich_help_panel=POLICY_PANEL,
            show_default=False,
            help="Report the known deviations of a product only as notes. With --profile auto "
            "(the default), amqpscope recognizes the product of a peer by the names that the peer "
            "sends when the connection is opened. With --profile none, known deviations of products "
            "are reported like all other findings. With --profile NAME,..., amqpscope assumes the "
            "named products, even if the peers name other products (`rules profiles` lists the names).",
        ),
    ] = None

    def give(self, given: Given) -> None:
        """Put what the options ask for into `given`."""
        given.spec = None if self.spec is None else self.spec.value
        given.profile = self.profile


class StatusOptions(OptionGroup):
    """What counts for the exit status."""

    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            "--fail-on",
            metavar="error|warning|note|never",
            rich_help_panel=STATUS_PANEL,
            show_default=False,
            help="Set the lowest severity that makes the command fail with exit status 1. [default: error]",
        ),
    ] = None
    fail_on_possible: Annotated[
        bool | None,
        typer.Option(
            "--fail-on-possible/--no-fail-on-possible",
            rich_help_panel=STATUS_PANEL,
            show_default=False,
            help=(
                "Let findings that are graded `possible` also cause exit status 1. By default, only "
                "findings that are graded `certain` can cause exit status 1."
            ),
        ),
    ] = None
    strict: Annotated[
        bool | None,
        typer.Option(
            "--strict/--no-strict",
            rich_help_panel=STATUS_PANEL,
            show_default=False,
            help="Exit with status 1 also for warnings, and for findings that are graded `possible`. The "
            "option means the same as --fail-on warning --fail-on-possible.",
        ),
    ] = None
    allow_empty: Annotated[
        bool | None,
        typer.Option(
            "--allow-empty/--no-allow-empty",
            rich_help_panel=STATUS_PANEL,
            show_default=False,
            help="Exit with status 0 even if there is neither AMQP 1.0 nor AMQP 0-9-1 to check.",
        ),
    ] = None

    def give(self, given: Given) -> None:
        """Put what the options ask for into `given`."""
        given.fail_on = None if self.fail_on is None else self.fail_on.value
        given.fail_on_possible = self.fail_on_possible
        given.strict = self.strict
        given.allow_empty = self.allow_empty


class DiagnosisStatusOptions(OptionGroup):
    """Which diagnoses count for the exit status."""

    fail_on_diagnosis: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-on-diagnosis",
            metavar="CODE|all",
            rich_help_panel=STATUS_PANEL,
            show_default=False,
            help="Exit with status 1 if the report has this diagnosis, for example credit-none. The option "
            "may be repeated.",
        ),
    ] = None

    def give(self, given: Given) -> None:
        """Put what the options ask for into `given`."""
        given.fail_on_diagnosis = self.fail_on_diagnosis or None


class DiagnosisOptions(DiagnosisStatusOptions):
    """Which diagnoses count for the exit status, and whether there are any."""

    diagnoses: Annotated[
        bool | None,
        typer.Option(
            "--diagnoses/--no-diagnoses",
            rich_help_panel=STATUS_PANEL,
            show_default=False,
            help="Show diagnoses below the findings. A diagnosis says who waits for whom, since when, and "
            "why. With --no-diagnoses, the report has no diagnoses, and no diagnosis makes the command fail. "
            "[default: diagnoses]",
        ),
    ] = None

    def give(self, given: Given) -> None:
        super().give(given)
        if given.fail_on_diagnosis and self.diagnoses is False:
            raise FilterError(
                "--fail-on-diagnosis: cannot be combined with --no-diagnoses, which leaves out all diagnoses"
            )
        given.diagnoses = self.diagnoses


def given_of(*groups: FindingOptions | RuleOptions | StatusOptions | DiagnosisStatusOptions) -> Given:
    """What the options of these groups ask for."""
    given = Given()
    for group in groups:
        group.give(given)
    return given


def today() -> datetime.date:
    """The day by which what a configuration allows expires."""
    return datetime.datetime.now().astimezone().date()

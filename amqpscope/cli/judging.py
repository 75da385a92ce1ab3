"""Options of the commands that judge: by which text, and what counts for the exit status."""

import enum
from typing import Annotated

import typer

from amqpscope.report.terms import Terms
from amqpscope.rules.editions import CSD01, CSPRD02, FINAL

__all__ = [
    "COUNTING",
    "STATUS_PANEL",
    "AllowEmpty",
    "FailOn",
    "FailOnOption",
    "FailOnPossible",
    "ProfileOption",
    "Spec",
    "SpecOption",
    "StrictOption",
    "terms_of",
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


COUNTING = {
    FailOn.error: ("error",),
    FailOn.warning: ("error", "warning"),
    FailOn.note: ("error", "warning", "note"),
    FailOn.never: (),
}

STATUS_PANEL = "What counts for the exit status"

FailOnOption = Annotated[
    FailOn,
    typer.Option(
        "--fail-on",
        metavar="error|warning|note|never",
        rich_help_panel=STATUS_PANEL,
        help="Findings count from this severity on.",
    ),
]
SpecOption = Annotated[
    Spec,
    typer.Option(
        "--spec",
        metavar="final|csd01|csprd02",
        rich_help_panel=STATUS_PANEL,
        help="The text that findings about messages follow: AMQP 1.0 final (2011), or the OASIS drafts of "
        "February (csd01) or May 2012 (csprd02).",
    ),
]
FailOnPossible = Annotated[
    bool,
    typer.Option("--fail-on-possible", rich_help_panel=STATUS_PANEL, help="Possible findings count, too."),
]

ProfileOption = Annotated[
    str,
    typer.Option(
        "--profile",
        metavar="auto|none|NAME,...",
        rich_help_panel=STATUS_PANEL,
        help="A known habit of a product is a note only: of those that peers say they are; of none; "
        "or of these, whatever peers say (`rules profiles` lists them).",
    ),
]

StrictOption = Annotated[
    bool,
    typer.Option("--strict", rich_help_panel=STATUS_PANEL, help="As --fail-on warning --fail-on-possible."),
]
AllowEmpty = Annotated[
    bool,
    typer.Option(
        "--allow-empty",
        rich_help_panel=STATUS_PANEL,
        help="Exit with 0 also if there is no AMQP 1.0 or 0-9-1 to check.",
    ),
]


def terms_of(fail_on: FailOn, possible: bool, strict: bool, allow_empty: bool) -> Terms:
    """What the options of these names ask for."""
    if strict and fail_on is not FailOn.note:
        fail_on = FailOn.warning
    return Terms(COUNTING[fail_on], possible or strict, allow_empty)

"""The forms in which `check` writes its report.

A form is a module of this folder. The module's name is the form's name, and its `FORM` declares the form. No
other file lists the forms: the options and the help of `check`, and the key `format` of the configuration,
come from here.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from amqpscope.policy.judging import Readable
    from amqpscope.policy.terms import Terms
    from amqpscope.report.finding_counts import Detail
    from amqpscope.report.writer import FindingWriter

__all__ = ["DEFAULT", "NAMES", "ReportForm", "ReportOptions", "declared", "form_of_file", "suffixes"]

DEFAULT: Final = "text"

NAMES: Final = (
    DEFAULT,
    *sorted(
        {name.removesuffix(".py") for name in os.listdir(__path__[0]) if name.endswith(".py")}
        - {"__init__", DEFAULT}
    ),
)
"""All forms. To list them loads none of their modules."""


class ReportOptions:
    """What a writer may need to know.

    terms: which findings count for the exit status. most: how many findings of one rule by one peer of a
    connection a form for people shows. detail: what the text shows of each finding. captures: what is read,
    for a form that reads it again; none if it can be read only once.
    """

    def __init__(self, terms: Terms, most: int, detail: Detail, captures: Sequence[Readable] = ()) -> None:
        self.terms = terms
        self.most = most
        self.detail = detail
        self.captures = captures


class ReportForm:
    """A form of report.

    purpose: what the form is for, in a few words for `--help`. writer: makes the writer of one report, which
    says in `context`, `connections` and `records` what it needs beside findings. suffixes: of files that are
    written in this form unless another one is named. shows_fixed: a report says which findings of the
    baseline are gone. shows_notes: a report has the notes about a capture, and how many findings were
    ignored. What a form does not show is written to standard error.
    """

    def __init__(
        self,
        purpose: str,
        writer: Callable[[TextIO, ReportOptions], FindingWriter],
        suffixes: tuple[str, ...] = (),
        shows_fixed: bool = False,
        shows_notes: bool = True,
    ) -> None:
        self.purpose = purpose
        self.writer = writer
        self.suffixes = suffixes
        self.shows_fixed = shows_fixed
        self.shows_notes = shows_notes


def declared(name: str) -> ReportForm:
    """The form of this name, one of `NAMES`."""
    form: ReportForm = importlib.import_module(f"{__name__}.{name}").FORM
    return form


def suffixes() -> dict[str, str]:
    """The suffixes of files, each with the name of its form."""
    return {suffix: name for name in NAMES for suffix in declared(name).suffixes}


def form_of_file(path: str) -> str:
    """The name of the form that follows from a file's suffix; "" if none does."""
    return suffixes().get(os.path.splitext(path)[1].lower(), "")

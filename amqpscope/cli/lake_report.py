"""`amqpscope pipeline report`: what a lake holds, for a browser, a terminal or a program."""

import json
import os
from typing import TYPE_CHECKING, Annotated

import typer

from amqpscope.cli.lake import AsOf, Configuration, LakeArgument, Master, OnlyTag, ask
from amqpscope.cli.output import TextOrJson, say
from amqpscope.cli.spark_options import Verbose
from amqpscope.errors import FilterError
from amqpscope.policy.replacement import replace_text

if TYPE_CHECKING:
    from amqpscope.pipeline.engines import Engine
    from amqpscope.pipeline.report import LakeReport

__all__ = ["REPORT_EPILOG", "report"]

REPORT_EPILOG = """\b
The suffix of OUT decides the format:
  .html  a page that a browser opens without a network, also for printing
  .json  one JSON object (amqpscope/lake-report/1)
  .txt   text

The report has the numbers of `pipeline summary` and more: what is new since
the run before, which rules only the newer version of a product breaks,
findings per hour, settlement latencies over time, senders without credit, and
the inputs that were not read. For every number, the report contains a query
that shows the rows behind the number. Run this query with
`amqpscope pipeline sql`. For findings, the report contains the
`amqpscope why` command that explains them.

\b
Examples:
  amqpscope pipeline report lake
  amqpscope pipeline report lake -o lake.html
  amqpscope pipeline report lake --format json | jq .answers.rules.groups

\b
Exit status: 0 fine, 2 a failure.
"""

_SUFFIXES = (".html", ".json", ".txt")


def report(
    lake: LakeArgument,
    out: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            show_default=False,
            help="Write the report to this file. The suffix of the file decides the format: .html, .json "
            "or .txt. By default, the report goes to standard output.",
        ),
    ] = None,
    form: Annotated[
        TextOrJson | None,
        typer.Option(
            "--format",
            metavar="text|json",
            show_default=False,
            help="Set the format of standard output. text: for people; json: one JSON object. "
            "[default: text]",
        ),
    ] = None,
    master: Master = None,
    as_of: AsOf = "",
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="RUN",
            show_default=False,
            help="Compare the last run with the run that has this id, and mark everything that is new. By "
            "default, the report compares the last run with the run before it. `pipeline history` "
            "shows the ids.",
        ),
    ] = "",
    tag: OnlyTag = None,
    configuration: Configuration = None,
    verbose: Verbose = False,
) -> int:
    """Report broken rules (by product and version), latencies, errors and more.

    The report is an HTML page, text or JSON.
    """
    if out is not None and form is not None:
        raise FilterError("--format: cannot be combined with --output, whose suffix chooses the form")
    suffix = os.path.splitext(out)[1].lower() if out is not None else ".json" if form == "json" else ".txt"
    if suffix not in _SUFFIXES:
        raise FilterError(f"--output {out}: the name must end in .html, .json or .txt")

    def show(engine: "Engine") -> None:
        from amqpscope.pipeline.earlier import earlier
        from amqpscope.pipeline.lake import Lake
        from amqpscope.pipeline.report import lake_report
        from amqpscope.pipeline.tags import tags_of

        at = Lake(lake, as_of, tags_of(tag or []))
        name = at.name  # without credentials
        text = _written(lake_report(engine, name, as_of, earlier(at, since), at.tags), suffix)
        if out is None:
            print(text, end="")
        else:
            replace_text(out, text)
            say(f"{out}: report of {name}")

    return ask(lake, as_of, tag, show, master, configuration, verbose)


def _written(made: "LakeReport", suffix: str) -> str:
    """The report in a form."""
    if suffix == ".html":
        from amqpscope.pipeline.report_page import report_html

        return report_html(made)
    if suffix == ".json":
        from amqpscope.pipeline.report import report_object

        return json.dumps(report_object(made), indent=1) + "\n"
    from amqpscope.pipeline.report_text import report_lines

    return "\n".join(report_lines(made)) + "\n"

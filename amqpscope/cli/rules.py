"""`amqpscope rules`: the catalogue, one rule explained, and how much of all is checked."""

import enum
from pathlib import Path
from typing import Annotated

import typer

from amqpscope.cli.help import HelpfulCommand
from amqpscope.cli.output import ObjectFormat, TextOrJson, read_or_not, say
from amqpscope.cli.painted import print_json, print_lines
from amqpscope.cli.rule_page_writer import RulePageWriter
from amqpscope.cli.rules_coverage import COVERAGE_EPILOG, show_coverage
from amqpscope.cli.status import Status
from amqpscope.conformance.coverage import (
    judged,
)
from amqpscope.conformance.diagnosed import diagnosed
from amqpscope.conformance.pairs import CLEAN, LEGAL, VIOLATING, CapturePairs
from amqpscope.diagnoses.declaration import Kind
from amqpscope.errors import FilterError
from amqpscope.protocols import RULE_SPACES
from amqpscope.report.capture_notes import note_lines, note_named, page_of_note
from amqpscope.report.config_finding_text import page_of_remark, remark_lines, remark_named
from amqpscope.report.diagnosis_page import (
    DRAWN,
    diagnosis_lines,
    diagnosis_named,
    drawn_lines,
    page_of_diagnosis,
)
from amqpscope.report.ladder import WIDTH, ladder
from amqpscope.report.painter import painter
from amqpscope.report.printable import printable
from amqpscope.report.profile_text import profile_lines
from amqpscope.report.rule_json import rule_object
from amqpscope.report.rule_page import page_of_rule
from amqpscope.report.rule_text import list_lines, rule_lines
from amqpscope.report.subject_text import page_of_subject, prefix_key, rules_with, subject_lines
from amqpscope.rules.catalogue import Rule, catalogue, guards, severity
from amqpscope.rules.declaration import LAYERS
from amqpscope.rules.editions import FINAL, shown_in
from amqpscope.rules.explanation import explanation
from amqpscope.rules.profiles import PROFILES
from amqpscope.rules.registry import checked
from amqpscope.rules.rule_names import nearest, rule_named, rules_beginning
from amqpscope.rules.subjects import SUBJECTS, subject_named

__all__ = ["app"]

LIST_SCHEMA = "amqpscope/rules/1"
PROFILES_SCHEMA = "amqpscope/profiles/1"

_LIST_EPILOG = """\b
Each line begins with a sign: + if amqpscope checks the rule, - if amqpscope
does not check the rule yet, and . if no capture can show whether the rule is
kept. After the sign, the line shows the id, the severity and the level of the
rule, which peer can break the rule, and what the rule demands.

The first letters of an id stand for the layer of the rule, for example L for
link. `amqpscope rules explain L-` lists the rules of this layer.

\b
Exit status: 0 fine, 2 a failure (unknown option).
"""

_SEARCH_EPILOG = """\b
A word also matches a part of a longer word. The search ignores upper and
lower case.

\b
Examples:
  amqpscope rules search credit
  amqpscope rules search heartbeat silence

\b
Exit status: 0 fine, 2 a failure (no rule has all of these words).
"""

_EXPLAIN_EPILOG = """\b
The drawings are ladder diagrams of two captures: one breaks the rule, and the
other does not. A double line marks the frame that breaks the rule.

\b
Examples:
  amqpscope rules explain L-CREDIT
  amqpscope rules explain credit
  amqpscope rules explain diag/credit-none
  amqpscope rules explain L-
  amqpscope rules explain amqp10/S-WIN-IN amqp10/D-TAG-LEN
  amqpscope rules explain --format markdown L-CREDIT > L-CREDIT.md

\b
Exit status: 0 fine, 2 a failure (unknown rule).
"""

_PROFILES_EPILOG = """\b
Some products are known for breaking a rule. If such a product breaks this
rule, amqpscope reports the fault only with the severity `note`. amqpscope
recognizes a product by the names that the peer sends when the connection is
opened. `amqpscope check --profile none` keeps the severity of all findings.

\b
Exit status: 0 fine, 2 a failure (unknown option).
"""

_PAGES_EPILOG = """\b
FOLDER/amqp10/L-CREDIT/README.md is the page of the rule L-CREDIT, and
FOLDER/README.md is the page that lists all rules. The command does not change
other files in the folder. If a page names a capture that is missing, the
command copies the capture to the folder of the page.

\b
Exit status: 0 fine, 1 the pages differ (with --check), 2 a failure (another
file has the name of a page, no permission).
"""

_DIFFERENCES_SHOWN = 20

_WIDEST = 100
"""Columns of a ladder on a terminal that has more: what is further apart is not seen together."""

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="List and explain the rules, and show which ones are checked.",
)


class PageFormat(enum.StrEnum):
    """Forms of an explanation."""

    text = "text"
    markdown = "markdown"


class Severity(enum.StrEnum):
    """What breaking a rule amounts to."""

    error = "error"
    warning = "warning"
    note = "note"


@app.command("list", cls=HelpfulCommand, epilog=_LIST_EPILOG, short_help="List every rule, one per line.")
def list_rules(
    protocol: Annotated[
        str | None, typer.Option(metavar="|".join(RULE_SPACES), help="List only rules of this protocol.")
    ] = None,
    layer: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME,...",
            help=f"List only rules of these layers: {', '.join(LAYERS)}. The option may be repeated.",
        ),
    ] = None,
    weight: Annotated[
        Severity | None,
        typer.Option("--severity", metavar="error|warning|note", help="List only rules with this severity."),
    ] = None,
    done: Annotated[
        bool | None,
        typer.Option(
            "--checked/--unchecked",
            help="List only rules that amqpscope checks (--checked), or only"
            " rules that it does not check (--unchecked).",
        ),
    ] = None,
    form: ObjectFormat = TextOrJson.text,
) -> int:
    """List the rules of the catalogue, checked or not."""
    layers = tuple(name.strip().lower() for name in ",".join(layer).split(",")) if layer else LAYERS
    for name in layers:
        if name not in LAYERS:
            raise FilterError(f"--layer {name}: is none of {', '.join(LAYERS)}")
    if protocol is not None and protocol not in RULE_SPACES:
        raise FilterError(f"--protocol {protocol}: is none of {', '.join(RULE_SPACES)}")
    rows = [
        row
        for spoken in RULE_SPACES
        for wanted in LAYERS
        for row in catalogue().values()
        if row.layer == wanted
        and wanted in layers
        and row.id.startswith(f"{spoken}/")
        and protocol in (None, spoken)
        and (weight is None or severity(row.id) == weight)
        and (done is None or (row.id in checked()) == done)
    ]
    if form is TextOrJson.json:
        print_json({"schema": LIST_SCHEMA, "rules": [rule_object(row) for row in rows]})
    else:
        print_lines(list_lines(rows))
    return Status.FINE


@app.command("search", cls=HelpfulCommand, epilog=_SEARCH_EPILOG, short_help="Search the rules for words.")
def search_rules(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORD", help="List the rules whose id or explanation contains all of these words."
        ),
    ],
    form: ObjectFormat = TextOrJson.text,
) -> int:
    """List the rules whose texts contain all of the given words."""
    rows = rules_with(words)
    if form is TextOrJson.json:
        print_json({"schema": LIST_SCHEMA, "rules": [rule_object(row) for row in rows]})
    elif rows:
        _list(rows)
    if not rows:
        say(f"{' '.join(words)}: no rule has all of these words")
        return Status.FAILURE
    return Status.FINE


def _list(rows: list[Rule]) -> None:
    """A line per rule, and what the prefixes of their ids mean."""
    print_lines([*list_lines(rows), *prefix_key(rows)])


@app.command(
    cls=HelpfulCommand,
    epilog=_EXPLAIN_EPILOG,
    short_help="Explain a rule, with a legal and an illegal example.",
)
def explain(
    rules: Annotated[
        list[str],
        typer.Argument(
            metavar="RULE",
            help="Explain the rule with this id. The protocol may be left out: L-CREDIT has the same "
            "meaning as amqp10/L-CREDIT. L- or L-* lists all rules whose ids begin with L-. The "
            "command also explains notes such as capture/gap, messages about the configuration such as "
            "config/ALLOW-EXPIRED, and diagnoses such as diag/credit-none. The command also explains "
            f"these subjects: {', '.join(one.name for one in SUBJECTS)}.",
        ),
    ],
    form: Annotated[
        PageFormat,
        typer.Option(
            "--format",
            metavar="text|markdown",
            show_default=False,
            help="Set the output format. text: for people; markdown: one Markdown page per rule. "
            "[default: text]",
        ),
    ] = PageFormat.text,
) -> int:
    """Explain each rule: what it demands, why it matters, and when it reports nothing.

    Two drawings show a legal and an illegal conversation.
    """
    pairs = CapturePairs()
    as_page = form is PageFormat.markdown
    result = Status.FINE
    shown = False
    for given in rules:
        row, note, remark = rule_named(given), note_named(given), remark_named(given)
        subject, several = subject_named(given), rules_beginning(given)
        kind = None if row is not None else diagnosis_named(given)
        if not (row or note or remark or subject or several or kind):
            say(f"{given}: there is no such rule; {nearest(given)}")
            result = Status.FAILURE
            continue
        if shown:
            print()
        shown = True
        if kind is not None and as_page:
            print(page_of_diagnosis(kind, pairs, alone=True), end="")
        elif kind is not None:
            _explain_diagnosis(kind, pairs)
        elif subject is not None:
            print(page_of_subject(subject, pairs), end="") if as_page else print_lines(subject_lines(subject))
        elif several:
            _list(several)
        elif remark:
            print(page_of_remark(remark), end="") if as_page else print_lines(remark_lines(remark))
        elif note is not None:
            print(page_of_note(note), end="") if as_page else print_lines(note_lines(note))
        elif row is not None and as_page:
            print(page_of_rule(row, pairs, alone=True), end="")
        elif row is not None:
            _explain(row, pairs)
    return result


@app.command(
    "pages", cls=HelpfulCommand, epilog=_PAGES_EPILOG, short_help="Write one Markdown page per rule."
)
def write_pages(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="Write the pages to this folder. The folder is created if it does not exist.",
        ),
    ],
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help=(
                "Write nothing. Exit with status 1 if the existing pages differ from "
                "the pages that the command would write."
            ),
        ),
    ] = False,
) -> int:
    """Write Markdown pages: one for each rule, and index pages. Also write the captures of these pages."""
    pages_writer = RulePageWriter(folder, CapturePairs())
    if check:
        wrong = pages_writer.differences()
        with read_or_not():
            for line in wrong[:_DIFFERENCES_SHOWN]:
                print(printable(line))
            if len(wrong) > _DIFFERENCES_SHOWN:
                print(f"and {len(wrong) - _DIFFERENCES_SHOWN} more")
        return Status.FINDINGS if wrong else Status.FINE
    print(printable(f"{folder}: {pages_writer.write()}"))
    return Status.FINE


app.command(
    "coverage",
    cls=HelpfulCommand,
    epilog=COVERAGE_EPILOG,
    short_help="Show which rules of the catalogue are checked.",
)(show_coverage)


@app.command(
    "profiles", cls=HelpfulCommand, epilog=_PROFILES_EPILOG, short_help="List known product deviations."
)
def list_profiles(form: ObjectFormat = TextOrJson.text) -> int:
    """List products, the rules that each product is known to break, and the sources that say so."""
    if form is TextOrJson.json:
        print_json(
            {
                "schema": PROFILES_SCHEMA,
                "profiles": [
                    {
                        "name": one.name,
                        "product": one.product,
                        "marks": [
                            {
                                "field": mark.field,
                                "pattern": mark.pattern,
                                "version_below": ".".join(str(part) for part in mark.before) or None,
                            }
                            for mark in one.marks
                        ],
                        "habits": [
                            {
                                "rule": habit.rule,
                                "does": habit.does,
                                "source": habit.source,
                                "frames": list(habit.frames) or None,
                                "path": habit.path or None,
                            }
                            for habit in one.habits
                        ],
                    }
                    for one in PROFILES
                ],
            }
        )
    else:
        print_lines(profile_lines(PROFILES))
    return Status.FINE


def _explain(row: Rule, pairs: CapturePairs) -> None:
    """One rule, and its captures."""
    guard = row.id in guards()
    print_lines(rule_lines(row, explanation(row.id), guard))
    if guard:
        _draw(pairs, row.id, LEGAL, "Legal")
        return
    for pair in pairs.of(row.id)[:1]:
        _draw(pairs, pair.folder, VIOLATING, "Broken", shown_in(row.id))
        _draw(pairs, pair.folder, CLEAN, "Not broken", shown_in(row.id))


def _explain_diagnosis(kind: Kind, pairs: CapturePairs) -> None:
    """A diagnosis, and its captures."""
    print_lines(diagnosis_lines(kind))
    paint, width = painter()
    for which, what in DRAWN:
        name = f"{kind.code}/{which}.pcap"
        frames, found = diagnosed(pairs.octets(kind.code, which), name)
        print()
        print(paint.paint([("rule", what), ("dim", f" (captures/rules/{name})")]))
        for line in drawn_lines(frames, found, WIDTH if width is None else min(width, _WIDEST)):
            print(paint.paint(line, 4))


def _draw(pairs: CapturePairs, folder: str, which: str, what: str, spec: str = FINAL) -> None:
    """A capture as a ladder."""
    name = f"{folder}/{which}.pcap"
    frames, findings = judged(pairs.octets(folder, which), name, spec)
    paint, width = painter()
    print()
    print(paint.paint([("rule", what), ("dim", f" (captures/rules/{name})")]))
    for line in ladder(frames, findings, WIDTH if width is None else min(width, _WIDEST)):
        print(paint.paint(line))

"""`amqpscope rules coverage`: which rules are checked, and whether each does what it promises."""

from pathlib import Path
from typing import Annotated

import typer

from amqpscope.cli.inputs import Dialect
from amqpscope.cli.output import ObjectFormat, TextOrJson, read_or_not
from amqpscope.cli.painted import print_json, print_lines
from amqpscope.cli.status import Status
from amqpscope.conformance.coverage import Coverage, coverage, standing
from amqpscope.conformance.elements import DECODING, draft_elements
from amqpscope.conformance.pairs import CapturePairs
from amqpscope.report.rule_json import STATUSES, proof_object
from amqpscope.report.rule_text import coverage_lines
from amqpscope.rules.catalogue import named

__all__ = ["COVERAGE_EPILOG", "show_coverage"]

COVERAGE_SCHEMA = "amqpscope/coverage/1"

COVERAGE_EPILOG = """\b
The first capture of a rule breaks the rule, and must give exactly the
expected findings. The second capture does not break any rule, and must give
no finding. In the third capture, octets are missing, and the capture must
give the expected result. The command also checks captures in which a
conversation looks like a fault but is legal. These captures must give no
finding.

\b
Exit status: 0 fine, 1 a capture did not give the expected result, 2 a
failure.
"""


def show_coverage(
    captures: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Use the captures in this folder instead of the captures that are installed with amqpscope.",
        ),
    ] = None,
    form: ObjectFormat = TextOrJson.text,
    dialect: Annotated[
        Dialect | None,
        typer.Option(
            metavar="final|draft2011",
            show_default=False,
            help=(
                "Choose what the command shows. The value `final` (the default) shows which rules "
                "amqpscope checks. The value `draft2011` shows each element of the AMQP 1.0 draft of April "
                "2011, and how amqpscope decodes the element."
            ),
        ),
    ] = None,
) -> int:
    """Show which rules `check` covers, and test each of these rules with its captures."""
    if dialect is Dialect.draft2011:
        _show_elements(form)
        return Status.FINE
    proved = coverage(CapturePairs(captures))
    with read_or_not():
        _show_coverage(proved, form)
    return Status.FINDINGS if proved.failed else Status.FINE


def _show_coverage(proved: Coverage, form: TextOrJson) -> None:
    if form is TextOrJson.json:
        counts = {how: sum(proof.status == how for proof in proved.rules) for how in STATUSES}
        print_json(
            {
                "schema": COVERAGE_SCHEMA,
                "counts": {STATUSES[how]: count for how, count in counts.items()},
                "rules": [proof_object(proof) for proof in proved.rules],
                "guards": [proof_object(proof) for proof in proved.guards],
                "xml_rules": [
                    {
                        "name": one.name,
                        "rules": list(one.rules),
                        "status": STATUSES[standing(one, proved)],
                        "reason": one.reason or None,
                    }
                    for one in named()
                ],
            }
        )
    else:
        print_lines(coverage_lines(proved))


def _show_elements(form: TextOrJson) -> None:
    """The elements of the draft of April 2011, and how each is decoded."""
    elements = draft_elements()
    counts = {how: sum(one.status == how for one in elements) for how in DECODING}
    if form is TextOrJson.json:
        rows = [one._asdict() for one in elements]
        print_json({"schema": COVERAGE_SCHEMA, "counts": counts, "elements": rows})
        return
    for how, count in counts.items():
        print(f"{count:4} {how}: {DECODING[how]}")
    width = max(len(one.name) for one in elements)
    for one in elements:
        agrees = f" (as {one.agrees})" if one.agrees else ""
        reason = f": {one.reason}" if one.reason else ""
        print(f"{one.section:8} {one.kind:10} {one.name:{width}} {one.status}{agrees}{reason}")

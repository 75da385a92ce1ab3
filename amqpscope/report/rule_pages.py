"""All pages: one a rule, a guard and a further dialogue, an index a protocol, the notes, and the first page.

    README.md                    what there is
    amqp10/README.md             AMQP 1.0: its rules by layer, what is legal although it may look odd
    amqp10/L-CREDIT/README.md    a rule, beside its captures
    amqp091/...                  the same of AMQP 0-9-1
    subjects/credit/README.md    how a mechanism of a protocol works: a few rules in their order
    capture/README.md            what notes about captures mean
    config/README.md             what is found in a configuration
    diag/README.md               the diagnoses
    diag/credit-none/README.md   a diagnosis, beside its captures

That is the layout of captures/rules, where they lie in the source tree.
"""

from collections.abc import Iterator
from typing import Final

from amqpscope.conformance.coverage import CHECKED, UNDECIDABLE, status
from amqpscope.conformance.pairs import CLEAN, CUT, LEGAL, VIOLATING, CapturePairs
from amqpscope.diagnoses.registry import kinds
from amqpscope.policy.config_finding import REMARKS
from amqpscope.protocols import RULE_SPACES
from amqpscope.report.capture_notes import CAPTURE_NOTES, page_of_note
from amqpscope.report.config_finding_text import page_of_remark
from amqpscope.report.diagnosis_page import DRAWN, index_of_diagnoses, page_of_diagnosis
from amqpscope.report.protocol_names import protocol_name
from amqpscope.report.rule_page import PAGE, escaped, page_of_dialogue, page_of_rule
from amqpscope.report.rule_text import row_shown, severity_words, weight_shown
from amqpscope.report.subject_text import page_of_subject
from amqpscope.rules.catalogue import Rule, catalogue, guards
from amqpscope.rules.declaration import LAYERS
from amqpscope.rules.subjects import SUBJECTS

__all__ = ["MARK", "captures_of", "pages"]

MARK: Final = "<!-- Written by `amqpscope rules pages`: do not edit it here. -->\n"
"""How every page begins: whatever else is called as a page is, is somebody else's."""

_CAPTURES = """\
The folder of a rule that is checked has three captures of the same short dialogue:

| file | what it is |
|---|---|
| `violating.pcap` | the dialogue breaks the rule: amqpscope finds exactly what `expected.tsv` lists |
| `clean.pcap` | the same dialogue without the fault: amqpscope finds nothing |
| `cut.pcap` | the violating dialogue with octets missing: amqpscope finds what `expected.tsv` lists |

A second dialogue for the same rule has a folder of its own, such as `L-CREDIT-2`. If a rule has no dialogue
of its own, its page draws a dialogue that breaks this rule and another rule. A legal pattern is behaviour
that only looks like a fault. Its folder has one capture, `legal.pcap`, in which amqpscope finds nothing. The
folder of a diagnosis has `troubled.pcap`, with the diagnosis, and `fine.pcap`, without a diagnosis.

`expected.tsv` in `captures/rules` has one row for each expected finding, with these columns:

| column | what it states |
|---|---|
| `rule` | the rule that is broken |
| `captures` | the folder of the captures |
| `peer` | the peer at fault |
| `packet` | the packet with the first octet of the offending frame, as Wireshark counts packets |
| `certainty` | `certain` or `possible` |
| `cut` | the expected result for `cut.pcap`: `silent`, `same` or `possible` |
| `cut_packet` | the packet of the finding in `cut.pcap` |

The column `cut` compares `cut.pcap` with `violating.pcap`. The value `silent` means that `cut.pcap` has no
finding of this rule. The value `same` means that both captures have the same finding. The value `possible`
means the same, but in `cut.pcap` the finding is reported as possible.

`amqpscope rules coverage` checks all these captures against `expected.tsv`. `amqpscope rules explain
L-CREDIT` draws the captures of a rule in a terminal. The captures are installed with the package.

The captures are generated, not recorded. In the source tree, `python tests/scenarios/write_captures.py`
generates them from the dialogues in `tests/scenarios/`, with the same octets on every run. Do not edit the
captures: change the dialogue and generate the captures again. A test compares the captures with the
dialogues."""


def pages(pairs: CapturePairs) -> Iterator[tuple[str, str]]:
    """Each page: its path, and its text."""
    yield PAGE, MARK + _first_page()
    yield f"capture/{PAGE}", MARK + _notes()
    yield f"config/{PAGE}", MARK + _remarks()
    for protocol in _protocols():
        yield f"{protocol}/{PAGE}", MARK + _index(protocol)
    for subject in SUBJECTS:
        yield f"subjects/{subject.name}/{PAGE}", MARK + page_of_subject(subject, pairs)
    for row in (*catalogue().values(), *guards().values()):
        yield f"{row.id}/{PAGE}", MARK + page_of_rule(row, pairs)
    yield f"diag/{PAGE}", MARK + index_of_diagnoses()
    for kind in kinds().values():
        yield f"{kind.code}/{PAGE}", MARK + page_of_diagnosis(kind, pairs)
    for pair in pairs.pairs.values():
        if pair.folder not in catalogue():
            yield f"{pair.folder}/{PAGE}", MARK + page_of_dialogue(pair, pairs)


def captures_of(pairs: CapturePairs) -> Iterator[tuple[str, str, str]]:
    """The captures that pages name: their paths, and the folder and name by which `pairs` has them."""
    for folder in pairs.pairs:
        for which in (VIOLATING, CLEAN, CUT):
            yield f"{folder}/{which}.pcap", folder, which
    for guard in guards():
        yield f"{guard}/{LEGAL}.pcap", guard, LEGAL
    for code in (kind.code for kind in kinds().values()):
        for which, _ in DRAWN:
            yield f"{code}/{which}.pcap", code, which


def _protocols() -> list[str]:
    return list(dict.fromkeys(name.partition("/")[0] for name in catalogue()))


def _of(rules: dict[str, Rule], protocol: str) -> list[Rule]:
    return [row for row in rules.values() if row.id.startswith(f"{protocol}/")]


def _first_page() -> str:
    blocks = [
        "# The rules",
        "This page leads to all rules. The page of each rule gives the demand, the source, the cases in "
        "which the rule reports nothing, and two dialogues: one dialogue breaks the rule, and the other "
        "dialogue does not. `amqpscope rules explain RULE` shows the same.",
    ]
    lines = []
    for protocol in _protocols():
        rows = _of(catalogue(), protocol)
        more = _of(guards(), protocol)
        reported = f"- [{protocol_name(protocol)}]({protocol}/{PAGE}): {_counts(rows)}"
        lines.append(
            reported + (f"; {len(more)} legal patterns (behaviour that looks like a fault)" if more else "")
        )
    count = sum(len(note.codes) for note in CAPTURE_NOTES)
    lines.append(f"- [Notes about captures](capture/{PAGE}): {count} notes; a note accuses no peer")
    lines.append(f"- [Findings about the configuration](config/{PAGE}): {len(REMARKS)} findings")
    lines.append(
        f"- [Diagnoses](diag/{PAGE}): {len(kinds())} diagnoses; a diagnosis says who waits for whom, and why"
    )
    subjects = [
        f"- [{one.title}](subjects/{one.name}/{PAGE}) ({protocol_name(one.protocol)})" for one in SUBJECTS
    ]
    parts = [*blocks, "\n".join(lines), "## Subjects", "\n".join(subjects), "## Captures", _CAPTURES]
    return "\n\n".join(parts) + "\n"


def _counts(rows: list[Rule]) -> str:
    done = sum(status(row) == CHECKED for row in rows)
    unseen = sum(status(row) == UNDECIDABLE for row in rows)
    counts = f"{len(rows)} rules, {done} checked, {unseen} not decidable from a capture"
    return counts if done + unseen == len(rows) else f"{counts}, {len(rows) - done - unseen} not yet checked"


def _index(protocol: str) -> str:
    rows = _of(catalogue(), protocol)
    blocks = [
        f"# {protocol_name(protocol)}: the rules",
        f"{_counts(rows)}. [All protocols](../{PAGE}).",
        f"{severity_words([row_shown(row, False) for row in rows])} The list also includes rules that "
        "cannot be checked in a capture.",
        "The letters before the first hyphen of an id name its layer: "
        + ", ".join(f"{prefix} {layer}" for prefix, layer in RULE_SPACES[protocol].layers.items())
        + ".",
    ]
    for layer in LAYERS:
        its = [row for row in rows if row.layer == layer]
        if its:
            blocks += [f"## {layer}", _table(its, False)]
    legal = _of(guards(), protocol)
    if legal:
        blocks += ["## Guards: legal behaviour that looks like a fault", _table(legal, True)]
    return "\n\n".join(blocks) + "\n"


def _table(rows: list[Rule], guard: bool) -> str:
    """A row a rule."""
    if guard:
        lines = ["| | what is legal |", "|---|---|"]
    else:
        lines = ["| rule | severity | level | by | checked | what it demands |", "|---|---|---|---|---|---|"]
    for one in rows:
        row = row_shown(one, guard)
        short = row.id.partition("/")[2]
        cells = [f"[{short}]({short}/{PAGE})"]
        if not guard:
            state = {CHECKED: "yes", UNDECIDABLE: "impossible"}.get(status(row), "not yet")
            cells += [weight_shown(row, guard), escaped(row.requirement), row.breaker, state]
        cells.append(escaped(row.text))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _notes() -> str:
    blocks = [
        "# Notes about captures",
        "A note describes the capture itself. Notes accuse no peer and never change the exit status. If "
        "data is missing, the rules that need this data report nothing, or report a violation only as "
        f"possible. [All rules](../{PAGE}).",
    ]
    for note in CAPTURE_NOTES:
        blocks.append(page_of_note(note, "##").rstrip("\n"))
    return "\n\n".join(blocks) + "\n"


def _remarks() -> str:
    blocks = [
        "# Findings about the configuration",
        "These findings of `check` are about an entry in `amqpscope.toml` or `[tool.amqpscope]`, not about "
        f"a peer. [All rules](../{PAGE}).",
    ]
    blocks += [page_of_remark(name, "##").rstrip("\n") for name in REMARKS]
    return "\n\n".join(blocks) + "\n"

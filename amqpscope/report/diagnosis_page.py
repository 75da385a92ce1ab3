"""A diagnosis as a page of Markdown and for a terminal, with drawings of its two captures.

The page is the README of the folder with its captures, `diag/credit-none`, beside those of the rules.
"""

import re
from typing import Final

from amqpscope.conformance.diagnosed import FINE, TROUBLED, diagnosed
from amqpscope.conformance.pairs import CapturePairs
from amqpscope.diagnoses.declaration import Kind
from amqpscope.diagnoses.registry import kinds
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.records import FrameRecord
from amqpscope.report.diagnosis_text import diagnosis_line
from amqpscope.report.ladder import WIDTH, ladder
from amqpscope.report.line import Line
from amqpscope.report.rule_page import PAGE, escaped
from amqpscope.report.table import TableColumn, table
from dissectors.wording import count

__all__ = [
    "DRAWN",
    "diagnosis_lines",
    "diagnosis_named",
    "drawn_lines",
    "index_of_diagnoses",
    "page_of_diagnosis",
]

DRAWN: Final = ((TROUBLED, "With the trouble"), (FINE, "Without the trouble"))
"""The captures of a diagnosis, and what stands above their drawings."""

_FIRST: Final = 24
"""Frames of a capture that are drawn."""

_THREAD: Final = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")

_LIMITS: Final = (TableColumn("limit"), TableColumn("value", right=True), TableColumn("reason", least=20))


def diagnosis_named(given: str) -> Kind | None:
    """The diagnosis of this code, with or without `diag/`; None if there is none."""
    return kinds().get(f"diag/{given.strip().lower().removeprefix('diag/')}")


def threads(words: str) -> list[tuple[str, str]]:
    """The threads that the words of a diagnosis name: what they are called, and their addresses."""
    found = []
    for one in words.replace(",", " ").split():
        thread = _THREAD.fullmatch(one)
        if thread is not None:
            found.append((one, f"https://github.com/{thread[1]}/issues/{thread[2]}"))
        elif one.startswith("https://"):
            found.append((one.removeprefix("https://"), one))
    return found


def page_of_diagnosis(kind: Kind, pairs: CapturePairs, alone: bool = False) -> str:
    """The page of a diagnosis. alone: without links to other pages and captures, for use anywhere."""
    spoken = ", ".join(f"AMQP {one}" for one in kind.protocols) or "any protocol"
    weight = "This diagnosis reports a problem." if kind.trouble else "This diagnosis reports no problem."
    there = "" if alone else f" [All diagnoses](../{PAGE})."
    blocks = [
        f"# {kind.code}",
        f"{weight} This diagnosis applies to {spoken}.{there}",
        escaped(kind.sentence),
    ]
    facts = []
    for head, words in kind.sections().items():
        if head == "Discussions":
            words = ", ".join(f"[{escaped(name)}]({address})" for name, address in threads(words))
        else:
            words = escaped(words)
        facts.append(f"- **{head}:** {words}")
    blocks.append("\n".join(facts))
    if kind.limits:
        rows = [
            f"| `{kind.name}.{one.name}` | {one.value:g} | {escaped(one.reason)} |" for one in kind.limits
        ]
        blocks.append("\n".join(["| limit | value | reason |", "|---|---|---|", *rows]))
        blocks.append("The table `[diagnosis-limits]` of the configuration file changes these limits.")
    for which, what in DRAWN:
        name = f"{kind.code}/{which}.pcap"
        source = f"`captures/rules/{name}`" if alone else f"[{which}.pcap]({which}.pcap)"
        frames, found = diagnosed(pairs.octets(kind.code, which), name)
        lines = ["".join(text for _, text in line).rstrip() for line in _ladder(frames, WIDTH)]
        blocks += [f"## {what}", f"{source}:", "\n".join(["```text", *lines, "```"])]
        blocks += [f"- {escaped(''.join(text for _, text in line))}" for line in _verdict(found)]
    return "\n\n".join(blocks) + "\n"


def index_of_diagnoses() -> str:
    """The page that lists all of them."""
    lines = ["| diagnosis | what is the matter |", "|---|---|"]
    for kind in kinds().values():
        lines.append(f"| [{kind.name}]({kind.name}/{PAGE}) | {escaped(kind.sentence)} |")
    blocks = [
        "# The diagnoses",
        "A diagnosis says who waits for whom, since when, and why. A diagnosis accuses no peer of breaking "
        "a rule. "
        "`amqpscope summary` and `amqpscope check` show diagnoses, and `amqpscope rules explain "
        f"diag/credit-none` explains one diagnosis. [All rules](../{PAGE}).",
        "\n".join(lines),
        "The folder of a diagnosis has two captures: in `troubled.pcap` the diagnosis is made, and "
        "`fine.pcap` is similar and has no diagnosis.",
    ]
    return "\n\n".join(blocks) + "\n"


def diagnosis_lines(kind: Kind) -> list[tuple[Line, int]]:
    """The same for a terminal, without the drawings: each line with the columns before its continuation."""
    spoken = ", ".join(f"AMQP {one}" for one in kind.protocols) or "any protocol"
    lines: list[tuple[Line, int]] = [
        ([("rule", kind.code), ("dim", f"  {spoken}")], 2),
        ([("", kind.sentence)], 0),
    ]
    for head, words in kind.sections().items():
        lines.append(([("key", f"  {head}: "), ("", words)], 4))
    rows = [
        [("", f"{kind.name}.{one.name}"), ("", f"{one.value:g}"), ("", one.reason)] for one in kind.limits
    ]
    if rows:
        lines += [([("", "  "), *line], 4) for line in table(_LIMITS, rows, None)]
    return lines


def drawn_lines(frames: list[FrameRecord], found: list[Diagnosis], width: int) -> list[Line]:
    """The first frames of a capture as a ladder, and what is diagnosed."""
    return [*_ladder(frames, width), *_verdict(found)]


def _ladder(frames: list[FrameRecord], width: int) -> list[Line]:
    lines = ladder(frames[:_FIRST], [], width) or [[("dim", "no frame of AMQP")]]
    if len(frames) > _FIRST:
        lines.append([("dim", f"... and {count(len(frames) - _FIRST, 'more frame')}")])
    return lines


def _verdict(found: list[Diagnosis]) -> list[Line]:
    return [diagnosis_line(one) for one in found] or [[("", "no diagnosis")]]

"""Subjects for people, as text and as a page of Markdown; rules found by words or by a prefix."""

from amqpscope.conformance.pairs import CLEAN, VIOLATING, CapturePairs
from amqpscope.protocols import RULE_SPACES, label
from amqpscope.report.line import Line
from amqpscope.report.rule_page import PAGE, drawn, escaped
from amqpscope.rules.catalogue import Rule, catalogue, rule
from amqpscope.rules.explanation import explanation
from amqpscope.rules.subjects import Subject

__all__ = ["page_of_subject", "prefix_key", "rules_with", "subject_lines"]


def subject_lines(one: Subject) -> list[tuple[Line, int]]:
    """A subject: lines, each with the columns before its continuation."""
    lines: list[tuple[Line, int]] = [
        ([("rule", one.title), ("dim", f" ({label(one.protocol)})")], 2),
        ([("", f"  {one.text}")], 2),
        ([], -1),
    ]
    for number, name in enumerate(one.rules, 1):
        row = rule(f"{one.protocol}/{name}")
        lines.append(([("key", f"  {number} "), ("rule", f"{name}  "), ("", row.text)], 4))
    lines.append(([], -1))
    lines.append(([("dim", f"next: amqpscope rules explain {one.drawn}")], 2))
    return lines


def page_of_subject(one: Subject, pairs: CapturePairs) -> str:
    """The same as a page of Markdown, beside the folders of the protocols."""
    blocks = [f"# {one.title}", f"{label(one.protocol)}. {escaped(one.text)}"]
    for number, name in enumerate(one.rules, 1):
        row = rule(f"{one.protocol}/{name}")
        link = f"[{name}](../../{one.protocol}/{name}/{PAGE})"
        blocks.append(f"{number}. {link}: {escaped(row.text)}")
    folder = pairs.of(f"{one.protocol}/{one.drawn}")[0].folder
    for which, what in ((CLEAN, f"{one.drawn} is kept"), (VIOLATING, f"{one.drawn} is broken")):
        blocks += drawn(pairs, folder, which, what, False, f"../../{folder}/")
    return "\n\n".join(blocks) + "\n"


def prefix_key(rows: list[Rule]) -> list[tuple[Line, int]]:
    """What the prefixes of the ids of these rules mean, a line per protocol."""
    lines: list[tuple[Line, int]] = []
    for protocol in RULE_SPACES.values():
        used = {
            row.id.partition("/")[2].partition("-")[0]
            for row in rows
            if row.id.startswith(f"{protocol.name}/")
        }
        words = [f"{prefix}- {layer}" for prefix, layer in protocol.layers.items() if prefix in used]
        if words:
            lines.append(([("dim", f"prefixes of {protocol.name}: {', '.join(words)}")], 2))
    return lines


def rules_with(words: list[str]) -> list[Rule]:
    """The rules in whose id, demand or explanation all of these words stand, whole or as a part of a word."""
    wanted = [word.lower() for given in words for word in given.split()]
    return [row for row in catalogue().values() if all(word in _all_text(row) for word in wanted)]


def _all_text(row: Rule) -> str:
    words = explanation(row.id)
    parts = [row.id, row.layer, row.text]
    if words is not None:
        parts += [words.fault, words.matters, words.evidence, words.silent, words.mend]
    return " ".join(parts).lower()

"""A rule as a page of Markdown: what `amqpscope rules explain` shows, with drawings of its captures.

The page of a rule is the README of the folder with its captures, so a forge shows it with the folder:
`amqp10/L-CREDIT/README.md`. A second dialogue of the rule has its own folder and its own page. Links are
relative and lead only to other pages and captures, so the pages can be anywhere.

The text comes from the catalogue and the program. Text from captures has passed `printable` and stands in
blocks of code.
"""

import re
from collections.abc import Iterable

from amqpscope.conformance.coverage import judged
from amqpscope.conformance.pairs import CLEAN, CUT, LEGAL, VIOLATING, CapturePairs, Pair
from amqpscope.model.finding import Finding
from amqpscope.model.records import FrameRecord
from amqpscope.protocols import RULE_SPACES, label
from amqpscope.report.ladder import ladder
from amqpscope.report.rule_text import row_shown, rule_facts, standing_of, weight_shown
from amqpscope.rules.catalogue import Rule, catalogue, guards
from amqpscope.rules.editions import shown_in
from amqpscope.rules.explanation import explanation
from amqpscope.rules.references import references

__all__ = ["PAGE", "drawn", "escaped", "page_of_dialogue", "page_of_rule"]

PAGE = "README.md"
"""The file name of a page in its folder."""

_LABELS = {
    "source": "Source in the specification",
    "broken by": "Who can break this rule",
    "severity": "Severity",
    "answer": "Answer of the other peer",
    "unchecked": "Why amqpscope does not check this rule",
    "evidence": "Where amqpscope looks for the fault",
    "fault": "The fault",
    "matters": "Why the fault matters",
    "possible": "Why amqpscope is not always sure of this fault",
    "only possible": "Why amqpscope is never sure of this fault",
    "mend": "How to mend the fault",
    "code": "Code of the check",
    "habit": "Known deviation",
    "final": "In the final specification",
    "csd01": "In the draft csd01",
    "csprd02": "In the draft csprd02",
}

# Of the cut capture.
_PROMISES = {
    "silent": "no finding of this rule",
    "same": "the same finding",
    "possible": "the same finding, but reported as possible",
}

# All that can be more than itself in Markdown within a line.
_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&!@$]")
_LINK = re.compile(r"https?://[^\s()<>]*[^\s()<>.,;]")
_ID = re.compile(f"(?:(?:{'|'.join(RULE_SPACES)})/)?[A-Z]+[0-9]?(?:-[A-Z0-9]+)+")
# Conditions are code: a forge has a picture for `:link:`.
_CONDITION = re.compile(r"amqp(?::[a-z-]+)+")
_TOKEN = re.compile(f"({_LINK.pattern}|`[^`]+`|{_CONDITION.pattern}|{_ID.pattern})")


def page_of_rule(row: Rule, pairs: CapturePairs, alone: bool = False) -> str:
    """The page of a rule, or of a guard. alone: without links to other pages, for use anywhere."""
    guard = row.id in guards()
    row = row_shown(row, guard)
    (_, demand), *facts = rule_facts(row, explanation(row.id), guard)
    protocol = label(row.id.partition("/")[0])
    there = f"the layer `{row.layer}` of {protocol}"
    if not alone:
        there = f"[{there}](../{PAGE}#{row.layer})"
    blocks = [
        f"# {row.id}",
        f"**{'Legal' if guard else f'Severity: {weight_shown(row, guard)}'}.** "
        f"{escaped(standing_of(row, guard))} This {'behaviour' if guard else 'rule'} belongs to {there}.",
        escaped(demand, row.id, alone),
        "\n".join(
            _item(
                label,
                _sources(row) if label == "source" else _reported(label, text, row.id, alone),
                row.observable == "no",
            )
            for label, text in facts
        ),
    ]
    if guard:
        blocks += drawn(pairs, row.id, LEGAL, "Legal", alone)
        return _page(blocks)
    dialogues = pairs.of(row.id)
    for pair in dialogues[:1]:
        folder = "" if pair.folder == row.id else f"../{pair.folder.partition('/')[2]}/"
        blocks += drawn(pairs, pair.folder, VIOLATING, "Broken", alone, folder, shown_in(row.id))
        blocks += drawn(pairs, pair.folder, CLEAN, "Not broken", alone, folder, shown_in(row.id))
    if dialogues:
        blocks.append("## Captures")
        blocks.append(_table(row.id, dialogues, alone))
    return _page(blocks)


def page_of_dialogue(pair: Pair, pairs: CapturePairs) -> str:
    """The page of a dialogue whose folder does not have the id of a rule: a further dialogue of its first
    rule.
    """
    spec = shown_in(pair.rules[0])
    links = [_id(rule, pair.folder, False) for rule in pair.rules]
    blocks = [f"# {pair.folder}", f"This is a further example of a violation of {' and '.join(links)}."]
    blocks += drawn(pairs, pair.folder, VIOLATING, "Broken", False, "", spec)
    blocks += drawn(pairs, pair.folder, CLEAN, "Not broken", False, "", spec)
    blocks += ["## Captures", _table(pair.rules[0], [pair], False, pair.folder)]
    return _page(blocks)


def escaped(text: str, of: str = "", alone: bool = True) -> str:
    """Words of ours as Markdown: addresses and, on the page of a rule `of`, names of others as links."""
    parts = []
    for index, part in enumerate(_TOKEN.split(text)):
        if index % 2 == 0:
            parts.append(_SPECIAL.sub(r"\\\g<0>", part))
        elif part.startswith("`"):
            parts.append(part.replace("|", "\\|"))
        elif part.startswith("http"):
            parts.append(f"<{part}>")
        elif part.startswith("amqp:"):
            parts.append(f"`{part}`")
        else:
            parts.append(_id(part, of, alone))
    return "".join(parts)


def _id(name: str, of: str, alone: bool) -> str:
    """What may be the id of a rule, on the page of one of that protocol, as a link if it is one."""
    namespace = of.partition("/")[0]
    whole = name if "/" in name else f"{namespace}/{name}"
    if alone or whole == of or (whole not in catalogue() and whole not in guards()):
        return name
    place, _, short = whole.partition("/")
    return f"[{name}]({'..' if place == namespace else f'../../{place}'}/{short}/{PAGE})"


def _item(label: str, text: str, unchecked: bool) -> str:
    """One fact, as an item of a list: after a bold label, or as a sentence that begins in bold."""
    if label == "evidence" and unchecked:
        return f"- **No check exists.** To find the fault, a check would have to look at {text}."
    if label == "evidence" and text.startswith("whether "):
        return f"- **To find the fault, amqpscope checks** {text}."
    if label == "evidence":
        return f"- **{_LABELS[label]}:** {text}."
    if label == "silent":
        when = text.removeprefix("never")
        return f"- **The rule is {'' if when == text else 'never '}silent**{' ' * (when == text)}{when}"
    return f"- **{_LABELS.get(label, label)}:** {text}"


def _reported(label: str, text: str, of: str, alone: bool) -> str:
    if label == "code":
        file, _, function = text.partition(", ")
        return f"`amqpscope/{file}`, `{function}`" if function else f"`amqpscope/{file}`"
    return escaped(text, of, alone)


def _sources(row: Rule) -> str:
    """Where the specification has the rule, as links to its public text."""
    return "; ".join(
        f"[{escaped(one.text)}]({one.address})" if one.address else escaped(one.text)
        for one in references(row.source)
    )


def drawn(
    pairs: CapturePairs, folder: str, which: str, what: str, alone: bool, where: str = "", spec: str = "final"
) -> list[str]:
    """A capture as a ladder, under a heading. where: its folder, as seen from the page."""
    name = f"{folder}/{which}.pcap"
    lines = _ladder(*judged(pairs.octets(folder, which), name, spec))
    source = f"`captures/rules/{name}`" if alone else f"[{which}.pcap]({where}{which}.pcap)"
    return [f"## {what}", f"{source}:", "\n".join(["```text", *lines, "```"])]


def _ladder(records: Iterable[FrameRecord], findings: Iterable[Finding]) -> list[str]:
    return ["".join(text for _, text in line).rstrip() for line in ladder(records, findings)]


def _table(rule: str, dialogues: list[Pair], alone: bool, of: str = "") -> str:
    """The captures of a rule, and what must be found in them. of: the folder of the page, if not its own."""
    rows = [
        "| dialogue | with the fault: findings | without the fault | with missing octets |",
        "|---|---|---|---|",
    ]
    for pair in dialogues:
        short = pair.folder.partition("/")[2]
        place = "" if pair.folder == (of or rule) else f"../{short}/"
        found = "; ".join(
            f"{_id(verdict.rule.partition('/')[2], of or rule, alone)} "
            f"by the {verdict.peer} in packet {verdict.packet}, "
            f"reported as {'certain' if verdict.certain else 'possible'}"
            for verdict in pair.violating
        )
        cells = [
            short if alone or not place else f"[{short}]({place}{PAGE})",
            f"{_capture(VIOLATING, place, alone)}: {found}",
            _capture(CLEAN, place, alone),
            f"{_capture(CUT, place, alone)}: {_PROMISES[pair.promise]}",
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _capture(which: str, place: str, alone: bool) -> str:
    return f"{which}.pcap" if alone else f"[{which}.pcap]({place}{which}.pcap)"


def _page(blocks: list[str]) -> str:
    return "\n\n".join(blocks) + "\n"

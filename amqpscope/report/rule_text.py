"""Rules for people: the list of rules, one rule with its captures drawn, and how many rules are checked."""

import re
from collections.abc import Iterable
from typing import Final

from amqpscope.conformance.coverage import (
    CHECKED,
    FAILED,
    NOT_YET,
    UNDECIDABLE,
    Coverage,
    Proof,
    standing,
    status,
)
from amqpscope.report.line import Line
from amqpscope.report.protocol_names import protocol_name
from amqpscope.rules.catalogue import Rule, editions, named, rule, severity
from amqpscope.rules.declaration import LAYERS, USUAL_SEVERITY
from amqpscope.rules.editions import CSPRD02, EDITIONS, FINAL, shown_in
from amqpscope.rules.explanation import Explanation
from amqpscope.rules.profiles import PROFILES
from amqpscope.rules.references import cited
from amqpscope.rules.registry import checked
from dissectors.amqp091.registry import REPLY_CODES

__all__ = [
    "coverage_lines",
    "list_lines",
    "row_shown",
    "rule_facts",
    "rule_lines",
    "severity_words",
    "standing_of",
    "weight_shown",
]

# Lines, each with the columns before its continuation; -1 is one that may be cut.
Lines = list[tuple[Line, int]]

_SEVERITY_STYLES = {"error": "problem", "warning": "note", "note": "dim", "legal": "flow"}
_STANDINGS = {
    CHECKED: "amqpscope checks this rule in captures.",
    NOT_YET: "amqpscope does not check this rule yet.",
    UNDECIDABLE: "A capture cannot show whether a peer breaks this rule.",
}
_LEVELS = {
    "IMPLIED": "The specification implies this rule, without the word MUST or SHOULD.",
    "MAY-limits": "The specification permits the behaviour only within limits.",
    "illegal": "The specification calls a violation of this rule illegal.",
}
_SIGNS = {CHECKED: "+", NOT_YET: "-", UNDECIDABLE: ".", FAILED: "×"}
_SIGN_STYLES = {CHECKED: "flow", NOT_YET: "note", UNDECIDABLE: "dim", FAILED: "problem"}

# In the answer that the catalogue names: `channel.close 404`.
_REPLY_CODE = re.compile(r"(?<=\.close )\d{3}")

_LABEL = 16


def list_lines(rows: list[Rule]) -> Lines:
    """One line per rule: whether it is checked, id, severity, level, who can break it, what it demands."""
    lines: Lines = []
    name = max((len(row.id) for row in rows), default=0)
    level = max((len(row.requirement) for row in rows), default=0)
    for row in rows:
        how = status(row)
        weight = severity(row.id)
        lines.append(
            (
                [
                    (_SIGN_STYLES[how], f"{_SIGNS[how]} "),
                    ("rule", f"{row.id:<{name}} "),
                    (_SEVERITY_STYLES[weight], f"{weight:<7} "),
                    ("", f"{row.requirement:<{level}} "),
                    ("dim", f"{row.breaker:<8} "),
                    ("", row.text),
                ],
                -1,
            )
        )
    done = sum(1 for row in rows if row.id in checked())
    unseen = sum(1 for row in rows if status(row) == UNDECIDABLE)
    text = f"{len(rows)} rules: + {done} checked, - {len(rows) - done - unseen} not yet, . {unseen} not "
    lines.append(([("dim", text + "decidable from a capture")], 2))
    return lines


def rule_lines(row: Rule, words: Explanation | None, guard: bool) -> Lines:
    """What the catalogue and the docstring say about a rule; for a guard: what is legal."""
    row = row_shown(row, guard)
    weight = weight_shown(row, guard)
    head: Line = [
        ("rule", f"{row.id}  "),
        (_SEVERITY_STYLES[weight], weight),
        ("", f". {standing_of(row, guard)}"),
    ]
    return [(head, 2), *(_labelled(label, text) for label, text in rule_facts(row, words, guard))]


def row_shown(row: Rule, guard: bool) -> Rule:
    """A rule in the wording of the edition under which it can be broken."""
    return row if guard else rule(row.id, shown_in(row.id))


def weight_shown(row: Rule, guard: bool) -> str:
    """The severity of breaking a rule: `legal` for a guard."""
    return "legal" if guard else severity(row.id, shown_in(row.id))


def standing_of(row: Rule, guard: bool) -> str:
    """The sentences after the severity of a rule: what the specification says, and whether it is checked."""
    if guard:
        return "This behaviour looks like a fault, but no rule reports this behaviour."
    level = _LEVELS.get(row.requirement, f"The specification uses the word {row.requirement} for this rule.")
    return f"{level} {_STANDINGS[status(row)]}"


def rule_facts(row: Rule, words: Explanation | None, guard: bool) -> list[tuple[str, str]]:
    """All facts about a rule as `row_shown` returns it: labels and texts."""
    facts = [
        ("allows" if guard else "demands", row.text),
        ("source", cited(row.source)),
    ]
    if not guard:
        facts += _drafts(row)
        facts.append(("broken by", _who(row)))
        if _is_unusual(row):
            facts.append(("severity", _severity(row)))
        facts.append(("answer", _answer(row)))
    if row.observable == "no":
        facts.append(("unchecked", row.reason))
    if row.evidence:
        facts.append(("evidence", row.evidence))
    if words is not None:
        facts.append(("fault", words.fault))
        facts.append(("matters", words.matters))
        when = "" if words.silent.startswith("never") else "when "
        facts.append(("silent", f"{when}{words.silent}"))
        if words.excuse():
            other = _OTHER.get(row.breaker)
            peer = "peer" if other is None else row.breaker
            reason = words.excuse().format(peer=peer, other=other or "other peer")
            facts.append(("only possible" if words.only_possible else "possible", reason))
        if words.mend:
            facts.append(("mend", words.mend))
        facts.append(("code", f"rules/{words.file}{f', {words.function}' if words.function else ''}"))
    for one in PROFILES:
        for habit in one.habits:
            if habit.rule == row.id:
                facts.append(
                    ("habit", f"Seen in {one.product}: the product {habit.does} (source: {habit.source}).")
                )
    return facts


def severity_words(rows: list[Rule]) -> str:
    """Which severity the rules of each level have, and how many of `rows` (as `row_shown` returns them) have
    another one, as sentences.
    """
    levels = {
        weight: [level for level, usual in USUAL_SEVERITY.items() if usual == weight]
        for weight in dict.fromkeys(USUAL_SEVERITY.values())
    }
    usual = " ".join(
        f"A violation of a rule with the level {_or(names)} usually has the severity `{weight}`."
        for weight, names in levels.items()
    )
    others = sum(_is_unusual(row) for row in rows)
    return (
        f"{usual} IMPLIED means that the specification makes the demand without one of these words. "
        "MAY-limits means that the specification permits something only within limits. "
        f"For {others} of these {len(rows)} rules, the level alone does not give the severity. "
        "The page of such a rule gives the reason for its severity."
    )


def _or(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _is_unusual(row: Rule) -> bool:
    """Whether the level of a rule alone does not give its severity."""
    return row.severity != USUAL_SEVERITY.get(row.requirement)


def _severity(row: Rule) -> str:
    """The severity and the reason for it, of a rule whose level alone does not give it."""
    usual = USUAL_SEVERITY.get(row.requirement)
    instead = "" if usual is None else f", not {usual}"
    return f"{row.severity}{instead}. The reason: {row.severity_reason}"


def _answer(row: Rule) -> str:
    """How a correct peer answers, in one sentence."""
    if not row.answer:
        return "The specification does not say with which error the other peer answers this fault."
    unnamed = "" if row.answer_named else ". The specification names this answer for all faults of this kind"
    if row.answer == "to close the socket":
        return f"A correct peer closes the socket after this fault{unnamed}."
    answers = _REPLY_CODE.sub(_named_reply_code, row.answer).replace(
        "to close the socket", "closes the socket"
    )
    return f"A correct peer answers this fault with {answers}{unnamed}."


def _named_reply_code(code: re.Match[str]) -> str:
    """A reply-code with the name that the specification of AMQP 0-9-1 gives it: 404 (not-found)."""
    name, _ = REPLY_CODES[int(code.group())]
    return f"{code.group()} ({name})"


def _drafts(row: Rule) -> list[tuple[str, str]]:
    """The wording of the later drafts, if it differs from the final text."""
    if shown_in(row.id) != FINAL:
        return [
            (
                "final",
                "The final specification does not have this rule. To check this rule, use --spec csd01 or "
                "--spec csprd02.",
            )
        ]
    facts: list[tuple[str, str]] = []
    for edition in EDITIONS[1:]:
        draft = editions().get((row.id, edition))
        if draft is None or (draft.text, draft.requirement) == (row.text, row.requirement):
            continue
        text = f"{draft.text} ({draft.requirement}; section {draft.source.rpartition(' ')[2]})"
        facts.append((edition, text))
    draft = editions().get((row.id, CSPRD02))
    if row.basis == "lower-case" and draft is not None and draft.basis == "keyword":
        facts.append(
            (
                CSPRD02,
                f"This draft writes the word {draft.requirement} in capital letters. The other editions "
                "write this word in small letters.",
            )
        )
    return facts


_OTHER: Final = {"client": "server", "server": "client", "sender": "receiver", "receiver": "sender"}


def _who(row: Rule) -> str:
    if row.breaker == "either":
        return "either peer"
    if row.breaker in ("sender", "receiver"):
        return f"the {row.breaker} of the link"
    return f"the {row.breaker}"


def coverage_lines(proved: Coverage) -> Lines:
    """By protocol and layer what is checked, what not yet, what cannot be; a table of all; what failed."""
    lines: Lines = []
    for protocol, layer, proofs in _layers(proved):
        lines.append(([("rule", f"{protocol_name(protocol)}, {layer}: {_counts(proofs)}")], 2))
        for how in (CHECKED, FAILED, NOT_YET):
            names = [_short(proof.rule) for proof in proofs if proof.status == how]
            if names:
                lines.append(_labelled(how, ", ".join(names), _SIGN_STYLES[how]))
        unseen = [proof.rule for proof in proofs if proof.status == UNDECIDABLE]
        if unseen:
            lines.append(([("dim", f"  {UNDECIDABLE} from a capture")], 4))
            lines += [([("", f"    {_short(row)}: "), ("dim", row.reason)], 6) for row in unseen]
        lines.append(([], -1))
    lines += _named(proved)
    lines.append(([], -1))
    lines += _table(proved)
    lines.append(([], -1))
    lines += _failures(proved)
    return lines


def _layers(proved: Coverage) -> list[tuple[str, str, list[Proof]]]:
    """Protocol, layer, and the rules of it: each layer that a protocol has."""
    found: dict[tuple[str, str], list[Proof]] = {}
    for proof in proved.rules:
        found.setdefault((proof.rule.id.partition("/")[0], proof.rule.layer), []).append(proof)
    protocols = list(dict.fromkeys(protocol for protocol, _ in found))
    order = sorted(found, key=lambda one: (protocols.index(one[0]), LAYERS.index(one[1])))
    return [(*one, found[one]) for one in order]


def _named(proved: Coverage) -> Lines:
    """How each rule stands that the XML of AMQP 0-9-1 names."""
    ways = {one.name: standing(one, proved) for one in named()}
    counts = [
        (how, sum(way == how for way in ways.values())) for how in (CHECKED, FAILED, NOT_YET, UNDECIDABLE)
    ]
    reported = ", ".join(f"{count} {how}" for how, count in counts if count)
    lines: Lines = [([("rule", f"AMQP 0-9-1, the {len(ways)} rules that its XML names: {reported}")], 2)]
    for one in named():
        how = ways[one.name]
        line: Line = [(_SIGN_STYLES[how], f"  {_SIGNS[how]} "), ("", one.name)]
        if one.rules:
            line.append(("", ": " + ", ".join(name.partition("/")[2] for name in one.rules)))
        if one.reason:
            line.append(("dim", f"; {one.reason}"))
        lines.append((line, 6))
    return lines


def _table(proved: Coverage) -> Lines:
    """Numbers by layer."""
    ways = (CHECKED, FAILED, NOT_YET, UNDECIDABLE)
    head = f"{'':<31}{'rules':>6}" + "".join(f"  {how:>7}" for how in ways)
    lines: Lines = [([("rule", head)], -1)]
    protocol = ""
    for spoken, layer, proofs in [*_layers(proved), ("", "all", proved.rules)]:
        if spoken != protocol:
            protocol = spoken
            of_it = [proof for proof in proved.rules if proof.rule.id.startswith(f"{protocol}/")]
            if protocol:
                lines.append(_row(protocol_name(protocol), of_it, "rule"))
        lines.append(_row(layer if protocol == "" else f"  {layer}", proofs, "" if protocol else "rule"))
    return lines


def _row(label: str, proofs: list[Proof], style: str) -> tuple[Line, int]:
    ways = (CHECKED, FAILED, NOT_YET, UNDECIDABLE)
    numbers = "".join(f"  {_number(proofs, how):>{max(7, len(how))}}" for how in ways)
    return ([(style, f"{label:<31}{len(proofs):>6}{numbers}")], -1)


def _failures(proved: Coverage) -> Lines:
    """What failed, and what the guards gave."""
    guards = proved.guards
    silent = _number(guards, CHECKED)
    lines: Lines = [([("", f"legal patterns: the rules are silent on {silent} of {len(guards)}")], 2)]
    failed = [proof for proof in (*proved.rules, *guards) if proof.status == FAILED]
    for proof in failed:
        lines.append(([("problem", f"failed: {proof.rule.id}")], 2))
        lines += [([("", f"  {failure}")], 4) for failure in proof.failures]
    if not failed:
        done = _number(proved.rules, CHECKED)
        text = f"all {done} checked rules find what breaks them, and nothing in what is legal or missing"
        lines.append(([("", text)], 2))
    return lines


def _counts(proofs: list[Proof]) -> str:
    parts = [(how, _number(proofs, how)) for how in (CHECKED, FAILED, NOT_YET, UNDECIDABLE)]
    return ", ".join(f"{count} {how}" for how, count in parts if count)


def _number(proofs: Iterable[Proof], how: str) -> int:
    return sum(1 for proof in proofs if proof.status == how)


def _short(row: Rule) -> str:
    return row.id.partition("/")[2]


def _labelled(label: str, text: str, style: str = "key") -> tuple[Line, int]:
    return ([(style, f"  {label:<{_LABEL - 2}}"), ("", text)], _LABEL)

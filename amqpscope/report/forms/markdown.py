"""Findings as Markdown, for the summary of a CI job or a comment on a pull request.

A heading a capture, a table a connection, and what the rules in it demand. As in text, the first findings of
one rule by one peer are shown and the others counted.

Words that are not plain stand as code: there GitHub knows no markup, no links, no mentions (@somebody), no
issues (#1), formulas or emoji. A table would still be cut at a bar in it, and how that is escaped differs
from one reader to the other: it is shown as its escape, as are characters that cannot be seen.
"""

import re
from collections.abc import Iterable
from typing import Final, TextIO

from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection
from amqpscope.policy.config_finding import RunConclusion
from amqpscope.report.cases import Cases, Shown
from amqpscope.report.finding_counts import FindingCounts, kind
from amqpscope.report.forms import ReportForm, ReportOptions
from amqpscope.report.printable import printable
from amqpscope.report.suppressed import fixed_lines
from amqpscope.report.verdict import answer, left_out, remarks, short_message, worst_first
from amqpscope.report.writer import FindingWriter
from amqpscope.rules.catalogue import rule
from amqpscope.rules.explanation import how_to_mend
from amqpscope.rules.references import references
from dissectors.wording import count

__all__ = ["FORM", "inline"]

# A word, and what stands at its ends, that means nothing in Markdown.
_PLAIN = re.compile(r"[A-Za-z0-9.,;:()'\"/%+=?-]+\Z")

# What begins a list, or makes a heading of the line above.
_BEGINS = re.compile(r"[-+=]|[0-9]+[.)]\Z")

# What GitHub makes links or pictures of, out of plain words.
_MEANT = re.compile(r"://|www\.|\bGH-|:[A-Za-z0-9+-]+:", re.IGNORECASE)

_TICKS = re.compile("`+")

_STOPS = ".,;:"

_HEAD = "| finding | by | packet | what was seen |\n|---|---|---|---|\n"


class MarkdownWriter(FindingWriter):
    """A section a capture, when it has ended."""

    diagnoses = True
    streaming = False

    def __init__(self, out: TextIO, options: ReportOptions) -> None:
        super().__init__()
        self._out = out
        self._most = options.most
        self._fold = not options.detail.full
        self._cases = Cases(options.most, fold=self._fold)
        # Over all captures.
        self._captures = 0
        self._empty = 0
        self._total = FindingCounts()

    def begin(self, path: str) -> None:
        super().begin(path)
        self._cases = Cases(self._most, fold=self._fold)

    def add(self, finding: Finding) -> None:
        if not finding.assessment.suppressed_by:
            self._cases.add(finding)

    def end(self) -> None:
        if self._captures > 1:
            clean = "nothing to check" if self._empty == self._captures else "nothing wrong found"
            total = self._total.text() or clean
            self._out.write(f"{count(self._captures, 'capture')}: {total}\n")
            self._out.flush()

    def close(self, nothing: str, reason: str) -> None:
        self._captures += 1
        nothing = "" if self.tally.counts else nothing
        self._empty += bool(nothing)
        self._total.merge(self.tally)
        what = f"nothing to check ({nothing})" if nothing else self.outcome(reason)
        self._out.write(f"### {inline(self.name)}\n\n{inline(what)}\n\n")
        for connection, shown in worst_first(self._cases):
            self._connection(connection, shown)
        if self._cases.left_out:
            self._out.write(f"{inline(left_out(self._cases.left_out))}\n\n")
        self._list(self.remarks())
        self._out.flush()

    def conclude(self, closing: RunConclusion) -> None:
        for file in dict.fromkeys(remark.file for remark in closing.remarks):
            self._out.write(f"### {inline(file)}\n\n")
            self._list(
                f"{one.severity} {one.rule} in {one.place}: {one.message}"
                for one in closing.remarks
                if one.file == file
            )
        if closing.fixed:
            self._out.write(f"### {inline(closing.baseline)}\n\n")
            self._list(fixed_lines(closing))
        self._out.flush()

    def _list(self, lines: Iterable[str]) -> None:
        reported = "".join(f"- {inline(line)}\n" for line in lines)
        self._out.write(reported + "\n" * bool(reported))

    def _connection(self, connection: Connection, shown: list[Shown]) -> None:
        self._out.write(f"Connection {connection.stream}, {inline(connection.id)}\n\n{_HEAD}")
        for finding, _, more, _ in shown:
            parts = [short_message(finding), *remarks(finding), f"Answer: {answer(finding)}"]
            if more:
                parts.append(f"And {more} more of this rule")
            cells = [
                f"{kind(finding)} {inline(finding.rule)}",
                finding.peer,
                str(int(finding.packet)),
                " ".join(_sentence(part) for part in parts),
            ]
            self._out.write(f"| {' | '.join(cells)} |\n")
        reported = dict.fromkeys((one.finding.rule, one.finding.assessment.edition) for one in shown)
        rows = [rule(broken, edition) for broken, edition in reported]
        lines = []
        for row in rows:
            mend = how_to_mend(row.id)
            advice = f" To mend it: {inline(mend)}" if mend else ""
            demand = f"{inline(row.text)} ({inline(row.requirement)}; {_sources(row.source)})"
            lines.append(f"- {inline(row.id)}: {demand}{advice}\n")
        self._out.write("\n" + "".join(lines) + "\n")


FORM: Final = ReportForm(
    "Markdown for a job summary or a comment", MarkdownWriter, (".md",), shows_fixed=True
)


def _sources(source: str) -> str:
    """Where the specification has a rule, as links."""
    return "; ".join(
        f"[{inline(one.text)}]({one.address})" if one.address else inline(one.text)
        for one in references(source)
    )


def _sentence(text: str) -> str:
    """Text with a full stop behind it, which is no part of what is shown as code."""
    return f"{inline(text.removesuffix('.'))}."


def inline(text: str) -> str:
    """Text that shows nothing but itself: plain words as they are, others as code."""
    text = printable(text)
    words = text.split(" ")
    if "" in words:
        return _code(text) if text else '""'
    parts: list[str] = []
    strange: list[str] = []
    for word in words:
        if _PLAIN.match(word) and not _MEANT.search(word) and (parts or strange or not _BEGINS.match(word)):
            if strange:
                parts.append(_span(strange))
                strange = []
            parts.append(word)
        else:
            strange.append(word)
    if strange:
        parts.append(_span(strange))
    return " ".join(parts)


def _span(words: list[str]) -> str:
    """Words as code. The punctuation at the end of the last word is no part of the code."""
    text = " ".join(words)
    code = text.rstrip(_STOPS)
    return _code(code) + text[len(code) :] if code else _code(text)


def _code(text: str) -> str:
    """Text between as many backticks as end it only at its end."""
    text = text.replace("|", "\\x7c")
    fence = "`" * (1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    # One space at each end is taken off again, unless there is nothing else.
    if text.strip(" ") and (text[0] in "` " or text[-1] in "` "):
        text = f" {text} "
    return f"{fence}{text}{fence}"

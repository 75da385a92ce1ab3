"""Findings as workflow commands of GitHub's Actions, which shows them as annotations of the run.

A command is a line, `::error file=traffic.pcap,line=17,title=...::text`. Its text ends with the line; in its
properties commas and colons have a meaning, too. What is not visible is escaped before that, so no text of a
peer can begin a line, and none can end one. A packet has no line: its number stands for it, as that is what
is shown beside the file's name. What is possible is at most a warning; what is suppressed is no command, but
a line.
"""

from typing import Final, TextIO

from amqpscope.model.finding import Finding
from amqpscope.policy.config_finding import RunConclusion
from amqpscope.report.finding_counts import kind
from amqpscope.report.forms import ReportForm, ReportOptions
from amqpscope.report.printable import printable
from amqpscope.report.verdict import answer, remarks, short_message
from amqpscope.report.writer import FindingWriter
from amqpscope.rules.profiles import weight

__all__ = ["FORM"]

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


class GithubWriter(FindingWriter):
    """A command a finding, as they come, and a line a capture."""

    def __init__(self, out: TextIO, options: ReportOptions) -> None:
        super().__init__()
        self._out = out
        self._terms = options.terms

    def take(self, findings: list[Finding]) -> None:
        super().take(findings)
        if findings:
            self._out.flush()

    def close(self, nothing: str, reason: str) -> None:
        if nothing:
            level = "notice" if self._terms.allow_empty else "error"
            self._command(level, 0, "nothing to check", nothing)
        if reason:
            self._command("error", 0, "not read, or not to its end", reason)
        self._line(self.outcome(reason))
        for line in self.remarks():
            self._line(line)
        self._out.flush()

    def conclude(self, closing: RunConclusion) -> None:
        for remark in closing.remarks:
            self.name = remark.file
            self._command(
                _LEVELS[remark.severity], remark.line, f"{remark.severity} {remark.rule}", remark.message
            )
        self._out.flush()

    def _line(self, text: str) -> None:
        """What is no command. Older commands have another sign, and may stand anywhere in a line."""
        shown = printable(f"{self.name}: {text}").replace("##[", "##\\[")
        self._out.write(f"amqpscope: {shown}\n")

    def add(self, finding: Finding) -> None:
        if finding.assessment.suppressed_by:
            return
        level = _LEVELS[weight(finding)]
        if level == "error" and not finding.certain:
            level = "warning"
        parts = [f"{short_message(finding)}.", *remarks(finding)]
        parts += [f"Answer: {answer(finding)}.", f"Connection {finding.connection.id}."]
        text = " ".join(parts)
        title = f"{kind(finding)} {finding.rule} by the {finding.peer} in packet {finding.packet}"
        self._command(level, int(finding.packet), title, text)

    def _command(self, level: str, packet: int, title: str, text: str) -> None:
        file = f"file={_property(self.name)}" if self.name != "-" else ""
        line = f"line={packet}" if file and packet else ""
        properties = ",".join(part for part in (file, line, f"title={_property(title)}") if part)
        self._out.write(f"::{level} {properties}::{_data(text)}\n")


FORM: Final = ReportForm("annotations of a GitHub Actions run", GithubWriter)


def _data(text: str) -> str:
    """Text behind the command."""
    return printable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """The value of a property."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")

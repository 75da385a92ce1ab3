"""Findings as JUnit's XML, for the pages of CI servers: a suite a capture, a case for what may fail in it.

A case is one rule broken by one peer of a connection; a connection without findings is a case that passes.
It fails if a finding in it counts for the exit status, and else passes with its findings as output, so that a
page is red when the run is. What could not be read is an error, and so is a capture with nothing to check,
which is skipped where that is allowed.

Servers compare cases by their names from run to run: so a connection is reported by its number there, and by
its ports only in the text. Class names have dots for folders, and no other: servers take what is before the
last one for a package.

All is written at the end, for the counts stand first; until then it waits in a `Backlog`. All text is visible
characters, and what XML has no ASCII for is written as a reference, so that the octets are the same in any
encoding.
"""

import io
import itertools
import json
from typing import Any, TextIO

from junitparser import Error, Failure, JUnitXml, Skipped, SystemOut, TestCase, TestSuite

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.limits import MAX_CASE_FINDINGS
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection
from amqpscope.policy.config_finding import RunConclusion
from amqpscope.protocols import PROTOCOLS
from amqpscope.report.backlog import Backlog
from amqpscope.report.finding_counts import kind
from amqpscope.report.forms import ReportOptions
from amqpscope.report.moment import iso
from amqpscope.report.printable import printable
from amqpscope.report.verdict import answer, headline, remarks
from amqpscope.report.writer import FindingWriter
from amqpscope.rules.catalogue import rule
from amqpscope.rules.explanation import how_to_mend
from amqpscope.rules.references import cited

__all__ = ["JunitWriter"]

_SECONDS = len("2026-01-31T00:00:00")


class _Case:
    """One rule broken by one peer of a connection, from what is kept of each finding.

    failed: a finding of them counts; head, kind: of the first that does, or of the first of all.
    """

    def __init__(self, rule: str, peer: str) -> None:
        self.rule = rule
        self.peer = peer
        self.count = 0
        self.failed = False
        self.edition = self.head = self.kind = ""
        self._lines: list[str] = []

    def add(self, reported: dict[str, Any]) -> None:
        """One more finding."""
        self.count += 1
        if self.count == 1 or (reported["counts"] and not self.failed):
            # Whatever came before it, this is what the case fails for.
            self.failed = reported["counts"]
            self.edition, self.head, self.kind = reported["edition"], reported["head"], reported["kind"]
        if self.count <= MAX_CASE_FINDINGS:
            self._lines += reported["lines"]

    def text(self, connection: str) -> str:
        """All of it. connection: its id."""
        row = rule(self.rule, self.edition)
        mend = how_to_mend(self.rule)
        more = self.count - MAX_CASE_FINDINGS
        lines = [
            f"Connection {connection}",
            f"Rule: {row.text} ({row.requirement})",
            f"Source: {cited(row.source)}",
            *([f"To mend it: {mend}"] if mend else []),
            "",
            *self._lines,
        ]
        if more > 0:
            lines.append(f"and {more} more")
        return "\n".join(printable(line) for line in lines) + "\n"


class _Suite:
    """A suite but for its cases, which wait in a backlog; they are counted here."""

    def __init__(self, name: str) -> None:
        self.head = TestSuite(printable(name))
        self.tests = self.failures = self.errors = self.skipped = 0

    def count(self, result: object) -> None:
        """One more case, with this result."""
        self.tests += 1
        self.failures += isinstance(result, Failure)
        self.errors += isinstance(result, Error)
        self.skipped += isinstance(result, Skipped)

    def close(self) -> None:
        """No more cases come: say how many there are."""
        self.head.update_statistics()
        self.head.tests, self.head.errors = self.tests, self.errors
        self.head.failures, self.head.skipped = self.failures, self.skipped
        if self.tests:
            self.head.time = 0.0  # as for cases, which take none


class JunitWriter(FindingWriter):
    """One `testsuites`, written at the end."""

    connections = True
    diagnoses = True

    def __init__(self, out: TextIO, options: ReportOptions) -> None:
        super().__init__()
        self._out = out
        self._terms = options.terms
        self._suites: list[_Suite] = []
        # XML of cases, by the number of their suite.
        self._cases = Backlog()
        # What is to be reported about the connections of a capture, and of the findings on them.
        self._reported = Backlog()
        # Of connections that are not over: findings of each rule by each peer.
        self._counts: dict[Connection, dict[tuple[str, str], int]] = {}

    def begin(self, path: str) -> None:
        super().begin(path)
        self._reported.close()
        self._reported = Backlog()
        self._counts = {}

    def add(self, finding: Finding) -> None:
        connection = finding.connection
        counts = self._counts.setdefault(connection, {})
        key = (finding.rule, finding.peer)
        number = counts[key] = counts.get(key, 0) + 1
        lines: list[str] = []
        if number <= MAX_CASE_FINDINGS:
            lines = [_head(finding), *(f"    {text}" for text in remarks(finding))]
            lines.append(f"    Answer: {answer(finding)}.")
        reported = {
            "rule": finding.rule,
            "peer": finding.peer,
            "edition": finding.assessment.edition,
            "counts": self._terms.counts(finding),
            "head": _head(finding),
            "kind": kind(finding),
            "lines": lines,
        }
        self._tell(connection, reported)

    def over(self, analyses: list[ConnectionAnalysis]) -> None:
        for analysis in analyses:
            self._counts.pop(analysis.connection, None)
            if analysis.connection.frames and analysis.connection.protocol in PROTOCOLS:
                self._tell(analysis.connection, {})

    def _tell(self, connection: Connection, reported: dict[str, Any]) -> None:
        """Keep what is shown about a connection: a finding, or that there is nothing more."""
        number = connection.stream << 32 | connection.instance
        self._reported.put(number, json.dumps([connection.id, _number(connection), reported]))

    def close(self, nothing: str, reason: str) -> None:
        suite = _Suite(self.name)
        capture = self.capture
        if capture is not None and capture.began:
            suite.head.timestamp = iso(capture.began)[:_SECONDS]
        for _, pieces in itertools.groupby(self._reported, lambda one: one[0]):
            self._connection(suite, [json.loads(piece) for _, piece in pieces])
        if nothing:
            nothing = printable(nothing)
            how = Skipped(nothing) if self._terms.allow_empty else Error(nothing, "nothing to check")
            self._case(suite, "has AMQP to check", how)
        if reason:
            self._case(suite, "the file can be read to its end", Error(printable(reason), "unreadable"))
        suite.close()
        reported = [self.outcome(reason), *self.remarks()]
        suite.head.append(SystemOut("".join(f"{printable(line)}\n" for line in reported)))
        self._suites.append(suite)

    def conclude(self, closing: RunConclusion) -> None:
        for file in dict.fromkeys(remark.file for remark in closing.remarks):
            self.name = file
            suite = _Suite(file)
            for remark in closing.remarks:
                if remark.file != file:
                    continue
                message = f"{remark.severity} {remark.rule} in {remark.place}: {remark.message}"
                if remark.counts:
                    result = Failure(printable(message), remark.severity)
                    result.text = printable(message) + "\n"
                else:
                    result = SystemOut(printable(message) + "\n")
                self._case(suite, f"entry {remark.evidence['entry']}: {remark.rule}", result)
            suite.close()
            self._suites.append(suite)

    def end(self) -> None:
        report = JUnitXml("amqpscope")
        report.tests = sum(suite.tests for suite in self._suites)
        report.failures = sum(suite.failures for suite in self._suites)
        report.errors = sum(suite.errors for suite in self._suites)
        octets = io.BytesIO()
        report.write(octets)
        start, end = _parts(octets.getvalue(), "testsuites")
        if not self._suites:
            self._out.write(f"{start[:-1]}/>\n")
            return
        self._out.write(start)
        cases = iter(self._cases)
        following = next(cases, None)
        for number, suite in enumerate(self._suites):
            before, after = _parts(suite.head.tostring(), "testsuite")
            self._out.write(before)
            while following is not None and following[0] == number:
                self._out.write(following[1])
                following = next(cases, None)
            self._out.write(after)
        self._out.write(f"{end}\n")
        self._cases.close()
        self._out.flush()

    def _connection(self, suite: _Suite, reported: list[Any]) -> None:
        """The cases of one connection."""
        cases: dict[tuple[str, str], _Case] = {}
        for _, _, finding in reported:
            if finding:
                key = (finding["rule"], finding["peer"])
                cases.setdefault(key, _Case(*key)).add(finding)
        connection, name, _ = reported[-1]
        for (broken, peer), case in cases.items():
            if case.failed:
                message = case.head + (f" (and {case.count - 1} more)" if case.count > 1 else "")
                result = Failure(printable(message), case.kind)
                result.text = case.text(connection)
            else:
                result = SystemOut(case.text(connection))
            self._case(suite, f"{name}: {broken} by the {peer}", result)
        if not cases:
            self._case(suite, name, SystemOut(f"Connection {connection}: nothing wrong found\n"))

    def _case(self, suite: _Suite, name: str, result: object) -> None:
        """One case of a suite, which is not closed yet."""
        folders = (part.replace(".", "_") for part in printable(self.name).split("/"))
        case = TestCase(name, ".".join(part for part in folders if part) or "-", 0)
        case.append(result)
        suite.count(result)
        self._cases.put(len(self._suites), _ascii(case.tostring()))


def _parts(octets: bytes, name: str) -> tuple[str, str]:
    """An element up to where its first child stands, and the rest. octets: with children or without."""
    text = _ascii(octets)
    start, _, rest = text.partition(f"<{name} ")
    # In an attribute this sign is written as a reference.
    attributes, _, rest = rest.partition(">")
    return f"{start}<{name} {attributes.removesuffix('/')}>", rest or f"</{name}>"


def _ascii(octets: bytes) -> str:
    """XML in UTF-8 as text that is the same in any encoding."""
    return octets.decode().encode("ascii", "xmlcharrefreplace").decode()


def _number(connection: Connection) -> str:
    """What a connection is called. Two between the same ends may have one number."""
    again = f" (#{connection.instance})" if connection.instance else ""
    return f"connection {connection.stream}{again}"


def _head(finding: Finding) -> str:
    """`error amqp10/L-CREDIT by the client in packet 17: ...`."""
    return "".join(text for _, text in headline(finding))

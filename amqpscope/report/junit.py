"""Findings as JUnit's XML, for the pages of CI servers: a suite a capture, a case for what may fail in it.

A case is one rule broken by one peer of a connection; a connection without findings is a case that passes.
It fails if a finding in it counts for the exit status, and else passes with its findings as output, so that a
page is red when the run is. What could not be read is an error, and so is a capture with nothing to check,
which is skipped where that is allowed.

Servers compare cases by their names from run to run: so a connection is told by its number there, and by its
ports only in the text. Class names have dots for folders, and no other: servers take what is before the last
one for a package.

All is kept until the end, for the counts stand first. All text is visible characters, and what XML has no
ASCII for is written as a reference, so that the octets are the same in any encoding.
"""

import io
from typing import TextIO

from junitparser import Error, Failure, JUnitXml, Skipped, SystemOut, TestCase, TestSuite

from amqpscope.finding import Finding
from amqpscope.limits import MAX_CASE_FINDINGS
from amqpscope.model import Connection
from amqpscope.policy.remark import Closing
from amqpscope.policy.terms import Terms
from amqpscope.report.moment import iso
from amqpscope.report.printable import printable
from amqpscope.report.verdict import answer, headline, kind, remarks
from amqpscope.report.writer import Writer
from amqpscope.rules.catalogue import rule

__all__ = ["JunitWriter"]

_SECONDS = len("2026-01-31T00:00:00")


class _Case:
    """One rule broken by one peer of a connection. failed: a finding of them counts."""

    def __init__(self, first: Finding) -> None:
        self.first = first
        self.count = 0
        self.failed = False
        self.kind = kind(first)
        self.lines: list[str] = []

    def add(self, finding: Finding, counts: bool) -> None:
        """One more finding."""
        self.count += 1
        if counts and not self.failed:
            # Whatever came before it, this is what the case fails for.
            self.failed = True
            self.first = finding
            self.kind = kind(finding)
        if self.count <= MAX_CASE_FINDINGS:
            self.lines.append(_head(finding))
            self.lines += [f"    {text}" for text in remarks(finding)]
            self.lines.append(f"    Answer: {answer(finding)}.")

    def text(self) -> str:
        """All of it."""
        row = rule(self.first.rule, self.first.edition)
        more = self.count - MAX_CASE_FINDINGS
        lines = [
            f"Connection {self.first.connection.id}",
            f"Rule: {row.text} ({row.requirement})",
            f"Source: {row.source}",
            "",
            *self.lines,
        ]
        if more > 0:
            lines.append(f"and {more} more")
        return "\n".join(printable(line) for line in lines) + "\n"


class JunitWriter(Writer):
    """One `testsuites`, written at the end."""

    connections = True

    def __init__(self, out: TextIO, terms: Terms) -> None:
        super().__init__()
        self._out = out
        self._terms = terms
        self._suites: list[TestSuite] = []
        self._cases: dict[tuple[Connection, str, str], _Case] = {}

    def begin(self, path: str) -> None:
        super().begin(path)
        self._cases = {}

    def add(self, finding: Finding) -> None:
        key = (finding.connection, finding.rule, finding.peer)
        case = self._cases.get(key)
        if case is None:
            case = self._cases[key] = _Case(finding)
        case.add(finding, self._terms.counts(finding))

    def close(self, nothing: str, reason: str) -> None:
        cases = self._judged()
        if nothing:
            nothing = printable(nothing)
            how = Skipped(nothing) if self._terms.allow_empty else Error(nothing, "nothing to check")
            cases.append(self._case("has AMQP to check", how))
        if reason:
            cases.append(self._case("can be read to its end", Error(printable(reason), "unreadable")))
        self._suite(cases, reason)

    def conclude(self, closing: Closing) -> None:
        suites: dict[str, TestSuite] = {}
        for remark in closing.remarks:
            self.name = remark.file
            suite = suites.setdefault(remark.file, TestSuite(printable(remark.file)))
            message = f"{remark.severity} {remark.rule} in {remark.place}: {remark.message}"
            if remark.counts:
                result = Failure(printable(message), remark.severity)
                result.text = printable(message) + "\n"
            else:
                result = SystemOut(printable(message) + "\n")
            suite.append(self._case(f"entry {remark.evidence['entry']}: {remark.rule}", result))
        for suite in suites.values():
            suite.update_statistics()
            self._suites.append(suite)

    def end(self) -> None:
        report = JUnitXml("amqpscope")
        for suite in self._suites:
            report.append(suite)
        report.tests = sum(suite.tests for suite in self._suites)
        report.failures = sum(suite.failures for suite in self._suites)
        report.errors = sum(suite.errors for suite in self._suites)
        octets = io.BytesIO()
        report.write(octets)
        text = octets.getvalue().decode().encode("ascii", "xmlcharrefreplace").decode()
        self._out.write(f"{text}\n")
        self._out.flush()

    def _judged(self) -> list[TestCase]:
        """The cases of all connections, by their numbers."""
        found = []
        faulty = set()
        for (connection, broken, peer), case in self._cases.items():
            faulty.add(connection)
            name = f"{_number(connection)}: {broken} by the {peer}"
            if case.failed:
                message = _head(case.first) + (f" (and {case.count - 1} more)" if case.count > 1 else "")
                result = Failure(printable(message), case.kind)
                result.text = case.text()
                found.append((connection, self._case(name, result)))
            else:
                found.append((connection, self._case(name, SystemOut(case.text()))))
        for analysis in self.capture.connections if self.capture is not None else []:
            connection = analysis.connection
            if connection.frames and connection not in faulty:
                output = SystemOut(f"Connection {connection.id}: nothing wrong found\n")
                found.append((connection, self._case(_number(connection), output)))
        found.sort(key=lambda one: (one[0].stream, one[0].instance))
        return [case for _, case in found]

    def _case(self, name: str, result: object) -> TestCase:
        folders = (part.replace(".", "_") for part in printable(self.name).split("/"))
        case = TestCase(name, ".".join(part for part in folders if part) or "-", 0)
        case.append(result)
        return case

    def _suite(self, cases: list[TestCase], reason: str) -> None:
        """The capture is done. reason: why it was not read to its end, or ""."""
        capture = self.capture
        suite = TestSuite(printable(self.name))
        if capture is not None and capture.began:
            suite.timestamp = iso(capture.began)[:_SECONDS]
        for case in cases:
            suite.append(case)
        suite.update_statistics()
        told = [self.outcome(reason), *self.remarks()]
        suite.append(SystemOut("".join(f"{printable(line)}\n" for line in told)))
        self._suites.append(suite)


def _number(connection: Connection) -> str:
    """What a connection is called. Two between the same ends may have one number."""
    again = f" (#{connection.instance})" if connection.instance else ""
    return f"connection {connection.stream}{again}"


def _head(finding: Finding) -> str:
    """`error amqp10/L-CREDIT by the client in packet 17: ...`."""
    return "".join(text for _, text in headline(finding))

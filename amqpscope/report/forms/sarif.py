"""Findings as SARIF 2.1.0 (OASIS), for GitHub's code scanning and whatever else reads it: a result a finding.

A result names what SARIF has no word for where readers of SARIF look: GitHub takes only results with a file
and a line, and shows both, so a packet's number stands for the line; the logical location says that it is a
packet, and of which connection. Everything else that JSON has of the finding is in the property bag.
`primaryLocationLineHash` is what GitHub knows a result by from run to run; here the finding's fingerprint,
with a number behind it where several have the same. What is possible is at most a warning, as it is no
failure.

A diagnosis is a result, too, of level `note`, as it accuses nobody.
`helpUri` is the first public thread about it.

Results are written as they come; rules, which were met by then, behind them. The order of names in an object
has no meaning.

Viewers take square brackets and a target behind them for a link, and braces for placeholders, in plain text
too: both are escaped as SARIF asks (3.11.5, 3.11.6). All text is visible characters, in ASCII escapes.

SARIF is written by hand: of the libraries for it one is of 2019, and the one that is kept (of 2025, by one
person, little used, with pydantic below it) lets anything through that the schema forbids. The tests hold
every log to the schema of OASIS.
"""

import json
import os
import re
import urllib.parse
from typing import Any, Final, TextIO

from amqpscope import __version__
from amqpscope.capture.source import shown_name
from amqpscope.diagnoses.declaration import Kind
from amqpscope.diagnoses.registry import kind_of
from amqpscope.input.capture import Capture
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.note import Note
from amqpscope.model.records import Connection
from amqpscope.model.volatile import normalize_address
from amqpscope.policy.config_finding import REMARKS, RunConclusion
from amqpscope.policy.paths import slashes
from amqpscope.report.findings import decided_object
from amqpscope.report.forms import ReportForm, ReportOptions
from amqpscope.report.printable import printable
from amqpscope.report.suppressed import justification
from amqpscope.report.verdict import answer, remarks, short_message
from amqpscope.report.writer import FindingWriter
from amqpscope.rules.catalogue import rule, severity
from amqpscope.rules.explanation import explanation
from amqpscope.rules.fingerprint import fingerprint
from amqpscope.rules.profiles import weight
from amqpscope.rules.references import named_source, references
from dissectors.wording import count

__all__ = ["FORM"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

_ROOT = "%SRCROOT%"
"""What a path is relative to: where the run was started, in CI the root of the repository."""

# What stands elsewhere in a result.
_REPORTED = ("rule", "message", "capture", "packets", "fingerprint", "suppressed")

# What the property bag of a rule tells GitHub of its weight.
_PROBLEM = {"error": "error", "warning": "warning", "note": "recommendation"}


_THREAD: Final = re.compile(r"([\w.-]+/[\w.-]+)#(\d+)")
"""A public thread about a diagnosis: its repository and number."""


class SarifWriter(FindingWriter):
    """One log with one run."""

    diagnoses = True

    def __init__(self, out: TextIO, options: ReportOptions) -> None:
        super().__init__()
        self._out = out
        self._terms = options.terms
        self._first = True
        self._complete = True
        # Ids of the rules met so far, with their places in the list.
        self._rules: dict[str, int] = {}
        self._descriptors: list[dict[str, Any]] = []
        # Those of the capture, counted.
        self._fingerprints: dict[str, int] = {}
        self._notifications: list[dict[str, Any]] = []
        self._begun = False
        # Of the file that is reported.
        self._path = ""

    def opened(self, capture: Capture) -> None:
        super().opened(capture)
        # The name of the file may show octets as escapes, which its address has as they are.
        self._path = capture.path if shown_name(capture.path) == self.name else self.name

    def begin(self, path: str) -> None:
        super().begin(path)
        self._path = path
        self._fingerprints = {}
        if not self._begun:
            self._begun = True
            self._out.write(f'{{"$schema": "{_SCHEMA}", "version": "2.1.0", "runs": [{{"results": [')

    def take(self, findings: list[Finding]) -> None:
        super().take(findings)
        if findings:
            self._out.flush()

    def add(self, finding: Finding) -> None:
        self._write(self._result(finding))

    def diagnosed(self, found: list[Diagnosis], order: int, connection: Connection | None) -> None:
        super().diagnosed(found, order, connection)
        for one in found:
            self._write(self._result_of_diagnosis(one))

    def close(self, nothing: str, reason: str) -> None:
        for note in self.notes:
            self._notify("note", _reported_note(note), int(note.packet), note.code)
        if self.ignored:
            self._notify("note", f"{count(self.ignored, 'finding')} ignored", 0)
        if nothing:
            self._notify("note" if self._terms.allow_empty else "error", nothing, 0)
            self._complete = self._complete and self._terms.allow_empty
        if reason:
            self._notify("error", reason, 0)
            self._complete = False

    def end(self) -> None:
        driver = {
            "name": "amqpscope",
            "version": __version__,
            "semanticVersion": __version__,
            "rules": self._descriptors,
        }
        invocation = {
            "executionSuccessful": self._complete,
            "toolExecutionNotifications": self._notifications,
        }
        rest = {
            "tool": {"driver": driver},
            "invocations": [invocation],
            "columnKind": "unicodeCodePoints",
        }
        self._out.write("\n], " + json.dumps(rest)[1:] + "]}\n")
        self._out.flush()

    def _result(self, finding: Finding) -> dict[str, Any]:
        reported = decided_object(finding, self.name)
        level = weight(finding)
        if level == "error" and not finding.certain:
            level = "warning"
        which = "" if finding.certain else "Possible: "
        parts = [f"{which}packet {finding.packet}, {finding.peer}: {short_message(finding)}."]
        parts += [*remarks(finding), f"Answer: {answer(finding)}."]
        packets = [one["packet"] for one in reported["packets"][1:]]
        result: dict[str, Any] = {
            "ruleId": finding.rule,
            "ruleIndex": self._index(finding.rule, finding.assessment.edition),
            "level": level,
            "message": _message(" ".join(parts)),
            "locations": [self._location(int(finding.packet), finding.connection.id)],
            "partialFingerprints": self._known_by(fingerprint(finding)),
            "suppressions": _suppressions(finding),
            "properties": _visible(
                {name: value for name, value in reported.items() if name not in _REPORTED}
            ),
        }
        if packets:
            result["relatedLocations"] = [
                {"id": place, **self._location(packet, ""), "message": _message(f"packet {packet}")}
                for place, packet in enumerate(packets, 1)
            ]
        return result

    def _result_of_diagnosis(self, one: Diagnosis) -> dict[str, Any]:
        import hashlib  # only where there is something to be known again

        subject = normalize_address(one.subject)
        known = hashlib.sha256(
            f"{one.code} {subject} {one.whose_move}".encode("utf-8", "backslashreplace")
        ).hexdigest()[:16]
        who = f"the {one.whose_move} has to act" if one.whose_move else "nobody has to act"
        reported = one.json()
        result: dict[str, Any] = {
            "ruleId": one.code,
            "ruleIndex": self._index(one.code, ""),
            "level": "note",
            "message": _message(f"Diagnosis, {who}: {one.message}."),
            # A capture may not show since when: code scanning wants a line all the same.
            "locations": [self._location(one.packet or next(iter(one.packets), 1), one.connection)],
            "partialFingerprints": self._known_by(known),
            "suppressions": [],
            "properties": _visible(
                {
                    name: value
                    for name, value in reported.items()
                    if name not in ("code", "message", "packets")
                }
            ),
        }
        others = [packet for packet in one.packets if packet != one.packet]
        if others:
            result["relatedLocations"] = [
                {"id": place, **self._location(packet, ""), "message": _message(f"packet {packet}")}
                for place, packet in enumerate(others, 1)
            ]
        return result

    def conclude(self, closing: RunConclusion) -> None:
        self._fingerprints = {}
        for remark in closing.remarks:
            self._path = remark.file
            self._write(
                {
                    "ruleId": remark.rule,
                    "ruleIndex": self._index(remark.rule, ""),
                    "level": remark.severity,
                    "message": _message(f"{remark.message}."),
                    "locations": [self._location(max(remark.line, 1), "")],
                    "partialFingerprints": self._known_by(remark.fingerprint),
                    "suppressions": [],
                    "properties": _visible({"severity": remark.severity, "evidence": remark.evidence}),
                }
            )
        self._out.flush()

    def _write(self, result: dict[str, Any]) -> None:
        self._out.write(("\n" if self._first else ",\n") + json.dumps(result))
        self._first = False

    def _known_by(self, number: str) -> dict[str, str]:
        """What tells a result from all others of its file: its fingerprint, and which of several it is."""
        again = self._fingerprints[number] = self._fingerprints.get(number, 0) + 1
        return {"primaryLocationLineHash": f"{number}:{again}", "amqpscope/v1": number}

    def _index(self, rule: str, edition: str) -> int:
        """The place of a rule among those that are described."""
        index = self._rules.get(rule)
        if index is None:
            index = self._rules[rule] = len(self._descriptors)
            if rule.startswith("diag/"):
                self._descriptors.append(_descriptor_of_diagnosis(kind_of(rule)))
            elif rule in REMARKS:
                self._descriptors.append(_descriptor_of_remark(rule))
            else:
                self._descriptors.append(_descriptor(rule, edition))
        return index

    def _location(self, packet: int, connection: str) -> dict[str, Any]:
        """Where a packet, or a line, is; 0 is the file as a whole. connection: its id, or ""."""
        physical: dict[str, Any] = {"artifactLocation": _artifact(self._path)}
        if packet:
            physical["region"] = {"startLine": packet}
        location: dict[str, Any] = {"physicalLocation": physical}
        if connection:
            name = f"packet {packet}"
            location["logicalLocations"] = [
                {"name": name, "fullyQualifiedName": f"{connection}/{name}", "kind": "packet"}
            ]
        return location

    def _notify(self, level: str, text: str, packet: int, code: str = "") -> None:
        """Something about a capture itself."""
        reported: dict[str, Any] = {
            "level": level,
            "message": _message(text),
            "locations": [self._location(packet, "")],
        }
        if code:
            reported["descriptor"] = {"id": code}
        self._notifications.append(reported)


FORM: Final = ReportForm("for code scanning", SarifWriter, (".sarif",))


def _reported_note(note: Note) -> str:
    where = f" in packet {note.packet}" if note.packet else ""
    which = f" of {note.connection.id}" if note.connection is not None else ""
    return f"{note.code}{where}{which}: {note.detail}"


def _descriptor(id: str, edition: str) -> dict[str, Any]:
    """What a rule is."""
    row = rule(id, edition)
    words = explanation(id)
    fault = row.text if words is None or not words.fault else words.fault
    parts = [("Rule", f"{row.text} ({row.requirement})"), ("Source", named_source(row.source))]
    if words is not None:
        parts += [("Why it matters", words.matters), ("Silent when", words.silent)]
    parts = [(label, " ".join(text.split())) for label, text in parts if text]
    level = severity(id, edition)
    addresses = [one.address for one in references(row.source) if one.address]
    return {
        "id": id,
        **({"helpUri": addresses[0]} if addresses else {}),
        "shortDescription": {"text": _plain(" ".join(fault.split()))},
        "fullDescription": {"text": _plain(row.text)},
        "help": {
            "text": "\n".join(
                [*(f"{label}: {_plain(text)}" for label, text in parts), *(_plain(one) for one in addresses)]
            ),
        },
        "defaultConfiguration": {"level": level},
        "properties": {
            "tags": ["AMQP", id.partition("/")[0], row.layer],
            "precision": "very-high",
            "problem.severity": _PROBLEM[level],
        },
    }


def _descriptor_of_remark(id: str) -> dict[str, Any]:
    """What there is to be said about a configuration."""
    kind = REMARKS[id]
    return {
        "id": id,
        "shortDescription": {"text": kind.text},
        "fullDescription": {"text": kind.text},
        "help": {"text": f"Why it matters: {kind.matters}"},
        "defaultConfiguration": {"level": kind.severity},
        "properties": {"tags": ["configuration"], "problem.severity": _PROBLEM[kind.severity]},
    }


def _descriptor_of_diagnosis(kind: Kind) -> dict[str, Any]:
    """What a diagnosis is."""
    words = kind.sections()
    addresses = [
        f"https://github.com/{repository}/issues/{number}"
        for repository, number in _THREAD.findall(words.get("Discussions", ""))
    ]
    sentence = _plain(kind.sentence)
    return {
        "id": kind.code,
        **({"helpUri": addresses[0]} if addresses else {}),
        "shortDescription": {"text": sentence},
        "fullDescription": {"text": sentence},
        "help": {"text": "\n".join(f"{head}: {_plain(text)}" for head, text in words.items())},
        "defaultConfiguration": {"level": "note"},
        "properties": {"tags": ["AMQP", "diagnosis"], "problem.severity": _PROBLEM["note"]},
    }


def _suppressions(finding: Finding) -> list[dict[str, str]]:
    """Who has decided that a result does not count; empty where nobody has."""
    if not finding.assessment.suppressed_by:
        return []
    reason = (
        finding.assessment.reason if finding.assessment.suppressed_by == "allow" else justification(finding)
    )
    return [{"kind": "external", "status": "accepted", "justification": _plain(reason)}]


def _artifact(path: str) -> dict[str, str]:
    """Where a file is: relative to where the run was started, if it is below."""
    try:
        relative = path if path in ("", "-") else slashes(os.path.relpath(path))
    except ValueError:  # on another drive
        relative = ".."
    if relative == ".." or relative.startswith("../"):
        return {"uri": "file:///" + _quoted(slashes(os.path.abspath(path)).lstrip("/"))}
    return {"uri": _quoted(relative), "uriBaseId": _ROOT}


def _quoted(path: str) -> str:
    """A path as the path of a URI: also a colon is quoted, for it would end a scheme."""
    try:
        octets = os.fsencode(path)
    except UnicodeEncodeError:  # no name that a file can have
        octets = printable(path).encode()
    return urllib.parse.quote(octets, safe="/")


def _message(text: str) -> dict[str, str]:
    return {"text": _plain(text)}


def _plain(text: str) -> str:
    """Text that holds nothing but itself."""
    text = printable(text).replace("{", "{{").replace("}", "}}")
    # Only where a target follows is a bracket anything else than a bracket, or behind a backslash.
    if "](" in text or "\\[" in text or "\\]" in text:
        text = text.replace("[", "\\[").replace("]", "\\]")
    return text


def _visible(value: Any) -> Any:
    """A value of JSON, all its texts made visible: readers of SARIF take no half of a pair."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, dict):
        return {name: _visible(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_visible(inner) for inner in value]
    return value

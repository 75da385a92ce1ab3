"""Findings for programs, a JSON object a line."""

import json
from typing import Final, TextIO

from amqpscope.model.finding import Finding
from amqpscope.policy.config_finding import RunConclusion
from amqpscope.report.findings import finding_json, remark_object
from amqpscope.report.forms import ReportForm, ReportOptions
from amqpscope.report.writer import FindingWriter

__all__ = ["FORM"]


class NdjsonWriter(FindingWriter):
    """A line a finding, as they come."""

    def __init__(self, out: TextIO, _: ReportOptions) -> None:
        super().__init__()
        self._out = out

    def take(self, findings: list[Finding]) -> None:
        super().take(findings)
        if findings:
            self._out.flush()

    def add(self, finding: Finding) -> None:
        # One by one: a peer can make hundreds of thousands of faults in one block of a file.
        self._out.write(finding_json(finding, self.name) + "\n")

    def conclude(self, closing: RunConclusion) -> None:
        for remark in closing.remarks:
            self._out.write(json.dumps(remark_object(remark)) + "\n")


FORM: Final = ReportForm(
    "one JSON object per finding, one per line", NdjsonWriter, (".ndjson",), shows_notes=False
)

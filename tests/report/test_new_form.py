"""A new form of report takes one file: `check` lists it, writes it, and takes it from a configuration.

The form of this test is written into a copy of the program, as its author would write it. It shows all of a
conversation, with the findings below it.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.program_copy import REPOSITORY, copy_program, run

CAPTURE = str(REPOSITORY / "captures" / "rhea-transfer-before-attach.pcap")

FORM = '''
"""A toy: the names of all frames of a connection, and the rules that were broken."""

from typing import Final, TextIO

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.model.finding import Finding
from amqpscope.model.records import FrameRecord
from amqpscope.report.forms import ReportForm, ReportOptions
from amqpscope.report.writer import FindingWriter


class ToyWriter(FindingWriter):
    """A line a connection, and a line a capture."""

    connections = True
    records = True

    def __init__(self, out: TextIO, options: ReportOptions) -> None:
        super().__init__()
        self.out = out
        self.most = options.most
        self.names: dict[str, list[str]] = {}
        self.rules: list[str] = []

    def frames(self, records: list[FrameRecord]) -> None:
        for record in records:
            self.names.setdefault(record.connection.id, []).append(record.frame.name)

    def add(self, finding: Finding) -> None:
        self.rules.append(finding.rule)

    def over(self, analyses: list[ConnectionAnalysis]) -> None:
        for analysis in analyses:
            print("toys:", *self.names.pop(analysis.connection.id, []), file=self.out)

    def close(self, nothing: str, reason: str) -> None:
        print("broken:", *self.rules[: self.most], file=self.out)


FORM: Final = ReportForm("for children", ToyWriter, (".toy",))
'''


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program with one file more."""
    folder = copy_program(tmp_path_factory.mktemp("program"))
    (folder / "amqpscope" / "report" / "forms" / "toy.py").write_text(FORM, encoding="utf-8")
    return folder


def test_a_new_form_takes_one_file(program: Path) -> None:
    (program / "amqpscope.toml").write_text('format = "toy"\noutput = ["b.toy"]\n', encoding="utf-8")
    (program / "wrong.toml").write_text('format = "toys"\n', encoding="utf-8")
    frames, helped, named, written, configured, wrong = run(
        program,
        ["read", "--format", "ndjson", CAPTURE],
        ["check", "--help"],
        ["check", "--no-config", "--format", "toy", "--max-per-rule", "1", CAPTURE],
        ["check", "--no-config", "--output", "a.toy", "--output", "toy:a.txt", CAPTURE],
        ["check", CAPTURE],
        ["check", "--config", "wrong.toml", CAPTURE],
    )
    assert "|sarif|toy" in helped[1] and "toy: for children" in re.sub(r"\s+", " ", helped[1])
    assert ".toy" in helped[1]
    *connections, broken = named[1].splitlines()
    assert connections == ["toys: " + " ".join(json.loads(line)["name"] for line in frames[1].splitlines())]
    assert broken == "broken: amqp10/L-DC-UNSET"
    assert (named[0], named[2]) == (1, "")
    assert "amqp10/L-DC-UNSET" in written[1]
    files = [(program / name).read_text(encoding="utf-8") for name in ("a.toy", "a.txt", "b.toy")]
    assert files == [configured[1]] * 3
    assert configured[1].splitlines()[:-1] == connections
    assert wrong[0] == 2 and "wrong.toml, line 1: format: toys: must be one of text, github" in wrong[2]

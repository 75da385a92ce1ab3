"""A new rule takes one file beside its test: declared, judged, listed, explained, selected, known again.

The rule of this test is written into a copy of the program, as its author would write it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.program_copy import REPOSITORY, copy_program, run

RULE = '''

C_TOY: Final = RULES.rule(
    "C-TOY",
    "MUST",
    "definition",
    by="client",
    warning="A toy breaks nothing.",
    answer="amqp:not-allowed",
    renamed_from=("C-PLAYTHING",),
)


def client_that_is_no_toy(case: Case10, body: Open) -> None:
    """A client opens a connection and is no toy.

    Demands: Every client is a toy.
    Source: transport.xml section performatives > open.container-id
    Evidence: container-id of the open
    Why it matters: Nobody plays with it.
    Silent when: the open was not captured.
    Only possible because: The {peer} may be a toy with another name.
    How to mend it: Call it toy.
    """
    if case.me.peer == "client" and body.container_id != "toy":
        case.report(C_TOY, f"the container-id is {body.container_id}", POSSIBLE)
'''

INDEX = """
import itertools
from amqpscope.conformance.pairs import CapturePairs
from amqpscope.report.rule_pages import pages
assert "[C-TOY](C-TOY/README.md)" in dict(itertools.islice(pages(CapturePairs()), 5))["amqp10/README.md"]
"""


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program with the rule in one of its files."""
    folder = copy_program(tmp_path_factory.mktemp("product"))
    file = folder / "amqpscope" / "rules" / "amqp10" / "connection.py"
    text = file.read_text(encoding="utf-8")
    judged = "    second_open(case)\n"
    assert text.count(judged) == 1
    file.write_text(
        text.replace(judged, f"{judged}    client_that_is_no_toy(case, body)\n") + RULE, encoding="utf-8"
    )
    return folder


def test_a_new_rule_takes_one_file(product: Path) -> None:
    capture = str(REPOSITORY / "captures" / "demo.pcap")
    (product / "amqpscope.toml").write_text(
        '[[allow]]\nrule = "C-PLAYTHING"\nreason = "a name of before"\n', encoding="utf-8"
    )
    listed, explained, reported, renamed, judged, old, weighed, allowed = run(
        product,
        ["rules", "list", "--layer", "connection", "--severity", "warning"],
        ["rules", "explain", "C-TOY"],
        ["rules", "explain", "--format", "markdown", "amqp10/C-TOY"],
        ["rules", "explain", "C-PLAYTHING"],
        ["check", "--no-config", "--format", "json", "--select", "C-TOY", capture],
        ["check", "--no-config", "--format", "json", "--select", "C-PLAYTHING", capture],
        ["check", "--no-config", "--ignore", "C-PLAYTHING", capture],
        ["check", "--config", "amqpscope.toml", "--format", "json", "--select", "C-TOY", capture],
        before=INDEX,
    )
    assert any(line.startswith("+ amqp10/C-TOY ") for line in listed[1].splitlines())
    assert "Every client is a toy." in explained[1]
    assert "AMQP 1.0, Part 2: Transport" in explained[1]
    assert "The reason: A toy breaks nothing." in explained[1]
    assert "client_that_is_no_toy" in reported[1] and "**How to mend the fault:** Call it toy." in reported[1]
    assert renamed[1] == explained[1]
    note = "amqpscope: C-PLAYTHING: this rule is now called amqp10/C-TOY\n"
    assert renamed[2] == note and explained[2] == ""

    findings = json.loads(judged[1])["findings"]
    assert {finding["rule"] for finding in findings} == {"amqp10/C-TOY"}
    assert {(finding["severity"], finding["certainty"]) for finding in findings} == {("warning", "possible")}
    assert {finding["expected_condition"] for finding in findings} == {"amqp:not-allowed"}
    assert all(len(finding["fingerprint"]) == 16 for finding in findings)
    assert (json.loads(old[1])["findings"], old[2]) == (findings, note)
    assert "C-TOY" not in weighed[1] and weighed[2] == note
    assert {finding["suppressed"]["by"] for finding in json.loads(allowed[1])["findings"]} == {"allow"}


def test_a_finding_is_known_again_by_the_first_name_of_its_rule(product: Path) -> None:
    capture = str(REPOSITORY / "captures" / "demo.pcap")
    file = product / "amqpscope" / "rules" / "amqp10" / "connection.py"
    text = file.read_text(encoding="utf-8")
    now = run(product, ["check", "--no-config", "--format", "json", "--select", "C-TOY", capture])[0]
    before = text.replace('"C-TOY"', '"C-PLAYTHING"').replace('    renamed_from=("C-PLAYTHING",),\n', "")
    file.write_text(before, encoding="utf-8")
    then = run(product, ["check", "--no-config", "--format", "json", "--select", "C-PLAYTHING", capture])[0]
    file.write_text(text, encoding="utf-8")
    assert [one["fingerprint"] for one in json.loads(now[1])["findings"]] == [
        one["fingerprint"] for one in json.loads(then[1])["findings"]
    ]
    assert json.loads(then[1])["findings"][0]["rule"] == "amqp10/C-PLAYTHING"

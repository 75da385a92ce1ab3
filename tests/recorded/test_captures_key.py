"""Of real peers' captures, the product finds exactly what was verified by hand.

captures/key.tsv has a row for each finding, of every severity; captures/README.md says why each is right.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from support.judged import judged

import amqpscope
from amqpscope.rules.catalogue import severity
from amqpscope.rules.profiles import weight

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))
COLUMNS = ["file", "rule", "peer", "packet", "certainty"]

Row = tuple[str, str, int, str]  # rule, peer, packet, certainty


def key() -> dict[str, Counter[Row]]:
    rows: dict[str, Counter[Row]] = {}
    with (CAPTURES / "key.tsv").open(encoding="utf-8", newline="") as lines:
        reader = csv.DictReader(lines, delimiter="\t")
        assert reader.fieldnames == COLUMNS
        for row in reader:
            found = (row["rule"], row["peer"], int(row["packet"]), row["certainty"])
            rows.setdefault(row["file"], Counter())[found] += 1
    return rows


KEY = key()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_capture_gives_the_findings_that_were_verified_and_no_others(file: Path) -> None:
    while_read, at_end = judged(file.read_bytes())
    found = Counter(
        (finding.rule, finding.peer, int(finding.packet), "certain" if finding.certain else "possible")
        for finding in while_read + at_end
    )
    assert found == KEY.get(file.name, Counter())


def test_the_key_is_of_captures_and_rules_that_there_are() -> None:
    assert set(KEY) <= {file.name for file in FILES}
    for rows in KEY.values():
        for rule, peer, packet, certainty in rows:
            assert severity(rule) in ("error", "warning", "note")
            assert peer in ("client", "server")
            assert packet > 0
            assert certainty in ("certain", "possible")


def test_every_verified_finding_is_explained() -> None:
    """What the README lists, with packets, weight and profile, is what is found, and nothing besides.

    A row: file, packets, rule, who, how sure, weight, why. A row of all files of a form says how many times
    it is found in them together; their packets are in the key.
    """
    text = (CAPTURES / "README.md").read_text(encoding="utf-8")
    verified = text.split("\n## Findings, verified by hand\n")[1].split("\n## ")[0]
    found: Counter[tuple[str, Row, str]] = Counter()
    for file in FILES:
        for finding in amqpscope.check(file):
            certainty = "certain" if finding.certain else "possible"
            row_of = (finding.rule, finding.peer, int(finding.packet), certainty)
            weighs = weight(finding) + (
                f" ({finding.assessment.profile})" if finding.assessment.profile else ""
            )
            found[file.name, row_of, weighs] += 1
    listed: Counter[tuple[str, Row, str]] = Counter()
    for row in re.findall(r"^\| `[^`|]+` \|.*$", verified, re.MULTILINE):
        name, packets, rule, who, why = [cell.strip() for cell in row.strip("|").split(" | ")]
        peer, certainty, weighs = who.split(", ")
        assert why
        reported = (rule.strip("`"), peer, certainty, weighs)
        if "*" not in name:
            for packet in packets.split(", "):
                listed[name.strip("`"), (*reported[:2], int(packet), certainty), weighs] += 1
            continue
        every = [
            each
            for each in found
            if fnmatchcase(each[0], name.strip("`")) and (*each[1][:2], each[1][3], each[2]) == reported
        ]
        assert packets == f"{sum(found[each] for each in every)} times"
        for each in every:
            del found[each]
    assert listed == found


def test_products_are_listed_with_their_versions() -> None:
    """Each table of findings stands below a product, which has a version in the table of captures, too."""
    text = (CAPTURES / "README.md").read_text(encoding="utf-8")
    recorded, verified = text.split("\n## Findings, verified by hand\n")
    headings = re.findall(r"^### (\S+(?: \S+)*?) ([0-9]+(?:\.[0-9]+)+)", verified, re.MULTILINE)
    assert len(headings) == 14
    for product, version in headings:
        assert f"{product.split()[-1]} {version}" in recorded.replace("python-qpid-proton", "Proton")

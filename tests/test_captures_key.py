"""Must show 6: of real peers' captures, the product finds exactly what was verified by hand.

captures/key.tsv has a row for each finding, of every severity; captures/README.md says why each is right.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from pathlib import Path

import pytest
from support.judged import judged

from amqpscope.rules.catalogue import severity

CAPTURES = Path(__file__).resolve().parent.parent / "captures"
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
    """Each rule that the key has of a capture stands in its row of the README, and none besides."""
    text = (CAPTURES / "README.md").read_text(encoding="utf-8")
    verified = text.split("\n## Findings, verified by hand\n")[1].split("\n## ")[0]
    explained: dict[str, set[str]] = {}
    for file, rule in re.findall(r"^\| `([^`]+)` \|[^|]*\| `([^`]+)` \|", verified, re.MULTILINE):
        explained.setdefault(file, set()).add(rule)
    assert explained == {file: {rule for rule, *_ in rows} for file, rows in KEY.items()}

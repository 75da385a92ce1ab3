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

import amqpscope
from amqpscope.rules.catalogue import severity
from amqpscope.rules.profiles import weight

CAPTURES = Path(__file__).resolve().parent.parent / "captures"
FILES = sorted(CAPTURES.glob("*.pcap*"))
COLUMNS = ["file", "rule", "peer", "packet", "certainty"]

# As long as these rules are being written, the key has only those of their findings that were verified:
# others are not held against it, but those it has must be found.
GROWING = "amqp091/"

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


def is_judged(row: Row, listed: Counter[Row]) -> bool:
    """Whether the key has to have this finding."""
    return row in listed or not row[0].startswith(GROWING)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_capture_gives_the_findings_that_were_verified_and_no_others(file: Path) -> None:
    while_read, at_end = judged(file.read_bytes())
    found = Counter(
        (finding.rule, finding.peer, int(finding.packet), "certain" if finding.certain else "possible")
        for finding in while_read + at_end
    )
    listed = KEY.get(file.name, Counter())
    assert Counter({row: found[row] for row in found if is_judged(row, listed)}) == listed


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

    A row: file, packets, rule, who, how sure, weight, why.
    """
    text = (CAPTURES / "README.md").read_text(encoding="utf-8")
    verified = text.split("\n## Findings, verified by hand\n")[1].split("\n## ")[0]
    listed: Counter[tuple[str, Row, str]] = Counter()
    for row in re.findall(r"^\| `[^`|]+` \|.*$", verified, re.MULTILINE):
        file, packets, rule, who, why = [cell.strip() for cell in row.strip("|").split(" | ")]
        peer, certainty, weighs = who.split(", ")
        assert why
        for packet in packets.split(", "):
            listed[file.strip("`"), (rule.strip("`"), peer, int(packet), certainty), weighs] += 1
    found: Counter[tuple[str, Row, str]] = Counter()
    for file in FILES:
        for finding in amqpscope.check(file):
            certainty = "certain" if finding.certain else "possible"
            row_of = (finding.rule, finding.peer, int(finding.packet), certainty)
            weighs = weight(finding) + (f" ({finding.profile})" if finding.profile else "")
            if not is_judged(row_of, KEY.get(file.name, Counter())):
                continue
            found[file.name, row_of, weighs] += 1
    assert listed == found


def test_products_are_listed_with_their_versions() -> None:
    """Each table of findings stands below a product, which has a version in the table of captures, too."""
    text = (CAPTURES / "README.md").read_text(encoding="utf-8")
    recorded, verified = text.split("\n## Findings, verified by hand\n")
    headings = re.findall(r"^### (\S+(?: \S+)*?) ([0-9]+(?:\.[0-9]+)+)", verified, re.MULTILINE)
    assert len(headings) == 6
    for product, version in headings:
        assert f"{product.split()[-1]} {version}" in recorded.replace("python-qpid-proton", "Proton")

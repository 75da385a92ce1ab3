"""Writes the dialogues as captures: for each rule the pair and the cut one, for each guard its legal one.

    python tests/scenarios/write_captures.py            # into captures/rules
    python tests/scenarios/write_captures.py FOLDER

What is written depends on the dialogues alone: every run writes the same octets. Files that no dialogue
writes any more are removed.

    amqp10/L-CREDIT/violating.pcap, clean.pcap, cut.pcap
    amqp10/L-CREDIT-2/...                               if a second dialogue tells the same rule
    amqp10/T-LIST0/legal.pcap
    expected.tsv                                        what must be found in them, a finding a row
"""

from __future__ import annotations

import csv
import importlib
import io
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDER = ROOT / "captures" / "rules"

if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))

from scenarios.pairs import SCENARIOS, SILENT, Scenario  # noqa: E402

NAMESPACE = "amqp10"

HEAD = ("rule", "captures", "peer", "packet", "certainty", "cut", "cut_packet")


def scenarios() -> list[Scenario]:
    """All of them."""
    for path in sorted((HERE / NAMESPACE).glob("*.py")):
        importlib.import_module(f"scenarios.{NAMESPACE}.{path.stem}")
    return SCENARIOS


def guards() -> set[str]:
    """The catalogue's ids of what is legal although it looks odd."""
    table = ROOT / "amqpscope" / "rules" / "data" / f"{NAMESPACE}-guards.tsv"
    with table.open(encoding="utf-8", newline="") as file:
        return {row["id"] for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)}


def files() -> dict[str, bytes]:
    """All files by their path in the folder."""
    written: dict[str, bytes] = {}
    rows: list[tuple[str, ...]] = []
    known = guards()
    for scenario in scenarios():
        if scenario.kind == "pair":
            rows += _pair(scenario, written)
        elif scenario.kind == "legal" and known.intersection(scenario.rules):
            _add(written, f"{NAMESPACE}/{scenario.rules[0]}/legal.pcap", scenario.dialogue().pcap())
    table = io.StringIO()
    writer = csv.writer(table, delimiter="\t", quoting=csv.QUOTE_NONE, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows(sorted(rows, key=lambda row: (row[0], int(row[3]))))
    written["expected.tsv"] = table.getvalue().encode()
    return written


def _pair(scenario: Scenario, written: dict[str, bytes]) -> list[tuple[str, ...]]:
    """The three captures of a scenario, stored once under its first rule; the rows of all its rules."""
    first = place = f"{NAMESPACE}/{scenario.rules[0]}"
    again = 2
    while f"{place}/violating.pcap" in written:
        # Another dialogue for the same rule.
        place = f"{first}-{again}"
        again += 1
    d = scenario.dialogue()
    _add(written, f"{place}/violating.pcap", d.pcap())
    _add(written, f"{place}/clean.pcap", scenario.dialogue(wrong=False).pcap())
    packets = [d.packet_number(fault.said) for fault in d.faults]
    assert scenario.cut is not None
    scenario.cut(d)
    _add(written, f"{place}/cut.pcap", d.pcap())
    rows = []
    for fault, packet in zip(d.faults, packets, strict=True):
        left = "-" if scenario.then == SILENT else str(d.packet_number(fault.said))
        certainty = "certain" if fault.certain else "possible"
        rule = f"{NAMESPACE}/{fault.rule}"
        rows.append((rule, place, fault.peer, str(packet), certainty, scenario.then, left))
    return rows


def _add(written: dict[str, bytes], path: str, octets: bytes) -> None:
    if path in written:
        raise SystemExit(f"two dialogues would write {path}")
    written[path] = octets


def write(folder: Path) -> None:
    """Make the folder what the dialogues say."""
    written = files()
    for path, octets in written.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(octets)
    for file in list(folder.rglob("*.pcap")):
        if file.relative_to(folder).as_posix() not in written:
            file.unlink()
            if not any(file.parent.iterdir()):
                file.parent.rmdir()


if __name__ == "__main__":
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)

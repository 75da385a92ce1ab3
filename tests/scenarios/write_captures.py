"""Writes the dialogues as captures: for each rule the pair and the cut one, for each guard its legal one.

    python tests/scenarios/write_captures.py            # into captures/rules and captures/draft2011
    python tests/scenarios/write_captures.py FOLDER     # into FOLDER, without those of captures/draft2011

What is written depends on the dialogues alone: every run writes the same octets. Files that no dialogue
writes any more are removed.

    amqp10/L-CREDIT/violating.pcap, clean.pcap, cut.pcap
    amqp10/L-CREDIT-2/...                               if a second dialogue tells the same rule
    amqp10/T-LIST0/legal.pcap
    amqp091/F-FRAME-END/...                             the same of the other protocol
    diag/credit-none/troubled.pcap, fine.pcap           the pair of a diagnosis
    expected.tsv                                        what must be found in them, a finding a row
"""

from __future__ import annotations

import csv
import io
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDER = ROOT / "captures" / "rules"
DRAFT2011 = ROOT / "captures" / "draft2011"

if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parent), str(ROOT)]

from scenarios.diagnoses.troubles import troubles  # noqa: E402
from scenarios.pairs import SILENT, Scenario, scenarios  # noqa: E402

from amqpscope.rules.catalogue import guards  # noqa: E402

HEAD = ("rule", "captures", "peer", "packet", "certainty", "cut", "cut_packet")


def files() -> dict[str, bytes]:
    """All files by their path in the folder."""
    written: dict[str, bytes] = {}
    rows: list[tuple[str, ...]] = []
    for scenario in scenarios():
        if scenario.kind == "pair":
            rows += _pair(scenario, written)
        elif scenario.kind == "legal" and scenario.rules:
            guard = f"{scenario.namespace}/{scenario.rules[0]}"
            if guard in guards():
                _add(written, f"{guard}/legal.pcap", scenario.dialogue().pcap())
    for name, speak in troubles().items():
        _add(written, f"diag/{name}/troubled.pcap", speak(True).pcap())
        _add(written, f"diag/{name}/fine.pcap", speak(False).pcap())
    table = io.StringIO()
    writer = csv.writer(table, delimiter="\t", quoting=csv.QUOTE_NONE, lineterminator="\n")
    writer.writerow(HEAD)
    writer.writerows(sorted(rows, key=lambda row: (row[0], int(row[3]))))
    written["expected.tsv"] = table.getvalue().encode()
    return written


def conversations() -> dict[str, bytes]:
    """Whole conversations in the April-2011 draft, by the names of their files in `captures/draft2011`."""
    module = import_module("scenarios.amqp10_draft2011.conversations")
    those = [one for one in scenarios() if one.module == module.__name__]
    return {f"{scenario.name}.pcap": scenario.dialogue().pcap() for scenario in those}


def _pair(scenario: Scenario, written: dict[str, bytes]) -> list[tuple[str, ...]]:
    """The three captures of a scenario, stored once under its first rule; the rows of all its rules."""
    first = place = f"{scenario.namespace}/{scenario.rules[0]}"
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
        rule = f"{scenario.namespace}/{fault.rule}"
        rows.append((rule, place, fault.peer, str(packet), certainty, scenario.then, left))
    return rows


def _add(written: dict[str, bytes], path: str, octets: bytes) -> None:
    if path in written:
        raise SystemExit(f"two dialogues would write {path}")
    written[path] = octets


def write(folder: Path, written: dict[str, bytes]) -> None:
    """Make the captures of a folder what the dialogues say."""
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
    write(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER, files())
    if len(sys.argv) == 1:
        write(DRAFT2011, conversations())

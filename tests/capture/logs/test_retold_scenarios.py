"""The dialogues of the rules as frame logs of each endpoint: fields without octets.

What is legal stays silent, and a fault that shows in fields is found.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import amqpscope
from amqpscope import Capture, CaptureOptions
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.logs.dialogue import Dialogue
from amqpscope.capture.logs.encoding import UNLOGGED, NamedComposite, Tagged, frame
from amqpscope.capture.logs.entries import HEADER, Entry
from amqpscope.capture.logs.proton import ProtonFrames
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.values import Array, Described, Map, Raw

RULES = Path(__file__).resolve().parents[3] / "captures" / "rules" / "amqp10"
LEGAL = sorted(RULES.glob("*/clean.pcap"))[::15]
FAULTS = [
    *("C-CHMAX", "C-CLOSE-LAST", "C-OPEN-FIRST", "D-DISP-RANGE", "D-ID-PRESENT", "D-ID-UNIQUE", "D-TAG-LEN"),
    *("D-SNDMODE-SETTLED", "L-CREDIT", "L-HANDLE-INUSE", "L-UNATTACHED-TRANSFER", "S-FLOW-NEXTOUT"),
    *("S-HANDLEMAX", "S-WIN-IN", "SA-SEQ-INIT"),
]


def logged(value: object) -> object:
    """A value as a format of logs gives it."""
    if isinstance(value, Composite):
        return NamedComposite(
            value.definition().name, {field.name: logged(one) for field, one in value.fields()}
        )
    if isinstance(value, Map):
        return {key: logged(one) for key, one in value.pairs if isinstance(key, (str, bytes, int))}
    if isinstance(value, Described):
        return Tagged(logged(value.descriptor), logged(value.value))
    if isinstance(value, Array):
        return [logged(one) for one in value.items]
    if isinstance(value, list):
        return [logged(one) for one in value]
    return UNLOGGED if isinstance(value, Raw) else value


def retold(path: Path, by_client: bool) -> set[tuple[str, str]]:
    """Rule and peer of the certain findings in a log that one peer of a captured connection would print."""
    output = AnalysisOutput(True, True, True, False)
    table = ConnectionTable("log", output)
    dialogues: dict[str, Dialogue] = {}
    for line, record in enumerate(amqpscope.read(path), 1):
        was = record.frame
        number = len(dialogues) + 1
        dialogue = dialogues.setdefault(record.connection.id, Dialogue(table, number, ProtonFrames))
        sent = (record.peer == "client") == by_client
        body = logged(was.body)
        if was.kind == "header":
            dialogue.take(Entry("1", sent, HEADER, was.raw, record.time, line))
        elif body is None or isinstance(body, NamedComposite):
            octets = frame(max(int(was.channel), 0), body, was.payload)
            dialogue.take(Entry("1", sent, was.name, octets, record.time, line))
    for dialogue in dialogues.values():
        dialogue.finish()
    table.finish()
    assert not table.output.notes
    return {(finding.rule, finding.peer) for finding in output.take_findings() if finding.certain}


def captured(path: Path) -> set[tuple[str, str]]:
    with Capture(path, CaptureOptions(judge=True)) as capture:
        for _ in capture:
            pass
        return {(finding.rule, finding.peer) for finding in capture.take_findings() if finding.certain}


@pytest.mark.parametrize("path", LEGAL, ids=lambda path: path.parent.name)
def test_a_legal_dialogue_is_legal_in_the_log_of_each_peer(path: Path) -> None:
    wire = captured(path)
    assert retold(path, True) <= wire
    assert retold(path, False) <= wire


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_is_found_in_the_log_of_each_peer(rule: str) -> None:
    path = RULES / rule / "violating.pcap"
    fault = {one for one in captured(path) if one[0] == f"amqp10/{rule}"}
    assert fault
    assert fault <= retold(path, True)
    assert fault <= retold(path, False)

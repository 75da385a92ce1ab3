"""Each protocol has all its parts, and its own file alone names it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import amqpscope
import dissectors.interface
from amqpscope.cutting.stand_ins import StandIns
from amqpscope.diff.forms import CanonicalFrameTable
from amqpscope.diff.transcript import Names, Room
from amqpscope.model.records import Connection
from amqpscope.protocols import PROTOCOLS, Protocol, protocol_of_kind
from amqpscope.report.links import LinkNames

AMQPSCOPE = Path(amqpscope.__file__).parent
DISSECTORS = Path(dissectors.interface.__file__).parent

# A client library that is called so, a folder of the specification, and a table with a protocol in each row.
OTHERS = {f"amqpscope/rules/{name}.py" for name in ("profiles", "references", "subjects")}
# A word that peers send as a subprotocol of WebSocket.
OTHERS |= {"amqpscope/layers/websocket/subprotocols.py"}


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_every_part_is_its_own(protocol: Protocol) -> None:
    links = LinkNames()
    connection = Connection("capture", 0, 0, bytes(12))
    parts = [
        protocol.decoder(False),
        protocol.assembler(True),
        protocol.judge(connection, [], None, None),
        protocol.json_renderer(),
        protocol.text_renderer(),
        protocol.grounds(),
        protocol.masker(StandIns(b"key")),
        protocol.following(connection),
    ]
    new = protocol.transcripts(Room(), CanonicalFrameTable(), Names(), links)
    assert new is not None
    parts.append(new(connection))
    # A dialect has some parts of its own, and others of the usual protocol.
    own = (protocol.usual or protocol.name).removeprefix("amqp")
    assert all(own in type(part).__module__ for part in parts)
    assert all(protocol_of_kind(kind, protocol.dialect) is protocol for kind in protocol.kinds)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_judge_of_a_protocol_needs_no_other_import(name: str) -> None:
    program = (
        "from amqpscope.model.records import Connection\n"
        "from amqpscope.protocols import PROTOCOLS\n"
        f"PROTOCOLS[{name!r}].judge(Connection('capture', 0, 0, bytes(12)), [], None, None)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))
def test_the_pipeline_follows_its_deliveries_and_knows_its_fields(protocol: Protocol) -> None:
    pytest.importorskip("pyspark")
    from amqpscope.pipeline.frame_columns import FrameColumns

    log = protocol.delivery_log(LinkNames(), Connection("capture", 0, 0, bytes(12)), None)
    fields = protocol.frame_fields(FrameColumns(False))
    for part in (log, fields):
        assert (protocol.usual or protocol.name).removeprefix("amqp") in type(part).__module__


def test_no_other_file_names_a_protocol() -> None:
    naming: dict[str, set[str]] = {name: set() for name in PROTOCOLS}
    for root in (AMQPSCOPE, DISSECTORS):
        for path in sorted(root.rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if not any(name in text for name in naming):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Constant) and node.value in naming:
                    naming[str(node.value)].add(path.relative_to(root.parent).as_posix())
    for name, files in naming.items():
        files = {file for file in files if not file.startswith("dissectors/spec/")}
        # A dialect's rules are partly those of the usual protocol.
        files -= {file for file in files if "amqp10_draft2011/" in file and name == "amqp10"}
        assert files - OTHERS == {f"amqpscope/protocols/{name.replace('-', '_')}.py"}

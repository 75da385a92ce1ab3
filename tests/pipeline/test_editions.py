"""The table of findings follows the text that it is asked to follow."""

from __future__ import annotations

from pathlib import Path

from support import amqp10_encode as amqp
from support.dialogue import Dialogue

from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.chain import read_set
from amqpscope.pipeline.rows import Rows, RowTerms
from amqpscope.policy.policy import Given, Policy

REJECTED = amqp.delivery_annotations({"rejected": amqp.string("no more")}) + amqp.data(b"x")
TYPED = amqp.properties(content_type="text/plain") + amqp.amqp_value("x")


def found(path: Path, edition: str) -> list[tuple[str, str, str, str]]:
    (one,) = capture_sets([str(path)])
    given = Given()
    given.spec = edition
    rows = Rows(("files", "findings"), RowTerms(Policy(None, given)))
    batches = [*read_set(one, rows), *rows.batches(True)]
    made = [row for table, batch in batches if table == "findings" for row in batch.to_pylist()]
    return [(row["rule"], row["severity"], row["requirement"], row["edition"]) for row in made]


def test_findings_of_each_edition(tmp_path: Path) -> None:
    d = Dialogue()
    d.linked()
    d.client.transfer(REJECTED)
    d.client.transfer(TYPED)
    d.client.transfer(handle=5)
    d.goodbye()
    path = tmp_path / "a.pcap"
    path.write_bytes(d.pcap())
    unattached = ("amqp10/L-UNATTACHED-TRANSFER", "error", "MUST", "final")
    of_final = sorted(found(path, "final"))
    assert ("amqp10/M-CT-NONDATA", "note", "SHOULD", "final") in of_final
    assert [rule for rule, *_ in of_final].count("amqp10/M-DA-REJECTED-TYPE") == 0
    for edition in ("csd01", "csprd02"):
        of_draft = found(path, edition)
        assert ("amqp10/M-DA-REJECTED-TYPE", "error", "MUST", edition) in of_draft
        assert ("amqp10/M-CT-NONDATA", "note", "SHOULD NOT", edition) in of_draft
        assert {row for row in of_draft if row[0] == unattached[0]} == {
            row for row in of_final if row[0] == unattached[0]
        }
        assert any(row[0] == unattached[0] and row[3] == "final" for row in of_draft)

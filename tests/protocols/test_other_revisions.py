"""The revision of February 2011, laid out like the draft but for its links: named, and not judged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import amqp10_encode as final
from support import draft2011_encode as draft
from support.all_outputs import failures, ways
from support.commands import amqpscope
from support.dialogue import Dialogue
from support.dialogue_draft2011 import Dialogue2011
from support.draft2011_encode import described, list_, multiple, null, string, uint, ulong

LINKAGE = described(ulong(0x19), list_([null(), null()]))
PIECES = draft.fragments([draft.data(b"a"), draft.data(b"b")])


def attach(role: bool) -> bytes:
    """attach: options, name, handle, role, local, remote, unsettled, initial-transfer-count."""
    fields = [null(), string("q"), uint(0), draft.boolean(role), LINKAGE, LINKAGE]
    return described(ulong(0x12), list_([*fields, null(), null() if role else uint(0)]))


def transfer(number: int) -> bytes:
    """transfer: as in the draft, but without message-format."""
    fields = [null(), uint(0), draft.encode("binary", b"t"), uint(number), *[null()] * 6]
    return described(ulong(0x14), list_([*fields, multiple("*", PIECES)]))


def february(*, attached: bool = True) -> Dialogue2011:
    d = Dialogue2011()
    d.begun()
    if attached:
        d.client.frame(attach(draft.SENDER))
        d.server.frame(attach(draft.RECEIVER))
        d.server.flow(handle=0, link_credit=5)
    d.client.frame(transfer(0))
    d.client.frame(transfer(1))
    d.client.flow()
    d.goodbye()
    return d


@pytest.mark.parametrize("attached", [True, False])
def test_the_revision_of_february_is_named_and_not_judged(
    attached: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "february.pcap"
    path.write_bytes(february(attached=attached).pcap())
    result = amqpscope(capsys, "check", "--format", "json", path)
    written = json.loads(result.out)
    assert written["findings"] == []
    [capture] = written["captures"]
    [note] = [one for one in capture["notes"] if one["code"] == "capture/dialect"]
    assert note["detail"] == (
        "the client speaks an unknown dialect of AMQP 1.0: the revision of February 2011 fits"
    )


def test_what_may_be_either_dialect_is_named_unknown_and_not_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An open that begins with null: of the draft, or of a final peer that leaves out container-id."""
    d = Dialogue()
    d.headers()
    d.client.frame(final.open_(hostname="h"))
    d.client.fin()
    path = tmp_path / "unknown.pcap"
    path.write_bytes(d.pcap())
    result = amqpscope(capsys, "check", "--format", "json", path)
    assert result.status == 0
    written = json.loads(result.out)
    assert written["findings"] == []
    assert [one["protocol"] for one in written["connections"]] == ["amqp10-unknown"]
    [capture] = written["captures"]
    assert [note["code"] for note in capture["notes"]] == ["capture/dialect"]
    assert "AMQP 1.0 (unknown dialect)" in amqpscope(capsys, "summary", path).out
    assert failures([way() for way in ways(path, [6])]) == []

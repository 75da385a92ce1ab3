"""One peer speaks AMQP 1.0, the other one its April-2011 draft: what each command says of that."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.all_outputs import failures, ways
from support.commands import amqpscope
from support.dialogue import Dialogue, Peer
from support.dialogue_draft2011 import Dialogue2011, Peer2011
from support.sampling import share


class FinalClient(Dialogue):
    server_speaker = Peer2011


class DraftClient(Dialogue2011):
    server_speaker = Peer


def written(dialogue: type[Dialogue], folder: Path) -> Path:
    """A message that is sent, accepted and settled, and a detach with an error of the peer with the draft."""
    d = dialogue()
    d.linked(credit=3)
    d.client.transfer()
    d.server.disposition()
    by_draft = d.server if dialogue is FinalClient else d.client
    by_draft.detach(error="amqp:internal-error")
    by_draft.other.detach()
    d.goodbye()
    path = folder / f"{dialogue.__name__}.pcap"
    path.write_bytes(d.pcap())
    return path


BOTH = pytest.mark.parametrize(("dialogue", "draft"), [(FinalClient, "server"), (DraftClient, "client")])


@BOTH
def test_each_direction_is_read_in_its_dialect(
    dialogue: type[Dialogue], draft: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(capsys, "read", "--format", "ndjson", written(dialogue, tmp_path))
    frames = [json.loads(line) for line in result.lines]
    assert not [frame for frame in frames if frame["problems"]]
    fields = {(frame["peer"], frame["name"]): frame["fields"] for frame in frames}
    of_sender, of_receiver = fields["client", "attach"], fields["server", "flow"]
    by_client = draft == "client"
    assert of_sender["initial-transfer-count" if by_client else "initial-delivery-count"] == 0
    assert of_receiver["delivery-count" if by_client else "transfer-count"] == 0


@BOTH
def test_check_names_the_peer_that_speaks_the_draft_and_nothing_else(
    dialogue: type[Dialogue], draft: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(
        capsys, "check", "--fail-on", "never", "--format", "ndjson", written(dialogue, tmp_path)
    )
    found = [json.loads(line) for line in result.lines]
    found = [one for one in found if "rule" in one]
    assert [(one["rule"], one["peer"]) for one in found] == [("amqp10/C-DIALECT-1239", draft)]


@BOTH
def test_summary_has_what_both_said(
    dialogue: type[Dialogue], draft: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(capsys, "summary", "--format", "json", written(dialogue, tmp_path))
    [connection] = json.loads(result.out)["connections"]
    assert connection["containers"] == {"client": "client", "server": "server"}
    assert connection["messages"] == {"client": 1, "server": 0}
    [link] = connection["links"]
    assert (link["name"], link["sender"], link["messages"]) == ("q", "client", 1)
    [error] = connection["errors"]
    assert (error["peer"], error["condition"]) == (draft, "amqp:internal-error")


@BOTH
def test_why_joins_the_two(
    dialogue: type[Dialogue], draft: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(dialogue, tmp_path)
    transfer, disposition = amqpscope(capsys, "why", path, 13), amqpscope(capsys, "why", path, 14)
    assert "link credit 3" in transfer.out
    assert "delivery-id 0" in disposition.out
    end = amqpscope(capsys, "why", "--end", path)
    assert f"was closed by the {draft} with an error: amqp:internal-error" in end.out


@BOTH
def test_every_other_command_takes_it(dialogue: type[Dialogue], draft: str, tmp_path: Path) -> None:
    known = ways(written(dialogue, tmp_path), [7, 13, 14])
    assert failures([way() for way in share(known, 6, dialogue.__name__)]) == []

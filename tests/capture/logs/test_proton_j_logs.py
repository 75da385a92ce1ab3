"""Logs in the form of proton-j: written here after its public source, not recorded, because it does not
install here. What was captured is the key: recorded conversations, and the dialogues of the rules."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.commands import amqpscope as command
from support.judged import Trickle
from support.written_logs import found, frames, written

from amqpscope import Capture, CaptureError, CaptureOptions
from dissectors.interface import Frame

from .java_frames import line
from .test_logs_without_names import bare
from .test_retold_scenarios import FAULTS, LEGAL, RULES

RECORDED = sorted((Path(__file__).parent / "recorded").glob("[pr]*.pcapng"))
REAL = """\
[458328925:0] -> SASL
[458328925:0] <- SASL
[458328925:0] <- SaslMechanisms{saslServerMechanisms=[MSSBCBS, PLAIN]}
[458328925:0] -> SaslInit{mechanism=PLAIN, initialResponse=\\x00user\\x00secret, hostname='null'}
[458328925:0] <- SaslOutcome{_code=OK, _additionalData=Welcome!}
[458328925:0] -> AMQP
[458328925:0] -> Open{ containerId='q', hostname='h.example', maxFrameSize=32768, channelMax=65535, \
idleTimeOut=null, outgoingLocales=null, incomingLocales=null, offeredCapabilities=null, \
desiredCapabilities=[sole-connection-for-container, SHARED-SUBS], properties={product=vertx-amqp-client, \
platform=JVM: 1.8.0, 25.1, Oracle, version=3.9.5}}
[458328925:0] <- AMQP
"""
"""The form that users of the library have published."""


def in_proton_j(number: int, sent: bool, frame: Frame) -> str:
    """The line of a frame. The library names a connection by a number that says nothing."""
    return line(1000 + number, sent, frame)


@pytest.mark.parametrize("by_client", [True, False])
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_the_log_has_the_fields_that_were_captured(
    path: Path, by_client: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log"
    log.write_text(written(path, by_client, in_proton_j))
    retold, wire = frames(capsys, log), frames(capsys, path)
    assert [one["name"] for one in retold] == [one["name"] for one in wire]
    for one, other in zip(retold, wire, strict=True):
        assert (one["kind"], one["peer"], one["channel"]) == (other["kind"], other["peer"], other["channel"])
        unknown = {problem["path"].split(".")[1] for problem in one["problems"]}
        # Of a frame that holds secrets it is not shown which fields are unknown.
        unknown |= {key for key, value in one["fields"].items() if value == {"hidden": 0}}
        had = {key: value for key, value in other["fields"].items() if key not in unknown}
        fields = {key: value for key, value in one["fields"].items() if key not in unknown}
        assert bare(fields) == bare(had)


@pytest.mark.parametrize("path", LEGAL, ids=lambda path: path.parent.name)
def test_a_legal_dialogue_is_legal_in_the_log_of_each_peer(path: Path) -> None:
    wire = found(path)
    for by_client in (True, False):
        log = written(path, by_client, in_proton_j).encode()
        assert found(log) <= wire


UNPRINTED = ("SA-SEQ-INIT",)
"""Faults of which the log has too little: a frame without a name that is known to it."""


@pytest.mark.parametrize("rule", [rule for rule in FAULTS if rule not in UNPRINTED])
def test_a_fault_is_found_in_the_log_of_each_peer(rule: str) -> None:
    path = RULES / rule / "violating.pcap"
    fault = {one for one in found(path) if one[0] == f"amqp10/{rule}"}
    assert fault
    for by_client in (True, False):
        assert fault <= found(written(path, by_client, in_proton_j).encode())


def test_what_users_have_published_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    log.write_text("2021-02-09 20:21:19,616 INFO started\n" + REAL)
    retold = frames(capsys, log)
    names = ["header", "header", "sasl-mechanisms", "sasl-init", "sasl-outcome", "header", "open", "header"]
    assert [one["name"] for one in retold] == names
    opened = retold[6]["fields"]
    assert bare(opened["properties"]) == {
        "product": "vertx-amqp-client",
        "platform": "JVM: 1.8.0, 25.1, Oracle",
        "version": "3.9.5",
    }
    shown = command(capsys, "read", "-vv", log)
    assert "secret" not in shown.out
    assert "a log of proton-j" in shown.out


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'q'", "'q', hostname='x'"),
        ("hostname='h.example', ", ""),
        ("channelMax=65535", "channelMax=65535, channelMax=7"),
        (", incomingLocales=null", ", incomingLocales"),
        ("}}", ""),
        ("Open{", "Opened{"),
    ],
)
def test_a_frame_whose_fields_are_not_certain_is_lost(old: str, new: str) -> None:
    octets = REAL.replace(old, new).encode()
    with Capture(io.BytesIO(octets), CaptureOptions(judge=True), name="log") as capture:
        names = [record.frame.name for record in capture]
        assert "open" not in names
        assert not [one for one in capture.take_findings() if one.certain]
        assert any("cannot be read" in note.detail for note in capture.notes)


LINES = st.sampled_from(REAL.splitlines())


@settings(max_examples=60)
@given(
    st.lists(st.one_of(LINES, st.text(max_size=30)), max_size=20),
    st.lists(st.integers(1, 80), min_size=1, max_size=4),
    st.integers(0, 300),
)
def test_any_lines_are_read_in_any_pieces(parts: list[str], sizes: list[int], cut: int) -> None:
    octets = (REAL + "\n".join(parts)).encode("utf-8", "replace")
    octets = octets[: len(octets) - cut]

    def shown(source: Any) -> list[str] | str:
        try:
            with Capture(source, CaptureOptions(judge=True), name="log") as capture:
                found = [repr(record) for record in capture]
                found += [f"{one.rule} {one.certain}" for one in capture.take_findings()]
                assert not capture.mishaps
                return found + [note.detail for note in capture.notes]
        except CaptureError as error:
            return str(error)

    assert shown(Trickle(octets, sizes)) == shown(io.BytesIO(octets))


@pytest.mark.parametrize(
    "hostile",
    [
        "[1:0] -> " * 300_000,
        "[1:0] -> Open{ containerId='" + ", hostname=" * 200_000 + "}",
        "[1:0] -> Attach{name='a', source=" + "Source{" * 200_000 + "}",
        "[1:0] -> Transfer{" + "} (1) " * 300_000,
        "[1:0] -> Open{ containerId='a', properties={" + "a=, " * 300_000 + "}}",
    ],
    ids=["arrows", "fields", "sources", "payloads", "properties"],
)
def test_a_hostile_line_takes_no_longer_than_another_one(hostile: str) -> None:
    before = time.process_time()
    found((REAL + hostile + "\n").encode())
    assert time.process_time() - before < 3

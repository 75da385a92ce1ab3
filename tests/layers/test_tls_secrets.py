"""Where TLS secrets come from, and that they go nowhere."""

from __future__ import annotations

import gzip
import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pytest
from support.connection_harness import ConnectionHarness
from support.conversation import Conversation
from support.tls import Ends, TlsRecording, Turn
from typer.testing import CliRunner

import amqpscope
from amqpscope.cli.main import app
from amqpscope.errors import FilterError
from amqpscope.input.capture import CaptureOptions
from amqpscope.input.key_log import KeyLog, tls_secrets
from amqpscope.layers.secrets import LABELS, Secrets
from amqpscope.policy.configuration import Configuration
from amqpscope.pytest_plugin.fixture import AmqpCapture

from .test_tls import Read, recorded, talk

pytest.importorskip("cryptography")

Order = Literal["<", ">"]


def capture_of(recording: TlsRecording) -> Conversation:
    d = Conversation()
    for turn in recording.turns:
        (d.client if turn.direction == 0 else d.server).say(turn.octets)
    return d


def secrets_block(keylog: bytes, order: Order = "<") -> bytes:
    body = struct.pack(order + "II", 0x544C534B, len(keylog)) + keylog + b"\0" * (-len(keylog) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", 10) + length + body + length


def names(source: Path | list[Path], secrets: Secrets | None = None) -> list[str]:
    with amqpscope.Capture(source, CaptureOptions(secrets=secrets)) as capture:
        return [record.frame.name for record in capture]


@pytest.fixture(scope="module")
def recording() -> TlsRecording:
    return recorded(talk(), Ends.make("1.3"))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("behind", [False, True])
def test_secrets_in_the_capture(
    tmp_path: Path, recording: TlsRecording, order: Order, packed: bool, behind: bool
) -> None:
    octets = capture_of(recording).capture.pcapng(byte_order=order)
    at = len(octets) if behind else 28
    octets = octets[:at] + secrets_block(recording.keylog, order) + octets[at:]
    path = tmp_path / "a.pcapng"
    path.write_bytes(gzip.compress(octets) if packed else octets)
    found = names(path)
    assert "transfer" in found and found[-1] == "close"
    assert names([path]) == found
    other = tmp_path / "b.pcapng"
    other.write_bytes(octets[:28] + octets[28:].replace(b"_SECRET", b"_SEKRET"))
    assert names(other) == []


@pytest.mark.parametrize("cut", [0, 4, 12, 24])
def test_a_block_that_is_damaged(tmp_path: Path, recording: TlsRecording, cut: int) -> None:
    octets = capture_of(recording).capture.pcapng()
    block = bytearray(secrets_block(recording.keylog))
    block[cut : cut + 4] = b"\xff\xff\xff\x7f"
    path = tmp_path / "a.pcapng"
    path.write_bytes(octets + bytes(block))
    assert names(path) == [] or cut == 24


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("reload", [False, True])
@pytest.mark.parametrize("late", [1, 6, 100])
def test_a_key_log_that_grows(tmp_path: Path, version: str, reload: bool, late: int) -> None:
    """What comes before its secrets waits for them; frames are those of a log that was complete."""
    recording = recorded(talk(), Ends.make(version))
    path = tmp_path / "keys.txt"
    path.write_bytes(b"")
    harness = ConnectionHarness(reload=reload)
    harness.output.secrets = Secrets(tls_secrets([str(path)], growing=True))
    for number, turn in enumerate(recording.turns):
        if number == recording.handshake + late:
            path.write_bytes(recording.keylog[:-100])
        harness.send(turn.direction, turn.octets)
        if number == recording.handshake + late:
            path.write_bytes(recording.keylog)
    path.write_bytes(recording.keylog)
    harness.finish()
    found = [(one.direction, one.frame.name, one.packet, one.acknowledged) for one in harness.out]
    other = ConnectionHarness()
    other.output.secrets.take(recording.keylog)
    for turn in recording.turns:
        other.send(turn.direction, turn.octets)
    other.finish()
    assert found == [(one.direction, one.frame.name, one.packet, one.acknowledged) for one in other.out]
    assert found
    assert harness.output.secrets.waiting == 0


def test_secrets_that_never_come(tmp_path: Path, recording: TlsRecording) -> None:
    harness = ConnectionHarness()
    harness.output.secrets = Secrets(tls_secrets([str(tmp_path / "none.txt")], growing=True))
    for turn in recording.turns:
        harness.send(turn.direction, turn.octets)
    assert harness.output.secrets.waiting > 0
    harness.finish()
    assert harness.out == [] and harness.output.secrets.waiting == 0
    assert [note.code for note in harness.notes] == ["capture/tls"]


def test_lines_of_a_key_log(tmp_path: Path) -> None:
    random, secret = b"ab" * 32, b"CD" * 48
    secrets = Secrets()
    good = b"CLIENT_RANDOM %s %s" % (random, secret)
    bad = [
        b"# a comment",
        b"CLIENT_RANDOM %s" % random,
        b"CLIENT_RANDOM %s %s" % (random[2:], secret),
        b"CLIENT_RANDOM %s %sx" % (random, secret[1:]),
        b"CLIENT_RANDOM %s %s" % (random, secret * 2),
        b"EXPORTER_SECRET %s %s" % (random, secret),
        b"\xff\xff %s %s" % (random, secret),
    ]
    assert secrets.take(b"\r\n".join([*bad, good, b""])) == 1
    assert secrets.of(bytes.fromhex(random.decode()), "") == {"CLIENT_RANDOM": b"\xcd" * 48}
    path = tmp_path / "log"
    path.write_bytes(good)
    log = KeyLog(str(path))
    assert log.take_new(secrets) == 1 and not log.look_further(secrets, b"")
    with path.open("ab") as file:
        file.write(b"\n" + good.replace(b"ab", b"ba"))
    assert log.look_further(secrets, b"") and secrets.of(b"\xba" * 32, "")


def test_key_logs_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    for name, why in (("none", "No such file"), ("empty", "has no TLS secrets"), (".", "directory")):
        with pytest.raises(FilterError, match=why):
            tls_secrets([str(tmp_path / name)])


@pytest.mark.parametrize(
    "command",
    [
        ["read", "-vv"],
        ["read", "--format", "ndjson", "--bodies"],
        ["check", "--format", "json"],
        ["summary", "--all"],
        ["summary", "--format", "json"],
        ["why", "--end", "--format", "json"],
    ],
)
@pytest.mark.parametrize("fitting", [True, False])
def test_no_secret_is_shown(
    tmp_path: Path, recording: TlsRecording, command: list[str], fitting: bool
) -> None:
    path, keys = tmp_path / "a.pcapng", tmp_path / "keys.txt"
    octets = capture_of(recording).capture.pcapng()
    path.write_bytes(octets + secrets_block(recording.keylog) if fitting else octets)
    lines = recording.keylog.splitlines()
    keys.write_bytes(b"\n".join(line if fitting else line[:-2] + b"00" for line in lines))
    result = CliRunner().invoke(app, [*command, "--tls-keylog", str(keys), str(path)])
    shown = (result.output + result.stderr).lower()
    assert result.exit_code != 2 and shown
    for line in lines:
        if line and not line.startswith(b"#"):
            assert line.split()[2].decode()[:32].lower() not in shown
            assert json.dumps(bytes.fromhex(line.split()[2].decode()).decode("latin1"))[1:-1] not in shown


def files(path: Path, recording: TlsRecording) -> tuple[Path, Path]:
    capture, keys = path / "a.pcap", path / "keys.txt"
    capture.write_bytes(capture_of(recording).pcap())
    keys.write_bytes(recording.keylog)
    return capture, keys


def test_several_key_logs(tmp_path: Path, recording: TlsRecording) -> None:
    """Each has the secrets of another connection."""
    other = recorded(talk(), Ends.make("1.2"))
    d = Conversation()
    again = Conversation(client="10.0.0.7:40000")
    options = []
    for number, (of, conversation) in enumerate(((recording, d), (other, again))):
        for turn in of.turns:
            (conversation.client if turn.direction == 0 else conversation.server).say(turn.octets)
        (tmp_path / f"{number}.pcap").write_bytes(conversation.pcap())
        (tmp_path / f"{number}.keys").write_bytes(of.keylog)
        options += ["--tls-keylog", str(tmp_path / f"{number}.keys")]
    for number in (0, 1):
        path = tmp_path / f"{number}.pcap"
        read = CliRunner().invoke(app, ["read", *options, "--format", "ndjson", str(path)])
        assert read.exit_code == 0
        shown = [json.loads(line) for line in read.output.splitlines()]
        assert [one["name"] for one in shown if "name" in one] == [one[1] for one in Read(talk()).frames]


def test_from_python(tmp_path: Path, recording: TlsRecording) -> None:
    capture, keys = files(tmp_path, recording)
    frames = [one.frame.name for one in amqpscope.read(capture, tls_keylog=[str(keys)])]
    assert frames[0] == "header" and "transfer" in frames
    rules = [one.rule for one in amqpscope.check(capture, profile="none", tls_keylog=[str(keys)])]
    assert "amqp10/L-CREDIT" in rules
    assert list(amqpscope.read(capture)) == []


def test_a_configuration_that_names_key_logs(tmp_path: Path, recording: TlsRecording) -> None:
    capture, _ = files(tmp_path, recording)
    config = tmp_path / "amqpscope.toml"
    config.write_text('tls-keylog = "keys.txt"\n')
    shown = CliRunner().invoke(app, ["check", "--config", str(config), str(capture)]).stdout
    assert "amqp10/L-CREDIT" in shown
    same = CliRunner().invoke(app, ["diff", "--config", str(config), str(capture), str(capture)]).stdout
    config.write_text("")
    assert (
        "nothing to check" in CliRunner().invoke(app, ["check", "--config", str(config), str(capture)]).stdout
    )
    assert (
        same != CliRunner().invoke(app, ["diff", "--config", str(config), str(capture), str(capture)]).stdout
    )


def test_in_tests(
    tmp_path: Path, recording: TlsRecording, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    capture, keys = files(tmp_path, recording)
    fixture = AmqpCapture(request.node, "off", tmp_path, None, Configuration())
    monkeypatch.delenv("SSLKEYLOGFILE", raising=False)
    assert fixture.check(capture, fail_on="never", allow_empty=True) == []
    assert fixture.check(capture, fail_on="never", tls_keylog=keys) != []
    with pytest.raises(ValueError, match="tls-keylog"):
        fixture.check(capture, tls_keylog=[str(tmp_path / "none")])
    monkeypatch.setenv("SSLKEYLOGFILE", str(keys))
    assert fixture.check(capture, fail_on="never") != []


@pytest.mark.parametrize("embedded", [False, True])
def test_a_recording_has_secrets_only_where_they_are_asked_for(
    tmp_path: Path, recording: TlsRecording, embedded: bool
) -> None:
    keys, path = tmp_path / "keys.txt", tmp_path / "a.pcapng"
    unused = b"CLIENT_RANDOM %s %s\n" % (b"ab" * 32, b"cd" * 48)
    keys.write_bytes(recording.keylog + unused)
    line = [sys.executable, "-m", "amqpscope", "sniff", "-i", "-", "-w", str(path), "--quiet"]
    line += ["--tls-keylog", str(keys), *(["--embed-keys"] if embedded else [])]
    done = subprocess.run(line, input=capture_of(recording).pcap(), capture_output=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    octets = path.read_bytes()
    secrets = [one.split()[2] for one in recording.keylog.splitlines() if one.split()[0].decode() in LABELS]
    assert len(secrets) == 4
    for secret in secrets:
        assert (secret in octets) == embedded
        assert bytes.fromhex(secret.decode()) not in octets
    assert b"cd" * 48 not in octets
    assert ("close" in names(path)) == embedded


@pytest.mark.parametrize(
    ("code", "suite"),
    [
        (0x000A, "TLS_RSA_WITH_3DES_EDE_CBC_SHA"),
        (0x0005, "TLS_RSA_WITH_RC4_128_SHA"),
        (0xC012, "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA"),
        (0xFE01, "0xFE01"),
    ],
)
@pytest.mark.parametrize("given", [True, False])
def test_a_suite_that_is_not_read(code: int, suite: str, given: bool) -> None:
    """Its name is shown; with secrets, so is why they do not help."""
    recording = recorded(talk(), Ends.make("1.2", "AES128-SHA"))
    answer = recording.turns[1].octets
    at = 44 + answer[43]  # behind the session's identity in the ServerHello
    changed = answer[:at] + code.to_bytes(2, "big") + answer[at + 2 :]
    turns = [recording.turns[0], Turn(1, changed), *recording.turns[2:]]
    read = Read(turns, recording.keylog if given else b"")
    facts = read.connection.tls
    assert read.frames == [] and facts is not None and facts.suite == suite
    assert facts.unread == f"the cipher suite {suite} is not supported"
    said = [note.detail for note in read.notes if note.code == "capture/tls"]
    assert said == ([f"TLS is not decrypted: the cipher suite {suite} is not supported"] if given else [])

"""AMQP in TLS with RSA key exchange, decrypted with the private key of the server."""

from __future__ import annotations

import io
import ssl
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from support.connection_harness import ConnectionHarness
from support.tls import Ends, TlsRecording, Turn, credentials
from typer.testing import CliRunner

import amqpscope
from amqpscope.cli.main import app
from amqpscope.errors import FilterError
from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.input.key_log import tls_secrets
from amqpscope.layers.secrets import Secrets
from amqpscope.layers.tls.handshake import certificate
from amqpscope.policy.configuration import Configuration
from amqpscope.pytest_plugin.fixture import AmqpCapture

from .test_tls import ALLOW_CLIENT_RENEGOTIATION, Read, recorded, talk
from .test_tls_secrets import capture_of

pytest.importorskip("cryptography")

NO_EXTENDED_MASTER_SECRET = 1 << 0
PASSPHRASE = "AMQPSCOPE_TLS_KEY_PASSPHRASE"
SUITES = [
    ("1.0", "AES256-SHA"),
    ("1.1", "AES128-SHA"),
    ("1.2", "AES128-SHA256"),
    ("1.2", "AES256-GCM-SHA384"),
    ("1.2", "AES128-CCM8"),
]

Frame = tuple[int, str, int, int]


def frames(turns: list[Turn], secrets: Secrets | None, *, reload: bool = False) -> tuple[list[Frame], str]:
    """The frames of a conversation, and why it was not decrypted."""
    harness = ConnectionHarness(reload=reload)
    if secrets is not None:
        harness.output.secrets = Secrets(secrets)
    for turn in turns:
        harness.send(turn.direction, turn.octets)
    harness.finish()
    found = [
        (int(one.direction), one.frame.name, int(one.frame.offset), int(one.frame.size))
        for one in harness.out
    ]
    return found, " ".join(note.detail for note in harness.notes)


CLEAR = frames(talk(), None)[0]
KEY = credentials("rsa")


@pytest.fixture
def key() -> Secrets:
    found = tls_secrets([], [KEY])
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("version", "suite", "extended"),
    [*((*one, True) for one in SUITES), *((*one, False) for one in SUITES[2:4])],
)
def test_frames_are_those_of_the_plain_conversation(
    key: Secrets, version: str, suite: str, extended: bool
) -> None:
    ends = Ends.make(version, suite)
    if not extended:
        ends.client.options |= NO_EXTENDED_MASTER_SECRET
    turns = recorded(talk(), ends).turns
    assert frames(turns, key) == frames(turns, key, reload=True) == (CLEAR, "")


def test_findings_are_those_of_the_plain_conversation(tmp_path: Path) -> None:
    recording = recorded(talk(), Ends.make("1.2", "AES128-SHA"))
    path = tmp_path / "a.pcap"
    path.write_bytes(capture_of(recording).pcap())
    found = [one.rule for one in amqpscope.check(path, profile="none", tls_key=[KEY])]
    assert found == [one[0] for one in Read(talk()).findings] != []


@pytest.mark.parametrize("ticket", [True, False])
def test_a_session_that_is_resumed(key: Secrets, ticket: bool) -> None:
    ends = Ends.make("1.2", "AES128-SHA256")
    if not ticket:
        ends.server.options |= ssl.OP_NO_TICKET
    first = recorded(talk(), ends)
    second = recorded(talk(), ends, session=first.session)
    assert second.peers[0].session_reused
    found, why = frames(second.turns, key)
    assert not found and "resumed a TLS session" in why
    assert frames(first.turns, key) == frames(second.turns, key) == (CLEAR, "")


def test_a_second_handshake_inside_the_connection(key: Secrets) -> None:
    ends = Ends.make("1.2", "AES128-SHA256")
    ends.server.options |= ALLOW_CLIENT_RENEGOTIATION
    recording = TlsRecording(ends)
    for number, turn in enumerate(talk()):
        if number == 4:
            recording.renegotiate()
        recording.say(turn.direction, turn.octets)
    assert frames(recording.turns, key) == (CLEAR, "")


@pytest.mark.parametrize(
    ("version", "suite", "kind", "why"),
    [
        ("1.3", "", "rsa", "a private key (--tls-key) cannot decrypt TLS 1.3, but only RSA"),
        ("1.2", "ECDHE-RSA-AES128-GCM-SHA256", "rsa", "not TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"),
        (
            "1.2",
            "AES128-SHA256",
            "other",
            "no private key (--tls-key) belongs to the certificate of the server",
        ),
    ],
)
def test_a_key_that_cannot_help(tmp_path: Path, version: str, suite: str, kind: str, why: str) -> None:
    path = key_file(tmp_path) if kind == "other" else Path(KEY)
    recording = recorded(talk(), Ends.make(version, suite))
    found, said = frames(recording.turns, tls_secrets([], [str(path)]))
    assert found == [] and why in said
    assert recording.peers[0].session is None or "client random" in said
    # Another key beside it, or a key log, is found all the same.
    both = tls_secrets([str(recording.ends.keylog)], [str(path)])
    assert frames(recording.turns, both) == (CLEAR, "")
    if kind == "other":
        assert frames(recording.turns, tls_secrets([], [str(path), KEY])) == (CLEAR, "")


def test_octets_of_the_handshake_are_missing(key: Secrets) -> None:
    hello, flight, *others = recorded(talk(), Ends.make("1.2", "AES128-SHA")).turns
    flights = [Turn(1, flight.octets[at : at + 300]) for at in range(0, len(flight.octets), 300)]
    read = Read([hello, *flights, *others], lost=2)
    options = CaptureOptions(secrets=key)
    with Capture(io.BytesIO(read.octets), options) as capture:
        assert list(capture) == []
    assert "octets of the handshake that were not captured" in " ".join(one.detail for one in capture.notes)


def key_file(folder: Path, passphrase: str = "", kind: str = "rsa") -> Path:
    """A private key that is no server's."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec, rsa

    key = rsa.generate_private_key(65537, 1024) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
    secret = serialization.BestAvailableEncryption(passphrase.encode()) if passphrase else None
    path = folder / "key.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            secret or serialization.NoEncryption(),
        )
    )
    return path


def test_key_files_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSPHRASE, raising=False)
    (tmp_path / "empty").write_bytes(b"")
    encrypted = str(key_file(tmp_path, "made-up-passphrase"))
    cases = [("none", "No such file"), ("empty", "has no private key in PEM"), (".", "directory")]
    for name, why in [*cases, ("key.pem", f"the key is encrypted; .* {PASSPHRASE}")]:
        with pytest.raises(FilterError, match=why):
            tls_secrets([], [str(tmp_path / name)])
    monkeypatch.setenv(PASSPHRASE, "wrong")
    with pytest.raises(FilterError, match="does not open the key") as caught:
        tls_secrets([], [encrypted])
    assert "wrong" not in str(caught.value)
    monkeypatch.setenv(PASSPHRASE, "made-up-passphrase")
    assert tls_secrets([], [encrypted]) is not None
    with pytest.raises(FilterError, match="is not an RSA key"):
        tls_secrets([], [str(key_file(tmp_path, kind="ec"))])


@pytest.mark.parametrize(
    "command",
    [
        ["read"],
        ["check"],
        ["summary"],
        ["why", "--end"],
        ["triage"],
        ["diff", "--all"],
    ],
)
def test_every_command_takes_a_key_and_shows_nothing_of_it(tmp_path: Path, command: list[str]) -> None:
    recording = recorded(talk(), Ends.make("1.2", "AES128-SHA256"))
    path = tmp_path / "a.pcap"
    path.write_bytes(capture_of(recording).pcap())
    files = [str(path)] * (2 if command[0] == "diff" else 1)
    result = CliRunner().invoke(app, [*command, *files, "--tls-key", KEY])
    shown = result.output + result.stderr
    assert result.exit_code in (0, 1), shown
    assert "TLS is not decrypted" not in shown and "encrypted" not in shown
    assert not [line for line in Path(KEY).read_text().splitlines()[1:20] if line in shown]


def test_a_recording_has_the_secrets_of_its_connections_and_no_key(tmp_path: Path) -> None:
    recording = recorded(talk(), Ends.make("1.2", "AES128-SHA256"))
    path = tmp_path / "a.pcapng"
    line = [sys.executable, "-m", "amqpscope", "sniff", "-i", "-", "-w", str(path), "--quiet"]
    line += ["--tls-key", KEY, "--embed-keys"]
    done = subprocess.run(line, input=capture_of(recording).pcap(), capture_output=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    octets = path.read_bytes()
    assert recording.keylog.split()[-1] in octets
    assert not [line for line in Path(KEY).read_bytes().splitlines()[1:20] if line in octets]
    assert [one.frame.name for one in amqpscope.read(path)][-1] == "close"


def test_from_a_configuration_and_in_tests(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recorded(talk(), Ends.make("1.2", "AES128-SHA256"))
    path, config = tmp_path / "a.pcap", tmp_path / "amqpscope.toml"
    path.write_bytes(capture_of(recording).pcap())
    config.write_text(f'tls-key = "{KEY}"\n')
    shown = CliRunner().invoke(app, ["check", "--config", str(config), str(path)]).stdout
    assert "amqp10/L-CREDIT" in shown
    monkeypatch.delenv("SSLKEYLOGFILE", raising=False)
    fixture = AmqpCapture(request.node, "off", tmp_path, None, Configuration())
    assert fixture.check(path, fail_on="never", tls_key=KEY) != []
    with pytest.raises(ValueError, match="tls-key"):
        fixture.check(path, tls_key=str(tmp_path / "none"))
    assert [one.code for one in amqpscope.diagnose(path, tls_key=[KEY])] == [
        one.code for one in amqpscope.diagnose(io.BytesIO(Read(talk()).octets))
    ]


def test_an_odd_certificate_makes_no_noise() -> None:
    """A serial number of 0 is no concern of whoever reads the capture."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    from amqpscope.input.server_keys import server_key

    der = x509.load_pem_x509_certificate(Path(KEY).read_bytes()).public_bytes(Encoding.DER)
    odd = der.replace(b"\x02\x01\x07", b"\x02\x01\x00", 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = certificate(odd)
        assert odd != der and read is not None and read.subject == "CN=broker.example"
        assert server_key(KEY).fits(odd) and not server_key(KEY).fits(odd[:50])

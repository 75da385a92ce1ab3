"""What a summary shows of TLS, without and with secrets, and why a handshake failed."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.conversation import Conversation
from support.tls import Ends, TlsRecording, credentials
from typer.testing import CliRunner

from amqpscope.cli.main import app

pytest.importorskip("cryptography")


def summary(path: Path, recording: TlsRecording, *options: str, fin: bool = True, port: int = 5671) -> str:
    d = Conversation(server=f"10.0.0.2:{port}")
    for turn in recording.turns:
        (d.client if turn.direction == 0 else d.server).say(turn.octets)
    if fin:
        d.client.fin()
        d.server.fin()
    file = path / "a.pcap"
    file.write_bytes(d.pcap())
    (path / "keys").write_bytes(recording.keylog if recording.ends.keylog.exists() else b"")
    result = CliRunner().invoke(app, ["summary", "--all", *options, str(file)])
    assert result.exit_code in (0, 3), result.output
    return result.stdout


def data(text: str) -> dict[str, Any]:
    whole = json.loads(text)
    found: dict[str, Any] = {**whole["connections"][0], "diagnoses": whole["diagnoses"]}
    return found


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("with_secrets", [False, True])
def test_what_the_handshake_shows(tmp_path: Path, version: str, with_secrets: bool) -> None:
    recording = TlsRecording(Ends.make(version, alpn="amqp"))
    recording.say(0, b"AMQP\0\1\0\0")
    recording.close(0)
    options = ["--tls-keylog", str(tmp_path / "keys")] if with_secrets else []
    text = summary(tmp_path, recording, *options)
    assert f"TLS {version}, TLS_" in text and "server name broker.example" in text
    assert ("not decrypted" in text) != with_secrets
    in_clear = version == "1.2"
    certificate = (
        'certificate of the server: "CN=broker.example", issued by itself, for broker.example, '
        "valid 2020-01-01 to 2040-01-01"
    )
    assert (certificate in text) == (in_clear or with_secrets)
    found = data(summary(tmp_path, recording, "--format", "json", *options))
    tls = found["tls"]
    assert (tls["version"], tls["server_name"], tls["alpn_offered"]) == (
        f"TLS {version}",
        "broker.example",
        ["amqp"],
    )
    assert tls["decrypted"] == with_secrets and found["encrypted"] != with_secrets
    assert tls["client_random"] in recording.keylog.decode()
    alerts = [(one["peer"], one["description"]) for one in tls["alerts"]]
    if with_secrets:
        assert alerts[0] == ("client", "close_notify") and found["diagnoses"] == []
        assert tls["server_certificate"]["not_after"] == "2040-01-01T00:00:00Z"


def unknown_ca(ends: Ends) -> None:
    ends.client.verify_mode = ssl.CERT_REQUIRED


def expired(ends: Ends) -> None:
    ends.client.verify_mode = ssl.CERT_REQUIRED
    ends.server.load_cert_chain(credentials("ec", 2021))
    ends.client.load_verify_locations(credentials("ec", 2021))


def no_client_certificate(ends: Ends) -> None:
    ends.server.verify_mode = ssl.CERT_REQUIRED
    ends.server.load_verify_locations(credentials())


def no_common_version(ends: Ends) -> None:
    ends.server.maximum_version = ssl.TLSVersion.TLSv1_3
    ends.server.minimum_version = ssl.TLSVersion.TLSv1_3


def no_common_suite(ends: Ends) -> None:
    ends.server.set_ciphers("AES256-SHA")
    ends.client.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")


CAUSES: list[tuple[Callable[[Ends], None], str, str]] = [
    (
        unknown_ca,
        "client",
        "client sent the TLS alert unknown_ca: the client does not trust the authority that issued",
    ),
    (
        expired,
        "client",
        "the client rejects the certificate of the server, which is not valid at this time (valid 2020-",
    ),
    (no_client_certificate, "server", "the server requires a certificate of the client, which sent none"),
    (no_common_version, "server", "the server supports no TLS version that the client offers"),
    (no_common_suite, "server", "the server finds no common cipher suite or parameter"),
]


@pytest.mark.parametrize(("cause", "peer", "sentence"), CAUSES, ids=[one[0].__name__ for one in CAUSES])
def test_why_a_handshake_failed(
    tmp_path: Path, cause: Callable[[Ends], None], peer: str, sentence: str
) -> None:
    ends = Ends.make("1.2")
    cause(ends)
    recording = TlsRecording(ends)
    assert recording.failure
    text = summary(tmp_path, recording)
    assert sentence in " ".join(text.split())
    found = data(summary(tmp_path, recording, "--format", "json"))
    assert found["tls"]["alerts"][0]["peer"] == peer and found["tls"]["alerts"][0]["level"] == "fatal"
    assert [one["code"] for one in found["diagnoses"]] == ["diag/tls-alert"]
    assert found["diagnoses"][0]["packet"] == found["tls"]["alerts"][0]["packet"]


@pytest.mark.parametrize("command", [["read"], ["why", "--end"]], ids=["read", "why"])
def test_other_commands_show_the_same_facts(tmp_path: Path, command: list[str]) -> None:
    ends = Ends.make("1.2", alpn="amqp")
    unknown_ca(ends)
    recording = TlsRecording(ends)
    shown = summary(tmp_path, recording).splitlines()
    first = next(index for index, line in enumerate(shown) if line.startswith("  TLS 1.2"))
    facts = [line for line in shown[first:] if line.startswith("  ")]
    assert any("certificate of the server" in line for line in facts)
    assert any("fatal alert unknown_ca of the client, packet" in line for line in facts)
    result = CliRunner().invoke(app, [*command, str(tmp_path / "a.pcap")])
    assert "\n".join(facts[:5]) in result.stdout
    if command[0] == "why":
        because = next(line for line in result.stdout.splitlines() if line.startswith("  because"))
        assert "client sent the TLS alert unknown_ca" in because
        assert "next:" not in result.stdout


def test_why_end_gives_the_facts_as_data(tmp_path: Path) -> None:
    recording = TlsRecording(Ends.make("1.2"))
    expected = data(summary(tmp_path, recording, "--format", "json"))["tls"]
    result = CliRunner().invoke(app, ["why", "--end", "--format", "json", str(tmp_path / "a.pcap")])
    assert json.loads(result.stdout)["connections"][0]["tls"] == expected


@pytest.mark.parametrize("port", [5671, 5672])
def test_a_server_that_does_not_answer(tmp_path: Path, port: int) -> None:
    recording = TlsRecording(Ends.make("1.2"))
    del recording.turns[1:]
    text = summary(tmp_path, recording, port=port)
    assert "the server did not answer the ClientHello, and closed the TCP connection" in text
    assert ("client speaks TLS to port 5672" in text) == (port == 5672)
    assert "did not answer" not in summary(tmp_path, recording, fin=False, port=port)

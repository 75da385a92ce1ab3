"""AMQP in TLS, read with its secrets: frames and findings are those of the same conversation in the clear."""

from __future__ import annotations

import io

import pytest
from support.connection_harness import ConnectionHarness
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.tls import Ends, TlsRecording, Turn

import amqpscope
from amqpscope.input.capture import CaptureOptions
from amqpscope.layers.secrets import Secrets

pytest.importorskip("cryptography")

SUITES = {
    "1.3": [
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    ],
    "1.2": [
        "ECDHE-RSA-AES128-GCM-SHA256",
        "ECDHE-RSA-AES256-GCM-SHA384",
        "AES128-CCM",
        "AES256-CCM8",
        "ECDHE-RSA-CHACHA20-POLY1305",
        "ECDHE-RSA-AES128-SHA",
        "ECDHE-RSA-AES256-SHA384",
        "AES128-SHA256",
        "AES256-GCM-SHA384",
        "NULL-SHA256",
    ],
    "1.1": ["ECDHE-RSA-AES256-SHA", "AES128-SHA"],
    "1.0": ["ECDHE-RSA-AES128-SHA", "AES256-SHA"],
}
EVERY = [(version, suite) for version, suites in SUITES.items() for suite in suites]
MOST = [one for one in EVERY if one[1] in ("TLS_AES_256_GCM_SHA384", "ECDHE-RSA-AES128-GCM-SHA256")]
ALLOW_CLIENT_RENEGOTIATION = 1 << 8
CHAINED = [("1.0", "AES256-SHA"), ("1.1", "AES128-SHA"), ("1.2", "AES128-SHA256")]


def talk() -> list[Turn]:
    """A conversation with a fault of the client that only what the server said makes one."""
    d = Dialogue()
    d.linked(credit=1)
    for _ in range(3):
        d.client.transfer()
        d.server.disposition()
    d.goodbye()
    return [Turn(0 if said.peer is d.client else 1, said.octets) for said in d.said if said.octets]


def recorded(turns: list[Turn], ends: Ends, **how: object) -> TlsRecording:
    recording = TlsRecording(ends, **how)  # type: ignore[arg-type]
    for turn in turns:
        recording.say(turn.direction, turn.octets)
    return recording


class Read:
    """What a capture of these turns says; packets without those of the `shift` first turns, of the layer."""

    def __init__(
        self,
        turns: list[Turn],
        keylog: bytes = b"",
        *,
        shift: int = 0,
        segment: int = 0,
        lost: int = -1,
        ends: str = "",
    ) -> None:
        d = Conversation(segment=segment)
        packets = d.capture.packets
        before = len(packets)
        for number, turn in enumerate(turns):
            if number == shift:
                before = len(packets) - before
            peer = d.client if turn.direction == 0 else d.server
            if number == lost:
                with d.missed():
                    peer.say(turn.octets)
            else:
                peer.say(turn.octets)
        for word in ends.split():
            peer, how = word.split(".")
            getattr(d.client if peer == "client" else d.server, how)()
        self.octets = d.pcap()
        secrets = Secrets()
        secrets.take(keylog)
        options = CaptureOptions(judge=True, profile="none", secrets=secrets)
        with amqpscope.Capture(io.BytesIO(self.octets), options) as capture:
            self.records = [record for block in capture.blocks() for record in block]
            self.found = capture.take_findings()
        self.frames = [
            (
                int(one.direction),
                one.frame.name,
                int(one.frame.offset),
                int(one.frame.size),
                int(one.packet) - before,
                int(one.last_packet) - before,
                int(one.acknowledged),
                one.started,
                one.unseen,
            )
            for one in self.records
        ]
        self.findings = [
            (one.rule, one.certain, one.peer, int(one.packet) - before, one.message) for one in self.found
        ]
        self.notes = capture.notes
        self.connection = capture.connections[0].connection


def compare(turns: list[Turn], recording: TlsRecording) -> Read:
    clear = Read(turns)
    read = Read(recording.turns, recording.keylog, shift=recording.handshake)
    assert clear.findings and clear.findings[0][1]
    assert read.frames == clear.frames
    assert read.findings == clear.findings
    assert [note.detail for note in read.notes] == []
    assert not read.connection.encrypted
    return read


@pytest.mark.parametrize(("version", "suite"), EVERY)
def test_frames_and_findings_are_those_of_the_clear_twin(version: str, suite: str) -> None:
    turns = talk()
    read = compare(turns, recorded(turns, Ends.make(version, suite)))
    facts = read.connection.tls
    assert facts is not None and facts.version == f"TLS {version}" and facts.decrypted
    if version == "1.3":
        assert facts.suite == suite


@pytest.mark.parametrize("suite", ["ECDHE-RSA-AES128-SHA", "ECDHE-RSA-AES128-SHA256", "AES256-SHA"])
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2"])
def test_the_mac_before_the_encryption(version: str, suite: str) -> None:
    if version != "1.2" and suite.endswith("SHA256"):
        pytest.skip("a suite of TLS 1.2")
    turns = talk()
    compare(turns, recorded(turns, Ends.make(version, suite, etm=False)))


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_session_resumed(version: str) -> None:
    turns = talk()
    ends = Ends.make(version)
    first = recorded(turns, ends)
    second = TlsRecording(ends, session=first.session)
    assert second.peers[0].session_reused
    for turn in turns:
        second.say(turn.direction, turn.octets)
    compare(turns, second)


def test_a_hello_retry_request() -> None:
    turns = talk()
    recording = recorded(turns, Ends.make("1.3", curve="secp384r1"))
    assert bytes.fromhex("cf21ad74e59a6111") in recording.turns[1].octets
    compare(turns, recording)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_client_certificate(version: str) -> None:
    turns = talk()
    recording = recorded(turns, Ends.make(version, client_certificate=True, kind="ec", alpn="amqp"))
    facts = compare(turns, recording).connection.tls
    assert facts is not None and facts.certificate_requested and not facts.certificate_refused
    for certificate in (facts.client_certificate, facts.server_certificate):
        assert certificate is not None
        assert certificate.subject == "CN=broker.example" and certificate.names == ["broker.example"]
    assert facts.server_name == "broker.example" and facts.alpn == "amqp" and facts.offered == ["amqp"]


def test_padded_records() -> None:
    turns = talk()
    recording = recorded(turns, Ends.make("1.3", padding=256))
    assert all(len(turn.octets) > 256 for turn in recording.turns[recording.handshake :])
    compare(turns, recording)


@pytest.mark.parametrize("answered", [False, True])
def test_keys_that_are_updated(answered: bool) -> None:
    turns = talk()
    recording = TlsRecording(version="1.3")
    for number, turn in enumerate(turns):
        if number % 3 == 2:
            recording.update_keys(turn.direction, answered)
        recording.say(turn.direction, turn.octets)
    read = Read(recording.turns, recording.keylog, shift=recording.handshake)
    assert [(one[1], one[3]) for one in read.frames] == [(one[1], one[3]) for one in Read(turns).frames]


@pytest.mark.parametrize(("version", "suite"), [*MOST, *CHAINED])
@pytest.mark.parametrize("each", [1, 7, 100])
def test_records_over_segments_in_another_process(version: str, suite: str, each: int) -> None:
    """After each segment the analysis moves to another process."""
    turns = talk()
    recording = recorded(turns, Ends.make(version, suite))
    names = []
    for reload in (False, True):
        if reload and each == 1:
            continue
        harness = ConnectionHarness(reload=reload)
        harness.output.secrets.take(recording.keylog)
        for turn in recording.turns:
            harness.send(turn.direction, turn.octets, each=each)
        harness.finish()
        names.append(
            [(one.direction, one.frame.name, one.frame.offset, one.last_packet) for one in harness.out]
        )
        assert harness.connection.tls is not None and harness.connection.tls.decrypted
    assert names[0] == names[-1]
    clear = ConnectionHarness()
    for turn in turns:
        clear.send(turn.direction, turn.octets)
    clear.finish()
    assert [one[:3] for one in names[0]] == [
        (one.direction, one.frame.name, one.frame.offset) for one in clear.out
    ]


@pytest.mark.parametrize(("version", "suite"), [*MOST, *CHAINED])
def test_each_turn_lost_once(version: str, suite: str) -> None:
    """What is behind it is read, and nobody is accused of more than in the clear twin."""
    turns = talk()
    recording = recorded(turns, Ends.make(version, suite))
    shift = recording.handshake
    lacking: list[set[tuple[int, str, int]]] = []
    for lost in range(len(recording.turns)):
        read = Read(recording.turns, recording.keylog, shift=shift, lost=lost)
        clear = Read(turns, lost=lost - shift) if lost >= shift else Read(turns)
        certain = {one[:4] for one in clear.findings if one[1]}
        assert {one[:4] for one in read.findings if one[1]} <= certain, lost
        # Offsets behind a loss are not known.
        expected = {(one[0], one[1], one[4]) for one in clear.frames if one[1] != "skipped"}
        found = {(one[0], one[1], one[4]) for one in read.frames if one[1] != "skipped"}
        assert found <= expected, lost
        if lost >= shift:
            assert found == expected, lost
        else:
            lacking.append(expected - found)
    # Of the handshake only the ServerHello is needed, and before TLS 1.1 the last block.
    assert sum(not one for one in lacking) >= len(lacking) - 1


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("ends", ["client.fin", "server.fin client.fin", "client.rst", "server.rst"])
def test_the_end_of_tcp(version: str, ends: str) -> None:
    """What peers owe each other at the end is the same: an acknowledged record is acknowledged data."""
    turns = talk()[:-2]
    recording = recorded(turns, Ends.make(version))
    clear = Read(turns, ends=ends)
    read = Read(recording.turns, recording.keylog, shift=recording.handshake, ends=ends)
    assert read.findings == clear.findings


def test_a_wrong_secret() -> None:
    turns = talk()
    recording = recorded(turns, Ends.make("1.3"))
    wrong = b"\n".join(line[:-4] + b"0000" for line in recording.keylog.splitlines())
    read = Read(recording.turns, wrong, shift=recording.handshake)
    assert read.frames == [] and read.connection.encrypted
    assert [note.code for note in read.notes] == ["capture/tls"]
    assert "does not belong to this connection" in read.notes[0].detail


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_missing_secret(version: str) -> None:
    recording, other = recorded(talk(), Ends.make(version)), TlsRecording(version=version)
    read = Read(recording.turns, other.keylog, shift=recording.handshake)
    assert read.frames == [] and read.connection.protocol == "tls"
    facts = read.connection.tls
    assert facts is not None and facts.random in read.notes[0].detail
    assert "no secret" in read.notes[0].detail


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_without_secrets(version: str) -> None:
    recording = recorded(talk(), Ends.make(version))
    read = Read(recording.turns, shift=recording.handshake)
    assert read.frames == [] and read.notes == [] and read.connection.encrypted
    facts = read.connection.tls
    assert facts is not None and facts.unread == "there are no TLS secrets"
    assert (facts.server_certificate is not None) == (version == "1.2")


@pytest.mark.parametrize("segment", [0, 3])
@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_behind_the_protocol_header_for_tls(version: str, segment: int) -> None:
    """Both headers are frames, and what follows is the conversation as it is in the clear."""
    turns = talk()
    recording = recorded(turns, Ends.make(version))
    header = b"AMQP\2\1\0\0"
    whole = [Turn(0, header), Turn(1, header), *recording.turns]
    read = Read(whole, recording.keylog, segment=segment)
    clear = Read(turns, segment=segment)
    assert [one[:2] for one in read.frames] == [
        (0, "header"),
        (1, "header"),
        *(one[:2] for one in clear.frames),
    ]
    assert [one[2] for one in read.frames[2:]] == [one[2] + 8 for one in clear.frames]
    assert [one[0] for one in read.findings] == [one[0] for one in clear.findings]
    assert read.notes == [] and not read.connection.encrypted
    sealed = Read(whole)
    assert [one[1] for one in sealed.frames][:2] == ["header", "header"]
    assert sealed.connection.encrypted and {one[1] for one in sealed.frames[2:]} == {"tls"}


@pytest.mark.parametrize("suite", ["ECDHE-RSA-AES128-GCM-SHA256", "AES128-SHA"])
def test_renegotiation(suite: str) -> None:
    """TLS 1.2 agrees on other keys in the middle: what follows is read with these."""
    turns = talk()
    ends = Ends.make("1.2", suite)
    ends.server.options |= ALLOW_CLIENT_RENEGOTIATION
    recording = TlsRecording(ends)
    for turn in turns[:5]:
        recording.say(turn.direction, turn.octets)
    before = len(recording.turns)
    recording.renegotiate()
    added = len(recording.turns) - before
    assert added >= 3
    for turn in turns[5:]:
        recording.say(turn.direction, turn.octets)
    read, clear = Read(recording.turns, recording.keylog), Read(turns)
    assert [one[:4] for one in read.frames] == [one[:4] for one in clear.frames]
    assert [one[:2] for one in read.findings] == [one[:2] for one in clear.findings]
    assert read.notes == []

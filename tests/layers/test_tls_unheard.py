"""TLS whose ClientHello was not captured: decrypted where a secret of a key log opens a record."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.connection_harness import ConnectionHarness
from support.tls import Ends, TlsRecording, Turn

from amqpscope.input.key_log import tls_secrets
from amqpscope.layers.secrets import Secrets
from amqpscope.model.records import FrameRecord

from .test_tls import EVERY, recorded, talk
from .test_tls_joined import secrets_of

pytest.importorskip("cryptography")

FEW = [
    ("1.3", "TLS_AES_256_GCM_SHA384"),
    ("1.3", "TLS_CHACHA20_POLY1305_SHA256"),
    ("1.2", "ECDHE-RSA-AES128-GCM-SHA256"),
    ("1.2", "AES128-SHA256"),
    ("1.0", "AES256-SHA"),
]


def read(
    turns: list[Turn],
    keylogs: list[bytes],
    *,
    lost: tuple[int, ...] = (0,),
    syn: bool = True,
    reload: bool = False,
    each: int = 0,
    tail: int = 0,
) -> ConnectionHarness:
    """What is read where turns are lost. tail: octets of the first one that are not. syn: the beginning of
    TCP was captured; else the capture begins behind the turns that are lost.
    """
    harness = ConnectionHarness(syn=syn, reload=reload)
    if keylogs:
        harness.output.secrets = Secrets(secrets_of(*keylogs))
    for number, turn in enumerate(turns):
        if number in lost:
            kept = tail if number == 0 else 0
            harness.skip(turn.direction, len(turn.octets) - kept)
            harness.send(turn.direction, turn.octets[len(turn.octets) - kept :])
        else:
            harness.send(turn.direction, turn.octets, each=each)
    return harness.finish()


def frames(harness: ConnectionHarness) -> list[tuple[object, ...]]:
    def seen(one: FrameRecord) -> tuple[object, ...]:
        return (int(one.direction), one.frame.name, int(one.frame.offset), int(one.frame.size), one.started)

    return [seen(one) for one in harness.out]


def notes(harness: ConnectionHarness) -> list[str]:
    return [one.detail for one in harness.notes if one.code == "capture/tls"]


def others(ends: int) -> list[bytes]:
    return [
        recorded(talk()[:2], Ends.make(version)).keylog for version in ("1.3", "1.2") for _ in range(ends)
    ]


CLEAR = ConnectionHarness()
for turn in talk():
    CLEAR.send(turn.direction, turn.octets)
CLEAR.finish()


@pytest.mark.parametrize(("version", "suite"), EVERY)
def test_frames_are_those_of_the_plain_twin(version: str, suite: str) -> None:
    recording = recorded(talk(), Ends.make(version, suite))
    harness = read(recording.turns, [*others(2), recording.keylog])
    assert frames(harness) == frames(CLEAR) != []
    assert notes(harness) == []
    facts = harness.connection.tls
    assert facts is not None and facts.version == f"TLS {version}" and facts.decrypted and not facts.unread
    assert facts.random.encode() in recording.keylog
    assert harness.connection.client == 0 and not harness.connection.encrypted


@pytest.mark.parametrize(("version", "suite"), FEW)
@pytest.mark.parametrize("tail", [0, 50])
@pytest.mark.parametrize("each", [0, 60])
def test_in_pieces_and_in_another_process(version: str, suite: str, tail: int, each: int) -> None:
    recording = recorded(talk(), Ends.make(version, suite))
    harness = read(recording.turns, [*others(1), recording.keylog], tail=tail, each=each, reload=True)
    assert [one[:2] for one in frames(harness)] == [one[:2] for one in frames(CLEAR)]


@pytest.mark.parametrize(("version", "suite"), FEW)
@pytest.mark.parametrize("each", [0, 60])
def test_a_capture_that_begins_behind_it(version: str, suite: str, each: int) -> None:
    recording = recorded(talk(), Ends.make(version, suite))
    harness = read(recording.turns, [recording.keylog, *others(1)], syn=False, each=each)
    assert [one[:4] for one in frames(harness)] == [one[:4] for one in frames(CLEAR)]
    assert notes(harness) == []


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_session_resumed(version: str) -> None:
    """Before TLS 1.3 the server is the first to use the keys then."""
    ends = Ends.make(version)
    first = recorded(talk(), ends)
    second = TlsRecording(ends, session=first.session)
    assert second.peers[0].session_reused
    for turn in talk():
        second.say(turn.direction, turn.octets)
    for syn in (True, False):
        harness = read(second.turns, [second.keylog], syn=syn)
        assert [one[:4] for one in frames(harness)] == [one[:4] for one in frames(CLEAR)]


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_client_certificate(version: str) -> None:
    recording = recorded(talk(), Ends.make(version, client_certificate=True))
    for syn in (True, False):
        harness = read(recording.turns, [recording.keylog], syn=syn)
        assert [one[:4] for one in frames(harness)] == [one[:4] for one in frames(CLEAR)]


@pytest.mark.parametrize(("version", "suite"), FEW)
def test_another_turn_is_lost_too(version: str, suite: str) -> None:
    """What is behind it is read; a turn of the handshake costs no more than it does alone."""
    recording = recorded(talk(), Ends.make(version, suite))
    for number in range(2, len(recording.turns)):
        found = [one[:2] for one in frames(read(recording.turns, [recording.keylog], lost=(0, number)))]
        alone = [one[:2] for one in frames(read(recording.turns, [recording.keylog], lost=(number,)))]
        assert [one for one in found if one[1] != "skipped"] == [
            one for one in alone if one[1] != "skipped"
        ], number


@pytest.mark.parametrize(
    ("version", "wanted"),
    [
        (
            "1.3",
            "the ClientHello was not captured, and none of the secrets of 2 connections decrypts any of ",
        ),
        (
            "1.2",
            "the ClientHello was not captured, and none of the secrets of 2 connections decrypts any of ",
        ),
        (
            "1.1",
            "the ClientHello was not captured, and none of the secrets of 2 connections decrypts any of ",
        ),
    ],
)
@pytest.mark.parametrize("syn", [True, False])
def test_nothing_opens_a_record(version: str, wanted: str, syn: bool) -> None:
    recording = recorded(talk(), Ends.make(version))
    harness = read(recording.turns, others(2), syn=syn)
    assert not [one for one in frames(harness) if one[1] not in ("skipped", "tls")]
    [note] = notes(harness)
    assert note.startswith(f"TLS is not decrypted: {wanted}")
    assert harness.connection.encrypted and harness.output.secrets.joining < 20_000


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_there_are_no_secrets_of_the_version(version: str) -> None:
    recording = recorded(talk(), Ends.make(version))
    other = recorded(talk(), Ends.make("1.2" if version == "1.3" else "1.3"))
    [note] = notes(read(recording.turns, [other.keylog]))
    assert note == (
        f"TLS is not decrypted: the ClientHello was not captured, and there are no secrets of TLS {version}"
    )


@pytest.mark.parametrize(("version", "suite"), FEW)
def test_without_secrets(version: str, suite: str) -> None:
    """What the server says in the clear is known; nobody is accused."""
    recording = recorded(talk(), Ends.make(version, suite))
    for syn in (True, False):
        harness = read(recording.turns, [], syn=syn)
        facts = harness.connection.tls
        assert facts is not None and facts.version == f"TLS {version}" and not facts.decrypted
        assert facts.unread == "there are no TLS secrets" and notes(harness) == []
        assert harness.connection.encrypted and harness.connection.protocol == "tls"


def test_a_suite_that_is_not_read() -> None:
    recording = recorded(talk(), Ends.make("1.2", "AES128-SHA256"))
    hello = recording.turns[1].octets
    at = hello.index(b"\x00\x3c", 40)
    turns = [recording.turns[0], Turn(1, hello[:at] + b"\x00\x05" + hello[at + 2 :]), *recording.turns[2:]]
    assert notes(read(turns, [recording.keylog])) == [
        "TLS is not decrypted: the cipher suite TLS_RSA_WITH_RC4_128_SHA is not supported"
    ]


@pytest.mark.parametrize("version", ["1.2", "1.3"])
@pytest.mark.parametrize("late", [1, 2, 5])
def test_a_key_log_that_grows(tmp_path: Path, version: str, late: int) -> None:
    """A client writes its secrets once it has the answer of the server."""
    recording = recorded(talk(), Ends.make(version))
    path = tmp_path / "keys.txt"
    path.write_bytes(b"")
    harness = ConnectionHarness()
    harness.output.secrets = Secrets(tls_secrets([str(path)], growing=True))
    harness.skip(0, len(recording.turns[0].octets))
    for number, turn in enumerate(recording.turns[1:], 1):
        if number == late:
            path.write_bytes(recording.keylog)
        harness.send(turn.direction, turn.octets)
    harness.finish()
    assert [one[:2] for one in frames(harness)] == [one[:2] for one in frames(CLEAR)]
    assert notes(harness) == []


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_attempts_are_bounded(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr("amqpscope.layers.tls.joining.MAX_TLS_JOIN_TRIALS_ALL", 20)
    recording = recorded(talk(), Ends.make(version))
    secrets = secrets_of(*others(3))
    for _ in range(8):
        harness = ConnectionHarness()
        harness.output.secrets = secrets
        harness.skip(0, len(recording.turns[0].octets))
        for turn in recording.turns[1:]:
            harness.send(turn.direction, turn.octets)
        harness.finish()
    assert 20 <= secrets.joining < 30

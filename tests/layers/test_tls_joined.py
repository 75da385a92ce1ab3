"""TLS whose handshake was not captured: decrypted where a secret of a key log opens a record."""

from __future__ import annotations

import pytest
from support.connection_harness import ConnectionHarness
from support.tls import Ends, TlsRecording, Turn

from amqpscope.layers.secrets import Secrets
from amqpscope.layers.tls.ciphers import Traffic13
from amqpscope.layers.tls.joining import SealedRecord, candidates, joined
from amqpscope.layers.tls.suites import suite
from amqpscope.model.records import FrameRecord

from .test_tls import recorded, talk

pytest.importorskip("cryptography")


def secrets_of(*keylogs: bytes) -> Secrets:
    secrets = Secrets()
    for keylog in keylogs:
        secrets.take(keylog)
    return secrets


def joined_at(
    turns: list[Turn], secrets: Secrets | None, *, reload: bool = False, cut: int = 0, each: int = 0
) -> ConnectionHarness:
    """A capture that begins with these turns. cut: octets of the first one that were not captured, either."""
    harness = ConnectionHarness(syn=False, reload=reload)
    if secrets is not None:
        harness.output.secrets = Secrets(secrets)
    harness.sent = [100_000, 200_000]
    for number, turn in enumerate(turns):
        harness.send(turn.direction, turn.octets[cut if number == 0 else 0 :], each=each)
    return harness.finish()


def frames(harness: ConnectionHarness) -> list[tuple[object, ...]]:
    def seen(one: FrameRecord) -> tuple[object, ...]:
        place = (int(one.direction), one.frame.name, int(one.frame.offset), int(one.frame.size))
        return (*place, int(one.packet), int(one.acknowledged), one.started, one.unseen)

    return [seen(one) for one in harness.out]


@pytest.mark.parametrize(
    ("suites", "before", "reload"),
    [
        ("", 2, False),
        ("", 3, True),
        ("", 7, False),
        ("TLS_AES_128_GCM_SHA256", 7, True),
        ("TLS_CHACHA20_POLY1305_SHA256", 3, False),
    ],
)
def test_frames_are_those_of_the_plain_twin_joined_there(suites: str, before: int, reload: bool) -> None:
    recording = recorded(talk(), Ends.make("1.3", suites))
    others = [recorded(talk()[:2], Ends.make("1.3", suites)).keylog for _ in range(3)]
    turns = recording.turns[recording.handshake + before :]
    for keylogs in ([recording.keylog], [*others, recording.keylog], [recording.keylog, *others]):
        harness = joined_at(turns, secrets_of(*keylogs), reload=reload)
        assert frames(harness) == frames(joined_at(talk()[before:], None)) != []
        assert not harness.notes or "begin" not in harness.notes[-1].detail
    facts = harness.connection.tls
    assert facts is not None
    assert (facts.version, facts.decrypted, facts.unread) == ("TLS 1.3", True, "")
    assert harness.connection.client == 0 and not harness.connection.encrypted


@pytest.mark.parametrize("each", [7, 60])
def test_the_capture_begins_inside_a_record(each: int) -> None:
    """The first whole record that a segment has begins the decryption."""
    recording = recorded(talk(), Ends.make("1.3"))
    turns = recording.turns[recording.handshake + 2 :]
    harness = joined_at(turns, secrets_of(recording.keylog), cut=9)
    whole = frames(joined_at(talk()[3:], None))
    assert [one[:2] for one in frames(harness) if one[1] != "skipped"] == [one[:2] for one in whole]


@pytest.mark.parametrize(("suites", "number"), [("TLS_AES_256_GCM_SHA384", 2**40 + 5), ("", 10**9)])
def test_any_number_of_a_record_is_found(suites: str, number: int) -> None:
    recording = TlsRecording(Ends.make("1.3", suites))
    secrets = secrets_of(recording.keylog)
    record = SealedRecord(0, 0, b"", -1, False, 0, None, b"\x17\3\3\0\x18", b"")
    tried = candidates(secrets, record, b"")
    random, label, secret = tried[1]
    cipher = Traffic13(suite(0x1302), secret)
    body = cipher.aead.encrypt((cipher.iv ^ number).to_bytes(12, "big"), b"content\x17", record.header)
    found = joined(secrets, tried, record._replace(body=body))
    assert found is not None
    assert (found.random, found.label, found.content) == (random, label, b"content")
    assert found.cipher.number == number + 1
    assert joined(secrets, tried[:1], record._replace(body=body)) is None
    wrong = bytes((body[0] ^ 1,)) + body[1:]
    assert joined(secrets, tried, record._replace(body=wrong)) is None


@pytest.mark.parametrize("before", [None, b"", b"1234"])
@pytest.mark.parametrize("random", [b"", bytes(range(32))])
def test_a_record_on_its_way_to_who_has_the_secrets(before: bytes | None, random: bytes) -> None:
    record = SealedRecord(0x303, 0xC02F, random, -1, True, 32_768, before, b"\x17\3\3\0\x18", b"body")
    assert SealedRecord.unpacked(record.packed()) == record


def test_keys_that_were_updated_before(monkeypatch: pytest.MonkeyPatch) -> None:
    recording = TlsRecording(Ends.make("1.3"))
    for number, turn in enumerate(talk()):
        if number == 4:
            recording.update_keys(0)
        recording.say(turn.direction, turn.octets)
    turns = recording.turns[recording.handshake + 8 :]
    assert frames(joined_at(turns, secrets_of(recording.keylog))) == frames(joined_at(talk()[8:], None))


def test_a_segment_is_lost_behind() -> None:
    recording = recorded(talk(), Ends.make("1.3"))
    at = recording.handshake + 3
    for lost in range(1, 10):
        turns, clear = recording.turns[at:], talk()[3:]
        harnesses = []
        for of, secrets in ((turns, secrets_of(recording.keylog)), (clear, None)):
            harness = ConnectionHarness(syn=False)
            if secrets is not None:
                harness.output.secrets = secrets
            for number, turn in enumerate(of):
                if number == lost:
                    harness.skip(turn.direction, len(turn.octets))
                else:
                    harness.send(turn.direction, turn.octets)
            harnesses.append(harness.finish())
        assert [one[:2] for one in frames(harnesses[0])] == [one[:2] for one in frames(harnesses[1])]


def test_nothing_opens_a_record() -> None:
    recording = recorded(talk(), Ends.make("1.3"))
    other = TlsRecording(Ends.make("1.3"))
    turns = recording.turns[recording.handshake + 3 :]
    harness = joined_at(turns, secrets_of(other.keylog))
    assert frames(harness) == [] and harness.connection.encrypted
    [note] = [one for one in harness.notes if one.code == "capture/tls"]
    assert note.detail == (
        "TLS is not decrypted: the beginning of the connection was not captured, and none of the secrets of "
        "1 connection decrypts any of 4 records; for TLS 1.2 and older versions, "
        "amqpscope needs the handshake"
    )
    assert harness.output.secrets.joining < 200_000


def test_before_tls_13_the_handshake_is_needed() -> None:
    recording = recorded(talk(), Ends.make("1.2"))
    harness = joined_at(recording.turns[recording.handshake + 3 :], secrets_of(recording.keylog))
    assert frames(harness) == []
    [note] = [one for one in harness.notes if one.code == "capture/tls"]
    assert "there are no secrets of TLS 1.3; for TLS 1.2 and older versions" in note.detail


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_only_the_handshake_of_tcp_is_missing(version: str) -> None:
    recording = recorded(talk(), Ends.make(version))
    harness = joined_at(recording.turns, secrets_of(recording.keylog))
    assert [one[:4] for one in frames(harness)] == [one[:4] for one in frames(joined_at(talk(), None))]


def test_attempts_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Very many connections that cannot be joined cost as many attempts as the bound allows."""
    monkeypatch.setattr("amqpscope.layers.tls.joining.MAX_TLS_JOIN_TRIALS_ALL", 20)
    recording = recorded(talk(), Ends.make("1.3"))
    turns = recording.turns[recording.handshake + 3 :]
    secrets = secrets_of(TlsRecording(Ends.make("1.3")).keylog)
    for _ in range(3):
        harness = ConnectionHarness(syn=False)
        harness.output.secrets = secrets
        for turn in turns:
            harness.send(turn.direction, turn.octets)
        harness.finish()
    assert 20 <= secrets.joining < 30


def test_plain_traffic_with_a_key_log_is_read_as_before() -> None:
    secrets = secrets_of(TlsRecording(Ends.make("1.3")).keylog)
    for before in (0, 3, 7):
        assert frames(joined_at(talk()[before:], secrets)) == frames(joined_at(talk()[before:], None))

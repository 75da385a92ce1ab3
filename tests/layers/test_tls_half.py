"""TLS of which only one direction can be decrypted: the other one is not taken for silent."""

from __future__ import annotations

import pytest
from support.connection_harness import ConnectionHarness
from support.diagnosed import diagnosed
from support.dialogue import Dialogue
from support.tls import Ends, TlsRecording, Turn

from amqpscope.layers.secrets import Secrets, SecretsSource

from .test_lost_segments import talk091, talk10
from .test_tls import Read, recorded, talk
from .test_tls_secrets import capture_of

pytest.importorskip("cryptography")

TALKS = {"1.0": talk10, "0-9-1": talk091, "in the middle": lambda: talk()[:9]}


def without(keylog: bytes, label: str) -> bytes:
    lines = [line for line in keylog.splitlines() if not line.startswith(label.encode())]
    assert len(lines) < len(keylog.splitlines())
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize("peer", ["CLIENT", "SERVER"])
@pytest.mark.parametrize("name", TALKS)
def test_nobody_is_accused_for_what_is_not_read(name: str, peer: str) -> None:
    turns = TALKS[name]()
    recording = recorded(turns, Ends.make("1.3"))
    keylog = without(recording.keylog, f"{peer}_TRAFFIC_SECRET_0")
    read, clear = Read(recording.turns, keylog, shift=recording.handshake), Read(turns)
    assert {one[:3] for one in read.findings if one[1]} <= {one[:3] for one in clear.findings}
    shown = 1 if peer == "CLIENT" else 0
    assert [one[1:4] for one in read.frames if one[0] == shown] == [
        one[1:4] for one in clear.frames if one[0] == shown
    ]
    assert {one[1] for one in read.frames if one[0] != shown} <= {"skipped"}
    [note] = [one.detail for one in read.notes]
    facts = read.connection.tls
    assert facts is not None and facts.decrypted
    assert note == (
        f"TLS is not decrypted: there is no secret {peer}_TRAFFIC_SECRET_0 "
        f"for the client random {facts.random}"
    )


@pytest.mark.parametrize("reload", [False, True])
def test_the_direction_that_is_not_read_speaks_first(reload: bool) -> None:
    """What it said before anything was decrypted is missing, too."""
    recording = recorded(talk(), Ends.make("1.3"))
    harness = ConnectionHarness(reload=reload)
    harness.output.secrets = Secrets()
    harness.output.secrets.take(without(recording.keylog, "CLIENT_TRAFFIC_SECRET_0"))
    for turn in recording.turns:
        harness.send(turn.direction, turn.octets, each=60)
    harness.finish()
    of_server = [one for one in harness.out if one.direction == 1]
    assert of_server and all(one.unseen for one in of_server)


def test_no_diagnosis_of_what_was_not_said() -> None:
    """A client whose choice of a mechanism cannot be read has not refused to choose."""
    d = Dialogue()
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms("ANONYMOUS")
    turns = [Turn(0 if said.peer is d.client else 1, said.octets) for said in d.said if said.octets]
    turns += [Turn(0, b"\0\0\0\x10\2\1\0\0\0\x53\x41\xd0\0\0\0\0"), Turn(0, b"AMQP\0\1\0\0")]
    recording = TlsRecording(Ends.make("1.3"))
    for turn in turns:
        recording.say(turn.direction, turn.octets)
    capture = capture_of(recording)
    capture.client.fin()
    secrets = Secrets()
    secrets.take(without(recording.keylog, "CLIENT_TRAFFIC_SECRET_0"))
    found = [one.code for one in diagnosed(capture.pcap(), secrets=secrets)]
    assert found == []


class Late(SecretsSource):
    """Has its secrets only when it is asked for the second time."""

    def __init__(self, keylog: bytes) -> None:
        super().__init__()
        self.keylog = keylog
        self.asked = 0

    def look_further(self, secrets: Secrets, random: bytes) -> bool:
        self.asked += 1
        return self.asked > 1 and secrets.take(self.keylog) > 0


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_secret_that_comes_while_it_is_looked_for(version: str) -> None:
    """The log has no secret, and has it a moment later: the records wait for it like for any other."""
    recording = recorded(talk(), Ends.make(version))
    harness = ConnectionHarness()
    secrets = harness.output.secrets = Secrets()
    secrets.given = secrets.growing = True
    secrets.sources.append(Late(recording.keylog))
    for turn in recording.turns:
        harness.send(turn.direction, turn.octets)
    harness.finish()
    assert harness.notes == []
    assert [one.frame.name for one in harness.out] == [one[1] for one in Read(talk()).frames]


@pytest.mark.parametrize("cut", [1, 2, 40, 65, 95])
def test_a_line_that_is_not_whole(cut: int) -> None:
    """What there is of a secret is none."""
    secrets = Secrets()
    line = b"CLIENT_RANDOM " + b"ab" * 32 + b" " + b"cd" * 48
    assert secrets.take(line[:-cut]) == 0 and secrets.take(line) == 1

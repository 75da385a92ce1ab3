"""A suite as users of the fixture write them. `test_recording_plugin.py` runs it where it may capture."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest
from support.loopback import Segments, conversation
from support.replayed import replay, replaying

from amqpscope.capture.reader import for_magic
from amqpscope.pytest_plugin import recording as recording_module

CAPTURES = Path(os.environ["CAPTURES"])
FINE = CAPTURES / "demo.pcap"
BROKEN = CAPTURES / "rhea-transfer-before-attach.pcap"
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
PORT = 5672 + int(WORKER.removeprefix("gw"))


def segments(path: Path) -> Segments:
    sink = Segments()
    content = path.read_bytes()
    reader = for_magic(content, sink)
    assert reader is not None
    reader.feed(content)
    reader.finish()
    assert sink.notes == []
    return sink


def test_passes(amqp_capture) -> None:
    with amqp_capture.record(PORT) as recording:
        replay(FINE, port=PORT)
    assert recording.path.stat().st_size > 1000
    assert recording.findings == []


def test_fails(amqp_capture) -> None:
    with amqp_capture.record(PORT):
        replay(BROKEN, port=PORT)
    raise AssertionError("the block has failed")


def test_finds_what_it_tolerates(amqp_capture) -> None:
    with amqp_capture.record(PORT, fail_on="never") as recording:
        replay(BROKEN, port=PORT)
    rules = {finding.rule for finding in recording.findings if finding.certain}
    assert rules == {"amqp10/L-DC-UNSET", "amqp10/L-UNATTACHED-TRANSFER"}


def test_allows(amqp_capture) -> None:
    with amqp_capture.record(PORT, allow=["L-DC-UNSET", "amqp10/L-UN*-TRANSFER"]):
        replay(BROKEN, port=PORT)


def test_fails_itself(amqp_capture) -> None:
    with amqp_capture.record(PORT):
        replay(BROKEN, port=PORT)
        assert "sold" == "bought"


def test_skips_itself(amqp_capture) -> None:
    with amqp_capture.record(PORT):
        replay(BROKEN, port=PORT)
        pytest.skip("of its own accord")


def test_says_nothing(amqp_capture) -> None:
    with amqp_capture.record(PORT):
        replay(FINE, port=PORT + 1000)


def test_may_say_nothing(amqp_capture) -> None:
    with amqp_capture.record(PORT, allow_empty=True):
        pass


def test_any_port(amqp_capture) -> None:
    with amqp_capture.record(None) as recording:
        replay(FINE, port=PORT + 1000)
    assert recording.findings == []


def test_several_ports(amqp_capture) -> None:
    with amqp_capture.record([PORT, PORT + 1000], fail_on="never") as recording:
        replay(FINE, port=PORT)
        replay(BROKEN, port=PORT + 1000)
    assert recording.findings


def test_several_recordings(amqp_capture) -> None:
    with amqp_capture.record(PORT) as first:
        replay(FINE, port=PORT)
    with amqp_capture.record(PORT) as second, amqp_capture.record(PORT + 1000) as third:
        replay(FINE, port=PORT)
        replay(FINE, port=PORT + 1000)
    assert len({first.path, second.path, third.path}) == 3
    for recording in (first, second, third):
        assert len({port for port, *_ in segments(recording.path).all}) == 2


def test_both_recordings_fail(amqp_capture) -> None:
    with amqp_capture.record(PORT), amqp_capture.record(PORT + 1000):
        replay(BROKEN, port=PORT)
        replay(BROKEN, port=PORT + 1000)


@pytest.mark.parametrize("said", [3, 8, 12, 20])
def test_open_at_the_end(amqp_capture, said: int) -> None:
    with amqp_capture.record(PORT, strict=True) as recording:
        talk = replaying(FINE, said, port=PORT)
        talk.__enter__()
    talk.__exit__(None, None, None)
    assert recording.findings == []


def test_open_before(amqp_capture) -> None:
    talk = replaying(FINE, 20, port=PORT)
    talk.__enter__()
    with amqp_capture.record(PORT, strict=True) as recording:
        talk.__exit__(None, None, None)
    assert recording.findings == []


def test_teardown_of_a_fixture(recorded) -> None:
    replay(BROKEN, port=PORT)


@pytest.fixture
def recorded(amqp_capture):
    with amqp_capture.record(PORT) as recording:
        yield recording


def test_never_ended(amqp_capture) -> None:
    amqp_capture.record(PORT).__enter__()
    replay(BROKEN, port=PORT)


@pytest.mark.parametrize("turn", range(5))
def test_every_octet_up_to_the_end(amqp_capture, turn: int) -> None:
    """A socket that nobody reads: what was said stands in the kernel when the block ends at once."""
    said = bytes(range(256)) * 1000 * (turn + 1)
    with socket.create_server(("127.0.0.1", PORT)) as server, socket.socket() as client:
        with amqp_capture.record(PORT, allow_empty=True) as recording:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # what is said is sent at once
            client.connect(server.getsockname())
            accepted, _ = server.accept()
            port = client.getsockname()[1]
            sending = threading.Thread(target=client.sendall, args=(said,))
            sending.start()
            missing = len(said)
            while missing:
                missing -= len(accepted.recv(65536))
            sending.join()
            client.sendall(b"the last word")
        accepted.close()
    seen = segments(recording.path)
    assert seen.octets_from(port) == said + b"the last word"


def test_much_waits_at_the_end(amqp_capture, monkeypatch) -> None:
    """The thread did not get to run before: all of it is in the kernel's buffer, more than one take takes."""
    taking = recording_module.PacketRecording._take

    def late(packets, seconds):
        assert packets._stopping.wait(60)
        return taking(packets, seconds)

    monkeypatch.setattr(recording_module.PacketRecording, "_take", late)
    said = bytes(range(256)) * 32_000
    with amqp_capture.record(PORT, allow_empty=True) as recording:
        port, _ = conversation(said, port=PORT)
    assert segments(recording.path).octets_from(port) == said


def test_loses(amqp_capture, monkeypatch) -> None:
    """Too little memory, and nobody to empty it."""
    monkeypatch.setattr(recording_module, "TEST_RING", 1024 * 1024)
    taking = recording_module.PacketRecording._take
    release = threading.Event()

    def late(packets, seconds):
        assert release.wait(60)
        return taking(packets, seconds)

    monkeypatch.setattr(recording_module.PacketRecording, "_take", late)
    with amqp_capture.record(PORT, allow_empty=True):
        conversation(b"x" * 30_000_000, port=PORT)
        release.set()
        replay(FINE, port=PORT)


def test_folder_is_gone(amqp_capture, tmp_path) -> None:
    with amqp_capture.record(PORT, interface="nonesuch"):
        pass

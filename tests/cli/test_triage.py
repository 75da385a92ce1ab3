"""`amqpscope triage`: the worst first, whose move it is, and the next command, in at most fifteen lines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support import amqp10_encode as amqp
from support.commands import DEMO, Result, amqpscope, unprintable
from support.conversation import Conversation
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.dialogue091 import Dialogue091
from support.tcp_writer import Capture

from amqpscope.report.triage import MOST_LINES

ROOT = DEMO.parent
DIAGNOSES = ROOT / "rules" / "diag"


def triage(capsys: pytest.CaptureFixture[str], folder: Path, d: Conversation | bytes) -> Result:
    path = folder / "traffic.pcap"
    path.write_bytes(d if isinstance(d, bytes) else d.pcap())
    return amqpscope(capsys, "triage", path)


def starved(d: Dialogue, name: str = "rx") -> int:
    """The receiver does not renew its credit for 30 s; gives the packet that used it up."""
    d.begun()
    d.client.attach(RECEIVER, name=name)
    d.server.attach(SENDER, name=name)
    d.client.flow(handle=0, link_credit=1)
    last: int = d.packet_number(d.server.transfer(settled=True))
    for _ in range(3):
        d.wait(seconds=10)
        d.client.empty()
        d.server.empty()
    return last


def test_it_names_who_waits_and_the_next_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    d = Dialogue()
    last = starved(d)
    result = triage(capsys, tmp_path, d)
    assert (result.status, result.err) == (0, "")
    head, server, client, trouble, advice, following = result.lines
    assert head.startswith(f"{tmp_path / 'traffic.pcap'}: 1 trouble in ")
    assert server.startswith("server 10.0.0.2:5672 ") and server.endswith(", AMQP 1.0")
    assert client.startswith("  1 connection by ")
    assert trouble.startswith("1. the client has to act: link ") and trouble.endswith("[diag/credit-starved]")
    assert advice.startswith("   The client can: ")
    assert following == f"next: amqpscope why {tmp_path / 'traffic.pcap'} {last}"


def test_a_violation_that_was_answered_comes_before_diagnoses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = Dialogue()
    starved(d)
    d.client.transfer(handle=7)
    d.server.close(error="amqp:session:unattached-handle")
    lines = triage(capsys, tmp_path, d).lines
    troubles = [line for line in lines if line[:2] in ("1.", "2.")]
    assert troubles[0].startswith("1. the client breaks a rule: ")
    assert "; the server answered close amqp:session:unattached-handle in packet" in troubles[0]
    assert "[diag/credit-starved]" in troubles[1]


def test_the_violations_by_one_peer_of_a_connection_are_one_trouble(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = amqpscope(capsys, "triage", ROOT / "pika-channel-errors.pcap").lines
    first, possible = [line for line in lines if line[0].isdigit()]
    assert first.startswith(
        "1. connection 0 (shop): the client breaks 3 rules: basic.consume names queue 'missing'"
    )
    assert first.endswith(" and 2 more on this connection (packets 82, 96) [amqp091/B-CONSUME-QEXIST]")
    assert possible.startswith("2. connection 0 (shop): the client may break 3 rules: ")


def test_each_connection_comes_before_a_second_trouble_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = Capture()
    d = Dialogue(capture=capture)
    starved(d)
    d.client.transfer(handle=7)
    d.server.close(error="amqp:session:unattached-handle")
    e = Dialogue(capture=capture, client="10.0.0.1:51999")
    e.begun()
    e.client.attach(SENDER)
    e.server.attach(RECEIVER)
    e.client.transfer(settled=True)
    lines = triage(capsys, tmp_path, capture.pcap()).lines
    assert [line.split(" (")[0] for line in lines if line[0].isdigit()] == [
        "1. connection 0",
        "2. connection 1",
        "3. connection 0",
    ]


@pytest.mark.parametrize(
    ("name", "packet"), [("pika-channel-errors", 56), ("rhea-transfer-before-attach", 17)]
)
def test_all_commands_begin_at_the_first_error_that_was_answered(
    capsys: pytest.CaptureFixture[str], name: str, packet: int
) -> None:
    path = ROOT / f"{name}.pcap"
    assert amqpscope(capsys, "triage", path).lines[-1] == f"next: amqpscope why {path} {packet}"
    assert f"  next: amqpscope why {path} {packet}" in amqpscope(capsys, "summary", path).lines
    checked = [line for line in amqpscope(capsys, "check", path).lines if "next" in line]
    assert checked and {line.split()[-1] for line in checked} == {str(packet)}


def test_a_reaction_before_the_late_frame_is_no_effect_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines = amqpscope(capsys, "triage", ROOT / "amqplib-server-stalled.pcap").lines
    (line,) = [line for line in lines if line.startswith("1. ")]
    assert "(packet 25; the client had given up in packet 23)" in line


def test_a_close_that_no_rule_explains_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    d = Dialogue()
    d.begun()
    d.server.close(error="amqp:internal-error")
    d.client.close()
    lines = triage(capsys, tmp_path, d).lines
    (line,) = [line for line in lines if line.startswith("1. ")]
    assert line.startswith("1. server closed: amqp:internal-error")
    assert line.endswith("[no rule and no diagnosis explains it]")
    assert lines[-1].startswith("next: amqpscope why --end ") and lines[-1].endswith(" --connection 0")


def test_an_error_that_nothing_explains_is_shown_with_its_connection(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = amqpscope(capsys, "triage", ROOT / "pika-connection-errors.pcap").lines
    assert [line[3:].rstrip() for line in lines if "server closed: " in line] == [
        "connection 1 (shop): server closed: 540:not-implemented, packet 36: "
        '"NOT_IMPLEMENTED - active=false" caused by channel.flow',
        "connection 2 (shop): server closed: 540:not-implemented, packet 55: "
        '"NOT_IMPLEMENTED - prefetch_size!=0 (1000)" caused by basic.qos',
    ]


def test_ends_whose_texts_differ_in_a_name_only_are_one_trouble(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = Capture()
    for port in (51000, 51001):
        d = Dialogue091(capture=capture, client=f"10.0.0.1:{port}")
        d.opened()
        d.server.close_connection(541, f"INTERNAL_ERROR - job '{port}' failed")
        d.client.connection_close_ok()
    lines = triage(capsys, tmp_path, capture.pcap()).lines
    (line,) = [line for line in lines if line[0].isdigit()]
    assert "\"INTERNAL_ERROR - job '51000' failed\" (and 1 more like this)" in line


def test_the_summary_shows_the_method_that_a_close_names(capsys: pytest.CaptureFixture[str]) -> None:
    lines = amqpscope(capsys, "summary", ROOT / "pika-connection-errors.pcap").lines
    assert any(line.endswith('"NOT_IMPLEMENTED - active=false" caused by channel.flow') for line in lines)


def test_where_nothing_is_wrong_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "triage", DEMO)
    assert (result.status, result.err) == (0, "")
    assert result.lines[0].endswith(": nothing wrong was found in 44 frames on 1 connection")
    assert result.lines[-1] == f"next: amqpscope summary {DEMO}"


def test_where_nothing_is_wrong_what_is_good_to_know_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    lines = amqpscope(capsys, "triage", DIAGNOSES / "proxy-header" / "troubled.pcap").lines
    assert "nothing wrong was found" in lines[0]
    assert any(line.startswith("nobody has to act: a PROXY header") for line in lines)


def test_an_error_by_name_comes_before_an_end_without_a_close(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = Dialogue091()
    d.opened()
    d.channel(1)
    d.client.publish(exchange="nope")
    d.server.close_channel(404, "NOT_FOUND - no exchange 'nope' in vhost '/'", "basic.publish")
    d.client.channel_close_ok()
    d.client.fin()
    lines = triage(capsys, tmp_path, d).lines
    rules = [line.rpartition("[")[2] for line in lines if line[0].isdigit()]
    assert rules == ["amqp091/B-PUBLISH-XEXIST]", "amqp091/C-CLOSE-HANDSHAKE]"]


def test_a_trouble_of_many_connections_leads_to_the_summary(capsys: pytest.CaptureFixture[str]) -> None:
    path = DIAGNOSES / "connection-churn" / "troubled.pcap"
    assert amqpscope(capsys, "triage", path).lines[-1] == f"next: amqpscope summary {path}"


def test_the_same_on_many_connections_is_one_trouble(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = Capture()
    for port in range(5):
        tcp = capture.connection(client=f"10.0.0.1:{51000 + port}")
        tcp.handshake()
        tcp.client.send(b"GET / HTTP/1.1\r\n\r\n")
        tcp.server.send(amqp.AMQP_HEADER)
        tcp.goodbye()
    lines = triage(capsys, tmp_path, capture.pcap()).lines
    troubles = [line for line in lines if line[0].isdigit()]
    assert len(troubles) == 2
    assert all("(and 4 more like this)" in line for line in troubles)


def test_a_server_with_several_names_is_shown_with_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = Capture()
    for port, name in ((51000, "one"), (51001, "two"), (51002, "two")):
        d = Dialogue(capture=capture, client=f"10.0.0.1:{port}")
        d.server.introduction["container_id"] = name
        d.begun()
    lines = triage(capsys, tmp_path, capture.pcap()).lines
    assert lines[1] == "server 10.0.0.2:5672 two on 2 connections, one on 1 connection, AMQP 1.0"


def test_a_client_without_a_name_is_shown_with_its_address(capsys: pytest.CaptureFixture[str]) -> None:
    path = DIAGNOSES / "login-refused" / "troubled.pcap"
    first = amqpscope(capsys, "summary", path).lines[1]
    assert first.startswith(
        "conn 0: the client Pika Python Client Library 1.3.2 at 10.0.0.1:51034 has to act: "
    )


def test_a_capture_without_amqp(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capture = Capture()
    tcp = capture.connection(server="10.0.0.2:5671")
    tcp.handshake()
    tcp.client.send(b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00")
    tcp.server.send(b"\x16\x03\x03\x00\x05\x02\x00\x00\x01\x00")
    result = triage(capsys, tmp_path, capture.pcap())
    path = tmp_path / "traffic.pcap"
    why = f"{path}: no AMQP 1.0 or 0-9-1 to read: 1 TCP connection, 1 of TLS (encrypted)"
    assert (result.status, result.err) == (3, f"amqpscope: {why}\n")
    assert result.lines[0] == f"{path}: nothing to read"
    assert result.lines[-1].startswith("next: amqpscope triage --tls-keylog KEYS ")
    assert amqpscope(capsys, "triage", "--allow-empty", tmp_path / "traffic.pcap").status == 0


def test_a_protocol_that_is_not_amqp_is_a_trouble(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = amqpscope(capsys, "triage", ROOT / "pika-tls-to-plain-port.pcap")
    assert result.status == 3
    assert "no AMQP 1.0 or 0-9-1 to read: 1 TCP connection, " in result.err
    assert any("[diag/wrong-port]" in line for line in result.lines)


def test_a_file_that_is_no_capture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = triage(capsys, tmp_path, b"no capture")
    assert (result.status, result.out) == (2, "")
    assert result.err.endswith("not a capture file (neither pcap nor pcapng)\n")


def test_a_truncated_capture_is_read_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    d = Dialogue()
    starved(d)
    octets = d.pcap()
    result = triage(capsys, tmp_path, octets[:-10])
    assert any("[diag/credit-starved]" in line for line in result.lines)
    assert any(line.startswith("note: capture/truncated") for line in result.lines)


NAME = "\x1b[31mred\nlink\u202e" + "x" * 300


def test_names_from_the_wire_stay_on_their_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    d = Dialogue()
    starved(d, NAME)
    for columns in (None, "80"):
        if columns:
            monkeypatch.setenv("COLUMNS", columns)
            monkeypatch.setenv("TERM", "xterm")
            monkeypatch.setenv("NO_COLOR", "1")
            monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        result = triage(capsys, tmp_path, d)
        assert unprintable(result.out) == []
        assert len(result.lines) <= MOST_LINES


def test_it_never_takes_more_than_fifteen_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for path in sorted(ROOT.glob("*.pcap")):
        lines = amqpscope(capsys, "triage", path).lines
        assert 0 < len(lines) <= MOST_LINES, path

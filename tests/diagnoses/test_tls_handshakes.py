"""Handshakes of TLS that stop: who waited for whom, and when nothing is said about that."""

from __future__ import annotations

import io

import pytest
from scenarios.diagnoses.openings import _answer, _hello, _record
from support.conversation import Conversation
from support.dialogue import Dialogue

import amqpscope

CLIENT_WAITS = "the client waited {} for the answer to the ClientHello of the TLS handshake from the server"
SERVER_WAITS = "the server waited {} for the next part of the TLS handshake from the client"


def stalls(d: Conversation) -> list[str]:
    return [one.message for one in amqpscope.diagnose(io.BytesIO(d.pcap())) if one.code == "diag/tls-stalled"]


def begun() -> Dialogue:
    d = Dialogue(server="10.0.0.2:5671")
    _hello(d)
    return d


@pytest.mark.parametrize("ends", ["client", "server", ""])
def test_the_server_does_not_answer(ends: str) -> None:
    d = begun()
    d.server.acknowledge()
    d.wait(seconds=8)
    if ends == "client":
        d.client.end.fin()
        assert stalls(d) == [
            CLIENT_WAITS.format("8.00 s") + ", and then the client closed the TCP connection"
        ]
    elif ends == "server":
        d.server.end.fin()
        assert stalls(d) == []  # an end without an answer has its own diagnosis
    else:
        d.client.acknowledge()
        assert stalls(d) == [CLIENT_WAITS.format("8.00 s")]


@pytest.mark.parametrize("seconds", [2, 4])
def test_how_long_a_wait_is(seconds: float) -> None:
    d = begun()
    _answer(d)
    d.client.acknowledge()
    d.wait(seconds=seconds)
    d.server.end.fin()
    ends = ", and then the server closed the TCP connection"
    assert stalls(d) == ([SERVER_WAITS.format("4.00 s") + ends] if seconds == 4 else [])


def test_a_peer_that_was_not_captured_is_not_accused() -> None:
    """Whether the server was there is not known: nothing shows that it has the ClientHello."""
    d = begun()
    d.wait(seconds=8)
    d.client.end.fin()
    assert stalls(d) == []


@pytest.mark.parametrize("version", [b"", b"\0\x2b\0\x02\x03\x04"])
def test_a_handshake_that_is_complete(version: bytes) -> None:
    """What follows is application data, of which nothing is known."""
    d = begun()
    if version:
        hello = b"\x03\x03" + b"\x22" * 32 + b"\0" + b"\x13\x01" + b"\0" + b"\0\x06" + version
        d.server.say(_record(22, b"\x02" + len(hello).to_bytes(3, "big") + hello))
        d.server.say(_record(23, b"\x44" * 600))
        d.client.say(_record(20, b"\x01") + _record(23, b"\x33" * 60))
    else:
        _answer(d)
        for peer in (d.client, d.server):
            peer.say(_record(20, b"\x01") + _record(22, b"\x33" * 40))
    d.wait(seconds=60)
    d.server.end.rst()
    assert stalls(d) == []


def test_tls_13_before_the_clients_part() -> None:
    d = begun()
    hello = b"\x03\x03" + b"\x22" * 32 + b"\0" + b"\x13\x01" + b"\0" + b"\0\x06\0\x2b\0\x02\x03\x04"
    d.server.say(_record(22, b"\x02" + len(hello).to_bytes(3, "big") + hello) + _record(23, b"\x44" * 600))
    d.client.acknowledge()
    d.wait(seconds=5)
    d.server.end.rst()
    assert stalls(d) == [SERVER_WAITS.format("5.00 s") + ", and then the server reset the TCP connection"]


def test_an_alert_says_more() -> None:
    d = begun()
    _answer(d)
    d.client.acknowledge()
    d.wait(seconds=5)
    d.server.say(_record(21, b"\x02\x28"))
    d.server.end.fin()
    assert stalls(d) == []


def test_octets_of_the_handshake_are_missing() -> None:
    d = begun()
    with d.missed():
        _answer(d)
    d.server.say(_record(22, b"\x0e\0\0\0"))
    d.client.acknowledge()
    d.wait(seconds=9)
    d.server.end.fin()
    assert stalls(d) == []


@pytest.mark.parametrize("captured", [False, True])
@pytest.mark.parametrize("ends", ["fin", "rst"])
def test_an_answer_that_was_not_captured(ends: str, captured: bool) -> None:
    """The client acknowledges octets of the server: it was answered."""
    d = begun()
    if captured:
        d.server.acknowledge()
    else:
        with d.missed():
            _answer(d)
        d.client.acknowledge()
    getattr(d.server.end, ends)()
    found = amqpscope.diagnose(io.BytesIO(d.pcap()))
    assert [one.code for one in found] == (["diag/tls-unanswered"] if captured else [])

"""TLS that ends in the proxy, on either side: the same octets, recorded in clear."""

from __future__ import annotations

import asyncio
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from support.proxied import Peer, Proxied
from support.tls import credentials

from amqpscope.capture.proxy.encryption import client_context, server_context
from amqpscope.errors import FilterError

OCTETS = bytes(range(256)) * 1500


class Broker(Proxied):
    """The target has the name that its certificate has."""

    def __init__(self, **options: Any) -> None:
        super().__init__(target=("broker.example", 5671), **options)

        async def addresses(*_: object) -> list[Any]:
            await asyncio.sleep(0)
            return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", self.target)]

        self.source._addresses = addresses  # type: ignore[method-assign]


def encrypted(proxied: Proxied, peer: Peer, context: ssl.SSLContext, name: str | None) -> Peer:
    """A peer that speaks TLS from now on."""
    raw = peer.raw
    made = context.wrap_socket(
        raw, server_side=name is None, server_hostname=name, do_handshake_on_connect=False
    )
    peer.raw = made

    def shaken() -> bool:
        try:
            made.do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        return True

    peer.reading = False
    waits = proxied._peers
    waits.remove(peer)
    proxied.until(shaken)
    waits.append(peer)
    peer.reading = True
    return peer


def server_tls() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(credentials())
    return context


def test_to_the_target() -> None:
    proxied = Broker(to_tls=client_context(credentials(), None, None, False))
    names: list[str] = []
    context = server_tls()
    context.sni_callback = lambda _, name, __: names.append(str(name))
    with proxied:
        server = encrypted(proxied, proxied.server, context, None)
        proxied.client.give(OCTETS)
        server.give(b"early")
        proxied.until(lambda: server.got == OCTETS and proxied.client.got == b"early")
        # One half ends, the other half goes on.
        proxied.client.end()
        proxied.until(lambda: server.ended == "FIN")
        server.give(OCTETS)
        server.end()
        proxied.until(lambda: proxied.client.ended == "FIN")
        assert proxied.client.got == b"early" + OCTETS
        streams = proxied.streams
    assert names == ["broker.example"]
    assert streams.octets == [OCTETS, b"early" + OCTETS]
    assert streams.ended == ["FIN", "FIN"]


def test_with_the_client() -> None:
    with Proxied(listen_tls=server_context(credentials(), None)) as proxied:
        trusting = ssl.create_default_context(cafile=credentials())
        client = encrypted(proxied, proxied.client, trusting, "broker.example")
        client.give(OCTETS)
        proxied.server.give(OCTETS)
        proxied.until(lambda: proxied.server.got == OCTETS == client.got)
        proxied.until(lambda: proxied.streams.acknowledged == [len(OCTETS)] * 2)
        proxied.server.end()
        proxied.until(lambda: client.ended == "FIN")
        client.reset()
        proxied.until(lambda: proxied.server.ended == "FIN" or not proxied.source._relays)
        assert proxied.streams.octets == [OCTETS, OCTETS]


@pytest.mark.parametrize("insecure", [False, True])
def test_a_target_that_nobody_trusts(insecure: bool) -> None:
    proxied = Broker(to_tls=client_context(None, None, None, insecure))
    with proxied:
        peer = proxied.server
        raw = server_tls().wrap_socket(peer.raw, server_side=True, do_handshake_on_connect=False)
        peer.raw = raw
        proxied._peers.remove(peer)
        failed: list[ssl.SSLError] = []

        def over() -> bool:
            try:
                raw.do_handshake()
            except ssl.SSLWantReadError:
                return False
            except OSError as error:
                failed.append(error)  # type: ignore[arg-type]
            return True

        proxied.until(over)
        proxied._peers.append(peer)
        if insecure:
            proxied.client.give(b"hello")
            proxied.until(lambda: peer.got == b"hello")
        else:
            proxied.until(lambda: proxied.client.ended == "RST" and bool(proxied.events))
            assert proxied.events == [
                "TLS with broker.example:5671 failed: the certificate is not trusted: self-signed certificate"
            ]
            assert proxied.streams.ended == ["", "RST"]


def test_a_client_that_speaks_no_tls() -> None:
    with Proxied(listen_tls=server_context(credentials(), None)) as proxied:
        proxied.client.give(b"AMQP\0\1\0\0")
        proxied.until(lambda: proxied.client.ended != "" and bool(proxied.events))
        assert proxied.events[0].startswith("TLS with 127.0.0.1:")
        assert proxied.events[0].endswith(" failed: wrong version number")
        assert proxied.streams.ended == ["RST", ""]


def test_many_clients_that_fail_alike_are_counted() -> None:
    with Proxied(listen_tls=server_context(credentials(), None)) as proxied:
        clients = [proxied.client, *(proxied.connect() for _ in range(7))]
        for client in clients:
            client.give(b"AMQP\0\1\0\0")
        proxied.until(lambda: all(client.ended for client in clients) and bool(proxied.events))
        proxied.source.report_rest()
        proxied.until(lambda: len(proxied.events) == 2)
        assert proxied.events[0].startswith("TLS with 127.0.0.1:")
        assert proxied.events[0].endswith(" failed: wrong version number")
        assert proxied.events[1] == "TLS with clients failed: wrong version number (7 more times)"


def test_a_client_that_begins_tls_is_one_connection() -> None:
    """It is being opened and has a relay, but counts once."""
    proxied = Proxied(listen_tls=server_context(credentials(), None), connections=2)
    with proxied:
        other = proxied.connect()
        proxied.until(lambda: len(proxied.source._relays) == 2)
        assert proxied.events == [] and other.ended == ""


def test_secrets_are_not_written_where_an_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "none" / "keys"))
    client_context(None, None, None, True)
    client_context(credentials(), None, None, False)
    server_context(credentials(), None)


def test_files_without_a_certificate() -> None:
    with pytest.raises(FilterError, match=r"^--listen-tls none\.pem: No such file or directory$"):
        server_context("none.pem", None)
    with pytest.raises(FilterError, match=r"^--to-ca none\.pem: No such file or directory$"):
        client_context("none.pem", None, None, False)
    with pytest.raises(FilterError, match=r"^--to-cert .*: no certificate or key in PEM format"):
        client_context(None, __file__, None, False)

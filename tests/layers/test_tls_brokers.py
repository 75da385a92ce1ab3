"""Real AMQP clients and RabbitMQ over TLS, recorded now.

The frames are those of the same dialogue in the clear.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from support.rabbitmq import ROOT, STARTED, end, is_installed
from support.relay import PATIENCE, Relay
from support.sampling import in_ci
from support.tls import VERSIONS, Turn, choose_suites13, credentials

from amqpscope.input.key_log import tls_secrets

from .test_tls import EVERY
from .test_tls_server_keys import Frame, frames

pytest.importorskip("cryptography")

ADDRESS = f"127.1.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
"""Of this process alone, so that another one can test beside it."""
PLAIN, TLS = 5672, 5671
KEY = credentials("rsa")
SUITES = [
    ("1.2", "ECDHE-RSA-AES256-GCM-SHA384"),
    ("1.3", "TLS_AES_256_GCM_SHA384"),
    ("1.2", "AES128-GCM-SHA256"),
]
# Families that only CI tries. Of TLS 1.2, Erlang has AES-CCM only with other certificates.
OTHERS = [
    ("1.2", "ECDHE-RSA-CHACHA20-POLY1305"),
    ("1.2", "ECDHE-RSA-AES256-SHA384"),
    ("1.2", "ECDHE-RSA-AES128-SHA"),
    ("1.2", "AES128-SHA256"),
    ("1.3", "TLS_AES_128_GCM_SHA256"),
    ("1.3", "TLS_CHACHA20_POLY1305_SHA256"),
    ("1.3", "TLS_AES_128_CCM_SHA256"),
    ("1.3", "TLS_AES_128_CCM_8_SHA256"),
]
OF_PROTON = [
    (version, suite)
    for version, suite in EVERY
    if version in ("1.2", "1.3") and "NULL" not in suite and (version, suite) not in OTHERS[-2:]
]
"""What Proton offers."""


def proton_has_tls() -> bool:
    """Whether Qpid Proton is here, and was compiled with OpenSSL."""
    try:
        return bool(import_module("proton").SSL.present())
    except ImportError:
        return False


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if not is_installed():
        pytest.skip("rabbitmq-server is not installed")
    folder = tmp_path_factory.mktemp("rabbitmq")
    options = (
        f"[{{certfile,\"{KEY}\"}},{{keyfile,\"{KEY}\"}},{{versions,['tlsv1.3','tlsv1.2']}},"
        f"{{ciphers,{json.dumps([suite for _, suite in (*SUITES, *OTHERS)], separators=(',', ':'))}}}]"
    )
    line = [sys.executable, str(ROOT / "captures" / "record" / "rabbitmq_server.py"), "--listen", ADDRESS]
    line += ["--folder", str(folder), "--lifetime", "300"]
    line += ["--setting", f'ssl_listeners=[{{"{ADDRESS}",{TLS}}}]', "--setting", f"ssl_options={options}"]
    with (folder / "said").open("wb") as said:
        node = subprocess.Popen(line, stdout=said, stderr=said)
        try:
            deadline = time.monotonic() + STARTED
            while not listens(TLS) or not listens(PLAIN):
                assert node.poll() is None and time.monotonic() < deadline, (folder / "said").read_text()
                time.sleep(0.2)
            yield
        finally:
            end(node, folder / "pid")
            with contextlib.suppress(subprocess.TimeoutExpired):
                node.wait(60)
            node.kill()


def listens(port: int) -> bool:
    try:
        socket.create_connection((ADDRESS, port), 1).close()
    except OSError:
        return False
    return True


def context(version: str, suites: str, keylog: Path) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    made.keylog_filename = str(keylog)
    limit(made, version, suites)
    return made


def limit(context: ssl.SSLContext, version: str, suites: str) -> None:
    """This version and these suites, and no others."""
    context.minimum_version = context.maximum_version = VERSIONS[version]
    if version == "1.3":
        choose_suites13(context, suites)
    else:
        context.set_ciphers(f"{suites}:@SECLEVEL=0")


def with_pika(port: int, tls: ssl.SSLContext | None) -> None:
    pika = import_module("pika")
    parameters = pika.ConnectionParameters(
        "127.0.0.1",
        port,
        credentials=pika.PlainCredentials("shop", "made-up-for-captures"),
        ssl_options=pika.SSLOptions(tls) if tls is not None else None,
    )
    connection = pika.BlockingConnection(parameters)
    channel = connection.channel()
    channel.queue_declare("orders", exclusive=True)
    for number in range(5):
        channel.basic_publish("", "orders", b"order %d " % number * 400)
    for _ in range(5):
        method, _, _ = channel.basic_get("orders")
        channel.basic_ack(method.delivery_tag)
    connection.close()


def with_proton(port: int, tls: bool) -> None:
    proton, utils = import_module("proton"), import_module("proton.utils")
    url = f"{'amqps' if tls else 'amqp'}://127.0.0.1:{port}"
    domain = None
    if tls:
        domain = proton.SSLDomain(proton.SSLDomain.MODE_CLIENT)
        domain.set_peer_authentication(proton.SSLDomain.ANONYMOUS_PEER)
    connection = utils.BlockingConnection(
        url,
        ssl_domain=domain,
        user="shop",
        password="made-up-for-captures",
        sasl_enabled=True,
        allowed_mechs="PLAIN",
        allow_insecure_mechs=True,
        timeout=PATIENCE,
    )
    sender = connection.create_sender("/queue/bills")
    for number in range(5):
        sender.send(proton.Message(body=f"bill {number}"))
    connection.close()


def talked(
    port: int, talk: Callable[[int, ssl.SSLContext | None], None], tls: ssl.SSLContext | None
) -> list[Turn]:
    """What a client and the broker said to each other through a relay."""
    with Relay(port, ADDRESS) as relay:
        talk(relay.port, tls)
    return relay.turns


def by_direction(found: list[Frame]) -> list[list[Frame]]:
    """Two relays may see what both peers say at one time in another order."""
    return [[frame for frame in found if frame[0] == direction] for direction in (0, 1)]


def shapes(found: list[Frame]) -> list[list[tuple[str, int]]]:
    """Names and sizes of the frames of each direction: what the broker makes up has the same size."""
    return [[(name, size) for _, name, _, size in frames_of_one] for frames_of_one in by_direction(found)]


def test_pika_and_rabbitmq(broker: None, tmp_path: Path) -> None:
    """One test for all suites: another process would start a broker of its own."""
    clear = frames(talked(PLAIN, with_pika, None), None)
    for version, suites in (*SUITES, *(OTHERS if in_ci() else [])):
        keylog = tmp_path / f"{version} {suites}"
        turns = talked(TLS, with_pika, context(version, suites, keylog))
        found, why = frames(turns, tls_secrets([str(keylog)]))
        assert shapes(found) == shapes(clear[0]) and not why and len(found) > 40
        if suites.startswith("AES"):
            assert frames(turns, tls_secrets([], [KEY])) == (found, "")


@pytest.mark.skipif(not proton_has_tls(), reason="python-qpid-proton is not installed, or has no TLS")
@pytest.mark.parametrize(("version", "suites"), OF_PROTON)
def test_proton_in_tls(broker: None, tmp_path: Path, version: str, suites: str) -> None:
    """Proton writes no key log: the other end of its TLS does, and remembers the dialogue in the clear."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(KEY)
    server.keylog_filename = str(tmp_path / "keys.txt")
    limit(server, version, suites)
    with Relay(PLAIN, ADDRESS, server) as terminal, Relay(terminal.port) as relay:
        with_proton(relay.port, True)
    found, why = frames(relay.turns, tls_secrets([str(tmp_path / "keys.txt")]))
    clear, _ = frames(terminal.turns, None)
    assert by_direction(found) == by_direction(clear) and not why and len(found) > 20

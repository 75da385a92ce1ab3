"""The Python package uamqp (Azure's AMQP library in C) against a plain server: messages there and back.

It speaks nothing but TLS. A relay in this process takes the TLS off, and what it passes on is captured: the
octets are uamqp's own, how they share segments is the relay's.
"""

from __future__ import annotations

import argparse
import contextlib
import select
import signal
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import uamqp
from uamqp import authentication

LIFETIME = 25  # s
RELAY = "localhost"
COUNT = 5


def certificate(folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for the relay, and its key, both in `folder`."""
    files = folder / "relay.crt", folder / "relay.key"
    request = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        f"/CN={RELAY}",
    ]
    names = ["-addext", f"subjectAltName=DNS:{RELAY}", "-out", str(files[0]), "-keyout", str(files[1])]
    subprocess.run([*request, *names], check=True, capture_output=True)
    return files


def pass_on(secure: ssl.SSLSocket, plain: socket.socket) -> None:
    """Everything that comes from one goes to the other, each end included, until both have ended."""
    open_ends: list[socket.socket] = [secure, plain]
    while open_ends:
        ready, _, _ = select.select(open_ends, [], [])
        for source in ready:
            destination = plain if source is secure else secure
            octets = received(source)
            if octets:
                with contextlib.suppress(OSError):  # who has gone does not keep the other from speaking
                    destination.sendall(octets)
            else:
                open_ends.remove(source)
                with contextlib.suppress(OSError):
                    destination.shutdown(socket.SHUT_WR)


def received(source: socket.socket) -> bytes:
    """What has come by now, b"" for the end."""
    try:
        octets = source.recv(65536)
        while isinstance(source, ssl.SSLSocket) and source.pending():
            octets += source.recv(65536)
        return octets
    except OSError:
        return b""


def relay(listening: socket.socket, context: ssl.SSLContext, address: str) -> None:
    """Takes connections, removes their TLS and passes them on to port 5672 of `address`."""
    while True:
        accepted, _ = listening.accept()
        secure = context.wrap_socket(accepted, server_side=True)
        plain = socket.create_connection((address, 5672))
        threading.Thread(target=pass_on, args=(secure, plain), daemon=True).start()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--connect", required=True, help="loopback address; the port is 5672")
    given = options.parse_args()
    signal.alarm(LIFETIME)
    public, private = certificate(Path.cwd())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    listening = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=relay, args=(listening, context, given.connect), daemon=True).start()

    def login() -> authentication.SASLAnonymous:
        return authentication.SASLAnonymous(RELAY, port=listening.getsockname()[1], verify=str(public))

    node = f"amqps://{RELAY}/letters"
    sender = uamqp.SendClient(node, auth=login(), client_name="letters-out")
    for number in range(COUNT):
        properties = uamqp.message.MessageProperties(message_id=f"letter-{number}", subject="letter")
        sender.queue_message(
            uamqp.Message(b"dear reader", properties=properties, application_properties={"page": number})
        )
    sender.send_all_messages()
    receiver = uamqp.ReceiveClient(node, auth=login(), client_name="letters-in", prefetch=3)
    received = 0
    while received < COUNT:
        for message in receiver.receive_message_batch(max_batch_size=3):
            message.accept()
            received += 1
    receiver.close()
    time.sleep(0.3)  # the relay has passed on the answers to close


if __name__ == "__main__":
    main()

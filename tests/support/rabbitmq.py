"""A command beside a RabbitMQ of its own: `python -m support.rabbitmq FOLDER COMMAND...`.

For a process in a network of its own, in which RabbitMQ has the port that everybody expects. Its URL is in
AMQP_URL for the command, whose exit status is this one's.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["URL", "is_installed"]

ROOT = Path(__file__).parents[2]
URL = "amqp://shop:made-up-for-captures@127.0.0.1:5672/"
STARTED = 120.0
"""Seconds after which it has not started. It takes seven on a machine that has nothing else to do."""


def is_installed() -> bool:
    places = ["/usr/lib/rabbitmq/bin", os.environ.get("PATH", os.defpath)]  # as captures/record has them
    return shutil.which("rabbitmq-server", path=os.pathsep.join(places)) is not None


def await_port(server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + STARTED
    while True:
        try:
            socket.create_connection(("127.0.0.1", 5672), timeout=1).close()
            return
        except OSError:
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit("RabbitMQ did not start")
        time.sleep(0.1)


def end(server: subprocess.Popen[bytes], said: Path) -> None:
    """End the node at once, by the process id that it said: there is nothing in it that is to be kept.

    If it has said none it is asked to end, for which another virtual machine is started.
    """
    try:
        os.kill(int(said.read_text()), signal.SIGKILL)
    except (OSError, ValueError):
        server.send_signal(signal.SIGTERM)


def main() -> int:
    folder, *command = sys.argv[1:]
    script = ROOT / "captures" / "record" / "rabbitmq_server.py"
    Path(folder).mkdir()
    with (Path(folder) / "said").open("wb") as said:
        server = subprocess.Popen(
            [sys.executable, str(script), "--listen", "127.0.0.1", "--folder", folder, "--lifetime", "400"],
            stdout=said,
            stderr=said,
        )
        try:
            await_port(server)
            return subprocess.run(command, env={**os.environ, "AMQP_URL": URL}).returncode
        finally:
            end(server, Path(folder) / "pid")
            try:
                server.wait(60)
            except subprocess.TimeoutExpired:
                server.kill()


if __name__ == "__main__":
    sys.exit(main())

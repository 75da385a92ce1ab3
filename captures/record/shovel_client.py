"""RabbitMQ's shovel as an AMQP 1.0 client: a node of its own moves messages of a queue to another broker.

The node listens on 127.0.0.1, the queue is filled by pika. Five messages, of which the third and the fourth
need several frames of the 512 octets that the other broker takes. Ends by itself.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pika
from pika.exceptions import AMQPError
from recording import answers

NODE = "127.0.0.1"
START_SECONDS = 20.0
SHOVELLED_SECONDS = 0.7  # a first connection, and the next one behind it
SIZES = (60, 60, 1200, 1200, 60)


def fill() -> None:
    login = pika.PlainCredentials("shop", "made-up-for-captures")
    with pika.BlockingConnection(pika.ConnectionParameters(NODE, credentials=login)) as connection:
        channel = connection.channel()
        channel.queue_declare("parcels")
        for number, size in enumerate(SIZES):
            channel.basic_publish("", "parcels", f"parcel {number} ".ljust(size, "x").encode())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--connect", required=True)
    options.add_argument("--user", required=True)
    options.add_argument("--password", required=True)
    given = options.parse_args()
    user = given.user.replace("@", "%40")
    shovel = {
        "src-protocol": "amqp091",
        "src-uri": f"amqp://shop:made-up-for-captures@{NODE}",
        "src-queue": "parcels",
        "dest-protocol": "amqp10",
        "dest-uri": f"amqp://{user}:{given.password}@{given.connect}:5672?sasl=plain",
        "dest-address": "parcels",
        "reconnect-delay": 1,
    }
    with tempfile.TemporaryDirectory(prefix="shovel-") as name:
        folder = Path(name)
        script = Path(__file__).with_name("rabbitmq_server.py")
        node = subprocess.Popen(
            [sys.executable, script, "--listen", NODE, "--folder", folder, "--plugins", "rabbitmq_shovel"],
            stdout=subprocess.DEVNULL,
        )
        try:
            limit = time.monotonic() + START_SECONDS
            while not answers(NODE):
                if node.poll() is not None or time.monotonic() > limit:
                    sys.exit("the node does not start")
                time.sleep(0.2)
            subprocess.run([folder / "control", "await_startup"], check=True, capture_output=True)
            try:
                fill()
            except AMQPError as problem:
                sys.exit(f"the queue is not filled: {problem!r}")
            control = [folder / "control", "set_parameter", "shovel", "parcels", json.dumps(shovel)]
            subprocess.run(control, check=True, capture_output=True)
            time.sleep(SHOVELLED_SECONDS)
            clear = [folder / "control", "clear_parameter", "shovel", "parcels"]
            subprocess.run(clear, check=True, capture_output=True)
        finally:
            node.terminate()
            node.wait()


if __name__ == "__main__":
    main()

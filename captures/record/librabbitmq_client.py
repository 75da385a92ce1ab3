"""The tools of librabbitmq (Debian's amqp-tools), one function a scenario: each tool is a connection."""

from __future__ import annotations

import argparse
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

LIFETIME = 20.0  # s, of each tool


class Tools:
    """Runs the tools with an address and a login."""

    def __init__(self, address: str, user: str, password: str) -> None:
        self.address = address
        self.login = [f"--username={user}", f"--password={password}"]

    def run(self, name: str, *arguments: str, said: str = "", fails: bool = False, url: str = "") -> str:
        """What one tool printed. `fails`: it must end with a status other than 0; else with 0."""
        where = [f"--url={url}"] if url else [f"--server={self.address}", *self.login, "--vhost=/"]
        command = [f"amqp-{name}", *where, *arguments]
        done = subprocess.run(command, input=said, capture_output=True, text=True, timeout=LIFETIME)
        assert (done.returncode != 0) == fails, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr


def errand(tools: Tools) -> None:
    """Declare, publish in three ways, get, consume in three ways, delete."""
    tools.run("declare-queue", "--queue=orders", "--durable")
    tools.run("publish", "--routing-key=orders", "--body=tea", "--persistent", "--content-type=text/plain")
    tools.run("publish", "--routing-key=orders", "--line-buffered", said="cocoa\numbrella\nraincoat\n")
    header = ("--header=shelf: 7", "--reply-to=answers", "--content-encoding=utf-8")
    tools.run("publish", "--exchange=amq.direct", "--routing-key=nowhere", *header, said="lost")
    assert tools.run("get", "--queue=orders") == "tea"
    cat = ("cat",)
    assert "cocoa" in tools.run("consume", "--queue=orders", "--count=2", "--prefetch-count=1", *cat)
    assert "raincoat" in tools.run("consume", "--queue=orders", "--count=1", "--no-ack", *cat)
    tools.run("get", "--queue=orders", fails=True)
    with ThreadPoolExecutor() as pool:
        bound = ("--exchange=amq.fanout", "--routing-key=news", "--exclusive", "--count=1", *cat)
        listener = pool.submit(tools.run, "consume", *bound)
        time.sleep(0.7)
        tools.run("publish", "--exchange=amq.fanout", "--routing-key=news", "--body=rain")
        assert "rain" in listener.result()
    tools.run("delete-queue", "--queue=orders")


def refused(tools: Tools) -> None:
    """A wrong password; a virtual host that is empty, by a URL's last slash; a queue that is not there."""
    good = list(tools.login)
    tools.login = ["--username=shop", "--password=not-the-made-up-one"]
    assert "ACCESS_REFUSED" in tools.run("get", "--queue=orders", fails=True)
    tools.login = good
    url = f"amqp://shop:made-up-for-captures@{tools.address}:5672/"
    assert "530" in tools.run("get", "--queue=orders", fails=True, url=url)
    assert "404" in tools.run("get", "--queue=missing", fails=True)


def heartbeat(tools: Tools) -> None:
    """A consumer waits: heartbeats of both sides until its message comes."""
    tools.run("declare-queue", "--queue=orders")
    waiting = ("--queue=orders", "--count=1", "--heartbeat=1", "cat")
    with ThreadPoolExecutor() as pool:
        consumer = pool.submit(tools.run, "consume", *waiting)
        time.sleep(3.2)
        tools.run("publish", "--routing-key=orders", "--body=tea")
        assert consumer.result() == "tea"


SCENARIOS: dict[str, Callable[[Tools], None]] = {"errand": errand, "refused": refused, "heartbeat": heartbeat}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("scenario", choices=sorted(SCENARIOS))
    options.add_argument("--connect", required=True, help="loopback address; the port is 5672")
    options.add_argument("--user", default="shop")
    options.add_argument("--password", default="made-up-for-captures")
    given = options.parse_args()
    SCENARIOS[given.scenario](Tools(given.connect, given.user, given.password))


if __name__ == "__main__":
    main()

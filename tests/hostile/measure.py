"""What commands cost on a hostile capture, measured in a process of its own: `python measure.py PATH WAY...`

Each WAY is a command line without the path, words parted by spaces. First all of them run on a small harmless
capture, so that what is loaded once does not count. Prints JSON: for each way its exit status, the seconds of
processor time, the characters written, and those among them that may not be written; `growth`, the octets by
which the process grew beyond what the harmless capture took; and `interpreted`, whether the code was not
compiled.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:1] = [str(HERE.parent)]  # amqpscope is the installed one, which may be compiled

from fuzz.bounds import most_memory  # noqa: E402
from support import amqp10_encode as amqp  # noqa: E402
from support.tcp_writer import Capture  # noqa: E402

from amqpscope.capture.words import INTERPRETED  # noqa: E402
from amqpscope.cli.main import run  # noqa: E402
from amqpscope.input.garbage import calm_collector  # noqa: E402


class Watched(io.TextIOBase):
    """Takes output, keeps none of it but the characters that should not be in it."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.size = 0
        self.wrong: set[str] = set()

    def write(self, text: str) -> int:
        self.size += len(text)
        if not text.isprintable():
            self.wrong |= {
                character for character in set(text) if character != "\n" and not character.isprintable()
            }
        return len(text)

    def writable(self) -> bool:
        return True


def harmless(path: Path) -> None:
    """A capture with a message in it, and a fault."""
    capture = Capture()
    tcp = capture.connection()
    tcp.handshake()
    for end in (tcp.client, tcp.server):
        end.send(amqp.AMQP_HEADER)
        end.send(amqp.frame(amqp.open_(container_id="c")))
    tcp.client.send(amqp.frame(amqp.begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)))
    tcp.client.send(amqp.frame(amqp.attach(name="l", handle=0, role=amqp.SENDER, initial_delivery_count=0)))
    tcp.client.send(amqp.frame(amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t"), amqp.data(b"x")))
    tcp.goodbye()
    capture.write(path)


def command(way: str, path: str) -> dict[str, object]:
    """Run one and say what it was like."""
    watched = Watched()
    kept = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = watched  # type: ignore[assignment]
    began = time.process_time()
    try:
        status = int(run([*way.split(), path]))
    finally:
        sys.stdout, sys.stderr = kept
    seconds = time.process_time() - began
    return {
        "status": status,
        "seconds": round(seconds, 3),
        "size": watched.size,
        "wrong": sorted(map(ascii, watched.wrong)),
    }


def main() -> None:
    path, *ways = sys.argv[1:]
    calm_collector()  # as the program does where it starts
    with tempfile.TemporaryDirectory() as place:
        warm = Path(place, "warm.pcapng")
        harmless(warm)
        for way in ways:
            command(way, str(warm))
    before = most_memory()
    results = {way: command(way, path) for way in ways}
    growth = most_memory() - before
    print(json.dumps({"growth": growth, "interpreted": INTERPRETED, "ways": results}))


if __name__ == "__main__":
    main()

"""Measures how time grows with the work: `make growth`, compiled. It should grow no faster than the work.

    python tests/bench/growth.py                             every scene, every command
    python tests/bench/growth.py --only channels091,links10 --command 'why --end'
    python tests/bench/growth.py --instructions      on a machine with other work to do

A scene is a capture with so many of one thing (deliveries that nobody acknowledges, channels, findings),
and with ten times as many. Each command is a process of its own; what it takes to start, measured on a
capture with one of the thing, is subtracted. Processor time is what the kernel says of the child. More than
`MOST` times the time for ten times the work is marked, and makes the exit status 1: then something looks at
all there is for each new one. Where a bound is reached in between (65,536 deliveries, say) the larger
capture may take less.

Processor time needs a quiet machine. With `--instructions` the instructions that are executed are counted (by
valgrind), which come out the same each time, of captures a tenth as large: valgrind is slow. What grows
too fast but is cheap shows only in the larger ones.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import amqp091_encode as amqp091
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue
from support.dialogue091 import Dialogue091
from support.tcp_writer import Capture

MOST = 11.0
"""Times the processor time, or the instructions, for ten times the work."""

SMALLER = 10
"""The captures of which instructions are counted are so many times smaller."""

WINDOW = 2**31 - 1
TURN = 100
"""Requests that are sent before their answers."""


def _opened091(channels: int = 1) -> Dialogue091:
    d = Dialogue091()
    d.opened(tune={"channel_max": 65_535}, tune_ok={"channel_max": 65_535})
    if channels:
        d.channel(*range(1, channels + 1))
    return d


def _turns(
    d: Dialogue | Dialogue091, count: int, ask: Callable[[int], bytes], answer: Callable[[int], bytes]
) -> None:
    """So many requests of the client and answers of the server, some at a time."""
    for start in range(0, count, TURN):
        turn = range(start, min(start + TURN, count))
        d.client.end.send(b"".join(map(ask, turn)))
        d.server.end.send(b"".join(map(answer, turn)))


def _channel(number: int) -> int:
    return 1 + number % 60_000


def unacknowledged091(count: int) -> Dialogue091:
    """Deliveries of a consumer without prefetch that acknowledges none."""
    d = _opened091()
    d.declare("q")
    d.consume("q", consumer_tag="c")
    content = amqp091.content(1, b"x")
    method = "basic.deliver"
    for start in range(0, count, TURN):
        d.server.end.send(
            b"".join(
                amqp091.say(
                    method,
                    1,
                    consumer_tag="c",
                    delivery_tag=n + 1,
                    redelivered=False,
                    exchange="",
                    routing_key="q",
                )
                + content
                for n in range(start, min(start + TURN, count))
            )
        )
    return d


def unconfirmed091(count: int) -> Dialogue091:
    """Messages on a channel in confirm mode, of which none is confirmed."""
    d = _opened091()
    d.ask("confirm.select", 1)
    one = amqp091.say("basic.publish", 1, exchange="", routing_key="q", mandatory=False, immediate=False)
    one += amqp091.content(1, b"x")
    for start in range(0, count, TURN):
        d.client.end.send(one * (min(start + TURN, count) - start))
    return d


def channels091(count: int) -> Dialogue091:
    """Channels, each with a consumer."""
    d = _opened091(0)
    _turns(
        d,
        count,
        lambda n: amqp091.say("channel.open", _channel(n)),
        lambda n: amqp091.say("channel.open-ok", _channel(n)),
    )
    _turns(
        d,
        count,
        lambda n: amqp091.say("basic.consume", _channel(n), queue=f"q{n}", consumer_tag="c"),
        lambda n: amqp091.say("basic.consume-ok", _channel(n), consumer_tag="c"),
    )
    return d


def acknowledged091(count: int) -> Dialogue091:
    """Channels with a consumer each, which is sent a message and acknowledges it."""
    d = channels091(count)
    delivery = {
        "consumer_tag": "c",
        "delivery_tag": 1,
        "redelivered": False,
        "exchange": "",
        "routing_key": "q",
    }
    for start in range(0, count, TURN):
        turn = range(start, min(start + TURN, count))
        d.server.end.send(
            b"".join(
                amqp091.say("basic.deliver", _channel(n), **delivery) + amqp091.content(_channel(n), b"x")
                for n in turn
            )
        )
        d.client.end.send(b"".join(amqp091.say("basic.ack", _channel(n), delivery_tag=1) for n in turn))
    return d


def consumers091(count: int) -> Dialogue091:
    """Consumers on one channel."""
    d = _opened091()
    _turns(
        d,
        count,
        lambda n: amqp091.say("basic.consume", 1, queue="q", consumer_tag=f"c{n}"),
        lambda n: amqp091.say("basic.consume-ok", 1, consumer_tag=f"c{n}"),
    )
    return d


def queues091(count: int) -> Dialogue091:
    """Queues, declared and bound, which connections are compared with each other for."""
    d = _opened091()
    _turns(
        d,
        count,
        lambda n: (
            amqp091.say("queue.declare", 1, queue=f"q{n}")
            + amqp091.say("queue.bind", 1, queue=f"q{n}", exchange="amq.direct", routing_key="k")
        ),
        lambda n: (
            amqp091.say("queue.declare-ok", 1, queue=f"q{n}", message_count=0, consumer_count=0)
            + amqp091.say("queue.bind-ok", 1)
        ),
    )
    return d


def one_queue091(count: int) -> Dialogue091:
    """One queue, declared again and again."""
    d = _opened091()
    _turns(
        d,
        count,
        lambda n: amqp091.say("queue.declare", 1, queue="q"),
        lambda n: amqp091.say("queue.declare-ok", 1, queue="q", message_count=0, consumer_count=0),
    )
    return d


def findings091(count: int) -> Dialogue091:
    """Methods on a channel that nobody opened."""
    d = _opened091()
    d.client.end.send(
        b"".join(amqp091.say("basic.ack", _channel(n) + 1, delivery_tag=1) for n in range(count))
    )
    return d


def connections091(count: int) -> Dialogue091:
    """Connections between the same two hosts, one after another, each declaring a queue of its own."""
    capture = Capture()
    for number in range(count):
        d = Dialogue091(capture=capture, client=f"10.0.{number // 50_000}.1:{1024 + number % 50_000}")
        d.opened()
        d.channel(1)
        d.declare(f"q{number % 1000}")
        d.goodbye()
    return d


def _begun10(**begin: int) -> Dialogue:
    d = Dialogue()
    window = {"incoming_window": WINDOW, "outgoing_window": WINDOW, "handle_max": 2**32 - 1, **begin}
    d.begun(client=window, server=window)
    return d


def unsettled10(count: int) -> Dialogue:
    """Deliveries that nobody settles."""
    d = _begun10()
    d.client.attach(SENDER, 0)
    d.server.attach(RECEIVER, 0)
    d.server.flow(handle=0, link_credit=2**30, incoming_window=WINDOW)
    for start in range(0, count, TURN):
        d.client.end.send(
            b"".join(
                amqp.frame(
                    amqp.transfer(
                        handle=0, delivery_id=n, delivery_tag=n.to_bytes(4, "big"), message_format=0
                    ),
                    amqp.data(b"x"),
                )
                for n in range(start, min(start + TURN, count))
            )
        )
    return d


def settled_backwards10(count: int) -> Dialogue:
    """Deliveries that are settled one by one, the last first."""
    d = unsettled10(count)
    for start in range(count, 0, -TURN):
        d.server.end.send(
            b"".join(
                amqp.frame(amqp.disposition(role=True, first=n, settled=True, state=amqp.accepted()))
                for n in range(start - 1, max(start - TURN, 0) - 1, -1)
            )
        )
    return d


def sessions10(count: int) -> Dialogue:
    """Sessions on one connection."""
    d = Dialogue()
    d.opened(client={"channel_max": 65_535}, server={"channel_max": 65_535})
    begin = {"next_outgoing_id": 0, "incoming_window": 9, "outgoing_window": 9}
    _turns(
        d,
        min(count, 65_000),
        lambda n: amqp.frame(amqp.begin(**begin), channel=n),
        lambda n: amqp.frame(amqp.begin(remote_channel=n, **begin), channel=n),
    )
    return d


def ended10(count: int) -> Dialogue:
    """Sessions with a link each, which are all ended."""
    d = sessions10(count)
    link = {"name": "l", "handle": 0, "source": amqp.source(address="q"), "target": amqp.target(address="q")}
    for side, role in ((d.client, amqp.SENDER), (d.server, amqp.RECEIVER)):
        more = {"initial_delivery_count": 0} if role == amqp.SENDER else {}
        for start in range(0, count, TURN):
            turn = range(start, min(start + TURN, count))
            side.end.send(
                b"".join(amqp.frame(amqp.attach(role=role, **link, **more), channel=n) for n in turn)
            )
    end = amqp.end()
    _turns(d, count, lambda n: amqp.frame(end, channel=n), lambda n: amqp.frame(end, channel=n))
    return d


def links10(count: int) -> Dialogue:
    """Links on one session."""
    d = _begun10()
    source = amqp.source(address="q")
    target = amqp.target(address="q")
    _turns(
        d,
        count,
        lambda n: amqp.frame(
            amqp.attach(
                name=f"l{n}",
                handle=n,
                role=amqp.SENDER,
                source=source,
                target=target,
                initial_delivery_count=0,
            )
        ),
        lambda n: amqp.frame(
            amqp.attach(name=f"l{n}", handle=n, role=amqp.RECEIVER, source=source, target=target)
        ),
    )
    return d


def findings10(count: int) -> Dialogue:
    """Flows for handles that nobody attached."""
    d = _begun10()
    window = {"next_outgoing_id": 0, "incoming_window": 9, "outgoing_window": 9, "next_incoming_id": 0}
    for start in range(0, count, TURN):
        d.client.end.send(
            b"".join(
                amqp.frame(amqp.flow(handle=n, delivery_count=0, link_credit=1, **window))
                for n in range(start, min(start + TURN, count))
            )
        )
    return d


def connections10(count: int) -> Dialogue:
    """Connections, one after another, each with a session."""
    capture = Capture()
    for number in range(count):
        d = Dialogue(capture=capture, client=f"10.0.{number // 50_000}.1:{1024 + number % 50_000}")
        d.begun()
        d.goodbye()
    return d


SCENES: dict[str, tuple[Callable[[int], Dialogue | Dialogue091], int]] = {
    scene.__name__: (scene, count)
    for scene, count in (
        (unacknowledged091, 60_000),
        (unconfirmed091, 60_000),
        (channels091, 6000),
        (acknowledged091, 6000),
        (consumers091, 6000),
        (queues091, 6000),
        (one_queue091, 10_000),
        (findings091, 6000),
        (connections091, 1000),
        (unsettled10, 40_000),
        (settled_backwards10, 20_000),
        (sessions10, 6000),
        (ended10, 6000),
        (links10, 6000),
        (findings10, 10_000),
        (connections10, 1000),
    )
}
"""What there is, and how many of it the small capture has: so that it takes some tenths of a second."""

COMMANDS = (
    "check --no-config",
    "check --no-config --format json",
    "check --no-config --format junit",
    "summary",
    "why --end",
    "diff",
    "read --format ndjson",
)


def seconds(program: str, command: str, path: Path, rounds: int) -> float:
    """Processor time of a command on a capture. `diff` has it twice."""
    line = [program, *command.split(), str(path)] + ([str(path)] if command == "diff" else [])
    best = 0.0
    for number in range(rounds):
        process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(line)}: exit status {process.returncode}")
        taken = used.ru_utime + used.ru_stime
        best = taken if number == 0 else min(best, taken)
        if taken > 5:
            break
    return best


def instructions(program: str, command: str, path: Path, rounds: int) -> float:
    """Millions of instructions that a command executes on a capture. One round is enough."""
    python = str(Path(program).with_name("python"))
    line = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    line += [python, "-m", "amqpscope", *command.split(), str(path)]
    result = subprocess.run(
        line + ([str(path)] if command == "diff" else []),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        text=True,
        check=False,
    )
    found = re.search(r"I +refs: +([\d,]+)", result.stderr)
    if result.returncode not in (0, 1) or found is None:
        raise SystemExit(f"{' '.join(line)}: exit status {result.returncode}")
    return int(found[1].replace(",", "")) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default=",".join(SCENES), help="scenes, between commas")
    parser.add_argument("--command", action="append", choices=COMMANDS, help="instead of all")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many runs counts")
    parser.add_argument("--program", default=str(Path(sys.executable).with_name("amqpscope")))
    parser.add_argument("--instructions", action="store_true", help="count these, not seconds")
    given = parser.parse_args()
    cost = instructions if given.instructions else seconds
    # Of a smaller difference nothing can be said: a twentieth of a second, a million instructions.
    least = 1.0 if given.instructions else 0.05
    grew = False
    print(f"{'scene':<20} {'command':<34} {'one':>7} {'some':>8} {'ten times':>9}  grows by")
    with tempfile.TemporaryDirectory() as folder:
        for name in given.only.split(","):
            scene, count = SCENES[name]
            if given.instructions:
                count //= SMALLER
            paths = []
            for number in (1, count, 10 * count):
                path = Path(folder, f"{name}-{number}.pcap")
                path.write_bytes(scene(number).capture.pcap())
                paths.append(path)
            for command in given.command or COMMANDS:
                one, some, many = (cost(given.program, command, path, given.rounds) for path in paths)
                growth = (many - one) / max(some - one, least)
                grew = grew or growth > MOST
                mark = "  <- more than the work" if growth > MOST else ""
                print(
                    f"{name:<20} {command:<34} {one:7.2f} {some:8.2f} {many:9.2f}  {growth:7.1f}{mark}",
                    flush=True,
                )
            for path in paths:
                path.unlink()
    sys.exit(1 if grew else 0)


if __name__ == "__main__":
    main()

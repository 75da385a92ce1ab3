"""Records the captures of the folder above again: `record.py NAME...` or `--all`; `--list` shows them.

What is needed and how to call it stands in captures/README.md. Traffic never leaves loopback; everything is
made in a temporary folder, every process started is ended, and a capture is replaced only when the new one
has passed inspection.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from inspection import inspect
from pcapng_options import without_machine
from recording import RecordingFailed, command_of, record, tool

HERE = Path(__file__).resolve().parent
CAPTURES = HERE.parent

RABBITMQ, RHEA, PROTON = "127.0.0.1", "127.0.0.2", "127.0.0.3"  # they can be recorded side by side
SHOP = ("--user", "shop@warehouse", "--password", "made-up-for-captures")  # the test user of proton_server.py
CUSTOMER = ("--user", "shop", "--password", "made-up-for-captures")  # the test user of rabbitmq_server.py

NODE = ("rabbitmq_server.py",)


@dataclass(frozen=True)
class Scenario:
    """A server, a client that talks to it, and the files that the traffic between them becomes."""

    files: tuple[str, ...]  # the first is recorded, a second one converted from it
    server: tuple[str, ...]  # script, options
    client: tuple[str, ...]
    address: str
    interface: str = "lo"


SCENARIOS = (
    Scenario(
        ("demo.pcap",),
        ("proton_server.py", "--mechanism", "PLAIN", "--credit", "5"),
        ("rhea_client.js", "orders", *SHOP),
        PROTON,
    ),
    Scenario(
        ("proton-anonymous.pcapng", "proton-anonymous.pcap"),
        ("proton_server.py",),
        ("proton_client.py", "send-receive"),
        PROTON,
    ),
    Scenario(
        ("proton-scram-sha-1.pcap",),
        ("proton_server.py", "--mechanism", "SCRAM-SHA-1"),
        ("proton_client.py", "send-receive", "--mechanism", "SCRAM-SHA-1", *SHOP),
        PROTON,
    ),
    Scenario(("rhea-proton-ipv6.pcap",), ("rhea_server.js",), ("proton_client.py", "send-receive"), "::1"),
    Scenario(
        ("proton-heartbeat.pcap",),
        ("proton_server.py", "--idle-seconds", "1.6"),
        ("proton_client.py", "heartbeat"),
        PROTON,
    ),
    Scenario(
        ("proton-transactions.pcap",), ("proton_server.py",), ("proton_client.py", "transactions"), PROTON
    ),
    Scenario(
        ("proton-transactional-accept.pcap",),
        ("proton_server.py",),
        ("proton_client.py", "transactional-accept"),
        PROTON,
    ),
    Scenario(
        ("proton-windows.pcap",),
        ("proton_server.py", "--max-frame-size", "1024", "--window", "4"),
        ("proton_client.py", "windows"),
        PROTON,
    ),
    Scenario(("proton-settle-modes.pcap",), ("proton_server.py",), ("proton_client.py", "modes"), PROTON),
    Scenario(("proton-durable.pcap",), ("proton_server.py",), ("proton_client.py", "durable"), PROTON),
    Scenario(("proton-blocking.pcap",), ("proton_server.py",), ("proton_client.py", "blocking"), PROTON),
    Scenario(("proton-anonymous-relay.pcap",), ("proton_server.py",), ("proton_client.py", "relay"), PROTON),
    Scenario(("proton-dynamic.pcap",), ("proton_server.py",), ("proton_client.py", "prices"), PROTON),
    Scenario(("proton-refused.pcap",), ("proton_server.py",), ("proton_client.py", "refused"), PROTON),
    Scenario(("rhea-outcomes.pcap",), ("rhea_server.js",), ("rhea_client.js", "outcomes"), RHEA),
    Scenario(("rhea-types.pcap",), ("rhea_server.js",), ("rhea_client.js", "types"), RHEA),
    Scenario(
        ("rhea-split-message.pcap",),
        ("rhea_server.js", "--max-frame-size", "512"),
        ("rhea_client.js", "split", "--max-frame-size", "1024"),
        RHEA,
    ),
    Scenario(("rhea-any-interface.pcap",), ("rhea_server.js",), ("rhea_client.js", "sessions"), RHEA, "any"),
    Scenario(("rhea-link-refused.pcap",), ("rhea_server.js",), ("rhea_client.js", "refused"), RHEA),
    Scenario(
        ("rhea-transfer-after-detach.pcap",), ("proton_server.py",), ("rhea_client.js", "hasty"), PROTON
    ),
    Scenario(("rhea-defaults.pcap",), ("rhea_server.js",), ("rhea_client.js", "defaults"), RHEA),
    Scenario(("rhea-credit.pcap",), ("rhea_server.js",), ("rhea_client.js", "topped-up"), RHEA),
    Scenario(("rhea-settle-modes.pcap",), ("rhea_server.js",), ("rhea_client.js", "modes"), RHEA),
    Scenario(("rhea-durable.pcap",), ("rhea_server.js",), ("rhea_client.js", "durable"), RHEA),
    Scenario(
        ("rhea-heartbeat.pcap",),
        ("proton_server.py", "--idle-seconds", "1.6"),
        ("rhea_client.js", "heartbeat"),
        PROTON,
    ),
    Scenario(("rhea-dynamic.pcap",), ("proton_server.py",), ("rhea_client.js", "prices"), PROTON),
    Scenario(
        ("rhea-transfer-before-attach.pcap",), ("rhea_server.js",), ("proton_client.py", "pipelined"), RHEA
    ),
    Scenario(
        ("rabbitmq-proton.pcap",),
        ("rabbitmq_server.py",),
        ("proton_client.py", "outcomes", "--mechanism", "PLAIN", *CUSTOMER),
        RABBITMQ,
    ),
    Scenario(
        ("rabbitmq-frames-after-close.pcap",),
        ("rabbitmq_server.py",),
        ("proton_client.py", "outcomes-hurried", "--mechanism", "PLAIN", *CUSTOMER),
        RABBITMQ,
    ),
    Scenario(
        ("rabbitmq-rhea.pcap",), ("rabbitmq_server.py",), ("rhea_client.js", "rabbitmq", *CUSTOMER), RABBITMQ
    ),
    Scenario(
        ("rabbitmq-drain-error.pcap",),
        ("rabbitmq_server.py",),
        ("rhea_client.js", "drain", *CUSTOMER),
        RABBITMQ,
    ),
    Scenario(
        ("rabbitmq-large.pcap",),
        ("rabbitmq_server.py",),
        ("proton_client.py", "large", "--mechanism", "PLAIN", *CUSTOMER),
        RABBITMQ,
    ),
    Scenario(
        ("rabbitmq-credit.pcap",),
        ("rabbitmq_server.py",),
        ("rhea_client.js", "topped-up-rabbitmq", *CUSTOMER),
        RABBITMQ,
    ),
    Scenario(
        ("rabbitmq-refused.pcap",),
        ("rabbitmq_server.py",),
        ("rhea_client.js", "unknown", *CUSTOMER),
        RABBITMQ,
    ),
    Scenario(
        ("amqp10-proton.pcap",),
        ("proton_server.py", "--mechanism", "PLAIN"),
        ("amqp10_client.js", *SHOP),
        PROTON,
    ),
    Scenario(("uamqp-proton.pcap",), ("proton_server.py",), ("uamqp_client.py",), PROTON),
    Scenario(("servicebus-batch.pcap",), ("rhea_server.js",), ("servicebus_client.py", "batch"), RHEA),
    Scenario(("servicebus-delete.pcap",), ("proton_server.py",), ("servicebus_client.py", "delete"), PROTON),
    Scenario(("pika-publish-consume.pcap",), NODE, ("pika_client.py", "publish-consume"), RABBITMQ),
    Scenario(("pika-prefetch.pcap",), NODE, ("pika_client.py", "prefetch"), RABBITMQ),
    Scenario(("pika-confirm.pcap",), NODE, ("pika_client.py", "confirm"), RABBITMQ),
    Scenario(("pika-transactions.pcap",), NODE, ("pika_client.py", "transactions"), RABBITMQ),
    Scenario(("pika-types.pcap",), NODE, ("pika_client.py", "types"), RABBITMQ),
    Scenario(("pika-large.pcap",), NODE, ("pika_client.py", "large"), RABBITMQ),
    Scenario(("pika-channel-errors.pcap",), NODE, ("pika_client.py", "channel-errors"), RABBITMQ),
    Scenario(("pika-connection-errors.pcap",), NODE, ("pika_client.py", "connection-errors"), RABBITMQ),
    Scenario(("pika-virtual-host.pcap",), NODE, ("pika_client.py", "virtual-host"), RABBITMQ),
    Scenario(("pika-heartbeat.pcap",), NODE, ("pika_client.py", "heartbeat"), RABBITMQ),
    Scenario(("pika-heartbeat-missed.pcap",), NODE, ("pika_client.py", "heartbeat-missed"), RABBITMQ),
    Scenario(("pika-blocked.pcap",), NODE, ("pika_client.py", "blocked"), RABBITMQ),
    Scenario(("pika-cancelled.pcap",), NODE, ("pika_client.py", "cancelled"), RABBITMQ),
    Scenario(("pika-channels.pcap",), NODE, ("pika_client.py", "channels"), RABBITMQ),
    Scenario(("pika-replies.pcap",), NODE, ("pika_client.py", "replies"), RABBITMQ),
    Scenario(("pika-dead-letters.pcap",), NODE, ("pika_client.py", "dead-letters"), "::1"),
    Scenario(("pika-abandoned.pcap",), NODE, ("pika_client.py", "abandoned"), RABBITMQ),
    Scenario(
        ("pika-late-ack.pcap",),
        (*NODE, "--setting", "consumer_timeout=1000", "--setting", "channel_tick_interval=1000"),
        ("pika_client.py", "late"),
        RABBITMQ,
    ),
    Scenario(("pika-tls-to-plain-port.pcap",), NODE, ("pika_client.py", "encrypted"), RABBITMQ),
    Scenario(("pika-two-threads.pcap",), NODE, ("pika_client.py", "two-threads"), RABBITMQ),
    Scenario(("pika-refused.pcap",), NODE, ("pika_client.py", "refused"), RABBITMQ),
    Scenario(("pyamqp-no-wait.pcap",), NODE, ("pyamqp_client.py", "no-wait"), RABBITMQ),
    Scenario(("pyamqp-no-wait-error.pcap",), NODE, ("pyamqp_client.py", "no-wait-error"), RABBITMQ),
    Scenario(("pyamqp-gets.pcap",), NODE, ("pyamqp_client.py", "gets"), RABBITMQ),
    Scenario(("pyamqp-confirm.pcap",), NODE, ("pyamqp_client.py", "confirm"), RABBITMQ),
    Scenario(("pyamqp-transactions.pcap",), NODE, ("pyamqp_client.py", "transactions"), RABBITMQ),
    Scenario(("pyamqp-hurried.pcap",), NODE, ("pyamqp_client.py", "hurried"), RABBITMQ),
    Scenario(("pyamqp-late-prefetch.pcap",), NODE, ("pyamqp_client.py", "late-prefetch"), RABBITMQ),
    Scenario(("pyamqp-types.pcap",), NODE, ("pyamqp_client.py", "types"), RABBITMQ),
    Scenario(("pyamqp-heartbeat.pcap",), NODE, ("pyamqp_client.py", "heartbeat"), RABBITMQ),
    Scenario(("pyamqp-immediate.pcap",), NODE, ("pyamqp_client.py", "immediate"), RABBITMQ),
    Scenario(("librabbitmq-tools.pcap",), NODE, ("librabbitmq_client.py", "errand"), RABBITMQ),
    Scenario(("librabbitmq-refused.pcap",), NODE, ("librabbitmq_client.py", "refused"), RABBITMQ),
    Scenario(("librabbitmq-heartbeat.pcap",), NODE, ("librabbitmq_client.py", "heartbeat"), RABBITMQ),
    Scenario(("amqplib-confirm.pcap",), NODE, ("amqplib_client.js", "confirm"), RABBITMQ),
    Scenario(("amqplib-settle.pcap",), NODE, ("amqplib_client.js", "settle"), RABBITMQ),
    Scenario(("amqplib-no-ack.pcap",), NODE, ("amqplib_client.js", "no-ack"), RABBITMQ),
    Scenario(("amqplib-types.pcap",), NODE, ("amqplib_client.js", "types"), RABBITMQ),
    Scenario(("amqplib-routing.pcap",), NODE, ("amqplib_client.js", "routing"), RABBITMQ),
    Scenario(("amqplib-update-secret.pcap",), NODE, ("amqplib_client.js", "secret"), RABBITMQ),
    Scenario(("amqplib-heartbeat.pcap",), NODE, ("amqplib_client.js", "heartbeat"), RABBITMQ),
    Scenario(("amqplib-forced-close.pcap",), NODE, ("amqplib_client.js", "forced"), RABBITMQ),
    Scenario(("amqplib-cancelled.pcap",), NODE, ("amqplib_client.js", "cancelled"), RABBITMQ),
    Scenario(("amqplib-channel-errors.pcap",), NODE, ("amqplib_client.js", "channel-errors"), RABBITMQ),
    Scenario(("amqplib-quorum-stream.pcap",), NODE, ("amqplib_client.js", "quorum"), RABBITMQ),
    Scenario(("amqplib-crossing-close.pcap",), NODE, ("amqplib_client.js", "crossing"), RABBITMQ),
    Scenario(("amqplib-publish-after-close.pcap",), NODE, ("amqplib_client.js", "hasty"), RABBITMQ),
    Scenario(("amqplib-unconfirmed.pcap",), NODE, ("amqplib_client.js", "unconfirmed"), RABBITMQ),
    Scenario(("amqplib-server-stalled.pcap",), NODE, ("amqplib_client.js", "stalled"), RABBITMQ),
    Scenario(("bunny-errands.pcap",), NODE, ("bunny_client.rb",), RABBITMQ),
    Scenario(("java-errands.pcap",), NODE, ("java_client.java",), RABBITMQ),
    Scenario(
        ("sap-proton.pcap",),
        ("proton_server.py", "--mechanism", "PLAIN", "--max-frame-size", "512"),
        ("sap_client.js", *SHOP),
        PROTON,
    ),
    Scenario(
        ("shovel-proton.pcap",),
        ("proton_server.py", "--mechanism", "PLAIN", "--max-frame-size", "512"),
        ("shovel_client.py", *SHOP),
        PROTON,
    ),
    Scenario(
        ("rhea-rabbitmq-without-plugin.pcap",),
        (*NODE, "--plugins", ""),
        ("rhea_client.js", "other-protocol"),
        RABBITMQ,
    ),
)


def make(scenario: Scenario, folder: Path) -> list[tuple[Path, int]]:
    """Records one scenario in `folder`; returns its inspected files and their numbers of packets."""
    environment = {
        **os.environ,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "DEBUG": "",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    server = [
        *command_of(HERE / scenario.server[0]),
        *scenario.server[1:],
        "--listen",
        scenario.address,
        "--folder",
        str(folder),
    ]
    client = [*command_of(HERE / scenario.client[0]), *scenario.client[1:], "--connect", scenario.address]
    first = folder / scenario.files[0]
    pcapng = first.suffix == ".pcapng"
    raw = record(server, client, scenario.address, scenario.interface, pcapng, folder, environment)
    if pcapng:
        first.write_bytes(without_machine(raw.read_bytes()))
    else:
        raw.rename(first)
    made = [first]
    for name in scenario.files[1:]:
        subprocess.run(
            [tool("editcap"), "-F", "pcap", str(first), str(folder / name)], check=True, capture_output=True
        )
        made.append(folder / name)
    return [(file, inspect(file)) for file in made]


def main() -> int:
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument(
        "names", nargs="*", metavar="NAME", help="a capture's file name, with or without its ending"
    )
    options.add_argument("--all", action="store_true", help="every capture")
    options.add_argument("--list", action="store_true", help="print the captures and who talks to whom")
    options.add_argument(
        "--to", type=Path, default=CAPTURES, help="folder for the captures (default: captures/)"
    )
    given = options.parse_args()
    if given.list:
        for scenario in SCENARIOS:
            print(f"{', '.join(scenario.files)}: {' '.join(scenario.client)} -> {' '.join(scenario.server)}")
        return 0
    known = {
        name: scenario
        for scenario in SCENARIOS
        for file in scenario.files
        for name in (file, Path(file).stem)
    }
    if unknown := [name for name in given.names if name not in known]:
        options.error(f"no such capture: {', '.join(unknown)} (--list shows them)")
    wanted = list(SCENARIOS) if given.all else list(dict.fromkeys(known[name] for name in given.names))
    if not wanted:
        options.error("name a capture, or give --all")
    failed = 0
    for scenario in wanted:
        with tempfile.TemporaryDirectory(prefix="captures-") as folder:
            try:
                for file, packets in make(scenario, Path(folder)):
                    shutil.copyfile(file, given.to / file.name)
                    print(f"{file.name}: {packets} packets, {file.stat().st_size} octets", flush=True)
            except (RecordingFailed, subprocess.CalledProcessError) as problem:
                print(f"{scenario.files[0]}: {problem}", file=sys.stderr, flush=True)
                failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

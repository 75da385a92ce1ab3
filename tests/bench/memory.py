"""Measures what a check keeps of a link and of an unsettled delivery: `make bench`. It asserts nothing.

The connection is still open when it is measured: all that was allocated for it since the capture was
opened, both its ends, divided by the number of links or deliveries.
"""

from __future__ import annotations

import gc
import io
import sys
import tracemalloc
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.dialogue import RECEIVER, SENDER, Dialogue

import amqpscope

LINKS = 2000
DELIVERIES = 20_000
WINDOW = 2**31 - 1


def dialogue(links: int, deliveries: int) -> bytes:
    """A connection with so many links, and so many unsettled deliveries on the first."""
    d = Dialogue()
    d.begun(client={"incoming_window": WINDOW}, server={"incoming_window": WINDOW})
    for number in range(links):
        d.client.attach(SENDER, number, name=f"link-{number}")
        d.server.attach(RECEIVER, number, name=f"link-{number}")
    d.server.flow(handle=0, link_credit=deliveries + 1, incoming_window=WINDOW)
    for number in range(deliveries):
        d.client.transfer(delivery_tag=number.to_bytes(16, "big"))
    d.server.flow(incoming_window=WINDOW)
    d.client.empty()
    return d.pcap()


def kept(octets: bytes) -> int:
    """Octets allocated for a capture when all of it was read and nothing is closed yet."""
    source = io.BytesIO(octets)
    tracemalloc.start()
    with amqpscope.Capture(
        source, amqpscope.CaptureOptions(judge=True, records=False, keep=False)
    ) as capture:
        before = tracemalloc.get_traced_memory()[0]
        sizes = []
        for _ in capture.blocks():
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0] - before)
    tracemalloc.stop()
    return sizes[-2]  # the last one is after the end


def main() -> None:
    base = kept(dialogue(1, 1))
    print(f"a link with both its ends: {(kept(dialogue(LINKS, 0)) - base) / LINKS:.0f} octets")
    print(f"an unsettled delivery: {(kept(dialogue(1, DELIVERIES)) - base) / DELIVERIES:.0f} octets")


if __name__ == "__main__":
    main()

"""Measures capturing live over loopback: the ring, scapy's raw sockets, and tcpdump beside them.

    python tests/bench/live.py --seconds 3 --rates 25000 50000 100000 0

It reports and asserts nothing, and takes the permission to capture. A process sends small packets at a rate
(0: as fast as it can), another captures: with the ring, or with scapy's raw socket as the only difference,
packets taken apart down to TCP; or tcpdump -w /dev/null. What a way loses, and what processor time a packet
takes it, is its own count; buffers are of the same size. Trust the ratios.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from amqpscope.capture.live.opening import open_source
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.words import INTERPRETED

OCTETS = 200
BUFFER = 64 * 1024 * 1024
LOCAL = bytes([127, 0, 0, 1])
WAYS = ("ring", "scapy", "tcpdump")


def send(port: int, rate: int, seconds: float) -> None:
    """Packets at a rate, in portions of a millisecond's worth.

    They are TCP segments with a wrong checksum, which the system drops without a word; nobody who captures
    looks at it. A connection would not do: what it cannot send at once, it sends in one packet.
    """
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + OCTETS, 0, 0, 64, 6, 0, LOCAL, LOCAL)
    total = sum(struct.unpack("!10H", ip))
    ip = ip[:10] + struct.pack("!H", ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF) + ip[12:]
    tcp = struct.pack("!HHIIBBHHH", port, port, 1, 1, 0x50, 0x10, 1000, 0, 0)
    packet = bytes(12) + b"\x08\0" + ip + tcp + b"x" * OCTETS
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sender:
        sender.bind(("lo", 0))
        begun = time.monotonic()
        sent = 0
        while (elapsed := time.monotonic() - begun) < seconds:
            due = int(elapsed * rate) - sent if rate else 1000
            for _ in range(due):
                sender.send(packet)
            sent += due
            if rate:
                time.sleep(0.001)


def capture(way: str, port: int) -> None:
    """Until a line comes on standard input: packets, those dropped, and processor seconds."""
    decoder = PacketDecoder(SegmentSink())
    stop: list[bool] = []
    signal.signal(signal.SIGUSR1, lambda *_: stop.append(True))
    if way == "ring":
        with open_source(["lo"], ports=[port], buffer_octets=BUFFER) as source:
            print("capturing", flush=True)
            before = _processor()
            while not stop or source.take(decoder):
                source.wait(0.1)
                source.take(decoder)
            print(source.number, source.dropped(), _processor() - before, flush=True)
    else:
        import scapy.arch  # noqa: F401  # which sets what conf.L2listen is
        from scapy.config import conf

        conf.bufsize = BUFFER
        receiver = conf.L2listen(iface="lo", filter=f"tcp port {port}", promisc=False)
        receiver.ins.setsockopt(socket.SOL_SOCKET, 33, BUFFER)  # SO_RCVBUFFORCE
        receiver.ins.settimeout(0.1)
        print("capturing", flush=True)
        before = _processor()
        number = 0
        while True:
            try:
                _, octets, seconds = receiver.recv_raw(262_144)
            except TimeoutError:
                if stop:
                    break
                continue
            number += 1
            decoder.packet(number, int(seconds * 1_000_000_000), 1, octets, 0, len(octets), len(octets))
        statistics = receiver.ins.getsockopt(263, 6, 8)
        # A packet over loopback is seen twice.
        print(number // 2, int.from_bytes(statistics[4:], sys.byteorder) // 2, _processor() - before)


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measure(way: str, rate: int, seconds: float) -> tuple[int, int, float]:
    """Packets, those dropped, and the processor seconds of whoever captured."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    me = [sys.executable, __file__]
    if way == "tcpdump":
        line = ["tcpdump", "-i", "lo", "-B", str(BUFFER // 1024), "-w", "/dev/null", f"tcp port {port}"]
        capturing = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
        assert capturing.stderr is not None
        while "listening" not in capturing.stderr.readline():
            pass
    else:
        capturing = subprocess.Popen([*me, "capture", way, str(port)], stdout=subprocess.PIPE, text=True)
        assert capturing.stdout is not None
        capturing.stdout.readline()
    subprocess.run([*me, "send", str(port), str(rate), str(seconds)], check=True)
    if way == "tcpdump":
        time.sleep(1)  # what it has not read when it is asked to stop counts as dropped by nobody
        capturing.send_signal(signal.SIGINT)
        assert capturing.stderr is not None
        reported = capturing.stderr.read()
        _, _, used = os.wait4(capturing.pid, 0)
        counts = [int(word.split()[0]) for word in reported.splitlines() if word.split()[0].isdigit()]
        return counts[0], counts[2], used.ru_utime + used.ru_stime
    capturing.send_signal(signal.SIGUSR1)
    assert capturing.stdout is not None
    packets, dropped, processor = capturing.stdout.read().split()
    capturing.wait(30)
    return int(packets), int(dropped), float(processor)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rates", type=int, nargs="+", default=[25_000, 50_000, 100_000, 200_000, 0])
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    ways = [way for way in WAYS if way != "tcpdump" or shutil.which("tcpdump")]
    print(f"segments of {OCTETS} octets, {arguments.seconds:g} s each; {'not ' * INTERPRETED}compiled")
    print(f"{'sent/s':>12} {'way':8} {'packets/s':>10} {'lost':>8} {'us a packet':>12}")
    for rate in arguments.rates:
        for _ in range(arguments.rounds):
            for way in ways:
                packets, dropped, processor = measure(way, rate, arguments.seconds)
                print(
                    f"{rate or 'all':>12} {way:8} {(packets + dropped) / arguments.seconds:>10.0f} "
                    f"{dropped / max(packets + dropped, 1):>8.1%} {processor / max(packets, 1) * 1e6:>12.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["send"]:
        send(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4]))
    elif sys.argv[1:2] == ["capture"]:
        capture(sys.argv[2], int(sys.argv[3]))
    else:
        main()

"""`amqpscope sniff` on loopback: what real sockets say, seen by the kernel's own eyes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.replayed import replayable

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
UNSHARE = ["unshare", "--user", "--map-root-user", "--net"]
PATIENCE = 120

if sys.platform != "linux" or not shutil.which("ip") or not shutil.which("unshare"):
    pytest.skip("it takes Linux, ip and unshare", allow_module_level=True)
if subprocess.run([*UNSHARE, "true"], capture_output=True).returncode != 0:
    pytest.skip("there is no permission to have a network of one's own", allow_module_level=True)

# In a network of its own: the sniffer, and the conversations that it listens to.
SCRIPT = """
import signal, subprocess, sys
from pathlib import Path
from support.replayed import replay

subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
options, paths = sys.argv[1].split(), sys.argv[2:]
sniffing = subprocess.Popen(
    [sys.executable, "-m", "amqpscope", "sniff", *options], stderr=subprocess.PIPE, text=True)
said = [sniffing.stderr.readline()]
for path in paths:
    replay(Path(path))
if "--until" not in options:
    sniffing.send_signal(signal.SIGINT)
said += sniffing.stderr.readlines()
print(*said, sep="", file=sys.stderr)
sys.exit(sniffing.wait(60))
"""


def sniffed(options: str, *paths: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*UNSHARE, sys.executable, "-c", SCRIPT, options, *map(str, paths)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
        env={"PYTHONPATH": "tests:.", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
    )


def amqpscope(*arguments: object) -> list[dict[str, object]]:
    """What a command writes as lines of JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "amqpscope", *map(str, arguments), "--format", "ndjson"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        cwd=ROOT,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def conversations() -> list[Path]:
    """Of real peers, each on one connection."""
    found = [path for path in sorted(CAPTURES.glob("*.pcap")) if replayable(path)]
    assert len(found) > 20
    return [*found[::4], CAPTURES / "rhea-transfer-before-attach.pcap"]


@pytest.mark.parametrize("interface", ["lo", "any"])
def test_frames_and_findings_are_those_of_the_file_it_writes(interface: str, tmp_path: Path) -> None:
    path = tmp_path / "seen.pcapng"
    done = sniffed(f"-i {interface} --format ndjson -w {path}", *conversations())
    assert done.returncode == 130, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    for line in lines:
        if "capture" in line:
            line["capture"] = str(path)
        for packet in line.get("packets", []):
            packet["capture"] = str(path)
    frames = [line for line in lines if "kind" in line]
    assert len(frames) > 200
    assert frames == amqpscope("read", path)
    made = [line for line in lines if "rule" in line]
    # What is known when it is made, and again, with the reaction, when it is known.
    reported: dict[str, dict[str, object]] = {}
    for one in made:
        again = one.pop("amended", False)
        which = json.dumps([one[name] for name in ("rule", "packet", "peer", "message", "evidence")])
        assert (which in reported) == again, one
        reported[which] = one
    checked = amqpscope("check", path)
    assert len(checked) > 5
    assert sorted(map(json.dumps, reported.values())) == sorted(map(json.dumps, checked))
    assert "lost by this machine" not in done.stderr


def test_until_ends_it_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "breach.pcapng"
    broken = CAPTURES / "rhea-transfer-before-attach.pcap"
    done = sniffed(f"-i lo --until L-UNATTACHED-TRANSFER -w {path} --quiet", broken)
    assert done.returncode == 1, done.stderr
    assert "stopped by --until: amqp10/L-UNATTACHED-TRANSFER in packet" in done.stderr
    assert "amqp10/L-UNATTACHED-TRANSFER" in {one["rule"] for one in amqpscope("check", path)}

"""What works without scapy, and what says that it takes it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("there is nothing without scapy but on Linux", allow_module_level=True)

WITHOUT = """
import sys
sys.modules["scapy"] = None
from amqpscope.capture.live.opening import list_interfaces, open_source
from amqpscope.errors import CaptureError
def reported(*arguments, **options):
    try:
        open_source(*arguments, **options).close()
    except CaptureError as error:
        return str(error)
    return "opened"
"""


def run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT + script],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[3],
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_the_default_filter_and_the_list_need_none() -> None:
    assert run("print([one.name for one in list_interfaces()].count('lo'))") == "1"
    said = run("print(reported(['lo']))")
    assert said == "opened" or "permission" in said


def test_a_filter_needs_it_and_says_so() -> None:
    assert run("print(reported(['lo'], filter='port 1'))") == (
        "a filter needs scapy: pip install 'amqpscope[live]'"
    )


def test_so_does_a_kernel_without_the_ring() -> None:
    script = """
import errno
from amqpscope.capture.live import ring
def refuse(*_):
    raise OSError(errno.EINVAL, "no")
ring.RingSource = refuse
print(reported(['lo']))
"""
    assert run(script) == "live capture needs scapy on this system: pip install 'amqpscope[live]'"

"""What is given up once the sockets are open; in processes of their own, which have something to give up."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

if sys.platform != "linux" or os.geteuid() != 0:
    pytest.skip("it takes root's privileges on Linux", allow_module_level=True)

TELL = """
import os
from amqpscope.capture.live.privileges import give_up
give_up()
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(os.getresuid(), os.getresgid(), os.getgroups())
sets = {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")}
print(sets, status["NoNewPrivs"].strip())
try:
    os.setresuid(0, 0, 0)
    print("root")
except OSError as error:
    print(type(error).__name__)
"""


def told(**environment: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", TELL],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=Path(__file__).parents[3],
        env={"PYTHONPATH": ".", "PATH": os.environ["PATH"], **environment},
    )
    return done.stdout.splitlines() + done.stderr.splitlines()


def test_under_sudo_it_becomes_who_called_it() -> None:
    assert told(SUDO_UID="1234", SUDO_GID="1235") == [
        "(1234, 1234, 1234) (1235, 1235, 1235) [1235]",
        "{0} 1",
        "PermissionError",
    ]


@pytest.mark.parametrize(
    "environment",
    [{}, {"SUDO_UID": "0", "SUDO_GID": "0"}, {"SUDO_UID": "-1", "SUDO_GID": "x"}, {"SUDO_UID": "1234"}],
)
def test_root_without_sudo_has_no_capabilities_left(environment: dict[str, str]) -> None:
    ids, capabilities, _ = told(**environment)
    assert ids.startswith("(0, 0, 0) (0, 0, 0)")
    assert capabilities == "{0} 1"

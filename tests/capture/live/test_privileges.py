"""What is given up once the sockets are open; in processes of their own, which have something to give up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import mypy_extensions
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


def reported(**environment: str) -> list[str]:
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
    assert reported(SUDO_UID="1234", SUDO_GID="1235") == [
        "(1234, 1234, 1234) (1235, 1235, 1235) [1235]",
        "{0} 1",
        "PermissionError",
    ]


@pytest.mark.parametrize(
    "environment",
    [{}, {"SUDO_UID": "0", "SUDO_GID": "0"}, {"SUDO_UID": "-1", "SUDO_GID": "x"}, {"SUDO_UID": "1234"}],
)
def test_root_without_sudo_has_no_capabilities_left(environment: dict[str, str]) -> None:
    ids, capabilities, _ = reported(**environment)
    assert ids.startswith("(0, 0, 0) (0, 0, 0)")
    assert capabilities == "{0} 1"


def test_an_interpreter_with_the_capability_captures_and_keeps_none(tmp_path: Path) -> None:
    """A copy of it, by someone who has nothing else; without the capability that is refused in one line."""
    if not shutil.which("setcap") or not shutil.which("setpriv"):
        pytest.skip("there is no setcap, or no setpriv")
    copy = tmp_path / "python"
    shutil.copy(os.path.realpath(sys.executable), copy)
    script = (
        "from amqpscope.capture.live.opening import open_source\n"
        "from amqpscope.errors import CaptureError\n"
        "try:\n    source = open_source(['lo'])\n"
        "except CaptureError as error:\n    print(error)\n    raise SystemExit\n"
        "print('open')\n" + TELL
    )
    # Root's number, which can read all that the tests need, but none of what makes it root.
    nobody = ["setpriv", "--securebits=+noroot", "--inh-caps=-all", "--bounding-set=-all,+net_raw"]
    modules = os.path.dirname(mypy_extensions.__file__)

    def run() -> list[str]:
        done = subprocess.run(
            [*nobody, str(copy), "-c", script],
            capture_output=True,
            text=True,
            timeout=60,
            cwd=Path(__file__).parents[3],
            env={"PYTHONPATH": f".:{modules}", "PATH": os.environ["PATH"], "PYTHONHOME": sys.base_prefix},
        )
        return done.stdout.splitlines() + done.stderr.splitlines()

    if subprocess.run([str(copy), "-c", ""], env={"PYTHONHOME": sys.base_prefix}).returncode != 0:
        pytest.skip("a copy of this interpreter does not run")
    refused = run()
    assert len(refused) == 1, refused
    for way in ("setcap cap_net_raw", "sudo", "tcpdump -U -w - -i lo"):
        assert way in refused[0]
    if subprocess.run(["setcap", "cap_net_raw+ep", str(copy)], capture_output=True).returncode != 0:
        pytest.skip("files here have no capabilities")
    reported = run()
    assert reported[0] == "open"
    assert reported[2] == "{0} 1"

"""Runs of pytest within a test, with the plugin as it is installed: by its entry point in pyproject.toml."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

__all__ = ["PATIENCE", "ROOT", "environment", "network", "run"]

ROOT = Path(__file__).parents[2]
PATIENCE = 240
"""Seconds after which a run has failed. They take some, even on a machine that is very busy."""

_UNSHARE = ["unshare", "--user", "--map-root-user", "--net"]
# With the first process of these all others end, whatever has become of them.
_PROCESSES = ["--pid", "--fork", "--kill-child", "--mount-proc"]
_UP = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"]


def network() -> list[str]:
    """What to put before a command so that it has a network of its own, in which it may capture.

    Nothing if there is no such thing here.
    """
    if sys.platform != "linux" or not shutil.which("ip") or not shutil.which("unshare"):
        return []
    for command in ([*_UNSHARE, *_PROCESSES, *_UP], [*_UNSHARE, *_UP]):
        if subprocess.run([*command, "true"], capture_output=True).returncode == 0:
            return command
    return []


def environment(folder: Path) -> dict[str, str]:
    """What a process needs that shall find this package, and its plugin, as if they were installed."""
    installed = folder / "installed"
    information = installed / "amqpscope_here-0.dist-info"
    information.mkdir(parents=True, exist_ok=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    plugins = "".join(f"{name} = {where}\n" for name, where in project["entry-points"]["pytest11"].items())
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: amqpscope-here\nVersion: 0\n")
    (information / "entry_points.txt").write_text(f"[pytest11]\n{plugins}")
    import amqpscope

    package = Path(amqpscope.__file__).parents[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    kept["COLUMNS"] = "160"
    return {**kept, "PYTHONPATH": os.pathsep.join(map(str, (package, ROOT / "tests", installed)))}


def run(folder: Path, *options: str, before: list[str] | None = None) -> subprocess.CompletedProcess[str]:
    """pytest in a process of its own and this folder, `before` being put in front of the command."""
    basetemp = f"--basetemp={folder.parent / 'base'}"
    # The plugin of Hypothesis loads all of it at the end of a run, which takes longer than such a run.
    without = ["-p", "no:cacheprovider", "-p", "no:hypothesispytest"]
    return subprocess.run(
        [*(before or []), sys.executable, "-m", "pytest", *without, basetemp, *options],
        cwd=folder,
        env=environment(folder.parent),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    )

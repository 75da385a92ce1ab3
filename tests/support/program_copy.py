"""A copy of the program that a test writes a file into, and commands run in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import amqpscope

SOURCE = Path(amqpscope.__file__).parent.parent
REPOSITORY = Path(__file__).parents[2]

SCRIPT = """
import contextlib, io, json, sys
from amqpscope.cli.main import run
for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = run(json.loads(line))
    print(json.dumps([status, out.getvalue(), err.getvalue()]))
"""


def copy_program(folder: Path) -> Path:
    """Copy the program, uncompiled, into this folder."""
    ignored = shutil.ignore_patterns("*.so", "*.pyd", "captures")
    for package in ("amqpscope", "dissectors"):
        shutil.copytree(SOURCE / package, folder / package, ignore=ignored)
    (folder / "captures").symlink_to(REPOSITORY / "captures")
    return folder


def run(program: Path, *commands: list[str], before: str = "") -> list[tuple[int, str, str]]:
    """Exit status, standard output and standard error of each command. before: Python code to run first."""
    environment = {**os.environ, "PYTHONPATH": str(program), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(
        [sys.executable, "-c", before + SCRIPT],
        input="".join(f"{json.dumps(command)}\n" for command in commands),
        capture_output=True,
        text=True,
        cwd=program,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]

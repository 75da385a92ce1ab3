"""The GitHub Action, run as a runner does: each step's script in bash, with its inputs in the environment."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import amqpscope
from amqpscope.cli.main import run

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
PATIENCE = 120

if shutil.which("bash") is None:
    pytest.skip("there is no bash", allow_module_level=True)


class Runner:
    """What a runner gives to the steps of a job, and what they leave in it."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "work space"
        self.temporary = folder / "temp dir"
        for one in (self.workspace, self.temporary):
            one.mkdir()
        self.summary = folder / "summary"
        self.output = folder / "output"
        self.summary.touch()
        self.output.touch()
        self.environment = {
            **os.environ,
            "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_OUTPUT": str(self.output),
            "RUNNER_TEMP": str(self.temporary),
            "PYTHONPATH": str(Path(amqpscope.__file__).parents[1]),
        }

    def run(self, name: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        step = STEPS[name]
        assert step["shell"] == "bash"
        values = {key: one.get("default", "") for key, one in ACTION["inputs"].items()}
        values.update({key.replace("_", "-"): value for key, value in inputs.items()})
        assert values.keys() == ACTION["inputs"].keys()

        def value(expression: re.Match[str]) -> str:
            return values[expression[1]]

        given = {
            key: re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", value, text) for key, text in step["env"].items()
        }
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            cwd=self.workspace,
            env={**self.environment, **given},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def outputs(self) -> dict[str, str]:
        return dict(line.split("=", 1) for line in self.output.read_text().splitlines())


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """One in which amqpscope is installed, as the first step leaves it."""
    runner = Runner(tmp_path)
    programs = runner.temporary / "amqpscope" / "pro grams"
    programs.mkdir(parents=True)
    program = programs / "amqpscope"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m amqpscope "$@"\n')
    program.chmod(0o755)
    (programs.parent / "programs").write_text(f"{programs}\n")
    return runner


def test_scripts_take_nothing_from_outside_but_the_environment() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]
    used = {
        name
        for step in STEPS.values()
        for text in step["env"].values()
        for name in re.findall(r"inputs\.([a-z-]+)", text)
    }
    assert used == ACTION["inputs"].keys()


def test_findings_are_everywhere(runner: Runner) -> None:
    done = runner.run("Check captures", paths=str(CAPTURES / "rhea-transfer-before-attach.pcap"))
    assert done.returncode == 1, done.stderr
    assert done.stdout.startswith("::error ")
    assert "amqp10/L-UNATTACHED-TRANSFER" in done.stdout
    assert "amqp10/L-UNATTACHED-TRANSFER" in runner.summary.read_text()
    assert runner.outputs() == {"status": "1", "sarif": "amqpscope.sarif"}
    run = json.loads((runner.workspace / "amqpscope.sarif").read_text())["runs"][0]
    assert {result["ruleId"] for result in run["results"]} == {
        "amqp10/L-DC-UNSET",
        "amqp10/L-UNATTACHED-TRANSFER",
    }


def test_all_is_well(runner: Runner) -> None:
    done = runner.run("Check captures", paths=str(CAPTURES / "demo.pcap"), sarif="")
    assert done.returncode == 0, done.stderr
    assert runner.outputs() == {"status": "0"}
    assert "nothing wrong found" in runner.summary.read_text()
    assert list(runner.workspace.iterdir()) == []


def test_paths_are_lines(runner: Runner) -> None:
    """Names with spaces, patterns, folders; none of it is a word of a command."""
    inside = runner.workspace / "recorded here" / "deep $(touch down)"
    inside.mkdir(parents=True)
    for name in ("one; touch away.pcap", "-two --fail-on=never.pcap"):
        shutil.copy(CAPTURES / "rhea-transfer-before-attach.pcap", inside / name)
    done = runner.run("Check captures", paths="recorded here/**/*.pcap\n\nrecorded here\n")
    assert done.returncode == 1, done.stderr
    assert len(re.findall("::error .*amqp10/L-DC-UNSET", done.stdout)) == 4
    assert sorted(one.name for one in runner.workspace.iterdir()) == ["amqpscope.sarif", "recorded here"]
    for name in inside.iterdir():
        name.rename(runner.workspace / name.name)
    done = runner.run("Check captures", paths="*.pcap")
    assert len(re.findall("::error .*amqp10/L-DC-UNSET", done.stdout)) == 2, done.stderr


@pytest.mark.parametrize(
    ("inputs", "status"),
    [
        ({"fail_on": "never"}, 0),
        ({"args": "--fail-on\nnever"}, 0),
        ({"args": "--nonesuch"}, 2),
        ({"fail_on": "warning; exit 0"}, 2),
        ({"paths": "nothing/*.pcap"}, 2),
        ({"paths": "$(exit 0)"}, 2),
    ],
)
def test_options_and_statuses(runner: Runner, inputs: dict[str, Any], status: int) -> None:
    inputs.setdefault("paths", str(CAPTURES / "rhea-transfer-before-attach.pcap"))
    done = runner.run("Check captures", **inputs)
    assert done.returncode == status, done.stderr
    assert runner.outputs()["status"] == str(status)


def test_configuration_and_baseline(runner: Runner) -> None:
    broken = str(CAPTURES / "rhea-transfer-before-attach.pcap")
    (runner.workspace / "amqp scope.toml").write_text('ignore = ["L-UNATTACHED-*"]\n')
    made = runner.run("Check captures", paths=broken, args="--write-baseline\nknown here.json", sarif="")
    assert made.returncode == 0, made.stderr
    done = runner.run("Check captures", paths=broken, config="amqp scope.toml", sarif="")
    assert done.returncode == 1, done.stderr
    assert re.findall("^::error .*(L-[A-Z-]+)", done.stdout, re.MULTILINE) == ["L-DC-UNSET"]
    assert runner.run("Check captures", paths=broken, baseline="known here.json").returncode == 0
    assert runner.run("Check captures", paths=broken, baseline="none.json").returncode == 2


def test_a_capture_without_amqp_fails(runner: Runner) -> None:
    (runner.workspace / "empty.pcap").write_bytes((CAPTURES / "demo.pcap").read_bytes()[:24])
    assert runner.run("Check captures", paths="empty.pcap").returncode == 3
    assert runner.run("Check captures", paths="empty.pcap", args="--allow-empty").returncode == 0


def test_a_long_summary_is_cut(runner: Runner) -> None:
    program = runner.temporary / "amqpscope" / "pro grams" / "amqpscope"
    program.write_text('#!/bin/sh\nhead -c 2000000 /dev/zero | tr "\\0" x > "${5#markdown:}"\nexit 1\n')
    done = runner.run("Check captures", paths="x", sarif="")
    assert done.returncode == 1
    said = runner.summary.read_text()
    assert said.startswith("xxx")
    assert said.endswith("xx\n\n(The summary is longer than GitHub shows.)\n")
    assert len(said) < 1024 * 1024


def test_it_is_installed_from_the_action_itself(tmp_path: Path) -> None:
    """With a Python that only writes down what it was asked for."""
    runner = Runner(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    fake = programs / "python3"
    fake.write_text(
        '#!/bin/bash\necho "$AMQPSCOPE_COMPILE: $*" >> "$ASKED"\n'
        'if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi\n'
    )
    fake.chmod(0o755)
    runner.environment.update(PATH=f"{programs}:{os.environ['PATH']}", ASKED=str(tmp_path / "asked"))
    done = runner.run("Install amqpscope")
    assert done.returncode == 0, done.stderr
    venv = runner.temporary / "amqpscope" / "venv"
    assert (tmp_path / "asked").read_text().splitlines()[1:] == [
        f"no: -m venv {venv}",
        f"no: -m pip install --quiet {ROOT}",
    ]
    assert (venv.parent / "programs").read_text() == f"{venv}/bin\n"


def test_an_old_python_is_refused(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("python", "python3", *(f"python3.{minor}" for minor in range(11, 15))):
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    runner.environment["PATH"] = f"{programs}:{os.environ['PATH']}"
    done = runner.run("Install amqpscope")
    assert done.returncode == 2
    assert (
        done.stdout == "::error::amqpscope needs Python 3.11 or newer: put actions/setup-python before it\n"
    )


def test_the_hook_of_pre_commit() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert {"id", "name", "entry", "language", "files"} <= hook.keys()
    for name in ("a.pcap", "b/c.pcapng", "d.PCAP", "e.cap", "f.pcapng.gz", "g.pcap.zst"):
        assert re.search(hook["files"], name), name
    for name in ("pcap", "a.pcap.txt", "caps.py", "recap"):
        assert not re.search(hook["files"], name), name
    command, *arguments = hook["entry"].split()
    assert command == "amqpscope"
    assert run([*arguments, *hook.get("args", []), str(CAPTURES / "demo.pcap")]) == 0

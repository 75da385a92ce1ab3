"""What users import: all of it is in `amqpscope`, documented, and the examples use nothing else."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import amqpscope

ROOT = Path(__file__).parents[2]
CAPTURE = str(ROOT / "captures" / "rhea-transfer-before-attach.pcap")


def documentation(thing: Any) -> str | None:
    """The docstring in the source: what is compiled has none."""
    source = ROOT / f"{thing.__module__.replace('.', '/')}.py"
    for node in ast.parse(source.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == thing.__name__:
            return ast.get_docstring(node)
    return None


def test_every_name_is_there_and_documented() -> None:
    for name in amqpscope.__all__:
        assert documentation(getattr(amqpscope, name)), name
    assert set(amqpscope.__all__) <= set(dir(amqpscope))
    with pytest.raises(AttributeError):
        amqpscope.nothing_of_this_name  # noqa: B018


def test_frames_and_findings_are_the_objects_of_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    from amqpscope.cli.main import run

    for command, objects in [
        ("read", amqpscope.read_dicts(CAPTURE)),
        ("check", amqpscope.check_dicts(CAPTURE)),
    ]:
        run([command, "--format", "ndjson", CAPTURE])
        printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert list(objects) == printed and printed


def test_to_import_it_loads_nothing_that_reads() -> None:
    """pytest imports it in every run, for the plugin."""
    program = (
        "import sys, amqpscope; print(sorted(name for name in sys.modules if name[:4] in ('amqp', 'diss')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "['amqpscope', 'amqpscope.errors']\n"


def test_the_examples_import_only_what_is_promised() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    imports = {
        line
        for page in pages
        for block in re.findall(
            r"^```(?:python|py)\n(.*?)^```$", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
        )
        for line in re.findall(r"^(?:import|from) ((?:amqpscope|dissectors)\S*)", block, re.MULTILINE)
    }
    assert imports == {"amqpscope", "amqpscope.pipeline", "dissectors.amqp10.performatives"}


def test_the_notebook_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = json.loads((ROOT / "docs/assets/findings.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    pytest.importorskip("pandas")
    monkeypatch.chdir(ROOT)
    names: dict[str, object] = {}
    for cell in cells:
        exec(compile(cell, "findings.ipynb", "exec"), names)
    assert len(names["findings"]) == 3 and len(names["frames"]) > 10  # type: ignore[arg-type]


SITUATION = str(ROOT / "captures" / "situations" / "credit-starved.pcap")


def test_diagnoses_are_those_of_check() -> None:
    (one,) = amqpscope.diagnose(SITUATION)
    assert (one.code, one.whose_move, one.packet) == ("diag/credit-starved", "client", 32)
    run = amqpscope.judge([SITUATION], amqpscope.load_policy(None), diagnoses=True)
    assert [two.json() for two in run.captures[0].diagnoses] == [one.json()]
    assert amqpscope.judge([SITUATION], amqpscope.load_policy(None)).captures[0].diagnoses == []
    assert list(amqpscope.diagnose(SITUATION, limits={"credit-starved.waiting-seconds": 100})) == []
    with pytest.raises(amqpscope.FilterError):
        amqpscope.diagnose(SITUATION, limits={"credit-starved.hours": 1})

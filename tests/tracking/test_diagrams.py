"""The state diagrams in the documentation are those of the tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amqpscope.tracking.amqp10.states import SESSION
from amqpscope.tracking.diagrams import FILE, main, page

KEPT = Path(__file__).parents[2] / FILE


def test_the_kept_diagrams_are_those_of_the_tables() -> None:
    assert KEPT.read_text(encoding="utf-8") == page()


def test_each_cell_is_an_arrow() -> None:
    drawn = page().split("## AMQP 1.0: session")[1].split("## ")[0]
    arrows = re.findall(r"^    (\w+) --> (\w+): (.*)$", drawn, re.MULTILINE)
    cells = {
        (state, action.replace("send ", "S:").replace("receive ", "R:")): following
        for state, following, actions in arrows
        for action in actions.split(", ")
    }
    assert cells == SESSION.cells


def test_a_page_that_differs_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "folder" / "diagrams.md"
    assert main(["--check", str(kept)]) == 1
    assert main([str(kept)]) == 0
    assert main(["--check", str(kept)]) == 0
    kept.write_text(kept.read_text(encoding="utf-8").replace("MAPPED", "OTHER", 1), encoding="utf-8")
    capsys.readouterr()
    assert main(["--check", str(kept)]) == 1
    assert str(kept) in capsys.readouterr().err

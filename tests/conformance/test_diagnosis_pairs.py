"""Each diagnosis has a page and two captures: in one it is made, in the other there is none, and no fault."""

from __future__ import annotations

import pytest
from scenarios.diagnoses.troubles import troubles
from scenarios.write_captures import FOLDER
from support.commands import amqpscope
from support.judged import errors

from amqpscope.conformance.diagnosed import FINE, TROUBLED, diagnosed
from amqpscope.diagnoses.registry import kinds
from amqpscope.report.diagnosis_page import threads

CODES = sorted(kinds())


def test_every_diagnosis_has_a_pair_and_a_page() -> None:
    assert sorted(f"diag/{name}" for name in troubles()) == CODES
    for code in CODES:
        folder = FOLDER / code
        assert sorted(file.name for file in folder.iterdir()) == ["README.md", "fine.pcap", "troubled.pcap"]


@pytest.mark.parametrize("code", CODES)
def test_the_trouble_is_diagnosed_and_its_twin_is_not(code: str) -> None:
    troubled = (FOLDER / code / f"{TROUBLED}.pcap").read_bytes()
    fine = (FOLDER / code / f"{FINE}.pcap").read_bytes()
    assert [one.code for one in diagnosed(troubled, "")[1]] == [code]
    assert diagnosed(fine, "")[1] == []
    assert errors(fine) == []


def test_each_has_words_under_every_head_but_threads() -> None:
    for kind in kinds().values():
        sections = list(kind.sections())
        assert len([head for head in sections if head != "Discussions"]) == 6, kind.name
        named = kind.sections().get("Discussions", "")
        assert len(threads(named)) == len(named.replace(",", " ").split()), kind.name


def test_a_diagnosis_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    for given in ("diag/credit-none", "credit-none"):
        written = amqpscope(capsys, "rules", "explain", given)
        assert written.status == 0
        assert "A sender waits for credit" in written.out
        assert "[diag/credit-none]" in written.out
        assert "no diagnosis" in written.out
    page = amqpscope(capsys, "rules", "explain", "--format", "markdown", "diag/credit-none").out
    assert page.startswith("# diag/credit-none")
    assert "](" not in page.replace("](https://", "")


def test_the_captures_are_those_of_the_conversations() -> None:
    for name, speak in troubles().items():
        for which, troubled in ((TROUBLED, True), (FINE, False)):
            assert (FOLDER / "diag" / name / f"{which}.pcap").read_bytes() == speak(troubled).pcap(), name

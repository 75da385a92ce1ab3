"""The pages of the rules: complete, as the program writes them, true; and all their links lead somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from support.commands import amqpscope
from support.sampling import share

from amqpscope.cli.rule_page_writer import RulePageWriter
from amqpscope.conformance.coverage import judged
from amqpscope.conformance.pairs import CapturePairs
from amqpscope.diagnoses.registry import kinds
from amqpscope.policy.config_finding import REMARKS
from amqpscope.protocols import RULE_SPACES
from amqpscope.report.capture_notes import CAPTURE_NOTES, note_named
from amqpscope.report.ladder import ladder
from amqpscope.report.rule_page import escaped, page_of_rule
from amqpscope.report.rule_pages import MARK
from amqpscope.rules.catalogue import catalogue, guards, rule, severity
from amqpscope.rules.editions import shown_in
from amqpscope.rules.explanation import explanation
from amqpscope.rules.references import references
from amqpscope.rules.registry import checked
from amqpscope.rules.subjects import SUBJECTS

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "captures" / "rules"
PAIRS = CapturePairs()
PAGES = {path.relative_to(FOLDER).as_posix(): path.read_text("utf-8") for path in FOLDER.rglob("*.md")}
SOME = dict(share(sorted(PAGES.items()), 3, "pages")) | {
    path: text for path, text in PAGES.items() if path.count("/") < 2
}
"""A share of the pages of rules, and all others."""
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
EMOJI = re.compile(r":[a-z0-9_+-]+:")


@cache
def parsed(text: str) -> list[Token]:
    return PARSER.parse(text)


def inlines(text: str) -> Iterator[Token]:
    """Every piece of text, code and link of a page."""
    for token in parsed(text):
        yield from token.children or []


def seen(text: str) -> str:
    """What a reader sees, without the blocks of code."""
    return " ".join(
        "".join(child.content for child in token.children or []) for token in parsed(text) if token.children
    )


def links(text: str) -> list[str]:
    return [str(token.attrs["href"]) for token in inlines(text) if token.type == "link_open"]


def headings(text: str) -> list[str]:
    tokens = parsed(text)
    return [tokens[index + 1].content for index, token in enumerate(tokens) if token.type == "heading_open"]


def slug(heading: str) -> str:
    """The anchor that a forge gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_there_is_a_page_for_every_rule_and_guard_and_further_dialogue() -> None:
    assert len(catalogue()) == 414 + 315 + 233 + 13
    expected = {f"{name}/README.md" for name in (*catalogue(), *guards(), *PAIRS.pairs)}
    expected |= {"README.md", "capture/README.md", *(f"{protocol}/README.md" for protocol in RULE_SPACES)}
    expected.add("config/README.md")
    expected |= {f"subjects/{one.name}/README.md" for one in SUBJECTS}
    expected |= {"diag/README.md", *(f"{code}/README.md" for code in kinds())}
    assert set(PAGES) == expected


def test_those_in_the_source_tree_are_what_the_program_writes() -> None:
    assert RulePageWriter(FOLDER, PAIRS).differences() == []


def test_all_links_lead_somewhere() -> None:
    count = 0
    for path, text in SOME.items():
        for link in links(text):
            if link.startswith("https://"):
                continue
            count += 1
            target, _, anchor = link.partition("#")
            file = (FOLDER / path).parent / target
            assert file.is_file(), (path, link)
            if anchor:
                there = file.resolve().relative_to(FOLDER).as_posix()
                assert anchor in map(slug, headings(PAGES[there])), (path, link)
    assert count > 1500


def test_the_indexes_link_every_page() -> None:
    names = {*catalogue(), *guards()}
    for protocol in RULE_SPACES:
        pages = {link for link in links(PAGES[f"{protocol}/README.md"]) if not link.startswith("..")}
        rules = {link.partition("/")[0] for link in pages if link.endswith("/README.md")}
        assert {f"{protocol}/{short}" for short in rules} & names == {
            name for name in names if name.startswith(f"{protocol}/")
        }
    indexes = {f"{protocol}/README.md" for protocol in RULE_SPACES}
    assert {*indexes, "capture/README.md"} <= set(links(PAGES["README.md"]))


def test_a_further_dialogue_is_linked_from_its_rule() -> None:
    for folder, pair in PAIRS.pairs.items():
        if folder not in catalogue():
            short = folder.partition("/")[2]
            assert f"../{short}/README.md" in links(PAGES[f"{pair.rules[0]}/README.md"])
            assert PAGES[f"{folder}/README.md"].count("```text") == 2


LEVELS_IN_WORDS = {
    "IMPLIED": "The specification implies this rule",
    "MAY-limits": "The specification permits the behaviour only within limits",
}


@pytest.mark.parametrize("protocol", RULE_SPACES)
def test_a_page_tells_all_that_is_known_of_its_rule(protocol: str) -> None:
    names = [name for name in catalogue() if name.startswith(f"{protocol}/")]
    for name in share(names, 3, f"{protocol} reported"):
        row = rule(name, shown_in(name))
        shown = seen(PAGES[f"{name}/README.md"])
        words = explanation(name)
        facts = [name, row.text, severity(name, shown_in(name))]
        facts.append(LEVELS_IN_WORDS.get(row.requirement, row.requirement))
        facts += [
            *row.answer.replace("to close the socket", "closes the socket").split(" or "),
            row.severity_reason,
            row.evidence,
        ]
        facts += [one.text for one in references(row.source)]
        if words is None:
            facts.append(row.reason)
        else:
            facts += [words.fault, words.matters, words.silent.removeprefix("never"), words.function]
        assert (words is None) == (name not in checked())
        for fact in facts:
            assert fact.replace("`", "") in shown, (name, fact)
        assert ("A capture cannot show whether" in shown) == (name not in checked()), name


@pytest.mark.parametrize("protocol", RULE_SPACES)
def test_an_index_states_the_severity_of_every_level(protocol: str) -> None:
    rows = [rule(name, shown_in(name)) for name in catalogue() if name.startswith(f"{protocol}/")]
    shown = PAGES[f"{protocol}/README.md"]
    stated = {
        level: weight
        for names, weight in re.findall(
            r"a rule with the level ([A-Za-z, ]+) usually has the severity `(error|warning|note)`", shown
        )
        for level in re.split(", | or ", names)
    }
    assert len(stated) > 5
    others = [row.id for row in rows if stated.get(row.requirement) != row.severity]
    assert f"For {len(others)} of these {len(rows)} rules, the level alone does not give" in shown
    for row in rows:
        has_reason = f"- **Severity:** {row.severity}" in PAGES[f"{row.id}/README.md"]
        assert has_reason == (row.id in others), row.id


def drawing(folder: str, which: str, spec: str) -> str:
    frames, findings = judged(PAIRS.octets(folder, which), "x", spec)
    lines = ["".join(part for _, part in line).rstrip() for line in ladder(frames, findings)]
    return "\n".join(lines) + "\n"


def test_a_page_draws_what_breaks_the_rule_and_what_does_not() -> None:
    for name in share(list(checked()), 4, "drawn"):
        drawn = [token for token in parsed(PAGES[f"{name}/README.md"]) if token.type == "fence"]
        assert len(drawn) == 2, name
        broken, clean = (token.content for token in drawn)
        assert f"× {name}: " in broken or f"× possible {name}: " in broken, name
        assert "═" in broken
        assert not re.search("× (?:possible )?amqp", clean.replace("× amqp-", "")) and "═" not in clean
        folder = PAIRS.of(name)[0].folder
        assert broken == drawing(folder, "violating", shown_in(name)), name
        assert clean == drawing(folder, "clean", shown_in(name)), name


def test_guards_are_drawn_once_and_nothing_is_found() -> None:
    for name in guards():
        text = PAGES[f"{name}/README.md"]
        (drawn,) = (token.content for token in parsed(text) if token.type == "fence")
        assert drawn == drawing(name, "legal", "final")
        assert not re.search("× (?:possible )?amqp10", drawn) and "═" not in drawn
        assert guards()[name].text in seen(text)


def test_no_word_becomes_a_picture_a_mention_or_markup() -> None:
    for path, text in SOME.items():
        for token in inlines(text):
            assert token.type in (
                "text", "code_inline", "link_open", "link_close", "strong_open", "strong_close", "softbreak",
                "text_special",
            ), (path, token)  # fmt: skip
            if token.type == "text":
                assert not EMOJI.search(token.content), (path, token.content)
                assert "@" not in token.content, (path, token.content)


@pytest.mark.parametrize(
    "words",
    [
        "*a* _b_ **c** ~~d~~ <b>e</b> <!-- f --> [g](h) ![i](j) a|b \\ \\* & &amp; $x$ # 1 @somebody {x}",
        "L-CREDIT, M-NO-RULE and amqp:link:stolen; <https://a.b/c_d_e>, `x|y` or *",
    ],
)
def test_words_show_nothing_but_themselves(words: str) -> None:
    text = f"| {escaped(words, 'amqp10/S-WIN-IN', alone=False)} |\n|---|\n"
    (cell,) = (token for token in parsed(text) if token.type == "inline")
    assert "".join(child.content for child in cell.children or []) == words.replace("`", "")
    kinds = {child.type for child in cell.children or []}
    assert kinds <= {"text", "text_special", "code_inline", "link_open", "link_close"}
    expected = ["../L-CREDIT/README.md", "https://a.b/c_d_e"] if words.startswith("L-CREDIT") else []
    assert links(text) == expected


def test_alone_it_has_no_links_to_other_pages() -> None:
    page = page_of_rule(catalogue()["amqp10/L-CREDIT"], PAIRS, alone=True)
    assert all(link.startswith("https://docs.oasis-open.org/") for link in links(page))
    assert seen(page).startswith(
        "amqp10/L-CREDIT Severity: error. The specification calls a violation of this rule illegal. "
        "amqpscope checks this rule in captures. This rule belongs to the layer link of AMQP 1.0."
    )
    assert len(links(PAGES["amqp10/L-CREDIT/README.md"])) > 10


# ---- notes about captures --------------------------------------------------------------------------------


def test_every_note_has_its_section() -> None:
    sources = [path.read_text() for path in (ROOT / "amqpscope").rglob("*.py")]
    reported = {code for text in sources for code in re.findall(r'"(capture/[a-z-]+)"', text)}
    assert {code for note in CAPTURE_NOTES for code in note.codes} == reported
    there = headings(PAGES["capture/README.md"])
    assert {code for heading in there for code in heading.split(", ") if "/" in code} == reported
    shown = seen(PAGES["capture/README.md"])
    for note in CAPTURE_NOTES:
        assert all(note_named(code) is note for code in note.codes)
        assert note.means in shown and note.follows.replace("`", "") in shown


def test_what_is_found_in_a_configuration_has_its_section(capsys: pytest.CaptureFixture[str]) -> None:
    page = PAGES["config/README.md"]
    assert [heading for heading in headings(page) if "/" in heading] == list(REMARKS)
    assert "config/README.md" in links(PAGES["README.md"])
    for name, kind in REMARKS.items():
        assert kind.text in seen(page) and kind.matters in seen(page)
        assert amqpscope(capsys, "rules", "explain", name).lines[0].startswith(f"{name}  ")


def test_every_note_has_its_row() -> None:
    """The table explains each code that the program can report, and no other."""
    sources = [path.read_text() for path in (ROOT / "amqpscope").rglob("*.py")]
    reported = {code for text in sources for code in re.findall(r'"(capture/[a-z-]+)"', text)}
    listed = [code for note in CAPTURE_NOTES for code in note.codes]
    assert len(listed) == len(set(listed)) >= 17
    table = (ROOT / "amqpscope/report/capture_notes.py").read_text()
    elsewhere = {
        code for text in sources if text != table for code in re.findall(r'"(capture/[a-z-]+)"', text)
    }
    assert set(listed) == reported == elsewhere


def test_a_note_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "explain", "Capture/Joined")
    assert (result.status, result.err) == (0, "")
    assert result.lines == [
        "capture/joined  note, about the capture itself",
        "  means     The file consists of several capture files that were concatenated.",
        "  follows   All these files are read. Packets are neither sorted nor deduplicated.",
    ]
    result = amqpscope(capsys, "rules", "explain", "--format", "markdown", "capture/joined")
    assert result.lines[0] == "# capture/joined"
    means = "The file consists of several capture files that were concatenated."
    assert f"- **What it means:** {means}" in result.lines


# ---- writing them ----------------------------------------------------------------------------------------


def test_markdown_of_one_rule(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "explain", "--format", "markdown", "l-credit", "T-LIST0")
    assert (result.status, result.err) == (0, "")
    first, second = result.out.split("\n# amqp10/T-LIST0")
    assert first == page_of_rule(catalogue()["amqp10/L-CREDIT"], PAIRS, alone=True)
    assert "## Legal" in second


@pytest.fixture
def at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pages need not be made anew: that they would be the same is held above."""
    monkeypatch.setattr("amqpscope.cli.rule_page_writer.pages", lambda _: PAGES.items())


@pytest.mark.usefixtures("at_hand")
def test_pages_are_written_checked_and_repaired(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "\x1b[31mred"
    result = amqpscope(capsys, "rules", "pages", "--check", folder)
    assert result.status == 1
    assert "\x1b" not in result.out
    assert len(result.lines) == 21 and result.lines[-1].startswith("and ")
    assert not folder.exists()

    result = amqpscope(capsys, "rules", "pages", folder)
    assert (result.status, result.err) == (0, "")
    assert "\x1b" not in result.out
    assert f"{len(PAGES)} pages, {len(PAGES)} of them new or changed; " in result.out
    written = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    assert {path: written[path].read_text() for path in PAGES} == PAGES
    pcaps = set(written) - set(PAGES)
    assert pcaps == {path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.pcap")}
    assert amqpscope(capsys, "rules", "pages", "--check", folder).out == ""

    own = folder / "amqp10" / "L-CREDIT" / "mine.txt"
    own.write_text("mine")
    capture = folder / "amqp10" / "L-CREDIT" / "clean.pcap"
    capture.write_bytes(b"another one")
    gone = folder / "amqp10" / "L-GONE"
    gone.mkdir()
    (gone / "README.md").write_text(MARK + "# gone")
    (folder / "amqp08").mkdir()
    (folder / "amqp08" / "README.md").write_text(MARK + "# gone")
    (folder / "amqp10" / "notes").mkdir()
    (folder / "amqp10" / "notes" / "README.md").write_text("# somebody's")
    written["amqp091/B-ACK-DUP/README.md"].write_text(MARK + "# old")
    written["capture/README.md"].unlink()
    written["amqp091/B-ACK-DUP/cut.pcap"].unlink()
    result = amqpscope(capsys, "rules", "pages", "--check", folder)
    assert result.status == 1
    assert sorted(result.lines[:2]) == [
        "amqp091/B-ACK-DUP/README.md: differs from what the program writes",
        "capture/README.md: is missing",
    ]
    assert result.lines[2:] == [
        "amqp08/README.md: is a page, but no such rule exists",
        "amqp10/L-GONE/README.md: is a page, but no such rule exists",
        "amqp091/B-ACK-DUP/cut.pcap: is missing",
    ]
    result = amqpscope(capsys, "rules", "pages", folder)
    assert result.out.endswith(f"{len(PAGES)} pages, 2 of them new or changed, 2 removed; 1 captures\n")
    assert amqpscope(capsys, "rules", "pages", "--check", folder).status == 0
    assert not gone.exists() and not (folder / "amqp08").exists()
    assert (own.read_text(), capture.read_bytes()) == ("mine", b"another one")
    assert (folder / "amqp10" / "notes" / "README.md").read_text() == "# somebody's"


@pytest.mark.usefixtures("at_hand")
def test_what_is_somebody_elses_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "amqp091" / "B-ACK-DUP").mkdir(parents=True)
    (tmp_path / "amqp091" / "B-ACK-DUP" / "README.md").write_text("# mine")
    result = amqpscope(capsys, "rules", "pages", tmp_path)
    assert (result.status, result.out) == (2, "")
    assert result.err.count("\n") == 1
    assert "amqp091/B-ACK-DUP/README.md: exists already and is not a page of" in result.err
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["README.md"]
    assert (tmp_path / "amqp091" / "B-ACK-DUP" / "README.md").read_text() == "# mine"


@pytest.mark.usefixtures("at_hand")
def test_where_nothing_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    result = amqpscope(capsys, "rules", "pages", tmp_path / "file")
    assert (result.status, result.out) == (2, "")
    assert result.err.endswith("Not a directory\n")

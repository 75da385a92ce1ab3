"""`amqpscope rules`: the whole catalogue, each rule explained and drawn, coverage computed."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import pytest
from support.commands import amqpscope, unprintable
from support.sampling import share

from amqpscope.conformance import coverage as proving
from amqpscope.protocols import RULE_SPACES
from amqpscope.rules.catalogue import catalogue, guards, named, severity
from amqpscope.rules.declaration import LAYERS
from amqpscope.rules.references import named_source, references
from amqpscope.rules.registry import checked
from amqpscope.rules.subjects import SUBJECTS, Subject
from dissectors import spec

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures" / "rules"
LISTED = re.compile(
    r"([-+.]) ((?:amqp(?:10|091|10-draft2011)|ws)/\S+) +(error|warning|note) +(.+?)  *"
    r"(client|server|either|sender|receiver) +(.+)"
)


# ---- list ------------------------------------------------------------------------------------------------


def listed(capsys: pytest.CaptureFixture[str], *options: str) -> list[str]:
    """The ids of what is listed."""
    result = amqpscope(capsys, "rules", "list", *options)
    assert (result.status, result.err) == (0, "")
    *rows, last = result.lines
    assert last.startswith(f"{len(rows)} rules: ")
    return [row.split()[1] for row in rows]


def test_list_has_every_rule_with_all_that_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "list")
    assert (result.status, result.err) == (0, "")
    *rows, last = result.lines
    ids = []
    for row in rows:
        match = LISTED.fullmatch(row)
        assert match, row
        sign, name, weight, level, breaker, text = match.groups()
        rule = catalogue()[name]
        ids.append(name)
        assert (weight, level, breaker, text) == (severity(name), rule.requirement, rule.breaker, rule.text)
        expected = "+" if name in checked() else "." if rule.observable == "no" else "-"
        assert sign == expected
    assert len(ids) == 414 + 315 + 233 + 13 and set(ids) == set(catalogue())
    protocols = list(RULE_SPACES)
    order = [(protocols.index(name.partition("/")[0]), LAYERS.index(catalogue()[name].layer)) for name in ids]
    assert order == sorted(order)
    assert last == "975 rules: + {} checked, - {} not yet, . {} not decidable from a capture".format(
        *(Counter(row[0] for row in rows)[sign] for sign in "+-.")
    )


def test_list_of_layers(capsys: pytest.CaptureFixture[str]) -> None:
    ids = listed(capsys, "--layer", "session, TLS")
    assert {catalogue()[name].layer for name in ids} == {"session", "tls"}
    assert len(ids) == sum(row.layer in ("session", "tls") for row in catalogue().values())


@pytest.mark.parametrize("weight", ["error", "warning", "note"])
def test_list_of_one_severity(capsys: pytest.CaptureFixture[str], weight: str) -> None:
    assert set(listed(capsys, "--severity", weight)) == {
        name for name in catalogue() if severity(name) == weight
    }


def test_list_of_what_is_checked_or_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(listed(capsys, "--checked")) == set(checked())
    assert set(listed(capsys, "--unchecked")) == set(catalogue()) - set(checked())


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "list", "--format", "json", "--layer", "link", "--unchecked")
    whole = json.loads(result.out)
    assert whole["schema"] == "amqpscope/rules/1"
    assert {row["rule"] for row in whole["rules"]} == {
        name for name, row in catalogue().items() if row.layer == "link" and name not in checked()
    }
    by_id = {row["rule"]: row for row in whole["rules"]}
    assert by_id["amqp10/L-TERM-VERIFY"] == {
        "rule": "amqp10/L-TERM-VERIFY",
        "layer": "link",
        "severity": severity("amqp10/L-TERM-VERIFY"),
        "requirement": "MUST",
        "basis": catalogue()["amqp10/L-TERM-VERIFY"].basis,
        "breaker": catalogue()["amqp10/L-TERM-VERIFY"].breaker,
        "status": "not-decidable",
        "text": catalogue()["amqp10/L-TERM-VERIFY"].text,
        "spec": named_source(catalogue()["amqp10/L-TERM-VERIFY"].source),
        "references": [
            {"text": one.text, "address": one.address}
            for one in references(catalogue()["amqp10/L-TERM-VERIFY"].source)
        ],
        "observable": "no",
        "reason": "A capture does not show whether a peer checks the source or target.",
        "evidence": catalogue()["amqp10/L-TERM-VERIFY"].evidence or None,
        "expected_condition": catalogue()["amqp10/L-TERM-VERIFY"].answer or None,
    }


def test_a_layer_that_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "list", "--layer", "link,\x1b[31mred")
    assert (result.status, result.out) == (2, "")
    assert result.err.startswith("amqpscope: --layer \\x1b[31mred: is none of types, framing, ")
    assert unprintable(result.err) == []


# ---- explain ---------------------------------------------------------------------------------------------


def test_explain_tells_the_row_the_words_and_draws_the_pair(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "explain", "L-CREDIT")
    assert (result.status, result.err) == (0, "")
    row = catalogue()["amqp10/L-CREDIT"]
    lines = result.lines
    assert lines[0] == (
        "amqp10/L-CREDIT  error. The specification calls a violation of this rule illegal. "
        "amqpscope checks this rule in captures."
    )
    assert f"  demands       {row.text}" in lines
    assert any(
        line.startswith(
            "  source        AMQP 1.0, Part 2: Transport, 2.6.7 Flow Control <https://docs.oasis-open.org/"
        )
        for line in lines
    )
    assert "  broken by     the sender of the link" in lines
    assert f"  answer        A correct peer answers this fault with {row.answer}." in lines
    assert f"  evidence      {row.evidence}" in lines
    assert "  code          rules/amqp10/link.py, transfer_beyond_credit" in lines
    for label in ("fault", "matters", "silent"):
        assert any(re.match(rf"  {label:<13} \S", line) for line in lines), label
    broken = lines.index("Broken (captures/rules/amqp10/L-CREDIT/violating.pcap)")
    clean = lines.index("Not broken (captures/rules/amqp10/L-CREDIT/clean.pcap)")
    assert any("══ transfer #2 " in line for line in lines[broken:clean])
    assert any("× amqp10/L-CREDIT: " in line for line in lines[broken:clean])
    assert lines[clean + 1].lstrip().startswith("client ") and len(lines) > clean + 10
    assert not any("═" in line for line in lines[clean:])


@pytest.mark.parametrize("given", ["l-credit", "AMQP10/L-CREDIT", "amqp10/l-credit", " L-Credit "])
def test_a_rule_is_found_however_it_is_written(capsys: pytest.CaptureFixture[str], given: str) -> None:
    result = amqpscope(capsys, "rules", "explain", given)
    assert result.status == 0
    assert result.lines[0].startswith("amqp10/L-CREDIT ")


def test_every_rule_can_be_explained(capsys: pytest.CaptureFixture[str]) -> None:
    rules = share(list(catalogue()), 8, "explained")
    result = amqpscope(capsys, "rules", "explain", *rules)
    assert (result.status, result.err) == (0, "")
    explained = re.split(r"^(?=(?:amqp(?:10|091|10-draft2011)|ws)/)", result.out, flags=re.MULTILINE)[1:]
    assert [text.split()[0] for text in explained] == rules
    for text in explained:
        name = text.split()[0]
        drawn = text.count("\nBroken (") + text.count("\nNot broken (")
        assert drawn == (2 if name in checked() else 0), name
        if name in checked():
            assert "  fault     " in text and f" {name}: " in text, name


def test_a_rule_that_is_never_silent_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        "  silent        never, because the frame alone shows the fault."
        in amqpscope(capsys, "rules", "explain", "D-TAG-LEN").lines
    )


def test_what_cannot_be_decided_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    lines = amqpscope(capsys, "rules", "explain", "C-LOCALE-ENUS").lines
    assert " ".join(line.strip() for line in lines[:2]).startswith(
        "amqp10/C-LOCALE-ENUS  error. The specification uses the word MUST for this rule. "
        "A capture cannot show "
    )
    assert "  unchecked     A capture does not show which locales a peer supports." in lines


def test_a_guard_is_explained_as_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "explain", *guards())
    assert (result.status, result.err) == (0, "")
    shown = "  legal. This behaviour looks like a fault, but no rule reports this behaviour.\n"
    assert result.out.count(shown) == len(guards())
    assert result.out.count("\nLegal (captures/rules/amqp10/") == len(guards())
    assert "═" not in result.out


def test_an_unknown_rule_gets_those_near_it(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "explain", "L-CREDT", "amqp10/S-WIN-IN", "S-WIN")
    assert result.status == 2
    assert result.lines[0].startswith("amqp10/S-WIN-IN ")
    first, second = result.err.splitlines()
    assert first.startswith("amqpscope: L-CREDT: there is no such rule; similar rules: amqp10/L-CREDIT, ")
    assert "similar rules: amqp10/S-WIN-" in second
    assert second.count("amqp10/") == 5


@pytest.mark.parametrize("given", ["\x1b[31m", "", "x" * 100_000, "\u202e"])
def test_nonsense_is_no_rule(capsys: pytest.CaptureFixture[str], given: str) -> None:
    result = amqpscope(capsys, "rules", "explain", "--", given)
    assert (result.status, result.out) == (2, "")
    assert result.err.endswith(": there is no such rule; `amqpscope rules list` lists all rules\n")
    assert unprintable(result.err) == []


# ---- coverage --------------------------------------------------------------------------------------------


# Rules whose captures are spoilt, and some that they must leave alone: of both protocols, of a draft only.
FEW = (
    "amqp10/L-CREDIT",
    "amqp10/D-TAG-LEN",
    "amqp10/S-WIN-IN",
    "amqp10/L-DC-UNSET",
    "amqp10/M-ANN-XOPT-IGNORE",
    "amqp091/B-ACK-DUP",
    "amqp091/B-ACK-CHANNEL",
)
FEW_GUARDS = ("amqp10/T-LIST0", "amqp10/L-ATTACH-IDC-RCV")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the captures of a few rules, to be spoilt. There are no others then."""
    monkeypatch.setattr(proving, "checked", lambda: {name: checked()[name] for name in FEW})
    monkeypatch.setattr(proving, "guards", lambda: {name: guards()[name] for name in FEW_GUARDS})
    head, *lines = (CAPTURES / "expected.tsv").read_text().splitlines()
    rows = [line for line in lines if line.split("\t")[1] in FEW]
    copied = tmp_path / "rules"
    for name in {row.split("\t")[1] for row in rows} | set(FEW_GUARDS):
        shutil.copytree(CAPTURES / name, copied / name)
    (copied / "expected.tsv").write_text("\n".join([head, *rows]))
    return copied


@pytest.fixture(scope="module")
def judged_once() -> Iterator[None]:
    """Every capture is judged once, however many forms are asked for."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(proving, "judged", cache(proving.judged))
        yield


def failed(capsys: pytest.CaptureFixture[str], folder: Path, text: bool = False) -> dict[str, list[str]]:
    """What fails with these captures, in JSON. text: the text is to say the same."""
    result = amqpscope(capsys, "rules", "coverage", "--captures", folder, "--format", "json")
    whole = json.loads(result.out)
    proofs = [*whole["rules"], *whole["guards"]]
    wrong = {proof["rule"]: proof["failures"] for proof in proofs if proof["status"] == "failed"}
    assert all(not proof["failures"] for proof in proofs if proof["status"] != "failed")
    assert (result.status, result.err) == (1 if wrong else 0, "")
    if text:
        reported = amqpscope(capsys, "rules", "coverage", "--captures", folder)
        assert (reported.status, reported.err) == (result.status, "")
        assert [line[8:] for line in reported.lines if line.startswith("failed: ")] == list(wrong)
        for sentences in wrong.values():
            assert all(f"  {sentence}" in reported.lines for sentence in sentences)
    return wrong


@pytest.mark.usefixtures("judged_once")
def test_all_that_is_checked_is_proved(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "coverage")
    assert (result.status, result.err) == (0, "")
    count = len(checked())
    undecidable = sum(row.observable == "no" and name not in checked() for name, row in catalogue().items())
    assert f"legal patterns: the rules are silent on {len(guards())} of {len(guards())}" in result.lines
    assert result.lines[-1].startswith(f"all {count} checked rules find what breaks them")
    table = [line.rsplit(maxsplit=5) for line in result.lines if re.match(r" *[A-Za-z].*( +\d+){5}$", line)]
    names = [row[0] for row in table]
    assert names[0] == "AMQP 1.0" and names[-1] == "all"
    assert [name.strip() for name in names[:-1]] == [
        name
        for protocol in RULE_SPACES.values()
        for name in (
            protocol.label,
            *(
                layer
                for layer in LAYERS
                if any(
                    row.layer == layer and row.id.startswith(f"{protocol.name}/")
                    for row in catalogue().values()
                )
            ),
        )
    ]
    assert table[-1][1:] == ["975", str(count), "0", str(975 - count - undecidable), str(undecidable)]
    heads = [names.index(protocol.label) for protocol in RULE_SPACES.values()]
    for column in range(1, 6):
        for head, after in zip(heads, [*heads[1:], len(table) - 1], strict=True):
            parts = table[head + 1 : after]
            assert sum(int(row[column]) for row in parts) == int(table[head][column])
        assert sum(int(table[head][column]) for head in heads) == int(table[-1][column])
    for name, row in catalogue().items():
        short = name.partition("/")[2]
        if row.observable == "no" and name not in checked():
            assert f"    {short}: {row.reason}" in result.lines
        else:
            assert re.search(rf"(?:  |, ){short}(?:,|$)", result.out, re.MULTILINE), name


@pytest.mark.usefixtures("judged_once")
def test_coverage_of_the_rules_that_the_xml_names(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "coverage")
    first = next(n for n, line in enumerate(result.lines) if "rules that its XML names" in line)
    assert result.lines[first].startswith("AMQP 0-9-1, the 115 rules that its XML names: ")
    lines = result.lines[first + 1 : first + 116]
    tree = ElementTree.parse(Path(spec.__file__).parent / "amqp091" / "amqp-0-9-1.xml").getroot()
    assert len(lines) == len(list(tree.iter("rule"))) == 115
    for line, one in zip(lines, named(), strict=True):
        ids = [name.partition("/")[2] for name in one.rules]
        assert line.startswith(f"  {line[2]} {one.name}")
        assert all(name in line for name in ids) and one.reason in line
        assert (line[2] == "+") == any(name in checked() for name in one.rules), line
        assert one.rules or one.reason
    whole = json.loads(amqpscope(capsys, "rules", "coverage", "--format", "json").out)
    assert [one["name"] for one in whole["xml_rules"]] == [one.name for one in named()]


@pytest.mark.usefixtures("judged_once")
def test_coverage_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    whole = json.loads(amqpscope(capsys, "rules", "coverage", "--format", "json").out)
    assert whole["schema"] == "amqpscope/coverage/1"
    assert [proof["rule"] for proof in whole["rules"]] == list(catalogue())
    assert [proof["rule"] for proof in whole["guards"]] == list(guards())
    assert whole["counts"] == {
        status: sum(proof["status"] == status for proof in whole["rules"])
        for status in ("checked", "failed", "not-yet", "not-decidable")
    }
    assert {proof["rule"] for proof in whole["rules"] if proof["status"] == "checked"} == set(checked())


def test_what_is_not_spoilt_is_proved(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert failed(capsys, folder, text=True) == {}
    result = amqpscope(capsys, "rules", "coverage", "--captures", folder)
    assert result.lines[-2:] == [
        f"legal patterns: the rules are silent on {len(FEW_GUARDS)} of {len(FEW_GUARDS)}",
        f"all {len(FEW)} checked rules find what breaks them, and nothing in what is legal or missing",
    ]


def test_a_rule_that_does_not_fire_fails(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    place = folder / "amqp10" / "L-CREDIT"
    shutil.copy(place / "clean.pcap", place / "violating.pcap")
    assert failed(capsys, folder) == {
        "amqp10/L-CREDIT": [
            "amqp10/L-CREDIT/violating.pcap: not found: amqp10/L-CREDIT certain, by the client in packet 16"
        ]
    }


@pytest.mark.parametrize("which", ["clean", "cut"])
def test_a_rule_that_does_not_keep_silent_fails(
    capsys: pytest.CaptureFixture[str], folder: Path, which: str
) -> None:
    place = folder / "amqp10" / "L-CREDIT"
    shutil.copy(place / "violating.pcap", place / f"{which}.pcap")
    assert failed(capsys, folder) == {
        "amqp10/L-CREDIT": [
            f"amqp10/L-CREDIT/{which}.pcap: found, and should not be: "
            "amqp10/L-CREDIT certain, by the client in packet 16"
        ]
    }


def test_another_rule_that_fires_fails_the_pair(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    other = folder / "amqp10" / "D-TAG-LEN" / "violating.pcap"
    shutil.copy(other, folder / "amqp10" / "L-CREDIT" / "clean.pcap")
    (sentence,) = failed(capsys, folder)["amqp10/L-CREDIT"]
    assert sentence.startswith(
        "amqp10/L-CREDIT/clean.pcap: found, and should not be: amqp10/D-TAG-LEN certain"
    )


def test_a_cut_one_that_should_say_the_same_and_does_not_fails(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    place = folder / "amqp10" / "D-TAG-LEN"
    shutil.copy(place / "clean.pcap", place / "cut.pcap")
    (sentence,) = failed(capsys, folder)["amqp10/D-TAG-LEN"]
    assert sentence.startswith("amqp10/D-TAG-LEN/cut.pcap: not found: amqp10/D-TAG-LEN certain")


@pytest.mark.parametrize(("column", "other"), [(2, "server"), (3, "15"), (4, "possible")])
def test_another_peer_packet_or_certainty_fails(
    capsys: pytest.CaptureFixture[str], folder: Path, column: int, other: str
) -> None:
    table = folder / "expected.tsv"
    lines = table.read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("amqp10/L-CREDIT\t"))
    cells = lines[at].split("\t")
    assert cells[column] != other
    cells[column] = other
    lines[at] = "\t".join(cells)
    table.write_text("\n".join(lines))
    sentences = failed(capsys, folder)["amqp10/L-CREDIT"]
    assert [re.split(": ", sentence)[1] for sentence in sentences] == [
        "not found",
        "found, and should not be",
    ]


def test_a_guard_that_is_not_silent_fails(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    shutil.copy(
        folder / "amqp10" / "L-CREDIT" / "violating.pcap", folder / "amqp10" / "T-LIST0" / "legal.pcap"
    )
    (sentence,) = failed(capsys, folder)["amqp10/T-LIST0"]
    assert sentence.startswith("amqp10/T-LIST0/legal.pcap: found, and should not be: amqp10/L-CREDIT")


def test_what_is_missing_or_damaged_fails(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    (folder / "amqp10" / "L-CREDIT" / "clean.pcap").unlink()
    (folder / "amqp10" / "S-WIN-IN" / "cut.pcap").write_bytes(b"no capture at all")
    (folder / "amqp10" / "T-LIST0" / "legal.pcap").unlink()
    table = folder / "expected.tsv"
    rows = [line for line in table.read_text().splitlines() if not line.startswith("amqp10/D-TAG-LEN\t")]
    table.write_text("\n".join(rows))
    assert failed(capsys, folder, text=True) == {
        "amqp10/L-CREDIT": ["amqp10/L-CREDIT/clean.pcap: No such file or directory"],
        "amqp10/S-WIN-IN": ["amqp10/S-WIN-IN/cut.pcap: not a capture file (neither pcap nor pcapng)"],
        "amqp10/D-TAG-LEN": ["it has no captures"],
        "amqp10/T-LIST0": ["amqp10/T-LIST0/legal.pcap: No such file or directory"],
    }


def test_a_folder_without_a_table_is_a_failure(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    result = amqpscope(capsys, "rules", "coverage", "--captures", tmp_path)
    assert (result.status, result.out) == (2, "")
    assert result.err == f"amqpscope: {tmp_path}/expected.tsv: No such file or directory\n"


# ---- help ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["list", "explain", "coverage"])
def test_help_fits_into_eighty_columns(capsys: pytest.CaptureFixture[str], command: str) -> None:
    result = amqpscope(capsys, "rules", command, "--help")
    assert result.status == 0
    assert all(len(line) <= 80 for line in result.lines)
    assert "Exit status: 0 fine, " in result.out
    usage = f"Usage: amqpscope rules {command} [OPTIONS]{' RULE...' if command == 'explain' else ''}"
    assert result.lines[0] == usage


def test_rules_are_found_by_words(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "search", "Link-Credit", "zero")
    assert (result.status, result.err) == (0, "")
    assert any(line.startswith("+ amqp10/L-CREDIT ") for line in result.lines)
    whole = json.loads(amqpscope(capsys, "rules", "search", "link-credit zero", "--format", "json").out)
    assert len(whole["rules"]) == sum(line.startswith(("+", ".")) for line in result.lines)
    nothing = amqpscope(capsys, "rules", "search", "zebra")
    assert (nothing.status, nothing.out) == (2, "")
    assert nothing.err == "amqpscope: zebra: no rule has all of these words\n"


@pytest.mark.parametrize("given", ["TX-", "tx-*", "amqp091/TX-"])
def test_a_beginning_lists_the_rules_that_have_it(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "explain", given)
    listed = {line.split()[1] for line in result.lines if line[0] in "+-."}
    expected = {name for name in catalogue() if f"/{given.rpartition('/')[2][:3].upper()}" in name}
    assert listed == {name for name in expected if "/" not in given or name.startswith("amqp091/")}
    assert "prefixes of amqp091: TX- tx" in result.lines
    assert amqpscope(capsys, "rules", "explain", "L-CREDITS").status == 2


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda one: one.name)
def test_a_subject_explains_rules_in_their_order(
    subject: Subject, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(capsys, "rules", "explain", subject.name)
    assert result.status == 0
    assert result.lines[0].startswith(subject.title)
    shown = re.findall(r"^  \d (\S+)", result.out, re.MULTILINE)
    assert tuple(shown) == subject.rules
    assert subject.drawn in subject.rules
    for name in subject.rules:
        assert catalogue()[f"{subject.protocol}/{name}"].text in result.out
    page = amqpscope(capsys, "rules", "explain", "--format", "markdown", subject.name).out
    assert page.startswith(f"# {subject.title}\n")
    assert page.count("```text") == 2

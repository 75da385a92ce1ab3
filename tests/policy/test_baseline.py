"""The baseline: what is known does not count, what is new does, what is gone is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scripted import SCRIPTED

from amqpscope.errors import ConfigurationError
from amqpscope.model.certainty import CERTAIN
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRef
from amqpscope.policy import CheckRun, Given, Policy, judge
from amqpscope.policy.baseline import SCHEMA, Baseline, known_object, read_baseline, write_baseline
from amqpscope.rules.fingerprint import fingerprint


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, dialogue in SCRIPTED.items():
        (tmp_path / f"{name}.pcap").write_bytes(dialogue().pcap())
    (tmp_path / "ci").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(*captures: str, file: str = "ci/known.json") -> dict[str, Any]:
    """The baseline of these captures, as it stands in its file."""
    policy = Policy(gather=file)
    run = judge(captures, policy)
    assert not run.fails
    assert {one.assessment.suppressed_by for one in run.findings} <= {"baseline"}
    assert policy.gathered is not None
    write_baseline(policy.gathered)
    whole = json.loads(Path(file).read_text())
    assert isinstance(whole, dict)
    return whole


def against(*captures: str, file: str = "ci/known.json") -> CheckRun:
    given = Given()
    given.baseline = file
    return judge(captures, Policy(None, given))


def test_what_it_holds(folder: Path) -> None:
    whole = written("window-overrun.pcap", "credit-overrun.pcap", "clean.pcap")
    assert whole["schema"] == "amqpscope/baseline/1"
    assert [(one["rule"], one["peer"], one["captures"]) for one in whole["findings"]] == [
        ("amqp10/L-CREDIT", "client", {"../credit-overrun.pcap": 6}),
        ("amqp10/S-WIN-IN", "client", {"../window-overrun.pcap": 2}),
    ]
    found = judge(["credit-overrun.pcap"], Policy()).findings
    assert whole["findings"][0]["fingerprint"] == fingerprint(found[0])
    assert whole["findings"][0]["message"].startswith(
        "the sender starts a delivery although no link-credit is left"
    )


def test_only_what_is_new_counts(folder: Path) -> None:
    written("credit-overrun.pcap")
    run = against("credit-overrun.pcap", "window-overrun.pcap")
    assert {(one.rule, one.assessment.suppressed_by, one.assessment.reason) for one in run.findings} == {
        ("amqp10/L-CREDIT", "baseline", "ci/known.json"),
        ("amqp10/S-WIN-IN", "", ""),
    }
    assert [one.outcome.value for one in run.captures] == ["fine", "findings"]
    assert run.closing.fixed == []


def test_it_is_known_in_another_capture_and_more_often(folder: Path) -> None:
    written("credit-overrun.pcap")
    (folder / "other.pcap").write_bytes((folder / "credit-overrun.pcap").read_bytes())
    assert not against("other.pcap", "credit-overrun.pcap").fails


def test_what_is_fixed(folder: Path) -> None:
    written("credit-overrun.pcap", "window-overrun.pcap")
    (folder / "window-overrun.pcap").write_bytes((folder / "clean.pcap").read_bytes())
    run = against("credit-overrun.pcap", "window-overrun.pcap")
    assert [(one.rule, one.captures) for one in run.closing.fixed] == [
        ("amqp10/S-WIN-IN", {"../window-overrun.pcap": 2})
    ]
    assert against("credit-overrun.pcap").closing.fixed == []  # what it was in was not looked at


def test_nothing_is_fixed_in_what_was_not_read_to_its_end(folder: Path) -> None:
    written("window-overrun.pcap")
    whole = (folder / "clean.pcap").read_bytes()
    for octets in (b"", whole[:-20]):
        (folder / "window-overrun.pcap").write_bytes(octets)
        assert against("window-overrun.pcap").closing.fixed == []
    (folder / "window-overrun.pcap").write_bytes(whole)
    assert len(against("window-overrun.pcap").closing.fixed) == 1


def test_what_is_allowed_or_ignored_is_not_in_it(folder: Path) -> None:
    from amqpscope.policy.configuration import read_configuration

    (folder / "x.toml").write_text('ignore = ["S-WIN-IN"]\n[[allow]]\nrule = "L-CREDIT"\nreason = "x"\n')
    policy = Policy(read_configuration("x.toml"), gather="known.json")
    run = judge(["credit-overrun.pcap", "window-overrun.pcap", "no-close.pcap"], policy)
    assert policy.gathered is not None
    assert [one.rule for one in policy.gathered.known.values()] == ["amqp10/C-CLOSE-SENT"]
    assert {one.assessment.suppressed_by for one in run.findings} == {"allow", "baseline"}


def test_what_is_ignored_now_is_not_fixed(folder: Path) -> None:
    written("credit-overrun.pcap")
    given = Given()
    given.baseline, given.ignore = "ci/known.json", ["L-CREDIT"]
    assert judge(["credit-overrun.pcap"], Policy(None, given)).closing.fixed == []


def test_a_baseline_of_a_configuration_is_relative_to_it(folder: Path) -> None:
    from amqpscope.policy.configuration import read_configuration

    written("credit-overrun.pcap")
    (folder / "ci" / "x.toml").write_text('baseline = "known.json"\n')
    assert not judge(["credit-overrun.pcap"], Policy(read_configuration("ci/x.toml"))).fails


def test_writing_is_all_or_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written("credit-overrun.pcap")
    before = Path("ci/known.json").read_bytes()

    def full(source: object, target: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(ConfigurationError, match=r"^ci/known.json: No space left on device$"):
            write_baseline(Baseline("ci/known.json"))
    assert Path("ci/known.json").read_bytes() == before
    assert [path.name for path in Path("ci").iterdir()] == ["known.json"]
    for file, reason in (("ci", "is not a regular file"), ("none/x.json", "No such file or directory")):
        with pytest.raises(ConfigurationError, match=f"^{file}: {reason}$"):
            write_baseline(Baseline(file))
    Path("link.json").symlink_to("ci/known.json")
    write_baseline(Baseline("link.json"))
    assert Path("link.json").is_symlink()
    assert json.loads(Path("ci/known.json").read_text())["findings"] == []


def test_it_does_not_grow_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("amqpscope.policy.baseline.MAX_BASELINE", 2)
    baseline = Baseline("x.json")
    for number in ("a", "b", "a"):
        baseline.add(number, finding("x"))
    with pytest.raises(
        ConfigurationError, match=r"^x.json: the baseline would have more than 2 different findings$"
    ):
        baseline.add("c", finding("x"))


def finding(text: str) -> Finding:
    connection = Connection(text, 0, 0, bytes([10, 0, 0, 1, 10, 0, 0, 2, 0xC3, 0x50, 0x16, 0x28]))
    spot = FrameRef(0, 17, 1, 0, "transfer", 0)
    found = Finding("amqp10/L-CREDIT", CERTAIN, f"before {text} behind", connection, spot, {}, [])
    found.link = text
    return found


def test_no_part_of_a_secret_is_in_it() -> None:
    found = finding("properties['hunter2']")
    found.evidence = {"path": "properties['hunter2']"}
    baseline = Baseline("x.json")
    baseline.add("a", found)
    assert baseline.known["a"].message == "before … behind"
    baseline.add("b", finding("amqps://user:hunter2@host/queue"))
    assert baseline.known["b"].message == "before amqps://user:(hidden)@host/queue behind"


@given(st.text(st.characters(), max_size=40))
def test_whatever_stands_in_it_is_visible_and_read_back(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.json"
    found = finding(text)
    baseline = Baseline(str(path))
    baseline.add(fingerprint(found), found)
    write_baseline(baseline)
    octets = path.read_bytes()
    assert all(octet == 10 or 32 <= octet < 127 for octet in octets)
    (known,) = read_baseline(str(path)).known.values()
    (same,) = baseline.known.values()
    assert known_object(known) == json.loads(json.dumps(known_object(same)))


ENTRY = {"rule": "r", "peer": "client", "message": "m", "fingerprint": "f", "captures": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("", "is not a valid baseline: the file is empty"),
        ("{", "is not a valid baseline: the file is not JSON"),
        ("[" * 100_000, "is not a valid baseline: the file is not JSON"),
        ("\udcff", "is not a valid baseline: the file is not JSON"),
        ("[]", 'is not a valid baseline: it has no "schema"'),
        ("{}", 'is not a valid baseline: it has no "schema"'),
        (
            '{"schema": "amqpscope/baseline/2"}',
            f"the schema of the baseline is not {SCHEMA}: write a new baseline",
        ),
        ('{"schema": []}', f"the schema of the baseline is not {SCHEMA}: write a new baseline"),
        (f'{{"schema": "{SCHEMA}"}}', 'is not a valid baseline: "findings" is not a list'),
        *(
            (
                json.dumps({"schema": SCHEMA, "findings": [ENTRY, broken]}),
                "is not a valid baseline: entry 2 was changed",
            )
            for broken in (
                1,
                {},
                {**ENTRY, "rule": 1},
                {**ENTRY, "captures": []},
                {**ENTRY, "captures": {"a": "b"}},
            )
        ),
    ],
)
def test_what_is_no_baseline(text: str, reported: str, folder: Path) -> None:
    Path("x.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(ConfigurationError) as caught:
        read_baseline("x.json")
    assert str(caught.value).startswith(f"x.json: {reported}")


def test_one_that_is_not_there_or_too_large(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"^none.json: No such file or directory$"):
        read_baseline("none.json")
    written("credit-overrun.pcap")
    monkeypatch.setattr("amqpscope.policy.baseline.MAX_BASELINE_OCTETS", 10)
    with pytest.raises(ConfigurationError, match=r"^ci/known.json: is larger than 10 octets$"):
        read_baseline("ci/known.json")

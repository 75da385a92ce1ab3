"""The allow-list: which findings an entry excuses, until when, and what is said of entries."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from support.scripted import SCRIPTED

from amqpscope.errors import ConfigurationError
from amqpscope.model.certainty import CERTAIN
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRef
from amqpscope.policy import CheckRun, Policy, judge
from amqpscope.policy.allow_list import SCOPES, Allowance
from amqpscope.policy.configuration import read_configuration

DAY = datetime.date(2026, 6, 30)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, dialogue in SCRIPTED.items():
        (tmp_path / f"{name}.pcap").write_bytes(dialogue().pcap())
    (tmp_path / "empty").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def finding(capture: str = "x") -> Finding:
    key = bytes([10, 0, 0, 1, 10, 0, 0, 2, 0xC3, 0x50, 0x16, 0x28])
    found = Finding(
        "amqp10/L-CREDIT",
        CERTAIN,
        "too much",
        Connection(capture, 0, 0, key),
        FrameRef(0, 17, 1, 0, "transfer", 0),
        {},
        [],
    )
    found.addresses = ("orders", "reply[1]")
    found.said = {"container-id": "scanner-7", "product": "Qpid", "version": "0.4"}
    return found


def fits(scope: dict[str, str | list[str]], name: str = "recorded/a.pcap", folder: str = "") -> bool:
    patterns = {name: [one] if isinstance(one, str) else one for name, one in scope.items()}
    rules = frozenset(["amqp10/L-CREDIT"])
    return Allowance(1, ["L-CREDIT"], rules, "why", patterns, None, folder).fits(finding(name))


@pytest.mark.parametrize(
    ("scope", "fitting"),
    [
        ({}, True),
        ({"connection": "10.0.0.1:50000>10.0.0.2:5672#0"}, True),
        ({"connection": "10.0.0.1:*"}, True),
        ({"connection": "10.0.0.1"}, False),
        ({"peer": "client"}, True),
        ({"peer": "server"}, False),
        ({"peer": ["server", "client"]}, True),
        ({"container": "scanner-*"}, True),
        ({"container": "SCANNER-7"}, False),
        ({"container": ["x", "scanner-?"]}, True),
        ({"product": "Qpid"}, True),
        ({"product": "Qpid 0.4"}, True),
        ({"product": "Qpid 0.5"}, False),
        ({"address": "orders"}, True),
        ({"address": "reply[1]"}, True),
        ({"address": "reply*"}, True),
        ({"address": "order"}, False),
        ({"capture": "a.pcap"}, True),
        ({"capture": "*.pcap"}, True),
        ({"capture": "recorded/*"}, True),
        ({"capture": "recorded"}, False),
        ({"capture": "b.pcap"}, False),
        ({"peer": "client", "container": "scanner-7", "address": "orders", "capture": "a.*"}, True),
        ({"peer": "client", "container": "scanner-7", "address": "nothing", "capture": "a.*"}, False),
    ],
)
def test_all_that_it_says_has_to_fit(scope: dict[str, str | list[str]], fitting: bool) -> None:
    assert fits(scope) is fitting


def test_paths_of_captures_are_from_the_configuration() -> None:
    assert fits(
        {"capture": "recorded/*.pcap"},
        "../that of the configuration/recorded/a.pcap",
        "../that of the configuration",
    )
    assert not fits({"capture": "recorded/*.pcap"}, "../that of the configuration/recorded/a.pcap", "")


def test_what_is_not_known_of_a_finding_fits_no_pattern() -> None:
    nothing = finding()
    nothing.addresses, nothing.said = (), {}
    for scope in ("container", "product", "address"):
        assert not Allowance(1, [], frozenset(), "why", {scope: ["*"]}, None, "").fits(nothing)


def test_it_holds_through_its_last_day() -> None:
    entry = Allowance(1, [], frozenset(), "why", {}, DAY, "")
    assert not entry.expired(DAY)
    assert entry.expired(DAY + datetime.timedelta(days=1))
    assert not Allowance(1, [], frozenset(), "why", {}, None, "").expired(datetime.date.max)


def run(folder: Path, text: str, *captures: str, today: datetime.date = DAY) -> CheckRun:
    (folder / "x.toml").write_text(text)
    return judge(captures, Policy(read_configuration("x.toml"), None, today))


ENTRY = '[[allow]]\nrule = "S-WIN-IN"\nreason = "they know"\n'


def test_what_is_allowed_does_not_count(folder: Path) -> None:
    done = run(folder, ENTRY, "window-overrun.pcap", "credit-overrun.pcap")
    assert [(one.rule, one.assessment.suppressed_by, one.assessment.reason) for one in done.findings] == [
        *[("amqp10/S-WIN-IN", "allow", "they know")] * 2,
        *[("amqp10/L-CREDIT", "", "")] * 6,
    ]
    assert [one.outcome.value for one in done.captures] == ["fine", "findings"]
    assert done.closing.remarks == []


def test_the_first_that_fits_gives_the_reason_and_all_are_used(folder: Path) -> None:
    done = run(folder, ENTRY + ENTRY.replace("they know", "again"), "window-overrun.pcap")
    assert {one.assessment.reason for one in done.findings} == {"they know"}
    assert done.closing.remarks == []


def test_an_expired_entry_excuses_nothing_and_is_a_finding(folder: Path) -> None:
    text = ENTRY + "expires = 2026-06-29\n"
    done = run(folder, text, "window-overrun.pcap")
    assert {one.assessment.suppressed_by for one in done.findings} == {""}
    (remark,) = done.closing.remarks
    assert (remark.rule, remark.severity, remark.place) == ("config/ALLOW-EXPIRED", "error", "x.toml, line 1")
    assert remark.message == (
        "entry 1 of the allow-list, for S-WIN-IN, expired on 2026-06-29 and excuses no findings any more "
        "(they know)"
    )
    assert done.fails
    fine = run(folder, text, "clean.pcap")
    assert (fine.fails, fine.remarked, fine.captures[0].outcome.value) == (True, True, "fine")
    assert not run(folder, f"fail-on = 'never'\n{text}", "clean.pcap").fails
    assert not run(folder, text, "clean.pcap", today=datetime.date(2026, 6, 29)).fails


def test_an_entry_that_fits_nothing_is_a_note(folder: Path) -> None:
    done = run(folder, f"fail-on = 'note'\n\n{ENTRY}", "clean.pcap")
    (remark,) = done.closing.remarks
    assert (remark.rule, remark.severity, remark.line) == ("config/ALLOW-UNUSED", "note", 3)
    assert not done.fails


def test_of_what_was_not_read_nothing_is_said(folder: Path) -> None:
    assert run(folder, ENTRY, "clean.pcap", "empty").closing.remarks == []
    (folder / "cut.pcap").write_bytes((folder / "clean.pcap").read_bytes()[:-20])
    assert run(folder, ENTRY, "cut.pcap").closing.remarks == []
    assert run(folder, ENTRY + "capture = 'other.pcap'\n", "clean.pcap").closing.remarks == []
    assert len(run(folder, ENTRY + "capture = 'clean.pcap'\n", "clean.pcap").closing.remarks) == 1


def test_an_entry_for_what_is_ignored_is_not_unused(folder: Path) -> None:
    done = run(folder, f"ignore = ['S-*']\n{ENTRY}", "window-overrun.pcap")
    assert (done.findings, done.captures[0].ignored, done.closing.remarks) == ([], 2, [])


def test_scopes_on_recorded_traffic() -> None:
    """Real peers: entries by container, product and address fit what they name, and nothing else."""
    captures = Path(__file__).resolve().parents[2] / "captures"
    for name, scope, fitting, other in (
        ("rhea-transfer-before-attach.pcap", "container", "rhea-broker", "shop-2"),
        ("rhea-transfer-before-attach.pcap", "address", "stocked", "stock"),
        ("pika-connection-errors.pcap", "product", "Pika*", "pika*"),
        ("pika-connection-errors.pcap", "address", "odd", "even"),
    ):
        findings = judge([captures / name], Policy()).findings
        for pattern, wanted in ((fitting, True), (other, False)):
            entry = Allowance(1, [], frozenset(), "why", {scope: [pattern]}, None, "")
            assert any(entry.fits(one) for one in findings) is wanted, (name, pattern)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("allow = 1", "x.toml, line 1: allow: must be a list of tables, each beginning with [[allow]]"),
        ("allow = [1]", "x.toml, line 1: allow: must be a list of tables, each beginning with [[allow]]"),
        ("[allow]", "x.toml, line 1: allow: must be a list of tables, each beginning with [[allow]]"),
        ("[[allow]]", "x.toml, line 1: [[allow]] 1: rule: is missing"),
        ("[[allow]]\nrule = 'L-CREDIT'", "x.toml, line 1: [[allow]] 1: reason: is missing"),
        (f"{ENTRY}\n[[allow]]\nreason = 'x'", "x.toml, line 5: [[allow]] 2: rule: is missing"),
        (ENTRY.replace("they know", " \\t "), "x.toml, line 1: [[allow]] 1: reason: must be a text"),
        (ENTRY.replace('"they know"', "1"), "x.toml, line 1: [[allow]] 1: reason: must be a text"),
        (ENTRY.replace("S-WIN-IN", "S-WIN-INN"), "x.toml, line 1: [[allow]] 1: rule S-WIN-INN: there is no"),
        (
            ENTRY.replace("S-WIN-IN", "note"),
            "x.toml, line 1: [[allow]] 1: rule: must be one or more rules or pattern",
        ),
        (ENTRY.replace('"S-WIN-IN"', "[]"), "x.toml, line 1: [[allow]] 1: rule: must be a text, or a list"),
        (f"{ENTRY}adress = 'x'", "x.toml, line 1: [[allow]] 1: adress: there is no such key; did you mean a"),
        (f"{ENTRY}peer = 'broker'", "x.toml, line 1: [[allow]] 1: peer: must be client or server"),
        (f"{ENTRY}container = 7", "x.toml, line 1: [[allow]] 1: container: must be a text, or a list of"),
        (
            f"{ENTRY}expires = '2026-01-01'",
            "x.toml, line 1: [[allow]] 1: expires: must be a date such as 2027-",
        ),
        (
            f"{ENTRY}expires = 2026-01-01T00:00:00",
            "x.toml, line 1: [[allow]] 1: expires: must be a date such as",
        ),
        (f"{ENTRY}expires = 2026-02-30", "x.toml: is not valid TOML: "),
    ],
)
def test_entries_that_cannot_be(text: str, reported: str, folder: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        run(folder, text, "clean.pcap")
    assert str(caught.value).startswith(reported)


def test_every_scope_may_stand_in_an_entry(folder: Path) -> None:
    (folder / "x.toml").write_text(ENTRY + "".join(f"{name} = 'client'\n" for name in SCOPES))
    (entry,) = read_configuration("x.toml").allowances
    assert {*entry.scope} == {*SCOPES}

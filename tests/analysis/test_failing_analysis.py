"""An error of amqpscope itself ends the reading of one connection; all others are read and judged.

It is provoked where compiled code calls code that is not compiled, for one product; or by an object in the
table of protocols that is none, for one protocol.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091
from support.fake_source import FakeSource, PacketGroup, packets_of
from support.tcp_writer import Capture as Tap

from amqpscope.cli.live_session import LiveSession, Stop
from amqpscope.cli.live_view import LiveView
from amqpscope.input.capture import Capture, CaptureOptions, check
from amqpscope.input.live import Batch, LiveWatch
from amqpscope.policy import Given, Policy, load_policy
from amqpscope.protocols import PROTOCOLS
from amqpscope.protocols.amqp091 import Amqp091
from amqpscope.protocols.amqp10 import Amqp10
from amqpscope.pytest_plugin.judgement import CaptureOfTest
from amqpscope.pytest_plugin.judgement import judge as judge_test
from amqpscope.report.rule_counts import RuleCounts
from amqpscope.rules import judge
from amqpscope.rules.profiles import recognised

INTERNAL = "internal/analysis"

# A path is shown from the package on; a checkout may have the name of the package, too.
_PARTS = Path(__file__).parts
_PLACE = "/".join(
    _PARTS[len(_PARTS) - 1 - _PARTS[::-1].index("amqpscope") :] if "amqpscope" in _PARTS else _PARTS[-1:]
)
FAILED = f"an error in amqpscope (ZeroDivisionError at {_PLACE}:"


class Unreadable(Amqp10):
    """AMQP 1.0, of which no frame can be decoded."""

    def decoder(self, midstream: bool) -> Any:
        return None


class Unreadable091(Amqp091):
    """AMQP 0-9-1, of which no frame can be decoded."""

    def decoder(self, midstream: bool) -> Any:
        return None


def fails_on_poison(said: dict[str, str]) -> Any:
    if said.get("product") == "Poison":
        raise ZeroDivisionError("\x1b[31m it was reported in red")
    return recognised(said)


def tell(tap: Tap, number: int, product: str) -> None:
    """A connection on which the client acknowledges what was never delivered, and sets a retired field."""
    d = Dialogue091(capture=tap, client=f"10.0.0.1:{51000 + number}")
    d.client.header()
    d.server.start()
    d.client.start_ok(properties={"product": product})
    d.server.tune()
    d.client.tune_ok()
    d.client.method("connection.open", virtual_host="/")
    d.server.method("connection.open-ok")
    d.channel(1)
    d.client.ack(delivery_tag=7)
    # A rule that products break by habit: its finding asks for the product.
    d.client.open_channel(2, reserved_1="x")
    d.server.channel_open_ok(2)
    d.goodbye()


@pytest.fixture
def poisoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three connections, each with the same fault; amqpscope fails on the second."""
    tap = Tap()
    for number, product in enumerate(("first", "Poison", "third")):
        tell(tap, number, product)
    monkeypatch.setattr(judge, "recognised", fails_on_poison)
    return tap.write(tmp_path / "poisoned.pcap")


def test_the_others_are_judged(poisoned: Path) -> None:
    with Capture(poisoned, CaptureOptions(judge=True)) as capture:
        names = [record.frame.name for record in capture]
        found = capture.take_findings()
    streams = [int(finding.connection.stream) for finding in found if finding.rule == "amqp091/B-ACK-KNOWN"]
    assert sorted(streams) == [0, 1, 2]  # what was found before it failed stands
    assert names.count("basic.ack") == 3
    (note,) = capture.mishaps
    assert note.code == INTERNAL and note.detail.startswith(FAILED)
    assert note.connection is not None and note.connection.stream == 1 and note.connection.failed
    assert note.packet > 0 and "red" not in note.detail
    assert capture.failed == 1
    assert [finding.rule for finding in check(poisoned)].count("amqp091/B-ACK-KNOWN") == 3


def test_what_it_fails_on_first_is_as_if_it_were_not_there(
    poisoned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here a protocol's frames cannot be read at all: those of the other protocol are."""
    tap = Tap()
    d = Dialogue(capture=tap, client="10.0.0.1:52000")
    d.linked()
    d.client.transfer()
    tell(tap, 1, "first")
    d.goodbye()
    monkeypatch.setitem(PROTOCOLS, "amqp10", Unreadable())
    path = tap.write(poisoned.parent / "mixed.pcap")
    with Capture(path, CaptureOptions(judge=True)) as capture:
        records = list(capture)
        found = capture.take_findings()
    assert {record.connection.protocol for record in records} <= {"amqp091", "amqp10"}
    assert [record.frame.name for record in records].count("basic.ack") == 1
    assert [finding.rule for finding in found].count("amqp091/B-ACK-KNOWN") == 1
    (note,) = capture.mishaps
    assert "Error at amqpscope/" in note.detail


@pytest.mark.parametrize("form", ["text", "json", "ndjson", "markdown", "junit", "sarif", "github"])
def test_check_tells_it(form: str, poisoned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In every form, with status 2, and beside the findings of the other connections."""
    result = amqpscope(capsys, "check", "--no-config", "--format", form, poisoned)
    assert result.status == 2
    reported = result.out + result.err
    assert FAILED in reported.replace("\\n", " ").replace("%3A", ":").replace("&#x27;", "'")
    assert INTERNAL in reported and "Traceback" not in reported and "\x1b" not in reported
    assert reported.count("B-ACK-KNOWN") >= (1 if form == "text" else 3)


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "--no-config", "--strict"],
        ["why", "--end"],
        ["why", "--end", "--format", "json"],
        ["diff"],
        ["diff", "--format", "json"],
    ],
)
def test_commands_that_judge(
    arguments: list[str], poisoned: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [poisoned, poisoned] if arguments[0] == "diff" else [poisoned]
    result = amqpscope(capsys, *arguments, *paths)
    assert result.status == 2
    assert INTERNAL in result.out + result.err and "Traceback" not in result.out + result.err
    assert "connection 2" in result.out or "51002" in result.out


def test_why_of_a_packet(poisoned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "why", poisoned, 4)
    assert result.status == 2
    assert "connection.header" in result.out or "header" in result.out
    assert FAILED in result.err


@pytest.mark.parametrize(
    "arguments", [["read"], ["read", "--format", "ndjson"], ["read", "--count"], ["summary"]]
)
def test_commands_that_only_read(
    arguments: list[str],
    poisoned: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(PROTOCOLS, "amqp091", Unreadable091())
    result = amqpscope(capsys, *arguments, poisoned)
    assert result.status == 2
    assert INTERNAL in result.out + result.err and "Traceback" not in result.out + result.err


def test_sniff(poisoned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A watch goes on, and says at its end what happened."""
    source = FakeSource([PacketGroup([packet]) for packet in packets_of(poisoned.read_bytes())])
    audience = Heard()
    run = LiveSession(
        LiveWatch(source), audience, None, Stop(0, 0, frozenset(), False), Policy(None, Given())
    )
    run.run()
    assert run.status() == 2
    assert FAILED in capsys.readouterr().err
    assert audience.rules.count("amqp091/B-ACK-KNOWN") == 3


class Heard(LiveView):
    """Keeps which rules it hears of."""

    def __init__(self) -> None:
        super().__init__()
        self.rules: list[str] = []

    @property
    def gone(self) -> bool:
        return False

    def end(self, conclusion: str, counts: RuleCounts) -> None:
        pass

    def write(self, batch: Batch, behind: bool) -> None:
        self.rules += [finding.rule for finding in batch.complete]


def test_a_pytest_run(poisoned: Path) -> None:
    """A test fails for it, in words that say why, and with the findings of all connections."""
    page = poisoned.with_suffix(".html")
    reported = judge_test(CaptureOfTest(str(poisoned)), load_policy(), lambda _: False, "", page, 1)
    assert reported.failed
    assert FAILED in reported.text.replace("\n    ", " ")
    assert len([one for one in reported.findings if one.rule == "amqp091/B-ACK-KNOWN"]) == 3


def test_rows_of_the_pipeline(poisoned: Path) -> None:
    """The run goes on; it is reported by the counts that the tasks report."""
    pytest.importorskip("pyspark")
    from amqpscope.pipeline import capture_set, chain, rows

    made = rows.Rows()
    (one,) = capture_set.capture_sets([str(poisoned)], "file")
    tables = dict([*chain.read_set(one, made), *made.batches(True)])
    assert tables["connections"].num_rows == 3
    assert tables["findings"].num_rows >= 3
    ((_, which, detail),) = [key for key in made.counts if key[0] == "mishap"]
    assert "51001" in which and FAILED in detail
    notes = [row["notes"] for row in tables["connections"].to_pylist() if row["notes"]]
    assert [note["code"] for (note,) in notes] == [INTERNAL]


def test_the_traceback_is_shown_when_it_is_asked_for(
    poisoned: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AMQPSCOPE_TRACEBACK", "1")
    result = amqpscope(capsys, "check", "--no-config", poisoned)
    assert result.status == 2
    assert "Traceback (most recent call last):" in result.err and "ZeroDivisionError" in result.err
    assert "\x1b" not in result.err


def test_a_lack_of_memory_is_no_mishap(poisoned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def exhausted(said: dict[str, str]) -> Any:
        raise MemoryError

    monkeypatch.setattr(judge, "recognised", exhausted)
    with Capture(poisoned, CaptureOptions(judge=True)) as capture, pytest.raises(MemoryError):
        list(capture)


def test_somebody_ends_it(poisoned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(said: dict[str, str]) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(judge, "recognised", interrupted)
    with Capture(poisoned, CaptureOptions(judge=True)) as capture, pytest.raises(KeyboardInterrupt):
        list(capture)


def test_what_fails_elsewhere_ends_in_one_line(
    poisoned: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("amqpscope.cli.summary.capture_status", broken)
    result = amqpscope(capsys, "summary", poisoned)
    assert result.status == 2
    assert result.err.startswith(f"amqpscope: {INTERNAL}: {FAILED}") and result.err.count("\n") == 1

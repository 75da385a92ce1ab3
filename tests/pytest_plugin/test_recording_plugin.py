"""The fixture `amqp_capture` over real sockets: what it records, what fails a test, and with which words."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.loopback import refusal
from support.plugin_runs import ROOT, network, run

from amqpscope.capture.live.opening import open_source
from amqpscope.input.capture import check

NETWORK = network()
if not NETWORK and refusal(lambda: open_source(["lo"])):
    pytest.skip(
        "there is no permission to capture, nor to have a network of one's own", allow_module_level=True
    )

SUITE = Path(__file__).with_name("recorded_suite.py")


@pytest.fixture(autouse=True)
def captures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPTURES", str(ROOT / "captures"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A repository with the suite in it."""
    suite = tmp_path / "repository"
    suite.mkdir()
    (suite / "pytest.ini").write_text("[pytest]\naddopts = -q -rA -p no:randomly\n")
    shutil.copy(SUITE, suite / "test_suite.py")
    (suite / "conftest.py").write_text("import sys\nsys.modules['scapy'] = None  # not needed on Linux\n")
    return suite


def outcomes(text: str) -> dict[str, str]:
    """By test, what became of it."""
    found = re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED) test_suite\.py::(\S+)", text, re.MULTILINE)
    return {name: outcome for outcome, name in found}


def part(text: str, name: str) -> str:
    """What is reported of one test."""
    found = re.search(rf"^_+ {re.escape(name)} _+$\n(.*?)(?=^_+ .* _+$|^=+ )", text, re.DOTALL | re.MULTILINE)
    assert found, text
    return found[1]


def test_the_suite(folder: Path) -> None:
    done = run(folder, before=NETWORK)
    text = done.stdout
    reported = outcomes(text)
    failed = {name for name, outcome in reported.items() if outcome == "FAILED"}
    assert failed == {
        "test_fails",
        "test_fails_itself",
        "test_says_nothing",
        "test_both_recordings_fail",
        "test_folder_is_gone",
    }, text
    assert {name for name, outcome in reported.items() if outcome == "ERROR"} == {
        "test_teardown_of_a_fixture"
    }, text
    assert len(re.findall(r"^PASSED", text, re.MULTILINE)) == 21, text
    assert "of its own accord" in text
    assert done.returncode == 1

    # In the words of `check`: who broke what, where, what was asked for, and the frames around.
    report = part(text, "test_fails")
    assert report.startswith("error amqp10/L-DC-UNSET by the client in packet "), report
    assert "error amqp10/L-UNATTACHED-TRANSFER by the server in packet " in report
    demand = "A sender must not send a transfer with a handle that has no attached link."
    assert f"rule      {demand} (MUST NOT)" in report
    assert "the specification asks for" in report
    assert re.search(r"^  >> +\d+  0\.\d+ 0  ←S 0 transfer    #0 handle=0", report, re.MULTILINE)
    path = re.search(r"^What led to it: amqpscope why (\S+) (\d+)$", report, re.MULTILINE)
    assert path, report
    assert [finding.rule for finding in check(path[1]) if finding.certain][:1] == ["amqp10/L-DC-UNSET"]
    assert "the block has failed" not in report
    assert "Traceback" not in text

    # A failure of the test's own comes first; what was found stands below it.
    report = part(text, "test_fails_itself")
    own, _, found = report.partition("Captured AMQP call")
    assert "AssertionError" in own
    assert "L-DC-UNSET" not in own
    assert "error amqp10/L-UNATTACHED-TRANSFER by the server" in found
    inner, _, outer = part(text, "test_both_recordings_fail").partition("Captured AMQP call")
    assert "server 127.0.0.1:6672" in inner
    assert "server 127.0.0.1:5672" in outer

    report = part(text, "test_says_nothing")
    assert "no AMQP 1.0 or 0-9-1 to check: no TCP in it (0 packets on lo, port 5672: check that" in report
    assert "no interface nonesuch: there are " in part(text, "test_folder_is_gone")
    assert re.search(
        r"PytestWarning: amqpscope: \d+ packets? not captured in .*: this machine was too busy", text
    )


def test_workers_record_their_own_ports(folder: Path) -> None:
    """Each in the same network, at the same time."""
    pytest.importorskip("xdist")
    names = "test_passes or test_fails or test_every_octet or test_several"
    done = run(folder, "-n", "2", "-k", names, before=NETWORK)
    reported = outcomes(done.stdout)
    assert {name for name, outcome in reported.items() if outcome != "PASSED"} == {
        "test_fails",
        "test_fails_itself",
    }
    assert len(reported) == 10, done.stdout


def test_recordings_are_kept_in_a_folder(folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\namqpscope_folder = kept/here\n")
    done = run(folder, "-k", "test_fails or test_several_recordings", before=NETWORK)
    assert done.returncode == 1
    names = sorted(path.name for path in (folder / "kept" / "here").iterdir())
    assert [re.sub("-[0-9a-f]{8}", "", name) for name in names] == [
        "test_suite.py-test_fails.html",
        "test_suite.py-test_fails.pcapng",
        "test_suite.py-test_fails_itself.html",
        "test_suite.py-test_fails_itself.pcapng",
        "test_suite.py-test_several_recordings-2.pcapng",
        "test_suite.py-test_several_recordings-3.pcapng",
        "test_suite.py-test_several_recordings.pcapng",
    ]
    assert f"why {folder}/kept/here/{names[1]} " in done.stdout
    assert "FAILED test_suite.py::test_fails - Failed: error amqp10/L-DC-UNSET by the client" in done.stdout


def test_an_interrupt_ends_it(folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\namqpscope_folder = kept\n")
    with (folder / "test_suite.py").open("a") as suite:
        suite.write(
            "\n\ndef test_interrupted(amqp_capture):\n    with amqp_capture.record(PORT):\n"
            "        replay(BROKEN, port=PORT)\n        raise KeyboardInterrupt\n"
        )
    done = run(folder, "-k", "test_interrupted", before=NETWORK)
    assert done.returncode == 2, done.stdout
    assert "KeyboardInterrupt" in done.stdout
    assert "L-DC-UNSET" not in done.stdout
    (kept,) = (folder / "kept").iterdir()
    assert "amqp10/L-DC-UNSET" in {finding.rule for finding in check(kept)}


WITHOUT = """
import pytest
from amqpscope.capture.live.privileges import give_up

give_up()
"""


@pytest.fixture
def forbidden(folder: Path) -> Path:
    """The same repository, whose tests may not capture."""
    (folder / "conftest.py").write_text(WITHOUT)
    return folder


def test_without_permission_tests_are_skipped(forbidden: Path) -> None:
    done = run(forbidden, "-k", "test_passes or test_fails", "-rs", before=NETWORK)
    assert done.returncode == 0, done.stdout
    assert "3 skipped" in done.stdout
    assert "amqpscope: recording on lo is not permitted: it takes the capability cap_net_raw: " in done.stdout


def test_recording_can_be_required(forbidden: Path) -> None:
    """What the command line says goes before the file."""
    (forbidden / "pytest.ini").write_text("[pytest]\namqpscope_record = off\n")
    done = run(forbidden, "-k", "test_passes or test_fails", "--amqpscope-record=required", before=NETWORK)
    assert done.returncode == 1
    assert "3 failed" in done.stdout
    assert "cap_net_raw" in done.stdout
    assert "(and `amqpscope_record` is `required`)" in done.stdout
    assert "the block has failed" not in done.stdout


def test_recording_can_be_off(forbidden: Path) -> None:
    (forbidden / "pytest.ini").write_text("[pytest]\naddopts = -q -rA\namqpscope_record = off\n")
    done = run(forbidden, "-k", "test_fails or test_may", before=NETWORK)
    assert "the block has failed" in done.stdout  # the test went on behind the block
    assert "L-DC-UNSET" not in done.stdout
    assert {"test_may_say_nothing": "PASSED"}.items() <= outcomes(done.stdout).items()

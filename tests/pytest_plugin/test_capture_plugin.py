"""The fixture `amqp_capture` with capture files, and the plugin where nobody asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pictures import page_data
from support.plugin_runs import ROOT, run

from amqpscope.cli.main import run as amqpscope
from amqpscope.errors import ConfigurationError
from amqpscope.policy.configuration import read_configuration
from amqpscope.pytest_plugin.fixture import AmqpCapture

CAPTURES = ROOT / "captures"
BROKEN = CAPTURES / "rhea-transfer-before-attach.pcap"


def suite(folder: Path, body: str, name: str = "test_suite.py") -> Path:
    """A repository with one file of tests in it."""
    folder.mkdir(exist_ok=True)
    (folder / "pytest.ini").touch()
    (folder / name).write_text(f"from pathlib import Path\nCAPTURES = Path({str(CAPTURES)!r})\n{body}")
    return folder


CHECKS = """
import pytest

def test_passes(amqp_capture):
    assert amqp_capture.check(CAPTURES / "demo.pcap") == []

def test_dialect(amqp_capture):
    path = CAPTURES / "draft2011" / "open_to_close.pcap"
    assert amqp_capture.check(path, dialect="draft2011") == []
    assert amqp_capture.check(path, dialect="final", fail_on="never") != []

def test_passes_with_notes(amqp_capture):
    found = amqp_capture.check(str(CAPTURES / "rhea-any-interface.pcap"))
    assert [(one.rule, one.certain) for one in found] == [("amqp10/S-LINK-ONE", False)]

def test_fails(amqp_capture):
    amqp_capture.check(CAPTURES / "rhea-transfer-before-attach.pcap")

def test_strict(amqp_capture):
    amqp_capture.check(CAPTURES / "rhea-any-interface.pcap", strict=True)

def test_possible(amqp_capture):
    amqp_capture.check(CAPTURES / "rhea-any-interface.pcap", fail_on_possible=True)

def test_one_of_several(amqp_capture):
    amqp_capture.check([CAPTURES / "demo.pcap", CAPTURES / "rhea-transfer-before-attach.pcap"])

def test_some_count(amqp_capture):
    amqp_capture.check(CAPTURES / "pika-channel-errors.pcap")

def test_some_allowed(amqp_capture):
    amqp_capture.check(CAPTURES / "rhea-transfer-before-attach.pcap", allow="L-DC-UNSET")

def test_allowed(amqp_capture):
    amqp_capture.check(CAPTURES / "rhea-transfer-before-attach.pcap", allow="amqp10/L-*")

def test_jobs(amqp_capture, monkeypatch):
    from amqpscope.pytest_plugin import judgement
    given = []
    judge = judgement.judge_under
    def noted(*args, **options):
        given.append(options["jobs"])
        return judge(*args, **options)
    monkeypatch.setattr(judgement, "judge_under", noted)
    assert amqp_capture.check(CAPTURES / "demo.pcap", jobs=2) == []
    assert amqp_capture.check(CAPTURES / "demo.pcap") == []
    amqp_capture._configuration.values["jobs"] = 3
    assert amqp_capture.check(CAPTURES / "demo.pcap") == []
    assert amqp_capture.check(CAPTURES / "demo.pcap", jobs="auto") == []
    assert given[:3] == [2, 1, 3] and given[3] >= 1

def test_never(amqp_capture):
    found = amqp_capture.check(CAPTURES / "rhea-transfer-before-attach.pcap", fail_on="never")
    assert len(found) == 3

def test_missing(amqp_capture):
    amqp_capture.check("there/is/none.pcap")

def test_empty(amqp_capture, tmp_path):
    path = tmp_path / "empty.pcap"
    path.write_bytes((CAPTURES / "demo.pcap").read_bytes()[:24])
    amqp_capture.check(path, allow_empty=True)
    amqp_capture.check(path)

def test_broken_off(amqp_capture, tmp_path):
    path = tmp_path / "half.pcap"
    octets = (CAPTURES / "demo.pcap").read_bytes()
    path.write_bytes(octets[: len(octets) // 2 + 1])
    assert amqp_capture.check(path) == []

def test_words(amqp_capture):
    path = CAPTURES / "demo.pcap"
    with pytest.raises(ValueError, match="fail_on='errors': must be one of error, warning, note, never"):
        amqp_capture.check(path, fail_on="errors")
    with pytest.raises(ValueError, match="allow L-CREDIT0: "):
        amqp_capture.check(path, allow="L-CREDIT0")
    with pytest.raises(TypeError, match="no such option: allowed; there are fail_on, "):
        amqp_capture.check(path, allowed="L-CREDIT")
    with pytest.raises(TypeError, match="no such option: prt; there are port, interface, fail_on, "):
        amqp_capture.record(prt=5673)
    with pytest.raises(ValueError, match="nonesuch"):
        amqp_capture.check(path, profile="nonesuch")
    with pytest.raises(ValueError, match="jobs 0: must be auto or a number from 1 to 64"):
        amqp_capture.check(path, jobs=0)
    with pytest.raises(ValueError, match="port 0: must be from 1 to 65535"):
        amqp_capture.record(0)
    with pytest.raises(ValueError, match="None records every port"):
        amqp_capture.record([])
"""


def test_checks(tmp_path: Path) -> None:
    done = run(suite(tmp_path / "repository", CHECKS), "-rA", "-p", "no:amqpscope_none")
    reported = dict(
        line.split(" - ")[0].split(" ", 1)[::-1] for line in done.stdout.splitlines() if "ED test_" in line
    )
    failed = {name.partition("::")[2] for name, outcome in reported.items() if outcome == "FAILED"}
    assert failed == {
        "test_fails",
        "test_strict",
        "test_possible",
        "test_one_of_several",
        "test_some_count",
        "test_some_allowed",
        "test_missing",
        "test_empty",
    }, done.stdout
    assert sum(outcome == "PASSED" for outcome in reported.values()) == 8, done.stdout
    text = done.stdout
    assert "possible error amqp10/S-LINK-ONE by the client in packet 34: the client attaches a link" in text
    assert "possible  The client may move its own link to the new session, which is allowed." in text
    assert "3 possible errors, 6 notes for which the test does not fail" in text
    assert "allowed: amqp10/L-DC-UNSET by the client (1, first in packet 12): the test says so" in text
    assert "there/is/none.pcap: No such file or directory" in text
    assert "no AMQP 1.0 or 0-9-1 to check: no TCP in it" in text
    assert "check that the test uses" not in text  # that is for recordings
    assert "Traceback" not in text
    # Each test that fails for a finding has a page, without the findings that the test allows.
    assert text.count("To see it in a browser: ") == 6
    report = text.partition("_ test_some_allowed _")[2].partition("To see it in a browser: ")[2]
    page = page_data(Path(report.partition("\n")[0]))
    found = [one["rule"] for row in page["connections"][0]["rows"] for one in row.get("found", [])]
    assert "amqp10/L-UNATTACHED-TRANSFER" in found and "amqp10/L-DC-UNSET" not in found


CONFIGURED = """
def test_file(amqp_capture):
    found = amqp_capture.check(CAPTURES / "rhea-transfer-before-attach.pcap")
    assert [one.rule for one in found] == ["amqp10/L-DC-UNSET"]

def test_beaten(amqp_capture):
    amqp_capture.check(CAPTURES / "rhea-transfer-before-attach.pcap", fail_on="warning")

def test_selected(amqp_capture):
    found = amqp_capture.check(CAPTURES / "rhea-transfer-before-attach.pcap", select="S-*")
    assert found == []
"""


def test_the_configuration_holds(tmp_path: Path) -> None:
    """That of the root directory, unless another one is named; what a test says beats it."""
    folder = suite(tmp_path / "repository", CONFIGURED)
    (folder / "amqpscope.toml").write_text(
        'ignore = ["L-UNATTACHED-*"]\n[severity]\n"L-DC-UNSET" = "warning"\n'
    )
    (folder / "deeper").mkdir()
    (folder / "test_suite.py").rename(folder / "deeper" / "test_suite.py")
    done = run(folder)
    assert "1 failed, 2 passed" in done.stdout, done.stdout
    report = done.stdout.partition("test_beaten")[2]
    assert "warning amqp10/L-DC-UNSET by the client in packet 12" in report
    assert "1 warning in 16 frames on 1 connection; 2 findings ignored" in report
    (folder / "strict.toml").write_text('strict = true\nignore = ["L-UNATTACHED-*"]\n')
    (folder / "pytest.ini").write_text("[pytest]\namqpscope_config = strict.toml\n")
    assert "2 failed, 1 passed" in run(folder).stdout
    (folder / "strict.toml").write_text("strikt = true\n")
    done = run(folder)
    assert "3 errors" in done.stdout
    assert "strict.toml, line 1: strikt: there is no such key; did you mean strict?" in done.stdout


def held_to(request: pytest.FixtureRequest, folder: Path, configuration: str) -> AmqpCapture:
    """What the fixture gives where this is the configuration."""
    file = folder / "amqpscope.toml"
    file.write_text(configuration)
    return AmqpCapture(request.node, "off", folder, None, read_configuration(str(file)))


def test_the_allow_list_holds(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """What has expired is warned of; what is for other tests is not spoken of."""
    capture = held_to(
        request,
        tmp_path,
        '[[allow]]\nrule = "L-UNATTACHED-*"\nreason = "an old one"\nexpires = 2020-01-01\n'
        '[[allow]]\nrule = "L-DC-UNSET"\nreason = "known, see 4711"\n'
        '[[allow]]\nrule = "S-LINK-ONE"\nreason = "for another test"\n',
    )
    expired = "amqpscope.toml, line 1: entry 1 of the allow-list, for L-UNATTACHED-.*, expired on 2020-01-01"
    with pytest.warns(pytest.PytestWarning, match=expired), pytest.raises(pytest.fail.Exception) as failed:
        capture.check(BROKEN)
    text = str(failed.value)
    assert text.startswith("error amqp10/L-UNATTACHED-TRANSFER by the server in packet 17")
    assert "2 errors in 16 frames on 1 connection; 1 finding allowed" in text
    assert "allowed: amqp10/L-DC-UNSET by the client (1, first in packet 12): known, see 4711" in text
    assert "another test" not in text


def test_a_baseline_holds(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    capture = held_to(request, tmp_path, 'baseline = "known.json"\n')
    with pytest.raises(ConfigurationError, match=r"known\.json: No such file"):
        capture.check(BROKEN)
    known = ["--write-baseline", str(tmp_path / "known.json")]
    assert amqpscope(["check", "--no-config", *known, str(BROKEN)]) == 0
    assert {finding.assessment.suppressed_by for finding in capture.check(BROKEN)} == {"baseline"}


UNCONCERNED = """
import sys

def test_it(request):
    ours = [name for name in sys.modules if name.split(".")[0] in ("amqpscope", "dissectors", "rich")]
    assert sorted(ours) == LOADED
    assert request.config.pluginmanager.has_plugin("amqpscope") == bool(LOADED)
"""


def test_who_does_not_use_it_does_not_wait_for_it(tmp_path: Path) -> None:
    loaded = ["amqpscope", "amqpscope.errors", "amqpscope.pytest_plugin", "amqpscope.pytest_plugin.plugin"]
    done = run(suite(tmp_path / "repository", f"LOADED = {loaded}\n{UNCONCERNED}"))
    assert done.returncode == 0, done.stdout


def test_it_can_be_left_out(tmp_path: Path) -> None:
    body = f"LOADED = []\n{UNCONCERNED}\ndef test_that(amqp_capture): pass\n"
    done = run(suite(tmp_path / "repository", body), "-p", "no:amqpscope")
    assert "1 passed, 1 error" in done.stdout
    assert "fixture 'amqp_capture' not found" in done.stdout


def test_options_are_reported_and_looked_at(tmp_path: Path) -> None:
    folder = suite(tmp_path / "repository", "def test_it(amqp_capture): pass\n")
    done = run(folder, "--help")
    for name in (
        "--amqpscope-record={if-permitted,required,off}",
        "amqpscope_record",
        "amqpscope_config",
        "amqpscope_folder",
    ):
        assert name in done.stdout
    (folder / "pytest.ini").write_text("[pytest]\namqpscope_record = maybe\n")
    done = run(folder)
    assert "amqpscope_record: must be one of if-permitted, required, off, not 'maybe'" in done.stdout


DIAGNOSED = """
import amqpscope

SITUATION = CAPTURES / "situations" / "acks-missing.pcap"

def test_a_diagnosis_fails_no_test(amqp_capture):
    amqp_capture.check(SITUATION)

def test_the_report_has_the_diagnosis(amqp_capture):
    amqp_capture.check(CAPTURES / "pika-two-threads.pcap")
"""


def test_a_report_has_diagnoses(tmp_path: Path) -> None:
    result = run(suite(tmp_path / "repository", DIAGNOSED), "-q")
    assert "1 failed, 1 passed" in result.stdout
    assert "has to act: channel 1: " in result.stdout
    assert "[diag/threads-share-channel]" in result.stdout.replace("\n", "")


def test_a_diagnosis_fails_the_test_if_the_configuration_says_so(tmp_path: Path) -> None:
    folder = suite(tmp_path / "repository", DIAGNOSED)
    (folder / "amqpscope.toml").write_text('fail-on-diagnosis = ["acks-missing"]\n')
    result = run(folder, "-q", "-k", "fails_no_test")
    assert "1 failed" in result.stdout
    assert "has to act: channel 1: " in result.stdout

"""What amqpscope answers to the options of other tools, and to words that are nearly right."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import DEMO, amqpscope

NO_DIAGNOSES = "--fail-on-diagnosis: cannot be combined with --no-diagnoses, which leaves out all diagnoses"

MISTAKES = [
    (["sniff", "lo"], "an interface is named by -i: amqpscope sniff -i lo"),
    (["sniff", "DEMO"], "it is a file: use `amqpscope check DEMO`, or `amqpscope sniff -i - < DEMO`"),
    (["sniff", "-r", "DEMO"], "`amqpscope sniff -i - < FILE` replays a capture"),
    (["DEMO"], "it is a file: use `amqpscope check DEMO`, or `read`, `summary` or `why`"),
    (["read", "-r", "DEMO"], "a capture is named without an option: amqpscope read DEMO"),
    (["check", "-r", "DEMO"], "a capture is named without an option: amqpscope check DEMO"),
    (
        ["read", "-Y", "amqp", "DEMO"],
        "--only, --address, --link, --connection, --channel, --from and --to choose",
    ),
    (["read", "-w", "x.pcap", "DEMO"], "`amqpscope sniff -w FILE` records packets"),
    (["check", "-w", "x.sarif", "DEMO"], "--output FILE writes a report"),
    (["read", "-c", "3", "DEMO"], "--limit N shows N frames"),
    (["read", "-n", "3", "DEMO"], "--limit N shows N frames"),
    (["summary", "-v", "DEMO"], "`amqpscope read -v` shows all fields of frames"),
    (["check", "-v", "DEMO"], "`amqpscope read -v` shows all fields of frames"),
    (["-v"], "--version shows the version"),
    (["read", "-i", "lo"], "`amqpscope sniff -i NAME` captures on a network interface"),
    (["read", "lo"], "lo: there is no such file; it is a network interface: amqpscope sniff -i lo"),
    (["why", "17", "DEMO"], "the file comes before the packet: amqpscope why DEMO 17"),
    (["why", "DEMO#2", "17"], "DEMO#2: no such file: tables of a ring of captures call a newer DEMO so; "),
    (["check", ""], "'': No such file or directory"),
    (["diff", "", "DEMO"], "'': No such file or directory"),
    (["why", "DEMO"], "a PACKET is needed: amqpscope why DEMO PACKET; "),
    (["check", "--filter", "x", "DEMO"], "--select and --ignore choose findings"),
    (["check", "--json", "DEMO"], "use --format json"),
    (["read", "--ndjson", "DEMO"], "use --format ndjson"),
    (["check", "--top", "DEMO"], "--top is an option of `sniff`"),
    (["read", "--rule", "L-CREDIT", "DEMO"], "`amqpscope check --select RULE` does that"),
    (["read", "--onyl", "open", "DEMO"], "did you mean --only?"),
    (["chekc", "DEMO"], "did you mean `check`?"),
    (["explain", "L-CREDIT"], "use `amqpscope rules explain`"),
    (["L-CREDIT"], "it is a rule: amqpscope rules explain L-CREDIT"),
    (["check", "L-CREDIT"], "there is no such file; it is a rule: amqpscope rules explain L-CREDIT"),
    (["help"], "use `amqpscope --help` or `amqpscope COMMAND --help`"),
    (["version"], "use `amqpscope --version`"),
    (["capture"], "`amqpscope sniff` captures on a network interface"),
    (["rules", "explan", "L-CREDIT"], "did you mean `explain`?"),
    (["rules", "explain"], "Missing argument 'RULE' (see 'amqpscope rules explain --help')"),
    (["read", "--connection", "9999", "DEMO"], "DEMO: no connection 9999 (there is only 0)"),
    (["why", "--end", "--connection", "9999", "DEMO"], "DEMO: no connection 9999 (there is only 0)"),
    (
        ["--color", "maybe", "chekc"],
        "'maybe' is not one of 'always', 'never', 'auto' (see 'amqpscope --help')",
    ),
    (
        ["check", "DEMO", "--color", "maybe"],
        "'maybe' is not one of 'always', 'never', 'auto' (see 'amqpscope ",
    ),
    (["check", "DEMO", "--jobs"], "Option '--jobs' requires an argument (see 'amqpscope "),
    (["chekc", "--color", "always", "DEMO"], "did you mean `check`?"),
    (["--color", "always", "chekc", "DEMO"], "did you mean `check`?"),
    (["cut", "--findings", "--near", "-1", "DEMO", "-o", "x.pcapng"], "--near -1: must be at least 0"),
    (["check", "DEMO", "--fail-on-diagnosis", "all", "--no-diagnoses"], NO_DIAGNOSES),
    (["check", "DEMO", "--no-diagnoses", "--fail-on-diagnosis", "credit-none"], NO_DIAGNOSES),
]


@pytest.mark.parametrize(
    ("arguments", "helps"), MISTAKES, ids=lambda one: " ".join(one) if isinstance(one, list) else ""
)
def test_the_message_helps(arguments: list[str], helps: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, *[word.replace("DEMO", str(DEMO)) for word in arguments])
    assert result.status == 2
    assert result.out == ""
    assert len(result.err.splitlines()) == 1
    assert helps.replace("DEMO", str(DEMO)) in result.err


@pytest.mark.parametrize("command", [[], ["check", "-r"], ["sniff"]])
def test_a_command_to_be_typed_has_the_file_as_one_word(
    command: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("of today; rm x.pcap").write_bytes(DEMO.read_bytes())
    helps = amqpscope(capsys, *command, "of today; rm x.pcap").err
    assert "amqpscope check 'of today; rm x.pcap'" in helps


def test_a_summary_of_an_unknown_connection(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "summary", "--connection", "9999", DEMO)
    assert (result.status, result.err) == (2, f"amqpscope: {DEMO}: no connection 9999 (there is only 0)\n")


@pytest.mark.parametrize("group", ["rules", "config", "pipeline"])
def test_a_group_alone_shows_its_help(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, group)
    assert (result.status, result.err) == (0, "")
    assert result.out == amqpscope(capsys, group, "--help").out


def test_a_connection_of_one_of_two_captures(capsys: pytest.CaptureFixture[str]) -> None:
    other = Path(DEMO).with_name("pika-channel-errors.pcap")
    result = amqpscope(capsys, "read", "--connection", "1", other, DEMO)
    assert result.status == 0
    assert result.err == f"amqpscope: {DEMO}: no connection 1 (there is only 0)\n"
    missing = amqpscope(capsys, "read", "--connection", "9", other)
    assert (missing.status, missing.err) == (2, f"amqpscope: {other}: no connection 9 (there are 0 to 1)\n")

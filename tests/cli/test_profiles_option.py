"""`--profile` and `rules profiles`: what is a note to whom, in every form, and the exit status then."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.commands import Result, amqpscope

import amqpscope as api
from amqpscope.errors import FilterError
from amqpscope.rules.profiles import PROFILES

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
RABBITMQ = CAPTURES / "rabbitmq-credit.pcap"  # closing detaches, answered by ones that do not close
UAMQP = CAPTURES / "uamqp-proton.pcap"  # settles first in mode second, and does not say that it is uamqp


def check(capsys: pytest.CaptureFixture[str], *arguments: object) -> Result:
    return amqpscope(capsys, "check", *arguments)


@pytest.mark.parametrize(
    ("capture", "arguments", "status"),
    [
        (RABBITMQ, ["--fail-on-possible"], 0),
        (RABBITMQ, ["--strict"], 0),
        (RABBITMQ, ["--strict", "--fail-on", "note"], 1),
        (RABBITMQ, ["--fail-on-possible", "--profile", "none"], 1),
        (RABBITMQ, ["--fail-on-possible", "--profile", "uamqp"], 1),
        (RABBITMQ, ["--fail-on-possible", "--profile", "uamqp,rabbitmq-3"], 0),
        (UAMQP, [], 1),
        (UAMQP, ["--profile", "rabbitmq-3"], 1),
        (UAMQP, ["--profile", "uamqp"], 0),
    ],
)
def test_the_exit_status_follows(
    capture: Path, arguments: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    for form in ("text", "json", "ndjson"):
        assert check(capsys, "--format", form, *arguments, capture).status == status


def findings(result: Result) -> list[tuple[str, str, str | None]]:
    reported = [json.loads(line) for line in result.lines]
    return [
        (one["rule"], one["severity"], one["profile"])
        for one in reported
        if one["rule"] in ("amqp10/L-CLOSE-ANSWER", "amqp10/D-RCVMODE-SECOND")
    ]


def test_json_has_the_name_and_the_severity(capsys: pytest.CaptureFixture[str]) -> None:
    rule = "amqp10/L-CLOSE-ANSWER"
    reported = findings(check(capsys, "--format", "ndjson", RABBITMQ))
    assert reported == [(rule, "note", "rabbitmq-3")] * 2
    reported = findings(check(capsys, "--format", "ndjson", "--profile", "none", RABBITMQ))
    assert reported == [(rule, "error", None)] * 2
    reported = findings(check(capsys, "--format", "ndjson", "--profile", "uamqp", UAMQP))
    assert reported == [("amqp10/D-RCVMODE-SECOND", "note", "uamqp")] * 5


def test_text_says_it_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    lines = check(capsys, "--possible", "--notes", RABBITMQ).lines
    assert "2 possible notes in" in lines[0]
    assert [line for line in lines if line.startswith("    profile")] == [
        "    profile   rabbitmq-3: RabbitMQ before 4.0 answers a closing detach with a detach that does not "
        "close; fixed in 4.0 (https://github.com/rabbitmq/rabbitmq-server/issues/2594)"
    ]
    lines = check(capsys, "--possible", "--notes", "--profile", "none", RABBITMQ).lines
    assert "2 possible errors in" in lines[0]
    assert not [line for line in lines if line.startswith("    profile")]


def test_from_python() -> None:
    def profiles(**choice: str) -> set[str]:
        return {
            one.assessment.profile
            for one in api.check(RABBITMQ, **choice)
            if one.rule == "amqp10/L-CLOSE-ANSWER"
        }

    assert profiles() == profiles(profile="auto") == {"rabbitmq-3"}
    assert profiles(profile="none") == {""}
    with pytest.raises(FilterError):
        profiles(profile="rabbit")


def test_a_rule_is_explained_with_the_habits_that_break_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines = amqpscope(capsys, "rules", "explain", "T-FIELDS-KEY").lines
    habits = [line for line in lines if line.startswith("  habit ")]
    writes = (
        "  habit         Seen in rhea (also in the Azure SDK for JavaScript): the product writes the keys of"
    )
    assert [line.startswith(writes) for line in habits] == [True, True]
    assert "an error's" in habits[0] and "modified's" in habits[1]
    lines = amqpscope(capsys, "rules", "explain", "L-CREDIT").lines
    assert not [line for line in lines if line.startswith("  habit ")]


def test_the_list_of_profiles(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "profiles")
    assert (result.status, result.err) == (0, "")
    for one in PROFILES:
        assert f"{one.name}  {one.product}" in result.lines
        for habit in one.habits:
            assert f"    habit       {habit.rule}: {habit.does}" in result.lines
            assert f"    source      {habit.source}" in result.lines
    assert "    known by    product RabbitMQ and a version below 4" in result.lines


def test_the_list_of_profiles_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    reported = json.loads(amqpscope(capsys, "rules", "profiles", "--format", "json").out)
    assert reported["schema"] == "amqpscope/profiles/1"
    assert [one["name"] for one in reported["profiles"]] == [one.name for one in PROFILES]
    first = reported["profiles"][0]
    assert first["marks"] == [{"field": "product", "pattern": "RabbitMQ", "version_below": "4"}]
    assert first["habits"] == [
        {
            "rule": "amqp10/L-CLOSE-ANSWER",
            "does": "answers a closing detach with a detach that does not close; fixed in 4.0",
            "source": "https://github.com/rabbitmq/rabbitmq-server/issues/2594",
            "frames": ["detach"],
            "path": None,
        },
        {
            "rule": "amqp10/C-CLOSE-LAST",
            "does": "sends detach and end of its sessions after its own close",
            "source": "https://github.com/rabbitmq/rabbitmq-server/pull/13247",
            "frames": ["detach", "end"],
            "path": None,
        },
    ]

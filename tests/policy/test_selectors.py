"""Which findings are selected: the narrower of two selectors wins."""

from __future__ import annotations

import pytest

from amqpscope.errors import FilterError
from amqpscope.policy.selectors import FindingChoice, Levels, Selector, selectors

CREDIT = "amqp10/L-CREDIT"


def takes(select: list[str] | None, ignore: list[str], rule: str = CREDIT, weight: str = "error") -> bool:
    choice = FindingChoice(
        None if select is None else selectors("select", select), selectors("ignore", ignore)
    )
    return choice.takes(rule, weight)


@pytest.mark.parametrize(
    ("select", "ignore", "taken"),
    [
        (None, [], True),
        ([], [], False),
        (["all"], [], True),
        (["L-CREDIT"], [], True),
        (["l-credit"], [], True),
        (["amqp10/L-*"], [], True),
        (["amqp10/M-*"], [], False),
        (["amqp10/M-*", "L-CREDIT"], [], True),
        (["amqp10/M-*,L-CREDIT"], [], True),
        (["error"], [], True),
        (["warning"], [], False),
        (None, ["L-CREDIT"], False),
        (None, ["amqp10/*"], False),
        (None, ["error"], False),
        (None, ["warning"], True),
        (None, ["L-CREDIT-FORMULA"], True),
        (["L-CREDIT"], ["amqp10/*"], True),
        (["amqp10/L-*"], ["amqp10/*"], True),
        (["amqp10/*"], ["amqp10/L-*"], False),
        (["L-CREDIT"], ["L-CREDIT"], False),
        (["all"], ["all"], False),
        (["L-CREDIT"], ["error"], True),
        (["error"], ["amqp10/*"], False),
        (["all"], ["error"], True),
    ],
)
def test_narrower_wins(select: list[str] | None, ignore: list[str], taken: bool) -> None:
    assert takes(select, ignore) is taken


@pytest.mark.parametrize("word", ["L-CREDTI", "", "amqp11/*", "errors", "[A-Z]"])
def test_what_selects_nothing_is_an_error(word: str) -> None:
    with pytest.raises(FilterError, match=r"^ignore .*: there is no such rule; "):
        Selector("ignore", word)


def test_levels() -> None:
    words = [("L-CREDIT", "note"), ("amqp10/*", "warning"), ("amqp10/L-*", "error"), ("amqp10/L*", "note")]
    levels = Levels([(Selector("severity", word), level) for word, level in words])
    assert levels.of(CREDIT) == "note"
    assert levels.of("amqp10/L-CREDIT-FORMULA") == "error"
    assert levels.of("amqp10/S-WIN-IN") == "warning"
    assert levels.of("amqp091/B-ACK-KNOWN") == ""
    twice = [("L-CREDIT", "note"), ("amqp10/L-CREDIT", "warning")]
    assert Levels([(Selector("severity", word), level) for word, level in twice]).of(CREDIT) == "warning"

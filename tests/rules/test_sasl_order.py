"""Whatever is said in a SASL exchange, and in whatever order: what is reported of the last frame.

What is expected is worked out from what was said before, without the table that the rules read.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from support.dialogue import Dialogue
from support.judged import judged

SAYING: dict[str, Callable[[Dialogue], object]] = {
    "mechanisms": lambda d: d.server.mechanisms(),
    "init": lambda d: d.client.init(),
    "challenge": lambda d: d.server.challenge(),
    "response": lambda d: d.client.response(),
    "success": lambda d: d.server.outcome(0),
    "failure": lambda d: d.server.outcome(1),
    "header of the client": lambda d: d.client.header(),
    "header of the server": lambda d: d.server.header(),
}
# Ways into the exchange, each without a fault.
WAYS: list[tuple[str, ...]] = [
    (),
    ("mechanisms",),
    ("mechanisms", "init"),
    ("mechanisms", "init", "challenge"),
    ("mechanisms", "init", "challenge", "response"),
    ("mechanisms", "init", "success"),
    ("mechanisms", "init", "failure"),
    ("mechanisms", "failure"),
]
OF_THE_ORDER = {
    *("SA-FAIL-STOP", "SA-INIT-AFTER", "SA-INIT-ONCE", "SA-MECH-FIRST", "SA-OK-HDR-EARLY"),
    *("SA-SEQ-CHAL", "SA-SEQ-INIT", "SA-SEQ-OUTCOME", "SA-SEQ-RESP"),
}


def expected(before: tuple[str, ...], last: str) -> set[str]:
    """The rules that the last frame breaks."""
    over = "success" in before or "failure" in before
    if last.startswith("header"):
        if over:
            return {"SA-FAIL-STOP"} if "failure" in before else set()
        return {"SA-OK-HDR-EARLY"}
    if last == "init":
        once = {"SA-INIT-ONCE"} if "init" in before else set[str]()
        return once if "mechanisms" in before else {*once, "SA-INIT-AFTER"}
    if last == "response":
        waiting = before.count("challenge") - before.count("response")
        return set() if waiting > 0 else {"SA-SEQ-RESP"}
    if over:
        return {"SA-SEQ-OUTCOME"}
    if last == "mechanisms":
        return set()  # no rule is about offering them twice
    if "mechanisms" not in before:
        return {"SA-MECH-FIRST"}
    if "init" not in before and last in ("challenge", "success"):
        return {"SA-SEQ-CHAL" if last == "challenge" else "SA-SEQ-INIT"}
    return set()


@pytest.mark.parametrize(
    ("before", "last"),
    [*product(WAYS, SAYING)],
    ids=lambda said: said if isinstance(said, str) else "-".join(said),
)
def test_what_is_said_out_of_turn_is_reported(before: tuple[str, ...], last: str) -> None:
    d = Dialogue()
    d.client.header(3)
    d.server.header(3)
    for said in (*before, last):
        SAYING[said](d)
    found = [finding for findings in judged(d.pcap()) for finding in findings]
    of_the_order = {finding.rule.removeprefix("amqp10/") for finding in found} & OF_THE_ORDER
    assert of_the_order == expected(before, last)


def test_an_exchange_on_a_connection_that_is_used_again_is_another_one() -> None:
    d = Dialogue()
    for _ in range(2):
        d.client.header(3)
        d.server.header(3)
        for said in ("mechanisms", "init", "success", "header of the client", "header of the server"):
            SAYING[said](d)
        d.client.open()
        d.server.open()
        d.client.close()
        d.server.close()
    found = [finding.rule for findings in judged(d.pcap()) for finding in findings]
    assert found == ["amqp10/C-CLOSE-NOREUSE"]

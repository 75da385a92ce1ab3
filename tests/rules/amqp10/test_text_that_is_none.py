"""Octets that are no text may be text with too large a size, which has swallowed the next values.

What the octets behind it seem to be follows from that: the fault has one name.
"""

from __future__ import annotations

import pytest
from support import amqp10_encode as amqp
from support import draft2011_encode as draft
from support.dialogue import Dialogue
from support.dialogue_draft2011 import Dialogue2011
from support.judged import judged

CONDITION = "amqp:internal-error"
DESCRIPTION = "something went wrong here"


def certain(d: Dialogue) -> list[tuple[str, str]]:
    while_read, at_end = judged(d.pcap())
    return [(one.rule.partition("/")[2], one.peer) for one in while_read + at_end if one.certain]


@pytest.mark.parametrize("name", ["end", "close", "detach"])
@pytest.mark.parametrize("swallowed", [*range(1, 9), 18, 25, 26])
def test_a_condition_that_swallows_its_description_is_one_fault(name: str, swallowed: int) -> None:
    error = amqp.error(condition=CONDITION, description=DESCRIPTION)
    body = {
        "end": amqp.end(error=error),
        "close": amqp.close(error=error),
        "detach": amqp.detach(handle=0, closed=True, error=error),
    }[name]
    at = body.index(CONDITION.encode())
    d = Dialogue()
    d.linked()
    d.client.frame(body[: at - 1] + bytes([body[at - 1] + swallowed]) + body[at:])
    assert certain(d) == [("T-SYM-ASCII", "client")]


def negotiated(mechanisms: bytes, init: bytes) -> Dialogue2011:
    d = Dialogue2011()
    for peer in (d.client, d.server):
        peer.header(3)
    d.server.sasl_frame(mechanisms)
    d.client.sasl_frame(init)
    d.server.outcome()
    d.opened()
    d.goodbye()
    return d


def written(body: bytes, name: str, code: int) -> bytes:
    """The name stands in the body with this format code."""
    octets = bytes([len(name)]) + name.encode()
    assert b"\xa1" + octets in body
    return body.replace(b"\xa1" + octets, bytes([code]) + octets)


@pytest.mark.parametrize("name", ["EXTERNAL", "SCRAM-SHA-1", "PLAIN"])
@pytest.mark.parametrize("others", [[], ["OTHER"]])
@pytest.mark.parametrize("code", [0xA2, 0xA0])
def test_a_mechanism_in_another_type_of_the_draft_accuses_no_client(
    name: str, others: list[str], code: int
) -> None:
    mechanisms = draft.sasl_mechanisms(sasl_server_mechanisms=[name, *others])
    init = draft.sasl_init(mechanism=name, initial_response=b"u")
    found = certain(negotiated(written(mechanisms, name, code), init))
    assert [rule for rule, peer in found if (rule, peer) != ("T-STR-UTF16", "server")] == []


@pytest.mark.parametrize("more", [1, 2, 3])
def test_a_mechanism_that_is_misread_is_named_once(more: int) -> None:
    mechanisms = draft.sasl_mechanisms(sasl_server_mechanisms=["PLAIN"])
    init = draft.sasl_init(mechanism="PLAIN", initial_response=b"\0u\0p")
    wrong = init.replace(b"\xa1\x05PLAIN", bytes([0xA1, 5 + more]) + b"PLAIN")
    found = certain(negotiated(mechanisms, wrong))
    assert len(found) == 1 and found[0][1] == "client" and found[0][0] != "SA-INIT-OFFERED"

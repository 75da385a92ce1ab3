"""Attaches of the draft: their sources, targets and unsettled maps."""

from __future__ import annotations

from typing import Any

from scenarios.amqp10_draft2011.rules import pair
from scenarios.pairs import POSSIBLE, SAME, reported, without
from support import draft2011_encode as draft
from support.dialogue_draft2011 import Dialogue2011
from support.draft2011_encode import RECEIVER, SENDER, raw

MOVE = {"address": "q", "distribution_mode": "move"}


def _attached(d: Dialogue2011, rule: str, role: bool, fields: dict[str, Any], certain: bool = True) -> None:
    """The client attaches, with these fields if it is wrong; the server answers."""
    d.begun()
    said = d.client.attach(role, **(fields if d.wrong else {}))
    d.server.attach(not role)
    if d.wrong:
        if certain:
            said.breaks(rule)
        else:
            said.may_break(rule)
    d.goodbye()


@pair("M-SRC-DYN-ADDR", cut=without("client begin"), then=SAME)
def source_without_address(d: Dialogue2011) -> None:
    source = draft.source(distribution_mode="move", dynamic=draft.delete_on_close())
    _attached(d, "M-SRC-DYN-ADDR", SENDER, {"source": source})


@pair("M-TGT-DYN-ADDR", cut=without("client begin"), then=SAME)
def target_without_address(d: Dialogue2011) -> None:
    _attached(d, "M-TGT-DYN-ADDR", RECEIVER, {"target": draft.target(durable=True)})


@pair("M-SRC-DYN-NOADDR", cut=without("server begin"))
def dynamic_source_requested_by_address(d: Dialogue2011) -> None:
    source = draft.source(address="q", dynamic=draft.delete_on_close())
    _attached(d, "M-SRC-DYN-NOADDR", RECEIVER, {"source": source})


@pair("M-TGT-DYN-NOADDR", cut=without("server begin"))
def dynamic_target_requested_by_address(d: Dialogue2011) -> None:
    target = draft.target(address="q", dynamic=draft.delete_on_no_links())
    _attached(d, "M-TGT-DYN-NOADDR", SENDER, {"target": target})


@pair("M-DYN-NAME", cut=without("server open"))
def generated_address_that_tells_nothing(d: Dialogue2011) -> None:
    d.begun(client={})
    address = "node-1" if d.wrong else "node-1-of-client-q"
    source = draft.source(address=address, distribution_mode="move", dynamic=draft.delete_on_close())
    d.server.attach(RECEIVER, source=draft.source(dynamic=draft.delete_on_close()))
    said = d.client.attach(SENDER, source=source)
    if d.wrong:
        said.may_break("M-DYN-NAME")
    d.goodbye()


@pair("M-DISTMODE-SET", cut=without("client begin"), then=POSSIBLE)
def source_without_distribution_mode(d: Dialogue2011) -> None:
    _attached(d, "M-DISTMODE-SET", SENDER, {"source": draft.source(address="q")}, certain=False)


@pair("M-DISTMODE-VALUE", cut=without("client begin"), then=POSSIBLE)
def unknown_distribution_mode(d: Dialogue2011) -> None:
    source = draft.source(address="q", distribution_mode="browse")
    _attached(d, "M-DISTMODE-VALUE", SENDER, {"source": source}, certain=False)


@pair("T-ENUM-EXPIRY")
def expiry_policy_of_the_final(d: Dialogue2011) -> None:
    source = draft.source(**MOVE, expiry_policy="session-end")
    _attached(d, "T-ENUM-EXPIRY", SENDER, {"source": source})


@pair("T-COMP-REQUIRES")
def dynamic_as_a_boolean(d: Dialogue2011) -> None:
    _attached(d, "T-COMP-REQUIRES", SENDER, {"target": draft.target(dynamic=raw("41"))}, certain=False)


@pair("M-OUTCOME-VALID")
def default_outcome_that_is_none(d: Dialogue2011) -> None:
    source = draft.source(**MOVE, default_outcome=draft.delete_on_close())
    _attached(d, "M-OUTCOME-VALID", SENDER, {"source": source})


@pair("M-OUTCOMES-SYMBOL", cut=without("client begin"), then=SAME)
def outcomes_by_their_bare_names(d: Dialogue2011) -> None:
    source = draft.source(**MOVE, outcomes=["accepted"])
    _attached(d, "M-OUTCOMES-SYMBOL", SENDER, {"source": source})


@pair("M-OUTCOMES-USE", cut=without("client attach"))
def outcome_not_offered(d: Dialogue2011) -> None:
    source = draft.source(**MOVE, outcomes=["amqp:accepted:list"])
    d.begun()
    d.attached(client={"source": source}, server={"source": source})
    d.client.transfer()
    outcome = draft.released() if d.wrong else draft.accepted()
    said = d.server.disposition(0, state=draft.transfer_state(outcome=outcome))
    if d.wrong:
        said.breaks("M-OUTCOMES-USE")
    d.goodbye()


@pair("M-FILTER-KEY")
def filter_with_a_key_that_is_no_symbol(d: Dialogue2011) -> None:
    chosen = draft.filter_(filter_type="x", filter="a")
    source = draft.source(address="q", filter=[(draft.string("x"), chosen)])
    _attached(d, "M-FILTER-KEY", RECEIVER, {"source": source})


@pair("M-FILTER-VALUE")
def filter_without_a_descriptor(d: Dialogue2011) -> None:
    source = draft.source(address="q", filter=[(draft.symbol("x"), draft.string("a"))])
    _attached(d, "M-FILTER-VALUE", RECEIVER, {"source": source})


@pair("T-COMP-LIST")
def source_as_a_map(d: Dialogue2011) -> None:
    _attached(d, "T-COMP-LIST", SENDER, {"source": raw("00 53 28 c1 01 00")}, certain=False)


@pair("TX-COORD-TARGET")
def coordinator_as_source(d: Dialogue2011) -> None:
    _attached(d, "TX-COORD-TARGET", RECEIVER, {"source": draft.coordinator()})


@pair("L-UNSETTLED-TYPES", cut=without("client begin"), then=SAME)
def unsettled_map_of_outcomes(d: Dialogue2011) -> None:
    _attached(d, "L-UNSETTLED-TYPES", SENDER, {"unsettled": [(b"t", draft.accepted())]})


@reported("a key of the unsettled map is a string")
def unsettled_map_by_strings(d: Dialogue2011) -> None:
    d.begun()
    d.client.attach(unsettled=[(draft.string("t"), None)]).breaks("L-UNSETTLED-TYPES")
    d.server.attach(RECEIVER)
    d.goodbye()


@pair("T-FIELDS-KEY")
def options_by_strings(d: Dialogue2011) -> None:
    _attached(d, "T-FIELDS-KEY", SENDER, {"options": [(draft.string("x-a"), "b")]})


LASTING = draft.source(**MOVE, expiry_policy="never", durable=True)


@pair("L-ATTACH-UNSETTLED", cut=without("transfer"))
def attached_without_what_was_left(d: Dialogue2011) -> None:
    d.linked(client={"source": LASTING})
    d.client.transfer(delivery_tag=b"first")
    d.client.transfer(delivery_tag=b"second").called("transfer")
    d.server.disposition(0)
    d.goodbye()
    d.wait(seconds=20)
    later = d.again()
    later.begun()
    unsettled = {} if d.wrong else {b"second": draft.transfer_state()}
    said = later.client.attach(source=LASTING, unsettled=unsettled)
    if d.wrong:
        said.may_break("L-ATTACH-UNSETTLED")
    later.server.attach(RECEIVER)
    later.goodbye()

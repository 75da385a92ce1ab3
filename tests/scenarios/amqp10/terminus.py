"""Sources and targets."""

from __future__ import annotations

from scenarios.pairs import SAME, legal, pair, without
from support import amqp10_encode as amqp
from support.dialogue import RECEIVER, SENDER, Dialogue


@pair("M-ADDR-TYPE")
def address_of_another_type(d: Dialogue) -> None:
    d.begun()
    address = amqp.symbol("q") if d.wrong else amqp.string("q")
    said = d.client.attach(SENDER, target=amqp.target(address=address))
    if d.wrong:
        said.may_break("M-ADDR-TYPE")
    d.server.attach(RECEIVER)
    d.goodbye()


@pair("M-FILTER-KEY")
def filter_with_key_that_is_no_symbol(d: Dialogue) -> None:
    described = amqp.described("x:selector", "a = 1")
    key = amqp.string("k") if d.wrong else amqp.symbol("k")
    _filtered(d, "M-FILTER-KEY", amqp.map_([(key, described)]))


@pair("M-FILTER-VALUE")
def filter_that_is_no_described_value(d: Dialogue) -> None:
    value = amqp.string("a = 1") if d.wrong else amqp.described("x:selector", "a = 1")
    _filtered(d, "M-FILTER-VALUE", amqp.map_([(amqp.symbol("k"), value)]))


def _filtered(d: Dialogue, rule: str, filters: bytes) -> None:
    d.begun()
    said = d.client.attach(RECEIVER, source=amqp.source(address="q", filter=filters))
    if d.wrong:
        said.breaks(rule)
    d.server.attach(SENDER)
    d.goodbye()


@pair("M-OUTCOME-VALID")
def default_outcome_that_is_none(d: Dialogue) -> None:
    d.begun()
    outcome = amqp.received(section_number=0, section_offset=0) if d.wrong else amqp.released()
    said = d.client.attach(RECEIVER, source=amqp.source(address="q", default_outcome=outcome))
    if d.wrong:
        said.breaks("M-OUTCOME-VALID")
    d.server.attach(SENDER)
    d.goodbye()


@pair("M-SRC-DYN-ADDR", then=SAME)
def dynamic_source_without_address(d: Dialogue) -> None:
    d.begun()
    d.client.attach(RECEIVER, source=amqp.source(dynamic=True))
    said = d.server.attach(SENDER, source=amqp.source(dynamic=True, address=None if d.wrong else "tmp"))
    if d.wrong:
        said.breaks("M-SRC-DYN-ADDR")
    d.goodbye()


@pair("M-TGT-DYN-ADDR", then=SAME)
def dynamic_target_without_address(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER, target=amqp.target(dynamic=True))
    said = d.server.attach(RECEIVER, target=amqp.target(dynamic=True, address=None if d.wrong else "tmp"))
    if d.wrong:
        said.breaks("M-TGT-DYN-ADDR")
    d.goodbye()


@pair("M-SRC-DYN-NOADDR", cut=without("server begin"))
def dynamic_source_requested_by_address(d: Dialogue) -> None:
    d.begun()
    said = d.client.attach(RECEIVER, source=amqp.source(dynamic=True, address="q" if d.wrong else None))
    if d.wrong:
        said.breaks("M-SRC-DYN-NOADDR")
    d.server.attach(SENDER, source=amqp.source(dynamic=True, address="tmp"))
    d.goodbye()


@pair("M-TGT-DYN-NOADDR", cut=without("server begin"))
def dynamic_target_requested_by_address(d: Dialogue) -> None:
    d.begun()
    said = d.client.attach(SENDER, target=amqp.target(dynamic=True, address="q" if d.wrong else None))
    if d.wrong:
        said.breaks("M-TGT-DYN-NOADDR")
    d.server.attach(RECEIVER, target=amqp.target(dynamic=True, address="tmp"))
    d.goodbye()


@pair("M-DYNPROPS-UNSET", then=SAME)
def dynamic_properties_without_dynamic(d: Dialogue) -> None:
    d.begun()
    wish = {"lifetime-policy": amqp.delete_on_close()}
    dynamic = None if d.wrong else True
    said = d.client.attach(RECEIVER, source=amqp.source(dynamic=dynamic, dynamic_node_properties=wish))
    if d.wrong:
        said.breaks("M-DYNPROPS-UNSET")
    d.server.attach(SENDER)
    d.goodbye()


@legal("the answer to a request for a dynamic node repeats its address")
def dynamic_address_repeated(d: Dialogue) -> None:
    d.begun()
    made = amqp.source(dynamic=True, address="tmp")
    d.server.attach(SENDER, source=made)
    d.client.attach(RECEIVER, source=made)
    d.client.flow(handle=0)
    d.server.transfer()
    d.goodbye()


@pair("TX-COORD-RESUME", then=SAME)
def coordinator_resumed(d: Dialogue) -> None:
    d.begun()
    unsettled = {b"t": None} if d.wrong else None
    said = d.client.attach(SENDER, target=amqp.coordinator(), unsettled=unsettled)
    if d.wrong:
        said.breaks("TX-COORD-RESUME")
    d.server.attach(RECEIVER, target=amqp.coordinator())
    d.goodbye()

"""Sources and targets."""

from __future__ import annotations

from scenarios.pairs import POSSIBLE, SAME, legal, pair, reported, without
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
    said = d.server.attach(SENDER, source=amqp.source(dynamic=True, address=None if d.wrong else "client/q"))
    if d.wrong:
        said.breaks("M-SRC-DYN-ADDR")
    d.goodbye()


@pair("M-TGT-DYN-ADDR", then=SAME)
def dynamic_target_without_address(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER, target=amqp.target(dynamic=True))
    made = amqp.target(dynamic=True, address=None if d.wrong else "client/q")
    said = d.server.attach(RECEIVER, target=made)
    if d.wrong:
        said.breaks("M-TGT-DYN-ADDR")
    d.goodbye()


@pair("M-SRC-DYN-NOADDR", cut=without("server begin"))
def dynamic_source_requested_by_address(d: Dialogue) -> None:
    d.begun()
    said = d.client.attach(RECEIVER, source=amqp.source(dynamic=True, address="q" if d.wrong else None))
    if d.wrong:
        said.breaks("M-SRC-DYN-NOADDR")
    d.server.attach(SENDER, source=amqp.source(dynamic=True, address="client-tmp"))
    d.goodbye()


@pair("M-TGT-DYN-NOADDR", cut=without("server begin"))
def dynamic_target_requested_by_address(d: Dialogue) -> None:
    d.begun()
    said = d.client.attach(SENDER, target=amqp.target(dynamic=True, address="q" if d.wrong else None))
    if d.wrong:
        said.breaks("M-TGT-DYN-NOADDR")
    d.server.attach(RECEIVER, target=amqp.target(dynamic=True, address="client-tmp"))
    d.goodbye()


@pair("M-DYNPROPS-UNSET", then=POSSIBLE)
def dynamic_properties_without_dynamic(d: Dialogue) -> None:
    d.begun()
    wish = {"lifetime-policy": amqp.delete_on_close()}
    dynamic = None if d.wrong else True
    said = d.client.attach(RECEIVER, source=amqp.source(dynamic=dynamic, dynamic_node_properties=wish))
    if d.wrong:
        said.breaks("M-DYNPROPS-UNSET")
    d.server.attach(SENDER)
    d.goodbye()


def _wished(d: Dialogue, rule: str, wish: dict[str, bytes]) -> None:
    d.begun()
    said = d.client.attach(RECEIVER, source=amqp.source(dynamic=True, dynamic_node_properties=wish))
    if d.wrong:
        said.breaks(rule)
    d.server.attach(SENDER, source=amqp.source(dynamic=True, address="client/q"))
    d.goodbye()


@pair("M-LIFETIME-VALUE", then=SAME)
def lifetime_policy_that_is_none(d: Dialogue) -> None:
    wrong = amqp.symbol("amqp:delete-on-close:list")
    _wished(d, "M-LIFETIME-VALUE", {"lifetime-policy": wrong if d.wrong else amqp.delete_on_close()})


@pair("M-SUPPDIST-VALUE", then=SAME)
def supported_modes_that_are_no_symbols(d: Dialogue) -> None:
    modes = [amqp.symbol("move"), amqp.symbol("copy")]
    wish = amqp.list_(modes) if d.wrong else amqp.array(modes)
    _wished(d, "M-SUPPDIST-VALUE", {"supported-dist-modes": wish})


@legal("what may be wished for a dynamic node")
def wishes_for_a_dynamic_node(d: Dialogue) -> None:
    d.begun()
    for handle, wish in enumerate(
        (
            {"supported-dist-modes": amqp.symbol("move"), "x-opt-else": amqp.uint(1)},
            {"lifetime-policy": amqp.null(), "supported-dist-modes": amqp.null()},
            {"lifetime-policy": amqp.delete_on_no_links_or_messages()},
        )
    ):
        target = amqp.target(dynamic=True, dynamic_node_properties=wish)
        d.client.attach(SENDER, handle=handle, name=f"q{handle}", target=target)
    d.goodbye()


@pair("M-DISTMODE-VALUE", then=SAME)
def unknown_distribution_mode(d: Dialogue) -> None:
    d.begun()
    mode = amqp.symbol("browse" if d.wrong else "copy")
    said = d.client.attach(RECEIVER, source=amqp.source(address="q", distribution_mode=mode))
    if d.wrong:
        said.may_break("M-DISTMODE-VALUE")
    d.server.attach(SENDER)
    d.goodbye()


@pair("M-OUTCOMES-SYMBOL", then=SAME)
def outcomes_by_their_bare_names(d: Dialogue) -> None:
    d.begun()
    outcomes = ["accepted", "rejected"] if d.wrong else ["amqp:accepted:list", "amqp:rejected:list"]
    said = d.client.attach(RECEIVER, source=amqp.source(address="q", outcomes=outcomes))
    if d.wrong:
        said.breaks("M-OUTCOMES-SYMBOL")
    d.server.attach(SENDER)
    d.goodbye()


@reported("symbols that are a state's descriptor, of nobody's outcome, and of another's")
def outcomes_that_are_none(d: Dialogue) -> None:
    d.begun()
    for handle, (symbol, certain) in enumerate(
        (
            ("amqp:received:list", True),
            ("amqp:delayed:list", False),
            ("com.example:delayed:list", None),
            ("amqp:declared:list", None),
            (":list", True),
            ("amqp:", True),
        )
    ):
        source = amqp.source(address="q", outcomes=["amqp:accepted:list", symbol])
        said = d.client.attach(RECEIVER, handle=handle, name=f"q{handle}", source=source)
        if certain is not None:
            said.breaks("M-OUTCOMES-SYMBOL", certain=certain)
    d.goodbye()


@pair("M-DYN-NAME", cut=without("client open"))
def dynamic_source_that_tells_nothing(d: Dialogue) -> None:
    d.begun()
    d.client.attach(RECEIVER, name="replies", source=amqp.source(dynamic=True))
    address = "tmp/4711" if d.wrong else "tmp/replies/4711"
    said = d.server.attach(SENDER, name="replies", source=amqp.source(dynamic=True, address=address))
    if d.wrong:
        said.may_break("M-DYN-NAME")
    d.goodbye()


@pair("M-DYN-NAME", cut=without("client open"))
def dynamic_target_that_tells_nothing(d: Dialogue) -> None:
    d.begun()
    d.client.attach(SENDER, name="gifts", target=amqp.target(dynamic=True))
    address = "tmp/4711" if d.wrong else "tmp/CLIENT/4711"
    said = d.server.attach(RECEIVER, name="gifts", target=amqp.target(dynamic=True, address=address))
    if d.wrong:
        said.may_break("M-DYN-NAME")
    d.goodbye()


@legal("the answer to a request for a dynamic node repeats its address")
def dynamic_address_repeated(d: Dialogue) -> None:
    d.begun()
    made = amqp.source(dynamic=True, address="client-tmp")
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


@reported("by the drafts others may provide a lifetime-policy", spec="csprd02")
def lifetime_policies_in_a_draft(d: Dialogue) -> None:
    d.begun()
    for handle, (policy, certain) in enumerate(
        ((amqp.symbol("amqp:delete-on-close:list"), True), (amqp.described("x:daily", amqp.list_([])), False))
    ):
        target = amqp.target(dynamic=True, dynamic_node_properties={"lifetime-policy": policy})
        said = d.client.attach(SENDER, handle=handle, name=f"q{handle}", target=target)
        said.breaks("M-LIFETIME-VALUE", certain=certain)
    d.goodbye()


@reported("by the final text none may")
def lifetime_policies_in_the_final_text(d: Dialogue) -> None:
    d.begun()
    wish = {"lifetime-policy": amqp.described("x:daily", amqp.list_([]))}
    said = d.client.attach(SENDER, target=amqp.target(dynamic=True, dynamic_node_properties=wish))
    said.breaks("M-LIFETIME-VALUE")
    d.goodbye()


def _attached_again(d: Dialogue, **source: object) -> None:
    """A subscription is detached, and attached again."""
    d.begun()
    d.client.attach(RECEIVER, source=amqp.source(address="news", **source))
    d.server.attach(SENDER, source=amqp.source(address="news", **source)).called("attached")
    d.client.detach(closed=None)
    d.server.detach(closed=None)
    d.client.attach(RECEIVER, source=amqp.source(address="news", **source))


@pair("M-TERM-EXPIRY", cut=without("attached"))
def terminus_lost(d: Dialogue) -> None:
    _attached_again(d, durable=2, expiry_policy="never")
    if d.wrong:
        d.server.attach(SENDER, source=None).may_break("M-TERM-EXPIRY")
    else:
        d.server.attach(SENDER, source=amqp.source(address="news", durable=2, expiry_policy="never"))
    d.goodbye()


@reported("a target that expires when the session ends is lost before")
def target_lost(d: Dialogue) -> None:
    d.linked()
    d.client.detach(closed=None)
    d.server.detach(closed=None)
    d.client.attach()
    d.server.attach(RECEIVER, target=None).may_break("M-TERM-EXPIRY")
    d.goodbye()


@legal("termini that may be gone")
def termini_that_may_be_gone(d: Dialogue) -> None:
    _attached_again(d, expiry_policy="link-detach")
    d.server.attach(SENDER, source=None)
    d.server.detach(error="amqp:not-found")
    d.client.detach()
    d.client.attach(name="closed")
    d.server.attach(RECEIVER, name="closed")
    d.client.detach()
    d.server.detach()
    d.client.attach(name="closed")
    d.server.attach(RECEIVER, name="closed", target=None)
    d.server.detach(error="amqp:not-found")
    d.client.detach()
    d.goodbye()

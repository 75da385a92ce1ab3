"""Sources and targets: addresses, filters, dynamic nodes (messaging.xml, "addressing")."""

from collections.abc import Callable

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.proof import proved
from amqpscope.tracking.amqp10.link import UNKNOWN
from amqpscope.tracking.amqp10.outcomes import foreign
from amqpscope.tracking.amqp10.session import SessionEnd
from dissectors.amqp10.composite import Composite, sent_name
from dissectors.amqp10.messaging import Source, Target
from dissectors.amqp10.performatives import Attach
from dissectors.amqp10.transactions import Coordinator
from dissectors.amqp10.values import Array, Map, Raw, Symbol
from dissectors.interface import Problem
from dissectors.wire import i64

__all__ = ["PROBLEMS", "judge_attach", "judge_kept", "judge_request"]

# The distribution modes of the specification (messaging.xml, "std-dist-mode").
_MODES = ("move", "copy")


def address_of_another_type(case: Case, problem: Problem) -> None:
    """An address is of a type that provides none; the standard one is string.

    Why it matters: the node cannot be named.
    Silent when: the frame was not captured whole.
    Only possible because: These octets can also be read as legal: the text leaves room, or a newer one
    defines them.
    """
    proved(case, "amqp10/M-ADDR-TYPE", problem)


def filter_with_key_that_is_no_symbol(case: Case, problem: Problem) -> None:
    """A key of a filter set is no symbol.

    Why it matters: nobody will find the filter.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/M-FILTER-KEY", problem)


def filter_that_is_no_described_value(case: Case, problem: Problem) -> None:
    """A filter is neither null nor a described value.

    Why it matters: its descriptor says which filter it is.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/M-FILTER-VALUE", problem)


def default_outcome_that_is_none(case: Case, problem: Problem) -> None:
    """A source's default-outcome is no outcome.

    Why it matters: it is what becomes of deliveries that nobody decides on.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/M-OUTCOME-VALID", problem)


def dynamic_source_without_address(case: Case) -> None:
    """A sender attaches with a dynamic source and does not say its address.

    Why it matters: the node was made for the receiver, which cannot name it.
    Silent when: never.
    """
    case.report("amqp10/M-SRC-DYN-ADDR", "a sender's attach has a dynamic source without address")


def dynamic_target_without_address(case: Case) -> None:
    """A receiver attaches with a dynamic target and does not say its address.

    Why it matters: the node was made for the sender, which cannot name it.
    Silent when: never.
    """
    case.report("amqp10/M-TGT-DYN-ADDR", "a receiver's attach has a dynamic target without address")


def dynamic_source_requested_by_address(case: Case) -> None:
    """A receiver asks for a dynamic source and gives an address.

    Why it matters: the address is the sender's to make; a broker takes it for an error, or ignores it.
    Silent when: the attach answers or resumes another, whose address it repeats, or octets of either peer
    were not captured.
    """
    case.report("amqp10/M-SRC-DYN-NOADDR", "a receiver asks for a dynamic source and gives an address")


def dynamic_target_requested_by_address(case: Case) -> None:
    """A sender asks for a dynamic target and gives an address.

    Why it matters: the address is the receiver's to make; a broker takes it for an error, or ignores it.
    Silent when: the attach answers or resumes another, whose address it repeats, or octets of either peer
    were not captured.
    """
    case.report("amqp10/M-TGT-DYN-NOADDR", "a sender asks for a dynamic target and gives an address")


def dynamic_properties_without_dynamic(case: Case, what: str) -> None:
    """A source or target has dynamic-node-properties and is not dynamic.

    Why it matters: there is no node that they could describe.
    Silent when: never.
    """
    case.report("amqp10/M-DYNPROPS-UNSET", f"the {what} has dynamic-node-properties and is not dynamic")


def coordinator_resumed(case: Case) -> None:
    """An attach resumes a link to a transaction coordinator.

    Why it matters: transactions end with their link; there is nothing to resume.
    Silent when: the unsettled map is empty.
    """
    case.report("amqp10/TX-COORD-RESUME", "an attach to a coordinator has an unsettled map")


def lifetime_policy_that_is_none(case: Case, what: str, value: object) -> None:
    """The lifetime-policy wished for a dynamic node is none of the specification's four types.

    Why it matters: when the node goes is not agreed; a peer that does not know it keeps the node for ever, or
    refuses the link.
    Silent when: the frame was not captured whole.
    Possible because: Its type may provide a lifetime-policy of somebody's own.
    """
    message = f"the {what}'s lifetime-policy is {sent_name(value)}"
    case.report("amqp10/M-LIFETIME-VALUE", message, CERTAIN, {"lifetime_policy": sent_name(value)})


def supported_modes_that_are_no_symbols(case: Case, what: str, value: object) -> None:
    """The supported-dist-modes wished for a dynamic node are neither a symbol nor an array of symbols.

    Why it matters: how the node hands out its messages is not agreed.
    Silent when: the frame was not captured whole.
    """
    message = f"the {what}'s supported-dist-modes are {sent_name(value)}"
    case.report("amqp10/M-SUPPDIST-VALUE", message, CERTAIN, {"supported_dist_modes": sent_name(value)})


def unknown_distribution_mode(case: Case, mode: str) -> None:
    """The distribution-mode of a source is neither move nor copy.

    Why it matters: whether a message that is delivered stays at the node is not agreed.
    Silent when: the frame was not captured whole.
    Only possible because: A specification that is not known here may have assigned it.
    """
    message = "the source's distribution-mode is neither move nor copy"
    case.report_once("amqp10/M-DISTMODE-VALUE", message, POSSIBLE, {"distribution_mode": str(mode)})


def outcomes_with_symbol_that_stands_for_none(case: Case, symbol: str, certainty: i64) -> None:
    """The outcomes of a source list a symbol that is no outcome's descriptor.

    Why it matters: the receiver cannot choose it, and may take the whole list for an error.
    Silent when: the frame was not captured whole, or the symbol is of another domain than `amqp`. Possible
    when it is of that one, and no outcome known to us has it.
    Possible because: A specification that is not known here may have assigned it.
    """
    message = "the source's outcomes list a symbol that is no outcome's descriptor"
    case.report("amqp10/M-OUTCOMES-SYMBOL", message, certainty, {"symbol": str(symbol)})


def generated_address_that_tells_nothing(case: Case, address: str, name: str, container: str) -> None:
    """The address of a dynamic node names neither the link that it was made for nor the peer's container.

    Why it matters: an operator who finds the node cannot say whose it is.
    Silent when: the peer's open was not captured.
    Only possible because: They may be in it in a form that only its maker recognizes.
    """
    case.report_once(
        "amqp10/M-DYN-NAME",
        "the dynamic node's address has neither the link's name nor the peer's container-id in it",
        POSSIBLE,
        {"address": str(address), "link_name": name, "container_id": container},
    )


def _judge_wishes(case: Case, what: str, wishes: Map | None) -> None:
    """The properties wished for a dynamic node."""
    if wishes is None:
        return
    policy = wishes.get("lifetime-policy")
    if not (policy is None or isinstance(policy, Raw)):
        if not (isinstance(policy, Composite) and "lifetime-policy" in policy.definition().provides):
            lifetime_policy_that_is_none(case, what, policy)
    modes = wishes.get("supported-dist-modes")
    if not (modes is None or isinstance(modes, (Raw, Symbol))):
        if not (isinstance(modes, Array) and modes.element == "symbol" and modes.descriptor is None):
            supported_modes_that_are_no_symbols(case, what, modes)


def _judge_outcomes(case: Case, outcomes: list[Symbol]) -> None:
    """The symbols that a source lists as outcomes; the first that is none is enough."""
    found = foreign(outcomes)
    if found is not None:
        outcomes_with_symbol_that_stands_for_none(case, *found)


def _judge_address(case: Case, body: Attach, address: object) -> None:
    """The address that this peer made for a dynamic node."""
    opened = case.me.peer_open
    if not isinstance(address, str) or opened is None or not opened.container_id or not body.name:
        return
    plain = address.casefold()
    if body.name.casefold() not in plain and opened.container_id.casefold() not in plain:
        generated_address_that_tells_nothing(case, address, body.name, opened.container_id)


def judge_attach(case: Case, body: Attach) -> None:
    """The rules that the termini of an attach break by themselves."""
    source = body.source
    target = body.target
    if isinstance(source, Source):
        if source.distribution_mode is not None and source.distribution_mode not in _MODES:
            unknown_distribution_mode(case, source.distribution_mode)
        if source.outcomes:
            _judge_outcomes(case, source.outcomes)
        if source.dynamic:
            _judge_wishes(case, "source", source.dynamic_node_properties)
            if body.role is False and source.address is not None:
                _judge_address(case, body, source.address)
            if body.role is False and source.address is None and not source.unread(0):
                dynamic_source_without_address(case)
        elif source.dynamic_node_properties is not None:
            dynamic_properties_without_dynamic(case, "source")
    if isinstance(target, Target):
        if target.dynamic:
            _judge_wishes(case, "target", target.dynamic_node_properties)
            if body.role is True and target.address is not None:
                _judge_address(case, body, target.address)
            if body.role is True and target.address is None and not target.unread(0):
                dynamic_target_without_address(case)
        elif target.dynamic_node_properties is not None:
            dynamic_properties_without_dynamic(case, "target")
    elif isinstance(target, Coordinator) and body.unsettled is not None and len(body.unsettled.pairs) > 0:
        coordinator_resumed(case)


def judge_request(case: Case, session: SessionEnd, body: Attach) -> None:
    """The rules about an attach that is the first of its link."""
    if body.name is None or body.role is None or body.unsettled is not None:
        return
    if not case.me.whole or (body.name, not body.role) in session.links:
        return
    if body.role:
        source = body.source
        if isinstance(source, Source) and source.dynamic and source.address is not None:
            dynamic_source_requested_by_address(case)
    else:
        target = body.target
        if isinstance(target, Target) and target.dynamic and target.address is not None:
            dynamic_target_requested_by_address(case)


def terminus_lost(case: Case, what: str, policy: str) -> None:
    """A peer attaches a link again, and the terminus that it kept is gone although it had not expired.

    Why it matters: what was unsettled there is lost, and a subscription may be, too.
    Silent when: the link was closed, its session is another one, the terminus expires with the link, the
    other peer asks for another address, or anything was not captured.
    Only possible because: The terminus may have been refused for another reason.
    """
    case.report(
        "amqp10/M-TERM-EXPIRY",
        f"the link is attached again with a null {what}, which expires by {policy}",
        POSSIBLE,
        {"expiry_policy": policy},
    )


def judge_kept(case: Case, session: SessionEnd, body: Attach) -> None:
    """The rules about the attach of a link that was detached before."""
    if body.name is None or body.role is None or not case.me.whole:
        return
    link = session.links.get((body.name, not body.role))
    if link is None or link.attach is None or link.peer_attach is None or not link.whole:
        return
    if link.closed or link.half_closed is not None or link.failed or link.peer_failed:
        return
    if link.handle != UNKNOWN or link.peer_attaches <= link.attaches:
        return
    what = "target" if body.role else "source"
    now, before, asked = body.source, link.attach.source, link.peer_attach.source
    if body.role:
        now, before, asked = body.target, link.attach.target, link.peer_attach.target
    if now is not None or not isinstance(before, (Source, Target)) or not isinstance(asked, (Source, Target)):
        return
    policy = before.expiry_policy or "session-end"
    if policy != "link-detach" and asked.address == before.address and asked.address is not None:
        terminus_lost(case, what, str(policy))


# What the dissector's problems break, by their code.
PROBLEMS: dict[str, Callable[[Case, Problem], None]] = {
    "M-ADDR-TYPE": address_of_another_type,
    "M-FILTER-KEY": filter_with_key_that_is_no_symbol,
    "M-FILTER-VALUE": filter_that_is_no_described_value,
    "M-OUTCOME-VALID": default_outcome_that_is_none,
}

RULES = {
    "amqp10/M-ADDR-TYPE": address_of_another_type,
    "amqp10/M-FILTER-KEY": filter_with_key_that_is_no_symbol,
    "amqp10/M-FILTER-VALUE": filter_that_is_no_described_value,
    "amqp10/M-OUTCOME-VALID": default_outcome_that_is_none,
    "amqp10/M-SRC-DYN-ADDR": dynamic_source_without_address,
    "amqp10/M-TGT-DYN-ADDR": dynamic_target_without_address,
    "amqp10/M-SRC-DYN-NOADDR": dynamic_source_requested_by_address,
    "amqp10/M-TGT-DYN-NOADDR": dynamic_target_requested_by_address,
    "amqp10/M-DYNPROPS-UNSET": dynamic_properties_without_dynamic,
    "amqp10/TX-COORD-RESUME": coordinator_resumed,
    "amqp10/M-LIFETIME-VALUE": lifetime_policy_that_is_none,
    "amqp10/M-SUPPDIST-VALUE": supported_modes_that_are_no_symbols,
    "amqp10/M-DISTMODE-VALUE": unknown_distribution_mode,
    "amqp10/M-OUTCOMES-SYMBOL": outcomes_with_symbol_that_stands_for_none,
    "amqp10/M-TERM-EXPIRY": terminus_lost,
    "amqp10/M-DYN-NAME": generated_address_that_tells_nothing,
}

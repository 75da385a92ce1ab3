"""Sources and targets: addresses, filters, dynamic nodes (messaging.xml, "addressing")."""

from collections.abc import Callable

from amqpscope.rules.amqp10.proof import proved
from amqpscope.rules.case import Case
from amqpscope.tracking.amqp10.session import SessionEnd
from dissectors.amqp10.messaging import Source, Target
from dissectors.amqp10.performatives import Attach
from dissectors.amqp10.transactions import Coordinator
from dissectors.interface import Problem

__all__ = ["PROBLEMS", "judge_attach", "judge_request"]


def address_of_another_type(case: Case, problem: Problem) -> None:
    """An address is of a type that provides none; the standard one is string.

    Why it matters: the node cannot be named.
    Silent when: the frame was not captured whole. Never more than possible.
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


def judge_attach(case: Case, body: Attach) -> None:
    """The rules that the termini of an attach break by themselves."""
    source = body.source
    target = body.target
    if isinstance(source, Source):
        if source.dynamic:
            if body.role is False and source.address is None and (source.odd is None or 0 not in source.odd):
                dynamic_source_without_address(case)
        elif source.dynamic_node_properties is not None:
            dynamic_properties_without_dynamic(case, "source")
    if isinstance(target, Target):
        if target.dynamic:
            if body.role is True and target.address is None and (target.odd is None or 0 not in target.odd):
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
}

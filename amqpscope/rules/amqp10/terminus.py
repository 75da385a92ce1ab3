"""Sources and targets: addresses, filters, dynamic nodes (messaging.xml, "addressing")."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import UNKNOWN
from amqpscope.tracking.amqp10.outcomes import foreign
from amqpscope.tracking.amqp10.session import SessionEnd
from dissectors.amqp10.composite import Composite, sent_name
from dissectors.amqp10.messaging import Source, Target
from dissectors.amqp10.performatives import Attach
from dissectors.amqp10.transactions import Coordinator
from dissectors.amqp10.values import Array, Map, Raw, Symbol
from dissectors.wire import i64

__all__ = ["judge_attach", "judge_kept", "judge_request"]

RULES: Final = Rules("amqp10/terminus")


# The distribution modes of the specification (messaging.xml, "std-dist-mode").
_MODES: Final = ("move", "copy")


M_ADDR_TYPE: Final = RULES.rule(
    "M-ADDR-TYPE",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:invalid-field",
    proved="possible",
)
"""A peer sends an address of a type that the specification does not define as an address. The standard type
of an address is `string`.

Demands: An address must have a type that the specification defines as an address. The standard type of an
address is `string`. Addresses are in the fields `to` and `reply-to`, and in the field `address` of source and
target.
Source: messaging.xml section message-format > address-string; messaging.xml properties.to, reply-to
Evidence: the type of the address
Why it matters: The receiver of the address cannot identify the node, so the link or the message does not
reach the intended node.
Silent when: a part of the frame was not captured.
Only possible because: The specification can be read so that this type is legal, or a newer specification may
define the type as an address.
How to mend it: Encode every address as a `string`, not as a symbol, binary or number. Addresses are in the
fields `to` and `reply-to` of the properties, and in the field `address` of source and target. If the
application gives an address of another type, convert the address to text first.
"""


M_FILTER_KEY: Final = RULES.rule(
    "M-FILTER-KEY", "MUST", "lower-case", usual_answer="amqp:invalid-field", proved="certain"
)
"""A peer sends a filter-set with a key that is not a symbol.

Demands: The keys of a filter-set must be symbols. The draft csprd02 writes this demand with the keyword MUST.
Source: messaging.xml section addressing > filter-set
Evidence: the keys of the filter-set in the source
Why it matters: The other peer looks up each filter by a symbol and does not find this filter. Messages may
arrive unfiltered, or the other peer may refuse the attach.
Silent when: a part of the frame was not captured.
How to mend it: Encode every key of the filter map of a source as a symbol (format code `0xa3` or `0xb3`), not
as a string or a ulong. With a client library, pass filter names as symbols.
"""


M_FILTER_VALUE: Final = RULES.rule(
    "M-FILTER-VALUE", "MUST", "lower-case", usual_answer="amqp:invalid-field", proved="certain"
)
"""A peer sends a filter-set with a value that is neither null nor a described value.

Demands: The values of a filter-set must be null or described values. The draft csprd02 writes this demand
with the keyword MUST.
Source: messaging.xml section addressing > filter-set
Evidence: the values of the filter-set in the source
Why it matters: The descriptor of a value shows which filter is meant. Without a descriptor, the other peer
cannot apply the filter and may refuse the attach.
Silent when: a part of the frame was not captured.
How to mend it: Encode every filter as a described value, with the filter's descriptor (symbol or ulong)
before the value of the filter. Do not put the bare value, such as a selector string, into the filter-set.
"""


M_OUTCOME_VALID: Final = RULES.rule(
    "M-OUTCOME-VALID", "MUST", "keyword", usual_answer="amqp:invalid-field", proved="certain"
)
"""A peer sends a source whose default-outcome is not an outcome.

Demands: The default-outcome must be an outcome. The delivery state `received` is not an outcome.
Source: messaging.xml section addressing > source.default-outcome
Evidence: the descriptor of the default-outcome
Why it matters: The default-outcome applies to deliveries for which the receiver sends no outcome. Without a
valid default-outcome, the peers do not agree on the result of these deliveries.
Silent when: a part of the frame was not captured.
How to mend it: Set default-outcome to an outcome, for example `accepted`, `rejected`, `released` or
`modified`, encoded as a described list. The delivery state `received` is not an outcome. Leave
default-outcome null if you need no default.
"""


M_SRC_DYN_ADDR: Final = RULES.rule(
    "M-SRC-DYN-ADDR", "MUST", "keyword", by="sender", usual_answer="amqp:invalid-field"
)


def dynamic_source_without_address(case: Case10) -> None:
    """A sender attaches with a dynamic source but does not give the address of the node that it created.

    Demands: A sender that attaches with source.dynamic=true must give the address of the created node.
    Source: messaging.xml section addressing > source.address, dynamic
    Evidence: a sender's attach with source.dynamic=true and a null address
    Why it matters: The sender created the node for the receiver. Without the address, the receiver cannot
    name the node, for example as the reply-to of a request.
    Silent when: never.
    How to mend it: Write the address of the created node into source.address of the sender's attach whenever
    that source has dynamic=true.
    """
    case.report(
        M_SRC_DYN_ADDR, "a sender's attach has a dynamic source without the address of the created node"
    )


M_TGT_DYN_ADDR: Final = RULES.rule(
    "M-TGT-DYN-ADDR", "MUST", "keyword", by="receiver", usual_answer="amqp:invalid-field"
)


def dynamic_target_without_address(case: Case10) -> None:
    """A receiver attaches with a dynamic target but does not give the address of the node that it created.

    Demands: A receiver that attaches with target.dynamic=true must give the address of the created node. In
    the text of this demand, the specification writes 'source' by mistake.
    Source: messaging.xml section addressing > target.address, dynamic
    Evidence: a receiver's attach with target.dynamic=true and a null address
    Why it matters: The receiver created the node for the sender. Without the address, the sender cannot name
    the node, for example to pass the address on to other peers.
    Silent when: never.
    How to mend it: Write the address of the created node into target.address of the receiver's attach
    whenever that target has dynamic=true.
    """
    case.report(
        M_TGT_DYN_ADDR, "a receiver's attach has a dynamic target without the address of the created node"
    )


M_SRC_DYN_NOADDR: Final = RULES.rule(
    "M-SRC-DYN-NOADDR", "MUST NOT", "keyword", by="receiver", usual_answer="amqp:invalid-field"
)


def dynamic_source_requested_by_address(case: Case10) -> None:
    """A receiver requests a dynamic source and also sets an address in this source.

    Demands: A receiver that requests a dynamic source must leave source.address null.
    Source: messaging.xml section addressing > source.address, dynamic
    Evidence: a receiver's attach with source.dynamic=true and an address
    Why it matters: The sender generates the address of a dynamic node. A broker may refuse an attach that
    requests a dynamic node and sets an address, or may ignore the address.
    Silent when: the attach answers or resumes an earlier attach and repeats the address of that earlier
    attach. The rule is also silent when octets of either peer were not captured.
    How to mend it: Leave source.address null when source.dynamic is true, and read the generated address from
    the sender's attach. To use a node with a known name, set the address and leave dynamic false.
    """
    case.report(
        M_SRC_DYN_NOADDR,
        "a receiver requests a dynamic source and also sets source.address, which must be null",
    )


M_TGT_DYN_NOADDR: Final = RULES.rule(
    "M-TGT-DYN-NOADDR", "MUST NOT", "keyword", by="sender", usual_answer="amqp:invalid-field"
)


def dynamic_target_requested_by_address(case: Case10) -> None:
    """A sender requests a dynamic target and also sets an address in this target.

    Demands: A sender that requests a dynamic target must leave target.address null.
    Source: messaging.xml section addressing > target.address, dynamic
    Evidence: a sender's attach with target.dynamic=true and an address
    Why it matters: The receiver generates the address of a dynamic node. A broker may refuse an attach
    that requests a dynamic node and sets an address, or may ignore the address.
    Silent when: the attach answers or resumes an earlier attach and repeats the address of that earlier
    attach. The rule is also silent when octets of either peer were not captured.
    How to mend it: Leave target.address null when target.dynamic is true, and read the generated address from
    the receiver's attach. To use a node with a known name, set the address and leave dynamic false.
    """
    case.report(
        M_TGT_DYN_NOADDR,
        "a sender requests a dynamic target and also sets target.address, which must be null",
    )


M_DYNPROPS_UNSET: Final = RULES.rule(
    "M-DYNPROPS-UNSET", "MUST", "lower-case", usual_answer="amqp:invalid-field"
)


def dynamic_properties_without_dynamic(case: Case10, what: str) -> None:
    """A peer sends a source or target with dynamic-node-properties, although its field `dynamic` is not true.

    Demands: A source or target may have dynamic-node-properties only if its field `dynamic` is true. The
    draft csprd02 writes this demand with the keyword MUST.
    Source: messaging.xml section addressing > source.dynamic-node-properties, target.dynamic-node-properties
    Evidence: dynamic-node-properties in a source or target whose field `dynamic` is not true
    Why it matters: The properties describe a dynamically created node, but the source or target is not
    dynamic. The other peer may ignore the properties or refuse the attach.
    Silent when: never.
    How to mend it: Set dynamic-node-properties only if the field `dynamic` of the same source or target is
    true. If you want a dynamic node, set `dynamic` to true.
    """
    case.report(
        M_DYNPROPS_UNSET, f"the {what} has dynamic-node-properties, but its field `dynamic` is not true"
    )


TX_COORD_RESUME: Final = RULES.rule(
    "TX-COORD-RESUME", "MUST NOT", "definition", usual_answer="amqp:not-allowed"
)


def coordinator_resumed(case: Case10) -> None:
    """A peer sends an attach that resumes a link to a transaction coordinator.

    Demands: A peer must not resume a link to a coordinator.
    Source: transactions.xml section txn-declare
    Evidence: an attach with a coordinator as target and an unsettled map that is not null
    Why it matters: Transactions end with their control link, so there is nothing to resume. The other peer
    may refuse the link, and the old transactions are rolled back.
    Silent when: the unsettled map is empty.
    How to mend it: Leave the unsettled map null in an attach whose target is a coordinator. After a control
    link is lost, attach a new control link and declare new transactions.
    """
    case.report(
        TX_COORD_RESUME,
        "the attach of a link to a coordinator has an unsettled map, but such a link must not be resumed",
    )


M_LIFETIME_VALUE: Final = RULES.rule(
    "M-LIFETIME-VALUE", "MUST", "lower-case", usual_answer="amqp:invalid-field"
)


def lifetime_policy_that_is_none(case: Case10, what: str, value: object) -> None:
    """For a dynamic node, a peer sends a lifetime-policy that is not one of the four types of the
    specification.

    Demands: The lifetime-policy of a node must be one of the four types whose names begin with `delete-on-`.
    The drafts csd01 and csprd02 allow any type that is defined as a lifetime-policy.
    Source: messaging.xml section addressing > node-properties
    Evidence: the descriptor of the lifetime-policy (0x2b to 0x2e in the specification)
    Why it matters: The peers do not agree on the time at which the node is deleted. A peer that does not know
    the lifetime-policy keeps the node for ever or refuses the link.
    Silent when: a part of the frame was not captured.
    Possible because: Another party may have defined the type of the value as a lifetime-policy.
    How to mend it: Encode lifetime-policy as one of the described types delete-on-close, delete-on-no-links,
    delete-on-no-messages or delete-on-no-links-or-messages. The descriptors of these types are `0x2b` to
    `0x2e`, and each value is an empty list. Do not send the lifetime-policy as a symbol or a string.
    """
    message = (
        f"the {what}'s lifetime-policy has the type `{sent_name(value)}`, which is not a lifetime-policy"
    )
    case.report(M_LIFETIME_VALUE, message, CERTAIN, {"lifetime_policy": sent_name(value)})


M_SUPPDIST_VALUE: Final = RULES.rule(
    "M-SUPPDIST-VALUE", "MUST", "lower-case", usual_answer="amqp:invalid-field"
)


def supported_modes_that_are_no_symbols(case: Case10, what: str, value: object) -> None:
    """For a dynamic node, a peer sends supported-dist-modes that are neither a symbol nor an array of
    symbols.

    Demands: The supported-dist-modes of a node must be one symbol or an array of symbols that name
    distribution modes.
    Source: messaging.xml section addressing > node-properties
    Evidence: the type of supported-dist-modes
    Why it matters: The peers do not agree whether the node moves or copies its messages. The other peer may
    ignore the property or refuse the attach.
    Silent when: a part of the frame was not captured.
    How to mend it: Encode supported-dist-modes as one symbol (`move` or `copy`) or as an array of symbols,
    not as a string or a list.
    """
    message = (
        f"the {what}'s supported-dist-modes have the type `{sent_name(value)}`, but must be a symbol or an "
        "array of symbols"
    )
    case.report(M_SUPPDIST_VALUE, message, CERTAIN, {"supported_dist_modes": sent_name(value)})


M_DISTMODE_VALUE: Final = RULES.rule(
    "M-DISTMODE-VALUE",
    "MUST",
    "definition",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:invalid-field",
)


def unknown_distribution_mode(case: Case10, mode: str) -> None:
    """A peer sends a source whose distribution-mode is neither `move` nor `copy`.

    Demands: The distribution-mode of a source must be `move`, `copy` or a registered extension.
    Source: messaging.xml section addressing > std-dist-mode
    Evidence: the text of the distribution-mode
    Why it matters: The peers do not agree whether a delivered message stays at the node. A receiver may
    consume messages that it only wants to browse, or browse messages that it wants to consume.
    Silent when: a part of the frame was not captured.
    Only possible because: A specification that this rule does not know may define the distribution-mode.
    How to mend it: Set distribution-mode to the symbol `move` (consume) or `copy` (browse), in lower case, or
    leave it null so that the node decides.
    """
    message = "the source's distribution-mode is neither `move` nor `copy`"
    case.report_once(M_DISTMODE_VALUE, message, POSSIBLE, {"distribution_mode": str(mode)})


M_OUTCOMES_SYMBOL: Final = RULES.rule(
    "M-OUTCOMES-SYMBOL", "MUST", "keyword", usual_answer="amqp:invalid-field"
)


def outcomes_with_symbol_that_stands_for_none(case: Case10, symbol: str, certainty: i64) -> None:
    """A peer sends a source whose field `outcomes` contains a symbol that is not the descriptor of an
    outcome.

    Demands: The field `outcomes` must list descriptors of outcomes as symbols, such as `amqp:accepted:list`.
    Source: messaging.xml section addressing > source.outcomes
    Evidence: the symbols in the field `outcomes`
    Why it matters: The receiver cannot find an outcome for this symbol, and may treat the whole list as an
    error.
    Silent when: a part of the frame was not captured, or when the symbol has a domain other than `amqp`. The
    finding is reported as possible, not as certain, when the symbol has the domain `amqp` but the rule knows
    no type with this descriptor.
    Possible because: A specification that this rule does not know may define the symbol.
    How to mend it: List the full symbolic descriptors of outcomes, for example `amqp:accepted:list` or
    `amqp:rejected:list`, not short names such as `accepted`. Do not list `amqp:received:list`, because the
    state `received` is not an outcome.
    """
    message = "the source's field `outcomes` has a symbol that is not the descriptor of an outcome"
    case.report(M_OUTCOMES_SYMBOL, message, certainty, {"symbol": str(symbol)})


M_DYN_NAME: Final = RULES.rule("M-DYN-NAME", "SHOULD", "keyword")


def generated_address_that_tells_nothing(case: Case10, address: str, name: str, container: str) -> None:
    """The address that a peer generates for a dynamic node contains neither the name of the link nor the
    container-id of the other peer.

    Demands: A generated address should contain the link name and the other peer's container-id. Instead of
    the container-id, the final specification also allows a session id or a client id. According to the drafts
    csd01 and csprd02, the address should contain the link name and further data about the peer that requests
    the node.
    Source: messaging.xml section addressing > source.address, source.dynamic (and target)
    Evidence: the generated address, the link name and the container-id
    Why it matters: An operator who finds the node on the broker cannot see to which client and to which link
    the node belongs.
    Silent when: the other peer's open was not captured.
    Only possible because: The address may contain the link name and the container-id in a form that only
    the creator of the address recognizes.
    How to mend it: Build the address of a dynamic node from the container-id of the other peer's open and the
    link name, together with a unique part.
    """
    case.report_once(
        M_DYN_NAME,
        "the dynamic node's address contains neither the link name nor the other peer's container-id",
        POSSIBLE,
        {"address": str(address), "link_name": name, "container_id": container},
    )


def _judge_wishes(case: Case10, what: str, wishes: Map | None) -> None:
    """Judge the requested properties of a dynamic node."""
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


def _judge_outcomes(case: Case10, outcomes: list[Symbol]) -> None:
    """Judge the symbols that a source lists as outcomes; report the first one that is not an outcome."""
    found = foreign(outcomes)
    if found is not None:
        outcomes_with_symbol_that_stands_for_none(case, *found)


def _judge_address(case: Case10, body: Attach, address: object) -> None:
    """The address that this peer made for a dynamic node."""
    opened = case.me.peer_open
    if not isinstance(address, str) or opened is None or not opened.container_id or not body.name:
        return
    plain = address.casefold()
    if body.name.casefold() not in plain and opened.container_id.casefold() not in plain:
        generated_address_that_tells_nothing(case, address, body.name, opened.container_id)


def judge_attach(case: Case10, body: Attach) -> None:
    """Judge the termini of an attach by themselves."""
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


def judge_request(case: Case10, session: SessionEnd, body: Attach) -> None:
    """Judge the first attach of a link."""
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


M_TERM_EXPIRY: Final = RULES.rule(
    "M-TERM-EXPIRY",
    "MUST",
    "definition",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:not-found",
)


def terminus_lost(case: Case10, what: str, policy: str) -> None:
    """A peer attaches a link again with a null source or target, although its earlier source or target of the
    link has not expired.

    Demands: A peer must keep a terminus (a source or target) until the timeout of the terminus has passed
    after the event that its expiry-policy names. A new attach stops the timer of the terminus.
    Source: messaging.xml section addressing > terminus-expiry-policy, source.timeout, target.timeout
    Evidence: the expiry-policy and timeout of the terminus, the later attach, and the time that passed
    before this attach
    Why it matters: The terminus (a source or target) is lost with its unsettled deliveries, and a
    subscription may also be lost.
    Silent when: the link was closed, when the new attach is on another session, or when the terminus expires
    with the link. The rule is also silent when the other peer asks for another address, or when octets were
    not captured.
    Only possible because: The peer may have refused the terminus for another reason.
    How to mend it: Keep the terminus until the timeout of the terminus has passed after the event that its
    expiry-policy names. Stop the timer when the link is attached again, and answer the new attach with the
    terminus that you have kept.
    """
    case.report(
        M_TERM_EXPIRY,
        f"the peer attaches the link again with a null {what}, although the earlier {what} has not expired "
        f"(expiry-policy `{policy}`)",
        POSSIBLE,
        {"expiry_policy": policy},
    )


def judge_kept(case: Case10, session: SessionEnd, body: Attach) -> None:
    """Judge the attach of a link that was detached before."""
    if body.name is None or body.role is None or not case.me.whole:
        return
    link = session.links.get((body.name, not body.role))
    if link is None or link.attach is None or link.peer_attach is None or not link.whole:
        return
    if (
        link.attachment.closed
        or link.attachment.half_closed is not None
        or link.attachment.failed
        or link.attachment.peer_failed
    ):
        return
    if link.handle != UNKNOWN or link.attachment.peer_times <= link.attachment.times:
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

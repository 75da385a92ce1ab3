"""Attaches: their unsettled maps, sources and targets (sections 3.7.3, 4.5.3 and 4.5.4)."""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10_draft2011.case import CaseDraft2011
from amqpscope.rules.declaration import Rules
from dissectors.amqp10.composite import Composite
from dissectors.amqp10.values import Described, Raw
from dissectors.amqp10_draft2011 import performatives as draft

__all__ = ["judge_attach"]

RULES: Final = Rules("amqp10_draft2011/attaches")

# Where these fields stand in a source, and the address in a target.
_ADDRESS: Final = 1
_DISTRIBUTION_MODE: Final = 6


L_UNSETTLED_TYPES: Final = RULES.rule(
    "L-UNSETTLED-TYPES", "MUST", "definition", usual_answer="amqp:invalid-field", octets=True
)


def unsettled_map_of_other_types(case: CaseDraft2011, what: str) -> None:
    """A peer sends an attach whose unsettled map has a key that is not a delivery-tag (binary), or a value
    that is neither a transfer-state nor null.

    Demands: The keys of the unsettled map must be delivery-tags (binary), and its values must be
    transfer-states or null.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 3.7.3 and 3.8.5
    Evidence: the types of the keys and values in the unsettled map
    Why it matters: The other peer cannot match the entry to a delivery, or cannot tell how much of the
    message is still needed. The message may be lost or arrive twice.
    Silent when: a part of the frame was not captured, or when a value has a descriptor that the draft does
    not define.
    How to mend it: Encode each key as binary, and each value as a transfer-state. In the draft, an outcome
    must be wrapped in a transfer-state, unlike in the final specification.
    """
    case.report(L_UNSETTLED_TYPES, what)


M_SRC_DYN_ADDR: Final = RULES.rule(
    "M-SRC-DYN-ADDR", "MUST", "keyword", by="sender", usual_answer="amqp:invalid-field"
)


def source_without_address(case: CaseDraft2011) -> None:
    """A sender attaches with a source that has no address.

    Demands: A sender must give the address of its source in each attach, even if the source was created
    dynamically.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 4.5.3
    Evidence: a sender's attach whose source has no address
    Why it matters: The receiver does not know from which node the messages come. If the node was created
    dynamically, the receiver cannot use the node for anything else.
    Silent when: the source is null, or when a part of the frame was not captured.
    How to mend it: Write the address of the node into source.address of every attach that you send as a
    sender. Send a null source if there is no node.
    """
    case.report(M_SRC_DYN_ADDR, "a sender's attach has a source without an address")


M_TGT_DYN_ADDR: Final = RULES.rule(
    "M-TGT-DYN-ADDR", "MUST", "keyword", by="receiver", usual_answer="amqp:invalid-field"
)


def target_without_address(case: CaseDraft2011) -> None:
    """A receiver attaches with a target that has no address.

    Demands: A receiver must give the address of its target in each attach, even if the target was created
    dynamically.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 4.5.4
    Evidence: a receiver's attach whose target has no address
    Why it matters: The sender does not know to which node the messages go. If the node was created
    dynamically, the sender cannot name the node to other peers.
    Silent when: the target is null or a coordinator, or when a part of the frame was not captured.
    How to mend it: Write the address of the node into target.address of every attach that you send as a
    receiver. Send a null target if there is no node.
    """
    case.report(M_TGT_DYN_ADDR, "a receiver's attach has a target without an address")


M_DISTMODE_SET: Final = RULES.rule(
    "M-DISTMODE-SET",
    "MUST",
    "keyword",
    by="sender",
    warning="The draft calls the distribution-mode optional in another section.",
    usual_answer="amqp:invalid-field",
)


def source_without_distribution_mode(case: CaseDraft2011) -> None:
    """A sender attaches with a source that has no distribution-mode.

    Demands: A sender must set the distribution-mode of its source in each attach.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 4.5.3
    Evidence: a sender's attach whose source has no distribution-mode
    Why it matters: The receiver does not know whether messages that it accepts stay at the node.
    Silent when: the source is null, when a part of the frame was not captured, or when the rule has already
    reported the peer on this connection.
    Only possible because: Section 4.5.2 of the draft calls the distribution-mode optional.
    How to mend it: Set distribution-mode to `move` or `copy` in the source of every attach that you send as a
    sender.
    """
    case.report_once(M_DISTMODE_SET, "a sender's attach has a source without distribution-mode", POSSIBLE, {})


def judge_attach(case: CaseDraft2011, sent: draft.Attach) -> None:
    """The rules about an attach alone."""
    if sent.unsettled is not None:
        _judge_unsettled(case, sent.unsettled.pairs)
    source, target = sent.source, sent.target
    if sent.role is False and isinstance(source, draft.Source):
        if source.address is None and not source.unread(_ADDRESS):
            source_without_address(case)
        if source.distribution_mode is None and not source.unread(_DISTRIBUTION_MODE):
            source_without_distribution_mode(case)
    if sent.role is True and isinstance(target, draft.Target):
        if target.address is None and not target.unread(_ADDRESS):
            target_without_address(case)


def _judge_unsettled(case: CaseDraft2011, pairs: list[tuple[object, object]]) -> None:
    for key, state in pairs:
        if not isinstance(key, (bytes, Raw)):
            unsettled_map_of_other_types(case, "a key of the unsettled map is not a delivery-tag")
            return
        if state is None or isinstance(state, (Described, Raw)):
            continue
        if not isinstance(state, Composite) or "transfer-state" not in state.definition().provides:
            unsettled_map_of_other_types(case, "a value of the unsettled map is not a transfer-state")
            return

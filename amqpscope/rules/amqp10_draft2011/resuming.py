"""Resuming transfers: which octets a sender may leave out (sections 3.6.13 and 4.3).

The unsettled map of the receiver's attach has a transfer-state for each delivery that the receiver holds.
With an outcome nothing is needed any more. Without one, bytes-transferred says how much has arrived. The
draft does not say whether that counts the whole message or its last section, so the rules hold for both.
"""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10_draft2011.case import CaseDraft2011
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10_draft2011.sections import SectionFragment
from dissectors.amqp10.messaging import Received
from dissectors.amqp10.performatives import Transfer
from dissectors.wire import i64

__all__ = ["judge_received", "judge_resumed"]

RULES: Final = Rules("amqp10_draft2011/resuming")


D_RESUME_OMIT: Final = RULES.rule(
    "D-RESUME-OMIT",
    "MUST NOT",
    "inferred",
    by="sender",
    warning="The specification implies the demand without stating the demand.",
    usual_answer="amqp:not-allowed",
    octets=True,
)


def data_left_out(case: CaseDraft2011, link: LinkEnd, what: str, transferred: int) -> None:
    """A sender resumes a delivery and leaves out octets that the receiver does not have.

    Demands: A sender that resumes a delivery may leave out only the message data that has arrived according
    to the receiver's transfer-state.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 3.6.13 and 4.3
    Evidence: bytes-transferred in the receiver's unsettled map, and the section-number and section-offset of
    the first fragment of the resumed delivery
    Why it matters: The receiver appends the fragments to the octets that it already has. Octets in the middle
    of the message are missing.
    Silent when: one of the two attach frames was not captured, or when the transfer aborts the delivery. The
    rule is also silent when the receiver's transfer-state has an outcome or a txn-id.
    Only possible because: The draft does not say what bytes-transferred counts in a message of several
    sections. A sender that resumes a delivery may also leave out an empty section.
    How to mend it: In the receiver's unsettled map, bytes-transferred is the number of octets that have
    arrived. Resume the delivery with the octet after these octets. If the receiver's transfer-state gives no
    position, send the message from its start.
    """
    case.report(
        D_RESUME_OMIT,
        f"the resumed delivery {what}, but the receiver has received only {transferred} octets "
        "(bytes-transferred)",
        POSSIBLE,
        {"bytes_transferred": transferred},
        [int(link.attachment.packet)],
    )


M_RECEIVED_POS: Final = RULES.rule(
    "M-RECEIVED-POS",
    "MUST",
    "inferred",
    by="receiver",
    warning="The specification implies the demand without stating the demand.",
    usual_answer="amqp:invalid-field",
)


def more_received_than_was_sent(case: CaseDraft2011, transfer_id: int, stated: int, sent: i64) -> None:
    """In bytes-transferred, a receiver reports more octets of a delivery than the sender has sent.

    Demands: The value of bytes-transferred must not exceed the number of octets that the sender has sent of
    the message.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 4.3
    Evidence: bytes-transferred in a receiver's disposition, and the payloads of the delivery's fragments
    Why it matters: If the sender later resumes the delivery after the reported number of octets, octets of
    the message are lost.
    Silent when: the capture lacks octets that were sent after the attach of the link. The rule is also silent
    when the delivery was resumed, or when the transfer-state has an outcome.
    Only possible because: The draft does not say what bytes-transferred counts in a message of several
    sections.
    How to mend it: Set bytes-transferred to the number of octets in the payloads of the fragments that you
    have stored.
    """
    case.report(
        M_RECEIVED_POS,
        f"the receiver reports bytes-transferred={stated} for transfer {transfer_id}, but only {sent} octets "
        "were sent",
        POSSIBLE,
        {"bytes_transferred": stated, "octets": int(sent)},
    )


def judge_resumed(
    case: CaseDraft2011, link: LinkEnd, body: Transfer, fragments: list[SectionFragment]
) -> None:
    """The rule about the first transfer of a delivery that is resumed."""
    theirs = link.resumption.peer_listed
    tag = body.delivery_tag
    if not body.resume or body.aborted or tag is None or not theirs or tag not in theirs or not link.whole:
        return
    state = theirs[tag]
    transferred = 0
    if isinstance(state, Received):
        transferred = state.section_offset or 0
    elif state is not None:
        return
    if not fragments:
        if transferred == 0 and not body.more and not body.settled:
            data_left_out(case, link, "carries no data", transferred)
        return
    number, offset = fragments[0].number, fragments[0].offset
    if offset > transferred or (transferred == 0 and number > 0):
        data_left_out(case, link, f"begins with octet {offset} of section {number}", transferred)


def judge_received(case: CaseDraft2011, transfer_id: int, stated: int, sent: i64) -> None:
    """The rule about a disposition of a receiver, for a delivery of which so many octets were sent."""
    if stated > sent:
        more_received_than_was_sent(case, transfer_id, stated, sent)

"""Messages that a server sends again, judged by their earlier deliveries (sections 4.2.2, 4.3 and 4.4.1).

The functions of `rules.amqp10.redelivery` judge them. Rules about fields that only the draft has are here.
"""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.rules.amqp10.redelivery import judge_again
from amqpscope.rules.amqp10_draft2011.case import CaseDraft2011
from amqpscope.rules.amqp10_draft2011.same_messages import RULES as _OF_MESSAGES  # noqa: F401
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.link import LinkEnd
from amqpscope.tracking.amqp10.redelivery import Fate
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10_draft2011.passing import draft_digest, head_of
from dissectors.amqp10.messaging import Modified, Rejected, Source
from dissectors.amqp10_draft2011.message import DraftMessage

__all__ = ["judge_message"]

RULES: Final = Rules("amqp10_draft2011/redelivery")


M_HDR_FIRSTACQ: Final = RULES.rule(
    "M-HDR-FIRSTACQ",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def other_acquirer_not_counted(case: CaseDraft2011, fate: Fate) -> None:
    """A server sends a message with former-acquirers=0 on a link, although the receiver of another link
    acquired the message before and failed to process the message.

    Demands: The field former-acquirers must count the other links that acquired the message and failed to
    process the message. The processing failed if the outcome was `rejected`, or `modified` with
    delivery-failed=true.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 4.2.2
    Evidence: the outcome of an earlier delivery on another link, and former-acquirers in the header of the
    message
    Why it matters: With former-acquirers=0, a receiver wrongly concludes that no other receiver has failed to
    process the message.
    Silent when: the message has no message-id, or when its header has no former-acquirers. The rule is also
    silent when one of the two deliveries took several transfers, or when the other link belonged to another
    node. The rule remembers only the first messages of each connection, and is silent about later messages.
    Only possible because: No capture can prove this fault, because a client may have sent the same message to
    the {peer} a second time.
    How to mend it: Store with each message how many links have acquired the message and failed to process the
    message. Write this number into former-acquirers, but do not count the current link.
    """
    case.report(
        M_HDR_FIRSTACQ,
        "the header has former-acquirers=0, although the receiver of another link failed to process the "
        f"message (packet {fate.packet})",
        POSSIBLE,
        None,
        [int(fate.packet)],
    )


M_REJ_ANNOTATE: Final = RULES.rule(
    "M-REJ-ANNOTATE", "MUST", "definition", warning="A capture can suggest this fault but never prove it."
)
"""A receiver rejected a message with an error, and the server sends the message again without an entry
`rejected` in the message-attrs of the header.

Demands: The error of a rejection must go into the message-attrs of the message's header under the key
`rejected`.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 4.3.3
Evidence: the error of the rejection, and the header of a later delivery
Why it matters: The application that handles rejected messages does not learn why the messages were rejected.
Silent when: the message has no message-id. The rule remembers only the first messages of each connection, and
is silent about later messages. The rule is also silent when one of the two deliveries took several transfers.
Only possible because: No capture can prove this fault, because a client may have sent the same message to the
{peer} a second time.
How to mend it: When an outcome `rejected` carries an error, store this error in the message-attrs of the
message's header. Use the key `rejected`, and store the error before you send the message again.
"""


def judge_message(case: CaseDraft2011, session: SessionEnd, link: LinkEnd, message: DraftMessage) -> None:
    """Judge a message that a server sends by the messages that it has sent before."""
    me = case.me
    attach = link.attach
    if attach is None or not me.whole or not me.legible or not message.complete or message.problems:
        return
    source = attach.source
    if not me.messages.complete or not me.messages.fates or not isinstance(source, Source):
        return
    passed = draft_digest(case.sent, message, link.name)
    fate = None if passed is None else me.messages.fates.get(passed.message_id)
    if passed is None or fate is None or not fate.is_of(passed):
        return
    head = head_of(message)
    state = fate.state
    failed = isinstance(state, Rejected) or (isinstance(state, Modified) and state.delivery_failed is True)
    if failed and head.first and fate.link != link.name and source.address is not None:
        if source.address == fate.address and source.distribution_mode != "copy":
            other_acquirer_not_counted(case, fate)
    judge_again(case, session, link, source, fate, head)

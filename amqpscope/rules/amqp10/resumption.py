"""Links that are attached again on a later connection (transport.xml, "Establishing or Resuming a Link")."""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection
from amqpscope.rules.declaration import DECLARED, Rules
from amqpscope.tracking.amqp10.link_resume_state import LinkResumeState
from dissectors.wire import i64
from dissectors.wording import count, were

__all__ = ["judge_resumption"]

RULES: Final = Rules("amqp10/resumption")


L_ATTACH_UNSETTLED: Final = RULES.rule(
    "L-ATTACH-UNSETTLED",
    "MUST",
    "keyword",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:invalid-field",
)


def attached_without_what_was_left(
    left: LinkResumeState, earlier: Connection, account: LinkResumeState, connection: Connection, lacking: int
) -> Finding:
    """A peer attaches a link again on a new connection, but does not list all deliveries that were left
    unsettled on the earlier connection.

    Demands: A peer that attaches a link for which it still has a terminus must include its unsettled map
    in the attach.
    Source: transport.xml section links > Establishing or Resuming a Link
    Evidence: the earlier attach with the same link name, the detach of the link, and the timeout and
    expiry-policy of the terminus
    Why it matters: The other peer assumes that each unlisted delivery is settled. The message of such a
    delivery is lost or arrives twice.
    Silent when: the source may have expired in the meantime, or when the link was closed. The rule is also
    silent when octets of either connection were not captured. The rule is also silent when the unsettled map
    of the new attach is marked as incomplete.
    Only possible because: The {peer} may have settled the deliveries in the meantime, or may have lost its
    state.
    How to mend it: Keep the unsettled deliveries of a link across connections for as long as its terminus
    exists. List all unsettled deliveries in the unsettled map of the next attach, or set
    incomplete-unsettled=true.
    """
    others = [int(left.spot.packet)] if earlier.capture == connection.capture else []
    unsettled = len(left.left)
    if account.resumes:
        lacks = "this delivery" if unsettled == 1 else f"{lacking} of them"
        what = f"the unsettled map of the new attach does not list {lacks}"
    else:
        what = "the new attach has no unsettled map"
    # A dialect that has the rule, too, has it under its own id.
    own = f"{connection.protocol}/{L_ATTACH_UNSETTLED.partition('/')[2]}"
    finding = Finding(
        own if own in DECLARED else L_ATTACH_UNSETTLED,
        POSSIBLE,
        f"{count(unsettled, 'delivery')} {were(unsettled)} left unsettled on connection {earlier.id}, "
        f"but {what}",
        connection,
        account.spot,
        {"unsettled": unsettled, "earlier_connection": earlier.id},
        others,
    )
    finding.link = account.name
    finding.link_sender = finding.peer
    return finding


def judge_resumption(
    left: LinkResumeState, earlier: Connection, ended: i64, account: LinkResumeState, connection: Connection
) -> Finding | None:
    """How a link is attached again, beside what was left of it.

    left: the link on the `earlier` connection, which ended at `ended` (ns). account: on the later one.
    """
    if not left.left or left.closed or account.partial:
        return None
    if not left.lasts and account.spot.time - ended >= left.timeout * 1_000_000_000:
        return None
    lacking = sum(1 for tag in left.left if tag not in account.tags)
    if lacking == 0:
        return None
    return attached_without_what_was_left(left, earlier, account, connection, lacking)

"""The frame and the two endpoints that a rule of AMQP 1.0 judges."""

from amqpscope.model.certainty import CERTAIN
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection
from amqpscope.rules.case import Case
from amqpscope.tracking.amqp10.endpoint import Endpoint10
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.transactions import NO_LEDGER, Ledger
from amqpscope.tracking.serial import raw
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Source, Target
from dissectors.amqp10.performatives import Attach, Disposition, Transfer
from dissectors.amqp10.registry import MIN_MAX_FRAME_SIZE
from dissectors.wire import i64

__all__ = ["Case10", "attach_read"]


class Case10(Case):
    """One frame before the judge, or the end of a stream.

    me: the endpoint that sent it. peer: the other one. session, link: of this frame, as `me` knows them, or
    None. ledger: the transactions of the two. least_max_frame_size: octets that every peer takes in a frame.
    """

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self.me: Endpoint10
        self.peer: Endpoint10
        self.session: SessionEnd | None = None
        self.link: LinkEnd | None = None
        self.ledger: Ledger = NO_LEDGER
        self.least_max_frame_size: i64 = MIN_MAX_FRAME_SIZE

    def place(self, finding: Finding) -> None:
        if self.spot is None:
            finding.delivery_id = self.delivery_id()
        session = self.session
        if session is not None:
            finding.session = session.number
            if finding.certain and session.peer_begin is None and self.me.channels.peer_unanswered:
                # The other peer may take its own begin for the answer to this session's.
                finding.certain = False
                finding.evidence["begin_in_doubt"] = True
            elif finding.certain and self.link is not None and _crosswise(session, self.link):
                finding.certain = False
                finding.evidence["role_in_doubt"] = True
        link = self.link
        if link is not None:
            finding.link = link.name
            finding.link_sender = self.me.peer if link.sender else self.peer.peer
            attaches = [link.attach, link.peer_attach]
        else:
            attaches = []
        if self.spot is None:
            body = self.record.frame.body
            if isinstance(body, Attach):
                attaches.append(body)
        if attaches:
            finding.addresses = _addresses(attaches)

    def rule_of_the_final(self, rule: str) -> str:
        """The rule of the final specification to which a finding's rule belongs; "" if there is none."""
        return rule

    def message(self) -> Message | None:
        """The message that the frame completes, or None."""
        return Message.of(self.record.message)

    def delivery_id(self) -> i64:
        """The delivery-id that the frame names, the first one of a disposition, or -1."""
        body = self.record.frame.body
        if isinstance(body, Transfer):
            if body.delivery_id is not None:
                return body.delivery_id
            link = self.link
            if link is not None and link.open is not None and link.open.number != UNKNOWN:
                return raw(link.open.number)
        elif isinstance(body, Disposition) and body.first is not None:
            return body.first
        return -1


def attach_read(case: Case10, link: LinkEnd) -> i64:
    """How certain it is that a sender had read the receiver's attach when it sent this transfer.

    A receiver grants credit after its attach, so a sender that uses credit lawfully has read the attach.
    """
    if link.open is not None or (
        len(link.credit.limits) > 0 and link.credit.limits.judge(link.credit.count) != CERTAIN
    ):
        return CERTAIN
    return case.me.knowledge.certainty(link.attachment.peer_end)


def _crosswise(session: SessionEnd, link: LinkEnd) -> bool:
    """Whether both peers attached a link of this name in the same role, and neither attach has an answer."""
    other = session.links.get((link.name, not link.sender))
    if other is None or link.peer_attach is not None:
        return False
    return other.attachment.peer_times > other.attachment.times


def _addresses(attaches: list[Attach | None]) -> tuple[str, ...]:
    """The addresses in the sources and targets of these attaches, each once."""
    found: dict[str, None] = {}
    for attach in attaches:
        if attach is not None:
            source = attach.source
            if isinstance(source, Source) and isinstance(source.address, str):
                found[source.address] = None
            target = attach.target
            if isinstance(target, Target) and isinstance(target.address, str):
                found[target.address] = None
    return tuple(found)

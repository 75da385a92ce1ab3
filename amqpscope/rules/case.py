"""What a rule is given: a frame, both endpoints as they were before it, and where to report.

A rule is a function of a `Case`. Its docstring is its documentation (what it is, why it matters, when
it is silent), its id stands beside it in the `RULES` of its file. Rules are called directly, file by
file, for the frames they are about: they run for every frame, compiled.
"""

from typing import Final

from amqpscope.finding import Finding
from amqpscope.model import Connection, FrameRecord, Spot
from amqpscope.tracking.amqp10.endpoint import Endpoint
from amqpscope.tracking.amqp10.link import UNKNOWN, LinkEnd
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.transactions import NO_LEDGER, Ledger
from amqpscope.tracking.knowledge import CERTAIN, LEGAL
from amqpscope.tracking.pace import Pace
from amqpscope.tracking.serial import raw
from dissectors.amqp10.performatives import Disposition, Transfer
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["NO_RECORD", "Case"]

# What is before the judge while nothing is.
NO_RECORD: Final = FrameRecord(Connection("", 0, 0, bytes(12)), 0, 0, 0, 0, 0, -1, Frame(0, 0, "", "", -1))


class Case:
    """One frame before the judge, or the end of a stream.

    connection: where it is. record: the frame; at the end of a stream there is none. spot: what findings
    point at if not at that frame. me: the endpoint that sent it. peer: the other one. session, link: of
    this frame, as `me` knows them, or None. ledger: the transactions of the two. findings: what was found.
    pace: how time went on so far.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection: Connection = connection
        self.record: FrameRecord = NO_RECORD
        self.spot: Spot | None = None
        self.me: Endpoint
        self.peer: Endpoint
        self.session: SessionEnd | None = None
        self.link: LinkEnd | None = None
        self.pace: Pace = Pace()
        self.ledger: Ledger = NO_LEDGER
        self.findings: list[Finding] = []
        # What was reported by `report_once`: peer and rule.
        self.told: set[tuple[str, str]] = set()
        self.found: i64 = 0

    def report(
        self,
        rule: str,
        message: str,
        certainty: i64 = CERTAIN,
        evidence: dict[str, object] | None = None,
        others: list[int] | None = None,
    ) -> None:
        """This frame breaks a rule. Without a certainty, whatever the peer did before."""
        if certainty == LEGAL:
            return
        spot = self.spot
        delivery_id: i64 = -1
        if spot is None:
            spot = Spot.of(self.record)
            delivery_id = self.delivery_id()
        finding = Finding(rule, certainty, message, self.connection, spot, evidence or {}, others or [])
        finding.delivery_id = delivery_id
        session = self.session
        if session is not None:
            finding.session = session.number
        link = self.link
        if link is not None:
            finding.link = link.name
            finding.link_sender = self.me.peer if link.sender else self.peer.peer
        self.findings.append(finding)
        self.found += 1

    def report_once(self, rule: str, message: str, certainty: i64, evidence: dict[str, object]) -> None:
        """This frame breaks a rule that its sender breaks by habit: the first time on a connection is enough.

        So it is if the other peer did: what is wrong with a message may have been handed on.
        """
        told = self.told
        if (self.me.peer, rule) not in told and (self.peer.peer, rule) not in told:
            told.add((self.me.peer, rule))
            self.report(rule, message, certainty, evidence)

    def delivery_id(self) -> i64:
        """The delivery-id that the frame is about, of a disposition the first one, -1 if it is about none."""
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

"""Judging one connection of any protocol: findings wait until the other peer has reacted.

A subclass replays the connection as two endpoints and judges each frame before the frame is applied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from amqpscope.limits import MAX_PEER_ERRORS, MAX_WITHOUT_REACTION
from amqpscope.model.finding import Finding
from amqpscope.model.reaction import OTHER_ERROR, Reaction
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.reassembly.provenance import Provenance
from amqpscope.rules.context import Context, Contexts
from amqpscope.rules.overdue import Overdue
from amqpscope.rules.peer_error import PeerError
from amqpscope.rules.profiles import HABITUAL, PROFILES, Profile, recognised, which
from amqpscope.tracking.inbox import Recipient
from amqpscope.tracking.snapshot import ConnectionSnapshot
from amqpscope.tracking.summary import ConnectionSummary
from dissectors.interface import Frame
from dissectors.wire import i64

if TYPE_CHECKING:
    from amqpscope.tracking.amqp10.link import LinkEnd

__all__ = ["NO_RECORD", "Judge"]

# mypyc: a null object that stands for the frame while there is none. Nothing writes to it.
_NOWHERE: Final = Provenance(0, 0, -1)
NO_RECORD: Final = FrameRecord(
    Connection("", 0, 0, bytes(12)), 0, _NOWHERE, _NOWHERE, Frame(0, 0, "", "", -1)
)


class NamedProduct:
    """What a peer says of its product. introduction: the frame that says it. said: its fields."""

    def __init__(self, introduction: object, said: dict[str, str]) -> None:
        self.introduction: object = introduction
        self.said: dict[str, str] = said
        # The profiles that fit, None as long as nobody has asked for them.
        self._profiles: list[Profile] | None = None

    def profiles(self) -> list[Profile]:
        """The profiles that fit. Few rules ask for them, and to find them takes longer than the rest."""
        if self._profiles is None:
            self._profiles = recognised(self.said)
        return self._profiles


class Judge:
    """Judges one connection.

    findings: where finished findings go, those of one connection in the order in which they were made. A
    finding waits in `made` until the other peer has reacted, until too many others were made, or until the
    connection is over. contexts: give findings the frames around them; None: findings get no such frames.
    fresh: receives findings at once, while they still wait; amended: receives them again when the other peer
    has reacted; None: nobody receives them early.

    mypyc: not an ABC, because compiled code would then check at each use of an attribute that it is there.
    """

    def __init__(
        self, connection: Connection, findings: list[Finding], made: list[Finding], contexts: Contexts | None
    ) -> None:
        self.connection: Connection = connection
        self.findings: list[Finding] = findings
        self.made: list[Finding] = made
        self.context: Context | None = None if contexts is None else Context(contexts)
        self.fresh: list[Finding] | None = None
        self.amended: list[Finding] | None = None
        # The newest errors of both peers, and the ends of their streams: a fault may show only after them.
        self.errors: list[PeerError] = []
        # For each peer what the frame says that names its product.
        self.products: dict[str, NamedProduct] = {}

    def take(self, record: FrameRecord) -> None:
        """The next frame of the connection, in the order of the analysis."""
        raise NotImplementedError

    def doubt(self, doubtful: bool) -> None:
        """Whether one peer may have accepted an RST that the other peer did not send, for the next
        findings.
        """
        raise NotImplementedError

    def end(
        self, direction: i64, reason: str, packet: i64, time: i64, acknowledged: i64, after_peer: bool
    ) -> None:
        """A stream ended, by `fin` or `rst`, or the knowledge of it did (`capture`, `evicted`, `reused`).

        packet, time: the packet that shows the end. acknowledged: how many octets of the other stream were
        acknowledged by then, -1 if unknown. after_peer: whether the end of the other stream was received
        before. To be called once for each direction, first for the client's, when both are over.
        """
        raise NotImplementedError

    def overdue(self, now: i64) -> list[Overdue]:
        """Which of the two peers is silent at `now` (ns) for longer than was agreed."""
        raise NotImplementedError

    def left(self) -> ConnectionSummary | None:
        """What later connections may be compared with. None: nothing."""
        return None

    def introduction(self, peer: str) -> object:
        """The frame in which a peer named its product, None if it has not."""
        return None

    def introduction_missed(self, peer: str) -> bool:
        """Whether a peer may have named its product in octets that were not captured or could not be read."""
        return False

    def product(self, introduction: object) -> dict[str, str]:
        """What such a frame says: `product`, `version` and similar properties."""
        return {}

    def endpoint(self, direction: i64) -> Recipient:
        """The endpoint that sends in a direction."""
        raise NotImplementedError

    def believe_log(self) -> None:
        """If the connection comes from the log of one endpoint, it is known what this endpoint had read."""
        if self.connection.vantage >= 0:
            self.endpoint(self.connection.vantage).knowledge.exact = True

    def snapshot(self) -> ConnectionSnapshot:
        """Both endpoints in their current state; frames that they have sent count as received."""
        raise NotImplementedError

    def introduced(self, snapshot: ConnectionSnapshot, client: object, server: object) -> ConnectionSnapshot:
        """A snapshot together with the peers' products, by the frames that name them (None: no such
        frame).
        """
        snapshot.client.said = dict(self.product(client))
        snapshot.server.said = dict(self.product(server))
        return snapshot

    def dump(self) -> tuple[object, ...]:
        """The state as plain values. It does not include the frames around findings."""
        raise NotImplementedError

    def finish(self) -> None:
        """The connection is over; nobody reacts any more."""
        self.excuse(self.made)
        self.findings += self.made
        self.made.clear()

    def saw(self, record: FrameRecord, found: i64) -> None:
        """A frame was judged, and gave so many findings."""
        if self.context is not None:
            self.context.saw(record, self.made[len(self.made) - found :], self.link_end())
        if self.made:
            if found > 0 and self.fresh is not None:
                self.tell(self.made[len(self.made) - found :], self.fresh)
            self.give_out()

    def link_end(self) -> LinkEnd | None:
        """The end of the link that the sender of the frame just judged names in it; None if there is none."""
        return None

    def tell(self, made: list[Finding], fresh: list[Finding]) -> None:
        """Hand these findings out at once. The other peer's complaint may still withdraw what
        excuses them.
        """
        self.excuse(made)
        for finding in made:
            finding.reported = True
        fresh += made

    def answers(self, finding: Finding, error: PeerError) -> bool:
        """Whether an error of the other peer can be the reaction to a fault.

        False if the error is for something else, by its content or by its time. True in case of doubt.
        """
        raise NotImplementedError

    def answered(self, error: PeerError) -> None:
        """A peer sends an error: it may be the reaction to earlier faults of the other peer."""
        for finding in self.made:
            if finding.peer != error.peer and not finding.reaction.frame:
                self.react(finding, error, False)
        self.errors.append(error)
        if len(self.errors) > MAX_PEER_ERRORS:
            del self.errors[0]

    def found_of(self, found: i64, error: PeerError | None) -> None:
        """So many findings, the latest, were made for one frame, or for the end of a stream.

        error: the error in the frame, if it has one; it is the reaction to the other peer's faults that the
        frame shows. If a fault shows only now, the reaction to it may have come before.
        """
        if error is None and not self.errors:
            return
        for finding in self.made[len(self.made) - found :]:
            if error is not None and finding.peer != error.peer:
                self.react(finding, error, True)
            for one in self.errors:
                if finding.peer != one.peer and not finding.reaction.frame:
                    self.react(finding, one, False)

    def react(self, finding: Finding, error: PeerError, shown: bool) -> None:
        """Record whether an error of the other peer is the reaction to a fault.

        shown: the error itself shows the fault.
        """
        if not shown:
            if error.time < finding.since:
                return
        if not shown and not self.answers(finding, error):
            if not finding.reaction.frame and error.is_error():
                finding.reaction = OTHER_ERROR
            return
        finding.reaction = Reaction(error.name, error.condition, error.time - finding.time, error.packet)
        if finding.reported and self.amended is not None:
            self.excuse([finding])
            self.amended.append(finding)

    def give_out(self) -> None:
        """Release the oldest findings that nothing more can change."""
        made = self.made
        ready: i64 = 0
        size: i64 = len(made)
        while ready < size:
            finding = made[ready]
            if size - ready <= MAX_WITHOUT_REACTION:
                if not finding.reaction.frame or len(finding.around) < finding.around_whole:
                    break
            elif finding.certain and finding.read > self.endpoint(1 - finding.spot.direction).sent_end:
                # So many findings were made while a frame of the other peer is incomplete: the frame will
                # never be complete.
                finding.certain = False
                finding.evidence["garbled_in_doubt"] = True
            ready += 1
        if ready > 0:
            self.excuse(made[:ready])
            self.findings += made[:ready]
            del made[:ready]

    def excuse(self, findings: list[Finding]) -> None:
        """Add the product of the peer at fault, and mark known habits of that product.

        A habit of some product is only possible if the product of the peer is unknown.
        """
        for finding in findings:
            peer = finding.peer
            introduction = self.introduction(peer)
            known = self.products.get(peer)
            if introduction is None:
                known = None
            elif known is None or known.introduction is not introduction:
                known = NamedProduct(introduction, self.product(introduction))
                self.products[peer] = known
            if known is not None:
                finding.said = known.said
            if finding.rule in HABITUAL:
                profiles = [] if known is None else known.profiles()
                finding.assessment = finding.assessment.by_profile(which(finding, profiles))
                if finding.evidence.pop("product_captured", None) is not None:
                    finding.certain = True  # reported before the other peer complained about it
                missed = finding.certain and not finding.assessment.profile and self.introduction_missed(peer)
                if missed and which(finding, PROFILES):
                    finding.certain = False
                    finding.evidence["product_captured"] = False

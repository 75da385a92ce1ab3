"""Judging one connection, whatever its protocol: findings wait until the other peer has reacted.

A subclass replays the connection as two endpoints and judges each frame before it is applied.
"""

from abc import ABC, abstractmethod
from typing import Final

from amqpscope.limits import MAX_PEER_ERRORS, MAX_WITHOUT_REACTION
from amqpscope.model.finding import Finding
from amqpscope.model.reaction import OTHER_ERROR, Reaction
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.reassembly.provenance import Provenance
from amqpscope.rules.context import Context
from amqpscope.rules.overdue import Overdue
from amqpscope.rules.peer_error import PeerError
from amqpscope.rules.profiles import HABITUAL, PROFILES, Profile, recognised, which
from amqpscope.tracking.inbox import Recipient
from amqpscope.tracking.snapshot import ConnectionSnapshot
from amqpscope.tracking.summary import ConnectionSummary
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["NO_RECORD", "Judge"]

# mypyc: null object, the frame before the judge while there is none. Nothing writes to it.
_NOWHERE: Final = Provenance(0, 0, -1)
NO_RECORD: Final = FrameRecord(
    Connection("", 0, 0, bytes(12)), 0, _NOWHERE, _NOWHERE, Frame(0, 0, "", "", -1)
)


class Judge(ABC):
    """Judges one connection.

    findings: where they are given out, those of one connection in the order in which they were made. Until
    the other peer has reacted, or so many more were made, or the connection is over, they wait in `made`.
    context: give them the frames around. fresh: where they are given out at once too, while they wait;
    amended: where those are given out again when the other peer has reacted; None: nowhere.
    """

    def __init__(
        self, connection: Connection, findings: list[Finding], made: list[Finding], context: bool
    ) -> None:
        self.connection: Connection = connection
        self.findings: list[Finding] = findings
        self.made: list[Finding] = made
        self.context: Context | None = Context() if context else None
        self.fresh: list[Finding] | None = None
        self.amended: list[Finding] | None = None
        # The newest errors of both peers, and the ends of their streams: a fault may show only behind them.
        self.errors: list[PeerError] = []
        # Of each peer the frame in which it told of its product, what it said, and its profiles by that.
        self.profiles: dict[str, tuple[object, dict[str, str], list[Profile]]] = {}

    @abstractmethod
    def take(self, record: FrameRecord) -> None:
        """The next frame of the connection, in the order of the analysis."""

    @abstractmethod
    def doubt(self, doubtful: bool) -> None:
        """Whether, of what is judged next, one peer may have taken an RST that was not the other's."""

    @abstractmethod
    def end(
        self, direction: i64, reason: str, packet: i64, time: i64, acknowledged: i64, after_peer: bool
    ) -> None:
        """A stream ended, by `fin` or `rst`, or what is known of it did (`capture`, `evicted`, `reused`).

        packet, time: what shows it. acknowledged: octets of the other stream that were by then, -1 unknown.
        after_peer: the other stream's end was received before. To be called once a direction, the client's
        first, when both are over.
        """

    @abstractmethod
    def overdue(self, now: i64) -> list[Overdue]:
        """Who of the two is silent at `now` (ns) for longer than was agreed."""

    def left(self) -> ConnectionSummary | None:
        """What later connections may be compared with. None: nothing."""
        return None

    def introduction(self, peer: str) -> object:
        """The frame in which a peer told of its product, None if it has not."""
        return None

    def introduction_missed(self, peer: str) -> bool:
        """Whether a peer may have told of its product where the capture has it not, or not readably."""
        return False

    def product(self, introduction: object) -> dict[str, str]:
        """What such a frame says: `product`, `version` and the like."""
        return {}

    @abstractmethod
    def endpoint(self, direction: i64) -> Recipient:
        """The endpoint that sends in a direction."""

    @abstractmethod
    def snapshot(self) -> ConnectionSnapshot:
        """Both endpoints as they stand now; what they have said counts as if it had arrived."""

    def introduced(self, snapshot: ConnectionSnapshot, client: object, server: object) -> ConnectionSnapshot:
        """A portrait with who the ends are, by the frames in which they tell of it (None: they did not)."""
        snapshot.client.said = dict(self.product(client))
        snapshot.server.said = dict(self.product(server))
        return snapshot

    @abstractmethod
    def dump(self) -> tuple[object, ...]:
        """The state as plain values. The frames around findings are not carried."""

    def finish(self) -> None:
        """The connection is over, nobody reacts any more."""
        self.excuse(self.made)
        self.findings += self.made
        self.made.clear()

    def saw(self, record: FrameRecord, found: i64) -> None:
        """A frame was judged, and so many findings were made of it."""
        if self.context is not None:
            self.context.saw(record, self.made[len(self.made) - found :])
        if self.made:
            if found > 0 and self.fresh is not None:
                self.tell(self.made[len(self.made) - found :], self.fresh)
            self.give_out()

    def tell(self, made: list[Finding], fresh: list[Finding]) -> None:
        """Give these out at once. What excuses them may yet be taken back: by the other peer's complaint."""
        self.excuse(made)
        for finding in made:
            finding.reported = True
        fresh += made

    @abstractmethod
    def answers(self, finding: Finding, error: PeerError) -> bool:
        """Whether an error of the other peer's can be the reaction to a fault.

        Not if by what it says, or by when it came, it is for something else. Where that is in doubt: yes.
        """

    def answered(self, error: PeerError) -> None:
        """A peer sends an error: the reaction to what the other one is found to have done before."""
        for finding in self.made:
            if finding.peer != error.peer and not finding.reaction.frame:
                self.react(finding, error, False)
        self.errors.append(error)
        if len(self.errors) > MAX_PEER_ERRORS:
            del self.errors[0]

    def found_of(self, found: i64, error: PeerError | None) -> None:
        """So many findings, the latest, were made of one frame, or of the end of a stream.

        error: the frame has it; what it shows of the other peer it is the reaction to. Of a fault that shows
        only now the reaction may also have come before.
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
        """Put down whether an error of the other peer's is the reaction to a fault.

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
        """Let go of the oldest findings, as many as nothing more is awaited for."""
        made = self.made
        ready: i64 = 0
        size: i64 = len(made)
        while ready < size:
            finding = made[ready]
            if size - ready <= MAX_WITHOUT_REACTION:
                if not finding.reaction.frame or len(finding.around) < finding.around_whole:
                    break
            elif finding.certain and finding.read > self.endpoint(1 - finding.spot.direction).sent_end:
                # So much was found while the other peer's frame is not complete: it will never be.
                finding.certain = False
                finding.evidence["garbled_in_doubt"] = True
            ready += 1
        if ready > 0:
            self.excuse(made[:ready])
            self.findings += made[:ready]
            del made[:ready]

    def excuse(self, findings: list[Finding]) -> None:
        """Say of which product the peer at fault is, and mark what is a known habit of that.

        What is a habit of some product is only possible when it is not known of which product the peer is.
        """
        for finding in findings:
            peer = finding.peer
            introduction = self.introduction(peer)
            profiles: list[Profile] = []
            if introduction is not None:
                known = self.profiles.get(peer)
                if known is None or known[0] is not introduction:
                    said = self.product(introduction)
                    known = (introduction, said, recognised(said))
                    self.profiles[peer] = known
                finding.said = known[1]
                profiles = known[2]
            if finding.rule in HABITUAL:
                finding.assessment = finding.assessment.by_profile(which(finding, profiles))
                if finding.evidence.pop("product_captured", None) is not None:
                    finding.certain = True  # told before the other peer complained of it
                missed = finding.certain and not finding.assessment.profile and self.introduction_missed(peer)
                if missed and which(finding, PROFILES):
                    finding.certain = False
                    finding.evidence["product_captured"] = False

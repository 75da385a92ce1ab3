"""A verdict: which rule was broken, by whom, where, how certain that is, and what shows it."""

import re
from typing import Any, Final

from amqpscope.model.assessment import FIRST_ASSESSMENT, Assessment
from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.model.reaction import NO_REACTION, Reaction
from amqpscope.model.records import CLIENT, SERVER, UNORDERED, Connection, FrameRecord, FrameRef
from dissectors.wire import i64

__all__ = ["NOTHING_SAID", "Finding", "named_peers"]

# mypyc: null object, of findings whose rule says nothing more. Nothing writes to it.
NOTHING_SAID: Final[dict[str, str]] = {}

_OTHER: Final = r"\bthe other peer\b"
_PEER: Final = r"\b(?:the|the same|this) peer\b"


def named_peers(text: str, peer: str) -> str:
    """A sentence about `the peer` and `the other peer`, with their names: `the client`, `the server`."""
    if "peer" not in text:
        return text
    other = SERVER if peer == CLIENT else CLIENT
    return re.sub(_PEER, f"the {peer}", re.sub(_OTHER, f"the {other}", text))


class Finding:
    """One rule broken once.

    rule: its id with the namespace, `amqp10/L-CREDIT`. certain: else it is only possible. sentence: the
    message as the rule words it. connection: where it was. peer: who is at fault. frame, channel, packet,
    time (ns), offset: of the offending frame's first octet; of something absent, what made it definite.
    others: further packets that matter. evidence: the state before, as named values. around: the frames
    of the connection around the offending one, if they were asked for. reported: it was given out as soon
    as it was made, before it was known what the other peer does. said: what the peer at fault said of its
    product. since: when the fault began (ns): earlier than `time` for a silence, which its next frame
    shows. read: octets of the other peer's stream that the peer at fault had acknowledged by then, -1
    unknown. addresses: of the link's source and target, or the exchanges and queues that the offending
    frame names. reaction: what the other peer did about it, which is known later. assessment: what an
    edition, a product's habits and a policy make of it.
    """

    def __init__(
        self,
        rule: str,
        certainty: i64,
        message: str,
        connection: Connection,
        spot: FrameRef,
        evidence: dict[str, Any],
        others: list[int],
    ) -> None:
        self.rule: str = rule
        self.certain: bool = certainty == CERTAIN and connection.vantage != UNORDERED
        self.sentence: str = message
        self.connection: Connection = connection
        self.spot: FrameRef = spot
        self.evidence: dict[str, Any] = evidence
        self.others: list[int] = others
        self.session: i64 = -1
        self.link: str = ""
        self.link_sender: str = ""
        self.delivery_id: int = -1
        self.reaction: Reaction = NO_REACTION
        self.assessment: Assessment = FIRST_ASSESSMENT
        self.since: i64 = spot.time
        self.read: i64 = -1
        # It rests on the octets of a frame that was found by searching.
        self.guessed: bool = False
        self.around: list[FrameRecord] = []
        # The link of each of these frames (`amqpscope.tracking.amqp10.identity.Link`), None if it has none.
        self.around_links: list[object] = []
        # Instead of these frames: what another process has made of them (`CaptureOptions.around`).
        self.around_made: object = None
        # How many frames `around` will have.
        self.around_whole: i64 = 0
        self.reported: bool = False
        self.said: dict[str, str] = NOTHING_SAID
        self.addresses: tuple[str, ...] = ()

    @property
    def peer(self) -> str:
        """Who is at fault: `client` or `server`."""
        return self.connection.peer(self.spot.direction)

    @property
    def message(self) -> str:
        """One sentence with the values, and with the names of the peers."""
        return named_peers(self.sentence, self.peer)

    @property
    def packet(self) -> int:
        """The packet of the offending frame's first octet."""
        return self.spot.packet

    @property
    def time(self) -> int:
        """Its time, ns since 1970."""
        return self.spot.time

    @property
    def frame(self) -> str:
        """The name of the offending frame."""
        return self.spot.name

    @property
    def channel(self) -> int:
        """Its channel, -1 if it has none."""
        return self.spot.channel

    @property
    def offset(self) -> int:
        """Where it begins in its sender's stream."""
        return self.spot.offset

    def dump(self) -> tuple[object, ...]:
        """As plain values, but for the frames around, and what is said of it when it is given out."""
        return (
            (self.rule, self.certain, self.sentence),
            self.spot.dump(),
            tuple(self.evidence.items()),
            tuple(self.others),
            (int(self.session), self.link, self.link_sender, self.delivery_id),
            (self.assessment.edition, self.assessment.profile),
            self.reaction.dump(),
            (int(self.since), int(self.read), self.guessed),
            self.addresses,
        )

    @staticmethod
    def load(state: tuple[Any, ...], connection: Connection) -> "Finding":
        """The object of what `dump` returned."""
        (rule, certain, message), spot, evidence, others, where, text, reaction, times, addresses = state
        certainty = CERTAIN if certain else POSSIBLE
        finding = Finding(
            rule, certainty, message, connection, FrameRef.load(spot), dict(evidence), list(others)
        )
        finding.session, finding.link, finding.link_sender, finding.delivery_id = where
        finding.assessment = Assessment(*text)
        finding.reaction = Reaction(*reaction)
        finding.since, finding.read, finding.guessed = times
        finding.addresses = addresses
        return finding

    def __repr__(self) -> str:
        how = "certain" if self.certain else "possible"
        return f"<Finding {self.rule} {how} {self.peer}@{self.packet}: {self.message}>"

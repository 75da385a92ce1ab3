"""A verdict: which rule was broken, by whom, where, how certain that is, and what shows it."""

from amqpscope.model import FrameRecord
from amqpscope.tracking.knowledge import CERTAIN
from dissectors.wire import i64

__all__ = ["Finding"]


class Finding:
    """One rule broken once.

    rule: its id with the namespace, `amqp10/L-CREDIT`. certain: else it is only possible. message: one
    sentence with the values. record: the offending frame; for something absent, the frame (or None)
    that made it definite. packet, time: of the evidence, the offending frame's first octet.
    others: further packets that matter. peer: who is at fault. evidence: the state before, as named
    values.
    """

    def __init__(
        self,
        rule: str,
        certainty: i64,
        message: str,
        record: FrameRecord,
        evidence: dict[str, object],
        others: list[int],
    ) -> None:
        self.rule: str = rule
        self.certain: bool = certainty == CERTAIN
        self.message: str = message
        self.record: FrameRecord = record
        self.peer: str = record.peer
        self.packet: i64 = record.packet
        self.time: i64 = record.time
        self.evidence: dict[str, object] = evidence
        self.others: list[int] = others
        self.session: i64 = -1
        self.link: str = ""
        self.link_sender: str = ""
        self.delivery_id: i64 = -1
        self.edition: str = "final"
        self.profile: str = ""
        # What the other peer did: the frame, its error condition, seconds after, its packet.
        self.reaction: str = ""
        self.reaction_condition: str = ""
        self.reaction_after: float = 0.0
        self.reaction_packet: i64 = 0

        # The frames around the offending one, for showing; filled while they come.
        self.around: list[FrameRecord] = []
        self.around_whole: i64 = 0

    def __repr__(self) -> str:
        how = "certain" if self.certain else "possible"
        return f"<Finding {self.rule} {how} {self.peer}@{self.packet}: {self.message}>"

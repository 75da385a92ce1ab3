"""The work of a command that makes diagnoses, where several processes read a capture."""

from typing import Any

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.capture import CaptureDiagnoses, ReceivedDiagnoses
from amqpscope.input.shared_work import SharedWork
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection

__all__ = ["DiagnosesWork", "plain_diagnosis"]


class DiagnosesWork(SharedWork):
    """The work of a command that wants diagnoses, too: `watches` makes them."""

    def __init__(self, watches: CaptureDiagnoses) -> None:
        self.watches = watches

    def share(self) -> None:
        self.watches.several.share()

    @property
    def incomplete(self) -> bool:
        return self.watches.several.incomplete

    def judge(self, findings: list[Finding]) -> None:
        self.watches.judge(findings)

    def over(self, analysis: ConnectionAnalysis, last: bool) -> object:
        return self.made(self.watches.end(analysis))

    def made(self, found: list[Diagnosis]) -> tuple[object, ...]:
        """The diagnoses of a connection, and what it says for other connections, as plain values."""
        return [plain_diagnosis(one) for one in found], self.watches.several.take_facts()

    def take_over(self, connection: Connection, value: Any) -> None:
        found, facts = value
        received = ReceivedDiagnoses([Diagnosis(*one) for one in found], facts)
        self.watches.received[connection] = received


def plain_diagnosis(one: Diagnosis) -> tuple[Any, ...]:
    """A diagnosis as the values that it is made of, in the order in which they are given to make one."""
    return (
        one.code,
        one.subject,
        one.whose_move,
        one.packet,
        one.ended_packet,
        one.seconds,
        one.connection,
        one.figures,
        one.message,
        one.packets,
    )

"""A share of the connections of a capture, where several processes read the same capture.

Each process takes all segments and follows the TCP of all connections, so that all processes agree on where a
connection begins, which number it has, and when it ends or is given up. But a process analyses only the
connections of its own share.

All processes count the same steps: a segment, a note about the capture, or the end of a connection. A step
concerns at most one connection. So whoever puts the results of all processes in the order of the steps has
them in the order in which one process would have made them.
"""

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.output import AnalysisOutput
from dissectors.wire import i64

__all__ = ["Share"]


class Share:
    """The share `number` of `of` shares. Counts the steps, and remembers in which step something came up."""

    def __init__(self, number: int, of: int) -> None:
        self.number: i64 = number
        self.of: i64 = of
        # The number of the present step.
        self.step: i64 = 0
        # The step of each frame record in the output, of each finding, and of each note.
        self._records: list[int] = []
        self._findings: list[int] = []
        self._notes: list[int] = []
        # The connections of this share that are over, with their steps.
        self._ended: list[tuple[int, ConnectionAnalysis]] = []

    def owns(self, order: i64) -> bool:
        """Whether a connection is of this share. order: how many connections began before it.

        Each run of `of` connections has one for each share, in another order than the run before: a client
        that always opens a busy and an idle connection keeps all processes busy.
        """
        return (order + order // self.of) % self.of == self.number

    def end_step(self, output: AnalysisOutput) -> None:
        """A step is over. output: has what came up in the step."""
        records = output.records
        if records is not None:
            while len(self._records) < len(records):
                self._records.append(self.step)
        findings = output.findings
        if findings is not None:
            while len(self._findings) < len(findings):
                self._findings.append(self.step)
        while len(self._notes) < len(output.notes):
            self._notes.append(self.step)
        self.step += 1

    def over(self, analysis: ConnectionAnalysis) -> None:
        """A connection is over."""
        if self.owns(analysis.order):
            self._ended.append((self.step, analysis))
        self.step += 1

    def take_record_steps(self) -> list[int]:
        """The steps of the frame records since the last call."""
        steps, self._records = self._records, []
        return steps

    def take_finding_steps(self) -> list[int]:
        """The steps of the findings since the last call."""
        steps, self._findings = self._findings, []
        return steps

    def take_note_steps(self) -> list[int]:
        """The steps of the notes since the last call."""
        steps, self._notes = self._notes, []
        return steps

    def take_ended(self) -> list[tuple[int, ConnectionAnalysis]]:
        """The connections of this share that are over since the last call, with their steps."""
        ended, self._ended = self._ended, []
        return ended

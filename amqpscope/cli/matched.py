"""Whether the filter options of a check leave anything to be checked."""

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.cli.selection import Selection
from amqpscope.input.capture import Capture
from amqpscope.model.records import FrameRecord
from amqpscope.policy.judging import Hearer
from amqpscope.report.links import LinkNames

__all__ = ["MatchedFrames"]


class MatchedFrames(Hearer):
    """Looks for a frame that a selection takes: without one, nothing was checked.

    met: there is one, in any of the captures. seen: how many frames came until then.
    """

    connections = True
    records = True

    def __init__(self, selection: Selection) -> None:
        self.met = False
        self.seen = 0
        self._selection = selection
        self._names = LinkNames()
        self._begun = False

    def opened(self, capture: Capture) -> None:
        self._names = LinkNames()
        self._begun = False

    def frames(self, records: list[FrameRecord]) -> None:
        if self.met:
            return
        if not self._begun:
            self._begun = True
            self._selection.start(int(records[0].time))
        for record in records:
            self.seen += 1
            if not self._selection.of_connection(record.connection):
                continue
            if self._selection.takes(record, self._names.of(record)):
                self.met = True
                return

    def over(self, analyses: list[ConnectionAnalysis]) -> None:
        for analysis in analyses:
            self._names.forget(analysis.connection)

"""Connections that somebody wants to look at: all, or those that are over; and what is counted of all."""

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.limits import MAX_CORRELATED_LINKS, MAX_OTHER_CONNECTIONS
from amqpscope.model.finding import Finding
from amqpscope.protocols import is_amqp
from amqpscope.tracking.summary import ConnectionSummary
from dissectors.wire import i64

__all__ = ["Correlation", "KeptConnections", "Totals"]


class KeptConnections:
    """The connections that are kept.

    every: each one seen. ended: those that are over, until they are taken. few_others: of connections without
    AMQP only the first `MAX_OTHER_CONNECTIONS`.
    """

    def __init__(self, every: bool = True, ended: bool = False, few_others: bool = True) -> None:
        # Keep each connection.
        self.every: bool = every
        # Keep those that are over until they are taken.
        self.ended: bool = ended
        # Of those without AMQP keep only the first.
        self.few_others: bool = few_others
        # Every connection, in the order in which they began.
        self.connections: list[ConnectionAnalysis] = []
        # How many without AMQP were not kept.
        self.not_kept: i64 = 0
        # How many without AMQP are over.
        self._others: i64 = 0
        # Those that are over and were not taken yet.
        self._over: list[ConnectionAnalysis] = []

    def began(self, analysis: ConnectionAnalysis) -> None:
        """A connection began."""
        if self.every:
            self.connections.append(analysis)

    def over(self, analysis: ConnectionAnalysis) -> None:
        """A connection is over."""
        connection = analysis.connection
        if self.few_others and connection.frames == 0 and not is_amqp(connection.protocol):
            self._others += 1
            if self._others > MAX_OTHER_CONNECTIONS:
                analysis.forgotten = True
                self.not_kept += 1
                if self.not_kept % MAX_OTHER_CONNECTIONS == 0:
                    self.sweep()
        if self.ended and not analysis.forgotten:
            self._over.append(analysis)

    def sweep(self) -> None:
        """Drop those that are not to be kept, many at a time."""
        if self.not_kept > 0:
            self.connections = [analysis for analysis in self.connections if not analysis.forgotten]

    def take_ended(self) -> list[ConnectionAnalysis]:
        """The connections that are over since the last call, in that order, if they are kept."""
        over = self._over
        self._over = []
        return over


class Totals:
    """What is counted of the connections that are over."""

    def __init__(self) -> None:
        # How many there were of each protocol (see `ConnectionAnalysis.spoken_by_both`).
        self.protocols: dict[str, int] = {}
        # How many an error of this program ended the reading of; of those under way, too.
        self.failed: i64 = 0
        # How many had frames.
        self.spoken: i64 = 0
        # How many frames they had.
        self.frames: i64 = 0
        # The time (ns) of the first of these frames.
        self.began: i64 = 0

    def add(self, analysis: ConnectionAnalysis) -> None:
        """A connection is over."""
        connection = analysis.connection
        counted = analysis.spoken_by_both()
        self.protocols[counted] = self.protocols.get(counted, 0) + 1
        if connection.frames > 0:
            self.spoken += 1
            self.frames += connection.frames
            if self.began == 0 or connection.began < self.began:
                self.began = connection.began


class Correlation:
    """What the connections that are over left, to be judged against one another."""

    def __init__(self) -> None:
        # Judge them at the end. Else the summaries are the caller's to take.
        self.wanted: bool = True
        # No connection is missing among the summaries.
        self.whole: bool = True
        # What was left, in the order in which the connections ended.
        self.summaries: list[ConnectionSummary] = []
        # How much the summaries weigh.
        self._links: i64 = 0

    def add(self, summary: ConnectionSummary) -> None:
        """A connection left this. It is forgotten if there is too much already."""
        if self._links < MAX_CORRELATED_LINKS:
            self.summaries.append(summary)
            self._links += summary.weight

    def is_full(self) -> bool:
        """Whether what further connections leave would be forgotten."""
        return self._links >= MAX_CORRELATED_LINKS

    def findings(self) -> list[Finding]:
        """What they show together."""
        if not self.summaries:
            return []
        from amqpscope.correlation.correlate import correlate

        return correlate(self.summaries, self.whole)

    def begin_anew(self) -> None:
        """It may go on for weeks: what is older is not compared with what comes."""
        self.summaries = []
        self._links = 0
        self.whole = False

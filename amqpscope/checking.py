"""Judging a capture: the frames of every connection replayed on two endpoints, findings out.

for finding in amqpscope.check("traffic.pcap"):
    print(finding.rule, finding.peer, finding.packet, finding.message)
"""

from amqpscope.analysis import ConnectionAnalysis
from amqpscope.finding import Finding
from amqpscope.limits import CONTEXT_AFTER, CONTEXT_BEFORE
from amqpscope.model import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.rules.amqp10.judge import Judge
from amqpscope.tracking.amqp10.endpoint import Endpoint
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["Checker"]


class _Watch:
    """One connection: its judge, its latest frames, and the findings whose next frames are awaited."""

    def __init__(self, findings: list[Finding]) -> None:
        self.judge: Judge = Judge(Endpoint(CLIENT), Endpoint(SERVER), findings)
        self.latest: list[FrameRecord] = []
        self.awaiting: list[Finding] = []


class Checker:
    """Takes the frame records of a capture in order; gathers findings.

    findings: in the order in which they were made. context: keep the few frames around each.
    """

    def __init__(self, context: bool = True) -> None:
        self.findings: list[Finding] = []
        self.context: bool = context
        self._watches: dict[Connection, _Watch] = {}

    def take(self, records: list[FrameRecord]) -> None:
        """The next frames."""
        watches = self._watches
        findings = self.findings
        for record in records:
            watch = watches.get(record.connection)
            if watch is None:
                watch = _Watch(findings)
                watches[record.connection] = watch
            before: i64 = len(findings)
            watch.judge.take(record)
            if self.context:
                self._remember(watch, record, before)

    def _remember(self, watch: _Watch, record: FrameRecord, before: i64) -> None:
        if watch.awaiting:
            left: list[Finding] = []
            for finding in watch.awaiting:
                finding.around.append(record)
                if len(finding.around) < finding.around_whole:
                    left.append(finding)
            watch.awaiting = left
        latest = watch.latest
        made: i64 = len(self.findings)
        at = before
        while at < made:
            finding = self.findings[at]
            finding.around = [*latest, record]
            finding.around_whole = len(finding.around) + CONTEXT_AFTER
            watch.awaiting.append(finding)
            at += 1
        latest.append(record)
        if len(latest) > CONTEXT_BEFORE:
            del latest[0]

    def finish(self, analyses: list[ConnectionAnalysis]) -> None:
        """The capture ended: judge how each connection's streams did."""
        for analysis in analyses:
            watch = self._watches.pop(analysis.connection, None)
            if watch is None:
                continue
            ends = []
            for direction in (0, 1):
                facts = analysis.tcp.facts(direction)
                ends.append((facts.last_packet, direction, facts.last_time, facts.ended or "capture"))
            for packet, direction, time, reason in sorted(ends):
                frame = Frame(0, 0, "end", "end of stream", -1)
                record = FrameRecord(analysis.connection, direction, packet, time, packet, time, -1, frame)
                watch.judge.end(record, reason)

"""`amqpscope sniff --top`: the full-screen view, fed by a live capture."""

import sys
import time as clock

from amqpscope.cli.live_view import LiveView
from amqpscope.cli.output import say
from amqpscope.input.live import Batch, LiveWatch
from amqpscope.report.diagnosis_text import DiagnosisBacklog
from amqpscope.report.line import Line
from amqpscope.report.painter import painter
from amqpscope.report.printable import printable
from amqpscope.report.rule_counts import RuleCounts
from amqpscope.report.top.terminal import Terminal
from amqpscope.report.top.view import TopView

__all__ = ["LiveTop"]

_LOOKED = 0.5
"""Seconds after which it is looked anew how things stand."""


class LiveTop(LiveView):
    """Shows a watch on the terminal. Raises TerminalError if there is none."""

    patience = 0.05

    def __init__(self, watch: LiveWatch) -> None:
        super().__init__()
        self._watch = watch
        self._view = TopView(watch.source.name)
        self._terminal = Terminal()
        self._terminal.open()
        self._looked = 0.0
        self._hung_up = False
        # For when the screen is as it was.
        self._reported: list[str] = []
        self._diagnoses = DiagnosisBacklog()

    @property
    def gone(self) -> bool:
        return self._hung_up or not self._view.open

    def begin(self, source: str) -> None:
        """The screen says so itself."""

    def write(self, batch: Batch, behind: bool) -> None:
        view = self._view
        view.saw(batch.records)
        # What is to be lived with hurts nobody.
        view.found([finding for finding in batch.found if not finding.assessment.suppressed_by])
        view.amended([finding for finding in batch.amended if not finding.assessment.suppressed_by])
        self._diagnoses.add(batch.diagnosed, 0)
        for event in batch.events:
            self.tell(event)
        changed = self._terminal.changed
        self._terminal.changed = False
        pressed = self._terminal.keys()
        for key in pressed:
            changed = True
            if key == "hangup":
                self._hung_up = True
            else:
                view.key(key)
        now = clock.monotonic()
        if now - self._looked >= _LOOKED:
            self._looked = now
            changed = True
            watch = self._watch
            time = watch.now or clock.time_ns()
            view.update(time, watch.table.open_connections(), watch.packets, watch.dropped, watch.lasting)
        if changed:
            self._terminal.draw(view.render(*self._terminal.size()))
        else:
            self._terminal.flush()

    def tell(self, text: str) -> None:
        self._view.say(text)
        self._reported.append(text)

    def end(self, conclusion: str, counts: RuleCounts) -> None:
        self._terminal.close()
        for text in self._reported:
            say(text)
        paint, width = painter()
        lines: list[Line] = [[("rule", printable(conclusion))], *counts.lines(width)]
        lines += self._diagnoses.lines()
        self._diagnoses.close()
        sys.stdout.write("".join([paint.paint(line, 4) + "\n" for line in lines]))
        sys.stdout.flush()

"""The full-screen view, fed with a capture as it would be live, and its picture as text."""

from __future__ import annotations

import io

from rich.console import Console

from amqpscope.analysis.kept import KeptConnections
from amqpscope.analysis.output import AnalysisOutput
from amqpscope.analysis.table import ConnectionTable
from amqpscope.capture.pcap import PcapReader
from amqpscope.report.line import Line
from amqpscope.report.painter import Painter
from amqpscope.report.top.view import TopView

__all__ = ["SECOND", "fed", "later", "painted", "picture"]

SECOND = 1_000_000_000


def fed(octets: bytes, view: TopView | None = None, each: int = 400, after: int = 0) -> TopView:
    """A view that has seen a capture, updated every so many octets, and once more `after` ns when it stopped.

    What is still open at the end of the capture stays open.
    """
    view = view or TopView("lo")
    table = ConnectionTable("lo", AnalysisOutput(judge=True, live=True), KeptConnections(False))
    reader = PcapReader(table)
    now = packets = 0
    for at in range(0, len(octets), each):
        reader.feed(octets[at : at + each])
        records = table.output.take_records()
        view.saw(records)
        view.found(table.output.take_fresh())
        complete = table.output.take_findings()
        view.found([finding for finding in complete if not finding.reported])
        view.amended(table.output.take_amended())
        for record in records:
            now = max(now, int(record.last_time))
            packets = max(packets, int(record.last_packet))
        view.update(now, table.open_connections(), packets)
    if after:
        later(view, after)
    return view


def later(view: TopView, nanoseconds: int) -> None:
    """So much time passes, and nothing comes."""
    model = view.model
    analyses = [row.analysis for row in model.rows.values() if row.analysis is not None]
    view.update(model.now + nanoseconds, analyses, model.packets)


def painted(lines: list[Line], width: int, colour: bool = False) -> list[str]:
    """Lines as a terminal of this width gets them."""
    console = Console(
        file=io.StringIO(), force_terminal=colour, color_system="256" if colour else None, width=width
    )
    painter = Painter(console, width)
    return [painter.paint(line) for line in lines]


def picture(view: TopView, width: int = 80, height: int = 24) -> str:
    """The screen as text."""
    return "\n".join(painted(view.render(width, height), width))

"""The page of `amqpscope draw`, with the findings of this run. What draws it is loaded when needed."""

from typing import Final, TextIO

from amqpscope.report.forms import ReportForm, ReportOptions
from amqpscope.report.writer import FindingWriter

__all__ = ["FORM"]


def _writer(out: TextIO, options: ReportOptions) -> FindingWriter:
    from amqpscope.draw.report import PageWriter

    return PageWriter(out, options)


FORM: Final = ReportForm("a page of one capture for a browser", _writer, (".html",))

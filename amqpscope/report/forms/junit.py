"""JUnit's XML, for the pages of CI servers. What writes it is loaded when needed: it takes long."""

from typing import Final, TextIO

from amqpscope.report.forms import ReportForm, ReportOptions
from amqpscope.report.writer import FindingWriter

__all__ = ["FORM"]


def _writer(out: TextIO, options: ReportOptions) -> FindingWriter:
    from amqpscope.report.junit import JunitWriter

    return JunitWriter(out, options)


FORM: Final = ReportForm("for CI servers", _writer, (".xml",))

"""The page as a form of report: the findings and diagnoses are those that `check` reports."""

from typing import TextIO

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.draw.page import page_html, rows_of_each
from amqpscope.draw.picture import Picture, PictureBuilder
from amqpscope.draw.survey import Survey, Surveyor
from amqpscope.errors import CaptureError, FilterError
from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.input.selection import EVERYTHING
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.policy.judging import INTERRUPTED
from amqpscope.report.forms import ReportOptions
from amqpscope.report.printable import printable
from amqpscope.report.writer import FindingWriter

__all__ = ["PageWriter"]


class PageWriter(FindingWriter):
    """Surveys the capture while it is judged, and reads it again when it has ended. See `FindingWriter`."""

    connections = True
    records = True
    diagnoses = True
    streaming = False

    def __init__(self, out: TextIO, options: ReportOptions) -> None:
        super().__init__()
        if len(options.captures) != 1:
            raise FilterError(
                "html: a page shows one capture, and reads the capture again (give one file, or --merge)"
            )
        self._out = out
        self._source = options.captures[0]
        self._surveyor: Surveyor | None = None
        # Those of connections that are not over, and of several connections.
        self._diagnosed: dict[Connection | None, list[Diagnosis]] = {}

    def opened(self, capture: Capture) -> None:
        super().opened(capture)
        self._surveyor = Surveyor(capture.name)

    def frames(self, records: list[FrameRecord]) -> None:
        if self.capture is not None and self._surveyor is not None:
            wanted = [record for record in records if self.about(record.connection)]
            self.capture.each(wanted, self._surveyor.add)

    def add(self, finding: Finding) -> None:
        if self._surveyor is not None and not finding.assessment.suppressed_by:
            self._surveyor.judge([finding])

    def diagnosed(self, found: list[Diagnosis], order: int, connection: Connection | None) -> None:
        super().diagnosed(found, order, connection)
        self._diagnosed.setdefault(connection, []).extend(found)

    def over(self, analyses: list[ConnectionAnalysis]) -> None:
        if self.capture is not None and self._surveyor is not None:
            for analysis in analyses:
                found = self._diagnosed.pop(analysis.connection, [])
                self._surveyor.over(self.capture, analysis, found)

    def close(self, nothing: str, reason: str) -> None:
        survey = self._survey(reason)
        picture = Picture(survey)
        if survey.connections and reason != INTERRUPTED:
            builder = PictureBuilder(
                survey, survey.connections, EVERYTHING, rows_of_each(survey), fields=True
            )
            try:
                with self._source.open(CaptureOptions(judge=False, keep=False, ended=True)) as capture:
                    picture = builder.read(capture)
            except CaptureError:
                # The notes of the survey have the reason.
                picture = builder.picture()
        self._out.write(page_html(picture))
        self._out.flush()

    def _survey(self, reason: str) -> Survey:
        """What is known of the capture. reason: why it was not read to its end, or ""."""
        if self.capture is None or self._surveyor is None:
            survey = Survey(self.name)
        else:
            survey = self._surveyor.finish(self.capture, self._diagnosed.pop(None, []))
        if reason:
            survey.notes.append(printable(f"not read to its end: {reason}"))
        return survey

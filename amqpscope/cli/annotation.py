"""`check --annotate`: the capture once more, with each finding as a comment on its packet."""

from contextlib import suppress

from amqpscope.cli.output import say
from amqpscope.cutting.survey import comment_of
from amqpscope.cutting.writing import copy_packets, recorder_at
from amqpscope.errors import CaptureError, OutputError
from amqpscope.input.capture import Capture
from amqpscope.limits import MAX_ANNOTATED
from amqpscope.model.finding import Finding
from amqpscope.policy.judging import Hearer
from amqpscope.policy.replacement import Replacement
from dissectors.wording import count

__all__ = ["Annotation"]


class Annotation(Hearer):
    """Keeps what is to be said of packets while a capture is judged; then reads it again and writes it.

    path: of the capture, one file. file: what is written in its place, from now on, and completed by others;
    None for standard output. Raises OutputError if it cannot be written. Of very many findings the first are
    written.
    """

    def __init__(self, path: str, file: Replacement | None) -> None:
        self._path = path
        self._file = file
        try:
            self._recorder = recorder_at("-" if file is None else file.reserve())
        except CaptureError as error:
            raise self._failed(error) from error
        self._comments: dict[int, list[str]] = {}
        self._kept = 0
        self._left_out = 0

    def take(self, findings: list[Finding]) -> None:
        for finding in findings:
            if finding.assessment.suppressed_by:
                continue
            if self._kept >= MAX_ANNOTATED:
                self._left_out += 1
                continue
            self._kept += 1
            self._comments.setdefault(int(finding.packet), []).append(comment_of(finding))

    def finish(self, capture: Capture, empty: bool) -> None:
        try:
            copy_packets(self._path, self._recorder, self._comments)
        except CaptureError as error:
            # As an error of the capture, it would be reported by all who have reported the capture already.
            raise self._failed(error) from error
        if self._left_out:
            say(f"--annotate: {count(self._left_out, 'finding')} left out, there are too many")

    def fail(self, reason: str) -> None:
        with suppress(CaptureError):
            self._recorder.finish(0, [], [])
        if self._file is not None:
            self._file.abandon()

    def _failed(self, error: CaptureError) -> OutputError:
        """The file cannot be written."""
        return OutputError(str(error) if self._file is None else self._file.named(str(error)))

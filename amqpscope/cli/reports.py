"""Where `amqpscope check` writes findings, and in which forms: standard output, and files beside it."""

import re
import sys
from functools import partial
from typing import TextIO

from amqpscope.capture.source import only_once
from amqpscope.cli.inputs import CaptureArgument, is_standard_output, refuse_taken
from amqpscope.cli.output import leave, notes_to_stderr, say
from amqpscope.cli.run_files import RunFiles
from amqpscope.cli.selection import Selection
from amqpscope.errors import FilterError
from amqpscope.input.capture import Capture
from amqpscope.policy.config_finding import RunConclusion
from amqpscope.policy.configuration import Configuration, nearest_word
from amqpscope.policy.judging import INTERRUPTED, Hearer
from amqpscope.policy.policy import Policy
from amqpscope.report.finding_counts import Detail
from amqpscope.report.forms import NAMES, ReportForm, ReportOptions, declared, form_of_file, suffixes
from amqpscope.report.outcome import nothing_to
from amqpscope.report.printable import printable
from amqpscope.report.suppressed import fixed_lines
from amqpscope.report.writer import FindingWriter, Writers
from dissectors.wording import count

__all__ = ["Reports", "in_folder"]


_LIKE_A_FORMAT = "[a-z]{2,}"


class Reports:
    """The writers of a run, and the files they write into, which are open while it lasts.

    A file that is there stays as it is until the new report is whole: a run that is ended in the middle, or
    finds the disk full, leaves the old one.

    form: of standard output. outputs: `FILE` or `FORMAT:FILE` each. most: findings of one rule by one peer
    that a form for people shows. detail: what the text shows of each. captures: what is read. policy: its
    files are read, too, or will be written; none of these is written over. selection: which findings are
    asked for, None for all. annotated: where the capture is written with comments, None for nowhere. If it
    is standard output, the report goes to standard error. matched: hears all of the run besides, and writes
    nothing. Where nobody reads standard output to its end the files are whole all the same, and the verdict
    is reached; but for a run that reads standard input itself, which may have no end, and writes nothing
    else. Raises FilterError for what makes no sense, OutputError if a file cannot be written.
    """

    def __init__(
        self,
        form: str,
        outputs: list[str],
        most: int,
        captures: list[CaptureArgument],
        policy: Policy,
        detail: Detail,
        selection: Selection | None = None,
        annotated: str | None = None,
        matched: Hearer | None = None,
    ) -> None:
        self._form = declared(form)
        once = any(only_once(path) for one in captures for path in one.paths)
        self._options = ReportOptions(policy.terms, most, detail, [] if once else captures)
        self._selection = selection
        self._matched = matched
        self._annotated = annotated
        self._out = sys.stdout
        self._files = RunFiles()
        self._writers: Writers | None = None
        self._named = [_named(output) for output in outputs]
        taken = [path for one in captures for path in one.files]
        # Of an endless capture nobody can wait for the verdict.
        self._to_the_end = bool(self._named) or not once
        if policy.configuration.file:
            taken.append(policy.configuration.file)
        if policy.baseline is not None:
            taken.append(policy.baseline.file)
        if policy.gathered is not None:
            refuse_taken("--write-baseline", policy.gathered.file, taken)
            taken.append(policy.gathered.file)
        self._source = captures[0].paths[0]
        if annotated is not None:
            single = len(captures) == 1 and len(captures[0].paths) == 1 and not captures[0].via
            if not single or only_once(self._source):
                raise FilterError("--annotate: works with one capture file, and reads the capture again")
            if not annotated:
                raise FilterError("--annotate '': must name a file")
            if is_standard_output(annotated):
                self._annotated, self._out = "-", sys.stderr
                annotated = "/dev/stdout"
            else:
                refuse_taken("--annotate", annotated, taken)
            taken.append(annotated)
        for _, path in self._named:
            refuse_taken("--output", path, taken)
            taken.append(path)

    def __enter__(self) -> Writers:
        others: list[Hearer] = [] if self._matched is None else [self._matched]
        try:
            for form, path in self._named:
                others.append(self._writer(declared(form), self._files.new(path).open()))
            if self._annotated is not None:
                from amqpscope.cli.annotation import Annotation  # brings what writes captures

                file = None if self._annotated == "-" else self._files.new(self._annotated)
                others.append(Annotation(self._source, file))
        except BaseException:
            self._close(False)
            raise
        first = self._writer(self._form, self._out)
        complaints = _Complaints(self._form, first)
        gone = partial(leave, self._out) if self._to_the_end else None
        self._writers = Writers(first, [*others, complaints], gone)
        return self._writers

    def _writer(self, form: ReportForm, out: TextIO) -> FindingWriter:
        writer = form.writer(out, self._options)
        if self._selection is not None:
            writer.about = self._selection.of_connection
            writer.filtered = printable(self._selection.words)
        return writer

    def __exit__(self, *_: object) -> None:
        self._close(self._writers is not None and self._writers.ended)
        try:
            self._out.flush()
        except BrokenPipeError:
            if not self._to_the_end:
                raise
            leave(self._out)

    def _close(self, whole: bool) -> None:
        """The files are complete if the reports in them are whole, and else are what they were before."""
        with self._files:
            if whole:
                self._files.complete()


class _Complaints(Hearer):
    """Writes to standard error what could not be checked, and what the form of standard output leaves out."""

    def __init__(self, form: ReportForm, first: FindingWriter) -> None:
        self._form = form
        self._first = first
        self._capture: Capture | None = None
        self._ignored = 0

    def begin(self, path: str) -> None:
        self._capture = None
        self._ignored = 0

    def opened(self, capture: Capture) -> None:
        self._capture = capture

    def ignore(self, count: int) -> None:
        self._ignored += count

    def finish(self, capture: Capture, empty: bool) -> None:
        self._notes()
        if empty:
            say(f"{capture.name}: {nothing_to(capture, 'check')}")

    def fail(self, reason: str) -> None:
        self._notes()
        if reason != INTERRUPTED:
            say(reason)

    def conclude(self, closing: RunConclusion) -> None:
        if not self._form.shows_fixed:
            for line in fixed_lines(closing):
                say(line)

    def _notes(self) -> None:
        if self._form.shows_notes or self._capture is None:
            return
        notes_to_stderr(self._capture.name, self._first.notes)
        if self._ignored:
            say(f"{self._capture.name}: {count(self._ignored, 'finding')} ignored")


def in_folder(configuration: Configuration, output: str) -> str:
    """`FILE` or `FORMAT:FILE` as a configuration has it, whose paths are relative to its folder."""
    before, colon, path = output.partition(":")
    if colon and before in NAMES:
        return f"{before}:{configuration.path(path) if path else path}"
    return configuration.path(output)


def _named(output: str) -> tuple[str, str]:
    """The form and the file that `FILE` or `FORMAT:FILE` names."""
    before, colon, path = output.partition(":")
    if colon and before in NAMES:
        form = before
    else:
        path = output
        if re.fullmatch(_LIKE_A_FORMAT, before) and colon:
            forms = nearest_word(before, NAMES, "format")
            raise FilterError(f"--output {output}: {forms} (a file of this name: ./{output})")
        form = form_of_file(path)
        if not form:
            known = ", ".join(suffixes())
            raise FilterError(
                f"--output {output}: the suffix names no format (known are {known}): write FORMAT:FILE"
            )
    if path in ("", "-"):
        raise FilterError(f"--output '{output}': must name a file (for standard output use --format)")
    return form, path

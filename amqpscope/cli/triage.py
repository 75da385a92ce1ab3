"""`amqpscope triage`: what is wrong in a capture, for somebody who knows nothing of it yet."""

import sys

from amqpscope.cli.inputs import CaptureArgument, Paths, ReadingOptions, capture_status
from amqpscope.cli.option_groups import with_options
from amqpscope.cli.output import meter, notes_to_stderr, say
from amqpscope.cli.status import Status, worst
from amqpscope.errors import CaptureError
from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.report.capture_summary import CaptureSummary
from amqpscope.report.painter import painter
from amqpscope.report.shell import shell_word
from amqpscope.report.triage import Triage

__all__ = ["EPILOG", "triage"]

EPILOG = """
The worst problem comes first. The order is: violations that the other peer
answered with an error, diagnoses (who waits for whom), connections that ended
with an error or without a close, and other violations. For each capture, the
output has at most fifteen lines. A diagnosis accuses nobody: `the client has
to act` means only that the client can end the problem.

\b
Examples:
  amqpscope triage traffic.pcap
  amqpscope triage --merge rotated/
  amqpscope triage --tls-keylog keys.txt traffic.pcap

Exit status: 0 the capture was read (even if it contains problems), 2 a
failure, 3 no AMQP 1.0 or 0-9-1 to read, 130 interrupted.
"""


@with_options
def triage(
    *,
    paths: Paths,
    reading: ReadingOptions,
) -> int:
    """Show who talks to whom, what is wrong and since when, who has to act, and which command to run next."""
    statuses: list[Status] = []
    for one in reading.captures(paths):
        below = any(status is not Status.FAILURE for status in statuses)
        try:
            statuses.append(_triage(one, below, reading.allow_empty))
        except CaptureError as error:
            sys.stdout.flush()
            say(str(error))
            statuses.append(Status.FAILURE)
    return worst(statuses)


def _triage(one: CaptureArgument, below: bool, allow_empty: bool) -> Status:
    """One capture. below: what is shown about another capture."""
    with one.open(CaptureOptions(keep=False, ended=True, judge=True)) as capture:
        file = shell_word(capture.path) if capture.path else ""
        found = Triage(capture.name, file)
        broken: BaseException | None = None
        try:
            _read(capture, found)
        except (KeyboardInterrupt, CaptureError) as error:
            if not capture.frames:
                raise
            broken = error
        if below:
            print()
        print(found.text(capture, painter()[0]))
        if broken is not None:
            sys.stdout.flush()
            if isinstance(broken, KeyboardInterrupt):
                say(f"{capture.name}: interrupted: only what was read before")
            raise broken
        sys.stdout.flush()
        notes_to_stderr(capture.name, capture.mishaps)
        return capture_status(capture, allow_empty)


def _read(capture: Capture, found: Triage) -> None:
    """The capture to its end. What was read before an interruption or an error is taken, too."""
    gathered = CaptureSummary({})

    def over() -> None:
        findings = capture.take_findings()
        gathered.judge(findings)
        found.judge(findings)
        for analysis in capture.take_ended():
            known, diagnoses = gathered.take(analysis)
            try:
                found.over(analysis, known, diagnoses)
            except Exception as error:
                capture.fail(analysis.connection, error)

    try:
        with meter(capture) as progress:
            for records in capture.blocks():
                capture.each(records, gathered.add)
                over()
                progress.update()
    except (KeyboardInterrupt, CaptureError):
        capture.stop()
        over()
        raise
    finally:
        found.finish(gathered.finish())

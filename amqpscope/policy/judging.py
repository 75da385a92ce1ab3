"""Judging captures under a policy: the one loop of whatever judges files.

    run = judge(["orders.pcap", "stock.pcap"], load_policy())
    run.fails                      # whether something counts, could not be read, or was not there to check
    run.captures[0].findings       # decided: weighed, suppressed or not

A hearer is given meanwhile what happens, so that nothing has to be kept.
"""

import enum
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.capture.source import shown_name
from amqpscope.errors import CaptureError
from amqpscope.input.ahead import ReadAhead, size_of
from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.input.meter import Measured, Meter, Metering, unmeasured
from amqpscope.input.selection import FrameSelection
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.note import DAMAGE, INTERNAL, Note
from amqpscope.model.records import Connection, FrameRecord, FrameRef
from amqpscope.policy.config_finding import RunConclusion
from amqpscope.policy.policy import Policy, Rulings
from amqpscope.protocols import any_decoded

if TYPE_CHECKING:
    from amqpscope.diagnoses.capture import CaptureDiagnoses

__all__ = [
    "INTERRUPTED",
    "PARTIAL",
    "CaptureOutcome",
    "CheckRun",
    "Hearer",
    "JudgedCapture",
    "Readable",
    "judge",
]


INTERRUPTED: Final = "interrupted"
"""Why a capture was not read to its end: somebody ended the run."""


PARTIAL: Final = (INTERNAL, *DAMAGE)
"""Notes that say that the file is not all there, or not all of it could be made out."""


class CaptureOutcome(enum.StrEnum):
    """What became of a capture. failure: it, or one of its connections, could not be read to its end."""

    fine = "fine"
    findings = "findings"
    failure = "failure"
    empty = "empty"


class Readable(Protocol):
    """A capture that can be opened, and what it is called until then. size: octets of its files, 0 if it
    is unknown.
    """

    name: str

    @property
    def size(self) -> int: ...

    def open(self, options: CaptureOptions) -> Capture:
        """The capture. Raises CaptureError."""


class _File:
    """A capture by its path."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self.name = shown_name(self._path)

    @property
    def size(self) -> int:
        return size_of([self._path])

    def open(self, options: CaptureOptions) -> Capture:
        return Capture(self._path, options)


class _GoingOn:
    """Sees how far a capture has been read, and has the next ones read meanwhile."""

    def __init__(self, meter: Meter, ahead: ReadAhead) -> None:
        self._meter = meter
        self._ahead = ahead

    def update(self) -> None:
        """A block was read."""
        self._meter.update()
        self._ahead.go_on()


class JudgedCapture:
    """One capture, judged.

    findings: those to be shown, if they are gathered, in the order in which they were complete. diagnoses:
    if they are made and gathered. ignored: how many other findings there were. reason: why it was not read to
    its end, or "". capture: as it was read, if findings are gathered and it could be opened.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.outcome = CaptureOutcome.fine
        self.findings: list[Finding] = []
        self.diagnoses: list[Diagnosis] = []
        self.ignored = 0
        self.reason = ""
        self.capture: Capture | None = None


class Hearer:
    """Is notified of what becomes of captures, one after the other.

    context: wants the frames around each finding. connections: wants each connection when it is over, by
    `over`, not only their number. records: wants all frames, by `frames`. diagnoses: wants to know who waits
    for whom, by `diagnosed`.
    """

    context = False
    connections = False
    records = False
    diagnoses = False

    def around(self, spot: FrameRef, records: Sequence[FrameRecord], links: Sequence[object]) -> object:
        """The frames around the one at `spot` as plain values to show them by, for another process: see
        `context`. links: of these frames, as far as known.
        """
        return None

    def begin(self, path: str) -> None:
        """A capture is about to be opened."""

    def opened(self, capture: Capture) -> None:
        """It could be."""

    def frames(self, records: list[FrameRecord]) -> None:
        """The next frames of the capture, if they are wanted. What is found in them may come later."""

    def take(self, findings: list[Finding]) -> None:
        """The next findings that are complete and to be shown."""

    def over(self, analyses: list[ConnectionAnalysis]) -> None:
        """These connections are over, if they are wanted. What they are compared with others for may still
        come; all else that is found on them has come."""

    def diagnosed(self, found: list[Diagnosis], order: int, connection: Connection | None) -> None:
        """The next diagnoses, if they are wanted. order: of their connection in the capture. connection: None
        if they are about several."""

    def ignore(self, count: int) -> None:
        """So many others are not to be shown."""

    def finish(self, capture: Capture, empty: bool) -> None:
        """It was read to its end. empty: there was nothing to check."""

    def fail(self, reason: str) -> None:
        """It cannot be read, or not to its end."""

    def conclude(self, closing: RunConclusion) -> None:
        """No capture follows; this is to be said of all."""

    def end(self) -> None:
        """Nothing follows."""


class CheckRun:
    """Captures, judged under a policy. closing: what is to be said of all of them."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.captures: list[JudgedCapture] = []
        self.closing = RunConclusion()

    @property
    def fails(self) -> bool:
        """Whether something counts, could not be read, or was not there to be checked."""
        return any(one.outcome is not CaptureOutcome.fine for one in self.captures) or self.remarked

    @property
    def remarked(self) -> bool:
        """Whether something about the configuration counts."""
        return any(remark.counts for remark in self.closing.remarks)

    @property
    def findings(self) -> list[Finding]:
        """Those of all captures that are to be shown, if they are gathered."""
        return [finding for one in self.captures for finding in one.findings]


def judge(
    captures: Iterable[Readable | str | os.PathLike[str]],
    policy: Policy,
    *,
    hearer: Hearer | None = None,
    gather: bool = True,
    context: bool = False,
    diagnoses: bool = False,
    wanted: FrameSelection | None = None,
    meter: Metering = unmeasured,
    jobs: int = 1,
) -> CheckRun:
    """Judge captures, in their order, each on its own.

    captures: paths, or what can be opened. hearer: is given meanwhile. gather: keep the findings; context:
    with the frames around them. diagnoses: make them, even if no hearer wants them. wanted: which findings
    are asked for, None for all. meter: what is to be around the reading of a capture, and is notified of its
    blocks. jobs: how many processes may read captures, several of them side by side or one together; the
    result is the same. What cannot be read is an outcome, no exception.
    """
    run = CheckRun(policy)
    rulings = Rulings(policy)
    listening = hearer or Hearer()
    diagnose = policy.diagnosing(diagnoses or listening.diagnoses)
    options = CaptureOptions(
        keep=False,
        ended=listening.connections or diagnose or wanted is not None,
        records=listening.records,
        judge=True,
        context=context or listening.context,
        around=listening.around if listening.context and not context else None,
        profile=policy.profile,
        spec=policy.spec,
        jobs=jobs,
    )
    sources = [_File(one) if isinstance(one, str | os.PathLike) else one for one in captures]
    watches: dict[int, CaptureDiagnoses] = {}

    def prepare(number: int) -> Capture:
        capture = sources[number].open(options)
        if diagnose:
            watches[number] = _diagnoses(policy.limits)
            capture.watch(watches[number])
        return capture

    ahead = ReadAhead(jobs if not options.records else 1, [one.size for one in sources], prepare)

    @contextmanager
    def metered(capture: Measured) -> Iterator[Meter]:
        with meter(capture) as one:
            yield _GoingOn(one, ahead)

    try:
        for number, source in enumerate(sources):
            judged = JudgedCapture(source.name)
            run.captures.append(judged)
            listening.begin(source.name)
            try:
                with ahead.open(number) as capture:
                    judged.capture = capture if gather else None
                    watch = watches.pop(number, None)
                    _judge_one(capture, judged, rulings, listening, watch, wanted, metered)
            except CaptureError as error:
                judged.outcome = CaptureOutcome.failure
                judged.reason = str(error)
                listening.fail(str(error))
    finally:
        ahead.close()
    failed = any(one.outcome is CaptureOutcome.failure for one in run.captures)
    run.closing = rulings.close(not failed and wanted is None)
    listening.conclude(run.closing)
    listening.end()
    return run


def _diagnoses(limits: Mapping[str, float]) -> "CaptureDiagnoses":
    """What watches a capture. It is imported here, because `read` loads this file, too."""
    from amqpscope.diagnoses.capture import CaptureDiagnoses

    return CaptureDiagnoses(limits)


def _judge_one(
    capture: Capture,
    judged: JudgedCapture,
    rulings: Rulings,
    hearer: Hearer,
    diagnoses: "CaptureDiagnoses | None",
    wanted: FrameSelection | None,
    meter: Metering,
) -> None:
    """An open capture, to its end. If `judged` has the capture, its findings are kept. diagnoses: watches it,
    if diagnoses are made.
    """
    judged.name = capture.name
    gather = judged.capture is not None
    rulings.begin(capture.name)
    hearer.opened(capture)
    policy = rulings.policy
    failed = False
    listed = hearer.connections or diagnoses is not None or wanted is not None
    if wanted is not None:
        wanted.restart()
    try:
        with meter(capture) as progress:
            for records, findings in _complete(capture):
                if records and hearer.records:
                    hearer.frames(records)
                if diagnoses is not None:
                    diagnoses.judge(findings)
                if wanted is not None and findings:
                    wanted.start(capture.began)
                    findings = [finding for finding in findings if wanted.takes_finding(finding)]
                shown = [finding for finding in findings if rulings.decide(finding)]
                if len(shown) < len(findings):
                    judged.ignored += len(findings) - len(shown)
                    hearer.ignore(len(findings) - len(shown))
                hearer.take(shown)
                ended = capture.take_ended() if listed else []
                over = ended
                if wanted is not None:
                    over = [analysis for analysis in ended if wanted.of_connection(analysis.connection)]
                    for analysis in ended:
                        wanted.forget(analysis.connection)
                for analysis in ended:
                    diagnosed = [] if diagnoses is None else diagnoses.end(analysis)
                    if diagnosed and analysis in over:
                        hearer.diagnosed(diagnosed, analysis.order, analysis.connection)
                        judged.diagnoses += diagnosed if gather else []
                        failed = failed or any(policy.fails_for(one.code) for one in diagnosed)
                if over and hearer.connections:
                    hearer.over(over)
                if gather:
                    judged.findings += shown
                failed = failed or any(policy.counts(finding) for finding in shown)
                progress.update()
        if diagnoses is not None and wanted is None:
            diagnosed = diagnoses.finish()
            hearer.diagnosed(diagnosed, 0, None)
            judged.diagnoses += diagnosed if gather else []
            failed = failed or any(policy.fails_for(one.code) for one in diagnosed)
    except KeyboardInterrupt:
        # What was found so far is worth having, above all of a live capture.
        hearer.fail(INTERRUPTED)
        hearer.conclude(rulings.close(False))
        hearer.end()
        raise
    # A finding about who spoke no AMQP does not mean that there was any.
    empty = not any_decoded(capture.protocols)
    if capture.failed:
        judged.outcome = CaptureOutcome.failure
        judged.reason = _reason(capture.mishaps)
    elif failed:
        judged.outcome = CaptureOutcome.findings
    elif empty and not policy.terms.allow_empty:
        judged.outcome = CaptureOutcome.empty
    if wanted is None and not any(note.code in PARTIAL for note in capture.notes):
        rulings.ended(capture.name)
    if judged.reason:
        hearer.fail(judged.reason)
    else:
        hearer.finish(capture, empty)


def _reason(mishaps: list[Note]) -> str:
    """What is said of connections that amqpscope failed on: of the first one, and how many there are."""
    first = mishaps[0]
    which = "" if first.connection is None else f"connection {first.connection.stream}: "
    more = f" (and {len(mishaps) - 1} more)" if len(mishaps) > 1 else ""
    return f"{first.code}: packet {first.packet}: {which}{first.detail.partition('; ')[0]}{more}"


def _complete(capture: Capture) -> Iterator[tuple[list[FrameRecord], list[Finding]]]:
    """Of each block of the capture: its frames, if they are wanted, and the findings complete by its end."""
    try:
        for records in capture.blocks():
            yield records, capture.take_findings()
    except (KeyboardInterrupt, CaptureError):
        capture.stop()
        yield [], capture.take_findings()
        raise

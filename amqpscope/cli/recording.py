"""`-w` of `amqpscope sniff`: what is captured, in files, with the findings as comments on their packets."""

from collections.abc import Callable

from amqpscope import __version__
from amqpscope.capture.live.recorded import SourceRecorder
from amqpscope.capture.live.source import LiveSource
from amqpscope.capture.recording.output import Rotation
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder
from amqpscope.cli.output import say
from amqpscope.errors import CaptureError, FilterError
from amqpscope.input.live import Batch
from amqpscope.layers.secrets import Secrets
from amqpscope.report.finding_counts import kind
from amqpscope.report.findings import message_of
from amqpscope.report.verdict import answer
from dissectors.wording import count

__all__ = ["LiveRecording", "rotation_of"]


def rotation_of(limits: list[tuple[str, int]], files: int) -> Rotation | None:
    """The rotation that options ask for, None without any. Raises FilterError on what contradicts itself."""
    if not limits:
        if files:
            raise FilterError("--files: needs --rotate, which decides when the next file begins")
        return None
    found = dict(limits)
    if len(found) < len(limits):
        raise FilterError("--rotate: give at most one size, one duration and one number of packets")
    return Rotation(found.get("size", 0), found.get("duration", 0), found.get("packets", 0), files)


class LiveRecording:
    """Records what a source takes. before: ns that a flight recorder keeps; 0: everything is written.
    secrets: those of the connections that need them are recorded, too; None: none are.

    failed: it had to be given up, which was said.
    """

    def __init__(
        self,
        path: str,
        source: LiveSource,
        filter: str,
        rotation: Rotation | None,
        before: int,
        secrets: Secrets | None = None,
    ) -> None:
        self._secrets = secrets
        self.recorder = PcapngRecorder(path, f"amqpscope {__version__}", 0, rotation, before)
        self.failed = False
        self._recorded = SourceRecorder(source, self.recorder, filter)
        # Where it says what has become of it.
        self.tell: Callable[[str], None] = say

    @property
    def files(self) -> list[str]:
        """Names of the files that there are."""
        return self.recorder.files

    def place_of(self, packet: int) -> str:
        """`packet 12 of FILE`, where a packet of the run has that number in the only file, or ""."""
        number = self.recorder.number_in_file(packet)
        return f"packet {number} of {self.files[0]}" if number else ""

    def remark(self, batch: Batch) -> None:
        """What is to be said of the packets just taken, and of some before."""
        self._guard(lambda: self._remark(batch))

    def _remark(self, batch: Batch) -> None:
        recorder = self.recorder
        self._recorded.describe()
        self._embed()
        for packet, text in batch.remarks:
            recorder.comment(packet, text)
        for finding in batch.found:
            recorder.comment(
                finding.packet, f"{kind(finding)} {finding.rule} by the {finding.peer}: {message_of(finding)}"
            )
        for finding in batch.amended:
            recorder.comment(
                int(finding.reaction.packet),
                f"{finding.rule} by the {finding.peer} in packet {finding.packet}: {answer(finding)}",
            )
        if batch.dropped:
            self._recorded.count_lost()

    def trigger(self, reason: str, moment: int) -> None:
        """The flight recorder is to write what it has kept of the time before this moment (ns)."""
        self._guard(lambda: self.recorder.trigger(reason, moment))

    def flush(self, now: int) -> None:
        """Nothing more is to be said of the packets taken for now. now: by their clock."""
        self._guard(lambda: self.recorder.flush(now))

    def finish(self, end: int) -> None:
        """The capture is over, at this time (ns); 0: with its last packet."""
        self._guard(self._embed)
        self._guard(lambda: self._recorded.finish(end))
        lost = int(self.recorder.unrecorded)
        if lost:
            self.tell(f"{count(lost, 'packet')} not recorded: a file cannot describe so many interfaces")

    def _embed(self) -> None:
        """Record the secrets that connections have asked for since the last time."""
        lines = b"" if self._secrets is None else self._secrets.take_found()
        if lines:
            self.recorder.embed(lines)

    def _guard(self, work: Callable[[], None]) -> None:
        if self.failed:
            return
        try:
            work()
        except CaptureError as error:
            self.failed = True
            self.tell(f"{error}; the recording has stopped")

"""`check --annotate`: the capture once more, with each finding as a comment on its packet."""

from amqpscope import __version__
from amqpscope.capture.packet import PacketDecoder
from amqpscope.capture.recorder import Packet, PacketRecorder
from amqpscope.capture.recording.pcapng_recorder import PcapngRecorder
from amqpscope.capture.sink import SegmentSink
from amqpscope.capture.source import CaptureSource
from amqpscope.cli.output import say
from amqpscope.input.capture import BLOCK, Capture
from amqpscope.limits import MAX_ANNOTATED
from amqpscope.model.finding import Finding
from amqpscope.policy.judging import Hearer
from amqpscope.policy.replacement import Replacement
from amqpscope.report.findings import message_of
from amqpscope.report.verdict import kind
from dissectors.wording import count

__all__ = ["Annotation"]


class Annotation(Hearer):
    """Keeps what is to be said of packets while a capture is judged; then reads it again and writes it.

    path: of the capture, one file. file: what is written in its place, and completed by others. Raises
    CaptureError if it cannot be written. Of very many findings the first are written.
    """

    def __init__(self, path: str, file: Replacement) -> None:
        self._path = path
        self._file = file
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
            text = f"{kind(finding)} {finding.rule} by the {finding.peer}: {message_of(finding)}"
            self._comments.setdefault(int(finding.packet), []).append(text)

    def finish(self, capture: Capture, empty: bool) -> None:
        recorder = PcapngRecorder(self._file.reserve(), f"amqpscope {__version__}")
        decoder = PacketDecoder(SegmentSink())
        decoder.recorder = _Commented(recorder, self._comments)
        source = CaptureSource(self._path)
        try:
            reader = source.start(SegmentSink(), decoder)
            while block := source.read(BLOCK):
                reader.feed(block)
                recorder.flush()
            reader.finish()
            recorder.finish(0, [], [])
        except BaseException:
            self._file.abandon()
            raise
        finally:
            source.close()
        if self._left_out:
            say(f"--annotate: {count(self._left_out, 'finding')} left out, there are too many")


class _Commented(PacketRecorder):
    """Hands packets on, each with its comments."""

    def __init__(self, recorder: PcapngRecorder, comments: dict[int, list[str]]) -> None:
        self._recorder = recorder
        self._comments = comments

    def packet(self, packet: Packet) -> None:
        self._recorder.packet(packet)
        number = int(packet.number)
        for text in self._comments.pop(number, ()):
            self._recorder.comment(number, text)

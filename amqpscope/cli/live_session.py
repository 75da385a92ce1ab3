"""One run of `amqpscope sniff`: steps of a watch until something ends it, and what is said at the end.

It ends with what comes first: Ctrl-C or a signal, the time or the number of
packets that was asked for, the finding that was waited for, or the end of the
pipe. A second Ctrl-C does not wait for anything.
"""

import signal
import time as clock
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from amqpscope.cli.live_view import LiveView
from amqpscope.cli.output import notes_to_stderr, say
from amqpscope.cli.recording import LiveRecording
from amqpscope.cli.status import ENDING, Status
from amqpscope.input.live import Batch, LiveWatch
from amqpscope.limits import LIVE_BEHIND
from amqpscope.model.finding import Finding
from amqpscope.model.note import INTERNAL, Note
from amqpscope.policy.policy import Policy, Rulings
from amqpscope.protocols import any_decoded
from amqpscope.report.diagnosis_text import is_trouble
from amqpscope.report.rule_counts import RuleCounts
from dissectors.wording import count

__all__ = ["LiveSession", "Stop"]

_LOT = 0.1
"""Seconds after which the kernel has handed over any packet."""

_DRAINED = 5.0
"""Seconds at most to take what waits at the end."""

_AFTER = 1_000_000_000
"""Nanoseconds that are captured behind the finding waited for, so that the other peer's reaction is there."""

_SIGNALS = (signal.SIGINT, *ENDING)


class Stop:
    """When a run ends by itself: after `duration` ns, so many packets, or when one of `rules` is broken.

    0, or no rules: never for that. possible: also if that is only possible.
    """

    def __init__(self, duration: int, packets: int, rules: frozenset[str], possible: bool) -> None:
        self.duration = duration
        self.packets = packets
        self.rules = rules
        self.possible = possible

    def awaits(self, finding: Finding) -> bool:
        """Whether this finding is waited for."""
        return finding.rule in self.rules and (finding.certain or self.possible)


class LiveSession:
    """Takes what a watch brings to the audience and the recording.

    policy: which findings are shown, and count for the exit status.
    """

    def __init__(
        self,
        watch: LiveWatch,
        audience: LiveView,
        recording: LiveRecording | None,
        stop: Stop,
        policy: Policy,
    ) -> None:
        self.watch = watch
        self.counts = RuleCounts()
        self.failed = False
        self._rulings = Rulings(policy)
        self._ignored = 0
        self._troubles = 0
        self._audience = audience
        self._recording = recording
        self._stop = stop
        self._policy = policy
        self._signal = 0
        self._began = clock.monotonic_ns()
        self._breach = 0  # when (by the clock that runs on) the finding waited for was made
        self._awaited = ""
        self._awaited_packet = 0  # 0: a silence
        self._left_behind = False
        self._mishaps: list[Note] = []

    def run(self) -> None:
        """Until it ends, and is given how. Raises CaptureError when the source fails."""
        with self._signals():
            self._audience.begin(self.watch.source.name)
            try:
                while not self._over():
                    self._take(self.watch.step(self._audience.patience))
                self._drain()
            finally:
                self._finish()

    def _finish(self) -> None:
        """Bring everything to its end: open connections, the recording, the text."""
        now = self.watch.now
        self._take(self.watch.finish())
        if self._recording is not None:
            self._recording.finish(now)
        self._audience.end(self.conclusion(), self.counts)
        self._tell()

    def status(self) -> int:
        """The exit status."""
        if self._signal == signal.SIGINT:
            return Status.INTERRUPTED
        if self._signal:
            return Status.TERMINATED
        if self._recording is not None and self._recording.failed:
            return Status.FAILURE
        if self.watch.table.totals.failed:
            return Status.FAILURE
        if self.failed:
            return Status.FINDINGS
        if self._policy.terms.allow_empty or self._saw_amqp():
            return Status.FINE
        seen = count(self.watch.packets, "packet")
        say(f"{self.watch.source.name}: no AMQP 1.0 or 0-9-1 was seen in {seen}")
        return Status.NO_AMQP

    def _saw_amqp(self) -> bool:
        """Whether there was a connection, over by now, on which both peers spoke AMQP that is decoded."""
        return any_decoded(self.watch.table.totals.protocols)

    def conclusion(self) -> str:
        """What there was, in one line."""
        watch = self.watch
        seconds = (clock.monotonic_ns() - self._began) / 1_000_000_000
        nothing = "no broken rule found" if self._troubles else "nothing wrong found"
        what = self.counts.tally.text() or (nothing if self._saw_amqp() else "no AMQP to check")
        where = f"{count(watch.table.frames(), 'frame')} on {count(watch.table.spoken(), 'connection')}"
        taken = f"{count(watch.packets, 'packet')} in {seconds:.1f} s"
        text = f"{watch.source.name}: {what} in {where}; {taken}"
        if watch.dropped:
            text += f", {watch.dropped} more were lost by this machine"
        others = self.counts.set_aside.parts()
        if self._troubles:
            others.append(f"{self._troubles} {'diagnosis' if self._troubles == 1 else 'diagnoses'}")
        if self._ignored:
            others.append(f"{count(self._ignored, 'finding')} ignored")
        return f"{text}; {', '.join(others)}" if others else text

    def _take(self, batch: Batch) -> None:
        # What ends the run was asked for by its name, whatever else is shown.
        awaited = self._awaited_in(batch)
        self._decide(batch)
        for finding in batch.complete:
            self.counts.add(finding)
            self.failed = self.failed or self._policy.counts(finding)
        self._troubles += sum(is_trouble(one) for one in batch.diagnosed)
        self._mishaps += [note for note in batch.notes if note.code == INTERNAL]
        recording = self._recording
        if recording is not None:
            recording.remark(batch)
        self._await(awaited)
        if recording is not None:
            recording.flush(self.watch.now)
        self._audience.write(batch, self.watch.source.fill() > LIVE_BEHIND)

    def _drain(self) -> None:
        """Take what had come by now, too: the kernel hands packets over in lots, a little later."""
        watch = self.watch
        if not watch.source.buffered:
            return
        stopped = clock.time_ns()
        began = clock.monotonic()
        while not watch.over and watch.newest < stopped:
            batch = watch.step(_LOT)
            self._take(batch)
            passed = clock.monotonic() - began
            # What ended the run ends the first wait, too.
            if not batch.packets and not batch.dropped and passed >= _LOT:
                return
            if passed > _DRAINED:
                self._left_behind = True
                return

    def _decide(self, batch: Batch) -> None:
        """Leave out what is not to be shown, and say of the rest what it weighs."""
        decide = self._rulings.decide
        whole = len(batch.complete)
        batch.found = [finding for finding in batch.found if decide(finding)]
        batch.amended = [finding for finding in batch.amended if decide(finding)]
        batch.complete = [finding for finding in batch.complete if decide(finding)]
        self._ignored += whole - len(batch.complete)

    def _awaited_in(self, batch: Batch) -> list[tuple[str, int, int]]:
        """What ends the run, with its packet and its time: a finding, or a silence, which has no packet."""
        if self._breach or not self._stop.rules:
            return []
        rules = self._stop.rules
        found = [(one.rule, int(one.packet), int(one.time)) for one in batch.found if self._stop.awaits(one)]
        found += [(f"{one.rule}: silence", 0, self.watch.now) for one in batch.overdue if one.rule in rules]
        return found

    def _await(self, found: list[tuple[str, int, int]]) -> None:
        """End the run, if it was to be ended by one of these."""
        if found:
            self._awaited, self._awaited_packet, moment = found[0]
            self._breach = clock.monotonic_ns()
            if self._recording is not None:
                packet = self._awaited_packet
                where = f" in packet {packet} of the capture" if packet else ""
                self._recording.trigger(f"{self._awaited}{where}", moment)

    def _over(self) -> bool:
        now = clock.monotonic_ns()
        stop = self._stop
        return bool(
            self.watch.over
            or self._signal
            or self._audience.gone
            or (stop.duration and now - self._began >= stop.duration)
            or (stop.packets and self.watch.packets >= stop.packets)
            or (self._breach and now - self._breach >= _AFTER)
        )

    def _tell(self) -> None:
        """On standard error, what is to be known beside what was shown."""
        audience = self._audience
        for remark in self._rulings.close(False).remarks:
            self.failed = self.failed or remark.counts
            say(f"{remark.severity} {remark.rule} in {remark.place}: {remark.message}")
        if self._awaited:
            say(f"stopped by --until: {self._awaited}{self._awaited_place()}")
        elif self._stop.rules and not self._signal:
            say("no rule of --until was broken")
        notes_to_stderr(self.watch.source.name, self._mishaps)
        if self._left_behind:
            say("some captured packets were not analyzed, because there was not enough time")
        if audience.left_out:
            say(f"{count(audience.left_out, 'frame')} not shown: frames came faster than the output")
        if audience.verdicts_left_out:
            say(f"{count(audience.verdicts_left_out, 'verdict')} not shown: the output was not read in time")
        if self._recording is not None and self._recording.files:
            files = self._recording.files
            say(f"recorded: {files[0]}" + (f" and {len(files) - 1} more" if len(files) > 1 else ""))

    def _awaited_place(self) -> str:
        """The packet of the finding that ended the run, with its number in the recording if there is one."""
        packet = self._awaited_packet
        if not packet:
            return ""
        recorded = "" if self._recording is None else self._recording.place_of(packet)
        return f" in {recorded} (packet {packet} of this run)" if recorded else f" in packet {packet}"

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Signals that end a program end the run; the second of them at once."""
        before = {number: signal.signal(number, self._stopped) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stopped(self, number: int, frame: FrameType | None) -> None:
        if self._signal:
            raise KeyboardInterrupt
        self._signal = number
        self.watch.source.wake()

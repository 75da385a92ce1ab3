"""What writes the findings of several captures, in one form or in several at once."""

from collections.abc import Sequence

from amqpscope.finding import Finding
from amqpscope.reading import Capture

__all__ = ["Writer", "Writers"]


class Writer:
    """Writes the findings of several captures in one form.

    context: wants the frames around each finding. connections: wants all connections at the end, not only
    their number. streaming: writes while reading.
    """

    context = False
    connections = False
    streaming = True

    def begin(self, path: str) -> None:
        """A capture is about to be opened."""

    def opened(self, capture: Capture) -> None:
        """It could be."""

    def take(self, findings: list[Finding]) -> None:
        """The next findings that are complete."""

    def finish(self, capture: Capture, nothing: str) -> None:
        """It was read to its end. nothing: why there was nothing to check, or ""."""

    def fail(self, reason: str) -> None:
        """It cannot be read, or not to its end."""

    def end(self) -> None:
        """No capture follows."""


class Writers(Writer):
    """Several at once. The first is the one that somebody looks at meanwhile."""

    def __init__(self, writers: Sequence[Writer]) -> None:
        self._writers = list(writers)
        self.context = any(writer.context for writer in writers)
        self.connections = any(writer.connections for writer in writers)
        self.streaming = writers[0].streaming

    def begin(self, path: str) -> None:
        for writer in self._writers:
            writer.begin(path)

    def opened(self, capture: Capture) -> None:
        for writer in self._writers:
            writer.opened(capture)

    def take(self, findings: list[Finding]) -> None:
        for writer in self._writers:
            writer.take(findings)

    def finish(self, capture: Capture, nothing: str) -> None:
        for writer in self._writers:
            writer.finish(capture, nothing)

    def fail(self, reason: str) -> None:
        for writer in self._writers:
            writer.fail(reason)

    def end(self) -> None:
        for writer in self._writers:
            writer.end()

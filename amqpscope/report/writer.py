"""What writes the findings of several captures, in one form or in several at once."""

from collections.abc import Callable, Sequence

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
    """Several at once. The first is the one that somebody looks at meanwhile, or does not any more.

    gone: called when nobody reads any more what the first one writes; the others go on without it.
    """

    def __init__(self, writers: Sequence[Writer], gone: Callable[[], None]) -> None:
        self._first: Writer | None = writers[0]
        self._others = list(writers[1:])
        self._gone = gone
        self.context = any(writer.context for writer in writers)
        self.connections = any(writer.connections for writer in writers)
        self.streaming = writers[0].streaming

    def begin(self, path: str) -> None:
        self._each(lambda writer: writer.begin(path))

    def opened(self, capture: Capture) -> None:
        self._each(lambda writer: writer.opened(capture))

    def take(self, findings: list[Finding]) -> None:
        self._each(lambda writer: writer.take(findings))

    def finish(self, capture: Capture, nothing: str) -> None:
        self._each(lambda writer: writer.finish(capture, nothing))

    def fail(self, reason: str) -> None:
        self._each(lambda writer: writer.fail(reason))

    def end(self) -> None:
        self._each(lambda writer: writer.end())

    def _each(self, write: Callable[[Writer], None]) -> None:
        if self._first is not None:
            try:
                write(self._first)
            except BrokenPipeError:
                self._first = None
                self._gone()
        for writer in self._others:
            write(writer)

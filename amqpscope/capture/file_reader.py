"""What reads a file whose octets become TCP segments."""

from abc import ABC, abstractmethod

from mypy_extensions import mypyc_attr

from dissectors.wire import i64


@mypyc_attr(allow_interpreted_subclasses=True)
class FileReader(ABC):
    """Reads a file that is fed to it from its first octet. `number`: packets so far, or lines of a log."""

    def __init__(self) -> None:
        self.number: i64 = 0

    @abstractmethod
    def feed(self, block: bytes) -> None:
        """The next octets of the file, as many as the caller likes."""

    @abstractmethod
    def finish(self) -> None:
        """The file has ended."""

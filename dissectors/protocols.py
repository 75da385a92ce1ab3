"""The protocols that are decoded, and what is particular to each: its decoder, and what its frames tell.

Whoever walks a connection asks here, by the name that `dissectors.detect` gives the protocol; nothing else
has to know which protocols there are.
"""

from abc import ABC, abstractmethod
from typing import Final

from dissectors.amqp091 import frame as frame091
from dissectors.amqp091 import message as message091
from dissectors.amqp091.arguments import Method
from dissectors.amqp10 import delivery as delivery10
from dissectors.amqp10 import frame as frame10
from dissectors.interface import Assembler, Frame
from dissectors.stream_decoder import StreamDecoder
from dissectors.wire import i64

__all__ = ["PROTOCOLS", "Protocol"]


class Protocol(ABC):
    """One protocol.

    name: as `dissectors.detect` has it. no_header: the rule that a stream breaks that begins with neither a
    protocol header nor a frame.
    """

    def __init__(self, name: str, no_header: str) -> None:
        self.name: str = name
        self.no_header: str = no_header

    @abstractmethod
    def decoder(self, midstream: bool) -> StreamDecoder:
        """A decoder for one direction. midstream: it need not begin at a frame boundary."""

    @abstractmethod
    def load_decoder(self, state: tuple[object, ...]) -> StreamDecoder:
        """What the `dump` of a decoder gave, as one again."""

    @abstractmethod
    def assembler(self, keeping: bool) -> Assembler:
        """What puts messages together. keeping: also what they say, not only how large they are."""

    @abstractmethod
    def load_assembler(self, state: tuple[object, ...]) -> Assembler:
        """What the `dump` of an assembler gave, as one again."""

    def says_client(self, frame: Frame) -> i64:
        """Whether only a client says this: 1, only a server: 0, either: -1."""
        return -1


class _Amqp10(Protocol):
    def decoder(self, midstream: bool) -> StreamDecoder:
        return frame10.FrameDecoder(midstream)

    def load_decoder(self, state: tuple[object, ...]) -> StreamDecoder:
        return frame10.FrameDecoder.load(state)

    def assembler(self, keeping: bool) -> Assembler:
        return delivery10.MessageAssembler()

    def load_assembler(self, state: tuple[object, ...]) -> Assembler:
        return delivery10.MessageAssembler.load(state)

    def says_client(self, frame: Frame) -> i64:
        # security.xml, section "sasl"
        if frame.name in ("sasl-init", "sasl-response"):
            return 1
        if frame.name in ("sasl-mechanisms", "sasl-challenge", "sasl-outcome"):
            return 0
        return -1


class _Amqp091(Protocol):
    def decoder(self, midstream: bool) -> StreamDecoder:
        return frame091.Amqp091FrameDecoder(midstream)

    def load_decoder(self, state: tuple[object, ...]) -> StreamDecoder:
        return frame091.Amqp091FrameDecoder.load(state)

    def assembler(self, keeping: bool) -> Assembler:
        return message091.Amqp091MessageAssembler(keeping)

    def load_assembler(self, state: tuple[object, ...]) -> Assembler:
        return message091.Amqp091MessageAssembler.load(state)

    def says_client(self, frame: Frame) -> i64:
        body = frame.body
        if isinstance(body, Method):
            definition = body.definition()
            if definition.from_client != definition.from_server:
                return 1 if definition.from_client else 0
        return -1


PROTOCOLS: Final[dict[str, Protocol]] = {
    "amqp10": _Amqp10("amqp10", "C-HDR-FORM"),
    "amqp091": _Amqp091("amqp091", "F-PROTO-HDR"),
}
"""By name. The order is that in which they are believed where octets could be either's."""

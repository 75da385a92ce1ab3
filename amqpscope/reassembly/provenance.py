"""Where octets of a stream come from."""

from dissectors.wire import i64

__all__ = ["Provenance"]


class Provenance:
    """The packet that carried octets of a stream first, and what its sender had acknowledged by then."""

    def __init__(self, packet: i64, time: i64, acknowledged: i64) -> None:
        # Its number in the capture.
        self.packet: i64 = packet
        # When it was captured, in nanoseconds since 1970.
        self.time: i64 = time
        # How many octets of the other stream it acknowledged, -1 if it did not say.
        self.acknowledged: i64 = acknowledged

    def dump(self) -> tuple[int, int, int]:
        """Its three values, in the order in which they are given to make one."""
        return (int(self.packet), int(self.time), int(self.acknowledged))

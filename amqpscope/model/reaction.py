"""What the other peer did about a fault."""

from typing import Final

from dissectors.wire import i64

__all__ = ["NOT_AWAITED", "NO_REACTION", "OTHER_ERROR", "Reaction"]


class Reaction:
    """The error with which the other peer answered a fault, or why there is none. It does not change."""

    def __init__(
        self,
        frame: str,
        condition: str = "",
        after: i64 = 0,
        packet: i64 = 0,
        other_error: bool = False,
        awaited: bool = True,
    ) -> None:
        # The name of the frame that has the error, "" if there is none.
        self.frame: str = frame
        # Its error condition, "" if it has none.
        self.condition: str = condition
        # Nanoseconds after the offending frame; negative if the fault is a silence that lasted too long.
        self.after: i64 = after
        # The packet of its first octet.
        self.packet: i64 = packet
        # The other peer gave no error for this: it answered the frame, or its error was for something else.
        self.other_error: bool = other_error
        # A reaction was looked for at all: not where only several connections show the fault.
        self.awaited: bool = awaited

    def dump(self) -> tuple[str, str, int, int, bool, bool]:
        """Its values, in the order in which they are given to make one."""
        return (
            self.frame,
            self.condition,
            int(self.after),
            int(self.packet),
            self.other_error,
            self.awaited,
        )


NO_REACTION: Final = Reaction("")
"""The other peer gave no error."""

OTHER_ERROR: Final = Reaction("", "", 0, 0, True)
"""The other peer gave an error, and not for this."""

NOT_AWAITED: Final = Reaction("", "", 0, 0, False, False)
"""No reaction was looked for."""

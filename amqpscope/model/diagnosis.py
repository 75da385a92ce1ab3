"""A diagnosis: who waits for whom on a connection, since when, and what proves it. It accuses nobody."""

from typing import Any

__all__ = ["Diagnosis"]


class Diagnosis:
    """One diagnosis of a capture.

    code: `diag/...`. subject: what it is about, such as the name of a link, "" for the connection.
    whose_move: who has to act to end it: `client`, `server`, or "" if it is neither. packet: since which
    packet it holds; ended_packet: the packet that ended it, 0 if nothing did. seconds: how long it lasted,
    -1 if time does not matter. connection: the id. figures: the numbers and names that prove it. message:
    the sentence. packets: the frames to look at, in order.
    """

    def __init__(
        self,
        code: str,
        subject: str,
        whose_move: str,
        packet: int,
        ended_packet: int,
        seconds: float,
        connection: str,
        figures: dict[str, Any],
        message: str,
        packets: list[int],
    ) -> None:
        self.code = code
        self.subject = subject
        self.whose_move = whose_move
        self.packet = packet
        self.ended_packet = ended_packet
        self.seconds = seconds
        self.connection = connection
        self.figures = figures
        self.message = message
        self.packets = packets

    def json(self) -> dict[str, Any]:
        """As an object of the JSON outputs."""
        return {
            "code": self.code,
            "subject": self.subject or None,
            "whose_move": self.whose_move or None,
            "packet": self.packet or None,
            "ended_packet": self.ended_packet or None,
            "seconds": None if self.seconds < 0 else round(self.seconds, 3),
            "connection": self.connection,
            "figures": self.figures,
            "message": self.message,
            "packets": self.packets,
        }

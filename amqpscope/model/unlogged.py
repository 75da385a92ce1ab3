"""How a frame that was made of the fields in a log says what the log does not hold: by a `Problem`."""

from typing import Final

from dissectors.interface import Frame

__all__ = ["PAYLOAD", "UNLOGGED", "is_payload_unknown"]

UNLOGGED: Final = "unlogged"
"""The code of the problem that the log does not hold a value. It accuses nobody."""

PAYLOAD: Final = "payload"
"""What stands in the path of a problem for the payload, in the place of a field."""


def is_payload_unknown(frame: Frame) -> bool:
    """Whether a log does not say how many octets of payload the frame had."""
    path = f"{frame.name}.{PAYLOAD}"
    return any(problem.code == UNLOGGED and problem.path == path for problem in frame.problems)

"""How a frame that was made of the fields in a log says what the log does not hold: by a `Problem`."""

from typing import Final

from dissectors.interface import Frame

__all__ = ["PAYLOAD", "UNLOGGED", "is_payload_unlogged"]

UNLOGGED: Final = "unlogged"
"""The code of the problem that the log does not hold a value. It accuses nobody."""

PAYLOAD: Final = "payload"
"""What stands in the path of a problem for the payload, in the place of a field."""


def is_payload_unlogged(frame: Frame) -> bool:
    """Whether a log has no payload of the frame. It may say how large it was (`Frame.uncaptured`)."""
    if not frame.problems:
        return False
    path = f"{frame.name}.{PAYLOAD}"
    return any(problem.code == UNLOGGED and problem.path == path for problem in frame.problems)

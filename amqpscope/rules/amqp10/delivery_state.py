"""Delivery states: an outcome, or the part of a message that was received (messaging.xml,
"delivery-state")."""

from dissectors.amqp10.composite import Composite
from dissectors.amqp10.messaging import Received
from dissectors.amqp10.transactions import Declared

__all__ = ["is_outcome", "position", "position_text", "quoted", "state_name"]


def is_outcome(state: object) -> bool:
    """Whether a delivery state is a terminal state of messaging.xml."""
    return (
        isinstance(state, Composite)
        and "outcome" in state.definition().provides
        and not isinstance(state, Declared)
    )


def position(state: object) -> tuple[int, int] | None:
    """The position at which the state received says that a message continues; None for other states."""
    if state is None:
        return (0, 0)
    if isinstance(state, Received) and state.section_number is not None and state.section_offset is not None:
        return (int(state.section_number), int(state.section_offset))
    return None


def position_text(place: tuple[int, int]) -> str:
    """A position, for a message."""
    return f"section {place[0]}, octet {place[1]}"


def state_name(state: object) -> str:
    """The name of a state, for a message."""
    return state.definition().name if isinstance(state, Composite) else "no state"


def quoted(state: object) -> str:
    """The name of a state as it is quoted in a message; of anything else `no state`, without quotes."""
    return f"`{state.definition().name}`" if isinstance(state, Composite) else "no state"

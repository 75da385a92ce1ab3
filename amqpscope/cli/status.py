"""Exit statuses, the same for every command, and the signals that end a command."""

import enum
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # `--version` and `--help` load no analysis
    from amqpscope.policy.judging import CaptureOutcome

__all__ = ["ENDING", "Status", "of_outcome", "worst"]


class Status(enum.IntEnum):
    """What the shell is reported."""

    FINE = 0
    FINDINGS = 1
    FAILURE = 2
    NO_AMQP = 3
    INTERRUPTED = 130
    TERMINATED = 143


ENDING: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that ask a program to end. Windows has no SIGHUP."""

# With several inputs the status of the first of these that occurred is the whole run's.
_ORDER = (Status.INTERRUPTED, Status.FAILURE, Status.FINDINGS, Status.NO_AMQP, Status.FINE)


def of_outcome(outcome: "CaptureOutcome") -> Status:
    """The status for what became of a capture."""
    from amqpscope.policy.judging import CaptureOutcome

    return {
        CaptureOutcome.fine: Status.FINE,
        CaptureOutcome.findings: Status.FINDINGS,
        CaptureOutcome.failure: Status.FAILURE,
        CaptureOutcome.empty: Status.NO_AMQP,
    }[outcome]


def worst(statuses: list[Status]) -> Status:
    """One status for several inputs."""
    for status in _ORDER:
        if status in statuses:
            return status
    return Status.FINE

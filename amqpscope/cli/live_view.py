"""Who looks at a live capture: readers of lines, or somebody before a full screen."""

from abc import ABC, abstractmethod

from amqpscope.cli.output import say
from amqpscope.input.live import Batch
from amqpscope.report.rule_counts import RuleCounts

__all__ = ["LiveView"]


class LiveView(ABC):
    """Is given what a watch brings. patience: seconds in which it wants to be looked at again.

    left_out, verdicts_left_out: frames and verdicts not shown, since nobody could have read them in time.
    """

    patience = 0.25

    def __init__(self) -> None:
        self.left_out = 0
        self.verdicts_left_out = 0

    @property
    @abstractmethod
    def gone(self) -> bool:
        """Whether nobody looks any more."""

    def begin(self, source: str) -> None:
        """What is captured is kept from now on, and signals end it well."""
        say(f"listening on {source}; press Ctrl-C to stop")

    @abstractmethod
    def write(self, batch: Batch, behind: bool) -> None:
        """What one step has brought. behind: packets wait meanwhile, so what takes long is left out."""

    def tell(self, text: str) -> None:
        """Something that is not of the capture: what happened to an interface, or to a file."""
        say(text)

    @abstractmethod
    def end(self, conclusion: str, counts: RuleCounts) -> None:
        """Nothing more comes: what there was, and the findings counted."""

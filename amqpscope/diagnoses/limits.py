"""The limits from which on diagnoses are made: the usual ones, or those of a configuration."""

from collections.abc import Mapping

from amqpscope.diagnoses.declaration import KINDS, Kind

__all__ = ["Limits"]


class Limits:
    """The limits of a run. given: the configured ones, by `code.limit` as in `credit-none.seconds`."""

    def __init__(self, given: Mapping[str, float]) -> None:
        # By code and name.
        self.values: dict[str, dict[str, float]] = {
            kind.code: {
                limit.name: given.get(f"{kind.name}.{limit.name}", limit.value) for limit in kind.limits
            }
            for kind in KINDS.values()
        }

    def of(self, kind: Kind, name: str = "seconds") -> float:
        """A limit of a kind of diagnosis."""
        return self.values[kind.code][name]

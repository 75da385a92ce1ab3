"""The limits from which on diagnoses are made: the usual ones, or those of a configuration."""

from collections.abc import Mapping

from amqpscope.diagnoses.declaration import Kind

__all__ = ["Limits"]


class Limits:
    """The limits of a run. given: the configured ones, by `code.limit` as in `credit-none.seconds`."""

    def __init__(self, given: Mapping[str, float]) -> None:
        self.given: Mapping[str, float] = given
        # By code and name, of the kinds that were asked for.
        self.values: dict[str, dict[str, float]] = {}

    def of(self, kind: Kind, name: str = "seconds") -> float:
        """A limit of a kind of diagnosis."""
        values = self.values.get(kind.code)
        if values is None:
            values = self.values[kind.code] = {
                limit.name: self.given.get(f"{kind.name}.{limit.name}", limit.value) for limit in kind.limits
            }
        return values[name]

"""State diagrams as tables: (state, input) to the next state.

A cell is a transition that the specification allows, so an input without a cell is illegal in that state. A
second table, the repairs, defines how an illegal input is treated, so that one fault does not make every
later frame a fault. The repairs are not part of the specification.
"""

__all__ = ["Machine", "Table"]

Table = dict[tuple[str, str], str]


class Machine:
    """One state diagram."""

    def __init__(
        self, start: str, drawn: Table, implied: Table, repairs: Table, plain: dict[str, str]
    ) -> None:
        # The state before any input.
        self.start: str = start
        # The cells that the specification draws, or describes in words instead of a diagram.
        self.drawn: Table = drawn
        # The cells that follow from the text beside the diagram.
        self.implied: Table = implied
        # All these cells.
        self.cells: Table = {**drawn, **implied}
        # How illegal inputs are treated.
        self.repairs: Table = repairs
        # Inputs that count as another input if they have no cell of their own, such as a close with an error.
        self.plain: dict[str, str] = plain
        # The legal inputs of each state, and what follows each input that changes the state: looked up for
        # every frame, so worked out once.
        self._legal: dict[str, frozenset[str]] = {}
        self._after: dict[str, dict[str, str]] = {}
        inputs = {action for _, action in (*self.cells, *repairs)} | set(plain)
        for state in {start, *self.cells.values(), *repairs.values(), *(one for one, _ in self.cells)}:
            self._legal[state] = frozenset(one for one in inputs if self._has_cell(state, one))
            self._after[state] = {one: self._following(state, one) for one in inputs}

    def allows(self, state: str, action: str) -> bool:
        """Whether an input is legal in a state: whether it has a cell."""
        legal = self._legal.get(state)
        return legal is not None and action in legal

    def after(self, state: str, action: str) -> str:
        """The state after an input: by its cell; if it has none, by the repairs; otherwise unchanged."""
        following = self._after.get(state)
        return state if following is None else following.get(action, state)

    def _has_cell(self, state: str, action: str) -> bool:
        return (state, action) in self.cells or (state, self.plain.get(action, action)) in self.cells

    def _following(self, state: str, action: str) -> str:
        following = self.cells.get((state, action))
        if following is not None:
            return following
        plain = self.plain.get(action)
        if plain is not None:
            return self._following(state, plain)
        return self.repairs.get((state, action), state)

"""State diagrams as tables: (state, input) to the next state.

A cell stands for what the specification allows, so an input that has no cell is illegal in that state. What
an illegal input is taken to mean stands in a second table, the repairs, so that one fault does not make
everything after it a fault: the repairs are not the specification's.
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
        # The cells that the specification draws, or says in words in place of a diagram.
        self.drawn: Table = drawn
        # The cells that follow from its words beside the diagram.
        self.implied: Table = implied
        # All these cells.
        self.cells: Table = {**drawn, **implied}
        # What illegal inputs are taken to mean.
        self.repairs: Table = repairs
        # Inputs that are another one where they have no cell of their own, as a close with an error.
        self.plain: dict[str, str] = plain

    def allows(self, state: str, action: str) -> bool:
        """Whether an input is legal in a state: whether it has a cell."""
        if (state, action) in self.cells:
            return True
        plain = self.plain.get(action)
        return plain is not None and (state, plain) in self.cells

    def after(self, state: str, action: str) -> str:
        """The state after an input: by its cell; if it has none, by the repairs; else unchanged."""
        following = self.cells.get((state, action))
        if following is not None:
            return following
        plain = self.plain.get(action)
        if plain is not None:
            return self.after(state, plain)
        return self.repairs.get((state, action), state)

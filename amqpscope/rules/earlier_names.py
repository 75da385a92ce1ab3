"""Earlier names of rules that the user gave. Whoever ends a run loads no rule to ask for them."""

__all__ = ["note_renamed", "take_renamed"]

# Earlier names that the user gave, with the current ids of the rules.
_given: dict[str, str] = {}


def note_renamed(old: str, new: str) -> None:
    """The user gave the earlier name of the rule that is now called `new`."""
    _given[old] = new


def take_renamed() -> list[str]:
    """A sentence for each earlier name that the user gave, once."""
    notes = [f"{old}: this rule is now called {new}" for old, new in _given.items()]
    _given.clear()
    return notes

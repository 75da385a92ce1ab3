"""Numbers of things in sentences."""

__all__ = ["are", "count", "were"]


def count(number: int, noun: str) -> str:
    """`1 link`, `2 links`, `1 delivery`, `0 deliveries`."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}{'es' if noun.endswith(('s', 'sh', 'ch')) else 's'}"


def are(number: int) -> str:
    """The verb behind `count`."""
    return "is" if number == 1 else "are"


def were(number: int) -> str:
    """The verb of the past behind `count`."""
    return "was" if number == 1 else "were"

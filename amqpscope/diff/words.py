"""A difference in words: what it is about, and what is said in either run."""

from amqpscope.diff.comparison import Difference
from amqpscope.diff.forms import CanonicalFrame
from amqpscope.diff.transcript import CONFIRMS, DELIVERIES, GETS, OUTCOMES, RETURNS, SETTLEMENTS

__all__ = ["NOTHING", "said", "subject", "values"]

NOTHING = "nothing"

_OF_EACH = {
    OUTCOMES: "the outcome that the {peer} sends for delivery {place}",
    SETTLEMENTS: "the outcome that the sender, the {peer}, sends for delivery {place}",
    CONFIRMS: "the answer of the {peer} to publish {place}",
    GETS: "the outcome that the {peer} sends for the message that it got {place} times",
    DELIVERIES: "delivery {place} of the {peer}",
    RETURNS: "message {place} that the {peer} returns",
}


def subject(difference: Difference) -> str:
    """What it is about, and where, without session or channel where a connection has only one."""
    parts = difference.where[1:]
    inner = [f"{part.what} {part.label}" for part in reversed(parts)]
    if len(inner) > 1 and len(difference.where[0].parts) == 1:
        inner.pop()
    if difference.part:
        where = f" of {' of '.join(inner[1:])}" if len(inner) > 1 else ""
        return f"{inner[0]}{where}"
    where = f" on {' of '.join(inner)}" if inner else ""
    reported = _OF_EACH.get(difference.strand)
    if reported is not None:
        return reported.format(peer=difference.peer, place=difference.place) + where
    form = difference.a or difference.b
    names = {one.name for one in (difference.a, difference.b) if one is not None}
    what = form.name if form is not None and len(names) == 1 else "frame"
    return f"the {difference.peer}'s {what}{where}"


def said(form: CanonicalFrame | None, difference: Difference) -> str:
    """What is said in one run, where the two do not say the same thing."""
    if form is None:
        return NOTHING
    if difference.part:
        return "there"
    if difference.strand in (OUTCOMES, SETTLEMENTS, CONFIRMS, GETS) or not form.entries:
        return form.name
    reported = ", ".join(f"{entry.path} {entry.text}" for entry in form.entries[:3])
    return f"{form.name} ({reported})"


def values(difference: Difference) -> list[tuple[str, str, str]]:
    """What differs: the field, "" for all of it, and what each run has."""
    if difference.changes:
        return [
            (
                change.path,
                change.a if change.a is not None else "not set",
                "not set" if change.b is None else change.b,
            )
            for change in difference.changes
        ]
    return [("", said(difference.a, difference), said(difference.b, difference))]

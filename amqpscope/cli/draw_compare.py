"""`amqpscope draw --compare`: two captures side by side, with the differences that `amqpscope diff` finds."""

from pathlib import Path

from amqpscope.cli.inputs import CaptureArgument, refuse_taken
from amqpscope.cli.output import meter, notes_to_stderr, say
from amqpscope.cli.status import Status
from amqpscope.diff.comparison import Difference, Meeting, compare
from amqpscope.diff.words import subject, values
from amqpscope.draw.compared import ComparedLadder, DifferenceMark, comparison_html, comparison_svg
from amqpscope.errors import CaptureError, FilterError
from amqpscope.input.replay import ReplayableCapture
from amqpscope.limits import MAX_DRAWN_ROWS
from amqpscope.policy.policy import Policy
from amqpscope.policy.replacement import replace_text
from dissectors.wording import count

__all__ = ["draw_comparison"]


def draw_comparison(captures: list[CaptureArgument], out: str) -> Status:
    """Draw the first pair of connections that differ, or the first pair of all, into a file.

    Raises CaptureError, FilterError, OutputError.
    """
    suffix = Path(out).suffix.lower()
    if suffix not in (".svg", ".html"):
        raise FilterError(f"--output {out}: with --compare, the name must end in .svg or .html")
    if len(captures) != 2:
        raise FilterError(f"--compare: needs two captures, not {len(captures)}")
    for one in captures:
        if one.refusal:
            raise CaptureError(one.refusal)
        refuse_taken("--output", out, one.files)
    first, second = (
        ReplayableCapture(one.paths, via=one.via, dialect=one.dialect, secrets=one.secrets, meter=meter)
        for one in captures
    )
    with first as a, second as b:
        comparison = compare(a, b, Policy())
        pairs = [one for one in comparison.meetings if one.a is not None and one.b is not None]
        if not pairs:
            say(f"{a.name} and {b.name}: no connection of the one belongs to a connection of the other")
            return Status.NO_AMQP
        chosen = next((one for one in pairs if not one.same), pairs[0])
        differences = sorted(chosen.differences, key=lambda one: one.when)[:MAX_DRAWN_ROWS]
        ladders = [_ladder(material, chosen, differences, at) for at, material in enumerate((a, b))]
        mishaps = [*a.mishaps, *b.mishaps]
    left, right = ladders
    if suffix == ".svg":
        replace_text(out, comparison_svg(left, right))
    else:
        replace_text(out, comparison_html(left, right, [_sentence(one) for one in differences]))
    if mishaps:
        notes_to_stderr(f"{a.name} and {b.name}", mishaps)
        return Status.FAILURE
    _report(out, chosen, len(pairs))
    return Status.FINE


def _ladder(
    material: ReplayableCapture, chosen: Meeting, differences: list[Difference], at: int
) -> ComparedLadder:
    """The ladder of one run. at: 0 for the first run, 1 for the second."""
    transcript = chosen.b if at else chosen.a
    assert transcript is not None
    marks: dict[int, DifferenceMark] = {}
    for number, one in enumerate(differences):
        form, frame = (one.b, one.frame_b) if at else (one.a, one.frame_a)
        if form is not None:
            both = one.a is not None and one.b is not None
            marks.setdefault(frame, DifferenceMark(number, "changed" if both else "only"))
    with material.capture(judge=False) as capture:
        ladder = ComparedLadder.of(capture, int(transcript.connection.stream), marks)
    assert ladder is not None
    return ladder


def _sentence(difference: Difference) -> str:
    """`the client's attach on link q: initial-delivery-count 0 in A, 1 in B`."""
    parts = [f"{field} {one} in A, {other} in B".lstrip() for field, one, other in values(difference)]
    return f"{subject(difference)}: {'; '.join(parts)}"


def _report(out: str, chosen: Meeting, pairs: int) -> None:
    """Say what was drawn."""
    assert chosen.a is not None and chosen.b is not None
    numbers = f"connection {chosen.a.connection.stream} of A and {chosen.b.connection.stream} of B"
    least = "" if chosen.exact else "at least "
    text = f"{out}: {numbers}, {least}{count(chosen.count, 'difference')}"
    if pairs > 1:
        text += f"; {count(pairs - 1, 'other pair')} not drawn"
    say(text)

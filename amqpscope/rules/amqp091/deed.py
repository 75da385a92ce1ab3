"""Findings about what a client asked for, or how a server answered, beside what was known of it before."""

from amqpscope.finding import Finding
from amqpscope.model import Spot
from amqpscope.tracking.amqp091.deeds import Deed
from dissectors.wire import i64

__all__ = ["about_answer", "about_request", "shown"]

# Characters of a name that a sentence shows.
_SHOWN = 60


def about_request(
    rule: str, certainty: i64, message: str, deed: Deed, earlier: Deed | None = None
) -> Finding:
    """The client is at fault: it asked for this. earlier: what was known by.

    The reaction is how the server answered: by a close, or by no error.
    """
    finding = _finding(rule, certainty, message, deed, deed.spot, earlier)
    answer = deed.answer
    if deed.outcome == "closed" and answer is not None:
        finding.reaction = answer.name
        finding.reaction_condition = str(int(deed.code))
        finding.reaction_after = answer.time - deed.spot.time
        finding.reaction_packet = answer.packet
    elif deed.outcome:
        finding.other_error = True
    finding.around = deed.around
    finding.around_whole = len(deed.around)
    return finding


def about_answer(rule: str, certainty: i64, message: str, deed: Deed, earlier: Deed | None = None) -> Finding:
    """The server is at fault: it answered this so. earlier: what was known by."""
    spot = deed.answer
    if spot is None:
        spot = deed.spot
    finding = _finding(rule, certainty, message, deed, spot, earlier)
    if deed.spot.packet not in finding.others:
        finding.others.insert(0, int(deed.spot.packet))
    finding.around = deed.answer_around
    finding.around_whole = len(deed.answer_around)
    return finding


def _finding(
    rule: str, certainty: i64, message: str, deed: Deed, spot: Spot, earlier: Deed | None
) -> Finding:
    evidence: dict[str, object] = {}
    for name, value in (
        ("queue", deed.queue),
        ("exchange", deed.exchange),
        ("destination", deed.destination),
        ("consumer_tag", deed.tag),
    ):
        if value:
            evidence[name] = value
    if deed.code > 0:
        evidence["reply_code"] = int(deed.code)
    others: list[int] = []
    if earlier is not None:
        if earlier.connection is not deed.connection:
            evidence["other_connection"] = earlier.connection.id
        if earlier.connection.capture == deed.connection.capture:
            others.append(int((earlier.answer or earlier.spot).packet))
    finding = Finding(rule, certainty, message, deed.connection, spot, evidence, others)
    finding.addresses = tuple([name for name in (deed.queue, deed.exchange, deed.destination) if name])
    return finding


def shown(name: str) -> str:
    """A name of a queue or an exchange, quoted."""
    return repr(name if len(name) <= _SHOWN else name[:_SHOWN] + "...")

"""Findings as text: what was seen, what the rule demands, the state before, the answer, the frames around.

    error amqp10/L-CREDIT by the client in packet 17: a delivery is sent with link-credit 0: ...
        rule      No new message may be started while link-credit is zero or below. (illegal)
        source    transport.xml section links > Flow Control
        where     channel 0, link "orders" (client sends)
        before    link-credit 0, delivery-count 5
        answer    the server sent no error; the specification asks for amqp:link:transfer-limit-exceeded
            ...
         >>    17  0.000000 0 C→  0 transfer    #5 handle=0 10 octets body=amqp-value tag=b"t5"
            ...

Findings come while the capture is read and are shown by connection when it has ended, the worst first, so
only those that will be shown are kept. Of many findings, each connection's first one is shown with its frame,
and of each other rule one line.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord, FrameRef
from amqpscope.protocols import protocol_of
from amqpscope.report.cases import Cases, Shown
from amqpscope.report.finding_counts import STYLES, FindingCounts, kind, rank, urgency
from amqpscope.report.findings import evidence_of, expected_condition, link_name, message_of, overridden
from amqpscope.report.line import Line
from amqpscope.report.links import LinkNames
from amqpscope.report.printable import cut, in_quotes, printable
from amqpscope.report.suppressed import excuse
from amqpscope.report.timeline import Clock, FrameLines, FrameParts, Timeline, heading
from amqpscope.rules.peer_error import FIN, RST
from amqpscope.rules.profiles import habit_of, profile, weight
from amqpscope.rules.references import cited
from amqpscope.tracking.amqp10.identity import Link
from dissectors.wording import are, count

__all__ = [
    "Verdicts",
    "answer",
    "frames_around",
    "headline",
    "left_out",
    "remarks",
    "short_message",
    "why_possible",
    "worst_first",
]

_INDENT = "    "
_LABEL = 10
_MARK = 4  # columns before a frame's line: the mark of the offending one

_FULL = 5
"""Findings of a capture that are shown in full: as many as somebody reads."""

_CONNECTIONS = 20
"""Connections that are shown where there are more findings than that."""

_LONGEST = 300
"""Characters of one text of the wire that a line shows; JSON has all."""

_END = "end of stream"
"""What a finding has for a frame that says that something was never said."""

# Where the evidence says so, it is reported with the place and not as state.
_PLACE = ("offset", "path")

# Why a finding may yet be no fault, where its rule gives no reason of its own.
_NOT_READ = (
    "It is no fault if the {peer} had not yet read the last frames of the {other}. They had arrived at the "
    "{peer}'s host, but no frame of the {peer} shows that the {peer} had read them."
)
_RST_IN_DOUBT = (
    "The capture contains an RST or FIN that one peer may have accepted although the other had not sent it. "
    "From then on, the two peers may not have shared one connection."
)
_PRODUCT_UNKNOWN = (
    "Some products are known to do this, and the capture does not show which product the {peer} is."
)
_CLOCK_IN_DOUBT = (
    "The clock of the capturing machine was set back or stood still, so nobody knows how long the peers were "
    "silent."
)
_GARBLED_IN_DOUBT = (
    "The peer at fault had received a part of a damaged frame, and nobody knows what that frame was meant to "
    "say."
)
_BOUNDARY_IN_DOUBT = (
    "Octets before the frame were not captured, so amqpscope had to search for the next frame. What it found "
    "may be the content of a message."
)
_ANSWER_IN_DOUBT = (
    "Octets at the start of the connection were not captured. They may be the answer of a proxy or of a "
    "WebSocket server that the client spoke to first."
)
_BEGIN_IN_DOUBT = (
    "Both peers have sent a begin that has no answer yet. One begin may be meant as the answer to the other."
)
_ROLE_IN_DOUBT = (
    "Both peers have attached a link of this name in the same role. One attach may be meant as the answer to "
    "the other."
)
# What is in doubt, by the name that the evidence has for it.
_DOUBTS = {
    "rst_in_doubt": _RST_IN_DOUBT,
    "clock_in_doubt": _CLOCK_IN_DOUBT,
    "garbled_in_doubt": _GARBLED_IN_DOUBT,
    "boundary_in_doubt": _BOUNDARY_IN_DOUBT,
    "answer_in_doubt": _ANSWER_IN_DOUBT,
    "begin_in_doubt": _BEGIN_IN_DOUBT,
    "role_in_doubt": _ROLE_IN_DOUBT,
}


def why_possible(finding: Finding) -> str:
    """Why a finding is not certain, in one sentence."""
    for doubt, why in _DOUBTS.items():
        if doubt in finding.evidence:
            return why
    if "product_captured" in finding.evidence:
        return _PRODUCT_UNKNOWN.format(peer=finding.peer)
    if finding.connection.proxied and finding.peer == CLIENT and finding.spot.is_end():
        return (
            "A load balancer stands in front of the client: the load balancer may have ended the connection."
        )
    from amqpscope.rules.explanation import explanation  # reads the words of rules

    words = explanation(finding.rule)
    reason = _NOT_READ if words is None else words.excuse() or _NOT_READ
    return reason.format(peer=finding.peer, other=_other(finding))


class Verdicts:
    """Takes the findings of one capture that are to be shown; gives lines for them, connection by connection.

    most: findings of one rule by one peer of a connection that are kept and shown; the others are counted.
    full: all are shown in full, however many there are. file: how a command names the capture, so that the
    lines can name the next command; "" if no command can read it again.
    """

    def __init__(self, clock: Clock, most: int, full: bool = True, file: str = "") -> None:
        self.tally = FindingCounts()
        self._clock = clock
        self._cases = Cases(most, fold=not full)
        self._full = full
        self._file = file

    @property
    def brief(self) -> bool:
        """Whether there are too many findings to show all in full."""
        return not self._full and self._cases.kept > _FULL

    @property
    def of_several(self) -> bool:
        """Whether findings of several connections are shown in full, which takes more than a screen."""
        return not self.brief and len(worst_first(self._cases)) > 1

    def add(self, finding: Finding) -> None:
        """One more finding."""
        self.tally.add(finding)
        self._cases.add(finding)

    def lines(self) -> Iterator[tuple[Line, int]]:
        """Everything to be shown: lines, each with the columns before its continuation."""
        connections = worst_first(self._cases)
        most = _CONNECTIONS if self.brief else len(connections)
        for connection, shown in connections[:most]:
            yield [], -1
            yield heading(connection), 4
            timeline = Timeline(self._clock, 0, LinkNames())
            yield from self._briefly(shown, timeline) if self.brief else self._in_full(shown, timeline)
        if len(connections) > most:
            yield [], -1
            text = f"and {len(connections) - most} more connections (--full, or --connection, shows them)"
            yield [("note", text)], 4
        if self._cases.left_out:
            yield [], -1
            yield [("note", left_out(self._cases.left_out))], 4

    def _in_full(self, shown: list[Shown], timeline: Timeline) -> Iterator[tuple[Line, int]]:
        """The findings of one connection."""
        first = min(shown, key=lambda one: urgency(one.finding)).finding
        for finding, again, more, elsewhere in shown:
            yield from self._finding(finding, timeline, again)
            if finding is first and self._file:
                yield self._next(finding)
            if more:
                same = "in the same packets (--full)" if again else "in the same packet (--full)"
                where = "(--max-per-rule)" if elsewhere else same
                text = f"and {more} more of {finding.rule} by the {finding.peer} {where}"
                yield [("note", _INDENT + text)], 4

    def _briefly(self, shown: list[Shown], timeline: Timeline) -> Iterator[tuple[Line, int]]:
        """The same, of each rule and peer the first finding in a line; the most urgent with its frame."""
        more: dict[tuple[str, str], int] = {}
        for one in shown:
            key = (one.finding.rule, one.finding.peer)
            more[key] = more.get(key, 0) + one.more + one.again
        first = min((one for one in shown if not one.again), key=lambda one: urgency(one.finding)).finding
        for finding, again, _, _ in shown:
            if again:
                continue
            yield headline(finding), 4
            if finding is first:
                if not finding.certain:
                    yield _labelled("possible", why_possible(finding))
                yield _labelled("answer", answer(finding))
                yield from self._frames(finding, timeline, False)
                if self._file:
                    yield self._next(finding)
            further = more[finding.rule, finding.peer]
            if further:
                yield [("note", f"{_INDENT}and {further} more of {finding.rule} by the {finding.peer}")], 4

    def _next(self, finding: Finding) -> tuple[Line, int]:
        """The command that explains a finding."""
        return _labelled("next", f"amqpscope why {self._file} {finding.packet}")

    def _finding(self, finding: Finding, timeline: Timeline, again: bool) -> list[tuple[Line, int]]:
        """One finding. again: the rule is explained already."""
        from amqpscope.rules.catalogue import rule  # brings the words of rules

        row = rule(finding.rule, finding.assessment.edition)
        shown: list[tuple[Line, int]] = [([], -1), (headline(finding), 4)]
        if not finding.certain and not again:
            shown.append(_labelled("possible", why_possible(finding)))
        if finding.assessment.profile and not again:
            shown.append(_labelled("profile", _habit(finding)))
        before = overridden(finding)
        if before and not again:
            level = finding.assessment.level
            shown.append(_labelled("severity", f"{level} by the configuration, {before} by the rule itself"))
        if not again:
            shown.append(_labelled("rule", f"{printable(row.text)} ({row.requirement})"))
            shown.append(_labelled("source", cited(row.source)))
        for label, text in (("where", _where(finding)), ("before", _before(finding))):
            if text:
                shown.append(_labelled(label, text))
        shown.append(_labelled("answer", answer(finding)))
        shown += self._frames(finding, timeline, True)
        return shown

    def _frames(self, finding: Finding, timeline: Timeline, around_it: bool) -> list[tuple[Line, int]]:
        """The offending frame and, with `around_it`, the frames around it."""
        shown: list[tuple[Line, int]] = []
        made: Any = finding.around_made
        if made is None:
            made = frames_around(finding.spot, finding.around, finding.around_links)
        missing = finding.frame == _END
        for at_fault, direction, parts in made:
            if not at_fault and not around_it:
                continue
            frame = FrameLines.of(parts)
            if missing and frame.packet > finding.packet:
                shown.append((self._end(finding), -1))
                missing = False
            # Who is the client may be known only now. What is wrong with the frame is the finding itself.
            frame.by_client = finding.connection.peer(direction) == CLIENT
            line, _ = timeline.assembled(frame)[0]
            mark = ">>" if at_fault else ""
            shown.append(([("problem", f"{mark:>{_MARK}}"), *line], -1))
        if missing:
            shown.append((self._end(finding), -1))
        return shown

    def _end(self, finding: Finding) -> Line:
        """Where frames end and something is missing, as if it were one more frame."""
        time = self._clock.show(finding.time)
        columns = f"{finding.packet:>5} {time:>9} {finding.connection.stream} "
        way = "C→ " if finding.peer == CLIENT else " ←S"
        mark = ("problem", f"{'>>':>{_MARK}}")
        return [mark, ("dim", columns), (finding.peer, way), ("", "   "), ("end", _END)]


def frames_around(
    spot: FrameRef, records: Sequence[FrameRecord], links: Sequence[object]
) -> list[tuple[bool, int, FrameParts]]:
    """The frames around the frame at fault, `spot`, as plain values; links: their links, as far as known.

    Of each frame: whether it is the one at fault, its direction, and what is shown of it. They were judged in
    the order of what the peers could know; shown they are as they were captured.
    """
    known = [one if isinstance(one, Link) else None for one in links]
    known += [None] * (len(records) - len(known))
    around = sorted(zip(records, known, strict=True), key=lambda pair: int(pair[0].packet))
    at_fault = spot.among([record for record, _ in around])
    timeline = Timeline(Clock("r"), 0, LinkNames())
    return [
        (at == at_fault, int(record.direction), timeline.made(record, link).parts())
        for at, (record, link) in enumerate(around)
    ]


def headline(finding: Finding) -> Line:
    """Who broke which rule where, in one line."""
    return [
        (STYLES[weight(finding)], f"{kind(finding)} {finding.rule}"),
        ("", " by the "),
        (finding.peer, finding.peer),
        ("", f" in packet {finding.packet}: {short_message(finding)}"),
    ]


def left_out(number: int) -> str:
    """What a report for people says of findings that are too many to be shown."""
    return f"{count(number, 'more finding')} {are(number)} counted only (--format ndjson has all)"


def short_message(finding: Finding) -> str:
    """The finding in one sentence, safe to show, its values cut where they are long."""
    return _short(message_of(finding))


def worst_first(cases: Cases) -> list[tuple[Connection, list[Shown]]]:
    """The connections with what is to be shown of each, the worst connections and findings first."""
    connections = list(cases.connections())
    for _, shown in connections:
        shown.sort(key=lambda one: rank(one.finding))
    return sorted(connections, key=lambda one: min(urgency(each.finding) for each in one[1]))


def remarks(finding: Finding) -> list[str]:
    """What else is to be said of what it weighs, a sentence each: why it is only possible, a habit."""
    reported = [] if finding.certain else [why_possible(finding)]
    if finding.assessment.profile:
        reported.append(f"{_habit(finding)}.")
    before = overridden(finding)
    if before:
        reported.append(
            f"The configuration makes it {_a(finding.assessment.level)}, the rule makes it {_a(before)}."
        )
    if finding.assessment.suppressed_by:
        reported.append(excuse(finding))
    return reported


def _a(severity: str) -> str:
    return f"an {severity}" if severity == "error" else f"a {severity}"


def _habit(finding: Finding) -> str:
    """Why a finding is a note only: what the product is known to do, and where that is to be read."""
    habit = habit_of(finding)
    name = finding.assessment.profile
    if habit is None:
        return name
    return f"{name}: {profile(name).product} {habit.does} ({habit.source})"


def _other(finding: Finding) -> str:
    return SERVER if finding.peer == CLIENT else CLIENT


def _labelled(label: str, text: str) -> tuple[Line, int]:
    return ([("key", f"{_INDENT}{label:<{_LABEL}}"), ("", text)], len(_INDENT) + _LABEL)


def _short(text: str) -> str:
    return cut(printable(text[: 2 * _LONGEST]), _LONGEST)


def _where(finding: Finding) -> str:
    """Channel, link, delivery, and the other packets that matter."""
    parts = []
    channel = finding.channel
    if channel >= 0:
        parts.append(f"channel {channel}")
    if finding.link_sender:
        parts.append(f"link {in_quotes(link_name(finding), _LONGEST)} ({finding.link_sender} sends)")
    if finding.delivery_id >= 0:
        term = protocol_of(finding.connection.protocol).terms.get("delivery-id", "delivery")
        parts.append(f"{term.removesuffix('-id')} {finding.delivery_id}")
    offset = finding.evidence.get("offset")
    path = finding.evidence.get("path")
    if isinstance(offset, int) and isinstance(path, str):
        in_frame = finding.frame != "transfer" or not path or path.startswith("transfer")
        parts.append(f"octet {offset} of the {'frame' if in_frame else 'message'}")
    packets = [str(packet) for packet in sorted({*finding.others}) if 0 < packet != finding.packet]
    if packets:
        parts.append(f"see also packet{'s' if len(packets) > 1 else ''} {', '.join(packets)}")
    return ", ".join(parts)


def _before(finding: Finding) -> str:
    """The state before the frame, by the specification's names."""
    return ", ".join(
        f"{printable(name.replace('_', '-'))} {_value(value)}"
        for name, value in evidence_of(finding).items()
        if name not in _PLACE
    )


def _value(value: object) -> str:
    if isinstance(value, list):
        return _short(", ".join(str(item) for item in value)) or "none"
    if isinstance(value, bool):
        return str(value).lower()
    return _short(str(value))


def answer(finding: Finding) -> str:
    """What the other peer did, and what a correct one answers."""
    expected, named = expected_condition(finding)
    other = _other(finding)
    reaction = finding.reaction
    condition = reaction.condition
    wished = printable(expected.replace("to close the socket", "the socket to be closed"))
    due = f"; the specification {'asks for' if named else 'names no answer,'} {wished}"
    if not named:
        due += " would fit"
    if not expected:
        due = ""
    if not reaction.frame:
        if not reaction.awaited and not reaction.other_error:
            return (
                f"the answer of the {other} is not known, because this finding needs the whole capture{due}"
            )
        return f"the {other} gave no error {'for this' if reaction.other_error else 'afterwards'}{due}"
    after = _after(finding)
    if reaction.frame in (FIN, RST) and reaction.after < 0:
        before = _duration(-int(reaction.after) / 1_000_000_000)
        return (
            f"the {other} had given up already: {reaction.frame} in packet {reaction.packet}, "
            f"{before} before this frame"
        )
    if reaction.frame in (FIN, RST):
        due = ", as the specification asks" if named else ""
        return f"the {other} ended its stream with {reaction.frame} {after}{due}"
    if not condition:
        return f"the {other} gave no error afterwards, only {printable(reaction.frame)} {after}{due}"
    wanted = expected.split(" or ")
    if f"{reaction.frame} {condition}" in wanted:
        due = ", as the specification asks" if named else ""
    elif condition in wanted:
        due = ", the condition that the specification asks for" if named else ""
    condition = protocol_of(finding.connection.protocol).json_renderer().condition(condition)
    return f"the {other} sent {printable(reaction.frame)} with {_short(condition)} {after}{due}"


def _after(finding: Finding) -> str:
    """How long after the offending frame the reaction came: before it, if a silence had lasted too long."""
    seconds = int(finding.reaction.after) / 1_000_000_000
    if finding.time == 0 and seconds == 0:
        return f"later (packet {finding.reaction.packet})"  # nothing says when
    way = "before the frame at fault" if seconds < 0 else "later"
    return f"{_duration(abs(seconds))} {way} (packet {finding.reaction.packet})"


def _duration(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.2f} ms"
    return f"{seconds:.2f} s"

"""Why things ended, for people: of each connection first how it ended, then its sessions, links and channels.

    connection 0 ... was closed by the server with 501
       24  0.412492 0  ←S 0 connection.close 501 "FRAME_ERROR ..."
      because  this was due for it: error amqp091/F-FRAME-SIZE by the client in packet 23: ...
         23  0.411635 0 C→  1 body           9000 octets

A cause that is not sure begins with `perhaps`. Where there is none: `cause    the capture does not show why`.
"""

from collections.abc import Iterator

from amqpscope.report.line import Line
from amqpscope.report.printable import cut, printable
from amqpscope.report.summary_text import count
from amqpscope.report.timeline import heading
from amqpscope.report.verdict import headline
from amqpscope.why.endings import CauseStep, Ending, Following
from amqpscope.why.excerpts import ExplainedFrames, Wanted

__all__ = ["endings_lines", "wanted_of"]

_SHOWN = 20
"""Ends of a connection that are shown, besides those with an error, of which as many are."""

_FEW = 3
"""Connections of a capture of which everything is shown."""

_LONGEST = 100
_LABEL = 9


def wanted_of(found: list[tuple[Following, list[Ending]]]) -> dict[int, Wanted]:
    """The frames that are spoken of, by connection."""
    wanted = {}
    for following, endings in found:
        places = {ending.mark.place for ending in endings if ending.mark is not None}
        packets: set[int] = set()
        for ending in endings:
            for step in ending.steps:
                if step.mark is not None:
                    places.add(step.mark.place)
                if step.finding is not None:
                    places.add((int(step.finding.spot.direction), int(step.finding.offset)))
                if step.packet:
                    packets.add(step.packet)
        wanted[int(following.connection.stream)] = Wanted(places, packets)
    return wanted


def endings_lines(
    name: str,
    found: list[tuple[Following, list[Ending]]],
    excerpts: dict[int, ExplainedFrames],
    more: int,
    everything: bool,
    file: str,
) -> Iterator[tuple[Line, int]]:
    """All of it: lines, each with the columns before its continuation, -1 for one that may be cut.

    more: connections beyond those that were found. everything: what ended in order is shown, too; so it is of
    few connections. file: as a command names the capture, "" if none can.
    """
    everything = everything or len(found) <= _FEW
    yield [("rule", f"{printable(name)}: {count(len(found) + more, 'connection')}")], 4
    in_order = 0
    for following, endings in found:
        shown = _listed(endings)
        if not everything:
            shown = [ending for ending in shown if not ending.in_order]
            if not shown:
                in_order += 1
                continue
        yield from _connection(following, endings, shown, excerpts[int(following.connection.stream)], file)
    if in_order:
        yield [], -1
        text = f"{count(in_order, 'connection')} ended in order, or not at all (--connection shows one)"
        yield [("dim", text)], 4
    if more:
        yield [], -1
        text = f"and {count(more, 'connection')} more, not shown here (--connection shows one)"
        yield [("note", text)], 4


def _connection(
    following: Following, endings: list[Ending], listed: list[Ending], of: ExplainedFrames, file: str
) -> Iterator[tuple[Line, int]]:
    """One connection. listed: what is shown of its endings."""
    yield [], -1
    yield heading(following.connection), 4
    reported: set[tuple[int, int]] = set()
    for ending in listed:
        yield from _ending(ending, of, reported)
    still = len([ending for ending in endings[1:] if not ending.peer])
    if still:
        yield [("dim", f"{count(still, 'other')} have not ended")], 4
    left = len(endings) - len(listed) - still + following.more
    if left:
        yield [("dim", f"and {left} more, without an error (--format json)")], 4
    packet = _next_packet(following, listed)
    if packet and file:
        yield [("key", "next: "), ("", f"amqpscope why {file} {packet}")], 4


def _next_packet(following: Following, listed: list[Ending]) -> int:
    """The packet that explains most: of the finding that is the cause, else of the end; 0 for none."""
    for ending in listed:
        for step in ending.steps:
            if step.finding is not None:
                return int(step.finding.packet)
    first = next((ending for ending in listed if not ending.in_order), None)
    if first is None:
        return 0
    if first.mark is not None:
        return first.mark.packet
    return 0 if following.stream_end is None else following.stream_end.packet


def _listed(endings: list[Ending]) -> list[Ending]:
    """The connection, those with errors, and some others that ended."""
    errors = [id(ending) for ending in endings if ending.condition][:_SHOWN]
    others = [id(ending) for ending in endings if ending.peer and not ending.condition][:_SHOWN]
    chosen = {id(endings[0]), *errors, *others}
    return [ending for ending in endings if id(ending) in chosen]


def _ending(
    ending: Ending, excerpts: ExplainedFrames, reported: set[tuple[int, int]]
) -> list[tuple[Line, int]]:
    """reported: the frames whose causes are reported already, as of a session that ended with the
    connection."""
    condition = f": {cut(printable(ending.condition[: 2 * _LONGEST]), _LONGEST)}" if ending.condition else ""
    style = "error" if condition else ""
    shown: list[tuple[Line, int]] = [([("rule", ending.thing), (style, f" {ending.what}{condition}")], 4)]
    if ending.mark is not None:
        shown.append(excerpts.line(ending.mark.place, [("", "  ")]))
        reported.add(ending.mark.place)
    elif ending.steps and ending.steps[0].mark is not None and ending.steps[0].mark.place in reported:
        return shown
    for step in ending.steps:
        shown += _step(step, excerpts)
    if not ending.steps and ending.itself:
        shown.append(
            ([("key", f"  {'cause':<{_LABEL}}"), ("dim", "the capture does not show why")], 2 + _LABEL)
        )
    return shown


def _step(step: CauseStep, excerpts: ExplainedFrames) -> list[tuple[Line, int]]:
    label = "because" if step.sure else "perhaps"
    line: Line = [("key", f"  {label:<{_LABEL}}"), ("", printable(step.what))]
    finding = step.finding
    place = None if step.mark is None else step.mark.place
    if finding is not None:
        line += [("", ": "), *headline(finding)]
        place = excerpts.of_finding(finding) or place
    if place is None and step.packet:
        place = next(iter(excerpts.packets.get(step.packet, [])), None)
    shown: list[tuple[Line, int]] = [(line, 2 + _LABEL)]
    if place is not None:
        shown.append(excerpts.line(place, [("", "    ")]))
    return shown

"""Why things ended, for people: of each connection first how it ended, then its sessions, links and channels.

    connection 0 ... was closed by the server with 501
       24  0.412492 0  ←S 0 connection.close 501 "FRAME_ERROR ..."
      because  this was due for it: error amqp091/F-FRAME-SIZE by the client in packet 23: ...
         23  0.411635 0 C→  1 body           9000 octets

A cause that is not sure begins with `perhaps`. Where there is none: `cause    the capture does not show why`.
A diagnosis that explains no end of its connection stands below the ends, behind `also`.
"""

from collections.abc import Iterator

from amqpscope.model.diagnosis import Diagnosis
from amqpscope.protocols import protocol_of
from amqpscope.report.diagnosis_text import diagnosis_line, worst_first
from amqpscope.report.json_renderer import JsonRenderer
from amqpscope.report.line import Line
from amqpscope.report.printable import cut, printable
from amqpscope.report.timeline import heading
from amqpscope.report.verdict import headline
from amqpscope.why.capture_ends import CaptureEnds, ConnectionEnds
from amqpscope.why.diagnosed import shown_packets
from amqpscope.why.endings import CauseStep, Ending
from amqpscope.why.excerpts import ExplainedFrames, Wanted
from dissectors.wording import count

__all__ = ["endings_lines", "wanted_of"]

_SHOWN = 20
"""Ends of a connection that are shown, besides those with an error, of which as many are."""

_FEW = 3
"""Connections of a capture of which everything is shown."""

_OF_SEVERAL = 4
"""Ends that are shown of each connection, if more than a few failed."""

_ALIKE = 2
"""Ends that are shown of a connection on which nothing failed."""

_NUMBERS = 12
"""Connections whose numbers are listed."""

_LONGEST = 100
_LABEL = 9


def wanted_of(found: list[ConnectionEnds]) -> dict[int, Wanted]:
    """The frames that are spoken of, by connection."""
    wanted = {}
    for following, endings, beside, _ in found:
        places = {ending.mark.place for ending in endings if ending.mark is not None}
        packets = {packet for one in beside for packet in shown_packets(one)}
        for ending in endings:
            for step in ending.steps:
                if step.mark is not None:
                    places.add(step.mark.place)
                if step.finding is not None:
                    places.add((int(step.finding.spot.direction), int(step.finding.offset)))
                if step.diagnosis is not None:
                    packets.update(shown_packets(step.diagnosis))
                elif step.packet:
                    packets.add(step.packet)
        wanted[int(following.connection.stream)] = Wanted(places, packets)
    return wanted


def endings_lines(
    name: str, found: CaptureEnds, excerpts: dict[int, ExplainedFrames], everything: bool, file: str
) -> Iterator[tuple[Line, int]]:
    """All of it: lines, each with the columns before its continuation, -1 for one that may be cut.

    everything: what ended in order is shown, too; so it is of few connections. file: as a command names the
    capture, "" if none can.
    """
    connections = found.connections
    everything = everything or len(connections) <= _FEW
    yield [("rule", f"{printable(name)}: {count(len(connections) + found.more, 'connection')}")], 4
    in_order = 0
    failed: list[tuple[ConnectionEnds, list[Ending]]] = []
    alike: dict[tuple[object, ...], list[tuple[ConnectionEnds, list[Ending]]]] = {}
    for one in connections:
        shown = _listed(one.endings)
        if everything:
            failed.append((one, shown))
            continue
        shown = [ending for ending in shown if not ending.in_order]
        if not shown and not one.beside:
            in_order += 1
        elif one.beside or any(_is_failure(ending) for ending in shown):
            failed.append((one, shown))
        else:
            alike.setdefault(_pattern(shown), []).append((one, shown))
    for one, shown in failed:
        some = shown if len(failed) <= _FEW else shown[:_OF_SEVERAL]
        yield from _connection(one, some, excerpts[_stream(one)], file)
    for same in alike.values():
        one, shown = same[0]
        yield from _connection(one, shown[:_ALIKE], excerpts[_stream(one)], file)
        if len(same) > 1:
            numbers = ", ".join(str(_stream(other)) for other, _ in same[1 : 1 + _NUMBERS])
            numbers += ", …" if len(same) - 1 > _NUMBERS else ""
            yield [("dim", f"the same on {count(len(same) - 1, 'more connection')}: {numbers}")], 4
    for diagnosis in worst_first(found.others)[:_SHOWN]:
        yield [], -1
        yield diagnosis_line(diagnosis), 4
    if in_order:
        yield [], -1
        text = f"{count(in_order, 'connection')} ended normally, or not at all (--connection shows one)"
        yield [("dim", text)], 4
    if found.more:
        yield [], -1
        text = f"and {count(found.more, 'connection')} more, not shown here (--connection shows one)"
        yield [("note", text)], 4


def _stream(one: ConnectionEnds) -> int:
    """The number of a connection."""
    return int(one.following.connection.stream)


def _is_failure(ending: Ending) -> bool:
    """Whether an end has an error or a proven cause, or is the end of the connection.

    The others are ends inside a connection that is in order, such as of a consumer whose queue was deleted.
    """
    return bool(ending.condition) or ending.thing == "connection" or any(step.sure for step in ending.steps)


def _pattern(listed: list[Ending]) -> tuple[object, ...]:
    """How things ended, without their names: connections of the same pattern are shown once."""
    ends = {
        (ending.thing.partition(" ")[0], ending.what, *(step.what for step in ending.steps))
        for ending in listed
    }
    return tuple(sorted(ends))


def _connection(
    one: ConnectionEnds, listed: list[Ending], of: ExplainedFrames, file: str
) -> Iterator[tuple[Line, int]]:
    """One connection. listed: what is shown of its endings."""
    following, endings, beside, _ = one
    yield [], -1
    yield heading(following.connection), 4
    for line in one.facts:
        yield line, 4
    reported: set[tuple[int, int]] = set()
    form = protocol_of(following.connection.protocol).json_renderer()
    for ending in listed:
        yield from _ending(ending, of, reported, form)
    still = [ending.thing for ending in endings if not ending.peer and ending not in listed]
    if still:
        named = [cut(printable(thing), _LONGEST) for thing in still[:_FEW]]
        if len(still) > _FEW:
            named.append(f"{len(still) - _FEW} more")
        some = "nothing on it has ended" if len(still) == len(endings) else f"{', '.join(named)}: not ended"
        yield [("dim", f"{some} before the end of the capture")], 4
    left = len(endings) - len(listed) - len(still) + following.more
    if left:
        errors = len([ending for ending in endings if ending.condition and ending not in listed])
        how = f", {errors} with an error (--connection {_stream(one)})" if errors else " without an error"
        yield [("dim", f"and {count(left, 'more end')}{how}")], 4
    for diagnosis in worst_first(beside)[:_SHOWN]:
        yield from _diagnosis("also", diagnosis, set(), of)
    packet = _next_packet(one, listed)
    if packet and file:
        yield [("key", "next: "), ("", f"amqpscope why {file} {packet}")], 4


def _next_packet(one: ConnectionEnds, listed: list[Ending]) -> int:
    """The packet that explains most: of the finding that is the cause, else of the end, else of a diagnosis;
    0 for none."""
    found = [step.finding for ending in listed for step in ending.steps if step.finding is not None]
    if found:
        return int(next((finding for finding in found if finding.certain), found[0]).packet)
    if one.facts:
        return 0
    first = next((ending for ending in listed if not ending.in_order), None)
    if first is None:
        return next((diagnosis.packet for diagnosis in worst_first(one.beside)), 0)
    if first.mark is not None:
        return first.mark.packet
    stream_end = one.following.stream_end
    return 0 if stream_end is None else stream_end.packet


def _listed(endings: list[Ending]) -> list[Ending]:
    """The connection, those with errors, and some others that ended."""
    errors = [id(ending) for ending in endings if ending.condition][:_SHOWN]
    others = [id(ending) for ending in endings if ending.peer and not ending.condition][:_SHOWN]
    chosen = {id(endings[0]), *errors, *others}
    return [ending for ending in endings if id(ending) in chosen]


def _ending(
    ending: Ending, excerpts: ExplainedFrames, reported: set[tuple[int, int]], form: JsonRenderer
) -> list[tuple[Line, int]]:
    """reported: the frames whose causes are reported already, as of a session that ended with the
    connection."""
    condition = form.condition(ending.condition[: 2 * _LONGEST])
    condition = f": {cut(printable(condition), _LONGEST)}" if condition else ""
    style = "error" if condition else ""
    shown: list[tuple[Line, int]] = [([("rule", ending.thing), (style, f" {ending.what}{condition}")], 4)]
    if ending.mark is not None:
        shown.append(excerpts.line(ending.mark.place, [("", "  ")]))
        reported.add(ending.mark.place)
    elif ending.steps and ending.steps[0].mark is not None and ending.steps[0].mark.place in reported:
        return shown
    packets = set() if ending.mark is None else {ending.mark.packet}
    for step in ending.steps:
        shown += _step(step, packets, excerpts)
    if not ending.steps and ending.itself:
        shown.append(
            ([("key", f"  {'cause':<{_LABEL}}"), ("dim", "the capture does not show why")], 2 + _LABEL)
        )
    return shown


def _diagnosis(
    label: str, one: Diagnosis, packets: set[int], excerpts: ExplainedFrames
) -> Iterator[tuple[Line, int]]:
    """A diagnosis, and the frames that it names, but for those in `packets`, which are shown already."""
    yield [("key", f"  {label:<{_LABEL}}"), *diagnosis_line(one)], 2 + _LABEL
    for packet in shown_packets(one):
        if packet not in packets:
            packets.add(packet)
            for place in excerpts.packets.get(packet, [])[:1]:
                yield excerpts.line(place, [("", "    ")])


def _step(step: CauseStep, packets: set[int], excerpts: ExplainedFrames) -> list[tuple[Line, int]]:
    """One step back. packets: those whose frames are shown already; that of the step is added."""
    label = "because" if step.sure else "perhaps"
    if step.diagnosis is not None:
        return list(_diagnosis(label, step.diagnosis, packets, excerpts))
    line: Line = [("key", f"  {label:<{_LABEL}}"), ("", printable(step.what))]
    finding = step.finding
    place = None
    if step.mark is not None:
        place = step.mark.place
        packets.add(step.mark.packet)
    if finding is not None:
        packets.add(int(finding.packet))
        line += [("", ": "), *headline(finding)]
        place = excerpts.of_finding(finding) or place
    if place is None and step.packet:
        place = next(iter(excerpts.packets.get(step.packet, [])), None)
    shown: list[tuple[Line, int]] = [(line, 2 + _LABEL)]
    if place is not None:
        shown.append(excerpts.line(place, [("", "    ")]))
    return shown

"""The summary of a capture for people: a few lines a connection that fit into eighty columns.

Lines are made of styled parts, as in the timeline; `Painter` puts them on the output.
"""

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.model.records import CLIENT, SERVER, endpoint
from amqpscope.reassembly.stream import StreamFacts
from amqpscope.report.connection_summary import ConnectionOverview, ErrorSummary, LinkSummary
from amqpscope.report.line import Line
from amqpscope.report.moment import iso
from amqpscope.report.printable import cells, cut, printable
from amqpscope.report.protocol_names import protocol_name
from amqpscope.report.summary import error_words, tcp_end
from amqpscope.report.tls import tls_lines
from amqpscope.report.value_text import text_word
from amqpscope.report.websocket import websocket_lines
from dissectors.wording import count

__all__ = ["connection_lines"]

_INDENT = "  "

_NAME = 64
_STALL_REPORTED = 100_000_000
"""Nanoseconds for which a peer cannot write before it is reported: every loss of a packet takes some."""

_DESCRIPTION = 400

_WIDEST = 100
"""Columns of the text in front of a link's numbers, where the output is wide enough."""


def connection_lines(
    analysis: ConnectionAnalysis, known: ConnectionOverview | None, width: int | None
) -> list[Line]:
    """All that is shown of one connection. known: None if no frame of it is. width: columns, None for any."""
    lines = [_title(analysis, known)]
    client = max(int(analysis.connection.client), 0)
    for peer, direction in ((CLIENT, client), (SERVER, 1 - client)):
        lines.append(_peer(analysis, known, peer, direction))
    lines += tls_lines(analysis.connection)
    lines += websocket_lines(analysis.connection)
    lines += _numbers(analysis, known, client)
    if known is None:
        return lines
    if known.mechanism or known.sasl_outcome:
        bad = known.sasl_outcome not in ("", "ok")
        lines.append(
            [
                ("", f"{_INDENT}SASL {text_word(known.mechanism, _NAME) if known.mechanism else '?'}: "),
                ("error" if bad else "", known.sasl_outcome or "no outcome"),
            ]
        )
    lines += _links(known, width)
    lines += [_error(error) for error in known.errors.values()]
    if known.errors_dropped:
        lines.append([("error", f"{_INDENT}{count(known.errors_dropped, 'more error')} not listed")])
    if known.problems:
        some = f"{count(known.problems, 'frame')} with problems"
        lines.append([("problem", f"{_INDENT}{some}"), ("dim", " (read --only problem shows them)")])
    return lines


def _title(analysis: ConnectionAnalysis, known: ConnectionOverview | None) -> Line:
    connection = analysis.connection
    seen = [fact for fact in (analysis.tcp.facts(0), analysis.tcp.facts(1)) if fact.segments]
    start = min([int(fact.first_time) for fact in seen], default=0)
    span = max([int(fact.last_time) for fact in seen], default=0) - start
    words = protocol_name(connection.protocol)
    if connection.encrypted:
        words += ", encrypted"
    if any(fact.midstream for fact in seen):
        words += ", joined in the middle"
    again = f" #{connection.instance}" if connection.instance else ""
    moment = iso(start)
    return [
        ("rule", f"connection {connection.stream}{again}  "),
        ("transfer" if known else "end", words),
        ("dim", f"  {moment[:10]} {moment[11:23]} UTC, {span / 1e9:.3f} s"),
    ]


def _peer(analysis: ConnectionAnalysis, known: ConnectionOverview | None, peer: str, direction: int) -> Line:
    line: Line = [(peer, f"{_INDENT}{peer}  {endpoint(*analysis.connection.end(direction))}")]
    if known is not None and known.of(peer).container:
        line.append(("", f"  {text_word(known.of(peer).container, _NAME)}"))
    if known is not None and known.of(peer).product:
        line.append(("dim", f"  ({printable(known.of(peer).product[:_NAME])})"))
    return line


def _numbers(analysis: ConnectionAnalysis, known: ConnectionOverview | None, client: int) -> list[Line]:
    """A small table, a row a peer."""
    heads = ["frames", "messages", "octets", "missing", "resent", "twice"]
    rows: list[tuple[str, list[str], Line]] = []
    for peer, direction in ((CLIENT, client), (SERVER, 1 - client)):
        fact = analysis.tcp.facts(direction)
        cells_of_row = [
            str(known.of(peer).frames) if known else "",
            str(known.of(peer).messages) if known else "",
            "" if analysis.connection.retold else str(fact.delivered),
            "" if analysis.connection.retold else str(fact.missing or ""),
            str(fact.retransmitted or ""),
            str(fact.duplicated or ""),
        ]
        rows.append((peer, cells_of_row, _ended(analysis, known, peer, direction)))
    used = [index for index in range(len(heads)) if any(row[index] for _, row, _ in rows)]
    widths = {index: max(len(heads[index]), *(len(row[index]) for _, row, _ in rows)) for index in used}
    head = _INDENT + " " * 6 + "".join(f"  {heads[index]:>{widths[index]}}" for index in used) + "  ended"
    lines: list[Line] = [[("dim", head)]]
    for peer, row, ended in rows:
        text = "".join(f"  {row[index]:>{widths[index]}}" for index in used)
        lines.append([(peer, f"{_INDENT}{peer}"), ("", f"{text}  "), *ended])
    for peer, direction in ((CLIENT, client), (SERVER, 1 - client)):
        lines += _stalls(analysis.tcp.facts(direction), peer)
    return lines


def _stalls(fact: StreamFacts, peer: str) -> list[Line]:
    """For how long a peer could not write, and why, if that is worth a word."""
    reported = []
    if fact.shut >= _STALL_REPORTED:
        other = SERVER if peer == CLIENT else CLIENT
        reported.append(f"for {fact.shut / 1e9:.3f} s: the TCP window of the {other} left no room")
    if fact.unheard >= _STALL_REPORTED:
        reported.append(f"for {fact.unheard / 1e9:.3f} s: its octets were sent again and not acknowledged")
    return [[(peer, f"{_INDENT}{peer}"), ("", f" could not write {text}")] for text in reported]


def _ended(analysis: ConnectionAnalysis, known: ConnectionOverview | None, peer: str, direction: int) -> Line:
    """How a peer ended: by close, FIN, RST, or not before the capture did."""
    tcp = tcp_end(analysis, direction)
    if tcp == "still open" and tcp_end(analysis, 1 - direction) == "RST":
        tcp = f"reset by the {SERVER if peer == CLIENT else CLIENT}"
    if known is None:
        return [("", tcp)]
    packet = known.of(peer).closed
    close: Line = [("", f"close in packet {packet}, ")] if packet else []
    if not packet and tcp != "still open":
        close = [("end", "no close, ")]
    return [*close, ("error" if tcp == "RST" else "", tcp)]


def _links(known: ConnectionOverview, width: int | None) -> list[Line]:
    """Sessions and links: who sends on a link, from where to where, how much, how it ended."""
    head = f"{_INDENT}{count(known.sessions, known.session_word)}"
    if known.session_word == "session":
        head += f", {count(len(known.links), 'link')}"
    if not known.links:
        return [[("", head)]]
    links = list(known.links.values())
    ends = [_link_end(link) for link in links]
    messages = max(len("messages"), *(len(str(link.messages)) for link in links))
    octets = max(len("octets"), *(len(str(link.octets)) for link in links))
    behind = 2 + messages + 2 + octets + 2 + max(len("ended"), *(len(text) for text, _ in ends))
    room = _WIDEST if width is None else min(max(width - behind, 24), _WIDEST)
    paths = [_path(link, _WIDEST if width is None else width - len(_INDENT)) for link in links]
    wide = max(len(_INDENT) + cells(path) for path in paths)
    # Where both have no room side by side, the numbers stand below the addresses.
    below = wide > room
    wide = len(head) if below else max(len(head), wide)
    head += " " * (wide - len(head))
    lines: list[Line] = [[("", head), ("dim", f"  {'messages':>{messages}}  {'octets':>{octets}}  ended")]]
    for link, path, (end, bad) in zip(links, paths, ends, strict=True):
        if below:
            lines.append([(link.link.sender, f"{_INDENT}{path}")])
        space = " " * (wide if below else wide - len(_INDENT) - cells(path))
        lines.append(
            [
                (link.link.sender, space if below else f"{_INDENT}{path}{space}"),
                ("", f"  {link.messages:>{messages}}  {link.octets:>{octets}}  "),
                ("error" if bad else "", end),
            ]
        )
        more = _more(link)
        if more:
            lines.append([("dim", f"{_INDENT}  {more}")])
    if known.links_dropped:
        more = count(known.links_dropped, "more attach")
        lines.append([("dim", f"{_INDENT}{more} not listed")])
    return lines


def _path(link: LinkSummary, room: int) -> str:
    """`client sends shop-orders → orders`, the longer address cut first where there is no room for both."""
    sends = f"{link.link.sender} sends "
    source, target = (text_word(end, _NAME) if end is not None else "" for end in (link.source, link.target))
    if not source and not target:
        return sends + cut(text_word(link.link.name, _NAME), room - len(sends))
    arrow = f"{' ' if source else ''}→{' ' if target else ''}"
    left = room - len(sends) - len(arrow)
    half = left // 2
    source = cut(source, max(left - cells(target), half))
    return f"{sends}{source}{arrow}{cut(target, left - cells(source))}"


def _link_end(link: LinkSummary) -> tuple[str, bool]:
    if not link.ended:
        return "not detached", False
    return f"{link.ended}{', error' if link.error else ''}", bool(link.error)


def _more(link: LinkSummary) -> str:
    """What is not in a link's row: its name, unless it says nothing new, and what is out of the ordinary."""
    words = []
    if link.link.name not in (link.source, link.target) and (link.source or link.target):
        words.append(text_word(link.link.name, _NAME))
    if link.transfers != link.messages:
        words.append(count(link.transfers, "transfer"))
    if link.aborted:
        words.append(f"{link.aborted} aborted")
    return ", ".join(words)


def _error(error: ErrorSummary) -> Line:
    """An error that a peer reported, where, and on which link."""
    condition = text_word(error.condition, _NAME) if error.condition else "an error without condition"
    line: Line = [
        ("", f"{_INDENT}packet {error.packet}: {error.peer} sent {error.what} with "),
        ("error", condition),
    ]
    words = error_words(error, _DESCRIPTION)
    if words:
        line.append(("", f" {words}"))
    if error.link is not None:
        line.append(("dim", f" on {text_word(error.link, _NAME)}"))
    if error.count > 1:
        line.append(("", f", {error.count} times"))
    return line

"""The pages of the full-screen view: lines out of the model, each as wide as it may be."""

from amqpscope.model.records import CLIENT
from amqpscope.protocols import PROTOCOLS
from amqpscope.report.line import Line
from amqpscope.report.moment import iso
from amqpscope.report.printable import cells, cut, printable, word, wrap
from amqpscope.report.protocol_names import protocol_name
from amqpscope.report.top.health import duration
from amqpscope.report.top.layout import (
    ScreenColumn,
    amount,
    fill,
    head,
    in_columns,
    octets,
    selected,
    spark,
)
from amqpscope.report.top.model import TopModel
from amqpscope.report.top.rows import ReportedFinding, Row
from amqpscope.report.value_text import text_word
from amqpscope.tracking.snapshot import (
    UNKNOWN,
    ChannelSnapshot,
    ConnectionSnapshot,
    EndSnapshot,
    LinkSnapshot,
    SessionEndSnapshot,
    SessionSnapshot,
)
from dissectors.wording import count

__all__ = [
    "connection_table",
    "connections",
    "details",
    "finding_line",
    "finding_lines",
    "findings",
    "help_lines",
    "inside",
    "lines_of_row",
    "title",
]

_HELP = (
    ("↑ ↓  j k", "one line up or down"),
    ("PgUp PgDn", "one page up or down"),
    ("Home End  g G", "to the first or the last line"),
    ("Enter  →", "show the connection, then its last frames"),
    ("Esc  ←  h", "back"),
    ("t", "the last frames of the connection"),
    ("f", "the last findings: of the connection, or of all connections"),
    ("s", "sort by what hurts, frames/s, unsettled, newest, name"),
    ("/", "show only connections whose address, names or rules match"),
    ("p  Space", "pause the display; the rules still check everything"),
    ("q", "quit"),
    ("", ""),
    ("WHAT HURTS", "certain errors, then overdue answers, then blocked senders"),
    ("", "(no credit, no window, prefetch used up, channel.flow), then"),
    ("", "possible errors, then large numbers of unsettled deliveries"),
    ("UNSETTLED", "deliveries that nobody has settled yet; of AMQP 0-9-1 also"),
    ("", "messages published that are not confirmed"),
    ("CREDIT", "deliveries that the receiver still allows; WAITING: messages"),
    ("", "that the sender still has to send, by its newest flow"),
)

_NARROW = 80
"""Columns below which what hurts has too little room beside the other columns."""

_WIDE = 110
_WIDEST = 150

_BARS = 23
_MOST = 6
"""Columns of the bars of the last seconds, and of the number that the highest of them stands for."""

_WEIGHTS = {"error": "problem", "warning": "note", "note": "dim"}


def title(model: TopModel, source: str, width: int) -> list[Line]:
    """What is shown about the whole capture: two lines."""
    rate = f"{amount(model.frame_rate)} frames/s  {octets(model.octet_rate)}/s"
    first: Line = [
        ("name", "amqpscope "),
        ("", f"{cut(printable(source), max(width // 4, 8))}  "),
        ("dim", f"{duration(model.now - model.began)}  "),
        ("", f"{model.open} open"),
        ("dim", f", {model.over} over" if model.over else ""),
        ("", f"  {rate}  "),
    ]
    if model.dropped:
        first.append(("problem", f"{amount(model.dropped)} packets dropped"))
    elif width >= _WIDE:
        first.append(("dim", f"{amount(model.packets)} packets, none dropped"))
    second: Line = []
    for number, one, many, style in (
        (model.faults.errors, "error", "errors", "problem"),
        (model.faults.warnings, "warning", "warnings", "note"),
        (model.faults.possible, "possible", "possible", "note"),
        (model.faults.notes, "note", "notes", "dim"),
        (model.overdue, "connection overdue", "connections overdue", "error"),
        (model.blocked, "blocked", "blocked", "note"),
    ):
        if number:
            second.append((style, f"{amount(number)} {one if number == 1 else many}"))
            second.append(("dim", " · "))
    second = second[:-1] if second else [("dim", "no findings")]
    return [first, second]


def connection_table(rows: list[Row], width: int) -> list[ScreenColumn]:
    """The columns of the table of connections for these rows and so wide a screen."""
    longest = max((cells(_short(row.name)) for row in rows), default=0)
    wide = width >= _WIDE
    name = min(max(longest, 20), 44 if width >= _WIDEST else 30 if wide else 20)
    columns = [
        ScreenColumn(" CONNECTION", name + 1),
        ScreenColumn("WHO", 24 if width >= _WIDEST else 12 if wide else 9),
    ]
    if wide:
        columns.append(ScreenColumn("AMQP", 5))
    columns += [ScreenColumn("STATE", 10 if wide else 6), ScreenColumn("FRM/S", 6, right=True)]
    if width >= _WIDEST:
        columns.append(ScreenColumn("OCTETS/S", 8, right=True))
    columns.append(
        ScreenColumn("UNSET" if width < _WIDE else "UNSETTLED", 6 if width < _WIDE else 9, right=True)
    )
    if width >= _WIDEST:
        columns.append(ScreenColumn(f"LAST {_BARS} s, MOST/S", _BARS + 1 + _MOST))
    if lines_of_row(width) == 1:
        taken = sum(column.width + 1 for column in columns)
        columns.append(ScreenColumn("WHAT HURTS", max(width - taken, 10)))
    return columns


def lines_of_row(width: int) -> int:
    """Lines of a connection in the table: on a narrow screen, what hurts has a line of its own."""
    return 1 if width >= _NARROW else 2


def connections(
    columns: list[ScreenColumn], rows: list[Row], picked: Row | None, now: int, width: int
) -> list[Line]:
    """One line a connection, or two (see `lines_of_row`)."""
    lines: list[Line] = []
    wide = width >= _WIDE
    below = lines_of_row(width) == 2
    for row in rows:
        mark = "▌" if row is picked else " "
        name_width = columns[0].width - 1
        style = "dim" if row.over_since else "name" if row.rank >= 3 else ""
        spoken = PROTOCOLS.get(row.connection.protocol)
        version = "draft" if spoken is None else spoken.version
        parts = [(style, mark + cut(_short(row.name), name_width)), (style, row.who)]
        if wide:
            parts.append(("dim", version))
        parts.append(("dim" if row.over_since else "", row.state))
        parts.append(("dim" if row.traffic.frame_rate == 0 else "", amount(row.traffic.frame_rate)))
        if width >= _WIDEST:
            parts.append(("dim" if row.traffic.octet_rate == 0 else "", octets(row.traffic.octet_rate)))
        parts.append(("dim" if row.last.unsettled == 0 else "", amount(row.last.unsettled)))
        if width >= _WIDEST:
            most = max(row.traffic.trend[-_BARS:], default=0)
            scale = f" {amount(most):>{_MOST}}" if most else ""
            parts.append(("flow", f"{spark(row.traffic.trend, _BARS)}{scale}"))
        line = in_columns(columns if below else columns[:-1], parts)
        hurts = _hurts(row, now)
        own = [line, [("", "   "), *hurts]] if below else [[*line, ("", " "), *hurts]]
        lines += [selected(one, width) for one in own] if row is picked else own
    return lines


def _short(name: str) -> str:
    """A connection's id without the number of the first between its ends."""
    return name[:-2] if name.endswith("#0") else name


def _hurts(row: Row, now: int) -> Line:
    line: Line = []
    for issue in row.health_issues:
        if line:
            line.append(("dim", "; "))
        line.append((issue.style, issue.text))
    if row.over_since:
        line.append(("dim", f"{'; ' if line else ''}over for {duration(now - row.over_since)}"))
    elif not line and now - row.changed >= 5_000_000_000:
        line.append(("dim", f"quiet for {duration(now - row.changed)}"))
    return line


def details(row: Row, width: int, most: int) -> list[Line]:
    """What else is shown about the connection that is picked: who they are, and all that hurts."""
    lines: list[Line] = []
    snapshot = row.last.snapshot
    if snapshot is not None:
        who: Line = [("", " ")]
        for end in (snapshot.client, snapshot.server):
            who += [(end.peer, f"{end.peer} "), ("", f"{_who(end)}   ")]
        if snapshot.virtual_host:
            who += [("key", "virtual host "), ("", word(snapshot.virtual_host, 40))]
        lines.append(who)
    text = "; ".join(issue.text for issue in row.health_issues)
    if text:
        room = max(width - 2, 10)
        lines += [[("", f" {piece}")] for piece in wrap(text, room, room)]
    return lines[:most]


def _who(end: EndSnapshot) -> str:
    """What an end says it is."""
    said = end.said
    texts = [cut(printable(text), 32) for text in (said.get("product"), said.get("version")) if text]
    container = said.get("container-id", "")
    if container:
        texts.append(word(container, 32))
    return " ".join(texts) or "unknown"


def finding_line(reported: ReportedFinding, width: int, picked: bool) -> Line:
    """A finding in one line."""
    kind = reported.weight if reported.certain else f"possible {reported.weight}"
    line: Line = [
        ("", "▌" if picked else " "),
        ("dim", f"{iso(reported.time)[11 : 19 if width < _WIDE else 23]} "),
        (_WEIGHTS[reported.weight] if reported.certain else "note", f"{kind} "),
        ("name", f"{reported.rule} "),
        (reported.peer, f"{reported.peer}"),
        ("", f": {reported.message}"),
    ]
    return selected(line, width) if picked else line


def findings(reported: list[ReportedFinding], picked: ReportedFinding | None, width: int) -> list[Line]:
    """Findings, one a line."""
    return [finding_line(one, width, one is picked) for one in reported]


def finding_lines(reported: ReportedFinding, width: int, most: int) -> list[Line]:
    """A finding in full."""
    room = max(width - 2, 10)
    lines: list[Line] = [
        [
            ("", " "),
            ("name", reported.rule),
            (
                "",
                f" by the {reported.peer} in packet {reported.packet}, "
                f"connection {_short(reported.row.name)}",
            ),
        ]
    ]
    lines += [[("", f" {piece}")] for piece in wrap(reported.message, room, room)]
    if reported.reaction:
        lines += [[("dim", f" {piece}")] for piece in wrap(reported.reaction, room, room)]
    return lines[:most]


# One connection


def inside(row: Row, now: int, width: int) -> list[Line]:
    """How a connection stands: its ends, what hurts, its sessions and links or channels and consumers."""
    since = row.over_since or now
    first: Line = [
        ("name", f"{_short(row.name)}  "),
        ("", f"{protocol_name(row.connection.protocol)}  "),
        ("dim", "over" if row.over_since else ""),
        ("dim", f" after {duration(since - row.began)}" if row.over_since else ""),
        ("dim", "" if row.over_since else f"for {duration(since - row.began)}"),
        ("", f"  {amount(row.traffic.frames)} frames, {amount(row.traffic.frame_rate)}/s"),
        ("dim", f"  {octets(row.traffic.octets)}, {octets(row.traffic.octet_rate)}/s"),
    ]
    lines = [first]
    snapshot = row.last.snapshot
    if snapshot is None:
        lines.append([("dim", "nothing is known of its state")])
        return lines
    if row.over_since and row.snapshot_due:
        lines.append([("dim", "the connection ended before its last state could be read")])
        lines += [[(issue.style, f"! {issue.text}")] for issue in row.health_issues]
        return lines
    for end in (snapshot.client, snapshot.server):
        lines += _end(end, snapshot, now, width)
    for issue in row.health_issues[:6]:
        lines.append([(issue.style, f"! {issue.text}")])
    if len(row.health_issues) > 6:
        lines.append([("dim", f"  and {len(row.health_issues) - 6} more")])
    if snapshot.sessions:
        lines += _sessions(row, snapshot, width)
    if snapshot.channels:
        lines += _channels(row, snapshot, now, width)
    for number, what in ((snapshot.more_sessions, "session"), (snapshot.more_channels, "channel")):
        if number:
            lines.append([("dim", count(number, f"more {what}"))])
    return lines


def _end(end: EndSnapshot, snapshot: ConnectionSnapshot, now: int, width: int) -> list[Line]:
    spoke = f"spoke {duration(now - end.last_time)} ago" if end.last_time else "has not spoken"
    line: Line = [
        (end.peer, f"{end.peer} "),
        ("", f"{end.state:<8} {_who(end)}  "),
        ("dim", f"{spoke}  "),
    ]
    if not end.whole:
        line.append(("note", "seen in part  "))
    limits = []
    if end.max_frame_size != UNKNOWN:
        limits.append(f"max-frame-size {end.max_frame_size}")
    if end.channel_max != UNKNOWN:
        limits.append(f"channel-max {end.channel_max}")
    if end.idle > 0:
        limits.append(f"{'heartbeat' if snapshot.channels else 'idle-time-out'} {duration(int(end.idle))}")
    if end.peer == CLIENT and snapshot.virtual_host:
        limits.append(f"virtual host {word(snapshot.virtual_host, 40)}")
    if end.unread:
        limits.append(f"{end.unread} frame{'s' if end.unread > 1 else ''} under way to it")
    if not limits:
        return [line]
    last = ("dim", ", ".join(limits))
    if sum(cells(text) for _, text in [*line, last]) <= width:
        return [[*line, last]]
    return [line, [("", "       "), last]]


def _sessions(row: Row, snapshot: ConnectionSnapshot, width: int) -> list[Line]:
    lines: list[Line] = []
    name = max(min(width - 60, 60), 14)
    columns = [
        ScreenColumn("  LINK", name),
        ScreenColumn("SENDS", 6),
        ScreenColumn("STATE", 11),
        ScreenColumn("CREDIT", 6, right=True),
        ScreenColumn("WAITING", 7, right=True),
        ScreenColumn("UNSETT.", 7, right=True),
        ScreenColumn("SENT", 6, right=True),
        ScreenColumn("SENT/S", 6, right=True),
    ]
    headed = False
    for session in snapshot.sessions:
        lines += _session(session, width)
        if session.links and not headed:
            lines.append(head(columns))
            headed = True
        lines += [_link(row, int(session.number), link, columns) for link in session.links]
        if session.more_links:
            lines.append([("dim", f"  {count(session.more_links, 'more link')}")])
    return lines


def _session(session: SessionSnapshot, width: int) -> list[Line]:
    halves: list[Line] = []
    for half, peer in ((session.client, "client"), (session.server, "server")):
        if half is not None:
            halves.append([(peer, f"{peer} "), ("", _half(half))])
        else:
            halves.append([(peer, f"{peer} "), ("dim", "not begun")])
    label = f"session {session.number}  "
    if width >= _WIDE + 20:
        return [[("name", label), *halves[0], ("", "   "), *halves[1]]]
    return [[("name", label), *halves[0]], [("", " " * len(label)), *halves[1]]]


def _half(half: SessionEndSnapshot) -> str:
    words = [half.state.lower(), f"on {half.channel}"]
    if half.window != UNKNOWN:
        words.append(f"window {amount(int(half.window))}")
    if half.next_outgoing_id != UNKNOWN:
        words.append(f"next-out {half.next_outgoing_id}")
    if half.next_incoming_id != UNKNOWN:
        words.append(f"next-in {half.next_incoming_id}")
    if half.unsettled:
        words.append(f"{amount(int(half.unsettled))} unsettled")
    return ", ".join(words)


def _link(row: Row, session: int, link: LinkSnapshot, columns: list[ScreenColumn]) -> Line:
    states = [state.lower() for state in (link.sender_state, link.receiver_state)]
    if states[0] == states[1]:
        state = states[0]
    else:
        state = next((one for one in states if one not in ("", "attached")), states[0] or states[1])
    address = "coordinator" if link.coordinator else link.target if link.sender == CLIENT else link.source
    name = text_word(link.name, 60)
    if address and address != link.name:
        name = f"{text_word(address, 60)} ({name})"
    marks = ("…" if link.unfinished else "") + (" drain" if link.drain else "")
    blocked = link.credit == 0 and link.available > 0
    return in_columns(
        columns,
        [
            ("", f"  {name}"),
            (link.sender, link.sender),
            ("" if state == "attached" else "note", (state or "?") + marks),
            ("problem" if blocked else "", _known(link.credit)),
            ("note" if blocked else "", _known(link.available)),
            ("", amount(int(link.unsettled))),
            ("", amount(int(link.deliveries))),
            ("", amount(row.rate(session, link.name, link.sender))),
        ],
    )


def _known(number: int) -> str:
    return "?" if number == UNKNOWN else amount(number)


def _channels(row: Row, snapshot: ConnectionSnapshot, now: int, width: int) -> list[Line]:
    lines: list[Line] = []
    name = max(min(width - 46, 70), 20)
    columns = [
        ScreenColumn("CHANNEL, CONSUMER", name),
        ScreenColumn("STATE", 13),
        ScreenColumn("UNACKED", 8, right=True),
        ScreenColumn("PREFETCH", 8, right=True),
        ScreenColumn("UNCONFIRMED", 11, right=True),
    ]
    lines.append(head(columns))
    for channel in snapshot.channels:
        lines.append(_channel(row, channel, columns))
        if channel.asked:
            since = duration(now - int(channel.asked_time))
            more = f" and {channel.asked - 1} more" if channel.asked > 1 else ""
            lines.append([("note", f"  waits for the answer to {channel.first_asked} for {since}{more}")])
        for consumer in channel.consumers:
            full = 0 < consumer.prefetch <= consumer.unacknowledged
            text = f"  {word(consumer.queue, 40) if consumer.queue else '?'} ({word(consumer.tag, 40)})"
            lines.append(
                in_columns(
                    columns,
                    [
                        ("", text),
                        ("dim", "no-ack" if consumer.no_ack else "exclusive" if consumer.exclusive else ""),
                        ("note" if full else "", "" if consumer.no_ack else _known(consumer.unacknowledged)),
                        ("", "" if consumer.prefetch == UNKNOWN else amount(int(consumer.prefetch))),
                        ("", ""),
                    ],
                )
            )
        if channel.more_consumers:
            lines.append([("dim", f"  {count(channel.more_consumers, 'more consumer')}")])
    return lines


def _channel(row: Row, channel: ChannelSnapshot, columns: list[ScreenColumn]) -> Line:
    words = [f"channel {channel.number}"]
    if channel.transacted:
        words.append("transactions")
    if channel.client_stopped:
        words.append("client stopped")
    if channel.server_stopped:
        words.append("server stopped")
    if channel.deliveries:
        words.append(f"{amount(int(channel.deliveries))} delivered")
    if channel.published:
        rate = amount(row.rate(int(channel.number), "", CLIENT))
        words.append(f"{amount(channel.published)} published, {rate}/s")
    return in_columns(
        columns,
        [
            ("name", ", ".join(words)),
            ("" if channel.state == "OPEN" else "note", channel.state.lower()),
            ("", amount(int(channel.unacknowledged))),
            ("", "" if channel.prefetch == UNKNOWN else amount(int(channel.prefetch))),
            ("", amount(int(channel.unconfirmed)) if channel.confirming else ""),
        ],
    )


def help_lines() -> list[Line]:
    """What the keys do."""
    return [[("name", f"  {fill(keys, 16)}"), ("", text)] for keys, text in _HELP]

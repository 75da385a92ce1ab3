"""The timeline of `amqpscope read`: one line a frame, in the order in which they were completed.

    packet time connection, who sends (C the client, S the server), channel, name, details

Packet and time are those of the frame's first octet. Columns widen as their numbers grow and never
narrow again, so that a short capture has short lines. Below a line stands what is wrong with its frame,
and with -v and -vv what `details` has to say.
"""

from typing import Final

from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.report import details
from amqpscope.report.digits import THREE_DIGITS, digits
from amqpscope.report.json_renderers import FORMS
from amqpscope.report.line import INDENT, Line, Pen
from amqpscope.report.links import LinkNames
from amqpscope.report.moment import iso
from amqpscope.report.redaction import guard
from amqpscope.report.text_renderer import TextRenderer
from amqpscope.report.text_renderers import text_renderer
from amqpscope.report.who import peer_line, who
from amqpscope.tracking.amqp10.identity import Link
from dissectors.wire import i64
from dissectors.wording import count

__all__ = ["TIME_FORMATS", "Clock", "FrameParts", "Timeline", "heading"]

FrameParts = tuple[tuple[int, int, int, int, str, str, int, bool], Line, list[Line], str]
"""All that is shown of a frame, whatever is shown of others: what its columns show (packet, time in ns,
connection, channel, name, style and width of the name, whether the client sends), the rest of its line, and
the lines below. Of a plain timeline the rest of the line is empty, and its text stands last.
"""

_BY_CLIENT: Final = (CLIENT, "C→ ")
_BY_SERVER: Final = (SERVER, " ←S")
_NOTHING: Final[Line] = []
_NONE_BELOW: Final[list[Line]] = []

_NAMES: Final = 256
"""Names of frames that are remembered as wide as their column."""


TIME_FORMATS = {
    "r": "seconds since the capture's first frame",
    "d": "seconds since the previous shown frame",
    "a": "time of day, UTC",
    "ad": "date and time, UTC",
    "e": "seconds since 1970",
}


class Clock:
    """Shows packet times in one of `TIME_FORMATS`."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._first: int | None = None
        self._before: int | None = None

    @property
    def steady(self) -> bool:
        """Whether the same time is always shown as the same text."""
        return self._form != "d"

    def start(self, time: int) -> None:
        """The capture's first frame, shown or not."""
        self._first = time

    def show(self, time: int) -> str:
        """The time of a frame, in ns since 1970."""
        form = self._form
        if form == "r":
            if self._first is None:
                self._first = time
            return _seconds(time - self._first)
        if form == "d":
            before = time if self._before is None else self._before
            self._before = time
            return _seconds(time - before)
        if form == "e":
            return _seconds(time)
        moment = iso(time)[:26]
        return moment[11:] if form == "a" else moment.replace("T", " ")


def _seconds(nanoseconds: int) -> str:
    """Seconds with six decimals, exact where a float would round."""
    amount: i64 = nanoseconds
    sign = ""
    if amount < 0:
        amount = -amount
        sign = "-"
    microseconds: i64 = amount // 1000
    rest: i64 = microseconds % 1_000_000
    decimals = THREE_DIGITS[rest // 1000] + THREE_DIGITS[rest % 1000]
    return f"{sign}{digits(microseconds // 1_000_000)}.{decimals}"


class Timeline:
    """Lines for frame records. verbosity: 0 one line, 1 all fields, 2 contents and octets of faults too.

    names: has been asked for the link of every record before this one is shown. plain: of a frame's line only
    the text is shown (`plain_line`), so styles are not asked for.
    """

    def __init__(self, clock: Clock, verbosity: int, names: LinkNames, plain: bool = False) -> None:
        self._clock = clock
        self._verbosity = verbosity
        self._names = names
        self._plain: bool = plain
        # What shows the kind of the last frame: nearly always the next one's too.
        self._kind: str = ""
        self._dialect: str = ""
        self._tells: TextRenderer = TextRenderer()
        self._seen: set[Connection] = set()
        # Of these, the ones whose heading could not name both peers yet.
        self._unnamed: set[Connection] = set()
        # Widths of the columns packet, time, connection, channel, name.
        self._packet = 5
        self._time = 9
        self._connection = 1
        self._channel = 1
        self._name = 1
        # The packet, time and connection of the last frame, and its columns: frames in one packet share them.
        self._shown: tuple[int, int, int] = (-1, -1, -1)
        self._columns: str = ""
        self._names_shown: dict[str, str] = {}

    def heading(self, record: FrameRecord) -> Line | None:
        """What stands above the first frame of a connection that is shown."""
        connection = record.connection
        if connection in self._seen:
            return None
        self._seen.add(connection)
        packet = int(record.packet)
        if not _named(connection, packet):
            self._unnamed.add(connection)
        return heading(connection, packet)

    def introduction(self, record: FrameRecord) -> Line | None:
        """The heading once more, above the frame behind the one that completes the names of the peers."""
        connection = record.connection
        if not self._unnamed or connection not in self._unnamed or not _named(connection, int(record.packet)):
            return None
        self._unnamed.discard(connection)
        return heading(connection, int(record.packet))

    def lines(self, record: FrameRecord, link: Link | None) -> list[tuple[Line, int]]:
        """Everything to be shown of one frame: lines, each with the columns before its continuation.

        -1 is a line that may be cut.
        """
        above = self.heading(record)
        shown = self.frame_lines(record, link)
        return shown if above is None else [(above, INDENT), *shown]

    def frame_lines(self, record: FrameRecord, link: Link | None) -> list[tuple[Line, int]]:
        """The same without the heading."""
        return self.assembled(self.frame_parts(record, link))

    def assembled(self, parts: FrameParts) -> list[tuple[Line, int]]:
        """The lines of the next frame, of its parts."""
        columns, reported, below, _ = parts
        line, width = self._head(columns)
        line += reported
        # What went wrong is worth another line on a narrow terminal; the rest is cut.
        hang = -1
        for style, _ in reported:
            if style == "error":
                hang = width
                break
        shown = [(line, hang)]
        for each in below:
            shown.append((each, INDENT + 4))
        return shown

    def plain_line(self, parts: FrameParts) -> str:
        """The first line of the next frame of a plain timeline, of its parts."""
        (packet, time, stream, channel, name, _, name_width, by_client), _, _, text = parts
        numbers = self._numbers(packet, time, stream)
        by = "C→ " if by_client else " ←S"
        return f"{numbers}{by} {self._on_channel(channel)} {self._named(name, name_width)}{text}"

    def frame_parts(self, record: FrameRecord, link: Link | None) -> FrameParts:
        """What `frame_lines` consists of."""
        frame = record.frame
        message = record.message
        if frame.kind is not self._kind or frame.dialect is not self._dialect:
            self._kind = frame.kind
            self._dialect = frame.dialect
            self._tells = text_renderer(frame)
        tells = self._tells
        plain = self._plain
        guarded, hidden, vague = guard(record, link, self._names, self._verbosity > 0)
        columns = (
            int(record.packet),
            int(record.time),
            record.connection.stream,
            int(frame.channel),
            frame.name,
            "" if plain else tells.style(frame),
            int(tells.name_width),
            record.peer == CLIENT,
        )
        pen = Pen(plain)
        tells.write(pen, frame, link, message, vague)
        reported = _NOTHING if plain else pen.line
        text = pen.text if plain else ""
        verbosity = self._verbosity
        wrong = [] if message is None else FORMS.of(frame).message_problems(record)
        if not frame.problems and not verbosity and not wrong:
            return columns, reported, _NONE_BELOW, text
        below: list[Line] = []
        if verbosity:
            below.append(_evidence(record))
            below += tells.fields(frame, guarded, verbosity)
            if message is not None:
                below += tells.content(message, hidden, verbosity)
        if record.connection.retold:
            if frame.problems and frame.kind != "skipped":
                below.append(details.unlogged_line(frame.problems))
        else:
            for problem in frame.problems:
                below.append(details.problem_line(problem, frame.name, guarded))
        for problem in wrong:
            below.append(details.problem_line(problem, "message", hidden))
        if verbosity >= 2:
            if frame.problems and not record.connection.retold:
                below += details.octets(frame, tells.shown_octets(frame), guarded)
            if wrong:
                below += tells.message_octets(message, hidden)
        return columns, reported, below, text

    def forget(self, connection: Connection) -> None:
        """No more frames of this connection will come."""
        self._seen.discard(connection)
        self._unnamed.discard(connection)

    def _head(self, shown: tuple[int, int, int, int, str, str, int, bool]) -> tuple[Line, int]:
        """The columns before the details, and how wide they are."""
        packet, time, stream, channel, name, style, name_width, by_client = shown
        numbers = self._numbers(packet, time, stream)
        on_channel = self._on_channel(channel)
        called = self._named(name, name_width)
        line: Line = [
            ("dim", numbers),
            _BY_CLIENT if by_client else _BY_SERVER,
            ("dim", f" {on_channel} "),
            (style, called),
        ]
        return line, len(numbers) + 3 + self._channel + 2 + len(called)

    def _numbers(self, in_packet: int, at: int, stream: int) -> str:
        """The columns packet, time and connection."""
        shown = (in_packet, at, stream)
        if shown == self._shown and self._clock.steady:
            return self._columns
        packet = str(in_packet)
        time = self._clock.show(at)
        number = digits(stream)
        # Most numbers are as wide as their column.
        if len(packet) != self._packet:
            self._packet = max(self._packet, len(packet))
            packet = packet.rjust(self._packet)
        if len(time) != self._time:
            self._time = max(self._time, len(time))
            time = time.rjust(self._time)
        if len(number) != self._connection:
            self._connection = max(self._connection, len(number))
            number = number.rjust(self._connection)
        self._shown = shown
        self._columns = f"{packet} {time} {number} "
        return self._columns

    def _on_channel(self, channel: int) -> str:
        """The column channel."""
        text = "" if channel < 0 else digits(channel)
        if len(text) != self._channel:
            self._channel = max(self._channel, len(text))
            text = text.rjust(self._channel)
        return text

    def _named(self, name: str, width: int) -> str:
        """The column name. width: that of the names of its protocol."""
        if width > self._name:
            self._name = width
            self._names_shown.clear()
        shown = self._names_shown.get(name)
        if shown is None:
            shown = f"{name.ljust(self._name)} "
            if len(self._names_shown) < _NAMES:
                self._names_shown[name] = shown
        return shown


def heading(connection: Connection, packet: int = 0) -> Line:
    """A connection appears: which it is, and who is C and who is S, by address and by name.

    packet: names that were said in this one or later are left out; 0 for none. So what is shown of frames
    does not depend on how many of them are read at once.
    """
    again = f" #{connection.instance}" if connection.instance else ""
    return [
        ("rule", f"── connection {connection.stream}{again} ── "),
        *peer_line(connection, CLIENT, packet),
        ("rule", " → "),
        *peer_line(connection, SERVER, packet),
    ]


def _named(connection: Connection, packet: int) -> bool:
    """Whether both peers have introduced themselves before this packet."""
    return all(
        connection.name_of(peer).packet < packet and who(connection, peer) for peer in (CLIENT, SERVER)
    )


def _evidence(record: FrameRecord) -> Line:
    """Where the frame stands in the capture."""
    frame = record.frame
    packets = f"packet {record.packet}"
    if record.last_packet != record.packet:
        packets = f"packets {record.packet} to {record.last_packet}"
    text = f"{count(frame.size, 'octet')} at {frame.offset} of the {record.peer}'s stream, {packets}"
    if frame.absent:
        text += f", {count(frame.absent, 'octet')} missing"
    return [("", " " * INDENT), ("dim", text)]

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
from dissectors.interface import Frame, Problem
from dissectors.wire import i64
from dissectors.wording import count

__all__ = ["TIME_FORMATS", "Clock", "FrameLines", "FrameParts", "Timeline", "heading"]

FrameParts = tuple[tuple[int, int, int, int, str, str, int, bool], Line, list[Line], str]
"""`FrameLines` as plain values, for other processes: its columns, the rest of its line, and the others."""

_BY_CLIENT: Final = (CLIENT, "C→ ")
_BY_SERVER: Final = (SERVER, " ←S")
_WRITTEN_CLIENT: Final = "C→ ".encode()
_WRITTEN_SERVER: Final = " ←S".encode()
_NOTHING: Final[Line] = []
_NONE_BELOW: Final[list[Line]] = []
_NONE_WRONG: Final[list[Problem]] = []

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


class FrameLines:
    """What is shown of a frame, whatever is shown of others.

    columns: packet, time (ns), connection, channel, name, style and width of the name, whether the client
    sends. reported: the rest of its line. text: this as text, of a plain timeline, whose `reported` is empty.
    below: the lines below it.
    """

    def __init__(self, columns: tuple[int, int, int, int, str, str, int, bool]) -> None:
        packet, time, stream, channel, self.name, self.style, name_width, self.by_client = columns
        self.packet: i64 = packet
        self.time: i64 = time
        self.stream: i64 = stream
        self.channel: i64 = channel
        self.name_width: i64 = name_width
        self.reported: Line = _NOTHING
        self.below: list[Line] = _NONE_BELOW
        self.text: str = ""

    @staticmethod
    def of(parts: FrameParts) -> "FrameLines":
        """What `parts` returned."""
        shown = FrameLines(parts[0])
        _, shown.reported, shown.below, shown.text = parts
        return shown

    def parts(self) -> FrameParts:
        """The same as plain values."""
        columns = (
            int(self.packet),
            int(self.time),
            int(self.stream),
            int(self.channel),
            self.name,
            self.style,
            int(self.name_width),
            self.by_client,
        )
        return columns, self.reported, self.below, self.text


_NO_FRAME: Final = FrameLines((-1, -1, -1, -1, "", "", 0, False))


class Timeline:
    """Lines for frame records. verbosity: 0 one line, 1 all fields, 2 contents and octets of faults too.

    names: has been asked for the link of every record before this one is shown. plain: of a frame's line only
    the text is shown (`write_plain`), so styles are not asked for.
    """

    def __init__(self, clock: Clock, verbosity: int, names: LinkNames, plain: bool = False) -> None:
        self._clock = clock
        self._verbosity = verbosity
        self._names = names
        self._plain: bool = plain
        # What shows each kind of frame, in the dialect of the last one.
        self._dialect: str = ""
        self._of_kind: dict[str, TextRenderer] = {}
        self._pen: Pen = Pen(plain)
        self._seen: set[Connection] = set()
        # Of these, the ones whose heading could not name both peers yet.
        self._unnamed: set[Connection] = set()
        # Widths of the columns packet, time, connection, channel, name.
        self._packet = 5
        self._time = 9
        self._connection = 1
        self._channel = 1
        self._name = 1
        # The last frame, and its columns before the name: most frames of one packet have the same.
        self._last: FrameLines = _NO_FRAME
        self._numbers: str = ""
        self._on_channel: str = ""
        # Of a plain timeline, the same as they are written.
        self._numbers_written: bytes = b""
        self._channel_written: bytes = b""
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

    def begins(self, record: FrameRecord) -> bool:
        """Whether a heading stands above this frame."""
        return (self.heading(record) or self.introduction(record)) is not None

    def lines(self, record: FrameRecord, link: Link | None) -> list[tuple[Line, int]]:
        """Everything to be shown of one frame: lines, each with the columns before its continuation.

        -1 is a line that may be cut.
        """
        above = self.heading(record)
        shown = self.frame_lines(record, link)
        return shown if above is None else [(above, INDENT), *shown]

    def frame_lines(self, record: FrameRecord, link: Link | None) -> list[tuple[Line, int]]:
        """The same without the heading."""
        return self.assembled(self.made(record, link))

    def assembled(self, frame: FrameLines) -> list[tuple[Line, int]]:
        """The lines of the next frame."""
        line, width = self._head(frame)
        line += frame.reported
        # What went wrong is worth another line on a narrow terminal; the rest is cut.
        hang = -1
        for style, _ in frame.reported:
            if style == "error":
                hang = width
                break
        shown = [(line, hang)]
        for each in frame.below:
            shown.append((each, INDENT + 4))
        return shown

    def write_plain(self, into: list[bytes], frame: FrameLines, remark: str) -> None:
        """Put the first line of the next frame into a list, in parts: of a plain timeline, with its line end.

        remark: stands behind it. A part without arrows takes an octet a character, and is quickly made UTF-8.
        """
        self._set_columns(frame)
        into.append(self._numbers_written)
        into.append(_WRITTEN_CLIENT if frame.by_client else _WRITTEN_SERVER)
        into.append(self._channel_written)
        text = f"{self._named(frame.name, frame.name_width)}{frame.text}"
        if remark:
            into.append(f"{text}  {remark}\n".encode())
        else:
            into.append(f"{text.rstrip()}\n".encode())

    def made(self, record: FrameRecord, link: Link | None) -> FrameLines:
        """What is shown of a frame, whatever is shown of others."""
        frame = record.frame
        message = record.message
        tells = self._renderer(frame)
        plain = self._plain
        guarded, hidden, vague = guard(record, link, self._names, self._verbosity > 0)
        shown = FrameLines(
            (
                int(record.packet),
                int(record.time),
                record.connection.stream,
                int(frame.channel),
                frame.name,
                "" if plain else tells.style(frame),
                tells.name_width,
                record.peer == CLIENT,
            )
        )
        pen = self._pen
        tells.write(pen, frame, link, message, vague)
        if plain:
            shown.text = pen.take_text()
        else:
            shown.reported = pen.take_line()
        verbosity = self._verbosity
        wrong = _NONE_WRONG if message is None else FORMS.of(frame).message_problems(record)
        if not frame.problems and not verbosity and not wrong:
            return shown
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
        shown.below = below
        return shown

    def _renderer(self, frame: Frame) -> TextRenderer:
        """What shows this kind of frame."""
        if frame.dialect is not self._dialect:
            self._of_kind = {}
            self._dialect = frame.dialect
        known = self._of_kind.get(frame.kind)
        if known is None:
            known = self._of_kind[frame.kind] = text_renderer(frame)
        return known

    def forget(self, connection: Connection) -> None:
        """No more frames of this connection will come."""
        self._seen.discard(connection)
        self._unnamed.discard(connection)

    def _head(self, frame: FrameLines) -> tuple[Line, int]:
        """The columns before the details, and how wide they are."""
        self._set_columns(frame)
        called = self._named(frame.name, frame.name_width)
        line: Line = [
            ("dim", self._numbers),
            _BY_CLIENT if frame.by_client else _BY_SERVER,
            ("dim", f" {self._on_channel} "),
            (frame.style, called),
        ]
        return line, len(self._numbers) + 3 + self._channel + 2 + len(called)

    def _set_columns(self, frame: FrameLines) -> None:
        """Have the columns of a frame in `_numbers` and `_on_channel`."""
        last = self._last
        same = frame.packet == last.packet and frame.time == last.time and frame.stream == last.stream
        if same and frame.channel == last.channel and self._clock.steady:
            return
        self._last = frame
        packet = digits(frame.packet)
        time = self._clock.show(frame.time)
        number = digits(frame.stream)
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
        self._numbers = f"{packet} {time} {number} "
        channel = "" if frame.channel < 0 else digits(frame.channel)
        if len(channel) != self._channel:
            self._channel = max(self._channel, len(channel))
            channel = channel.rjust(self._channel)
        self._on_channel = channel
        if self._plain:
            self._numbers_written = self._numbers.encode("utf-8")
            self._channel_written = f" {channel} ".encode()

    def _named(self, name: str, width: i64) -> str:
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

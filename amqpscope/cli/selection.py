"""Which frames, or which findings, a person asked for: the filters of `amqpscope read` and `check`."""

from __future__ import annotations

import datetime
import fnmatch
import ipaddress
import re
import shlex
from typing import TYPE_CHECKING

from amqpscope.errors import FilterError
from amqpscope.input.selection import FrameSelection
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.protocols import detected

if TYPE_CHECKING:
    from amqpscope.report.json_renderer import JsonRenderer
    from amqpscope.tracking.amqp10.identity import Link
    from dissectors.interface import Frame

__all__ = [
    "Bound",
    "Selection",
    "WantedConnection",
    "frame_names",
    "is_connection",
    "parse_bound",
    "parse_channels",
    "parse_names",
]

# The names that frames of no protocol have, or of any.
_PLAIN_NAMES = ("header", "undecodable", "skipped", "tls")

_MOST_CHANNELS = 65_536
"""Channels on which what goes on is followed."""

PROBLEM = "problem"
ERROR = "error"

_SECOND = 1_000_000_000


class Bound:
    """An end of a range: a packet number, a time (ns since 1970), or ns since the first frame.

    text: how it was given.
    """

    def __init__(self, kind: str, value: int, text: str) -> None:
        self.kind = kind
        self.value = value
        self.text = text


def parse_bound(option: str, text: str | None) -> Bound | None:
    """`1234` a packet; `+1.5` seconds after the first frame; an ISO 8601 date and time, UTC unless it says.

    None if the option was not given. Raises FilterError, which names the option, on anything else.
    """
    if text is None:
        return None
    if re.fullmatch(r"[0-9]{1,18}", text):
        return Bound("packet", int(text), text)
    relative = re.fullmatch(r"\+([0-9]{1,9})(?:\.([0-9]{1,9}))?s?", text)
    if relative:
        whole, fraction = relative.groups()
        return Bound("relative", int(whole) * _SECOND + _nanoseconds(fraction), text)
    # Python's own parser keeps six decimals; captures have nine.
    parts = re.fullmatch(r"([^.,]*)(?:[.,]([0-9]{1,9}))?([^.,0-9]?.*)", text)
    try:
        if parts is None:
            raise ValueError
        moment = datetime.datetime.fromisoformat(parts.group(1) + parts.group(3))
    except ValueError:
        raise FilterError(
            f"{option} {text!r}: must be a packet number, +SECONDS or a time such as 2026-01-31T12:00:00.5Z"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    seconds = since.days * 86_400 + since.seconds
    return Bound("time", seconds * _SECOND + _nanoseconds(parts.group(2)), text)


def _nanoseconds(fraction: str | None) -> int:
    """The decimals of a second as nanoseconds."""
    return int((fraction or "").ljust(9, "0"))


def parse_channels(text: str) -> frozenset[int]:
    """Channel numbers, separated by commas. Raises FilterError on what is none."""
    numbers = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch(r"[0-9]{1,5}", number) and int(number) < 0x10000 for number in numbers):
        raise FilterError(f"--channel {text!r}: channels are numbers from 0 to 65535, separated by commas")
    return frozenset(int(number) for number in numbers)


def frame_names() -> tuple[str, ...]:
    """What frames can be asked for by: names, the classes before the dot of names, kinds, and traits."""
    protocols = detected()
    names = (*_PLAIN_NAMES, *(name for one in protocols for name in one.json_renderer().names()))
    classes = dict.fromkeys(name.partition(".")[0] for name in names if "." in name)
    kinds = (kind for one in protocols for kind in one.kinds)
    return (*names, *classes, *kinds, PROBLEM, ERROR)


def parse_names(text: str) -> frozenset[str]:
    """Names, classes and kinds of frames between commas. Raises FilterError on an unknown one, or on none."""
    names = frozenset(name.strip().lower() for name in text.split(",") if name.strip())
    known = frame_names()
    wrong = sorted(names - set(known))
    if wrong or not names:
        short = dict.fromkeys(name for name in known if "." not in name)
        raise FilterError(
            f"--only {wrong[0] if wrong else text!r}: is no frame; there are {', '.join(short)}, "
            "and methods as basic.publish"
        )
    return names


class WantedConnection:
    """The connections that `--connection` names; see `is_connection`. Raises FilterError if it can name none.

    met: one of them was seen, in any capture.
    """

    def __init__(self, name: str) -> None:
        _check_connection(name)
        self.met = False
        self._name = name
        self._known: dict[Connection, bool] = {}
        # Of this capture.
        self._met = False
        self._streams: tuple[int, int] | None = None

    def restart(self) -> None:
        """Another capture begins."""
        self._known = {}
        self._met = False
        self._streams = None

    def takes(self, connection: Connection) -> bool:
        """Whether a connection is wanted."""
        taken = self._known.get(connection)
        if taken is None:
            taken = self._known[connection] = is_connection(connection, self._name)
            self._met = self._met or taken
            self.met = self.met or taken
            first, last = self._streams or (connection.stream, connection.stream)
            self._streams = min(first, connection.stream), max(last, connection.stream)
        return taken

    def forget(self, connection: Connection) -> None:
        """No more frames of this connection will come."""
        self._known.pop(connection, None)

    def missing(self) -> str:
        """That this capture has other connections, but none of these; "" if it has one, or no connection."""
        if self._met or self._streams is None:
            return ""
        first, last = self._streams
        there = f"is only {first}" if first == last else f"are {first} to {last}"
        return f"no connection {self._name} (there {there})"


class Selection(FrameSelection):
    """Frames, and findings, are taken that pass every criterion given.

    connection: see `is_connection`. link, address: a name, `*` and `?` standing for any characters; in
    AMQP 0-9-1 an address is an exchange, a queue or a routing key.
    only: names, classes and kinds, `problem` for malformed frames, `error` for those that report one.
    first, last: the range, both ends in it. certain: of findings only the certain ones. Raises FilterError on
    a connection that can be none.
    """

    def __init__(
        self,
        connection: str | None = None,
        channels: frozenset[int] | None = None,
        link: str | None = None,
        address: str | None = None,
        only: frozenset[str] | None = None,
        first: Bound | None = None,
        last: Bound | None = None,
        certain: bool = False,
    ) -> None:
        self._certain = certain
        self.connection = None if connection is None else WantedConnection(connection)
        # Channels whose last frame with a name of its own was of the address asked for.
        self._going_on: dict[Connection, set[tuple[int, int]]] = {}
        self._channels_going_on = 0
        self._channels = channels
        self._link = _pattern(link)
        self._address = _pattern(address)
        self._only = only
        self._names = frozenset() if only is None else only - {PROBLEM, ERROR}
        self._problems = only is not None and PROBLEM in only
        self._errors = only is not None and ERROR in only
        self._first = first
        self._last = last
        self._origin = 0
        criteria = (connection, channels, link, address, only, first, last, certain or None)
        self.everything = all(criterion is None for criterion in criteria)
        """No criterion was given."""
        self.all_frames = all(criterion is None for criterion in criteria[1:])
        """No criterion was given but the connection."""
        self.links = link is not None or address is not None
        """A frame's link is looked at."""
        self.messages = self._problems
        """A frame's message is looked at."""
        self.bounded = first is not None or last is not None
        """A range was given."""
        texts = {
            "--connection": connection,
            "--link": link,
            "--address": address,
            "--from": None if first is None else first.text,
            "--to": None if last is None else last.text,
        }
        given = [f"{option} {shlex.quote(text)}" for option, text in texts.items() if text is not None]
        self.words = " ".join([*given, *(["--certain"] if certain else [])])
        """The criteria by which findings are chosen, as on a command line."""

    @property
    def only_problems(self) -> bool:
        """Whether only malformed frames are asked for."""
        return self._only == frozenset({PROBLEM})

    def restart(self) -> None:
        """Another capture begins."""
        if self.connection is not None:
            self.connection.restart()
        self._going_on = {}
        self._channels_going_on = 0
        self._origin = 0

    def start(self, time: int) -> None:
        """The capture's first frame has this time."""
        self._origin = time

    def forget(self, connection: Connection) -> None:
        """No more frames of this connection will come."""
        if self.connection is not None:
            self.connection.forget(connection)
        self._channels_going_on -= len(self._going_on.pop(connection, ()))

    def missing(self) -> str:
        """That this capture lacks the connection asked for; "" if it has it, or if none was asked for."""
        return "" if self.connection is None else self.connection.missing()

    def takes(self, record: FrameRecord, link: Link | None) -> bool:
        """Whether this frame, of this link, is asked for."""
        if self.everything:
            return True
        frame = record.frame
        if self.connection is not None and not self.connection.takes(record.connection):
            return False
        if self._channels is not None and frame.channel not in self._channels:
            return False
        if not self.within(int(record.packet), int(record.time)):
            return False
        if self._link is not None and (link is None or not self._link.match(link.name)):
            return False
        if self._address is not None and not self._addressed(record, link):
            return False
        return self._only is None or self._named(record)

    def of_connection(self, connection: Connection) -> bool:
        """Whether something about this connection can be asked for."""
        return self.connection is None or self.connection.takes(connection)

    def takes_finding(self, finding: Finding) -> bool:
        """Whether this finding is asked for. Its place is that of the frame at fault."""
        if self._certain and not finding.certain:
            return False
        if not self.of_connection(finding.connection):
            return False
        if not self.within(int(finding.packet), int(finding.time)):
            return False
        if self._link is not None and not (finding.link_sender and self._link.match(finding.link)):
            return False
        address = self._address
        return address is None or any(address.match(name) for name in finding.addresses)

    def _named(self, record: FrameRecord) -> bool:
        frame = record.frame
        names = self._names
        if names and (frame.name in names or frame.kind in names or frame.name.partition(".")[0] in names):
            return True
        if self._problems:
            if frame.problems or (record.message is not None and _form(frame).message_problems(record)):
                return True
        return self._errors and _form(frame).reports_error(frame)

    def _addressed(self, record: FrameRecord, link: Link | None) -> bool:
        assert self._address is not None
        if link is not None:
            ends = [name for name in (link.source, link.target) if name is not None]
            return any(self._address.match(name) for name in ends)
        frame = record.frame
        names = _form(frame).addresses(frame)
        place = (int(record.direction), int(frame.channel))
        going_on = self._going_on.get(record.connection)
        before = going_on is not None and place in going_on
        if names is None:
            return before
        taken = any(self._address.match(name) for name in names)
        if taken and not before and self._channels_going_on < _MOST_CHANNELS:
            self._going_on.setdefault(record.connection, set()).add(place)
            self._channels_going_on += 1
        elif before and not taken and going_on is not None:
            going_on.discard(place)
            self._channels_going_on -= 1
        return taken

    def within(self, packet: int, time: int) -> bool:
        """Whether a packet of this number and time (ns) is in the range."""
        if self._first is not None and self._distance(packet, time, self._first) < 0:
            return False
        return self._last is None or self._distance(packet, time, self._last) <= 0

    def _distance(self, packet: int, time: int, bound: Bound) -> int:
        """Where a packet of this time (ns) is relative to a bound: negative before it, 0 on it, positive
        behind."""
        if bound.kind == "packet":
            return packet - bound.value
        if bound.kind == "relative":
            return time - self._origin - bound.value
        return time - bound.value


def _pattern(text: str | None) -> re.Pattern[str] | None:
    """A pattern in which only `*` and `?` are special: brackets are common in names."""
    return None if text is None else re.compile(fnmatch.translate(text.replace("[", "[[]")))


_ENDPOINT = r"(?:\[([^\]]*)\]|([^:\[\]]*))(?::([0-9]{1,5}))?\Z"


def is_connection(connection: Connection, wanted: str) -> bool:
    """Whether a connection is the one called `wanted`.

    That is its number, an end of it (`10.0.0.1`, `10.0.0.1:5672`, `[fd00::2]:5672`, `:5672`), or its id,
    with or without the number behind `#`. Raises FilterError if it can be none of these.
    """
    if re.fullmatch("[0-9]+", wanted):
        return connection.stream == int(wanted)
    if ">" in wanted:
        return wanted in (connection.id, connection.id.rpartition("#")[0])
    address, port = _parse_endpoint(wanted)
    for direction in (0, 1):
        own, own_port = connection.end(direction)
        if port in (None, own_port) and address in (None, ipaddress.ip_address(own)):
            return True
    return False


def _check_connection(wanted: str) -> None:
    """Raise FilterError if no connection can be called so; see `is_connection`."""
    if not re.fullmatch("[0-9]+", wanted) and ">" not in wanted:
        _parse_endpoint(wanted)


def _parse_endpoint(
    text: str,
) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address | None, int | None]:
    """Address and port of an end, None for the one that is not given."""
    try:
        match = re.match(_ENDPOINT, text)
        if match is None:
            return ipaddress.ip_address(text), None
        name = match.group(1) or match.group(2) or ""
        port = match.group(3)
        if not name and port is None:
            raise ValueError
        return ipaddress.ip_address(name) if name else None, int(port) if port is not None else None
    except ValueError:
        raise FilterError(
            f"--connection {text!r}: must be a number, an address (10.0.0.1, 10.0.0.1:5672, [fd00::2]:5672, "
            ":5672) or a connection id"
        ) from None


def _form(frame: Frame) -> JsonRenderer:
    """What knows the addresses and errors of a frame. It is loaded when somebody asks for these."""
    from amqpscope.report.json_renderers import FORMS

    return FORMS.of(frame)

"""Which frames a person asked for: the filters of `amqpscope read`."""

import datetime
import fnmatch
import re

from amqpscope.errors import FilterError
from amqpscope.model import Connection, FrameRecord, endpoint
from amqpscope.report.links import LinkOf

__all__ = ["Bound", "Selection", "parse_bound", "parse_names"]

FRAME_NAMES = (
    "header",
    "sasl-mechanisms",
    "sasl-init",
    "sasl-challenge",
    "sasl-response",
    "sasl-outcome",
    "open",
    "begin",
    "attach",
    "flow",
    "transfer",
    "disposition",
    "detach",
    "end",
    "close",
    "empty",
    "undecodable",
    "skipped",
)

FRAME_KINDS = ("amqp", "sasl")


class Bound:
    """An end of a range: a packet number, a time (ns since 1970), or ns since the first frame."""

    def __init__(self, kind: str, value: int) -> None:
        self.kind = kind
        self.value = value


def parse_bound(text: str) -> Bound:
    """`1234` a packet; `+1.5` seconds after the first frame; an ISO 8601 date and time, UTC unless it says.

    Raises FilterError on anything else.
    """
    if re.fullmatch(r"\d{1,18}", text):
        return Bound("packet", int(text))
    relative = re.fullmatch(r"\+(\d{1,9})(?:\.(\d{1,9}))?s?", text)
    if relative:
        whole, fraction = relative.groups()
        return Bound("relative", int(whole) * 1_000_000_000 + int((fraction or "").ljust(9, "0")))
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise FilterError(f"{text!r} is no packet number, no +seconds and no ISO 8601 time") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    since = moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    microseconds = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
    return Bound("time", microseconds * 1000)


def parse_names(text: str) -> frozenset[str]:
    """Frame names and kinds, separated by commas. Raises FilterError on an unknown one."""
    names = frozenset(name.strip() for name in text.split(",") if name.strip())
    for name in sorted(names):
        if name not in FRAME_NAMES and name not in FRAME_KINDS and name != "problem":
            known = ", ".join((*FRAME_NAMES, *FRAME_KINDS, "problem"))
            raise FilterError(f"{name!r} is no frame; there are {known}")
    return names


class Selection:
    """Frames are taken that pass every criterion given.

    connection: a `tcp.stream` number, an end (`10.0.0.1:5672` or `10.0.0.1`), or a whole connection id.
    link, address: a name, `*` and `?` standing for any characters. only: names and kinds, `problem`
    for frames with one. first, last: the range, both ends in it.
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
    ) -> None:
        self._connection = connection
        self._channels = channels
        self._link = link
        self._address = address
        self._only = only
        self._first = first
        self._last = last
        self._origin: int | None = None

    @property
    def everything(self) -> bool:
        """No criterion was given."""
        criteria = (
            self._connection,
            self._channels,
            self._link,
            self._address,
            self._only,
            self._first,
            self._last,
        )
        return all(criterion is None for criterion in criteria)

    def takes(self, record: FrameRecord, link: LinkOf | None) -> bool:
        """Whether this frame, of this link, is asked for."""
        if self._origin is None:
            self._origin = record.time
        frame = record.frame
        if self._only is not None and not self._names(record):
            return False
        if self._channels is not None and frame.channel not in self._channels:
            return False
        if self._connection is not None and not _is_connection(record.connection, self._connection):
            return False
        if self._link is not None and (link is None or not fnmatch.fnmatchcase(link.name, self._link)):
            return False
        if self._address is not None and not self._addressed(link):
            return False
        if self._first is not None and self._place(record, self._first) < 0:
            return False
        return self._last is None or self._place(record, self._last) <= 0

    def _names(self, record: FrameRecord) -> bool:
        assert self._only is not None
        frame = record.frame
        if frame.name in self._only or frame.kind in self._only:
            return True
        message = record.message
        return "problem" in self._only and bool(
            frame.problems or (message and message.sections() and message.problems)
        )

    def _addressed(self, link: LinkOf | None) -> bool:
        assert self._address is not None
        if link is None:
            return False
        names = [name for name in (link.source, link.target) if name is not None]
        return any(fnmatch.fnmatchcase(name, self._address) for name in names)

    def _place(self, record: FrameRecord, bound: Bound) -> int:
        """Where the frame stands relative to a bound: negative before it, 0 on it, positive behind."""
        if bound.kind == "packet":
            return int(record.packet) - bound.value
        if bound.kind == "relative":
            return int(record.time) - (self._origin or 0) - bound.value
        return int(record.time) - bound.value


def _is_connection(connection: Connection, wanted: str) -> bool:
    if wanted.isdecimal():
        return connection.stream == int(wanted)
    if wanted == connection.id:
        return True
    for direction in (0, 1):
        address, port = connection.end(direction)
        if wanted in (address, f"[{address}]", endpoint(address, port)):
            return True
    return False

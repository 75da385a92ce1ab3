"""The map of a connection: its sessions or channels, and the addresses, exchanges and queues that it uses.

A `MapLine` counts the messages between the connection and one place. The page joins the maps of all its
connections: one client may have several connections, and several connections may use the same queue. This
module judges nothing: findings come from the survey.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from amqpscope.draw.follower import Follower
from amqpscope.limits import MAX_MAP_LINES
from amqpscope.model.finding import Finding
from amqpscope.model.records import FrameRecord

__all__ = ["ConnectionMap", "MapLine", "MapUnit"]


class MapUnit:
    """A session or a channel. title: its name. packet: where it begins. error: that ended it, or ""."""

    def __init__(self, title: str, packet: int) -> None:
        self.title = title
        self.packet = packet
        self.error = ""
        self.lines: list[MapLine] = []


class MapLine:
    """The messages of a link, a consumer or a publisher.

    title: what it is called. sender: the peer that sends the messages. kind: of the place, `address`, `queue`
    or `exchange`. place: its name, "" for none. packet: where the line begins. refused: messages that were
    rejected or returned. error: that ended the link, or "".
    """

    def __init__(self, title: str, sender: str, kind: str, place: str, packet: int) -> None:
        self.title = title
        self.sender = sender
        self.kind = kind
        self.place = place
        self.packet = packet
        self.messages = 0
        self.refused = 0
        self.error = ""
        self._first = 0
        self._last = 0

    def sent(self, time: int) -> None:
        """A message is sent (ns)."""
        if not self.messages:
            self._first = time
        self._last = time
        self.messages += 1

    @property
    def rate(self) -> float:
        """Messages a second from the first message to the last one; 0 if there are fewer than two."""
        passed = self._last - self._first
        return (self.messages - 1) * 1e9 / passed if passed > 0 else 0.0


class ConnectionMap(Follower):
    """The map of one connection. A protocol has a subclass that knows its events.

    units: in the order in which they begin. bindings: the exchange, and the kind and name of what is bound to
    it. host: the virtual host, "" for none. more: further lines are not kept, because there are too many.
    """

    def __init__(self) -> None:
        self.units: dict[object, MapUnit] = {}
        self.lines: dict[tuple[object, ...], MapLine] = {}
        self.bindings: dict[tuple[str, str, str], None] = {}
        self.host = ""
        self.more = False

    def unit(self, key: object, title: str, record: FrameRecord) -> MapUnit:
        """The session or channel of this key, which begins here if it is new."""
        found = self.units.get(key)
        if found is None:
            found = MapUnit(title, int(record.packet))
            if len(self.units) < MAX_MAP_LINES:
                self.units[key] = found
        return found

    def line(self, unit: MapUnit, key: tuple[object, ...], line: MapLine) -> MapLine:
        """The line of this key, which is this one if the key is new. Of too many, it is not kept."""
        found = self.lines.get(key)
        if found is None:
            found = line
            if len(self.lines) < MAX_MAP_LINES:
                self.lines[key] = line
                unit.lines.append(line)
            else:
                self.more = True
        return found

    def found_at(self, finding: Finding) -> object:
        """The unit or line that a finding is about; the map itself if it is about neither."""
        return self

    def json(self, findings: Iterable[Finding]) -> dict[str, Any]:
        """As the page draws it. findings: of the connection."""
        places = [(self.found_at(finding), finding.certain) for finding in findings]
        found = Counter(place for place, _ in places)
        certain = {place for place, sure in places if sure}
        units = [
            {
                "title": unit.title,
                "packet": unit.packet,
                "error": unit.error,
                "found": found[unit],
                "certain": unit in certain,
                "lines": [_line(line, found[line], line in certain) for line in unit.lines],
            }
            for unit in self.units.values()
        ]
        bindings = [list(one) for one in self.bindings]
        return {"host": self.host, "units": units, "bindings": bindings, "more": self.more}


def _line(line: MapLine, found: int, certain: bool) -> dict[str, Any]:
    return {
        "title": line.title,
        "sender": line.sender,
        "kind": line.kind,
        "place": line.place,
        "packet": line.packet,
        "messages": line.messages,
        "rate": float(f"{line.rate:.3g}"),
        "refused": line.refused,
        "error": line.error,
        "found": found,
        "certain": certain,
    }

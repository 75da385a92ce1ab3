"""The map of AMQP 1.0: sessions, their links, and the addresses at the server's ends of these."""

from amqpscope.draw.follower import Walk
from amqpscope.draw.map import ConnectionMap, MapLine, MapUnit
from amqpscope.draw.words import wire_name
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER, FrameRecord
from amqpscope.tracking.amqp10.events import Listener10
from amqpscope.tracking.amqp10.identity import Link, OpenDelivery, Session
from dissectors.amqp10.messaging import Rejected
from dissectors.amqp10.performatives import Attach, Begin, Detach, Disposition, End, Transfer

__all__ = ["ConnectionMap10"]


class ConnectionMap10(ConnectionMap):
    """Follows one connection."""

    def __init__(self) -> None:
        super().__init__()
        # Links that are attached again under their names share a line. The last one knows the address.
        self._links: dict[MapLine, Link] = {}
        self._named: dict[tuple[str, str], MapLine] = {}

    def follow(self, walk: Walk) -> None:
        walk.names.conversation(walk.connection).subscribe(_Events(self))

    def line_of(self, record: FrameRecord, unit: MapUnit, link: Link) -> MapLine:
        """The line of a link."""
        title = f"link {wire_name(link.name)}"
        key = (unit, link.name, link.sender)
        line = self.line(unit, key, MapLine(title, link.sender, "address", "", int(record.packet)))
        if key in self.lines:
            self._links[line] = link
            self._named[link.name, link.sender] = line
        return line

    def finish(self) -> None:
        for line in self.lines.values():
            line.place = wire_name(self._links[line].address)

    def found_at(self, finding: Finding) -> object:
        return self._named.get((finding.link, finding.link_sender), self)


class _Events(Listener10):
    """Turns events into units and lines."""

    def __init__(self, drawn: ConnectionMap10) -> None:
        self._map = drawn
        # Those that are not over.
        self._units: dict[Session, MapUnit] = {}
        self._begun = 0
        self._lines: dict[Link, MapLine] = {}

    def session_begun(self, record: FrameRecord, body: Begin, session: Session) -> None:
        self._unit(record, session)

    def session_ended(self, record: FrameRecord, body: End, session: Session) -> None:
        unit = self._unit(record, session)
        if body.error is not None:
            unit.error = unit.error or wire_name(body.error.condition) or "error"
        if session.ended_by(CLIENT) and session.ended_by(SERVER):
            del self._units[session]

    def link_attached(self, record: FrameRecord, body: Attach, session: Session, link: Link) -> None:
        if link not in self._lines:
            self._lines[link] = self._map.line_of(record, self._unit(record, session), link)

    def link_detached(self, record: FrameRecord, body: Detach, link: Link) -> None:
        line = self._lines.get(link)
        if line is not None and body.error is not None:
            line.error = line.error or wire_name(body.error.condition) or "error"
        if link.detached == link.attached:
            self._lines.pop(link, None)

    def delivery_started(self, record: FrameRecord, body: Transfer, delivery: OpenDelivery) -> None:
        line = None if delivery.link is None else self._lines.get(delivery.link)
        if line is not None:
            line.sent(int(record.time))

    def disposition(
        self, record: FrameRecord, body: Disposition, session: Session, deliveries: list[OpenDelivery]
    ) -> None:
        if isinstance(body.state, Rejected):
            for delivery in deliveries:
                line = None if delivery.link is None else self._lines.get(delivery.link)
                if line is not None:
                    line.refused += 1

    def _unit(self, record: FrameRecord, session: Session) -> MapUnit:
        unit = self._units.get(session)
        if unit is None:
            number = self._begun
            self._begun += 1
            unit = self._units[session] = self._map.unit(number, f"session {number}", record)
        return unit

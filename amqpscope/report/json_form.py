"""Frames as JSON text: the contract of `read --format ndjson`, for all protocols.

The modules of the protocols, `amqp10.json_form` and `amqp091.json_form`, describe `fields` and `message`, and
how values are written without loss. The text is ASCII throughout.
"""

from json.encoder import encode_basestring_ascii as quote

from amqpscope.model.records import Connection, FrameRecord
from amqpscope.report.digits import digits
from amqpscope.report.json_renderer import problems_json, text_json
from amqpscope.report.json_renderers import JsonRenderers
from amqpscope.report.links import LinkNames
from amqpscope.report.moment import iso
from amqpscope.tracking.amqp10.identity import Link
from dissectors.wire import i64

__all__ = ["FrameForm"]


class FrameForm:
    """Frames of one capture as lines of JSON.

    capture: the file's name. bodies: with the bodies of messages. names: asked for the link of every frame
    of the capture, in `lines` or before `line`.
    """

    def __init__(self, capture: str, bodies: bool, names: LinkNames) -> None:
        self._capture: str = '{"capture": ' + quote(capture) + ', "packet": '
        self._bodies: bool = bodies
        self._names: LinkNames = names
        self._forms: JsonRenderers = JsonRenderers()
        # What the last frame's line had in common with nearly every next one's.
        self._time: i64 = -1
        self._moment: str = ""
        self._connection: Connection | None = None
        self._protocol: str = ""
        self._of_client: str = ""
        self._of_server: str = ""
        self._name: str = ""
        self._address: str | None = None
        self._linked: str = ', "link": ""'

    def line(self, record: FrameRecord, link: Link | None) -> str:
        """One frame, of this link."""
        frame = record.frame
        connection = record.connection
        if connection is not self._connection or connection.protocol is not self._protocol:
            self._meet(connection)
        if record.time != self._time:
            self._time = record.time
            self._moment = ', "time": "' + iso(record.time)
        form = self._forms.of(frame)
        guarded = form.guards(record, link, self._names)
        sender = self._of_client if record.direction == connection.client else self._of_server
        channel = "null" if frame.channel < 0 else digits(frame.channel)
        size = "null" if connection.retold else digits(frame.size)
        fields = form.fields(frame, guarded)
        problems = "[]" if not frame.problems else problems_json(frame.problems, guarded)
        rest = ""
        if record.last_packet != record.packet:
            rest = f', "last_packet": {record.last_packet}'
        if frame.missing > 0 and frame.absent > 0:
            rest += f', "missing": {frame.absent}'
        if form.has_payload(frame):
            rest += f', "payload": {digits(form.payload(frame))}'
        if link is not None:
            rest += self._link(link)
        if record.message is not None:
            rest += ', "message": ' + form.message(record, link, self._names, self._bodies)
        return (
            f'{self._capture}{record.packet}{self._moment}{sender}{frame.kind}", "name": "{frame.name}", '
            f'"channel": {channel}, "size": {size}, "fields": {fields}, "problems": {problems}{rest}}}'
        )

    def lines(self, records: list[FrameRecord]) -> list[str]:
        """Several frames, the next ones of the capture; their links are asked for here."""
        names = self._names
        return [self.line(record, names.of(record)) for record in records]

    def _meet(self, connection: Connection) -> None:
        """Prepare what is the same in all frames of a connection."""
        self._connection = connection
        self._protocol = connection.protocol
        common = '", "connection": "' + connection.id + '", "peer": "'
        rest = '", "protocol": "' + connection.protocol + '", "kind": "'
        self._of_client = common + "client" + rest
        self._of_server = common + "server" + rest

    def _link(self, link: Link) -> str:
        """The members that name a frame's link."""
        name = link.name
        address = link.address
        if name is not self._name or address is not self._address:
            self._name = name
            self._address = address
            self._linked = ', "link": ' + text_json(name)
            if address is not None:
                self._linked += ', "address": ' + text_json(address)
        return self._linked

"""The second reading of a capture that is drawn: the ladders of the connections that were chosen."""

import gc
from collections.abc import Iterable

from amqpscope.draw.bounds import KnownBounds
from amqpscope.draw.flow import FlowCharts
from amqpscope.draw.follower import Walk
from amqpscope.draw.map import ConnectionMap
from amqpscope.draw.states import StatePaths
from amqpscope.draw.survey import ConnectionKey, Survey, SurveyedConnection, connection_key
from amqpscope.input.capture import Capture
from amqpscope.input.selection import FrameSelection
from amqpscope.limits import MAX_DRAWN_ROWS
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.protocols import PROTOCOLS
from amqpscope.report.frames_around import FramesAround
from amqpscope.report.ladder_model import Ladder, LadderBuilder, Read
from amqpscope.report.links import LinkNames
from amqpscope.tracking.amqp10.identity import Link

__all__ = ["Picture", "PictureBuilder"]


class Picture:
    """What is drawn. ladders: with what the survey knows of their connections, the worst first.

    paths, flows, maps: of each connection the paths through the state diagrams, the charts and the map, if
    they were asked for and there are any. times: of packets that diagnoses name (ns).
    """

    def __init__(self, survey: Survey) -> None:
        self.survey = survey
        self.ladders: list[tuple[SurveyedConnection, Ladder]] = []
        self.paths: dict[ConnectionKey, StatePaths] = {}
        self.flows: dict[ConnectionKey, FlowCharts] = {}
        self.maps: dict[ConnectionKey, ConnectionMap] = {}
        self.times: dict[int, int] = {}


class PictureBuilder:
    """Takes the frames of a capture again; gives the ladders of some of its connections.

    chosen: the connections. wanted: the frames. most: frames of each that are drawn. fields: whether all
    fields are kept, and state diagrams, the flow and the map are followed.
    """

    def __init__(
        self,
        survey: Survey,
        chosen: Iterable[SurveyedConnection],
        wanted: FrameSelection,
        most: int = MAX_DRAWN_ROWS,
        fields: bool = False,
    ) -> None:
        self._chosen: dict[ConnectionKey, SurveyedConnection] = {one.key: one for one in chosen}
        self._wanted = wanted
        self._most = most
        self._fields = fields
        self._names = LinkNames()
        self._builders: dict[ConnectionKey, LadderBuilder] = {}
        self._begun: set[ConnectionKey] = set()
        self._bounds: dict[ConnectionKey, KnownBounds] = {}
        self._walks: dict[ConnectionKey, Walk] = {}
        self._picture = Picture(survey)
        self._packets = frozenset(packet for one in self._chosen.values() for packet in one.packets)

    def read(self, capture: Capture, around: int = 0) -> Picture:
        """Read a capture to its end, which also gives the connections that are over. Raises CaptureError.

        around: only the frames next to this packet are drawn; 0 for all that are wanted.
        """
        # The reading before has left its connections in cycles: they are freed before these take their place.
        gc.collect()
        near = FramesAround(around) if around else None
        started = False

        def take(record: FrameRecord) -> None:
            key = connection_key(record.connection)
            if key not in self._chosen:
                return
            if self._fields:
                if key not in self._begun:
                    self._begin(key, record)
                if record.packet in self._packets:
                    self._picture.times.setdefault(int(record.packet), int(record.time))
            link = self._names.of(record)
            if key in self._walks:
                self._walks[key].take(record)
            wanted = self._wanted.takes(record, link)
            bounds = self._bounds.get(key)
            read = None if bounds is None else bounds.take(record, wanted and near is None)
            if not wanted:
                return
            if near is None:
                self._add(record, link, read)
            else:
                near.add(record, link)

        for records in capture.blocks():
            if records and not started:
                started = True
                self._wanted.start(int(records[0].time))
            capture.each(records, take)
            for analysis in capture.take_ended():
                self._end(analysis.connection)
        if near is not None:
            self._draw(near)
        return self.picture(around == 0)

    def _begin(self, key: ConnectionKey, record: FrameRecord) -> None:
        """The first frame of a connection: from here on its state diagrams, flow and map are followed."""
        self._begun.add(key)
        picture = self._picture
        protocol = PROTOCOLS.get(self._chosen[key].connection.protocol)
        if protocol is None:
            return
        paths, flow, drawn = protocol.state_paths(), protocol.flow_charts(), protocol.connection_map()
        self._bounds[key] = KnownBounds(record.connection)
        walk = self._walks[key] = Walk(self._names, record.connection)
        if paths is not None:
            walk.add(paths)
            picture.paths[key] = paths
        if flow is not None:
            walk.add(flow)
            picture.flows[key] = flow
        if drawn is not None:
            walk.add(drawn)
            picture.maps[key] = drawn

    def _end(self, connection: Connection) -> None:
        """A connection is over: what followed it is not kept."""
        self._names.forget(connection)
        key = connection_key(connection)
        self._bounds.pop(key, None)
        walk = self._walks.pop(key, None)
        if walk is not None:
            walk.finish()

    def _draw(self, near: FramesAround) -> None:
        """Draw the frames next to a packet, with links named anew: the connection may be over."""
        self._names = LinkNames()
        for record, link in near.kept:
            self._names.of(record)
            self._add(record, link)

    def _add(self, record: FrameRecord, link: Link | None, read: Read | None = None) -> None:
        key = connection_key(record.connection)
        builder = self._builders.get(key)
        if builder is None:
            one = self._chosen[key]
            builder = self._builders[key] = LadderBuilder(
                record.connection,
                [finding for finding in one.findings if self._wanted.takes_finding(finding)],
                folds=True,
                remarks=one.remarks,
                wanted=one.packets,
                most=self._most,
                fields=self._fields,
            )
        builder.add(record, link, self._names, read)

    def picture(self, whole: bool = True) -> Picture:
        """What was read so far. whole: what is found at no frame has an arrow, else it is left out."""
        picture = self._picture
        for key, one in self._chosen.items():
            builder = self._builders.get(key)
            if builder is not None:
                picture.ladders.append((one, builder.ladder(whole)))
        for walk in self._walks.values():
            walk.finish()
        return picture

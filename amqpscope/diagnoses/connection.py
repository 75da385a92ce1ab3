"""Watches one connection for diagnoses, whatever its protocol is.

A watch takes the frames in the order of the analysis, and the analysis of the connection when it is over.
What is not known is not diagnosed: where octets are missing, all that lasts is concluded at the time up to
which it was seen, and all that was known is forgotten.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.notebook import Heard, Notebook
from amqpscope.diagnoses.opening import OpeningWatch
from amqpscope.diagnoses.several import Several
from amqpscope.diagnoses.speech import Speech
from amqpscope.diagnoses.tls import tls_failures
from amqpscope.diagnoses.transport import TransportWatch
from amqpscope.diagnoses.watch import ProtocolWatches
from amqpscope.diagnoses.websocket import websocket_failures
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.records import Connection, FrameRecord, FrameWatch, endpoint, side_of
from amqpscope.protocols import protocol_of
from amqpscope.reassembly.bounds import StreamStart
from dissectors.wire import i64

if TYPE_CHECKING:
    from amqpscope.diagnoses.amqp091.numbers import Numbers091
    from amqpscope.diagnoses.amqp10.numbers import Numbers10
    from amqpscope.tracking.events import Conversation

__all__ = ["ConnectionDiagnosis"]


class ConnectionDiagnosis(FrameWatch):
    """Watches one connection. several: shared by all connections of the capture.

    conversation: what follows the connection already; None to follow it here.
    """

    def __init__(
        self, connection: Connection, several: Several, conversation: Conversation | None = None
    ) -> None:
        super().__init__()
        self.several: Several = several
        self.notebook: Notebook = Notebook(connection, several.limits)
        # The last frame was none: what follows it is looked at.
        self.torn: bool = False
        # Nothing is due but to follow the next frame, if it is sound and in the packet of the last one:
        # `torn` is false, the opening is over, and all who are to listen do so.
        self.plain: bool = False
        # How many messages came.
        self.messages: i64 = 0
        protocol = protocol_of(connection.protocol)
        self.speech: Speech = protocol.speech()
        self.opening: OpeningWatch = OpeningWatch(self.notebook, self.speech)
        self.transport: TransportWatch = TransportWatch(self.notebook, self.speech)
        # Who follows it and listens, by its protocol.
        self.watches: ProtocolWatches = protocol.watches(self.notebook, several, conversation)
        # What follows it and is given each frame here, None if somebody else gives it the frames.
        self.followed: Conversation | None = self.watches.conversation if self.watches.follows else None

    @property
    def conversation(self) -> Conversation:
        """What follows the connection."""
        return self.watches.conversation

    @property
    def numbers(self) -> Numbers10 | Numbers091 | None:
        """Who counts and measures; None if nobody does, or no session was begun."""
        return self.watches.numbers

    def measure(self) -> None:
        """Count and measure from the next frame on, too."""
        self.watches.measure()

    def add(self, record: FrameRecord) -> None:
        """The next frame of the connection."""
        frame = record.frame
        followed = self.followed
        if (
            followed is None
            or not self.plain
            or frame.missing > 0
            or not record.started
            or record.unseen
            or frame.problems
        ):
            self.prepare(record)
            self.follow(record)
            return
        side = side_of(record)
        notebook = self.notebook
        heard = notebook.client if side == 0 else notebook.server
        within = _within(record, heard)
        if not within:
            self.transport.packet(record, side)
        if record.message is not None:
            self.messages += 1
        if followed.take(record):
            self._connect(record, side)
        # Now, so that a peer that answers is not taken for one that was there and did not answer.
        if within:
            heard.end = frame.offset + frame.size
            notebook.acknowledges(record, heard)
        else:
            notebook.hear(record, side)

    def _connect(self, record: FrameRecord, side: i64) -> None:
        """A frame of a side that may be about the connection as a whole."""
        body = record.frame.body
        if body is not None:
            self.speech.connect(body, record.time, side, self.transport)

    def follow(self, record: FrameRecord) -> None:
        """The same frame: have the conversation take it, unless somebody else has done so."""
        if self.followed is not None:
            self.followed.take(record)
        self.notebook.hear(record, side_of(record))

    def prepare(self, record: FrameRecord) -> i64:
        """The next frame of the connection, before the conversation takes it. Returns its sender's side."""
        side = side_of(record)
        frame = record.frame
        if not self.watches.listening:
            self.watches.listen(frame)
        if frame.missing > 0 or not record.started or record.unseen:
            self.notebook.gappy = True
            self._lose(side)
        if self.torn or frame.problems:
            self.torn = frame.kind == "skipped"
            self.watches.look(record)
            if self.torn or frame.body is None:
                self._lose(side)
        if not self.opening.answered:
            self.opening.take(record, side)
        if not _within(record, self.notebook.heard(side)):
            self.transport.packet(record, side)
        if record.message is not None:
            self.messages += 1
        self._connect(record, side)
        self.plain = not self.torn and self.watches.listening and self.opening.answered
        return side

    def _lose(self, side: i64) -> None:
        """Octets of a side are missing before this frame."""
        notebook = self.notebook
        notebook.lossy = True
        until = min(notebook.heard(side).time, notebook.frame_time())
        self.watches.lost(until)

    def lasting(self, analysis: ConnectionAnalysis, now: i64) -> list[Diagnosis]:
        """The diagnoses of waits that last at a time (ns), as if the capture ended then."""
        notebook = self.notebook
        made = notebook.begin_looking(now)
        notebook.client.segment_time = analysis.tcp.stream(notebook.direction(0)).time
        notebook.server.segment_time = analysis.tcp.stream(notebook.direction(1)).time
        self.transport.lasting(analysis)
        self.watches.lasting(now)
        return [one for one in notebook.end_looking(made) if not one.ended_packet]

    def finish(self, analysis: ConnectionAnalysis, accused: set[str]) -> list[Diagnosis]:
        """The connection is over, or the capture is: its diagnoses, in the order of packets.

        accused: the peers with findings against them.
        """
        notebook = self.notebook
        client = analysis.tcp.stream(notebook.direction(0))
        server = analysis.tcp.stream(notebook.direction(1))
        notebook.client.segment_time = client.time
        notebook.server.segment_time = server.time
        notebook.end_time = max(notebook.client.last_time(), notebook.server.last_time())
        for side in (1, 0):
            direction = analysis.second if notebook.direction(side) else analysis.first
            if direction.end_packet and (notebook.end_side < 0 or direction.end_packet < notebook.end_packet):
                notebook.end_time = min(direction.end_time, notebook.end_time)
                notebook.end_packet = direction.end_packet
                notebook.end_side = side
        if not notebook.lossy and (client.gaps.missing or server.gaps.missing):
            self._lose(0 if client.gaps.missing else 1)
        self.transport.conclude(analysis)
        self.watches.finish(accused)
        self.watches.dismiss()
        self.opening.conclude(analysis)
        tls_failures(notebook, analysis)
        websocket_failures(notebook)
        self._leave(client.start, server.start)
        return sorted(notebook.found, key=lambda one: one.packet) if notebook.found else []

    def _leave(self, client: StreamStart, server: StreamStart) -> None:
        """Tell the other connections of this one, if it was opened and is over."""
        notebook = self.notebook
        if not self.transport.opened or notebook.end_side < 0:
            return
        connection = notebook.connection
        host = connection.end(notebook.direction(0))[0]
        to = endpoint(*connection.end(notebook.direction(1)))
        first = server if client.packet == 0 or 0 < server.packet < client.packet else client
        self.several.connected(
            host,
            to,
            connection.id,
            connection.protocol,
            int(first.packet),
            int(first.time),
            int(self.messages),
        )


def _within(record: FrameRecord, heard: Heard) -> bool:
    """Whether a frame begins and ends where the last frame of its sender does: in the same packet."""
    time = record.time
    return (
        record.packet == heard.packet
        and time == heard.begun
        and record.last_time == heard.time
        and time <= heard.time
    )

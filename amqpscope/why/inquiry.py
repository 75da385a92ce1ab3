"""Explains one packet: the capture is read again, and its connection is replayed up to the packet and
further.

Theory of operation. First the packet is found as a TCP segment (`segment`), which gives its endpoints. Then
the capture is read with all its rules, as `check` does. The frames of the connections between the two
endpoints are replayed once more to endpoints of our own, which can say at any frame what they could and must
have known before it. The `Grounds` know where everything that matters to a frame was sent. After the frame,
its `AnswerWatch` looks for answers until the capture ends.

A frame belongs to a packet if any octet of the frame lies in it. A packet in the middle of a long frame is
therefore explained by that frame, and a packet without a frame by the current state of both peers.
"""

from collections import deque
from collections.abc import Iterator

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.diagnoses.capture import CaptureDiagnoses
from amqpscope.input.replay import ReplayableCapture
from amqpscope.limits import MAX_QUESTIONS, MAX_REMEMBERED_FRAMES
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection, FrameRecord
from amqpscope.protocols import protocol_of
from amqpscope.rules.judge import Judge
from amqpscope.tracking.inbox import Recipient
from amqpscope.tracking.snapshot import ConnectionSnapshot
from amqpscope.why.diagnosed import concerns
from amqpscope.why.frame_ref import FrameQuestion, Ground, Knew, Position, Sequel
from amqpscope.why.grounds import Grounds
from amqpscope.why.segment import AskedSegment, segment_of
from amqpscope.why.watch import AnswerWatch

__all__ = ["Answer", "inquire"]

_UNSURE_REPORTED = 8
"""Frames that are listed by name, of those that a peer may or may not have read."""

_FINDINGS_KEPT = 1000


class Answer:
    """All that there is to say of a packet.

    connection: None if no AMQP was found on it. peer: who sent the packet. before: both endpoints before the
    packet's first frame. questions: its frames; more: how many more there are. findings: what is found at the
    packet but at none of these frames. named_by: findings elsewhere that the packet matters to. diagnoses:
    those that name the packet, or last while it is sent. earlier, later: the frames next to it, if none is in
    it.
    """

    def __init__(self, name: str, segment: AskedSegment) -> None:
        self.name = name
        self.segment = segment
        self.connection: Connection | None = None
        self.peer = ""
        self.before: ConnectionSnapshot | None = None
        self.questions: list[FrameQuestion] = []
        self.more = 0
        self.ended: FrameQuestion | None = None
        self.findings: list[Finding] = []
        self.named_by: list[Finding] = []
        self.diagnoses: list[Diagnosis] = []
        self.earlier: Position | None = None
        self.later: Position | None = None

    def others(self) -> set[int]:
        """Packets that the findings name besides, and those of the findings that name this one."""
        found = {
            int(packet) for question in self.questions for one in question.findings for packet in one.others
        }
        found.update(int(packet) for one in self.findings for packet in one.others)
        if self.ended is not None:
            found.update(int(packet) for one in self.ended.findings for packet in one.others)
        found.update(int(one.packet) for one in self.named_by)
        return {packet for packet in found if packet > 0 and packet != self.segment.packet}

    def marks(self) -> Iterator[Position]:
        """Every frame that is spoken of."""
        for question in self.questions:
            yield question.mark
            yield from (ground.mark for ground in question.grounds if ground.mark is not None)
            yield from (sequel.mark for sequel in question.sequels)
        if self.ended is not None:
            yield from (ground.mark for ground in self.ended.grounds if ground.mark is not None)
        yield from (mark for mark in (self.earlier, self.later) if mark is not None)


class _Asked:
    """A frame that is asked about, while what follows it is still looked for."""

    def __init__(
        self,
        record: FrameRecord,
        subject: str,
        knew: Knew,
        other_knew: Knew,
        grounds: list[Ground],
        watch: AnswerWatch,
    ) -> None:
        self.mark = Position.of(record)
        self.subject = subject
        self.last_packet = int(record.last_packet)
        self.knew = knew
        self.other_knew = other_knew
        self.grounds = grounds
        self.watch = watch
        self.arrived: Sequel | None = None
        self.read: Sequel | None = None


class Replay:
    """Replays one connection, and asks at the frames of one packet."""

    def __init__(self, connection: Connection, packet: int, direction: int, segment: AskedSegment) -> None:
        self.connection = connection
        self.ended: FrameQuestion | None = None
        self.before: ConnectionSnapshot | None = None
        self.asked: list[_Asked] = []
        self.more = 0
        self.earlier: Position | None = None
        self.later: Position | None = None
        self.first_packet = 0
        self._packet = packet
        self._direction = direction
        self._ending = segment.ends
        self._read_before: list[tuple[Position, bool]] = []
        self._acknowledged = -1
        self._time = segment.time
        self._judge: Judge | None = None
        self._grounds = Grounds()
        self._said: tuple[deque[Position], deque[Position]] = (
            deque(maxlen=MAX_REMEMBERED_FRAMES),
            deque(maxlen=MAX_REMEMBERED_FRAMES),
        )

    def take(self, record: FrameRecord) -> None:
        """The next frame of the connection."""
        judge = self._judge
        if judge is None:
            protocol = protocol_of(self.connection.protocol)
            self._judge = judge = protocol.judge(self.connection, [], None, None)
            judge.believe_log()
            self._grounds = protocol.grounds()
            self.first_packet = int(record.packet)
        wanted = (
            int(record.direction) == self._direction and record.packet <= self._packet <= record.last_packet
        )
        if self.before is None and (wanted or record.packet >= self._packet):
            self._pause(judge, wanted, record.time)
        if wanted:
            self._ask(judge, record)
        elif record.packet < self._packet:
            self.earlier = Position.of(record)
        elif self.later is None:
            self.later = Position.of(record)
        self._grounds.take(record)
        judge.take(record)
        judge.findings.clear()
        self._said[int(record.direction)].append(Position.of(record))
        if self.asked:
            self._heed(judge, record)

    def finish(self) -> None:
        """The capture has ended."""
        if self.before is None and self._judge is not None:
            self._pause(self._judge, False, self._time)
        if self.ended is not None:
            self.ended = self._end_knew(self.ended)

    def _pause(self, judge: Judge, wanted: bool, time: int) -> None:
        """Here, at `time` (ns), the packet stands. wanted: with frames."""
        self.before = judge.snapshot()
        client = self.connection.client
        self.before.client.stall = judge.endpoint(client).stalls.last(time)
        self.before.server.stall = judge.endpoint(1 - client).stalls.last(time)
        if wanted or not self._ending:
            return
        direction = self._direction
        self._read_before = self._read(direction, judge.endpoint(direction))
        mark = Position(direction, -1, -1, self._packet, 0, "end of stream", -1)
        self.ended = FrameQuestion(
            mark,
            "",
            self._packet,
            self._knew(direction, judge.endpoint(direction)),
            self._knew(1 - direction, judge.endpoint(1 - direction)),
            self._grounds.of_end(direction, direction == client),
            [],
            [],
        )

    def over(self, analysis: ConnectionAnalysis) -> None:
        """The connection is over."""
        acknowledged = analysis.tcp.end_acknowledged(self._direction)
        self._acknowledged = int(analysis.heard(self._direction, acknowledged))

    def _end_knew(self, ended: FrameQuestion) -> FrameQuestion:
        """The segment that ended a stream acknowledged octets itself: more than the frames before it did."""
        if self._acknowledged < 0:
            return ended
        return ended._replace(knew=self._knew_of(self._direction, self._acknowledged, self._read_before))

    def _ask(self, judge: Judge, record: FrameRecord) -> None:
        if len(self.asked) >= MAX_QUESTIONS:
            self.more += 1
            return
        direction = int(record.direction)
        me, peer = judge.endpoint(direction), judge.endpoint(1 - direction)
        me.catch_up(record.acknowledged, peer.sent_end)
        me.prove(record)
        self.asked.append(
            _Asked(
                record,
                self._grounds.subject(record),
                self._knew(direction, me),
                self._knew(1 - direction, peer),
                _joined([ground for ground in self._grounds.of(record) if _before(ground, record)]),
                self._grounds.watch(record),
            )
        )

    def _read(self, direction: int, endpoint: Recipient) -> list[tuple[Position, bool]]:
        """The other's frames, and whether the peer that sends in a direction had read each for certain."""
        said = self._said[1 - direction]
        return [(mark, endpoint.has_read(mark.name, mark.channel, mark.end)) for mark in said]

    def _knew(self, direction: int, endpoint: Recipient) -> Knew:
        """What the peer that sends in a direction knew of the other's frames."""
        return self._knew_of(direction, int(endpoint.knowledge.could), self._read(direction, endpoint))

    def _knew_of(self, direction: int, could: int, said: list[tuple[Position, bool]]) -> Knew:
        """The same. could: octets that the peer can have read. said: what `_read` gave."""
        read: Position | None = None
        arrived: Position | None = None
        unsure: list[Position] = []
        coming: Position | None = None
        coming_count = 0
        for mark, certain in said:
            if certain:
                read = arrived = mark
            elif mark.end <= could:
                arrived = mark
                unsure.append(mark)
            else:
                coming = mark
                coming_count += 1
        return Knew(
            self.connection.peer(direction),
            read,
            arrived,
            unsure[-_UNSURE_REPORTED:],
            len(unsure),
            frozenset(mark.end for mark in unsure),
            coming,
            coming_count,
        )

    def _heed(self, judge: Judge, record: FrameRecord) -> None:
        """A frame of the other peer's shows that it had what is asked about, or that it had read it."""
        endpoint = judge.endpoint(record.direction)
        for asked in self.asked:
            if asked.mark.direction == int(record.direction) or asked.read is not None:
                continue
            mark = Position.of(record)
            peer = record.peer
            if asked.arrived is None and endpoint.knowledge.could >= asked.mark.end:
                asked.arrived = Sequel(
                    f"the first frame that the {peer} sent after this frame had arrived", mark
                )
            if endpoint.has_read(asked.mark.name, asked.mark.channel, asked.mark.end):
                asked.read = Sequel(f"shows that the {peer} had read this frame", mark)


def inquire(material: ReplayableCapture, packet: int) -> Answer:
    """Why a packet, counted from 1, is as it is.

    Raises CaptureError for what cannot be read, FilterError for a packet that is not there.
    """
    segment = segment_of(material, packet)
    key = segment.key
    width = (len(key) - 4) // 2
    backward = key[width : 2 * width] + key[:width] + key[-2:] + key[-4:-2]
    replays: dict[Connection, Replay] = {}
    findings: list[Finding] = []
    diagnoses: list[Diagnosis] = []
    watches = CaptureDiagnoses({})
    with material.capture(judge=True, ended=True) as capture:
        answer = Answer(capture.name, segment)

        def take(record: FrameRecord) -> None:
            watches.add(record)
            connection = record.connection
            replay = replays.get(connection)
            if replay is None:
                if connection.key not in (key, backward):
                    return
                direction = 0 if connection.key == key else 1
                replay = Replay(connection, packet, direction, segment)
                replays[connection] = replay
            replay.take(record)

        for records in capture.blocks():
            capture.each(records, take)
            found = capture.take_findings()
            watches.judge(found)
            findings += _about(found, (key, backward), packet, len(findings))
            for analysis in capture.take_ended():
                replay = replays.get(analysis.connection)
                if replay is not None:
                    replay.over(analysis)
                try:
                    diagnoses += watches.end(analysis)
                except Exception as error:
                    capture.fail(analysis.connection, error)
        diagnoses += watches.finish()
    chosen = _chosen(list(replays.values()), packet)
    if chosen is not None:
        chosen.finish()
        _conclude(answer, chosen, [one for one in findings if one.connection is chosen.connection])
        of_connection = [one for one in diagnoses if one.connection == chosen.connection.id]
        answer.diagnoses = [one for one in of_connection if concerns(one, packet)]
    return answer


def _before(ground: Ground, record: FrameRecord) -> bool:
    """Not what the capture has behind a frame that was a long time coming."""
    return ground.mark is None or ground.mark.packet <= record.packet


def _joined(grounds: list[Ground]) -> list[Ground]:
    """What one frame does in several ways is reported once."""
    joined: dict[tuple[str, object], Ground] = {}
    for ground in grounds:
        key = (ground.effect, ground.what if ground.mark is None else ground.mark)
        before = joined.get(key)
        both = ground if before is None else before._replace(what=f"{before.what}; {ground.what}")
        joined[key] = both
    return list(joined.values())


def _about(found: list[Finding], keys: tuple[bytes, bytes], packet: int, kept: int) -> list[Finding]:
    """Those that the packet matters to."""
    about = [
        one for one in found if one.connection.key in keys and (one.packet == packet or packet in one.others)
    ]
    return about[: max(_FINDINGS_KEPT - kept, 0)]


def _chosen(replays: list[Replay], packet: int) -> Replay | None:
    """The connection that the packet is of, of all those between its two endpoints."""
    for replay in replays:
        if replay.asked:
            return replay
    begun = [replay for replay in replays if replay.first_packet <= packet]
    return begun[-1] if begun else next(iter(replays), None)


def _conclude(answer: Answer, replay: Replay, findings: list[Finding]) -> None:
    """Put together what the replay gave, with the findings of the connection that matter."""
    connection = replay.connection
    answer.connection = connection
    answer.peer = connection.peer(0 if connection.key == answer.segment.key else 1)
    answer.before = replay.before
    answer.more = replay.more
    packet = answer.segment.packet
    here = [one for one in findings if one.packet == packet]
    answer.named_by = [one for one in findings if one.packet != packet]
    places = {asked.mark.place: asked.mark.name for asked in replay.asked}
    reported: set[int] = set()
    for asked in replay.asked:
        own = [one for one in here if id(one) not in reported and _stands_at(one, asked.mark, places)]
        reported.update(id(one) for one in own)
        sequels = list(asked.watch.sequels)
        for sequel in (asked.read, asked.arrived):
            if sequel is not None and all(sequel.mark != one.mark for one in sequels):
                sequels.append(sequel)
        answer.questions.append(
            FrameQuestion(
                asked.mark,
                asked.subject,
                asked.last_packet,
                asked.knew,
                asked.other_knew,
                asked.grounds,
                own,
                sorted(sequels, key=_when),
            )
        )
    answer.findings = [one for one in here if id(one) not in reported]
    if replay.ended is not None:
        answer.ended = replay.ended._replace(findings=answer.findings)
        answer.findings = []
    elif not answer.questions:
        answer.earlier, answer.later = replay.earlier, replay.later


def _stands_at(finding: Finding, mark: Position, places: dict[tuple[int, int], str]) -> bool:
    """Whether a finding is about a frame. Some remember of it only what it is called, and its packet."""
    place = (int(finding.spot.direction), int(finding.offset))
    if places.get(place) == finding.frame:
        return place == mark.place
    return place[0] == mark.direction and finding.frame == mark.name


def _when(sequel: Sequel) -> int:
    return sequel.mark.time

"""AMQP 0-9-1: which methods grant, limit or forbid a later one.

Theory of operation. Of each channel the newest frame of every method is remembered, by who said it, from the
channel.open on; beside these, by what they name, consumers, deliveries, published messages and
acknowledgements. What is asked about names its requests itself: a delivery its consumer-tag, an
acknowledgement its delivery-tag, an answer its request by its kind.
"""

from collections.abc import Iterable

from amqpscope.limits import MAX_REMEMBERED_SETTLING
from amqpscope.model.records import CLIENT, FrameRecord
from amqpscope.why.frame_ref import BELONGS, FORBIDS, GRANTS, LACKS, LIMITS, SETS_UP, Ground, Position
from amqpscope.why.grounds import Grounds, add_known, name_text
from amqpscope.why.remembered import Portion, Recent
from amqpscope.why.watch import AnswerWatch
from amqpscope.why.watch091 import NEXT_STEPS, RESPONSES, Watch091
from dissectors.amqp091.arguments import Method, UnknownMethod
from dissectors.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicQos,
    BasicReject,
    BasicReturn,
    ChannelClose,
    ChannelFlow,
    ChannelOpen,
    ConfirmSelect,
    ConnectionClose,
    ConnectionTune,
    ConnectionTuneOk,
)
from dissectors.amqp091.registry import new_method
from dissectors.protocol_header import ProtocolHeader

__all__ = ["Grounds091"]

_MOST_CHANNELS = 9
"""Channels, with 0, that are listed because they were open when a stream ended."""

_Settling = BasicAck | BasicNack | BasicReject


class _Tables:
    """What all channels share: deliveries, and messages published, by number; acknowledgements, by offset."""

    def __init__(self) -> None:
        self.deliveries: Recent[tuple[int, int], Position] = Recent()
        self.published: Recent[tuple[int, int], Position] = Recent()
        self.acknowledged: Recent[tuple[int, int], tuple[bool, int, bool, Position]] = Recent(
            MAX_REMEMBERED_SETTLING
        )


class _Channel:
    """What was said on one channel since it was opened. Keys begin with whether the client said it.

    life: the offset of its channel.open, -1 of the connection's.
    """

    def __init__(self, tables: _Tables, life: int) -> None:
        self.said: dict[tuple[bool, str], Position] = {}
        self.consumers: Recent[str, Position] = Recent()
        self.deliveries = Portion(tables.deliveries, life)
        self.published = Portion(tables.published, life)
        self.count = 0  # of messages published since confirm.select
        self.acknowledged = Portion(tables.acknowledged, life)
        self.content: dict[bool, Position] = {}
        self.header: dict[bool, Position] = {}
        self.closed: Position | None = None  # by the close-ok that ended this life
        self.prefetch = ""
        self.flow = ""


class Grounds091(Grounds):
    """What an AMQP 0-9-1 connection's frames so far mean for the next."""

    def __init__(self) -> None:
        self._tables = _Tables()
        self._channels: dict[int, _Channel] = {0: _Channel(self._tables, -1)}
        self._headers: dict[bool, Position] = {}
        self._newest: dict[bool, Position] = {}
        self._tune = ""
        self._tuned = ""
        # Where an exchange or a queue was declared or deleted last: by kind and name.
        self._entities: Recent[tuple[str, str], tuple[str, Position]] = Recent()

    # What is asked

    def of(self, record: FrameRecord) -> list[Ground]:
        by_client = record.peer == CLIENT
        frame = record.frame
        body = frame.body
        number = int(frame.channel)
        found: list[Ground] = []
        root = self._channels[0]
        add_known(found, FORBIDS, "closed the connection for its sender", root.said.get((by_client, _CLOSE)))
        what = "closed the connection: only close-ok is due"
        add_known(found, FORBIDS, what, root.said.get((not by_client, _CLOSE)))
        if isinstance(body, ProtocolHeader):
            add_known(found, FORBIDS, "began the connection already", self._headers.get(by_client))
            return found
        if number <= 0 or not root.said.get((False, "connection.open-ok")):
            self._of_set_up(found, record, by_client)
            if number <= 0:
                return found
        tune_ok = root.said.get((True, "connection.tune-ok"))
        if frame.kind != "method" or isinstance(body, ChannelOpen):
            add_known(found, LIMITS, f"agrees to {self._tuned}", tune_ok)
        channel = self._channels.get(number)
        if isinstance(body, ChannelOpen):
            add_known(found, SETS_UP, "opened the connection", root.said.get((False, "connection.open-ok")))
            if channel is not None:
                opened = channel.said.get((True, "channel.open"))
                if channel.closed is None:
                    add_known(found, FORBIDS, f"opened channel {number}, which has not been closed", opened)
                else:
                    add_known(found, SETS_UP, "ended the channel's life before", channel.closed)
            return found
        if channel is None:
            add_known(found, SETS_UP, "opened the connection", root.said.get((False, "connection.open-ok")))
            return [*found, Ground(LACKS, f"no channel.open was captured on channel {number}", None)]
        self._on_channel(found, channel, number, by_client)
        if frame.kind in ("content-header", "body"):
            if by_client not in channel.content:
                what = "no method is before it on the channel whose content is due"
                found.append(Ground(LACKS, what, None))
            add_known(found, BELONGS, "the method whose content this is", channel.content.get(by_client))
            if frame.kind == "body":
                add_known(found, BELONGS, "the header of this content", channel.header.get(by_client))
        elif by_client in channel.content:
            add_known(found, FORBIDS, "its content is not whole yet", channel.content[by_client])
        if isinstance(body, Method) and not isinstance(body, UnknownMethod):
            self._of_method(found, channel, body, by_client)
        return found

    def _of_set_up(self, found: list[Ground], record: FrameRecord, by_client: bool) -> None:
        """The steps of the connection's set-up that come before."""
        said = self._channels[0].said
        body = record.frame.body
        name = record.frame.name
        over = (False, "connection.open-ok") in said
        for who in (True, False):
            if not over:
                add_known(found, SETS_UP, "the protocol header", self._headers.get(who))
        for (who, step), mark in sorted(said.items(), key=lambda one: one[1].time):
            if step not in NEXT_STEPS or (over and step not in ("connection.tune-ok", "connection.open-ok")):
                continue
            if step == "connection.tune":
                add_known(found, LIMITS, f"proposes {self._tune}", mark)
            elif step == "connection.tune-ok":
                add_known(found, LIMITS, f"agrees to {self._tuned}", mark)
            elif NEXT_STEPS[step] == name and who != by_client:
                add_known(found, GRANTS, "asks for this", mark)
            else:
                add_known(found, SETS_UP, "a step of the set-up", mark)
        needed = _NEEDED.get(name if record.frame.channel <= 0 else "")
        if needed is not None and needed not in said:
            found.append(Ground(LACKS, f"no {needed[1]} was captured before", None))
        if isinstance(body, ConnectionClose):
            self._blamed(found, body.class_id, body.method_id, self._channels.values(), by_client)
        for step in ("connection.blocked", "connection.unblocked"):
            if name.startswith("connection."):
                add_known(found, SETS_UP, "notice about resources", said.get((False, step)))

    def _on_channel(self, found: list[Ground], channel: _Channel, number: int, by_client: bool) -> None:
        """What of the channel's life matters to everything on it."""
        said = channel.said
        add_known(found, GRANTS, f"opened channel {number}", said.get((True, "channel.open")))
        add_known(found, SETS_UP, "confirms that", said.get((False, "channel.open-ok")))
        what = "closed the channel for its sender: nothing but close-ok may follow"
        add_known(found, FORBIDS, what, said.get((by_client, "channel.close")))
        what = "closed the channel: only close-ok is due"
        add_known(found, FORBIDS, what, said.get((not by_client, "channel.close")))
        add_known(found, FORBIDS, "ended the channel", channel.closed)

    def _of_method(self, found: list[Ground], channel: _Channel, body: Method, by_client: bool) -> None:
        said = channel.said
        name = body.definition().name
        if isinstance(body, BasicPublish):
            root = self._channels[0].said
            if "connection.blocked" in {step for _, step in root}:
                blocked = root[(False, "connection.blocked")]
                unblocked = root.get((False, "connection.unblocked"))
                if unblocked is None or unblocked.time < blocked.time:
                    add_known(found, FORBIDS, "says that no messages are taken", blocked)
            self._flow(found, channel, by_client)
            add_known(found, SETS_UP, "asks for confirms", said.get((True, "confirm.select")))
            add_known(found, SETS_UP, "began transactions", said.get((True, "tx.select")))
            self._entity(found, "exchange", body.exchange)
        elif isinstance(body, (BasicDeliver, BasicGetOk)):
            self._flow(found, channel, by_client)
            if isinstance(body, BasicDeliver):
                self._consumer(found, channel, body.consumer_tag)
                add_known(
                    found, LIMITS, f"a prefetch window of {channel.prefetch}", said.get((True, "basic.qos"))
                )
            else:
                add_known(found, GRANTS, "asks for a message", said.get((True, "basic.get")))
        elif isinstance(body, (BasicAck, BasicNack, BasicReject)):
            self._settling(found, channel, body, by_client)
        elif isinstance(body, BasicCancel):
            self._consumer(found, channel, body.consumer_tag)
        elif isinstance(body, BasicConsume) and body.consumer_tag:
            known = channel.consumers.get(body.consumer_tag)
            add_known(found, FORBIDS, "began a consumer of this tag", known)
        elif isinstance(body, BasicReturn):
            add_known(found, BELONGS, "the newest message published", said.get((True, "basic.publish")))
        elif isinstance(body, ChannelClose):
            self._blamed(found, body.class_id, body.method_id, [channel], by_client)
        if not isinstance(body, BasicPublish):
            for field, value in body.fields():
                if field.name in ("queue", "exchange", "source", "destination") and isinstance(value, str):
                    self._entity(found, "queue" if field.name == "queue" else "exchange", value)
        asked = False
        for (who, request), mark in said.items():
            if who != by_client and name in RESPONSES.get(request, ()):
                add_known(found, GRANTS, "asks for this answer", mark)
                asked = True
        if not asked and name in _ANSWERS:
            found.append(Ground(LACKS, "no request was captured that this answers", None))

    def _flow(self, found: list[Ground], channel: _Channel, by_client: bool) -> None:
        flow = channel.said.get((not by_client, "channel.flow"))
        if flow is not None:
            stopped = channel.flow == "stop"
            found.append(Ground(FORBIDS if stopped else GRANTS, f"asks to {channel.flow} sending", flow))

    def _consumer(self, found: list[Ground], channel: _Channel, tag: str | None) -> None:
        known = channel.consumers.get(tag or "")
        if known is None:
            what = f"no basic.consume was captured with consumer-tag {name_text(tag or '')}"
            found.append(Ground(LACKS, what, None))
        add_known(found, GRANTS, f"began the consumer {name_text(tag or '')}", known)

    def _settling(self, found: list[Ground], channel: _Channel, body: _Settling, by_client: bool) -> None:
        tag = body.delivery_tag
        if by_client:
            add_known(found, GRANTS, f"delivery-tag {tag}", channel.deliveries.get(tag))
            if channel.deliveries.get(tag) is None and tag:
                what = f"no delivery with delivery-tag {tag} was captured on the channel"
                found.append(Ground(LACKS, what, None))
                newest = channel.deliveries.newest_first()
                if newest:
                    found.append(Ground(BELONGS, "the newest delivery on the channel", newest[0]))
                for mark in channel.consumers.newest_first()[:1]:
                    found.append(Ground(SETS_UP, "the newest consumer of the channel", mark))
        else:
            add_known(found, SETS_UP, "asks for confirms", channel.said.get((True, "confirm.select")))
            add_known(found, GRANTS, f"published message {tag}", channel.published.get(tag))
        for who, named, multiple, mark in channel.acknowledged.newest_first():
            if who == by_client and (named == tag or (multiple and named >= tag)):
                add_known(found, FORBIDS, f"had answered {tag} already", mark)
                break

    def _entity(self, found: list[Ground], kind: str, name: str | None) -> None:
        if not name:
            return
        known = self._entities.get((kind, name))
        if known is not None:
            method, mark = known
            did = "declared" if method.endswith("declare") else "deleted"
            effect = SETS_UP if did == "declared" else FORBIDS
            found.append(Ground(effect, f"{did} the {kind} {name_text(name)}", mark))

    def _blamed(
        self,
        found: list[Ground],
        class_id: int,
        method_id: int,
        channels: Iterable[_Channel],
        by_client: bool,
    ) -> None:
        """The method that a close names."""
        method = new_method(class_id, method_id)
        if method is None:
            return
        name = method.definition().name
        marks = [one.said[(not by_client, name)] for one in channels if (not by_client, name) in one.said]
        if marks:
            found.append(Ground(BELONGS, f"the newest {name}, which the close names", max(marks, key=_when)))

    def of_end(self, direction: int, by_client: bool) -> list[Ground]:
        said = self._channels[0].said
        found: list[Ground] = []
        what = "opened the connection"
        add_known(found, SETS_UP, what, said.get((False, "connection.open-ok")))
        tune_ok = said.get((True, "connection.tune-ok"))
        add_known(found, LIMITS, f"agrees to {self._tuned}", tune_ok)
        own, others = said.get((by_client, _CLOSE)), said.get((not by_client, _CLOSE))
        add_known(found, GRANTS, "closed the connection for its sender", own)
        add_known(found, GRANTS, "answers that", said.get((not by_client, "connection.close-ok")))
        add_known(found, GRANTS, "closed the connection for the other peer", others)
        answered = said.get((by_client, "connection.close-ok"))
        add_known(found, GRANTS, "answers that", answered)
        if own is None and others is None and tune_ok is not None:
            found.append(Ground(LACKS, "no connection.close was captured before", None))
        elif own is None and answered is None and others is not None:
            found.append(Ground(LACKS, "no connection.close-ok that answers it was captured", None))
        elif own is not None and (not by_client, "connection.close-ok") not in said and others is None:
            found.append(Ground(LACKS, "no connection.close-ok that answers it was captured", None))
        for number, channel in list(self._channels.items())[1:_MOST_CHANNELS]:
            if channel.closed is None:
                what = f"opened channel {number}, which has not been closed"
                add_known(found, SETS_UP, what, channel.said.get((True, "channel.open")))
        add_known(found, BELONGS, "the last frame of the stream", self._newest.get(by_client))
        return found

    def subject(self, record: FrameRecord) -> str:
        body = record.frame.body
        if isinstance(body, (BasicDeliver, BasicConsume, BasicCancel)):
            return body.consumer_tag or ""
        return ""

    # What is reported

    def take(self, record: FrameRecord) -> None:
        by_client = record.peer == CLIENT
        mark = Position.of(record)
        frame = record.frame
        body = frame.body
        number = int(frame.channel)
        self._newest[by_client] = mark
        if isinstance(body, ProtocolHeader):
            self._headers[by_client] = mark
            return
        if isinstance(body, ChannelOpen):
            known = self._channels.get(number)
            if known is None or known.closed is not None:
                self._channels[number] = _Channel(self._tables, mark.offset)
        channel = self._channels.get(number)
        if channel is None:
            return
        if frame.kind == "content-header":
            channel.header[by_client] = mark
        elif frame.kind == "method":
            channel.header.pop(by_client, None)
            channel.content.pop(by_client, None)
        if record.message is not None and frame.kind != "method":
            channel.header.pop(by_client, None)
            channel.content.pop(by_client, None)
        if isinstance(body, Method) and not isinstance(body, UnknownMethod):
            self._method(channel, body, by_client, mark)

    def _method(self, channel: _Channel, body: Method, by_client: bool, mark: Position) -> None:
        definition = body.definition()
        name = definition.name
        channel.said[(by_client, name)] = mark
        if definition.content:
            channel.content[by_client] = mark
        if isinstance(body, ConnectionTune):
            self._tune = _limits(body)
        elif isinstance(body, ConnectionTuneOk):
            self._tuned = _limits(body)
        elif isinstance(body, BasicConsume):
            channel.consumers.put(body.consumer_tag or "", mark)
        elif isinstance(body, BasicConsumeOk):
            # A tag that the server chose: the consumer began with the request without one.
            asked = channel.consumers.pop("")
            if asked is not None and body.consumer_tag:
                channel.consumers.put(body.consumer_tag, asked)
        elif isinstance(body, (BasicDeliver, BasicGetOk)):
            channel.deliveries.put(body.delivery_tag, mark)
        elif isinstance(body, BasicPublish):
            if (True, "confirm.select") in channel.said:
                channel.count += 1
                channel.published.put(channel.count, mark)
        elif isinstance(body, ConfirmSelect):
            channel.count = 0
        elif isinstance(body, (BasicAck, BasicNack, BasicReject)):
            multiple = isinstance(body, (BasicAck, BasicNack)) and body.multiple
            channel.acknowledged.put(mark.offset, (by_client, body.delivery_tag, multiple, mark))
        elif isinstance(body, BasicQos):
            channel.prefetch = f"{body.prefetch_count}{' for the channel' if body.global_ else ''}"
        elif isinstance(body, ChannelFlow):
            channel.flow = "go on" if body.active else "stop"
        elif name == "channel.close-ok":
            channel.closed = mark
        elif name in ("exchange.declare", "exchange.delete", "queue.declare", "queue.delete"):
            kind = name.partition(".")[0]
            for field, value in body.fields():
                if field.name == kind and isinstance(value, str) and value:
                    self._entities.put((kind, value), (name, mark))

    def watch(self, record: FrameRecord) -> AnswerWatch:
        channel = self._channels.get(int(record.frame.channel))
        number = 0
        body = record.frame.body
        if isinstance(body, BasicPublish) and channel is not None:
            if (True, "confirm.select") in channel.said:
                number = channel.count + 1
        return Watch091(record, number)


_CLOSE = "connection.close"


_NEEDED = {
    "connection.start-ok": (False, "connection.start"),
    "connection.tune": (True, "connection.start-ok"),
    "connection.tune-ok": (False, "connection.tune"),
    "connection.open": (True, "connection.tune-ok"),
    "connection.open-ok": (True, "connection.open"),
    "": (False, "connection.open-ok"),
}
"""What has to be said before a step of the set-up, and, "", before anything on a channel: by the client?"""


_ANSWERS = {answer for responses in RESPONSES.values() for answer in responses}


def _limits(body: ConnectionTune | ConnectionTuneOk) -> str:
    """What a tune, or the answer to it, says."""
    return f"channel-max {body.channel_max}, frame-max {body.frame_max}, heartbeat {body.heartbeat} s"


def _when(mark: Position) -> int:
    return mark.time

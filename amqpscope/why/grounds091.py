"""AMQP 0-9-1: which methods grant, limit or forbid a later one.

Theory of operation. A conversation says which channel, consumer, delivery, message and request a frame is
about. `Places091` remembers where each of these began and was answered.
"""

from collections.abc import Iterable

from amqpscope.model.records import CLIENT, FrameRecord
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.conversation import Conversation091
from amqpscope.tracking.amqp091.events import SentContent
from amqpscope.tracking.amqp091.names import readable
from amqpscope.why.frame_ref import BELONGS, FORBIDS, GRANTS, LACKS, LIMITS, SETS_UP, Ground, Position
from amqpscope.why.grounds import Grounds, add_known, name_text
from amqpscope.why.places091 import ChannelPlaces, Places091
from amqpscope.why.watch import AnswerWatch
from amqpscope.why.watch091 import NEXT_STEPS, RESPONSES, AnswerWatch091
from dissectors.amqp091.arguments import Method, UnknownMethod
from dissectors.amqp091.methods import (
    BasicAck,
    BasicCancel,
    BasicConsume,
    BasicDeliver,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicReject,
    BasicReturn,
    ChannelClose,
    ChannelCloseOk,
    ChannelOpen,
    ConnectionClose,
)
from dissectors.amqp091.registry import new_method
from dissectors.protocol_header import ProtocolHeader

__all__ = ["Grounds091"]

_MOST_CHANNELS = 8
"""Channels that are listed because they were open when a stream ended."""


class Grounds091(Grounds):
    """What an AMQP 0-9-1 connection's frames so far mean for the next."""

    def __init__(self) -> None:
        self._conversation = Conversation091()
        self._places = Places091(self._conversation)

    # What is asked

    def of(self, record: FrameRecord) -> list[Ground]:
        by_client = record.peer == CLIENT
        frame = record.frame
        body = frame.body
        number = int(frame.channel)
        found: list[Ground] = []
        said = self._places.said
        add_known(found, FORBIDS, "the same peer has closed the connection", said.get((by_client, _CLOSE)))
        what = "the other peer has closed the connection: only connection.close-ok may follow"
        add_known(found, FORBIDS, what, said.get((not by_client, _CLOSE)))
        if isinstance(body, ProtocolHeader):
            add_known(
                found,
                FORBIDS,
                "the same peer has already sent a protocol header",
                self._places.headers.get(by_client),
            )
            return found
        opened = said.get((False, "connection.open-ok"))
        if number <= 0 or opened is None:
            self._of_set_up(found, record, by_client)
            if number <= 0:
                return found
        if frame.kind != "method" or isinstance(body, ChannelOpen):
            add_known(
                found,
                LIMITS,
                f"the client agrees to {self._places.tuned}",
                said.get((True, "connection.tune-ok")),
                _TUNED,
            )
        channel = self._conversation.channel_of(record)
        places = None if channel is None else self._places.channels.get(channel)
        if isinstance(body, ChannelOpen):
            add_known(found, SETS_UP, "the server has opened the connection", opened)
            if places is not None and places.closed is None:
                what = f"channel {number} is already open"
                add_known(found, FORBIDS, what, places.said.get((True, "channel.open")), ("channel",))
            elif places is not None:
                add_known(found, SETS_UP, "the channel was closed before", places.closed)
            return found
        if places is None or (True, "channel.open") not in places.said:
            add_known(found, SETS_UP, "the server has opened the connection", opened)
            what = f"no channel.open was captured on channel {number}"
            found.append(Ground(LACKS, what, None, ("channel",)))
        if channel is None or places is None:
            return found
        self._on_channel(found, places, number, by_client)
        content = self._conversation.sending(record)
        begun = None if content is None else self._places.content.get(content)
        if frame.kind in ("content-header", "body"):
            if begun is None:
                what = "no method on the channel waits for its content"
                found.append(Ground(LACKS, what, None))
            else:
                found.append(Ground(BELONGS, "the method to which this content belongs", begun.method))
                if frame.kind == "body":
                    add_known(found, BELONGS, "the content header of the same message", begun.header)
        elif begun is not None and content is not None and self._cuts_short(content, body):
            found.append(Ground(FORBIDS, "the content of this method is not complete yet", begun.method))
        if isinstance(body, Method) and not isinstance(body, UnknownMethod):
            self._of_method(found, channel, places, record, body)
        return found

    def _cuts_short(self, content: SentContent, body: object) -> bool:
        """Whether a method stands where more of a content is due: nothing of it was missed, and only
        channel.close may give it up.
        """
        return content.packet > self._conversation.lost_packet and not isinstance(body, ChannelClose)

    def _of_set_up(self, found: list[Ground], record: FrameRecord, by_client: bool) -> None:
        """The steps of the connection's set-up that come before."""
        said = self._places.said
        body = record.frame.body
        name = record.frame.name
        over = (False, "connection.open-ok") in said
        for who in (True, False):
            if not over:
                add_known(found, SETS_UP, "the protocol header", self._places.headers.get(who))
        for (who, step), mark in sorted(said.items(), key=lambda one: one[1].time):
            if step not in NEXT_STEPS or (over and step not in ("connection.tune-ok", "connection.open-ok")):
                continue
            if step == "connection.tune":
                add_known(found, LIMITS, f"the server proposes {self._places.tune}", mark, _TUNED)
            elif step == "connection.tune-ok":
                add_known(found, LIMITS, f"the client agrees to {self._places.tuned}", mark, _TUNED)
            elif NEXT_STEPS[step] == name and who != by_client:
                add_known(found, GRANTS, "the other peer asks for this method", mark)
            else:
                add_known(found, SETS_UP, "an earlier step of the connection set-up", mark)
        needed = _NEEDED.get(name if record.frame.channel <= 0 else "")
        if needed is not None and needed not in said:
            found.append(Ground(LACKS, f"no {needed[1]} was captured before", None))
        if isinstance(body, ConnectionClose):
            everywhere = [self._places.said, *(one.said for one in self._places.channels.newest_first())]
            self._blamed(found, body.class_id, body.method_id, everywhere, by_client)
        for step in ("connection.blocked", "connection.unblocked"):
            if name.startswith("connection."):
                add_known(
                    found,
                    SETS_UP,
                    "the server has blocked or unblocked the connection before",
                    said.get((False, step)),
                )

    def _on_channel(self, found: list[Ground], places: ChannelPlaces, number: int, by_client: bool) -> None:
        """What of the channel's life matters to everything on it."""
        said = places.said
        opened = said.get((True, "channel.open"))
        if opened is not None:
            found.append(Ground(GRANTS, f"the client has opened channel {number}", opened, ("channel",)))
            add_known(
                found, SETS_UP, "the server has confirmed the channel", said.get((False, "channel.open-ok"))
            )
        what = "the same peer has closed the channel: only channel.close-ok may follow"
        add_known(found, FORBIDS, what, said.get((by_client, "channel.close")), ("channel",))
        what = "the other peer has closed the channel: only channel.close-ok may follow"
        add_known(found, FORBIDS, what, said.get((not by_client, "channel.close")), ("channel",))
        add_known(found, FORBIDS, "the channel has ended", places.closed, ("channel",))

    def _of_method(
        self, found: list[Ground], channel: Channel, places: ChannelPlaces, record: FrameRecord, body: Method
    ) -> None:
        said = places.said
        by_client = record.peer == CLIENT
        if isinstance(body, BasicPublish):
            blocked = self._places.said.get((False, "connection.blocked"))
            unblocked = self._places.said.get((False, "connection.unblocked"))
            if blocked is not None and (unblocked is None or unblocked.time < blocked.time):
                found.append(
                    Ground(
                        LIMITS,
                        "the server has blocked the connection: the server accepts no messages",
                        blocked,
                    )
                )
            self._flow(found, places, by_client)
            add_known(
                found,
                SETS_UP,
                "the client has asked for publisher confirms",
                said.get((True, "confirm.select")),
            )
            add_known(
                found,
                SETS_UP,
                "the client has put the channel into transaction mode",
                said.get((True, "tx.select")),
            )
            self._entity(found, "exchange", body.exchange)
        elif isinstance(body, BasicDeliver):
            self._flow(found, places, by_client)
            self._consumer(found, channel, body.consumer_tag)
            what = f"a prefetch-count of {places.prefetch}"
            fields = ("prefetch-count", "prefetch-size")
            add_known(found, LIMITS, what, said.get((True, "basic.qos")), fields)
        elif isinstance(body, BasicGetOk):
            self._flow(found, places, by_client)
            add_known(found, GRANTS, "the client asks for a message", self._request(channel, by_client, body))
        elif isinstance(body, (BasicAck, BasicNack, BasicReject)):
            if by_client:
                self._acknowledging(found, channel, places, body.delivery_tag)
            else:
                add_known(
                    found,
                    SETS_UP,
                    "the client has asked for publisher confirms",
                    said.get((True, "confirm.select")),
                )
                number = (channel, body.delivery_tag)
                add_known(
                    found,
                    GRANTS,
                    f"the client has published message {number[1]}",
                    self._places.published.get(number),
                    _DELIVERY,
                )
                add_known(
                    found,
                    FORBIDS,
                    f"the server has already confirmed message {number[1]}",
                    self._places.confirms.get(number),
                    _DELIVERY,
                )
        elif isinstance(body, BasicCancel):
            self._consumer(found, channel, body.consumer_tag)
        elif isinstance(body, BasicConsume):
            live = channel.consumers.live.get(readable(body.consumer_tag))
            if live is not None:
                add_known(
                    found,
                    FORBIDS,
                    "a consumer with this consumer-tag already exists",
                    self._places.consumers.get(live),
                    _CONSUMER,
                )
        elif isinstance(body, BasicReturn):
            self._return(found, channel, body)
        elif isinstance(body, ChannelClose):
            self._blamed(found, body.class_id, body.method_id, [said], by_client)
        if not isinstance(body, BasicPublish):
            for field, value in body.fields():
                if field.name in ("queue", "exchange", "source", "destination") and isinstance(value, str):
                    self._entity(found, "queue" if field.name == "queue" else "exchange", value)
        self._asked(found, channel, said, record, body)

    def _asked(
        self,
        found: list[Ground],
        channel: Channel,
        said: dict[tuple[bool, str], Position],
        record: FrameRecord,
        body: Method,
    ) -> None:
        """The request that a method answers, if it is an answer."""
        name = body.definition().name
        by_client = record.peer == CLIENT
        if name not in _ANSWERS:
            return
        asked = self._request(channel, by_client, body)
        if isinstance(body, ChannelCloseOk):
            asked = said.get((not by_client, "channel.close"))
        if asked is None:
            found.append(Ground(LACKS, "no request waits for this answer", None))
            for request in channel.requests.no_wait.last.values():
                unheard = self._places.requests.get(request)
                if (
                    name in request.responses
                    and unheard is not None
                    and unheard.direction != record.direction
                ):
                    what = "a request of this kind has no-wait set, so the request gets no answer"
                    found.append(Ground(FORBIDS, what, unheard))
        add_known(found, GRANTS, "the request that this method answers", asked)

    def _request(self, channel: Channel, by_client: bool, body: Method) -> Position | None:
        """Where the request stands that a method of a peer answers."""
        request = channel.requests.answers(by_client, body.definition().name)
        return None if request is None else self._places.requests.get(request)

    def _flow(self, found: list[Ground], places: ChannelPlaces, by_client: bool) -> None:
        flow = places.said.get((not by_client, "channel.flow"))
        if flow is not None:
            stopped = places.flow == "stop"
            found.append(
                Ground(FORBIDS if stopped else GRANTS, f"the other peer asks to {places.flow} sending", flow)
            )

    def _consumer(self, found: list[Ground], channel: Channel, tag: str | None) -> None:
        consumer = self._conversation.consumer_of(channel, tag)
        known = None if consumer is None else self._places.consumers.get(consumer)
        if known is None and channel.is_open:
            what = f"no basic.consume was captured with consumer-tag {name_text(tag or '')}"
            found.append(Ground(LACKS, what, None, _CONSUMER))
        add_known(found, GRANTS, f"the client has started consumer {name_text(tag or '')}", known, _CONSUMER)

    def _acknowledging(self, found: list[Ground], channel: Channel, places: ChannelPlaces, tag: int) -> None:
        """What allows or forbids that the client acknowledges this delivery-tag."""
        delivered = self._places.deliveries.get((channel, tag))
        add_known(found, GRANTS, f"the delivery with delivery-tag {tag}", delivered, _DELIVERY)
        if delivered is None and tag:
            what = f"no delivery with delivery-tag {tag} was captured on the channel"
            found.append(Ground(LACKS, what, None, _DELIVERY))
            add_known(found, BELONGS, "the newest delivery on the channel", places.delivery)
            add_known(found, SETS_UP, "the newest consumer of the channel", places.consumer)
        if tag not in channel.deliveries.unacknowledged:
            acknowledged = self._places.acknowledgements.get((channel, tag))
            what = f"the client has already settled delivery-tag {tag}"
            add_known(found, FORBIDS, what, acknowledged, _DELIVERY)

    def _return(self, found: list[Ground], channel: Channel, body: BasicReturn) -> None:
        """The messages that may come back by this."""
        known = channel.publishes.returnable(readable(body.exchange), readable(body.routing_key))
        if not known:
            what = (
                "the capture shows no message with this exchange and routing key that the server may send "
                "back by basic.return"
            )
            found.append(Ground(LACKS, what, None))
        else:
            add_known(
                found,
                BELONGS,
                "the oldest message that the server may send back by basic.return",
                self._places.messages.get(known[0]),
            )

    def _entity(self, found: list[Ground], kind: str, name: str | None) -> None:
        if not name:
            return
        known = self._places.entities.get((kind, name))
        if known is not None:
            method, mark = known
            did = "declared" if method.endswith("declare") else "deleted"
            effect = SETS_UP if did == "declared" else FORBIDS
            found.append(Ground(effect, f"the {kind} {name_text(name)} was {did}", mark, (kind,)))

    def _blamed(
        self,
        found: list[Ground],
        class_id: int,
        method_id: int,
        channels: Iterable[dict[tuple[bool, str], Position]],
        by_client: bool,
    ) -> None:
        """The method that a close names. channels: what was said on each."""
        method = new_method(class_id, method_id)
        if method is None:
            return
        name = method.definition().name
        marks = [said[(not by_client, name)] for said in channels if (not by_client, name) in said]
        if marks:
            found.append(Ground(BELONGS, f"the newest {name}, which the close names", max(marks, key=_when)))

    def of_end(self, direction: int, by_client: bool) -> list[Ground]:
        said = self._places.said
        found: list[Ground] = []
        what = "the server has opened the connection"
        add_known(found, SETS_UP, what, said.get((False, "connection.open-ok")))
        tune_ok = said.get((True, "connection.tune-ok"))
        add_known(found, LIMITS, f"the client agrees to {self._places.tuned}", tune_ok, _TUNED)
        own, others = said.get((by_client, _CLOSE)), said.get((not by_client, _CLOSE))
        add_known(found, GRANTS, "the same peer has closed the connection", own)
        add_known(
            found,
            GRANTS,
            "the other peer has answered connection.close",
            said.get((not by_client, "connection.close-ok")),
        )
        add_known(found, GRANTS, "the other peer has closed the connection", others)
        answered = said.get((by_client, "connection.close-ok"))
        add_known(found, GRANTS, "the same peer has answered connection.close", answered)
        if own is None and others is None and tune_ok is not None:
            found.append(Ground(LACKS, "no connection.close was captured before", None))
        elif own is None and answered is None and others is not None:
            found.append(
                Ground(LACKS, ("no connection.close-ok was captured that answers the connection.close"), None)
            )
        elif own is not None and (not by_client, "connection.close-ok") not in said and others is None:
            found.append(
                Ground(LACKS, ("no connection.close-ok was captured that answers the connection.close"), None)
            )
        channels = self._places.channels.items_newest_first()
        opened = [(one, places) for one, places in channels if not places.closed]
        for channel, places in opened[: -_MOST_CHANNELS - 1 : -1]:
            what = f"channel {channel.number} is open"
            add_known(found, SETS_UP, what, places.said.get((True, "channel.open")))
        add_known(found, BELONGS, "the last frame of the stream", self._places.newest.get(by_client))
        return found

    def subject(self, record: FrameRecord) -> str:
        body = record.frame.body
        if isinstance(body, (BasicDeliver, BasicConsume, BasicCancel)):
            return body.consumer_tag or ""
        return ""

    # What is reported

    def take(self, record: FrameRecord) -> None:
        self._places.newest[record.peer == CLIENT] = Position.of(record)
        self._conversation.take(record)

    def watch(self, record: FrameRecord) -> AnswerWatch:
        return AnswerWatch091(record, self._conversation)


_CLOSE = "connection.close"

_TUNED = ("channel-max", "frame-max", "heartbeat")
_CONSUMER = ("consumer-tag",)
_DELIVERY = ("delivery-tag",)


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


def _when(mark: Position) -> int:
    return mark.time

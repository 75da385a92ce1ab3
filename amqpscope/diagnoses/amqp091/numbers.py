"""Numbers of a connection of AMQP 0-9-1: of its channels, their consumers, and its requests."""

from typing import Any

from amqpscope.diagnoses.amqp091.channel_state import ChannelState, window_of
from amqpscope.diagnoses.amqp091.channels import ChannelWatch
from amqpscope.diagnoses.amqp091.watch import Watch091
from amqpscope.diagnoses.latency import Latency
from amqpscope.diagnoses.notebook import Notebook
from amqpscope.diagnoses.numbers import Answered, Deliveries, Traffic, Wait, Waited
from amqpscope.limits import MAX_SUMMARY_LINKS
from amqpscope.model.passwords import without_password
from amqpscope.model.records import PEERS, FrameRecord
from amqpscope.tracking.amqp091.channel import Channel
from amqpscope.tracking.amqp091.consumers import Consumer
from amqpscope.tracking.amqp091.deliveries import ConsumerDelivery
from amqpscope.tracking.amqp091.events import SentContent
from amqpscope.tracking.amqp091.publishes import Publish
from amqpscope.tracking.amqp091.requests import MethodRequest
from amqpscope.tracking.amqp10.identity import Link
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.methods import (
    BasicConsume,
    BasicConsumeOk,
    BasicDeliver,
    BasicGetEmpty,
    BasicGetOk,
    BasicNack,
    BasicPublish,
    BasicReject,
    BasicReturn,
    ChannelClose,
    ChannelOpen,
    ConnectionBlocked,
    ConnectionClose,
    ConnectionUnblocked,
)
from dissectors.wire import i64

__all__ = ["ChannelNumbers", "ConsumerNumbers", "Numbers091"]


class ConsumerNumbers:
    """One consumer, or (tag None) what a channel fetched by basic.get."""

    def __init__(self, tag: str | None, queue: str) -> None:
        self.tag = tag
        self.queue = queue
        self.prefetch = 0
        self.deliveries = Deliveries()
        # Times in which its prefetch was full: the server could deliver nothing.
        self.full = Wait()

    def json(self, skewed: bool) -> dict[str, Any]:
        """As an object of the JSON outputs."""
        return {
            "consumer": self.tag,
            "queue": without_password(self.queue) or None,
            "prefetch": self.prefetch or None,
            "prefetch_full": self.full.json(),
            "deliveries": self.deliveries.json(skewed),
        }


class ChannelNumbers:
    """One life of a channel. packet: of its channel.open. state: what the watch of channels knows of it."""

    def __init__(self, number: int, packet: int) -> None:
        self.number = number
        self.packet = packet
        self.state: ChannelState | None = None
        self.published = Deliveries()
        self.returned = 0
        self.fetched = ConsumerNumbers(None, "")
        self.empty_gets = 0
        self.consumers: dict[str, ConsumerNumbers] = {}
        # Times in which channel.flow stopped the channel, by the side that stopped it.
        self.stopped = [Wait(), Wait()]

    def of(self, tag: str | None) -> ConsumerNumbers:
        """The consumer with a tag, or what is fetched."""
        return self.fetched if tag is None else self.consumers.get(tag, self.fetched)

    def look(self, packet: int, now: int) -> None:
        """See who waits, behind each frame on the channel."""
        state = self.state
        if state is None:
            return
        for side, wait in enumerate(self.stopped):
            stopped = state.stopped
            if stopped is not None and stopped[0] == side:
                wait.look(True, stopped[2], stopped[1], now)
            else:
                wait.look(False, 0, 0, now)
        for tag, consumer in self.consumers.items():
            full = state.full_packet > 0 and state.full_tag == tag
            consumer.full.look(full, state.full_time, state.full_packet, now)

    def leave(self, packet: int, until: int) -> None:
        """The channel is over: nothing more is settled."""
        self.look(packet, until)
        self.published.leave(until)
        for consumer in (self.fetched, *self.consumers.values()):
            consumer.deliveries.leave(until)

    def json(self, skewed: bool) -> dict[str, Any]:
        """As an object of the JSON outputs."""
        fetched = self.fetched.deliveries
        return {
            "channel": self.number,
            "opened_packet": self.packet or None,
            "published": self.published.json(skewed),
            "returned": self.returned,
            "fetched": fetched.json(skewed) if fetched.volume.messages else None,
            "empty_gets": self.empty_gets,
            "stopped_by": {peer: wait.json() for peer, wait in zip(PEERS, self.stopped, strict=True)},
            "consumers": [one.json(skewed) for one in self.consumers.values()],
        }


class Numbers091(Watch091):
    """Counts and measures on one connection. It listens behind the watches, which know more than it does."""

    def __init__(self, notebook: Notebook, watches: list[Watch091]) -> None:
        super().__init__(notebook)
        self.channels: dict[Channel, ChannelNumbers] = {}
        # By number, the newest life of each channel.
        self.here: dict[int, ChannelNumbers] = {}
        self.latencies: dict[str, Latency] = {}
        self.blocked = Wait()
        self.channel_watch: ChannelWatch | None = None
        self.consumers = 0
        for watch in watches:
            if isinstance(watch, ChannelWatch):
                self.channel_watch = watch

    def connection_method(self, record: FrameRecord, method: Method) -> None:
        if isinstance(method, ConnectionBlocked):
            self.blocked.look(True, record.time, record.packet, record.time)
        elif isinstance(method, ConnectionUnblocked):
            self.blocked.look(False, 0, 0, record.time)
        elif isinstance(method, ConnectionClose):
            self._stop(record.packet, record.time, True)

    # Channels and consumers

    def channel_opened(self, record: FrameRecord, method: ChannelOpen, channel: Channel) -> None:
        self.here.pop(int(channel.number), None)
        self._channel(channel)

    def _channel(self, channel: Channel | None) -> ChannelNumbers | None:
        if channel is None:
            return None
        numbers = self.channels.get(channel)
        if numbers is None and len(self.channels) < MAX_SUMMARY_LINKS:
            opened = None if self.channel_watch is None else self.channel_watch.channels.get(channel)
            numbers = ChannelNumbers(int(channel.number), 0 if opened is None else opened.packet)
            numbers.state = opened
            self.channels[channel] = self.here[numbers.number] = numbers
        return numbers

    def channel_method(self, record: FrameRecord, method: Method, channel: Channel) -> None:
        numbers = self._channel(channel)
        if numbers is not None:
            numbers.look(record.packet, record.time)

    def channel_closed(self, record: FrameRecord, method: ChannelClose, channel: Channel) -> None:
        numbers = self.channels.get(channel)
        if numbers is not None:
            numbers.leave(record.packet, record.time)

    def channel_ended(self, record: FrameRecord, channel: Channel) -> None:
        numbers = self.channels.get(channel)
        if numbers is not None:
            numbers.leave(record.packet, record.time)

    def consumer_started(self, record: FrameRecord, method: BasicConsume, consumer: Consumer) -> None:
        self._consumer(self.here.get(int(record.frame.channel)), consumer.tag, consumer)

    def consumer_confirmed(self, record: FrameRecord, method: BasicConsumeOk, consumer: Consumer) -> None:
        self._consumer(self.here.get(int(record.frame.channel)), consumer.tag, consumer)

    def _consumer(self, numbers: ChannelNumbers | None, tag: str, consumer: Consumer | None) -> None:
        if numbers is None or not tag:
            return
        known = numbers.consumers.get(tag)
        if known is None:
            if self.consumers >= MAX_SUMMARY_LINKS:
                return
            self.consumers += 1
            known = numbers.consumers[tag] = ConsumerNumbers(tag, "" if consumer is None else consumer.queue)
        if consumer is not None and numbers.state is not None:
            known.prefetch = window_of(numbers.state.channel, consumer)

    # Requests

    def answered(self, record: FrameRecord, method: Method, request: MethodRequest) -> None:
        latency = self.latencies.get(request.name)
        if latency is None:
            latency = self.latencies[request.name] = Latency()
        latency.add(record.time - request.time, request.packet, record.packet)
        numbers = self.here.get(int(record.frame.channel))
        if isinstance(method, BasicGetEmpty) and numbers is not None:
            numbers.empty_gets += 1

    # Messages

    def content_started(self, record: FrameRecord, method: Method, content: SentContent) -> None:
        numbers = self._channel(content.channel)
        if numbers is None:
            return
        if isinstance(method, BasicReturn):
            numbers.returned += 1
        delivery = content.delivery
        if isinstance(method, (BasicDeliver, BasicGetOk)):
            tag = method.consumer_tag if isinstance(method, BasicDeliver) else None
            self._consumer(numbers, tag or "", content.consumer)
            known = numbers.of(tag).deliveries
            known.redelivered += method.redelivered
            if delivery is not None and not delivery.no_ack:
                known.sent(delivery, record.packet, record.time)
        numbers.look(record.packet, record.time)

    def content_ended(self, record: FrameRecord, content: SentContent) -> None:
        numbers = None if content.channel is None else self.channels.get(content.channel)
        message = content.message
        if numbers is None or message is None or not message.complete:
            return
        method = content.method
        if isinstance(method, BasicPublish):
            deliveries = numbers.published
            if content.publish is not None and content.number:
                deliveries.sent(content.publish, content.publish.packet, content.publish.time)
        elif isinstance(method, BasicDeliver):
            deliveries = numbers.of(method.consumer_tag).deliveries
        elif isinstance(method, BasicGetOk):
            deliveries = numbers.fetched.deliveries
        else:
            return
        deliveries.volume.add(int(content.octets), record.packet, record.time)
        delivery, consumer = content.delivery, content.consumer
        if (delivery is not None and delivery.no_ack) or (consumer is not None and consumer.no_ack):
            deliveries.ended("no-ack")

    def acknowledged(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        numbers = self.here.get(int(record.frame.channel))
        if numbers is not None:
            for delivery in deliveries:
                known = numbers.of(delivery.consumer).deliveries
                known.settled(delivery, _outcome(method), record.packet, record.time)
            numbers.look(record.packet, record.time)

    def recovered(self, record: FrameRecord, method: Method, deliveries: list[ConsumerDelivery]) -> None:
        numbers = self.here.get(int(record.frame.channel))
        if numbers is not None:
            for delivery in deliveries:
                numbers.of(delivery.consumer).deliveries.returned(delivery, "recovered")

    def confirmed(self, record: FrameRecord, method: Method, publishes: list[Publish]) -> None:
        numbers = self.here.get(int(record.frame.channel))
        outcome = "nack" if isinstance(method, BasicNack) else "ack"
        if numbers is not None:
            for publish in publishes:
                numbers.published.settled(publish, outcome, record.packet, record.time)

    # The end

    def _stop(self, packet: int, until: int, over: bool) -> None:
        for numbers in self.channels.values():
            if over:
                numbers.leave(packet, until)
            else:
                numbers.look(packet, until)
        self.blocked.look(False, 0, 0, until)

    def lost(self, until: i64) -> None:
        self._stop(0, until, False)

    def finish(self, accused: set[str]) -> None:
        self._stop(0, self.notebook.end_time, True)

    def link(self, link: Link) -> dict[str, Any]:
        """AMQP 0-9-1 has no links."""
        return {}

    def _name(self, channel: ChannelNumbers) -> str:
        """The name of a channel; of one that is opened again, with the packet of its channel.open."""
        if self.here.get(channel.number) is channel or not channel.packet:
            return f"channel {channel.number}"
        return f"channel {channel.number} of packet {channel.packet}"

    def flows(self) -> list[Traffic]:
        """What went over the channels."""
        found: list[Traffic] = []
        for one in self.channels.values():
            name = self._name(one)
            found.append(Traffic(f"{name} publishes", "", 0, one.published))
            found.append(Traffic(f"{name} fetches", "", 0, one.fetched.deliveries))
            found += [
                Traffic("consumer", tag, 0, consumer.deliveries) for tag, consumer in one.consumers.items()
            ]
        return found

    def waits(self) -> list[Waited]:
        """For what the peers waited."""
        found = [Waited("client: connection blocked by server", "", self.blocked)]
        for one in self.channels.values():
            for side, wait in enumerate(one.stopped):
                what = f"{PEERS[1 - side]}: {self._name(one)} stopped by {PEERS[side]}"
                found.append(Waited(what, "", wait))
            for tag, consumer in one.consumers.items():
                found.append(Waited("server: prefetch full of consumer", tag, consumer.full))
        return found

    def answers(self) -> list[Answered]:
        """How long confirms and acknowledgements took, and the answers to requests."""
        if self.notebook.skewed:
            return []
        found: list[Answered] = []
        for one in self.channels.values():
            name = self._name(one)
            found.append(Answered(f"confirm, {name}", "", one.published.latency))
            found.append(Answered(f"ack of gets, {name}", "", one.fetched.deliveries.latency))
            for tag, consumer in one.consumers.items():
                found.append(Answered("ack, consumer", tag, consumer.deliveries.latency))
        return [*found, *(Answered(name, "", one) for name, one in sorted(self.latencies.items()))]

    def json(self) -> dict[str, Any]:
        """As fields of the JSON outputs."""
        skewed = self.notebook.skewed
        requests = {name: one.json() for name, one in sorted(self.latencies.items())}
        return {
            "channels": [one.json(skewed) for one in self.channels.values()],
            "requests": {} if skewed else requests,
            "blocked": self.blocked.json(),
        }


def _outcome(method: Method) -> str:
    """What a method says has become of a message."""
    if isinstance(method, (BasicNack, BasicReject)):
        word = "nack" if isinstance(method, BasicNack) else "reject"
        return f"{word}-requeue" if method.requeue else word
    return "ack"

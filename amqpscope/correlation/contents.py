"""Messages of AMQP 0-9-1 that were published on one connection and delivered on the same or others.

Theory of operation. A publish and a delivery belong together if they are found again by the same (`Content`),
in one virtual host, and only one publish is. What two publishes share tells of neither. All deliveries of one
message from one queue, in the order of time, are its story there: each but the first has to follow from how
the one before it ended.

Of two things on one connection the order is taken from what its client had received; else from the clock. If
octets of any connection to the address were missed nothing is said; if not all its messages are kept, nothing
of those that have no message-id.
"""

from collections.abc import Iterable
from typing import Final

from amqpscope.correlation.hosts import address
from amqpscope.correlation.order import by_time
from amqpscope.limits import MAX_CORRELATED_LINKS, MAX_REDELIVERIES
from amqpscope.model.finding import Finding
from amqpscope.rules.amqp091 import forwarding
from amqpscope.tracking.amqp091.contents import (
    ACKED,
    CLOSED,
    OPEN,
    RECOVERED,
    RECOVERED_ASYNC,
    REQUEUED,
    ROLLED_BACK,
    Content,
)
from amqpscope.tracking.amqp091.summary import Amqp091Summary
from amqpscope.tracking.amqp091.topology_operations import TopologyOperation
from dissectors.amqp091.methods import HAS_EXPIRATION, HAS_HEADERS, HAS_REPLY_TO

__all__ = ["passed"]

_DIRECT_REPLY: Final = "amq.rabbitmq.reply-to"

# What a broker leaves in the headers of messages that it has moved itself, or that do not go straight.
_MOVED: Final = (b"x-death", b"x-first-death", b"x-delay", b"x-opt-")


def passed(summaries: Iterable[Amqp091Summary]) -> list[Finding]:
    """What is wrong with messages on these connections, given in the order of time."""
    kept = list(summaries)
    if sum(summary.weight for summary in kept) >= MAX_CORRELATED_LINKS:
        return []
    servers: dict[bytes, list[Amqp091Summary]] = {}
    for summary in kept:
        servers.setdefault(address(summary), []).append(summary)
    findings: list[Finding] = []
    for some in servers.values():
        if all(summary.whole and summary.virtual_host for summary in some):
            findings += _Server(some).judge()
    return findings


class _Server:
    """All that went over the connections to one address."""

    def __init__(self, summaries: list[Amqp091Summary]) -> None:
        self.summaries: dict[int, Amqp091Summary] = {id(one.connection): one for one in summaries}
        self.findings: list[Finding] = []
        # By virtual host and identity.
        self.published: dict[tuple[str, str], list[Content]] = {}
        self.delivered: dict[tuple[str, str], list[Content]] = {}
        everything = all(summary.all_contents for summary in summaries)
        self.purged: dict[tuple[str, str], list[TopologyOperation]] = {}
        self.refused: list[tuple[str, Content]] = []
        self.bound: dict[str, set[str]] = {}
        contents = by_time([summary.contents for summary in summaries])
        self.rank = {id(content): number for number, content in enumerate(contents)}
        for content in contents:
            if content.digest.named or everything:
                where = self.published if content.published else self.delivered
                where.setdefault(self._place(content), []).append(content)
        for summary in summaries:
            host = summary.virtual_host
            for operation in summary.operations:
                if operation.method == "queue.purge" and operation.outcome.ok:
                    self.purged.setdefault((host, operation.queue), []).append(operation)
                if operation.method == "exchange.bind" and operation.outcome.ok:
                    self.bound.setdefault(host, set()).add(operation.exchange)
            for content in summary.contents:
                if content.refusal is not None:
                    self.refused.append((host, content))
        self.reported: set[int] = set()

    def judge(self) -> list[Finding]:
        ways: dict[tuple[object, ...], Content] = {}
        pairs: list[tuple[Content, Content]] = []
        for (host, identity), deliveries in self.delivered.items():
            publishes = self.published.get((host, identity), [])
            if len(publishes) > 1:
                continue
            if not publishes:
                self._elsewhere(host, identity, deliveries[0])
                continue
            came = publishes[0]
            for content in deliveries:
                if came.connection is content.connection or came.spot.time < content.spot.time:
                    self._message(content, came)
                    pairs.append((content, came))
            self._story(host, deliveries, came)
        pairs.sort(key=lambda pair: self.rank[id(pair[0])])
        for content, came in pairs:
            self._order(ways, content, came)
        for host, content in self.refused:
            for purge in self.purged.get((host, content.queue), []):
                if content.spot.time < purge.spot.time and purge.outcome.time < content.over:
                    self.findings.append(forwarding.purged_unsettled(content, purge))
                    break
        self.findings.sort(key=lambda finding: int(finding.spot.time))
        return self.findings

    def _elsewhere(self, host: str, identity: str, content: Content) -> None:
        """Nobody published it here: did somebody in another virtual host?"""
        if not content.digest.named or _moved(content):
            return
        others = [
            publishes
            for (other, name), publishes in self.published.items()
            if name == identity and other != host
        ]
        if len(others) == 1 and len(others[0]) == 1 and others[0][0].spot.time < content.spot.time:
            self.findings.append(forwarding.out_of_another_virtual_host(content, others[0][0]))

    # A message beside how it was published

    def _message(self, content: Content, came: Content) -> None:
        findings = self.findings
        if content.no_local and content.connection is came.connection:
            findings.append(forwarding.delivered_to_its_publisher(content, came))
        if came.fate in (OPEN, ROLLED_BACK) or (came.fate and _too_early(content, came)):
            findings.append(forwarding.delivered_before_its_commit(content, came))
        if content.digest.has_another_body(came.digest):
            findings.append(forwarding.body_altered(content, came))
            return
        if _moved(content) or _moved(came):
            return
        altered = _altered(content, came)
        if altered:
            findings.append(forwarding.property_altered(content, came, altered))
        if content.exchange != came.exchange or content.key != came.key:
            if not came.digest.mentions(b"CC") and not came.key.startswith(_DIRECT_REPLY):
                findings.append(forwarding.way_altered(content, came))

    def _order(self, ways: dict[tuple[object, ...], Content], content: Content, came: Content) -> None:
        """The order of messages on one way, from a publisher's channel to a consumer."""
        if content.redelivered or not content.consumer or _moved(content) or _moved(came) or came.fate:
            return
        way = (
            (id(came.connection), came.channel, came.life, came.exchange, came.key, came.digest.priority),
            (id(content.connection), content.channel, content.life, content.consumer),
        )
        before = ways.get(way)
        if before is None or before.end < came.end:
            ways[way] = came
            return
        if before is not came and before.end > came.end:
            later = next(
                one for one in self.delivered[self._place(before)] if one.connection is content.connection
            )
            self.findings.append(forwarding.out_of_order(content, later, came))

    def _place(self, content: Content) -> tuple[str, str]:
        return self.summaries[id(content.connection)].virtual_host, content.digest.identity

    # Its deliveries from one queue

    def _story(self, host: str, deliveries: list[Content], came: Content) -> None:
        queues: dict[str, list[Content]] = {}
        for content in deliveries:
            if content.queue and not content.digest.mentions(b"x-stream-offset") and not _moved(content):
                queues.setdefault(content.queue, []).append(content)
        for story in queues.values():
            for at in range(1, len(story)):
                self._again(host, story[at - 1], story[at], came)
            if len(story) > MAX_REDELIVERIES:
                last = story[MAX_REDELIVERIES]
                if last.redelivered:
                    self.findings.append(forwarding.again_and_again(last, story[0], MAX_REDELIVERIES + 1))

    def _again(self, host: str, before: Content, content: Content, came: Content) -> None:
        """A message is delivered from a queue once more."""
        findings = self.findings
        fate = before.fate
        same = before.connection is content.connection
        if not fate and not before.no_ack:
            owner = self.summaries[id(before.connection)]
            if not same and owner.ended < content.spot.time:
                fate = CLOSED if owner.over else ""
                if not fate:
                    return  # what became of its connection is not known
            elif same and before.channel == content.channel:
                return  # an acknowledgement may have been taken back in a way that is not seen
            else:
                findings.append(forwarding.delivered_to_two(content, before))
                return
        if fate == ROLLED_BACK:
            findings.append(forwarding.delivered_again_after_rollback(content, before))
        elif fate in (REQUEUED, CLOSED, RECOVERED, RECOVERED_ASYNC):
            self._given_back(before, content, fate, same)
        elif (fate == ACKED or before.no_ack) and not content.redelivered:
            if came.exchange in self.bound.get(host, ()):
                findings.append(forwarding.reached_an_exchange_twice(content, before))
            else:
                findings.append(forwarding.put_on_a_queue_twice(content, before))

    def _given_back(self, before: Content, content: Content, fate: str, same: bool) -> None:
        findings = self.findings
        if not _ended_before(before, content, same):
            if not same:
                findings.append(forwarding.delivered_to_two(content, before))
            return
        if not content.redelivered:
            if fate == RECOVERED:
                findings.append(forwarding.recovered_and_not_said(content, before))
            elif fate == RECOVERED_ASYNC:
                findings.append(forwarding.recovered_async_and_not_said(content, before))
            else:
                findings.append(forwarding.not_said_to_come_again(content, before))
        elif fate == REQUEUED and same and before.channel == content.channel:
            if id(content.connection) not in self.reported:
                self.reported.add(id(content.connection))
                findings.append(forwarding.requeued_to_the_same(content, before))


def _ended_before(before: Content, content: Content, same: bool) -> bool:
    """Whether a delivery was given back before the next one was sent, as far as is known."""
    if before.over < 0 or same:
        return True
    return before.over < content.spot.time


def _too_early(content: Content, came: Content) -> bool:
    """Whether a message was delivered before its transaction's commit was asked for."""
    if content.connection is came.connection:
        return 0 < content.end <= came.over_known
    return content.spot.time < came.over


def _moved(content: Content) -> bool:
    """Whether a broker may have moved the message itself, or kept it back."""
    return any(content.digest.mentions(name) for name in _MOVED)


def _altered(content: Content, came: Content) -> str:
    """The first property that was published and is not delivered so; "" if there is none."""
    published, delivered = came.digest, content.digest
    if published.octets is None or delivered.octets is None:
        return ""
    if published.flags == delivered.flags and published.octets == delivered.octets:
        return ""
    before, after = published.properties(), delivered.properties()
    for name in ("content_type", "content_encoding", "delivery_mode", "priority", "correlation_id"):
        if _differs(getattr(before, name), getattr(after, name)):
            return name.replace("_", "-")
    for name in ("message_id", "timestamp", "type", "user_id", "app_id"):
        if _differs(getattr(before, name), getattr(after, name)):
            return name.replace("_", "-")
    reply_to = before.reply_to or ""
    if published.flags & HAS_REPLY_TO and not reply_to.startswith(_DIRECT_REPLY):
        if before.reply_to != after.reply_to:
            return "reply-to"
    if published.flags & HAS_EXPIRATION and not delivered.flags & HAS_EXPIRATION:
        return "expiration"
    if published.flags & HAS_HEADERS and before.headers is not None:
        left = {} if after.headers is None else {repr(k): v for k, v in after.headers.read().pairs}
        for key, value in before.headers.read().pairs:
            name = str(key)
            if name in ("CC", "BCC") or name.startswith("x-"):
                continue
            if repr(key) not in left or left[repr(key)] != value:
                return "headers"
    return ""


def _differs(before: object, after: object) -> bool:
    """Whether something was set and is not the same."""
    return before is not None and before != -1 and before != after

"""The changes that a broker may make to a message that it forwards (messaging.xml, "message-format")."""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.message_digest import MessageDigest
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Header
from dissectors.wire import i64

__all__ = ["TOLERANCE", "Way", "judge_forwarded"]

RULES: Final = Rules("amqp10/intermediary")


_SECTIONS: Final = {
    0x73: "properties",
    0x74: "application-properties",
    0x75: "data",
    0x76: "amqp-sequence",
    0x77: "amqp-value",
}

TOLERANCE: Final = 100_000_000
"""Nanoseconds by which clocks and queues may be inexact."""


class Way:
    """One forwarded message: as the broker received it, and as the broker sent it."""

    def __init__(self, came: MessageDigest, to: Connection, left: MessageDigest, by: Connection) -> None:
        self.came: MessageDigest = came
        self.to: Connection = to
        self.left: MessageDigest = left
        self.by: Connection = by

    def finding(self, rule: str, message: str, evidence: dict[str, object]) -> Finding:
        others = [int(self.came.spot.packet)] if self.to.capture == self.by.capture else []
        if self.to is not self.by:
            evidence["earlier_connection"] = self.to.id
        finding = Finding(rule, POSSIBLE, message, self.by, self.left.spot, evidence, others)
        finding.link = self.left.link
        finding.link_sender = finding.peer
        return finding

    def waited(self) -> i64:
        """How long (ns) the broker had the message."""
        return self.left.spot.time - self.came.spot.time


M_BARE_NOINSERT: Final = RULES.rule("M-BARE-NOINSERT", "MUST NOT", "lower-case")


def section_added(way: Way, name: str) -> Finding:
    """A broker forwards a message with a bare-message section that the message did not have when it arrived.

    Demands: An intermediary must not add a section to the bare message. The final specification uses the
    words 'may not' for this demand. The drafts csd01 and csprd02 use MUST NOT.
    Source: messaging.xml section message-format
    Evidence: the sections of the message before and after the broker
    Why it matters: The receiver attributes the added section to the original sender, although the original
    sender did not write this section. A signature over the bare message becomes invalid.
    Silent when: the sender's or the receiver's connection to the broker was not captured, or when the message
    has no message-id or shares its message-id with another message.
    Only possible because: The rule treats two messages with the same message-id as one forwarded message.
    However, the second message may be a new message whose sender used the same message-id.
    How to mend it: Forward only the bare-message sections that were received. Put broker information into
    message-annotations or delivery-annotations, not into properties or application-properties.
    """
    return way.finding(
        M_BARE_NOINSERT,
        f"the peer forwards the message with the section {name}, but the message arrived without this "
        "section",
        {"section": name},
    )


M_PROPS_UNALTERED: Final = RULES.rule("M-PROPS-UNALTERED", "MUST", "lower-case")


def properties_altered(way: Way) -> Finding:
    """A broker forwards a message with a changed properties section.

    Demands: An intermediary must not change the properties section. The final specification writes 'must' in
    lower case. The drafts csd01 and csprd02 write MUST.
    Source: messaging.xml section message-format > properties
    Evidence: the octets of the properties section before and after the broker
    Why it matters: The properties belong to the original sender. Receivers act on values that the sender did
    not set, and a signature over the properties becomes invalid.
    Silent when: the sender's or the receiver's connection to the broker was not captured, or when the message
    has no message-id or shares its message-id with another message.
    Only possible because: The rule treats two messages with the same message-id as one forwarded message.
    However, the second message may be a new message whose sender used the same message-id.
    How to mend it: Forward the properties section exactly as it was received. Put values of the broker into
    message-annotations or delivery-annotations instead of filling or replacing fields of properties.
    """
    return way.finding(
        M_PROPS_UNALTERED,
        "the peer forwards the message with changed properties, but an intermediary must not change the "
        "properties section",
        {},
    )


M_BARE_IMMUTABLE: Final = RULES.rule("M-BARE-IMMUTABLE", "MUST NOT", "keyword")


def bare_message_altered(way: Way, name: str, how: str) -> Finding:
    """A broker changes the bare message that it forwards, or encodes the bare message again.

    Demands: An intermediary must forward properties, application-properties and body unchanged, octet for
    octet, without encoding them again.
    Source: messaging.xml section message-format
    Evidence: the octets of the bare message before and after the broker
    Why it matters: Receivers do not get the octets that the original sender sent. Content may change, and a
    signature over the bare message becomes invalid.
    Silent when: the sender's or the receiver's connection to the broker was not captured, or when the message
    has no message-id or shares its message-id with another message.
    Only possible because: The rule treats two messages with the same message-id as one forwarded message.
    However, the second message may be a new message whose sender used the same message-id.
    How to mend it: Forward the octets of properties, application-properties and body as you received them. Do
    not decode and encode these sections again, and do not merge or split body sections.
    """
    return way.finding(
        M_BARE_IMMUTABLE,
        f"the peer forwards the message {how}; an intermediary must forward the bare message unchanged, "
        "octet for octet",
        {"section": name},
    )


T_MAP_ORDER: Final = RULES.rule("T-MAP-ORDER", "MUST", "lower-case")


def entries_shuffled(way: Way) -> Finding:
    """A broker forwards a message with its application-properties in a different order.

    Demands: The order of the entries in a map is significant unless a definition says otherwise, so a
    peer must not change the order.
    Source: types.xml section encodings > map
    Evidence: the entries of application-properties before and after the broker
    Why it matters: A changed order alters the bare message, and a signature over the bare message becomes
    invalid.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages. The rule is also silent when the sender's or the receiver's connection
    to the broker was not captured.
    Only possible because: The forwarded message may be a different message from the one that the broker
    received.
    How to mend it: Forward the octets of application-properties as they were received. If you must decode
    application-properties, store the entries in a map that preserves their order, not in a hash map.
    """
    return way.finding(
        T_MAP_ORDER,
        "the peer forwards the message with the application-properties in another order, although the "
        "order of a map is significant",
        {"section": "application-properties"},
    )


M_ANN_PROPAGATE: Final = RULES.rule("M-ANN-PROPAGATE", "MUST", "keyword")


def annotations_dropped(way: Way, count: int) -> Finding:
    """A broker forwards a message without a message-annotation that the message had when it arrived.

    Demands: An intermediary must forward all message-annotations unchanged, unless it adds or changes an
    annotation on purpose.
    Source: messaging.xml section message-format > message-annotations
    Evidence: the message-annotations before and after the broker
    Why it matters: Message-annotations are meant for every node on the path. Information that one node added
    for the next node is lost.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages. The rule is also silent when the sender's or the receiver's connection
    to the broker was not captured.
    Only possible because: A broker may intend to change the message-annotations.
    How to mend it: Copy all message-annotations of the received message into the forwarded message, including
    annotations with unknown keys. Remove or change only annotations that the broker deliberately handles.
    """
    return way.finding(
        M_ANN_PROPAGATE,
        f"the peer forwards the message without {count} of the message-annotations, which an intermediary "
        "must forward",
        {"missing": count},
    )


M_HDR_TTL_REDUCE: Final = RULES.rule("M-HDR-TTL-REDUCE", "SHOULD", "lower-case")


def ttl_kept(way: Way, came: i64, left: i64) -> Finding:
    """A broker keeps a message for a while and forwards the message with a ttl that is not lower than on
    arrival.

    Demands: An intermediary should reduce the ttl by the time for which it kept the message. The draft
    csprd02 writes this rule with the keyword SHOULD.
    Source: messaging.xml section message-format > header.ttl
    Evidence: the ttl of the message before and after the broker, and the time between arrival and forwarding
    Why it matters: The receiver assumes a longer remaining lifetime than the message has. A message that
    should have expired stays valid.
    Silent when: the sender's or the receiver's connection to the broker was not captured, or when the broker
    had the message for less than a second.
    Possible because: The rule treats two messages with the same message-id as one forwarded message. However,
    the second message may be a new message whose sender used the same message-id.
    How to mend it: Record when the message arrived. When you forward the message, reduce the ttl in its
    header by the time since arrival.
    """
    seconds = way.waited() / 1_000_000_000
    return way.finding(
        M_HDR_TTL_REDUCE,
        f"the message arrives with a ttl of {came} ms, and the peer forwards the message {seconds:.1f} s "
        f"later with a ttl of {left} ms, but the ttl should be reduced by these {seconds:.1f} s",
        {"ttl": int(came)},
    )


M_HDR_TTL_EXPIRED: Final = RULES.rule("M-HDR-TTL-EXPIRED", "SHOULD", "definition")


def sent_after_its_time(way: Way, ttl: i64) -> Finding:
    """A broker forwards a message whose ttl has expired.

    Demands: An intermediary should drop a message whose ttl has expired, or move it to a dead-letter queue.
    Source: messaging.xml section message-format > header.ttl; messaging.xml section distribution-nodes
    Evidence: the ttl of the message, and the times of its arrival and of its delivery
    Why it matters: Receivers process a message whose content is no longer valid, for example an outdated
    order or price.
    Silent when: the sender's or the receiver's connection to the broker was not captured. The rule is also
    silent when the broker had the message for less than 1.1 times the ttl of the message.
    Possible because: The rule treats two messages with the same message-id as one forwarded message. However,
    the second message may be a new message whose sender used the same message-id.
    How to mend it: Compare the time since arrival with the ttl before each delivery. When the ttl has passed,
    drop the message or move it to a dead-letter queue.
    """
    seconds = way.waited() / 1_000_000_000
    return way.finding(
        M_HDR_TTL_EXPIRED,
        f"the peer forwards the message after {seconds:.1f} s, although the message's ttl of {ttl} ms has "
        "expired",
        {"ttl": int(ttl)},
    )


M_HDR_DELCOUNT_ZERO: Final = RULES.rule(
    "M-HDR-DELCOUNT-ZERO",
    "MUST",
    "definition",
    by="sender",
    warning="A capture can suggest this fault but never prove it.",
)


def counted_before_the_first(way: Way, count: i64) -> Finding:
    """When a broker sends a message for the first time, the header already has a delivery-count above 0.

    Demands: On the first delivery of a message, the delivery-count in the header must be 0.
    Source: messaging.xml section message-format > header.delivery-count
    Evidence: earlier deliveries of a message with the same message-id
    Why it matters: Receivers conclude that earlier deliveries of the message failed. Receivers may then drop
    the message, or move it to a dead-letter queue, too early.
    Silent when: frames that the broker sent to a client were not captured. The rule is also silent when the
    message arrived at the broker with a delivery-count, or when the message has no message-id.
    Only possible because: The {peer} may have sent the message before on a connection that was not captured.
    How to mend it: Set the header's delivery-count to 0 on the first delivery. Increase delivery-count only
    after a delivery attempt that failed.
    """
    return way.finding(
        M_HDR_DELCOUNT_ZERO,
        f"the first delivery of the message has delivery-count {count}, not 0",
        {"delivery_count": int(count)},
    )


def _value(section: bytes) -> object:
    """The value of a section, None if the message lacks the section."""
    for one in Message(0, [section], len(section), True).sections():
        return one.value
    return None


def _header(section: bytes) -> Header | None:
    value = _value(section)
    return value if isinstance(value, Header) else None


def _judge_bare(way: Way) -> Finding | None:
    """Judge the bare message: the narrowest rule reports the fault."""
    came = way.came
    left = way.left
    if came.sections == left.sections and came.sums == left.sums:
        return None
    for code in came.sections:
        if code not in left.sections:
            return bare_message_altered(way, _SECTIONS[code], f"without the section {_SECTIONS[code]}")
    for code in left.sections:
        if code not in came.sections:
            return section_added(way, _SECTIONS[code])
    if came.sections != left.sections:
        return bare_message_altered(
            way, "data", f"in {len(left.sections)} sections, but arrived in {len(came.sections)}"
        )
    for at, code in enumerate(came.sections):
        if came.sums[at] != left.sums[at]:
            name = _SECTIONS[code]
            if code == 0x74 and came.entries != left.entries and sorted(came.entries) == sorted(left.entries):
                return entries_shuffled(way)
            if code == 0x73:
                if _value(came.properties) != _value(left.properties):
                    return properties_altered(way)
                if came.properties:
                    return bare_message_altered(way, name, "with the properties encoded anew")
            return bare_message_altered(way, name, f"with another value or another encoding of {name}")
    return None


def judge_forwarded(way: Way, first: bool) -> list[Finding]:
    """Judge a message as it came to a broker and as it left the broker.

    first: the broker surely sent the message to nobody before.
    """
    came = way.came
    left = way.left
    findings: list[Finding] = []
    bare = _judge_bare(way)
    if bare is not None:
        findings.append(bare)
    dropped = sum(1 for key in came.annotations if key not in left.annotations)
    if dropped:
        findings.append(annotations_dropped(way, dropped))
    before = _header(came.header)
    after = _header(left.header)
    if before is not None and before.ttl:
        waited = way.waited()
        ttl: i64 = before.ttl
        if waited > ttl * 1_000_000 + max(TOLERANCE, ttl * 100_000):
            findings.append(sent_after_its_time(way, ttl))
        elif after is not None and after.ttl and waited >= 1_000_000_000:
            rest: i64 = after.ttl
            if rest >= ttl:
                findings.append(ttl_kept(way, ttl, rest))
    if first and after is not None and after.delivery_count:
        if before is None or not before.delivery_count:
            findings.append(counted_before_the_first(way, after.delivery_count))
    return findings

"""What a broker may do to a message on its way (messaging.xml, "message-format", "header")."""

from typing import Final

from amqpscope.model.certainty import POSSIBLE
from amqpscope.model.finding import Finding
from amqpscope.model.records import Connection
from amqpscope.tracking.amqp10.message_digest import MessageDigest
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Header
from dissectors.wire import i64

__all__ = ["judge_forwarded"]

_SECTIONS: Final = {
    0x73: "properties",
    0x74: "application-properties",
    0x75: "data",
    0x76: "amqp-sequence",
    0x77: "amqp-value",
}

# Of a time: clocks and queues are not exact.
_TOLERANCE: Final = 100_000_000


class _Way:
    """One message on its way: as it came to the broker, and as it left it again."""

    def __init__(self, came: MessageDigest, to: Connection, left: MessageDigest, by: Connection) -> None:
        self.came: MessageDigest = came
        self.to: Connection = to
        self.left: MessageDigest = left
        self.by: Connection = by

    def finding(self, rule: str, message: str, evidence: dict[str, object]) -> Finding:
        others = [int(self.came.spot.packet)] if self.to.capture == self.by.capture else []
        evidence["earlier_connection"] = self.to.id
        finding = Finding(rule, POSSIBLE, message, self.by, self.left.spot, evidence, others)
        finding.link = self.left.link
        finding.link_sender = finding.peer
        return finding

    def waited(self) -> i64:
        """How long (ns) the broker had it."""
        return self.left.spot.time - self.came.spot.time


def section_added(way: _Way, name: str) -> Finding:
    """A broker sends a message on with a section in its bare message that it did not have.

    Why it matters: what the sender left out is then told in its name, and a signature no longer fits.
    Silent when: either connection was not captured, the message has no message-id or shares it with another
    one.
    Only possible because: The two are one message by their message-id; who sent the second may have made it.
    """
    return way.finding(
        "amqp10/M-BARE-NOINSERT",
        f"the message is sent on with {name}, which it came without",
        {"section": name},
    )


def properties_altered(way: _Way) -> Finding:
    """A broker sends a message on with other properties than it came with.

    Why it matters: they are the sender's, and part of what a signature covers.
    Silent when: either connection was not captured, the message has no message-id or shares it with another
    one.
    Only possible because: The two are one message by their message-id; who sent the second may have made it.
    """
    return way.finding("amqp10/M-PROPS-UNALTERED", "the message is sent on with other properties", {})


def bare_message_altered(way: _Way, name: str, how: str) -> Finding:
    """A broker changes the bare message that it sends on, or encodes it anew.

    Why it matters: receivers get something else than was sent, and a signature no longer fits.
    Silent when: either connection was not captured, the message has no message-id or shares it with another
    one.
    Only possible because: The two are one message by their message-id; who sent the second may have made it.
    """
    return way.finding("amqp10/M-BARE-IMMUTABLE", f"the message is sent on {how}", {"section": name})


def entries_shuffled(way: _Way) -> Finding:
    """A broker sends a message on with its application properties in another order.

    Why it matters: the order of a map's entries is part of it, unless its definition says otherwise.
    Silent when: the message has no id, is not among the first of its connection, or only one of the two
    connections was captured.
    Only possible because: It may be another message.
    """
    return way.finding(
        "amqp10/T-MAP-ORDER",
        "the message is sent on with its application properties in another order",
        {"section": "application-properties"},
    )


def annotations_dropped(way: _Way, count: int) -> Finding:
    """A broker sends a message on without a message-annotation that it had.

    Why it matters: message-annotations are for everybody on the way; what one meant to tell the next is lost.
    Silent when: the message has no id, is not among the first of its connection, or only one of the two
    connections was captured.
    Only possible because: A broker may mean to change them.
    """
    return way.finding(
        "amqp10/M-ANN-PROPAGATE",
        f"the message is sent on without {count} of its message-annotations",
        {"missing": count},
    )


def ttl_kept(way: _Way, came: i64, left: i64) -> Finding:
    """A broker sends a message on after a while with the whole ttl that it came with.

    Why it matters: the receiver takes it for younger than it is, and one that should have expired lives on.
    Silent when: either connection was not captured, or the broker had it for less than a second.
    Possible because: The two are one message by their message-id; who sent the second may have made it.
    """
    seconds = way.waited() / 1_000_000_000
    return way.finding(
        "amqp10/M-HDR-TTL-REDUCE",
        f"the ttl is {left} ms, after {seconds:.1f} s; it came with {came} ms",
        {"ttl": int(came)},
    )


def sent_after_its_time(way: _Way, ttl: i64) -> Finding:
    """A broker sends a message on whose ttl is over.

    Why it matters: what a sender no longer wants to be read is read.
    Silent when: either connection was not captured, or it is late by less than a tenth of the ttl.
    Possible because: The two are one message by their message-id; who sent the second may have made it.
    """
    seconds = way.waited() / 1_000_000_000
    return way.finding(
        "amqp10/M-HDR-TTL-EXPIRED",
        f"the message is sent on after {seconds:.1f} s; its ttl is {ttl} ms",
        {"ttl": int(ttl)},
    )


def counted_before_the_first(way: _Way, count: i64) -> Finding:
    """A broker sends a message for the first time and counts deliveries before.

    Why it matters: receivers take it for one that failed, and give it up too early.
    Silent when: not all that the broker sent to anybody was captured from its start, the message came to it
    with a count, or it has no message-id.
    Only possible because: The {peer} may have sent it where nothing was captured.
    """
    return way.finding(
        "amqp10/M-HDR-DELCOUNT-ZERO",
        f"the message is sent for the first time with a delivery-count of {count}",
        {"delivery_count": int(count)},
    )


def _value(section: bytes) -> object:
    """What a section holds, None if there is none."""
    for one in Message(0, [section], len(section), True).sections():
        return one.value
    return None


def _header(section: bytes) -> Header | None:
    value = _value(section)
    return value if isinstance(value, Header) else None


def _judge_bare(way: _Way) -> Finding | None:
    """The bare message: one fault, told by the narrowest rule."""
    came = way.came
    left = way.left
    if came.sections == left.sections and came.sums == left.sums:
        return None
    for code in came.sections:
        if code not in left.sections:
            return bare_message_altered(way, _SECTIONS[code], f"without its {_SECTIONS[code]}")
    for code in left.sections:
        if code not in came.sections:
            return section_added(way, _SECTIONS[code])
    if came.sections != left.sections:
        return bare_message_altered(
            way, "data", f"in {len(left.sections)} sections, not {len(came.sections)}"
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
                    return bare_message_altered(way, name, "with its properties encoded anew")
            return bare_message_altered(way, name, f"with another {name}, or encodes it otherwise")
    return None


def judge_forwarded(
    came: MessageDigest, to: Connection, left: MessageDigest, by: Connection, first: bool
) -> list[Finding]:
    """A message as it came to a broker, and as it left it.

    first: it is known that the broker sent it to nobody before.
    """
    way = _Way(came, to, left, by)
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
        if waited > ttl * 1_000_000 + max(_TOLERANCE, ttl * 100_000):
            findings.append(sent_after_its_time(way, ttl))
        elif after is not None and after.ttl and waited >= 1_000_000_000:
            rest: i64 = after.ttl
            if rest >= ttl:
                findings.append(ttl_kept(way, ttl, rest))
    if first and after is not None and after.delivery_count:
        if before is None or not before.delivery_count:
            findings.append(counted_before_the_first(way, after.delivery_count))
    return findings


RULES = {
    "amqp10/T-MAP-ORDER": entries_shuffled,
    "amqp10/M-ANN-PROPAGATE": annotations_dropped,
    "amqp10/M-BARE-NOINSERT": section_added,
    "amqp10/M-PROPS-UNALTERED": properties_altered,
    "amqp10/M-BARE-IMMUTABLE": bare_message_altered,
    "amqp10/M-HDR-TTL-REDUCE": ttl_kept,
    "amqp10/M-HDR-TTL-EXPIRED": sent_after_its_time,
    "amqp10/M-HDR-DELCOUNT-ZERO": counted_before_the_first,
}

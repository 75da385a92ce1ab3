"""The changes that a broker may make to a message that it forwards (section 4.2)."""

from typing import Final

from amqpscope.model.finding import Finding
from amqpscope.rules.amqp10.intermediary import TOLERANCE, Way
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10_draft2011.passing import header_of
from amqpscope.tracking.amqp10_draft2011.sections import PROPERTIES
from dissectors.wording import count

__all__ = ["judge_forwarded"]

RULES: Final = Rules("amqp10_draft2011/intermediary")


M_PROPS_UNALTERED: Final = RULES.rule("M-PROPS-UNALTERED", "MUST", "definition")


def properties_altered(way: Way) -> Finding:
    """A broker forwards a message with a changed properties section.

    Demands: A node that acts as an intermediary must not change the properties of a message.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 4.2 and 4.2.3
    Evidence: the fields of the properties section before and after the broker
    Why it matters: The properties belong to the original sender. Receivers act on values that the sender did
    not set.
    Silent when: the sender's or the receiver's connection to the broker was not captured or does not use the
    draft. The rule is also silent when the message has no message-id or shares its message-id with another
    message.
    Only possible because: The rule treats the two messages as one message because their message-ids are
    equal. The sender of the second message may have created a new message with the same message-id.
    How to mend it: Forward the properties section exactly as it was received. Put values of the broker into
    message-attrs or delivery-attrs. Do not fill or replace fields of the properties.
    """
    return way.finding(
        M_PROPS_UNALTERED,
        "the peer forwards the message with changed properties, but an intermediary must not change the "
        "properties",
        {},
    )


M_BARE_IMMUTABLE: Final = RULES.rule("M-BARE-IMMUTABLE", "MUST", "definition")


def bare_message_altered(way: Way) -> Finding:
    """A broker changes the application data of a message that it forwards.

    Demands: A node that acts as an intermediary must not change the application data of a message.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 4.2
    Evidence: the sections of application data before and after the broker
    Why it matters: Receivers get other content than the sender sent.
    Silent when: the sender's or the receiver's connection to the broker was not captured or does not use the
    draft. The rule is also silent when the broker only encodes the same values in another way. The rule is
    also silent when the message has no message-id or shares its message-id with another message.
    Only possible because: The rule treats the two messages as one message because their message-ids are
    equal. The sender of the second message may have created a new message with the same message-id.
    How to mend it: Forward all sections between properties and footer as you received them. Put values of the
    broker into message-attrs or delivery-attrs of the header or footer.
    """
    return way.finding(
        M_BARE_IMMUTABLE,
        "the peer forwards the message with other application data, but an intermediary must not change "
        "the application data",
        {},
    )


M_ANN_PROPAGATE: Final = RULES.rule("M-ANN-PROPAGATE", "MUST", "keyword")


def attributes_dropped(way: Way, missing: int) -> Finding:
    """A broker forwards a message without an entry of message-attrs that the message had when it arrived.

    Demands: A node must keep the values in message-attrs of the header and of the footer. The node may only
    add values or update values.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 4.2.2 and 4.2.4
    Evidence: the keys in message-attrs before and after the broker
    Why it matters: The values in message-attrs are meant for every node on the path. Information that one
    node added for the next node is lost.
    Silent when: the message has no message-id. The rule remembers only the first messages of each connection,
    and is silent about later messages. The rule is also silent when the sender's or the receiver's connection
    to the broker was not captured or does not use the draft.
    Only possible because: A broker may change message-attrs on purpose.
    How to mend it: Copy all entries of message-attrs of the received message into the forwarded message,
    including entries with unknown keys. Change only entries that the broker deliberately handles.
    """
    return way.finding(
        M_ANN_PROPAGATE,
        f"the peer forwards the message without {count(missing, 'entry')} of the message-attrs, which an "
        "intermediary must forward",
        {"missing": missing},
    )


M_HDR_TTL_EXPIRED: Final = RULES.rule("M-HDR-TTL-EXPIRED", "SHOULD", "definition")


def sent_after_its_time(way: Way, ttl: int, waited: int) -> Finding:
    """A broker forwards a message whose ttl has expired.

    Demands: A message expires when its ttl has passed since its transmit-time, or since its arrival if it has
    no transmit-time. An expired message should be discarded or dead-lettered.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 4.2.2 and 4.4.1
    Evidence: the ttl and the transmit-time of the message, and the times of its arrival and of its delivery
    Why it matters: Receivers process a message whose content is no longer valid, for example an outdated
    order or price.
    Silent when: the sender's or the receiver's connection to the broker was not captured or does not use the
    draft. The rule is also silent when less than 1.1 times the ttl has passed since the transmit-time or the
    arrival, whichever is later.
    Only possible because: The rule treats the two messages as one message because their message-ids are
    equal. The sender of the second message may have created a new message with the same message-id, or the
    receiver may read dead letters.
    How to mend it: Add the ttl to the transmit-time, or to the time of arrival if the header has no
    transmit-time. Discard or dead-letter the message when the resulting time has passed.
    """
    return way.finding(
        M_HDR_TTL_EXPIRED,
        f"the peer forwards the message after {waited / 1_000_000_000:.1f} s, although the message's ttl of "
        f"{ttl} ms has expired",
        {"ttl": ttl},
    )


def _judge_time(way: Way) -> list[Finding]:
    header = header_of(way.came)
    if header is None or not header.ttl:
        return []
    ttl = int(header.ttl)
    began = int(way.came.spot.time)
    if header.transmit_time is not None:
        began = max(began, int(header.transmit_time) * 1_000_000)
    waited = int(way.left.spot.time) - began
    if waited <= ttl * 1_000_000 + max(int(TOLERANCE), ttl * 100_000):
        return []
    return [sent_after_its_time(way, ttl, waited)]


def _properties(sections: bytes, sums: tuple[int, ...]) -> list[int]:
    """The checksums of the sections of properties: one, or none."""
    return [one for code, one in zip(sections, sums, strict=True) if code == PROPERTIES]


def judge_forwarded(way: Way) -> list[Finding]:
    """Judge a message of the draft as it came to a broker and as it left the broker."""
    came = way.came
    left = way.left
    findings: list[Finding] = []
    if _properties(came.sections, came.sums) != _properties(left.sections, left.sums):
        findings.append(properties_altered(way))
    elif (came.sections, came.sums) != (left.sections, left.sums):
        findings.append(bare_message_altered(way))
    dropped = sum(1 for key in came.annotations if key not in left.annotations)
    if dropped:
        findings.append(attributes_dropped(way, dropped))
    return findings + _judge_time(way)

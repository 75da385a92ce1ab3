"""Standard words: what names nobody, so that it stays in an anonymised capture.

They are the words of the specifications, of the conventions of brokers and clients, and of the texts with
which brokers refuse something. A name of such words only, as `/queues/` or `amq.direct`, stays as it is.
"""

import re
from typing import Final

from dissectors.amqp091 import methods
from dissectors.amqp091.arguments import ArgumentsType
from dissectors.amqp10 import registry
from dissectors.amqp10.composite import CompositeType
from dissectors.amqp10_draft2011 import registry as draft_registry

__all__ = ["PHRASES", "WORDS"]

PHRASES: Final = (
    r"amqp:[a-z:-]+|channel [0-9]+|[0-9]+ (?:ms|s|seconds|bytes|octets)\b",
    r"HTTP/[0-9]\.[0-9](?: [0-9]{3}\b)?",
    r"PLAIN|EXTERNAL|ANONYMOUS|AMQPLAIN|XOAUTH2|SCRAM-SHA-[0-9]+(?:-PLUS)?|CRAM-MD5|DIGEST-MD5",
    r"utf-?8|UTF-?8|base64|application/(?:json|xml|octet-stream|x-amqp|x-www-form-urlencoded)",
    r"en_US|[0-9]\.[0-9]\.[0-9]-[0-9]{6}",
)
"""What stays as a whole, as regular expressions."""

_COMMON: Final = """
    accept accepted access ack acknowledged acknowledgement acknowledgements action activemq after
    age alive all allowed already alternate amq amqp amqps and annotation annotations anonymous
    another any apache app application arg argument arguments artemis at attached attempted
    authentication authorization auto autoack azure bad basic batch bcc bearer been big bind binding
    bindings blocked body bound br broker by cancel cancelled cannot capabilities cbs cc channel
    classic client close closed closing cluster code com command compress condition confirms conn
    connect connection consume consumer consumergroups consumers container content coordinator copy
    copyright correct could count current data date dead death declare declared deflate delay
    delayed delete deleted delivered delivery detach detected direct discharge dist distributed
    doctype does dollar drain drop due durability durable duration dynamic encoding end ended
    enqueued errant error event eventhub exchange exchanges exclusive exi exist exists expected
    expiration expired expires failed failure fanout feature federation field filter first flow for
    forbidden force forced format forward found frame frames framing from gen get global group guid
    gzip ha handle has head header headers heartbeat heartbeats host html http https id identity
    idle illegal imap implemented in inactive inactivity inequivalent info information initial
    internal invalid is jms json jwt keep key kind known large larger last lazy length letter
    lifetime limit link list local locale locales locator lock locked login lost ls lz4 management
    master match max maximum mechanism mechanisms memory message messages method microsoft min
    missed missing mode modes modified move mqtt msg multi multiple must nack nacked name need
    negotiated network never no noack node none not notify null number octets of offset ok on oneway
    opened operation opt option options or origin other out over overflow owner pack200 packet
    partition partitions passive password path peer per permission permissions persistent plain
    platform policy port possible post precondition prefetch presettled priorities priority process
    product promotable properties property protocol protocols publish publisher push put qos qpid
    queue queues quorum rabbit rabbitmq read ready reason received receiver redelivered refused
    reject rejected release released remote rename reply request requested requeue reset resource
    response resume returned reuse revived role rollback route routed routing sas scheduled scheme
    sec seconds security segment selector send sender sent sequence server servicebus session
    sessions set settle shovel shutdown single size smtp snappy source ssh ssns standard start state
    status stomp strategy stream string subscription subscriptions support supported switching
    synchronous syntax target temp temporary text than the time timed timeout timestamp to token too
    topic topics trace transaction transactional transactions transfer transient ttl txn txns type
    unable unacked unattached unauthorized unexpected unit unknown unlimited unsettled unsupported
    unsynced until update upgrade used user utf value values version vhost vhosts via wait was
    websocket while window with write wrong x xml zstd
"""


def _of_specifications() -> frozenset[str]:
    """The words of which the names of types, fields and methods are made."""
    types: list[CompositeType | ArgumentsType] = [*registry.COMPOSITES, *draft_registry.COMPOSITES]
    types += [one for one in vars(methods).values() if isinstance(one, ArgumentsType)]
    names = [part for one in types for part in (one.name, *(field.name for field in one.fields))]
    return frozenset(word for name in names for word in re.split("[-.]", name))


WORDS: Final = frozenset(_COMMON.split()) | _of_specifications()
"""Words in small letters; in an anonymised capture they stay however they are written."""

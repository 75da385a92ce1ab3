"""Known habits of products that break a rule, and the products' own words by which they are recognised.

A finding that is such a habit of the peer at fault is a note: the rule is broken all the same, but everybody
who talks to that product lives with it, and its makers know. Two things keep a habit from hiding a fault:

* It excuses one shape of a rule's breach, not the rule: the frame, or the field, is part of it.
* It excuses nobody when the other peer complains, with a condition that says that the protocol was broken.

Who a peer is only its open says: product, version, user-agent among the properties, or a container-id of a
form that only one product makes up; in AMQP 0-9-1 the properties in start and start-ok. A habit has a public
source. Findings that only several connections give (`amqpscope.correlation`) have no habits.

Where the capture does not have all of a peer's open, what is a habit of some product is only possible.

None of this is asked for a frame; only for a finding whose rule is in `HABITUAL`, when it is given out.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from amqpscope.errors import FilterError
from amqpscope.model.finding import Finding
from amqpscope.rules.catalogue import severity

__all__ = [
    "AUTO",
    "HABITUAL",
    "LONGEST",
    "MOST_PROPERTIES",
    "NONE",
    "PROFILES",
    "Habit",
    "Mark",
    "Profile",
    "habit_of",
    "profile",
    "recognised",
    "under",
    "valid",
    "weight",
    "which",
]

AUTO: Final = "auto"
"""Profiles are chosen by what peers say of themselves."""

NONE: Final = "none"
"""No profile: every finding has the weight of its rule."""

LONGEST: Final = 200
"""Characters of a field that are looked at; products' names are short."""

MOST_PROPERTIES: Final = 64
"""Properties of an open that are looked at; products have a handful."""

_COMPLAINTS: Final = frozenset(
    (
        "amqp:decode-error",
        "amqp:illegal-state",
        "amqp:internal-error",
        "amqp:invalid-field",
        "amqp:not-allowed",
        "amqp:not-implemented",
        "amqp:frame-size-too-small",
        "amqp:connection:framing-error",
        "amqp:session:window-violation",
        "amqp:session:errant-link",
        "amqp:session:handle-in-use",
        "amqp:session:unattached-handle",
        "amqp:link:transfer-limit-exceeded",
        "amqp:link:message-size-exceeded",
        "501",
        "502",
        "503",
        "504",
        "505",
    )
)
"""What a peer says that cannot go on with what the other one has sent."""


class Mark(NamedTuple):
    """How a product is recognised: by a field of its open.

    field: `container-id`, or a property. pattern: what all of it has to match. before: and its property
    `version` has to be below this one.
    """

    field: str
    pattern: str
    before: tuple[int, ...] = ()


class Habit(NamedTuple):
    """What a product does that breaks a rule.

    rule: with its namespace. does: one sentence about the product. source: where that is public. frames: only
    in these frames. path: only where the path of the offending value has this in it. excess: of a frame that
    is too large, at most so many octets beyond what is allowed; 0: as many as may be.
    """

    rule: str
    does: str
    source: str
    frames: tuple[str, ...] = ()
    path: str = ""
    excess: int = 0


class Profile(NamedTuple):
    """A product with its habits. marks: one of them is enough. product: its name for people."""

    name: str
    product: str
    marks: tuple[Mark, ...]
    habits: tuple[Habit, ...]


PROFILES: Final = (
    Profile(
        "rabbitmq-3",
        "RabbitMQ before 4.0",
        (Mark("product", "RabbitMQ", before=(4,)),),
        (
            Habit(
                "amqp10/L-CLOSE-ANSWER",
                "answers a closing detach with one that does not close; mended in 4.0",
                "https://github.com/rabbitmq/rabbitmq-server/issues/2594",
                frames=("detach",),
            ),
            Habit(
                "amqp10/C-CLOSE-LAST",
                "lets its sessions answer detach and end after its close",
                "https://github.com/rabbitmq/rabbitmq-server/pull/13247",
                frames=("detach", "end"),
            ),
        ),
    ),
    Profile(
        "rabbitmq-091",
        "RabbitMQ",
        (Mark("product", "RabbitMQ"),),
        (
            Habit(
                "amqp091/F-FRAME-SIZE",
                "does not divide content headers, nor refuses messages with headers that fit into no frame",
                "https://github.com/rabbitmq/rabbitmq-server/issues/921",
                frames=("content-header",),
            ),
        ),
    ),
    Profile(
        "pamqp",
        "aiormq (under aio-pika), rabbitpy, AMQPStorm, carehare and aiorabbit, on pamqp",
        (Mark("product", "aiormq|rabbitpy|AMQPStorm|carehare|aiorabbit/.*"),),
        (
            Habit(
                "amqp091/T-RESERVED-CHAN",
                "opens channels with 0 in the former field out-of-band",
                "https://github.com/gmr/pamqp/blob/main/pamqp/commands.py",
                frames=("channel.open",),
            ),
        ),
    ),
    Profile(
        "payload-max",
        "AMQPStorm, rabbitpy, carehare, aiorabbit, aioamqp, rabbitmq-client and amqp-coffee",
        (
            Mark(
                "product",
                "AMQPStorm|rabbitpy|carehare|aiorabbit/.*|aioamqp|rabbitmq-client|node-amqp-coffee",
            ),
        ),
        (
            Habit(
                "amqp091/F-FRAME-SIZE",
                "takes frame-max for that of a payload, without the eight octets around it, as RabbitMQ does",
                "https://github.com/rabbitmq/rabbitmq-server/blob/main/deps/rabbit/src/rabbit_reader.erl",
                frames=("body",),
                excess=8,
            ),
        ),
    ),
    Profile(
        "bunny",
        "Bunny and the amqp gem",
        (Mark("product", "Bunny|amqp gem"),),
        (
            Habit(
                "amqp091/C-STARTOK-LOCALE-OFFERED",
                "asks for en_GB, whatever the server offers",
                "https://github.com/ruby-amqp/bunny/blob/main/lib/bunny/session.rb",
            ),
        ),
    ),
    Profile(
        "streadway",
        "Go's streadway/amqp",
        (Mark("product", "https://github\\.com/streadway/amqp"),),
        (
            Habit(
                "amqp091/C-STARTOK-LOCALE-OFFERED",
                "asks for no locale at all where its caller names none",
                "https://github.com/streadway/amqp/issues/237",
            ),
        ),
    ),
    Profile(
        "amqp-client-js",
        "CloudAMQP's amqp-client.js",
        (Mark("product", "amqp-client\\.js"),),
        (
            Habit(
                "amqp091/C-STARTOK-LOCALE-OFFERED",
                "asks for no locale at all",
                "https://github.com/cloudamqp/amqp-client.js/blob/main/src/amqp-base-client.ts",
            ),
        ),
    ),
    Profile(
        "aiorabbit",
        "aiorabbit",
        (Mark("product", "aiorabbit/.*"),),
        (
            Habit(
                "amqp091/C-STARTOK-LOCALE-OFFERED",
                "asks for en-US, with a hyphen",
                "https://github.com/gmr/aiorabbit/blob/main/aiorabbit/__init__.py",
            ),
        ),
    ),
    Profile(
        "azure-service",
        "the Azure service (Service Bus, Event Hubs)",
        (Mark("container-id", "[0-9a-f]{32}_G[0-9]+"),),
        (
            Habit(
                "amqp10/D-TAG-PRESENT",
                "sends deliveries of Event Hubs without a delivery-tag",
                "https://github.com/vcabbage/amqp/pull/165",
            ),
            Habit(
                "amqp10/L-ATTACH-IDC",
                "attaches as a sender, of $cbs above all, without initial-delivery-count",
                "https://github.com/Azure/azure-uamqp-c/issues/247",
            ),
            Habit(
                "amqp10/M-FILTER-VALUE",
                "names the session that a receiver got in a filter that is a bare string",
                "https://github.com/Azure/azure-amqp/issues/232",
                path="com.microsoft:session-filter",
            ),
        ),
    ),
    Profile(
        "azure-net",
        "the Azure SDK for .NET (on Microsoft.Azure.Amqp)",
        (Mark("user-agent", "(.* )?azsdk-net-Messaging\\..*"),),
        (
            Habit(
                "amqp10/L-ATTACH-IDC",
                "attaches as a sender without initial-delivery-count",
                "https://github.com/Azure/azure-amqp/issues/298",
            ),
            Habit(
                "amqp10/M-FILTER-VALUE",
                "asks for a session with a filter that is a bare string",
                "https://github.com/Azure/azure-amqp/issues/231",
                path="com.microsoft:session-filter",
            ),
        ),
    ),
    Profile(
        "azure-python",
        "the Azure SDK for Python (on its own stack, pyamqp)",
        (Mark("user-agent", "(.* )?azsdk-python-.* pyamqp/.*"),),
        (
            Habit(
                "amqp10/C-PIPE-CHANNEL",
                "begins its sessions on channel 1 and onwards without waiting for the open",
                "https://github.com/Azure/azure-sdk-for-python/blob/main/sdk/servicebus/azure-servicebus"
                "/azure/servicebus/_pyamqp/_connection.py",
                frames=("begin",),
            ),
            Habit(
                "amqp10/L-HANDLE-LOWEST",
                "takes no handle below 1",
                "https://github.com/Azure/azure-sdk-for-python/blob/main/sdk/servicebus/azure-servicebus"
                "/azure/servicebus/_pyamqp/session.py",
            ),
            Habit(
                "amqp10/L-CREDIT-OWNER",
                "states a link-credit of its own, 10000, as the sender of a link",
                "https://github.com/Azure/azure-sdk-for-python/blob/main/sdk/servicebus/azure-servicebus"
                "/azure/servicebus/_pyamqp/sender.py",
            ),
            Habit(
                "amqp10/M-FILTER-VALUE",
                "asks for a session with a filter that is a bare string",
                "https://github.com/Azure/azure-sdk-for-python/blob/main/sdk/servicebus/azure-servicebus"
                "/azure/servicebus/_transport/_pyamqp_transport.py",
                path="com.microsoft:session-filter",
            ),
        ),
    ),
    Profile(
        "uamqp",
        "the Azure SDK for Python on uamqp (azure-uamqp-c)",
        (Mark("user-agent", "(.* )?azsdk-python-.* uamqp/.*"),),
        (
            Habit(
                "amqp10/D-RCVMODE-SECOND",
                "settles every delivery with its first disposition, also in rcv-settle-mode second",
                "https://github.com/Azure/azure-uamqp-c/blob/master/src/link.c",
            ),
        ),
    ),
    Profile(
        "rhea",
        "rhea (also in the Azure SDK for JavaScript)",
        (Mark("user-agent", "(.* )?azsdk-js-.*"),),
        (
            Habit(
                "amqp10/T-FIELDS-KEY",
                "writes the keys of an error's info as strings",
                "https://github.com/amqp/rhea/blob/main/lib/types.js",
                path="error.info",
            ),
            Habit(
                "amqp10/T-FIELDS-KEY",
                "writes the keys of modified's message-annotations as strings; mended in later versions",
                "https://github.com/amqp/rhea/pull/442",
                path="state.message-annotations",
            ),
        ),
    ),
    Profile(
        "amqpnetlite",
        "AMQP.Net Lite",
        (Mark("container-id", "AMQPNetLite-[0-9a-f]{8}"),),
        (
            Habit(
                "amqp10/S-FLOW-NEXTIN-UNSET",
                "sets next-incoming-id before it has the other peer's begin; mended in later versions",
                "https://github.com/Azure/amqpnetlite/issues/575",
            ),
            Habit(
                "amqp10/L-DC-UNSET",
                "sets delivery-count before it has the sender's attach; mended in later versions",
                "https://github.com/Azure/amqpnetlite/issues/578",
            ),
        ),
    ),
    Profile(
        "qpid-proton",
        "Qpid Proton C (in Qpid's C++ broker and Dispatch Router)",
        (Mark("product", "qpid-cpp|qpid-dispatch-router"),),
        (
            Habit(
                "amqp10/L-DC-UNSET",
                "sets delivery-count in every flow of a link, also before it has the sender's attach",
                "https://github.com/apache/qpid-proton/blob/main/c/src/core/transport.c",
            ),
        ),
    ),
    Profile(
        "artemis",
        "ActiveMQ Artemis",
        (Mark("product", "apache-activemq-artemis"),),
        (
            Habit(
                "amqp10/M-DYN-NAME",
                "gives dynamic nodes a random uuid for an address",
                "https://github.com/apache/artemis/blob/main/artemis-protocols/artemis-amqp-protocol/src/main/java"
                "/org/apache/activemq/artemis/protocol/amqp/proton/ProtonServerSenderContext.java",
            ),
        ),
    ),
    Profile(
        "amqp10",
        "amqp10 for Node.js",
        (Mark("container-id", "conn[0-9]{13}"),),
        (
            Habit(
                "amqp10/M-DYNPROPS-UNSET",
                "sends an empty map where dynamic-node-properties is to be left out",
                "https://github.com/noodlefrenzy/node-amqp10/blob/master/lib/types/terminus.js",
            ),
            Habit(
                "amqp10/D-RCVMODE-SECOND",
                "settles first in rcv-settle-mode second, which it takes for settling by hand",
                "https://github.com/noodlefrenzy/node-amqp10/issues/316",
            ),
        ),
    ),
)

HABITUAL: Final = frozenset(habit.rule for one in PROFILES for habit in one.habits)
"""The rules that some product breaks by habit."""

_BY_NAME: Final = {one.name: one for one in PROFILES}

_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+)*")


def profile(name: str) -> Profile:
    """The profile of this name. Raises KeyError if there is none."""
    return _BY_NAME[name]


def valid(choice: str) -> str:
    """A choice of profiles (see `under`). Raises FilterError when it names one that there is not."""
    if choice not in (AUTO, NONE):
        for name in choice.split(","):
            if name not in _BY_NAME:
                raise FilterError(f"--profile {name}: must be {AUTO}, {NONE}, or of {', '.join(_BY_NAME)}")
    return choice


def recognised(said: dict[str, str]) -> list[Profile]:
    """The profiles of the peer that says this of itself."""
    return [one for one in PROFILES if any(_bears(said, mark) for mark in one.marks)]


def _bears(said: dict[str, str], mark: Mark) -> bool:
    if not re.fullmatch(mark.pattern, said.get(mark.field, ""), re.DOTALL):
        return False
    if not mark.before:
        return True
    version = _VERSION.match(said.get("version", ""))
    return version is not None and tuple(int(part) for part in version[0].split(".")) < mark.before


def which(finding: Finding, profiles: Iterable[Profile]) -> str:
    """The name of the one of these profiles of the peer at fault whose habit a finding is, or ""."""
    if finding.reaction.condition in _COMPLAINTS:
        return ""
    for one in profiles:
        if _habit(finding, one) is not None:
            return one.name
    return ""


def _habit(finding: Finding, one: Profile) -> Habit | None:
    for habit in one.habits:
        if habit.rule == finding.rule and (not habit.frames or finding.frame in habit.frames):
            if habit.path in str(finding.evidence.get("path", "")) and _within(finding, habit.excess):
                return habit
    return None


def _within(finding: Finding, excess: int) -> bool:
    if not excess:
        return True
    size, allowed = finding.evidence.get("size"), finding.evidence.get("frame_max")
    return isinstance(size, int) and isinstance(allowed, int) and size - allowed <= excess


def habit_of(finding: Finding) -> Habit | None:
    """The habit that a finding is, by its profile."""
    name = finding.assessment.profile
    return _habit(finding, _BY_NAME[name]) if name else None


def under(findings: list[Finding], choice: str) -> list[Finding]:
    """Findings under a choice of profiles, the same objects.

    choice: `AUTO`, as they come; `NONE`; or names of profiles, joined by commas, which both peers then have,
    whatever they say of themselves.
    """
    if choice == AUTO:
        return findings
    profiles = [] if choice == NONE else [_BY_NAME[name] for name in choice.split(",")]
    for finding in findings:
        finding.assessment = finding.assessment.by_profile(which(finding, profiles))
    return findings


def weight(finding: Finding) -> str:
    """`error`, `warning` or `note`: what a finding amounts to.

    A habit is a note whatever the rule weighs; the rule weighs what somebody has set, or else the catalogue.
    """
    assessment = finding.assessment
    if assessment.profile:
        return "note"
    return assessment.level or severity(finding.rule, assessment.edition)

"""Known habits of products that break a rule, and how the products are recognized.

If a finding is such a habit of the peer at fault, it becomes a note: the rule is broken, but everybody who
uses that product lives with it, and its makers know. Two limits keep a habit from hiding a fault:

* A habit excuses one form of breaking a rule, not the whole rule: it names the frame or the field.
* A habit excuses nothing if the other peer answers with an error that says that the protocol was broken.

Only the open shows the product of a peer: the properties product, version and user-agent, or a container-id
of a form that only one product generates. In AMQP 0-9-1, the properties in connection.start and
connection.start-ok show it. Every habit has a public source. Findings across several connections
(`amqpscope.correlation`) have no habits.

If the capture lacks a part of a peer's open, a finding that is a habit of some product is only possible.

Profiles cost nothing per frame: they are consulted only for a finished finding whose rule is in `HABITUAL`.
"""

import re
from collections.abc import Iterable
from typing import Final

from amqpscope.errors import FilterError
from amqpscope.model.finding import Finding

__all__ = [
    "AUTO",
    "HABITUAL",
    "LONGEST",
    "MOST_PROPERTIES",
    "NONE",
    "PROFILES",
    "USUAL_NOTES",
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
"""Choose profiles by the products that the peers name."""

NONE: Final = "none"
"""No profile: every finding has the severity of its rule."""

LONGEST: Final = 200
"""How many characters of a field are examined; names of products are short."""

MOST_PROPERTIES: Final = 64
"""How many properties of an open are examined; products send few."""

USUAL_NOTES: Final = frozenset(
    ("amqp091/C-START-SERVER-PROPS", "amqp091/C-STARTOK-CLIENT-PROPS", "amqp091/T-RESERVED-CONN")
)
"""Rules that nearly every connection of AMQP 0-9-1 breaks without harm, as with RabbitMQ and pika: people
need one line about all of them."""

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
"""Errors of a peer that cannot continue after what the other peer has sent."""


class Mark:
    """A field of the open by which a product is recognized.

    field: `container-id`, or the name of a property. pattern: a regular expression for the whole field.
    before: if given, the property `version` has to be below this version.
    """

    def __init__(self, field: str, pattern: str, before: tuple[int, ...] = ()) -> None:
        self.field = field
        self.pattern = pattern
        self.before = before


class Habit:
    """What a product does that breaks a rule.

    rule: with its namespace. does: one sentence about the product. source: where the habit is documented
    publicly. frames: only in these frames. path: only if the path of the offending value contains this text.
    excess: for a frame that is too large, the greatest number of octets above the limit; 0: any number.
    """

    def __init__(
        self,
        rule: str,
        does: str,
        source: str,
        frames: tuple[str, ...] = (),
        path: str = "",
        excess: int = 0,
    ) -> None:
        self.rule = rule
        self.does = does
        self.source = source
        self.frames = frames
        self.path = path
        self.excess = excess


class Profile:
    """A product with its habits. marks: any one of them is enough. product: its name for people."""

    def __init__(self, name: str, product: str, marks: tuple[Mark, ...], habits: tuple[Habit, ...]) -> None:
        self.name = name
        self.product = product
        self.marks = marks
        self.habits = habits


PROFILES: Final = (
    Profile(
        "rabbitmq-3",
        "RabbitMQ before 4.0",
        (Mark("product", "RabbitMQ", before=(4,)),),
        (
            Habit(
                "amqp10/L-CLOSE-ANSWER",
                "answers a closing detach with a detach that does not close; fixed in 4.0",
                "https://github.com/rabbitmq/rabbitmq-server/issues/2594",
                frames=("detach",),
            ),
            Habit(
                "amqp10/C-CLOSE-LAST",
                "sends detach and end of its sessions after its own close",
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
                "sends content headers that are larger than frame-max, and accepts messages "
                "with such headers",
                "https://github.com/rabbitmq/rabbitmq-server/issues/921",
                frames=("content-header",),
            ),
        ),
    ),
    Profile(
        "pamqp",
        "clients based on pamqp: aiormq (used by aio-pika), rabbitpy, AMQPStorm, carehare and aiorabbit",
        (Mark("product", "aiormq|rabbitpy|AMQPStorm|carehare|aiorabbit/.*"),),
        (
            Habit(
                "amqp091/T-RESERVED-CHAN",
                "sends channel.open with the octet 0 in the retired field out-of-band",
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
                "applies frame-max to the payload, without the eight other octets of a "
                "frame, as RabbitMQ does",
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
                "chooses the locale en_GB, whatever the server offers",
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
                "chooses an empty locale if the application names none",
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
                "chooses an empty locale",
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
                "chooses the locale en-US, with a hyphen",
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
                "attaches as a sender (mostly of $cbs) without initial-delivery-count",
                "https://github.com/Azure/azure-uamqp-c/issues/247",
            ),
            Habit(
                "amqp10/M-FILTER-VALUE",
                "names the session of a receiver in a filter that is a string without a descriptor",
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
                "asks for a session by a filter that is a string without a descriptor",
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
                "begins its sessions on channel 1 and above, without waiting for the open of the other peer",
                "https://github.com/Azure/azure-sdk-for-python/blob/main/sdk/servicebus/azure-servicebus"
                "/azure/servicebus/_pyamqp/_connection.py",
                frames=("begin",),
            ),
            Habit(
                "amqp10/L-HANDLE-LOWEST",
                "uses handles from 1 upwards and never handle 0",
                "https://github.com/Azure/azure-sdk-for-python/blob/main/sdk/servicebus/azure-servicebus"
                "/azure/servicebus/_pyamqp/session.py",
            ),
            Habit(
                "amqp10/L-CREDIT-OWNER",
                "sends link-credit 10000 although it is the sender of the link",
                "https://github.com/Azure/azure-sdk-for-python/blob/main/sdk/servicebus/azure-servicebus"
                "/azure/servicebus/_pyamqp/sender.py",
            ),
            Habit(
                "amqp10/L-CREDIT-INIT",
                "counts on link-credit 10000 from the attach on, and does not wait for the receiver's flow",
                "https://github.com/Azure/azure-sdk-for-python/blob/main/sdk/servicebus/azure-servicebus"
                "/azure/servicebus/_pyamqp/sender.py",
            ),
            Habit(
                "amqp10/M-FILTER-VALUE",
                "asks for a session by a filter that is a string without a descriptor",
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
                "writes the keys of modified's message-annotations as strings; fixed in later versions",
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
                "sets next-incoming-id before it has received the other peer's begin; fixed "
                "in later versions",
                "https://github.com/Azure/amqpnetlite/issues/575",
            ),
            Habit(
                "amqp10/L-DC-UNSET",
                "sets delivery-count before it has received the sender's attach; fixed in later versions",
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
                "sets delivery-count in every flow of a link, also before it has received "
                "the sender's attach",
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
                "uses a random uuid as the address of a dynamic node",
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
                "sends an empty map in dynamic-node-properties, which has to be left out",
                "https://github.com/noodlefrenzy/node-amqp10/blob/master/lib/types/terminus.js",
            ),
            Habit(
                "amqp10/D-RCVMODE-SECOND",
                "settles first in rcv-settle-mode second, which it uses for manual settlement",
                "https://github.com/noodlefrenzy/node-amqp10/issues/316",
            ),
        ),
    ),
)

HABITUAL: Final = frozenset(habit.rule for one in PROFILES for habit in one.habits)
"""The rules that some product breaks by habit."""

_BY_NAME: Final = {one.name: one for one in PROFILES}

_VERSION = r"[0-9]+(?:\.[0-9]+)*"


def profile(name: str) -> Profile:
    """The profile of this name. Raises KeyError if there is none."""
    return _BY_NAME[name]


def valid(choice: str) -> str:
    """A choice of profiles (see `under`). Raises FilterError if it names an unknown profile."""
    if choice not in (AUTO, NONE):
        for name in choice.split(","):
            if name not in _BY_NAME:
                raise FilterError(
                    f"--profile {name}: must be {AUTO}, {NONE}, or names out of {', '.join(_BY_NAME)}"
                )
    return choice


def recognised(said: dict[str, str]) -> list[Profile]:
    """The profiles that fit what a peer says about itself."""
    return [one for one in PROFILES if any(_bears(said, mark) for mark in one.marks)]


def _bears(said: dict[str, str], mark: Mark) -> bool:
    if not re.fullmatch(mark.pattern, said.get(mark.field, ""), re.DOTALL):
        return False
    if not mark.before:
        return True
    version = re.match(_VERSION, said.get("version", ""))
    return version is not None and tuple(int(part) for part in version[0].split(".")) < mark.before


def which(finding: Finding, profiles: Iterable[Profile]) -> str:
    """The name of the profile of the peer at fault whose habit explains the finding, or ""."""
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
    """The habit that explains a finding, by its profile."""
    name = finding.assessment.profile
    return _habit(finding, _BY_NAME[name]) if name else None


def under(findings: list[Finding], choice: str) -> list[Finding]:
    """The same findings, judged with a choice of profiles.

    choice: `AUTO`, as the peers name themselves; `NONE`; or names of profiles, joined by commas, which then
    apply to both peers whatever they say about themselves.
    """
    if choice == AUTO:
        return findings
    profiles = [] if choice == NONE else [_BY_NAME[name] for name in choice.split(",")]
    for finding in findings:
        finding.assessment = finding.assessment.by_profile(which(finding, profiles))
    return findings


def weight(finding: Finding) -> str:
    """The severity of a finding: `error`, `warning` or `note`.

    A habit is always a note. Otherwise the severity is the one that the user has set, or else that of the
    catalogue.
    """
    assessment = finding.assessment
    if assessment.profile:
        return "note"
    from amqpscope.rules.registry import severity  # only where there are findings

    return assessment.level or severity(finding.rule, assessment.edition)

"""The properties of both peers, and the login of the client: start, start-ok, secure, secure-ok.

The server begins with its version, its properties, and the mechanisms and locales that it offers. The client
answers with its own properties and its choice (class connection, section 2.2.4).
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.connection_view import PeerProperties, properties_of
from dissectors.amqp091.methods import ConnectionSecureOk, ConnectionStart, ConnectionStartOk
from dissectors.wire import i64

__all__ = ["RULES", "judge_secure_ok", "judge_start", "judge_start_ok", "listed"]

RULES: Final = Rules("amqp091/introduction")


# The properties that the specification lists for each peer.
_SERVER_PROPERTIES: Final = ["host", "product", "version", "platform", "copyright", "information"]
_CLIENT_PROPERTIES: Final = ["product", "version", "platform", "copyright", "information"]

# SASL mechanisms that reveal the password or prove nothing at all; and mechanisms that protect it.
_WEAK: Final = ("PLAIN", "AMQPLAIN", "ANONYMOUS")
_STRONG: Final = ("SCRAM-", "GSSAPI", "GS2-", "CRAM-MD5", "DIGEST-MD5")

# Mechanisms that need an initial response of the client, and mechanisms that do not.
_SPEAKS_FIRST: Final = ("PLAIN", "AMQPLAIN")
_MAY_BE_EMPTY: Final = ("EXTERNAL", "ANONYMOUS", "GSSAPI", "CRAM-MD5", "DIGEST-MD5")


# The server


C_START_VERSION: Final = RULES.rule("C-START-VERSION", "MUST", "tier A", by="server")


def start_of_a_higher_version(case: Case091, method: ConnectionStart) -> None:
    """A server sends connection.start with a higher version than the client requested.

    Demands: The version in connection.start must not be higher than the version that the client requested.
    Source: XML:connection.start.server-support
    Evidence: the version in the client's protocol header, and version-major and version-minor in
    connection.start
    Why it matters: The client perhaps does not support the higher version. A server that does not support the
    requested version must instead answer with its own protocol header and close the socket.
    Silent when: the capture lacks the client's protocol header, or when the header is not that of AMQP 0-9-1.
    How to mend it: Compare the version in the client's protocol header with the supported versions. Send
    connection.start only for the requested version or for a lower version. If the requested version is not
    supported, send your own protocol header and close the socket.
    """
    if not (0 <= method.version_major <= 99 and 0 <= method.version_minor <= 99):
        start_version_out_of_range(case, method)
        return
    asked = case.view.asked_version()
    offered = (int(method.version_major), int(method.version_minor))
    if asked is not None and offered > asked:
        case.report(
            C_START_VERSION,
            f"connection.start has version {offered[0]}-{offered[1]}, which is higher than the version "
            f"{asked[0]}-{asked[1]} that the client asked for",
            evidence={"offered": f"{offered[0]}-{offered[1]}", "asked": f"{asked[0]}-{asked[1]}"},
        )


C_START_VERSION_RANGE: Final = RULES.rule(
    "C-START-VERSION-RANGE",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def start_version_out_of_range(case: Case091, method: ConnectionStart) -> None:
    """A server sends connection.start with a version number above 99.

    Demands: The version numbers in connection.start must lie between 0 and 99.
    Source: XML:connection.start.version-major/version-minor (field docs); GS:1.4.2
    Evidence: version-major and version-minor in connection.start
    Why it matters: No version of AMQP has such a number, so the client is probably not connected to an AMQP
    server.
    Silent when: connection.start cannot be decoded.
    How to mend it: Write version-major 0 and version-minor 9 into connection.start. Check that each number
    occupies one octet.
    """
    if method.version_major < 0 or method.version_minor < 0:
        return
    case.report(
        C_START_VERSION_RANGE,
        f"connection.start has version {method.version_major}-{method.version_minor}, but the numbers must "
        "not be above 99",
        evidence={"version_major": int(method.version_major), "version_minor": int(method.version_minor)},
    )


C_START_MECH_NOTNULL: Final = RULES.rule(
    "C-START-MECH-NOTNULL",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def no_mechanism_offered(case: Case091) -> None:
    """A server sends connection.start without any security mechanism.

    Demands: A server must offer at least one security mechanism in connection.start.
    Source: XML:connection.start.mechanisms assert notnull
    Evidence: the field `mechanisms` of connection.start
    Why it matters: The client has no mechanism to choose and cannot log in.
    Silent when: connection.start cannot be decoded.
    How to mend it: Fill the field `mechanisms` of connection.start with at least one mechanism name, and
    separate several names by spaces. Check the server's configuration if all mechanisms are disabled.
    """
    case.report(C_START_MECH_NOTNULL, "connection.start offers no security mechanism")


C_START_LOCALES_NOTNULL: Final = RULES.rule(
    "C-START-LOCALES-NOTNULL",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The specification only implies this rule and names no error for it.",
)


def no_locale_offered(case: Case091) -> None:
    """A server sends connection.start without any locale.

    Demands: A server must offer at least one locale in connection.start.
    Source: XML:connection.start.locales assert notnull
    Evidence: the field `locales` of connection.start
    Why it matters: The client has to choose one of the offered locales in connection.start-ok, but the server
    offers no locale.
    Silent when: connection.start cannot be decoded.
    How to mend it: Fill the field `locales` of connection.start with at least `en_US`, separated from further
    locales by spaces.
    """
    case.report(C_START_LOCALES_NOTNULL, "connection.start offers no locale")


C_START_LOCALE_EN_US: Final = RULES.rule("C-START-LOCALE-EN-US", "MUST", "tier A", by="server")


def locale_en_us_not_offered(case: Case091) -> None:
    """A server offers locales in connection.start, but not the locale en_US.

    Demands: The locales in connection.start must include en_US.
    Source: XML:connection.start.locales.required-support
    Evidence: the field `locales` of connection.start
    Why it matters: The locale en_US is the only one that every client supports, so a client may find no
    suitable locale.
    Silent when: another rule (C-START-LOCALES-NOTNULL) already reports that connection.start offers no
    locale, or when the locales are not ASCII.
    How to mend it: Add exactly `en_US` to the field `locales` of connection.start, separated from the other
    locales by spaces.
    """
    case.report(C_START_LOCALE_EN_US, "the locales in connection.start do not include en_US")


C_START_SERVER_PROPS: Final = RULES.rule(
    "C-START-SERVER-PROPS",
    "SHOULD",
    "tier A",
    by="server",
    note="Nearly every product leaves out some of the recommended properties.",
)


def server_properties_missing(case: Case091, properties: PeerProperties) -> None:
    """The server-properties in connection.start lack `host`, `product`, `version`, `platform`, `copyright` or
    `information`.

    Demands: The server-properties should contain `host`, `product`, `version`, `platform`, `copyright` and
    `information`.
    Source: XML:connection.start.server-properties.required-fields
    Evidence: the names in the server-properties of connection.start
    Why it matters: A developer who investigates a fault learns less about the server. RabbitMQ omits the
    property `host` on purpose.
    Silent when: connection.start cannot be decoded, or when amqpscope cannot read its whole table of
    properties.
    How to mend it: Add the missing fields among `host`, `product`, `version`, `platform`, `copyright` and
    `information` to the server-properties of connection.start.
    """
    _properties_missing(case, C_START_SERVER_PROPS, _SERVER_PROPERTIES, properties)


# The client


C_STARTOK_CLIENT_PROPS: Final = RULES.rule(
    "C-STARTOK-CLIENT-PROPS",
    "SHOULD",
    "tier A",
    by="client",
    note="Nearly every product leaves out some of the recommended properties.",
)


def client_properties_missing(case: Case091, properties: PeerProperties) -> None:
    """The client-properties in connection.start-ok lack `product`, `version`, `platform`, `copyright` or
    `information`.

    Demands: The client-properties should contain `product`, `version`, `platform`, `copyright` and
    `information`.
    Source: XML:connection.start-ok.client-properties.required-fields
    Evidence: the names in the client-properties of connection.start-ok
    Why it matters: An operator who looks at the server's list of connections learns less about the client.
    Silent when: connection.start-ok cannot be decoded, or when amqpscope cannot read its whole table of
    properties.
    How to mend it: Add the missing fields among `product`, `version`, `platform`, `copyright` and
    `information` to the client-properties of connection.start-ok. Applications should fill in their own name
    if the client library lets them.
    """
    _properties_missing(case, C_STARTOK_CLIENT_PROPS, _CLIENT_PROPERTIES, properties)


C_STARTOK_MECH_OFFERED: Final = RULES.rule(
    "C-STARTOK-MECH-OFFERED", "MUST", "tier A", by="client", answer="to close the socket"
)


def mechanism_not_offered(case: Case091, mechanism: str) -> None:
    """A client chooses a security mechanism that the server did not offer.

    Demands: The mechanism in connection.start-ok must be one that the server offered in connection.start.
    Source: XML:connection.start-ok.mechanism.validity; XML:connection.start-ok.mechanism assert notnull
    Evidence: the mechanisms in connection.start, and the mechanism in connection.start-ok
    Why it matters: The server cannot authenticate the client, and closes the socket.
    Silent when: connection.start was not captured, or when connection.start offers no mechanism.
    How to mend it: Split the mechanisms of connection.start at the spaces, and send one of the resulting
    names unchanged in connection.start-ok. If the client supports none of the offered mechanisms, report an
    error instead of sending connection.start-ok.
    """
    case.report(
        C_STARTOK_MECH_OFFERED,
        "connection.start-ok has no security mechanism"
        if not mechanism
        else "connection.start-ok has a security mechanism that connection.start does not offer",
        evidence={"offered": listed(case.view.login.mechanisms)},
    )


C_STARTOK_MECH_BEST: Final = RULES.rule("C-STARTOK-MECH-BEST", "SHOULD", "tier B", by="client")


def weaker_mechanism_than_offered(case: Case091, mechanism: str, better: str) -> None:
    """A client chooses PLAIN, AMQPLAIN or ANONYMOUS, although the server offers a mechanism that does not
    reveal the password.

    Demands: A client should choose the strongest offered mechanism that it supports.
    Source: XML:connection.start-ok.mechanism.security
    Evidence: the offered mechanisms, the chosen mechanism, and the use of TLS on the connection
    Why it matters: With PLAIN or AMQPLAIN, anyone who can read the connection learns the password. With
    ANONYMOUS, the client proves no identity at all.
    Silent when: connection.start was not captured.
    Only possible because: The capture does not show whether the client supports the stronger mechanism. Under
    TLS, the choice of the mechanism perhaps does not matter.
    How to mend it: Rank the offered mechanisms by strength, and choose the strongest one that the client
    supports, for example SCRAM before PLAIN. Use TLS if only PLAIN is possible.
    """
    case.report(
        C_STARTOK_MECH_BEST,
        f"the client chooses {mechanism}, although the server offers a stronger mechanism: {better[:40]}",
        POSSIBLE,
        {"offered": listed(case.view.login.mechanisms)},
    )


C_STARTOK_RESPONSE_NOTNULL: Final = RULES.rule(
    "C-STARTOK-RESPONSE-NOTNULL",
    "IMPLIED",
    "tier A",
    by="client",
    answer="connection.close 502 or to close the socket",
)


def empty_response(case: Case091, certainty: i64) -> None:
    """A client sends connection.start-ok with an empty response although the mechanism requires an initial
    response.

    Demands: The response in connection.start-ok must not be empty.
    Source: XML:connection.start-ok.response assert notnull
    Evidence: the length of the response in connection.start-ok
    Why it matters: The server receives no data that identifies the client, and refuses the login.
    Silent when: the mechanism needs no initial response, for example EXTERNAL. The finding is reported as
    possible, not as certain, for mechanisms that amqpscope does not know.
    How to mend it: Fill the response field with the mechanism's initial response. For PLAIN, the response is
    a zero octet, the user, a zero octet and the password. Check that user and password are configured.
    """
    case.report(
        C_STARTOK_RESPONSE_NOTNULL,
        "the response in connection.start-ok is empty, but must "
        "contain the initial response of the mechanism",
        certainty,
    )


C_STARTOK_LOCALE_OFFERED: Final = RULES.rule(
    "C-STARTOK-LOCALE-OFFERED",
    "MUST",
    "tier A",
    by="client",
    answer="connection.close 502 or to close the socket",
)


def locale_not_offered(case: Case091) -> None:
    """A client chooses a locale that the server did not offer.

    Demands: The locale in connection.start-ok must be one that the server offered in connection.start.
    Source: XML:connection.start-ok.locale (field doc, assert notnull)
    Evidence: the locales in connection.start, and the locale in connection.start-ok
    Why it matters: The server may refuse the connection or send its reply-texts in another language. RabbitMQ
    ignores the locale of connection.start-ok.
    Silent when: connection.start was not captured, or when connection.start offers no locale.
    How to mend it: Split the locales of connection.start at the spaces, and send one of the resulting names
    unchanged in connection.start-ok. A server must always offer the locale `en_US`.
    """
    case.report(
        C_STARTOK_LOCALE_OFFERED,
        "connection.start-ok has a locale that connection.start does not offer",
        evidence={"offered": listed(case.view.login.locales)},
    )


C_SECUREOK_RESPONSE_NOTNULL: Final = RULES.rule(
    "C-SECUREOK-RESPONSE-NOTNULL",
    "IMPLIED",
    "tier A",
    by="client",
    answer="connection.close 502 or to close the socket",
)


def empty_answer_to_a_challenge(case: Case091) -> None:
    """A client answers the first connection.secure with an empty response.

    Demands: The response in connection.secure-ok must not be empty.
    Source: XML:connection.secure-ok.response assert notnull
    Evidence: the length of the response in connection.secure-ok
    Why it matters: With connection.secure, the server has asked the client for data. The server receives no
    data, so the login fails.
    Silent when: the connection.secure is not the first one, because some mechanisms end with an empty
    response. The rule is also silent when the mechanism is GSSAPI, whose first challenge may also be the last
    one.
    How to mend it: Calculate the answer of the mechanism from the challenge in connection.secure and send the
    answer in connection.secure-ok. Before sending connection.start-ok, check that the credentials and an
    implementation of the mechanism are available.
    """
    case.report(
        C_SECUREOK_RESPONSE_NOTNULL,
        "the response in connection.secure-ok is empty, but must answer the challenge of connection.secure",
    )


# Both


C_CAP_TABLE: Final = RULES.rule(
    "C-CAP-TABLE",
    "IMPLIED",
    "tier A",
    warning="The specification only implies this rule and names no error for it.",
)


def odd_capabilities(case: Case091, properties: PeerProperties) -> None:
    """A peer sends a property `capabilities` that is not a table of booleans.

    Demands: The property `capabilities` must be a table whose values are booleans.
    Source: RMQ:docs/connections (capabilities)
    Evidence: the types of the values in the property `capabilities`
    Why it matters: RabbitMQ treats a capability as absent unless its value is the boolean true (type 't').
    Features stay disabled although the peer supports them.
    Silent when: the properties cannot be decoded.
    How to mend it: Encode the property `capabilities` as a nested field table (type 'F'). Encode each value
    in this table as a boolean (type 't'), not as a string or an integer.
    """
    case.report(C_CAP_TABLE, properties.odd_capabilities)


# Which methods these rules judge


def judge_start(case: Case091, method: ConnectionStart) -> None:
    """The server's connection.start."""
    start_of_a_higher_version(case, method)
    properties = properties_of(method.server_properties)
    if method.mechanisms == b"":
        no_mechanism_offered(case)
    if method.locales == b"":
        no_locale_offered(case)
    elif method.locales is not None and method.locales.isascii():
        if b"en_US" not in method.locales.split(b" "):
            locale_en_us_not_offered(case)
    if method.server_properties is not None:
        if properties.odd_capabilities and properties.complete:
            odd_capabilities(case, properties)
        server_properties_missing(case, properties)


def judge_start_ok(case: Case091, method: ConnectionStartOk) -> None:
    """The client's connection.start-ok."""
    view = case.view
    mechanism = method.mechanism
    if view.server is not None and mechanism is not None and any(view.login.mechanisms):
        if mechanism not in view.login.mechanisms:
            mechanism_not_offered(case, mechanism)
        elif mechanism in _WEAK:
            for better in view.login.mechanisms:
                if better.startswith(_STRONG):
                    weaker_mechanism_than_offered(case, mechanism, better)
                    break
    if method.response == b"" and mechanism and mechanism not in _MAY_BE_EMPTY:
        empty_response(case, CERTAIN if mechanism in _SPEAKS_FIRST else POSSIBLE)
    if view.server is not None and method.locale is not None and any(view.login.locales):
        if method.locale not in view.login.locales:
            locale_not_offered(case)
    if method.client_properties is not None:
        properties = properties_of(method.client_properties)
        if properties.odd_capabilities and properties.complete:
            odd_capabilities(case, properties)
        client_properties_missing(case, properties)


def judge_secure_ok(case: Case091, method: ConnectionSecureOk) -> None:
    """The client's answer to a challenge."""
    view = case.view
    if (
        method.response == b""
        and case.me.whole
        and view.login.challenges == 1
        and view.login.mechanism != "GSSAPI"
    ):
        empty_answer_to_a_challenge(case)


def _properties_missing(case: Case091, rule: str, wanted: list[str], properties: PeerProperties) -> None:
    missing = [name for name in wanted if name not in properties.names]
    if missing and properties.complete:
        case.report(
            rule,
            f"{case.name} lacks these recommended properties: {', '.join(missing)}",
            evidence={"missing": missing},
        )


def listed(words: list[str]) -> str:
    """The mechanisms or locales of connection.start, as evidence."""
    return " ".join(words)[:200]

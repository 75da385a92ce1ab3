"""What the two tell of themselves, and how the client logs in: start, start-ok, secure-ok.

The server begins with its version, its properties, and which mechanisms and locales there are to choose from;
the client answers with its own properties and its choice (class connection, section 2.2.4).
"""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp091.case import Case091
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp091.connection_view import PeerProperties
from dissectors.amqp091.methods import ConnectionSecureOk, ConnectionStart, ConnectionStartOk
from dissectors.wire import i64

__all__ = ["RULES", "judge_secure_ok", "judge_start", "judge_start_ok", "listed"]

RULES: Final = Rules("amqp091/introduction")


# What the two tell of themselves, by the specification's lists.
_SERVER_PROPERTIES: Final = ["host", "product", "version", "platform", "copyright", "information"]
_CLIENT_PROPERTIES: Final = ["product", "version", "platform", "copyright", "information"]

# Mechanisms of SASL that show the password, or nothing at all; and such that do not.
_WEAK: Final = ("PLAIN", "AMQPLAIN", "ANONYMOUS")
_STRONG: Final = ("SCRAM-", "GSSAPI", "GS2-", "CRAM-MD5", "DIGEST-MD5")

# Mechanisms that always begin with the client's word, and such that need not.
_SPEAKS_FIRST: Final = ("PLAIN", "AMQPLAIN")
_MAY_BE_EMPTY: Final = ("EXTERNAL", "ANONYMOUS", "GSSAPI", "CRAM-MD5", "DIGEST-MD5")


# The server


C_START_VERSION: Final = RULES.rule("C-START-VERSION", "MUST", "tier A", by="server")


def start_of_a_higher_version(case: Case091, method: ConnectionStart) -> None:
    """A server sends connection.start with a higher version than the client requested.

    Demands: The version in Start is no higher than the one the client asked for.
    Source: XML:connection.start.server-support
    Evidence: header version; Start.version-major/minor (no revision field)
    Why it matters: The client cannot be expected to know the higher version. A server without the requested
    version must instead answer with its own protocol header and close the socket.
    Silent when: the client's protocol header was not captured, or the header is not that of AMQP 0-9-1.
    How to mend it: Compare the version in the client's protocol header with the supported versions. Send
    connection.start only for a version up to the requested one. Otherwise send your own protocol header and
    close the socket.
    """
    if not (0 <= method.version_major <= 99 and 0 <= method.version_minor <= 99):
        start_version_out_of_range(case, method)
        return
    asked = case.view.asked_version()
    offered = (int(method.version_major), int(method.version_minor))
    if asked is not None and offered > asked:
        case.report(
            C_START_VERSION,
            f"start is of version {offered[0]}-{offered[1]}, the client asked for {asked[0]}-{asked[1]}",
            evidence={"offered": f"{offered[0]}-{offered[1]}", "asked": f"{asked[0]}-{asked[1]}"},
        )


C_START_VERSION_RANGE: Final = RULES.rule(
    "C-START-VERSION-RANGE",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The text implies it and names no error for it.",
)


def start_version_out_of_range(case: Case091, method: ConnectionStart) -> None:
    """A server sends connection.start with a version number above 99.

    Demands: Version numbers in Start lie between 0 and 99.
    Source: XML:connection.start.version-major/version-minor (field docs); GS:1.4.2
    Evidence: Start fields
    Why it matters: No version of AMQP has such a number, so the client is talking to something else than an
    AMQP server.
    Silent when: connection.start does not decode.
    How to mend it: Write version-major 0 and version-minor 9 into connection.start. Check that each number
    occupies one octet.
    """
    if method.version_major < 0 or method.version_minor < 0:
        return
    case.report(
        C_START_VERSION_RANGE,
        f"start is of version {method.version_major}-{method.version_minor}, above 99",
        evidence={"version_major": int(method.version_major), "version_minor": int(method.version_minor)},
    )


C_START_MECH_NOTNULL: Final = RULES.rule(
    "C-START-MECH-NOTNULL",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The text implies it and names no error for it.",
)


def no_mechanism_offered(case: Case091) -> None:
    """A server sends connection.start without any security mechanism.

    Demands: Start offers at least one security mechanism.
    Source: XML:connection.start.mechanisms assert notnull
    Evidence: Start.mechanisms
    Why it matters: The client has no mechanism to choose and cannot log in.
    Silent when: connection.start does not decode.
    How to mend it: Fill the mechanisms field of connection.start with at least one mechanism name, and
    separate several names by spaces. Check the server's configuration if all mechanisms are disabled.
    """
    case.report(C_START_MECH_NOTNULL, "start offers no security mechanism")


C_START_LOCALES_NOTNULL: Final = RULES.rule(
    "C-START-LOCALES-NOTNULL",
    "IMPLIED",
    "tier A",
    by="server",
    warning="The text implies it and names no error for it.",
)


def no_locale_offered(case: Case091) -> None:
    """A server sends connection.start without any locale.

    Demands: Start offers at least one locale.
    Source: XML:connection.start.locales assert notnull
    Evidence: Start.locales
    Why it matters: The client must name one of the offered locales in start-ok and has none to choose from.
    Silent when: connection.start does not decode.
    How to mend it: Fill the locales field of connection.start with at least `en_US`, separated from further
    locales by spaces.
    """
    case.report(C_START_LOCALES_NOTNULL, "start offers no locale")


C_START_LOCALE_EN_US: Final = RULES.rule("C-START-LOCALE-EN-US", "MUST", "tier A", by="server")


def locale_en_us_not_offered(case: Case091) -> None:
    """The locales of start leave out en_US.

    Demands: The offered locales include en_US.
    Source: XML:connection.start.locales.required-support
    Evidence: Start.locales split on spaces
    Why it matters: The locale en_US is the only one that every client can rely on, so a client may find no
    locale that it supports.
    Silent when: start offers no locale at all, which is a fault of its own, or they are not ASCII.
    How to mend it: Add `en_US` to the locales field of connection.start, spelled exactly so and separated
    from the others by spaces.
    """
    case.report(C_START_LOCALE_EN_US, "the locales offered leave out en_US")


C_START_SERVER_PROPS: Final = RULES.rule(
    "C-START-SERVER-PROPS",
    "SHOULD",
    "tier A",
    by="server",
    note="Nearly every product leaves some of these properties out.",
)


def server_properties_missing(case: Case091, properties: PeerProperties) -> None:
    """The server's properties leave out some of host, product, version, platform, copyright, information.

    Demands: Server properties name host, product, version, platform, copyright and information.
    Source: XML:connection.start.server-properties.required-fields
    Evidence: Start.server-properties keys
    Why it matters: Whoever investigates a fault learns less about the server. RabbitMQ omits its host on
    purpose.
    Silent when: start does not decode, or its table cannot be read to its end.
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
    note="Nearly every product leaves some of these properties out.",
)


def client_properties_missing(case: Case091, properties: PeerProperties) -> None:
    """The client's properties leave out some of product, version, platform, copyright, information.

    Demands: Client properties name product, version, platform, copyright and information.
    Source: XML:connection.start-ok.client-properties.required-fields
    Evidence: Start-Ok.client-properties keys
    Why it matters: Whoever investigates a fault in the server's list of connections learns less about the
    client.
    Silent when: start-ok does not decode, or its table cannot be read to its end.
    How to mend it: Add the missing fields among `product`, `version`, `platform`, `copyright` and
    `information` to the client-properties of start-ok. Applications should fill in their own name if the
    client library lets them.
    """
    _properties_missing(case, C_STARTOK_CLIENT_PROPS, _CLIENT_PROPERTIES, properties)


C_STARTOK_MECH_OFFERED: Final = RULES.rule(
    "C-STARTOK-MECH-OFFERED", "MUST", "tier A", by="client", answer="to close the socket"
)


def mechanism_not_offered(case: Case091, mechanism: str) -> None:
    """A client chooses a security mechanism that the server did not offer.

    Demands: The client picks one mechanism out of the server's list.
    Source: XML:connection.start-ok.mechanism.validity; XML:connection.start-ok.mechanism assert notnull
    Evidence: Start.mechanisms; Start-Ok.mechanism
    Why it matters: The server cannot authenticate the client, and closes the socket.
    Silent when: connection.start was not captured, or connection.start offers no mechanism.
    How to mend it: Split the mechanisms of connection.start at the spaces and choose one of them, spelled
    exactly so. If none is supported, report an error instead of sending start-ok.
    """
    case.report(
        C_STARTOK_MECH_OFFERED,
        "start-ok names no security mechanism"
        if not mechanism
        else "start-ok names a security mechanism that start does not offer",
        evidence={"offered": listed(case.view.login.mechanisms)},
    )


C_STARTOK_MECH_BEST: Final = RULES.rule("C-STARTOK-MECH-BEST", "SHOULD", "tier B", by="client")


def weaker_mechanism_than_offered(case: Case091, mechanism: str, better: str) -> None:
    """A client chooses PLAIN, AMQPLAIN or ANONYMOUS, although the server offers a mechanism that does not
    reveal the password.

    Demands: The client uses the strongest offered mechanism it is able to handle.
    Source: XML:connection.start-ok.mechanism.security
    Evidence: offered list; choice; TLS or not
    Why it matters: With PLAIN or AMQPLAIN, anyone who can read the connection learns the password. ANONYMOUS
    proves no identity at all.
    Silent when: connection.start was not captured.
    Only possible because: The capture does not show whether the client supports the stronger mechanism. Under
    TLS the difference may not matter.
    How to mend it: Rank the offered mechanisms by strength, and choose the strongest one that the client
    supports, for example SCRAM before PLAIN. Use TLS if only PLAIN is possible.
    """
    case.report(
        C_STARTOK_MECH_BEST,
        f"the client picks {mechanism}, although the server offers {better[:40]}",
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
    """A client sends start-ok with an empty response for a mechanism that requires an initial response.

    Demands: The initial SASL response in Start-Ok is not empty.
    Source: XML:connection.start-ok.response assert notnull
    Evidence: Start-Ok.response length
    Why it matters: The server has nothing with which it could identify the client, and refuses the login.
    Silent when: the mechanism needs no initial response, for example EXTERNAL. The finding is only possible
    for mechanisms that amqpscope does not know.
    How to mend it: Fill the response field with the mechanism's initial response, for PLAIN a zero octet, the
    user, a zero octet and the password. Check that user and password are configured.
    """
    case.report(C_STARTOK_RESPONSE_NOTNULL, "the response in start-ok is empty", certainty)


C_STARTOK_LOCALE_OFFERED: Final = RULES.rule(
    "C-STARTOK-LOCALE-OFFERED",
    "MUST",
    "tier A",
    by="client",
    answer="connection.close 502 or to close the socket",
)


def locale_not_offered(case: Case091) -> None:
    """A client chooses a locale that the server did not offer.

    Demands: The client picks one locale out of the server's list.
    Source: XML:connection.start-ok.locale (field doc, assert notnull)
    Evidence: Start.locales; Start-Ok.locale
    Why it matters: The server may refuse the connection or send its reply-texts in another language. RabbitMQ
    ignores the field.
    Silent when: connection.start was not captured, or connection.start offers no locale.
    How to mend it: Split the locales of connection.start at the spaces and choose one of them, spelled
    exactly so. The locale `en_US` must always be among them.
    """
    case.report(
        C_STARTOK_LOCALE_OFFERED,
        "start-ok names a locale that start does not offer",
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
    """A client answers the first challenge with an empty response.

    Demands: A Secure-Ok response is not empty.
    Source: XML:connection.secure-ok.response assert notnull
    Evidence: Secure-Ok.response length
    Why it matters: The server has asked for data in connection.secure and receives none, so the login fails.
    Silent when: the challenge is not the first one, because some mechanisms end with an empty answer, or the
    mechanism is GSSAPI, where the first challenge may be the last one.
    How to mend it: Calculate the answer of the mechanism from the challenge in connection.secure and send it
    in secure-ok. Check that credentials and the mechanism's implementation are available before start-ok.
    """
    case.report(C_SECUREOK_RESPONSE_NOTNULL, "the response in secure-ok is empty")


# Both


C_CAP_TABLE: Final = RULES.rule(
    "C-CAP-TABLE", "IMPLIED", "tier A", warning="The text implies it and names no error for it."
)


def odd_capabilities(case: Case091, properties: PeerProperties) -> None:
    """A peer sends a capabilities property that is not a table of booleans.

    Demands: The capabilities property, if present, is a nested table whose entries are normally booleans.
    Source: RMQ:docs/connections (capabilities)
    Evidence: type tags under client/server-properties.capabilities
    Why it matters: RabbitMQ treats a capability as absent unless its value is the boolean true (type 't').
    Features stay disabled although the peer supports them.
    Silent when: the properties do not decode.
    How to mend it: Encode capabilities as a nested field table (type 'F') and each of its entries as a
    boolean (type 't'), instead of strings or integers.
    """
    case.report(C_CAP_TABLE, properties.odd_capabilities)


# Who is brought before them


def judge_start(case: Case091, method: ConnectionStart) -> None:
    """The server's first word."""
    start_of_a_higher_version(case, method)
    properties = PeerProperties(method.server_properties)
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
    """The client's answer."""
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
        properties = PeerProperties(method.client_properties)
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
        case.report(rule, f"the properties leave out {', '.join(missing)}", evidence={"missing": missing})


def listed(words: list[str]) -> str:
    """The mechanisms or locales of start, as evidence."""
    return " ".join(words)[:200]

"""Error conditions: the frame that carries them, their descriptions and their info maps (transport.xml,
"definitions")."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10.session import SessionEnd
from amqpscope.tracking.amqp10.states import ATTACH_RCVD
from dissectors.amqp10.performatives import Error
from dissectors.amqp10.registry import ERROR_CONDITIONS

__all__ = ["judge_error", "judge_error_of_end"]

RULES: Final = Rules("amqp10/condition")


# The frame that carries the conditions of a family. handle-in-use is an exception: its name belongs to the
# session conditions, but the text of attach.handle demands it on close.
_CARRIERS: Final[dict[str, str]] = {
    "connection-error": "close",
    "session-error": "end",
    "link-error": "detach",
}
_ON_CLOSE_TOO: Final = "amqp:session:handle-in-use"

_LONGEST: Final = 64
"""The number of characters of a condition that a finding shows."""

_LATIN: Final = 0x24F
"""The highest code point that counts as a Latin letter."""


C_ERR_SYMBOL: Final = RULES.rule(
    "C-ERR-SYMBOL",
    "MUST",
    "definition",
    warning="A capture can suggest this fault but never prove it.",
    octets=True,
)


def condition_that_nobody_defines(case: Case10, condition: str) -> None:
    """A peer sends an error whose condition begins with `amqp:` but is not defined by the specification.

    Demands: The condition of an error must be a symbol that a specification defines as an error condition.
    Source: transport.xml section definitions > error.condition, amqp-error, connection-error, session-error,
    link-error
    Evidence: an error condition that the specification does not define
    Why it matters: Programs choose their reaction by the error condition. A program does not recognize a
    misspelt condition, so the program treats the error as unknown or ignores it.
    Silent when: the condition does not begin with `amqp:`.
    Only possible because: A later specification may have defined the condition.
    How to mend it: Use the exact symbol that the specification defines, for example `amqp:not-found`. For
    other errors, use a condition of your own that does not begin with `amqp:`.
    """
    case.report(
        C_ERR_SYMBOL,
        "the error condition begins with amqp:, but the specification defines no such condition",
        POSSIBLE,
        {"condition": condition[:_LONGEST]},
    )


C_ERR_SCOPE: Final = RULES.rule("C-ERR-SCOPE", "SHOULD", "inferred")


def condition_of_another_frame(case: Case10, condition: str, carrier: str) -> None:
    """A peer sends an error condition on the wrong frame. Connection conditions belong on close, session
    conditions on end, and link conditions on detach.

    Demands: A close should carry only connection conditions, an end should carry only session conditions, and
    a detach should carry only link conditions. An exception is a condition for which the specification
    requires another frame.
    Source: transport.xml section definitions > connection-error, session-error, link-error; transport.xml
    section performatives > attach.handle
    Evidence: the family of the error condition, and the frame that carries the error
    Why it matters: The condition shows which endpoint failed. If the condition arrives on the wrong frame,
    the receiver cannot tell whether the connection, the session or only the link is over.
    Silent when: the frame is a close with amqp:session:handle-in-use, because the specification's text about
    attach requires a close with this condition.
    Only possible because: In the specification, only the name of a condition shows on which frame the
    condition belongs.
    How to mend it: Choose the condition by the frame: amqp:connection conditions on close, amqp:session
    conditions on end, amqp:link conditions on detach. If no condition of the frame's family fits, use a
    general condition such as `amqp:internal-error`.
    """
    case.report(
        C_ERR_SCOPE,
        f"the peer sends the error condition {condition} in {case.record.frame.name}, but by its name this "
        f"condition belongs in {carrier}",
        POSSIBLE,
        {"condition": condition},
    )


C_LOCALE_CHOICE: Final = RULES.rule("C-LOCALE-CHOICE", "SHOULD", "definition")


def description_in_another_script(case: Case10, tags: list[str]) -> None:
    """A peer writes an error description in a script that is not used by any language in the other peer's
    incoming-locales.

    Demands: The other peer's incoming-locales is a list of languages. A peer should write its error texts in
    the first language of this list that the peer supports. If the peer supports no language of this list, the
    peer should use en-US.
    Source: transport.xml section performatives > open.incoming-locales
    Evidence: the incoming-locales of the other peer's open, and the description of the error
    Why it matters: An error description is text for a person to read. The other peer asked for English, so
    the user of the other peer is perhaps unable to read the description.
    Silent when: the other peer's open was not captured. The rule is also silent when the other peer asks for
    languages other than English. The rule is also silent when most letters of the description are Latin
    letters.
    Only possible because: The description may quote a name that is written in a foreign script.
    How to mend it: Choose the language of descriptions from the other peer's incoming-locales. Use en-US if
    you support none of the other peer's languages. Do not use the language of the host system.
    """
    case.report(
        C_LOCALE_CHOICE,
        "the error description is not in Latin script, but the other peer asks for English",
        POSSIBLE,
        {"incoming_locales": tags},
        [int(case.me.opening.peer_packet)],
    )


L_REDIRECT_INFO: Final = RULES.rule(
    "L-REDIRECT-INFO",
    "MAY-limits",
    "definition",
    warning="The specification permits the behaviour only within limits, and the peer exceeds these limits.",
)


def redirect_with_wrong_address(case: Case10, key: str) -> None:
    """In the info map of a link redirect, a peer sends a value of the wrong type: hostname, network-host or
    address is not a string, or port is not a number.

    Demands: The error of a link redirect may give hostname, network-host, port and address in its info map.
    Source: transport.xml section definitions > link-error redirect
    Evidence: a detach with amqp:link:redirect, and the entries of its info map
    Why it matters: The other peer cannot follow the redirect, so the link stays unusable for the application.
    Silent when: every entry in the info map is valid. A missing entry is no fault, because the specification
    requires none of the entries.
    How to mend it: In the info map of amqp:link:redirect, encode hostname, network-host and address as
    strings and port as an integer.
    """
    case.report(
        L_REDIRECT_INFO,
        f"in the info map of amqp:link:redirect, the value of the key {key} is "
        f"{'not a number' if key == 'port' else 'not a string'}",
        CERTAIN,
        {"entry": key},
    )


def _judge_redirect(case: Case10, error: Error) -> None:
    if error.info is None:
        return
    for key, value in error.info.pairs:
        name = str(key) if isinstance(key, str) else ""
        if name == "port":
            if isinstance(value, bool) or not isinstance(value, int):
                redirect_with_wrong_address(case, name)
        elif name in ("hostname", "network-host", "address") and not isinstance(value, str):
            redirect_with_wrong_address(case, name)


def _judge_description(case: Case10, text: str) -> None:
    theirs = case.me.peer_open
    if theirs is None or text.isascii():
        return
    tags = [str(tag) for tag in theirs.incoming_locales or []]
    for tag in tags:
        if tag[:2].lower() != "en":
            return
    letters = [letter for letter in text if letter.isalpha()]
    others = [letter for letter in letters if ord(letter) > _LATIN]
    if len(others) * 2 > len(letters):
        description_in_another_script(case, tags[:8])


def judge_error(case: Case10, error: Error) -> None:
    """Judge the error that a close, end or detach carries."""
    if error.description is not None:
        _judge_description(case, error.description)
    if error.condition is None:
        return
    condition = str(error.condition)
    family = ERROR_CONDITIONS.get(condition, "")
    if family == "":
        if condition.startswith("amqp:"):
            condition_that_nobody_defines(case, condition)
        return
    carrier = _CARRIERS.get(family, "")
    name = case.record.frame.name
    if carrier != "" and carrier != name and not (condition == _ON_CLOSE_TOO and name == "close"):
        condition_of_another_frame(case, condition, carrier)
    if condition == "amqp:link:redirect":
        _judge_redirect(case, error)


L_UNSETTLED_INCOMPLETE: Final = RULES.rule(
    "L-UNSETTLED-INCOMPLETE", "SHOULD", "keyword", answer="amqp:frame-size-too-small"
)


def ended_for_a_map_that_does_not_fit(case: Case10) -> None:
    """A peer ends a session with amqp:frame-size-too-small while a link of the session waits to be resumed.

    Demands: A peer whose unsettled map is too large for one frame should send a part of the map with
    incomplete-unsettled=true, instead of ending the session.
    Source: transport.xml section performatives > attach.unsettled, incomplete-unsettled
    Evidence: an attach that got no answer, and the error condition of the end
    Why it matters: The end of the session closes all links of the session. If an unsettled map does not fit
    into a frame, the peer can send a part of the map with incomplete-unsettled=true and keep the session.
    Silent when: no delivery is unsettled on a link of the session, or when every attach was answered.
    Only possible because: The frame that was too large may have been a frame other than the attach.
    How to mend it: If the unsettled map exceeds the max-frame-size, send an attach with a part of the map and
    incomplete-unsettled=true. Settle the deliveries in the part of the map that you sent, and then resume the
    link again for the other deliveries.
    """
    case.report(
        L_UNSETTLED_INCOMPLETE,
        "the peer ends the session with amqp:frame-size-too-small while a link waits to be resumed; "
        "instead, the peer could send a part of its unsettled map with incomplete-unsettled=true",
        POSSIBLE,
    )


def judge_error_of_end(case: Case10, session: SessionEnd, error: Error) -> None:
    """Judge the error with which a peer ends a session."""
    if error.condition != "amqp:frame-size-too-small":
        return
    for link in session.links.values():
        theirs = link.peer_attach
        if link.state == ATTACH_RCVD and theirs is not None and theirs.unsettled is not None:
            ended_for_a_map_that_does_not_fit(case)
            return

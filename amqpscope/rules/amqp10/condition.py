"""Errors: which condition on which frame, and what is said with it (transport.xml, "definitions")."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10.case import Case
from amqpscope.tracking.amqp10.session import SessionEnd
from dissectors.amqp10.performatives import Error
from dissectors.amqp10.registry import ERROR_CONDITIONS

__all__ = ["judge_error", "judge_error_of_end"]

# Which frame carries the conditions of a family. One is at home on two: the names put handle-in-use with the
# session's, the text of attach.handle wants it on close.
_CARRIERS: Final[dict[str, str]] = {
    "connection-error": "close",
    "session-error": "end",
    "link-error": "detach",
}
_ON_CLOSE_TOO: Final = "amqp:session:handle-in-use"

_LONGEST: Final = 64
"""Characters of a condition that are told."""

_LATIN: Final = 0x24F
"""The last letter that a language written in Latin letters uses."""


def condition_that_nobody_defines(case: Case, condition: str) -> None:
    """An error's condition begins with `amqp:` and is none that the specification names.

    Why it matters: programs choose what to do by the condition; a misspelt one is no match.
    Silent when: the condition is of another family of names.
    Only possible because: A later specification may have named it.
    """
    case.report(
        "amqp10/C-ERR-SYMBOL",
        "the error's condition begins with amqp: and is none that the specification names",
        POSSIBLE,
        {"condition": condition[:_LONGEST]},
    )


def condition_of_another_frame(case: Case, condition: str, carrier: str) -> None:
    """An error's condition belongs to another frame: a connection's to close, a session's to end, a link's to
    detach.

    Why it matters: it names what has failed; on another frame it is unclear what is over.
    Silent when: it is amqp:session:handle-in-use on close, which the text of attach asks for.
    Only possible because: Only the names say so.
    """
    case.report(
        "amqp10/C-ERR-SCOPE",
        f"{condition} is sent with {case.record.frame.name}, its name puts it on {carrier}",
        POSSIBLE,
        {"condition": condition},
    )


def description_in_another_script(case: Case, tags: list[str]) -> None:
    """An error's description is in a script that the other side's languages are not written in.

    Why it matters: it is meant for a person, who asked for English.
    Silent when: the other side's open was not captured, asks for other languages than English, or most of the
    letters are Latin ones.
    Only possible because: It may quote what is called so.
    """
    case.report(
        "amqp10/C-LOCALE-CHOICE",
        "an error is described in another script than English, which the other side asks for",
        POSSIBLE,
        {"incoming_locales": tags},
        [int(case.me.peer_open_packet)],
    )


def redirect_with_wrong_address(case: Case, key: str) -> None:
    """A link is redirected to an address that is none: not text, or a port that is no number.

    Why it matters: the other side cannot follow.
    Silent when: the entry is missing; none has to be there.
    """
    case.report(
        "amqp10/L-REDIRECT-INFO",
        f"the entry {key} in the info of amqp:link:redirect is {'no number' if key == 'port' else 'no text'}",
        CERTAIN,
        {"entry": key},
    )


def _judge_redirect(case: Case, error: Error) -> None:
    if error.info is None:
        return
    for key, value in error.info.pairs:
        name = str(key) if isinstance(key, str) else ""
        if name == "port":
            if isinstance(value, bool) or not isinstance(value, int):
                redirect_with_wrong_address(case, name)
        elif name in ("hostname", "network-host", "address") and not isinstance(value, str):
            redirect_with_wrong_address(case, name)


def _judge_description(case: Case, text: str) -> None:
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


def judge_error(case: Case, error: Error) -> None:
    """The rules about the error that a close, end or detach carries."""
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


def ended_for_a_map_that_does_not_fit(case: Case) -> None:
    """A session is ended for a frame that is too small, while a link waits to be resumed.

    Why it matters: of an unsettled map that does not fit into a frame a part may be sent, with
    incomplete-unsettled; the session need not be ended.
    Silent when: no delivery is unsettled on a link of the session, or every attach was answered.
    Only possible because: Another frame may have been too large.
    """
    case.report(
        "amqp10/L-UNSETTLED-INCOMPLETE",
        "the session is ended with amqp:frame-size-too-small while a link waits to be resumed; an incomplete "
        "map would fit",
        POSSIBLE,
    )


def judge_error_of_end(case: Case, session: SessionEnd, error: Error) -> None:
    """The rules about the error with which a session is ended."""
    if error.condition != "amqp:frame-size-too-small":
        return
    for link in session.links.values():
        theirs = link.peer_attach
        if link.state == "ATTACH_RCVD" and theirs is not None and theirs.unsettled is not None:
            ended_for_a_map_that_does_not_fit(case)
            return


RULES = {
    "amqp10/C-ERR-SYMBOL": condition_that_nobody_defines,
    "amqp10/C-ERR-SCOPE": condition_of_another_frame,
    "amqp10/C-LOCALE-CHOICE": description_in_another_script,
    "amqp10/L-REDIRECT-INFO": redirect_with_wrong_address,
    "amqp10/L-UNSETTLED-INCOMPLETE": ended_for_a_map_that_does_not_fit,
}

"""The frames of a content: the header, and that all of them come in order (section 4.2.6).

Each function is told by the dissector where the octets, or the frames before on the channel, break its rule.
"""

from collections.abc import Callable

from amqpscope.model.certainty import CERTAIN
from amqpscope.rules.amqp091.case import Case
from amqpscope.rules.amqp091.proof import proved, proved_of_properties
from dissectors.amqp091.methods import ChannelCloseOk
from dissectors.interface import Problem

__all__ = ["PROBLEMS", "body_of_no_octets"]


def content_on_channel_0(case: Case, problem: Problem) -> None:
    """A content header or a body is sent on channel 0.

    Why it matters: channel 0 has no methods with content; the connection is closed (with 504, RabbitMQ: 505).
    Silent when: octets before it were not captured; or a method on channel 0 it belongs to, or a frame of
    content there, was told of before.
    """
    rule = "amqp091/F-CONTENT-CH-NONZERO"
    if (case.me.peer, rule) not in case.told:
        case.told.add((case.me.peer, rule))
        proved(case, rule, problem)


def _settled(case: Case) -> bool:
    """Whether the order of content has nothing to say: the frame has no channel."""
    return case.record.frame.channel == 0


def no_content_header_behind_the_method(case: Case, problem: Problem) -> None:
    """Another frame stands on the channel where the content header of a method is due.

    Why it matters: the message is lost and the connection with it (505). Mostly two threads use one channel.
    Silent when: the sender closes the channel, or answers a close of the other peer's; the method, or octets
    between, were not captured.
    """
    if not _settled(case) and not isinstance(case.record.frame.body, ChannelCloseOk):
        proved(case, "amqp091/F-CONTENT-HEADER-NEXT", problem)


def method_inside_a_content(case: Case, problem: Problem) -> None:
    """A method stands on the channel while octets of a message's body are due.

    Why it matters: the message is lost and the connection with it (505). Mostly two threads use one channel.
    Silent when: the sender closes the channel, which gives up the message, or answers a close of the other
    peer's; a frame of the message, or octets between, were not captured.
    """
    if not _settled(case) and not isinstance(case.record.frame.body, ChannelCloseOk):
        proved(case, "amqp091/F-CONTENT-NO-METHOD", problem)


def content_header_inside_a_content(case: Case, problem: Problem) -> None:
    """A content header stands on the channel while octets of another message's body are due.

    Why it matters: of which message the next body is a part nobody can say; the connection is lost (505).
    Silent when: a frame of the message, or octets between, were not captured.
    """
    if not _settled(case):
        proved(case, "amqp091/F-CONTENT-ONE-HEADER", problem)


def content_header_without_method(case: Case, problem: Problem) -> None:
    """A content header stands on the channel without a method before it that has content.

    Why it matters: what is to be done with the message nobody has said; the connection is lost (505).
    Silent when: frames before it on the channel were not captured.
    """
    if not _settled(case):
        proved(case, "amqp091/F-HEADER-ORPHAN", problem)


def body_without_content_header(case: Case, problem: Problem) -> None:
    """A body stands on the channel where none is due.

    Why it matters: it belongs to no message; the connection is lost (505).
    Silent when: frames before it on the channel were not captured.
    """
    if not _settled(case):
        proved(case, "amqp091/F-BODY-ORPHAN", problem)


def more_body_than_announced(case: Case, problem: Problem) -> None:
    """The bodies of a message have more octets than its content header announces.

    Why it matters: the message and what stands behind it cannot be told apart; the connection is lost
    (505, RabbitMQ: 501).
    Silent when: its header was not captured, or octets since.
    """
    if not _settled(case):
        proved(case, "amqp091/F-BODY-OVERRUN", problem)


def body_of_an_empty_message(case: Case, problem: Problem) -> None:
    """A body follows a content header that announces none.

    Why it matters: the message was complete before it; the connection is lost (505).
    Silent when: the header was not captured, or octets since.
    """
    if not _settled(case):
        proved(case, "amqp091/F-BODY-ZERO", problem)


def content_header_of_another_class(case: Case, problem: Problem) -> None:
    """The class of a content header is not basic, that of all methods which have content.

    Why it matters: its properties cannot be read; the connection is lost (by one section of the
    specification with 501, by another, and RabbitMQ, with 505).
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp091/F-HEADER-CLASS", problem)


def content_header_with_a_weight(case: Case, problem: Problem) -> None:
    """The weight of a content header is not zero.

    Why it matters: it is left over from a plan for contents in contents; the connection is lost (505).
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp091/F-HEADER-WEIGHT", problem)


def properties_that_do_not_fill_the_header(case: Case, problem: Problem) -> None:
    """The properties of a content header end before, or behind, where its payload does.

    Why it matters: flags and values disagree, so that all properties may be read wrong; RabbitMQ closes with
    541.
    Silent when: the frame was not captured whole, or octets before it were not. Possible, and told once, when
    the server sends it, which hands on what it received.
    """
    proved_of_properties(case, "amqp091/F-HEADER-DECODE", problem)


def flag_of_no_property(case: Case, problem: Problem) -> None:
    """A content header has a flag that stands for no property, or for a flag word that is not there.

    Why it matters: what belongs to it is read as a part of another property.
    Silent when: the frame was not captured whole, or octets before it were not. Possible, and told once, when
    the server sends it, which hands on what it received. RabbitMQ takes no notice of the two low flags.
    """
    proved_of_properties(case, "amqp091/F-HEADER-FLAGS", problem)


def body_of_no_octets(case: Case) -> None:
    """A body frame inside a message has no octets.

    Why it matters: hardly. The specification has it for a server that gives up a message half sent, which
    nobody is known to do; RabbitMQ takes no notice of it.
    Silent when: the same was told of the connection before.
    """
    case.report_once("amqp091/F-BODY-EMPTY", "a body frame without octets", CERTAIN, {})


PROBLEMS: dict[str, Callable[[Case, Problem], None]] = {
    "F-CONTENT-CH-NONZERO": content_on_channel_0,
    "F-CONTENT-HEADER-NEXT": no_content_header_behind_the_method,
    "F-CONTENT-NO-METHOD": method_inside_a_content,
    "F-CONTENT-ONE-HEADER": content_header_inside_a_content,
    "F-HEADER-ORPHAN": content_header_without_method,
    "F-BODY-ORPHAN": body_without_content_header,
    "F-BODY-OVERRUN": more_body_than_announced,
    "F-BODY-ZERO": body_of_an_empty_message,
    "F-HEADER-CLASS": content_header_of_another_class,
    "F-HEADER-WEIGHT": content_header_with_a_weight,
    "F-HEADER-DECODE": properties_that_do_not_fill_the_header,
    "F-HEADER-FLAGS": flag_of_no_property,
}

RULES = {
    **{"amqp091/" + code: rule for code, rule in PROBLEMS.items()},
    "amqp091/F-BODY-EMPTY": body_of_no_octets,
}

"""Framing: what the octets of a frame's header, and where its body lies, prove (transport.xml, "framing").

Each function is told by the dissector where the octets break its rule.
"""

from collections.abc import Callable

from amqpscope.model.certainty import CERTAIN
from amqpscope.model.records import CLIENT
from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.proof import proved
from dissectors.foreign import FOREIGN
from dissectors.interface import Problem

__all__ = ["PROBLEMS"]


def frame_size_below_8(case: Case, problem: Problem) -> None:
    """A frame's size is below the 8 octets of its header.

    Why it matters: where the next frame begins is lost.
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp10/F-SIZE-MIN", problem)


def data_offset_below_2(case: Case, problem: Problem) -> None:
    """A frame's data offset is below 2: its body would begin inside its header.

    Why it matters: a receiver must close the connection.
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp10/F-DOFF-MIN", problem)


def data_offset_behind_the_frame(case: Case, problem: Problem) -> None:
    """A frame's data offset lies behind the frame's end.

    Why it matters: it has no place for its body.
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp10/F-DOFF-RANGE", problem)


def frame_of_unknown_type(case: Case, problem: Problem) -> None:
    """A frame's type is neither AMQP's nor SASL's.

    Why it matters: nobody knows how to read it.
    Silent when: octets before it were not captured.
    """
    proved(case, "amqp10/F-TYPE-KNOWN", problem)


def frame_body_that_is_no_performative(case: Case, problem: Problem) -> None:
    """An AMQP frame's body does not begin with a performative.

    Why it matters: nothing says what the frame is for.
    Silent when: the frame was not captured whole. A SASL value in the SASL layer is another fault.
    """
    if case.me.layer == "SASL" and case.record.frame.name.startswith("sasl-"):
        sasl_value_in_an_amqp_frame(case)
        return
    proved(case, "amqp10/F-BODY-PERF", problem)


def sasl_value_in_an_amqp_frame(case: Case) -> None:
    """A SASL value is sent in a frame of AMQP's type.

    Why it matters: in the SASL layer frames have the type 1; the other side finds no SASL frame.
    Silent when: octets since the SASL header, or that itself, were not captured.
    """
    frame = case.record.frame
    case.report("amqp10/SA-FRAME-TYPE", f"{frame.name} is sent in a frame of type 0, not 1")


def octets_behind_a_performative_without_payload(case: Case, problem: Problem) -> None:
    """Octets follow a performative that has no payload.

    Why it matters: only a transfer carries any; these are lost, or a sign of a wrong size.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/F-BODY-PAYLOAD", problem)


def stream_that_begins_with_no_header(case: Case, problem: Problem) -> None:
    """A stream begins neither with a protocol header nor with a frame.

    Why it matters: the other side cannot know what is spoken.
    Silent when: the start of the stream was not captured; or a server's shows itself as another protocol,
    that of a web server for one: then the client has come to the wrong port. A client that begins with TLS is
    not told of, either: AMQP may be in it.
    """
    proved(case, "amqp10/C-HDR-FORM", problem)


def stream_of_another_protocol(case: Case, problem: Problem) -> None:
    """A stream is another protocol's: a client's at a server that speaks AMQP, it is not at the right port.

    A server that speaks another protocol does nothing wrong by that one.
    """
    if case.me.peer == CLIENT:
        case.report("amqp10/C-HDR-FORM", problem.reason, CERTAIN, {"offset": int(problem.offset)})


def second_header_behind_the_first(case: Case, problem: Problem) -> None:
    """A protocol header follows another one at once.

    Why it matters: of two headers the other side has only read the first.
    Silent when: octets between them were not captured, or both peers had closed: that is another fault.
    Only possible because: These octets can also be read as legal: the text leaves room, or a newer one
    defines them.
    """
    me = case.me
    if (me.closed and me.peer_closed) or me.headers.sent == 0:
        return
    proved(case, "amqp10/C-HDR-VERMATCH", problem)


# What the dissector's problems break, by their code.
PROBLEMS: dict[str, Callable[[Case, Problem], None]] = {
    "F-SIZE-MIN": frame_size_below_8,
    "F-DOFF-MIN": data_offset_below_2,
    "F-DOFF-RANGE": data_offset_behind_the_frame,
    "F-TYPE-KNOWN": frame_of_unknown_type,
    "F-BODY-PERF": frame_body_that_is_no_performative,
    "F-BODY-PAYLOAD": octets_behind_a_performative_without_payload,
    "C-HDR-FORM": stream_that_begins_with_no_header,
    FOREIGN: stream_of_another_protocol,
    "C-HDR-VERMATCH": second_header_behind_the_first,
}

RULES = {
    **{"amqp10/" + code: rule for code, rule in PROBLEMS.items() if code != FOREIGN},
    "amqp10/SA-FRAME-TYPE": sasl_value_in_an_amqp_frame,
}

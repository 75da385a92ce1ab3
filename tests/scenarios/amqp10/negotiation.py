"""Protocol headers: the two agree on a layer, or they do not."""

from __future__ import annotations

from scenarios.pairs import SAME, one_direction, pair, reported, without
from support.dialogue import Dialogue


def _headers(d: Dialogue, client: int, server: int) -> None:
    d.client.header(client).called("client header")
    d.server.header(server).called("server header")


@pair("C-HDR-MISMATCH-CLOSE", cut=without("server header"))
def goes_on_with_another_header(d: Dialogue) -> None:
    _headers(d, 0, 3 if d.wrong else 0)
    if d.wrong:
        d.client.open().may_break("C-HDR-MISMATCH-CLOSE")
        d.server.fin()
        d.client.fin()
    else:
        d.client.open()
        d.server.open()
        d.goodbye()


@reported(
    "of a mismatch the server is reported that it goes on, certain once it shows that it has read the header"
)
def goes_on_with_other_frames(d: Dialogue) -> None:
    _headers(d, 0, 3)
    d.server.mechanisms().may_break("C-HDR-PROTOID")
    d.server.fin()
    d.client.fin()


@pair("C-HDR-PROTOID", cut=without("client header"))
def goes_on_with_refused_protocol_id(d: Dialogue) -> None:
    _headers(d, 0, 3 if d.wrong else 0)
    if d.wrong:
        d.server.mechanisms().may_break("C-HDR-PROTOID")
        d.server.fin()
        d.client.fin()
    else:
        d.client.open()
        d.server.open()
        d.goodbye()


@pair("C-HDR-UNSUP", cut=without("client header"))
def goes_on_with_unsupported_version(d: Dialogue) -> None:
    d.client.header(0, 1, 1 if d.wrong else 0, 0).called("client header")
    d.server.header()
    if d.wrong:
        d.server.open().may_break("C-HDR-UNSUP")
        d.server.fin()
        d.client.fin()
    else:
        d.client.open()
        d.server.open()
        d.goodbye()


@pair("C-HDR-MISMATCH-READ", cut=without("server header"))
def reset_after_another_header(d: Dialogue) -> None:
    _headers(d, 0, 3)
    if d.wrong:
        d.client.rst().may_break("C-HDR-MISMATCH-READ")
    else:
        d.server.fin()
        d.client.fin()


@pair("C-HDR-FORM", "C-HDR-UNPARSED")
def goes_on_after_unparsed_opening(d: Dialogue) -> None:
    if d.wrong:
        d.client.say(b"amqp\0\1\0\0").breaks("C-HDR-FORM")
    else:
        d.client.header()
    d.server.header()
    d.client.open()
    said = d.server.open()
    if d.wrong:
        said.may_break("C-HDR-UNPARSED")
    d.goodbye()


@pair("C-HDR-CLIENT-NOW", cut=without("server header"))
def client_waits_for_the_header(d: Dialogue) -> None:
    d.server.header().called("server header")
    d.wait(seconds=90 if d.wrong else 3)
    said = d.client.header()
    if d.wrong:
        said.may_break("C-HDR-CLIENT-NOW")
    d.client.open()
    d.server.open()
    d.goodbye()


@pair("SA-HDR")
def sasl_header_of_another_version(d: Dialogue) -> None:
    said = d.client.header(3, 1, 0, 1 if d.wrong else 0)
    if d.wrong:
        said.breaks("SA-HDR")
    d.server.header(3)
    if not d.wrong:
        d.server.mechanisms()
        d.client.init()
        d.server.outcome()
        d.opened()
        d.goodbye()
    else:
        d.server.fin()
        d.client.fin()


@pair("TL-HDR")
def tls_header_of_another_version(d: Dialogue) -> None:
    said = d.client.header(2, 1, 1 if d.wrong else 0, 0)
    if d.wrong:
        said.breaks("TL-HDR")
    d.server.header(2)
    d.server.fin()
    d.client.fin()


@pair("C-CLOSE-NOREUSE")
def reused_after_both_closes(d: Dialogue) -> None:
    d.begun()
    d.client.close()
    d.server.close()
    if d.wrong:
        d.client.header().breaks("C-CLOSE-NOREUSE")
        d.server.header()
        d.client.open()
        d.server.open()
        d.client.begin(remote_channel=None)
        d.goodbye()
    else:
        d.tcp.goodbye()


@pair("C-CLOSE-READON", cut=one_direction)
def reset_while_the_answer_was_awaited(d: Dialogue) -> None:
    d.begun()
    d.client.close("amqp:internal-error")
    if d.wrong:
        d.client.rst().may_break("C-CLOSE-READON")
    else:
        d.server.close()
        d.tcp.goodbye()


@pair("C-CLOSE-TIMEOUT", cut=one_direction)
def waited_too_long_for_the_answer(d: Dialogue) -> None:
    d.begun()
    d.client.close()
    d.wait(seconds=400 if d.wrong else 30)
    said = d.client.fin()
    if d.wrong:
        said.may_break("C-CLOSE-TIMEOUT")


@pair("TL-PURE", then=SAME)
def tls_header_at_the_tls_port(d: Dialogue) -> None:
    if d.wrong:
        d = d.again(server="10.0.0.2:5671")
    d.client.header(2)
    said = d.server.header(2)
    if d.wrong:
        said.may_break("TL-PURE")
    d.client.fin()
    d.server.fin()

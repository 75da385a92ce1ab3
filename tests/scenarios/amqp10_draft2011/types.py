"""Types that the draft encodes in another way than the final specification."""

from __future__ import annotations

from scenarios.amqp10_draft2011.rules import pair
from scenarios.pairs import reported
from support import draft2011_encode as draft
from support.dialogue_draft2011 import Dialogue2011
from support.draft2011_encode import raw

PIECES = draft.fragment_fields([draft.data(b"a"), draft.data(b"b")])
FRAGMENTS = [draft.fragment(**piece) for piece in PIECES]


@pair("T-CODE-LATER")
def code_that_came_later(d: Dialogue2011) -> None:
    d.begun()
    said = d.client.flow(outgoing_window=raw("43") if d.wrong else 0)
    if d.wrong:
        said.may_break("T-CODE-LATER")
        d.client.flow(echo=raw("56 00"))
    d.goodbye()


@pair("T-STR-UTF16")
def string_of_half_a_character(d: Dialogue2011) -> None:
    d.headers()
    said = d.client.open(properties=[("k", raw("a2 02 d8 3d" if d.wrong else "a2 04 d8 3d de 00"))])
    if d.wrong:
        said.breaks("T-STR-UTF16")
    d.server.open()
    d.goodbye()


@pair("T-COMP-TYPE")
def window_of_another_type(d: Dialogue2011) -> None:
    d.begun()
    said = d.client.flow(incoming_window=raw("53 05" if d.wrong else "52 05"))
    if d.wrong:
        said.breaks("T-COMP-TYPE")
    d.goodbye()


@reported("a field whose type the text of the draft lost: no finding about it is certain")
def handle_of_another_type(d: Dialogue2011) -> None:
    d.linked()
    d.client.detach(handle=raw("53 00")).may_break("T-COMP-TYPE")
    d.goodbye()


@pair("T-COMP-MULT-TRUE")
def fragments_without_true(d: Dialogue2011) -> None:
    d.linked()
    fragments = draft.list_(FRAGMENTS) if d.wrong else draft.multiple("*", FRAGMENTS)
    said = d.client.transfer(fragments=fragments)
    if d.wrong:
        said.breaks("T-COMP-MULT-TRUE")
    d.goodbye()


@reported("fields whose definition the text of the draft lost")
def capabilities_without_true(d: Dialogue2011) -> None:
    d.headers()
    capabilities = draft.list_([draft.symbol("a"), draft.symbol("b")])
    d.client.open(options={}, max_frame_size=65536, offered_capabilities=capabilities).may_break(
        "T-COMP-MULT-TRUE"
    )
    d.server.open()
    d.goodbye()


@pair("T-COMP-MULT-NULL")
def null_among_the_fragments(d: Dialogue2011) -> None:
    d.linked()
    fragments = [*FRAGMENTS, draft.null()] if d.wrong else FRAGMENTS
    said = d.client.transfer(fragments=draft.multiple("*", fragments))
    if d.wrong:
        said.breaks("T-COMP-MULT-NULL")
    d.goodbye()

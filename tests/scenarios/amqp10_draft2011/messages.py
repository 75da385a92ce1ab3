"""What sections hold, and how much of a message is resumed."""

from __future__ import annotations

from scenarios.amqp10_draft2011.rules import pair
from scenarios.pairs import legal, reported, without
from support import draft2011_encode as draft
from support.dialogue_draft2011 import Dialogue2011
from support.draft2011_encode import RECEIVER, Section

MESSAGE = [draft.header(), draft.properties(), draft.data(b"c" * 90), draft.footer()]
PIECES = draft.fragments(MESSAGE, 30)
TAG = b"one"


def _sent(d: Dialogue2011, rule: str, section: Section, certain: bool = True) -> None:
    """A message whose second section is this one if it is wrong."""
    d.linked()
    said = d.client.transfer([draft.header(), section if d.wrong else draft.properties(), draft.data(b"a")])
    if d.wrong:
        if certain:
            said.breaks(rule)
        else:
            said.may_break(rule)
    d.goodbye()


@pair("M-SECT-KNOWN", cut=without("client attach"))
def section_code_that_is_none(d: Dialogue2011) -> None:
    _sent(d, "M-SECT-KNOWN", Section(9, b"\x41"), certain=False)


@pair("M-SECT-TYPE", cut=without("client attach"))
def properties_that_are_a_map(d: Dialogue2011) -> None:
    octets = draft.map_({"k": "v"})
    _sent(d, "M-SECT-TYPE", draft.section("properties", octets))


@pair("M-PAYLOAD-WHOLE", cut=without("client attach"))
def two_properties_in_one_section(d: Dialogue2011) -> None:
    octets = draft.properties(subject="a").octets
    _sent(d, "M-PAYLOAD-WHOLE", draft.section("properties", octets + octets))


@pair("T-FIELDS-KEY", cut=without("client attach"))
def attribute_with_a_key_that_is_no_symbol(d: Dialogue2011) -> None:
    d.linked()
    key = draft.string("x-a") if d.wrong else draft.symbol("x-a")
    said = d.client.transfer([draft.header(message_attrs=[(key, "b")]), draft.data(b"a")])
    if d.wrong:
        said.breaks("T-FIELDS-KEY")
    d.goodbye()


def _interrupted(d: Dialogue2011, stated: int | None, transferred: int | None) -> None:
    """Four of six fragments are sent; then both peers attach the link again."""
    d.linked()
    for piece in PIECES[:4]:
        d.client.transfer(fragments=[piece], more=True, delivery_tag=TAG)
    if stated is not None:
        d.server.disposition(0, settled=None, state=draft.transfer_state(bytes_transferred=stated))
    d.client.detach(closed=None)
    d.server.detach(closed=None)
    held = draft.transfer_state(bytes_transferred=transferred)
    d.client.attach(unsettled={TAG: draft.transfer_state()}, initial_transfer_count=1)
    d.server.attach(RECEIVER, unsettled={TAG: held})
    d.server.flow(handle=0)


@pair("D-RESUME-OMIT", cut=without("server attach"))
def resumed_behind_the_receiver(d: Dialogue2011) -> None:
    _interrupted(d, None, 30)
    start = 4 if d.wrong else 3
    said = d.client.transfer(fragments=PIECES[start:], resume=True, delivery_tag=TAG)
    if d.wrong:
        said.may_break("D-RESUME-OMIT")
    d.goodbye()


@reported("the receiver has nothing, and the delivery is resumed without data, or from its middle")
def resumed_without_what_the_receiver_lacks(d: Dialogue2011) -> None:
    held = {b"a": draft.transfer_state(), b"b": None}
    d.linked(client={"unsettled": held}, server={"unsettled": held})
    d.client.transfer(fragments=None, resume=True, delivery_tag=b"a").may_break("D-RESUME-OMIT")
    d.client.transfer(fragments=PIECES[2:], resume=True, delivery_tag=b"b").may_break("D-RESUME-OMIT")
    d.goodbye()


@legal()
def resumed_as_far_as_needed(d: Dialogue2011) -> None:
    outcome = draft.transfer_state(outcome=draft.accepted())
    held = {b"a": outcome, b"b": draft.transfer_state(bytes_transferred=0), b"c": draft.transfer_state()}
    mine = {tag: draft.transfer_state() for tag in held}
    d.linked(client={"unsettled": mine}, server={"unsettled": held})
    d.client.transfer(fragments=None, resume=True, settled=True, delivery_tag=b"a")
    d.client.transfer(MESSAGE, resume=True, delivery_tag=b"b")
    d.client.transfer(fragments=None, resume=True, aborted=True, delivery_tag=b"c")
    d.server.disposition(1)
    d.goodbye()


@pair("M-RECEIVED-POS", cut=without("client attach"))
def more_received_than_was_sent(d: Dialogue2011) -> None:
    d.linked()
    for piece in PIECES[:4]:
        d.client.transfer(fragments=[piece], more=True, delivery_tag=TAG)
    stated = 200 if d.wrong else 60
    state = draft.transfer_state(bytes_transferred=stated)
    said = d.server.disposition(3, settled=None, state=state)
    if d.wrong:
        said.may_break("M-RECEIVED-POS")
    d.goodbye()


@reported("a message ends within a section")
def message_without_the_end_of_its_section(d: Dialogue2011) -> None:
    d.linked()
    piece = next(draft.fragment_fields([draft.data(b"abc")]))
    d.client.transfer(fragments=[draft.fragment(**{**piece, "last": False})]).breaks("M-FRAG-BOUNDS")
    d.goodbye()

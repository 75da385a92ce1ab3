"""Fields that must not be missing, and frames with more or other things in them than the draft defines."""

from __future__ import annotations

from scenarios.amqp10_draft2011.rules import SIGNS, pair
from scenarios.pairs import POSSIBLE, SAME, without
from support import draft2011_encode as draft
from support.dialogue_draft2011 import Dialogue2011
from support.draft2011_encode import raw


@pair("P-OPEN-MAND")
def open_without_container_id(d: Dialogue2011) -> None:
    d.headers()
    said = d.client.open(**({"container_id": None} if d.wrong else {}))
    if d.wrong:
        said.may_break("P-OPEN-MAND")
    d.server.open()
    d.goodbye()


@pair("P-BEGIN-MAND", cut=without("server open"), then=POSSIBLE)
def begin_without_next_outgoing_id(d: Dialogue2011) -> None:
    d.opened()
    said = d.client.begin(**({"next_outgoing_id": None} if d.wrong else {}))
    if d.wrong:
        said.may_break("P-BEGIN-MAND")
    d.server.begin()
    d.goodbye()


@pair("P-ATTACH-MAND")
def attach_without_handle(d: Dialogue2011) -> None:
    d.begun()
    if d.wrong:
        d.client.frame(draft.attach(options={}, name="q", role=draft.RECEIVER)).may_break("P-ATTACH-MAND")
    d.goodbye()


@pair("P-DISP-MAND", cut=without("client begin"), then=POSSIBLE)
def disposition_without_role(d: Dialogue2011) -> None:
    d.linked()
    d.client.transfer()
    said = d.server.disposition(0, **({"role": None} if d.wrong else {}))
    if d.wrong:
        said.may_break("P-DISP-MAND")
    d.goodbye()


@pair("P-DETACH-MAND", cut=without("client begin"), then=POSSIBLE)
def detach_without_handle(d: Dialogue2011) -> None:
    d.linked()
    if d.wrong:
        d.client.detach(handle=None).may_break("P-DETACH-MAND")
    d.goodbye()


@pair("P-ERROR-MAND", cut=without("client begin"), then=POSSIBLE)
def error_without_condition(d: Dialogue2011) -> None:
    d.linked()
    d.client.transfer()
    condition = {} if d.wrong else {"condition": "amqp:precondition-failed"}
    error = draft.error(**condition, description="no")
    said = d.server.disposition(0, state=draft.transfer_state(outcome=draft.rejected(error=error)))
    if d.wrong:
        said.may_break("P-ERROR-MAND")
    d.goodbye()


@pair("SA-MECH-NONEMPTY", cut=without("client header"), then=POSSIBLE)
def no_mechanism_offered(d: Dialogue2011) -> None:
    d.client.header(3).called("client header")
    d.server.header(3)
    offered = None if d.wrong else ["PLAIN"]
    said = d.server.sasl_frame(draft.sasl_mechanisms(options={}, sasl_server_mechanisms=offered))
    if d.wrong:
        said.breaks("SA-MECH-NONEMPTY")
    d.client.init()
    d.server.outcome()
    d.opened()
    d.goodbye()


@pair("T-ENUM-SASLCODE", cut=without("client header"), then=SAME)
def outcome_with_a_code_that_is_none(d: Dialogue2011) -> None:
    d.client.header(3).called("client header")
    d.server.header(3)
    d.server.mechanisms()
    d.client.init()
    said = d.server.outcome(5 if d.wrong else 0)
    if d.wrong:
        said.breaks("T-ENUM-SASLCODE")
    d.opened()
    d.goodbye()


@pair("T-COMP-EXTRA", cut=without("client begin"), then=POSSIBLE)
def end_with_three_elements(d: Dialogue2011) -> None:
    d.linked()
    said = d.client.frame(raw("00 53 17 c0 04 03 40 40 40" if d.wrong else "00 53 17 c0 03 02 40 40"))
    if d.wrong:
        said.may_break("T-COMP-EXTRA")
    d.server.end_session()
    d.goodbye()


@pair("F-BODY-PAYLOAD", cut=without("client begin"), then=SAME)
def octets_behind_a_transfer(d: Dialogue2011) -> None:
    d.linked()
    d.client.transfer()
    fields = {"handle": 0, "delivery_tag": b"u", "transfer_id": 1, "message_format": 0}
    payload = b"as in the final" if d.wrong else b""
    said = d.client.frame(draft.transfer(**fields), payload)
    if d.wrong:
        said.breaks("F-BODY-PAYLOAD")
    d.goodbye()


@pair("T-DESC-RESERVED", then=SAME)
def descriptor_that_is_a_string(d: Dialogue2011) -> None:
    d.headers()
    value = raw("00 a1 01 78 a1 01 79" if d.wrong else "00 a3 03 78 3a 79 a1 01 79")
    said = d.client.open(**SIGNS, properties=[("k", value)])
    if d.wrong:
        said.breaks("T-DESC-RESERVED")
    d.server.open()
    d.goodbye()


@pair("T-DESC-CTOR")
def descriptor_before_nothing(d: Dialogue2011) -> None:
    d.linked()
    said = d.client.flow(**({"options": raw("c1 07 02 a3 03 78 2d 61 00")} if d.wrong else {}))
    if d.wrong:
        said.breaks("T-DESC-CTOR")
    d.goodbye()


@pair("C-ERR-SYMBOL", cut=without("client begin"), then=POSSIBLE)
def condition_that_only_the_final_has(d: Dialogue2011) -> None:
    d.linked()
    said = d.server.detach(error="amqp:link:stolen" if d.wrong else "amqp:link:detach-forced")
    if d.wrong:
        said.may_break("C-ERR-SYMBOL")
    d.client.detach()
    d.goodbye()


@pair("D-STATE-FINAL-RCV", cut=without("client begin"))
def receiver_changes_its_outcome(d: Dialogue2011) -> None:
    d.linked()
    d.client.transfer()
    d.server.disposition(0, settled=None)
    outcome = draft.released() if d.wrong else draft.accepted()
    said = d.server.disposition(0, state=draft.transfer_state(outcome=outcome))
    if d.wrong:
        said.breaks("D-STATE-FINAL-RCV")
    d.goodbye()


@pair("C-ERR-SCOPE")
def condition_of_another_frame(d: Dialogue2011) -> None:
    d.begun()
    error = "amqp:connection:forced" if d.wrong else "amqp:session:window-violation"
    said = d.server.end_session(error=error)
    if d.wrong:
        said.may_break("C-ERR-SCOPE")
    d.client.end_session()
    d.goodbye()


@pair("T-MAP-DUPKEY")
def map_with_a_key_twice(d: Dialogue2011) -> None:
    d.begun()
    pairs = [("a", "b"), ("a" if d.wrong else "c", "d")]
    said = d.client.attach(options=pairs)
    d.server.attach(draft.RECEIVER)
    if d.wrong:
        said.breaks("T-MAP-DUPKEY")
    d.goodbye()


@pair("T-COMP-MULT-MAND", cut=without("client header"), then=POSSIBLE)
def empty_list_of_mechanisms(d: Dialogue2011) -> None:
    d.client.header(3).called("client header")
    d.server.header(3)
    offered = draft.multiple("symbol", [] if d.wrong else ["PLAIN"])
    said = d.server.sasl_frame(draft.sasl_mechanisms(options={}, sasl_server_mechanisms=offered))
    if d.wrong:
        said.breaks("T-COMP-MULT-MAND")
    d.client.init()
    d.server.outcome()
    d.opened()
    d.goodbye()


@pair("SA-FRAME-BODY")
def open_in_a_sasl_frame(d: Dialogue2011) -> None:
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms()
    if d.wrong:
        d.client.sasl_frame(draft.open_(options={}, container_id="client")).breaks("SA-FRAME-BODY")
    d.client.init()
    d.server.outcome()
    d.opened()
    d.goodbye()


@pair("SA-FRAME-TYPE")
def sasl_value_in_an_amqp_frame(d: Dialogue2011) -> None:
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms()
    if d.wrong:
        d.client.frame(draft.sasl_init(options={}, mechanism="PLAIN")).breaks("SA-FRAME-TYPE")
    d.client.init()
    d.server.outcome()
    d.opened()
    d.goodbye()


@pair("C-CLOSE-AFTEROPEN")
def close_before_open(d: Dialogue2011) -> None:
    d.headers()
    d.server.open()
    if d.wrong:
        error = draft.error(condition="amqp:internal-error")
        d.client.frame(draft.close(options={}, error=error)).breaks("C-CLOSE-AFTEROPEN")
        d.server.close()
        d.tcp.goodbye()
        return
    d.client.open()
    d.goodbye()

"""The rules that the draft has in the same words as the final specification, each with the draft's section.

Their functions are those of `rules.amqp10`, which judge the draft's frames in the final's terms
(`tracking.amqp10_draft2011.translation`). What they report is reported here under the draft's id (`case`).

Not among them, although the final has them: rules that the draft does not state, rules whose words the
surviving text of the draft lost, and rules that differ. Those that differ are in the other files of this
package.
"""

from typing import Final

from amqpscope.rules.amqp10 import (
    attachment,
    connection,
    counting,
    delivery,
    due_answer,
    ending,
    framing,
    idle,
    link,
    negotiation,
    not_resumed,
    outcome,
    reaction,
    resumed_receipt,
    resuming,
    sasl,
    session,
    settlement,
    types,
    window,
)
from amqpscope.rules.declaration import Rules

__all__ = ["RULES"]

RULES: Final = Rules(
    "amqp10_draft2011/same",
    document="AMQP 1.0, draft of 5 April 2011 (revision 1239M)",
    terms={
        "delivery-count": "transfer-count",
        "delivery-limit": "transfer-limit",
        "delivery-id": "transfer-id",
        "Initial-transfer-count": "initial-transfer-count",
    },
)

_SAME: Final[dict[str, str]] = {
    # Types and framing
    types.T_CODE_EXT: "2.2",
    types.T_SIZE_OVERRUN: "2.2",
    types.T_CHAR_UTF32: "2.2.1",
    types.T_STR_UTF8: "2.2.2",
    types.T_STR_NOBOM: "2.2.2",
    types.T_SYM_ASCII: "2.2.2",
    types.T_LIST_FIT: "2.2.3",
    types.T_MAP_FIT: "2.2.3",
    types.T_ARR_FIT: "2.2.4",
    types.T_ARR_CTOR: "2.2.4",
    framing.F_SIZE_MIN: "3.3.1",
    framing.F_DOFF_MIN: "3.3.1",
    framing.F_DOFF_RANGE: "3.3.1",
    framing.F_TYPE_KNOWN: "3.3.1",
    ending.F_SIZE_TOTAL: "3.3.1",
    # Protocol headers and SASL
    negotiation.C_HDR_MISMATCH_CLOSE: "3.2",
    negotiation.C_HDR_UNSUP: "3.2",
    negotiation.C_HDR_UNPARSED: "3.2",
    negotiation.C_HDR_CLIENT_NOW: "3.2",
    negotiation.C_HDR_MISMATCH_READ: "3.2",
    negotiation.SA_HDR: "6.3",
    sasl.F_TYPE_PHASE: "3.3.1, 6.3.1",
    sasl.SA_OK_HDR: "6.3.3.5",
    sasl.SA_OK_HDR_EARLY: "6.3.3.5",
    sasl.SA_FAIL_STOP: "6.1, 6.3.3.5",
    sasl.SA_FRAME_DOFF: "6.3.1",
    sasl.SA_FRAME_BYTES67: "6.3.1",
    sasl.SA_ROLE: "6.3.2",
    sasl.SA_MECH_FIRST: "6.3.2",
    sasl.SA_INIT_AFTER: "6.3.2",
    sasl.SA_INIT_OFFERED: "6.3.2",
    sasl.SA_INIT_ONCE: "6.3.2",
    sasl.SA_SEQ_CHAL: "6.3.2",
    sasl.SA_SEQ_RESP: "6.3.2",
    sasl.SA_INIT_UNSUP: "6.3.3.2",
    sasl.SA_SEQ_INIT: "6.3.2",
    sasl.SA_OUTCOME_DATA: "6.3.3.5",
    sasl.SA_SEQ_OUTCOME: "6.3.2",
    sasl.SA_FAIL_CLOSE: "6.1",
    sasl.SA_FRAME_EMPTY: "6.3.1",
    # Connections
    connection.C_HDR_FIRST: "3.2",
    connection.C_OPEN_FIRST: "3.4.1, 3.7.1",
    connection.C_OPEN_CH0: "3.4.1",
    connection.C_OPEN_ONCE: "3.4.6, 3.4.7",
    connection.C_OPEN_HOST: "3.7.1",
    connection.C_CLOSE_AFTEROPEN: "3.4.7",
    connection.C_CLOSE_LAST: "3.4.3, 3.7.9",
    connection.C_CLOSE_CH0: "3.4.3",
    connection.C_CLOSE_CH0_PIPE: "3.4.3",
    connection.C_EMPTY_AFTEROPEN: "3.4.5",
    connection.C_EMPTY_CH0: "3.4.5",
    connection.C_EMPTY_CH0_PRE: "3.4.5",
    connection.C_MAXFRAME: "3.7.1",
    connection.C_CHMAX: "3.7.1",
    connection.C_PIPE_CHANNEL: "3.4.1",
    ending.C_CLOSE_SENT: "3.4.3, 3.7.9",
    ending.C_CLOSE_ANSWER: "3.4.3, 3.4.7",
    ending.C_CLOSE_READON: "3.4.3",
    reaction.C_CLOSE_REASON: "3.4.3",
    due_answer.C_MAXFRAME_REACT: "3.7.1",
    due_answer.C_CHMAX_REACT: "3.7.1",
    idle.C_IDLE_KEEP: "3.4.5, 3.7.1",
    idle.C_IDLE_REFUSE: "3.4.5, 3.7.1",
    idle.C_IDLE_HALF: "3.4.5",
    idle.C_IDLE_CLOSE: "3.4.5",
    # Sessions
    session.S_BEGIN_FIRST: "3.5.5",
    session.S_END_LAST: "3.5.2, 3.5.5",
    session.S_BEGIN_REUSE: "3.5.1",
    session.S_BEGIN_REMOTEVALID: "3.7.2",
    session.S_BEGIN_LOCALNULL: "3.5.1, 3.7.2",
    session.S_FLOW_NEXTOUT: "3.5.6, 3.7.4",
    session.S_FLOW_NEXTIN_SET: "3.7.4",
    session.S_FLOW_NEXTIN_UNSET: "3.7.4",
    session.S_FLOW_NEXTIN_VALUE: "3.5.6, 3.7.4",
    session.S_FLOW_NOHANDLE_DC: "3.7.4",
    session.S_FLOW_NOHANDLE_CREDIT: "3.7.4",
    session.S_FLOW_NOHANDLE_AVAIL: "3.7.4",
    session.S_FLOW_NOHANDLE_DRAIN: "3.7.4",
    session.S_HANDLEMAX: "3.7.2",
    window.S_WIN_IN: "3.5.6, 3.8.15",
    window.S_WIN_FORMULA: "3.5.6",
    window.S_WIN_FORMULA_INIT: "3.5.6",
    window.S_WIN_DECR: "3.5.6",
    window.S_WIN_OUT: "3.5.6, 3.7.4",
    window.S_FLOW_SYNC: "3.5.6",
    ending.S_BEGIN_REMOTESET: "3.5.1, 3.7.2",
    ending.S_BEGIN_ANSWER: "3.5.1",
    ending.S_END_ANSWER: "3.5.2, 3.5.5",
    ending.S_FLOW_ECHO: "3.6.10, 3.7.4",
    due_answer.S_HANDLEMAX_REACT: "3.7.2",
    # Links
    link.L_ATTACH_IDC: "3.7.3",
    link.L_SRC_NULL: "3.7.3",
    link.L_CREDIT_INIT: "3.6.7",
    link.L_CREDIT: "3.6.7",
    link.L_MAXMSG: "3.7.3",
    link.L_DC_UNSET: "3.7.4",
    link.L_DC_RECEIVER: "3.7.4",
    link.L_DC_SENDER: "3.7.4",
    link.L_CREDIT_OWNER: "3.6.7, 3.7.4",
    link.L_DRAIN_OWNER: "3.6.7, 3.7.4",
    link.L_DRAIN_STATE: "3.6.7",
    counting.L_CREDIT_NODC: "3.6.7",
    counting.L_DC_UNIT: "3.6.7",
    counting.L_CREDIT_DECR: "3.6.7",
    counting.L_CREDIT_FORMULA: "3.6.7",
    counting.L_AVAIL_OWNER: "3.6.7, 3.7.4",
    counting.L_AVAIL_FLOOR: "3.6.7",
    attachment.L_REFUSE_NULL: "3.6.3",
    attachment.L_REFUSE_DETACH: "3.6.3",
    attachment.L_ERRANT_INPUT: "3.6.5",
    attachment.L_TGT_NULL: "3.7.3",
    ending.L_CLOSE_ANSWER: "3.6.6",
    ending.L_CLOSE_CROSS: "3.6.6",
    ending.L_ATTACH_ROLE: "3.6.3",
    ending.L_DRAIN_ADVANCE: "3.6.7",
    due_answer.L_ERRANT_REACT: "3.6.5",
    due_answer.L_MAXMSG_REACT: "3.7.3",
    due_answer.L_ERR_DETACH: "3.6.5",
    due_answer.L_REDUCE_REACT: "3.6.7",
    # Deliveries
    delivery.D_TAG_UNIQUE: "3.6.12",
    outcome.D_MORE_COMPLETE: "3.6.14",
    settlement.D_DISP_RANGE: "3.7.6",
    settlement.D_DISP_RESETTLE: "3.6.12",
    resuming.D_RESUME_FLAG: "3.6.13",
    not_resumed.D_RESUME_BOTH: "3.6.13",
    resumed_receipt.D_RESUME_TGTONLY: "3.6.13",
}

# Rules for which the draft names another error condition, or none: the section, and the condition.
_ANSWERED_OTHERWISE: Final[dict[str, tuple[str, str]]] = {
    link.L_UNATTACHED_TRANSFER: ("3.7.5", "amqp:invalid-field"),
    link.L_UNATTACHED_FLOW: ("3.7.4", "amqp:invalid-field"),
    link.L_HANDLE_INUSE: ("3.7.3", "amqp:invalid-field"),
    link.L_NAME_UNIQUE: ("3.6.1", ""),
    session.S_LINK_ONE: ("3.5", ""),
    attachment.L_HANDLE_REUSE: ("3.8.2, 3.7.7", ""),
}

for _rule, _section in _SAME.items():
    RULES.same(_rule, _section)
for _rule, (_section, _answer) in _ANSWERED_OTHERWISE.items():
    RULES.same(_rule, _section, _answer)

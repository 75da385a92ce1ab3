"""The rules that the draft has in the same words as the final specification, each with the draft's section.

Their functions are those of `rules.amqp10`, which judge the draft's frames in the final's terms
(`tracking.amqp10_draft2011.translation`). What they report is reported here under the draft's id (`case`).

Not among them, although the final has them: rules that the draft does not state, rules whose words the
surviving text of the draft lost, and rules that differ. Those that differ are in the other files of this
package.
"""

from typing import Final

from amqpscope.rules.amqp10 import judge, resumption  # noqa: F401
from amqpscope.rules.declaration import Rules

__all__ = ["DOCUMENT", "RULES"]

DOCUMENT: Final = "AMQP 1.0, draft of 5 April 2011 (revision 1239M)"

RULES: Final = Rules(
    "amqp10_draft2011/same",
    document=DOCUMENT,
    terms={
        "delivery-count": "transfer-count",
        "delivery-limit": "transfer-limit",
        "delivery-id": "transfer-id",
        "unsettled-deliveries": "unsettled-transfers",
        "en-US": "en_US",
        "must close the connection with amqp:session:handle-in-use": "may answer with amqp:invalid-field",
        "ends the session with amqp:session:unattached-handle": "may answer with amqp:invalid-field",
    },
)

_SAME: Final[dict[str, str]] = {
    # Types and framing
    "T-DESC-CTOR": "2.2",
    "T-DESC-RESERVED": "2.1.4",
    "T-DESC-SYMFORM": "2.1.4",
    "T-CODE-UNKNOWN": "2.2, 2.2.5",
    "T-CODE-EXT": "2.2",
    "T-SIZE-OVERRUN": "2.2",
    "T-CHAR-UTF32": "2.2.1",
    "T-UUID-4122": "2.2.1",
    "T-STR-UTF8": "2.2.2",
    "T-STR-NOBOM": "2.2.2",
    "T-SYM-ASCII": "2.2.2",
    "T-LIST-FIT": "2.2.3",
    "T-MAP-FIT": "2.2.3",
    "T-MAP-EVEN": "2.2.3",
    "T-MAP-DUPKEY": "2.1.1",
    "T-COMP-MULT-MAND": "2.3, 6.3.3.1",
    "T-ARR-FIT": "2.2.4",
    "T-ARR-CTOR": "2.2.4",
    "T-FIELDS-KEY": "3.8.10, 3.8.11, 4.2.5",
    "F-SIZE-MIN": "3.3.1",
    "F-DOFF-MIN": "3.3.1",
    "F-DOFF-RANGE": "3.3.1",
    "F-TYPE-KNOWN": "3.3.1",
    "F-SIZE-TOTAL": "3.3.1",
    "F-BODY-PERF": "3.1, 3.3.2",
    "F-BODY-PAYLOAD": "3.3.2, 3.7.5",
    # Protocol headers and SASL
    "C-HDR-FORM": "3.2",
    "C-HDR-VERMATCH": "3.2",
    "C-HDR-UNPARSED": "3.2",
    "C-HDR-MISMATCH-CLOSE": "3.2",
    "C-HDR-UNSUP": "3.2",
    "C-HDR-CLIENT-NOW": "3.2",
    "F-TYPE-PHASE": "3.3.1, 6.3.1",
    "SA-OK-HDR": "6.3.3.5",
    "SA-OK-HDR-EARLY": "6.3.3.5",
    "SA-FAIL-STOP": "6.1, 6.3.3.5",
    "SA-FRAME-DOFF": "6.3.1",
    "SA-FRAME-BYTES67": "6.3.1",
    "SA-ROLE": "6.3.2",
    "SA-MECH-FIRST": "6.3.2",
    "SA-INIT-AFTER": "6.3.2",
    "SA-INIT-OFFERED": "6.3.2",
    "SA-INIT-ONCE": "6.3.2",
    "SA-SEQ-CHAL": "6.3.2",
    "SA-SEQ-RESP": "6.3.2",
    "SA-INIT-UNSUP": "6.3.3.2",
    "SA-SEQ-INIT": "6.3.2",
    "SA-OUTCOME-DATA": "6.3.3.5",
    "SA-SEQ-OUTCOME": "6.3.2",
    "SA-FAIL-CLOSE": "6.1",
    "SA-FRAME-EMPTY": "6.3.1",
    "SA-FRAME-TYPE": "6.3.1",
    "SA-FRAME-BODY": "6.3.1",
    "SA-MECH-NONEMPTY": "6.3.3.1",
    "T-ENUM-SASLCODE": "6.3.3.6",
    # Connections
    "C-HDR-FIRST": "3.2",
    "C-OPEN-FIRST": "3.4.1, 3.7.1",
    "C-OPEN-CH0": "3.4.1",
    "C-OPEN-ONCE": "3.4.6, 3.4.7",
    "C-OPEN-HOST": "3.7.1",
    "C-CLOSE-LAST": "3.4.3, 3.7.9",
    "C-CLOSE-CH0": "3.4.3",
    "C-CLOSE-CH0-PIPE": "3.4.3",
    "C-EMPTY-AFTEROPEN": "3.4.5",
    "C-EMPTY-CH0": "3.4.5",
    "C-EMPTY-CH0-PRE": "3.4.5",
    "C-MAXFRAME": "3.7.1",
    "C-CHMAX": "3.7.1",
    "C-PIPE-CHANNEL": "3.4.1",
    "C-CLOSE-AFTEROPEN": "3.4.7",
    "C-CLOSE-SENT": "3.4.3, 3.7.9",
    "C-CLOSE-ANSWER": "3.4.3, 3.4.7",
    "C-CLOSE-READON": "3.4.3",
    "C-CLOSE-REASON": "3.4.3",
    "C-ERR-SCOPE": "3.8.14 to 3.8.16",
    "C-MAXFRAME-REACT": "3.7.1",
    "C-CHMAX-REACT": "3.7.1",
    "C-IDLE-KEEP": "3.4.5, 3.7.1",
    "C-IDLE-REFUSE": "3.4.5, 3.7.1",
    "C-IDLE-HALF": "3.4.5",
    "C-IDLE-CLOSE": "3.4.5",
    "C-LOCALE-CHOICE": "3.7.1",
    # Sessions
    "S-BEGIN-FIRST": "3.5.5",
    "S-END-LAST": "3.5.2, 3.5.5",
    "S-BEGIN-REUSE": "3.5.1",
    "S-BEGIN-REMOTEVALID": "3.7.2",
    "S-BEGIN-LOCALNULL": "3.5.1, 3.7.2",
    "S-FLOW-NEXTOUT": "3.5.6, 3.7.4",
    "S-FLOW-NEXTIN-SET": "3.7.4",
    "S-FLOW-NEXTIN-UNSET": "3.7.4",
    "S-FLOW-NEXTIN-VALUE": "3.5.6, 3.7.4",
    "S-FLOW-NOHANDLE-DC": "3.7.4",
    "S-FLOW-NOHANDLE-CREDIT": "3.7.4",
    "S-FLOW-NOHANDLE-AVAIL": "3.7.4",
    "S-FLOW-NOHANDLE-DRAIN": "3.7.4",
    "S-HANDLEMAX": "3.7.2",
    "S-WIN-IN": "3.5.6, 3.8.15",
    "S-WIN-FORMULA": "3.5.6",
    "S-WIN-FORMULA-INIT": "3.5.6",
    "S-WIN-DECR": "3.5.6",
    "S-WIN-OUT": "3.5.6, 3.7.4",
    "S-FLOW-SYNC": "3.5.6",
    "S-BEGIN-REMOTESET": "3.5.1, 3.7.2",
    "S-BEGIN-ANSWER": "3.5.1",
    "S-END-ANSWER": "3.5.2, 3.5.5",
    "S-FLOW-ECHO": "3.6.10, 3.7.4",
    "S-HANDLEMAX-REACT": "3.7.2",
    # Links
    "L-ATTACH-IDC": "3.7.3",
    "L-SRC-NULL": "3.7.3",
    "L-CREDIT-INIT": "3.6.7",
    "L-CREDIT": "3.6.7",
    "L-MAXMSG": "3.7.3",
    "L-DC-UNSET": "3.7.4",
    "L-DC-RECEIVER": "3.7.4",
    "L-DC-SENDER": "3.7.4",
    "L-CREDIT-OWNER": "3.6.7, 3.7.4",
    "L-DRAIN-OWNER": "3.6.7, 3.7.4",
    "L-DRAIN-STATE": "3.6.7",
    "L-CREDIT-NODC": "3.6.7",
    "L-DC-UNIT": "3.6.7",
    "L-CREDIT-DECR": "3.6.7",
    "L-CREDIT-FORMULA": "3.6.7",
    "L-AVAIL-OWNER": "3.6.7, 3.7.4",
    "L-AVAIL-FLOOR": "3.6.7",
    "L-REFUSE-NULL": "3.6.3",
    "L-REFUSE-DETACH": "3.6.3",
    "L-ERRANT-INPUT": "3.6.5",
    "L-TGT-NULL": "3.7.3",
    "L-CLOSE-ANSWER": "3.6.6",
    "L-CLOSE-CROSS": "3.6.6",
    "L-ATTACH-ROLE": "3.6.3",
    "L-ATTACH-ANSWER": "3.6.3",
    "L-ATTACH-UNSETTLED": "3.6.3",
    "L-DRAIN-ADVANCE": "3.6.7",
    "L-ERRANT-REACT": "3.6.5",
    "L-MAXMSG-REACT": "3.7.3",
    "L-ERR-DETACH": "3.6.5",
    "L-REDUCE-REACT": "3.6.7",
    # Deliveries
    "D-TAG-UNIQUE": "3.6.12",
    "D-MORE-COMPLETE": "3.6.14",
    "D-ABORT-DISCARD": "3.6.14",
    "D-DISP-RANGE": "3.7.6",
    "D-DISP-RESETTLE": "3.6.12",
    "D-RESUME-FLAG": "3.6.13",
    "D-RESUME-BOTH": "3.6.13",
    "D-RESUME-TGTONLY": "3.6.13",
    "D-STATE-FINAL-RCV": "3.6.12, 4.3",
    # Sources and targets
    "M-FILTER-KEY": "4.5.8",
    "M-SRC-DYN-NOADDR": "4.5.3",
    "M-TGT-DYN-NOADDR": "4.5.4",
    "M-DYN-NAME": "4.5.3, 4.5.4",
    "M-DISTMODE-VALUE": "4.5.6",
    "M-OUTCOME-VALID": "4.5.3",
    "M-OUTCOMES-SYMBOL": "4.5.3",
    "M-OUTCOMES-USE": "4.5.3",
    # Transactions
    "TX-COORD-TARGET": "5.2.1",
}

# Rules for which the draft names another error condition, or none: the section, and the condition.
_ANSWERED_OTHERWISE: Final[dict[str, tuple[str, str]]] = {
    "L-UNATTACHED-TRANSFER": ("3.7.5", "amqp:invalid-field"),
    "L-UNATTACHED-FLOW": ("3.7.4", "amqp:invalid-field"),
    "L-HANDLE-INUSE": ("3.7.3", "amqp:invalid-field"),
    "L-NAME-UNIQUE": ("3.6.1", ""),
    "S-LINK-ONE": ("3.5", ""),
    "L-HANDLE-REUSE": ("3.8.2, 3.7.7", ""),
}


def _declare(namespace: str) -> None:
    """Declare these rules, which are those of another namespace."""
    for rule, section in _SAME.items():
        RULES.same(f"{namespace}/{rule}", section)
    for rule, (section, answer) in _ANSWERED_OTHERWISE.items():
        RULES.same(f"{namespace}/{rule}", section, answer)


# `judge` imports all rules of the final specification but those of `resumption`, which judge a link's ends
# on two connections. With both imported, all are declared.
_declare("amqp10")

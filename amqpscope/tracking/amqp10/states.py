"""The state diagrams of AMQP 1.0.

An input is what the endpoint sends (`S:`) or what it receives (`R:`). FRAME stands for any frame that has no
input of its own. In a SASL exchange each peer has a part of its own, so there an input is what the client
sends (`C:`) or what the server sends (`S:`), and one table serves both. The rules read the tables: an input
without a cell is a fault of whoever sends it.

Sources: transport.xml, "Connection State Diagram" and "Connection States"; "Session States"; "Links".
security.xml, "SASL Negotiation". For links and handles the specification draws no diagram; the tables here
say what its words say.
"""

from typing import Final

from amqpscope.tracking.states import Machine

# States of a connection.
START: Final = "START"
HDR_RCVD: Final = "HDR_RCVD"
HDR_SENT: Final = "HDR_SENT"
HDR_EXCH: Final = "HDR_EXCH"
OPEN_PIPE: Final = "OPEN_PIPE"
OC_PIPE: Final = "OC_PIPE"
OPEN_RCVD: Final = "OPEN_RCVD"
OPEN_SENT: Final = "OPEN_SENT"
CLOSE_PIPE: Final = "CLOSE_PIPE"
OPENED: Final = "OPENED"
CLOSE_RCVD: Final = "CLOSE_RCVD"
CLOSE_SENT: Final = "CLOSE_SENT"
END: Final = "END"

# A state that the diagram leaves out: open and close are received before the own open is sent.
OC_RCVD: Final = "OC_RCVD"

# States of a session.
UNMAPPED: Final = "UNMAPPED"
BEGIN_SENT: Final = "BEGIN_SENT"
BEGIN_RCVD: Final = "BEGIN_RCVD"
MAPPED: Final = "MAPPED"
END_SENT: Final = "END_SENT"
END_RCVD: Final = "END_RCVD"

# A state of a connection, and one of a session.
DISCARDING: Final = "DISCARDING"

# States of a link.
DETACHED: Final = "DETACHED"
ATTACH_SENT: Final = "ATTACH_SENT"
ATTACH_RCVD: Final = "ATTACH_RCVD"
ATTACHED: Final = "ATTACHED"
DETACH_SENT: Final = "DETACH_SENT"
DETACH_RCVD: Final = "DETACH_RCVD"

# States of a handle.
FREE: Final = "FREE"
IN_USE: Final = "IN_USE"

# States of a SASL exchange, which begins in START. It comes to an "early" one without the sasl-init or the
# sasl-mechanisms that belongs before. ENDED: by an outcome whose code may mean anything.
OFFERED: Final = "OFFERED"
CHOSEN: Final = "CHOSEN"
CHOSEN_EARLY: Final = "CHOSEN EARLY"
ACCEPTED: Final = "ACCEPTED"
ACCEPTED_EARLY: Final = "ACCEPTED EARLY"
REFUSED: Final = "REFUSED"
REFUSED_EARLY: Final = "REFUSED EARLY"
ENDED: Final = "ENDED"

# Inputs of a connection.
SEND_HEADER: Final = "S:HDR"
RECEIVE_HEADER: Final = "R:HDR"
SEND_OPEN: Final = "S:OPEN"
RECEIVE_OPEN: Final = "R:OPEN"
SEND_CLOSE: Final = "S:CLOSE"
SEND_CLOSE_WITH_ERROR: Final = "S:CLOSE(error)"
RECEIVE_CLOSE: Final = "R:CLOSE"
RECEIVE_CLOSE_WITH_ERROR: Final = "R:CLOSE(error)"

# Inputs of a session.
SEND_BEGIN: Final = "S:BEGIN"
RECEIVE_BEGIN: Final = "R:BEGIN"
SEND_END: Final = "S:END"
SEND_END_WITH_ERROR: Final = "S:END(error)"
RECEIVE_END: Final = "R:END"
RECEIVE_END_WITH_ERROR: Final = "R:END(error)"

# Inputs of a connection and of a session.
SEND_FRAME: Final = "S:FRAME"

# Inputs of a link; those that are sent are inputs of its handle, too.
SEND_ATTACH: Final = "S:ATTACH"
RECEIVE_ATTACH: Final = "R:ATTACH"
SEND_DETACH: Final = "S:DETACH"
RECEIVE_DETACH: Final = "R:DETACH"

# Inputs of a SASL exchange. HDR: the protocol header that follows it.
SERVER_MECHANISMS: Final = "S:MECHANISMS"
CLIENT_INIT: Final = "C:INIT"
SERVER_CHALLENGE: Final = "S:CHALLENGE"
CLIENT_RESPONSE: Final = "C:RESPONSE"
SERVER_OUTCOME: Final = "S:OUTCOME"
SERVER_OUTCOME_OK: Final = "S:OUTCOME(ok)"
SERVER_OUTCOME_FAILED: Final = "S:OUTCOME(failed)"
CLIENT_HEADER: Final = "C:HDR"
SERVER_HEADER: Final = "S:HDR"

CONNECTION: Final = Machine(
    START,
    {
        (START, RECEIVE_HEADER): HDR_RCVD,
        (START, SEND_HEADER): HDR_SENT,
        (HDR_RCVD, SEND_HEADER): HDR_EXCH,
        (HDR_SENT, RECEIVE_HEADER): HDR_EXCH,
        (HDR_SENT, SEND_OPEN): OPEN_PIPE,
        (HDR_EXCH, RECEIVE_OPEN): OPEN_RCVD,
        (HDR_EXCH, SEND_OPEN): OPEN_SENT,
        (OPEN_PIPE, RECEIVE_HEADER): OPEN_SENT,
        (OPEN_PIPE, SEND_CLOSE): OC_PIPE,
        (OC_PIPE, RECEIVE_HEADER): CLOSE_PIPE,
        (OPEN_RCVD, SEND_OPEN): OPENED,
        (OPEN_SENT, RECEIVE_OPEN): OPENED,
        (OPEN_SENT, SEND_CLOSE): CLOSE_PIPE,
        (CLOSE_PIPE, RECEIVE_OPEN): CLOSE_SENT,
        (OPENED, RECEIVE_CLOSE): CLOSE_RCVD,
        (OPENED, SEND_CLOSE): CLOSE_SENT,
        (OPENED, SEND_CLOSE_WITH_ERROR): DISCARDING,
        (CLOSE_RCVD, SEND_CLOSE): END,
        (CLOSE_SENT, RECEIVE_CLOSE): END,
        (DISCARDING, RECEIVE_CLOSE): END,
    },
    # The columns "Legal Sends" and "Legal Receives" of "Connection States".
    {
        (OPEN_RCVD, RECEIVE_CLOSE): OC_RCVD,
        (OC_RCVD, SEND_OPEN): CLOSE_RCVD,
        **{(state, SEND_FRAME): state for state in (OPEN_SENT, OPEN_PIPE, OPENED, CLOSE_RCVD)},
    },
    # A close that comes before the sender's own open ends the connection all the same; a second open,
    # header or close changes nothing; what is received in a state that expects nothing is as sent.
    {
        (START, SEND_OPEN): OPEN_PIPE,
        (HDR_RCVD, SEND_OPEN): OPEN_SENT,
        # Legal to receive, but no state says that the own header is still to be sent.
        (HDR_RCVD, RECEIVE_OPEN): OPEN_RCVD,
        (START, SEND_CLOSE): OC_PIPE,
        (HDR_SENT, SEND_CLOSE): OC_PIPE,
        (HDR_RCVD, SEND_CLOSE): CLOSE_PIPE,
        (HDR_EXCH, SEND_CLOSE): CLOSE_PIPE,
        (OPEN_RCVD, SEND_CLOSE): CLOSE_SENT,
        (HDR_EXCH, RECEIVE_CLOSE): OC_RCVD,
        (OC_RCVD, SEND_CLOSE): END,
        (OPEN_SENT, RECEIVE_CLOSE): CLOSE_RCVD,
        (CLOSE_PIPE, RECEIVE_CLOSE): END,
        # A TCP connection that is used again, which it should not be.
        (END, SEND_HEADER): HDR_SENT,
        (END, RECEIVE_HEADER): HDR_RCVD,
    },
    {SEND_CLOSE_WITH_ERROR: SEND_CLOSE, RECEIVE_CLOSE_WITH_ERROR: RECEIVE_CLOSE},
)

SESSION: Final = Machine(
    UNMAPPED,
    {
        (UNMAPPED, SEND_BEGIN): BEGIN_SENT,
        (UNMAPPED, RECEIVE_BEGIN): BEGIN_RCVD,
        (BEGIN_SENT, RECEIVE_BEGIN): MAPPED,
        (BEGIN_RCVD, SEND_BEGIN): MAPPED,
        (MAPPED, SEND_END): END_SENT,
        (MAPPED, SEND_END_WITH_ERROR): DISCARDING,
        (MAPPED, RECEIVE_END): END_RCVD,
        (END_SENT, RECEIVE_END): UNMAPPED,
        (DISCARDING, RECEIVE_END): UNMAPPED,
        (END_RCVD, SEND_END): UNMAPPED,
    },
    # "The endpoint MAY send frames" in these states, before the answer to its begin has come, too.
    {
        (BEGIN_SENT, SEND_END): END_SENT,
        (BEGIN_SENT, SEND_END_WITH_ERROR): DISCARDING,
        **{(state, SEND_FRAME): state for state in (BEGIN_SENT, MAPPED, END_RCVD)},
    },
    {
        (END_SENT, RECEIVE_BEGIN): END_SENT,
        (DISCARDING, RECEIVE_BEGIN): DISCARDING,
        (BEGIN_RCVD, RECEIVE_END): UNMAPPED,
    },
    {SEND_END_WITH_ERROR: SEND_END, RECEIVE_END_WITH_ERROR: RECEIVE_END},
)

# An attach of one side alone is half attached; a detach that does not close leaves the terminus, so the link
# may be attached again (suspended).
LINK: Final = Machine(
    DETACHED,
    {
        (DETACHED, SEND_ATTACH): ATTACH_SENT,
        (DETACHED, RECEIVE_ATTACH): ATTACH_RCVD,
        (ATTACH_SENT, RECEIVE_ATTACH): ATTACHED,
        (ATTACH_RCVD, SEND_ATTACH): ATTACHED,
        (ATTACH_SENT, SEND_DETACH): DETACH_SENT,
        (ATTACHED, SEND_DETACH): DETACH_SENT,
        (ATTACHED, RECEIVE_DETACH): DETACH_RCVD,
        (DETACH_SENT, RECEIVE_ATTACH): DETACH_SENT,
        (DETACH_SENT, RECEIVE_DETACH): DETACHED,
        (DETACH_RCVD, SEND_DETACH): DETACHED,
    },
    {},
    {(ATTACH_RCVD, RECEIVE_DETACH): DETACHED},
    {},
)

# What an endpoint may send by one of its own handles.
HANDLE: Final = Machine(
    FREE,
    {
        (FREE, SEND_ATTACH): IN_USE,
        (IN_USE, SEND_FRAME): IN_USE,
        (IN_USE, SEND_DETACH): FREE,
    },
    {},
    {},
    {},
)

# Which challenge a response answers is counted, not drawn: see `SaslExchange`.
SASL: Final = Machine(
    START,
    {
        (START, SERVER_MECHANISMS): OFFERED,
        (OFFERED, CLIENT_INIT): CHOSEN,
        (CHOSEN, SERVER_CHALLENGE): CHOSEN,
        (CHOSEN, CLIENT_RESPONSE): CHOSEN,
        (CHOSEN, SERVER_OUTCOME): ENDED,
        (CHOSEN, SERVER_OUTCOME_OK): ACCEPTED,
        (CHOSEN, SERVER_OUTCOME_FAILED): REFUSED,
    },
    # A server may give up at any time, and the client not know it yet. "Upon successful completion" the peers
    # exchange protocol headers again; an outcome whose code is not defined may mean success.
    {
        (OFFERED, SERVER_OUTCOME): ENDED,
        (OFFERED, SERVER_OUTCOME_FAILED): REFUSED_EARLY,
        (REFUSED_EARLY, CLIENT_INIT): REFUSED,
        (ENDED, CLIENT_INIT): ENDED,
        **{
            (state, header): state for state in (ACCEPTED, ENDED) for header in (CLIENT_HEADER, SERVER_HEADER)
        },
    },
    # What comes too early counts. Of several outcomes the last one does.
    {
        (START, CLIENT_INIT): CHOSEN_EARLY,
        (CHOSEN_EARLY, SERVER_MECHANISMS): CHOSEN,
        (ACCEPTED_EARLY, CLIENT_INIT): ACCEPTED,
        **{(state, SERVER_OUTCOME): ENDED for state in (START, CHOSEN_EARLY, ACCEPTED, REFUSED)},
        **{(state, SERVER_OUTCOME_OK): ACCEPTED for state in (CHOSEN_EARLY, REFUSED)},
        **{(state, SERVER_OUTCOME_OK): ACCEPTED_EARLY for state in (START, OFFERED, REFUSED_EARLY, ENDED)},
        **{(state, SERVER_OUTCOME_FAILED): REFUSED for state in (CHOSEN_EARLY, ACCEPTED)},
        **{(state, SERVER_OUTCOME_FAILED): REFUSED_EARLY for state in (START, ACCEPTED_EARLY, ENDED)},
        (ACCEPTED_EARLY, SERVER_OUTCOME): ENDED,
        (REFUSED_EARLY, SERVER_OUTCOME): ENDED,
    },
    {},
)

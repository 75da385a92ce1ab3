"""The state diagrams of AMQP 0-9-1: of a connection, and of a channel.

An input is a method that the client sends (`C:`) or the server sends (`S:`). One table serves both endpoints:
each endpoint sees its own inputs when it sends them, and those of the other endpoint when it can have
received them. The tables contain what the grammars of the classes connection and channel say.

Sources: section 2.2.4 and the grammars of the classes "connection" and "channel" (amqp0-9-1.xml).
"""

from typing import Final

from amqpscope.tracking.states import Machine

# States of a connection while it is set up.
START: Final = "START"
HEADED: Final = "HEADED"
STARTED: Final = "STARTED"
ANSWERED: Final = "ANSWERED"
CHALLENGED: Final = "CHALLENGED"
TUNED: Final = "TUNED"
AGREED: Final = "AGREED"
OPENING: Final = "OPENING"
OPEN: Final = "OPEN"
# The server has opened it, but the client has not requested that.
UNREQUESTED: Final = "UNREQUESTED"

# States of a channel, and of the closing of a connection; OPENING and OPEN are states of it, too.
CLOSED: Final = "CLOSED"
CLIENT_CLOSES: Final = "CLIENT CLOSES"
SERVER_CLOSES: Final = "SERVER CLOSES"
BOTH_CLOSE: Final = "BOTH CLOSE"

# Inputs: what the client sends, and what the server sends.
CLIENT_CLOSE: Final = "C:close"
CLIENT_CLOSE_OK: Final = "C:close-ok"
CLIENT_HEADER: Final = "C:header"
CLIENT_OPEN: Final = "C:open"
CLIENT_SECURE_OK: Final = "C:secure-ok"
CLIENT_START_OK: Final = "C:start-ok"
CLIENT_TUNE_OK: Final = "C:tune-ok"
SERVER_CLOSE: Final = "S:close"
SERVER_CLOSE_OK: Final = "S:close-ok"
SERVER_OPEN_OK: Final = "S:open-ok"
SERVER_SECURE: Final = "S:secure"
SERVER_START: Final = "S:start"
SERVER_TUNE: Final = "S:tune"

CONNECTION: Final = Machine(
    START,
    {
        (START, CLIENT_HEADER): HEADED,
        (HEADED, SERVER_START): STARTED,
        (STARTED, CLIENT_START_OK): ANSWERED,
        (ANSWERED, SERVER_SECURE): CHALLENGED,
        (CHALLENGED, CLIENT_SECURE_OK): ANSWERED,
        (ANSWERED, SERVER_TUNE): TUNED,
        (TUNED, CLIENT_TUNE_OK): AGREED,
        (AGREED, CLIENT_OPEN): OPENING,
        (OPENING, SERVER_OPEN_OK): OPEN,
    },
    {},
    {
        (START, SERVER_START): STARTED,
        (HEADED, CLIENT_START_OK): ANSWERED,
        (STARTED, SERVER_TUNE): TUNED,
        (STARTED, CLIENT_TUNE_OK): AGREED,
        (STARTED, CLIENT_OPEN): OPENING,
        (ANSWERED, CLIENT_TUNE_OK): AGREED,
        (ANSWERED, CLIENT_OPEN): OPENING,
        (CHALLENGED, SERVER_TUNE): TUNED,
        (TUNED, CLIENT_OPEN): OPENING,
        (AGREED, SERVER_OPEN_OK): UNREQUESTED,
        (TUNED, SERVER_OPEN_OK): UNREQUESTED,
        (UNREQUESTED, CLIENT_OPEN): OPEN,
    },
    {},
)
"""How a connection is set up. A connection is closed like a channel: see CHANNEL."""

STILL_DUE: Final[dict[str, str]] = {
    START: "the client has not sent the protocol header yet",
    HEADED: "connection.start has not been sent yet",
    STARTED: "connection.start is not answered yet",
    ANSWERED: "connection.tune has not been sent yet",
    CHALLENGED: "connection.secure is not answered yet",
    TUNED: "connection.tune is not answered yet",
    AGREED: "connection.open has not been sent yet",
    OPENING: "connection.open is not answered yet",
    OPEN: "the connection is open",
    UNREQUESTED: "connection.open has not been sent yet",
}
"""What a connection in each of these states waits for."""

CHANNEL: Final = Machine(
    CLOSED,
    {
        (CLOSED, CLIENT_OPEN): OPENING,
        (OPENING, SERVER_OPEN_OK): OPEN,
        (OPENING, CLIENT_CLOSE): CLIENT_CLOSES,
        (OPENING, SERVER_CLOSE): SERVER_CLOSES,
        (OPEN, CLIENT_CLOSE): CLIENT_CLOSES,
        (OPEN, SERVER_CLOSE): SERVER_CLOSES,
        (CLIENT_CLOSES, SERVER_CLOSE_OK): CLOSED,
        (CLIENT_CLOSES, SERVER_CLOSE): BOTH_CLOSE,
        (SERVER_CLOSES, CLIENT_CLOSE_OK): CLOSED,
        (SERVER_CLOSES, CLIENT_CLOSE): BOTH_CLOSE,
        # Each of the two still answers the other's.
        (BOTH_CLOSE, CLIENT_CLOSE_OK): CLIENT_CLOSES,
        (BOTH_CLOSE, SERVER_CLOSE_OK): SERVER_CLOSES,
    },
    {},
    {},
    {},
)
"""How a channel is opened and closed."""

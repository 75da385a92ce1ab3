"""Subjects: a few rules each that explain one mechanism of the protocol, in the order in which it works."""

from typing import Final, NamedTuple

__all__ = ["SUBJECTS", "Subject", "subject_named"]


class Subject(NamedTuple):
    """A subject. name: what people type. protocol: whose rules these are. text: what the mechanism is for.

    rules: their ids without the protocol, in the order in which the mechanism works. drawn: the one of them
    whose dialogues are drawn.
    """

    name: str
    title: str
    protocol: str
    text: str
    rules: tuple[str, ...]
    drawn: str


SUBJECTS: Final = (
    Subject(
        "credit",
        "How credit works",
        "amqp10",
        "The receiver of a link decides how many deliveries the sender may start. The receiver grants "
        "link-credit with a flow frame, and each delivery uses one unit of it. Both peers compute the credit "
        "from delivery-counts, so flows and deliveries may cross on the wire.",
        ("L-CREDIT-INIT", "L-CREDIT-FORMULA", "L-CREDIT-DECR", "L-CREDIT", "L-DRAIN-STATE"),
        "L-CREDIT",
    ),
    Subject(
        "window",
        "How the session window works",
        "amqp10",
        "A session limits transfers, whatever link they belong to. Each peer announces in begin and in flow "
        "how many transfers it can take: its incoming-window. Credit limits deliveries of a link, and the "
        "window limits transfers of all links together.",
        ("S-FLOW-NEXTIN-SET", "S-WIN-FORMULA", "S-WIN-DECR", "S-WIN-IN", "S-FLOW-SYNC"),
        "S-WIN-IN",
    ),
    Subject(
        "deliveries",
        "How a delivery is named and settled",
        "amqp10",
        "A delivery has a delivery-id, which is a number of the session, and a delivery-tag, which the "
        "sender chooses for the link. A disposition names deliveries by their delivery-ids. An attach that "
        "resumes a link names deliveries by their delivery-tags.",
        ("D-ID-PRESENT", "D-TAG-PRESENT", "D-ID-SEQ", "D-TAG-UNIQUE", "D-STATE-FINAL-RCV"),
        "D-ID-SEQ",
    ),
    Subject(
        "idle",
        "How a peer knows that the other one is alive",
        "amqp10",
        "Each peer announces in open how long the other peer may be silent. A peer with nothing to say sends "
        "empty frames in time.",
        ("C-IDLE-HALF", "C-IDLE-REFUSE", "C-IDLE-KEEP", "C-IDLE-CLOSE"),
        "C-IDLE-KEEP",
    ),
    Subject(
        "closing",
        "How a connection ends",
        "amqp10",
        "A peer that ends the connection sends close and states the reason. The other peer answers with its "
        "own close, and only then the TCP connection ends.",
        ("C-CLOSE-REASON", "C-CLOSE-SENT", "C-CLOSE-LAST", "C-CLOSE-READON", "C-CLOSE-ANSWER"),
        "C-CLOSE-ANSWER",
    ),
    Subject(
        "acknowledgements",
        "How deliveries are acknowledged",
        "amqp091",
        "The server numbers the deliveries of a channel. The client settles each delivery once, on the same "
        "channel, by its delivery-tag. The prefetch-count limits how many deliveries may be unsettled.",
        ("B-QOS-COUNT", "B-ACK-CHANNEL", "B-ACK-KNOWN", "B-ACK-DUP", "B-ACK-TIMEOUT"),
        "B-ACK-DUP",
    ),
    Subject(
        "confirms",
        "How publisher confirms work",
        "amqp091",
        "After confirm.select both peers count the messages that are published on the channel. The server "
        "confirms each message once, by basic.ack or basic.nack.",
        ("CF-SELECT-CAP", "CF-SEQ-RANGE", "CF-ALL", "CF-ONCE", "CF-RETURN-FIRST"),
        "CF-ONCE",
    ),
    Subject(
        "heartbeats",
        "How heartbeats work",
        "amqp091",
        "connection.tune-ok states the heartbeat delay. Each peer sends at least one octet within every "
        "heartbeat delay. A peer that receives nothing for two heartbeat delays closes the socket.",
        ("C-HB-EARLY", "C-HB-SEND", "C-HB-REACT", "C-HB-CLOSING"),
        "C-HB-SEND",
    ),
)


def subject_named(given: str) -> Subject | None:
    """The subject of this name, None if there is none."""
    wanted = given.strip().lower()
    return next((one for one in SUBJECTS if one.name == wanted), None)
